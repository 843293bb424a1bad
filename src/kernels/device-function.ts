/** Functions that kernels call. */
import type { DeviceFunctionText } from '../compiler/signature.js';

/** Parameters without the last one, where that is the gpu. */
type WithoutGpu<A extends readonly unknown[]> = A extends readonly [...infer Before, infer Last]
  ? [Last] extends [{ readonly threadIdx: unknown }]
    ? Before
    : A
  : A;

/** A function's signature as kernels call it: the trailing `gpu` is passed for them. */
export type DeviceSignature<F> = F extends (...args: infer A) => infer R
  ? (...args: WithoutGpu<A>) => R
  : never;

/**
 * A function for {@link KernelOptions.uses} that uses constants or functions itself.
 * {@link deviceFunction} makes it.
 *
 * @example
 * ```ts
 * const square = deviceFunction((x: number) => x * x);
 * const squares = kernel('squares', { y: output(f32) }, ({ y }, gpu) => {
 *   const i = gpu.globalId.x;
 *   if (i < y.length) y[i] = gpu.square(i);
 * }, { uses: { square } });
 * console.log(square instanceof DeviceFunction, squares.name); // true squares
 * ```
 */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- any function's
export class DeviceFunction<F = any> {
  /** The function's signature in a kernel. For the type checker only. */
  declare readonly signature: DeviceSignature<F>;
  /** @internal */
  readonly source: DeviceFunctionText;

  /** @internal */
  constructor(source: DeviceFunctionText) {
    this.source = source;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    const names = Object.keys(this.source.uses);
    return `DeviceFunction${names.length === 0 ? '' : ` with ${names.join(', ')}`}`;
  }
}
