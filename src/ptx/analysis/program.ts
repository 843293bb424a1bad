// The compiler's intermediate representation: a function as a flat list of instructions whose names
// are resolved to registers, labels and symbols, with those device functions inlined that have to
// be.

import type { PlacedVariable } from '../check.js';
import type { InstructionTraits } from '../isa/traits.js';
import type { ScalarType } from '../scalar-types.js';
import type { Instruction, Prototype, PtxFunction } from '../syntax/ast.js';

export interface Register {
  readonly id: number;
  readonly name: string;
  readonly type: ScalarType;
}

export interface Label {
  readonly name: string;
  /** The index of the block that it starts; set when blocks are made. */
  block: number;
}

/** A .shared variable. It is placed per kernel, when the kernel's code is known. */
export interface SharedVariable {
  readonly name: string;
  readonly size: number;
  readonly align: number;
  /**
   * `.extern .shared x[]`: all of these start at the end of the static ones. One with a size is
   * static.
   */
  readonly dynamic: boolean;
}

export type Symbol =
  | { kind: 'data'; name: string; offset: number; space: 'global' | 'const' }
  | { kind: 'shared'; variable: SharedVariable }
  /** Bytes of the frame of the thread, or of the call. */
  | { kind: 'frame'; offset: number }
  | { kind: 'entryParam'; offset: number; size: number }
  /** A scalar in call-parameter space, kept in a register. */
  | { kind: 'paramRegister'; register: Register }
  /** An aggregate parameter of a real function: a register holds its address. */
  | { kind: 'incoming'; pointer: Register }
  | { kind: 'function'; target: PtxFunction };

export type Arg =
  | { kind: 'register'; register: Register; at: number }
  | { kind: 'integer'; value: bigint; at: number }
  | { kind: 'float'; width: 32 | 64; bits: bigint; at: number }
  | { kind: 'special'; name: string; at: number }
  | { kind: 'symbol'; symbol: Symbol; offset: number; at: number }
  | {
      kind: 'address';
      base: Register | undefined;
      symbol: Symbol | undefined;
      offset: number;
      extra: Arg[];
      at: number;
    }
  | { kind: 'vector'; elements: Arg[]; at: number }
  | { kind: 'pair'; first: Arg; second: Arg; at: number }
  | { kind: 'not'; operand: Arg; at: number }
  | { kind: 'negated'; operand: Arg; at: number }
  /** Bytes or halves of a register, as in `%r1.b3210`. */
  | { kind: 'selected'; operand: Arg; selector: string; at: number }
  | { kind: 'label'; label: Label; at: number }
  /** `_`: a result that is discarded. */
  | { kind: 'sink'; at: number };

export interface CallSite {
  /** A function of the module, a host function by name, or an address with its prototype. */
  callee: PtxFunction | string | { address: Register; prototype: Prototype };
  args: CallValue[];
  results: CallValue[];
}

export type CallValue =
  | { kind: 'register'; register: Register }
  | { kind: 'frame'; offset: number }
  | { kind: 'pointer'; register: Register }
  | { kind: 'constant'; arg: Arg };

export interface Inst {
  mnemonic: string;
  /** The properties in its row of the table of instructions. */
  traits: InstructionTraits;
  modifiers: readonly string[];
  args: readonly Arg[];
  predicate: { register: Register; negated: boolean } | undefined;
  source: Instruction;
  /** The carry flag, in instructions that set or read it. */
  carry?: Register;
  defs: readonly Register[];
  uses: readonly Register[];
  /** The targets of a branch; several for brx.idx. */
  targets: readonly Label[];
  call: CallSite | undefined;
}

export interface LoweredFunction {
  source: PtxFunction;
  /** Instructions, and before an instruction its labels. */
  code: (Inst | Label)[];
  registers: Register[];
  /** Bytes of .local variables and aggregate call parameters, and their alignment, at least 16. */
  frameBytes: number;
  frameAlign: number;
  frameVariables: PlacedVariable[];
  shared: Set<SharedVariable>;
  calls: Set<PtxFunction>;
  indirectCalls: boolean;
  /** For a real function: one register or pointer per parameter and result, in order. */
  params: Register[];
  results: Register[];
  maxCallResults: number;
}

export const isLabel = (entry: Inst | Label): entry is Label => 'block' in entry;
