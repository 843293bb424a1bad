/** Pixels beyond an image's edges. */
import { deviceFunction } from '../kernels/index.js';
import type { Usable } from '../kernels/index.js';
import type { Gpu } from '../library/kernel-family.js';

/**
 * The pixels beyond the edges, for a row `a b c d`: `constant` is a colour; `replicate` is `a a | a
 * b c d | d d`; `reflect` is `b a | a b c d | d c`; `reflect101` is `c b | a b c d | c b`; `wrap`
 * is `c d | a b c d | a b`.
 */
export type Border = 'constant' | 'replicate' | 'reflect' | 'reflect101' | 'wrap';

export const BORDERS: readonly Border[] = [
  'constant',
  'replicate',
  'reflect',
  'reflect101',
  'wrap',
];

/**
 * The index that is read for one that may be outside 0 to extent - 1. For `constant` it is any
 * index of the image.
 */
export const INDICES: Readonly<Record<Border, Usable>> = {
  constant: (index: number, extent: number): number => Math.min(Math.max(index, 0), extent - 1),
  replicate: (index: number, extent: number): number => Math.min(Math.max(index, 0), extent - 1),
  reflect: deviceFunction((index: number, extent: number, gpu: Gpu): number => {
    const turn = index % (2 * extent);
    const at = turn < 0 ? turn + 2 * extent : turn;
    return gpu.i32(at < extent ? at : 2 * extent - 1 - at);
  }),
  reflect101: deviceFunction((index: number, extent: number, gpu: Gpu): number => {
    const period = Math.max(2 * extent - 2, 1);
    const turn = index % period;
    const at = turn < 0 ? turn + period : turn;
    return gpu.i32(at < extent ? at : period - at);
  }),
  wrap: deviceFunction((index: number, extent: number, gpu: Gpu): number => {
    const at = index % extent;
    return gpu.i32(at < 0 ? at + extent : at);
  }),
};

/** The place from which on f32 has no fractions: 2^23. */
const WHOLE_FROM = 8388608;

/** Farther than any tap reaches from an image, and small enough for exact sums with taps. */
const BEYOND = 1048576;

/**
 * Limits a place: all places far beyond an edge have the same pixels. NaN is left of the image, or
 * above it.
 */
const clamp = (place: number, extent: number, gpu: FarGpu): number => {
  const least = place > -gpu.BEYOND ? place : gpu.f32(-gpu.BEYOND);
  return least < gpu.BEYOND ? least : gpu.f32(gpu.BEYOND);
};
const clamped: Usable = deviceFunction(clamp as never, { uses: { BEYOND } });

interface FarGpu extends Gpu {
  readonly BEYOND: number;
  readonly WHOLE_FROM: number;
  period(extent: number): number;
}

/**
 * Maps a place of a repeated image near the image: from 2^23 on it is the exact remainder of the
 * whole number m · 2^e by the period. Periods have at most 16 bits, so that a remainder times 2^14
 * fits in i32. NaN and infinities have no remainder, and become 0.
 */
const remainder = (place: number, extent: number, gpu: FarGpu): number => {
  let near = place;
  if (!(Math.abs(place) < gpu.WHOLE_FROM)) {
    const bits = gpu.bits(place);
    const field = gpu.i32((bits >>> 23) & 255);
    const by = gpu.i32(gpu.period(extent));
    let rest = gpu.i32((bits & 8388607) + 8388608) % by;
    let exponent = field - 150;
    while (exponent > 0) {
      const step = Math.min(exponent, 14);
      rest = (rest << step) % by;
      exponent -= step;
    }
    const whole = gpu.f32(field === 255 ? 0 : rest);
    near = place < 0 ? -whole : whole;
  }
  return near;
};
const repeated = (period: (extent: number) => number): Usable =>
  deviceFunction(remainder as never, { uses: { WHOLE_FROM, period } });

/** Pixels after which an image is repeated beyond its edges. */
export const PERIODS: Readonly<Partial<Record<Border, (extent: number) => number>>> = {
  reflect: (extent) => 2 * extent,
  reflect101: (extent) => Math.max(2 * extent - 2, 1),
  wrap: (extent) => extent,
};

/** Maps any place, an f32, to one with the same pixels whose sums with taps are exact. */
export const PLACES: Readonly<Record<Border, Usable>> = {
  constant: clamped,
  replicate: clamped,
  reflect: repeated(PERIODS.reflect!),
  reflect101: repeated(PERIODS.reflect101!),
  wrap: repeated(PERIODS.wrap!),
};
