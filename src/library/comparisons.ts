/** Comparisons, truth values and bits of two numbers, for each element of tensors. */
import { bool } from '../core/index.js';
import { binary } from './binary-function.js';
import type { KernelDTypeName } from '../core/index.js';
import type { IntegerName, NumberName } from './element-types.js';
import { unary } from './unary-function.js';
import { ByDType } from './elementwise.js';
import type { Usable } from '../kernels/index.js';

/**
 * Whether x equals y.
 *
 * @example
 * ```ts
 * using y = await equal(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 0 1 0
 * ```
 */
export const equal = binary<KernelDTypeName, 'bool'>(
  'equal',
  'any',
  (x: number, y: number): boolean => x === y,
  bool,
);

/**
 * Whether x differs from y. NaN differs from every number and from NaN.
 *
 * @example
 * ```ts
 * using y = await notEqual(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 1 0 1
 * ```
 */
export const notEqual = binary<KernelDTypeName, 'bool'>(
  'not_equal',
  'any',
  (x: number, y: number): boolean => x !== y,
  bool,
);

/**
 * Whether x < y.
 *
 * @example
 * ```ts
 * using y = await less(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 1 0 0
 * ```
 */
export const less = binary<NumberName, 'bool'>(
  'less',
  'numbers',
  (x: number, y: number): boolean => x < y,
  bool,
);

/**
 * Whether x <= y.
 *
 * @example
 * ```ts
 * using y = await lessEqual(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 1 1 0
 * ```
 */
export const lessEqual = binary<NumberName, 'bool'>(
  'less_equal',
  'numbers',
  (x: number, y: number): boolean => x <= y,
  bool,
);

/**
 * Whether x > y.
 *
 * @example
 * ```ts
 * using y = await greater(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 0 0 1
 * ```
 */
export const greater = binary<NumberName, 'bool'>(
  'greater',
  'numbers',
  (x: number, y: number): boolean => x > y,
  bool,
);

/**
 * Whether x >= y.
 *
 * @example
 * ```ts
 * using y = await greaterEqual(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 0 1 1
 * ```
 */
export const greaterEqual = binary<NumberName, 'bool'>(
  'greater_equal',
  'numbers',
  (x: number, y: number): boolean => x >= y,
  bool,
);

/**
 * Whether both are true.
 *
 * @example
 * ```ts
 * using a = await device.tensor(bool, [true, true, false]);
 * using b = await device.tensor(bool, [true, false, false]);
 * using y = await logicalAnd(a, b);
 * console.log((await y.read()).join(' ')); // 1 0 0
 * ```
 */
export const logicalAnd = binary<'bool'>(
  'logical_and',
  'bool',
  (x: boolean, y: boolean): boolean => x && y,
);

/**
 * Whether at least one is true.
 *
 * @example
 * ```ts
 * using a = await device.tensor(bool, [true, true, false]);
 * using b = await device.tensor(bool, [true, false, false]);
 * using y = await logicalOr(a, b);
 * console.log((await y.read()).join(' ')); // 1 1 0
 * ```
 */
export const logicalOr = binary<'bool'>(
  'logical_or',
  'bool',
  (x: boolean, y: boolean): boolean => x || y,
);

/**
 * Whether exactly one is true.
 *
 * @example
 * ```ts
 * using a = await device.tensor(bool, [true, true, false]);
 * using b = await device.tensor(bool, [true, false, false]);
 * using y = await logicalXor(a, b);
 * console.log((await y.read()).join(' ')); // 0 1 0
 * ```
 */
export const logicalXor = binary<'bool'>(
  'logical_xor',
  'bool',
  (x: boolean, y: boolean): boolean => x !== y,
);

/**
 * Whether x is false.
 *
 * @example
 * ```ts
 * using y = await logicalNot(device.tensor(bool, [true, false]));
 * console.log((await y.read()).join(' ')); // 0 1
 * ```
 */
export const logicalNot = unary<'bool'>('logical_not', 'bool', (x: boolean): boolean => !x);

/** Integers, whose bits are combined, and bool, which is one bit. */
export type BitsName = IntegerName | 'bool';

