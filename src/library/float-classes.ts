/** Which numbers are NaN, infinite, finite or negative. */
import { bool } from '../core/index.js';
import type { FloatName, NumberName } from './element-types.js';
import type { Gpu } from './kernel-family.js';
import { ofFloatsAndIntegers, unaryTo } from './unary-function.js';

/**
 * Whether x is not a number; false for integers.
 *
 * @example
 * ```ts
 * using y = await isnan(device.tensor(f32, [1, NaN, Infinity]));
 * console.log((await y.read()).join(' ')); // 0 1 0
 * ```
 */
export const isnan = unaryTo<NumberName, 'bool'>(
  bool,
  'isnan',
  'numbers',
  ofFloatsAndIntegers(
    // NaN is in no order with any number.
    (x: number): boolean => !(x <= Infinity),
    (_x: number): boolean => false,
  ),
);
/**
 * Whether x is an infinity of either sign; false for integers.
 *
 * @example
 * ```ts
 * using y = await isinf(device.tensor(f32, [1, NaN, -Infinity]));
 * console.log((await y.read()).join(' ')); // 0 0 1
 * ```
 */
export const isinf = unaryTo<NumberName, 'bool'>(
  bool,
  'isinf',
  'numbers',
  ofFloatsAndIntegers(
    (x: number): boolean => Math.abs(x) === Infinity,
    (_x: number): boolean => false,
  ),
);
/**
 * Whether x is a finite number: neither NaN nor an infinity; true for integers.
 *
 * @example
 * ```ts
 * using y = await isfinite(device.tensor(f32, [1, NaN, Infinity]));
 * console.log((await y.read()).join(' ')); // 1 0 0
 * ```
 */
export const isfinite = unaryTo<NumberName, 'bool'>(
  bool,
  'isfinite',
  'numbers',
  ofFloatsAndIntegers(
    (x: number): boolean => Math.abs(x) < Infinity,
    (_x: number): boolean => true,
  ),
);
/**
 * Whether the sign bit of x is set: true for -0, too.
 *
 * @example
 * ```ts
 * using y = await signbit(device.tensor(f32, [1, -0, -2]));
 * console.log((await y.read()).join(' ')); // 0 1 1
 * ```
 */
export const signbit = unaryTo<FloatName, 'bool'>(
  bool,
  'signbit',
  'floats',
  (x: number, gpu: Gpu): boolean => gpu.copysign(1, x) < 0,
);
