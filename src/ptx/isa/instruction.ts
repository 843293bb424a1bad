// A row of the table of instructions: everything that the compiler knows of one mnemonic.

import type { LaneRule } from '../lanes/lane-emitter.js';
import type { Rule } from '../rules/rule.js';
import type { InstructionTraits } from './traits.js';

/**
 * How an instruction is written in vector lanes. Without a rule that takes the form, the scalar
 * rule runs in a loop over the threads.
 */
export interface VectorRules {
  /** Written for one group of four threads at a time: the first that takes the form. */
  readonly group?: readonly LaneRule[];
  /** Written for all groups of a unit. */
  readonly unit?: LaneRule;
  /** The same where one of the types is a half. */
  readonly halves?: LaneRule;
}

export interface Instruction extends InstructionTraits {
  /**
   * Writes it for one thread. Undefined where the structure of the code does: for branches and the
   * like (`emit/control-flow.ts`), and for cuts (`emit/arrivals.ts`).
   */
  readonly scalar: Rule | undefined;
  readonly vector: VectorRules;
}

/** Instructions by mnemonic. */
export type Rows = Readonly<Record<string, Instruction>>;

export const NO_VECTOR_FORM: VectorRules = {};

/** Of an instruction that stands in the structure of the code. */
export const IN_STRUCTURE = { scalar: undefined, vector: NO_VECTOR_FORM } as const;
