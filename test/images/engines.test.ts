/**
 * NPP compared with our kernels, on a GPU where it is installed: each operation runs on both
 * engines, and the difference is measured, printed and within the table's bounds. And async-cuda's
 * images, recorded on the installed NPP:
 *
 *     ASYNC_CUDA_TEST_DEVICE=cuda ASYNC_CUDA_RECORD_NPP=test/images/golden-npp.json \
 *       npx vitest run test/images/engines.test.ts
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Device, f16, f32, u16, u8 } from 'async-cuda';
import type { AnyTensor } from 'async-cuda';
import {
  addImages,
  addAlpha,
  blend,
  boxFilter,
  channelExtremes,
  channelHistogram,
  channelMeans,
  channelSums,
  convertColor,
  copyBorder,
  difference,
  engines,
  gaussianFilter,
  letterbox,
  mirror,
  multiplyImages,
  normalise,
  orderChannels,
  remap,
  resize,
  resizeBatch,
  rescale,
  rgbToYuv,
  rotate,
  rotateQuarters,
  subtractImages,
  threshold,
  toPacked,
  toPlanar,
  warpAffine,
  warpPerspective,
  yuvToRgb,
} from 'async-cuda/images';
import type { EngineName } from 'async-cuda/images';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { onCpu, onDevice } from '../core/test-device.js';

type Name = 'u8' | 'u16' | 'f16' | 'f32';
/** An operation, or the result of an asynchronous function that runs operations. */
type Make = (image: never, options: { engine: EngineName }, device: Device) => PromiseLike<unknown>;

const DTYPES = { u8, u16, f16, f32 } as const;
const WHITE = { u8: 255, u16: 65535, f16: 1, f32: 1 } as const;
const STEP = { u8: 1, u16: 1, f16: 2 ** -10, f32: 2 ** -20 } as const;

const USUAL: readonly Name[] = ['u8', 'u16', 'f32'];

interface Case {
  readonly dtypes?: readonly Name[];
  readonly channels?: readonly number[];
  /**
   * The most that elements may differ by, in steps of the dtype, and the share of elements that may
   * differ by more.
   */
  readonly most: number;
  readonly share?: number;
  /** The unit of differences of elements. Default: the step of the image's dtype. */
  readonly step?: (value: number) => number;
  /** Cases that NPP does not support, and refuses. */
  readonly lacks?: (name: Name, channels: number) => boolean;
  readonly make: Make;
}

/**
 * Where engines sample differently at edges and phases the difference is bounded by the contrast: a
 * share of elements may have any value.
 */
const SAMPLED = { most: 2, share: 1 } as const;
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tensors of every dtype
const on = (f: (image: any, options: any, device: any) => unknown): Make => f as never;

const relative = (value: number): number => STEP.f32 * Math.max(1, Math.abs(value));

/**
 * The least and the greatest elements, and those at the returned places: of several equal ones each
 * engine chooses its own.
 */
async function extremes(image: AnyTensor, options: { engine: EngineName }): Promise<unknown> {
  using found = await channelExtremes(image as never, options);
  const [min, max, minAt, maxAt, all] = await Promise.all(
    [found.min, found.max, found.minAt, found.maxAt, image].map(async (each) =>
      Array.from((await each.read()) as ArrayLike<number>, Number),
    ),
  );
  const [, columns, channels] = image.shape as [number, number, number];
  const at = (places: number[]): number[] =>
    Array.from(
      { length: channels },
      (_, c) => all![(places[2 * c]! * columns + places[2 * c + 1]!) * channels + c]!,
    );
  return {
    read: () => Promise.resolve([...min!, ...max!, ...at(minAt!), ...at(maxAt!)]),
    close: () => undefined,
  };
}

