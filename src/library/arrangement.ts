/**
 * Elements in another place: tensors joined, cut, turned and repeated. The result is a contiguous
 * copy of parts of the operands, which views select, so that no function here has a kernel.
 */
import type { DTypeName } from '../core/index.js';
import { checkInteger, checkOptions, invalid, isList } from '../ground/arguments.js';
import type { PartnerOf, Promoted } from '../ground/promotion.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import { layoutOf } from '../tensor/layout.js';
import type { AnyTensor, Layout, Shape, Tensor } from '../tensor/index.js';
import { checkAxis, sameShape, showShape } from '../tensor/shape.js';
import { commonDType } from './common-dtype.js';
import { checkAnyTensor, checkNoOptions, operation } from './operation.js';
import type { Work } from './operation.js';
import { namedAxes } from './reduced-axes.js';

/** Options of {@link concat}, {@link stack} and {@link unstack}. */
export interface JoinOptions {
  /**
   * The axis along which tensors are joined or cut; a negative one counts from the end of the
   * result's axes (`unstack`: of the operand's). Default: 0.
   */
  readonly axis?: number;
}

/** Tensors, or operations that give them, whose dtypes have a common one. */
type Joined<D extends DTypeName, E extends DTypeName> = readonly [
  OrOp<Tensor<D>>,
  ...(readonly OrOp<Tensor<E>>[]),
];

/**
 * Joins tensors along an axis that they have. They have the same extents along all other axes, and
 * dtypes with a common one, which is the result's.
 *
 * @throws CudaArgumentError for no tensor, extents that differ, dtypes without a common one, an
 *   axis that they do not have; at the call, or when run where operations give the operands
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
 * using rows = await concat([x, x]);
 * using columns = await concat([x, x], { axis: 1 });
 * console.log(rows.shape, (await columns.read()).join(' ')); // [ 4, 2 ] 1 2 1 2 3 4 3 4
 * ```
 */
export function concat<D extends DTypeName, E extends DTypeName & PartnerOf<D>>(
  tensors: Joined<D, E>,
  options?: JoinOptions,
): DeviceOp<Tensor<Promoted<D, E>, number[]>>;
export function concat<D extends DTypeName>(
  tensors: readonly OrOp<Tensor<D>>[],
  options?: JoinOptions,
): DeviceOp<Tensor<D, number[]>>;
export function concat(tensors: unknown, options: JoinOptions = {}): unknown {
  checkOptions('options', options, ['axis']);
  const { axis = 0 } = options;
  return operation('concat', listOf('concat', tensors), (values) => {
    const given = checkedList('concat', values);
    const [first] = given;
    const at = checkAxis('options.axis', axis, first.rank);
    const shape = [...first.shape];
    given.slice(1).forEach((tensor, index) => {
      const isLike =
        tensor.rank === first.rank &&
        tensor.shape.every((extent, each) => each === at || extent === shape[each]);
      if (!isLike)
        throw invalid(
          `tensors[${index + 1}]`,
          `a Tensor of shape ${showShape(first.shape)} but for axis ${at}, for concat(…)`,
          tensor,
        );
      shape[at]! += tensor.shape[at]!;
    });
    const dtype = commonOf('concat', given);
    return (work) => {
      const out = work.result(dtype, shape);
      let start = 0;
      for (const tensor of given) {
        const end = start + tensor.shape[at]!;
        const part = shape.map((_, each) => (each === at ? ([start, end] as const) : null));
        copy(work, out.slice(...(part as never[])), tensor);
        start = end;
      }
      return out;
    };
  });
}

/**
 * Joins tensors of one shape along a new axis. Their dtypes have a common one, which is the
 * result's.
 *
 * @throws CudaArgumentError for no tensor, shapes that differ, dtypes without a common one, an axis
 *   that the result does not have
 *
 * @example
 * ```ts
 * using a = await device.tensor(f32, [1, 2]);
 * using b = await device.tensor(f32, [3, 4]);
 * using x = await stack([a, b]);
 * using columns = await stack([a, b], { axis: -1 });
 * console.log((await x.read()).join(' '), (await columns.read()).join(' ')); // 1 2 3 4 1 3 2 4
 * ```
 */
