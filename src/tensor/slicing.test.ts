import * as fc from '../../test/fast-check.js';
import { expect, expectTypeOf, test } from 'vitest';

import { contiguous, elements } from './layout.js';
import type { Layout } from './layout.js';
import { pythonRange } from './naive-view.test-support.js';
import type { Index, Range } from './shape-types.js';
import { slice } from './slicing.js';

const layout = contiguous([4, 5, 6]);

test('a number drops its axis, a range keeps it, what is left out is whole', () => {
  const part = slice(layout, [1, [1, 4]]);
  expectTypeOf(part).toEqualTypeOf<Layout<[3, 6]>>();
  expect(part).toEqual({ shape: [3, 6], strides: [6, 1], offset: 36 });
  expectTypeOf(slice(layout, ['...', -1])).toEqualTypeOf<Layout<[4, 5]>>();
  expect(slice(layout, ['...', -1])).toEqual({ shape: [4, 5], strides: [30, 6], offset: 5 });
  expect(slice(layout, [0, '...', [null, null, 2]])).toEqual({
    shape: [5, 3],
    strides: [6, 2],
    offset: 0,
  });
  expect(slice(layout, [])).toEqual(layout);
  expect(slice(layout, ['...'])).toEqual(layout);
  expect(slice(layout, [null, 2, null])).toEqual({ shape: [4, 6], strides: [30, 1], offset: 12 });
});

test('a negative step goes backwards', () => {
  const reversed = slice(contiguous([5]), [[null, null, -1]]);
  expectTypeOf(reversed).toEqualTypeOf<Layout<[5]>>();
  expect([...elements(reversed)]).toEqual([4, 3, 2, 1, 0]);
  expect([...elements(slice(reversed, [[1, null, -1]]))]).toEqual([3, 4]);
});

const bound = fc.option(
  fc.oneof(
    fc.integer({ min: -12, max: 12 }),
    fc.constantFrom(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
  ),
);

test('a range takes what Python takes', { tags: 'random' }, () => {
  const step = fc.oneof(
    fc.integer({ min: -4, max: 4 }).filter((n) => n !== 0),
    fc.constantFrom(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
  );
  fc.assert(
    fc.property(fc.nat(8), bound, bound, step, (extent, start, stop, by) => {
      const clip = (value: number | null): number | null =>
        value === null ? null : Math.max(-20, Math.min(20, value));
      const part = slice<number[], Range[]>(contiguous([extent] as number[]), [[start, stop, by]]);
      expect([...elements(part)]).toEqual(pythonRange(extent, [clip(start), clip(stop), by]));
    }),
    { numRuns: 2000 },
  );
});

test.each<[Index[], string]>([
  [[4], 'indices[0]: expected an index from -4 to 3, got 4.'],
  [[0, -6], 'indices[1]: expected an index from -5 to 4, got -6.'],
  [
    [0, 0, 0, 0],
    'indices: expected at most 3, one for each axis of [4, 5, 6], got [ 0, 0, 0, 0 ].',
  ],
  [['...', 0, '...'], "indices: expected '...' once"],
  [[[0, 1, 0]], 'indices[0][2]: expected a step other than 0, got 0.'],
  [[[0.5]], 'indices[0][0]: expected a whole number or null, got 0.5.'],
  [[1.5], 'indices[0]: expected an index from -4 to 3, got 1.5.'],
  [[{} as never], "indices[0]: expected a number, [start, stop, step], null or '...', got {}."],
])('refuses %j', (indices, message) => {
  expect(() => slice<number[], Index[]>(contiguous([4, 5, 6] as number[]), indices)).toThrow(
    message,
  );
});

test('an index of an empty axis is none', () => {
  expect(() => slice<number[], Index[]>(contiguous([0] as number[]), [0])).toThrow(
    'indices[0]: expected no index, since the axis is empty, got 0.',
  );
});

test('what is known to be wrong does not compile', () => {
  // @ts-expect-error 4 is outside an axis of 4 elements
  expect(() => slice(layout, [4])).toThrow();
  // @ts-expect-error more indices than [4, 5, 6] has axes
  expect(() => slice(layout, [0, 0, 0, 0])).toThrow();
});
