/** Textures, arrays and surfaces: what kernels read by coordinates, and how uses are tracked. */
import { f16, f32, f64, i16, i32, i8, input, inout, u16, u32, u8 } from 'async-cuda/core';
import type { DType, Texture } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { weightsOf } from '../../src/ptx/texture-weights.test-support.js';
import { TEXELS } from './kernels/texels.js';
import { failure, onDevice, range } from './test-device.js';
import type { TestDevice } from './test-device.js';

/** What a kernel of `TEXELS` gives at each point (x, y, z, layer): four words. */
async function fetch(
  host: TestDevice,
  kernel: string,
  texture: Texture,
  points: readonly (readonly number[])[],
  integers = false,
): Promise<Uint32Array> {
  const words = new Uint32Array(points.length * 4);
  const floats = new Float32Array(words.buffer);
  points.forEach(([x = 0, y = 0, z = 0, layer = 0], i) => {
    if (integers) words[4 * i] = x;
    else floats.set([x, y, z], 4 * i);
    words[4 * i + 3] = layer;
  });
  using at = host.device.alloc(u32, words.length);
  using out = host.device.alloc(u32, words.length);
  at.write(host.stream, words);
  (await host.load(TEXELS))
    .kernel(kernel)
    .launch(
      host.stream,
      { grid: Math.ceil(points.length / 64), block: 64 },
      texture,
      at,
      out,
      points.length,
    );
  return out.read(host.stream);
}

const floatsOf = (words: Uint32Array): number[] => [...new Float32Array(words.slice().buffer)];
const reds = (words: Uint32Array): number[] => floatsOf(words).filter((_, i) => i % 4 === 0);

