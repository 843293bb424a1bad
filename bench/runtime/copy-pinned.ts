/** Copies from and to page-locked memory, several queued at once: the speed of the bus. */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { core } from '../library.js';
import { expectStamp, gigabytesPerSecond, stamp } from '../stamp.js';

const BYTES = 256 << 20;
const COPIES = 5;
const SAMPLES = 5;

const { u8 } = core;

function copyPinned(direction: 'h2d' | 'd2h'): Benchmark {
  const toDevice = direction === 'h2d';
  return {
    area: 'runtime',
    name: `copy ${toDevice ? 'to' : 'from'} the device, pinned, 256 MiB`,
    unit: 'GB/s',
    statistic: 'median',
    peers: [
      {
        name: 'C',
        bar: '>= 0.99',
        program: 'copies',
        request: () => `pinned-${direction} ${SAMPLES} ${BYTES} ${COPIES}`,
      },
    ],
    async start({ device }) {
      const { stream } = device;
      const pinned = await device.pinned(u8, BYTES);
      const host = pinned.view();
      host.fill(1);
      const buffer = device.alloc(u8, BYTES);
      const queue = () => (toDevice ? buffer.write(stream, pinned) : buffer.read(stream, pinned));
      return {
        async round() {
          const mark = stamp(host);
          await buffer.write(stream, pinned);
          stamp(host);
          await buffer.read(stream, pinned);
          expectStamp(host, mark);
          const rates: number[] = [];
          for (let k = 0; k < SAMPLES; k++) {
            const start = performance.now();
            for (let i = 1; i < COPIES; i++) queue();
            await queue();
            rates.push(gigabytesPerSecond(BYTES * COPIES, performance.now() - start));
          }
          return { samples: rates };
        },
        async close() {
          buffer.close();
          await pinned.close();
        },
      };
    },
  };
}

export const copiesPinned = [copyPinned('h2d'), copyPinned('d2h')];