const CASES: Readonly<Record<string, Case>> = {
  'resize nearest, to half': {
    dtypes: ['u8', 'u16', 'f16', 'f32'],
    ...SAMPLED,
    make: on((x, o) => resize(x, { width: 32, height: 24, filter: 'nearest', ...o })),
  },
  'resize linear, larger': {
    dtypes: ['u8', 'u16', 'f16', 'f32'],
    ...SAMPLED,
    make: on((x, o) => resize(x, { width: 150, height: 101, ...o })),
  },
  'resize linear, smaller': {
    ...SAMPLED,
    make: on((x, o) => resize(x, { width: 40, height: 30, ...o })),
  },
  'resize cubic': {
    ...SAMPLED,
    make: on((x, o) => resize(x, { width: 150, height: 101, filter: 'cubic', ...o })),
  },
  'resize area': {
    ...SAMPLED,
    make: on((x, o) => resize(x, { width: 32, height: 24, filter: 'area', ...o })),
  },
  'resize lanczos3': {
    ...SAMPLED,
    make: on((x, o) => resize(x, { width: 150, height: 101, filter: 'lanczos3', ...o })),
  },
  resizeBatch: {
    ...SAMPLED,
    make: on((x, o) => resizeBatch([x, x], { width: 32, height: 24, ...o })),
  },
  letterbox: {
    ...SAMPLED,
    make: on((x, o) =>
      letterbox(x, { width: 64, height: 64, color: 0, ...o }).map(({ image }) => image),
    ),
  },
  'mirror horizontal': { most: 0, make: on((x, o) => mirror(x, 'horizontal', o)) },
  'mirror vertical': { most: 0, make: on((x, o) => mirror(x, 'vertical', o)) },
  'mirror both': { most: 0, make: on((x, o) => mirror(x, 'both', o)) },
  'rotateQuarters 1': {
    dtypes: ['u8', 'u16', 'f16', 'f32'],
    most: 0,
    make: on((x, o) => rotateQuarters(x, 1, o)),
  },
  'rotateQuarters 2': { most: 0, make: on((x, o) => rotateQuarters(x, 2, o)) },
  'rotateQuarters 3': {
    dtypes: ['u8', 'f16'],
    most: 0,
    make: on((x, o) => rotateQuarters(x, 3, o)),
  },
  // Both sum in f32, each in its own order; the last addition may change an integer by one.
  'gaussianFilter, radius 2': {
    most: 1,
    lacks: (name, count) => name === 'u8' && count === 1,
    make: on((x, o) => gaussianFilter(x, { radius: 2, border: 'replicate', ...o })),
  },
  'gaussianFilter, radius 7': {
    most: 1,
    lacks: (name, count) => name === 'u8' && count === 1,
    make: on((x, o) => gaussianFilter(x, { radius: 7, border: 'replicate', ...o })),
  },
  'boxFilter, radius 1': {
    most: 1,
    make: on((x, o) => boxFilter(x, { radius: 1, border: 'replicate', ...o })),
  },
  'boxFilter, radius 5': {
    most: 1,
    make: on((x, o) => boxFilter(x, { radius: 5, border: 'replicate', ...o })),
  },
  'channelSums of integers': {
    dtypes: ['u8', 'u16'],
    most: 0,
    make: on((x, o) => channelSums(x, o)),
  },
  'channelSums of floats': {
    dtypes: ['f32'],
    most: 1,
    step: relative,
    make: on((x, o) => channelSums(x, o)),
  },
  'channelMeans of integers': {
    dtypes: ['u8', 'u16'],
    most: 0,
    make: on((x, o) => channelMeans(x, o)),
  },
  'channelMeans of floats': { dtypes: ['f32'], most: 1, make: on((x, o) => channelMeans(x, o)) },
  channelExtremes: { most: 0, lacks: (name) => name === 'u8', make: on(extremes) },
  'channelHistogram, all values': {
    dtypes: ['u8'],
    most: 0,
    make: on((x, o) => channelHistogram(x, o)),
  },
  'channelHistogram, wide bins': {
    dtypes: ['u8'],
    most: 0,
    make: on((x, o) => channelHistogram(x, { bins: 16, from: 64, to: 256, ...o })),
  },
  'channelHistogram, wider bins': {
    dtypes: ['u16'],
    most: 0,
    make: on((x, o) => channelHistogram(x, { bins: 16, from: 1 << 14, to: 1 << 16, ...o })),
  },
  'channelHistogram, below the greatest': {
    dtypes: ['u8', 'u16'],
    most: 0,
    lacks: () => true,
    make: on((x, o) => channelHistogram(x, { bins: 16, from: 64, to: 192, ...o })),
  },
  'border constant': {
    most: 0,
    make: on((x, o) => copyBorder(x, { left: 3, top: 2, right: 1, bottom: 4, color: 1, ...o })),
  },
  'border replicate': {
    most: 0,
    make: on((x, o) =>
      copyBorder(x, { left: 3, top: 2, right: 1, bottom: 4, border: 'replicate', ...o }),
    ),
  },
  'border wrap': {
    most: 0,
    make: on((x, o) =>
      copyBorder(x, { left: 3, top: 2, right: 1, bottom: 4, border: 'wrap', ...o }),
    ),
  },
  'warpAffine linear': {
    ...SAMPLED,
    make: on((x, o) =>
      warpAffine(
        x,
        [
          [0.9, 0.1, 2],
          [-0.1, 0.9, 3],
        ],
        o,
      ),
    ),
  },
  'warpPerspective nearest': {
    ...SAMPLED,
    make: on((x, o) =>
      warpPerspective(
        x,
        [
          [0.9, 0.1, 2],
          [-0.1, 0.9, 3],
          [0.001, 0, 1],
        ],
        { filter: 'nearest', ...o },
      ),
    ),
  },
  'rotate linear': { ...SAMPLED, make: on((x, o) => rotate(x, 20, o)) },
  'remap linear': {
    ...SAMPLED,
    make: on(async (x, o, device) => {
      const [rows, columns] = x.shape.slice(-3) as [number, number];
      const places = Array.from(
        { length: rows * columns },
        (_, i) => [(i % columns) * 0.97 + 0.3, Math.floor(i / columns) * 0.95 + 0.4] as const,
      );
      const map = async (axis: 0 | 1): Promise<AnyTensor> =>
        device.tensor(
          f32,
          places.map((place) => place[axis]),
          [rows, columns],
        );
      return remap(x, (await map(0)) as never, (await map(1)) as never, o);
    }),
  },
  'add of an image': {
    dtypes: ['u8', 'u16', 'f16', 'f32'],
    most: 1,
    make: on((x, o) => addImages(x, x, o)),
  },
  'subtract of an image': {
    dtypes: ['u8', 'f32'],
    most: 1,
    make: on(async (x, o) => subtractImages(x, await mirror(x, 'horizontal'), o)),
  },
  'multiply by numbers': {
    dtypes: ['u8', 'u16', 'f16', 'f32'],
    most: 1,
    make: on((x, o) => multiplyImages(x, 3, o)),
  },
  difference: {
    dtypes: ['u8'],
    most: 0,
    make: on(async (x, o) => difference(x, await mirror(x, 'horizontal'), o)),
  },
  'rescale to f32': {
    dtypes: ['u8', 'u16', 'f16'],
    most: 1,
    step: relative,
    make: on((x, o) => rescale(x, f32, { scale: 0.5, offset: 0.25, ...o })),
  },
  'rescale to u8': {
    dtypes: ['u16', 'f32'],
    most: 1,
    step: () => 1,
    make: on((x, o) => rescale(x, u8, { scale: x.dtype === u16 ? 1 / 257 : 255, ...o })),
  },
  'normalise f16': {
    dtypes: ['u8'],
    most: 4,
    step: () => STEP.f16,
    make: on((x, o) => normalise(x, { dtype: f16, mean: 0.4, deviation: 0.25, ...o })),
  },
  'threshold binary': {
    dtypes: ['u8', 'u16'],
    channels: [1, 3],
    most: 0,
    make: on((x, o) => threshold(x, 100, o)),
  },
  'threshold toZero': {
    dtypes: ['u8', 'u16'],
    channels: [1, 3],
    most: 0,
    make: on((x, o) => threshold(x, 100, { kind: 'toZero', ...o })),
  },
  'threshold truncate': {
    dtypes: ['u8', 'f32'],
    channels: [1, 3],
    most: 0,
    make: on((x, o) => threshold(x, x.dtype === f32 ? 0.5 : 100, { kind: 'truncate', ...o })),
  },
  'blend over, premultiplied': {
    dtypes: ['u8', 'u16', 'f32'],
    channels: [4],
    most: 2,
    share: 0.02,
    make: on(async (x, o) =>
      blend(x, await mirror(x, 'horizontal'), { premultiplied: true, ...o }),
    ),
  },
  orderChannels: {
    dtypes: ['u8', 'u16', 'f16', 'f32'],
    channels: [3],
    most: 0,
    make: on((x, o) => orderChannels(x, [2, 0, 1], o)),
  },
  addAlpha: { channels: [3], most: 0, make: on((x, o) => addAlpha(x, o)) },
  toPlanar: { dtypes: ['u8', 'u16', 'f16', 'f32'], most: 0, make: on((x, o) => toPlanar(x, o)) },
  toPacked: {
    dtypes: ['u8', 'f16'],
    most: 0,
    make: on(async (x, o) => toPacked(await toPlanar(x), o)),
  },
  'rgb to grey': {
    channels: [3],
    most: 1,
    make: on((x, o) => convertColor(x, { from: 'rgb', to: 'grey', ...o })),
  },
  'rgb to bgra': {
    channels: [3],
    most: 0,
    make: on((x, o) => convertColor(x, { from: 'rgb', to: 'bgra', ...o })),
  },
  'grey to rgb': {
    channels: [1],
    most: 0,
    make: on((x, o) => convertColor(x, { from: 'grey', to: 'rgb', ...o })),
  },
  'rgb to hsv': {
    dtypes: ['u8'],
    channels: [3],
    most: 2,
    share: 0.05,
    make: on((x, o) => convertColor(x, { from: 'rgb', to: 'hsv', ...o })),
  },
  'hsv to rgb': {
    dtypes: ['u8'],
    channels: [3],
    most: 2,
    share: 0.05,
    make: on((x, o) => convertColor(x, { from: 'hsv', to: 'rgb', ...o })),
  },
  'rgb to i420': {
    dtypes: ['u8'],
    channels: [3],
    most: 2,
    share: 0.5,
    make: on((x, o) => rgbToYuv(x, { format: 'i420', ...o })),
  },
  'rgb to nv12': {
    dtypes: ['u8'],
    channels: [3],
    most: 2,
    share: 0.5,
    make: on((x, o) => rgbToYuv(x, { format: 'nv12', ...o })),
  },
  'nv12 to rgb': {
    dtypes: ['u8'],
    channels: [3],
    most: 2,
    share: 0.5,
    make: on(async (x, o) =>
      yuvToRgb(await rgbToYuv(x, { format: 'nv12' }), { format: 'nv12', ...o }),
    ),
  },
  'i420 to bgr, BT.709, full': {
    dtypes: ['u8'],
    channels: [3],
    most: 2,
    share: 0.5,
    make: on(async (x, o) =>
      yuvToRgb(await rgbToYuv(x, { format: 'i420' }), {
        format: 'i420',
        to: 'bgr',
        matrix: 'bt709',
        range: 'full',
        ...o,
      }),
    ),
  },
};

