/** How several things lie in one memory that they are copied to. */

/** Bytes, at least, of memory that is made for them. */
const LEAST_BYTES = 2 ** 16;
/** What processors like their vectors to begin at. */
const ALIGNMENT = 64;

/**
 * Where things of these sizes begin, one behind the other, each at a multiple of `alignment`, and
 * the bytes of all.
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
 * Bytes of memory that is made for so many: the next ones that need a little more have room in it.
 */
export function capacityFor(bytes: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_BYTES)));
}
