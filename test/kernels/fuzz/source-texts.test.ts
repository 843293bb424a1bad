/**
 * Random kernels, written as text, have the same results in simulation and on the device, bit for
 * bit, but for the bits of a NaN.
 *
 * A failure prints the command that runs it again, and the smallest text found that fails in the
 * same way.
 */
import { CudaCompileError, Device } from 'async-cuda';
import { expect, test } from 'vitest';

import { onDevice } from '../../core/test-device.js';
import { differenceOf } from './compare-source.js';
import { randomSource } from './random-source.js';
import { smallerSource } from './smaller-source.js';
import { failureOf, seedsOf } from '../../random-runs.js';

const SEEDS = seedsOf(25);
const RUNS = SEEDS.length;
const MOST_TOLD = 3;

/** The value of random literals may be an error of the language. */
const REFUSED = /This divides by zero|holds no negative|is never negative/;

/** How the same failure is recognised: a difference at all, or the beginning of the error. */
const kindOf = (what: string): string =>
  what.includes('in simulation')
    ? 'differs'
    : what
        .split('\n')[0]!
        .replace(/^.*?column \d+[^:]*: /, '')
        .slice(0, 50);

async function outcome(
  source: ReturnType<typeof randomSource>,
  seed: number,
  device: Device,
): Promise<string | undefined> {
  try {
    return await differenceOf(source, seed, device);
  } catch (error) {
    return error instanceof CudaCompileError && REFUSED.test(error.message)
      ? undefined
      : String(error);
  }
}

async function check(seed: number, device: Device): Promise<string | undefined> {
  const source = randomSource(seed);
  const what = await outcome(source, seed, device);
  if (what === undefined) return undefined;
  const text = await smallerSource(source.text, async (candidate) => {
    const other = await outcome({ ...source, text: candidate }, seed, device);
    return other !== undefined && kindOf(other) === kindOf(what);
  });
  const smallest = await outcome({ ...source, text }, seed, device);
  return failureOf(
    seed,
    `${what}\nThe smallest: ${smallest}\n${text}\n${JSON.stringify(source.functions)}`,
  );
}

onDevice(
  'Random texts of kernels',
  (host) => {
    test(
      `${RUNS} give the same in simulation and on the device`,
      async () => {
        const device = Device.of(host.device);
        const found: string[] = [];
        for (const seed of SEEDS) {
          if (found.length >= MOST_TOLD) break;
          const what = await check(seed, device);
          if (what !== undefined) found.push(what);
        }
        expect(found.join('\n\n')).toBe('');
      },
      60_000 + RUNS * 4_000,
    );
  },
  ['worker'],
);

test('a seed gives the same text every time', () => {
  expect(randomSource(7)).toEqual(randomSource(7));
  expect(randomSource(7).text).not.toBe(randomSource(8).text);
});

test('some of them have structures and dynamic shared memory', () => {
  const texts = Array.from({ length: 100 }, (_, seed) => randomSource(seed + 1).text);
  for (const part of ['rows[i].', 'table[', 'one.', 'spare[gpu.threadIdx.x] ='])
    expect(texts.filter((text) => text.includes(part)).length, part).toBeGreaterThan(2);
});

test('a text that fails is reduced', async () => {
  let seed = 1;
  while (!/Math\.sqrt\(/.test(randomSource(seed).text)) seed++;
  const text = await smallerSource(
    randomSource(seed).text,
    (candidate) => Promise.resolve(candidate.includes('Math.sqrt(')),
    5000,
  );
  expect(text).toContain('Math.sqrt(');
  expect(text.split('\n').length).toBeLessThan(6);
});
