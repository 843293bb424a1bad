/**
 * Structures of scalars, laid out as in C: each field at a multiple of its own size, the whole a
 * multiple of its largest field's size. So a struct of CUDA C++ with the same fields has the same
 * bytes.
 */
import { CudaArgumentError } from '../ground/errors.js';
import {
  checkDType,
  checkInteger,
  insteadOfBigint,
  invalid,
  valueNamed,
} from '../ground/arguments.js';
import {
  DTYPES,
  DTYPE_NAMES,
  HOST_ARRAYS,
  INTEGER_LIMITS,
  NUMBER_LIMITS,
  isKernelDType,
} from '../ground/dtype.js';
import { isNarrow, narrow, widen } from '../ground/narrow-floats.js';
import type { NarrowName } from '../ground/narrow-floats.js';
import type { DType, DTypeName, KernelDTypeName, WideName } from '../ground/dtype.js';
import type { StructField, StructLayout } from '../ground/struct-layout.js';
import { checkName } from '../ground/names.js';
import { MAX_PARAMETER_BYTES } from './parameter-space.js';

/** A parameter passed by value as bytes. */
export interface BytesParam {
  readonly struct: true;
  /** Bytes of the structure in the kernel's parameter space. */
  readonly bytes: number;
  /** Alignment in bytes; undefined where the kernel states it. */
  readonly align: number | undefined;
}

/** Dtypes of the fields, by name. */
export type StructFields = Readonly<Record<string, DType<KernelDTypeName>>>;

/** One structure on the host. */
export type StructValue<F extends StructFields> = {
  -readonly [K in keyof F]: HostValue<F[K]['name']>;
};

/** One scalar on the host. */
export type HostValue<D extends KernelDTypeName> = D extends 'bool'
  ? boolean
  : D extends WideName
    ? number | bigint
    : number;

/**
 * A structure: a parameter that is passed by value, or the elements of a tensor of bytes. Made by
 * {@link struct}.
 */
export interface StructDeclaration<F extends StructFields = StructFields> extends BytesParam {
  readonly fields: F;
  readonly align: number;
  /** The place of each field. */
  readonly layout: StructLayout;
  /** The bytes of structures, one after the other, as they are written to a tensor. */
  pack(values: readonly Readonly<StructValue<F>>[]): Uint8Array;
  /** The structures in bytes that were read from a tensor. 64-bit integers become bigints. */
  unpack(bytes: ArrayBufferView): StructValue<F>[];
}

/**
 * Declares a structure of named fields, laid out as in C: `struct({ x: f32, y: f32 })`.
 *
 * @example
 * ```ts
 * const particle = struct({ x: f32, y: f32, id: u8 });
 * console.log(particle.bytes, particle.align); // 12 4
 * const bytes = particle.pack([{ x: 1, y: 2, id: 3 }]);
 * console.log(particle.unpack(bytes)); // [ { x: 1, y: 2, id: 3 } ]
 * ```
 */
export function struct<const F extends StructFields>(fields: F): StructDeclaration<F>;
/**
 * Declares a structure that is passed by value: `bytes` bytes, as an ArrayBuffer or a view. Its
 * alignment (1, 2, 4, 8 or 16 bytes, that of its largest member) is needed only for machine code on
 * drivers before CUDA 12.4, which do not give the parameter's offset.
 *
 * @throws CudaArgumentError for sizes that no parameter has
 */
export function struct(bytes: number, align?: number): BytesParam;
export function struct(given: number | StructFields, align?: number): BytesParam {
  if (typeof given === 'number') return ofBytes(given, align);
  if (typeof given !== 'object' || (given as unknown) === null)
    throw invalid(
      'fields',
      'an object of dtypes, or a number of bytes',
      given,
      'Write struct({ x: f32, y: f32 }).',
    );
  return new Declared(given);
}

function ofBytes(bytes: number, align?: number): BytesParam {
  checkInteger('bytes', bytes, 1, MAX_PARAMETER_BYTES, 'bytes');
  if (align !== undefined && ![1, 2, 4, 8, 16].includes(align))
    throw invalid('align', '1, 2, 4, 8 or 16', align);
  return { struct: true, bytes, align };
}

class Declared<F extends StructFields> implements StructDeclaration<F> {
  readonly struct = true;
  readonly fields: F;
  readonly bytes: number;
  readonly align: number;
  readonly layout: StructLayout;

