/** Sorting along an axis: elements, their positions, and the first of them. */
import { i32 } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import { checkBoolean, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { Results } from '../tensor/results.js';
import type { Closing } from '../tensor/results.js';
import { checkAxis } from '../tensor/shape.js';
import { LONGEST_SHORT_ROW, addBlockSort } from './block-sort.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { addRadixSort } from './radix-sort.js';

/** Options of {@link sort} and {@link argSort}. */
export interface SortOptions {
  /** The axis; a negative one counts from the end. Default: -1. */
  readonly axis?: number;
  /** Whether the greatest comes first. Default: false. */
  readonly descending?: boolean;
}

/** Options of {@link topK}. */
export interface TopKOptions {
  /** The axis; a negative one counts from the end. Default: -1. */
  readonly axis?: number;
  /** Whether the greatest elements are selected, or the least. Default: true. */
  readonly largest?: boolean;
}

/** The selected elements in order, and their positions along the axis. */
export interface TopK<D extends KernelDTypeName> {
  readonly values: Tensor<D, number[]>;
  /** Positions along the axis, from 0 on. */
  readonly indices: Tensor<'i32', number[]>;
}

/** Elements of a part of a row, from which up to {@link MOST_SELECTED} are selected. */
const PART = LONGEST_SHORT_ROW;
const MOST_SELECTED = 256;

/** Rows along the axis: a contiguous view or copy with that axis last. */
function rowsAlong(work: Work, x: KernelTensor, axis: number): KernelTensor {
  return work.dense(axis === x.rank - 1 ? x : (x.transpose(axis, -1) as KernelTensor));
}

/** Memory for sorted rows, and a function that copies them to the result where it is another. */
function resultOf(
  work: Work,
  out: KernelTensor,
  axis: number,
): { readonly rows: KernelTensor; readonly finish: () => void } {
  if (axis === out.rank - 1) return { rows: out, finish: () => undefined };
  const turned = out.transpose(axis, -1) as KernelTensor;
  const rows = work.temporary(out.dtype, [...turned.shape]) as unknown as KernelTensor;
  return {
    rows,
    finish: () => {
      work.add(turned.copyFrom(rows));
    },
  };
}

function checkLength(name: string, x: KernelTensor, axis: number): void {
  if (x.shape[axis]! >= 2 ** 31 - 1)
    throw invalid('x', `fewer than 2^31 - 1 elements along the axis, for ${name}(…)`, x);
}

function sorting(name: 'sort' | 'argSort', given: unknown, options: SortOptions): unknown {
  checkOptions('options', options, ['axis', 'descending']);
  const { axis: wanted = -1, descending = false } = options;
  checkBoolean('options.descending', descending);
  return operation(name, [given], ([x]) => {
    checkTensor(name, 'x', x);
    const axis = checkAxis('options.axis', wanted, x.rank);
    checkLength(name, x, axis);
    const values = name === 'sort';
    return (work) => {
      const out = work.result(values ? x.dtype : i32, [...x.shape]) as unknown as KernelTensor;
      if (out.size === 0) return out;
      const from = rowsAlong(work, x, axis);
      const { rows: to, finish } = resultOf(work, out, axis);
      const count = x.shape[axis]!;
      const rows = x.size / count;
      const [elements, positions] = values ? [to, undefined] : [undefined, to];
      if (count > LONGEST_SHORT_ROW)
        addRadixSort(work, from, rows, count, descending, elements, positions);
      else {
        addBlockSort(work, from, {
          rows,
          count,
          sorted: count,
          part: count,
          keep: count,
          descending,
          ...(elements === undefined ? {} : { out: elements }),
          ...(positions === undefined ? {} : { positions }),
        });
      }
      finish();
      return out;
    };
  });
}

/**
 * Sorts the elements along an axis. It gives a new contiguous tensor. The sort is stable: equal
 * elements, also -0 and +0, keep their order. NaN comes last in either direction, and false before
 * true. Rows of up to 2048 elements are sorted in shared memory, longer ones by digits of 8 bits.
 *
 * @throws CudaArgumentError for an axis that x does not have; at the call, or when run where an
 *   operation gives the operand
 *
 * @example
 * ```ts
 * using y = await sort(device.tensor(f32, [3, 1, 2]), { descending: true });
 * console.log((await y.read()).join(' ')); // 3 2 1
 * ```
 */
export function sort<D extends KernelDTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  options: SortOptions = {},
): DeviceOp<Tensor<D, S>> {
  return sorting('sort', x, options) as never;
}