export function stack<D extends DTypeName, E extends DTypeName & PartnerOf<D>>(
  tensors: Joined<D, E>,
  options?: JoinOptions,
): DeviceOp<Tensor<Promoted<D, E>, number[]>>;
export function stack<D extends DTypeName>(
  tensors: readonly OrOp<Tensor<D>>[],
  options?: JoinOptions,
): DeviceOp<Tensor<D, number[]>>;
export function stack(tensors: unknown, options: JoinOptions = {}): unknown {
  checkOptions('options', options, ['axis']);
  const { axis = 0 } = options;
  return operation('stack', listOf('stack', tensors), (values) => {
    const given = checkedList('stack', values);
    const [first] = given;
    given.forEach((tensor, index) => {
      if (!sameShape(tensor.shape, first.shape))
        throw invalid(
          `tensors[${index}]`,
          `a Tensor of shape ${showShape(first.shape)}, as tensors[0] is, for stack(…)`,
          tensor,
        );
    });
    const at = checkAxis('options.axis', axis, first.rank + 1);
    const shape = [...first.shape.slice(0, at), given.length, ...first.shape.slice(at)];
    const dtype = commonOf('stack', given);
    return (work) => {
      const out = work.result(dtype, shape);
      given.forEach((tensor, index) => {
        copy(
          work,
          out.slice(...(shape.map((_, each) => (each === at ? index : null)) as never[])),
          tensor,
        );
      });
      return out;
    };
  });
}

/**
 * Cuts a tensor along an axis into its parts, each without that axis. It gives a list of new
 * tensors.
 *
 * @throws CudaArgumentError for a tensor without axes, and an axis that it does not have
 *
 * @example
 * ```ts
 * const rows = await unstack(device.tensor(f32, [1, 2, 3, 4], [2, 2]));
 * console.log((await rows[1]!.read()).join(' ')); // 3 4
 * for (const row of rows) row.close();
 * ```
 */
export function unstack<D extends DTypeName>(
  x: OrOp<Tensor<D>>,
  options: JoinOptions = {},
): DeviceOp<Tensor<D, number[]>[]> {
  checkOptions('options', options, ['axis']);
  const { axis = 0 } = options;
  return operation('unstack', [x], ([given]) => {
    checkAnyTensor('unstack', 'x', given);
    const at = checkAxis('options.axis', axis, given.rank);
    const shape = given.shape.filter((_, each) => each !== at);
    return (work) =>
      Array.from({ length: given.shape[at]! }, (_, index) => {
        const out = work.result(given.dtype, shape);
        const part = given.shape.map((_extent, each) => (each === at ? index : null));
        copy(work, out, given.slice(...(part as never[])));
        return out as unknown as Tensor<D, number[]>;
      });
  });
}

/** Options of {@link flip}. */
export interface FlipOptions {
  /** The axis, or the axes; negative ones count from the end. Default: all of them. */
  readonly axis?: number | readonly number[];
}

/**
 * The elements in reverse order along axes.
 *
 * @throws CudaArgumentError for an axis that the tensor does not have
 *
 * @example
 * ```ts
 * using y = await flip(device.tensor(i32, [1, 2, 3, 4], [2, 2]), { axis: 1 });
 * console.log((await y.read()).join(' ')); // 2 1 4 3
 * ```
 */
export function flip<D extends DTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  options: FlipOptions = {},
): DeviceOp<Tensor<D, S>> {
  checkOptions('options', options, ['axis']);
  const { axis } = options;
  return operation('flip', [x], ([given]) => {
    checkAnyTensor('flip', 'x', given);
    const axes = namedAxes('flip', 'options.axis', axis, given.rank);
    const { shape, strides, offset } = given.layout;
    const turned = layoutOf(
      shape,
      strides.map((stride, at) => (axes.includes(at) ? -stride : stride)),
      axes.reduce((sum, at) => sum + Math.max(0, shape[at]! - 1) * strides[at]!, offset),
    );
    return (work) => copied(work, given, turned) as unknown as Tensor<D, S>;
  });
}

