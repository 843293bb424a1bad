/**
 * Numbers as f32 rounded to odd: the number itself where an f32 holds it, else of the two around it
 * the one whose last bit is set. Rounding that to nearest, to 22 bits or fewer, equals rounding the
 * number itself (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008), so it
 * is the intermediate step from a wider number to a narrow float.
 */
const float = new Float32Array(1);
const word = new Uint32Array(float.buffer);

/** The f32 next to the number towards zero. */
export function towardsZero(value: number): number {
  float[0] = value;
  // The bits of a float's magnitude are in the order of the magnitudes; beyond the largest of them
  // is infinity.
  if (Math.abs(float[0]) > Math.abs(value)) word[0]!--;
  return float[0];
}

/** Does the same as {@link towardsZero} for a whole number of any size within f32's exponents. */
export function wholeTowardsZero(value: bigint): number {
  const magnitude = value < 0n ? -value : value;
  const beyond = Math.max(magnitude.toString(2).length - 24, 0);
  const cut = Number(magnitude >> BigInt(beyond)) * 2 ** beyond;
  return value < 0n ? -cut : cut;
}

export function roundToOdd(value: number | bigint): number {
  const cut = typeof value === 'bigint' ? wholeTowardsZero(value) : towardsZero(value);
  // eslint-disable-next-line eqeqeq -- a bigint and a number are compared by value
  if (cut == value || Number.isNaN(cut)) return cut;
  float[0] = cut;
  word[0]! |= 1;
  return float[0];
}
