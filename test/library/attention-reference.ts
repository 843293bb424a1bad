/** Attention and its gradients in double precision, as tests compare with them. */

/** One attention: operands as flat lists in row-major order, with all batches as one axis. */
export interface Attention {
  readonly q: ArrayLike<number>;
  readonly k: ArrayLike<number>;
  readonly v: ArrayLike<number>;
  readonly batches: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly m: number;
  readonly n: number;
  readonly channels: number;
  readonly causal?: boolean;
  readonly window?: number;
  readonly scale?: number;
  /** What is added to a scaled score; -Infinity for a key that is not seen. */
  readonly added?: (matrix: number, query: number, key: number) => number;
}

/** The shares of a query's keys, and the logarithm of the sum of their exponentials. */
function sharesOf(given: Attention, matrix: number, query: number) {
  const { q, k, m, n, channels, causal = false, window = Infinity, added } = given;
  const { scale = 1 / Math.sqrt(channels) } = given;
  const shared = headOf(given, matrix);
  const position = query + n - m;
  const scores = Array.from({ length: n }, (_, key) => {
    if ((causal && key > position) || key < position - window) return -Infinity;
    let dot = 0;
    for (let c = 0; c < channels; c++)
      dot += q[(matrix * m + query) * channels + c]! * k[(shared * n + key) * channels + c]!;
    return dot * scale + (added?.(matrix, query, key) ?? 0);
  });
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const shares = scores.map((score) => (most === -Infinity ? 0 : Math.exp(score - most)));
  const sum = shares.reduce((a, b) => a + b, 0);
  return {
    shares: shares.map((share) => (sum === 0 ? 0 : share / sum)),
    logSum: most + Math.log(sum),
  };
}

/** The head of k and v of a head of q, counted through all batches. */
function headOf({ heads, kvHeads }: Attention, matrix: number): number {
  return Math.floor(matrix / heads) * kvHeads + Math.floor((matrix % heads) / (heads / kvHeads));
}

export function forward(given: Attention): { out: Float64Array; logSums: Float64Array } {
  const { v, batches, heads, m, n, channels } = given;
  const out = new Float64Array(batches * heads * m * channels);
  const logSums = new Float64Array(batches * heads * m);
  for (let row = 0; row < logSums.length; row++) {
    const matrix = Math.floor(row / m);
    const { shares, logSum } = sharesOf(given, matrix, row % m);
    logSums[row] = logSum;
    const shared = headOf(given, matrix);
    shares.forEach((share, key) => {
      for (let c = 0; c < channels; c++)
        out[row * channels + c]! += share * v[(shared * n + key) * channels + c]!;
    });
  }
  return { out, logSums };
}

/** Elements of a gradient, and the sums of the magnitudes that each of them is made of. */
export interface Gradient {
  readonly values: Float64Array;
  readonly magnitudes: Float64Array;
}

export function backward(
  given: Attention,
  dOut: ArrayLike<number>,
): { readonly dq: Gradient; readonly dk: Gradient; readonly dv: Gradient } {
  const { q, k, v, batches, heads, kvHeads, m, n, channels } = given;
  const { scale = 1 / Math.sqrt(channels) } = given;
  const gradient = (rows: number): Gradient => ({
    values: new Float64Array(rows * channels),
    magnitudes: new Float64Array(rows * channels),
  });
  const dq = gradient(batches * heads * m);
  const dk = gradient(batches * kvHeads * n);
  const dv = gradient(batches * kvHeads * n);
  const add = (to: Gradient, at: number, factor: number, size: number, value: number): void => {
    to.values[at]! += factor * value;
    to.magnitudes[at]! += Math.abs(size * value);
  };
  for (let row = 0; row < batches * heads * m; row++) {
    const matrix = Math.floor(row / m);
    const shared = headOf(given, matrix);
    const { shares } = sharesOf(given, matrix, row % m);
    const slopes = shares.map((_, key) => {
      let dot = 0;
      for (let c = 0; c < channels; c++)
        dot += dOut[row * channels + c]! * v[(shared * n + key) * channels + c]!;
      return dot;
    });
    let delta = 0;
    let deltaSize = 0;
    for (let c = 0; c < channels; c++) {
      const of = shares.reduce(
        (sum, share, key) => sum + share * v[(shared * n + key) * channels + c]!,
        0,
      );
      delta += of * dOut[row * channels + c]!;
      deltaSize += Math.abs(of * dOut[row * channels + c]!);
    }
    shares.forEach((share, key) => {
      const slope = scale * share * (slopes[key]! - delta);
      const size = scale * share * (Math.abs(slopes[key]!) + deltaSize);
      for (let c = 0; c < channels; c++) {
        const [at, other] = [row * channels + c, (shared * n + key) * channels + c];
        add(dv, other, share, share, dOut[at]!);
        add(dk, other, slope, size, q[at]!);
        add(dq, at, slope, size, k[other]!);
      }
    });
  }
  return { dq, dk, dv };
}