/** Options of {@link roll}. */
export interface RollOptions {
  /**
   * The axis, or an axis for each shift; negative ones count from the end. Default: all elements in
   * row-major order.
   */
  readonly axis?: number | readonly number[];
}

/**
 * The elements moved along axes by `shift` places, to greater indices where it is positive. What
 * moves beyond the end comes in at the beginning.
 *
 * @param shift a whole number, or one for each axis of the options
 * @throws CudaArgumentError for an axis that the tensor does not have, and another number of axes
 *   than of shifts
 *
 * @example
 * ```ts
 * using y = await roll(device.tensor(i32, [1, 2, 3, 4]), 1);
 * console.log((await y.read()).join(' ')); // 4 1 2 3
 * ```
 */
export function roll<D extends DTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  shift: number | readonly number[],
  options: RollOptions = {},
): DeviceOp<Tensor<D, S>> {
  checkOptions('options', options, ['axis']);
  const { axis } = options;
  const shifts: readonly unknown[] = isList(shift) ? shift : [shift];
  shifts.forEach((each, index) => {
    checkInteger(
      isList(shift) ? `shift[${index}]` : 'shift',
      each,
      -Number.MAX_SAFE_INTEGER,
      Number.MAX_SAFE_INTEGER,
    );
  });
  return operation('roll', [x], ([given]) => {
    checkAnyTensor('roll', 'x', given);
    const flat = axis === undefined;
    const { rank } = given;
    const named = flat
      ? [0]
      : (isList(axis) ? axis : [axis]).map((each) => checkAxis('options.axis', each, rank));
    if (shifts.length !== named.length && shifts.length !== 1)
      throw invalid('shift', `a whole number for each of ${named.length} axes`, shift);
    const extents = flat ? [given.size] : given.shape;
    // An axis that is named twice is moved by both shifts.
    const places = extents.map(() => 0);
    named.forEach((at, index) => {
      const extent = Math.max(1, extents[at]!);
      const by = (shifts.length === 1 ? shifts[0] : shifts[index]) as number;
      places[at] = (((places[at]! + (by % extent)) % extent) + extent) % extent;
    });
    return (work) => {
      const out = work.result(given.dtype, [...given.shape]);
      if (out.size === 0) return out as unknown as Tensor<D, S>;
      const from = flat ? work.dense(given).reshape([given.size] as never) : given;
      const to = (flat ? out.reshape([out.size] as never) : out) as unknown as AnyTensor;
      // Each axis that moves has two parts, which change places.
      const parts = places.map((place, at): readonly (readonly [number, number, number])[] =>
        place === 0
          ? [[0, extents[at]!, 0]]
          : [
              [0, extents[at]! - place, place],
              [extents[at]! - place, extents[at]!, 0],
            ],
      );
      for (const pieces of combinations(parts)) {
        const source = pieces.map(([start, end]) => [start, end]);
        const target = pieces.map(([start, end, at]) => [at, at + end - start]);
        copy(work, to.slice(...(target as never[])), from.slice(...(source as never[])));
      }
      return out as unknown as Tensor<D, S>;
    };
  });
}

/**
 * Axes in other places: axis `source` of the operand is axis `destination` of the result, and the
 * others keep their order.
 *
 * @throws CudaArgumentError for an axis that the tensor does not have, one that is named twice, and
 *   lists of different lengths
 *
 * @example
 * ```ts
 * using y = await moveaxis(device.zeros(f32, [2, 3, 4]), 0, -1);
 * console.log(y.shape); // [ 3, 4, 2 ]
 * ```
 */
