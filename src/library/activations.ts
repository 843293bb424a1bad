/** Functions of one element that follow a product, or are operations of their own. */
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
