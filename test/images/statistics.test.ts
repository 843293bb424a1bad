/** Statistics of images, compared with JavaScript in doubles. */
import { CudaArgumentError, Device, f32, u16, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import { channelExtremes, channelHistogram, channelMeans, channelSums } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import type { ImageName } from '../../src/images/image.js';
import { failure, onCpu, onDevice } from '../core/test-device.js';
import { LAYOUTS, NAMES, WHITE, at, noise, pixels, upload, values } from './images.test-support.js';
import type { LayoutName, Pixels } from './images.test-support.js';
import { someOf } from '../random-runs.js';

/** Elements of one channel of one image, in row-major order. */
function channel(source: Pixels, image: number, c: number): number[] {
  return Array.from({ length: source.height * source.width }, (_, i) =>
    at(source, image, Math.floor(i / source.width), i % source.width, c),
  );
}
function each<T>(source: Pixels, f: (elements: readonly number[]) => T): T[] {
  return Array.from({ length: source.batch * source.channels }, (_, i) =>
    f(channel(source, Math.floor(i / source.channels), i % source.channels)),
  );
}
const sum = (elements: readonly number[]): number => elements.reduce((a, b) => a + b, 0);

onDevice('Statistics', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const FORMS = NAMES.flatMap((name) => [1, 3, 4].map((channels) => [name, channels] as const));
  const SIZES = [
    [3, 5],
    [1, 1],
    [90, 101],
  ] as const;

  const onImage = async (
    name: ImageName,
    source: Pixels,
    layout: LayoutName,
    use: (image: AnyTensor) => Promise<void>,
  ): Promise<void> => {
    const { image, whole } = await upload(device, name, source, layout);
    await use(image as never);
    whole.close();
  };

  const extremes = async (source: Pixels, image: AnyTensor): Promise<void> => {
    const found = await channelExtremes(image as never);
    const leading = image.rank === 4 ? [source.batch, source.channels] : [source.channels];
    expect([found.min.shape, found.max.shape, found.minAt.shape, found.maxAt.shape]).toEqual([
      leading,
      leading,
      [...leading, 2],
      [...leading, 2],
    ]);
    const [min, max, minAt, maxAt] = [
      Array.from((await found.min.read()) as ArrayLike<number>),
      Array.from((await found.max.read()) as ArrayLike<number>),
      [...(await found.minAt.read())],
      [...(await found.maxAt.read())],
    ];
    const first = (elements: readonly number[], beats: (a: number, b: number) => boolean): number =>
      elements.reduce((best, value, i) => (beats(value, elements[best]!) ? i : best), 0);
    const nan = (value: number, other: number): boolean =>
      Number.isNaN(value) && !Number.isNaN(other);
    const least = each(source, (elements) => first(elements, (a, b) => a < b || nan(a, b)));
    const most = each(source, (elements) => first(elements, (a, b) => a > b || nan(a, b)));
    expect(min).toEqual(
      each(source, (elements) => elements).map((elements, i) => elements[least[i]!]!),
    );
    expect(max).toEqual(
      each(source, (elements) => elements).map((elements, i) => elements[most[i]!]!),
    );
    expect(minAt).toEqual(least.flatMap((i) => [Math.floor(i / source.width), i % source.width]));
    expect(maxAt).toEqual(most.flatMap((i) => [Math.floor(i / source.width), i % source.width]));
    found[Symbol.dispose]();
    expect([found.min.isClosed, found.maxAt.isClosed]).toEqual([true, true]);
  };

  someOf(1, test)(FORMS)('%s of %i', async (name, channels) => {
    for (const [index, [height, width]] of SIZES.entries()) {
      for (const layout of index === 2 ? ['region' as const] : LAYOUTS) {
        const source = noise(name, layout === 'image' ? 1 : 2, height, width, channels, index + 2);
        await onImage(name, source, layout, async (image) => {
          const sums = await values(channelSums(image as never) as never);
          const expected = each(source, sum);
          sums.forEach((value, i) => {
            expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(
              name === 'u8' || name === 'u16' ? 0 : 1e-12 * expected[i]!,
            );
          });
          const means = await values(channelMeans(image as never) as never);
          means.forEach((value, i) => {
            expect(value).toBeCloseTo(expected[i]! / (height * width), 10);
          });
          await extremes(source, image);
          const counted = await values(
            channelHistogram(image as never, {
              bins: 10,
              from: 0.1 * WHITE[name],
              to: 0.8 * WHITE[name],
            }) as never,
          );
          const [from, to] = [Math.fround(0.1 * WHITE[name]), Math.fround(0.8 * WHITE[name])];
          const scale = Math.fround(10 / (0.8 * WHITE[name] - 0.1 * WHITE[name]));
          expect(counted).toEqual(
            each(source, (elements) => {
              const bins = new Array<number>(10).fill(0);
              for (const value of elements)
                if (value >= from && value <= to)
                  bins[Math.min(9, Math.floor(Math.fround(Math.fround(value - from) * scale)))]!++;
              return bins;
            }).flat(),
          );
          if (name === 'u8') {
            expect(await values(channelHistogram(image as never) as never)).toEqual(
              each(source, (elements) =>
                Array.from(
                  { length: 256 },
                  (_, bin) => elements.filter((value) => value === bin).length,
                ),
              ).flat(),
            );
          }
        });
      }
    }
  });

  test('sums of the largest elements, and of many parts, are exact', async () => {
    const source = pixels(1, 300, 301, 1, () => 65535);
    await onImage('u16', source, 'image', async (image) => {
      expect(await values(channelSums(image as never) as never)).toEqual([65535 * 300 * 301]);
      expect(await values(channelMeans(image as never) as never)).toEqual([65535]);
      await extremes(source, image);
    });
  });

  test('sums have the same bits in each run and in each layout', async () => {
    const source = noise('f32', 2, 120, 131, 3);
    const results: number[][] = [];
    for (const layout of ['batch', 'region'] as const) {
      await onImage('f32', source, layout, async (image) => {
        for (let run = 0; run < 3; run++)
          results.push(await values(channelSums(image as never) as never));
      });
    }
    for (const result of results) expect(result).toEqual(results[0]);
  });

  test('NaN is the greatest, and the first of equal elements is returned', async () => {
    const source = pixels(1, 2, 4, 1, (_, y, x) => [3, NaN, 1, NaN, 9, 1, 9, 2][y * 4 + x]!);
    await onImage('f32', source, 'image', (image) => extremes(source, image));
    const equal = pixels(1, 70, 80, 3, (_, y, x, c) => (y * 80 + x === 5000 + c ? 3 : 7));
    await onImage('u8', equal, 'image', (image) => extremes(equal, image));
  });

  test('values outside of the range are not counted', async () => {
    using image = await device.tensor(f32, [-1, 0, 0.25, 0.5, 1, 1.5, NaN, Infinity], [2, 4, 1]);
    expect(await values(channelHistogram(image, { bins: 2 }) as never)).toEqual([2, 2]);
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    using none = await device.zeros(u8, [0, 4, 4, 3]);
    using pairs = await device.zeros(u8, [4, 4, 2]);
    using deep = await device.zeros(u16, [4, 4, 3]);
    const message = async (call: () => DeviceOp<unknown>): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    for (const f of [channelSums, channelMeans, channelExtremes, channelHistogram] as const) {
      expect(await message(() => f(none))).toContain('at least one image in the batch');
      expect(await message(() => f(pairs))).toContain('1, 3 or 4 channels');
      expect(await message(() => f(image, { bin: 3 } as never))).toContain('options');
      if (onCpu)
        expect((await failure(() => f(deep, { engine: 'npp' }))).message).toContain(
          'NPP works on NVIDIA GPUs only',
        );
    }
    expect(await message(() => channelHistogram(image, { bins: 0 }))).toContain('options.bins');
    expect(await message(() => channelHistogram(image, { bins: 4097 }))).toContain(
      'of each of 3 channels',
    );
    expect(await message(() => channelHistogram(image, { from: 3, to: 3 }))).toContain(
      'options.to',
    );
    expect(await message(() => channelHistogram(image, { from: NaN }))).toContain('options.from');
    for (const [from, to] of [
      [-3e38, 3e38],
      [0, 1e39],
      [0, 1e-42],
      [1, 1 + 2 ** -40],
    ] as const)
      expect(await message(() => channelHistogram(image, { from, to }))).toContain(
        'by a width that f32 has',
      );
  });
});
