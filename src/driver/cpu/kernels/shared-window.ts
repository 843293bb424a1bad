/** Where the shared memory of a block may begin. */
import { SHARED_ALIGNMENT } from '../../../ptx/index.js';

/** The alignment of the parts of a slot. */
export const PART_ALIGNMENT = 128;

/** The alignment of shared memory. A block that has none needs no room for it. */
export const windowAlignment = (sharedBytes: number, sharedAlign: number): number =>
  Math.max(sharedAlign, sharedBytes > 0 ? SHARED_ALIGNMENT : PART_ALIGNMENT);
