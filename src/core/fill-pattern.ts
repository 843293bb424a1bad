/** The bits of one element, in the form of the driver's memsets. */
import { checkInteger, insteadOfBigint, invalid, isList } from '../ground/arguments.js';
import { HOST_ARRAYS, INTEGER_LIMITS, NUMBER_LIMITS, isWide } from '../ground/dtype.js';
import type { Complex, DType } from '../ground/dtype.js';
import { isNarrow, narrow } from '../ground/narrow-floats.js';

export interface FillPattern {
  bits: 8 | 16 | 32;
  value: number;
  /** The words of an element of 8 or 16 bytes that are not all the same, the lowest first. */
  words?: readonly number[];
}

export function fillPattern(dtype: DType, value: unknown): FillPattern {
  const { name } = dtype;
  if (dtype.kind === 'complex') {
    if (!isComplex(value))
      throw invalid('value', `a pair [real, imaginary] of numbers for dtype ${name}`, value);
    return split(new Uint32Array((HOST_ARRAYS[name] as typeof Float64Array).from(value).buffer));
  }
  if (isWide(name)) {
    const [low, high] = INTEGER_LIMITS[name]!;
    if (typeof value !== 'bigint') {
      const isWithin =
        Number.isInteger(value) && (value as number) >= low && (value as number) <= high;
      const fix = isWithin
        ? `Write ${BigInt(value as number)}n.`
        : Number.isInteger(value)
          ? `It is from ${low} to ${high}.`
          : '';
      throw invalid('value', `a bigint for dtype ${name}`, value, fix);
    }
    if (value < low || value > high)
      throw invalid('value', `a bigint from ${low} to ${high}`, value);
    return split(new Uint32Array(new BigUint64Array([BigInt.asUintN(64, value)]).buffer));
  }
  const range = NUMBER_LIMITS[name];
  if (range !== undefined) checkInteger('value', value, range[0], range[1]);
  else if (typeof value !== 'number')
    throw invalid('value', `a number for dtype ${name}`, value, insteadOfBigint(value));
  if (typeof value !== 'number') throw invalid('value', 'a number', value);
  if (name === 'f64') return split(new Uint32Array(new Float64Array([value]).buffer));
  if (isNarrow(name)) {
    const bits = dtype.bytes === 1 ? new Uint8Array(1) : new Uint16Array(1);
    narrow(name, [value], bits);
    return { bits: dtype.bytes === 1 ? 8 : 16, value: bits[0]! };
  }
  const array = new HOST_ARRAYS[name](1);
  array[0] = value;
  const bytes = new Uint8Array(array.buffer);
  if (dtype.bytes === 1) return { bits: 8, value: bytes[0]! };
  if (dtype.bytes === 2) return { bits: 16, value: new Uint16Array(array.buffer)[0]! };
  return { bits: 32, value: new Int32Array(array.buffer)[0]! };
}

function split(words: Uint32Array): FillPattern {
  const all = Array.from(words, (word) => word | 0);
  const value = all[0]!;
  return all.every((word) => word === value)
    ? { bits: 32, value }
    : { bits: 32, value, words: all };
}

/** Whether the value is one element of a complex dtype. */
export function isComplex(value: unknown): value is Complex {
  return isList(value) && value.length === 2 && value.every((part) => typeof part === 'number');
}
