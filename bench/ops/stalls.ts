/**
 * How long the event loop is held up while operations run one after the other as fast as they can, in each of the ways that
 * the other rows measure. Sampled by the gaps between `setImmediate` callbacks. Beside it, what Node and the machine hold
 * up a loop that does nothing, over as many windows.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';

import type { Benchmark, LocalPeer } from '../benchmark.js';
import { collectGarbage } from '../garbage.js';
import { OPERATIONS, overlapped } from './pipelines.js';
import { openDefault } from './policy.js';
import { openProducts } from './products.js';
import { Scale } from './scale.js';

const MS = 1000;
/** Before each load is measured; see `garbage.ts`. */
const SETTLE_MS = 1000;
/** Gaps of one load that are kept; more than there ever are. */
const MAX_TURNS = 1 << 20;
const CHAIN = 1000;
const UNITS = 64;
const PIPELINES = 10;

/** Runs some operations to their end. */
type Load = () => PromiseLike<unknown>;

/** Keeps the load going for so long, and gives the longest gap between turns of the event loop once `settle` is over. `gaps` is room for them. */
async function longest(load: Load, settle: number, ms: number, gaps: Float64Array): Promise<number> {
  collectGarbage();
  const begin = performance.now() + settle;
  const end = begin + ms;
  const work = (async () => {
    let runs = 0;
    for (; performance.now() < end; runs++) await load();
    return runs;
  })();
  let running = true;
  work.catch(() => undefined).finally(() => {
    running = false;
  });
  let turns = 0;
  let last = performance.now();
  await new Promise<void>((resolve) => {
    // A callback, not an await: the promises of a million turns would be a good part of the garbage.
    const turn = (): void => {
      const now = performance.now();
      if (now > begin && turns < gaps.length) gaps[turns++] = now - last;
      last = now;
      if (running) setImmediate(turn);
      else resolve();
    };
    setImmediate(turn);
  });
  if (await work === 0) throw new Error('nothing ran');
  return gaps.subarray(0, turns).reduce((most, gap) => Math.max(most, gap), 0);
}

/** A promise for each turn, as the loads have one for each operation. */
const nothing: Load = () => new Promise<void>((resolve) => {
  setImmediate(resolve);
});

const LOADS = ['one op', 'chain', 'chain, built once', 'list', 'graph', 'pipelines', 'products'] as const;

const idle: LocalPeer = {
  name: 'Node with nothing to do',
  start({ count }) {
    const gaps = new Float64Array(MAX_TURNS).fill(0);
    return Promise.resolve({
      async round() {
        const samples: number[] = [];
        for (let window = 0; window < LOADS.length; window++) samples.push(await longest(nothing, count(SETTLE_MS), count(MS), gaps));
        return { samples };
      },
    });
  },
};

export const operationStalls: Benchmark = {
  area: 'ops',
  name: 'longest event-loop stall, operations',
  unit: 'ms',
  statistic: 'longest',
  bar: '<= 1',
  peers: [idle],
  rounds: 2,
  // Each load settles by itself.
  warmUp: false,
  async start({ device, count }) {
    const policy = openDefault(device);
    const scale = await Scale.open(device);
    const pipeline = await scale.chain(OPERATIONS).capture();
    const graph = await scale.chain(CHAIN).capture();
    const queue = await openProducts(device);
    const launch = graph.launch();
    const chain = scale.chain(CHAIN);
    const loads: Readonly<Record<(typeof LOADS)[number], Load>> = {
      'one op': () => scale.chain(1),
      'chain': () => scale.chain(CHAIN),
      'chain, built once': () => chain,
      'list': () => scale.list(CHAIN),
      'graph': () => launch,
      'pipelines': () => overlapped(pipeline, PIPELINES),
      'products': () => queue.workOff(UNITS),
    };
    // Made and touched beforehand: an array that grows is garbage of megabytes, and its collection a stall.
    const gaps = new Float64Array(MAX_TURNS).fill(0);
    return {
      async round() {
        await scale.prove(CHAIN, () => scale.chain(CHAIN));
        await scale.prove(CHAIN, () => launch);
        const samples: number[] = [];
        const notes: Record<string, number> = {};
        for (const name of LOADS) {
          const gap = await longest(loads[name], count(SETTLE_MS), count(MS), gaps);
          samples.push(gap);
          notes[name] = gap;
        }
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
