/** Trigonometric and hyperbolic functions of each element, and their inverses. */
import type { FloatName } from './element-types.js';
import { unary } from './unary-function.js';

/**
 * The sine of x in radians.
 *
 * @example
 * ```ts
 * using y = await sin(device.tensor(f32, [0, Math.PI / 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.000
 * ```
 */
export const sin = unary<FloatName>('sin', 'floats', (x: number): number => Math.sin(x));
/**
 * The cosine of x in radians.
 *
 * @example
 * ```ts
 * using y = await cos(device.tensor(f32, [0, Math.PI]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 1.000 -1.000
 * ```
 */
export const cos = unary<FloatName>('cos', 'floats', (x: number): number => Math.cos(x));
/**
 * The tangent of x in radians.
 *
 * @example
 * ```ts
 * using y = await tan(device.tensor(f32, [0, Math.PI / 4]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.000
 * ```
 */
export const tan = unary<FloatName>('tan', 'floats', (x: number): number => Math.tan(x));
/**
 * The angle from -π/2 to π/2 whose sine is x, in radians; NaN beyond -1 and 1.
 *
 * @example
 * ```ts
 * using y = await asin(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.571
 * ```
 */
export const asin = unary<FloatName>('asin', 'floats', (x: number): number => Math.asin(x));
/**
 * The angle from 0 to π whose cosine is x, in radians; NaN beyond -1 and 1.
 *
 * @example
 * ```ts
 * using y = await acos(device.tensor(f32, [1, 0]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.571
 * ```
 */
export const acos = unary<FloatName>('acos', 'floats', (x: number): number => Math.acos(x));
/**
 * The angle from -π/2 to π/2 whose tangent is x, in radians.
 *
 * @example
 * ```ts
 * using y = await atan(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 0.785
 * ```
 */
export const atan = unary<FloatName>('atan', 'floats', (x: number): number => Math.atan(x));
/**
 * The hyperbolic sine.
 *
 * @example
 * ```ts
 * using y = await sinh(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.175
 * ```
 */
export const sinh = unary<FloatName>('sinh', 'floats', (x: number): number => Math.sinh(x));
/**
 * The hyperbolic cosine.
 *
 * @example
 * ```ts
 * using y = await cosh(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 1.000 1.543
 * ```
 */
export const cosh = unary<FloatName>('cosh', 'floats', (x: number): number => Math.cosh(x));
/**
 * The hyperbolic tangent.
 *
 * @example
 * ```ts
 * using y = await tanh(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 0.762
 * ```
 */
export const tanh = unary<FloatName>('tanh', 'floats', (x: number): number => Math.tanh(x));
/**
 * The inverse of the hyperbolic sine.
 *
 * @example
 * ```ts
 * using y = await asinh(device.tensor(f32, [0, 1]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 0.881
 * ```
 */
export const asinh = unary<FloatName>('asinh', 'floats', (x: number): number => Math.asinh(x));
/**
 * The inverse of the hyperbolic cosine, from 0 on; NaN below 1.
 *
 * @example
 * ```ts
 * using y = await acosh(device.tensor(f32, [1, 2]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 1.317
 * ```
 */
export const acosh = unary<FloatName>('acosh', 'floats', (x: number): number => Math.acosh(x));
/**
 * The inverse of the hyperbolic tangent; infinite at -1 and 1, NaN beyond them.
 *
 * @example
 * ```ts
 * using y = await atanh(device.tensor(f32, [0, 0.5]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.000 0.549
 * ```
 */
export const atanh = unary<FloatName>('atanh', 'floats', (x: number): number => Math.atanh(x));
