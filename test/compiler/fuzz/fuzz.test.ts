/**
 * Random kernels give the same results as JavaScript and as PTX on the CPU device, bit for bit, but
 * for the bits of a NaN.
 *
 * A failure prints the command that runs it again and the smallest kernel found that differs, as
 * the simulation's JavaScript.
 */
import { expect, test } from 'vitest';
import { writeJavaScript } from '../../../src/compiler/simulate/javascript.js';
import { difference } from './compare.test-support.js';
import { randomKernel } from './random-kernel.test-support.js';
import { smallestTree } from './smallest-tree.test-support.js';
import { failureOf, seedsOf } from '../../random-runs.js';

const SEEDS = seedsOf(40);
const CASES = SEEDS.length;

/** What differs for the seed, with the smallest kernel; undefined where nothing does. */
function check(seed: number): string | undefined {
  const kernel = randomKernel(seed);
  const tell = (): string | undefined => {
    try {
      return difference(kernel, seed)?.what;
    } catch (error) {
      return `${String(error)}`;
    }
  };
  const what = tell();
  if (what === undefined) return undefined;
  const threw = /^[A-Za-z]*Error: (.{0,20})/.exec(what)?.[1];
  const tree = smallestTree(kernel.tree, (candidate) => {
    try {
      return difference({ ...kernel, tree: candidate }, seed) !== undefined && threw === undefined;
    } catch (error) {
      return threw !== undefined && String(error).includes(threw);
    }
  });
  let left: string;
  try {
    left = difference({ ...kernel, tree }, seed)?.what ?? '';
  } catch (error) {
    left = String(error).slice(0, 300);
  }
  const { code } = writeJavaScript(tree);
  return failureOf(
    seed,
    `${what.slice(0, 300)}\nthe smallest: ${left}\n${code.slice(0, code.indexOf('//#'))}`,
  );
}

test(
  `${CASES} random kernels give the same as JavaScript and as PTX`,
  () => {
    const found: string[] = [];
    for (const seed of SEEDS) {
      if (found.length === 3) break;
      const what = check(seed);
      if (what !== undefined) found.push(what);
    }
    expect(found.join('\n\n')).toBe('');
  },
  30_000 + CASES * 2_000,
);

test('a seed gives the same kernel every time', () => {
  const text = (seed: number): string => writeJavaScript(randomKernel(seed).tree).code;
  expect(text(7)).toBe(text(7));
  expect(text(7)).not.toBe(text(8));
});

test('a kernel that differs is reduced', () => {
  // Every kernel that contains a square root counts as one that differs.
  const hasRoot = (code: string): boolean => code.includes('Math.sqrt(');
  let seed = 1;
  while (!hasRoot(writeJavaScript(randomKernel(seed).tree).code)) seed++;
  const { tree } = randomKernel(seed);
  const code = writeJavaScript(
    smallestTree(tree, (candidate) => hasRoot(writeJavaScript(candidate).code)),
  ).code;
  expect(hasRoot(code)).toBe(true);
  expect(code.slice(0, code.indexOf('//#')).split('\n').length).toBeLessThan(12);
});
