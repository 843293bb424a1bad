/**
 * Launches while memory is allocated and freed: the 99th percentile of a launch and its end, while
 * buffers of 16 to 256 MiB are allocated and freed on another stream; compared with the same
 * without them, and with peers whose other thread does that.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { type CoreDevice, core } from '../library.js';
import { QUIET, Tick } from './tick.js';

const MS = 400;
const SIZES = [16, 32, 64, 128, 256].map((mebibytes) => mebibytes << 20);

const { u8 } = core;

/** Allocates buffers, writes and frees them until `stop` is set. Returns how many. */
async function allocate(device: CoreDevice, stop: { now: boolean }): Promise<number> {
  using stream = device.createStream();
  let made = 0;
  while (!stop.now) {
    for (const bytes of SIZES) {
      const mark = (made++ % 255) + 1;
      const buffer = device.alloc(u8, bytes, { stream });
      const end = buffer.slice(-4);
      end.fill(stream, mark);
      const touched = end.read(stream);
      buffer.close();
      if ((await touched)[3] !== mark)
        throw new Error('a buffer did not hold what was written to it');
    }
  }
  return made;
}

async function start({ device, count }: Setup, allocating: boolean): Promise<Contender> {
  const tick = await Tick.open(device);
  return {
    async round() {
      await tick.warm(1000);
      for (let k = 0; k < 500; k++) await tick.launch(QUIET);
      const stop = { now: false };
      const allocator = allocating ? allocate(device, stop) : Promise.resolve(0);
      allocator.catch(() => undefined);
      const times: number[] = [];
      const end = performance.now() + count(MS);
      for (let now = 0; now < end;) {
        const start = performance.now();
        await tick.launch(QUIET);
        now = performance.now();
        times.push((now - start) * 1e3);
      }
      stop.now = true;
      const buffers = await allocator;
      if (allocating && buffers === 0) throw new Error('no buffer was made');
      return { samples: times, notes: allocating ? { buffers } : {} };
    },
    close: () => tick.close(),
  };
}

export const launchWhileAllocating: Benchmark = {
  area: 'runtime',
  name: 'launch then await, p99, buffers coming and going',
  unit: 'µs',
  statistic: 'p99',
  peers: [
    { name: 'itself without', bar: '<= 2', start: (setup) => start(setup, false) },
    ...(['cuda.core', 'CuPy'] as const).map((name) => ({
      name,
      bar: '<= 1' as const,
      program: name,
      request: ({ count }: Setup) => `allocating ${count(MS)} ${SIZES.join(' ')}`,
    })),
  ],
  start: (setup) => start(setup, true),
};
