/**
 * Compares tiles of attention by Hopper's warp groups: TFLOPS of each variant, and of the fastest
 * backend of PyTorch's scaled_dot_product_attention, which is measured before and after them.
 *
 *     npx tsx bench/kernels/attention-variants.ts [channels,…=128,64] [causal,…=no,yes] [plan;…]
 *
 * A plan is rows,keys,stages,queries,turns,lazy,section. Runs the sources, not the built package:
 * the plans are not public. The best go to `PLANS` in src/library/attention.ts.
 */
import { Device, Tensor, bf16 } from '../../src/index.js';
import { sharedBytesOf, warpGroupAttention } from '../../src/library/warp-group-attention.js';
import { Programs } from '../peers/programs.js';

const SAMPLES = 7;
const RUNS = 5;
/** Static shared memory, and the alignment of dynamic shared memory. */
const MORE_SHARED = 1024;

const size = process.env.ATTENTION_SIZE?.split(',').map(Number) ?? [4, 48, 4096];
const [batch, heads, length] = size as [number, number, number];
const [channelCounts = '128,64', causals = 'no,yes', wanted] = process.argv.slice(2);

const PLANS: Readonly<Record<number, readonly string[]>> = {
  64: [
    '192,128,2,1,1,0,16',
    '192,128,2,2,1,0,16',
    '192,128,2,2,1,1,16',
    '192,128,2,2,0,1,16',
    '192,112,2,2,1,1,16',
    '192,96,3,2,1,1,16',
    '128,128,2,2,1,1,16',
    '128,192,2,2,1,0,16',
    '128,192,2,2,1,1,16',
    '128,224,2,2,1,1,16',
  ],
  128: [
    '128,128,2,1,1,0,16',
    '128,128,2,1,0,0,16',
    '128,128,2,2,1,0,16',
    '128,128,2,2,0,0,16',
    '128,128,2,2,1,1,16',
    '128,128,2,2,0,1,16',
    '128,160,2,1,1,0,16',
    '128,160,2,1,1,1,16',
    '128,176,2,1,1,0,16',
    '128,176,2,1,1,1,16',
    '128,176,2,1,0,1,16',
    '128,96,3,2,1,1,16',
    '128,128,2,2,1,1,8',
    '128,128,2,2,1,1,32',
    '192,80,2,1,1,1,16',
  ],
  256: ['128,80,2,1,1,0,16', '128,80,2,1,1,1,16', '128,64,2,1,1,1,16', '128,80,2,1,0,1,16'],
};

await using device = await Device.open();
const { stream } = device.core;
const { sharedMemoryPerBlockOptin, multiprocessorCount } = device.properties;
const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
const median = (samples: readonly number[]): number =>
  [...samples].sort((a, b) => a - b)[samples.length >> 1]!;

/** @throws Error where a row of the result is wrong */
async function prove(
  [q, k, v, out]: readonly Tensor<'bf16', number[]>[],
  causal: boolean,
): Promise<void> {
  const [b, h] = [batch - 1, heads - 1];
  const [queries, keys, values, results] = await Promise.all(
    [q!, k!, v!, out!].map((each) => each.slice(b, h).read()),
  );
  const channels = q!.shape.at(-1)!;
  for (const row of [0, 1, 77, length >> 1, length - 130, length - 1]) {
    const count = causal ? row + 1 : length;
    const scores = Array.from({ length: count }, (_, key) => {
      let dot = 0;
      for (let c = 0; c < channels; c++)
        dot += queries![row * channels + c]! * keys![key * channels + c]!;
      return dot / Math.sqrt(channels);
    });
    const most = scores.reduce((x, y) => Math.max(x, y));
    const shares = scores.map((score) => Math.exp(score - most));
    const weight = shares.reduce((x, y) => x + y);
    for (let c = 0; c < channels; c += 7) {
      const sum = shares.reduce((all, share, key) => all + share * values![key * channels + c]!, 0);
      const got = results![row * channels + c]!;
      if (!(Math.abs(got - sum / weight) <= 0.02))
        throw new Error(`element [${row}][${c}] is ${got}, not ${sum / weight}`);
    }
  }
}

for (const channels of channelCounts.split(',').map(Number)) {
  const made = await Promise.all(
    [1, 2, 3].map((seed) => device.randn(bf16, [batch, heads, length, channels], { seed })),
  );
  const out = Tensor.of(
    device.core.alloc(bf16, batch * heads * length * channels),
    [batch, heads, length, channels],
  );
  const tensors = [...made, out] as unknown as Tensor<'bf16', number[]>[];
  const [q, k, v] = made;
  for (const each of causals.split(',')) {
    const causal = each === 'yes';
    const flops = (4 * batch * heads * length ** 2 * channels) / (causal ? 2 : 1);
    const rate = (microseconds: number): number => flops / (microseconds * 1e6);
    const title = `${channels} channels${causal ? ', causal' : ''}`;
    const pytorch = async (): Promise<number> => {
      try {
        const { samples, notes } = await (
          await programs.get('attention in PyTorch')
        ).round(`attention ${SAMPLES} ${RUNS} ${batch} ${heads} ${length} ${channels} ${causal}`);
        const all = Object.entries(notes ?? {}).map(
          ([name, time]) => `${name.slice(0, -3)} ${rate(time as number).toFixed(1)}`,
        );
        console.log(`${title}: PyTorch: ${all.join(', ')} TFLOPS`);
        return rate(median(samples));
      } catch (error) {
        console.log(`${title}: PyTorch: absent: ${(error as Error).message}`);
        return NaN;
      }
    };
    const best = await pytorch();
    for (const text of wanted?.split(';') ?? PLANS[channels]!) {
      const [rows, keys, stages, queries, turns, lazy, section] = text.split(',').map(Number);
      const plan = {
        rows: rows!,
        keys: keys!,
        stages: stages!,
        queries: queries!,
        turns: turns === 1,
        lazy: lazy === 1,
      };
      const sharedBytes = sharedBytesOf(plan, channels);
      if (sharedBytes + MORE_SHARED > sharedMemoryPerBlockOptin) continue;
      const down = Math.ceil(length / plan.rows);
      const matrices = batch * heads;
      const launch = warpGroupAttention({ plan, dtype: bf16, channels, causal, window: false });
      const op = launch(
        {
          ...{ out, q, k, v, m: length, n: length, heads, group: 1, down, matrices, window: 0 },
          section: causal ? Math.min(section!, matrices) : 1,
          factor: Math.LOG2E / Math.sqrt(channels),
        },
        { grid: Math.min(multiprocessorCount, down * matrices), sharedBytes },
      );
      try {
        await op.runOn(stream);
        await prove(tensors, causal);
        const rates: number[] = [];
        for (let sample = 0; sample < SAMPLES; sample++) {
          const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
          stream.record(begin);
          const runs = Array.from({ length: RUNS }, () => op.runOn(stream));
          stream.record(end);
          rates.push(rate(((await begin.elapsed(end)) * 1000) / RUNS));
          await Promise.all(runs);
          begin.close();
          end.close();
        }
        const ours = median(rates);
        console.log(
          `${title} ${text.padEnd(22)} ${ours.toFixed(1).padStart(7)} TFLOPS  ` +
            `${(ours / best).toFixed(3)} of PyTorch`,
        );
      } catch (error) {
        console.log(`${title} ${text}: ${(error as Error).message}`);
      }
    }
    await pytorch();
  }
  for (const each of tensors) each.close();
}
await programs.close();
