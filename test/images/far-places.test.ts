/**
 * Places far outside of an image, and NaN as a place, compared with the borders' definitions in
 * doubles.
 */
import { CudaArgumentError, Device, f32, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import { remap, warpAffine, warpPerspective } from 'async-cuda/images';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { compare, each, picture, sampled, tapsAt } from './reference.js';
import type { Border, Filter, Picture } from './reference.js';
import { someOf } from '../random-runs.js';

const FILTERS: readonly Exclude<Filter, 'area'>[] = ['nearest', 'linear', 'cubic', 'lanczos3'];
const BORDERS: readonly Border[] = ['constant', 'replicate', 'reflect', 'reflect101', 'wrap'];
const COLOR = [9, 200, 30];
const REPEATED: readonly Border[] = ['reflect', 'reflect101', 'wrap'];

/** The place that stands for NaN or an infinite place. */
function definite(place: number, border: Border): number {
  if (Number.isFinite(place)) return place;
  if (REPEATED.includes(border)) return 0;
  return place > 0 ? 2 ** 30 : -(2 ** 30);
}

onDevice('Places far outside of an image', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: unknown): Promise<number[]> =>
    Array.from(
      (await (op as DeviceOp<AnyTensor>).andThen((tensor) => tensor.read())) as ArrayLike<number>,
    );
  const expected = (
    given: Picture,
    height: number,
    width: number,
    filter: Filter,
    border: Border,
    place: (x: number, y: number) => readonly [number, number],
  ): Picture =>
    each(height, width, given.channels, (row, column, channel) => {
      const [u, v] = place(column, row).map((value) => definite(value, border)) as [number, number];
      return sampled(given, tapsAt(filter, v), tapsAt(filter, u), channel, border, COLOR);
    });

  const FAR = [
    2 ** 20,
    2 ** 20 + 0.5,
    2 ** 21 + 1.25,
    2 ** 22 + 0.5,
    2 ** 23 - 0.5,
    2 ** 23,
    2 ** 23 + 1,
    2 ** 24 - 1,
    2 ** 24,
    2 ** 24 + 2,
    2 ** 25 + 4,
    2 ** 31,
    2 ** 31 + 256,
    3e9,
    1e12,
    1e20,
    1e30,
    3.4e38,
  ].map(Math.fround);
  const ODD = [0.49999997, 0.5, -0.5, -0.50000006, 1.5, NaN, Infinity, -Infinity].map(Math.fround);
  const PLACES = [...FAR, ...FAR.map((place) => -place), ...ODD];

  someOf(2, test)(FILTERS.flatMap((filter) => BORDERS.map((border) => [filter, border] as const)))(
    'remap, %s, %s: on every side',
    async (filter, border) => {
      const given = picture(u8, 5, 7, 3);
      using image = await device.tensor(u8, [...given.values], [5, 7, 3]);
      const count = PLACES.length;
      // Far along x, along y, along both.
      const x = [...PLACES, ...PLACES.map(() => 2.25), ...PLACES];
      const y = [
        ...PLACES.map(() => 1.5),
        ...PLACES,
        ...PLACES.map((_, i) => PLACES[(i * 7 + 3) % count]!),
      ];
      using mapX = await device.tensor(f32, x, [3, count]);
      using mapY = await device.tensor(f32, y, [3, count]);
      compare(
        u8,
        await read(remap(image, mapX, mapY, { filter, border, color: COLOR })),
        expected(given, 3, count, filter, border, (column, row) => [
          x[row * count + column]!,
          y[row * count + column]!,
        ]),
      );
    },
  );

  test('remap takes any f32 as a place, in images of any size', { tags: 'random' }, async () => {
    const place = fc.float();
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...FILTERS),
        fc.constantFrom(...BORDERS),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.tuple(place, place), { minLength: 8, maxLength: 8 }),
        async (filter, border, height, width, places) => {
          const given = picture(u8, height, width, 1);
          using image = await device.tensor(u8, [...given.values], [height, width, 1]);
          using mapX = await device.tensor(
            f32,
            places.map(([u]) => u),
            [1, 8],
          );
          using mapY = await device.tensor(
            f32,
            places.map(([, v]) => v),
            [1, 8],
          );
          compare(
            u8,
            await read(remap(image, mapX, mapY, { filter, border, color: COLOR[0]! })),
            expected(given, 1, 8, filter, border, (column) => places[column]!),
          );
        },
      ),
      { numRuns: 60 },
    );
  });

  test('remap repeats a large image after periods of 2 × 32768', async () => {
    const given = picture(u8, 1, 32768, 1);
    using image = await device.tensor(u8, [...given.values], [1, 32768, 1]);
    using mapX = await device.tensor(f32, PLACES, [1, PLACES.length]);
    using mapY = await device.zeros(f32, [1, PLACES.length]);
    for (const border of REPEATED)
      compare(
        u8,
        await read(remap(image, mapX, mapY, { filter: 'nearest', border })),
        expected(given, 1, PLACES.length, 'nearest', border, (column) => [PLACES[column]!, 0]),
      );
  });

  test.each(BORDERS)('warpAffine and warpPerspective, %s: places on every side', async (border) => {
    const given = picture(u8, 6, 8, 3);
    using image = await device.tensor(u8, [...given.values], [6, 8, 3]);
    const options = { inverse: true, filter: 'linear', border, color: COLOR } as const;
    for (const [dx, dy] of [
      [3e6, 0.5],
      [0.25, 5e6],
      [-3e6, 0.5],
      [0.25, -5e6],
      [1e9 + 1, -1e9 - 3],
      [1e15, 1e15],
    ] as const) {
      compare(
        u8,
        await read(
          warpAffine(
            image,
            [
              [1, 0.25, dx],
              [0, 1, dy],
            ],
            options,
          ),
        ),
        expected(given, 6, 8, 'linear', border, (x, y) => [x + 0.25 * y + dx, y + dy]),
      );
    }
    // Where w is 0 places are infinite, and beyond that on the other side; far ones are multiples
    // of powers of two, exact in f32.
    for (const far of [2 ** 24, -(2 ** 24), 2 ** 40]) {
      const w = (x: number): number => 2 ** -3 * x - 0.25;
      const place = (x: number, y: number): readonly [number, number] =>
        x === 2 || x === 3 || x === 4 || x === 6 ? [far / w(x), y / w(x)] : [NaN, NaN];
      const whole = expected(given, 6, 8, 'linear', border, place);
      const got = await read(
        warpPerspective(
          image,
          [
            [0, 0, far],
            [0, 1, 0],
            [2 ** -3, 0, -0.25],
          ],
          options,
        ),
      );
      const kept = (i: number): boolean => [2, 3, 4, 6].includes(Math.floor(i / 3) % 8);
      compare(
        u8,
        got.filter((_, i) => kept(i)),
        { ...whole, values: whole.values.filter((_, i) => kept(i)) },
      );
    }
  });

  test('a matrix that f32 cannot hold is refused', async () => {
    using image = await device.zeros(u8, [2, 2, 1]);
    const error = await failure(() =>
      warpAffine(
        image,
        [
          [1e39, 0, 0],
          [0, 1, 0],
        ],
        { inverse: true },
      ),
    );
    expect(error).toBeInstanceOf(CudaArgumentError);
    expect(error.message).toContain('matrix: expected numbers that f32 can hold');
  });
});
