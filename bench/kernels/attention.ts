/**
 * Attention compared with the fastest backend of PyTorch's scaled_dot_product_attention: both timed
 * by the device's events.
 */
import type { Benchmark } from '../benchmark.js';
import { library, root } from '../library.js';
import { RUNS, SAMPLES, startAttention } from './attention-contender.js';

const SHAPE = { batch: 4, heads: 48, length: 4096, channels: 128 };

export const attentions: readonly Benchmark[] = [false, true].map((causal) => {
  const { batch, heads, length, channels } = SHAPE;
  return {
    area: 'kernels',
    name:
      `attention of ${batch} × ${heads} heads, ${length} positions, ${channels} channels of bf16` +
      `${causal ? ', causal' : ''}, in TypeScript`,
    unit: 'µs',
    statistic: 'median',
    peers: [
      {
        name: 'PyTorch',
        program: 'attention in PyTorch',
        request: ({ count }) =>
          `attention ${count(SAMPLES)} ${RUNS} ${batch} ${heads} ${length} ${channels} ${causal}`,
      },
    ],
    start: (setup) => startAttention({ root, library }, setup, { ...SHAPE, causal }),
  };
});
