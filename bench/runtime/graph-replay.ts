/** A captured graph of 100 kernels: one launch and the end of all of them. */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { COUNTING, QUIET, Tick } from './tick.js';

/**
 * Many short rounds: a processor that is slow for some seconds (see `processor.ts`) is slow for all
 * contenders.
 */
const ROUNDS = 27;
const KERNELS = 100;
const WARM_UP = 20;
/**
 * Replays that are awaited before the first round, and before each: the engine optimises code late
 * that runs every 60 µs.
 */
const FIRST_AWAITS = 20_000;
const AWAITS = 300;

export const graphReplay: Benchmark = {
  area: 'runtime',
  name: 'graph of 100 kernels, replay until done',
  unit: 'µs',
  statistic: 'median',
  caller: 'main',
  rounds: ROUNDS,
  peers: [
    {
      name: 'C',
      bar: '<= 1.02',
      program: 'launches',
      request: ({ count }) => `graph ${count(101)} ${KERNELS}`,
    },
  ],
  async start({ device, count }) {
    const tick = await Tick.open(device);
    const { stream } = tick;
    const counting = await stream.capture(() => tick.launches(KERNELS, COUNTING));
    const quiet = await stream.capture(() => tick.launches(KERNELS, QUIET));
    for (let k = 0; k < FIRST_AWAITS; k++) await quiet.launch(stream);
    return {
      async round() {
        tick.reset();
        for (let k = 0; k < WARM_UP; k++) counting.launch(stream);
        await tick.expect(WARM_UP * KERNELS);
        for (let k = 0; k < AWAITS; k++) await quiet.launch(stream);
        const times: number[] = [];
        for (let k = 0; k < count(101); k++) {
          const start = performance.now();
          await quiet.launch(stream);
          times.push((performance.now() - start) * 1e3);
        }
        return { samples: times };
      },
      async close() {
        await Promise.all([counting.close(), quiet.close()]);
        await tick.close();
      },
    };
  },
};
