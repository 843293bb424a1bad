/**
 * Conversion of f32 to elements: to the nearest, ties to even; integers are saturated, and NaN
 * becomes 0.
 */
import type { Gpu } from '../library/kernel-family.js';

// From 2^23 on an f32 has no fraction: the sum is rounded, and its low bits are the number. This
// takes two instructions less than rint and cvt.
const integer = (top: number): ((value: number, gpu: Gpu) => number) =>
  top === 255
    ? (value, gpu) => gpu.i32(gpu.bits(Math.min(value > 0 ? value : 0, 255) + 8388608))
    : (value, gpu) => gpu.i32(gpu.bits(Math.min(value > 0 ? value : 0, 65535) + 8388608));
const asItIs = (value: number): number => value;

/**
 * The conversion for each dtype of images. Bits above those of an integer element are dropped when
 * it is written.
 */
export const STORED = { u8: integer(255), u16: integer(65535), f16: asItIs, f32: asItIs } as const;

/** White: the greatest number of an integer dtype, 1 for floats. */
export const WHITE = { u8: 255, u16: 65535, f16: 1, f32: 1 } as const;
