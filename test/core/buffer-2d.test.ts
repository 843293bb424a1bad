/** Pitched images: dense on the host, each row at a multiple of the pitch on the device. */
import { DTYPES, f16, f32, f64, i32, u16, u8 } from 'async-cuda/core';
import type { DType, DTypeName } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { fillOf, inArray } from './dtype-values.js';
import { failure, onDevice, range } from './test-device.js';

onDevice('DeviceBuffer2D', (host) => {
  test.each([
    { width: 1, height: 1, channels: 1 },
    { width: 7, height: 5, channels: 3 },
    { width: 512, height: 3, channels: 1 },
    { width: 513, height: 3, channels: 1 },
    { width: 100, height: 700, channels: 4 },
    { width: 300_000, height: 5, channels: 4 },
  ])('gives back an image of $width × $height × $channels', async (size) => {
    const { width, height, channels } = size;
    const image = Uint8Array.from(
      { length: width * height * channels },
      (_, i) => (i * 13 + (i >> 9)) & 255,
    );
    using buffer = host.device.alloc2D(u8, size);
    buffer.write(host.stream, image);
    expect(Buffer.compare(await buffer.read(host.stream), image)).toBe(0);
  });

  test.each(Object.keys(DTYPES) as DTypeName[])('holds %s', async (name) => {
    const dtype = DTYPES[name] as DType<'f32'>;
    using buffer = host.device.alloc2D(dtype, { width: 3, height: 2 });
    const one = fillOf(name);
    buffer.fill(host.stream, one as never);
    expect([...(await buffer.read(host.stream))]).toEqual(Array(6).fill(inArray(one)).flat());
  });

  test.each([1, 2, 3, 7, 8, 9])(
    'fills %i rows with a value of 8 bytes whose halves differ, and nothing around them',
    async (height) => {
      using buffer = host.device.alloc2D(f64, { width: 5, height: 10, channels: 2 });
      buffer.fill(host.stream, 0);
      buffer.crop({ x: 1, y: 1, width: 3, height }).fill(host.stream, 0.1);
      const inside = (i: number): boolean =>
        i % 10 >= 2 && i % 10 < 8 && i >= 10 && i < 10 + height * 10;
      expect([...(await buffer.read(host.stream))]).toEqual(
        range(100).map((i) => (inside(i) ? 0.1 : 0)),
      );
    },
  );

  test('one channel is the default', () => {
    using buffer = host.device.alloc2D(f32, { width: 4, height: 2 });
    expect(buffer).toMatchObject({ width: 4, height: 2, channels: 1, length: 8 });
  });

  test('rows begin at multiples of the pitch', async () => {
    using buffer = host.device.alloc2D(f32, { width: 130, height: 4 });
    expect(buffer.pitch % 512).toBe(0);
    expect(buffer.pitch).toBeGreaterThanOrEqual(520);
    expect(buffer.lineBytes).toBe(520);
    expect(buffer.byteLength).toBe(3 * buffer.pitch + 520);
  });

  test('fill leaves a cropped view’s surroundings as they are', async () => {
    using buffer = host.device.alloc2D(i32, { width: 5, height: 4 });
    buffer.fill(host.stream, 0);
    buffer.crop({ x: 1, y: 1, width: 3, height: 2 }).fill(host.stream, 7);
    expect([...(await buffer.read(host.stream))]).toEqual([
      0, 0, 0, 0, 0, 0, 7, 7, 7, 0, 0, 7, 7, 7, 0, 0, 0, 0, 0, 0,
    ]);
  });

  test('a crop is read and written by itself', async () => {
    using buffer = host.device.alloc2D(u8, { width: 4, height: 3, channels: 2 });
    buffer.write(host.stream, Uint8Array.from(range(24)));
    const crop = buffer.crop({ x: 2, y: 1, width: 2, height: 2 });
    expect([...(await crop.read(host.stream))]).toEqual([12, 13, 14, 15, 20, 21, 22, 23]);
    crop.write(host.stream, new Uint8Array(8).fill(99));
    expect([...(await buffer.read(host.stream))].slice(8, 16)).toEqual([
      8, 9, 10, 11, 99, 99, 99, 99,
    ]);
  });

  test('a crop of a crop counts from the inner corner', async () => {
    using buffer = host.device.alloc2D(i32, { width: 6, height: 6 });
    buffer.write(host.stream, Int32Array.from(range(36)));
    const inner = buffer
      .crop({ x: 1, y: 2, width: 4, height: 3 })
      .crop({ x: 1, y: 1, width: 2, height: 1 });
    expect([...(await inner.read(host.stream))]).toEqual([20, 21]);
  });

  test('copies from another image', async () => {
    using source = host.device.alloc2D(u16, { width: 33, height: 9 });
    using target = host.device.alloc2D(u16, { width: 33, height: 9 });
    const image = Uint16Array.from(range(33 * 9));
    source.write(host.stream, image);
    target.copyFrom(host.stream, source);
    expect(await target.read(host.stream)).toEqual(image);
  });

  test('copies one part of an image to another', async () => {
    using buffer = host.device.alloc2D(i32, { width: 4, height: 4 });
    buffer.write(host.stream, Int32Array.from(range(16)));
    buffer
      .crop({ x: 0, y: 2, width: 4, height: 2 })
      .copyFrom(host.stream, buffer.crop({ x: 0, y: 0, width: 4, height: 2 }));
    expect([...(await buffer.read(host.stream))]).toEqual([...range(8), ...range(8)]);
  });

  test('converts narrow floats', async () => {
    using buffer = host.device.alloc2D(f16, { width: 3, height: 2 });
    buffer.write(host.stream, Float32Array.of(1, 2, 3, -4, 0.5, 65504));
    expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3, -4, 0.5, 65504]);
  });

  test('reads into an array that the caller passes', async () => {
    using buffer = host.device.alloc2D(i32, { width: 2, height: 2 });
    buffer.fill(host.stream, 3);
    const into = new Int32Array(4);
    expect(await buffer.read(host.stream, { into })).toBe(into);
    expect([...into]).toEqual([3, 3, 3, 3]);
  });

  test('a kernel receives it as a pointer to its first row', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    using buffer = host.device.alloc2D(i32, { width: 4, height: 2 });
    buffer.fill(host.stream, 1);
    add1.launch(host.stream, { grid: 1, block: 32 }, buffer, 4);
    expect([...(await buffer.read(host.stream))]).toEqual([2, 2, 2, 2, 1, 1, 1, 1]);
  });

  test('a kernel receives a crop as a pointer to its first pixel', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    using buffer = host.device.alloc2D(i32, { width: 4, height: 2 });
    buffer.fill(host.stream, 1);
    add1.launch(
      host.stream,
      { grid: 1, block: 32 },
      buffer.crop({ x: 1, y: 1, width: 2, height: 1 }),
      2,
    );
    expect([...(await buffer.read(host.stream))]).toEqual([1, 1, 1, 1, 1, 2, 2, 1]);
  });

  test.each([
    { width: 0, height: 4 },
    { width: 4, height: 0 },
  ])('of no pixels (%j) can be written, filled, read and copied', async (size) => {
    using buffer = host.device.alloc2D(f32, size);
    using other = host.device.alloc2D(f32, size);
    await buffer.write(host.stream, new Float32Array(0));
    await buffer.fill(host.stream, 1);
    await buffer.copyFrom(host.stream, other);
    expect((await buffer.read(host.stream)).length).toBe(0);
  });

  describe('refuses', () => {
    test.each([
      { width: -1, height: 1 },
      { width: 1.5, height: 1 },
      { width: 1, height: 1, channels: 0 },
      { width: 1 },
      { width: 1, height: 1, chanels: 3 },
      { width: 2 ** 30, height: 1, channels: 4 },
    ])('the size %j', async (size) => {
      expect(await failure(() => host.device.alloc2D(f32, size as never))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
      });
    });

    test.each([
      { x: 3, y: 0, width: 2, height: 1 },
      { x: 0, y: 0, width: 1, height: 4 },
      { x: -1, y: 0, width: 1, height: 1 },
      { x: 0, y: 0, width: 1, hight: 1 },
    ])('the crop %j of 4 × 3', async (area) => {
      using buffer = host.device.alloc2D(f32, { width: 4, height: 3 });
      expect(await failure(() => buffer.crop(area as never))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
      });
    });

    test('an image of the wrong size, and names the right one', async () => {
      using buffer = host.device.alloc2D(u8, { width: 4, height: 3, channels: 3 });
      expect(
        (await failure(() => buffer.write(host.stream, new Uint8Array(35)))).message,
      ).toContain('3 × 4 × 3 = 36');
    });

    test('to copy from an image of another shape', async () => {
      using buffer = host.device.alloc2D(u8, { width: 4, height: 3 });
      using other = host.device.alloc2D(u8, { width: 3, height: 4 });
      expect(await failure(() => buffer.copyFrom(host.stream, other))).toMatchObject({
        argument: 'source',
      });
    });

    test('to copy between parts that may overlap', async () => {
      using buffer = host.device.alloc2D(u8, { width: 4, height: 3 });
      const upper = buffer.crop({ x: 0, y: 0, width: 4, height: 2 });
      const lower = buffer.crop({ x: 0, y: 1, width: 4, height: 2 });
      expect((await failure(() => lower.copyFrom(host.stream, upper))).message).toContain(
        'overlap',
      );
    });

    test('a value that is not a stream', async () => {
      using buffer = host.device.alloc2D(f32, { width: 1, height: 1 });
      for (const stream of [undefined, {}, host.device]) {
        expect(await failure(() => buffer.read(stream as never))).toMatchObject({
          argument: 'stream',
        });
      }
    });

    test('work after the image is closed', async () => {
      const buffer = host.device.alloc2D(f32, { width: 1, height: 1 });
      const crop = buffer.crop({ x: 0, y: 0, width: 1, height: 1 });
      buffer.close();
      for (const call of [
        () => buffer.read(host.stream),
        () => crop.fill(host.stream, 1),
        () => buffer.crop({ x: 0, y: 0, width: 1, height: 1 }),
      ]) {
        expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
      }
    });
  });
});