export function moveaxis<D extends DTypeName>(
  x: OrOp<Tensor<D>>,
  source: number | readonly number[],
  destination: number | readonly number[],
  more?: never,
): DeviceOp<Tensor<D, number[]>> {
  checkNoOptions('moveaxis', more, undefined);
  for (const [name, axes] of Object.entries({ source, destination }))
    if (axes === undefined) throw invalid(name, 'an axis or a list of axes, for moveaxis(…)', axes);
  return operation('moveaxis', [x], ([given]) => {
    checkAnyTensor('moveaxis', 'x', given);
    const { rank } = given;
    const from = namedAxes('moveaxis', 'source', source, rank);
    const to = namedAxes('moveaxis', 'destination', destination, rank);
    if (from.length !== to.length)
      throw invalid('destination', `${from.length} axes, as many as source names`, destination);
    const order = given.shape.map((_, at) => at).filter((at) => !from.includes(at));
    for (const [at, index] of to
      .map((at, index) => [at, index] as const)
      .sort((a, b) => a[0] - b[0]))
      order.splice(at, 0, from[index]!);
    return (work) =>
      copied(work, given, given.permute(order as never).layout) as unknown as Tensor<D, number[]>;
  });
}

/** Options of {@link repeat}. */
export interface RepeatOptions {
  /**
   * The axis along which elements are repeated; a negative one counts from the end. Default: all
   * elements in row-major order, and the result has one axis.
   */
  readonly axis?: number;
}

/**
 * Each element several times, one copy after the other.
 *
 * @param repeats how many times; or a list with a number for each index of the axis
 * @throws CudaArgumentError for a negative number, a list of another length than the axis, and an
 *   axis that the tensor does not have
 *
 * @example
 * ```ts
 * using y = await repeat(device.tensor(i32, [1, 2, 3]), 2);
 * using z = await repeat(device.tensor(i32, [1, 2, 3]), [2, 0, 1]);
 * console.log((await y.read()).join(' '), (await z.read()).join(' ')); // 1 1 2 2 3 3 1 1 3
 * ```
 */
export function repeat<D extends DTypeName>(
  x: OrOp<Tensor<D>>,
  repeats: number | readonly number[],
  options: RepeatOptions = {},
): DeviceOp<Tensor<D, number[]>> {
  checkOptions('options', options, ['axis']);
  const { axis } = options;
  const list = isList(repeats);
  (list ? (repeats as readonly unknown[]) : [repeats]).forEach((each, index) => {
    checkInteger(list ? `repeats[${index}]` : 'repeats', each, 0, Number.MAX_SAFE_INTEGER);
  });
  return operation('repeat', [x], ([given]) => {
    checkAnyTensor('repeat', 'x', given);
    const at = axis === undefined ? 0 : checkAxis('options.axis', axis, given.rank);
    const shape = axis === undefined ? [given.size] : [...given.shape];
    if (list && repeats.length !== shape[at] && repeats.length !== 1)
      throw invalid(
        'repeats',
        `a number for each of the ${shape[at]} indices of the axis`,
        repeats,
      );
    const counts = list ? [...repeats] : [repeats];
    const result = [...shape];
    result[at] =
      counts.length === 1 ? shape[at]! * counts[0]! : counts.reduce((sum, each) => sum + each, 0);
    return (work) => {
      const out = work.result(given.dtype, result);
      if (out.size === 0) return out as unknown as Tensor<D, number[]>;
      const from = axis === undefined ? work.dense(given).reshape([given.size] as never) : given;
      const apart = (tensor: AnyTensor, start: number, count: number, times: number): AnyTensor =>
        tensor
          .slice(
            ...(shape.map((_, each) =>
              each === at ? [start, start + count * times] : null,
            ) as never[]),
          )
          .reshape([...shape.slice(0, at), count, times, ...shape.slice(at + 1)] as never);
      const row = (index: number, count: number): AnyTensor =>
        from
          .slice(
            ...(shape.map((_, each) => (each === at ? [index, index + count] : null)) as never[]),
          )
          .unsqueeze((at + 1) as never);
      if (counts.length === 1) {
        copyWide(work, apart(out, 0, shape[at]!, counts[0]!), row(0, shape[at]!));
        return out as unknown as Tensor<D, number[]>;
      }
      let start = 0;
      for (const [index, times] of counts.entries()) {
        if (times > 0) copyWide(work, apart(out, start, 1, times), row(index, 1));
        start += times;
      }
      return out as unknown as Tensor<D, number[]>;
    };
  });
}

