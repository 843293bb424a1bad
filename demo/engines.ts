/**
 * The photograph through operations of `async-cuda/images`, by each engine that the device has: our
 * kernels everywhere, NVIDIA's NPP on a GPU where it is installed.
 */
import { Device } from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';
import type { CoreDevice } from 'async-cuda/core';
import { u8 } from 'async-cuda/core';
import { boxFilter, engines, gaussianFilter, letterbox, resize } from 'async-cuda/images';
import type { EngineName } from 'async-cuda/images';

import type { Image } from './image.js';
import { fitWithin } from './resize.js';

/** What an engine made of the photograph. */
export interface Made {
  readonly image: Image;
  /** On the device's clock, in ms. */
  readonly time: number;
}

/** One operation, by each engine. */
export interface Compared {
  readonly title: string;
  /** Its numbers. */
  readonly note: string;
  readonly own: Made;
  /** Undefined where NPP is not there; why, where it is but lacks this. */
  readonly npp?: Made | string;
  /** The largest difference of a byte, and the mean of all, where both made it. */
  readonly largest?: number;
  readonly mean?: number;
}

export interface Comparison {
  readonly operations: readonly Compared[];
  /** NPP's version, where it is there. */
  readonly npp: string | undefined;
  /** Where it is not: why. */
  readonly reason: string | undefined;
}

type Picture = Tensor<'u8', number[]>;

interface Operation {
  readonly title: string;
  readonly note: (image: Image) => string;
  readonly make: (picture: Picture, image: Image, engine: EngineName) => DeviceOp<Picture>;
}

/**
 * Columns and rows that the photograph has at most: filters of a large one would take a CPU device
 * seconds.
 */
const MOST = 1024;
const FRAME = 640;
const RADIUS = 8;

function half({ width, height }: Image): { width: number; height: number } {
  return { width: Math.max(1, width >> 1), height: Math.max(1, height >> 1) };
}

/** Borders are those that both engines have. */
const operations: readonly Operation[] = [
  {
    title: 'resize',
    note: (image) => `linear, ${half(image).width} x ${half(image).height}`,
    make: (picture, image, engine) => resize(picture, { ...half(image), engine }),
  },
  {
    title: 'resize',
    note: (image) => `lanczos3, ${half(image).width} x ${half(image).height}`,
    make: (picture, image, engine) =>
      resize(picture, { ...half(image), filter: 'lanczos3', engine }),
  },
  {
    title: 'letterbox',
    note: () => `${FRAME} x ${FRAME}, colour 114`,
    make: (picture, _, engine) =>
      letterbox(picture, { width: FRAME, height: FRAME, color: 114, engine }).map(
        ({ image }) => image,
      ),
  },
  {
    title: 'gaussianFilter',
    note: () => `radius ${RADIUS}`,
    make: (picture, _, engine) =>
      gaussianFilter(picture, { radius: RADIUS, border: 'replicate', engine }),
  },
  {
    title: 'boxFilter',
    note: () => `radius ${RADIUS}`,
    make: (picture, _, engine) =>
      boxFilter(picture, { radius: RADIUS, border: 'replicate', engine }),
  },
];

/**
 * Runs each operation on the photograph by each engine, once for the kernels to be there and once
 * for the clock.
 */
export async function compareEngines(core: CoreDevice, photograph: Image): Promise<Comparison> {
  const image =
    Math.max(photograph.width, photograph.height) > MOST ? fitWithin(photograph, MOST) : photograph;
  const device = Device.of(core);
  const npp = (await engines(device)).find(({ name }) => name === 'npp')!;
  using stream = core.createStream({ label: 'engines' });
  using picture = await device.tensor(u8, image.data, [image.height, image.width, 3]);

  const run = async (operation: Operation, engine: EngineName): Promise<Made> => {
    (await operation.make(picture, image, engine).runOn(stream)).close();
    using begin = core.createEvent();
    using end = core.createEvent();
    stream.record(begin);
    const queued = operation.make(picture, image, engine).runOn(stream);
    stream.record(end);
    using result = await queued;
    const time = await begin.elapsed(end);
    const [height, width] = result.shape as [number, number];
    return { image: { width, height, data: await result.read() }, time };
  };

  const compared: Compared[] = [];
  for (const operation of operations) {
    const row = {
      title: operation.title,
      note: operation.note(image),
      own: await run(operation, 'own'),
    };
    if (!npp.available) {
      compared.push(row);
      continue;
    }
    try {
      const theirs = await run(operation, 'npp');
      compared.push({
        ...row,
        npp: theirs,
        ...differenceOf(row.own.image.data, theirs.image.data),
      });
    } catch (error) {
      compared.push({ ...row, npp: (error as Error).message });
    }
  }
  return { operations: compared, npp: npp.version, reason: npp.reason };
}

function differenceOf(a: Uint8Array, b: Uint8Array): { largest: number; mean: number } {
  let [largest, sum] = [0, 0];
  a.forEach((value, i) => {
    const difference = Math.abs(value - b[i]!);
    largest = Math.max(largest, difference);
    sum += difference;
  });
  return { largest, mean: sum / a.length };
}
