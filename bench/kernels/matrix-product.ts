/**
 * Products of matrices and linear layers, summed in f32, compared with cuBLAS in C and with
 * cuBLASLt through our binding: all timed by the device's events.
 */
import type { Bar, Benchmark, Peer } from '../benchmark.js';
import { library, root } from '../library.js';
import { SAMPLES, productsOf, startProduct } from './product-contenders.js';
import type { ProductCase } from './product-contenders.js';

/** As fast as cuBLAS where there is much to compute. */
const AS_FAST: Bar = '<= 1';
/** At least 0.95 of its speed. */
const NEARLY: Bar = '<= 1.0526';

/** At least 0.9 of its speed, for factors of 8 bits. */
const CLOSE: Bar = '<= 1.1111';

interface Row {
  readonly title: string;
  readonly shape: Pick<ProductCase, 'm' | 'n' | 'k' | 'kind'>;
  readonly bar: Bar;
}

const ROWS: readonly Row[] = [
  {
    title: 'matrix product 4096³ of DTYPE',
    shape: { m: 4096, n: 4096, k: 4096, kind: 'product' },
    bar: AS_FAST,
  },
  {
    title: 'matrix product 8192³ of DTYPE',
    shape: { m: 8192, n: 8192, k: 8192, kind: 'product' },
    bar: AS_FAST,
  },
  {
    title: 'matrix product 1024³ of DTYPE',
    shape: { m: 1024, n: 1024, k: 1024, kind: 'product' },
    bar: NEARLY,
  },
  {
    title: 'matrix product 16 × 4096 × 4096 of DTYPE',
    shape: { m: 16, n: 4096, k: 4096, kind: 'product' },
    bar: NEARLY,
  },
  {
    title: 'linear layer 4096 × 11008 × 4096 of DTYPE with bias and gelu',
    shape: { m: 4096, n: 11008, k: 4096, kind: 'layer' },
    bar: NEARLY,
  },
];

/** cuBLAS in C has products of f16, and nothing after them. */
function inC({ shape, bar }: Row): Peer {
  const { m, n, k, kind } = shape;
  return {
    ...(kind === 'layer' ? { name: 'cuBLAS, the product alone' } : { name: 'cuBLAS', bar }),
    program: 'cuBLAS',
    request: ({ count }) => `product ${count(SAMPLES)} ${m} ${n} ${k} ${productsOf(shape)}`,
  };
}

/** The first product as a user's tile kernel, at least 0.95 of cuBLAS's speed. */
const TILES: Row = { ...ROWS[0]!, bar: NEARLY };
const asTiles: Benchmark = {
  area: 'kernels',
  name: 'matrix product 4096³ of f16, a tile kernel',
  unit: 'µs',
  statistic: 'median',
  peers: [
    inC(TILES),
    {
      name: "NVIDIA's Tile IR assembler, the same body",
      bar: '<= 0.9524',
      start: (setup) =>
        startProduct({ root, library }, setup, { ...TILES.shape, dtype: 'f16' }, 'tileir'),
    },
  ],
  start: (setup) =>
    startProduct({ root, library }, setup, { ...TILES.shape, dtype: 'f16' }, 'tiles'),
};

const DTYPES = ['f16', 'bf16', 'f8e4m3'] as const;
const byLibrary: readonly Benchmark[] = ROWS.flatMap((row) =>
  // The rows for factors of 8 bits are those of much to compute.
  DTYPES.filter((dtype) => dtype !== 'f8e4m3' || row.bar === AS_FAST).map((dtype): Benchmark => {
    const given: ProductCase = { ...row.shape, dtype };
    return {
      area: 'kernels',
      name: `${row.title.replace('DTYPE', dtype)}, in TypeScript`,
      unit: 'µs',
      statistic: 'median',
      peers: [
        ...(dtype === 'f16' ? [inC(row)] : []),
        {
          name: 'cuBLASLt by our binding',
          bar: dtype === 'f8e4m3' ? CLOSE : row.bar,
          start: (setup) => startProduct({ root, library }, setup, given, 'cublas'),
        },
      ],
      start: (setup) => startProduct({ root, library }, setup, given, 'own'),
    };
  }),
);

export const matrixProducts: readonly Benchmark[] = [...byLibrary, asTiles];
