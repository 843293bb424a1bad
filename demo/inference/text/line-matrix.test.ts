import { u8 } from 'async-cuda/core';
import { Device } from 'async-cuda';
import { warpAffine } from 'async-cuda/images';
import * as fc from '../../../test/fast-check.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { lineMatrix } from './line-matrix.js';
import { cornersOf } from './smallest-rectangle.js';
import type { TurnedRectangle } from './smallest-rectangle.js';

test('the corners of the picture are those of the rectangle', { tags: 'random' }, () => {
  const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
  const rectangle = fc.record({
    x: real(-100, 100),
    y: real(-100, 100),
    width: real(1, 100),
    height: real(1, 100),
    angle: real(-3, 3),
  });
  fc.assert(
    fc.property(
      rectangle,
      fc.integer({ min: 1, max: 400 }),
      fc.integer({ min: 1, max: 48 }),
      (given, width, height) => {
        const [[a, b, c], [d, e, f]] = lineMatrix(given, width, height);
        const corners = cornersOf(given);
        // The corners are those of the outermost pixels' areas, half a pixel beyond their middles.
        for (const [i, [u, v]] of (
          [
            [-0.5, -0.5],
            [width - 0.5, -0.5],
            [width - 0.5, height - 0.5],
            [-0.5, height - 0.5],
          ] as const
        ).entries()) {
          expect(a * u + b * v + c).toBeCloseTo(corners[i]!.x - 0.5, 6);
          expect(d * u + e * v + f).toBeCloseTo(corners[i]!.y - 0.5, 6);
        }
      },
    ),
  );
});

describe('with a warp', () => {
  let device: Device;
  beforeAll(async () => {
    device = await Device.open(process.env['ASYNC_CUDA_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'cpu');
  });
  afterAll(() => device.close());

  /** An image of 4 × 3 pixels with the numbers from 0 on. */
  const straightened = async (
    rectangle: TurnedRectangle,
    width: number,
    height: number,
  ): Promise<number[]> => [
    ...(await device
      .tensor(
        u8,
        Uint8Array.from({ length: 12 }, (_, i) => i),
        [3, 4, 1],
      )
      .andThen((image) =>
        warpAffine(image, lineMatrix(rectangle, width, height), { inverse: true, width, height }),
      )
      .andThen((line) => line.read())),
  ];

  test('a rectangle of whole pixels is cut out', async () => {
    expect(await straightened({ x: 2.5, y: 2, width: 3, height: 2, angle: 0 }, 3, 2)).toEqual([
      5, 6, 7, 9, 10, 11,
    ]);
  });

  test('one that runs down is turned so that it runs to the right', async () => {
    expect(
      await straightened({ x: 3, y: 1.5, width: 3, height: 2, angle: Math.PI / 2 }, 3, 2),
    ).toEqual([3, 7, 11, 2, 6, 10]);
  });
});