/**
 * Gives the positions of the elements in the order of {@link sort}: i32 along the axis, from 0 on,
 * with equal elements in their order. For a tensor with one axis `gather(x, positions)` is sorted.
 *
 * @throws CudaArgumentError as {@link sort} does
 *
 * @example
 * ```ts
 * using y = await argSort(device.tensor(f32, [3, 1, 2]));
 * console.log((await y.read()).join(' ')); // 1 2 0
 * ```
 */
export function argSort<D extends KernelDTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  options: SortOptions = {},
): DeviceOp<Tensor<'i32', S>> {
  return sorting('argSort', x, options) as never;
}

/**
 * Selects the greatest `k` elements along an axis, or the least. It gives the elements in order and
 * their positions, as new contiguous tensors with `k` elements along the axis, which the caller
 * closes. Equal elements are selected, and ordered, by their positions; NaN is selected last.
 *
 * @throws CudaArgumentError for more elements than the axis has, and an axis that x does not have;
 *   at the call, or when run where an operation gives the operand
 *
 * @example
 * ```ts
 * using top = await topK(device.tensor(f32, [1, 7, 3, 5]), 2);
 * console.log((await top.values.read()).join(' ')); // 7 5
 * console.log((await top.indices.read()).join(' ')); // 1 3
 * ```
 */
export function topK<D extends KernelDTypeName>(
  x: OrOp<Tensor<D>>,
  k: number,
  options: TopKOptions = {},
): DeviceOp<TopK<D> & Closing> {
  checkInteger('k', k, 0, 2 ** 31 - 2, 'elements');
  checkOptions('options', options, ['axis', 'largest']);
  const { axis: wanted = -1, largest = true } = options;
  checkBoolean('options.largest', largest);
  return operation('topK', [x], ([given]) => {
    checkTensor('topK', 'x', given);
    const axis = checkAxis('options.axis', wanted, given.rank);
    checkLength('topK', given, axis);
    const count = given.shape[axis]!;
    if (k > count)
      throw invalid('k', `at most ${count}, the elements along axis ${axis}, for topK(…)`, k);
    return (work) => {
      const shape = given.shape.map((extent, each) => (each === axis ? k : extent));
      const values = work.result(given.dtype, shape) as unknown as KernelTensor;
      const indices = work.result(i32, shape) as unknown as KernelTensor;
      const result = new Results(['values', 'indices'], [values, indices]);
      if (values.size > 0)
        addTopK(
          work,
          rowsAlong(work, given, axis),
          k,
          largest,
          resultOf(work, values, axis),
          resultOf(work, indices, axis),
        );
      return result;
    };
  }) as never;
}

function addTopK(
  work: Work,
  x: KernelTensor,
  k: number,
  descending: boolean,
  values: ReturnType<typeof resultOf>,
  indices: ReturnType<typeof resultOf>,
): void {
  const count = x.shape.at(-1)!;
  const rows = x.size / count;
  let sorted = count;
  let from: KernelTensor | undefined;
  if (count > PART && k > MOST_SELECTED) {
    from = work.temporary(i32, [rows, count]);
    addRadixSort(work, x, rows, count, descending, undefined, from);
    const first = work.temporary(i32, [rows, k]) as unknown as KernelTensor;
    work.add(first.copyFrom(from.slice(null, [0, k] as never)));
    from = first;
    sorted = k;
  }
  // The first k of each part are selected, until one part is left.
  while (sorted > PART && k <= MOST_SELECTED) {
    const parts = Math.ceil(sorted / PART);
    const left = (parts - 1) * k + Math.min(k, sorted - (parts - 1) * PART);
    const positions = work.temporary(i32, [rows, left]) as unknown as KernelTensor;
    addBlockSort(work, x, {
      rows,
      count,
      sorted,
      part: PART,
      keep: k,
      descending,
      positions,
      ...(from === undefined ? {} : { from }),
    });
    [from, sorted] = [positions, left];
  }
  // Without a selection left to do, parts are in order.
  const part = Math.min(sorted, PART);
  addBlockSort(work, x, {
    rows,
    count,
    sorted,
    part,
    keep: Math.min(k, part),
    descending,
    out: values.rows,
    positions: indices.rows,
    ...(from === undefined ? {} : { from }),
  });
  values.finish();
  indices.finish();
}
