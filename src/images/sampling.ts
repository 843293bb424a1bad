/**
 * How an image is read between its pixels: filters as weights of taps, and elements as what is
 * stored of a sum. Functions here are compiled into kernels; each is known by its name in the
 * kernels' keys.
 */
import { invalid } from '../ground/arguments.js';
import { deviceFunction } from '../kernels/index.js';
import type { Usable } from '../kernels/index.js';
import type { Gpu } from '../library/kernel-family.js';
import type { ImageName } from './image.js';

/**
 * How many pixels make one, and with which weights. At a distance of t pixels: `nearest` takes the
 * pixel that the point lies in; `linear`: 1 - |t|; `cubic`: Catmull-Rom, the cubic convolution with
 * a = -0.5; `lanczos3`: sinc(t) · sinc(t / 3) for |t| < 3, divided by the sum of the six weights.
 * Their reach does not grow where an image is made smaller; for that there is `area` of resizing.
 */
export type Filter = 'nearest' | 'linear' | 'cubic' | 'lanczos3';

/**
 * Of resizing there is `area` too: the mean of the part of the source that a pixel of the result
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

/** Weights by distance, before they are divided by their sum where `normalised`. */
export const WEIGHTS: Readonly<Record<Exclude<Filter, 'nearest'>, Usable>> = {
  linear: (t: number): number => 1 - Math.abs(t),
  cubic: (t: number): number => {
    const s = Math.abs(t);
    return s < 1 ? (1.5 * s - 2.5) * s * s + 1 : s < 2 ? ((2.5 - 0.5 * s) * s - 4) * s + 2 : 0 * s;
  },
  // sin(pi t) of a distance that is nearly whole loses its digits: it is taken of the distance to
  // that whole number.
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
 * The element for a value that may lie outside of the dtype's range: nearest, ties to even. Floats
 * are rounded once, by being written; integers by being added to 1.5 · 2²³, whose last bits they
 * then are: an addition is quicker than two conversions on either device.
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

/** As {@link STORES}, for values that are means of elements. */
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

/** @throws CudaArgumentError for what is no filter of these */
export function checkFilter<F extends string>(
  argument: string,
  filter: unknown,
  known: readonly F[],
): asserts filter is F {
  if (!(known as readonly unknown[]).includes(filter))
    throw invalid(argument, `one of ${known.join(', ')}`, filter);
}

/**
 * A colour for `channels` channels: one number for all of them, or one for each; as elements of the
 * dtype. @throws CudaArgumentError
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
