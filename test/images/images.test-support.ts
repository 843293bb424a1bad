/**
 * Images for tests: their pixels as doubles on the host, and as tensors of every layout that
 * operations take.
 */
import type { Device } from 'async-cuda';
import { f16, f32, u16, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp, Tensor } from 'async-cuda';
import { crop } from 'async-cuda/images';
import { expect } from 'vitest';

import type { ImageName } from '../../src/images/image.js';

export const DTYPES = { u8, u16, f16, f32 } as const;
export const NAMES: readonly ImageName[] = ['u8', 'u16', 'f16', 'f32'];
export const WHITE = { u8: 255, u16: 65535, f16: 1, f32: 1 } as const;

/** Pixels on the host. */
export interface Pixels {
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  /** [image, row, column, channel]. */
  readonly data: Float64Array;
}

export function at(
  { height, width, channels, data }: Pixels,
  image: number,
  y: number,
  x: number,
  channel: number,
): number {
  return data[((image * height + y) * width + x) * channels + channel]!;
}

export function pixels(
  batch: number,
  height: number,
  width: number,
  channels: number,
  value: (image: number, y: number, x: number, channel: number) => number,
): Pixels {
  const data = new Float64Array(batch * height * width * channels);
  let next = 0;
  for (let n = 0; n < batch; n++)
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++)
        for (let c = 0; c < channels; c++) data[next++] = value(n, y, x, c);
  return { batch, height, width, channels, data };
}

/**
 * Numbers of a generator with the seed, the same in each run, from 0 to white, with black and
 * white.
 */
export function noise(
  name: ImageName,
  batch: number,
  height: number,
  width: number,
  channels: number,
  seed = 1,
): Pixels {
  let state = (seed * 2654435761) >>> 0;
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const share = (state >>> 8) / 2 ** 24;
    return share < 0.06 ? 0 : share > 0.94 ? 1 : share;
  };
  return pixels(batch, height, width, channels, () => {
    const value = next();
    return name === 'f16'
      ? Math.round(value * 1024) / 1024
      : name === 'f32'
        ? Math.fround(value)
        : Math.round(value * WHITE[name]);
  });
}

/**
 * Each layout that an image can have: [H, W, C], [N, H, W, C], and a region of one that is larger.
 */
export const LAYOUTS = ['image', 'batch', 'region'] as const;
export type LayoutName = (typeof LAYOUTS)[number];

/** Pixels of a layout: regions are 5 rows and columns inside of a larger image. */
export async function upload(
  device: Device,
  name: ImageName,
  { batch, height, width, channels, data }: Pixels,
  layout: LayoutName = batch > 1 ? 'batch' : 'image',
): Promise<{ readonly image: Tensor<ImageName>; readonly whole: AnyTensor }> {
  const dtype = DTYPES[name] as typeof f32;
  if (layout === 'image' && batch > 1) throw new Error('an image is one');
  if (layout !== 'region') {
    const image = await device.tensor(
      dtype,
      Array.from(data),
      layout === 'batch' ? [batch, height, width, channels] : [height, width, channels],
    );
    return { image: image as never, whole: image as never };
  }
  const [rows, columns] = [height + 3, width + 5];
  const around = pixels(batch, rows, columns, channels, (n, y, x, c) =>
    y >= 1 && y <= height && x >= 2 && x < 2 + width
      ? data[((n * height + y - 1) * width + x - 2) * channels + c]!
      : 7,
  );
  const whole = await device.tensor(dtype, Array.from(around.data), [
    batch,
    rows,
    columns,
    channels,
  ]);
  return {
    image: crop(whole as never, { x: 2, y: 1, width, height }) as never,
    whole: whole as never,
  };
}

/** The result of an operation, as doubles. */
export async function values(op: DeviceOp<AnyTensor>): Promise<number[]> {
  return Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number>, Number);
}

/** A number as it is stored in a dtype: rounded to the nearest, ties to even, saturated. */
export function stored(name: ImageName, value: number): number {
  if (name === 'f32') return Math.fround(value);
  if (name === 'f16') return half(value);
  if (Number.isNaN(value)) return 0;
  const floor = Math.floor(value);
  const rest = value - floor;
  const rounded = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
  return Math.min(WHITE[name], Math.max(0, rounded));
}

function half(value: number): number {
  if (!Number.isFinite(value) || value === 0) return value;
  const step = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(value)))) - 10);
  const scaled = Math.abs(value) / step;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const rounded = (rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor) * step;
  return Math.sign(value) * (rounded > 65504 ? Infinity : rounded);
}

/** The largest difference of f32 from doubles before rounding, in units of white. */
const ERROR = 2e-6;

/**
 * Expects the elements that doubles give: integers are equal, except for numbers so close to the
 * middle of two that f32 may round to the other one; floats are within the precision of f32,
 * rounded to the dtype.
 *
 * @param given elements of the result
 * @param expected doubles that were not rounded
 */
export function expectStored(
  name: ImageName,
  given: readonly number[],
  expected: ArrayLike<number>,
  error: number = ERROR,
): void {
  expect(given.length).toBe(expected.length);
  const room = error * WHITE[name];
  const wrong: string[] = [];
  for (let i = 0; i < given.length && wrong.length < 5; i++) {
    const value = expected[i]!;
    const slack = room * Math.max(1, Math.abs(value) / WHITE[name]);
    if (Number.isNaN(value) && Number.isNaN(given[i])) continue;
    if (!(given[i]! >= stored(name, value - slack) && given[i]! <= stored(name, value + slack)))
      wrong.push(`element ${i}: ${given[i]!}, not ${stored(name, value)} (${value})`);
  }
  expect(wrong).toEqual([]);
}
