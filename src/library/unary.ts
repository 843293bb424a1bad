/** Functions of one number for each element of a tensor. */
import { ACTIVATIONS } from './activations.js';
import type { FloatName, NumberName } from './element-types.js';
import type { Gpu } from './kernel-family.js';
import { itself, ofFloatsAndIntegers, unary } from './unary-function.js';

/**
 * e to the power of x.
 *
 * @example
 * ```ts
 * using y = await exp(device.tensor(f32, [0, 1, 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(2)).join(' ')); // 1.00 2.72 7.39
 * ```
 */
export const exp = unary<FloatName>('exp', 'floats', (x: number): number => Math.exp(x));
/**
 * e to the power of x, minus 1. Results near 0 are accurate to the last bits.
 *
 * @example
 * ```ts
 * using y = await expm1(device.tensor(f64, [1e-12]));
 * console.log((await y.item()).toExponential(3)); // 1.000e-12
 * ```
 */
export const expm1 = unary<FloatName>('expm1', 'floats', (x: number): number => Math.expm1(x));
/**
 * The natural logarithm.
 *
 * @example
 * ```ts
 * using y = await log(device.tensor(f32, [1, Math.E]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.000
 * ```
 */
export const log = unary<FloatName>('log', 'floats', (x: number): number => Math.log(x));
/**
 * The natural logarithm of 1 + x. Results near 0 are accurate to the last bits.
 *
 * @example
 * ```ts
 * using y = await log1p(device.tensor(f64, [1e-12]));
 * console.log((await y.item()).toExponential(3)); // 1.000e-12
 * ```
 */
export const log1p = unary<FloatName>('log1p', 'floats', (x: number): number => Math.log1p(x));
/**
 * The logarithm to base 2.
 *
 * @example
 * ```ts
 * using y = await log2(device.tensor(f32, [1, 2, 8]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(1)).join(' ')); // 0.0 1.0 3.0
 * ```
 */
export const log2 = unary<FloatName>('log2', 'floats', (x: number): number => Math.log2(x));
/**
 * The logarithm to base 10.
 *
 * @example
 * ```ts
 * using y = await log10(device.tensor(f32, [1, 10, 1000]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(1)).join(' ')); // 0.0 1.0 3.0
 * ```
 */
export const log10 = unary<FloatName>('log10', 'floats', (x: number): number => Math.log10(x));
/**
 * The square root, rounded correctly.
 *
 * @example
 * ```ts
 * using y = await sqrt(device.tensor(f32, [1, 4, 6.25]));
 * console.log((await y.read()).join(' ')); // 1 2 2.5
 * ```
 */
export const sqrt = unary<FloatName>('sqrt', 'floats', (x: number): number => Math.sqrt(x));
/**
 * 1 / sqrt(x); the square root and the quotient are rounded correctly.
 *
 * @example
 * ```ts
 * using y = await rsqrt(device.tensor(f32, [1, 4, 0.25]));
 * console.log((await y.read()).join(' ')); // 1 0.5 2
 * ```
 */
export const rsqrt = unary<FloatName>('rsqrt', 'floats', (x: number, gpu: Gpu): number =>
  gpu.rsqrt(x),
);
/**
 * 1 / x, rounded correctly.
 *
 * @example
 * ```ts
 * using y = await reciprocal(device.tensor(f32, [1, 2, -8]));
 * console.log((await y.read()).join(' ')); // 1 0.5 -0.125
 * ```
 */
export const reciprocal = unary<FloatName>('reciprocal', 'floats', (x: number): number => 1 / x);
/**
 * x · x.
 *
 * @example
 * ```ts
 * using y = await square(device.tensor(i32, [1, -2, 3]));
 * console.log((await y.read()).join(' ')); // 1 4 9
 * ```
 */
export const square = unary<NumberName>('square', 'numbers', (x: number): number => x * x);
/**
 * The error function.
 *
 * @example
 * ```ts
 * using y = await erf(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 0.843
 * ```
 */
export const erf = unary<FloatName>('erf', 'floats', (x: number, gpu: Gpu): number => gpu.erf(x));
/**
 * The magnitude. The magnitude of a signed dtype's least integer wraps to that integer.
 *
 * @example
 * ```ts
 * using y = await abs(device.tensor(f32, [-1.5, 0, 2]));
 * console.log((await y.read()).join(' ')); // 1.5 0 2
 * ```
 */
export const abs = unary<NumberName>('abs', 'numbers', (x: number): number => Math.abs(x));
/**
 * 0 - x. Unsigned integers wrap.
 *
 * @example
 * ```ts
 * using y = await neg(device.tensor(i32, [1, -2, 3]));
 * console.log((await y.read()).join(' ')); // -1 2 -3
 * ```
 */
