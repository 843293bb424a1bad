/** Functions of one element that follow a product, or are operations of their own. */
import { invalid } from '../ground/arguments.js';
import type { Gpu } from '../kernels/index.js';

/** The names of activations. */
export type ActivationName = 'relu' | 'gelu' | 'geluTanh' | 'silu';

export const ACTIVATIONS = {
  none: (x: number): number => x,
  relu: (x: number): number => Math.max(x, 0),
  gelu: (x: number, gpu: Gpu): number => 0.5 * x * (1 + gpu.erf(x * 0.7071067811865476)),
  geluTanh: (x: number): number =>
    0.5 * x * (1 + Math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
  silu: (x: number): number => x / (1 + Math.exp(-x)),
} as const satisfies Readonly<Record<ActivationName | 'none', unknown>>;

/** @throws CudaArgumentError where `options.activation` is given, and no name of an activation */
export function checkActivation(activation: unknown): void {
  const names = Object.keys(ACTIVATIONS).filter((name) => name !== 'none');
  if (activation !== undefined && !(names as readonly unknown[]).includes(activation))
    throw invalid(
      'options.activation',
      names.join(', '),
      activation,
      'Leave it out for none, and apply other functions to the result.',
    );
}

/**
 * The same by approximate instructions, for results of 16 bits or fewer: their error before
 * rounding is within 2^-16 of the result. The tensor cores wait while activations follow a product,
 * and a GELU by {@link ACTIVATIONS} takes about 200 instructions: two thirds of the time of a
 * product with 4,096 steps for each element. These take 8 to 16.
 */
export const FAST_ACTIVATIONS: Readonly<Record<keyof typeof ACTIVATIONS, unknown>> = {
  ...ACTIVATIONS,
  // x · Φ(x). With t = 1 / (1 + 0.35 a) the binary logarithm of Φ(-a) / t · e^(a² / 2) is within
  // 2^-16.6 of this polynomial of t for a in [0, 14], beyond which Φ(-a) is less than any number.
  gelu: (x: number, gpu: Gpu): number => {
    const a = Math.abs(x);
    const t = gpu.fast.rcp(gpu.fma(a, 0.35, 1));
    let p = gpu.fma(0.3332152, t, -1.0506935);
    p = gpu.fma(p, t, 0.7382377);
    p = gpu.fma(p, t, 0.34772464);
    p = gpu.fma(p, t, 1.4737408);
    p = gpu.fma(p, t, -2.8422153);
    const tail = t * gpu.fast.exp2(gpu.fma(a * a, -0.72134752, p));
    return x * (x > 0 ? 1 - tail : tail);
  },
  // x / (1 + e^-2u) with the u of the tanh.
  geluTanh: (x: number, gpu: Gpu): number =>
    x * gpu.fast.rcp(gpu.fast.exp2(x * gpu.fma(x * x, -0.10294324, -2.3022082)) + 1),
  silu: (x: number, gpu: Gpu): number => x * gpu.fast.rcp(gpu.fast.exp2(x * -1.442695) + 1),
};
