/** The function that makes device functions. */
import { checkOptions } from '../ground/arguments.js';
import type { GpuWith } from './body-types.js';
import { DeviceFunction } from './device-function.js';
import { textOfFunction } from './function-text.js';
import { usedOf, type Uses } from './uses.js';

/** The type of a last parameter that is the gpu, or `never` where `uses` does not fit it. */
type Fits<F, U extends Uses> = F extends (...args: infer A) => unknown
  ? A extends readonly [...unknown[], infer Last]
    ? [Last] extends [{ readonly threadIdx: unknown }]
      ? GpuWith<U> extends Last
        ? unknown
        : never
      : unknown
    : unknown
  : never;

/**
 * Makes a function for a kernel's `uses` that has `uses` of its own. Its last parameter may be the
 * gpu, which the kernel does not pass. A function that uses nothing can be given to `uses` as it
 * is.
 *
 * @example
 * ```ts
 * import type { GpuWith } from 'async-cuda/kernels';
 * const uses = { SLOPE: 0.5 };
 * const leaky = deviceFunction(
 *   (x: number, { SLOPE }: GpuWith<typeof uses>) => (x > 0 ? x : SLOPE * x),
 *   { uses },
 * );
 * const activate = elementKernel(
 *   'activate',
 *   { y: output(f32), x: input(f32) },
 *   ({ x }, gpu) => gpu.leaky(x),
 *   { uses: { leaky } },
 * );
 * const elements = await activate({ x: device.tensor(f32, [-4, 2]) }).andThen(({ y }) => y.read());
 * console.log(elements.join(' ')); // -2 2
 * ```
 *
 * @throws CudaArgumentError for what is no function, or has no text
 */
export function deviceFunction<
  F extends (...args: never[]) => unknown,
  const U extends Uses = Record<never, never>,
>(body: F & Fits<F, U>, options: { readonly uses?: U } = {}): DeviceFunction<F> {
  checkOptions('options', options, ['uses']);
  return new DeviceFunction<F>({
    text: textOfFunction('body', body),
    uses: usedOf('options.uses', options.uses),
  });
}
