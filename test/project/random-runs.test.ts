/** What random tests scale by, and what a failure of one prints. */
import { describe, expect, test } from 'vitest';

import * as fc from '../fast-check.js';
import {
  failureOf,
  runAgain,
  scale,
  scaled,
  scaledRows,
  seedsOf,
  someOf,
  tagsOf,
} from '../random-runs.js';

const FILE = 'test/project/random-runs.test.ts';

test('a number of runs is scaled, and one is left at the least', { tags: 'random' }, () => {
  expect(scaled(1000)).toBe(Math.ceil(1000 * scale));
  expect(scaled(1)).toBeGreaterThanOrEqual(1);
  expect(seedsOf(1000)).toHaveLength(scaled(1000));
  const [first, second] = seedsOf(1000);
  expect(second).toBe(first! + 1);
});

test('a test without a tag that makes fewer runs is refused', () => {
  if (scale < 1) expect(() => scaled(10)).toThrow("give it the tag 'random'");
  else expect(scaled(10)).toBeGreaterThanOrEqual(10);
});

describe('the command that repeats a failure', () => {
  test("names the file, the test's name (as an expression), the seed and the scale", () => {
    expect(runAgain(-7)).toBe(
      `ASYNC_CUDA_TEST_SEED=-7 ASYNC_CUDA_TEST_SCALE=${scale} npx vitest run --mode all ${FILE} ` +
        "-t 'the command that repeats a failure names the file, the test.s name " +
        ".as an expression., the seed and the scale'",
    );
  });

  test('is printed by a property that fails', { tags: 'random' }, () => {
    const property = fc.property(fc.nat(), (x) => x < 0);
    expect(() => {
      fc.assert(property, { seed: 12 });
    }).toThrow(/seed: 12[^]*\nTo run it again: ASYNC_CUDA_TEST_SEED=12 /);
  });

  test('is printed by an asynchronous property that fails', { tags: 'random' }, async () => {
    const property = fc.asyncProperty(fc.nat(), async (x) => x < 0);
    await expect(fc.assert(property, { seed: 12 })).rejects.toThrow(
      /\nTo run it again: ASYNC_CUDA_TEST_SEED=12 /,
    );
  });

  test('runs a seed of a loop alone', () => {
    expect(failureOf(3, 'wrong')).toMatch(
      /^wrong\nTo run it again: ASYNC_CUDA_TEST_SEED=3 ASYNC_CUDA_TEST_SCALE=1e-9 npx /,
    );
  });
});

test('a property makes as many runs as the scale leaves', { tags: 'random' }, () => {
  let runs = 0;
  fc.assert(
    fc.property(fc.nat(), () => {
      runs++;
    }),
    { numRuns: 200 },
  );
  expect(runs).toBe(scaled(200));
});

test(
  'a property makes as many runs as it needs, however small the scale',
  { tags: 'random' },
  () => {
    let runs = 0;
    fc.assert(
      fc.property(fc.nat(), () => {
        runs++;
      }),
      { numRuns: 5, leastRuns: 20 },
    );
    expect(runs).toBe(Math.max(20, scaled(5)));
  },
);

describe('rows of a table', () => {
  /** Declares rows as `someOf` does, on an `each` that notes what it is given. */
  const declared = (count: number, rows: readonly unknown[], ...rest: unknown[]): unknown[] => {
    const notes: unknown[] = [];
    const each =
      (given: readonly unknown[]) =>
      (...args: unknown[]): unknown =>
        notes.push([given, ...args]);
    (someOf(count, { each }) as typeof each)(rows)('title', ...rest);
    return notes;
  };
  const body = (): void => undefined;

  test('are divided evenly, the first among the quick ones, and none is lost', () => {
    expect(declared(2, [1, 2, 3, 4, 5], body)).toEqual([
      [[1, 3], 'title', {}, body],
      [[2, 4, 5], 'title', { tags: ['thorough'] }, body],
    ]);
  });

  test('are all quick where there are few', () => {
    expect(declared(5, [1, 2], body)).toEqual([[[1, 2], 'title', {}, body]]);
  });

  test('keep their options, tags and time limits', () => {
    expect(declared(1, [1, 2], { tags: 'random', retry: 1 }, body)).toEqual([
      [[1], 'title', { tags: 'random', retry: 1 }, body],
      [[2], 'title', { tags: ['thorough', 'random'], retry: 1 }, body],
    ]);
    expect(declared(1, [1, 2], body, 500)[1]).toEqual([
      [2],
      'title',
      { timeout: 500, tags: ['thorough'] },
      body,
    ]);
  });

  test('that one test goes through are all taken at scale 1', { tags: 'scaled' }, () => {
    const rows = [1, 2, 3, 4, 5];
    expect(scaledRows(rows, 2)).toEqual(scale < 1 ? [1, 3] : rows);
    expect(scaledRows(rows, 9)).toEqual(rows);
  });

  test('that a loop declares are divided in the same way', () => {
    for (const length of [1, 2, 5, 7, 100]) {
      for (const count of [1, 2, 3, 7]) {
        const rows = Array.from({ length }, (_, i) => i);
        const [[quick]] = declared(count, rows, body) as [[number[]]];
        expect(rows.filter((row) => tagsOf(rows, row, count).length === 0)).toEqual(quick);
      }
    }
  });
});
