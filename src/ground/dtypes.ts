/**
 * The table of dtypes: one row each, which is also what programs import. `dtype-row.ts` describes
 * the fields; `dtype.ts` has the types and tables that follow from the rows. Every export of this
 * file is a dtype under its own name; nothing else may be exported here.
 *
 * Types that JavaScript has no array for are read as the next wider type that holds every value
 * exactly: f16, bf16 and the two f8 as Float32Array, bool as Uint8Array of 0 and 1. `readBits`
 * gives the raw words.
 */
import { row } from './dtype-row.js';

/** Unsigned 8-bit integer; `Uint8Array`. */
export const u8 = row('u8', {
  bytes: 1,
  kind: 'unsigned',
  hostArray: Uint8Array,
  bitArray: Uint8Array,
  float: null,
  narrow: null,
  part: null,
  holds: [],
  compute: 'i32',
  ptx: { type: 'u8', parameter: 'u8', load: 'u8' },
  cuda: {
    keywords: ['unsigned char'],
    headers: ['uint8_t'],
    vectors: ['uchar2', 'uchar3', 'uchar4'],
  },
  npy: { type: 'u1', others: [] },
  dlpack: [1, 8],
  safetensors: 'U8',
  onnx: 2,
  tensorrt: 5,
  texel: 1,
});

/** Signed 8-bit integer; `Int8Array`. */
export const i8 = row('i8', {
  bytes: 1,
  kind: 'signed',
  hostArray: Int8Array,
  bitArray: Uint8Array,
  float: null,
  narrow: null,
  part: null,
  holds: [],
  compute: 'i32',
  ptx: { type: 's8', parameter: 's8', load: 's8' },
  cuda: { keywords: ['signed char'], headers: ['int8_t'], vectors: ['char2', 'char3', 'char4'] },
  npy: { type: 'i1', others: [] },
  dlpack: [0, 8],
  safetensors: 'I8',
  onnx: 3,
  tensorrt: 2,
  texel: 8,
});

/** Unsigned 16-bit integer; `Uint16Array`. */
export const u16 = row('u16', {
  bytes: 2,
  kind: 'unsigned',
  hostArray: Uint16Array,
  bitArray: Uint16Array,
  float: null,
  narrow: null,
  part: null,
  holds: ['u8'],
  compute: 'i32',
  ptx: { type: 'u16', parameter: 'u16', load: 'u16' },
  cuda: {
    keywords: ['unsigned short', 'unsigned short int'],
    headers: ['uint16_t'],
    vectors: ['ushort2', 'ushort3', 'ushort4'],
  },
  npy: { type: 'u2', others: [] },
  dlpack: [1, 16],
  safetensors: 'U16',
  onnx: 4,
  tensorrt: null,
  texel: 2,
});

/** Signed 16-bit integer; `Int16Array`. */
export const i16 = row('i16', {
  bytes: 2,
  kind: 'signed',
  hostArray: Int16Array,
  bitArray: Uint16Array,
  float: null,
  narrow: null,
  part: null,
  holds: ['u8', 'i8'],
  compute: 'i32',
  ptx: { type: 's16', parameter: 's16', load: 's16' },
  cuda: {
    keywords: ['short', 'short int', 'signed short', 'signed short int'],
    headers: ['int16_t'],
    vectors: ['short2', 'short3', 'short4'],
  },
  npy: { type: 'i2', others: [] },
  dlpack: [0, 16],
  safetensors: 'I16',
  onnx: 5,
  tensorrt: null,
  texel: 9,
});

/** Unsigned 32-bit integer; `Uint32Array`. */
export const u32 = row('u32', {
  bytes: 4,
  kind: 'unsigned',
  hostArray: Uint32Array,
  bitArray: Uint32Array,
  float: null,
  narrow: null,
  part: null,
  holds: ['u8', 'u16'],
  compute: 'u32',
  ptx: { type: 'u32', parameter: 'u32', load: 'u32' },
  cuda: {
    keywords: ['unsigned', 'unsigned int'],
    headers: ['uint32_t'],
    vectors: ['uint2', 'uint3', 'uint4'],
  },
  npy: { type: 'u4', others: [] },
  dlpack: [1, 32],
  safetensors: 'U32',
  onnx: 12,
  tensorrt: null,
  texel: 3,
});

/** Signed 32-bit integer; `Int32Array`. */
export const i32 = row('i32', {
  bytes: 4,
  kind: 'signed',
  hostArray: Int32Array,
  bitArray: Uint32Array,
  float: null,
  narrow: null,
  part: null,
  holds: ['u8', 'i8', 'u16', 'i16'],
  compute: 'i32',
  ptx: { type: 's32', parameter: 'u32', load: 'u32' },
  cuda: {
    keywords: ['int', 'signed', 'signed int'],
    headers: ['int32_t'],
    vectors: ['int2', 'int3', 'int4'],
  },
  npy: { type: 'i4', others: [] },
  dlpack: [0, 32],
  safetensors: 'I32',
  onnx: 6,
  tensorrt: 3,
  texel: 10,
});

