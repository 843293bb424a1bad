/** Arithmetic of two numbers for each element of tensors that broadcast. */
import { binary } from './binary-function.js';
import type { FloatName, NumberName } from './element-types.js';
import type { Gpu } from './kernel-family.js';
import { ofFloatsAndIntegers } from './unary-function.js';

// Beyond an infinite y the remainder that C gives is x itself: it is y where the signs differ.
const remainderOfFloats = (x: number, y: number, gpu: Gpu): number => {
  const left = x % y;
  if (left === 0) return gpu.copysign(left, y);
  return left < 0 === y < 0 ? left : left + y;
};

const remainderOfIntegers = (x: number, y: number): number => {
  if (y === 0) return 0;
  const left = x % y;
  return left !== 0 && left < 0 !== y < 0 ? left + y : left;
};

// As Python computes it: what is left without the remainder is a multiple of y but for rounding.
const floorOfFloats = (x: number, y: number, gpu: Gpu): number => {
  const left = x % y;
  // NaN, an infinite x, or y = 0: the quotient has IEEE's special case.
  if (!(Math.abs(left) < Infinity)) return x / y;
  if (Math.abs(y) === Infinity) return x === 0 || x < 0 === y < 0 ? gpu.copysign(0, x / y) : -1;
  const differs = left !== 0 && left < 0 !== y < 0;
  const quotient = (x - left) / y - (differs ? 1 : 0);
  if (quotient === 0) return gpu.copysign(0, x / y);
  return gpu.rint(quotient);
};

const floorOfIntegers = (x: number, y: number): number => {
  if (y === 0) return 0;
  const quotient = x / y;
  return quotient * y !== x && x < 0 !== y < 0 ? quotient - 1 : quotient;
};

const powerOfIntegers = (x: number, y: number): number => {
  if (y < 0) return x === 1 ? 1 : x + 1 === 0 ? ((y & 1) === 0 ? 1 : x) : 0;
  let power = x * 0 + 1;
  let factor = x;
  for (let left = y; left !== 0; left >>= 1) {
    if ((left & 1) !== 0) power *= factor;
    factor *= factor;
  }
  return power;
};

/** Bits of floats of one sign are in the order of the magnitudes. */
const nextInDirection = (x: number, y: number, gpu: Gpu): number => {
  if (x === y) return y;
  // NaN is neither less nor greater.
  if (!(x < y || x > y)) return x + y;
  if (x === 0) return gpu.copysign(gpu.fromBits(gpu.bits(Math.abs(x)) + 1), y);
  return gpu.fromBits(x < y === x > 0 ? gpu.bits(x) + 1 : gpu.bits(x) - 1);
};

/**
 * x + y.
 *
 * @example
 * ```ts
 * using y = await add(device.tensor(f32, [1, 2, 3]), 10);
 * console.log((await y.read()).join(' ')); // 11 12 13
 * ```
 */
export const add = binary<NumberName>('add', 'numbers', (x: number, y: number): number => x + y);

/**
 * x - y.
 *
 * @example
 * ```ts
 * using y = await sub(device.tensor(f32, [1, 2, 3]), 1);
 * console.log((await y.read()).join(' ')); // 0 1 2
 * ```
 */
export const sub = binary<NumberName>('sub', 'numbers', (x: number, y: number): number => x - y);

/**
 * x · y.
 *
 * @example
 * ```ts
 * using y = await mul(device.tensor(f32, [1, 2, 3]), device.tensor(f32, [4, 5, 6]));
 * console.log((await y.read()).join(' ')); // 4 10 18
 * ```
 */
export const mul = binary<NumberName>('mul', 'numbers', (x: number, y: number): number => x * y);

/**
 * x / y: a float is rounded correctly, an integer towards 0. An integer divided by 0 gives an
 * undefined number, which depends on the device.
 *
 * @example
 * ```ts
 * using y = await div(device.tensor(i32, [7, -7]), 2);
 * console.log((await y.read()).join(' ')); // 3 -3
 * ```
 */
export const div = binary<NumberName>('div', 'numbers', (x: number, y: number): number => x / y);

/**
 * x / y rounded down to a whole number, as Python's `//`. An integer divided by 0 gives 0. A float
 * gives what remains of x without {@link remainder}, divided: it is the exact floor, where the
 * rounded quotient may be a whole number too great.
 *
 * @example
 * ```ts
 * using y = await floorDivide(device.tensor(i32, [7, -7]), 2);
 * console.log((await y.read()).join(' ')); // 3 -4
 * ```
 */
export const floorDivide = binary<NumberName>(
  'floor_divide',
  'numbers',
  ofFloatsAndIntegers(floorOfFloats, floorOfIntegers),
);

