import { f32, u8 } from 'async-cuda/core';
import * as fc from '../../test/fast-check.js';
import { describe, expect, test } from 'vitest';

import { broadcastTo } from './broadcasting.js';
import { contiguous, elements, strided } from './layout.js';
import type { Layout } from './layout.js';
import { layouts } from './naive-view.test-support.js';
import { overlaps, overlapsItself } from './overlapping.js';
import { inBytes } from './reinterpreting.js';
import { slice } from './slicing.js';
import { scaled } from '../../test/random-runs.js';

describe('with itself', () => {
  test('is whether an element comes up twice', { tags: 'random' }, () => {
    let yes = 0;
    fc.assert(
      fc.property(layouts({ maxStride: 20, minExtent: 1 }), (layout) => {
        const all = [...elements(layout)];
        const twice = new Set(all).size < all.length;
        if (twice) yes++;
        expect(overlapsItself(layout)).toBe(twice);
      }),
      { numRuns: 2000 },
    );
    expect(yes).toBeGreaterThan(scaled(100));
    expect(yes).toBeLessThan(1900);
  });

  test('a broadcast axis does, whatever is contiguous does not', () => {
    expect(overlapsItself(broadcastTo(contiguous([3]), [2, 3]))).toBe(true);
    expect(overlapsItself(broadcastTo(contiguous([3]), [1, 3]))).toBe(false);
    expect(overlapsItself(contiguous([2 ** 20, 2 ** 20]))).toBe(false);
    // Windows of 3 that go on by 1.
    expect(overlapsItself(strided([1 << 20, 3], [1, 1]))).toBe(true);
    // Strides whose ranges overlap without a common element: even and odd.
    expect(overlapsItself(strided([1 << 20, 2], [2, 1_000_001]))).toBe(false);
  });
});

describe('of two', () => {
  test('is whether they have an element in common', { tags: 'random' }, () => {
    let [yes, no] = [0, 0];
    fc.assert(
      fc.property(
        layouts({ maxStride: 20, maxRank: 3, minExtent: 1 }),
        layouts({ maxStride: 20, maxRank: 3, minExtent: 1 }),
        fc.nat(40),
        (a, b, further) => {
          const moved: Layout = { ...b, offset: b.offset + further };
          const ofA = new Set(elements(a));
          const common = [...elements(moved)].some((element) => ofA.has(element));
          if (common) yes++;
          else no++;
          expect(overlaps(a, moved)).toBe(common);
          expect(overlaps(moved, a)).toBe(common);
        },
      ),
      { numRuns: 2000 },
    );
    expect(Math.min(yes, no)).toBeGreaterThan(scaled(100));
  });

  test('columns, interleaved elements and tiles of one matrix do not', () => {
    const matrix = contiguous([4096, 4096]);
    expect(overlaps(slice(matrix, [null, [0, 2048]]), slice(matrix, [null, [2048]]))).toBe(false);
    expect(overlaps(slice(matrix, [null, [0, null, 2]]), slice(matrix, [null, [1, null, 2]]))).toBe(
      false,
    );
    expect(
      overlaps(
        slice(matrix, [[0, null, 2]]),
        slice(matrix, [
          [1, null, 2],
          [null, null, -1],
        ]),
      ),
    ).toBe(false);
    expect(
      overlaps(
        slice(matrix, [
          [0, 100],
          [0, 100],
        ]),
        slice(matrix, [
          [99, 200],
          [99, 200],
        ]),
      ),
    ).toBe(true);
    expect(
      overlaps(
        slice(matrix, [
          [0, 100],
          [0, 100],
        ]),
        slice(matrix, [
          [100, 200],
          [0, 100],
        ]),
      ),
    ).toBe(false);
  });

  test('different dtypes are compared in bytes', () => {
    expect(overlaps(inBytes(contiguous([2]), f32), inBytes(contiguous([4], 8), u8))).toBe(false);
    expect(overlaps(inBytes(contiguous([2]), f32), inBytes(contiguous([4], 7), u8))).toBe(true);
  });

  test('a check that would take long ends early, and gives true', () => {
    // No sum of these is odd but for the last, and the search would have to find that out one by
    // one.
    const hard = strided(
      [2 ** 11, 2 ** 11, 2 ** 11, 2 ** 11],
      [1_000_003 * 6, 1_000_033 * 10, 1_000_037 * 15, 1_000_039 * 30],
    );
    const begin = performance.now();
    expect(typeof overlaps(hard, { ...hard, offset: 1_234_567_891 })).toBe('boolean');
    expect(performance.now() - begin).toBeLessThan(100);
  });
});
