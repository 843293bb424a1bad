/**
 * Attention and its gradients, compared with the fastest backend of PyTorch's
 * scaled_dot_product_attention: both timed by the device's events.
 */
import type { Benchmark } from '../benchmark.js';
import { library, root } from '../library.js';
import { RUNS, SAMPLES, startAttention, startAttentionBackward } from './attention-contender.js';

const SHAPE = { batch: 4, heads: 48, length: 4096, channels: 128 };

const PASSES = [
  { name: 'attention', request: 'attention', start: startAttention, bar: '<= 1' },
  {
    name: 'attention backward',
    request: 'attention_backward',
    start: startAttentionBackward,
    // At least 0.85 of its speed.
    bar: '<= 1.1765',
  },
] as const;

export const attentions: readonly Benchmark[] = PASSES.flatMap(({ name, request, start, bar }) =>
  [false, true].map((causal) => {
    const { batch, heads, length, channels } = SHAPE;
    const sizes = `${batch} ${heads} ${length} ${channels} ${causal}`;
    return {
      area: 'kernels',
      name:
        `${name} of ${batch} × ${heads} heads, ${length} positions, ${channels} channels of bf16` +
        `${causal ? ', causal' : ''}, in TypeScript`,
      unit: 'µs',
      statistic: 'median',
      peers: [
        {
          name: 'PyTorch',
          bar,
          program: 'attention in PyTorch',
          request: ({ count }) => `${request} ${count(SAMPLES)} ${RUNS} ${sizes}`,
        },
      ],
      start: (setup) => start({ root, library }, setup, { ...SHAPE, causal }),
    } satisfies Benchmark;
  }),
);
