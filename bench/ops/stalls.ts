/**
 * How long the event loop is blocked while operations run one after the other as fast as possible,
 * in each of the ways that the other rows measure: for each way the median of its windows' longest
 * gaps, and of these the longest (see `loop-gaps.ts`). The peer is an idle loop, with the delays of
 * Node and the machine.
 */
import { setImmediate } from 'node:timers';

import type { Benchmark, LocalPeer } from '../benchmark.js';
import { type Stop, longestGaps } from '../loop-gaps.js';
import { median } from '../statistics.js';
import { OPERATIONS, overlapped } from './pipelines.js';
import { openDefault } from './policy.js';
import { openProducts } from './products.js';
import { Scale } from './scale.js';

const WINDOW_MS = 1000;
const WINDOWS = 5;
/** Before each load is measured; see `garbage.ts`. */
const SETTLE_MS = 1000;
const CHAIN = 1000;
const UNITS = 64;
const PIPELINES = 10;

/** Runs some operations to their end. */
type Load = () => PromiseLike<unknown>;

/** The longest gaps of the windows in which the load is run again and again. */
async function gapsOf(load: Load, count: (samples: number) => number): Promise<number[]> {
  let runs = 0;
  const gaps = await longestGaps(
    async (stop: Stop) => {
      for (; !stop.now; runs++) await load();
    },
    { settleMs: count(SETTLE_MS), windowMs: count(WINDOW_MS), windows: WINDOWS },
  );
  if (runs === 0) throw new Error('nothing ran');
  return gaps;
}

/** A promise for each turn, as the loads have one for each operation. */
const nothing: Load = () =>
  new Promise<void>((resolve) => {
    setImmediate(resolve);
  });

const LOADS = [
  'one op',
  'chain',
  'chain, built once',
  'list',
  'graph',
  'pipelines',
  'products',
] as const;

const idle: LocalPeer = {
  name: 'Node with nothing to do',
  start: ({ count }) =>
    Promise.resolve({
      async round() {
        const gaps = await gapsOf(nothing, count);
        return { samples: [median(gaps)], notes: { 'of all windows': Math.max(...gaps) } };
      },
    }),
};

export const operationStalls: Benchmark = {
  area: 'ops',
  name: 'longest event-loop stall, operations',
  unit: 'ms',
  statistic: 'longest',
  bar: '<= 1',
  peers: [idle],
  rounds: 1,
  // Each load settles by itself.
  warmUp: false,
  async start({ device, count }) {
    // Its policy is its own: the other ways have the default one, as in their rows.
    const queue = await openProducts(device);
    const policy = openDefault(device);
    const scale = await Scale.open(device);
    const pipeline = await scale.chain(OPERATIONS).capture();
    const graph = await scale.chain(CHAIN).capture();
    const launch = graph.replay();
    const chain = scale.chain(CHAIN);
    const loads: Readonly<Record<(typeof LOADS)[number], Load>> = {
      'one op': () => scale.chain(1),
      chain: () => scale.chain(CHAIN),
      'chain, built once': () => chain,
      list: () => scale.list(CHAIN),
      graph: () => launch,
      pipelines: () => overlapped(pipeline, PIPELINES),
      products: () => queue.workOff(UNITS),
    };
    return {
      async round() {
        await scale.prove(CHAIN, () => scale.chain(CHAIN));
        await scale.prove(CHAIN, () => launch);
        const samples: number[] = [];
        const notes: Record<string, number> = {};
        let most = 0;
        for (const name of LOADS) {
          const gaps = await gapsOf(loads[name], count);
          samples.push((notes[name] = median(gaps)));
          most = Math.max(most, ...gaps);
        }
        notes['of all windows'] = most;
        return { samples, notes };
      },
      async close() {
        await Promise.all([graph.close(), pipeline.close()]);
        await queue.close();
        await scale.close();
        policy.close();
      },
    };
  },
};
