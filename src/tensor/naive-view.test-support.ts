/**
 * A view as tests model it: its shape, and the element of the buffer of every index in row-major
 * order, written out. No strides, so that it shares no reasoning with layouts.
 */
import * as fc from '../../test/fast-check.js';

import { elements, strided } from './layout.js';
import type { Layout } from './layout.js';
import type { Range } from './shape-types.js';

export interface NaiveView {
  shape: number[];
  elements: number[];
}

export const naive = (layout: Layout): NaiveView => ({
  shape: [...layout.shape],
  elements: [...elements(layout)],
});

/** Every index of a shape, in row-major order. */
export function indices(shape: readonly number[]): number[][] {
  let all: number[][] = [[]];
  for (const extent of shape)
    all = all.flatMap((index) => Array.from({ length: extent }, (_, i) => [...index, i]));
  return all;
}

/** The element at an index. */
export function elementOf({ shape, elements }: NaiveView, index: readonly number[]): number {
  let position = 0;
  shape.forEach((extent, axis) => (position = position * extent + index[axis]!));
  return elements[position]!;
}

/** A view of `shape` whose index is, in the view given, the index that `from` says. */
export function taken(
  view: NaiveView,
  shape: readonly number[],
  from: (index: number[]) => number[],
): NaiveView {
  return {
    shape: [...shape],
    elements: indices(shape).map((index) => elementOf(view, from(index))),
  };
}

/** The indices of an axis that `start:stop:step` takes, as Python's reference describes it. */
export function pythonRange(extent: number, [start, stop, step = 1]: Range): number[] {
  const place = (value: number | null | undefined, otherwise: number): number => {
    if (value === null || value === undefined) return otherwise;
    let at = value < 0 ? value + extent : value;
    while (at < (step > 0 ? 0 : -1)) at++;
    while (at > (step > 0 ? extent : extent - 1)) at--;
    return at;
  };
  const result: number[] = [];
  const end = place(stop, step > 0 ? extent : -1);
  for (let i = place(start, step > 0 ? 0 : extent - 1); step > 0 ? i < end : i > end; i += step)
    result.push(i);
  return result;
}

export const shapes = (
  options: { maxRank?: number; minExtent?: number; maxExtent?: number } = {},
): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: options.minExtent ?? 0, max: options.maxExtent ?? 4 }), {
    maxLength: options.maxRank ?? 4,
  });

/** Any layout, of any strides, none of whose elements is before element 0. */
export const layouts = (
  options: Parameters<typeof shapes>[0] & { maxStride?: number } = {},
): fc.Arbitrary<Layout> =>
  shapes(options).chain((shape) =>
    fc
      .record({
        strides: fc.array(
          fc.integer({ min: -(options.maxStride ?? 9), max: options.maxStride ?? 9 }),
          { minLength: shape.length, maxLength: shape.length },
        ),
        more: fc.nat(5),
      })
      .map(({ strides, more }) => {
        const below = shape.reduce(
          (sum, extent, axis) => sum + Math.max(0, extent - 1) * Math.max(0, -strides[axis]!),
          0,
        );
        return strided(shape, strides, below + more);
      }),
  );
