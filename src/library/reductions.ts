/** Sums, products, extremes and truth values along axes. */
import { CudaArgumentError, DTYPES, bool } from '../core/index.js';
import type { KernelDType, KernelDTypeName } from '../core/index.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { arithmeticOf, checkGroup } from './element-types.js';
import type { FloatName, Group, NumberName } from './element-types.js';
import { checkTensor, operation } from './operation.js';
import { asThreeAxes, reducedAxes } from './reduced-axes.js';
import type { AxisOptions } from './reduced-axes.js';
import { CASTS, addReduction } from './reduction-kernels.js';
import type { Accumulator, Reduction } from './reduction-kernels.js';

/**
 * The dtype of a sum or product: i64 for signed integers and bool, u64 for unsigned integers, and
 * the operand's for floats.
 */
export type SumName<D extends KernelDTypeName> = D extends FloatName
  ? D
  : D extends 'u8' | 'u16' | 'u32' | 'u64'
    ? 'u64'
    : 'i64';

/**
 * A reduction of all elements, or along the axes of the options. It gives a new contiguous tensor
 * without those axes (with `keepDims`: with one element along each). The operand is any view, or an
 * operation that gives one.
 *
 * The order in which elements are combined follows from shape and strides alone, so that results
 * have the same bits in each run and on each device. f16, bf16 and f8 are summed in f32 and rounded
 * once at the end.
 *
 * @throws CudaArgumentError for another dtype, and axes that the operand does not have; at the
 *   call, or when run where an operation gives the operand
 */
export interface Reducing<N extends KernelDTypeName, R extends KernelDTypeName | 'same' | 'sum'> {
  <D extends N>(x: OrOp<Tensor<D>>): DeviceOp<Tensor<ReducedTo<D, R>, []>>;
  <D extends N>(
    x: OrOp<Tensor<D>>,
    options: AxisOptions,
  ): DeviceOp<Tensor<ReducedTo<D, R>, number[]>>;
}

type ReducedTo<D extends KernelDTypeName, R> = R extends 'same'
  ? D
  : R extends 'sum'
    ? SumName<D>
    : R extends KernelDTypeName
      ? R
      : never;

interface Declared {
  readonly name: string;
  readonly group: Group;
  /** Whether the reduction of no elements has a value. */
  readonly ofNone: boolean;
  readonly gives: (dtype: KernelDType) => KernelDType;
  readonly how: (dtype: KernelDType) => Reduction;
}

function reducing<N extends KernelDTypeName, R extends KernelDTypeName | 'same' | 'sum'>({
  name,
  group,
  ofNone,
  gives,
  how,
}: Declared): Reducing<N, R> {
  return ((x: unknown, options?: AxisOptions) =>
    operation(name, [x], ([given]) => {
      checkTensor(name, 'x', given);
      checkGroup(name, 'x', given, group);
      const axes = reducedAxes(name, given, options);
      if (!ofNone && axes.count === 0 && axes.shape.every((extent) => extent > 0)) {
        throw new CudaArgumentError(
          'x',
          `x: ${name}(…) of no elements has no value, got ${given.toString()}.`,
        );
      }
      return (work) => {
        const out = work.result(gives(given.dtype), axes.shape) as unknown as KernelTensor;
        if (out.size > 0) addReduction(work, how(given.dtype), asThreeAxes(work, given, axes), out);
        return out;
      };
    })) as Reducing<N, R>;
}

const SUMS: Readonly<Record<KernelDType['kind'], Accumulator | undefined>> = {
  bool: 'i64',
  signed: 'i64',
  unsigned: 'u64',
  float: undefined,
  complex: undefined,
};

/** The type in which sums of a dtype are accumulated. @internal */
export function sumAccumulator(dtype: KernelDType): Accumulator {
  return SUMS[dtype.kind] ?? (dtype.name === 'f64' ? 'f64' : 'f32');
}

/** The dtype of sums. @internal */
export function sumOf(dtype: KernelDType): KernelDType {
  return dtype.kind === 'float' ? dtype : DTYPES[sumAccumulator(dtype)];
}

const same = (dtype: KernelDType): KernelDType => dtype;
const plus = (a: number, b: number): number => a + b;

/**
 * The sum; 0 for no elements. Integers are summed as i64 or u64, which is the result's dtype. The
 * sum of a bool is the number of true elements.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
 * using rows = await sum(x, { axis: 1 });
 * using whole = await sum(x);
 * console.log((await rows.read()).join(' '), await whole.item()); // 3 7 10
 * ```
 */
export const sum = reducing<KernelDTypeName, 'sum'>({
  name: 'sum',
  group: 'any',
  ofNone: true,
  gives: sumOf,
  how: (dtype) => ({ name: 'sum', accumulator: sumAccumulator(dtype), start: 0, combine: plus }),
});

