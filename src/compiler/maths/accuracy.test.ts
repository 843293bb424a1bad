import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { realFunctions, realOf, unitsBetween } from './exact-reals.test-support.js';
import { mathsTexts } from './index.js';
import { f32OfBits, f64OfBits, runnable } from './run-text.test-support.js';
import { scale, scaled } from '../../../test/random-runs.js';

type Float = 'f32' | 'f64';

/**
 * The table of README.md: for each function the largest error in units of the last place, in f32
 * and f64.
 */
const stated = new Map(
  [
    ...readFileSync(new URL('./README.md', import.meta.url), 'utf8').matchAll(
      /^\| `(?:Math|gpu)\.(\w+)` \| ([\d.]+) \| ([\d.]+) \|/gm,
    ),
  ].map(([, name, f32, f64]) => [name!, { f32: Number(f32), f64: Number(f64) }] as const),
);

/** Functions of two arguments. */
const pairs = new Set(['pow', 'atan2', 'hypot']);

/** A generator of 32-bit numbers with a fixed seed: Marsaglia's xorshift. */
function randomWords(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

const special = [
  0,
  1,
  2,
  3,
  10,
  0.5,
  1.5,
  2.5,
  1e3,
  2 ** 24 - 1,
  2 ** 24,
  2 ** 25,
  2 ** 53 - 1,
  2 ** 53,
  1e10,
  1e-10,
  1e38,
  1e-40,
  1.401298464324817e-45,
  1.1754943508222875e-38,
  3.4028234663852886e38,
  0.9999999403953552,
  1.0000001192092896,
  0.9999999999999999,
  1.0000000000000002,
  5e-324,
  2.2250738585072014e-308,
  1.7976931348623157e308,
  Infinity,
  NaN,
].flatMap((value) => [value, -value]);
/**
 * Points where the algorithms of functions change, and multiples of the constants of argument
 * reduction.
 */
const turns = [
  0.55,
  0.5,
  0.75,
  Math.SQRT1_2,
  Math.SQRT2,
  1,
  3.93,
  5.95,
  105615,
  536870912,
  88.72284,
  88.72283,
  -103.97208,
  -87.33655,
  89,
  -104,
  709.7827128933841,
  -745.1332191019412,
  -708.4,
  17.3,
  36.7,
  1e9,
  1e18,
  ...Array.from({ length: 40 }, (_, k) => ((k + 1) * Math.PI) / 4),
  ...Array.from({ length: 20 }, (_, k) => (k - 9.5) * Math.LN2),
  6381956970095103 * 2 ** 797,
];

/**
 * Every exponent with random mantissas, random numbers of usual sizes, and numbers next to the
 * points of change, in the type.
 */
function* samples(type: Float, each: number, seed: number): Generator<number> {
  const word = randomWords(seed);
  const near = (value: number, step: number): number =>
    type === 'f32'
      ? Math.fround(Math.fround(value) * (1 + step * 2 ** -23))
      : value * (1 + step * 2 ** -52);
  for (const value of special) yield type === 'f32' ? Math.fround(value) : value;
  for (const value of turns) for (let step = -3; step <= 3; step++) yield near(value, step);
  const exponents = type === 'f32' ? 255 : 2047;
  const stride = (type === 'f32' ? 1 : 16) * (scale < 1 ? 7 : 1);
  for (let exponent = 0; exponent < exponents; exponent += stride) {
    for (let count = 0; count < each; count++) {
      const top = word();
      yield type === 'f32'
        ? f32OfBits(((top & 0x807fffff) | (exponent << 23)) >>> 0)
        : f64OfBits(
            ((BigInt((top & 0x800fffff) >>> 0) | BigInt(exponent << 20)) << 32n) | BigInt(word()),
          );
    }
  }
  for (const size of [0.5, 1, 2, 8, 100, 800]) {
    for (let count = 0; count < each * 8; count++) {
      const value = (word() / 2 ** 31 - 1 + word() / 2 ** 63) * size;
      yield type === 'f32' ? Math.fround(value) : value;
    }
  }
}

const erf64 = runnable('erf', mathsTexts['erf']!.f64!, 'f64');

/**
 * JavaScript's results, and IEEE 754's of pow; rsqrt and erf from their definitions. They are
 * doubles within one unit of their own last place.
 */
function javaScript(name: string): (x: number, y: number) => number {
  if (name === 'pow')
    return (x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y);
  if (name === 'rsqrt') return (x) => 1 / Math.sqrt(x);
  if (name === 'erf') return erf64;
  return Math[name as 'atan2'];
}

/** The error of an f32 against a double, in units of f32's last place. */
function unitsOfF32(found: number, wanted: number): number {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(wanted))), -126);
  const limit = 2 ** 128;
  return (
    Math.abs(Math.min(Math.max(found, -limit), limit) - Math.min(Math.max(wanted, -limit), limit)) /
    2 ** (Math.min(exponent, 127) - 23)
  );
}

