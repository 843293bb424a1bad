/** Images in other sizes, compared with their definition in doubles. */
import { CudaArgumentError, Device, f32, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp, Tensor } from 'async-cuda';
import { crop, resize, resizeBatch } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { CHANNELS, DTYPES, compare, picture, resized } from './reference.js';
import type { Filter } from './reference.js';
import { someOf } from '../random-runs.js';

const FILTERS: readonly Filter[] = ['nearest', 'linear', 'cubic', 'lanczos3', 'area'];
/** Height and width of source and result. */
const SIZES = [
  [
    [6, 5],
    [9, 13],
  ],
  [
    [13, 17],
    [5, 4],
  ],
  [
    [8, 12],
    [4, 4],
  ],
  [
    [7, 3],
    [7, 3],
  ],
  [
    [1, 1],
    [3, 2],
  ],
  [
    [5, 9],
    [1, 1],
  ],
  [
    [4, 300],
    [6, 200],
  ],
] as const;

onDevice('Resize', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (
    op: DeviceOp<Tensor<never, number[]>> | DeviceOp<AnyTensor>,
  ): Promise<number[]> =>
    Array.from(
      (await (op as DeviceOp<AnyTensor>).andThen((tensor) => tensor.read())) as ArrayLike<number>,
    );

  someOf(2, test)(FILTERS)('%s: every dtype and number of channels', async (filter) => {
    for (const dtype of DTYPES) {
      for (const channels of CHANNELS) {
        for (const [[h, w], [height, width]] of dtype === u8 ? SIZES : SIZES.slice(0, 3)) {
          const given = picture(dtype, h, w, channels);
          using image = await device.tensor(dtype, [...given.values], [h, w, channels]);
          compare(
            dtype,
            await read(resize(image, { width, height, filter })),
            resized(given, width, height, filter),
          );
        }
      }
    }
  });

  someOf(1, test)(FILTERS)(
    'resizeBatch with %s: single pixels, rows and columns of one pixel, the longest sides',
    async (filter) => {
      const from = [
        [1, 1],
        [1, 9],
        [9, 1],
        [1, 32768],
        [32768, 1],
        [2, 1],
        [3, 2],
      ] as const;
      const given = from.map(([h, w]) => picture(u8, h, w, 3));
      const images = await Promise.all(
        given.map(({ values }, n) => device.tensor(u8, [...values], [...from[n]!, 3])),
      );
      for (const [height, width] of [
        [1, 1],
        [1, 4],
        [5, 1],
        [3, 3],
      ] as const) {
        const batch = await read(resizeBatch(images, { width, height, filter }));
        const size = height * width * 3;
        for (const [n, each] of given.entries())
          compare(u8, batch.slice(n * size, (n + 1) * size), resized(each, width, height, filter));
      }
      // Each has a size of its own, as far from its present one as possible.
      const sizes = [
        [1, 32768],
        [32768, 1],
        [1, 1],
        [2, 1],
        [1, 2],
        [1, 300],
        [300, 1],
      ].map(([height, width]) => ({ height: height!, width: width! }));
      const several = await resizeBatch(images, { sizes, filter });
      for (const [n, { width, height }] of sizes.entries()) {
        compare(
          u8,
          Array.from((await several[n]!.read()) as ArrayLike<number>),
          resized(given[n]!, width, height, filter),
        );
        several[n]!.close();
      }
      for (const image of images) image.close();
    },
  );

  test(
    'windows can be long, larger than the image, and far apart',
    { tags: 'thorough' },
    async () => {
      // Covered pixels along rows and columns: 20 and 2, 3 and 34; images lower and narrower than
      // the filter reaches; rows that are not read.
      for (const [[h, w], [height, width]] of [
        [
          [3, 39],
          [2, 2],
        ],
        [
          [100, 7],
          [3, 3],
        ],
        [
          [2, 3],
          [5, 7],
        ],
        [
          [90, 5],
          [2, 9],
        ],
        [
          [5, 3],
          [5, 6],
        ],
      ] as const) {
        for (const filter of ['cubic', 'lanczos3', 'area'] as const) {
          for (const dtype of DTYPES) {
            const given = picture(dtype, h, w, 3);
            using image = await device.tensor(dtype, [...given.values], [h, w, 3]);
            compare(
              dtype,
              await read(resize(image, { width, height, filter })),
              resized(given, width, height, filter),
            );
          }
        }
      }
    },
  );

  test('rows of whole words have the same bits as other rows', async () => {
    for (const [[h, w], [height, width]] of [
      [
        [9, 12],
        [4, 4],
      ],
      [
        [5, 8],
        [12, 40],
      ],
      [
        [1, 4],
        [2, 8],
      ],
    ] as const) {
      const given = picture(u8, h, w, 3);
      using image = await device.tensor(u8, [...given.values], [h, w, 3]);
      using canvas = await device.zeros(u8, [h, w + 1, 3]);
      const beside = crop(canvas, { x: 1, y: 0, width: w, height: h });
      await beside.copyFrom(image);
      for (const filter of FILTERS)
        expect(await read(resize(beside, { width, height, filter }))).toEqual(
          await read(resize(image, { width, height, filter })),
        );
      compare(
        u8,
        await read(resize(image, { width, height })),
        resized(given, width, height, 'linear'),
      );
    }
  });

  test('batches and regions are read and written', async () => {
    const pictures = range(3).map((n) => picture(u8, 10, 12, 3, n + 1));
    using images = await device.tensor(
      u8,
      pictures.flatMap(({ values }) => values),
      [3, 10, 12, 3],
    );
    for (const filter of FILTERS) {
      const whole = await read(resize(images, { width: 7, height: 6, filter }));
      pictures.forEach((given, n) => {
        compare(u8, whole.slice(n * 126, (n + 1) * 126), resized(given, 7, 6, filter));
      });
      // A region of each is resized as if nothing were around it.
      using part = await crop(images, { x: 3, y: 2, width: 5, height: 7 }).dup();
      const expected = await read(resize(part, { width: 8, height: 8, filter }));
      expect(
        await read(
          resize(crop(images, { x: 3, y: 2, width: 5, height: 7 }), {
            width: 8,
            height: 8,
            filter,
          }),
        ),
      ).toEqual(expected);
      using canvas = await device.full(u8, [3, 9, 20, 3], 77);
      const result = await resize(part, {
        filter,
        out: crop(canvas, { x: 11, y: 1, width: 8, height: 8 }),
      });
      expect(result.shape).toEqual([3, 8, 8, 3]);
      expect(await read(crop(canvas, { x: 11, y: 1, width: 8, height: 8 }).dup())).toEqual(
        expected,
      );
      const all = await canvas.read();
      expect(all.filter((value) => value === 77).length).toBeGreaterThanOrEqual(
        3 * (9 * 20 - 64) * 3,
      );
      // Beside its source in one memory, where the spans overlap.
      using both = await device.zeros(u8, [6, 10, 3]);
      await crop(both, { x: 0, y: 0, width: 5, height: 6 }).copyFrom(
        crop(images.slice(0), { x: 0, y: 0, width: 5, height: 6 }),
      );
      using alone = await crop(both, { x: 0, y: 0, width: 5, height: 6 }).dup();
      await resize(crop(both, { x: 0, y: 0, width: 5, height: 6 }), {
        filter,
        out: crop(both, { x: 5, y: 0, width: 5, height: 6 }),
      });
      expect(await read(crop(both, { x: 5, y: 0, width: 5, height: 6 }).dup())).toEqual(
        await read(resize(alone, { width: 5, height: 6, filter })),
      );
    }
  });

  someOf(2, test)(FILTERS)('%s: images of several sizes, as each by itself', async (filter) => {
    const pictures = range(11).map((n) =>
      picture(u8, 3 + ((n * 5) % 7), 4 + ((n * 3) % 5), 3, n + 1),
    );
    const images = await Promise.all(
      pictures.map(({ values, height, width }) =>
        device.tensor(u8, [...values], [height, width, 3]),
      ),
    );
    const result = await resizeBatch(images, { width: 6, height: 5, filter });
    expect(result.shape).toEqual([11, 5, 6, 3]);
    const values = await result.read();
    for (const [n, image] of images.entries())
      expect([...values.slice(n * 90, n * 90 + 90)]).toEqual(
        await read(resize(image, { width: 6, height: 5, filter })),
      );
    const sizes = images.map((_, n) => ({ width: n + 1, height: 7 }));
    const several = await resizeBatch(images, { sizes, filter });
    for (const [n, image] of images.entries()) {
      expect(several[n]!.shape).toEqual([7, n + 1, 3]);
      expect([...(await several[n]!.read())]).toEqual(
        await read(resize(image, { ...sizes[n]!, filter })),
      );
    }
    // From regions into a region of each image of a batch.
    using canvas = await device.zeros(u8, [2, 9, 9, 3]);
    const region = crop(canvas, { x: 2, y: 3, width: 6, height: 5 });
    await resizeBatch([crop(images[0]!, { x: 1, y: 1, width: 2, height: 2 }), images[1]!], {
      out: region,
      filter,
    });
    expect(await read(resize(images[1]!, { width: 6, height: 5, filter }))).toEqual(
      await read(region.slice(1).dup()),
    );
    for (const tensor of [...images, ...several, result]) tensor.close();
  });

  test('the same size gives the same image', async () => {
    const given = picture(f32, 9, 7, 3);
    using image = await device.tensor(f32, [...given.values], [9, 7, 3]);
    for (const filter of FILTERS)
      expect(await read(resize(image, { width: 7, height: 9, filter }))).toEqual(given.values);
  });

  test('ties are rounded to even', async () => {
    using image = await device.tensor(u8, [1, 2, 3, 4, 5, 6, 6, 7], [1, 8, 1]);
    expect(await read(resize(image, { width: 4, height: 1 }))).toEqual([2, 4, 6, 6]);
    expect(await read(resize(image, { width: 4, height: 1, filter: 'area' }))).toEqual([
      2, 4, 6, 6,
    ]);
  });

  test('images can come from operations, and be captured', async () => {
    await using graph = await resize(device.full(u8, [4, 4, 3], 9), { width: 2, height: 2 })
      .andThen((tensor) => tensor.dup())
      .capture();
    const result = await graph.replay();
    expect(Array.from((await (result as unknown as AnyTensor).read()) as Uint8Array)).toEqual(
      new Array(12).fill(9),
    );
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    const refused = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await refused(() => resize(image, { width: 2 }))).toContain(
      'options.height: expected a whole number from 1 to 32768',
    );
    expect(await refused(() => resize(image, { width: 0, height: 2 }))).toContain('options.width');
    expect(
      await refused(() => resize(image, { width: 2, height: 2, filter: 'bilinear' as never })),
    ).toContain('one of nearest, linear, cubic, lanczos3, area');
    using grey = await device.zeros(u8, [2, 2, 1]);
    expect(await refused(() => resize(image, { out: grey }))).toContain(
      'options.out: expected a Tensor of u8 and [2, 2, 3], for resize(…)',
    );
    using floats = await device.zeros(f32, [2, 2, 3]);
    expect(await refused(() => resize(image, { out: floats as never }))).toContain('options.out');
    expect(
      await refused(() => resize(image, { out: crop(image, { x: 0, y: 0, width: 2, height: 2 }) })),
    ).toContain('shares no pixels');
    expect(
      await refused(() => resize(image, { width: 2, height: 2, engine: 'cuda' as never })),
    ).toContain('one of own, npp');
    expect(await refused(() => resizeBatch([], { width: 2, height: 2 }))).toContain(
      'at least one image',
    );
    expect(await refused(() => resizeBatch([image, grey], { width: 2, height: 2 }))).toContain(
      'images[1]: expected an image of u8 with 3 channels as images[0] is',
    );
    expect(
      await refused(() => resizeBatch([image, floats as never], { width: 2, height: 2 })),
    ).toContain('convert(u8)');
    expect(await refused(() => resizeBatch([image], { sizes: [] }))).toContain(
      '1 sizes { width, height }',
    );
    expect(
      await refused(() => resizeBatch([image], { sizes: [{ width: 1, height: 0 }] })),
    ).toContain('options.sizes[0].height');
    using two = await device.zeros(u8, [2, 4, 4, 3]);
    expect(await refused(() => resizeBatch([two], { width: 2, height: 2 }))).toContain(
      'A batch takes resize(…).',
    );
    using none = await device.zeros(u8, [0, 4, 4, 3]);
    expect(await refused(() => resize(none, { width: 2, height: 2 }))).toContain(
      'at least one image',
    );
    expect(
      await refused(() => resize(device.value(none) as never, { width: 2, height: 2 })),
    ).toContain('at least one image');
  });
});