/** A smooth image with edges, the same in each run. */
function picture(name: Name, channels: number, height = 48, width = 64): number[] {
  return Array.from({ length: height * width * channels }, (_, i) => {
    const [x, y, c] = [
      Math.floor(i / channels) % width,
      Math.floor(i / channels / width),
      i % channels,
    ];
    const value =
      0.5 + 0.4 * Math.sin(x / 7 + c) * Math.cos(y / 5 - c) + (((x >> 4) + (y >> 4)) % 2) * 0.1;
    return name === 'u8' || name === 'u16' ? Math.round(value * WHITE[name]) : Math.fround(value);
  });
}

const [R, G, B] = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
] as const;
const FLAG = [R, R, R, R, R, G, G, R, R, B, B, R, R, R, R, R].flat();
const GOLDEN_FILE =
  process.env['ASYNC_CUDA_RECORD_NPP'] ??
  fileURLToPath(new URL('./golden-npp.json', import.meta.url));
/** The expectations of async-cuda 0.6; their version of NPP is not known. */
const GOLDENS: Readonly<
  Record<string, { expected: readonly number[]; make: (device: Device) => Promise<AnyTensor> }>
> = {
  resize: {
    expected: [R, R, R, B].flat(),
    make: async (device) =>
      resize(await device.tensor(u8, FLAG, [4, 4, 3]), {
        width: 2,
        height: 2,
        engine: 'npp',
      }) as never,
  },
  'resize with input region': {
    expected: [
      0, 255, 0, 0, 255, 0, 0, 255, 0, 64, 191, 0, 0, 191, 64, 0, 191, 64, 0, 191, 64, 64, 143, 48,
      0, 64, 191, 0, 64, 191, 0, 64, 191, 64, 48, 143, 64, 0, 191, 64, 0, 191, 64, 0, 191, 112, 0,
      143,
    ],
    make: async (device) =>
      resize((await device.tensor(u8, FLAG, [4, 4, 3])).slice([1, 3], [1, 3]) as never, {
        width: 4,
        height: 4,
        engine: 'npp',
      }) as never,
  },
  copy_constant_border: {
    expected: [B, B, B, B, B, B, B, B, B, R, G, B, B, B, B, B, B, B, B, B].flat(),
    make: async (device) =>
      copyBorder(await device.tensor(u8, [...R, ...G], [1, 2, 3]), {
        left: 1,
        top: 2,
        right: 1,
        bottom: 2,
        color: [...B],
        engine: 'npp',
      }) as never,
  },
  remap: {
    expected: [R, R, R, R, G, G, G, G, G, G, G, G, B, B, B, B].flat(),
    make: async (device) =>
      remap(
        await device.tensor(u8, FLAG, [4, 4, 3]),
        await device.tensor(f32, [0, 1, 2, 3, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2], [4, 4]),
        await device.tensor(f32, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2], [4, 4]),
        { engine: 'npp' },
      ) as never,
  },
};

