/**
 * Permutations of axes, and axes of extent 1 that are added or dropped. No element moves: each
 * function gives another layout over the same buffer.
 */
import { invalid, isList } from '../ground/arguments.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { checkAxis, showShape } from './shape.js';
import type {
  Checked,
  Known,
  Permuted,
  Shape,
  Squeezed,
  Transposed,
  Unsqueezed,
} from './shape-types.js';

/**
 * Permutes the axes: axis `i` of the result is axis `axes[i]` of the layout. Negative axes count
 * from the end.
 *
 * @throws CudaArgumentError unless each axis is named once
 *
 * @example
 * ```ts
 * const { shape, strides } = layouts.permute(layouts.contiguous([2, 3, 4]), [2, 0, 1]);
 * console.log(shape, strides); // [ 4, 2, 3 ] [ 1, 12, 4 ]
 * ```
 */
export function permute<S extends Shape, const A extends Shape>(
  layout: Layout<S>,
  axes: A & Checked<Permuted<S, A>>,
): Layout<Known<Permuted<S, A>>>;
export function permute(layout: Layout, axes: Shape): Layout {
  const { shape, strides, offset } = layout;
  if (!isList(axes) || axes.length !== shape.length)
    throw invalid('axes', `${shape.length} axes, each axis of ${showShape(shape)} once`, axes);
  const order = [...axes].map((axis, i) => checkAxis(`axes[${i}]`, axis, shape.length));
  if (new Set(order).size !== order.length)
    throw invalid('axes', `each axis of ${showShape(shape)} once`, axes);
  return layoutOf(
    order.map((axis) => shape[axis]!),
    order.map((axis) => strides[axis]!),
    offset,
  );
}

/**
 * Exchanges two axes, by default the last two. {@link permute} orders all axes at once.
 *
 * @throws CudaArgumentError for an axis that the layout does not have
 *
 * @example
 * ```ts
 * const { shape, strides } = layouts.transpose(layouts.contiguous([2, 3]));
 * console.log(shape, strides); // [ 3, 2 ] [ 1, 3 ]
 * ```
 */
// There are two signatures because an optional axis would be inferred from what the result is
// assigned to.
export function transpose<S extends Shape>(
  layout: Layout<S> & Checked<Transposed<S, -2, -1>>,
): Layout<Known<Transposed<S, -2, -1>>>;
export function transpose<S extends Shape, const A extends number, const B extends number>(
  layout: Layout<S>,
  a: A,
  b: B & Checked<Transposed<S, A, B>>,
): Layout<Known<Transposed<S, A, B>>>;
export function transpose(layout: Layout, a = -2, b = -1): Layout {
  const { shape, strides, offset } = layout;
  const first = checkAxis('a', a, shape.length);
  const second = checkAxis('b', b, shape.length);
  return layoutOf(exchanged(shape, first, second), exchanged(strides, first, second), offset);
}

function exchanged(values: readonly number[], a: number, b: number): number[] {
  const result = [...values];
  result[a] = values[b]!;
  result[b] = values[a]!;
  return result;
}

/**
 * Drops all axes of extent 1, or the one that is named.
 *
 * @throws CudaArgumentError where the named axis has another extent
 *
 * @example
 * ```ts
 * const layout = layouts.contiguous([1, 3, 1]);
 * console.log(layouts.squeeze(layout).shape); // [ 3 ]
 * console.log(layouts.squeeze(layout, 0).shape); // [ 3, 1 ]
 * ```
 */
export function squeeze<S extends Shape>(layout: Layout<S>): Layout<Known<Squeezed<S, undefined>>>;
export function squeeze<S extends Shape, const A extends number>(
  layout: Layout<S>,
  axis: A & Checked<Squeezed<S, A>>,
): Layout<Known<Squeezed<S, A>>>;
export function squeeze(layout: Layout, axis?: number): Layout {
  const { shape, strides, offset } = layout;
  let keep = (i: number): boolean => shape[i] !== 1;
  if (axis !== undefined) {
    const gone = checkAxis('axis', axis, shape.length);
    if (shape[gone] !== 1)
      throw invalid(
        'axis',
        `an axis of extent 1, and axis ${gone} of ${showShape(shape)} has ${shape[gone]}`,
        axis,
      );
    keep = (i) => i !== gone;
  }
  return layoutOf(
    shape.filter((_, i) => keep(i)),
    strides.filter((_, i) => keep(i)),
    offset,
  );
}

/**
 * Adds an axis of extent 1, which is axis `axis` of the result; -1 puts it last.
 *
 * @throws CudaArgumentError where the result has no such axis
 *
 * @example
 * ```ts
 * console.log(layouts.unsqueeze(layouts.contiguous([3]), 0).shape); // [ 1, 3 ]
 * console.log(layouts.unsqueeze(layouts.contiguous([3]), -1).shape); // [ 3, 1 ]
 * ```
 */
export function unsqueeze<S extends Shape, const A extends number>(
  layout: Layout<S>,
  axis: A & Checked<Unsqueezed<S, A>>,
): Layout<Known<Unsqueezed<S, A>>>;
export function unsqueeze({ shape, strides, offset }: Layout, axis: number): Layout {
  const at = checkAxis('axis', axis, shape.length + 1);
  // A contiguous layout has this stride there: the result stays equal to one, stride by stride.
  const stride = at < shape.length ? strides[at]! * shape[at]! : 1;
  return layoutOf(
    [...shape.slice(0, at), 1, ...shape.slice(at)],
    [...strides.slice(0, at), stride, ...strides.slice(at)],
    offset,
  );
}
