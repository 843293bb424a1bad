/**
 * How an f32 is written as an element: floats to the nearest, integers to the nearest too, ties to
 * even, saturated; NaN gives 0.
 */
import type { Gpu } from '../library/kernel-family.js';

// Beside 2^23 an f32 has no fraction: the sum rounds, and its low bits are the number. Two
// instructions less than by rint and cvt.
const integer = (top: number): ((value: number, gpu: Gpu) => number) =>
  top === 255
    ? (value, gpu) => gpu.i32(gpu.bits(Math.min(value > 0 ? value : 0, 255) + 8388608))
    : (value, gpu) => gpu.i32(gpu.bits(Math.min(value > 0 ? value : 0, 65535) + 8388608));
const asItIs = (value: number): number => value;

/**
 * Of each dtype of images. What is above the bits of an integer element is cut off when it is
 * written.
 */
export const STORED = { u8: integer(255), u16: integer(65535), f16: asItIs, f32: asItIs } as const;

/** What white is: the greatest number of integers, 1 of floats. */
export const WHITE = { u8: 255, u16: 65535, f16: 1, f32: 1 } as const;
