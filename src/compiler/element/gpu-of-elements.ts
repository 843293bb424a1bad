/**
 * The members of gpu in bodies without threads: arithmetic, and no operation that synchronises
 * threads.
 */
import type { NarrowGpu } from '../signature.js';

/** Names of gpu that depend on no thread and access no memory of other threads. */
export const ARITHMETIC_NAMES = [
  'i8',
  'u8',
  'i16',
  'u16',
  'i32',
  'u32',
  'i64',
  'u64',
  'f16',
  'bf16',
  'f32',
  'f64',
  'bits',
  'fromBits',
  'fma',
  'rsqrt',
  'rint',
  'erf',
  'mulhi',
  'popcount',
  'clz',
  'reverseBits',
  'copysign',
  'clamp',
  'fast',
  'local',
  'unroll',
] as const;

/** gpu in the body of an element kernel. `given`: the names that the kernel around it passes. */
export function gpuOfElements(given: readonly string[]): NarrowGpu {
  return {
    has: ARITHMETIC_NAMES,
    given,
    of: 'an element kernel',
    fix:
      'Its body gives one element, and has gpu.index and gpu.coordinates of it: write what ' +
      'needs threads with kernel(…).',
  };
}