/** Unsigned 64-bit integer; `BigUint64Array`. */
export const u64 = row('u64', {
  bytes: 8,
  kind: 'unsigned',
  hostArray: BigUint64Array,
  bitArray: BigUint64Array,
  float: null,
  narrow: null,
  part: null,
  holds: ['u8', 'u16', 'u32'],
  compute: 'u64',
  ptx: { type: 'u64', parameter: 'u64', load: 'u64' },
  cuda: {
    keywords: ['unsigned long long', 'unsigned long long int'],
    headers: ['uint64_t', 'size_t', 'uintptr_t'],
    vectors: ['ulonglong2', 'ulonglong3', 'ulonglong4'],
  },
  npy: { type: 'u8', others: [] },
  dlpack: [1, 64],
  safetensors: 'U64',
  onnx: 13,
  tensorrt: null,
  texel: null,
});

/** Signed 64-bit integer; `BigInt64Array`. */
export const i64 = row('i64', {
  bytes: 8,
  kind: 'signed',
  hostArray: BigInt64Array,
  bitArray: BigUint64Array,
  float: null,
  narrow: null,
  part: null,
  holds: ['u8', 'i8', 'u16', 'i16', 'u32', 'i32'],
  compute: 'i64',
  ptx: { type: 's64', parameter: 'u64', load: 'u64' },
  cuda: {
    keywords: ['long long', 'long long int', 'signed long long', 'signed long long int'],
    headers: ['int64_t', 'ptrdiff_t', 'intptr_t'],
    vectors: ['longlong2', 'longlong3', 'longlong4'],
  },
  npy: { type: 'i8', others: [] },
  dlpack: [0, 64],
  safetensors: 'I64',
  onnx: 7,
  tensorrt: 8,
  texel: null,
});

/**
 * IEEE half: 1 sign, 5 exponent and 10 fraction bits; `Float32Array`, exact when read, rounded to
 * nearest even when written.
 */
export const f16 = row('f16', {
  bytes: 2,
  kind: 'float',
  hostArray: Float32Array,
  bitArray: Uint16Array,
  float: { exponentBits: 5, fractionBits: 10, infinity: true },
  narrow: { hostNaN: 0x7e00, kernelNaN: 0x7fff, saturates: false },
  part: null,
  holds: ['f8e4m3', 'f8e5m2'],
  compute: 'f32',
  ptx: { type: 'f16', parameter: 'b16', load: 'b16' },
  cuda: { keywords: [], headers: ['half', '__half'], vectors: ['half2', '__half2'] },
  npy: { type: 'f2', others: [] },
  dlpack: [2, 16],
  safetensors: 'F16',
  onnx: 10,
  tensorrt: 1,
  texel: 16,
});

/**
 * bfloat16: 1 sign, 8 exponent and 7 fraction bits; `Float32Array`, exact when read, rounded to
 * nearest even when written.
 */
export const bf16 = row('bf16', {
  bytes: 2,
  kind: 'float',
  hostArray: Float32Array,
  bitArray: Uint16Array,
  float: { exponentBits: 8, fractionBits: 7, infinity: true },
  narrow: { hostNaN: 0x7fc0, kernelNaN: 0x7fff, saturates: false },
  part: null,
  holds: ['f8e4m3', 'f8e5m2'],
  compute: 'f32',
  ptx: { type: 'bf16', parameter: 'b16', load: 'u16' },
  cuda: {
    keywords: [],
    headers: ['__nv_bfloat16', 'nv_bfloat16'],
    vectors: ['__nv_bfloat162', 'nv_bfloat162'],
  },
  npy: { type: 'V2', others: ['bfloat16'] },
  dlpack: [4, 16],
  safetensors: 'BF16',
  onnx: 16,
  tensorrt: 7,
  texel: null,
});

/** IEEE single; `Float32Array`. */
export const f32 = row('f32', {
  bytes: 4,
  kind: 'float',
  hostArray: Float32Array,
  bitArray: Uint32Array,
  float: { exponentBits: 8, fractionBits: 23, infinity: true },
  narrow: null,
  part: null,
  holds: ['f8e4m3', 'f8e5m2', 'f16', 'bf16'],
  compute: 'f32',
  ptx: { type: 'f32', parameter: 'f32', load: 'f32' },
  cuda: { keywords: ['float'], headers: [], vectors: ['float2', 'float3', 'float4'] },
  npy: { type: 'f4', others: [] },
  dlpack: [2, 32],
  safetensors: 'F32',
  onnx: 1,
  tensorrt: 0,
  texel: 32,
});

/** IEEE double; `Float64Array`. */
export const f64 = row('f64', {
  bytes: 8,
  kind: 'float',
  hostArray: Float64Array,
  bitArray: BigUint64Array,
  float: { exponentBits: 11, fractionBits: 52, infinity: true },
  narrow: null,
  part: null,
  holds: ['f8e4m3', 'f8e5m2', 'f16', 'bf16', 'f32'],
  compute: 'f64',
  ptx: { type: 'f64', parameter: 'f64', load: 'f64' },
  cuda: { keywords: ['double'], headers: [], vectors: ['double2', 'double3', 'double4'] },
  npy: { type: 'f8', others: [] },
  dlpack: [2, 64],
  safetensors: 'F64',
  onnx: 11,
  tensorrt: null,
  texel: null,
});

