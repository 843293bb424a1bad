/** Where the memory of a tensor begins. */
import type { AnyTensor } from './tensor.js';

/**
 * Whether the first element is at a multiple of so many bytes. Memory of other owners begins
 * anywhere.
 */
export function beginsAt({ buffer, layout, dtype }: AnyTensor, bytes: number): boolean {
  return buffer.memory.aligned && (buffer.byteOffset + layout.offset * dtype.bytes) % bytes === 0;
}
