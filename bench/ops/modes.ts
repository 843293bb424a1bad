/**
 * The same operations in four ways of running them: waiting after each one, launched one after the
 * other with one wait, as a chain of operations that is built and awaited, and as a graph that is
 * launched again. Times are of one operation.
 */
import { performance } from 'node:perf_hooks';

import type { Bar, Benchmark, Setup } from '../benchmark.js';
import type { Caller } from '../processor.js';
import { openDefault } from './policy.js';
import { Scale, inC } from './scale.js';

const COUNTS = [1, 2, 3, 5, 10, 30, 100, 300, 1000];
/** Operations before the first round: until then the engine still optimises what they run. */
const WARM_UP = 40_000;
/** Operations of one round, and bounds of its samples. */
const OPERATIONS = 12_000;
const [LEAST_SAMPLES, MOST_SAMPLES] = [11, 401];
/**
 * Many short rounds where there is a bar: a processor that is slow for some seconds (see
 * `processor.ts`) is slow for all contenders.
 */
const ROUNDS = 27;
const PLAIN_ROUNDS = 9;
/**
 * Chains as long as that keep the runtime thread busy; shorter ones are over before this thread has
 * gone to sleep.
 */
const LONG = 30;

/** Runs all operations once, to their end. */
interface Way {
  run(): PromiseLike<unknown>;
  close?(): unknown;
}

interface Mode {
  readonly name: string;
  /** The measurement in C. */
  readonly measurement: string;
  readonly bars: ReadonlyMap<number, Bar>;
  caller(count: number): Caller;
  start(scale: Scale, count: number): Way | Promise<Way>;
}

const ofLength = (count: number): Caller => (count < LONG ? 'main' : 'runtime thread');

const MODES: readonly Mode[] = [
  {
    name: 'waiting after each one',
    measurement: 'chain-each',
    bars: new Map(),
    caller: () => 'main',
    start(scale, count) {
      const policy = openDefault(scale.device);
      return {
        async run() {
          let numbers = await scale.first();
          for (let i = 1; i < count; i++) numbers = await scale.op(numbers);
        },
        close: () => policy.close(),
      };
    },
  },
  {
    name: 'launched, one wait',
    measurement: 'chain',
    bars: new Map([[1000, '<= 1.08']]),
    caller: ofLength,
    start(scale, count) {
      const { stream } = scale.device;
      return {
        run() {
          scale.launches(stream, count);
          return stream.finished();
        },
      };
    },
  },
  {
    name: 'awaited op',
    measurement: 'chain',
    bars: new Map([
      [1, '<= 1.1'],
      [1000, '<= 1.08'],
    ]),
    caller: ofLength,
    start(scale, count) {
      const policy = openDefault(scale.device);
      return { run: () => scale.chain(count), close: () => policy.close() };
    },
  },
  {
    name: 'graph replay',
    measurement: 'chain-graph',
    bars: new Map([[1000, '<= 1.02']]),
    caller: () => 'main',
    async start(scale, count) {
      const policy = openDefault(scale.device);
      const graph = await scale.chain(count).capture();
      const launch = graph.replay();
      return {
        run: () => launch,
        async close() {
          await graph.close();
          policy.close();
        },
      };
    },
  },
];

function benchmark(mode: Mode, count: number): Benchmark {
  const samples = Math.min(MOST_SAMPLES, Math.max(LEAST_SAMPLES, Math.round(OPERATIONS / count)));
  const bar = mode.bars.get(count);
  return {
    area: 'ops',
    name: `y = x·g, ${mode.name}, ${count}`,
    unit: 'µs',
    statistic: 'median',
    caller: mode.caller(count),
    rounds: bar === undefined ? PLAIN_ROUNDS : ROUNDS,
    peers: [
      {
        name: 'C',
        ...(bar === undefined ? {} : { bar }),
        program: 'launches',
        request: ({ count: fewer }: Setup) => `${mode.measurement} ${fewer(samples)} ${inC(count)}`,
      },
    ],
    async start({ device, count: fewer }) {
      const scale = await Scale.open(device);
      const way = await mode.start(scale, count);
      for (let k = 0; k < fewer(WARM_UP); k += count) await way.run();
      return {
        async round() {
          await scale.prove(count, () => way.run());
          for (let k = 0; k < 200; k += count) await way.run();
          const times: number[] = [];
          for (let k = 0; k < fewer(samples); k++) {
            const start = performance.now();
            await way.run();
            times.push(((performance.now() - start) * 1e3) / count);
          }
          return { samples: times };
        },
        async close() {
          await way.close?.();
          await scale.close();
        },
      };
    },
  };
}

export const executionModes = MODES.flatMap((mode) =>
  COUNTS.map((count) => benchmark(mode, count)),
);
