/**
 * Slices, as between Python's brackets: `slice(layout, [2, [0, 10], [null, null, -1]])` is `x[2,
 * 0:10, ::-1]`.
 */
import { invalid } from '../ground/arguments.js';
import { checkIndex, layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { showShape } from './shape.js';
import type { Checked, Index, Known, Shape, Sliced } from './shape-types.js';

/**
 * Gives the part of a layout that `indices` select, one for each axis: see {@link Index}. Axes at
 * the end without an index are taken whole. As in Python, a start or stop beyond the axis is
 * limited to it, and a number beyond it is an error.
 *
 * @throws CudaArgumentError for a number outside its axis, more indices than axes, a step of 0
 *
 * @example
 * ```ts
 * const layout = layouts.contiguous([4, 6]);
 * const { shape, strides, offset } = layouts.slice(layout, [2, [1, null, 2]]);
 * console.log(shape, strides, offset); // [ 3 ] [ 2 ] 13
 * ```
 */
export function slice<S extends Shape, const I extends readonly Index[]>(
  layout: Layout<S>,
  indices: I & Checked<Sliced<S, I>>,
): Layout<Known<Sliced<S, I>>>;
export function slice(layout: Layout, indices: readonly Index[]): Layout {
  if (!Array.isArray(indices))
    throw invalid('indices', "an array of a number, a range, null or '...' for each axis", indices);
  const shape: number[] = [];
  const strides: number[] = [];
  let { offset } = layout;
  withoutEllipsis(layout.shape, indices).forEach((index, axis) => {
    const extent = layout.shape[axis]!;
    const stride = layout.strides[axis]!;
    const argument = `indices[${axis}]`;
    if (index === null) {
      shape.push(extent);
      strides.push(stride);
    } else if (typeof index === 'number') {
      offset += checkIndex(argument, index, extent) * stride;
    } else {
      const { start, count, step } = resolveRange(argument, index, extent);
      shape.push(count);
      // The stride of at most one element has no meaning, and the product with a large step may not
      // be an exact integer.
      strides.push(count > 1 ? stride * step : stride);
      if (count > 0) offset += start * stride;
    }
  });
  return layoutOf(shape, strides, offset);
}

function withoutEllipsis(shape: Shape, indices: readonly Index[]): Exclude<Index, '...'>[] {
  const at = indices.indexOf('...');
  if (at !== indices.lastIndexOf('...')) throw invalid('indices', "'...' once", indices);
  const named = indices.length - (at === -1 ? 0 : 1);
  if (named > shape.length)
    throw invalid(
      'indices',
      `at most ${shape.length}, one for each axis of ${showShape(shape)}`,
      indices,
    );
  const whole = new Array<null>(shape.length - named).fill(null);
  const before = at === -1 ? indices : indices.slice(0, at);
  return [...before, ...whole, ...(at === -1 ? [] : indices.slice(at + 1))] as Exclude<
    Index,
    '...'
  >[];
}

/** Resolves a range of an axis: it takes `count` elements from `start` on, `step` apart. */
function resolveRange(
  argument: string,
  range: unknown,
  extent: number,
): { start: number; count: number; step: number } {
  if (!Array.isArray(range) || range.length > 3)
    throw invalid(argument, "a number, [start, stop, step], null or '...'", range);
  const [from, to, step = 1] = range as unknown[];
  if (typeof step !== 'number' || !Number.isInteger(step) || step === 0)
    throw invalid(`${argument}[2]`, 'a step other than 0', step);
  // A backward range goes from the last element down; its stop, which is excluded, may be -1.
  const [low, high] = step > 0 ? [0, extent] : [-1, extent - 1];
  const bound = (name: string, value: unknown, otherwise: number): number => {
    if (value === undefined || value === null) return otherwise;
    if (typeof value !== 'number' || !Number.isInteger(value))
      throw invalid(name, 'a whole number or null', value);
    return Math.min(Math.max(value < 0 ? value + extent : value, low), high);
  };
  const start = bound(`${argument}[0]`, from, step > 0 ? low : high);
  const stop = bound(`${argument}[1]`, to, step > 0 ? high : low);
  return { start, count: Math.max(0, Math.ceil((stop - start) / step)), step };
}
