/** Functions of one number for each element of a tensor. */
import type { KernelDTypeName } from '../core/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Usable } from '../kernels/index.js';
import type { Shape, Tensor } from '../tensor/index.js';
import { elementwise } from './elementwise.js';
import type { FloatName, IntegerName, NumberName } from './element-types.js';
import type { Group } from './element-types.js';
import type { Gpu } from './kernel-family.js';
import { checkNoOptions } from './operation.js';

/**
 * A function of each element: a new contiguous tensor of the operand's shape and dtype. The operand
 * is any view, or an operation that gives one. f16, bf16 and f8 are computed with in f32 and
 * rounded once to nearest even; integers wrap.
 *
 * @throws CudaArgumentError for another dtype, CudaDisposedError for a tensor that was closed: at
 *   the call, or when it is run where an operation gives the operand
 */
export type Unary<N extends KernelDTypeName> = <D extends N, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
) => DeviceOp<Tensor<D, S>>;

function unary<N extends KernelDTypeName>(name: string, group: Group, f: Usable): Unary<N> {
  return ((x: unknown, more: unknown, further: unknown) => {
    checkNoOptions(name, more, further);
    return elementwise({ name, group, f }, [x]);
  }) as Unary<N>;
}

/** e to the power of x. */
export const exp = unary<FloatName>('exp', 'floats', (x: number): number => Math.exp(x));
/** e to the power of x, less 1: exact to the last bits near 0. */
export const expm1 = unary<FloatName>('expm1', 'floats', (x: number): number => Math.expm1(x));
/** The natural logarithm. */
export const log = unary<FloatName>('log', 'floats', (x: number): number => Math.log(x));
/** The natural logarithm of 1 + x: exact to the last bits near 0. */
export const log1p = unary<FloatName>('log1p', 'floats', (x: number): number => Math.log1p(x));
/** The logarithm to base 2. */
export const log2 = unary<FloatName>('log2', 'floats', (x: number): number => Math.log2(x));
/** The logarithm to base 10. */
export const log10 = unary<FloatName>('log10', 'floats', (x: number): number => Math.log10(x));
/** The square root, rounded correctly. */
export const sqrt = unary<FloatName>('sqrt', 'floats', (x: number): number => Math.sqrt(x));
/** 1 / sqrt(x), each rounded correctly. */
export const rsqrt = unary<FloatName>('rsqrt', 'floats', (x: number, gpu: Gpu): number =>
  gpu.rsqrt(x),
);
/** 1 / x, rounded correctly. */
export const reciprocal = unary<FloatName>('reciprocal', 'floats', (x: number): number => 1 / x);
/** x · x. */
export const square = unary<NumberName>('square', 'numbers', (x: number): number => x * x);
/** The sine of x in radians. */
export const sin = unary<FloatName>('sin', 'floats', (x: number): number => Math.sin(x));
/** The cosine of x in radians. */
export const cos = unary<FloatName>('cos', 'floats', (x: number): number => Math.cos(x));
/** The tangent of x in radians. */
export const tan = unary<FloatName>('tan', 'floats', (x: number): number => Math.tan(x));
/** The hyperbolic tangent. */
export const tanh = unary<FloatName>('tanh', 'floats', (x: number): number => Math.tanh(x));
/** The error function. */
export const erf = unary<FloatName>('erf', 'floats', (x: number, gpu: Gpu): number => gpu.erf(x));
/** The magnitude. Of the least integer of a type it is that integer, as it wraps. */
export const abs = unary<NumberName>('abs', 'numbers', (x: number): number => Math.abs(x));
/** 0 - x; of unsigned integers too, which wrap. */
export const neg = unary<NumberName>('neg', 'numbers', (x: number): number => -x);
/** -1, 0 or 1; NaN and -0 as they are. */
export const sign = unary<NumberName>('sign', 'numbers', (x: number): number => Math.sign(x));
/** The largest whole number that is not above x. */
export const floor = unary<FloatName>('floor', 'floats', (x: number): number => Math.floor(x));
/** The smallest whole number that is not below x. */
export const ceil = unary<FloatName>('ceil', 'floats', (x: number): number => Math.ceil(x));
/** x without its fraction. */
export const trunc = unary<FloatName>('trunc', 'floats', (x: number): number => Math.trunc(x));
/** The nearest whole number; halves go up, as Math.round has it. */
export const round = unary<FloatName>('round', 'floats', (x: number): number => Math.round(x));
/** 1 / (1 + exp(-x)). */
export const sigmoid = unary<FloatName>(
  'sigmoid',
  'floats',
  (x: number): number => 1 / (1 + Math.exp(-x)),
);
/** max(x, 0); NaN stays. */
export const relu = unary<NumberName>('relu', 'numbers', (x: number): number => Math.max(x, 0));
/** x · sigmoid(x), as x / (1 + exp(-x)). */
export const silu = unary<FloatName>(
  'silu',
  'floats',
  (x: number): number => x / (1 + Math.exp(-x)),
);
/** x / 2 · (1 + erf(x / sqrt(2))): the exact form. */
export const gelu = unary<FloatName>(
  'gelu',
  'floats',
  (x: number, gpu: Gpu): number => 0.5 * x * (1 + gpu.erf(x * 0.7071067811865476)),
);
/** GELU by its usual approximation with tanh. */
export const geluTanh = unary<FloatName>(
  'gelu_tanh',
  'floats',
  (x: number): number => 0.5 * x * (1 + Math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
);
/** log(1 + exp(x)), without overflow. */
export const softplus = unary<FloatName>(
  'softplus',
  'floats',
  (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
);
/** Every bit the other way. */
export const bitwiseNot = unary<IntegerName>('bitwise_not', 'integers', (x: number): number => ~x);
/** Whether x is false. */
export const logicalNot = unary<'bool'>('logical_not', 'bool', (x: boolean): boolean => !x);
