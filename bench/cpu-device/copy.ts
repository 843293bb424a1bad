/**
 * Copies of 64 MiB on the CPU device, compared with the same copies by JavaScript. For information.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, LocalPeer } from '../benchmark.js';
import { core } from '../library.js';
import { expectStamp, gigabytesPerSecond, stamp } from '../stamp.js';

const BYTES = 64 << 20;
const SAMPLES = 9;

const { u8 } = core;

const typedArraySet: LocalPeer = {
  name: 'TypedArray.set',
  async start() {
    const source = new Uint8Array(BYTES).fill(1);
    const target = new Uint8Array(BYTES).fill(2);
    return {
      async round() {
        const rates: number[] = [];
        for (let k = 0; k < SAMPLES; k++) {
          const mark = stamp(source);
          const start = performance.now();
          target.set(source);
          rates.push(gigabytesPerSecond(BYTES, performance.now() - start));
          expectStamp(target, mark);
        }
        return { samples: rates };
      },
    };
  },
};

function copy(what: 'write' | 'read' | 'on the device'): Benchmark {
  return {
    area: 'cpu-device',
    name: `copy of 64 MiB, ${what}`,
    unit: 'GB/s',
    statistic: 'median',
    peers: [typedArraySet],
    async start() {
      const device = await core.CoreDevice.open('cpu');
      const { stream } = device;
      const host = new Uint8Array(BYTES).fill(1);
      const [a, b] = [device.alloc(u8, BYTES), device.alloc(u8, BYTES)];
      const copies = {
        write: () => a.write(stream, host),
        read: () => b.read(stream, { into: host }),
        'on the device': () => b.copyFrom(stream, a),
      };
      return {
        async round() {
          const mark = stamp(host);
          for (const each of ['write', 'on the device'] as const) await copies[each]();
          stamp(host);
          await copies.read();
          expectStamp(host, mark);
          const rates: number[] = [];
          for (let k = 0; k < SAMPLES; k++) {
            const start = performance.now();
            await copies[what]();
            rates.push(gigabytesPerSecond(BYTES, performance.now() - start));
          }
          return { samples: rates };
        },
        close: () => device.close(),
      };
    },
  };
}

export const cpuCopies = [copy('write'), copy('read'), copy('on the device')];
