/**
 * Pipelines of 300 operations, recorded as one graph, with 300 µs of work for the host on the
 * result of each: the host works while the next pipeline runs, compared with the same after a wait.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender, Setup } from '../benchmark.js';
import type { OpGraph } from '../library.js';
import { openDefault } from './policy.js';
import { Scale } from './scale.js';

/** Operations of one pipeline. */
export const OPERATIONS = 300;
const HOST_MS = 0.3;
const PIPELINES = 100;
const SAMPLES = 3;
const WARM_UP = 300;

/** The host's work on a result, which keeps this thread busy. */
function workOnHost(): void {
  const end = performance.now() + HOST_MS;
  while (performance.now() < end);
}

type Run = (graph: OpGraph<unknown>, pipelines: number) => Promise<void>;

export async function overlapped(graph: OpGraph<unknown>, pipelines: number): Promise<void> {
  const launch = graph.replay();
  let next = launch.runOn(graph.stream);
  for (let i = 0; i < pipelines; i++) {
    await next;
    if (i + 1 < pipelines) next = launch.runOn(graph.stream);
    workOnHost();
  }
}

async function waitingFirst(graph: OpGraph<unknown>, pipelines: number): Promise<void> {
  const launch = graph.replay();
  for (let i = 0; i < pipelines; i++) {
    await launch.runOn(graph.stream);
    workOnHost();
  }
}

async function start({ device, count }: Setup, run: Run): Promise<Contender> {
  const policy = openDefault(device);
  const scale = await Scale.open(device);
  const graph = await scale.chain(OPERATIONS).capture();
  await run(graph, count(WARM_UP));
  return {
    async round() {
      await scale.prove(OPERATIONS, () => run(graph, 1));
      const rates: number[] = [];
      for (let k = 0; k < SAMPLES; k++) {
        const start = performance.now();
        await run(graph, count(PIPELINES));
        rates.push(count(PIPELINES) / ((performance.now() - start) / 1e3));
      }
      return { samples: rates };
    },
    async close() {
      await graph.close();
      await scale.close();
      policy.close();
    },
  };
}

export const pipelines: Benchmark = {
  area: 'ops',
  name: 'pipelines of 300 operations, 300 µs of host work',
  unit: '1/s',
  statistic: 'median',
  // The ratio of the library cuda-async to its own wait: 2,795 pipelines per second to 1,624.
  peers: [
    { name: 'itself, waiting first', bar: '>= 1.72', start: (setup) => start(setup, waitingFirst) },
  ],
  start: (setup) => start(setup, overlapped),
};