/**
 * OCP's E4M3, elsewhere called e4m3fn: 1 sign, 4 exponent and 3 fraction bits, from 2^-9 to 448; no
 * infinity, NaN is 0x7f. The host array is a `Float32Array`. Reading is exact. Writing from the
 * host and `convert` round to nearest even, and to NaN above 464. Kernels write a value greater
 * than 448, infinity too, as 448, as the GPU's own conversion does (cvt.rn.satfinite).
 */
export const f8e4m3 = row('f8e4m3', {
  bytes: 1,
  kind: 'float',
  hostArray: Float32Array,
  bitArray: Uint8Array,
  float: { exponentBits: 4, fractionBits: 3, infinity: false },
  narrow: { hostNaN: 0x7f, kernelNaN: 0x7f, saturates: true },
  part: null,
  holds: [],
  compute: 'f32',
  ptx: { type: null, parameter: 'b8', load: 'u8' },
  cuda: { keywords: [], headers: ['__nv_fp8_e4m3'], vectors: [] },
  npy: { type: 'V1', others: ['float8_e4m3fn'] },
  dlpack: [10, 8],
  safetensors: 'F8_E4M3',
  onnx: 17,
  tensorrt: 6,
  texel: null,
});

/**
 * OCP's E5M2: 1 sign, 5 exponent and 2 fraction bits, from 2^-16 to 57344, infinity and NaN. The
 * host array is a `Float32Array`. Reading is exact. Writing from the host and `convert` round to
 * nearest even, and to infinity from 61440 on. Kernels write a value greater than 57344, infinity
 * too, as 57344, as the GPU's own conversion does (cvt.rn.satfinite).
 */
export const f8e5m2 = row('f8e5m2', {
  bytes: 1,
  kind: 'float',
  hostArray: Float32Array,
  bitArray: Uint8Array,
  float: { exponentBits: 5, fractionBits: 2, infinity: true },
  narrow: { hostNaN: 0x7e, kernelNaN: 0x7f, saturates: true },
  part: null,
  holds: [],
  compute: 'f32',
  ptx: { type: null, parameter: 'b8', load: 'u8' },
  cuda: { keywords: [], headers: ['__nv_fp8_e5m2'], vectors: [] },
  npy: { type: 'V1', others: ['float8_e5m2', 'f1'] },
  dlpack: [12, 8],
  safetensors: 'F8_E5M2',
  onnx: 19,
  tensorrt: null,
  texel: null,
});

/**
 * One byte, 0 or 1, as in C++; `Uint8Array`. Each byte other than 0 is true, on the host and on the
 * device, and is written and read as 1.
 */
export const bool = row('bool', {
  bytes: 1,
  kind: 'bool',
  hostArray: Uint8Array,
  bitArray: Uint8Array,
  float: null,
  narrow: null,
  part: null,
  holds: [],
  compute: 'bool',
  ptx: { type: null, parameter: 'u8', load: 'u8' },
  cuda: { keywords: ['bool'], headers: [], vectors: [] },
  npy: { type: 'b1', others: [] },
  dlpack: [6, 8],
  safetensors: 'BOOL',
  onnx: 9,
  tensorrt: 4,
  texel: null,
});

/**
 * Complex number of two f32, the real part first. The `Float32Array` holds both parts of each
 * element in turn, as NumPy's complex64 and CUDA's cuFloatComplex lie in memory. One element is a
 * pair, `[real, imaginary]`. It is created, copied, viewed, saved and loaded. Operations that
 * compute take its parts, `x.real()` and `x.imag()`.
 */
export const complex64 = row('complex64', {
  bytes: 8,
  kind: 'complex',
  hostArray: Float32Array,
  bitArray: Uint32Array,
  float: null,
  narrow: null,
  part: 'f32',
  holds: ['f8e4m3', 'f8e5m2', 'f16', 'bf16', 'f32'],
  compute: null,
  ptx: null,
  // Headers define cuFloatComplex as float2 and cuDoubleComplex as double2: vectors of the part.
  cuda: { keywords: [], headers: [], vectors: [] },
  npy: { type: 'c8', others: [] },
  dlpack: [5, 64],
  safetensors: 'C64',
  onnx: 14,
  tensorrt: null,
  texel: null,
});

/** Complex number of two f64; `Float64Array`. In all else it is like complex64. */
export const complex128 = row('complex128', {
  bytes: 16,
  kind: 'complex',
  hostArray: Float64Array,
  bitArray: BigUint64Array,
  float: null,
  narrow: null,
  part: 'f64',
  holds: ['f8e4m3', 'f8e5m2', 'f16', 'bf16', 'f32', 'f64', 'complex64'],
  compute: null,
  ptx: null,
  // Headers define cuFloatComplex as float2 and cuDoubleComplex as double2: vectors of the part.
  cuda: { keywords: [], headers: [], vectors: [] },
  npy: { type: 'c16', others: [] },
  dlpack: [5, 128],
  safetensors: null,
  onnx: 15,
  tensorrt: null,
  texel: null,
});
