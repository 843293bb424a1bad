/** Checks of the options of random numbers. */
import { randomBytes } from 'node:crypto';

import { invalid } from '../ground/arguments.js';
import type { DType } from '../core/index.js';

/**
 * The greatest finite number of each dtype of random numbers. Numbers of all but f64 are computed
 * in f32.
 */
const GREATEST: Readonly<Partial<Record<string, number>>> = {
  f16: 65504,
  bf16: 3.3895313892515355e38,
  f32: 3.4028234663852886e38,
  f64: Number.MAX_VALUE,
};

/**
 * Gives the seed as a key of 64 bits; undefined where none was given.
 *
 * @throws CudaArgumentError for a seed that is no whole number below 2^64
 */
export function checkedSeed(seed: unknown): bigint | undefined {
  if (seed === undefined) return undefined;
  if (
    typeof seed === 'bigint'
      ? seed < 0n || seed >= 1n << 64n
      : !Number.isSafeInteger(seed) || (seed as number) < 0
  ) {
    throw invalid(
      'options.seed',
      'a whole number from 0 to 2^64 - 1',
      seed,
      typeof seed === 'number' && seed > Number.MAX_SAFE_INTEGER
        ? 'Beyond 2^53 write a bigint: 2n ** 60n.'
        : '',
    );
  }
  return BigInt(seed as number | bigint);
}

/**
 * Gives a key where no seed was given: a new one for each run, from the system's random number
 * generator.
 */
export function freshSeed(): bigint {
  return randomBytes(8).readBigUInt64LE();
}

/**
 * @throws CudaArgumentError for bounds that the dtype does not have, in the wrong order, or too far
 *   apart
 */
export function checkRange({ name }: DType, from: unknown, to: unknown): void {
  const greatest = GREATEST[name] ?? Infinity;
  for (const [argument, bound] of [
    ['options.from', from],
    ['options.to', to],
  ] as const) {
    if (typeof bound !== 'number' || !Number.isFinite(bound))
      throw invalid(argument, 'a finite number', bound);
    if (Math.abs(bound) > greatest)
      throw invalid(argument, `from ${-greatest} to ${greatest}, for ${name}`, bound);
  }
  const [least, beyond] = [from as number, to as number];
  if (beyond < least) throw invalid('options.to', `at least options.from, ${least}`, beyond);
  const width = GREATEST[name === 'f64' ? 'f64' : 'f32']!;
  if (beyond - least > width)
    throw invalid(
      'options.to',
      `at most ${width} above options.from, ${least}, for ${name}`,
      beyond,
      'Make numbers of half the range, and multiply them by 2.',
    );
}
