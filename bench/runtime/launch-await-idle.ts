/**
 * One launch and its end after a millisecond in which nothing happened, as between the events of an
 * interactive program.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';

import type { Benchmark } from '../benchmark.js';
import { QUIET, Tick } from './tick.js';

const IDLE_MS = 1;

export const launchAwaitIdle: Benchmark = {
  area: 'runtime',
  name: 'launch then await, after 1 ms idle',
  unit: 'µs',
  statistic: 'median',
  peers: [
    {
      name: 'C',
      bar: '<= 1.5',
      program: 'launches',
      request: ({ count }) => `idle ${count(301)} ${IDLE_MS * 1000}`,
    },
  ],
  async start({ device, count }) {
    const tick = await Tick.open(device);
    return {
      async round() {
        await tick.warm(1000);
        const times: number[] = [];
        for (let k = 0; k < count(301); k++) {
          await setTimeout(IDLE_MS);
          const start = performance.now();
          await tick.launch(QUIET);
          times.push((performance.now() - start) * 1e3);
        }
        return { samples: times };
      },
      close: () => tick.close(),
    };
  },
};
