/** MAX_DIMS */
export const MOST_EXTENTS = 8;

/**
 * Numbers that an output's allocator and the JS thread share: bytes that there is room for, the
 * rank (-1 until TensorRT has said), the extents.
 */
export const OUTPUT_WORDS = 2 + MOST_EXTENTS;
