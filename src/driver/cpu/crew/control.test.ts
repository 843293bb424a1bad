/** The number of blocks of a grid that one call runs. */
import { describe, expect, test } from 'vitest';

import { JOB, JOB_WORDS, pieceOf } from './control.js';

interface Grid {
  readonly gridX: number;
  readonly total: number;
  readonly most: number;
  readonly least: number;
  readonly parts: number;
  readonly strip: number;
}

/** The pieces that a grid is taken in, from its first block to its last. */
function piecesOf(grid: Grid): { block: number; count: number }[] {
  const words = new Int32Array(JOB_WORDS);
  for (const [name, value] of Object.entries(grid)) words[JOB[name as keyof Grid]] = value;
  const pieces: { block: number; count: number }[] = [];
  for (let block = 0; block < grid.total; block += pieces.at(-1)!.count)
    pieces.push({ block, count: pieceOf(words, 0, block) });
  return pieces;
}

describe.each<Grid>([
  { gridX: 1024, total: 1024, most: 40, least: 4, parts: 8, strip: 1024 },
  { gridX: 30, total: 30 * 17, most: 64, least: 3, parts: 4, strip: 15 },
  { gridX: 64, total: 64 * 64, most: 62, least: 8, parts: 4, strip: 32 },
  { gridX: 63, total: 63 * 64, most: 62, least: 1, parts: 4, strip: 32 },
  { gridX: 64, total: 64 * 64, most: 62, least: 8, parts: 32, strip: 4 },
  { gridX: 64, total: 64 * 64, most: 10, least: 1, parts: 4, strip: 32 },
  { gridX: 1, total: 50, most: 16, least: 2, parts: 8, strip: 1 },
  { gridX: 7, total: 7, most: 1024, least: 1, parts: 8, strip: 7 },
  {
    gridX: 2 ** 31 - 1,
    total: 2 ** 31 - 1,
    most: 2 ** 28,
    least: 2 ** 20,
    parts: 2,
    strip: 2 ** 31 - 1,
  },
])('$total blocks in rows of $gridX and strips of $strip', (grid) => {
  const pieces = piecesOf(grid);
  // No strip is shorter than the shortest piece. Where even the longest piece is shorter than a
  // strip, pieces end anywhere.
  const strip = Math.max(grid.strip, grid.least);
  const ends = (block: number): boolean =>
    block % grid.gridX === 0 || (grid.most >= strip && (block % grid.gridX) % strip === 0);

  test('each block is in one piece, which lies in one row', () => {
    expect(pieces.reduce((sum, { count }) => sum + count, 0)).toBe(grid.total);
    for (const { block, count } of pieces) {
      expect(count).toBeGreaterThan(0);
      expect(Math.floor(block / grid.gridX)).toBe(Math.floor((block + count - 1) / grid.gridX));
    }
  });

  test(
    'no piece is longer than one may be, nor longer than its part of what is left where that ' +
      'is not too short',
    () => {
      for (const { block, count } of pieces) {
        expect(count).toBeLessThanOrEqual(grid.most);
        expect(count).toBeLessThanOrEqual(Math.max((grid.total - block) / grid.parts, grid.least));
      }
    },
  );

  test('no piece goes on where a strip ends, unless pieces are shorter than strips', () => {
    for (const { block, count } of pieces)
      for (let inside = block + 1; inside < Math.min(block + count, block + 10_000); inside++)
        if (ends(inside)) expect.fail(`${block} + ${count}`);
  });

  test('pieces are as long as that where neither a row nor a strip ends', () => {
    for (const { block, count } of pieces) {
      if (!ends(block + count))
        expect(count).toBe(
          Math.min(grid.most, Math.max(Math.floor((grid.total - block) / grid.parts), grid.least)),
        );
    }
  });
});