  constructor(fields: F) {
    const names = Object.keys(fields);
    if (names.length === 0)
      throw invalid('fields', 'at least one field', fields, 'Write struct({ x: f32, y: f32 }).');
    let end = 0;
    let largest = 1;
    const laidOut = names.map((name): StructField => {
      checkName('fields', name, 'a field');
      const dtype: unknown = fields[name];
      if (dtype instanceof Declared)
        throw invalid(
          `fields.${name}`,
          'a dtype',
          dtype,
          `Structures cannot contain structures: list the fields of '${name}' among the others.`,
        );
      checkDType(dtype, `fields.${name}`);
      const storage = dtype.name;
      if (!isKernelDType(storage))
        throw invalid(
          `fields.${name}`,
          'a dtype of one number',
          storage,
          'Write a field for each of its parts.',
        );
      const offset = Math.ceil(end / dtype.bytes) * dtype.bytes;
      end = offset + dtype.bytes;
      largest = Math.max(largest, dtype.bytes);
      return { name, storage, offset };
    });
    this.fields = Object.freeze({ ...fields });
    this.align = largest;
    this.bytes = Math.ceil(end / largest) * largest;
    this.layout = { fields: laidOut, bytes: this.bytes, align: largest };
    // This refuses structures that are too large for a parameter.
    ofBytes(this.bytes, this.align);
  }

  pack(values: readonly Readonly<StructValue<F>>[]): Uint8Array {
    if (!Array.isArray(values))
      throw invalid('values', 'a list of structures', values, 'Write pack([{ … }, { … }]).');
    const bytes = new Uint8Array(values.length * this.bytes);
    const view = new DataView(bytes.buffer);
    values.forEach((each: unknown, index) => {
      checkStruct(`values[${index}]`, this.layout.fields, each);
      for (const { name, storage, offset } of this.layout.fields)
        ACCESS[storage][0](view, index * this.bytes + offset, each[name] as never);
    });
    return bytes;
  }

