/**
 * Another shape for the same elements in the same order. Where strides for it exist it is a view;
 * elsewhere the elements have to be copied first.
 */
import { invalid, isList } from '../ground/arguments.js';
import { coalesce } from './coalescing.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { MOST_AXES, checkShape, contiguousStrides, numel, showShape } from './shape.js';
import type { Checked, Known, Reshaped, Shape } from './shape-types.js';

/**
 * Gives `target` with its -1, if it has one, replaced by the extent that follows from the number of
 * elements of `shape`.
 *
 * @throws CudaArgumentError where the numbers of elements differ, for two extents of -1, and for -1
 *   with an extent of 0, where it could be any number
 *
 * @example
 * ```ts
 * console.log(layouts.resolveShape([2, 6], [3, -1])); // [ 3, 4 ]
 * ```
 */
export function resolveShape<S extends Shape, const T extends Shape>(
  shape: S,
  target: T & Checked<Reshaped<S, T>>,
): Known<Reshaped<S, T>>;
export function resolveShape(shape: Shape, target: Shape): number[] {
  const open = isList(target) && target.length <= MOST_AXES ? target.indexOf(-1) : -1;
  if (open === -1) {
    checkShape('shape', target);
    if (numel(target) !== numel(shape))
      throw invalid(
        'shape',
        `a shape of ${numel(shape)} elements, as many as ${showShape(shape)} has`,
        target,
      );
    return [...target];
  }
  if (target.indexOf(-1, open + 1) !== -1) throw invalid('shape', 'one extent of -1', target);
  const resolved = [...target];
  resolved[open] = 1;
  checkShape('shape', resolved);
  const rest = numel(resolved);
  if (rest === 0)
    throw invalid('shape', 'no -1 beside an extent of 0, where it could be anything', target);
  if (numel(shape) % rest !== 0) {
    throw invalid(
      'shape',
      `extents beside -1 whose product divides the ${numel(shape)} elements of ${showShape(shape)}`,
      target,
    );
  }
  resolved[open] = numel(shape) / rest;
  return resolved;
}

/**
 * Gives the layout with another shape, over the same elements in the same order. One extent may be
 * -1.
 *
 * @throws CudaArgumentError where the numbers of elements differ, and where no strides give that
 *   view; {@link tryReshape} gives `undefined` there
 *
 * @example
 * ```ts
 * const { shape, strides } = layouts.reshape(layouts.contiguous([2, 6]), [2, 3, -1]);
 * console.log(shape, strides); // [ 2, 3, 2 ] [ 6, 2, 1 ]
 * ```
 */
export function reshape<S extends Shape, const T extends Shape>(
  layout: Layout<S>,
  shape: T & Checked<Reshaped<S, T>>,
): Layout<Known<Reshaped<S, T>>>;
export function reshape(layout: Layout, shape: Shape): Layout {
  const result = tryReshape<Shape, Shape>(layout, shape);
  if (result !== undefined) return result;
  throw invalid(
    'shape',
    `a shape that is a view of ${showShape(layout.shape)} with strides ` +
      `${showShape(layout.strides)}`,
    shape,
    'These elements do not lie in steps of that shape: make a contiguous copy first.',
  );
}

/**
 * Does the same as {@link reshape}, but gives `undefined` where the elements would have to be
 * copied.
 *
 * @throws CudaArgumentError where the numbers of elements differ
 *
 * @example
 * ```ts
 * const columns = layouts.transpose(layouts.contiguous([2, 3]));
 * console.log(layouts.tryReshape(columns, [6])); // undefined
 * console.log(layouts.tryReshape(columns, [3, 2, 1])?.shape); // [ 3, 2, 1 ]
 * ```
 */
export function tryReshape<S extends Shape, const T extends Shape>(
  layout: Layout<S>,
  shape: T & Checked<Reshaped<S, T>>,
): Layout<Known<Reshaped<S, T>>> | undefined;
export function tryReshape(layout: Layout, target: Shape): Layout | undefined {
  const shape = resolveShape<Shape, Shape>(layout.shape, target);
  const strides = viewStrides(layout, shape);
  return strides === undefined ? undefined : layoutOf(shape, strides, layout.offset);
}

/**
 * The strides of the new shape. Each axis of the coalesced layout is a run of equal strides, and no
 * new axis can extend over two runs: new axes have to fill the runs one by one, from the last on.
 */
function viewStrides(layout: Layout, shape: readonly number[]): number[] | undefined {
  if (shape.includes(0)) return contiguousStrides(shape);
  const runs = coalesce(layout);
  const strides = contiguousStrides(shape);
  let run = runs.shape.length - 1;
  let within = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis]!;
    // An axis of extent 1 keeps the stride of a contiguous layout.
    if (extent === 1) continue;
    if (within === runs.shape[run]) {
      run--;
      within = 1;
    }
    strides[axis] = within * runs.strides[run]!;
    within *= extent;
    if (runs.shape[run]! % within !== 0) return undefined;
  }
  return strides;
}
