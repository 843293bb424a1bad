import { expect, test } from 'vitest';
import { DTYPE_NAMES } from './dtype.js';
import { hostValue, isNarrow, kernelBits, kernelValue, wideValues } from './narrow-floats.js';
import type { NarrowName } from './narrow-floats.js';
import { someOf } from '../../test/random-runs.js';

const FORMATS: readonly NarrowName[] = DTYPE_NAMES.filter(isNarrow);

someOf(2, test)(FORMATS)('%s: every finite number of the format comes back as it is', (storage) => {
  wideValues(storage).forEach((value, code) => {
    if (Number.isFinite(value)) expect(kernelBits(storage, value)).toBe(code);
  });
});

test.each(FORMATS)(
  '%s: the middle of two numbers rounds to the even one, other values to the nearer',
  (storage) => {
    const finite = [...wideValues(storage)]
      .map((value, code) => ({ value, code }))
      .filter(({ value }) => value >= 0 && Number.isFinite(value))
      .filter((_, index, all) => index < 300 || index > all.length - 300);
    finite.forEach((low, index) => {
      const high = finite[index + 1];
      if (high === undefined || high.code !== low.code + 1) return;
      const middle = (low.value + high.value) / 2;
      const even = low.code % 2 === 0 ? low.code : high.code;
      expect(kernelBits(storage, middle)).toBe(even);
      expect(kernelBits(storage, middle * (1 - 2 ** -20))).toBe(low.code);
      expect(kernelBits(storage, middle * (1 + 2 ** -20))).toBe(high.code);
      expect(kernelBits(storage, -middle)).toBe(even | (wideValues(storage).length / 2));
    });
  },
);

test.each<[NarrowName, number, number]>([
  ['f16', 65519, 0x7bff],
  ['f16', 65520, 0x7c00],
  ['f16', -Infinity, 0xfc00],
  ['f16', NaN, 0x7fff],
  ['f16', 2 ** -25, 0],
  ['f16', 2 ** -24, 1],
  ['f16', -0, 0x8000],
  ['bf16', 3.4028234663852886e38, 0x7f80],
  ['bf16', NaN, 0x7fff],
  ['bf16', 2 ** -149, 0],
  ['bf16', 2 ** -133, 1],
  ['f8e4m3', 448, 0x7e],
  ['f8e4m3', 1e9, 0x7e],
  ['f8e4m3', -Infinity, 0xfe],
  ['f8e4m3', NaN, 0x7f],
  ['f8e4m3', 464, 0x7e],
  ['f8e5m2', 57344, 0x7b],
  ['f8e5m2', 1e9, 0x7b],
  ['f8e5m2', Infinity, 0x7b],
  ['f8e5m2', NaN, 0x7f],
])('%s of %d is 0x%s', (storage, value, bits) => {
  expect(kernelBits(storage, value)).toBe(bits);
});

test('formats with infinity and NaN read them', () => {
  expect([
    wideValues('f16')[0x7c00],
    wideValues('f16')[0x7c01],
    wideValues('bf16')[0xff80],
  ]).toEqual([Infinity, NaN, -Infinity]);
  expect([
    wideValues('f8e4m3')[0x7f],
    wideValues('f8e4m3')[0x78],
    wideValues('f8e5m2')[0x7c],
    wideValues('f8e5m2')[0x7d],
  ]).toEqual([NaN, 256, Infinity, NaN]);
  expect(kernelValue('f16', 0.1)).toBe(0.0999755859375);
});

test('an overflow of an f8 that the host writes stays visible, as in a tensor on a device', () => {
  const seen = (storage: NarrowName, values: readonly number[]): number[] =>
    values.map((value) => hostValue(storage, value));
  expect(seen('f8e4m3', [448, 464, 464.0001, -464, -465, Infinity, NaN])).toEqual([
    448,
    448,
    NaN,
    -448,
    NaN,
    NaN,
    NaN,
  ]);
  expect(seen('f8e5m2', [57344, 61439, 61440, -61440, -Infinity, NaN])).toEqual([
    57344,
    57344,
    Infinity,
    -Infinity,
    -Infinity,
    NaN,
  ]);
  expect(seen('f16', [65519, 65520, -Infinity])).toEqual([65504, Infinity, -Infinity]);
});
