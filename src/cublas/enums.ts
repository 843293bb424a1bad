/**
 * Numbers of cuBLASLt: types, attributes, epilogues, and the statuses that its functions return.
 * The headers of cuBLASLt 12 and 13 agree on all of them.
 */
import type { LibraryStatus } from '../core/index.js';

/** The most bytes of an attribute's value. */
export const PROPERTY_BYTES = 8;

/** cudaDataType, by the name of the dtype. */
export const DATA_TYPE = { f32: 0, f16: 2, bf16: 14, f8e4m3: 28, f8e5m2: 29 } as const;

export type CublasName = keyof typeof DATA_TYPE;

/** cublasComputeType_t: sums of f32, of factors that are or are not rounded to tf32 first. */
export const COMPUTE_TYPE = { f32: 68, tf32: 77 } as const;

/** cublasOperation_t */
export const OPERATION = { none: 0, transpose: 1 } as const;

/** cublasLtEpilogue_t: flags. */
export const EPILOGUE = { none: 1, relu: 2, bias: 4, gelu: 32 } as const;

/** cublasLtMatmulMatrixScale_t: one factor for the matrix, or one for each row or column. */
export const SCALE_MODE = { scalar: 0, vector: 3 } as const;

/** An attribute: its number, and the type of its value. */
export interface AttributeRow {
  readonly number: number;
  readonly type: 'i8' | 'i32' | 'u32' | 'i64' | 'u64';
}

/** cublasLtMatmulDescAttributes_t */
export const DESCRIPTOR = {
  transposeA: { number: 3, type: 'i32' },
  transposeB: { number: 4, type: 'i32' },
  epilogue: { number: 7, type: 'u32' },
  biasPointer: { number: 8, type: 'u64' },
  scaleOfA: { number: 17, type: 'u64' },
  scaleOfB: { number: 18, type: 'u64' },
  scaleOfD: { number: 20, type: 'u64' },
  amaxOfD: { number: 21, type: 'u64' },
  fastAccumulation: { number: 25, type: 'i8' },
  biasType: { number: 26, type: 'i32' },
  scaleModeOfA: { number: 31, type: 'i32' },
  scaleModeOfB: { number: 32, type: 'i32' },
} as const satisfies Record<string, AttributeRow>;

/** cublasLtMatrixLayoutAttribute_t */
export const LAYOUT = {
  batchCount: { number: 5, type: 'i32' },
  batchOffset: { number: 6, type: 'i64' },
} as const satisfies Record<string, AttributeRow>;

/** cublasLtMatmulPreferenceAttributes_t */
export const PREFERENCE = {
  workspaceBytes: { number: 1, type: 'u64' },
  alignmentOfA: { number: 5, type: 'u32' },
  alignmentOfB: { number: 6, type: 'u32' },
  alignmentOfC: { number: 7, type: 'u32' },
  alignmentOfD: { number: 8, type: 'u32' },
} as const satisfies Record<string, AttributeRow>;

const BYTES: Readonly<Record<AttributeRow['type'], number>> = {
  i8: 1,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
};

/** The arguments of a SetAttribute function after the object. */
export function attribute(
  { number, type }: AttributeRow,
  value: number,
): [number, Uint8Array, number] {
  const bytes = new Uint8Array(PROPERTY_BYTES);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(value), true);
  return [number, bytes, BYTES[type]];
}

/** cublasStatus_t */
export const STATUSES: Readonly<Record<number, LibraryStatus>> = {
  1: {
    name: 'CUBLAS_STATUS_NOT_INITIALIZED',
    text: 'the library could not be initialised: the CUDA runtime failed, or the driver is too old',
  },
  3: {
    name: 'CUBLAS_STATUS_ALLOC_FAILED',
    text: 'the library could not allocate memory',
    means: 'memory',
  },
  7: {
    name: 'CUBLAS_STATUS_INVALID_VALUE',
    text: 'an argument, or a combination of them, is invalid',
  },
  8: {
    name: 'CUBLAS_STATUS_ARCH_MISMATCH',
    text: 'this GPU does not have what the product needs',
    means: 'unsupported',
  },
  11: { name: 'CUBLAS_STATUS_MAPPING_ERROR', text: 'memory of the GPU could not be accessed' },
  13: { name: 'CUBLAS_STATUS_EXECUTION_FAILED', text: 'a kernel could not be launched' },
  14: { name: 'CUBLAS_STATUS_INTERNAL_ERROR', text: 'the library failed' },
  15: {
    name: 'CUBLAS_STATUS_NOT_SUPPORTED',
    text: 'the library has no kernel for these types, layouts and this epilogue on this GPU',
    means: 'unsupported',
  },
  16: { name: 'CUBLAS_STATUS_LICENSE_ERROR', text: 'the library found no licence' },
};
