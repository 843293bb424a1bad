/** What a tensor can be made of on the host: arrays, lists, bytes, page-locked memory. */
import { types } from 'node:util';

import { PinnedBuffer } from '../core/index.js';
import type { DType, DTypeName, HostArray, WriteSource } from '../core/index.js';
import { isComplex } from '../core/fill-pattern.js';
import { checkArray, checkAttached, elementsOf } from '../core/host-codec.js';
import { insteadOfBigint, invalid, isList } from '../ground/arguments.js';
import { BIT_ARRAYS, HOST_ARRAYS, NUMBER_LIMITS, isWide } from '../ground/dtype.js';
import type { Complex, ComplexName, WideName } from '../ground/dtype.js';
import { isNarrow, narrow } from '../ground/narrow-floats.js';

/**
 * Elements as a plain list. Whole numbers of u64 and i64 beyond 2^53 are bigints; complex numbers
 * are pairs, `[real, imaginary]`.
 */
export type HostList<D extends DTypeName = DTypeName> =
  | (D extends ComplexName ? readonly Complex[] : readonly number[])
  | (D extends WideName ? readonly bigint[] : D extends 'bool' ? readonly boolean[] : never);

/** Checks a source. Gives what is copied, and its number of elements. */
export function checkedSource<D extends DTypeName>(
  dtype: DType<D>,
  source: unknown,
): { readonly values: WriteSource<D>; readonly length: number } {
  if (isList(source)) return { values: hostArray(dtype, source), length: source.length };
  if (types.isAnyArrayBuffer(source)) {
    checkAttached(source, source, 'source');
    if (source.byteLength % dtype.bytes !== 0)
      throw invalid(
        'source',
        `bytes of whole elements of ${dtype.name}, of ${dtype.bytes} each`,
        source,
      );
    return { values: source, length: source.byteLength / dtype.bytes };
  }
  const array = HOST_ARRAYS[dtype.name].name;
  const expected = `a ${array}, a list of elements, or an ArrayBuffer of their bytes`;
  // Methods and accessors of typed arrays throw for a Proxy of one.
  if (types.isProxy(source))
    throw invalid('source', expected, source, 'It is a Proxy: pass its target.');
  const { length, toArray } = (source ?? {}) as {
    readonly length?: unknown;
    readonly toArray?: unknown;
  };
  // A detached array has no elements, and would make an empty tensor.
  if (ArrayBuffer.isView(source)) checkArray(dtype, source, false, 'source');
  else if (!(source instanceof PinnedBuffer)) {
    const isListed =
      typeof source === 'object' &&
      source !== null &&
      (typeof length === 'number' || Symbol.iterator in source);
    throw invalid(
      'source',
      expected,
      source,
      typeof toArray === 'function'
        ? 'Write source.toArray().'
        : isListed
          ? 'Write Array.from(source).'
          : '',
    );
  }
  if (typeof length !== 'number') throw invalid('source', expected, source);
  if (!ArrayBuffer.isView(source)) return { values: source, length };
  const count = elementsOf(dtype, source, false);
  if (!Number.isInteger(count))
    throw invalid('source', `real and imaginary parts in turn, for ${dtype.name}`, source);
  return { values: source as HostArray<D>, length: count };
}

/**
 * Checks a list and gives it as the dtype's array: typed arrays would take 300 as 44, and a list of
 * lists as NaN. Narrow floats are rounded here; by way of a Float32Array they would be rounded
 * twice.
 */
function hostArray<D extends DTypeName>(
  dtype: DType<D>,
  source: readonly unknown[],
): HostArray<D> | ArrayBuffer {
  const isElement = elementTest(dtype);
  // By index, since forEach skips holes.
  for (let index = 0; index < source.length; index++) {
    const value = source[index];
    if (isElement(value)) continue;
    throw invalid(
      `source[${index}]`,
      expectedElement(dtype),
      value,
      Array.isArray(value) && dtype.kind !== 'complex'
        ? 'Write the elements of all rows in one list, and the shape after it: [1, 2, 3, 4], ' +
            '[2, 2].'
        : insteadOfBigint(value, ...(NUMBER_LIMITS[dtype.name] ?? [])),
    );
  }
  if (isNarrow(dtype.name)) {
    const bits = new BIT_ARRAYS[dtype.name](source.length);
    narrow(dtype.name, source as readonly number[], bits);
    return bits.buffer as ArrayBuffer;
  }
  const Host = HOST_ARRAYS[dtype.name] as unknown as {
    from(values: readonly unknown[]): HostArray<D>;
  };
  if (dtype.kind === 'complex') return Host.from(source.flat());
  return Host.from(
    isWide(dtype.name) ? source.map((value) => BigInt(value as number | bigint)) : source,
  );
}

function elementTest(dtype: DType): (value: unknown) => boolean {
  const { name, kind } = dtype;
  if (kind === 'float') return (value) => typeof value === 'number';
  if (kind === 'complex') return isComplex;
  if (kind === 'bool') return (value) => typeof value === 'boolean' || value === 0 || value === 1;
  if (isWide(dtype.name)) {
    const fits = (value: bigint): boolean =>
      value === (name === 'u64' ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value));
    return (value) =>
      (typeof value === 'bigint' || Number.isSafeInteger(value)) &&
      fits(BigInt(value as number | bigint));
  }
  const [low, high] = NUMBER_LIMITS[name]!;
  return (value) =>
    Number.isInteger(value) && (value as number) >= low && (value as number) <= high;
}

function expectedElement({ name, kind }: DType): string {
  if (kind === 'float') return `a number, for ${name}`;
  if (kind === 'complex') return `a pair [real, imaginary] of numbers, for ${name}`;
  if (kind === 'bool') return 'true, false, 0 or 1, for bool';
  if (isWide(name))
    return (
      'a bigint or a whole number ' +
      `${name === 'u64' ? 'from 0 to 2^64 - 1' : 'from -2^63 to 2^63 - 1'}, beyond 2^53 a ` +
      `bigint, for ${name}`
    );
  return (
    `a whole number from ${NUMBER_LIMITS[name]![0]} to ${NUMBER_LIMITS[name]![1]}, for ` + `${name}`
  );
}
