/** 20,000 launches in a row, from the first call to the end of the last kernel. */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { QUIET, Tick } from './tick.js';

const LAUNCHES = 20_000;
const SAMPLES = 2;
/**
 * Many short rounds: a processor that is slow for some seconds (see `processor.ts`) is slow for all
 * contenders.
 */
const ROUNDS = 15;
const request = `throughput ${SAMPLES} ${LAUNCHES}`;

export const launchThroughput: Benchmark = {
  area: 'runtime',
  name: '20,000 launches, each until done',
  unit: 'µs',
  statistic: 'median',
  caller: 'runtime thread',
  rounds: ROUNDS,
  peers: [
    { name: 'C', bar: '<= 1.05', program: 'launches', request: () => request },
    { name: 'cuda.core', bar: '<= 1', program: 'cuda.core', request: () => request },
    { name: 'CuPy', bar: '<= 1', program: 'CuPy', request: () => request },
    { name: 'PyTorch', bar: '<= 1', program: 'PyTorch', request: () => request },
  ],
  async start({ device }) {
    const tick = await Tick.open(device);
    return {
      async round() {
        await tick.warm(2000);
        const times: number[] = [];
        for (let k = 0; k < SAMPLES; k++) {
          const start = performance.now();
          tick.launches(LAUNCHES, QUIET);
          await tick.stream.finished();
          times.push(((performance.now() - start) * 1e3) / LAUNCHES);
        }
        return { samples: times };
      },
      close: () => tick.close(),
    };
  },
};
