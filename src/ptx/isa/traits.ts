// The properties of a row that the analyses read: everything but the rules. Every instruction of a
// lowered function refers to those of its row (`Inst.traits`), so that no analysis compares
// mnemonics.

import type { Form } from './form.js';

/** Why a thread stops at an instruction and lets others run. */
export type CutKind = 'barrier' | 'warp' | 'sleep';

type OfModifiers<T> = (modifiers: readonly string[]) => T;

/** The operands of an instruction, as far as its forms do not describe them. */
export interface OperandTraits {
  /** Whether the first operand is a result. */
  readonly writesFirst: boolean | OfModifiers<boolean>;
  /** That result is read, too. */
  readonly readsFirst?: true;
  /** Reads the carry flag. Instructions with `.cc` write it. */
  readonly readsCarry?: true;
  /** `_` may replace its result; with 'b64' only in forms with a type of 64 bits. */
  readonly resultUnwanted?: 'always' | 'b64';
  /** `_` may not replace the first of two results. */
  readonly firstWanted?: true;
  /** There is no form with one result. */
  readonly twoResults?: true;
  /** The result of a warp operation: it is written only if an instruction reads it. */
  readonly warpResult?: true;
  /** Reads special registers. */
  readonly readsSpecial?: true;
  /** Joins registers to a vector and takes them apart. */
  readonly packsVectors?: true;
  /**
   * Takes the address of a variable by its name; other instructions take a name only with an
   * offset.
   */
  readonly takesNames?: true;
  /** Takes an address in a register, or a name with an offset, but not a name alone. */
  readonly refusesNames?: true;
  /** Takes no name, not even with an offset, where its form has an integer of 32 bits. */
  readonly refusesOffsets?: true;
  /** The integer place of this instruction takes names with an offset at any width. */
  readonly takesOffsets?: true;
  /** Its registers are in braces, even a single one. */
  readonly braces?: true;
  /** The registers of its vectors may be wider than the elements; then all have one width. */
  readonly widerElements?: true;
  /** Takes registers wider than its type. */
  readonly widerRegisters?: true;
  /** A register may replace a number of the form. */
  readonly registersForNumbers?: true;
  /** Takes a negated operand if the modifiers allow it. */
  readonly negated?: OfModifiers<boolean>;
  /** Coordinates follow the object in the brackets. */
  readonly coordinates?: true;
  /** Moves the top of the stack of alloca. The lowering adds that stack to its operands. */
  readonly movesStack?: 'reads' | 'writes';
  /** Also reads or writes the registers of a call's parameter, which are not among its operands. */
  readonly parameter?: 'reads' | 'writes';
}

/** Where an instruction makes threads wait. */
export interface WaitTraits {
  /** The instruction is a cut: the thread continues in a later call. */
  readonly cut: OfModifiers<CutKind | undefined>;
  /** The threads of a warp begin it together; then each does its own part. */
  readonly meetsFirst?: OfModifiers<boolean>;
  /**
   * The warp's other threads get their turn after it. Code from before Volta reduces and scans in
   * `volatile` shared memory without `__syncwarp`, which is correct if the threads of a warp are in
   * step from access to access.
   */
  readonly givesWay?: OfModifiers<boolean>;
}

/**
 * - `none`: the result depends only on the operands, and there is no other effect.
 * - `repeatable`: one execution for a group of threads is equivalent to one for each, if all of
 *   them have the same operands.
 * - `any`: everything else.
 */
export type Effect = 'none' | 'repeatable' | 'any';

/**
 * What an instruction computes, for the analyses of values. Each analysis has a table of all
 * meanings (`lanes/meanings.ts`): a new one does not compile until all tables have it.
 */
export type Meaning =
  /** The operand, unchanged. */
  | 'move'
  /** The same number in another type. */
  | 'convert'
  /** The same address in another space. */
  | 'convert address'
  | 'sum'
  | 'difference'
  | 'product'
  /** A product and an addend. */
  | 'multiply-add'
  | 'minimum'
  | 'shift left'
  | 'shift right'
  | 'and'
  | 'or'
  | 'xor'
  | 'not'
  /** A predicate from a comparison. */
  | 'comparison'
  /** The contents of memory at the second operand. */
  | 'load'
  /** Anything: the analyses use only what its operands imply. */
  | 'opaque';

export interface InstructionTraits {
  /** The types and modifiers that may occur together; empty if the rule checks them. */
  readonly forms: readonly Form[];
  readonly operands: OperandTraits;
  readonly effect: Effect;
  readonly waits: WaitTraits;
  readonly meaning: Meaning;
}

/** The traits that an instruction has unless its row contains others. */
const ORDINARY_OPERANDS: { readonly [K in keyof OperandTraits]-?: OperandTraits[K] | undefined } = {
  writesFirst: true,
  readsFirst: undefined,
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
 * Traits with all of their properties in one order. Engines read a property at a fixed place if all
 * objects have the same shape, and look it up in a table otherwise; each instruction's traits are
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
export type Traits = Pick<ReadonlyMap<string, InstructionTraits>, 'get'>;

export const NEVER_WAITS: WaitTraits = { cut: () => undefined };
export const OF_A_WARP: WaitTraits = { cut: () => 'warp' };

/** The first operand is a result, all others are read. */
export const WRITES_FIRST: OperandTraits = { writesFirst: true };
export const WRITES_NOTHING: OperandTraits = { writesFirst: false };

/** The properties of an instruction that only computes. */
export const COMPUTES = {
  operands: WRITES_FIRST,
  effect: 'none',
  waits: NEVER_WAITS,
} as const satisfies Partial<InstructionTraits>;

/**
 * The traits of an instruction that has no row. It is rejected when its code is written, after all
 * earlier errors.
 */
export const UNKNOWN = alike({
  forms: [],
  operands: WRITES_FIRST,
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
});

/** The traits of instructions that end a block, and of those that the compiler inserts there. */
export const FLOW: Omit<InstructionTraits, 'forms'> = {
  operands: WRITES_NOTHING,
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
};
export const BRANCH = alike({ ...FLOW, forms: [] });
export const WARP_BARRIER = alike({ ...BRANCH, waits: OF_A_WARP });
