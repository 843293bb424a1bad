// Tensor maps: the 128 bytes that describe a tensor in global memory, and the box of it that one
// tensor copy moves. The layout is this device's own: NVIDIA's is not public, and programs make and
// change tensor maps only by the driver's calls and by `tensormap.replace`. Kernels check every
// field where they use a map, so that other bytes are a fault and never an access outside memory.
// Dimensions are in the driver's order, the innermost first.

/** Byte offsets of the fields. Numbers have the meanings of `tensormap.replace`. */
export const TENSOR_MAP = {
  bytes: 128,
  /** The alignment of CUtensorMap before CUDA 13. */
  align: 64,
  most: 5,
  /** A u32: `TENSOR_MAP_MAGIC` distinguishes a tensor map from other memory. */
  magic: 0,
  /** A u8: 1 to 5. */
  rank: 4,
  /** A u8: {@link TENSOR_TYPES} */
  type: 5,
  /** A u8: `TENSOR_KIND` */
  kind: 6,
  /** A u8: 0 none, 1 slices of 16 bytes, 2 of 32. Dimension 0 then counts slices. */
  interleave: 7,
  /** A u8: 0 none, 1 32 bytes, 2 64, 3 128, 4 96. */
  swizzle: 8,
  /** A u8, for a swizzle of 128 bytes: 0 16 bytes, 1 32, 2 32 with a flip of 8, 3 64. */
  atomicity: 9,
  /** A u8: 0 zeros, 1 `OUTSIDE_NAN` for floats. */
  fill: 10,
  /** A u8: the size of prefetches, which has no effect. */
  promotion: 11,
  /** A u64. */
  address: 16,
  /** Four u64: bytes from element to element of the dimensions above the innermost. */
  strides: 24,
  /** Five u32: elements. A signed coordinate reaches 2^31 of them. */
  dims: 56,
  /** Five u32: elements of the box. */
  box: 76,
  /** Three i16: the corners of the box of filter positions, for im2col. */
  lower: 96,
  upper: 102,
  /** Two u16, for im2col. */
  channels: 108,
  pixels: 110,
  /** Five u8: the step from element to element of the box. */
  steps: 112,
} as const;

export const TENSOR_MAP_MAGIC = 0x50414d54;
export const TENSOR_KIND = { tile: 0, im2col: 1 } as const;

/**
 * The element types by number. Those of 4 and 6 bits, which follow, are no types of this device.
 */
export const TENSOR_TYPES = [
  'u8',
  'u16',
  'u32',
  's32',
  'u64',
  's64',
  'f16',
  'f32',
  'f32.ftz',
  'f64',
  'bf16',
  'tf32',
  'tf32.ftz',
] as const;
export type TensorType = (typeof TENSOR_TYPES)[number];

/** The bytes of an element; tf32 is kept in 32 bits, too. @internal */
export const tensorTypeBytes = (type: TensorType): number => Number(/\d+/.exec(type)![0]) / 8;

/** @internal */
export const isFloatTensor = (type: TensorType): boolean => type.includes('f');

/** The value outside of the tensor where NaN is asked for, in every 16 bits (H200, driver 580). */
export const OUTSIDE_NAN = 0x7ff7;

/**
 * The fields of a tensor map. Arrays have an element for each dimension unless stated otherwise.
 */
export interface TensorMap {
  kind: keyof typeof TENSOR_KIND;
  type: TensorType;
  address: number;
  dims: readonly number[];
  /** Bytes; one less than dimensions. */
  strides: readonly number[];
  /** Empty for im2col. */
  box: readonly number[];
  steps: readonly number[];
  interleave: number;
  swizzle: number;
  atomicity: number;
  fill: number;
  promotion: number;
  /** Two less than dimensions, for im2col; empty otherwise. */
  lower: readonly number[];
  upper: readonly number[];
  channels: number;
  pixels: number;
}

const MOST_DIM = 2 ** 31;

/** Writes a tensor map's bytes. @internal */
export function encodeTensorMap(map: TensorMap): Uint8Array {
  const bytes = new Uint8Array(TENSOR_MAP.bytes);
  const view = new DataView(bytes.buffer);
  view.setUint32(TENSOR_MAP.magic, TENSOR_MAP_MAGIC, true);
  bytes[TENSOR_MAP.rank] = map.dims.length;
  bytes[TENSOR_MAP.type] = TENSOR_TYPES.indexOf(map.type);
  bytes[TENSOR_MAP.kind] = TENSOR_KIND[map.kind];
  bytes[TENSOR_MAP.interleave] = map.interleave;
  bytes[TENSOR_MAP.swizzle] = map.swizzle;
  bytes[TENSOR_MAP.atomicity] = map.atomicity;
  bytes[TENSOR_MAP.fill] = map.fill;
  bytes[TENSOR_MAP.promotion] = map.promotion;
  view.setBigUint64(TENSOR_MAP.address, BigInt(map.address), true);
  map.strides.forEach((stride, axis) => {
    view.setBigUint64(TENSOR_MAP.strides + 8 * axis, BigInt(stride), true);
  });
  map.dims.forEach((dim, axis) => {
    view.setUint32(TENSOR_MAP.dims + 4 * axis, Math.min(dim, MOST_DIM), true);
  });
  for (let axis = 0; axis < TENSOR_MAP.most; axis++)
    view.setUint32(TENSOR_MAP.box + 4 * axis, map.box[axis] ?? 1, true);
  map.lower.forEach((corner, axis) => {
    view.setInt16(TENSOR_MAP.lower + 2 * axis, corner, true);
  });
  map.upper.forEach((corner, axis) => {
    view.setInt16(TENSOR_MAP.upper + 2 * axis, corner, true);
  });
  view.setUint16(TENSOR_MAP.channels, map.channels, true);
  view.setUint16(TENSOR_MAP.pixels, map.pixels, true);
  for (let axis = 0; axis < TENSOR_MAP.most; axis++)
    bytes[TENSOR_MAP.steps + axis] = map.steps[axis] ?? 1;
  return bytes;
}

/** Whether bytes are a tensor map. @internal */
export const isTensorMap = (bytes: Uint8Array): boolean =>
  bytes.length >= TENSOR_MAP.bytes &&
  new DataView(bytes.buffer, bytes.byteOffset).getUint32(TENSOR_MAP.magic, true) ===
    TENSOR_MAP_MAGIC;
