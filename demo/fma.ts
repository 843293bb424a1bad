/**
 * `fmaf` of C and `fma.rn.f32` of PTX in plain TypeScript: a × b + c in f32 with one rounding, for
 * finite operands whose product and sum stay far from overflow.
 *
 * In f64 the product of two f32 is exact, but the sum rounds once and `Math.fround` would round
 * again. So the sum is rounded to odd first (Boldo and Melquiond, "Emulation of FMA and correctly
 * rounded sums", 2008): when it was inexact, its last bit is made odd, and with 53 ≥ 2 × 24 + 2
 * bits the second rounding then gives what a single one would have.
 */
const float64 = new Float64Array(1);
const words = new Uint32Array(float64.buffer);

/** Rounds a × b + c once, to f32. The operands must be f32 values. */
export function fmaf(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  // Knuth's TwoSum: what the addition lost, exactly.
  const cRounded = sum - product;
  const lost = product - (sum - cRounded) + (c - cRounded);
  if (lost === 0) return Math.fround(sum);

  float64[0] = sum;
  const low = words[0]!;
  if (low % 2 === 0) {
    if (lost > 0 === sum > 0) words[0] = low + 1;
    else {
      words[0] = low - 1;
      if (low === 0) words[1]!--;
    }
  }
  return Math.fround(float64[0]);
}
