/** Filters, compared with sums in doubles. */
import { CudaArgumentError, Device, f32, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import { boxFilter, filter2d, gaussianFilter, sobel } from 'async-cuda/images';
import type { Border } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import type { ImageName } from '../../src/images/image.js';
import { failure, onDevice } from '../core/test-device.js';
import {
  LAYOUTS,
  NAMES,
  WHITE,
  at,
  expectStored,
  noise,
  upload,
  values,
} from './images.test-support.js';
import type { LayoutName, Pixels } from './images.test-support.js';
import { someOf } from '../random-runs.js';

const BORDERS: readonly Border[] = ['constant', 'replicate', 'reflect', 'reflect101', 'wrap'];

/** The index that is read, found step by step. */
function beyond(border: Border, index: number, extent: number): number | undefined {
  let i = index;
  while (i < 0 || i >= extent) {
    if (border === 'constant') return undefined;
    if (border === 'replicate') i = i < 0 ? 0 : extent - 1;
    else if (border === 'wrap') i += i < 0 ? extent : -extent;
    else if (border === 'reflect') i = i < 0 ? -1 - i : 2 * extent - 1 - i;
    else if (extent === 1) i = 0;
    else i = i < 0 ? -i : 2 * extent - 2 - i;
  }
  return i;
}

function filtered(
  source: Pixels,
  weights: readonly (readonly number[])[],
  border: Border,
  color: readonly number[] = [0, 0, 0, 0],
): number[] {
  const [rows, columns] = [weights.length, weights[0]!.length];
  const made: number[] = [];
  for (let n = 0; n < source.batch; n++) {
    for (let y = 0; y < source.height; y++) {
      for (let x = 0; x < source.width; x++) {
        for (let c = 0; c < source.channels; c++) {
          let sum = 0;
          for (let i = 0; i < rows; i++) {
            const row = beyond(border, y + i - (rows - 1) / 2, source.height);
            for (let j = 0; j < columns; j++) {
              const column = beyond(border, x + j - (columns - 1) / 2, source.width);
              sum +=
                weights[i]![j]! *
                (row === undefined || column === undefined
                  ? color[c]!
                  : at(source, n, row, column, c));
            }
          }
          made.push(sum);
        }
      }
    }
  }
  return made;
}

const outer = (line: readonly number[]): number[][] => line.map((a) => line.map((b) => a * b));

function gaussian(radius: number, sigma: number): number[][] {
  const bell = Array.from({ length: 2 * radius + 1 }, (_, k) =>
    Math.exp(-((k - radius) ** 2) / (2 * sigma ** 2)),
  );
  const sum = bell.reduce((a, b) => a + b);
  return outer(bell.map((each) => each / sum));
}
const box = (radius: number): number[][] =>
  outer(new Array<number>(2 * radius + 1).fill(1 / (2 * radius + 1)));

onDevice('Filters', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const check = async (
    name: ImageName,
    source: Pixels,
    layout: LayoutName,
    use: (image: AnyTensor) => DeviceOp<AnyTensor>,
    expected: readonly number[],
    given = name,
    error?: number,
  ): Promise<void> => {
    const { image, whole } = await upload(device, name, source, layout);
    expectStored(given, await values(use(image)), expected, error);
    whole.close();
  };
  const FORMS = NAMES.flatMap((name) => [1, 3, 4].map((channels) => [name, channels] as const));

  someOf(1, test)(FORMS)('%s of %i: Gaussian, box, any weights', async (name, channels) => {
    for (const layout of LAYOUTS) {
      const source = noise(name, layout === 'image' ? 1 : 2, 5, 7, channels);
      await check(
        name,
        source,
        layout,
        (image) => gaussianFilter(image as never, { radius: 2 }) as never,
        filtered(source, gaussian(2, 1.1), 'reflect101'),
      );
      const uneven = [
        [0.1, 0.2, -0.3, 0.05, 0.4],
        [0.3, -0.1, 0.5, -0.2, 0.1],
        [0.05, 0.1, 0.15, -0.25, 0.2],
      ];
      await check(
        name,
        source,
        layout,
        (image) => filter2d(image as never, uneven) as never,
        filtered(
          source,
          uneven.map((row) => row.map(Math.fround)),
          'reflect101',
        ),
      );
    }
    const source = noise(name, 1, 6, 9, channels);
    await check(
      name,
      source,
      'image',
      (image) => boxFilter(image as never, { radius: 1 }) as never,
      filtered(source, box(1), 'reflect101'),
    );
    const [xs, ys] = [
      [
        [-1, 0, 1],
        [-2, 0, 2],
        [-1, 0, 1],
      ],
      [
        [-1, -2, -1],
        [0, 0, 0],
        [1, 2, 1],
      ],
    ];
    await check(
      name,
      source,
      'image',
      (image) => sobel(image as never, { along: 'x' }) as never,
      filtered(source, xs, 'reflect101'),
      'f32',
      2e-6 * WHITE[name],
    );
    await check(
      name,
      source,
      'image',
      (image) => sobel(image as never, { along: 'y' }) as never,
      filtered(source, ys, 'reflect101'),
      'f32',
      2e-6 * WHITE[name],
    );
  });

  test.each(BORDERS)('border %s, also in images smaller than the filter', async (border) => {
    const color = [10, 200, 77];
    const options = border === 'constant' ? { border, color } : { border };
    for (const [height, width] of [
      [1, 1],
      [1, 6],
      [6, 1],
      [2, 3],
      [9, 11],
    ] as const) {
      const source = noise('u8', 1, height, width, 3);
      await check(
        'u8',
        source,
        'image',
        (image) => gaussianFilter(image as never, { radius: 4, sigma: 2, ...options }) as never,
        filtered(source, gaussian(4, 2), border, color),
      );
      const weights = [
        [1, 2, 3, 4, 5, 6, 7],
        [7, 6, 5, 4, 3, 2, 1],
        [1, 0, 1, 0, 1, 0, 1],
        [0, 2, 0, 2, 0, 2, 0],
        [3, 1, 3, 1, 3, 1, 3],
      ].map((row) => row.map((each) => each / 128));
      await check(
        'u8',
        source,
        'region',
        (image) => filter2d(image as never, weights, options) as never,
        filtered(source, weights, border, color),
      );
    }
  });

  someOf(1, test)([0, 1, 3, 8, 15, 31])('radius %i', async (radius) => {
    const source = noise('u8', 1, 40, 50, 3);
    await check(
      'u8',
      source,
      'image',
      (image) => boxFilter(image as never, { radius, border: 'replicate' }) as never,
      filtered(source, box(radius), 'replicate'),
      'u8',
      4e-6,
    );
    const grey = noise('f32', 1, 33, 20, 1);
    await check(
      'f32',
      grey,
      'image',
      (image) => gaussianFilter(image as never, { radius, sigma: 1 + radius / 3 }) as never,
      filtered(grey, gaussian(radius, 1 + radius / 3), 'reflect101'),
      'f32',
      4e-6,
    );
  });

  test('images can have more columns than a block, and more rows than a strip', async () => {
    const source = noise('u16', 1, 70, 90, 4);
    await check(
      'u16',
      source,
      'region',
      (image) => gaussianFilter(image as never, { sigma: 1 }) as never,
      filtered(source, gaussian(3, 1), 'reflect101'),
    );
  });

  test('weights can have the greatest size', async () => {
    const weights = Array.from({ length: 31 }, (_, i) =>
      Array.from({ length: 31 }, (_each, j) => Math.fround((((i * 31 + j) % 7) - 2) / 1024)),
    );
    const source = noise('u8', 1, 12, 14, 4);
    await check(
      'u8',
      source,
      'image',
      (image) => filter2d(image as never, weights, { border: 'wrap' }) as never,
      filtered(source, weights, 'wrap'),
      'u8',
      1e-5,
    );
  });

  test('a constant image is unchanged', async () => {
    using image = await device.full(u8, [20, 30, 3], 255);
    for (const radius of [1, 7, 31]) {
      expect(new Set(await values(gaussianFilter(image, { radius }) as never))).toEqual(
        new Set([255]),
      );
      expect(new Set(await values(boxFilter(image, { radius }) as never))).toEqual(new Set([255]));
    }
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message(() => gaussianFilter(image, {}))).toContain('got neither');
    expect(await message(() => gaussianFilter(image, { radius: 32 }))).toContain(
      'options.radius: expected a whole number from 0 to 31',
    );
    expect(await message(() => gaussianFilter(image, { sigma: 11 }))).toContain(
      'options.sigma: expected a sigma whose radius, 3 · sigma, is at most 31',
    );
    expect(await message(() => gaussianFilter(image, { sigma: 0 }))).toContain('a number above 0');
    expect(
      await message(() => gaussianFilter(image, { radius: 1, border: 'mirror' as never })),
    ).toContain('one of constant, replicate, reflect, reflect101, wrap');
    expect(await message(() => gaussianFilter(image, { radius: 1, color: 3 }))).toContain(
      "border: 'constant'",
    );
    expect(
      await message(() => gaussianFilter(image, { radius: 1, border: 'constant', color: [3] })),
    ).toContain('expected 3 numbers');
    expect(await message(() => boxFilter(image, {} as never))).toContain('options.radius');
    expect(await message(() => boxFilter(image, { radius: 1.5 }))).toContain('options.radius');
    expect(await message(() => filter2d(image, [[1, 1]]))).toContain(
      'an odd number of rows and columns',
    );
    expect(await message(() => filter2d(image, [[1], [1, 1, 1], [1]]))).toContain(
      'all of one length',
    );
    expect(await message(() => filter2d(image, []))).toContain('weights');
    expect(await message(() => filter2d(image, [[NaN]]))).toContain('weights');
    expect(
      await message(() =>
        filter2d(image, [[1]], { out: device.zeros(f32, [4, 4, 3]) as never }).sync(),
      ),
    ).toContain('options.out');
    expect(await message(() => sobel(image, {} as never))).toContain(
      'options.along: expected x or y',
    );
    using none = await device.zeros(u8, [0, 4, 4, 3]);
    expect(await message(() => boxFilter(none, { radius: 1 }))).toContain(
      'at least one image in the batch',
    );
  });
});
