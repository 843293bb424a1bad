/**
 * Coalescing: the fewest axes that describe the same elements, which are those that a copy or an
 * elementwise kernel has to index.
 */
import { invalid } from '../ground/arguments.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { sameShape, showShape } from './shape.js';

/**
 * Gives the same elements in the same order with the fewest axes: axes of extent 1 are dropped, and
 * an axis whose stride is the whole extent of the next axis is merged with it. A contiguous layout
 * becomes `[n]` with stride 1, one element a scalar, `[]`, and an empty layout `[0]`.
 *
 * @example
 * ```ts
 * const { shape, strides } = layouts.coalesce(layouts.contiguous([2, 1, 3, 4]));
 * console.log(shape, strides); // [ 24 ] [ 1 ]
 * ```
 */
export function coalesce(layout: Layout): Layout {
  return coalesceTogether([layout])[0]!;
}

/**
 * Coalesces several layouts of one shape together: axes are merged where all layouts allow it, so
 * that one index still names corresponding elements. `anyOrder` also reorders the axes, from the
 * largest stride of the first layout to its smallest, for work whose result does not depend on the
 * order of the elements.
 *
 * @throws CudaArgumentError where the shapes differ; broadcast them first
 *
 * @example
 * ```ts
 * const whole = layouts.contiguous([2, 3, 4]);
 * const row = layouts.broadcastTo(layouts.contiguous([4]), [2, 3, 4]);
 * const [a, b] = layouts.coalesceTogether([whole, row]);
 * console.log(a!.shape, a!.strides, b!.strides); // [ 6, 4 ] [ 4, 1 ] [ 0, 1 ]
 * ```
 */
export function coalesceTogether(
  layouts: readonly Layout[],
  { anyOrder = false }: { anyOrder?: boolean } = {},
): Layout[] {
  const [first] = layouts;
  if (first === undefined) return [];
  layouts.forEach((layout, i) => {
    if (!sameShape(layout.shape, first.shape))
      throw invalid(
        `layouts[${i}]`,
        `the shape of the first, ${showShape(first.shape)}`,
        layout.shape,
        'Broadcast them to one shape.',
      );
  });
  if (first.shape.includes(0)) return layouts.map(({ offset }) => layoutOf([0], [1], offset));

  let axes = first.shape.flatMap((extent, axis) =>
    extent === 1 ? [] : [{ extent, strides: layouts.map(({ strides }) => strides[axis]!) }],
  );
  // The sort is stable and compares the layouts in turn, so that axes which one layout broadcasts
  // are ordered by the strides of the others.
  if (anyOrder)
    axes = axes.sort(
      (a, b) =>
        a.strides
          .map((stride, i) => Math.abs(b.strides[i]!) - Math.abs(stride))
          .find((difference) => difference !== 0) ?? 0,
    );

  const merged: typeof axes = [];
  for (const axis of axes) {
    const outer = merged.at(-1);
    if (outer?.strides.every((stride, i) => stride === axis.strides[i]! * axis.extent)) {
      merged[merged.length - 1] = { extent: outer.extent * axis.extent, strides: axis.strides };
    } else merged.push(axis);
  }
  return layouts.map(({ offset }, i) =>
    layoutOf(
      merged.map(({ extent }) => extent),
      merged.map(({ strides }) => strides[i]!),
      offset,
    ),
  );
}
