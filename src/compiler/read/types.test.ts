import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { constantOfType, join, literalLevel, settled, type Level } from './types.js';

const levels: readonly Level[] = [
  'bool',
  'int',
  'i32',
  'int32u',
  'u32',
  'int64',
  'i64',
  'int64u',
  'u64',
  'fraction',
  'f32',
  'f64',
];
const level = fc.constantFrom(...levels);

describe('join', () => {
  it('is the same in any order of types', { tags: 'random' }, () => {
    fc.assert(
      fc.property(level, level, level, (a, b, c) => {
        expect(join(a, b)).toBe(join(b, a));
        expect(join(join(a, b), c)).toBe(join(a, join(b, c)));
        expect(join(a, a)).toBe(a);
      }),
    );
  });

  it.each([
    ['i32', 'f32', 'f32'],
    ['f32', 'f64', 'f64'],
    ['i32', 'i64', 'i64'],
    ['i32', 'u32', 'u32'],
    ['i64', 'u64', 'u64'],
    ['bool', 'i32', 'i32'],
    ['i64', 'f32', 'f32'],
    ['int', 'f64', 'f64'],
    ['int', 'u32', 'u32'],
    ['int', 'bool', 'i32'],
    ['fraction', 'i64', 'f32'],
    ['fraction', 'f64', 'f64'],
    ['int32u', 'u32', 'u32'],
    ['int32u', 'i32', 'i64'],
  ] as const)('of %s and %s is %s', (a, b, type) => expect(settled(join(a, b))).toBe(type));
});

describe('a literal alone', () => {
  it.each([
    [1, 'i32'],
    [-(2 ** 31), 'i32'],
    [2 ** 31, 'i64'],
    [2 ** 40, 'i64'],
    [0.5, 'f32'],
    [NaN, 'f32'],
    [2 ** 70, 'f32'],
    [1n, 'i64'],
    [2n ** 63n, 'u64'],
    [true, 'bool'],
  ] as const)('%s is %s', (value, type) => {
    expect(settled(literalLevel(value))).toBe(type);
  });
});

describe('constants', () => {
  it('wrap as typed arrays do', { tags: 'random' }, () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(constantOfType(value, 'i32')).toBe(Number(BigInt.asIntN(32, BigInt(value))));
        expect(constantOfType(value, 'u32')).toBe(Number(BigInt.asUintN(32, BigInt(value))));
        expect(constantOfType(value, 'i64')).toBe(BigInt(value));
        expect(constantOfType(value, 'u64')).toBe(BigInt.asUintN(64, BigInt(value)));
      }),
    );
  });

  it('round to f32', () => expect(constantOfType(0.1, 'f32')).toBe(Math.fround(0.1)));
});
