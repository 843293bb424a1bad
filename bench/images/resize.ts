/**
 * Images resized: on the CPU device beside sharp on the same cores, on a GPU our kernels by themselves until NPP stands beside them. sharp is
 * no dependency: `npm install --no-save sharp` puts it here, SHARP names another place (a file of it), and without it its rows say that it is absent.
 */
import { performance } from 'node:perf_hooks';

import type { Device } from 'async-cuda';

import type { Benchmark, Contender, Peer, Setup } from '../benchmark.js';
import { core, npp, root } from '../library.js';
import { PeerAbsent } from '../peers/program.js';

const { u8 } = core;
const SAMPLES = 5;
const [FROM_WIDTH, FROM_HEIGHT, TO] = [1920, 1080, 640];

type Filter = 'linear' | 'lanczos3';

/** Without structure that a filter could use. */
function pixels(images: number): Uint8Array {
  return Uint8Array.from({ length: images * FROM_WIDTH * FROM_HEIGHT * 3 }, (_, i) => Math.imul(i, 2654435761) >>> 24);
}

async function ours(device: Device, filter: Filter, images: number, count: number): Promise<Contender> {
  const image = await device.tensor(u8, pixels(images), [images, FROM_HEIGHT, FROM_WIDTH, 3]);
  const out = await device.zeros(u8, [images, TO, TO, 3]);
  const op = npp.resize(image, { filter, out });
  return {
    async round() {
      for (let i = 0; i < 5; i++) await op;
      const samples: number[] = [];
      for (let i = 0; i < count; i++) {
        const start = performance.now();
        await op;
        samples.push(performance.now() - start);
      }
      const values = await out.read();
      if (values.every((value) => value === values[0])) throw new Error('resize gave a wrong result');
      return { samples };
    },
    close() {
      image.close();
      out.close();
      return Promise.resolve();
    },
  };
}

/** What of sharp is used. */
interface Sharp {
  (data: Uint8Array, options: { raw: { width: number; height: number; channels: number } }): {
    resize(width: number, height: number, options: { fit: 'fill'; kernel: Filter }): { raw(): { toBuffer(): Promise<Uint8Array> } };
  };
  cache(on: boolean): void;
}

function besideSharp(kernel: Filter): Peer {
  return {
    name: 'sharp', bar: '<= 3',
    async start({ count }) {
      const name = process.env.SHARP ?? 'sharp';
      const { default: sharp } = await (import(name) as Promise<{ default: Sharp }>).catch(() => { throw new PeerAbsent('not installed: npm install --no-save sharp'); });
      sharp.cache(false);
      const data = pixels(1);
      const run = (): Promise<Uint8Array> => sharp(data, { raw: { width: FROM_WIDTH, height: FROM_HEIGHT, channels: 3 } }).resize(TO, TO, { fit: 'fill', kernel }).raw().toBuffer();
      return {
        async round() {
          for (let i = 0; i < 5; i++) await run();
          const samples: number[] = [];
          for (let i = 0; i < count(SAMPLES * 4); i++) {
            const start = performance.now();
            await run();
            samples.push(performance.now() - start);
          }
          return { samples };
        },
      };
    },
  };
}

const onCores = (filter: Filter): Benchmark => ({
  area: 'cpu-device', name: `images: resize 1920 × 1080 to 640 × 640 RGB, ${filter}`, unit: 'ms', statistic: 'median', peers: [besideSharp(filter)],
  async start({ count }) {
    const device = await root.Device.open('cpu');
    const contender = await ours(device, filter, 1, count(SAMPLES * 4));
    return { ...contender, close: async () => { await contender.close?.(); await device.close(); } };
  },
});

const onGpu = (filter: Filter, images: number): Benchmark => ({
  area: 'images', name: `resize ${images} × 1920 × 1080 to 640 × 640 RGB, ${filter}`, unit: 'ms', statistic: 'median', peers: [],
  start: ({ device, count }: Setup) => ours(root.Device.of(device), filter, images, count(SAMPLES * 20)),
});

export const imageResizes: readonly Benchmark[] = [onGpu('linear', 1), onGpu('linear', 32), onGpu('lanczos3', 32), onCores('linear'), onCores('lanczos3')];
