/** Matrix products: tiles in shared memory, and sums in registers. */
import { Values } from '../host-values.js';
import { f32 } from '../reference/rounded.js';
import type { SampleModule } from '../sample-case.js';

const random = new Values(4);

interface Product {
  rows: number;
  columns: number;
  inner: number;
  a: Float32Array;
  b: Float32Array;
}

function product(rows: number, columns: number, inner: number): Product {
  return {
    rows,
    columns,
    inner,
    a: random.floats(rows * inner, -1, 1),
    b: random.floats(inner * columns, -1, 1),
  };
}

/** fma after fma, in order of k. */
function multiply({ rows, columns, inner, a, b }: Product): Float32Array {
  return Float32Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = 0;
    for (let k = 0; k < inner; k++)
      sum = f32.fma(a[row * inner + k]!, b[k * columns + column]!, sum);
    return sum;
  });
}

const odd = product(37, 29, 41);
const even = product(64, 128, 24);
const special = product(16, 16, 16);
special.a.set([Infinity, NaN, 2 ** -140, 3e38], 0);
special.a.fill(0, 16, 32);

export const K04_SGEMM: SampleModule = {
  name: 'k04_sgemm',
  cases: [
    {
      kernel: 'sgemm_tiled',
      name: '37 × 41 by 41 × 29',
      memory: { a: odd.a, b: odd.b, c: new Float32Array(37 * 29 + 1) },
      launches: [{ grid: [2, 3], block: [16, 16], args: [37, 29, 41, 'a', 'b', 'c'] }],
      outputs: { c: { equal: 'bits', reference: () => Float32Array.of(...multiply(odd), 0) } },
    },
    {
      kernel: 'sgemm_tiled',
      name: 'infinities, NaN, overflow, a row of zeros',
      memory: { a: special.a, b: special.b, c: new Float32Array(256) },
      launches: [{ grid: 1, block: [16, 16], args: [16, 16, 16, 'a', 'b', 'c'] }],
      outputs: { c: { equal: 'bits', reference: () => multiply(special) } },
    },
    {
      kernel: 'sgemm_reg',
      name: '64 × 24 by 24 × 128',
      memory: { a: even.a, b: even.b, c: new Float32Array(64 * 128) },
      launches: [{ grid: [2, 1], block: 256, args: [64, 128, 24, 'a', 'b', 'c'] }],
      outputs: { c: { equal: 'bits', reference: () => multiply(even) } },
    },
  ],
};