/**
 * The whole tensor several times along each axis.
 *
 * @param repetitions how many times along each axis. Where it has fewer numbers than the tensor has
 *   axes, the first axes are taken once; where it has more, the tensor gets axes of extent 1 before
 *   its own
 * @throws CudaArgumentError for what is no list of whole numbers of at least 0
 *
 * @example
 * ```ts
 * using y = await tile(device.tensor(i32, [1, 2], [1, 2]), [2, 2]);
 * console.log(y.shape, (await y.read()).join(' ')); // [ 2, 4 ] 1 2 1 2 1 2 1 2
 * ```
 */
export function tile<D extends DTypeName>(
  x: OrOp<Tensor<D>>,
  repetitions: readonly number[],
  more?: never,
): DeviceOp<Tensor<D, number[]>> {
  checkNoOptions('tile', more, undefined);
  if (!isList(repetitions))
    throw invalid(
      'repetitions',
      'a list of whole numbers, one for each axis, for tile(…)',
      repetitions,
    );
  repetitions.forEach((each: unknown, index) => {
    checkInteger(`repetitions[${index}]`, each, 0, Number.MAX_SAFE_INTEGER);
  });
  return operation('tile', [x], ([given]) => {
    checkAnyTensor('tile', 'x', given);
    const rank = Math.max(given.rank, repetitions.length);
    const extents = [...new Array<number>(rank - given.rank).fill(1), ...given.shape];
    const times = [...new Array<number>(rank - repetitions.length).fill(1), ...repetitions];
    return (work) => {
      const out = work.result(
        given.dtype,
        extents.map((extent, at) => extent * times[at]!),
      );
      if (out.size > 0) {
        const parts = out.reshape(extents.flatMap((extent, at) => [times[at]!, extent]) as never);
        const { strides, offset } = given.layout;
        const missing = rank - given.rank;
        const source = layoutOf(
          extents.flatMap((extent) => [1, extent]),
          extents.flatMap((_, at) => [0, at < missing ? 0 : strides[at - missing]!]),
          offset,
        );
        copyWide(work, parts, given.view(source));
      }
      return out as unknown as Tensor<D, number[]>;
    };
  });
}

/** Gives a list of at least one tensor or operation. @internal */
export function listOf(name: string, tensors: unknown): readonly unknown[] {
  if (!isList(tensors) || tensors.length === 0)
    throw invalid(
      'tensors',
      `a list of at least one Tensor, for ${name}(…)`,
      tensors,
      `Write ${name}([x, y]).`,
    );
  return [...tensors];
}

function checkedList(
  name: string,
  values: readonly unknown[],
): readonly [AnyTensor, ...AnyTensor[]] {
  values.forEach((value, index) => {
    checkAnyTensor(name, `tensors[${index}]`, value);
  });
  return values as unknown as readonly [AnyTensor, ...AnyTensor[]];
}

/** The dtype of the result of joining tensors. */
const commonOf = (name: string, tensors: readonly AnyTensor[]): AnyTensor['dtype'] =>
  commonDType(
    name,
    tensors.map((tensor, index) => [`tensors[${index}]`, tensor] as const),
  )!;

function* combinations<T>(lists: readonly (readonly T[])[], from = 0): Generator<T[]> {
  if (from === lists.length) {
    yield [];
    return;
  }
  for (const first of lists[from]!)
    for (const rest of combinations(lists, from + 1)) yield [first, ...rest];
}

/** Copies elements to a view of as many; of no elements there is nothing to queue. */
function copy(work: Work, to: unknown, from: unknown): void {
  if ((to as AnyTensor).size > 0) work.add((to as AnyTensor).copyFrom(from as AnyTensor));
}

/** Copies elements that broadcast to the view. */
function copyWide(work: Work, to: AnyTensor, from: AnyTensor): void {
  copy(work, to, from.broadcastTo(to.shape as never));
}

/** A contiguous copy of the elements that a layout of the tensor's memory has. */
function copied(work: Work, tensor: AnyTensor, layout: Layout): AnyTensor {
  const out = work.result(tensor.dtype, [...layout.shape]) as unknown as AnyTensor;
  copy(work, out, tensor.view(layout));
  return out;
}
