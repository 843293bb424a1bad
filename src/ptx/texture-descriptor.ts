// Textures and surfaces in compiled kernels: a handle is the address of a descriptor in device
// memory, which the driver writes when it makes the object. Kernels check it, and the address of
// every texel, so that a wrong handle is a fault and never an access outside the device's memory.
// Formats, flags and address modes have the numbers of cuda.h.

/** Byte offsets of the 32-bit fields. */
export const TEXTURE = {
  bytes: 128,
  /** {@link TEXTURE_MAGIC} distinguishes a descriptor from other memory. */
  magic: 0,
  /** {@link TEXTURE_KIND} */
  kind: 4,
  /** Address of the first texel. */
  data: 8,
  /**
   * In texels; 1 for a dimension that the object does not have. The depth also counts layers, with
   * their faces.
   */
  width: 12,
  height: 16,
  depth: 20,
  /** Bytes from row to row and from slice to slice. */
  pitch: 24,
  slicePitch: 28,
  /** CUarray_format */
  format: 32,
  channels: 36,
  texelBytes: 40,
  /** CU_TRSF_*: 1 read as integer, 2 normalised coordinates, 16 sRGB */
  flags: 44,
  /** CUfilter_mode: 0 point, 1 linear */
  filter: 48,
  /** CUaddress_mode per axis: 0 wrap, 1 clamp, 2 mirror, 3 border */
  addressMode: 52,
  /** Four f32. */
  border: 64,
  /** 1: linear memory that is read by index, and zero outside. */
  linear: 80,
  /** 1: the depth counts layers. */
  layered: 84,
} as const;

export const TEXTURE_MAGIC = 0x54584554;
export const TEXTURE_KIND = { texture: 1, surface: 2 } as const;
