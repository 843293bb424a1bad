/** How files lie in memory that they are copied to. */

/** Bytes of such memory: at least, and at most while nothing is decoded. */
const LEAST_BYTES = 2 ** 16;
export const MOST_KEPT_BYTES = 2 ** 22;
/** Files begin at multiples of this. */
const ALIGNMENT = 64;

/** Where files of the lengths begin, one behind the other, and how many bytes they take. */
export function placesOf(lengths: readonly number[]): { readonly offsets: readonly number[]; readonly bytes: number } {
  let bytes = 0;
  const offsets = lengths.map((length) => {
    const offset = bytes;
    bytes += Math.ceil(length / ALIGNMENT) * ALIGNMENT;
    return offset;
  });
  return { offsets, bytes };
}

/** Bytes of memory that is made for so many. */
export function capacityFor(bytes: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_BYTES)));
}
