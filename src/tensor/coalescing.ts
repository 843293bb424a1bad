/**
 * The fewest axes that describe the same elements: what a copy or an elementwise kernel has to
 * walk.
 */
import { invalid } from '../ground/arguments.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { sameShape, showShape } from './shape.js';

/**
 * The same elements in the same order, with as few axes as that takes: axes of extent 1 are
 * dropped, and an axis whose step is the whole of the next is merged with it. What is contiguous
 * becomes `[n]` with stride 1; one element becomes a scalar, `[]`; nothing at all becomes `[0]`.
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
 * Several layouts of one shape, coalesced alike: axes are merged where all of them allow it, so
 * that index for index they still belong together. `anyOrder` lets the axes change places, too, so
 * that the first layout is walked from its largest stride to its smallest: for what treats every
 * element alike.
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
  // Stable, and by all layouts in turn, so that axes that one of them broadcasts are ordered by the
  // others.
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