const sameSpecial = (wanted: number): boolean => wanted === 0 || !Number.isFinite(wanted);

test('README.md states an accuracy for every function', () => {
  expect([...stated.keys()].sort()).toEqual(Object.keys(mathsTexts).sort());
});

describe.each(Object.keys(mathsTexts))('%s', (name) => {
  const reference = javaScript(name);
  const seconds = (value: number): readonly number[] =>
    pairs.has(name) ? [value * 0.37, -2.5, 3, 1e-3, 17.25] : [0];

  test(
    "f32 has the accuracy of README.md, and the standard's zeros, infinities and NaN",
    { tags: 'random' },
    () => {
      const run = runnable(name, mathsTexts[name]!.f32!, 'f32');
      const bound = stated.get(name)!.f32;
      let count = 0;
      for (const x of samples('f32', pairs.has(name) ? 4 : 24, 0x1234567)) {
        for (const second of seconds(x)) {
          const y = Math.fround(second);
          const found = run(x, y);
          const wanted = reference(x, y);
          count++;
          // A double that is 0 or infinite where the exact result is not: it is out of range for
          // every f32, too.
          if (sameSpecial(wanted)) {
            if (!Object.is(found, wanted))
              expect.fail(`${name}(${x}, ${y}) gives ${found}, not ${wanted}`);
          } else {
            const error = unitsOfF32(found, wanted);
            if (!(error <= bound))
              expect.fail(`${name}(${x}, ${y}) gives ${found}, not ${wanted}: ${error} units`);
          }
        }
      }
      expect(count).toBeGreaterThan(scaled(5000));
    },
  );

  test('f64 has the accuracy of README.md against exact reals', { tags: 'random' }, () => {
    const run = runnable(name, mathsTexts[name]!.f64!, 'f64');
    const real = realFunctions[name]!;
    const bound = stated.get(name)!.f64;
    let count = 0;
    for (const x of samples('f64', 1, 0x7654321)) {
      for (const y of seconds(x).slice(0, 2)) {
        const found = run(x, y);
        const wanted = reference(x, y);
        // Reals have no signed zeros; the special numbers below cover them.
        if (pairs.has(name) && (x === 0 || y === 0)) continue;
        if (sameSpecial(wanted) || !Number.isFinite(x)) {
          if (!Object.is(found, wanted))
            expect.fail(`${name}(${x}, ${y}) gives ${found}, not ${wanted}`);
        } else {
          count++;
          const exact =
            name === 'pow' && x < 0
              ? (y % 2 === 0 ? 1n : -1n) * real(realOf(-x), realOf(y))
              : real(realOf(x), realOf(y));
          const error = unitsBetween(found, exact, 'f64');
          if (!(error <= bound))
            expect.fail(`${name}(${x}, ${y}) gives ${found}, not ${wanted}: ${error} units`);
        }
      }
    }
    expect(count).toBeGreaterThan(scaled(150));
  });
});

describe.each([...pairs])('%s', (name) => {
  const reference = javaScript(name);

  test.each(['f32', 'f64'] as const)(
    "%s has the standard's result for every pair of special numbers",
    (type) => {
      const run = runnable(name, mathsTexts[name]![type]!, type);
      const bound = stated.get(name)![type];
      const values = special.map((value) => (type === 'f32' ? Math.fround(value) : value));
      for (const x of values) {
        for (const y of values) {
          const found = run(x, y);
          const wanted = reference(x, y);
          const same = sameSpecial(wanted)
            ? Object.is(found, wanted)
            : type === 'f32'
              ? unitsOfF32(found, wanted) <= bound
              : Math.abs(found - wanted) <= Math.abs(wanted) * 2 ** -51 + 5e-324;
          if (!same) expect.fail(`${name}(${x}, ${y}) gives ${found}, not ${wanted}`);
        }
      }
      expect(values).toHaveLength(special.length);
    },
  );
});
