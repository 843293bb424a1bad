/**
 * Compares tiles of the gradients of attention by Hopper's warp groups, in turns with the fastest
 * backend of PyTorch's scaled_dot_product_attention, backward alone: TFLOPS of each, as medians of
 * rounds. The operations are those of five products.
 *
 *     npx tsx bench/kernels/attention-backward-variants.ts [channels,…=128,64] [causal,…=no,yes]
 *       [plan;…]
 *
 * A plan is rows,keys,stages. Runs the sources, not the built package: the plans are not public.
 * The best go to `BACKWARD_PLANS` in src/library/attention-backward.ts.
 */
import { Device, bf16 } from '../../src/index.js';
import type { Tensor } from '../../src/index.js';
import { attentionForward } from '../../src/library/attention.js';
import { attentionBackwardBy } from '../../src/library/attention-backward.js';
import { backwardSharedBytesOf } from '../../src/library/warp-group-attention-backward.js';
import type { BackwardPlan } from '../../src/library/warp-group-attention-backward.js';
import { Programs } from '../peers/programs.js';
import { proveGradients } from './attention-contender.js';

const ROUNDS = 7;
const RUNS = 5;
/** Static shared memory, and the alignment of dynamic shared memory. */
const MORE_SHARED = 1024;

const size = process.env.ATTENTION_SIZE?.split(',').map(Number) ?? [4, 48, 4096];
const [batch, heads, length] = size as [number, number, number];
const [channelCounts = '128,64', causals = 'no,yes', wanted] = process.argv.slice(2);

const PLANS: Readonly<Record<number, readonly string[]>> = {
  64: ['128,128,2', '128,128,3', '64,64,3', '64,64,2'],
  128: ['64,128,2', '64,64,2', '64,64,3'],
};

await using device = await Device.open();
const { stream } = device.core;
const { sharedMemoryPerBlockOptin } = device.properties;
const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
const median = (samples: readonly number[]): number =>
  [...samples].sort((a, b) => a - b)[samples.length >> 1]!;

const planOf = (text: string): BackwardPlan | undefined => {
  const [rows, keys, stages] = text.split(',').map(Number);
  return text === '' ? undefined : { rows: rows!, keys: keys!, stages: stages! };
};

for (const channels of channelCounts.split(',').map(Number)) {
  const made = await Promise.all(
    [1, 2, 3, 4].map((seed) => device.randn(bf16, [batch, heads, length, channels], { seed })),
  );
  const [q, k, v, dOut] = made as unknown as Tensor<'bf16', number[]>[];
  for (const each of causals.split(',')) {
    const causal = each === 'yes';
    const flops = (10 * batch * heads * length ** 2 * channels) / (causal ? 2 : 1);
    const rate = (microseconds: number): number => flops / (microseconds * 1e6);
    const title = `${channels} channels${causal ? ', causal' : ''}`;
    const contenders: { name: string; measure: () => Promise<number>; rates: number[] }[] = [];
    try {
      const program = await programs.get('attention in PyTorch');
      const request = `${RUNS} ${batch} ${heads} ${length} ${channels} ${causal}`;
      const { notes } = await program.round(`attention_backward 3 ${request}`);
      const all = Object.entries(notes ?? {}).map(
        ([name, time]) => `${name.slice(0, -3)} ${rate(time as number).toFixed(1)}`,
      );
      console.log(`${title}: PyTorch: ${all.join(', ')} TFLOPS`);
      contenders.push({
        name: 'PyTorch',
        measure: async () =>
          rate(median((await program.round(`attention_backward 1 ${request}`)).samples)),
        rates: [],
      });
    } catch (error) {
      console.log(`${title}: PyTorch: absent: ${(error as Error).message}`);
    }
    using forward = await attentionForward(q as never, k as never, v as never, { causal });
    const { out, logSums } = forward as unknown as { out: typeof q; logSums: Tensor<'f32'> };
    for (const text of ['', ...(wanted?.split(';') ?? PLANS[channels]!)]) {
      const plan = planOf(text);
      const sharedBytes = plan === undefined ? 0 : backwardSharedBytesOf(plan, channels);
      if (sharedBytes + MORE_SHARED > sharedMemoryPerBlockOptin) continue;
      const op = attentionBackwardBy(plan, [dOut, q, k, v, out, logSums] as never, { causal });
      const name = text === '' ? 'attentionBackward' : text;
      try {
        const first = await op.runOn(stream);
        await proveGradients([q!, k!, v!, out!, dOut!], logSums as never, first as never, causal);
        first.close();
      } catch (error) {
        console.log(`${title} ${name}: ${(error as Error).message}`);
        continue;
      }
      contenders.push({
        name,
        measure: async () => {
          const closing = op.map((result) => {
            result.close();
          });
          await closing.runOn(stream);
          const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
          stream.record(begin);
          const runs = Array.from({ length: RUNS }, () => closing.runOn(stream));
          stream.record(end);
          const time = ((await begin.elapsed(end)) * 1000) / RUNS;
          await Promise.all(runs);
          begin.close();
          end.close();
          return rate(time);
        },
        rates: [],
      });
    }
    for (let round = 0; round < ROUNDS; round++)
      for (const { measure, rates } of contenders) rates.push(await measure());
    for (const { name, rates } of contenders) {
      const ours = median(rates);
      const best = contenders[0]!.name === 'PyTorch' ? median(contenders[0]!.rates) : NaN;
      console.log(
        `${title} ${name.padEnd(18)} ${ours.toFixed(1).padStart(7)} TFLOPS ` +
          `(${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}), ` +
          `${(ours / best).toFixed(3)} of PyTorch`,
      );
    }
  }
  for (const each of made) each.close();
}
await programs.close();