  unpack(bytes: ArrayBufferView): StructValue<F>[] {
    if (!ArrayBuffer.isView(bytes) || bytes.byteLength % this.bytes !== 0) {
      throw invalid(
        'bytes',
        `an array of a multiple of ${this.bytes} bytes`,
        ArrayBuffer.isView(bytes) ? `${bytes.byteLength} bytes` : bytes,
        `It is ${this.toString()}.`,
      );
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return Array.from(
      { length: bytes.byteLength / this.bytes },
      (_, index) =>
        Object.fromEntries(
          this.layout.fields.map(({ name, storage, offset }) => [
            name,
            ACCESS[storage][1](view, index * this.bytes + offset),
          ]),
        ) as StructValue<F>,
    );
  }

  toString(): string {
    return (
      'struct({ ' +
      `${this.layout.fields.map(({ name, storage }) => `${name}: ${storage}`).join(', ')} })`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

/** Whether a declaration lists its fields. */
export function hasFields(declaration: unknown): declaration is StructDeclaration {
  return declaration instanceof Declared;
}

/** Checks that a structure has the fields, each of its type, and no others. */
export function checkStruct(
  argument: string,
  fields: readonly StructField[],
  value: unknown,
): asserts value is Record<string, unknown> {
  if (isStruct(fields, value)) return;
  const names = fields.map(({ name }) => name);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value))
    throw invalid(argument, `an object with ${names.join(', ')}`, value);
  for (const key of Object.keys(value))
    if (!names.includes(key))
      throw invalid(
        `${argument}.${key}`,
        `no other fields than ${names.join(', ')}`,
        (value as Record<string, unknown>)[key],
      );
  for (const { name, storage } of fields)
    checkScalar(`${argument}.${name}`, storage, valueNamed(value, name));
}

/**
 * Whether an object has all of the fields as own properties, each of its type, and no others. This
 * is the common case of {@link checkStruct}.
 */
export function isStruct(fields: readonly StructField[], value: unknown): boolean {
  if (
    typeof value !== 'object' ||
    value === null ||
    ArrayBuffer.isView(value) ||
    Object.keys(value).length !== fields.length
  )
    return false;
  for (const { name, storage } of fields)
    if (!Object.hasOwn(value, name) || !isScalar(storage, (value as Record<string, unknown>)[name]))
      return false;
  return true;
}

/**
 * Checks that a value fits a scalar of the dtype.
 *
 * @throws CudaArgumentError
 */
export function checkScalar(argument: string, dtype: DTypeName, value: unknown): void {
  if (isScalar(dtype, value)) return;
  if (dtype === 'bool')
    throw invalid(
      argument,
      'true or false',
      value,
      typeof value === 'number' ? `Write ${value !== 0}.` : '',
    );
  const bounds = NUMBER_LIMITS[dtype];
  const wide = bounds === undefined ? INTEGER_LIMITS[dtype] : undefined;
  if (wide !== undefined) {
    throw invalid(
      argument,
      `a whole number for ${dtype}, from ${wide[0]} to ${wide[1]}`,
      value,
      typeof value === 'number' && Number.isInteger(value) ? 'Beyond 2^53 pass a bigint.' : '',
    );
  }
  throw invalid(
    argument,
    bounds === undefined
      ? `a number for ${dtype}`
      : `a whole number for ${dtype}, from ${bounds[0]} to ${bounds[1]}`,
    value,
    insteadOfBigint(value, ...(bounds ?? [])),
  );
}

/** Whether the value fits a scalar of the dtype. */
export function isScalar(dtype: DTypeName, value: unknown): boolean {
  if (dtype === 'bool') return typeof value === 'boolean';
  const bounds = NUMBER_LIMITS[dtype];
  if (bounds !== undefined)
    return (
      Number.isInteger(value) && (value as number) >= bounds[0] && (value as number) <= bounds[1]
    );
  // Integers of 64 bits remain.
  const wide = INTEGER_LIMITS[dtype];
  if (wide === undefined) return typeof value === 'number';
  return typeof value === 'bigint'
    ? value >= wide[0] && value <= wide[1]
    : Number.isSafeInteger(value) && (value as number) >= Number(wide[0]);
}

type Put = (view: DataView, at: number, value: never) => void;
type Get = (view: DataView, at: number) => number | bigint | boolean;

function putNarrow(name: NarrowName): Put {
  return (view, at, value) => {
    if (DTYPES[name].bytes === 2) {
      const word = new Uint16Array(1);
      narrow(name, [value], word);
      view.setUint16(at, word[0]!, true);
    } else narrow(name, [value], new Uint8Array(view.buffer, view.byteOffset + at, 1));
  };
}

function getNarrow(name: NarrowName): Get {
  return (view, at) => {
    const target = new Float32Array(1);
    if (DTYPES[name].bytes === 2) widen(name, Uint16Array.of(view.getUint16(at, true)), target);
    else widen(name, Uint8Array.of(view.getUint8(at)), target);
    return target[0]!;
  };
}

/** Writes and reads an element of each host array in a DataView. */
const OF_ARRAY: Readonly<Record<string, readonly [Put, Get]>> = {
  Int8Array: [
    (view, at, value: number) => {
      view.setInt8(at, value);
    },
    (view, at) => view.getInt8(at),
  ],
  Uint8Array: [
    (view, at, value: number) => {
      view.setUint8(at, value);
    },
    (view, at) => view.getUint8(at),
  ],
  Int16Array: [
    (view, at, value: number) => {
      view.setInt16(at, value, true);
    },
    (view, at) => view.getInt16(at, true),
  ],
  Uint16Array: [
    (view, at, value: number) => {
      view.setUint16(at, value, true);
    },
    (view, at) => view.getUint16(at, true),
  ],
  Int32Array: [
    (view, at, value: number) => {
      view.setInt32(at, value, true);
    },
    (view, at) => view.getInt32(at, true),
  ],
  Uint32Array: [
    (view, at, value: number) => {
      view.setUint32(at, value, true);
    },
    (view, at) => view.getUint32(at, true),
  ],
  BigInt64Array: [
    (view, at, value: number | bigint) => {
      view.setBigInt64(at, BigInt(value), true);
    },
    (view, at) => view.getBigInt64(at, true),
  ],
  BigUint64Array: [
    (view, at, value: number | bigint) => {
      view.setBigUint64(at, BigInt(value), true);
    },
    (view, at) => view.getBigUint64(at, true),
  ],
  Float32Array: [
    (view, at, value: number) => {
      view.setFloat32(at, value, true);
    },
    (view, at) => view.getFloat32(at, true),
  ],
  Float64Array: [
    (view, at, value: number) => {
      view.setFloat64(at, value, true);
    },
    (view, at) => view.getFloat64(at, true),
  ],
};

/** Writes and reads an element of each dtype. */
const ACCESS = Object.fromEntries(
  DTYPE_NAMES.map((name): [string, readonly [Put, Get]] => {
    if (isNarrow(name)) return [name, [putNarrow(name), getNarrow(name)]];
    const [put, get] = OF_ARRAY[HOST_ARRAYS[name].name]!;
    if (DTYPES[name].kind !== 'bool') return [name, [put, get]];
    const putTruth: Put = (view, at, value: boolean) => {
      view.setUint8(at, value ? 1 : 0);
    };
    return [name, [putTruth, (view, at) => view.getUint8(at) !== 0]];
  }),
) as Readonly<Record<DTypeName, readonly [put: Put, get: Get]>>;

/** The error for a structure without fields where fields are needed. @internal */
export function withoutFields(argument: string): CudaArgumentError {
  return new CudaArgumentError(
    argument,
    `${argument}: a structure of a kernel in TypeScript has to list its fields. Write ` +
      'struct({ x: f32, y: f32 }).',
  );
}
