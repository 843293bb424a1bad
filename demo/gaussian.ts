/** The blur's weights, shared by the kernels and their reference. */

/** Taps on each side of the centre; `RADIUS` in kernels/blur.cu. */
export const BLUR_RADIUS = 4;

/** Standard deviation in pixels. */
const SIGMA = 1.6;

/** 2 × `BLUR_RADIUS` + 1 f32 weights that add up to one. */
export function gaussianWeights(): Float32Array {
  const distances = Array.from({ length: 2 * BLUR_RADIUS + 1 }, (_, i) => i - BLUR_RADIUS);
  const weights = distances.map((distance) => Math.exp(-(distance ** 2) / (2 * SIGMA ** 2)));
  const total = weights.reduce((sum, weight) => sum + weight);
  return Float32Array.from(weights, (weight) => weight / total);
}
