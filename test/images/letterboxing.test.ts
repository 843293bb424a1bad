/** Letterbox and normalisation in one kernel, compared with JavaScript in doubles. */
import { CudaArgumentError, Device, f16, f32, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import {
  crop,
  letterboxNormalise,
  letterboxNormaliseBatch,
  letterboxPlacement,
} from 'async-cuda/images';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import {
  LAYOUTS,
  NAMES,
  WHITE,
  at,
  expectStored,
  noise,
  upload,
  values,
} from './images.test-support.js';
import type { Pixels } from './images.test-support.js';
import { someOf } from '../random-runs.js';

const MEAN = [0.485, 0.456, 0.406, 0.5];
const DEVIATION = [0.229, 0.224, 0.225, 0.25];

/** [image, row, column, channel], not rounded. */
function expected(
  source: Pixels,
  [height, width]: readonly [number, number],
  white: number,
  colour: number,
): number[] {
  const scale = Math.min(width / source.width, height / source.height);
  const [innerWidth, innerHeight] = [
    Math.max(1, Math.round(source.width * scale)),
    Math.max(1, Math.round(source.height * scale)),
  ];
  const [left, top] = [
    Math.floor((width - innerWidth) / 2),
    Math.floor((height - innerHeight) / 2),
  ];
  const made: number[] = [];
  const tap = (position: number, extent: number): readonly [number, number, number] => {
    const whole = Math.floor(position);
    return [Math.max(0, whole), Math.min(extent - 1, whole + 1), position - whole];
  };
  for (let n = 0; n < source.batch; n++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const inside = x >= left && x < left + innerWidth && y >= top && y < top + innerHeight;
        const [x0, x1, fx] = tap(
          ((x - left + 0.5) * source.width) / innerWidth - 0.5,
          source.width,
        );
        const [y0, y1, fy] = tap(
          ((y - top + 0.5) * source.height) / innerHeight - 0.5,
          source.height,
        );
        for (let c = 0; c < source.channels; c++) {
          const of = (row: number): number =>
            at(source, n, row, x0, c) * (1 - fx) + at(source, n, row, x1, c) * fx;
          made.push(
            ((inside ? of(y0) * (1 - fy) + of(y1) * fy : colour) / white - MEAN[c]!) /
              DEVIATION[c]!,
          );
        }
      }
    }
  }
  return made;
}

function planar(made: readonly number[], size: number, channels: number): number[] {
  return made.map(
    (_, index) =>
      made[
        (Math.floor(index / (size * channels)) * size + (index % size)) * channels +
          (Math.floor(index / size) % channels)
      ]!,
  );
}

