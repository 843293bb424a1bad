/** `fmaf` against exact arithmetic on big integers. */
import { expect, test } from 'vitest';

import { fmaf } from './fma.js';

/**
 * a × b + c rounded once, for f32 operands that are multiples of 2^-40 and a result below 2^53
 * units of 2^-80.
 */
function exact(a: number, b: number, c: number): number {
  const units = (value: number, exponent: number): bigint => BigInt(value * 2 ** exponent);
  const sum = units(a, 40) * units(b, 40) + (units(c, 40) << 40n);
  const magnitude = sum < 0n ? -sum : sum;
  const surplus = BigInt(Math.max(magnitude.toString(2).length - 24, 0));
  let mantissa = magnitude >> surplus;
  const rest = magnitude - (mantissa << surplus);
  const half = surplus === 0n ? 1n : 1n << (surplus - 1n);
  if (rest > half || (rest === half && mantissa % 2n === 1n)) mantissa++;
  return (sum < 0n ? -1 : 1) * Number(mantissa) * 2 ** (Number(surplus) - 80);
}

test('a tie that rounding twice breaks the wrong way', () => {
  // The product is half a unit in the last place of c; what the f64 sum cannot hold decides.
  const a = 1 + 2 ** -23;
  const b = 2 ** -24 * (1 + 2 ** -23);
  const c = 1;
  expect(fmaf(a, b, c)).toBe(1 + 2 ** -23);

  const below = Math.fround(1 - 2 ** -24);
  expect(fmaf(below, 2 ** -24, 1 + 2 ** -23)).toBe(1 + 2 ** -23);
  expect(fmaf(2 ** -30, 2 ** -30, Math.fround(1 + 2 ** -23))).toBe(1 + 2 ** -23);
});

test('random operands of both signs', () => {
  let state = 1;
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  // Multiples of 2^-40 with 24 bits at most and magnitudes from 2^-16 to 2^8.
  const operand = (): number =>
    Math.fround((random() - 0.5) * 2 ** Math.floor(random() * 24 - 15) || 1);
  for (let i = 0; i < 20_000; i++) {
    const [a, b, c] = [operand(), operand(), operand()].map(
      (value) => Math.round(value * 2 ** 40) / 2 ** 40,
    ) as [number, number, number];
    expect(fmaf(a, b, c)).toBe(exact(a, b, c));
  }
});
