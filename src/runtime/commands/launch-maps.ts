/**
 * Descriptions of tensor maps in the record of a launch. A description is where the map will be,
 * among the parameters: a record of three maps is half as long as with descriptions apart.
 */

/** The most axes of a tensor map. */
export const MAP_AXES = 5;
/** Words of a tensor map. */
export const MAP_WORDS = 32;

/**
 * The tensor's address, extents and strides (in bytes, of all axes but the first) are 64-bit; the
 * first axis is the one whose elements are adjacent. `words` is the length, at most that of a map.
 *
 * A map of the pixels of images has the channels and pixels of a box as its first two extents; the
 * corners of its window, and its steps, are a byte for each: lower and upper corner across and
 * down, steps across and down. Steps are 0 for a map of boxes.
 */
export const MAP = {
  address: 0,
  type: 2,
  axes: 3,
  swizzle: 4,
  extents: 5,
  strides: 5 + 2 * MAP_AXES,
  box: 5 + 4 * MAP_AXES,
  corners: 5 + 5 * MAP_AXES,
  steps: 6 + 5 * MAP_AXES,
  words: 7 + 5 * MAP_AXES,
} as const;
