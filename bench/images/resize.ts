/**
 * Resized images: on a GPU compared with NPP, PyTorch and torchvision, by the device's events; on
 * the CPU device compared with sharp on the same cores. sharp is a dev dependency; SHARP is the
 * path of another one, and without it its rows are marked as absent.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender, Peer, Round, Setup } from '../benchmark.js';
import { core, imageLibrary, root } from '../library.js';
import { PeerAbsent } from '../peers/program.js';
import {
  CHANNELS,
  FROM_HEIGHT,
  FROM_WIDTH,
  RUNS,
  SAMPLES,
  TO,
  noise,
  proveLines,
  timedByEvents,
} from './pictures.js';

const { u8 } = core;
/** Samples of a round on the CPU device. */
const CPU_SAMPLES = 20;

type Filter = 'linear' | 'lanczos3';
type Device = Awaited<ReturnType<typeof root.Device.open>>;

/** @param sampled times the operation */
async function ours(
  device: Device,
  filter: Filter,
  images: number,
  sampled: (op: ReturnType<typeof imageLibrary.resize>) => Promise<Round>,
): Promise<Contender> {
  const image = await device.tensor(u8, noise(images), [images, FROM_HEIGHT, FROM_WIDTH, CHANNELS]);
  const out = await device.zeros(u8, [images, TO, TO, CHANNELS]);
  const op = imageLibrary.resize(image, { filter, out });
  return {
    async round() {
      const round = await sampled(op as never);
      proveLines(await out.read(), TO * CHANNELS, () => ({ mean: 127.5, within: 17.5 }));
      return round;
    },
    close() {
      image.close();
      out.close();
      return Promise.resolve();
    },
  };
}

/** The part of sharp that is used. */
interface Sharp {
  (
    data: Uint8Array,
    options: { raw: { width: number; height: number; channels: number } },
  ): {
    resize(
      width: number,
      height: number,
      options: { fit: 'fill'; kernel: Filter },
    ): { raw(): { toBuffer(): Promise<Uint8Array> } };
  };
  cache(on: boolean): void;
}

function besideSharp(kernel: Filter): Peer {
  return {
    name: 'sharp',
    bar: '<= 3',
    async start({ count }) {
      const name = process.env.SHARP ?? 'sharp';
      const { default: sharp } = await (import(name) as Promise<{ default: Sharp }>).catch(() => {
        throw new PeerAbsent('not installed: npm install --no-save sharp');
      });
      sharp.cache(false);
      const data = noise(1);
      const run = (): Promise<Uint8Array> =>
        sharp(data, { raw: { width: FROM_WIDTH, height: FROM_HEIGHT, channels: CHANNELS } })
          .resize(TO, TO, { fit: 'fill', kernel })
          .raw()
          .toBuffer();
      return {
        async round() {
          for (let i = 0; i < 5; i++) await run();
          const samples: number[] = [];
          for (let i = 0; i < count(CPU_SAMPLES); i++) {
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
  area: 'cpu-device',
  name: `images: resize 1920 × 1080 to 640 × 640 RGB, ${filter}`,
  unit: 'ms',
  statistic: 'median',
  peers: [besideSharp(filter)],
  async start({ count }) {
    const device = await root.Device.open('cpu');
    const contender = await ours(device, filter, 1, async (op) => {
      for (let i = 0; i < 5; i++) await op;
      const samples: number[] = [];
      for (let i = 0; i < count(CPU_SAMPLES); i++) {
        const start = performance.now();
        await op;
        samples.push(performance.now() - start);
      }
      return { samples };
    });
    return {
      ...contender,
      close: async () => {
        await contender.close?.();
        await device.close();
      },
    };
  },
});

/** NPP in both ways: its own loop over a batch is not always the faster one. */
function besideNpp(images: number): Peer[] {
  const peer = (name: string, measurement: string): Peer => ({
    name,
    bar: '<= 0.833',
    program: 'NPP',
    request: ({ count }) => `${measurement} ${count(SAMPLES)} ${images} ${RUNS}`,
  });
  return [
    peer('nppiResize', 'resize-each'),
    ...(images > 1 ? [peer('nppiResizeBatch', 'resize-batch')] : []),
  ];
}

function besideTorch(images: number): Peer[] {
  const peer = (name: string, measurement: string, layout: string): Peer => ({
    name,
    bar: '<= 1',
    program: 'torchvision',
    request: ({ count }) => `${measurement} ${count(SAMPLES)} ${images} ${RUNS} ${layout}`,
  });
  return [
    peer('PyTorch, interpolate, packed', 'interpolate', 'packed'),
    peer('PyTorch, interpolate, planar', 'interpolate', 'planar'),
    peer('torchvision, resize, packed', 'resize', 'packed'),
    peer('torchvision, resize, planar', 'resize', 'planar'),
  ];
}

const onGpu = (filter: Filter, images: number): Benchmark => ({
  area: 'images',
  name: `resize ${images} × 1920 × 1080 to 640 × 640 RGB, ${filter}`,
  unit: 'ms',
  statistic: 'median',
  peers: filter === 'linear' ? [...besideNpp(images), ...besideTorch(images)] : [],
  start: ({ device, count }: Setup) =>
    ours(root.Device.of(device), filter, images, (op) => timedByEvents(device, op, count(SAMPLES))),
});

export const imageResizes: readonly Benchmark[] = [
  onGpu('linear', 1),
  onGpu('linear', 32),
  onGpu('lanczos3', 32),
  onCores('linear'),
  onCores('lanczos3'),
];
