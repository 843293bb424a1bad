/**
 * Copies from and to plain typed arrays, one at a time. In C: pageable memory, which the driver
 * stages by itself.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { core } from '../library.js';
import { expectStamp, gigabytesPerSecond, stamp } from '../stamp.js';

const { u8 } = core;

function copyPlain(direction: 'h2d' | 'd2h', mebibytes: number, samples: number): Benchmark {
  const toDevice = direction === 'h2d';
  const bytes = mebibytes << 20;
  return {
    area: 'runtime',
    name: `copy ${toDevice ? 'to' : 'from'} the device, typed array, ${mebibytes} MiB`,
    unit: 'GB/s',
    statistic: 'median',
    peers: [
      {
        name: 'C',
        bar: '>= 1',
        program: 'copies',
        request: () => `plain-${direction} ${samples} ${bytes}`,
      },
    ],
    async start({ device }) {
      const { stream } = device;
      const host = new Uint8Array(bytes).fill(1);
      const buffer = device.alloc(u8, bytes);
      return {
        async round() {
          const mark = stamp(host);
          await buffer.write(stream, host);
          stamp(host);
          await buffer.read(stream, { into: host });
          expectStamp(host, mark);
          const rates: number[] = [];
          for (let k = 0; k < samples; k++) {
            const start = performance.now();
            if (toDevice) await buffer.write(stream, host);
            else await buffer.read(stream, { into: host });
            rates.push(gigabytesPerSecond(bytes, performance.now() - start));
          }
          return { samples: rates };
        },
        async close() {
          buffer.close();
        },
      };
    },
  };
}

export const copiesPlain = [
  copyPlain('h2d', 1, 101),
  copyPlain('d2h', 1, 101),
  copyPlain('h2d', 16, 21),
  copyPlain('d2h', 16, 21),
  copyPlain('h2d', 256, 5),
  copyPlain('d2h', 256, 5),
];
