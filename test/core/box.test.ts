/** Copies in three dimensions, compared with the same copies of plain arrays. */
import { bf16, f32, i32, u16, u8 } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { describe, expect, test } from 'vitest';

import { failure, onDevice, range } from './test-device.js';

interface Layout {
  width: number;
  height: number;
  depth: number;
  rowStride: number;
  sliceStride: number;
}

const layout = (most: number): fc.Arbitrary<Layout> =>
  fc
    .record({
      width: fc.nat(most),
      height: fc.nat(6),
      depth: fc.nat(5),
      row: fc.nat(3),
      slice: fc.nat(3),
    })
    .map(({ width, height, depth, row, slice }) => ({
      width,
      height,
      depth,
      rowStride: width + row,
      sliceStride: height + slice,
    }));

const extent = ({ width, height, depth, rowStride, sliceStride }: Layout): number =>
  width * height * depth === 0 ? 0 : ((depth - 1) * sliceStride + height - 1) * rowStride + width;

/** The index in the buffer of each element of the box, in dense order. */
function places({ width, height, depth, rowStride, sliceStride }: Layout): number[] {
  return range(depth).flatMap((z) =>
    range(height).flatMap((y) => range(width).map((x) => (z * sliceStride + y) * rowStride + x)),
  );
}

const RUNS = 60;

