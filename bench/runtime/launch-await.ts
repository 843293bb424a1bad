/**
 * One launch and its end, again and again without a pause. In C: cuLaunchKernel and
 * cuStreamSynchronize.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender, Setup } from '../benchmark.js';
import type { CoreDevice } from '../library.js';
import { COUNTING, QUIET, Tick } from './tick.js';

/** Awaits before the first round: until then the engine still optimises what they run. */
const WARM_UP = 40_000;

/**
 * Many short rounds: a processor that is slow for some seconds (see `processor.ts`) is slow for all
 * contenders.
 */
const ROUNDS = 45;

const request = ({ count }: Setup): string => `await ${count(401)}`;

/** The CPU device's own benchmark uses it as well. */
export async function launchThenAwait(device: CoreDevice, samples: number): Promise<Contender> {
  const tick = await Tick.open(device);
  for (let k = 0; k < WARM_UP; k++) await tick.launch(QUIET);
  return {
    async round() {
      tick.reset();
      for (let k = 0; k < 500; k++) await tick.launch(COUNTING);
      await tick.expect(500);
      const times: number[] = [];
      for (let k = 0; k < 200; k++) await tick.launch(QUIET);
      for (let k = 0; k < samples; k++) {
        const start = performance.now();
        await tick.launch(QUIET);
        times.push((performance.now() - start) * 1e3);
      }
      return { samples: times };
    },
    close: () => tick.close(),
  };
}

export const launchAwait: Benchmark = {
  area: 'runtime',
  name: 'launch then await, hot',
  unit: 'µs',
  statistic: 'median',
  caller: 'main',
  rounds: ROUNDS,
  peers: [
    { name: 'C', bar: '<= 1.05', program: 'launches', request },
    { name: 'cuda.core', bar: '<= 1', program: 'cuda.core', request },
    { name: 'CuPy', bar: '<= 1', program: 'CuPy', request },
    { name: 'PyTorch', bar: '<= 1', program: 'PyTorch', request },
  ],
  start: ({ device, count }) => launchThenAwait(device, count(401)),
};