onDevice('Letterbox and normalisation', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const SIZES = [
    [
      [8, 12],
      [9, 9],
    ],
    [
      [12, 8],
      [9, 9],
    ],
    [
      [3, 5],
      [16, 20],
    ],
    [
      [1, 1],
      [4, 6],
    ],
    [
      [2, 2],
      [2, 2],
    ],
    [
      [31, 17],
      [5, 7],
    ],
    [
      [7, 1],
      [6, 6],
    ],
    [
      [1, 40],
      [10, 10],
    ],
    [
      [20, 300],
      [140, 150],
    ],
  ] as const;

  someOf(1, test)(NAMES.flatMap((name) => [1, 3, 4].map((channels) => [name, channels] as const)))(
    '%s of %i',
    async (name, channels) => {
      const [mean, deviation] = [MEAN.slice(0, channels), DEVIATION.slice(0, channels)];
      const colour = name === 'u8' ? 114 : name === 'u16' ? 30000 : 0.25;
      for (const [index, [[height, width], box]] of SIZES.entries()) {
        const layout = LAYOUTS[index % 3]!;
        const source = noise(name, layout === 'image' ? 1 : 2, height, width, channels, index + 1);
        const { image, whole } = await upload(device, name, source, layout);
        const reference = expected(source, box, WHITE[name], colour);
        const options = { width: box[1], height: box[0], mean, deviation, color: colour };
        const made = await letterboxNormalise(image, options);
        expect(made.shape).toEqual([...image.shape.slice(0, -3), channels, ...box]);
        expectStored(
          'f16',
          Array.from((await made.read()) as ArrayLike<number>),
          planar(reference, box[0] * box[1], channels),
          4e-6,
        );
        made.close();
        if (index < 3)
          expectStored(
            'f32',
            await values(
              letterboxNormalise(image, { ...options, dtype: f32, order: 'nhwc' }) as never,
            ),
            reference,
            4e-6,
          );
        whole.close();
      }
    },
  );

  test('images of u8 can begin and end at any byte', async () => {
    for (const [height, width, x] of [
      [4, 8, 0],
      [4, 8, 1],
      [4, 8, 4],
      [3, 7, 0],
      [5, 12, 0],
    ] as const) {
      for (const channels of [3, 4]) {
        const source = noise('u8', 1, height, width, channels);
        const { image } = await upload(device, 'u8', source);
        const view = crop(image as never, { x, y: 1, width: width - x, height: height - 1 });
        const part: Pixels = {
          ...source,
          height: height - 1,
          width: width - x,
          data: Float64Array.from({ length: (height - 1) * (width - x) * channels }, (_, i) =>
            at(
              source,
              0,
              1 + Math.floor(i / ((width - x) * channels)),
              x + (Math.floor(i / channels) % (width - x)),
              i % channels,
            ),
          ),
        };
        expectStored(
          'f32',
          await values(
            letterboxNormalise(view as never, {
              width: 9,
              height: 6,
              mean: MEAN.slice(0, channels),
              deviation: DEVIATION.slice(0, channels),
              dtype: f32,
            }) as never,
          ),
          planar(expected(part, [6, 9], 255, 0), 54, channels),
          4e-6,
        );
        image.close();
      }
    }
  });

  test(
    'images of several sizes make a batch, each as it is alone',
    { tags: 'thorough' },
    async () => {
      const sizes = SIZES.map(([size]) => size);
      for (const [name, channels, counts] of [
        ['u8', 3, [1, 8, 17]],
        ['u8', 1, [3]],
        ['u8', 4, [9]],
        ['u16', 3, [3]],
        ['f32', 4, [2]],
      ] as const) {
        const options = {
          width: 9,
          height: 7,
          mean: MEAN.slice(0, channels),
          deviation: DEVIATION.slice(0, channels),
          color: name === 'f32' ? 0.25 : 114,
          dtype: f32,
        } as const;
        // Fewer than a launch has, as many, and more.
        for (const count of counts) {
          for (const order of ['nchw', 'nhwc'] as const) {
            const images = await Promise.all(
              Array.from(
                { length: count },
                async (_, i) =>
                  (
                    await upload(
                      device,
                      name,
                      noise(
                        name,
                        1,
                        sizes[(i + count) % sizes.length]![0],
                        sizes[(i + count) % sizes.length]![1],
                        channels,
                        i + 1,
                      ),
                      'image',
                    )
                  ).image as never,
              ),
            );
            const batch = await letterboxNormaliseBatch(images, { ...options, order });
            expect(batch.shape).toEqual([
              count,
              ...(order === 'nchw' ? [channels, 7, 9] : [7, 9, channels]),
            ]);
            const made = await batch.read();
            const each = made.length / count;
            for (const [i, image] of images.entries()) {
              const alone = await letterboxNormalise(image as AnyTensor as never, {
                ...options,
                order,
              });
              expect(
                made.slice(i * each, (i + 1) * each),
                `${name} of ${channels}, image ${i} of ${count}, ${order}`,
              ).toEqual(await alone.read());
              alone.close();
              (image as AnyTensor).close();
            }
            batch.close();
          }
        }
      }
    },
  );

  test('a batch can mix rows at multiples of four bytes with others', async () => {
    const images = await Promise.all(
      (
        [
          [4, 8],
          [5, 7],
          [3, 12],
        ] as const
      ).map(
        async ([height, width], i) =>
          (await upload(device, 'u8', noise('u8', 1, height, width, 3, i + 1), 'image'))
            .image as never,
      ),
    );
    const options = { width: 8, height: 6, dtype: f32 };
    const made = await letterboxNormaliseBatch(images, options);
    const all = await made.read();
    for (const [i, image] of images.entries()) {
      const alone = await values(letterboxNormalise(image as never, options) as never);
      // The weights are the same for words and bytes.
      expect([...all.slice(i * 144, (i + 1) * 144)]).toEqual([...alone]);
    }
    const views = images.map((image) =>
      crop(image as never, { x: 1, y: 1, width: 3, height: 2 }),
    ) as never[];
    using out = await device.zeros(f32, [5, 3, 6, 8]);
    const into = out.slice([1, 4]);
    expect(await letterboxNormaliseBatch(views, { ...options, out: into as never })).toBe(into);
    const written = await out.read();
    for (const [i, view] of views.entries())
      expect([...written.slice((i + 1) * 144, (i + 2) * 144)]).toEqual([
        ...(await values(letterboxNormalise(view as never, options) as never)),
      ]);
    expect([...written.slice(0, 144), ...written.slice(4 * 144)].every((each) => each === 0)).toBe(
      true,
    );
    made.close();
    for (const image of images) (image as AnyTensor).close();
  });

  test('the place of an image in the letterbox', { tags: 'random' }, () => {
    expect(letterboxPlacement({ width: 1920, height: 1080 }, { width: 640, height: 640 })).toEqual({
      left: 0,
      top: 140,
      width: 640,
      height: 360,
    });
    expect(letterboxPlacement({ width: 3, height: 1 }, { width: 4, height: 4 })).toEqual({
      left: 0,
      top: 1,
      width: 4,
      height: 1,
    });
    expect(letterboxPlacement({ width: 1, height: 10000 }, { width: 8, height: 8 })).toEqual({
      left: 3,
      top: 0,
      width: 1,
      height: 8,
    });
    const size = fc.record({
      width: fc.integer({ min: 1, max: 32768 }),
      height: fc.integer({ min: 1, max: 32768 }),
    });
    fc.assert(
      fc.property(size, size, (image, box) => {
        const { left, top, width, height } = letterboxPlacement(image, box);
        expect(width === box.width || height === box.height).toBe(true);
        expect(width <= box.width && height <= box.height && width >= 1 && height >= 1).toBe(true);
        for (const [before, inner, all] of [
          [left, width, box.width],
          [top, height, box.height],
        ] as const) {
          const after = all - inner - before;
          expect(after - before === 0 || after - before === 1).toBe(true);
        }
      }),
    );
  });

  test('the result can be an existing tensor', async () => {
    using batch = await device.full(u8, [2, 4, 4, 3], 255);
    using out = await device.zeros(f16, [2, 3, 4, 8]);
    expect(await letterboxNormalise(batch, { width: 8, height: 4, out })).toBe(out);
    expect([...(await out.read())].slice(0, 8)).toEqual([0, 0, 1, 1, 1, 1, 0, 0]);
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    using none = await device.zeros(u8, [0, 4, 4, 3]);
    const message = async (options: unknown, given: unknown = image): Promise<string> => {
      const error = await failure(() =>
        (letterboxNormalise as (...args: unknown[]) => DeviceOp<AnyTensor>)(given, options),
      );
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message({ width: 4 })).toContain('options.height');
    expect(await message({})).toContain('options.width');
    expect(await message({ width: 0, height: 4 })).toContain('options.width');
    expect(await message({ width: 4, height: 4, dtype: u8 })).toContain(
      'options.dtype: expected one of f16, f32',
    );
    expect(await message({ width: 4, height: 4, color: [1, 2] })).toContain(
      'options.color: expected 3 numbers',
    );
    expect(await message({ width: 4, height: 4, deviation: 0 })).toContain('options.deviation');
    expect(await message({ width: 4, height: 4, order: 'chw' })).toContain('options.order');
    expect(await message({ width: 4, height: 4, out: image })).toContain('options.out');
    expect(await message({ width: 4, height: 4, colour: 3 })).toContain("Did you mean 'color'?");
    expect(await message({ width: 4, height: 4 }, none)).toContain(
      'at least one image in the batch',
    );
    expect(await message({ width: 4, height: 4, engine: 'npp' })).toContain("'own' has it");
  });

  test('a wrong one of several is refused at the call, with its index', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    using grey = await device.zeros(u8, [4, 4, 1]);
    using batch = await device.zeros(u8, [2, 4, 4, 3]);
    const message = async (
      images: unknown,
      options: unknown = { width: 4, height: 4 },
    ): Promise<string> => {
      const error = await failure(() =>
        (letterboxNormaliseBatch as (...args: unknown[]) => DeviceOp<AnyTensor>)(images, options),
      );
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message([])).toContain(
      'images: expected a list of at least one image, for letterboxNormaliseBatch(…)',
    );
    expect(await message(image)).toContain('images: expected a list of at least one image');
    expect(await message([image, batch])).toContain('A batch takes letterboxNormalise(…)');
    expect(await message([image, grey])).toContain(
      'images[1]: expected an image of u8 with 3 channels as images[0] is',
    );
    expect(await message([image, 3])).toContain(
      'images[1]: expected a Tensor, for letterboxNormaliseBatch(…)',
    );
    expect(await message([image, image], { width: 4 })).toContain('options.height');
    expect(await message([image, image], { width: 4, height: 4, mean: [1, 2] })).toContain(
      'options.mean: expected 3 numbers',
    );
    using out = await device.zeros(f16, [1, 3, 4, 4]);
    expect(await message([image, image], { width: 4, height: 4, out })).toContain(
      'options.out: expected a Tensor of f16 and [2, 3, 4, 4]',
    );
    expect(await message([image, image], { width: 4, height: 4, engine: 'npp' })).toContain(
      "'own' has it",
    );
  });
});
