/**
 * The element types of buffers and kernel parameters, and which JavaScript array holds each on the
 * host.
 *
 * Types that JavaScript has no array for are read as the next wider one that holds every value
 * exactly: f16, bf16 and the two f8 as Float32Array, bool as Uint8Array of 0 and 1: each byte but 0
 * is true, on the host and on the device, and is written and read as 1. The raw words are there
 * through `readBits`.
 */

/** Host array of each dtype. */
export interface HostArrays {
  u8: Uint8Array;
  i8: Int8Array;
  u16: Uint16Array;
  i16: Int16Array;
  u32: Uint32Array;
  i32: Int32Array;
  u64: BigUint64Array;
  i64: BigInt64Array;
  f16: Float32Array;
  bf16: Float32Array;
  f32: Float32Array;
  f64: Float64Array;
  f8e4m3: Float32Array;
  f8e5m2: Float32Array;
  bool: Uint8Array;
}

/** Array of the raw words of each dtype. */
export interface BitArrays {
  u8: Uint8Array;
  i8: Uint8Array;
  u16: Uint16Array;
  i16: Uint16Array;
  u32: Uint32Array;
  i32: Uint32Array;
  u64: BigUint64Array;
  i64: BigUint64Array;
  f16: Uint16Array;
  bf16: Uint16Array;
  f32: Uint32Array;
  f64: BigUint64Array;
  f8e4m3: Uint8Array;
  f8e5m2: Uint8Array;
  bool: Uint8Array;
}

/** Names of the dtypes. */
export type DTypeName = keyof HostArrays;
/** The JavaScript array that holds elements of a dtype on the host. */
export type HostArray<D extends DTypeName> = HostArrays[D];
/** The JavaScript array that holds the raw words of a dtype. */
export type BitArray<D extends DTypeName> = BitArrays[D];
/** One element as JavaScript gives it. */
export type Scalar<D extends DTypeName> = D extends 'u64' | 'i64' ? bigint : number;

/** An element type. */
export interface DType<D extends DTypeName = DTypeName> {
  /** The dtype's name, as it is exported. */
  readonly name: D;
  /** Bytes of one element. */
  readonly bytes: number;
  /** What the bits of an element are read as. */
  readonly kind: 'unsigned' | 'signed' | 'float' | 'bool';
  /** Whether the host array holds the words as they are in memory. */
  readonly direct: boolean;
}

function dtype<D extends DTypeName>(
  name: D,
  bytes: number,
  kind: DType['kind'],
  direct: boolean,
): DType<D> {
  return Object.freeze({ name, bytes, kind, direct });
}

/** Unsigned 8-bit integer; `Uint8Array`. */
export const u8 = dtype('u8', 1, 'unsigned', true);
/** Signed 8-bit integer; `Int8Array`. */
export const i8 = dtype('i8', 1, 'signed', true);
/** Unsigned 16-bit integer; `Uint16Array`. */
export const u16 = dtype('u16', 2, 'unsigned', true);
/** Signed 16-bit integer; `Int16Array`. */
export const i16 = dtype('i16', 2, 'signed', true);
/** Unsigned 32-bit integer; `Uint32Array`. */
export const u32 = dtype('u32', 4, 'unsigned', true);
/** Signed 32-bit integer; `Int32Array`. */
export const i32 = dtype('i32', 4, 'signed', true);
/** Unsigned 64-bit integer; `BigUint64Array`. */
export const u64 = dtype('u64', 8, 'unsigned', true);
/** Signed 64-bit integer; `BigInt64Array`. */
export const i64 = dtype('i64', 8, 'signed', true);
/**
 * IEEE half: 1 sign, 5 exponent and 10 fraction bits; `Float32Array`, exact when read, rounded to
 * nearest even when written.
 */
export const f16 = dtype('f16', 2, 'float', false);
/**
 * bfloat16: 1 sign, 8 exponent and 7 fraction bits; `Float32Array`, exact when read, rounded to
 * nearest even when written.
 */
export const bf16 = dtype('bf16', 2, 'float', false);
/** IEEE single; `Float32Array`. */
export const f32 = dtype('f32', 4, 'float', true);
/** IEEE double; `Float64Array`. */
export const f64 = dtype('f64', 8, 'float', true);
/**
 * OCP's E4M3, which others call e4m3fn: 1 sign, 4 exponent and 3 fraction bits, from 2^-9 to 448;
 * no infinity, NaN is 0x7f. `Float32Array`, exact when read; rounded to nearest even when written
 * from the host and by `convert`, to NaN above 464; kernels write what is greater than 448,
 * infinity too, as that, as the GPU's own conversion does (cvt.rn.satfinite).
 */
export const f8e4m3 = dtype('f8e4m3', 1, 'float', false);
/**
 * OCP's E5M2: 1 sign, 5 exponent and 2 fraction bits, from 2^-16 to 57344, infinity and NaN.
 * `Float32Array`, exact when read; rounded to nearest even when written from the host and by
 * `convert`, to infinity from 61440 on; kernels write what is greater than 57344, infinity too, as
 * that, as the GPU's own conversion does (cvt.rn.satfinite).
 */
export const f8e5m2 = dtype('f8e5m2', 1, 'float', false);
/**
 * One byte, 0 or 1, as C++ has it; `Uint8Array`. Bytes go out and come in as they are: write
 * nothing but 0 and 1.
 */
export const bool = dtype('bool', 1, 'bool', true);

/** Every dtype by its name. */
export const DTYPES: { readonly [D in DTypeName]: DType<D> } = Object.freeze({
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  bool,
});

type ArrayConstructor<A> = {
  new (length: number): A;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): A;
  readonly BYTES_PER_ELEMENT: number;
};

/** Constructor of the host array of each dtype. */
export const HOST_ARRAYS: { readonly [D in DTypeName]: ArrayConstructor<HostArrays[D]> } = {
  u8: Uint8Array,
  i8: Int8Array,
  u16: Uint16Array,
  i16: Int16Array,
  u32: Uint32Array,
  i32: Int32Array,
  u64: BigUint64Array,
  i64: BigInt64Array,
  f16: Float32Array,
  bf16: Float32Array,
  f32: Float32Array,
  f64: Float64Array,
  f8e4m3: Float32Array,
  f8e5m2: Float32Array,
  bool: Uint8Array,
};

/** Constructor of the array of raw words of each dtype. */
export const BIT_ARRAYS: { readonly [D in DTypeName]: ArrayConstructor<BitArrays[D]> } = {
  u8: Uint8Array,
  i8: Uint8Array,
  u16: Uint16Array,
  i16: Uint16Array,
  u32: Uint32Array,
  i32: Uint32Array,
  u64: BigUint64Array,
  i64: BigUint64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Uint32Array,
  f64: BigUint64Array,
  f8e4m3: Uint8Array,
  f8e5m2: Uint8Array,
  bool: Uint8Array,
};

/** Any typed array or DataView. */
export type HostView = ArrayBufferView<ArrayBufferLike>;
