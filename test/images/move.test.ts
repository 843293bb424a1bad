/** Operations that move pixels: borders, mirroring, turning, letterboxes. */
import { CudaArgumentError, Device, f32, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import {
  copyBorder,
  copyConstantBorder,
  crop,
  letterbox,
  mirror,
  resize,
  rotateQuarters,
} from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { CHANNELS, DTYPES, each, inside, picture } from './reference.js';
import type { Border, Picture } from './reference.js';
import { someOf } from '../random-runs.js';

const BORDERS: readonly Border[] = ['constant', 'replicate', 'reflect', 'reflect101', 'wrap'];
const COLOR = [9, 200, 30, 77];

onDevice('Moved pixels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: unknown): Promise<number[]> =>
    Array.from(
      (await (op as DeviceOp<AnyTensor>).andThen((tensor) => tensor.read())) as ArrayLike<number>,
    );
  const at = (
    { values, width, channels }: Picture,
    row: number,
    column: number,
    channel: number,
  ): number => values[(row * width + column) * channels + channel]!;

  someOf(2, test)(BORDERS)('%s: every dtype and number of channels', async (border) => {
    for (const dtype of DTYPES) {
      for (const channels of CHANNELS) {
        const given = picture(dtype, 4, 3, channels);
        using image = await device.tensor(dtype, [...given.values], [4, 3, channels]);
        // Wider than the image: indices go round more than once.
        const expected = each(4 + 9 + 2, 3 + 5 + 8, channels, (row, column, channel) => {
          const [y, x] = [inside(border, row - 9, 4), inside(border, column - 5, 3)];
          return y === undefined || x === undefined ? COLOR[channel]! : at(given, y, x, channel);
        });
        expect(
          await read(
            copyBorder(image, {
              left: 5,
              top: 9,
              right: 8,
              bottom: 2,
              border,
              color: COLOR.slice(0, channels),
            }),
          ),
        ).toEqual(expected.values);
      }
    }
  });

  test('a constant border gives the golden image', async () => {
    const [R, G, B] = [
      [255, 0, 0],
      [0, 255, 0],
      [0, 0, 255],
    ] as const;
    using image = await device.tensor(u8, [...R, ...G], [1, 2, 3]);
    using out = await device.zeros(u8, [5, 4, 3]);
    await copyConstantBorder(image, { left: 1, top: 2, color: B, out });
    expect([...(await out.read())]).toEqual(
      [
        ...new Array<readonly number[]>(9).fill(B),
        R,
        G,
        ...new Array<readonly number[]>(9).fill(B),
      ].flat(),
    );
  });

  test(
    'images of every dtype and number of channels are mirrored and turned',
    { tags: 'thorough' },
    async () => {
      for (const dtype of DTYPES) {
        for (const channels of CHANNELS) {
          const given = picture(dtype, 35, 40, channels);
          using image = await device.tensor(dtype, [...given.values], [35, 40, channels]);
          const expected = (
            height: number,
            width: number,
            place: (row: number, column: number) => readonly [number, number],
          ): readonly number[] =>
            each(height, width, channels, (row, column, channel) =>
              at(given, ...place(row, column), channel),
            ).values;
          expect(await read(mirror(image, 'horizontal'))).toEqual(
            expected(35, 40, (row, column) => [row, 39 - column]),
          );
          expect(await read(mirror(image, 'vertical'))).toEqual(
            expected(35, 40, (row, column) => [34 - row, column]),
          );
          expect(await read(mirror(image, 'both'))).toEqual(
            expected(35, 40, (row, column) => [34 - row, 39 - column]),
          );
          expect(await read(rotateQuarters(image, 1))).toEqual(
            expected(40, 35, (row, column) => [column, 39 - row]),
          );
          expect(await read(rotateQuarters(image, 2))).toEqual(
            expected(35, 40, (row, column) => [34 - row, 39 - column]),
          );
          expect(await read(rotateQuarters(image, -1))).toEqual(
            expected(40, 35, (row, column) => [34 - column, row]),
          );
          expect(await read(rotateQuarters(image, -4))).toEqual(given.values);
        }
      }
    },
  );

  test('batches and regions are moved', async () => {
    using images = await device.tensor(
      u8,
      range(3 * 8 * 9 * 3).map((i) => i % 251),
      [3, 8, 9, 3],
    );
    const region = crop(images, { x: 1, y: 2, width: 5, height: 6 });
    using part = await region.dup();
    for (const operation of [
      (x: typeof part) => mirror(x, 'both'),
      (x: typeof part) => rotateQuarters(x, 1),
      (x: typeof part) => copyBorder(x, { left: 2, bottom: 3, border: 'reflect' }),
    ]) {
      const expected = await read(operation(part));
      expect(await read(operation(region as never))).toEqual(expected);
      expect(await read(operation(part.slice([1, 2]) as never))).toEqual(
        expected.slice(expected.length / 3, (expected.length / 3) * 2),
      );
    }
    using canvas = await device.zeros(u8, [3, 10, 10, 3]);
    await rotateQuarters(region, 3, { out: crop(canvas, { x: 4, y: 5, width: 6, height: 5 }) });
    expect(await read(crop(canvas, { x: 4, y: 5, width: 6, height: 5 }).dup())).toEqual(
      await read(rotateQuarters(part, 3)),
    );
  });

  test('images are letterboxed, and boxes are mapped back', async () => {
    for (const dtype of [u8, f32]) {
      const given = picture(dtype, 20, 40, 3);
      using image = await device.tensor(dtype, [...given.values], [20, 40, 3]);
      for (const [width, height, region] of [
        [32, 32, { x: 0, y: 8, width: 32, height: 16 }],
        [64, 11, { x: 21, y: 0, width: 22, height: 11 }],
        [20, 10, { x: 0, y: 0, width: 20, height: 10 }],
        [7, 9, { x: 0, y: 2, width: 7, height: 4 }],
      ] as const) {
        using boxed = await letterbox(image, { width, height, color: [114, 115, 116] });
        expect(boxed.region).toEqual(region);
        expect(boxed.scaleX).toBe(region.width / 40);
        expect(boxed.scaleY).toBe(region.height / 20);
        const expected = await read(resize(image, { width: region.width, height: region.height }));
        expect(Array.from(await boxed.image.read())).toEqual(
          each(height, width, 3, (row, column, channel) => {
            const [y, x] = [row - region.y, column - region.x];
            return y >= 0 && y < region.height && x >= 0 && x < region.width
              ? expected[(y * region.width + x) * 3 + channel]!
              : 114 + channel;
          }).values,
        );
      }
    }
    using out = await device.zeros(u8, [2, 4, 4, 1]);
    using ones = await device.ones(u8, [2, 2, 4, 1]);
    const whole = await letterbox(ones, { out, color: 7 });
    whole[Symbol.dispose]();
    expect([...(await out.read())]).toEqual(
      [0, 1].flatMap(() => [7, 7, 7, 7, 1, 1, 1, 1, 1, 1, 1, 1, 7, 7, 7, 7]),
    );
    expect(
      await letterbox(ones, { width: 8, height: 8 })
        .andThen(({ image }) => image.read())
        .map((values) => values.length),
    ).toBe(128);
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    const refused = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    using narrow = await device.zeros(u8, [6, 5, 3]);
    expect(await refused(() => copyBorder(image, { left: 2, out: narrow }))).toContain(
      'options.out: expected at least 6 columns, for an image of 4 at options.left 2, got 5',
    );
    expect(await refused(() => copyConstantBorder(image, { top: 3, out: narrow }))).toContain(
      'at least 7 rows',
    );
    expect(await refused(() => copyBorder(image, { left: -1 }))).toContain('options.left');
    expect(await refused(() => copyBorder(image, { left: 1, color: 300 }))).toContain(
      'whole numbers from 0 to 255',
    );
    expect(
      await refused(() => copyBorder(image, { left: 1, border: 'mirror' as never })),
    ).toContain('options.border');
    expect(await refused(() => copyBorder(image, { left: 1, right: 1, out: narrow }))).toContain(
      'options.out',
    );
    expect(await refused(() => copyBorder(image, { left: 32768 }))).toContain('options.width');
    expect(await refused(() => copyConstantBorder(image, { border: 'wrap' } as never))).toContain(
      "no option 'border'",
    );
    expect(await refused(() => mirror(image, 'left' as never))).toContain(
      'one of horizontal, vertical, both',
    );
    expect(await refused(() => rotateQuarters(image, 0.5))).toContain('quarters');
    expect(await refused(() => rotateQuarters(image, 1, { out: narrow }))).toContain('options.out');
    expect(await refused(() => letterbox(image, { width: 4 }))).toContain('options.height');
    expect(await refused(() => letterbox(image, { width: 4, height: 4, color: [1] }))).toContain(
      'one number, or 3',
    );
  });
});
