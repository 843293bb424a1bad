// What the compiler must know of an instruction beside its code: the properties of a row of the
// table of instructions that the analyses read. Every instruction of a lowered function carries
// its row's (`Inst.traits`), so that no analysis asks for mnemonics.

import type { Form } from './form.js';

/** Why a thread stops at an instruction so that others can run. */
export type CutKind = 'barrier' | 'warp' | 'sleep';

type OfModifiers<T> = (modifiers: readonly string[]) => T;

/** Which operands an instruction has, beyond what its forms say. */
export interface OperandTraits {
  /** Whether the first operand is a result. */
  readonly writesFirst: boolean | OfModifiers<boolean>;
  /** Reads the carry flag. Instructions with `.cc` write it. */
  readonly readsCarry?: true;
  /** `_` may stand for its result; false where the form must say so with a type of 64 bits. */
  readonly resultUnwanted?: 'always' | 'b64';
  /** Takes no `_` for the first of two results. */
  readonly firstWanted?: true;
  /** Has no form with one result. */
  readonly twoResults?: true;
  /** The result of an operation of a warp: it is written only where something reads it. */
  readonly warpResult?: true;
  /** Reads special registers. */
  readonly readsSpecial?: true;
  /** Joins registers to a vector and takes them apart. */
  readonly packsVectors?: true;
  /** Takes the address of a variable by its name; others take a name with an offset only. */
  readonly takesNames?: true;
  /** Takes an address in a register, or a name with an offset, but not the bare name. */
  readonly refusesNames?: true;
  /** Takes no name even with an offset where its form has an integer of 32 bits. */
  readonly refusesOffsets?: true;
  /** The integer place of this instruction takes names with an offset at any width. */
  readonly takesOffsets?: true;
  /** Its registers stand in braces, one alone too. */
  readonly braces?: true;
  /** Its vectors may be of registers wider than the elements; then all have one width. */
  readonly widerElements?: true;
  /** Takes registers wider than its type. */
  readonly widerRegisters?: true;
  /** A register may stand where a form has a number. */
  readonly registersForNumbers?: true;
  /** Takes a negated operand where the modifiers allow it. */
  readonly negated?: OfModifiers<boolean>;
  /** Coordinates stand behind the object in its brackets. */
  readonly coordinates?: true;
  /** Moves the top of the stack of alloca; the lowering adds that stack to its operands. */
  readonly movesStack?: 'reads' | 'writes';
  /** The registers beside the operands that it writes or reads: of a parameter of a call. */
  readonly parameter?: 'reads' | 'writes';
}

/** At what an instruction makes threads wait. */
export interface WaitTraits {
  /** The instruction is a cut: the thread's code goes on in a later call. */
  readonly cut: OfModifiers<CutKind | undefined>;
  /** The threads of a warp begin it together, each then doing its own part. */
  readonly meetsFirst?: OfModifiers<boolean>;
  /**
   * The warp's other threads have their turn behind it. Code of before Volta reduces and scans in
   * `volatile` shared memory without `__syncwarp`, which is right where the threads of a warp are
   * in step from access to access.
   */
  readonly givesWay?: OfModifiers<boolean>;
}

/**
 * - `none`: the result depends on nothing but the operands, and nothing else happens.
 * - `repeatable`: once for a group of threads is as good as once for each, where all of them have
 *   the same operands.
 * - `any`: everything else.
 */
export type Effect = 'none' | 'repeatable' | 'any';

/**
 * What an instruction computes, as far as the analyses of values know it. `values.ts` says what
 * each analysis makes of each: a new meaning does not compile until all of them have decided.
 */
export type Meaning =
  /** the operand, as it is */
  | 'move'
  /** the same number in another type */
  | 'convert'
  /** the same address in another space */
  | 'convert address'
  | 'sum'
  | 'difference'
  | 'product'
  /** a product and an addend */
  | 'multiply-add'
  | 'minimum'
  | 'shift left'
  | 'shift right'
  | 'and'
  | 'or'
  | 'xor'
  | 'not'
  /** a predicate from a comparison */
  | 'comparison'
  /** what is in memory at the second operand */
  | 'load'
  /** anything: nothing is known of it but what its operands say */
  | 'opaque';

export interface InstructionTraits {
  /** Types and modifiers that may stand together; none: all that the rule takes. */
  readonly forms: readonly Form[];
  readonly operands: OperandTraits;
  readonly effect: Effect;
  readonly waits: WaitTraits;
  readonly meaning: Meaning;
}

/** What no instruction has unless its row says so. */
const ORDINARY_OPERANDS: { readonly [K in keyof OperandTraits]-?: OperandTraits[K] | undefined } = {
  writesFirst: true,
  readsCarry: undefined,
  resultUnwanted: undefined,
  firstWanted: undefined,
  twoResults: undefined,
  warpResult: undefined,
  readsSpecial: undefined,
  packsVectors: undefined,
  takesNames: undefined,
  refusesNames: undefined,
  refusesOffsets: undefined,
  takesOffsets: undefined,
  braces: undefined,
  widerElements: undefined,
  widerRegisters: undefined,
  registersForNumbers: undefined,
  negated: undefined,
  coordinates: undefined,
  movesStack: undefined,
  parameter: undefined,
};

/**
 * Traits with all of their properties in one order. Engines read a property of objects that are
 * alike at a fixed place, and look it up in a table where objects differ; each instruction's are
 * read dozens of times.
 */
export const alike = (traits: InstructionTraits): InstructionTraits => ({
  forms: traits.forms,
  operands: { ...ORDINARY_OPERANDS, ...traits.operands } as OperandTraits,
  effect: traits.effect,
  waits: {
    cut: traits.waits.cut,
    meetsFirst: traits.waits.meetsFirst,
    givesWay: traits.waits.givesWay,
  } as WaitTraits,
  meaning: traits.meaning,
});

/** The instructions by mnemonic. */
export type Traits = ReadonlyMap<string, InstructionTraits>;

export const NEVER_WAITS: WaitTraits = { cut: () => undefined };
export const OF_A_WARP: WaitTraits = { cut: () => 'warp' };

/** The first operand is a result, all others are read. */
export const WRITES_FIRST: OperandTraits = { writesFirst: true };
export const WRITES_NOTHING: OperandTraits = { writesFirst: false };

/** Of an instruction that only computes. */
export const COMPUTES = {
  operands: WRITES_FIRST,
  effect: 'none',
  waits: NEVER_WAITS,
} as const satisfies Partial<InstructionTraits>;

/**
 * What the compiler takes an instruction for that is in no row: it is refused when its code is
 * written, with all that is wrong before it.
 */
export const UNKNOWN = alike({
  forms: [],
  operands: WRITES_FIRST,
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
});

/** Of the instructions that end a block, and of those that the compiler itself puts there. */
export const FLOW: Omit<InstructionTraits, 'forms'> = {
  operands: WRITES_NOTHING,
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
};
export const BRANCH = alike({ ...FLOW, forms: [] });
export const WARP_BARRIER = alike({ ...BRANCH, waits: OF_A_WARP });
