/** Structures of CUDA C++ on the host: the offsets of their fields, and the bytes of an object. */
import { DTYPES } from '../core/index.js';
import type { DTypeName } from '../core/index.js';
import { invalid, valueNamed } from '../ground/arguments.js';
import { narrow } from '../ground/narrow-floats.js';
import type { NarrowName } from '../ground/narrow-floats.js';
import type { SourceType } from './source-signatures.js';

/**
 * Returns the bytes and the alignment of a type by value; undefined where it has none. C's rules
 * apply: each field is at a multiple of its alignment.
 */
export function sizeOf(
  type: SourceType,
): { readonly bytes: number; readonly align: number } | undefined {
  if (typeof type === 'string') {
    const dtype = DTYPES[type as DTypeName] as (typeof DTYPES)[DTypeName] | undefined;
    return dtype === undefined ? undefined : { bytes: dtype.bytes, align: dtype.bytes };
  }
  if (!('fields' in type)) {
    const element = sizeOf(type[0]);
    return element && { bytes: element.bytes * type[1], align: element.align };
  }
  let bytes = 0;
  let align = type.align ?? 1;
  for (const field of Object.values(type.fields)) {
    const size = sizeOf(field);
    if (size === undefined) return undefined;
    bytes = roundUp(bytes, size.align) + size.bytes;
    align = Math.max(align, size.align);
  }
  return { bytes: roundUp(bytes, align), align };
}

/**
 * Returns the bytes of a value of a type: an object of its fields.
 *
 * @throws CudaArgumentError for a field that is missing, has another type or is unknown
 */
export function bytesOf(argument: string, type: SourceType, value: unknown): Uint8Array {
  const bytes = new Uint8Array(sizeOf(type)!.bytes);
  put(new DataView(bytes.buffer), 0, argument, type, value);
  return bytes;
}

function put(view: DataView, at: number, argument: string, type: SourceType, value: unknown): void {
  if (typeof type === 'string') {
    putScalar(view, at, argument, type as DTypeName, value);
    return;
  }
  if (!('fields' in type)) {
    const [element, length] = type;
    const given = value as ArrayLike<unknown> | null | undefined;
    if (typeof given !== 'object' || given?.length !== length)
      throw invalid(argument, `a list of ${length}`, value);
    const { bytes } = sizeOf(element)!;
    for (let i = 0; i < length; i++)
      put(view, at + i * bytes, `${argument}[${i}]`, element, given[i]);
    return;
  }
  const names = Object.keys(type.fields);
  if (typeof value !== 'object' || value === null)
    throw invalid(argument, `an object with ${names.join(', ')}, or its bytes`, value);
  for (const key of Object.keys(value))
    if (!names.includes(key))
      throw invalid(
        `${argument}.${key}`,
        `no other fields than ${names.join(', ')}`,
        (value as Record<string, unknown>)[key],
      );
  let offset = at;
  for (const name of names) {
    const field = type.fields[name]!;
    const { bytes, align } = sizeOf(field)!;
    offset = at + roundUp(offset - at, align);
    put(view, offset, `${argument}.${name}`, field, valueNamed(value, name));
    offset += bytes;
  }
}

function putScalar(
  view: DataView,
  at: number,
  argument: string,
  dtype: DTypeName,
  value: unknown,
): void {
  const { kind, bytes } = DTYPES[dtype];
  if (kind === 'bool') {
    if (typeof value !== 'boolean') throw invalid(argument, 'true or false', value);
    view.setUint8(at, Number(value));
  } else if (kind === 'float') {
    if (typeof value !== 'number') throw invalid(argument, `a number for ${dtype}`, value);
    if (dtype === 'f32') view.setFloat32(at, value, true);
    else if (dtype === 'f64') view.setFloat64(at, value, true);
    else {
      const word = bytes === 1 ? new Uint8Array(1) : new Uint16Array(1);
      narrow(dtype as NarrowName, [value], word);
      if (bytes === 1) view.setUint8(at, word[0]!);
      else view.setUint16(at, word[0]!, true);
    }
  } else {
    const bits = BigInt(bytes * 8);
    const [low, high] =
      kind === 'signed'
        ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
        : [0n, (1n << bits) - 1n];
    const isWhole = typeof value === 'bigint' || Number.isSafeInteger(value);
    if (
      !isWhole ||
      BigInt(value as number | bigint) < low ||
      BigInt(value as number | bigint) > high
    )
      throw invalid(argument, `a whole number for ${dtype}, from ${low} to ${high}`, value);
    const word = BigInt(value as number | bigint);
    for (let i = 0; i < bytes; i++)
      view.setUint8(at + i, Number(BigInt.asUintN(8, word >> BigInt(i * 8))));
  }
}

function roundUp(value: number, step: number): number {
  return Math.ceil(value / step) * step;
}
