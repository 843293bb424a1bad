/**
 * How much the random and the repeated tests do, and how a failure of one is run again.
 *
 * ASYNC_CUDA_TEST_SCALE multiplies the number of runs of each random test: `npm test` sets 0.05,
 * `npm run test:thorough` 1. ASYNC_CUDA_TEST_SEED is the seed of the first run. vitest.config.ts
 * sets both, unless the environment has them.
 */
import { relative } from 'node:path';
import { TestRunner, expect } from 'vitest';

const { ASYNC_CUDA_TEST_SCALE, ASYNC_CUDA_TEST_SEED } = process.env;

export const scale = Number(ASYNC_CUDA_TEST_SCALE ?? 1);
if (!(scale > 0)) {
  throw new RangeError(
    `ASYNC_CUDA_TEST_SCALE is ${ASYNC_CUDA_TEST_SCALE}; it must be a number above 0`,
  );
}

/** The seed that the environment names; undefined where each run takes another. */
export const namedSeed =
  ASYNC_CUDA_TEST_SEED === undefined || ASYNC_CUDA_TEST_SEED === ''
    ? undefined
    : Number(ASYNC_CUDA_TEST_SEED);

/** Tags of tests that run in both extents. */
const OF_BOTH = ['random', 'scaled', 'base'];

/** A test with fewer runs in `npm test` would never have all of them without one of these tags. */
function checkTags(): void {
  const current = TestRunner.getCurrentTest();
  if (scale >= 1 || current === undefined) return;
  if (!OF_BOTH.some((tag) => current.tags?.includes(tag)))
    throw new Error(
      `'${current.name}' makes fewer runs in \`npm test\`: give it the tag 'random' (or ` +
        "'scaled', where it goes through a table), so that the thorough tests have it, too",
    );
}

/** The number of `full` runs after scaling: one at the least. */
export function scaled(full: number): number {
  checkTags();
  return Math.max(1, Math.ceil(full * scale));
}

/** The seeds of a random test that makes `full` runs: consecutive numbers. */
export function seedsOf(full: number): number[] {
  const first = namedSeed ?? (Math.random() * 2 ** 31) >>> 0;
  return Array.from({ length: scaled(full) }, (_, i) => first + i);
}

/**
 * The command that runs the current test again. With a seed as `seed`, and with one run of it where
 * `runs` is 1.
 */
export function runAgain(seed: number, runs?: number): string {
  const { testPath, currentTestName } = expect.getState();
  const file = testPath === undefined ? '' : ` ${relative(process.cwd(), testPath)}`;
  // A test's name is an expression there, and ' > ' stands for nothing between its parts.
  const name =
    currentTestName === undefined
      ? ''
      : ` -t '${currentTestName.replaceAll(' > ', ' ').replace(/[^\w ,:-]/g, '.')}'`;
  // The smallest scale leaves one run.
  const scaleThen = runs === 1 ? 1e-9 : scale;
  return (
    `ASYNC_CUDA_TEST_SEED=${seed} ASYNC_CUDA_TEST_SCALE=${scaleThen} ` +
    `npx vitest run --mode all${file}${name}`
  );
}

/** The message of a failure of the run with this seed alone. */
export function failureOf(seed: number, what: string): string {
  return `${what}\nTo run it again: ${runAgain(seed, 1)}`;
}

/** The indices of `count` of `length` rows: evenly spread, with 0. */
function quickPlaces(length: number, count: number): Set<number> {
  const step = length / Math.min(count, length);
  return new Set(Array.from({ length: count }, (_, i) => Math.floor(i * step)));
}

/**
 * The rows that one test goes through: all of them at scale 1, and at a smaller one `count`, evenly
 * spread and the first among them. The test is tagged `scaled` or `random`: it is in both extents.
 */
export function scaledRows<T>(rows: readonly T[], count: number): readonly T[] {
  checkTags();
  const taken = quickPlaces(rows.length, count);
  return scale < 1 ? rows.filter((_, i) => taken.has(i)) : rows;
}

/**
 * `each` of `test` or `describe`, of whose rows `count` belong to `npm test`, evenly spread over
 * the table and the first among them. The others are tagged `thorough`.
 */
export function someOf<T extends { readonly each: unknown }>(count: number, of: T): T['each'] {
  type Declare = (...args: unknown[]) => void;
  const each = (rows: readonly unknown[]) =>
    (of as unknown as { each: (rows: readonly unknown[]) => Declare }).each(rows);
  const declare =
    (rows: readonly unknown[]): Declare =>
    (title, ...rest) => {
      const taken = quickPlaces(rows.length, count);
      const [body, timeout] = rest.length === 2 && typeof rest[0] === 'object' ? [rest[1]] : rest;
      const options = {
        ...(typeof rest[0] === 'object' ? rest[0] : {}),
        ...(typeof timeout === 'number' ? { timeout } : {}),
      } as { tags?: string | string[] };
      const quick = rows.filter((_, i) => taken.has(i));
      const others = rows.filter((_, i) => !taken.has(i));
      each(quick)(title, options, body);
      if (others.length === 0) return;
      each(others)(title, { ...options, tags: ['thorough'].concat(options.tags ?? []) }, body);
    };
  return declare as unknown as T['each'];
}

/**
 * The tags of a test that a loop over `rows` declares: as with `someOf`, `count` rows belong to
 * `npm test`.
 */
export function tagsOf<T>(rows: readonly T[], row: T, count: number): string[] {
  return quickPlaces(rows.length, count).has(rows.indexOf(row)) ? [] : ['thorough'];
}
