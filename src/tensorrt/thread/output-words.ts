/** MAX_DIMS */
export const MOST_EXTENTS = 8;

/**
 * Numbers that an output's allocator and the JavaScript thread share: the bytes of the memory, the
 * rank (-1 until TensorRT has given it), the extents.
 */
export const OUTPUT_WORDS = 2 + MOST_EXTENTS;
