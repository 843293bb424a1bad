/**
 * The references of plain launches: one word each, with the handle, the access and the word of the
 * parameter that takes the address.
 */
export const LINE_ACCESS_SHIFT = 20;
export const LINE_WORD_SHIFT = 23;
export const LINE_HANDLE_MASK = 0xfffff;
export const LINE_MAX_WORD = 0x1ff;

/**
 * The last of the words before the references of `launchLine` and `launchGrid`: references |
 * parameter bytes << 16.
 */
export const LINE_PACKED = 4;
export const GRID_PACKED = 8;
