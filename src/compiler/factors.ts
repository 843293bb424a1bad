/** The dtypes that tensor cores multiply: how instructions name them, and what they sum in. */
import type { StorageType } from './tree.js';

/** What tensor cores can sum products in. */
export const ACCUMULATORS = ['f32', 'f16', 'i32'] as const;
export type Accumulator = (typeof ACCUMULATORS)[number];

export interface FactorFacts {
  /** Its type in PTX. */
  readonly type: string;
  /** Elements of the summed axis in one instruction: 32 bytes. */
  readonly depth: number;
  /** Storage of the sums, the usual one first. */
  readonly sums: readonly Accumulator[];
  /**
   * Whether sums of a step in f32 are added to others by f32 arithmetic: tensor cores keep 13 bits
   * of a sum of products of f8 (H200), which a long common dimension would use up.
   */
  readonly addsSteps: boolean;
}

export const FACTORS: Readonly<Partial<Record<StorageType, FactorFacts>>> = {
  f16: { type: 'f16', depth: 16, sums: ['f32', 'f16'], addsSteps: false },
  bf16: { type: 'bf16', depth: 16, sums: ['f32'], addsSteps: false },
  f32: { type: 'tf32', depth: 8, sums: ['f32'], addsSteps: false },
  i8: { type: 's8', depth: 32, sums: ['i32'], addsSteps: false },
  u8: { type: 'u8', depth: 32, sums: ['i32'], addsSteps: false },
  f8e4m3: { type: 'e4m3', depth: 32, sums: ['f32', 'f16'], addsSteps: true },
  f8e5m2: { type: 'e5m2', depth: 32, sums: ['f32', 'f16'], addsSteps: true },
};

/** Whether one product takes factors of both: f8 of both kinds, or integers of both kinds. */
export const together = (a: StorageType, b: StorageType): boolean =>
  FACTORS[a] !== undefined &&
  (a === b ||
    (FACTORS[a].depth === 32 &&
      FACTORS[b]?.depth === 32 &&
      FACTORS[a].sums[0] === FACTORS[b].sums[0]));
