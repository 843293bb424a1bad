import * as fc from '../../test/fast-check.js';
import { describe, expect, expectTypeOf, test } from 'vitest';

import { broadcastTo } from './broadcasting.js';
import { contiguous, elements } from './layout.js';
import { indices, layouts } from './naive-view.test-support.js';
import { overlaps } from './overlapping.js';
import {
  isDisjoint,
  mapped,
  partition,
  prefix,
  shareOf,
  tileId,
  tileInList,
  tileOf,
  tilePosition,
} from './partition.js';
import type { Partition } from './partition.js';

const cuts = layouts({ maxExtent: 9, maxRank: 3 }).chain((layout) =>
  fc
    .array(fc.integer({ min: 1, max: 10 }), {
      minLength: layout.shape.length,
      maxLength: layout.shape.length,
    })
    .map((tile) => ({
      layout,
      cut: partition<number[], number[]>([...layout.shape], tile) as Partition,
    })),
);

const ids = (cut: Partition): number[] => Array.from({ length: cut.count }, (_, id) => id);

test('the grid is known to the type checker', () => {
  const cut = partition([10, 8], [4, 4]);
  expectTypeOf(cut).toEqualTypeOf<Partition<[10, 8], [4, 4]>>();
  expectTypeOf(cut.grid).toEqualTypeOf<readonly [3, 2]>();
  expect(cut).toEqual({ shape: [10, 8], tile: [4, 4], grid: [3, 2], count: 6 });
});

test('tiles cover every element once', { tags: 'random' }, () => {
  fc.assert(
    fc.property(cuts, ({ layout, cut }) => {
      const covered = ids(cut).flatMap((id) => [...elements(tileOf(cut, layout, id))]);
      expect(covered.sort((a, b) => a - b)).toEqual([...elements(layout)].sort((a, b) => a - b));
    }),
  );
});

test('only tiles at the far edges are clipped, and none is empty', { tags: 'random' }, () => {
  fc.assert(
    fc.property(cuts, ({ layout, cut }) => {
      for (const id of ids(cut)) {
        const position = tilePosition(cut, id);
        tileOf(cut, layout, id).shape.forEach((extent, axis) => {
          expect(extent).toBeGreaterThan(0);
          if (position[axis]! < cut.grid[axis]! - 1) expect(extent).toBe(cut.tile[axis]);
          else expect(extent).toBeLessThanOrEqual(cut.tile[axis]!);
        });
      }
    }),
  );
});

test(
  'tiles have no element in common where the layout does not overlap itself',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(cuts, ({ layout, cut }) => {
        const tiles = ids(cut)
          .slice(0, 12)
          .map((id) => tileOf(cut, layout, id));
        if (isDisjoint(cut, layout))
          tiles.forEach((tile, i) =>
            tiles.slice(i + 1).forEach((other) => expect(overlaps(tile, other)).toBe(false)),
          );
      }),
    );
    const stretched = broadcastTo(contiguous([4]), [4, 4]);
    expect(isDisjoint(partition([4, 4], [2, 2]), stretched)).toBe(false);
    expect(isDisjoint(partition([4, 4], [4, 4]), stretched)).toBe(true);
  },
);

test('numbers and positions of tiles go into each other, row-major', { tags: 'random' }, () => {
  fc.assert(
    fc.property(cuts, ({ layout, cut }) => {
      expect(ids(cut).map((id) => tilePosition(cut, id))).toEqual(indices(cut.grid));
      for (const id of ids(cut)) {
        expect(tileId(cut, tilePosition(cut, id))).toBe(id);
        expect(tileOf(cut, layout, tilePosition(cut, id))).toEqual(tileOf(cut, layout, id));
      }
    }),
  );
});

describe('lists of tiles', () => {
  const cut = partition([10, 8], [4, 4]);

  test('a prefix is the first of them', () => {
    const first = prefix(cut, 4);
    expect(Array.from({ length: first.count }, (_, at) => tileInList(first, at))).toEqual([
      0, 1, 2, 3,
    ]);
    expect(prefix(cut, 0).count).toBe(0);
    expect(() => prefix(cut, 7)).toThrow(
      'count: expected a whole number from 0 to 6 (tiles), got 7.',
    );
  });

  test('a mapped list is in the order given', () => {
    const list = mapped(cut, [5, 0, 3]);
    expect(Array.from({ length: list.count }, (_, at) => tileInList(list, at))).toEqual([5, 0, 3]);
    expect(() => tileInList(list, 3)).toThrow('at: expected a whole number from 0 to 2, got 3.');
    expect(() => mapped(cut, [0, 6])).toThrow(
      'ids[1]: expected a whole number from 0 to 5, got 6.',
    );
    expect(() => mapped(cut, [1, 1])).toThrow('ids[1]: expected each tile once, got 1.');
  });

  test(
    "the shares of a persistent kernel's blocks are the list, and differ by one at most",
    { tags: 'random' },
    () => {
      fc.assert(
        fc.property(
          fc.uniqueArray(fc.nat(5), { minLength: 1 }),
          fc.integer({ min: 1, max: 6 }),
          (list, blocks) => {
            fc.pre(blocks <= list.length);
            const shares = Array.from({ length: blocks }, (_, block) =>
              shareOf(mapped(cut, list), block, blocks),
            );
            expect(shares.flat().sort()).toEqual([...list].sort());
            const lengths = shares.map(({ length }) => length);
            expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(1);
          },
        ),
      );
      expect(shareOf(prefix(cut, 5), 1, 2)).toEqual([1, 3]);
      expect(() => shareOf(prefix(cut, 2), 0, 3)).toThrow(
        'blocks: expected a whole number from 1 to 2, got 3.',
      );
    },
  );
});

test('errors name what does not fit', () => {
  // @ts-expect-error tiles of 1 axes, [4], do not cover [10, 8], which has 2
  expect(() => partition([10, 8], [4])).toThrow(
    'tile: expected 2 extents, one for each axis of [10, 8], got [ 4 ].',
  );
  expect(() => partition([10, 8], [4, 0] as number[])).toThrow(
    'tile[1]: expected a whole number of at least 1, got 0.',
  );
  const cut = partition([10, 8], [4, 4]);
  expect(() => tileOf(cut, contiguous([8, 10]), 0)).toThrow(
    'layout: expected the shape that was cut, [10, 8], got [ 8, 10 ].',
  );
  expect(() => tileOf(cut, contiguous([10, 8]), 6)).toThrow(
    'tile: expected a whole number from 0 to 5, got 6.',
  );
  expect(() => tileOf(cut, contiguous([10, 8]), [3, 0])).toThrow(
    'position[0]: expected a whole number from 0 to 2, got 3.',
  );
  expect(() => tilePosition(partition([0], [4]), 0)).toThrow(
    'tile: expected no tile, since there is nothing to cut, got 0.',
  );
});
