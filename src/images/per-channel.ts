/** Pixel functions from functions of an element and of two constants of its channel. */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import type { KernelArray } from '../library/kernel-family.js';

/**
 * A function of an element of the first image, that of the second (0 where there is none), and the
 * channel's two constants. It has all four parameters, also those that it does not use.
 */
export type ElementFunction = (x: number, y: number, a: number, b: number) => number;

/** Applies the function to each channel: `a` and `b` are numbers 0 to 3 and 4 to 7 of the call. */
export function eachChannel(f: ElementFunction): DeviceFunction {
  const uses = { f };
  return deviceFunction(
    (
      made: KernelArray<number>,
      x: KernelArray<number>,
      y: KernelArray<number>,
      p: KernelArray<number>,
      gpu: GpuWith<typeof uses>,
    ) => {
      gpu.unroll(4);
      for (let c = 0; c < 4; c++) made[c] = gpu.f(x[c]!, y[c]!, p[c]!, p[c + 4]!);
    },
    { uses },
  );
}

/** The numbers of a call: `a` and `b` of each channel. */
export function channelNumbers(a: readonly number[], b: readonly number[] = []): readonly number[] {
  return Array.from({ length: 8 }, (_, index) => (index < 4 ? a[index] : b[index - 4]) ?? 0);
}
