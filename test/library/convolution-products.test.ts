/**
 * Convolutions by warp groups, on a device of compute capability 9.0: small whole numbers, whose
 * sums f32 holds, so that results equal those of the direct convolution.
 */
import { Device, bf16, f16, f32 } from 'async-cuda';
import type { DType, Tensor } from 'async-cuda';
import { convolution2d } from 'async-cuda/library';
import type { Convolution2dOptions, ConvolutionName } from 'async-cuda/library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { onCpu, range } from '../core/test-device.js';
import * as fc from '../fast-check.js';
import { hopperOptions, openHopper } from '../kernels/hopper/hopper-device.js';
import { someOf } from '../random-runs.js';

interface Case extends Omit<Convolution2dOptions<'f32'>, 'bias' | 'layout' | 'precision'> {
  /** N, C, H, W */
  readonly images: readonly [number, number, number, number];
  /** Results, rows, columns. */
  readonly weights: readonly [number, number, number];
  readonly dtype?: DType<ConvolutionName>;
}

const numbers = (length: number, seed: number): number[] =>
  range(length).map((i) => ((Math.imul(i + seed, 7919) >>> 2) % 5) - 2);

let device: Device | undefined;
beforeAll(async () => {
  device = await openHopper();
});
afterAll(() => device?.close());

async function check(on: Device, { images, weights, dtype = f16, ...given }: Case): Promise<void> {
  const [count, channels, height, width] = images;
  const [results, rows, columns] = weights;
  const made = (shape: number[], seed: number) =>
    on.tensor(
      dtype as DType<'f32'>,
      numbers(
        shape.reduce((product, extent) => product * extent, 1),
        seed,
      ),
      shape,
    );
  using x = await made([count, height, width, channels], 1);
  using w = await made([results, channels, rows, columns], 2);
  using bias = await made([results], 3);
  const options = { ...given, bias };
  using wanted = await convolution2d(x, w, { ...options, layout: 'NHWC', precision: 'exact' });
  const values = [...(await wanted.read())];
  using last = await convolution2d(x, w, { ...options, layout: 'NHWC', precision: 'tensor' });
  expect(last.shape).toEqual(wanted.shape);
  expect([...(await last.read())]).toEqual(values);
  // The same images by channels, and weights whose memory has channels last.
  using turned = await w.permute([0, 2, 3, 1]).contiguous();
  const byChannels = x.permute([0, 3, 1, 2]) as unknown as Tensor<'f32'>;
  const lastChannels = turned.permute([0, 3, 1, 2]) as unknown as Tensor<'f32'>;
  using first = await convolution2d(byChannels, lastChannels, { ...options, precision: 'tensor' });
  using seen = await first.permute([0, 2, 3, 1]).contiguous();
  expect([...(await seen.read())]).toEqual(values);
}

const CASES: readonly (readonly [string, Case])[] = [
  ['padding', { images: [2, 16, 9, 11], weights: [24, 3, 3], padding: 1 }],
  [
    'strides, and padding of each side',
    { images: [2, 64, 12, 11], weights: [72, 3, 3], stride: [2, 1], padding: [1, 0, 2, 1] },
  ],
  [
    'three colours, whose copy has eight channels',
    { images: [1, 3, 20, 21], weights: [64, 7, 7], stride: 2, padding: 3, dtype: bf16 },
  ],
  ['one weight, an odd number of results', { images: [3, 72, 7, 6], weights: [33, 1, 1] }],
  [
    'f32 as tf32, dilated',
    { images: [1, 40, 16, 15], weights: [130, 3, 2], dilation: [2, 3], padding: 3, dtype: f32 },
  ],
  [
    'an activation',
    { images: [1, 24, 8, 8], weights: [16, 3, 3], padding: 1, activation: 'relu', dtype: bf16 },
  ],
  [
    'a channel beyond whole lines, tiles of several images',
    { images: [9, 136, 5, 3], weights: [72, 2, 3], padding: [1, 0, 0, 2], dtype: bf16 },
  ],
  [
    'steps that copies of pixels do not have',
    { images: [1, 32, 20, 19], weights: [16, 2, 2], stride: [9, 1] },
  ],
  [
    'weights further apart than copies of pixels reach',
    { images: [1, 32, 263, 3], weights: [16, 3, 1], dilation: [130, 1] },
  ],
  [
    'padding wider than copies of pixels have',
    {
      images: [1, 32, 4, 3],
      weights: [16, 2, 2],
      padding: [128, 0, 0, 0],
      dilation: [100, 1],
    },
  ],
  ['padding wider than the image', { images: [1, 8, 3, 2], weights: [16, 3, 3], padding: 5 }],
];

