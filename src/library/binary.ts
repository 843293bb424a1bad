/** Functions of two numbers, and where() of three, for each element of tensors that broadcast. */
import { bool } from '../core/index.js';
import type { KernelDType, KernelDTypeName } from '../core/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Usable } from '../kernels/index.js';
import type { Broadcast, Known, Shape, Tensor } from '../tensor/index.js';
import { elementwise } from './elementwise.js';
import type { FloatName, Group, IntegerName, NumberName } from './element-types.js';
import { checkNoOptions } from './operation.js';

/** A number as an operand with a tensor of dtype `D`: a boolean for bool, else a number. */
export type Beside<D extends KernelDTypeName> = D extends 'bool'
  ? boolean
  : D extends 'i64' | 'u64'
    ? number | bigint
    : number;

/**
 * A function of two operands, element by element. It gives a new contiguous tensor of the shape
 * that both broadcast to, by NumPy's rules. Operands are any views, or operations that give them,
 * and one of them may be a number.
 *
 * Both tensors have the same dtype; there are no implicit conversions. f16, bf16 and f8 are
 * computed in f32, which is also the type of a number with them, and rounded once to nearest even.
 * Integers wrap.
 *
 * @throws CudaArgumentError for a dtype that the function does not take, dtypes that differ, shapes
 *   that do not broadcast, a number that the dtype does not have; at the call, or when run where
 *   operations give the operands
 */
export interface Binary<N extends KernelDTypeName, R extends KernelDTypeName | 'same' = 'same'> {
  <D extends N, S extends Shape, T extends Shape>(
    x: OrOp<Tensor<D, S>>,
    y: OrOp<Tensor<NoInfer<D>, T>>,
  ): DeviceOp<Tensor<Result<D, R>, Known<Broadcast<S, T>>>>;
  <D extends N, S extends Shape>(
    x: OrOp<Tensor<D, S>>,
    y: Beside<D>,
  ): DeviceOp<Tensor<Result<D, R>, S>>;
  <D extends N, S extends Shape>(
    x: Beside<D>,
    y: OrOp<Tensor<D, S>>,
  ): DeviceOp<Tensor<Result<D, R>, S>>;
}

type Result<D extends KernelDTypeName, R> = R extends KernelDTypeName ? R : D;

function binary<N extends KernelDTypeName, R extends KernelDTypeName | 'same' = 'same'>(
  name: string,
  group: Group,
  f: Usable,
  gives?: KernelDType,
): Binary<N, R> {
  return ((x: unknown, y: unknown, more: unknown, further: unknown) => {
    checkNoOptions(name, more, further);
    return elementwise({ name, group, f, ...(gives === undefined ? {} : { gives }) }, [x, y]);
  }) as Binary<N, R>;
}

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
 * The remainder of x / y, with the sign of x.
 *
 * @example
 * ```ts
 * using y = await rem(device.tensor(i32, [7, -7]), 4);
 * console.log((await y.read()).join(' ')); // 3 -3
 * ```
 */
export const rem = binary<NumberName>('rem', 'numbers', (x: number, y: number): number => x % y);
/**
 * x to the power of y, with IEEE 754's special cases: 1 to any power, also NaN, is 1, and so is -1
 * to an infinite power. JavaScript has NaN there.
 *
 * @example
 * ```ts
 * using y = await pow(device.tensor(f32, [1, 2, 3]), 2);
 * console.log(Array.from(await y.read(), (value) => value.toFixed(1)).join(' ')); // 1.0 4.0 9.0
 * ```
 */
export const pow = binary<FloatName>('pow', 'floats', (x: number, y: number): number => x ** y);
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

/**
 * Whether x equals y.
 *
 * @example
 * ```ts
 * using y = await equal(device.tensor(i32, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 0 1 0
 * ```
 */
export const equal = binary<NumberName, 'bool'>(
  'equal',
  'numbers',
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
export const notEqual = binary<NumberName, 'bool'>(
  'not_equal',
  'numbers',
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
 * x & y.
 *
 * @example
 * ```ts
 * using y = await bitwiseAnd(device.tensor(u8, [1, 2, 3]), 2);
 * console.log((await y.read()).join(' ')); // 0 2 2
 * ```
 */
export const bitwiseAnd = binary<IntegerName>(
  'bitwise_and',
  'integers',
  (x: number, y: number): number => x & y,
);
/**
 * x | y.
 *
 * @example
 * ```ts
 * using y = await bitwiseOr(device.tensor(u8, [1, 2, 3]), 4);
 * console.log((await y.read()).join(' ')); // 5 6 7
 * ```
 */
export const bitwiseOr = binary<IntegerName>(
  'bitwise_or',
  'integers',
  (x: number, y: number): number => x | y,
);
/**
 * x ^ y.
 *
 * @example
 * ```ts
 * using y = await bitwiseXor(device.tensor(u8, [1, 2, 3]), 1);
 * console.log((await y.read()).join(' ')); // 0 3 2
 * ```
 */
export const bitwiseXor = binary<IntegerName>(
  'bitwise_xor',
  'integers',
  (x: number, y: number): number => x ^ y,
);

type Wide<S extends Shape, T extends Shape> = Known<Broadcast<S, T>>;

/**
 * Selects x where the condition is true, else y, element by element of the shape that all operands
 * broadcast to. x and y are tensors of one dtype, and one of them may be a number.
 *
 * @param condition a tensor of bool
 * @throws CudaArgumentError as {@link Binary} does
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [-1, 2, -3]);
 * using y = await where(less(x, 0), 0, x);
 * console.log((await y.read()).join(' ')); // 0 2 0
 * ```
 */
export function where<D extends KernelDTypeName, C extends Shape, S extends Shape, T extends Shape>(
  condition: OrOp<Tensor<'bool', C>>,
  x: OrOp<Tensor<D, S>>,
  y: OrOp<Tensor<NoInfer<D>, T>>,
): DeviceOp<Tensor<D, Wide<C, Wide<S, T>>>>;
export function where<D extends KernelDTypeName, C extends Shape, S extends Shape>(
  condition: OrOp<Tensor<'bool', C>>,
  x: OrOp<Tensor<D, S>>,
  y: Beside<D>,
): DeviceOp<Tensor<D, Wide<C, S>>>;
export function where<D extends KernelDTypeName, C extends Shape, S extends Shape>(
  condition: OrOp<Tensor<'bool', C>>,
  x: Beside<D>,
  y: OrOp<Tensor<D, S>>,
): DeviceOp<Tensor<D, Wide<C, S>>>;
export function where(
  condition: unknown,
  x: unknown,
  y: unknown,
  more?: unknown,
  further?: unknown,
): unknown {
  checkNoOptions('where', more, further);
  return elementwise(choice, [condition, x, y]);
}

const choice = {
  name: 'where',
  group: 'any',
  f: (condition: boolean, x: number, y: number): number => (condition ? x : y),
  own: { 0: bool },
  names: ['condition', 'x', 'y'],
} as const;
