import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';

import { RegionSearch } from './connected-regions.js';
import type { Region } from './connected-regions.js';

/** The regions of a whole map at once. */
function connectedRegions(
  values: Uint8Array,
  width: number,
  height: number,
  threshold: number,
): Region[] {
  const search = new RegionSearch(width, threshold);
  search.add(values.subarray(0, width * height));
  return search.regions();
}

/** A map drawn in characters: # is 200, + is 100, . is 0. */
function drawn(...rows: string[]): [Uint8Array, number, number] {
  return [
    Uint8Array.from(rows.join(''), (mark) => ({ '#': 200, '+': 100 })[mark] ?? 0),
    rows[0]!.length,
    rows.length,
  ];
}

const places = (regions: readonly Region[]): string[] =>
  regions.map(({ runs }) => runs.map(({ y, start, end }) => `${y}:${start}-${end}`).join(' '));

test('pixels that touch at a corner belong together, others do not', () => {
  const regions = connectedRegions(...drawn('##...#', '..#..#', '.#....', '....##'), 150);
  expect(places(regions)).toEqual(['0:0-2 1:2-3 2:1-2', '0:5-6 1:5-6', '3:4-6']);
});

test('parts that join further down are one region', () => {
  expect(places(connectedRegions(...drawn('#.#.#', '#.#.#', '###.#', '..###'), 150))).toEqual([
    '0:0-1 0:2-3 0:4-5 1:0-1 1:2-3 1:4-5 2:0-3 2:4-5 3:2-5',
  ]);
});

test('a value at the threshold is not above it; areas and sums are those of the pixels', () => {
  const [values, width, height] = drawn('+##+', '....');
  expect(places(connectedRegions(values, width, height, 100))).toEqual(['0:1-3']);
  expect(connectedRegions(values, width, height, 99)).toMatchObject([{ area: 4, sum: 600 }]);
  expect(connectedRegions(values, width, height, 200)).toEqual([]);
});

/** The same by filling each region from its first pixel. */
function filled(values: Uint8Array, width: number, height: number, threshold: number): number[][] {
  const seen = new Set<number>();
  const regions: number[][] = [];
  for (let first = 0; first < values.length; first++) {
    if (seen.has(first) || !(values[first]! > threshold)) continue;
    const region: number[] = [];
    const open = [first];
    seen.add(first);
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      region.push(at);
      const [x, y] = [at % width, Math.floor(at / width)];
      for (const [dx, dy] of [
        [-1, -1],
        [0, -1],
        [1, -1],
        [-1, 0],
        [1, 0],
        [-1, 1],
        [0, 1],
        [1, 1],
      ] as const) {
        const next = (y + dy) * width + x + dx;
        if (
          x + dx < 0 ||
          x + dx >= width ||
          y + dy < 0 ||
          y + dy >= height ||
          seen.has(next) ||
          !(values[next]! > threshold)
        )
          continue;
        seen.add(next);
        open.push(next);
      }
    }
    regions.push(region.sort((a, b) => a - b));
  }
  return regions;
}

test('a map that comes some rows at a time has the same regions', { tags: 'random' }, () => {
  const map = fc
    .tuple(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 12 }),
    )
    .chain(([width, height, rows]) =>
      fc.tuple(
        fc.uint8Array({ minLength: width * height, maxLength: width * height }),
        fc.constant(width),
        fc.constant(height),
        fc.constant(rows),
      ),
    );
  fc.assert(
    fc.property(map, ([values, width, height, rows]) => {
      const search = new RegionSearch(width, 100);
      for (let row = 0; row < height; row += rows)
        search.add(values.subarray(row * width, (row + rows) * width));
      expect(search.regions()).toEqual(connectedRegions(values, width, height, 100));
    }),
    { numRuns: 200 },
  );
});

test('regions are those that filling finds, in its order', { tags: 'random' }, () => {
  const map = fc
    .tuple(fc.integer({ min: 1, max: 14 }), fc.integer({ min: 1, max: 14 }))
    .chain(([width, height]) =>
      fc.tuple(
        fc.uint8Array({ minLength: width * height, maxLength: width * height }),
        fc.constant(width),
        fc.constant(height),
        fc.integer({ min: 0, max: 255 }),
      ),
    );
  fc.assert(
    fc.property(map, ([values, width, height, threshold]) => {
      const regions = connectedRegions(values, width, height, threshold);
      const expected = filled(values, width, height, threshold);
      expect(
        regions.map(({ runs }) =>
          runs.flatMap(({ y, start, end }) =>
            Array.from({ length: end - start }, (_, i) => y * width + start + i),
          ),
        ),
      ).toEqual(expected);
      expect(regions.map(({ area, sum }) => [area, sum])).toEqual(
        expected.map((pixels) => [
          pixels.length,
          pixels.reduce((total, at) => total + values[at]!, 0),
        ]),
      );
    }),
    { numRuns: 300 },
  );
});
