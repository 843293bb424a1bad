/**
 * The order of types: their joins, and the types in which memory is read and written.
 *
 * All types form one chain, so the join of any number of them is the highest, in any order.
 * Literals have levels of their own in it: `int` is an integer literal, which takes the type of the
 * other operand; `int32u` one that 32 bits hold only without a sign, and so on; `fraction` becomes
 * any float type, and lifts every integer to f32.
 */
import { readAs } from '../storage-types.js';
import type { StorageType, ValueType } from '../tree.js';

export { readAs, storageBytes } from '../storage-types.js';

const chain = [
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
] as const;

/** A type, or the level of a literal. */
export type Level = (typeof chain)[number];

const rank = new Map<Level, number>(chain.map((level, at) => [level, at]));

export function join(a: Level, b: Level): Level {
  return rank.get(a)! >= rank.get(b)! ? a : b;
}

/** The type of a literal that has no other operand. */
const alone: Readonly<Record<Level, ValueType>> = {
  bool: 'bool',
  int: 'i32',
  i32: 'i32',
  int32u: 'i64',
  u32: 'u32',
  int64: 'i64',
  i64: 'i64',
  int64u: 'u64',
  u64: 'u64',
  fraction: 'f32',
  f32: 'f32',
  f64: 'f64',
};

export function settled(level: Level): ValueType {
  return alone[level];
}

/**
 * The type in which a variable is read while later assignments are not known: the lowest type that
 * is still possible.
 */
export function soFar(level: Level): ValueType {
  return level === 'int32u' ? 'u32' : alone[level];
}

export const isFloat = (type: ValueType): type is 'f32' | 'f64' => type === 'f32' || type === 'f64';
export const isNarrowFloat = (storage: StorageType): boolean =>
  readAs[storage] === 'f32' && storage !== 'f32';
export const isWide = (type: ValueType): type is 'i64' | 'u64' => type === 'i64' || type === 'u64';
export const isSigned = (type: ValueType): boolean => type === 'i32' || type === 'i64';
export const isInteger = (type: ValueType): type is 'i32' | 'u32' | 'i64' | 'u64' =>
  !isFloat(type) && type !== 'bool';

export const isUnsigned = (type: ValueType): type is 'u32' | 'u64' =>
  type === 'u32' || type === 'u64';

/** The signed type of as many bits. */
export const signed = { u32: 'i32', u64: 'i64' } as const;

/** What to write instead of a negative constant among unsigned numbers. */
export function insteadOfNegative(type: 'u32' | 'u64'): string {
  return (
    `Make all of them signed, gpu.${signed[type]}(…), or write the number that is meant: for ` +
    `-1 ${type === 'u32' ? '0xffffffff' : '2n ** 64n - 1n'}.`
  );
}

/** The unsigned type of each integer type. */
export const unsigned: Readonly<Record<'i32' | 'u32' | 'i64' | 'u64', 'u32' | 'u64'>> = {
  i32: 'u32',
  u32: 'u32',
  i64: 'u64',
  u64: 'u64',
};

/** Truncates a float; infinities and NaN give 0, where an error follows. */
const cutOff = (value: number | boolean): bigint =>
  Number.isFinite(Number(value)) ? BigInt(Math.trunc(Number(value))) : 0n;

/**
 * Gives the number in that type: integers wrap, floats round. Callers reject fractions for integer
 * types.
 */
export function constantOfType(
  value: number | bigint | boolean,
  type: ValueType,
): number | bigint | boolean {
  switch (type) {
    case 'bool':
      return typeof value === 'number' ? value !== 0 && !Number.isNaN(value) : Boolean(value);
    case 'f32':
      return Math.fround(Number(value));
    case 'f64':
      return Number(value);
    case 'i32':
      return typeof value === 'bigint'
        ? Number(BigInt.asIntN(32, value))
        : Number(BigInt.asIntN(32, cutOff(value)));
    case 'u32':
      return Number(BigInt.asUintN(32, typeof value === 'bigint' ? value : cutOff(value)));
    case 'i64':
      return BigInt.asIntN(64, typeof value === 'bigint' ? value : cutOff(value));
    case 'u64':
      return BigInt.asUintN(64, typeof value === 'bigint' ? value : cutOff(value));
  }
}

/** The level of a literal. */
export function literalLevel(value: number | bigint | boolean): Level {
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint')
    return value >= -(2n ** 63n) && value < 2n ** 63n ? 'int64' : 'int64u';
  if (!Number.isInteger(value)) return 'fraction';
  if (value >= -(2 ** 31) && value < 2 ** 31) return 'int';
  if (value > 0 && value < 2 ** 32) return 'int32u';
  return value >= -(2 ** 63) && value < 2 ** 63 ? 'int64' : 'fraction';
}
