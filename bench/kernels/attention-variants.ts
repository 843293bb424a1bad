/**
 * Compares tiles of attention by Hopper's warp groups, in turns with the fastest backend of
 * PyTorch's scaled_dot_product_attention: TFLOPS of each, as medians of rounds.
 *
 *     npx tsx bench/kernels/attention-variants.ts [channels,…=128,64] [causal,…=no,yes] [plan;…]
 *
 * A plan is rows,keys,stages,queries,turns. Runs the sources, not the built package: the plans
 * are not public. The best go to `PLANS` in src/library/attention.ts.
 */
import { Device, bf16 } from '../../src/index.js';
import type { Tensor } from '../../src/index.js';
import { attentionBy } from '../../src/library/attention.js';
import { sharedBytesOf } from '../../src/library/warp-group-attention.js';
import { Programs } from '../peers/programs.js';
import { proveAttention } from './attention-contender.js';

const ROUNDS = 9;
const RUNS = 5;
/** Static shared memory, and the alignment of dynamic shared memory. */
const MORE_SHARED = 1024;

const size = process.env.ATTENTION_SIZE?.split(',').map(Number) ?? [4, 48, 4096];
const [batch, heads, length] = size as [number, number, number];
const [channelCounts = '128,64', causals = 'no,yes', wanted] = process.argv.slice(2);

const PLANS: Readonly<Record<number, readonly string[]>> = {
  64: ['192,128,2,2,1', '192,128,2,2,0', '192,112,2,2,1', '192,96,3,2,1', '128,192,2,2,1'],
  128: ['128,128,2,2,1', '128,128,2,2,0', '128,176,2,1,1', '128,112,2,2,1', '192,80,2,1,1'],
  192: ['128,96,2,1,1', '128,112,2,1,1', '128,80,2,1,1'],
  256: ['128,80,2,1,1', '128,80,2,1,0', '128,64,2,1,1'],
};

await using device = await Device.open();
const { stream } = device.core;
const { sharedMemoryPerBlockOptin } = device.properties;
const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
const median = (samples: readonly number[]): number =>
  [...samples].sort((a, b) => a - b)[samples.length >> 1]!;

for (const channels of channelCounts.split(',').map(Number)) {
  const made = await Promise.all(
    [1, 2, 3].map((seed) => device.randn(bf16, [batch, heads, length, channels], { seed })),
  );
  const [q, k, v] = made as unknown as Tensor<'bf16', number[]>[];
  for (const each of causals.split(',')) {
    const causal = each === 'yes';
    const flops = (4 * batch * heads * length ** 2 * channels) / (causal ? 2 : 1);
    const rate = (microseconds: number): number => flops / (microseconds * 1e6);
    const title = `${channels} channels${causal ? ', causal' : ''}`;
    const contenders: { name: string; measure: () => Promise<number>; rates: number[] }[] = [];
    try {
      const program = await programs.get('attention in PyTorch');
      const request = `${RUNS} ${batch} ${heads} ${length} ${channels} ${causal}`;
      const { notes } = await program.round(`attention 3 ${request}`);
      const all = Object.entries(notes ?? {}).map(
        ([name, time]) => `${name.slice(0, -3)} ${rate(time as number).toFixed(1)}`,
      );
      console.log(`${title}: PyTorch: ${all.join(', ')} TFLOPS`);
      contenders.push({
        name: 'PyTorch',
        measure: async () => rate(median((await program.round(`attention 1 ${request}`)).samples)),
        rates: [],
      });
    } catch (error) {
      console.log(`${title}: PyTorch: absent: ${(error as Error).message}`);
    }
    for (const text of ['', ...(wanted?.split(';') ?? PLANS[channels]!)]) {
      const [rows, keys, stages, queries, turns] = text.split(',').map(Number);
      const plan =
        text === ''
          ? undefined
          : {
              ...{ rows: rows!, keys: keys!, stages: stages!, queries: queries! },
              turns: turns === 1,
            };
      if (
        plan !== undefined &&
        sharedBytesOf(plan, channels) + MORE_SHARED > sharedMemoryPerBlockOptin
      )
        continue;
      const op = attentionBy(plan, q as never, k as never, v as never, { causal });
      const name = text === '' ? 'attention(…)' : text;
      try {
        const first = await op.runOn(stream);
        await proveAttention([q!, k!, v!, first as never], causal);
        first.close();
      } catch (error) {
        console.log(`${title} ${name}: ${(error as Error).message}`);
        continue;
      }
      contenders.push({
        name,
        measure: async () => {
          (await op.runOn(stream)).close();
          const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
          stream.record(begin);
          const runs = Array.from({ length: RUNS }, () => op.runOn(stream));
          stream.record(end);
          const time = ((await begin.elapsed(end)) * 1000) / RUNS;
          for (const result of runs) (await result).close();
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
