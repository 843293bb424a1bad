/** What counts as equal in the comparison with a GPU. */
import * as fc from '../fast-check.js';
import { describe, expect, test } from 'vitest';

import { canonicalBytes, difference, near, numbersOf } from './equality.js';

const word = (bits: number): number => new Float32Array(Uint32Array.of(bits).buffer)[0]!;
const bitsOf = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0]!;

describe('bits', () => {
  test.each([
    [0, -0],
    [1, 1 + 2 ** -23],
    [Infinity, -Infinity],
    [NaN, 0],
  ])('%s is not %s', (a, b) => {
    expect(difference([a], [b], 'bits', 'f32')).toContain('1 of 1 elements differ');
  });

  test('NaN is NaN', () => {
    expect(difference([NaN, 1], [NaN, 1], 'bits', 'f64')).toBeUndefined();
  });

  test('another length differs', () => {
    expect(difference([1], [1, 2], 'bits', 'integer')).toBe('1 elements, not 2');
  });
});

describe('near', () => {
  test('counts units in the last place of a float', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0x00000000, max: 0x7f7fff00 }),
        fc.integer({ min: 1, max: 60 }),
        (bits, steps) => {
          const [a, b] = [word(bits), word(bits + steps)];
          expect(difference([b], [a], near(steps), 'f32')).toBeUndefined();
          // Where the exponent changes in between, the larger unit counts: up to twice as many
          // steps of the smaller.
          expect(difference([b], [a], near((steps - 1) / 2), 'f32')).toBeDefined();
        },
      ),
    );
  });

  test('counts from the floor where the values are smaller', () => {
    expect(difference([1e-9], [-1e-9], near(1, 1), 'f32')).toBeUndefined();
    expect(difference([2 ** -22], [0], near(1, 1), 'f32')).toBeDefined();
    expect(difference([2 ** -22], [0], near(2, 1), 'f32')).toBeUndefined();
    expect(difference([1 + 2 ** -10], [1], near(1), 'f16')).toBeUndefined();
    expect(difference([1 + 2 ** -7], [1], near(1), 'f16')).toBeDefined();
    expect(difference([1 + 2 ** -7], [1], near(1), 'bf16')).toBeUndefined();
  });

  test.each([
    [Infinity, 3.4e38],
    [NaN, 1],
    [1, NaN],
    [Infinity, -Infinity],
  ])('%s is never near %s', (a, b) => {
    expect(difference([a], [b], near(1e9, 1e30), 'f32')).toBeDefined();
  });
});

test(
  'NaNs of every payload have the same bytes, and nothing else changes',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffffffff }), { maxLength: 20 }), (bits) => {
        const words = Uint32Array.of(...bits, 0x7f800001, 0xffc00000, 0x7f800000, 0x80000000);
        const canonical = new Uint32Array(
          canonicalBytes(new Float32Array(words.buffer), 'f32').buffer,
        );
        words.forEach((before, i) =>
          expect(canonical[i]).toBe(Number.isNaN(word(before)) ? 0x7fffffff : before),
        );
      }),
    );
    expect([
      ...new Uint16Array(
        canonicalBytes(Uint16Array.of(0x7c01, 0x7c00, 0xfe00, 0x3c00), 'f16').buffer,
      ),
    ]).toEqual([0x7fff, 0x7c00, 0x7fff, 0x3c00]);
    expect([
      ...new Uint16Array(canonicalBytes(Uint16Array.of(0x7c01, 0x7f80, 0xff81), 'bf16').buffer),
    ]).toEqual([0x7c01, 0x7f80, 0x7fff]);
    expect([
      ...new BigUint64Array(canonicalBytes(Float64Array.of(NaN, -Infinity), 'f64').buffer),
    ]).toEqual([0x7fffffffffffffffn, 0xfff0000000000000n]);
  },
);

test('words of halves and bfloats are read as their values', () => {
  expect([
    ...(numbersOf(Uint16Array.of(0x3c00, 0xfbff, 0x0001, 0x7c00, 0x8000), 'f16') as Float64Array),
  ]).toEqual([1, -65504, 2 ** -24, Infinity, -0]);
  const words = Uint16Array.from({ length: 65536 }, (_, i) => i);
  const values = numbersOf(words, 'bf16') as Float64Array;
  words.forEach((bits, i) => {
    if (!Number.isNaN(values[i])) expect(bitsOf(values[i]!) >>> 16).toBe(bits);
  });
});