const why = onCpu ? 'SKIPPED: NPP needs a GPU: set ASYNC_CUDA_TEST_DEVICE=cuda' : undefined;
if (why !== undefined) describe.skip(why, () => undefined);
else
  onDevice('Engines', (host) => {
    let device: Device;
    let version: string | undefined;
    const measured: string[] = [];
    const recorded: Record<string, readonly number[]> = {};
    beforeAll(async () => {
      device = Device.of(host.device);
      const info = (await engines(device))[1]!;
      if (!info.available) console.warn(`SKIPPED: NPP is not there: ${info.reason!}`);
      version = info.version;
    });
    afterAll(() => {
      if (measured.length > 0)
        console.log(
          `NPP ${version!} against our kernels (steps of the dtype):\n${measured.join('\n')}`,
        );
      if (process.env['ASYNC_CUDA_RECORD_NPP'] !== undefined)
        writeFileSync(
          GOLDEN_FILE,
          `${JSON.stringify({ version, images: recorded }, undefined, 1)}\n`,
        );
    });

    const numbers = async (made: PromiseLike<unknown>): Promise<Float64Array> => {
      const result = (await made) as { read(): PromiseLike<ArrayLike<number>>; close(): void };
      const values = Float64Array.from(await result.read());
      result.close();
      return values;
    };

    for (const [
      title,
      { dtypes = USUAL, channels = [1, 3, 4], most, share = 0, step, lacks, make },
    ] of Object.entries(CASES)) {
      const forms = dtypes
        .flatMap((name) => channels.map((count) => ({ name, count })))
        .filter(({ name, count }) => title !== 'difference' || name === 'u8' || count === 1);
      test.for(forms)(`${title}: $name, $count channels`, async ({ name, count }, { skip }) => {
        skip(version === undefined, 'NPP is not there');
        using image = await device.tensor(DTYPES[name] as typeof f32, picture(name, count), [
          48,
          64,
          count,
        ]);
        if (lacks?.(name, count) === true) {
          await expect(
            (async () => make(image as never, { engine: 'npp' }, device))(),
          ).rejects.toMatchObject({ argument: 'options.engine' });
          return;
        }
        const [ours, theirs] = [
          await numbers(make(image as never, { engine: 'own' }, device)),
          await numbers(make(image as never, { engine: 'npp' }, device)),
        ];
        expect(theirs.length).toBe(ours.length);
        const steps = ours.map(
          (value, i) => Math.abs(value - theirs[i]!) / (step?.(value) ?? STEP[name]),
        );
        const beyond = steps.filter((step) => !(step <= most)).length / steps.length;
        const greatest = steps.reduce((a, b) => Math.max(a, b), 0);
        const mean = steps.reduce((a, b) => a + b, 0) / steps.length;
        measured.push(
          `${title}, ${name} × ${count}: greatest ${greatest.toPrecision(3)}, mean ` +
            `${mean.toPrecision(3)}, beyond ${most}: ${(beyond * 100).toFixed(2)} %`,
        );
        expect(beyond).toBeLessThanOrEqual(share);
        // Also where samples differ, the picture is the same.
        expect(mean * (name === 'u8' ? 1 : (STEP[name] * 255) / WHITE[name])).toBeLessThan(12);
      });
    }

    test.for(Object.keys(GOLDENS))('async-cuda: %s', async (name, { skip }) => {
      skip(version === undefined, 'NPP is not there');
      const { expected, make } = GOLDENS[name]!;
      const values = [...(await numbers(make(device)))];
      recorded[name] = values;
      if (values.join() !== expected.join())
        console.log(
          `${name}: NPP ${version} gives ${values.join(' ')}, where async-cuda expects ` +
            `${expected.join(' ')}`,
        );
      expect(values).toHaveLength(expected.length);
      if (process.env['ASYNC_CUDA_RECORD_NPP'] !== undefined || !existsSync(GOLDEN_FILE)) return;
      const golden = JSON.parse(readFileSync(GOLDEN_FILE, 'utf8')) as {
        version: string;
        images: Record<string, readonly number[]>;
      };
      if (golden.version.split('.')[0] === version!.split('.')[0])
        expect(values).toEqual(golden.images[name]);
    });
  });
