/**
 * Elements of every dtype for tests of the whole table. They are derived from the rows, so that a
 * new row is tested as the others are.
 */
import {
  BIT_ARRAYS,
  DTYPES,
  DTYPE_FACTS,
  FLOAT_LIMITS,
  HOST_ARRAYS,
  INTEGER_LIMITS,
  isWide,
  partsOf,
} from '../../src/ground/dtype.js';
import type { DTypeName, HostArray, Scalar } from '../../src/ground/dtype.js';

type Value = number | bigint;

/**
 * Values that the dtype holds exactly, with its extremes; of a complex dtype, values of its parts.
 */
function exactValues(name: DTypeName): readonly Value[] {
  const { part, float } = DTYPE_FACTS[name];
  if (part !== null) {
    const values = exactValues(part);
    return values.length % 2 === 0 ? values : values.slice(1);
  }
  const limits = INTEGER_LIMITS[name];
  if (limits !== undefined) {
    const [low, high] = limits;
    const middle = (low + high) / 2n;
    const values = [0n, 1n, high, low, high / 3n, middle, middle + 1n, high - 1n].map((value) =>
      value < low ? low : value,
    );
    return isWide(name) ? [...values, 2n ** 53n + 1n] : values.map(Number);
  }
  const { max, smallest, smallestNormal, epsilon } = FLOAT_LIMITS[name]!;
  const infinities = float!.infinity ? [Infinity, -Infinity] : [];
  return [0, -0, max, -max, smallest, smallestNormal, 1 + epsilon, -1.5, ...infinities];
}

/** Elements of the dtype in its host array. */
export function valuesOf<D extends DTypeName>(name: D): HostArray<D> {
  const Host = HOST_ARRAYS[name] as unknown as { from(values: readonly Value[]): HostArray<D> };
  return Host.from(exactValues(name));
}

/** How many elements there are in {@link valuesOf}. */
export function countOf(name: DTypeName): number {
  return valuesOf(name).length / partsOf(DTYPES[name]);
}

/** An element that has no two equal bytes or words where that is possible. */
export function fillOf<D extends DTypeName>(name: D): Scalar<D> {
  const { part, float, narrow } = DTYPE_FACTS[name];
  if (part !== null) return [0.1, -3.140625].map((value) => rounded(part, value)) as never;
  const limits = INTEGER_LIMITS[name];
  if (limits !== undefined) {
    const [low, high] = limits;
    const bits = 0x89abcdef01234567n & high;
    const value = high === 1n ? 1n : low < 0n ? -bits : bits;
    return (isWide(name) ? value : Number(value)) as never;
  }
  if (narrow !== null) return (float!.fractionBits > 5 ? 3.140625 : 1.25) as never;
  return rounded(name as 'f32', 0.1) as never;
}

const rounded = (name: 'f32' | 'f64', value: number): number =>
  name === 'f32' ? Math.fround(value) : value;

/** An element as the host array contains it. */
export function inArray(value: unknown): Value[] {
  return [value].flat() as Value[];
}

/** The element 0. */
export function zeroOf<D extends DTypeName>(name: D): Scalar<D> {
  return (DTYPE_FACTS[name].part !== null ? [0, 0] : isWide(name) ? 0n : 0) as never;
}

/** Bytes of a word of {@link BIT_ARRAYS}. */
export function wordBytesOf(name: DTypeName): number {
  return BIT_ARRAYS[name].BYTES_PER_ELEMENT;
}
