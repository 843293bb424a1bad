/** Functions that kernels call. */
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceFunctionText } from '../compiler/signature.js';
import type { GpuWith } from './body-types.js';
import { usedOf } from './uses.js';
import type { Uses } from './uses.js';

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

/** What the last parameter may be, where it is an object with the gpu in it. */
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
 * A function for {@link KernelOptions.uses} that uses constants or functions itself. Made by
 * {@link deviceFunction}.
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

/**
 * A function for a kernel's `uses` that has `uses` of its own. Its last parameter may be the gpu,
 * which nobody passes:
 *
 * ```ts
 * const uses = { SLOPE: 0.01 };
 * const leaky = deviceFunction((x: number, { SLOPE }: GpuWith<typeof uses>) => (x > 0 ? x : SLOPE * x), { uses });
 * ```
 *
 * A function that uses nothing can be given to `uses` as it is.
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

/** The text of a function that was written in JavaScript. */
export function textOfFunction(argument: string, given: unknown): string {
  if (typeof given !== 'function') throw invalid(argument, 'a function', given);
  const text = Function.prototype.toString.call(given);
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text))
    throw invalid(
      argument,
      'a function whose text is known',
      given,
      'It is native or bound: pass the function itself, as an arrow function or a function ' +
        'declaration.',
    );
  return text;
}
