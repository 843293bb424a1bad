/**
 * Products of grouped rows, as of a mixture of experts, and convolutions, compared with PyTorch's
 * grouped product and with cuDNN through PyTorch: all timed by the device's events.
 */
import type { Benchmark } from '../benchmark.js';
import { library, root } from '../library.js';
import { RUNS, SAMPLES, startConvolution, startGrouped } from './expert-contenders.js';
import type { ConvolutionCase, GroupedCase } from './expert-contenders.js';

/** Ends of groups of different sizes, between a half and one and a half of the mean. */
function endsOf(rows: number, groups: number): number[] {
  const weights = Array.from({ length: groups }, (_, i) => 0.5 + ((i * 7919 + 3) % 101) / 100);
  const all = weights.reduce((x, y) => x + y);
  let sum = 0;
  return weights.map((weight, i) => {
    sum += weight;
    return i === groups - 1 ? rows : Math.round((sum / all) * rows);
  });
}

const GROUPED: readonly GroupedCase[] = [8, 64].map((groups) => ({
  ...{ k: 4096, n: 4096, ends: endsOf(8192, groups) },
}));

const CONVOLUTIONS: readonly ConvolutionCase[] = [
  { images: 64, channels: 64, side: 56, results: 64, weights: 3, stride: 1 },
  { images: 64, channels: 256, side: 14, results: 256, weights: 3, stride: 1 },
  { images: 64, channels: 512, side: 28, results: 1024, weights: 1, stride: 2 },
  { images: 16, channels: 320, side: 64, results: 320, weights: 3, stride: 1 },
];

/** At least 0.9 of its speed. */
const CLOSE = '<= 1.1111';

const row = (name: string, request: string, start: Benchmark['start']): Benchmark => ({
  area: 'kernels',
  name: `${name}, in TypeScript`,
  unit: 'µs',
  statistic: 'median',
  peers: [
    {
      name: 'PyTorch',
      bar: CLOSE,
      program: 'products in PyTorch',
      request: ({ count }) => request.replace('SAMPLES', `${count(SAMPLES)} ${RUNS}`),
    },
  ],
  start,
});

export const experts: readonly Benchmark[] = [
  ...GROUPED.map((given) =>
    row(
      `product of ${given.ends.at(-1)!} rows in ${given.ends.length} groups, ` +
        `${given.k} × ${given.n} of bf16`,
      `grouped SAMPLES ${given.k} ${given.n} ${given.ends.join(' ')}`,
      (setup) => startGrouped({ root, library }, setup, given),
    ),
  ),
  ...CONVOLUTIONS.map((given) => {
    const { images, channels, side, results, weights, stride } = given;
    return row(
      `convolution of ${images} × ${side}² × ${channels} to ${results}, ${weights} × ${weights}, ` +
        `stride ${stride}, of bf16`,
      `convolution SAMPLES ${images} ${channels} ${side} ${results} ${weights} ${stride}`,
      (setup) => startConvolution({ root, library }, setup, given),
    );
  }),
];