onDevice('textures', (host) => {
  test('a buffer is read by index, and is zero outside', async () => {
    using buffer = host.device.alloc(f32, 8);
    buffer.write(host.stream, Float32Array.from(range(8)));
    await using texture = await host.device.createTexture(buffer, { channels: 2 });
    const words = await fetch(host, 'fetch1d', texture, [[0], [3], [4]], true);
    expect(floatsOf(words).filter((_, i) => i % 4 < 2)).toEqual([0, 1, 6, 7, 0, 0]);
  });

  test('an image is read at pixel centres, and clamped at its edges', async () => {
    using image = host.device.alloc2D(f32, { width: 5, height: 3 });
    image.write(host.stream, Float32Array.from(range(15)));
    await using texture = await host.device.createTexture(image);
    expect(
      reds(
        await fetch(host, 'fetch2d', texture, [
          [0.5, 0.5],
          [4.5, 2.5],
          [1.99, 1],
          [-3, 1.5],
          [9, 9],
        ]),
      ),
    ).toEqual([0, 14, 6, 5, 14]);
  });

  test('linear filtering weighs four pixels with eight bits of fraction', async () => {
    using image = host.device.alloc2D(f32, { width: 2, height: 2 });
    image.write(host.stream, Float32Array.of(0, 256, 512, 768));
    await using texture = await host.device.createTexture(image, { filter: 'linear' });
    expect(
      reds(
        await fetch(host, 'fetch2d', texture, [
          [1, 1],
          [0.75, 0.5],
          [0.5, 1.25],
          [1.5, 1.5],
          [0, 0],
          [1 + 1 / 256, 0.5],
        ]),
      ),
    ).toEqual([384, 64, 384, 768, 0, 129]);
  });

  test.each([
    ['wrap', [3, 0, 3, 0]],
    ['mirror', [0, 3, 0, 3]],
    ['clamp', [0, 3, 0, 3]],
    ['border', [9, 9, 9, 9]],
  ] as const)('address mode %s outside of an array', async (addressMode, expected) => {
    await using array = await host.device.allocArray(f32, { width: 4, height: 1 });
    array.write(host.stream, Float32Array.of(0, 1, 2, 3));
    await using texture = await host.device.createTexture(array, {
      addressMode,
      coordinates: 'normalized',
      border: [9, 9, 9, 9],
    });
    expect(
      reds(
        await fetch(host, 'fetch2d', texture, [
          [-0.1, 0.5],
          [1.1, 0.5],
          [-0.2, 0.5],
          [1.2, 0.5],
        ]),
      ),
    ).toEqual(expected);
  });

  test.each(['u8', 'u16', 'i16'] as const)(
    'linear filtering of %s gives the same bits on every device',
    async (name) => {
      const dtype = { u8, u16, i16 }[name];
      const [width, height, depth] = [5, 4, 3];
      const values = new { u8: Uint8Array, u16: Uint16Array, i16: Int16Array }[name](
        width * height * depth * 4,
      ).map((_, i) => Math.imul(i + 1, 40503) >>> 3);
      await using array = await host.device.allocArray(dtype, {
        width,
        height,
        depth,
        channels: 4,
      });
      array.write(host.stream, values);
      await using texture = await host.device.createTexture(array, {
        filter: 'linear',
        read: 'normalized',
      });
      // Every third is a multiple of an eighth of a texel, where products of weights are ties.
      const points = range(300).map((i) =>
        [width, height, depth].map((n, axis) => {
          const u = (((Math.imul(i + 1, 7919 * (axis + 1)) >>> 0) % 1009) / 1009) * (n + 1) - 0.5;
          return Math.fround(i % 3 === 0 ? Math.round(u * 8) / 8 : u);
        }),
      );
      const most = name === 'i16' ? 32767 : 65535;
      interface Place {
        low: number;
        weight: number;
        most: number;
      }
      const expected = points.flatMap((point) => {
        const [x, y, z] = [width, height, depth].map((n, axis) => {
          const place = Math.min(Math.max(point[axis]! - 0.5, 0), n - 1);
          return {
            low: Math.floor(place),
            weight: Math.floor((place - Math.floor(place)) * 256 + 0.5),
            most: n - 1,
          };
        }) as [Place, Place, Place];
        return range(4).map((channel) => {
          let sum = 0;
          weightsOf([x.weight, y.weight, z.weight]).forEach((ofX, dx) =>
            ofX.forEach((ofY, dy) =>
              ofY.forEach((weight, dz) => {
                const [i, j, k] = [x.low + dx, y.low + dy, z.low + dz].map((at, axis) =>
                  Math.min(at, [x, y, z][axis]!.most),
                ) as [number, number, number];
                const texel = values[((k * height + j) * width + i) * 4 + channel]!;
                sum += weight * (name === 'u8' ? texel * 257 : Math.max(texel, -most));
              }),
            ),
          );
          return Math.fround(Math.floor((sum + 128) / 256) / most);
        });
      });
      expect(floatsOf(await fetch(host, 'fetch3d', texture, points))).toEqual(expected);
    },
  );

  test('the border has the texture’s format; integers have the floats’ low bits', async () => {
    const border = async (
      dtype: DType<'u8' | 'i8' | 'i32' | 'f16'>,
      colour: readonly [number, number, number, number],
      read: 'element' | 'normalized',
    ): Promise<Uint32Array> => {
      await using array = await host.device.allocArray(dtype, {
        width: 2,
        height: 1,
        channels: 4,
      });
      await using texture = await host.device.createTexture(array, {
        addressMode: 'border',
        border: colour,
        read,
      });
      return await fetch(
        host,
        dtype.kind === 'float' || read === 'normalized' ? 'fetch2d' : 'fetch2d_u32',
        texture,
        [[-5, 0.5]],
      );
    };
    type Narrow = DType<'u8' | 'i8' | 'i32' | 'f16'>;
    expect([...(await border(u8 as Narrow, [0.3, 1, -0.3, 5e9], 'element'))]).toEqual([
      0x9a, 0, 0x9a, 0xf9,
    ]);
    expect(
      [...(await border(i8 as Narrow, [0.3, 1, -0.3, 0.1], 'element'))].map((word) => word | 0),
    ).toEqual([-102, 0, -102, -51]);
    expect([...(await border(i32 as Narrow, [1, -2.5, 0, 3], 'element'))]).toEqual([
      0x3f800000, 0xc0200000, 0, 0x40400000,
    ]);
    expect(floatsOf(await border(u8 as Narrow, [0.3, 1.7, -2.5, NaN], 'normalized'))).toEqual(
      [76 / 255, 1, 0, 0].map(Math.fround),
    );
    expect(floatsOf(await border(i8 as Narrow, [0.3, 1.7, -2.5, -0.3], 'normalized'))).toEqual(
      [38 / 127, 1, -1, -38 / 127].map(Math.fround),
    );
    expect(floatsOf(await border(f16 as Narrow, [0.3, -70000, Infinity, 1e-9], 'element'))).toEqual(
      [0.2998046875, -65504, Infinity, 0],
    );
  });

  test('bytes are read as numbers of [0, 1] or [-1, 1], or unchanged', async () => {
    const read = async (
      dtype: DType<'u8' | 'i8'>,
      mode: 'element' | 'normalized',
    ): Promise<Uint32Array> => {
      using image = host.device.alloc2D(dtype, { width: 2, height: 1, channels: 4 });
      image.write(
        host.stream,
        dtype.name === 'u8'
          ? Uint8Array.of(0, 51, 255, 102, 1, 2, 3, 4)
          : Int8Array.of(0, 127, -128, -127, 1, 2, 3, 4),
      );
      await using texture = await host.device.createTexture(image, { read: mode });
      return await fetch(host, mode === 'element' ? 'fetch2d_u32' : 'fetch2d', texture, [
        [0.5, 0.5],
      ]);
    };
    expect([...(await read(u8 as DType<'u8' | 'i8'>, 'element'))]).toEqual([0, 51, 255, 102]);
    expect(floatsOf(await read(u8 as DType<'u8' | 'i8'>, 'normalized'))).toEqual(
      [0, 0.2, 1, 0.4].map(Math.fround),
    );
    expect(floatsOf(await read(i8 as DType<'u8' | 'i8'>, 'normalized'))).toEqual([0, 1, -1, -1]);
  });

  test('arrays of three dimensions are filtered between slices, layers are not', async () => {
    const values = Float32Array.from(range(24));
    await using solid = await host.device.allocArray(f32, { width: 4, height: 3, depth: 2 });
    solid.write(host.stream, values);
    expect([...(await solid.read(host.stream))]).toEqual([...values]);
    await using filtered = await host.device.createTexture(solid, { filter: 'linear' });
    expect(
      reds(
        await fetch(host, 'fetch3d', filtered, [
          [0.5, 0.5, 1],
          [1, 1, 1],
          [2.5, 1.5, 1.5],
        ]),
      ),
    ).toEqual([6, 8.5, 18]);
    await using layered = await host.device.allocArray(f32, {
      width: 4,
      height: 3,
      depth: 2,
      layered: true,
    });
    layered.write(host.stream, values);
    await using layers = await host.device.createTexture(layered, { filter: 'linear' });
    expect(
      reds(
        await fetch(host, 'layer2d', layers, [
          [1, 1, 0, 0],
          [1, 1, 0, 1],
          [2.5, 1.5, 0, 7],
        ]),
      ),
    ).toEqual([2.5, 14.5, 18]);
  });

  test('an array is filled from a box and copied to one', async () => {
    using buffer = host.device.alloc(f32, 100);
    buffer.write(host.stream, Float32Array.from(range(100)));
    await using array = await host.device.allocArray(f32, { width: 3, height: 2, depth: 2 });
    array.copyFrom(
      host.stream,
      buffer
        .box({ width: 5, height: 4, depth: 5 })
        .crop({ x: 1, y: 1, z: 2, width: 3, height: 2, depth: 2 }),
    );
    expect([...(await array.read(host.stream))]).toEqual([
      46, 47, 48, 51, 52, 53, 66, 67, 68, 71, 72, 73,
    ]);
    using out = host.device.alloc(f32, 12);
    array.copyTo(host.stream, out.box({ width: 3, height: 2, depth: 2 }));
    expect([...(await out.read(host.stream))]).toEqual([
      46, 47, 48, 51, 52, 53, 66, 67, 68, 71, 72, 73,
    ]);
  });

  test('a large array goes through staging in parts', async () => {
    await using array = await host.device.allocArray(f32, { width: 700, height: 900, channels: 2 });
    const values = Float32Array.from({ length: 700 * 900 * 2 }, (_, i) => i % 65537);
    array.write(host.stream, values);
    expect(
      Buffer.compare(
        Buffer.from((await array.read(host.stream)).buffer),
        Buffer.from(values.buffer),
      ),
    ).toBe(0);
  });

  test('a surface reads and writes an array', async () => {
    await using array = await host.device.allocArray(f32, { width: 6, height: 4, surface: true });
    array.write(host.stream, Float32Array.from(range(24)));
    await using surface = await host.device.createSurface(array);
    (await host.load(TEXELS))
      .kernel('add_one', [inout(f32), u32])
      .launch(host.stream, { grid: 4, block: 32 }, surface, 6);
    expect([...(await array.read(host.stream))]).toEqual(range(24).map((i) => i + 1));
  });

  test('reads through a texture are ordered between streams as uses of its memory', async () => {
    const other = host.device.createStream();
    using image = host.device.alloc2D(f32, { width: 512, height: 512 });
    await using texture = await host.device.createTexture(image);
    using at = host.device.alloc(u32, 4);
    at.fill(host.stream, 0);
    using out = host.device.alloc(u32, 4);
    const kernel = (await host.load(TEXELS)).kernel('fetch2d', [
      input(f32),
      input(u32),
      inout(u32),
      u32,
    ]);
    for (let value = 1; value <= 20; value++) {
      image.fill(other, value);
      kernel.launch(host.stream, { grid: 1, block: 64 }, texture, at, out, 1);
      expect(reds(await out.read(host.stream))).toEqual([value]);
    }
    other.close();
  });

  test('options that exclude each other are an error at the call', async () => {
    const { device } = host;
    using buffer = device.alloc(f32, 1024);
    using image = device.alloc2D(u8, { width: 4, height: 4 });
    using doubles = device.alloc2D(f64, { width: 4, height: 4 });
    using rgb = device.alloc2D(u8, { width: 4, height: 4, channels: 3 });
    const messages = [
      [
        () => device.createTexture(doubles as never),
        'source.dtype: expected one of u8, u16, u32, i8, i16, i32, f16, f32',
      ],
      [() => device.createTexture(rgb), 'source.channels: expected 1, 2 or 4, got 3'],
      [
        () => device.createTexture(image, { filter: 'linear' }),
        "options.filter: expected 'point' for texels that are read as integers",
      ],
      [
        () => device.createTexture(image, { addressMode: 'wrap' }),
        "Write coordinates: 'normalized'.",
      ],
      [
        () => device.createTexture(buffer, { filter: 'linear' }),
        'options.filter: expected nothing: a buffer is read by index',
      ],
      [
        () => device.createTexture(buffer.slice(1, 9)),
        'source: expected memory that begins at a multiple of 512 bytes',
      ],
      [
        () => device.createTexture(image, { adressMode: 'clamp' } as never),
        "Did you mean 'addressMode'?",
      ],
      [
        () => device.allocArray(f32, { width: 4, height: 4, depth: 5, cube: true }),
        'square faces, six of them',
      ],
      [() => device.allocArray(f32, { width: 0 }), 'size.width: expected a whole number from 1'],
    ] as const;
    for (const [call, message] of messages)
      expect((await failure(call)).message).toContain(message);
    await using plain = await device.allocArray(f32, { width: 4, height: 4 });
    expect((await failure(() => device.createSurface(plain))).message).toContain('surface: true');
  });

  test('a closed texture, or one whose memory was closed, is refused as an argument', async () => {
    const image = host.device.alloc2D(f32, { width: 4, height: 4 });
    image.fill(host.stream, 1);
    const texture = await host.device.createTexture(image);
    expect(reds(await fetch(host, 'fetch2d', texture, [[1, 1]]))).toEqual([1]);
    const other = await host.device.createTexture(image);
    await other.close();
    expect(other.isClosed).toBe(true);
    expect((await failure(() => fetch(host, 'fetch2d', other, [[1, 1]]))).code).toBe(
      'ERR_CUDA_DISPOSED',
    );
    image.close();
    expect((await failure(() => fetch(host, 'fetch2d', texture, [[1, 1]]))).code).toBe(
      'ERR_CUDA_DISPOSED',
    );
    await texture.close();
  });
});