export const neg = unary<NumberName>('neg', 'numbers', (x: number): number => -x);
/**
 * -1, 0 or 1, as x is negative, zero of either sign, or positive. NaN stays.
 *
 * @example
 * ```ts
 * using y = await sign(device.tensor(f32, [-1.5, 0, 2]));
 * console.log((await y.read()).join(' ')); // -1 0 1
 * ```
 */
export const sign = unary<NumberName>(
  'sign',
  'numbers',
  ofFloatsAndIntegers(
    (x: number): number => (x > 0 ? 1 : x < 0 ? -1 : x === 0 ? 0 : x),
    (x: number): number => Math.sign(x),
  ),
);
/**
 * The largest whole number that is not above x; an integer stays.
 *
 * @example
 * ```ts
 * using y = await floor(device.tensor(f32, [1.5, -1.5]));
 * console.log((await y.read()).join(' ')); // 1 -2
 * ```
 */
export const floor = unary<NumberName>(
  'floor',
  'numbers',
  ofFloatsAndIntegers((x: number): number => Math.floor(x), itself),
);
/**
 * The smallest whole number that is not below x; an integer stays.
 *
 * @example
 * ```ts
 * using y = await ceil(device.tensor(f32, [1.5, -1.25]));
 * console.log((await y.read()).join(' ')); // 2 -1
 * ```
 */
export const ceil = unary<NumberName>(
  'ceil',
  'numbers',
  ofFloatsAndIntegers((x: number): number => Math.ceil(x), itself),
);
/**
 * x without its fraction; an integer stays.
 *
 * @example
 * ```ts
 * using y = await trunc(device.tensor(f32, [1.5, -1.5]));
 * console.log((await y.read()).join(' ')); // 1 -1
 * ```
 */
export const trunc = unary<NumberName>(
  'trunc',
  'numbers',
  ofFloatsAndIntegers((x: number): number => Math.trunc(x), itself),
);
/**
 * The nearest whole number, and of two that are equally near the even one; an integer stays.
 *
 * @example
 * ```ts
 * using y = await round(device.tensor(f32, [0.5, 1.5, 2.4, -1.5]));
 * console.log((await y.read()).join(' ')); // 0 2 2 -2
 * ```
 */
export const round = unary<NumberName>(
  'round',
  'numbers',
  ofFloatsAndIntegers((x: number, gpu: Gpu): number => gpu.rint(x), itself),
);
/**
 * 1 / (1 + exp(-x)).
 *
 * @example
 * ```ts
 * using y = await sigmoid(device.tensor(f32, [0, 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.500 0.881
 * ```
 */
export const sigmoid = unary<FloatName>(
  'sigmoid',
  'floats',
  (x: number): number => 1 / (1 + Math.exp(-x)),
);
/**
 * max(x, 0); NaN stays.
 *
 * @example
 * ```ts
 * using y = await relu(device.tensor(f32, [-1.5, 0, 2]));
 * console.log((await y.read()).join(' ')); // 0 0 2
 * ```
 */
export const relu = unary<NumberName>('relu', 'numbers', ACTIVATIONS.relu);
/**
 * x · sigmoid(x), as x / (1 + exp(-x)).
 *
 * @example
 * ```ts
 * using y = await silu(device.tensor(f32, [0, 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.762
 * ```
 */
export const silu = unary<FloatName>('silu', 'floats', ACTIVATIONS.silu);
/**
 * x / 2 · (1 + erf(x / sqrt(2))): the exact form.
 *
 * @example
 * ```ts
 * using y = await gelu(device.tensor(f32, [0, 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.954
 * ```
 */
export const gelu = unary<FloatName>('gelu', 'floats', ACTIVATIONS.gelu);
/**
 * GELU by its approximation with tanh: x / 2 · (1 + tanh(sqrt(2 / π) · (x + 0.044715 · x³))).
 *
 * @example
 * ```ts
 * using y = await geluTanh(device.tensor(f32, [0, 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.955
 * ```
 */
export const geluTanh = unary<FloatName>('gelu_tanh', 'floats', ACTIVATIONS.geluTanh);
/**
 * log(1 + exp(x)), without overflow.
 *
 * @example
 * ```ts
 * using y = await softplus(device.tensor(f32, [0, 100]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.693 100.000
 * ```
 */
export const softplus = unary<FloatName>(
  'softplus',
  'floats',
  (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
);
/**
 * x as it is, in a new tensor.
 *
 * @example
 * ```ts
 * using y = await positive(device.tensor(i32, [-1, 2]));
 * console.log((await y.read()).join(' ')); // -1 2
 * ```
 */
export const positive = unary<NumberName>('positive', 'numbers', (x: number): number => x);
