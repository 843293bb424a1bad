/** Descriptions of tensor maps in the record of a launch, after its parameters. */

/** The most axes of a tensor map. */
export const MAP_AXES = 5;
/** Words of a tensor map. */
export const MAP_WORDS = 32;

/**
 * `param`: the map's first word among the parameters, where the tensor's address is. Extents and
 * strides (in bytes, of all axes but the first) are 64-bit; the first axis is the one whose
 * elements are adjacent.
 */
export const MAP = {
  param: 0,
  type: 1,
  axes: 2,
  swizzle: 3,
  extents: 4,
  strides: 4 + 2 * MAP_AXES,
  box: 4 + 4 * MAP_AXES,
  words: 4 + 5 * MAP_AXES,
} as const;
