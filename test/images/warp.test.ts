/** Images read at places of maps or matrices, compared with their definition in doubles. */
import { CudaArgumentError, Device, f32, i32, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import { crop, remap, rotate, warpAffine, warpPerspective } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { CHANNELS, DTYPES, compare, each, picture, sampled, tapsAt } from './reference.js';
import type { Border, Filter, Picture } from './reference.js';
import { someOf } from '../random-runs.js';

const FILTERS: readonly Exclude<Filter, 'area'>[] = ['nearest', 'linear', 'cubic', 'lanczos3'];
const BORDERS: readonly Border[] = ['constant', 'replicate', 'reflect', 'reflect101', 'wrap'];
const COLOR = [9, 200, 30, 77];

onDevice('Warps', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: unknown): Promise<number[]> =>
    Array.from(
      (await (op as DeviceOp<AnyTensor>).andThen((tensor) => tensor.read())) as ArrayLike<number>,
    );
  const warped = (
    given: Picture,
    height: number,
    width: number,
    filter: Filter,
    border: Border,
    place: (x: number, y: number) => readonly [number, number],
    color = COLOR,
  ): Picture =>
    each(height, width, given.channels, (row, column, channel) => {
      const [u, v] = place(column, row);
      return sampled(given, tapsAt(filter, v), tapsAt(filter, u), channel, border, color);
    });

  /**
   * Places in eighths of a pixel, which are exact in f32: within the image, beyond its edges, and
   * far outside.
   */
  const maps = (height: number, width: number): { x: number[]; y: number[] } => ({
    x: range(height * width).map((i) => ((i * 37) % 160) / 8 - 5 + (i === 3 ? 100 : 0)),
    y: range(height * width).map((i) => ((i * 53) % 136) / 8 - 4),
  });

  someOf(1, test)(FILTERS)(
    'remap, %s: every dtype, number of channels and border',
    async (filter) => {
      const { x, y } = maps(6, 7);
      using mapX = await device.tensor(f32, x, [6, 7]);
      using mapY = await device.tensor(f32, y, [6, 7, 1]);
      for (const dtype of DTYPES) {
        for (const channels of CHANNELS) {
          const given = picture(dtype, 8, 10, channels);
          using image = await device.tensor(dtype, [...given.values], [8, 10, channels]);
          for (const border of dtype === u8 && channels === 3 ? BORDERS : BORDERS.slice(0, 1)) {
            compare(
              dtype,
              await read(
                remap(image, mapX, mapY, { filter, border, color: COLOR.slice(0, channels) }),
              ),
              warped(given, 6, 7, filter, border, (column, row) => [
                x[row * 7 + column]!,
                y[row * 7 + column]!,
              ]),
            );
          }
        }
      }
    },
  );

  test('remap with integer places gives the golden image', async () => {
    const [R, G, B] = [
      [255, 0, 0],
      [0, 255, 0],
      [0, 0, 255],
    ];
    using flag = await device.tensor(
      u8,
      [R, R, R, R, R, G, G, R, R, B, B, R, R, R, R, R].flat() as number[],
      [4, 4, 3],
    );
    using mapX = await device.tensor(f32, [0, 1, 2, 3, 1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2], [4, 4]);
    using mapY = await device.tensor(f32, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2], [4, 4]);
    expect(await read(remap(flag, mapX, mapY))).toEqual(
      [R, R, R, R, G, G, G, G, G, G, G, G, B, B, B, B].flat(),
    );
  });

  test('remap takes batches, a map for each or one for all, regions, and NaN', async () => {
    const pictures = range(2).map((n) => picture(u8, 9, 9, 3, n + 3));
    using images = await device.tensor(
      u8,
      pictures.flatMap(({ values }) => values),
      [2, 9, 9, 3],
    );
    const { x, y } = maps(8, 5);
    using mapX = await device.tensor(f32, x, [2, 4, 5, 1]);
    using mapY = await device.tensor(f32, y, [2, 4, 5, 1]);
    const several = await read(remap(images, mapX, mapY, { border: 'reflect' }));
    pictures.forEach((given, n) => {
      compare(
        u8,
        several.slice(n * 60, n * 60 + 60),
        warped(given, 4, 5, 'linear', 'reflect', (column, row) => [
          x[n * 20 + row * 5 + column]!,
          y[n * 20 + row * 5 + column]!,
        ]),
      );
    });
    const one = await read(remap(images, mapX.slice(1), mapY.slice(1), { border: 'wrap' }));
    pictures.forEach((given, n) => {
      compare(
        u8,
        one.slice(n * 60, n * 60 + 60),
        warped(given, 4, 5, 'linear', 'wrap', (column, row) => [
          x[20 + row * 5 + column]!,
          y[20 + row * 5 + column]!,
        ]),
      );
    });
    using part = await crop(images, { x: 2, y: 1, width: 6, height: 7 }).dup();
    expect(
      await read(remap(crop(images, { x: 2, y: 1, width: 6, height: 7 }), mapX, mapY)),
    ).toEqual(await read(remap(part, mapX, mapY)));
    using odd = await device.tensor(f32, [NaN, Infinity, -Infinity, 1e30], [1, 4]);
    using zero = await device.zeros(f32, [1, 4]);
    for (const filter of FILTERS)
      expect(await read(remap(images.slice(0), odd, zero, { filter, color: [1, 2, 3] }))).toEqual([
        1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3,
      ]);
  });

  someOf(1, test)(FILTERS)('affine and perspective, %s', async (filter) => {
    for (const dtype of DTYPES) {
      const given = picture(dtype, 12, 15, 3);
      using image = await device.tensor(dtype, [...given.values], [12, 15, 3]);
      // Steps in eighths, exact in f32.
      const to = [
        [0.75, 0.25, -1.5],
        [-0.125, 1.25, 2.5],
      ] as const;
      compare(
        dtype,
        await read(
          warpAffine(image, to, {
            inverse: true,
            filter,
            border: 'replicate',
            width: 11,
            height: 9,
          }),
        ),
        warped(given, 9, 11, filter, 'replicate', (x, y) => [
          0.75 * x + 0.25 * y - 1.5,
          -0.125 * x + 1.25 * y + 2.5,
        ]),
      );
      const view = [
        [1, 0.25, -1],
        [0.125, 0.75, 0.5],
        [0, 0.0625, 1],
      ] as const;
      if (filter === 'nearest') continue; // Ties between pixels are not compared.
      compare(
        dtype,
        await read(
          warpPerspective(image, view, { inverse: true, filter, color: COLOR.slice(0, 3) }),
        ),
        warped(given, 12, 15, filter, 'constant', (x, y) => {
          const w = 0.0625 * y + 1;
          return [(x + 0.25 * y - 1) / w, (0.125 * x + 0.75 * y + 0.5) / w];
        }),
        dtype.name === 'u16' ? 3 : 2,
      );
    }
  });

  test('a matrix maps the image to the result unless `inverse` is set', async () => {
    const given = picture(u8, 6, 8, 1);
    using image = await device.tensor(u8, [...given.values], [6, 8, 1]);
    const moved = each(6, 8, 1, (row, column) =>
      row >= 1 && column >= 2 ? given.values[(row - 1) * 8 + column - 2]! : 5,
    );
    expect(
      await read(
        warpAffine(
          image,
          [
            [1, 0, 2],
            [0, 1, 1],
          ],
          { color: 5 },
        ),
      ),
    ).toEqual(moved.values);
    expect(
      await read(
        warpAffine(
          image,
          [
            [1, 0, -2],
            [0, 1, -1],
          ],
          { color: 5, inverse: true },
        ),
      ),
    ).toEqual(moved.values);
    expect(
      await read(
        warpPerspective(
          image,
          [
            [2, 0, 4],
            [0, 2, 2],
            [0, 0, 2],
          ],
          { color: 5 },
        ),
      ),
    ).toEqual(moved.values);
  });

  test('rotate turns counter-clockwise, about the middle or a place', async () => {
    const given = picture(u8, 4, 6, 3);
    using image = await device.tensor(u8, [...given.values], [4, 6, 3]);
    const at = (row: number, column: number, channel: number): number =>
      given.values[(row * 6 + column) * 3 + channel]!;
    compare(
      u8,
      await read(rotate(image, 90, { width: 4, height: 6 })),
      each(6, 4, 3, (row, column, channel) => at(column, 5 - row, channel)),
    );
    compare(
      u8,
      await read(rotate(image, -180)),
      each(4, 6, 3, (row, column, channel) => at(3 - row, 5 - column, channel)),
    );
    const [cosine, sine] = [Math.cos(Math.PI / 6), Math.sin(Math.PI / 6)];
    compare(
      u8,
      await read(rotate(image, 390, { center: [1, 2], border: 'reflect', filter: 'cubic' })),
      warped(given, 4, 6, 'cubic', 'reflect', (x, y) => [
        1 + cosine * (x - 1) - sine * (y - 2),
        2 + sine * (x - 1) + cosine * (y - 2),
      ]),
      2,
    );
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    using map = await device.zeros(f32, [2, 3]);
    const refused = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    using other = await device.zeros(f32, [3, 2]);
    expect(await refused(() => remap(image, map, other))).toContain(
      'mapY: expected a map of [2, 3], as mapX is',
    );
    using whole = await device.zeros(i32, [2, 3]);
    expect(await refused(() => remap(image, whole as never, map))).toContain(
      'mapX: expected a Tensor of f32',
    );
    using two = await device.zeros(f32, [2, 2, 3, 1]);
    expect(await refused(() => remap(image, two, two))).toContain(
      'one map, or one for each of the 1 images',
    );
    expect(await refused(() => remap(image, map, map, { out: image }))).toContain(
      'options.out: expected a Tensor of u8 and [2, 3, 3]',
    );
    expect(await refused(() => remap(image, map, map, { border: 'mirror' as never }))).toContain(
      'options.border',
    );
    expect(await refused(() => remap(image, map, map, { color: 256 }))).toContain(
      'whole numbers from 0 to 255',
    );
    expect(await refused(() => remap(image, map, map, { color: [1, 2] }))).toContain(
      'one number, or 3',
    );
    expect(await refused(() => remap(image, map, map, { filter: 'area' as never }))).toContain(
      'one of nearest, linear, cubic, lanczos3',
    );
    expect(
      await refused(() =>
        warpAffine(image, [
          [1, 0, 0],
          [0, 1, 0],
          [0, 0, 1],
        ]),
      ),
    ).toContain('warpPerspective');
    expect(
      await refused(() =>
        warpAffine(image, [
          [1, 0, 0],
          [2, 0, 0],
        ]),
      ),
    ).toContain('a matrix that has an inverse');
    expect(
      await refused(() =>
        warpPerspective(image, [
          [1, 0, 0],
          [0, 1, 0],
        ]),
      ),
    ).toContain('3 rows of three numbers');
    expect(await refused(() => rotate(image, NaN))).toContain('degrees');
    expect(await refused(() => rotate(image, 10, { center: [1] as never }))).toContain(
      'options.center',
    );
  });
});