/** Shifts by the number of bits or more have no instruction, whose count is taken modulo it. */
function byWidth(narrow: Usable, wide: Usable): ByDType {
  return new ByDType(({ bytes }) =>
    bytes === 8 ? { key: 'wide', f: wide } : { key: 'narrow', f: narrow },
  );
}

function ofBits(
  whole: (x: number, y: number) => number,
  truth: (x: boolean, y: boolean) => boolean,
): ByDType {
  return new ByDType(({ kind }) =>
    kind === 'bool' ? { key: 'bool', f: truth } : { key: 'whole', f: whole },
  );
}

/**
 * x & y: of the bits of integers, and of bool.
 *
 * @example
 * ```ts
 * using y = await bitwiseAnd(device.tensor(u8, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 0 2 2
 * ```
 */
export const bitwiseAnd = binary<BitsName>(
  'bitwise_and',
  'bits',
  ofBits(
    (x: number, y: number): number => x & y,
    (x: boolean, y: boolean): boolean => x && y,
  ),
);

/**
 * x | y: of the bits of integers, and of bool.
 *
 * @example
 * ```ts
 * using y = await bitwiseOr(device.tensor(u8, [1, 2, 3]), 4);
 * console.log((await y.read()).join(' ')); // 5 6 7
 * ```
 */
export const bitwiseOr = binary<BitsName>(
  'bitwise_or',
  'bits',
  ofBits(
    (x: number, y: number): number => x | y,
    (x: boolean, y: boolean): boolean => x || y,
  ),
);

/**
 * x ^ y: of the bits of integers, and of bool.
 *
 * @example
 * ```ts
 * using y = await bitwiseXor(device.tensor(u8, [1, 2, 3]), 1);
 * console.log((await y.read()).join(' ')); // 0 3 2
 * ```
 */
export const bitwiseXor = binary<BitsName>(
  'bitwise_xor',
  'bits',
  ofBits(
    (x: number, y: number): number => x ^ y,
    (x: boolean, y: boolean): boolean => x !== y,
  ),
);

/**
 * The complement: each bit of an integer inverted, and the other truth value of a bool.
 *
 * @example
 * ```ts
 * using y = await bitwiseNot(device.tensor(u8, [0, 1, 255]));
 * console.log((await y.read()).join(' ')); // 255 254 0
 * ```
 */
export const bitwiseNot = unary<BitsName>(
  'bitwise_not',
  'bits',
  new ByDType(({ kind }) =>
    kind === 'bool'
      ? { key: 'bool', f: (x: boolean): boolean => !x }
      : { key: 'whole', f: (x: number): number => ~x },
  ),
);

/**
 * The bits of x moved left by y places, with zeros behind them. By as many places as the dtype has
 * bits, by more, and by a negative number of places it gives 0.
 *
 * @example
 * ```ts
 * using y = await bitwiseLeftShift(device.tensor(i32, [1, 3]), 4);
 * console.log((await y.read()).join(' ')); // 16 48
 * ```
 */
export const bitwiseLeftShift = binary<IntegerName>(
  'bitwise_left_shift',
  'integers',
  byWidth(
    (x: number, y: number): number => (y >= 0 && y < 32 ? x << y : 0),
    (x: number, y: number): number => (y >= 0 && y < 64 ? x << y : 0),
  ),
);

/**
 * The bits of x moved right by y places. Copies of the sign follow, so that the result is x / 2^y
 * rounded down. By as many places as the dtype has bits, by more, and by a negative number of
 * places it gives -1 for a negative x, and 0 for others.
 *
 * @example
 * ```ts
 * using y = await bitwiseRightShift(device.tensor(i32, [16, -3]), 1);
 * console.log((await y.read()).join(' ')); // 8 -2
 * ```
 */
export const bitwiseRightShift = binary<IntegerName>(
  'bitwise_right_shift',
  'integers',
  byWidth(
    (x: number, y: number): number =>
      (x >> (y >= 0 && y < 32 ? y : 31)) >> (y >= 0 && y < 32 ? 0 : 1),
    (x: number, y: number): number =>
      (x >> (y >= 0 && y < 64 ? y : 63)) >> (y >= 0 && y < 64 ? 0 : 1),
  ),
);
