import * as fc from '../../test/fast-check.js';
import { expect, expectTypeOf, test } from 'vitest';

import { permute } from './axes.js';
import { contiguous, elements, strided } from './layout.js';
import type { Layout } from './layout.js';
import { indices, layouts } from './naive-view.test-support.js';
import { reshape, resolveShape, tryReshape } from './reshaping.js';
import { numel } from './shape.js';
import { scaled } from '../../test/random-runs.js';

/**
 * Whether any strides at all give these elements in this shape: each axis' stride can be read off,
 * and has to hold.
 */
function isView(shape: readonly number[], all: readonly number[]): boolean {
  const at = (index: readonly number[]): number =>
    all[shape.reduce((position, extent, axis) => position * extent + index[axis]!, 0)]!;
  const zero = shape.map(() => 0);
  const strides = shape.map((extent, axis) =>
    extent > 1 ? at(zero.map((_, other) => (other === axis ? 1 : 0))) - all[0]! : 0,
  );
  return indices(shape).every(
    (index) => at(index) === all[0]! + index.reduce((sum, i, axis) => sum + i * strides[axis]!, 0),
  );
}

const reshapings = layouts({ maxExtent: 6, maxStride: 12 }).chain((layout) => {
  const total = numel(layout.shape);
  const split = fc.array(fc.constantFrom(1, 2, 3, 4, 6), { maxLength: 4 }).map((factors) => {
    const shape: number[] = [];
    let rest = total;
    for (const factor of factors) {
      if (rest % factor !== 0) continue;
      shape.push(factor);
      rest /= factor;
    }
    return [...shape, rest];
  });
  return fc.tuple(fc.constant(layout), split);
});

test(
  'gives a view exactly where strides exist for it, of the same elements in the same order',
  { tags: 'random' },
  () => {
    let views = 0;
    let copies = 0;
    const check = (layout: Layout, shape: number[]): void => {
      const reshaped = tryReshape<number[], number[]>(layout as Layout<number[]>, shape);
      const all = [...elements(layout)];
      expect(reshaped !== undefined).toBe(all.length === 0 || isView(shape, all));
      if (reshaped === undefined) copies++;
      else {
        views++;
        expect(reshaped.shape).toEqual(shape);
        expect([...elements(reshaped)]).toEqual(all);
      }
    };
    fc.assert(
      fc.property(reshapings, ([layout, shape]) => check(layout, shape)),
      { numRuns: 3000 },
    );
    // Of something contiguous with its axes merged and split, most are views.
    fc.assert(
      fc.property(reshapings, fc.boolean(), ([{ shape: from }, shape], reverse) => {
        const layout = contiguous([...from]);
        check(
          reverse
            ? permute<number[], number[]>(
                layout,
                from.map((_, axis) => from.length - 1 - axis),
              )
            : layout,
          shape,
        );
      }),
      { numRuns: 1000 },
    );
    expect(views).toBeGreaterThan(scaled(100));
    expect(copies).toBeGreaterThan(scaled(100));
  },
);

test('-1 is what is left', () => {
  const reshaped = reshape(contiguous([2, 3, 4]), [-1, 6]);
  expectTypeOf(reshaped).toEqualTypeOf<Layout<[4, 6]>>();
  expect(reshaped).toEqual(contiguous([4, 6]));
  expect(resolveShape([2, 3, 4], [3, -1, 2])).toEqual([3, 4, 2]);
  expect(resolveShape([], [-1])).toEqual([1]);
  expect(resolveShape([0, 3], [-1, 3])).toEqual([0, 3]);
});

test('broadcast axes split, and do not merge', () => {
  expect(reshape(strided([4, 3], [0, 1]), [2, 2, 3])).toEqual({
    shape: [2, 2, 3],
    strides: [0, 0, 1],
    offset: 0,
  });
  expect(tryReshape(strided([4, 3], [0, 1]), [12])).toBeUndefined();
});

test('the error states that a copy is needed', () => {
  expect(() => reshape(strided([2, 3], [1, 2]), [6])).toThrow(
    'shape: expected a shape that is a view of [2, 3] with strides [1, 2], got [ 6 ]. These ' +
      'elements do not lie in steps of that shape: make a contiguous copy first.',
  );
});

test('refuses other numbers of elements', () => {
  const layout = contiguous([2, 3]);
  // @ts-expect-error 6 elements are not 7 elements
  expect(() => reshape(layout, [7])).toThrow(
    'shape: expected a shape of 6 elements, as many as [2, 3] has, got [ 7 ].',
  );
  // @ts-expect-error 6 elements are no multiple of the other extents
  expect(() => reshape(layout, [4, -1])).toThrow(
    'shape: expected extents beside -1 whose product divides the 6 elements of [2, 3], got [ ' +
      '4, -1 ].',
  );
  // @ts-expect-error only one extent can be -1
  expect(() => reshape(layout, [-1, -1])).toThrow(
    'shape: expected one extent of -1, got [ -1, -1 ].',
  );
  // @ts-expect-error beside an extent of 0, -1 could be anything
  expect(() => reshape(contiguous([0, 3]), [0, -1])).toThrow(
    'shape: expected no -1 beside an extent of 0, where it could be anything, got [ 0, -1 ].',
  );
  expect(() => reshape(layout, [-2, -3])).toThrow(
    'shape[0]: expected a whole number of at least 0, got -2.',
  );
});
