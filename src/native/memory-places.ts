/** The layout of several pieces of data in one memory that they are copied to. */

/** The smallest memory that is allocated for them: bytes. */
const LEAST_BYTES = 2 ** 16;
/** An alignment that suits the processors' vector loads. */
const ALIGNMENT = 64;

/**
 * Returns the offsets of pieces of these sizes, one after the other, each at a multiple of
 * `alignment`, and the bytes of all.
 */
export function placesOf(
  sizes: readonly number[],
  alignment = ALIGNMENT,
): { readonly offsets: readonly number[]; readonly bytes: number } {
  let bytes = 0;
  const offsets = sizes.map((size) => {
    const offset = bytes;
    bytes += Math.ceil(size / alignment) * alignment;
    return offset;
  });
  return { offsets, bytes };
}

/**
 * Returns the bytes to allocate for data of this size. They exceed it, so that slightly larger data
 * fits later.
 */
export function capacityFor(bytes: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_BYTES)));
}
