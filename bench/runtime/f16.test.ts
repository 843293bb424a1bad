import { expect, it } from 'vitest';

import { bitsOfF16, roundToF16 } from './f16.js';

it('rounds to the nearest f16, ties to even', () => {
  expect(roundToF16(1 + 2 ** -11)).toBe(1);
  expect(roundToF16(1 + 3 * 2 ** -11)).toBe(1 + 2 ** -9);
  expect(roundToF16(1.0001)).toBe(1);
  expect(roundToF16(2049)).toBe(2048);
});

it('gives the bits of a normal f16', () => {
  expect(bitsOfF16(1)).toBe(0x3c00);
  expect(bitsOfF16(2.453125)).toBe(0x40e8);
});
