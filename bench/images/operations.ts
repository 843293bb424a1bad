/**
 * Each operation of `async-cuda/images` on a photograph of 1920 × 1080, RGB of u8, by our kernels
 * and by NPP, both through the library. The table of docs/images.md has these numbers. Results are
 * allocated and freed in stream order, as in a program.
 */
import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { core, imageLibrary, root } from '../library.js';
import type { DeviceOp } from '../library.js';
import { PeerAbsent } from '../peers/program.js';
import {
  CHANNELS,
  FROM_HEIGHT,
  FROM_WIDTH,
  SAMPLES,
  TO,
  noise,
  timedByEvents,
} from './pictures.js';

const { f16, f32, u8 } = core;
type Engine = 'own' | 'npp';
/** A result, or several, which are its receiver's to close. */
type Made = DeviceOp<Disposable>;
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tensors of every dtype
type Picture = any;

interface Operation {
  readonly name: string;
  /** Channels of the picture. Default: 3. */
  readonly channels?: number;
  readonly make: (picture: Picture, engine: Engine) => DeviceOp<unknown>;
}

const SIZE = { width: TO, height: TO };
const REPLICATE = { border: 'replicate' } as const;

/** By their names in the table of scripts/readme-numbers.mjs. */
export const OPERATIONS: readonly Operation[] = [
  ...(['nearest', 'linear', 'cubic', 'lanczos3', 'area'] as const).map((filter): Operation => ({
    name: `resize, ${filter}`,
    make: (x, engine) => imageLibrary.resize(x, { ...SIZE, filter, engine }),
  })),
  {
    name: 'letterbox',
    make: (x, engine) => imageLibrary.letterbox(x, { ...SIZE, color: 114, engine }),
  },
  { name: 'mirror', make: (x, engine) => imageLibrary.mirror(x, 'horizontal', { engine }) },
  { name: 'rotateQuarters', make: (x, engine) => imageLibrary.rotateQuarters(x, 1, { engine }) },
  {
    name: 'copyBorder',
    make: (x, engine) =>
      imageLibrary.copyBorder(x, { left: 16, top: 16, right: 16, bottom: 16, color: 114, engine }),
  },
  {
    name: 'warpAffine',
    make: (x, engine) =>
      imageLibrary.warpAffine(
        x,
        [
          [0.9, 0.1, 20],
          [-0.1, 0.9, 30],
        ],
        { engine },
      ),
  },
  {
    name: 'warpPerspective',
    make: (x, engine) =>
      imageLibrary.warpPerspective(
        x,
        [
          [0.9, 0.1, 20],
          [-0.1, 0.9, 30],
          [1e-5, 0, 1],
        ],
        { engine },
      ),
  },
  {
    name: 'convertColor to grey',
    make: (x, engine) => imageLibrary.convertColor(x, { from: 'rgb', to: 'grey', engine }),
  },
  {
    name: 'convertColor to HSV',
    make: (x, engine) => imageLibrary.convertColor(x, { from: 'rgb', to: 'hsv', engine }),
  },
  { name: 'rgbToYuv', make: (x, engine) => imageLibrary.rgbToYuv(x, { format: 'nv12', engine }) },
  {
    name: 'orderChannels',
    make: (x, engine) => imageLibrary.orderChannels(x, [2, 1, 0], { engine }),
  },
  { name: 'addAlpha', make: (x, engine) => imageLibrary.addAlpha(x, { engine }) },
  { name: 'toPlanar', make: (x, engine) => imageLibrary.toPlanar(x, { engine }) },
  {
    name: 'rescale to f32',
    make: (x, engine) => imageLibrary.rescale(x, f32, { scale: 1 / 255, engine }),
  },
  {
    name: 'normalise to f16',
    make: (x, engine) =>
      imageLibrary.normalise(x, { mean: 0.5, deviation: 0.25, dtype: f16, engine }),
  },
  {
    name: 'letterboxNormalise',
    make: (x, engine) =>
      imageLibrary.letterboxNormalise(x, { ...SIZE, mean: 0.5, deviation: 0.25, engine }),
  },
  { name: 'add', make: (x, engine) => imageLibrary.addImages(x, 10, { engine }) },
  { name: 'threshold', make: (x, engine) => imageLibrary.threshold(x, 100, { engine }) },
  {
    name: 'blend',
    channels: 4,
    make: (x, engine) => imageLibrary.blend(x, x, { premultiplied: true, engine }),
  },
  {
    name: 'gaussianFilter',
    make: (x, engine) => imageLibrary.gaussianFilter(x, { radius: 2, ...REPLICATE, engine }),
  },
  {
    name: 'boxFilter',
    make: (x, engine) => imageLibrary.boxFilter(x, { radius: 2, ...REPLICATE, engine }),
  },
  { name: 'sobel', make: (x, engine) => imageLibrary.sobel(x, { along: 'x', engine }) },
  { name: 'channelSums', make: (x, engine) => imageLibrary.channelSums(x, { engine }) },
  { name: 'channelExtremes', make: (x, engine) => imageLibrary.channelExtremes(x, { engine }) },
  { name: 'channelHistogram', make: (x, engine) => imageLibrary.channelHistogram(x, { engine }) },
];

async function start(
  { device: opened, count }: Setup,
  { channels = CHANNELS, make }: Operation,
  engine: Engine,
): Promise<Contender> {
  const device = root.Device.of(opened);
  if (engine === 'npp') {
    const { available, reason } = (await imageLibrary.engines(device)).find(
      ({ name }) => name === engine,
    )!;
    if (!available) throw new PeerAbsent(reason ?? 'not there');
  }
  const bytes = noise(1);
  const picture = await device.tensor(
    u8,
    channels === CHANNELS
      ? bytes
      : Uint8Array.from(
          { length: (bytes.length / CHANNELS) * channels },
          (_, i) => bytes[i % bytes.length]!,
        ),
    [FROM_HEIGHT, FROM_WIDTH, channels],
  );
  let op: Made;
  try {
    op = make(picture, engine) as Made;
    (await op)[Symbol.dispose]();
  } catch (error) {
    picture.close();
    if (engine === 'npp') throw new PeerAbsent((error as Error).message);
    throw error;
  }
  // Closed once it is queued: the next one takes the same memory.
  const once = op.map((made) => {
    made[Symbol.dispose]();
  });
  return {
    round: () => timedByEvents(opened, once, count(SAMPLES)),
    close() {
      picture.close();
      return Promise.resolve();
    },
  };
}

export const imageOperations: readonly Benchmark[] = OPERATIONS.map((operation) => ({
  area: 'images',
  name: `${operation.name}, 1920 × 1080 RGB`,
  unit: 'ms',
  statistic: 'median',
  rounds: 3,
  peers: [{ name: 'NPP', start: (setup: Setup) => start(setup, operation, 'npp') }],
  start: (setup: Setup) => start(setup, operation, 'own'),
}));