onDevice('DeviceBox', (host) => {
  test(
    'write and read touch the elements of the box and no others',
    { tags: 'random' },
    async () => {
      await fc.assert(
        fc.asyncProperty(layout(9), fc.nat(4), async (shape, before) => {
          const { device, stream } = host;
          using buffer = device.alloc(u16, before + extent(shape) + 2);
          buffer.fill(stream, 7);
          const box = buffer.slice(before).box(shape);
          const at = places(shape);
          const values = Uint16Array.from(at, (_, i) => 100 + i);
          box.write(stream, values);
          const expected = new Uint16Array(buffer.length).fill(7);
          at.forEach((place, i) => (expected[before + place] = values[i]!));
          const [all, read] = await Promise.all([buffer.read(stream), box.read(stream)]);
          expect(all).toEqual(expected);
          expect(read).toEqual(values);
        }),
        { numRuns: RUNS },
      );
    },
  );

  test(
    'copies between boxes of other layouts, and through page-locked memory',
    { tags: 'random' },
    async () => {
      await fc.assert(
        fc.asyncProperty(layout(9), fc.nat(3), fc.nat(3), async (shape, row, slice) => {
          const { device, stream } = host;
          const other = {
            ...shape,
            rowStride: shape.width + row,
            sliceStride: shape.height + slice,
          };
          const count = shape.width * shape.height * shape.depth;
          using source = device.alloc(i32, extent(shape));
          using target = device.alloc(i32, extent(other) + 1);
          await using pinned = await device.pinned(i32, count);
          await using back = await device.pinned(i32, count);
          pinned.view().set(range(count));
          source.box(shape).write(stream, pinned);
          target.fill(stream, -1);
          target.box(other).copyFrom(stream, source.box(shape));
          await target.box(other).read(stream, back);
          expect([...back.view()]).toEqual(range(count));
          const expected = new Int32Array(target.length).fill(-1);
          places(other).forEach((place, i) => (expected[place] = i));
          expect(await target.read(stream)).toEqual(expected);
        }),
        { numRuns: Math.ceil(RUNS / 2) },
      );
    },
  );

  test('crop gives a part of the box', { tags: 'random' }, async () => {
    const part = fc.tuple(fc.nat(5), fc.nat(4), fc.nat(3)).chain(([x, y, z]) =>
      fc.record({
        x: fc.constant(x),
        y: fc.constant(y),
        z: fc.constant(z),
        width: fc.nat(5 - x),
        height: fc.nat(4 - y),
        depth: fc.nat(3 - z),
      }),
    );
    await fc.assert(
      fc.asyncProperty(part, async (area) => {
        const { device, stream } = host;
        const shape = { width: 5, height: 4, depth: 3, rowStride: 6, sliceStride: 5 };
        using buffer = device.alloc(u8, extent(shape));
        buffer.write(stream, Uint8Array.from(range(buffer.length)));
        const values = await buffer.box(shape).crop(area).read(stream);
        const expected = range(area.depth).flatMap((z) =>
          range(area.height).flatMap((y) =>
            range(area.width).map((x) => ((area.z + z) * 5 + area.y + y) * 6 + area.x + x),
          ),
        );
        expect([...values]).toEqual(expected);
      }),
      { numRuns: RUNS },
    );
  });

  test.each([
    [
      'many slices in a segment of staging',
      { width: 64, height: 64, depth: 200, rowStride: 70, sliceStride: 66 },
    ],
    [
      'what is copied at the call, in parts of several slices',
      { width: 100, height: 100, depth: 20, rowStride: 101, sliceStride: 101 },
    ],
    [
      'what is copied at the call, in parts of slices',
      { width: 300, height: 300, depth: 2, rowStride: 301, sliceStride: 301 },
    ],
    [
      'slices larger than a segment of staging',
      { width: 2000, height: 700, depth: 3, rowStride: 2003, sliceStride: 701 },
    ],
    [
      'rows larger than a segment of staging',
      { width: 600_000, height: 2, depth: 2, rowStride: 600_001, sliceStride: 3 },
    ],
  ])('%s', async (_, shape) => {
    const { device, stream } = host;
    using buffer = device.alloc(f32, extent(shape));
    buffer.fill(stream, -1);
    const box = buffer.box(shape);
    const values = Float32Array.from({ length: box.length }, (_, i) => i);
    await box.write(stream, values);
    expect(Buffer.from((await box.read(stream)).buffer).equals(Buffer.from(values.buffer))).toBe(
      true,
    );
    const all = await buffer.read(stream);
    expect([all[shape.width], all[shape.height * shape.rowStride]]).toEqual([-1, -1]);
  });

  test('narrow floats are converted by copies', async () => {
    const { device, stream } = host;
    using buffer = device.alloc(bf16, 1000);
    const box = buffer.box({ width: 3, height: 4, depth: 5, rowStride: 10, sliceStride: 20 });
    const values = Float32Array.from(range(60));
    box.write(stream, values);
    const into = new Float32Array(60);
    expect(await box.read(stream, { into })).toBe(into);
    expect(into).toEqual(values);
  });

  test('an image is a box of its rows', async () => {
    const { device, stream } = host;
    using image = device.alloc2D(u8, { width: 10, height: 6, channels: 3 });
    image.write(stream, Uint8Array.from(range(180)));
    const box = image.box({ height: 2 });
    expect([box.width, box.height, box.depth, box.pitch]).toEqual([30, 2, 3, 512]);
    expect([
      ...(await box.crop({ x: 3, y: 1, z: 2, width: 2, height: 1, depth: 1 }).read(stream)),
    ]).toEqual([153, 154]);
    using dense = device.alloc(u8, 180);
    dense.box({ width: 30, height: 2, depth: 3 }).copyFrom(stream, box);
    expect([...(await dense.read(stream))]).toEqual(range(180));
    expect(await failure(() => image.box({ height: 4 }))).toMatchObject({
      argument: 'layout.height',
    });
  });

  test('the use of a box counts as a use of its buffer', async () => {
    const { device } = host;
    const streams = [device.createStream(), device.createStream()] as const;
    using source = device.alloc(i32, 1 << 20);
    using target = device.alloc(i32, 1 << 20);
    const size = { width: 1 << 10, height: 1 << 5, depth: 1 << 5 };
    for (let i = 0; i < 20; i++) {
      source.fill(streams[0], i);
      target.box(size).copyFrom(streams[1], source.box(size));
    }
    expect((await target.read(streams[0])).every((value) => value === 19)).toBe(true);
    for (const stream of streams) stream.close();
  });

  describe('refuses', () => {
    test.each([
      ['layout', { width: 5, height: 5, depth: 5 }],
      ['layout.rowStride', { width: 5, height: 2, depth: 2, rowStride: 4 }],
      ['layout.sliceStride', { width: 5, height: 2, depth: 2, sliceStride: 1 }],
      ['layout.width', { width: -1, height: 2, depth: 2 }],
      ['layout.depth', { width: 1, height: 2, depth: 1.5 }],
      ['layout.pitch', { width: 1, height: 1, depth: 1, pitch: 8 }],
    ])('the layout: %s', async (argument, wrong) => {
      using buffer = host.device.alloc(i32, 100);
      expect(await failure(() => buffer.box(wrong as never))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        argument,
      });
    });

    test('areas outside of it, and arrays and boxes of another size or dtype', async () => {
      const { device, stream } = host;
      using buffer = device.alloc(i32, 100);
      using floats = device.alloc(f32, 100);
      const box = buffer.box({ width: 4, height: 5, depth: 5 });
      const refused = async (call: () => unknown): Promise<string | undefined> =>
        (await failure(call)).argument;
      expect(
        await refused(() => box.crop({ x: 2, y: 0, z: 0, width: 3, height: 1, depth: 1 })),
      ).toBe('area.width');
      expect(
        await refused(() => box.crop({ x: 0, y: 0, z: 6, width: 1, height: 1, depth: 0 })),
      ).toBe('area.z');
      expect(await refused(() => box.write(stream, new Int32Array(99)))).toBe('source');
      expect(await refused(() => box.write(stream, new Float32Array(100) as never))).toBe('source');
      expect(await refused(() => box.read(stream, { into: new Int32Array(101) }))).toBe('into');
      expect(
        await refused(() =>
          box.copyFrom(stream, floats.box({ width: 4, height: 5, depth: 5 }) as never),
        ),
      ).toBe('source');
      expect(await refused(() => box.copyFrom(stream, buffer as never))).toBe('source');
      expect(
        await refused(() =>
          box
            .crop({ x: 0, y: 0, z: 0, width: 4, height: 5, depth: 3 })
            .copyFrom(stream, box.crop({ x: 0, y: 0, z: 2, width: 4, height: 5, depth: 3 })),
        ),
      ).toBe('source');
      await using pinned = await device.pinned(i32, 99);
      expect(await refused(() => box.write(stream, pinned))).toBe('source');
      expect(await refused(() => box.read(stream, pinned))).toBe('target');
      expect(await refused(() => box.read({} as never))).toBe('stream');
    });

    test('use after the buffer was closed', async () => {
      const buffer = host.device.alloc(i32, 8);
      const box = buffer.box({ width: 2, height: 2, depth: 2 });
      buffer.close();
      expect(await failure(() => box.read(host.stream))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
    });
  });

  test('goes into a graph through page-locked memory', async () => {
    const { device, stream } = host;
    await using input = await device.pinned(i32, 8);
    await using output = await device.pinned(i32, 8);
    using buffer = await device.alloc(i32, 64).allocated();
    const box = buffer.box({ width: 2, height: 2, depth: 2, rowStride: 4, sliceStride: 4 });
    await using graph = await stream.capture(() => {
      box.write(stream, input);
      box.read(stream, output);
    });
    for (const base of [1, 50]) {
      input.view().set(range(8).map((i) => base + i));
      await graph.launch(stream);
      expect([...output.view()]).toEqual(range(8).map((i) => base + i));
    }
    expect(await graph.nodeTypes()).toEqual(['memcpy', 'memcpy']);
  });
});
