/**
 * Variants of a kernel, each checked and then timed with a copy on the GPU of as many bytes: shared
 * by the programs of this folder.
 */
import type { Device } from '../../src/index.js';
import { f32 } from '../../src/index.js';
import { PeerAbsent } from '../peers/program.js';
import { Programs } from '../peers/programs.js';

type Core = Device['core'];

/** On the CPU device only the results are checked. */
const TURNS = { cuda: { samples: 5, launches: 20 }, cpu: { samples: 1, launches: 1 } } as const;

export interface Variant {
  readonly name: string;
  /** Queues one launch. */
  readonly launch: () => PromiseLike<unknown>;
  /** Work before all launches. */
  readonly first?: () => PromiseLike<unknown>;
  /** Work before each launch, which is timed. */
  readonly before?: () => PromiseLike<unknown>;
  /** Throws where the result of one launch is wrong. */
  readonly prove?: () => Promise<void>;
}

/** Microseconds of one launch: the median of some samples. */
async function measure(
  core: Core,
  turns: { readonly samples: number; readonly launches: number },
  { launch, before }: Pick<Variant, 'launch' | 'before'>,
): Promise<number> {
  const samples: number[] = [];
  for (let k = 0; k < turns.samples; k++) {
    const [begin, end] = [core.createEvent(), core.createEvent()];
    core.stream.record(begin);
    for (let i = 0; i < turns.launches; i++) {
      void before?.();
      void launch();
    }
    core.stream.record(end);
    samples.push(((await begin.elapsed(end)) * 1000) / turns.launches);
    begin.close();
    end.close();
  }
  return samples.sort((a, b) => a - b)[turns.samples >> 1]!;
}

/**
 * Proves and times each variant, and prints them, the fastest first. @param bytes read and written
 * by one launch
 */
export async function compare(
  { core, kind }: Device,
  title: string,
  bytes: number,
  variants: readonly Variant[],
): Promise<void> {
  const [from, to] = [core.alloc(f32, bytes / 8), core.alloc(f32, bytes / 8)];
  await from.fill(core.stream, 1);
  const copying = { launch: () => to.copyFrom(core.stream, from) };
  await measure(core, TURNS[kind], copying);
  const copy = await measure(core, TURNS[kind], copying);
  console.log(`${title}: copy of as many bytes ${copy.toFixed(1)} µs`);
  const rows: { readonly name: string; readonly time: number }[] = [];
  for (const variant of variants) {
    try {
      await variant.first?.();
      await variant.before?.();
      await variant.launch();
      await variant.prove?.();
      const time = await measure(core, TURNS[kind], variant);
      // Also after the last one.
      await variant.prove?.();
      rows.push({ name: variant.name, time });
    } catch (error) {
      console.log(`  ${variant.name}: ${(error as Error).message.slice(0, 300)}`);
    }
  }
  const again = await measure(core, TURNS[kind], copying);
  for (const { name, time } of rows.sort((a, b) => a.time - b.time))
    console.log(`  ${(time / copy).toFixed(3)}  ${time.toFixed(1).padStart(8)} µs  ${name}`);
  console.log(`  copy again: ${again.toFixed(1)} µs`);
  from.close();
  to.close();
}

const median = (of: readonly number[]): number => [...of].sort((a, b) => a - b)[of.length >> 1]!;

/**
 * Rounds in which all variants take turns, so that a slow minute of the machine affects all of
 * them.
 */
const ROUNDS = { cuda: 15, cpu: 1 } as const;

/**
 * Checks each variant, and times them in turns with Triton's kernel of this name, where Triton is
 * installed, and a copy on the GPU. Prints for each the median time, and the medians over rounds of
 * its ratio to Triton, to the first variant and to the copy.
 *
 * @param bytes read and written by one launch
 */
export async function race(
  { core, kind }: Device,
  title: string,
  bytes: number,
  variants: readonly Variant[],
  kernel: string,
): Promise<void> {
  const [from, to] = [core.alloc(f32, bytes / 8), core.alloc(f32, bytes / 8)];
  await from.fill(core.stream, 1);
  const right: Variant[] = [];
  for (const variant of variants) {
    try {
      await variant.launch();
      await variant.prove?.();
      right.push(variant);
    } catch (error) {
      console.log(`  ${variant.name}: ${(error as Error).message.slice(0, 300)}`);
    }
  }
  const programs = new Programs(kind === 'cuda' ? 0 : undefined);
  const triton = await programs.get('Triton').catch((error: unknown) => {
    if (!(error instanceof PeerAbsent)) throw error;
    console.log(`  Triton is absent: ${error.message}`);
    return undefined;
  });
  const once = { samples: 1, launches: TURNS[kind].launches };
  const times = new Map<string, number[]>(
    [...right.map(({ name }) => name), 'copy', 'Triton'].map((name) => [name, []]),
  );
  for (let round = 0; round <= ROUNDS[kind]; round++) {
    const own: [string, number][] = [
      ['copy', await measure(core, once, { launch: () => to.copyFrom(core.stream, from) })],
    ];
    // Every other round in reverse order.
    for (const variant of round % 2 === 0 ? right : [...right].reverse())
      own.push([variant.name, await measure(core, once, variant)]);
    if (triton !== undefined)
      own.push([
        'Triton',
        median((await triton.round(`kernel ${kernel} 3 ${once.launches}`)).samples),
      ]);
    // The first one warms up.
    if (round > 0) for (const [name, time] of own) times.get(name)!.push(time);
  }
  await programs.close();
  const ratio = (name: string, to: string): string => {
    const peers = times.get(to)!;
    return peers.length === 0
      ? '    –'
      : median(times.get(name)!.map((time, round) => time / peers[round]!)).toFixed(3);
  };
  const shown = [...times.keys()]
    .filter((name) => times.get(name)!.length > 0)
    .sort((a, b) => median(times.get(a)!) - median(times.get(b)!));
  console.log(`${title}: µs, by Triton, by '${right[0]!.name}', by the copy`);
  for (const name of shown)
    console.log(
      `  ${median(times.get(name)!).toFixed(2).padStart(8)}  ${ratio(name, 'Triton')}  ` +
        `${ratio(name, right[0]!.name)}  ${ratio(name, 'copy')}  ${name}`,
    );
  from.close();
  to.close();
}
