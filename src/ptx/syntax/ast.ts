// The syntax tree of a PTX module, as the parser makes it: no name is resolved, and every node has
// its offset in the text.

import type { SourceText } from '../error.js';

export type Space = 'reg' | 'global' | 'const' | 'shared' | 'local' | 'param' | 'tex';

export type Operand =
  /**
   * `offset` is the number that a plus after the name adds; `added` is the same in 64 bits, and is
   * absent without a plus. `element` is the index after the name; `array-elements.ts` replaces
   * these before parsePtx returns.
   */
  | {
      kind: 'name';
      name: string;
      selector?: string;
      offset: number;
      added?: bigint;
      at: number;
      element?: { register: string | undefined; offset: number };
    }
  | { kind: 'integer'; value: bigint; at: number }
  | { kind: 'float'; width: 32 | 64; bits: bigint; at: number }
  /** `unified`: the word follows it, a hint about the address. */
  | {
      kind: 'address';
      base: string | undefined;
      offset: number;
      extra: Operand[];
      unified?: true;
      at: number;
    }
  | { kind: 'vector'; elements: Operand[]; at: number }
  | { kind: 'pair'; first: Operand; second: Operand; at: number }
  | { kind: 'not'; operand: Operand; at: number }
  /** `-%r1`, in vmad. */
  | { kind: 'negated'; operand: Operand; at: number }
  | { kind: 'list'; elements: Operand[]; at: number };

export interface Instruction {
  kind: 'instruction';
  predicate?: { register: string; negated: boolean };
  mnemonic: string;
  /**
   * The dotted words after the mnemonic, without their dots. Instructions of one form share the
   * array.
   */
  modifiers: readonly string[];
  operands: Operand[];
  start: number;
  end: number;
  line: number;
}

export type Initializer =
  | { kind: 'integer'; value: bigint; at: number }
  | { kind: 'float'; width: 32 | 64; bits: bigint; at: number }
  | { kind: 'symbol'; name: string; addend: number; generic: boolean; mask?: bigint; at: number }
  | { kind: 'list'; elements: Initializer[]; at: number };

export interface Variable {
  kind: 'variable';
  space: Space;
  name: string;
  type: string;
  /** 1, or the width of `.v2`/`.v4`. */
  vector: number;
  align: number | undefined;
  /** Array dimensions; 0 for `[]`. */
  dimensions: number[];
  initializer: Initializer | undefined;
  /** extern, visible, weak, common */
  linkage: string[];
  /** `.ptr` on a parameter. */
  pointer: boolean;
  /**
   * For a parameter that was an element of a vector: the number of elements for the first, and 0
   * for the others; see vector-parameters.ts.
   */
  elements?: number;
  /**
   * For a .global or .const variable inside a function: its name in the module; see
   * function-data.ts.
   */
  placedAs?: string;
  at: number;
}

export interface Prototype {
  returns: Variable[];
  params: Variable[];
  /** Present on a .callprototype. */
  noreturn?: boolean;
}

export type Statement =
  | Instruction
  | { kind: 'label'; name: string; at: number }
  | { kind: 'block'; statements: Statement[] }
  | {
      kind: 'registers';
      type: string;
      vector: number;
      names: { name: string; count: number | undefined; at: number }[];
    }
  | Variable
  | { kind: 'prototype'; name: string; prototype: Prototype; at: number }
  | { kind: 'targets'; name: string; labels: string[]; at: number }
  | { kind: 'location'; file: number; line: number; column: number };

export interface PtxFunction extends Prototype {
  name: string;
  entry: boolean;
  linkage: string[];
  /** `maxntid`, `reqntid`, `minnctapersm` and others, with their numbers. */
  directives: Map<string, number[]>;
  body: Statement[] | undefined;
  at: number;
  line: number;
}

export interface PtxModule {
  version: string;
  target: string;
  /** The words after the target: `debug`, `texmode_independent`, `map_f64_to_f32`. */
  targetOptions: Set<string>;
  addressSize: number;
  functions: PtxFunction[];
  variables: Variable[];
  /**
   * Registers and `.local` variables outside functions, as before PTX 3.0: one for each thread,
   * shared by all functions.
   */
  perThread: Statement[];
  aliases: Map<string, string>;
  /** Source files by their numbers in .loc directives. */
  files: Map<number, string>;
  source: SourceText;
}
