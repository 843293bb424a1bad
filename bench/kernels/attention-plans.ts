/**
 * Plans of attention by Hopper's warp groups, in turns with the fastest backend of PyTorch's
 * scaled_dot_product_attention: TFLOPS of each, as medians of rounds. Shared by the programs for
 * the forward and the backward pass.
 *
 *     npx tsx bench/kernels/PROGRAM.ts [channels,…=128,64] [causal,…=no,yes] [plan;…]
 */
import { Device, bf16 } from '../../src/index.js';
import type { Tensor } from '../../src/index.js';
import { Programs } from '../peers/programs.js';

export type Operand = Tensor<'bf16', number[]>;
type Stream = Device['core']['stream'];

/** Runs between two events. */
const RUNS = 5;
/** Static shared memory, and the alignment of dynamic shared memory. */
const MORE_SHARED = 1024;

/** What is compared. */
export interface Comparison {
  /** The request to the program of PyTorch, and the operation's name. */
  readonly request: 'attention' | 'attention_backward';
  readonly title: string;
  /** Products of queries, keys and channels. */
  readonly products: number;
  readonly rounds: number;
  /** Random tensors that it takes. */
  readonly operands: number;
  /** Plans by the number of channels. */
  readonly plans: Readonly<Record<number, readonly string[]>>;
  /** Begins a comparison of plans for one kind of attention. */
  begin(operands: readonly Operand[], channels: number, causal: boolean): Promise<Begun> | Begun;
}

/** One kind of attention. */
export interface Begun {
  /** The operation with a plan; with an empty one it is the library's own. */
  variant(plan: string): Variant;
  close?(): void;
}

export interface Variant {
  /** Dynamic shared memory; 0 where the library chooses the plan. */
  readonly sharedBytes: number;
  /** Throws where the result is wrong. */
  prove(stream: Stream): Promise<void>;
  /** Queues a run, whose result is closed by the function that it gives. */
  run(stream: Stream): PromiseLike<() => void>;
}

const median = (samples: readonly number[]): number =>
  [...samples].sort((a, b) => a - b)[samples.length >> 1]!;

export async function comparePlans(comparison: Comparison): Promise<void> {
  const { request, title: name, products, rounds, operands, plans, begin } = comparison;
  const size = process.env.ATTENTION_SIZE?.split(',').map(Number) ?? [4, 48, 4096];
  const [batch, heads, length] = size as [number, number, number];
  const [channelCounts = '128,64', causals = 'no,yes', wanted] = process.argv.slice(2);
  await using device = await Device.open();
  const { stream } = device.core;
  const { sharedMemoryPerBlockOptin } = device.properties;
  const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
  for (const channels of channelCounts.split(',').map(Number)) {
    const shape = [batch, heads, length, channels];
    const made = (await Promise.all(
      Array.from({ length: operands }, (_, i) => device.randn(bf16, shape, { seed: i + 1 })),
    )) as unknown as Operand[];
    for (const causal of causals.split(',').map((each) => each === 'yes')) {
      const flops = (2 * products * batch * heads * length ** 2 * channels) / (causal ? 2 : 1);
      const rate = (microseconds: number): number => flops / (microseconds * 1e6);
      const title = `${channels} channels${causal ? ', causal' : ''}`;
      const contenders: { name: string; measure: () => Promise<number>; rates: number[] }[] = [];
      try {
        const program = await programs.get('attention in PyTorch');
        const given = `${RUNS} ${batch} ${heads} ${length} ${channels} ${causal}`;
        const { notes } = await program.round(`${request} 3 ${given}`);
        const all = Object.entries(notes ?? {}).map(
          ([backend, time]) => `${backend.slice(0, -3)} ${rate(time as number).toFixed(1)}`,
        );
        console.log(`${title}: PyTorch: ${all.join(', ')} TFLOPS`);
        contenders.push({
          name: 'PyTorch',
          measure: async () => rate(median((await program.round(`${request} 1 ${given}`)).samples)),
          rates: [],
        });
      } catch (error) {
        console.log(`${title}: PyTorch: absent: ${(error as Error).message}`);
      }
      const begun = await begin(made, channels, causal);
      for (const plan of ['', ...(wanted?.split(';') ?? plans[channels]!)]) {
        const variant = begun.variant(plan);
        if (variant.sharedBytes + MORE_SHARED > sharedMemoryPerBlockOptin) continue;
        try {
          await variant.prove(stream);
        } catch (error) {
          console.log(`${title} ${plan || name}: ${(error as Error).message}`);
          continue;
        }
        contenders.push({
          name: plan || name,
          measure: async () => {
            (await variant.run(stream))();
            const [first, last] = [device.core.createEvent(), device.core.createEvent()];
            stream.record(first);
            const runs = Array.from({ length: RUNS }, () => variant.run(stream));
            stream.record(last);
            const time = ((await first.elapsed(last)) * 1000) / RUNS;
            for (const run of runs) (await run)();
            first.close();
            last.close();
            return rate(time);
          },
          rates: [],
        });
      }
      for (let round = 0; round < rounds; round++)
        for (const { measure, rates } of contenders) rates.push(await measure());
      const best = contenders[0]?.name === 'PyTorch' ? median(contenders[0].rates) : NaN;
      for (const { name: of, rates } of contenders)
        console.log(
          `${title} ${of.padEnd(18)} ${median(rates).toFixed(1).padStart(7)} TFLOPS ` +
            `(${Math.min(...rates).toFixed(0)} to ${Math.max(...rates).toFixed(0)}), ` +
            `${(median(rates) / best).toFixed(3)} of PyTorch`,
        );
      begun.close?.();
    }
    for (const each of made) each.close();
  }
  await programs.close();
}
