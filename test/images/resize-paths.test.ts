/** Resizing in parts, compared with resizing at once. */
import { inspect } from 'node:util';
import { Device, f16, u8 } from 'async-cuda';
import type { AnyTensor, Tensor } from 'async-cuda';
import { resize } from 'async-cuda/images';
import * as fc from '../fast-check.js';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { operation } from '../../src/library/operation.js';
import type { Work } from '../../src/library/operation.js';
import { imageOf } from '../../src/images/image.js';
import type { Image } from '../../src/images/image.js';
import { queueResample } from '../../src/images/resampling.js';
import { fitsFours } from '../../src/images/resize-fours.js';
import { queueResize } from '../../src/images/resizing.js';
import { onCpu, onDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type Images = Tensor<'u8', number[]>;

const bytes = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => Math.imul(i + 7, 2654435761) >>> 24);

const shown = (tensor: AnyTensor): Image => imageOf('resize', 'image', tensor);

describe('Resizing', () => {
  let device: Device;
  beforeAll(async () => {
    device = await Device.open('cpu');
  });
  afterAll(async () => {
    await device.close();
  });

  const into = async (
    image: Images,
    shape: readonly number[],
    queue: (work: Work, image: Image, out: Image) => void,
  ): Promise<Uint8Array> => {
    using out = await device.full(u8, [...shape], 99);
    await operation('resize', [image, out], () => (work) => {
      queue(work, shown(image), shown(out));
      return out;
    });
    return await out.read();
  };
  const usual = async (
    image: Images,
    [width, height]: readonly [number, number],
    filter: 'cubic' | 'area' | 'lanczos3',
  ): Promise<Uint8Array> => resize(image, { width, height, filter }).andThen((out) => out.read());

  someOf(1, test)(['cubic', 'lanczos3', 'area'] as const)(
    '%s in strips and groups of images has the same bits',
    async (filter) => {
      using images = await device.tensor(u8, bytes(5 * 23 * 11 * 3), [5, 23, 11, 3]);
      // Rows of two images, of a few rows, of one row; the last two sizes have rows that are not
      // read.
      for (const [width, height] of [
        [7, 9],
        [13, 40],
        [4, 3],
        [4, 1],
      ] as const) {
        const whole = await usual(images, [width, height], filter);
        for (const most of [2 * 40 * 13 * 3, 12 * width * 3, 1]) {
          expect(
            await into(images, [5, height, width, 3], (work, image, out) => {
              queueResample(work, image, out, filter, most);
            }),
          ).toEqual(whole);
        }
      }
    },
  );
});

onDevice('Resizing by four pixels at a time', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  /**
   * A part of a larger image or batch: its size, its start, and by how much the whole is larger.
   */
  interface Region {
    readonly width: number;
    readonly height: number;
    readonly x: number;
    readonly y: number;
    readonly right: number;
    readonly below: number;
  }

  const fours = fc.integer({ min: 1, max: 12 }).map((n) => n * 4);
  /** Mostly ones that are aligned to words, else any. */
  const region: fc.Arbitrary<Region> = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        width: fours,
        height: fc.integer({ min: 1, max: 30 }),
        x: fc.constantFrom(0, 4),
        y: fc.nat(2),
        right: fc.constantFrom(0, 0, 8),
        below: fc.nat(2),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        width: fc.integer({ min: 1, max: 40 }),
        height: fc.integer({ min: 1, max: 30 }),
        x: fc.nat(5),
        y: fc.nat(2),
        right: fc.nat(5),
        below: fc.nat(2),
      }),
    },
  );
  const wholeOf = (
    batch: number,
    { width, height, x, y, right, below }: Region,
  ): [number, number, number, number] => [batch, y + height + below, x + width + right, 3];
  const part = (whole: Images, { width, height, x, y }: Region): Images =>
    whole.slice([0, whole.shape[0]!], [y, y + height], [x, x + width]) as never;

  test(
    'has the same bytes as one pixel at a time, in regions and batches',
    { tags: 'random' },
    async () => {
      let taken = 0;
      let all = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 3 }),
          region,
          region,
          fc.nat(255),
          async (batch, from, to, seed) => {
            const shape = wholeOf(batch, from);
            const target = wholeOf(batch, to);
            const length = shape.reduce((a, b) => a * b);
            using whole = (await device.tensor(
              u8,
              bytes(length + seed).subarray(seed),
              shape,
            )) as Images;
            const image = part(whole, from);
            const made = await Promise.all(
              [true, false, undefined].map(async (byFours) => {
                using out = (await device.full(u8, [...target], 99)) as Images;
                const result = part(out, to);
                if (byFours === true && fitsFours(shown(image), shown(result))) taken++;
                await operation('resize', [image, result], () => (work) => {
                  queueResize(work, shown(image), shown(result), 'linear', byFours);
                  return result;
                });
                return await out.read();
              }),
            );
            expect(made[0]).toEqual(made[1]);
            expect(made[2]).toEqual(made[1]);
            all++;
          },
        ),
        { numRuns: 150 },
      );
      // Both paths were taken.
      expect(taken).toBeGreaterThan(all / 8);
      expect(taken).toBeLessThan(all);
    },
  );

  test('is taken by aligned images of u8 with three channels and whole groups', async () => {
    using wide = await device.zeros(u8, [2, 6, 16, 3]);
    using four = await device.zeros(u8, [2, 6, 16, 4]);
    using halves = await device.zeros(f16, [2, 6, 16, 3]);
    using odd = await device.zeros(u8, [2, 5, 15, 3]);
    using bytesOnly = await device.zeros(u8, [2 * 6 * 16 * 3 + 4]);
    const at = (offset: number): Images =>
      bytesOnly.slice([offset, offset + 576]).reshape([2, 6, 16, 3]) as never;
    const fits = (from: AnyTensor, to: AnyTensor): boolean => fitsFours(shown(from), shown(to));
    expect(fits(wide, wide)).toBe(true);
    expect(fits(wide, at(4))).toBe(true);
    expect([
      fits(four, four),
      fits(halves, halves),
      fits(wide, odd),
      fits(odd, wide),
      fits(at(1), wide),
      fits(wide, at(2)),
    ]).toEqual(new Array(6).fill(false));
    // In the source only the starts of rows matter.
    expect(fits(wide.slice([0, 2], [0, 6], [4, 13]), wide)).toBe(true);
    expect(fits(wide, wide.slice([0, 2], [0, 6], [4, 13]))).toBe(false);
    expect(fits(wide.slice([0, 2], [0, 6], [4, 12]), wide)).toBe(true);
    expect(fits(wide.slice([0, 2], [0, 6], [3, 11]), wide)).toBe(false);
  });

  test('is used by resize(…) on a GPU; on the CPU device single pixels are faster', async () => {
    using image = await device.zeros(u8, [6, 16, 3]);
    using out = await device.zeros(u8, [3, 8, 3]);
    const added = async (filter: 'linear' | 'nearest', byFours?: boolean): Promise<string> => {
      let kernel = '';
      await operation('resize', [image, out], () => (work) => {
        const add = vi.spyOn(work, 'add');
        queueResize(work, shown(image), shown(out), filter, byFours);
        kernel = add.mock.calls.map(([step]) => inspect(step)).join(' ');
        return out;
      });
      return kernel;
    };
    const name = /resize_fours/;
    expect(await added('linear', true)).toMatch(name);
    expect(name.test(await added('linear'))).toBe(!onCpu);
    expect(await added('linear', false)).not.toMatch(name);
    expect(await added('nearest', true)).not.toMatch(name);
  });
});
