/**
 * Attention as a contender. The package is an argument, so that a test runs it from the sources.
 */
import type { Tensor } from 'async-cuda';

import type { Contender } from '../benchmark.js';
import type { Conditions, Package } from './product-contenders.js';

export interface AttentionCase {
  readonly batch: number;
  readonly heads: number;
  /** The number of queries, and of keys. */
  readonly length: number;
  readonly channels: number;
  readonly causal: boolean;
}

export const SAMPLES = 3;
/** Runs between two events. */
export const RUNS = 5;

type Operand = Tensor<'bf16', number[]>;

/** @throws Error where a row of the last head of the result is wrong */
export async function proveAttention(
  operands: readonly [q: Operand, k: Operand, v: Operand, out: Operand],
  causal: boolean,
): Promise<void> {
  const [batch, heads, length, channels] = operands[0].shape as [number, number, number, number];
  const [queries, keys, values, results] = (await Promise.all(
    operands.map((each) => each.slice(batch - 1, heads - 1).read()),
  )) as [Float32Array, Float32Array, Float32Array, Float32Array];
  const rows = [0, 1, 77, length >> 1, length - 130, length - 1];
  for (const row of rows.filter((each) => each >= 0 && each < length)) {
    const count = causal ? row + 1 : length;
    const scores = Array.from({ length: count }, (_, key) => {
      let dot = 0;
      for (let c = 0; c < channels; c++)
        dot += queries[row * channels + c]! * keys[key * channels + c]!;
      return dot / Math.sqrt(channels);
    });
    const most = scores.reduce((x, y) => Math.max(x, y));
    const shares = scores.map((score) => Math.exp(score - most));
    const weight = shares.reduce((x, y) => x + y);
    for (let c = 0; c < channels; c += 7) {
      const sum = shares.reduce((all, share, key) => all + share * values[key * channels + c]!, 0);
      const got = results[row * channels + c]!;
      if (!(Math.abs(got - sum / weight) <= 0.02))
        throw new Error(`element [${row}][${c}] is ${got}, not ${sum / weight}`);
    }
  }
}

export async function startAttention(
  { root, library }: Package,
  { device, count }: Conditions,
  { batch, heads, length, channels, causal }: AttentionCase,
): Promise<Contender> {
  const { stream } = device;
  const [q, k, v] = (await Promise.all(
    [1, 2, 3].map((seed) =>
      library.randomNormal(device, root.bf16, [batch, heads, length, channels], { seed }),
    ),
  )) as unknown as [Operand, Operand, Operand];
  const op = library.attention(q, k, v, { causal });
  // Closed once it is queued: the next one takes the same memory.
  const once = op.map((result) => {
    result.close();
  });
  const runs = device.kind === 'cpu' ? 1 : RUNS;
  return {
    async round() {
      const first = await op.runOn(stream);
      await proveAttention([q, k, v, first], causal);
      first.close();
      const samples: number[] = [];
      for (let turn = 0; turn < count(SAMPLES); turn++) {
        const [begin, end] = [device.createEvent(), device.createEvent()];
        stream.record(begin);
        const queued = Array.from({ length: runs }, () => once.runOn(stream));
        stream.record(end);
        samples.push(((await begin.elapsed(end)) * 1000) / runs);
        await Promise.all(queued);
        begin.close();
        end.close();
      }
      return { samples };
    },
    close() {
      for (const each of [q, k, v]) each.close();
      return Promise.resolve();
    },
  };
}
