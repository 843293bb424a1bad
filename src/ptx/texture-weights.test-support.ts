// Test only: the weights of linear filtering, as an H200 has them.

const to256 = (product: number): number => Math.floor((product + 128) / 256);

/**
 * By x, y and z, of how far the second texel of each axis counts, in 256ths: whole numbers, split
 * by z, then x, then y.
 */
export function weightsOf([a, b, c]: readonly [number, number, number]): number[][][] {
  const planes = [256 - c, c].map((plane) => {
    const right = to256(a * plane);
    const left = plane - right;
    const below = to256(left * (256 - b));
    const above = to256(right * b);
    return [
      [below, left - below],
      [right - above, above],
    ];
  });
  return [0, 1].map((x) => [0, 1].map((y) => [0, 1].map((z) => planes[z]![x]![y]!)));
}
