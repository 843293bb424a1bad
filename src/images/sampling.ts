/**
 * Sampling of images between pixels: weights of taps, and conversions of sums to elements. The
 * functions are compiled into kernels, whose keys have the names of filters.
 */
import { invalid } from '../ground/arguments.js';
import { deviceFunction } from '../kernels/index.js';
import type { Usable } from '../kernels/index.js';
import type { Gpu } from '../library/kernel-family.js';
import type { ImageName } from './image.js';

/**
 * The weights of pixels at a distance of t. `nearest` takes the pixel that the place lies in;
 * `linear` has 1 - |t|; `cubic` is Catmull-Rom, the cubic convolution with a = -0.5; `lanczos3` has
 * sinc(t) · sinc(t / 3) for |t| < 3, divided by the sum of the six weights. Filters do not become
 * wider where an image is made smaller; `area` of resizing does.
 */
export type Filter = 'nearest' | 'linear' | 'cubic' | 'lanczos3';

/**
 * Filters of resizing. `area` is the mean of the part of the source that a pixel of the result
 * covers.
 */
export type ResizeFilter = Filter | 'area';

export const FILTERS: readonly Filter[] = ['nearest', 'linear', 'cubic', 'lanczos3'];
export const RESIZE_FILTERS: readonly ResizeFilter[] = [...FILTERS, 'area'];

/** Pixels along one axis that a filter reads. */
export const TAPS: Readonly<Record<Filter, number>> = {
  nearest: 1,
  linear: 2,
  cubic: 4,
  lanczos3: 6,
};

/** Weights by distance. Those of `lanczos3` are later divided by their sum. */
export const WEIGHTS: Readonly<Record<Exclude<Filter, 'nearest'>, Usable>> = {
  linear: (t: number): number => 1 - Math.abs(t),
  cubic: (t: number): number => {
    const s = Math.abs(t);
    return s < 1 ? (1.5 * s - 2.5) * s * s + 1 : s < 2 ? ((2.5 - 0.5 * s) * s - 4) * s + 2 : 0 * s;
  },
  // sin(pi t) loses digits where t is nearly whole: it is computed of the distance to that whole
  // number.
  lanczos3: deviceFunction((t: number, gpu: Gpu): number => {
    const whole = gpu.rint(t);
    const odd = (gpu.i32(whole) & 1) === 1;
    const sine = Math.sin(3.1415927 * (t - whole));
    const p = 1.0471976 * t;
    return Math.abs(t) < 1e-4
      ? 1 - 0 * t
      : Math.abs(t) < 3
        ? ((odd ? -sine : sine) * Math.sin(p)) / (3.1415927 * t * p)
        : 0 * t;
  }),
};

/**
 * The element for a value that may be outside the dtype's range: the nearest, ties to even. A float
 * is rounded once, when it is written. An integer is the last bits of the sum with 1.5 · 2²³: an
 * addition is faster than two conversions on either device.
 */
export const STORES: Readonly<Record<ImageName, Usable>> = {
  u8: deviceFunction((value: number, gpu: Gpu): number =>
    gpu.i32(gpu.bits(gpu.clamp(value, 0, 255) + 12582912) & 255),
  ),
  u16: deviceFunction((value: number, gpu: Gpu): number =>
    gpu.i32(gpu.bits(gpu.clamp(value, 0, 65535) + 12582912) & 65535),
  ),
  f16: (value: number): number => value,
  f32: (value: number): number => value,
};

/** {@link STORES} for values that are means of elements, and so within the range. */
export const STORES_OF_MEANS: Readonly<Record<ImageName, Usable>> = {
  u8: deviceFunction((value: number, gpu: Gpu): number =>
    gpu.i32(gpu.bits(value + 12582912) & 255),
  ),
  u16: deviceFunction((value: number, gpu: Gpu): number =>
    gpu.i32(gpu.bits(value + 12582912) & 65535),
  ),
  f16: STORES.f16,
  f32: STORES.f32,
};

/** @throws CudaArgumentError for an unknown filter */
export function checkFilter<F extends string>(
  argument: string,
  filter: unknown,
  known: readonly F[],
): asserts filter is F {
  if (!(known as readonly unknown[]).includes(filter))
    throw invalid(argument, `one of ${known.join(', ')}`, filter);
}

/**
 * Gives a colour as one element of the dtype for each channel.
 *
 * @param color one number for all channels, or one for each
 * @throws CudaArgumentError for another number of them, and numbers that the dtype does not have
 */
export function checkColor(
  argument: string,
  color: unknown,
  dtype: ImageName,
  channels: number,
): number[] {
  const list: unknown[] = Array.isArray(color) ? color : new Array<unknown>(channels).fill(color);
  if (list.length !== channels)
    throw invalid(argument, `one number, or ${channels}: one for each channel`, color);
  const most = dtype === 'u8' ? 255 : dtype === 'u16' ? 65535 : undefined;
  for (const each of list) {
    if (
      typeof each !== 'number' ||
      (most !== undefined && !(Number.isInteger(each) && each >= 0 && each <= most))
    ) {
      throw invalid(
        argument,
        most === undefined ? 'numbers' : `whole numbers from 0 to ${most}, for ${dtype}`,
        color,
      );
    }
  }
  return list as number[];
}
