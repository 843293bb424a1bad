/**
 * The cost of a launch on the thread that queues it: in bursts that fit into the ring, and in
 * bursts that spill over.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { QUIET, Tick } from './tick.js';

/** Launches before the first round: until then the engine still optimises what they run. */
const WARM_UP = 100_000;

function enqueue(burst: number, samples: number, python: boolean): Benchmark {
  const request = `enqueue ${samples} ${burst}`;
  return {
    area: 'runtime',
    name: `launch, time of the JS thread, bursts of ${burst}`,
    unit: 'µs',
    statistic: 'median',
    bar: '<= 0.1',
    peers: [
      { name: 'C', program: 'launches', request: () => request },
      ...(python
        ? (['cuda.core', 'CuPy', 'PyTorch'] as const).map((name) => ({
            name,
            program: name,
            request: () => request,
          }))
        : []),
    ],
    async start({ device }) {
      const tick = await Tick.open(device);
      await tick.warm(WARM_UP);
      return {
        async round() {
          await tick.warm(2000);
          const times: number[] = [];
          for (let k = 0; k < samples; k++) {
            const start = performance.now();
            tick.launches(burst, QUIET);
            const end = performance.now();
            await tick.stream.finished();
            times.push(((end - start) * 1e3) / burst);
          }
          return { samples: times };
        },
        close: () => tick.close(),
      };
    },
  };
}

export const launchEnqueue = [enqueue(500, 51, true), enqueue(20_000, 5, false)];