describe('convolutions by warp groups', () => {
  someOf(4, test)(CASES)('%s', async (_, of) => {
    if (device !== undefined) await check(device, of);
  });

  test('whatever the shape', { tags: 'random' }, async () => {
    if (device === undefined) return;
    const upTo = (most: number, least = 1) => fc.integer({ min: least, max: most });
    const shapes = fc.record({
      // A line of channels, and less than half of one.
      images: fc.tuple(upTo(3), fc.oneof(upTo(20), upTo(70, 30)), upTo(14), upTo(14)),
      weights: fc.tuple(upTo(70, 16), upTo(4), upTo(4)),
      stride: fc.tuple(upTo(3), upTo(3)),
      padding: fc.tuple(upTo(4, 0), upTo(4, 0)),
      dilation: fc.tuple(upTo(3), upTo(3)),
      dtype: fc.constantFrom<DType<ConvolutionName>>(f16, bf16),
    });
    await fc.assert(
      fc.asyncProperty(shapes, async (of) => {
        const fits = [0, 1].every((axis) => {
          const reach = (of.weights[axis + 1]! - 1) * of.dilation[axis]! + 1;
          return reach <= of.images[axis + 2]! + 2 * of.padding[axis]!;
        });
        fc.pre(fits);
        await check(device!, of);
      }),
      { numRuns: 20 },
    );
  });

  test('into an existing tensor, again and again', async () => {
    if (device === undefined) return;
    using x = await device.ones(f16, [1, 6, 6, 16]);
    using weights = await device.ones(f16, [16, 16, 3, 3]);
    // Weights that are copied in each run, and others that are read where they are.
    using last = await weights.permute([0, 2, 3, 1]).contiguous();
    for (const factors of [weights, last.permute([0, 3, 1, 2])] as (typeof weights)[]) {
      using out = await device.full(f16, [1, 4, 4, 16], 9);
      const op = convolution2d(x, factors, { layout: 'NHWC', out });
      for (const value of [1, 2, 3]) {
        await x.fill(value);
        expect(await op).toBe(out);
        expect(new Set(await out.read())).toEqual(new Set([144 * value]));
      }
    }
  });

  test('sums of tensor cores are those of a product', async () => {
    if (device === undefined) return;
    // 64 of 2^-12 are 2^-6; added one by one to f16's 1, each would be lost.
    using x = await device.full(f16, [1, 1, 1, 64], 2 ** -6);
    using weights = await device.full(f16, [16, 64, 1, 1], 2 ** -6);
    using bias = await device.full(f16, [16], 1);
    using out = await convolution2d(x, weights, { layout: 'NHWC', bias });
    expect([...(await out.read())]).toEqual(new Array(16).fill(1 + 2 ** -6));
  });

  // The checker takes ten seconds and more to compile the kernel.
  test.runIf(onCpu)('under the checker', { tags: 'thorough', timeout: 300_000 }, async () => {
    await using checked = await Device.open('cpu', { ...hopperOptions, check: true });
    for (const channels of [16, 64]) {
      using x = await checked.ones(f16, [2, 9, 11, channels]);
      using weights = await checked.ones(f16, [24, channels, 3, 3]);
      using out = await convolution2d(x, weights, { layout: 'NHWC' });
      expect(new Set(await out.read())).toEqual(new Set([channels * 9]));
    }
  });
});