/**
 * The remainder of x / y, with the sign of x, as JavaScript's and C's %. An integer's remainder by
 * 0 is undefined, and depends on the device.
 *
 * @example
 * ```ts
 * using y = await rem(device.tensor(i32, [7, -7]), 4);
 * console.log((await y.read()).join(' ')); // 3 -3
 * ```
 */
export const rem = binary<NumberName>('rem', 'numbers', (x: number, y: number): number => x % y);

/**
 * The remainder of x / y with the sign of y, as Python's `%`: x - y · floor(x / y). An integer's
 * remainder by 0 is 0.
 *
 * @example
 * ```ts
 * using y = await remainder(device.tensor(i32, [7, -7]), 4);
 * console.log((await y.read()).join(' ')); // 3 1
 * ```
 */
export const remainder = binary<NumberName>(
  'remainder',
  'numbers',
  ofFloatsAndIntegers(remainderOfFloats, remainderOfIntegers),
);

/**
 * x to the power of y. Floats have IEEE 754's special cases: 1 to any power, also NaN, is 1, and so
 * is -1 to an infinite power. JavaScript has NaN there. Integers wrap; to a negative power 1 and -1
 * give 1 and -1, and all others 0.
 *
 * @example
 * ```ts
 * using y = await pow(device.tensor(f32, [1, 2, 3]), 2);
 * console.log(Array.from(await y.read(), (value) => value.toFixed(1)).join(' ')); // 1.0 4.0 9.0
 * ```
 */
export const pow = binary<NumberName>(
  'pow',
  'numbers',
  ofFloatsAndIntegers((x: number, y: number): number => x ** y, powerOfIntegers),
);

/**
 * The angle of a point in radians; the first operand is its y, the second its x.
 *
 * @example
 * ```ts
 * using y = await atan2(device.tensor(f32, [1, -1]), 1);
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.785 -0.785
 * ```
 */
export const atan2 = binary<FloatName>('atan2', 'floats', (x: number, y: number): number =>
  Math.atan2(x, y),
);

/**
 * The length of the vector of x and y: sqrt(x² + y²), without overflow on the way.
 *
 * @example
 * ```ts
 * using y = await hypot(device.tensor(f32, [3, 5]), device.tensor(f32, [4, 12]));
 * console.log((await y.read()).join(' ')); // 5 13
 * ```
 */
export const hypot = binary<FloatName>('hypot', 'floats', (x: number, y: number): number =>
  Math.hypot(x, y),
);

/**
 * log(exp(x) + exp(y)), without overflow on the way.
 *
 * @example
 * ```ts
 * using y = await logaddexp(device.tensor(f32, [0, 1000]), device.tensor(f32, [0, 1000]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // 0.693 1000.693
 * ```
 */
export const logaddexp = binary<FloatName>(
  'logaddexp',
  'floats',
  (x: number, y: number): number => {
    const greater = Math.max(x, y);
    // Two equal infinities have no difference.
    return x === y ? greater + Math.LN2 : greater + Math.log1p(Math.exp(-Math.abs(x - y)));
  },
);

/**
 * The magnitude of x with the sign of y.
 *
 * @example
 * ```ts
 * using y = await copysign(device.tensor(f32, [1, -2]), device.tensor(f32, [-0, 3]));
 * console.log((await y.read()).join(' ')); // -1 2
 * ```
 */
export const copysign = binary<FloatName>(
  'copysign',
  'floats',
  (x: number, y: number, gpu: Gpu): number => gpu.copysign(x, y),
);

/**
 * The number of the dtype, f32 or f64, that follows x in the direction of y; y where both are
 * equal.
 *
 * @example
 * ```ts
 * using y = await nextafter(device.tensor(f64, [1, 0]), 2);
 * console.log((await y.read()).join(' ')); // 1.0000000000000002 5e-324
 * ```
 */
export const nextafter = binary<'f32' | 'f64'>('nextafter', 'wide floats', nextInDirection);

/**
 * The smaller of both; NaN where one of them is NaN.
 *
 * @example
 * ```ts
 * using y = await minimum(device.tensor(f32, [1, 5]), device.tensor(f32, [3, 2]));
 * console.log((await y.read()).join(' ')); // 1 2
 * ```
 */
export const minimum = binary<NumberName>('minimum', 'numbers', (x: number, y: number): number =>
  Math.min(x, y),
);

/**
 * The larger of both; NaN where one of them is NaN.
 *
 * @example
 * ```ts
 * using y = await maximum(device.tensor(f32, [1, 5]), 3);
 * console.log((await y.read()).join(' ')); // 3 5
 * ```
 */
export const maximum = binary<NumberName>('maximum', 'numbers', (x: number, y: number): number =>
  Math.max(x, y),
);
