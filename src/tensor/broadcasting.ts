/**
 * NumPy's broadcasting: shapes are aligned at their ends, and extents of 1 and missing ones
 * stretch, by a stride of 0.
 */
import { invalid } from '../ground/arguments.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { checkShape, showShape } from './shape.js';
import type { Broadcast, BroadcastTo, Checked, Known, Shape } from './shape-types.js';

/**
 * Gives the shape that two shapes broadcast to.
 *
 * @throws CudaArgumentError, which names the axis, for shapes that do not broadcast
 *
 * @example
 * ```ts
 * console.log(layouts.broadcastShapes([4, 1], [3])); // [ 4, 3 ]
 * ```
 */
export function broadcastShapes<const A extends Shape, const B extends Shape>(
  a: A,
  b: B & Checked<Broadcast<A, B>>,
): Known<Broadcast<A, B>>;
export function broadcastShapes(a: Shape, b: Shape): number[] {
  return broadcastAll([a, b]);
}

/**
 * Gives the shape that all of `shapes` broadcast to; `[]` for an empty list.
 *
 * @throws CudaArgumentError, which names the first shape that does not broadcast with those before
 *   it, and the axis
 *
 * @example
 * ```ts
 * console.log(layouts.broadcastAll([[4, 1], [3], [2, 1, 1]])); // [ 2, 4, 3 ]
 * ```
 */
export function broadcastAll(shapes: readonly Shape[]): number[] {
  let result: number[] = [];
  shapes.forEach((shape, at) => {
    checkShape(`shapes[${at}]`, shape);
    const rank = Math.max(result.length, shape.length);
    const next = new Array<number>(rank);
    for (let fromEnd = 1; fromEnd <= rank; fromEnd++) {
      const a = result[result.length - fromEnd] ?? 1;
      const b = shape[shape.length - fromEnd] ?? 1;
      if (a !== b && a !== 1 && b !== 1) {
        throw invalid(
          `shapes[${at}]`,
          `a shape that broadcasts with ${showShape(result)}, whose axis ${-fromEnd} has ` +
            `${a} elements`,
          shape,
        );
      }
      next[rank - fromEnd] = a === 1 ? b : a;
    }
    result = next;
  });
  checkShape('shapes', result);
  return result;
}

/**
 * Stretches the layout to `shape`: axes of extent 1 and missing axes get a stride of 0. Several
 * indices then name one element, so that `overlapsItself` is true of the result, and tensors with
 * such a layout are not written.
 *
 * @throws CudaArgumentError where the layout's shape does not broadcast to `shape`
 *
 * @example
 * ```ts
 * const { shape, strides } = layouts.broadcastTo(layouts.contiguous([3]), [4, 3]);
 * console.log(shape, strides); // [ 4, 3 ] [ 0, 1 ]
 * ```
 */
export function broadcastTo<S extends Shape, const T extends Shape>(
  layout: Layout<S>,
  shape: T & Checked<BroadcastTo<S, T>>,
): Layout<Known<BroadcastTo<S, T>>>;
export function broadcastTo(layout: Layout, shape: Shape): Layout {
  checkShape('shape', shape);
  const missing = shape.length - layout.shape.length;
  if (missing < 0)
    throw invalid(
      'shape',
      `at least the ${layout.shape.length} axes of ${showShape(layout.shape)}`,
      shape,
    );
  const strides = shape.map((extent, axis) => {
    if (axis < missing) return 0;
    const own = layout.shape[axis - missing]!;
    if (own === extent) return layout.strides[axis - missing]!;
    if (own === 1) return 0;
    throw invalid(
      'shape',
      `a shape that ${showShape(layout.shape)} broadcasts to, with ${own} elements on axis ${axis}`,
      shape,
    );
  });
  return layoutOf([...shape], strides, layout.offset);
}
