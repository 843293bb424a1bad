// A row of the table of instructions: all properties of one mnemonic.

import type { LaneRule } from '../lanes/lane-emitter.js';
import type { Rule } from '../rules/rule.js';
import type { InstructionTraits } from './traits.js';

/**
 * How an instruction is written in vector lanes. If no rule takes the form, the scalar rule runs in
 * a loop over the threads.
 */
export interface VectorRules {
  /**
   * Rules that write one group of four threads at a time: the first rule that takes the form is
   * used.
   */
  readonly group?: readonly LaneRule[];
  /** A rule that writes all groups of a unit. */
  readonly unit?: LaneRule;
  /** The same as `group`, for forms in which one of the types is a half. */
  readonly halves?: LaneRule;
}

export interface Instruction extends InstructionTraits {
  /**
   * The rule that writes it for one thread. It is undefined where the structure of the code
   * replaces it: for branches and the like (`emit/control-flow.ts`), and for cuts
   * (`emit/arrivals.ts`).
   */
  readonly scalar: Rule | undefined;
  readonly vector: VectorRules;
}

/** Instructions by mnemonic. */
export type Rows = Readonly<Record<string, Instruction>>;

export const NO_VECTOR_FORM: VectorRules = {};

/** The rules of an instruction that is part of the structure of the code. */
export const IN_STRUCTURE = { scalar: undefined, vector: NO_VECTOR_FORM } as const;
