/** Attention as a user's tile kernel, as the guide has it. */
import type * as Root from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';

import type { Contender } from '../benchmark.js';
import { proveAttention, timed } from './attention-contender.js';
import type { AttentionCase } from './attention-contender.js';
import type { Conditions, Package } from './product-contenders.js';

type Operand = Tensor<'bf16', number[]>;

const axes = {
  out: ['batch', 'heads', 'queries', 'channels'],
  q: ['batch', 'heads', 'queries', 'channels'],
  k: ['batch', 'heads', 'keys', 'channels'],
  v: ['batch', 'heads', 'keys', 'channels'],
} as const;
const tile = { batch: 1, heads: 1, queries: 128, keys: { walk: 128 }, channels: null } as const;

/** `factor`: the scale times log2(e). */
function tileAttention({ tileKernel, input, output, bf16, f32 }: typeof Root) {
  return tileKernel(
    'attention',
    { out: output(bf16), q: input(bf16), k: input(bf16), v: input(bf16), factor: f32 },
    ({ out, q, k, v, factor }, tile) => {
      const queries = q.load();
      let most = -Infinity;
      let weight = 0;
      let sums = 0;
      for (const part of tile.over('keys')) {
        const scores = tile.dot(queries, tile.transpose(k.load(part)));
        const higher = Math.max(most, tile.max(scores, 1));
        const fade = tile.fast.exp2((most - higher) * factor);
        const shares = tile.fast.exp2(tile.fma(scores, factor, -higher * factor));
        weight = weight * fade + tile.sum(shares, 1);
        sums = tile.dot(tile.bf16(shares), v.load(part), sums * fade);
        most = higher;
      }
      const inverse = 1 / weight;
      out.store(sums * inverse);
    },
    { axes, tile },
  );
}

/** The same, of keys up to the query's own. */
function causalTileAttention({ tileKernel, input, output, bf16, f32 }: typeof Root) {
  return tileKernel(
    'causal_attention',
    { out: output(bf16), q: input(bf16), k: input(bf16), v: input(bf16), factor: f32 },
    ({ out, q, k, v, factor }, tile) => {
      const queries = q.load();
      const row = tile.index('queries', 0);
      let most = -Infinity;
      let weight = 0;
      let sums = 0;
      for (const part of tile.over('keys', { to: tile.end('queries') })) {
        const scores = tile.dot(queries, tile.transpose(k.load(part)));
        const seen = tile.index('keys', 1) <= row ? scores : -Infinity;
        const higher = Math.max(most, tile.max(seen, 1));
        const fade = tile.fast.exp2((most - higher) * factor);
        const shares = tile.fast.exp2(tile.fma(seen, factor, -higher * factor));
        weight = weight * fade + tile.sum(shares, 1);
        sums = tile.dot(tile.bf16(shares), v.load(part), sums * fade);
        most = higher;
      }
      const inverse = 1 / weight;
      out.store(sums * inverse);
    },
    { axes, tile },
  );
}

export async function startTileAttention(
  { root, library }: Package,
  { device, count }: Conditions,
  { batch, heads, length, channels, causal }: AttentionCase,
): Promise<Contender> {
  const [q, k, v] = (await Promise.all(
    [1, 2, 3].map((seed) =>
      library.randomNormal(device, root.bf16, [batch, heads, length, channels], { seed }),
    ),
  )) as unknown as [Operand, Operand, Operand];
  const kernel = causal ? causalTileAttention(root) : tileAttention(root);
  const factor = Math.LOG2E / Math.sqrt(channels);
  const op = kernel({ q, k, v, factor } as never).map(
    (made) => (made as unknown as { readonly out: Operand }).out,
  ) as DeviceOp<Operand>;
  return timed(device, count, op, (out) => proveAttention([q, k, v, out], causal), [q, k, v]);
}
