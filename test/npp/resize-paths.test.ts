/** Paths of resizing that sizes or devices choose, beside the ones that they stand for. */
import { Device, u8 } from 'async-cuda';
import type { AnyTensor, Tensor } from 'async-cuda';
import { crop, resize } from 'async-cuda/npp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { operation } from '../../src/library/operation.js';
import type { Work } from '../../src/library/operation.js';
import { imageOf } from '../../src/npp/image.js';
import type { Image } from '../../src/npp/image.js';
import { queueResample } from '../../src/npp/resampling.js';
import { inWords, queueWords } from '../../src/npp/resizing.js';

type Images = Tensor<'u8', number[]>;

const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => Math.imul(i + 7, 2654435761) >>> 24);

describe('Resizing', () => {
  let device: Device;
  beforeAll(async () => { device = await Device.open('cpu'); });
  afterAll(async () => { await device.close(); });

  const shown = (tensor: AnyTensor): Image => imageOf('resize', 'image', tensor);
  const into = async (image: Images, shape: readonly number[], queue: (work: Work, image: Image, out: Image) => void): Promise<Uint8Array> => {
    using out = await device.full(u8, [...shape], 99);
    await operation('resize', [image, out], () => (work) => { queue(work, shown(image), shown(out)); return out; });
    return await out.read();
  };
  const usual = async (image: Images, [width, height]: readonly [number, number], filter: 'linear' | 'cubic' | 'area' | 'lanczos3'): Promise<Uint8Array> => resize(image, { width, height, filter }).use((out) => out.read());

  test.each([[[9, 12], [4, 4]], [[1, 4], [3, 8]], [[30, 8], [7, 600]], [[8, 16], [8, 16]], [[40, 100], [3, 4]], [[5, 4], [64, 44]]] as const)('linear by words is linear: %o to %o', async ([h, w], [height, width]) => {
    using images = await device.tensor(u8, bytes(2 * h * w * 3), [2, h, w, 3]);
    expect(inWords([shown(images)])).toBe(true);
    expect(await into(images, [2, height, width, 3], queueWords)).toEqual(await usual(images, [width, height], 'linear'));
  });

  test('linear by words with several rows in a thread', async () => {
    using image = await device.tensor(u8, bytes(4 * 8 * 3), [4, 8, 3]);
    // Buffers are compared by themselves: toEqual takes seconds for so many elements.
    expect(Buffer.compare(await into(image, [1024, 2048, 3], queueWords), await usual(image, [2048, 1024], 'linear'))).toBe(0);
  }, 60_000);

  test('linear by words, of a region and into one', async () => {
    using images = await device.tensor(u8, bytes(2 * 9 * 20 * 3), [2, 9, 20, 3]);
    const region = crop(images, { x: 4, y: 1, width: 12, height: 7 });
    using canvas = await device.zeros(u8, [2, 10, 16, 3]);
    const target = crop(canvas, { x: 8, y: 2, width: 8, height: 6 });
    expect(inWords([shown(region), shown(target)])).toBe(true);
    await operation('resize', [region, target], () => (work) => { queueWords(work, shown(region), shown(target)); return target; });
    const made = await target.dup().use((each) => each.read());
    expect(made).toEqual(await usual(region as Images, [8, 6], 'linear'));
    // Nothing around it was written.
    expect((await canvas.read()).reduce((sum, value) => sum + value)).toBe(made.reduce((sum, value) => sum + value));
  });

  test('what is not whole words', async () => {
    using wide = await device.tensor(u8, bytes(9 * 20 * 3), [9, 20, 3]);
    using odd = await device.zeros(u8, [4, 6, 3]);
    using grey = await device.zeros(u8, [4, 8, 1]);
    for (const image of [crop(wide, { x: 1, y: 0, width: 8, height: 4 }), crop(wide, { x: 4, y: 0, width: 7, height: 4 }), odd, grey]) expect(inWords([shown(image)])).toBe(false);
    expect(inWords([shown(wide), shown(odd)])).toBe(false);
  });

  test.each(['cubic', 'lanczos3', 'area'] as const)('%s in strips and groups of images has the same bits', async (filter) => {
    using images = await device.tensor(u8, bytes(5 * 23 * 11 * 3), [5, 23, 11, 3]);
    // Lines of two images, of a few rows, of one row; the last two sizes have rows that no result reads.
    for (const [width, height] of [[7, 9], [13, 40], [4, 3], [4, 1]] as const) {
      const whole = await usual(images, [width, height], filter);
      for (const most of [2 * 40 * 13 * 3, 12 * width * 3, 1]) {
        expect(await into(images, [5, height, width, 3], (work, image, out) => { queueResample(work, image, out, filter, most); })).toEqual(whole);
      }
    }
  });
});
