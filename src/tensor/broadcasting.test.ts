import * as fc from '../../test/fast-check.js';
import { expect, expectTypeOf, test } from 'vitest';

import { broadcastAll, broadcastShapes, broadcastTo } from './broadcasting.js';
import { contiguous } from './layout.js';
import type { Layout } from './layout.js';
import { shapes } from './naive-view.test-support.js';

test('extents of 1 and missing ones stretch', () => {
  const shape = broadcastShapes([2, 1, 4], [3, 1]);
  expectTypeOf(shape).toEqualTypeOf<[2, 3, 4]>();
  expect(shape).toEqual([2, 3, 4]);
  expect(broadcastAll([])).toEqual([]);
  expect(broadcastAll([[3]])).toEqual([3]);
  expect(broadcastShapes([1], [0])).toEqual([0]);
  expect(broadcastAll([[5, 1, 1], [1, 6, 1], [7]])).toEqual([5, 6, 7]);
});

test(
  'the order of shapes does not matter, and what comes out takes all of them',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(
        shapes({ maxExtent: 3 }),
        shapes({ maxExtent: 3 }),
        shapes({ maxExtent: 3 }),
        (a, b, c) => {
          const attempt = (...list: number[][]): number[] | string => {
            try {
              return broadcastAll(list);
            } catch {
              return 'none';
            }
          };
          const together = attempt(a, b, c);
          expect(attempt(c, a, b)).toEqual(together);
          if (typeof together === 'string') return;
          for (const shape of [a, b, c]) {
            const stretched = broadcastTo<number[], number[]>(contiguous(shape), together);
            expect(stretched.shape).toEqual(together);
          }
        },
      ),
      { numRuns: 500 },
    );
  },
);

test('a stretched axis has stride 0', () => {
  const stretched = broadcastTo(contiguous([3, 1]), [2, 3, 4]);
  expectTypeOf(stretched).toEqualTypeOf<Layout<[2, 3, 4]>>();
  expect(stretched).toEqual({ shape: [2, 3, 4], strides: [0, 1, 0], offset: 0 });
});

test('errors name what does not fit', () => {
  // @ts-expect-error [2, 3] and [4] do not broadcast: 3 against 4
  expect(() => broadcastShapes([2, 3], [4])).toThrow(
    'shapes[1]: expected a shape that broadcasts with [2, 3], whose axis -1 has 3 elements, ' +
      'got [ 4 ].',
  );
  // @ts-expect-error 3 against 1
  expect(() => broadcastTo(contiguous([2, 3]), [2, 1])).toThrow(
    'shape: expected a shape that [2, 3] broadcasts to, with 3 elements on axis 1, got [ 2, 1 ].',
  );
  // @ts-expect-error [2, 3] has more axes than [3]
  expect(() => broadcastTo(contiguous([2, 3]), [3])).toThrow(
    'shape: expected at least the 2 axes of [2, 3], got [ 3 ].',
  );
});
