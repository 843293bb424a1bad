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
 * The shape that two shapes broadcast to.
 *
 * @throws CudaArgumentError that names the axis that does not fit
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
 * The shape that all of `shapes` broadcast to; `[]` where there is none.
 *
 * @throws CudaArgumentError that names the first that does not fit those before it, and the axis
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
 * The layout stretched to `shape`. Several indices of it then are one element: writing through it
 * is refused by whoever checks `overlapsItself`.
 *
 * @throws CudaArgumentError where it does not broadcast to that shape
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