/**
 * The product; 1 for no elements. The result's dtype is that of {@link sum}.
 *
 * @example
 * ```ts
 * using y = await prod(device.tensor(f32, [1, 2, 3, 4]));
 * console.log(await y.item()); // 24
 * ```
 */
export const prod = reducing<NumberName, 'sum'>({
  name: 'prod',
  group: 'numbers',
  ofNone: true,
  gives: sumOf,
  how: (dtype) => ({
    name: 'prod',
    accumulator: sumAccumulator(dtype),
    start: 1,
    combine: (a: number, b: number): number => a * b,
  }),
});

/**
 * The mean of floats: the sum divided by the number of elements, in f32 or f64. It is NaN for no
 * elements.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 5, 3, 2], [2, 2]);
 * using columns = await mean(x, { axis: 0 });
 * console.log((await columns.read()).join(' ')); // 2 3.5
 * ```
 */
export const mean = reducing<FloatName, 'same'>({
  name: 'mean',
  group: 'floats',
  ofNone: true,
  gives: same,
  how: (dtype) => {
    const accumulator = sumAccumulator(dtype);
    return { name: 'mean', accumulator, start: 0, combine: plus, finish: quotient(accumulator) };
  },
});

function quotient(accumulator: Accumulator): Usable {
  const uses = { cast: CASTS[accumulator] };
  return deviceFunction(
    (value: number, count: number, gpu: GpuWith<typeof uses>) => value / gpu.cast(count),
    { uses },
  ) as DeviceFunction;
}

/** The least and the greatest number of each accumulator; -1 is cast to the greatest unsigned. */
const LEAST: Readonly<Record<Accumulator, number | bigint>> = {
  f32: -Infinity,
  f64: -Infinity,
  i32: -(2 ** 31),
  u32: 0,
  i64: -(2n ** 63n),
  u64: 0,
};
const MOST: Readonly<Record<Accumulator, number | bigint>> = {
  f32: Infinity,
  f64: Infinity,
  i32: 2 ** 31 - 1,
  u32: -1,
  i64: 2n ** 63n - 1n,
  u64: -1,
};

/**
 * The least element, in the operand's dtype; NaN where one element is NaN.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 5, 3, 2], [2, 2]);
 * using rows = await min(x, { axis: 1, keepDims: true });
 * console.log(rows.shape, (await rows.read()).join(' ')); // [ 2, 1 ] 1 2
 * ```
 */
export const min = reducing<NumberName, 'same'>({
  name: 'min',
  group: 'numbers',
  ofNone: false,
  gives: same,
  how: (dtype) => ({
    name: 'min',
    accumulator: arithmeticOf(dtype) as Accumulator,
    start: MOST[arithmeticOf(dtype) as Accumulator],
    combine: (a: number, b: number): number => Math.min(a, b),
  }),
});

/**
 * The greatest element, in the operand's dtype; NaN where one element is NaN.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 5, 3, 2], [2, 2]);
 * using rows = await max(x, { axis: 1 });
 * console.log((await rows.read()).join(' ')); // 5 3
 * ```
 */
export const max = reducing<NumberName, 'same'>({
  name: 'max',
  group: 'numbers',
  ofNone: false,
  gives: same,
  how: (dtype) => ({
    name: 'max',
    accumulator: arithmeticOf(dtype) as Accumulator,
    start: LEAST[arithmeticOf(dtype) as Accumulator],
    combine: (a: number, b: number): number => Math.max(a, b),
  }),
});

const toBool = (): KernelDType => bool;
const truth = (value: number): number => (value !== 0 ? 1 : 0);
const whether = (value: number, _count: number): boolean => value !== 0;

/**
 * Whether any element is true, or not 0; false for no elements.
 *
 * @example
 * ```ts
 * using x = await device.tensor(i32, [0, 0, 0, 1], [2, 2]);
 * using rows = await any(x, { axis: 1 });
 * console.log((await rows.read()).join(' ')); // 0 1
 * ```
 */
export const any = reducing<KernelDTypeName, 'bool'>({
  name: 'any',
  group: 'any',
  ofNone: true,
  gives: toBool,
  how: () => ({
    name: 'any',
    accumulator: 'i32',
    start: 0,
    load: truth,
    combine: (a: number, b: number): number => a | b,
    finish: whether,
  }),
});

/**
 * Whether all elements are true, or not 0; true for no elements.
 *
 * @example
 * ```ts
 * using x = await device.tensor(i32, [1, 0, 1, 1], [2, 2]);
 * using rows = await all(x, { axis: 1 });
 * console.log((await rows.read()).join(' ')); // 0 1
 * ```
 */
export const all = reducing<KernelDTypeName, 'bool'>({
  name: 'all',
  group: 'any',
  ofNone: true,
  gives: toBool,
  how: () => ({
    name: 'all',
    accumulator: 'i32',
    start: 1,
    load: truth,
    combine: (a: number, b: number): number => a & b,
    finish: whether,
  }),
});
