/**
 * Operations on single pixels, compared with JavaScript in doubles: arithmetic, thresholds, dtypes,
 * channels, normalisation, blending.
 */
import { CudaArgumentError, Device, f16, f32, u16, u8 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import * as npp from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import type { ImageName } from '../../src/images/image.js';
import { failure, onDevice } from '../core/test-device.js';
import {
  DTYPES,
  LAYOUTS,
  NAMES,
  WHITE,
  expectStored,
  noise,
  pixels,
  upload,
  values,
} from './images.test-support.js';
import type { LayoutName, Pixels } from './images.test-support.js';
import { someOf } from '../random-runs.js';

const operations = {
  ...npp,
  add: npp.addImages,
  subtract: npp.subtractImages,
  multiply: npp.multiplyImages,
} as unknown as Readonly<Record<string, (...args: unknown[]) => DeviceOp<AnyTensor>>>;
const FORMS = NAMES.flatMap((name) => [1, 3, 4].map((channels) => [name, channels] as const));

/**
 * A number for each form, by which cases alternate: a kernel is compiled for every dtype, number of
 * channels, layout and function, and all combinations would take minutes. Every function is tested
 * with every dtype, and every dtype with every number of channels and every layout.
 */
const turnOf = (name: ImageName, channels: number): number =>
  NAMES.indexOf(name) + [1, 3, 4].indexOf(channels);

/** Each pixel of the second by a function of the first's. */
function mapped(
  { data, channels }: Pixels,
  f: (pixel: readonly number[], at: number) => readonly number[],
): number[] {
  const made: number[] = [];
  for (let i = 0; i < data.length; i += channels)
    made.push(...f([...data.subarray(i, i + channels)], i / channels));
  return made;
}

const pixelOf = ({ data, channels }: Pixels, index: number): number[] => [
  ...data.subarray(index * channels, (index + 1) * channels),
];

/** The channels first. */
function planar(
  { batch, height, width }: Pixels,
  made: readonly number[],
  channels: number,
): number[] {
  const size = height * width;
  return Array.from({ length: made.length }, (_, index) => {
    const [n, c, p] = [
      Math.floor(index / (size * channels)),
      Math.floor(index / size) % channels,
      index % size,
    ];
    return made[(n * size + p) * channels + c]!;
  }).slice(0, batch * size * channels);
}

onDevice('Pixels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const run = async (
    source: Pixels,
    name: ImageName,
    layout: LayoutName,
    use: (image: AnyTensor) => DeviceOp<AnyTensor>,
  ): Promise<number[]> => {
    const { image, whole } = await upload(device, name, source, layout);
    try {
      return await values(use(image));
    } finally {
      whole.close();
    }
  };
  const message = async (call: () => unknown): Promise<string> => {
    const error = await failure(call);
    expect(error).toBeInstanceOf(CudaArgumentError);
    return error.message;
  };

  const ARITHMETIC = {
    add: (x: number, y: number) => x + y,
    subtract: (x: number, y: number) => x - y,
    difference: (x: number, y: number) => Math.abs(x - y),
    multiply: (x: number, y: number) => x * y,
  } as const;

  someOf(1, test)(FORMS)(
    '%s of %i: arithmetic with images and constants',
    async (name, channels) => {
      const constants = [0.4, 1.7, -0.3, 0.25]
        .slice(0, channels)
        .map((each) => Math.fround(each * (name === 'u8' ? 100 : name === 'u16' ? 3e4 : 1)));
      for (const [turn, layout] of (['image', 'region'] as const).entries()) {
        const batch = layout === 'image' ? 1 : 2;
        const [x, y] = [noise(name, batch, 3, 7, channels), noise(name, batch, 3, 7, channels, 5)];
        const { image: other, whole } = await upload(
          device,
          name,
          y,
          layout === 'image' ? 'image' : 'batch',
        );
        for (const [index, [each, f]] of Object.entries(ARITHMETIC).entries()) {
          if ((index >> 1) % 2 !== (turn + turnOf(name, channels)) % 2) continue;
          const options = each === 'multiply' ? { scale: Math.fround(1 / WHITE[name]) } : {};
          const factor = options.scale ?? 1;
          if ((index + [1, 3, 4].indexOf(channels)) % 2 === 0) {
            expectStored(
              name,
              await run(x, name, layout, (image) => operations[each]!(image, other, options)),
              x.data.map((value, i) => f(value, y.data[i]!) * factor),
            );
            continue;
          }
          expectStored(
            name,
            await run(x, name, layout, (image) => operations[each]!(image, constants, options)),
            mapped(x, (pixel) => pixel.map((value, c) => f(value, constants[c]!) * factor)),
          );
          expectStored(
            name,
            await run(x, name, layout, (image) => operations[each]!(image, constants[0], options)),
            x.data.map((value) => f(value, constants[0]!) * factor),
          );
        }
        whole.close();
      }
    },
  );

  test('sums saturate, and halves are rounded to the even number', async () => {
    const source = pixels(1, 1, 8, 1, (_, _y, x) => [250, 255, 0, 5, 1, 2, 3, 4][x]!);
    expect(await run(source, 'u8', 'image', (image) => operations['add']!(image, 10))).toEqual([
      255, 255, 10, 15, 11, 12, 13, 14,
    ]);
    expect(await run(source, 'u8', 'image', (image) => operations['subtract']!(image, 3))).toEqual([
      247, 252, 0, 2, 0, 0, 0, 1,
    ]);
    expect(
      await run(source, 'u8', 'image', (image) => operations['multiply']!(image, 0.5)),
    ).toEqual([125, 128, 0, 2, 0, 1, 2, 2]);
    expect(
      await run(
        pixels(1, 1, 3, 1, (_, _y, x) => [65535, 60000, 1][x]!),
        'u16',
        'image',
        (image) => operations['multiply']!(image, 1.5),
      ),
    ).toEqual([65535, 65535, 2]);
  });

  someOf(1, test)(FORMS)('%s of %i: thresholds', async (name, channels) => {
    const source = noise(name, 2, 3, 6, channels);
    const limits = [0.5, 0.25, 0.75, 0.4]
      .slice(0, channels)
      .map((each) => Math.fround(each * WHITE[name]));
    const value = Math.fround(0.75 * WHITE[name]);
    const kinds = {
      binary: (x: number, limit: number, to: number) => (x > limit ? to : 0),
      binaryInverse: (x: number, limit: number, to: number) => (x > limit ? 0 : to),
      toZero: (x: number, limit: number) => (x > limit ? x : 0),
      toZeroInverse: (x: number, limit: number) => (x > limit ? 0 : x),
      truncate: (x: number, limit: number) => (x > limit ? limit : x),
    };
    for (const [index, [kind, f]] of Object.entries(kinds).entries()) {
      if ((index + turnOf(name, channels)) % 3 === 0) continue;
      if ((index + turnOf(name, channels)) % 3 === 1)
        expectStored(
          name,
          await run(source, name, 'batch', (image) =>
            operations['threshold']!(image, limits, { kind, value }),
          ),
          mapped(source, (pixel) => pixel.map((x, c) => f(x, limits[c]!, value))),
          0,
        );
      else
        expectStored(
          name,
          await run(source, name, 'region', (image) =>
            operations['threshold']!(image, limits[0], { kind }),
          ),
          mapped(source, (pixel) => pixel.map((x) => f(x, limits[0]!, WHITE[name]))),
          0,
        );
    }
  });

  test('a value that equals the threshold is not above it', async () => {
    expect(
      await run(
        pixels(1, 1, 3, 1, (_, _y, x) => 99 + x),
        'u8',
        'image',
        (image) => npp.threshold(image as never, 100) as never,
      ),
    ).toEqual([0, 0, 255]);
  });

  someOf(4, test)(NAMES.flatMap((from) => NAMES.map((to) => [from, to] as const)))(
    'rescale %s to %s',
    async (from, to) => {
      const turn = NAMES.indexOf(from) + NAMES.indexOf(to);
      for (const [channels, layout] of [
        (
          [
            [1, 'image'],
            [3, 'region'],
            [4, 'batch'],
          ] as const
        )[turn % 3]!,
      ]) {
        const source = noise(from, layout === 'image' ? 1 : 2, 3, 5, channels);
        const scale = Math.fround((WHITE[to] / WHITE[from]) * 1.1);
        const offset = Math.fround(-0.05 * WHITE[to]);
        expectStored(
          to,
          await run(source, from, layout, (image) =>
            operations['rescale']!(image, DTYPES[to], { scale, offset }),
          ),
          source.data.map((value) => value * scale + offset),
        );
        if (from === to)
          expectStored(
            to,
            await run(source, from, layout, (image) => operations['rescale']!(image, DTYPES[to])),
            source.data,
            0,
          );
      }
    },
  );

  test('numbers outside an integer dtype are saturated or refused', async () => {
    using image = await device.tensor(
      f32,
      [NaN, Infinity, -Infinity, -0.5, 0.5, 1.5, 254.5, 255.5, 1e30, 2.4999998, 65534.5, 7],
      [1, 12, 1],
    );
    expect(await values(npp.rescale(image, u8) as never)).toEqual([
      0, 255, 0, 0, 0, 2, 254, 255, 255, 2, 255, 7,
    ]);
    expect(await values(npp.rescale(image, u16) as never)).toEqual([
      0, 65535, 0, 0, 0, 2, 254, 256, 65535, 2, 65534, 7,
    ]);
    expect((await values(npp.rescale(image, f16) as never)).slice(0, 3)).toEqual([
      NaN,
      Infinity,
      -Infinity,
    ]);
  });

  someOf(1, test)(FORMS)(
    '%s of %i: channels in another order, planes and back',
    async (name, channels) => {
      const first = turnOf(name, channels);
      for (const [turn, layout] of [
        LAYOUTS[first % LAYOUTS.length]!,
        LAYOUTS[(first + 1) % LAYOUTS.length]!,
      ].entries()) {
        const source = noise(name, layout === 'image' ? 1 : 2, 3, 9, channels);
        for (const order of [
          [0],
          [channels - 1, 0, channels - 1],
          [0, channels - 1, 0, 0],
          [2, 1, 0].map((each) => Math.min(each, channels - 1)),
        ].filter((_, index) => index % 2 === turn)) {
          expectStored(
            name,
            await run(source, name, layout, (image) => operations['orderChannels']!(image, order)),
            mapped(source, (pixel) => order.map((c) => pixel[c]!)),
            0,
          );
        }
        const { image, whole } = await upload(device, name, source, layout);
        const planes = await npp.toPlanar(image);
        expect(planes.shape).toEqual([...image.shape.slice(0, -3), channels, 3, 9]);
        expectStored(
          name,
          Array.from((await planes.read()) as ArrayLike<number>),
          planar(source, [...source.data], channels),
          0,
        );
        expectStored(name, await values(npp.toPacked(planes) as never), source.data, 0);
        // A region of the planes.
        const part = (
          planes.reshape([planes.size / (channels * 27), channels, 3, 9] as never) as AnyTensor
        ).slice([null, null], [null, null], [1, 3], [2, 7]);
        const inside = mapped(source, (pixel) => pixel).filter((_, i) => {
          const at = Math.floor(i / channels) % 27;
          return at >= 9 && at % 9 >= 2 && at % 9 < 7;
        });
        expectStored(name, await values(npp.toPacked(part as never) as never), inside, 0);
        planes.close();
        whole.close();
      }
    },
  );

  test.each(NAMES)('%s: alpha', async (name) => {
    const source = noise(name, 2, 3, 5, 3);
    const alpha = name === 'u8' ? 100 : name === 'u16' ? 40000 : 0.25;
    expectStored(
      name,
      await run(source, name, 'region', (image) => operations['addAlpha']!(image, { alpha })),
      mapped(source, (pixel) => [...pixel, alpha]),
      0,
    );
    expectStored(
      name,
      await run(source, name, 'batch', (image) => operations['addAlpha']!(image)),
      mapped(source, (pixel) => [...pixel, WHITE[name]]),
      0,
    );
  });

  someOf(1, test)(FORMS)('%s of %i: normalise', async (name, channels) => {
    const [mean, deviation] = [
      [0.485, 0.456, 0.406, 0.5].slice(0, channels),
      [0.229, 0.224, 0.225, 0.25].slice(0, channels),
    ];
    for (const [turn, layout] of LAYOUTS.entries()) {
      const source = noise(name, layout === 'image' ? 1 : 2, 3, 6, channels);
      const expected = mapped(source, (pixel) =>
        pixel.map((x, c) => (x / WHITE[name] - mean[c]!) / deviation[c]!),
      );
      for (const [index, [to, dtype]] of (
        [
          ['f32', f32],
          ['f16', f16],
        ] as const
      ).entries()) {
        if ((turn + index + turnOf(name, channels)) % 2 === 0)
          expectStored(
            to,
            await run(source, name, layout, (image) =>
              operations['normalise']!(image, { mean, deviation, dtype }),
            ),
            planar(source, expected, channels),
          );
        else
          expectStored(
            to,
            await run(source, name, layout, (image) =>
              operations['normalise']!(image, { mean, deviation, dtype, order: 'nhwc' }),
            ),
            expected,
          );
      }
    }
    const source = noise(name, 1, 2, 3, channels);
    expectStored(
      'f32',
      await run(source, name, 'image', (image) =>
        operations['normalise']!(image, { scale: 2, mean: 1, deviation: 4, order: 'nhwc' }),
      ),
      source.data.map((x) => (x * 2 - 1) / 4),
    );
  });

  test('normalisation has the shapes of its options', async () => {
    using image = await device.zeros(u8, [4, 6, 3]);
    using batch = await device.zeros(u8, [2, 4, 6, 3]);
    const shapeOf = (op: DeviceOp<AnyTensor>): Promise<readonly number[]> =>
      op.andThen((tensor) => device.value([...tensor.shape])).then((shape) => shape);
    expect(await shapeOf(npp.normalise(image) as never)).toEqual([3, 4, 6]);
    expect(await shapeOf(npp.normalise(batch) as never)).toEqual([2, 3, 4, 6]);
    expect(await shapeOf(npp.normalise(batch, { order: 'nhwc' }) as never)).toEqual([2, 4, 6, 3]);
    using out = await device.zeros(f16, [2, 3, 4, 6]);
    expect(await npp.normalise(batch, { dtype: f16, mean: 1, out })).toBe(out);
    expect((await out.read())[143]).toBe(-1);
  });

  someOf(
    3,
    test,
  )(
    NAMES.flatMap((name) =>
      (
        [
          [1, 1],
          [3, 3],
          [3, 4],
          [4, 3],
          [4, 4],
        ] as const
      ).map(([front, back]) => [name, front, back] as const),
    ),
  )('%s: blend %i over %i', async (name, front, back) => {
    const white = WHITE[name];
    for (const [layout, opacity] of [
      ['image', 1],
      ['region', 0.375],
    ] as const) {
      const [above, below] = [noise(name, 1, 4, 6, front), noise(name, 1, 4, 6, back, 3)];
      const { image: under, whole } = await upload(device, name, below);
      const straight = mapped(above, (f, index) => {
        const b = pixelOf(below, index);
        const a = (front === 4 ? f[3]! / white : 1) * opacity;
        const rest = (back === 4 ? b[3]! / white : 1) * (1 - a);
        const sum = a + rest;
        return b.map((value, c) =>
          c === 3
            ? sum * white
            : sum === 0
              ? 0
              : ((f[c] ?? 0) * a + value * rest) / (back === 4 ? sum : 1),
        );
      });
      const premultiplied = mapped(above, (f, index) => {
        const a = (front === 4 ? f[3]! / white : 1) * opacity;
        return pixelOf(below, index).map((value, c) => (f[c] ?? white) * opacity + value * (1 - a));
      });
      if ((front + back + NAMES.indexOf(name) + (layout === 'image' ? 0 : 1)) % 2 === 0)
        expectStored(
          name,
          await run(above, name, layout, (image) =>
            operations['blend']!(image, under, { opacity }),
          ),
          straight,
        );
      else
        expectStored(
          name,
          await run(above, name, layout, (image) =>
            operations['blend']!(image, under, { opacity, premultiplied: true }),
          ),
          premultiplied,
        );
      whole.close();
    }
  });

  test('a region is copied into the adjacent one', async () => {
    using whole = await device.arange(u8, 48).map((numbers) => numbers.reshape([2, 8, 3]));
    const [left, right] = [0, 4].map((x) => npp.crop(whole, { x, y: 0, width: 4, height: 2 }));
    await npp.addImages(left!, 100, { out: right! });
    expect([...(await whole.read())]).toEqual(
      Array.from({ length: 48 }, (_, i) => (i % 24 < 12 ? i : i - 12 + 100)),
    );
  });

  test('wrong arguments are refused at the call', async () => {
    using image = await device.zeros(u8, [4, 4, 3]);
    using other = await device.zeros(u8, [4, 5, 3]);
    using grey = await device.zeros(u8, [4, 4, 1]);
    using floats = await device.zeros(f32, [4, 4, 3]);
    using planes = await device.zeros(u8, [3, 4, 5]);
    using none = await device.zeros(u8, [0, 4, 4, 3]);
    const of = (name: string, ...args: unknown[]) => message(() => operations[name]!(...args));
    expect(await of('add', image, other)).toContain(
      'other: expected an image of the size of image, 4 × 4 pixels, for add(…), got 5 × 4',
    );
    expect(await of('add', image, grey)).toContain('an image of u8 with 3 channels as image is');
    expect(await of('subtract', image, floats)).toContain('Convert it with convert(u8)');
    expect(await of('add', image, [1, 2])).toContain(
      'expected 3 numbers, one for each channel, got 2',
    );
    expect(await of('add', image, NaN)).toContain('a number that is finite');
    expect(await of('add', image, undefined)).toContain('an image, a number or a list');
    expect(await of('add', image, [])).toContain('other');
    expect(await of('multiply', image, 2, { scale: Infinity })).toContain('options.scale');
    expect(await of('add', none, 1)).toContain('at least one image in the batch');
    expect(await of('threshold', image, 'x')).toContain('limit');
    expect(await of('threshold', image, 1, { kind: 'otsu' })).toContain(
      'one of binary, binaryInverse, toZero, toZeroInverse, truncate',
    );
    expect(await of('rescale', image, 'f16')).toContain("Import f16 from 'async-cuda'");
    expect(await of('rescale', image, undefined)).toContain(
      'dtype: expected one of u8, u16, f16, f32',
    );
    expect(await of('rescale', image, u8, { scale: [1] })).toContain(
      'options.scale: expected 3 numbers',
    );
    expect(await of('orderChannels', image, [0, 1])).toContain('1, 3 or 4 numbers');
    expect(await of('orderChannels', image, [0, 1, 3])).toContain(
      'order[2]: expected a channel of the image, from 0 to 2',
    );
    expect(await of('addAlpha', grey)).toContain(
      "convertColor(image, { from: 'grey', to: 'rgba' })",
    );
    expect(await of('toPlanar', planes)).toContain('Its planes come first');
    expect(await of('toPacked', other.reshape([5, 4, 3] as never))).toContain(
      'Its channels come last',
    );
    expect(
      await of('toPacked', planes.slice([null, null], [null, null], [null, null, 2])),
    ).toContain('contiguous() first');
    expect(await of('normalise', image, { deviation: [1, 0, 1] })).toContain(
      'options.deviation: expected a number that is finite and not 0',
    );
    expect(await of('normalise', image, { mean: [1, 2] })).toContain(
      'options.mean: expected 3 numbers',
    );
    expect(await of('normalise', image, { dtype: u8 })).toContain(
      'options.dtype: expected one of f16, f32',
    );
    expect(await of('normalise', image, { order: 'chw' })).toContain('one of nchw, nhwc');
    expect(await of('normalise', image, { out: floats })).toContain('options.out');
    expect(await of('normalise', image, { deviation: 1e-320 })).toContain('f32 has');
    expect(await of('blend', image, other)).toContain('the size of front');
    expect(await of('blend', image, grey)).toContain('convertColor');
    expect(await of('blend', image, floats)).toContain('rescale(back, u8)');
    expect(await of('blend', image, image, { opacity: 2 })).toContain('from 0 to 1');
    expect(await of('blend', image, image, { opactiy: 2 })).toContain("Did you mean 'opacity'?");
  });
});
