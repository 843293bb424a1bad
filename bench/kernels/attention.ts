/**
 * Attention and its gradients, compared with the fastest backend of PyTorch's
 * scaled_dot_product_attention: both timed by the device's events.
 */
import type { Benchmark } from '../benchmark.js';
import { library, root } from '../library.js';
import {
  RUNS,
  SAMPLES,
  startAttention,
  startAttentionBackward,
  startPackedAttention,
} from './attention-contender.js';
import { startTileAttention } from './tile-attention.js';

const PASSES = {
  forward: { name: 'attention', request: 'attention', start: startAttention, bar: '<= 1' },
  backward: {
    name: 'attention backward',
    request: 'attention_backward',
    start: startAttentionBackward,
    // At least 0.85 of its speed.
    bar: '<= 1.1765',
  },
} as const;

interface Row {
  readonly pass: keyof typeof PASSES;
  readonly batch?: number;
  readonly channels?: number;
  readonly causal?: boolean;
  readonly masked?: boolean;
}

const ROWS: readonly Row[] = [
  { pass: 'forward' },
  { pass: 'forward', causal: true },
  { pass: 'backward' },
  { pass: 'backward', causal: true },
  { pass: 'backward', channels: 256, batch: 2 },
  { pass: 'backward', channels: 256, batch: 2, causal: true },
  { pass: 'forward', masked: true },
  { pass: 'backward', masked: true },
];

const measured = { area: 'kernels', unit: 'µs', statistic: 'median' } as const;
const PROGRAM = 'attention in PyTorch';

const equal = ROWS.map((row): Benchmark => {
  const { pass, batch = 4, channels = 128, causal = false, masked = false } = row;
  const { name, request, start, bar } = PASSES[pass];
  const given = { batch, heads: 48, length: 4096, channels, causal, masked };
  const sizes = `${batch} 48 4096 ${channels} ${causal} ${masked}`;
  return {
    ...measured,
    name:
      `${name} of ${batch} × 48 heads, 4096 positions, ${channels} channels of bf16` +
      `${causal ? ', causal' : ''}${masked ? ', with a mask' : ''}, in TypeScript`,
    peers: [
      {
        name: 'PyTorch',
        bar,
        program: PROGRAM,
        request: ({ count }) => `${request} ${count(SAMPLES)} ${RUNS} ${sizes}`,
      },
    ],
    start: (setup) => start({ root, library }, setup, given),
  };
});

/** Sequences of 512, 1024, …, 8192 positions, of 128 channels. */
const PACKED = {
  lengths: Array.from({ length: 16 }, (_, at) => 512 * (at + 1)),
  heads: 16,
  channels: 128,
};

const packed: Benchmark = {
  ...measured,
  name: 'attention of 16 packed sequences, 512 to 8192 positions, causal, in TypeScript',
  peers: [
    {
      name: 'PyTorch',
      bar: '<= 1',
      program: PROGRAM,
      request: ({ count }) =>
        `attention_packed ${count(SAMPLES)} ${RUNS} ${PACKED.heads} ${PACKED.channels} ` +
        PACKED.lengths.join(','),
    },
  ],
  start: (setup) => startPackedAttention({ root, library }, setup, PACKED),
};

const byTiles = [false, true].map((causal): Benchmark => {
  const given = { batch: 4, heads: 48, length: 4096, channels: 128, causal };
  return {
    ...measured,
    name:
      'attention of 4 × 48 heads, 4096 positions, 128 channels of bf16' +
      `${causal ? ', causal' : ''}, a tile kernel`,
    peers: [
      {
        name: 'PyTorch',
        bar: '<= 1',
        program: PROGRAM,
        request: ({ count }) => `attention ${count(SAMPLES)} ${RUNS} 4 48 4096 128 ${causal} false`,
      },
    ],
    start: (setup) => startTileAttention({ root, library }, setup, given),
  };
});

export const attentions: readonly Benchmark[] = [...equal, packed, ...byTiles];
