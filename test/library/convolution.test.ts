/** Convolutions, compared with JavaScript in doubles. */
import { CudaArgumentError, Device, bf16, f16, f32, f64, i32 } from 'async-cuda';
import type { AnyTensor, DType, DeviceOp, Tensor } from 'async-cuda';
import { convolution2d } from 'async-cuda/library';
import type { Convolution2dOptions } from 'async-cuda/library';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

/** A convolution in NCHW, all sides given. */
interface Case {
  readonly images: number;
  readonly channels: number;
  readonly height: number;
  readonly width: number;
  readonly results: number;
  readonly rows: number;
  readonly columns: number;
  readonly stride: readonly [number, number];
  readonly padding: readonly [number, number, number, number];
  readonly dilation: readonly [number, number];
  readonly groups: number;
}

const PLAIN: Case = {
  images: 1,
  channels: 1,
  height: 5,
  width: 5,
  results: 1,
  rows: 3,
  columns: 3,
  stride: [1, 1],
  padding: [0, 0, 0, 0],
  dilation: [1, 1],
  groups: 1,
};

/** Small multiples of 1/16, so that their products are exact in f32. */
const numbers = (size: number, seed: number): number[] =>
  range(size).map((i) => (((Math.imul(i + seed, 2654435761) >>> 16) % 33) - 16) / 16);

function extents({
  height,
  width,
  rows,
  columns,
  stride,
  padding,
  dilation,
}: Case): [number, number] {
  return [
    Math.floor((height + padding[0] + padding[1] - (rows - 1) * dilation[0] - 1) / stride[0]) + 1,
    Math.floor((width + padding[2] + padding[3] - (columns - 1) * dilation[1] - 1) / stride[1]) + 1,
  ];
}

/** Results in NCHW, and the sum of the magnitudes of what was added for each. */
function reference(
  of: Case,
  x: readonly number[],
  weights: readonly number[],
  bias?: readonly number[],
): { sums: number[]; magnitudes: number[] } {
  const {
    images,
    channels,
    height,
    width,
    results,
    rows,
    columns,
    stride,
    padding,
    dilation,
    groups,
  } = of;
  const [down, across] = extents(of);
  const [sums, magnitudes]: [number[], number[]] = [[], []];
  for (let n = 0; n < images; n++) {
    for (let o = 0; o < results; o++) {
      const group = Math.floor(o / (results / groups));
      for (let y = 0; y < down; y++) {
        for (let z = 0; z < across; z++) {
          let sum = bias?.[o] ?? 0;
          let magnitude = Math.abs(sum);
          for (let row = 0; row < rows; row++) {
            const h = y * stride[0] - padding[0] + row * dilation[0];
            if (h < 0 || h >= height) continue;
            for (let column = 0; column < columns; column++) {
              const w = z * stride[1] - padding[2] + column * dilation[1];
              if (w < 0 || w >= width) continue;
              for (let c = 0; c < channels / groups; c++) {
                const product =
                  x[((n * channels + group * (channels / groups) + c) * height + h) * width + w]! *
                  weights[((o * (channels / groups) + c) * rows + row) * columns + column]!;
                sum += product;
                magnitude += Math.abs(product);
              }
            }
          }
          sums.push(sum);
          magnitudes.push(magnitude);
        }
      }
    }
  }
  return { sums, magnitudes };
}

const DIGITS: Readonly<Record<string, number>> = { f16: 11, bf16: 8, f32: 24 };

onDevice('Convolution', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<AnyTensor>): Promise<number[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number>);

  /** Both layouts: the same bits, and close to doubles. */
  async function check(of: Case, dtype: DType = f32, withBias = false): Promise<void> {
    const {
      images,
      channels,
      height,
      width,
      results,
      rows,
      columns,
      stride,
      padding,
      dilation,
      groups,
    } = of;
    const [down, across] = extents(of);
    const [values, factors, biases] = [
      numbers(images * channels * height * width, 1),
      numbers(results * (channels / groups) * rows * columns, 77),
      numbers(results, 5),
    ];
    using x = await device.tensor(dtype as typeof f32, values, [images, channels, height, width]);
    using weights = await device.tensor(dtype as typeof f32, factors, [
      results,
      channels / groups,
      rows,
      columns,
    ]);
    using bias = await device.tensor(dtype as typeof f32, biases);
    const options: Convolution2dOptions<'f32'> = {
      stride,
      padding,
      dilation,
      groups,
      ...(withBias ? { bias } : {}),
    };
    using out = await convolution2d(x, weights, options);
    expect(out.shape).toEqual([images, results, down, across]);
    expect(out.dtype).toBe(dtype);
    const given = Array.from(await out.read());
    const { sums, magnitudes } = reference(of, values, factors, withBias ? biases : undefined);
    const terms = (channels / groups) * rows * columns + 2;
    for (const [i, sum] of sums.entries()) {
      const error = terms * 2 ** -24 * magnitudes[i]! + 2 ** -DIGITS[dtype.name]! * Math.abs(sum);
      if (!(Math.abs(given[i]! - sum) <= error))
        throw new Error(
          `${JSON.stringify(of)} ${dtype.name}: element ${i} is ${given[i]}, not ${sum}`,
        );
    }
    using turned = await x.permute([0, 2, 3, 1]).contiguous();
    using last = await convolution2d(turned, weights, { ...options, layout: 'NHWC' });
    expect(last.shape).toEqual([images, down, across, results]);
    expect(await read(last.permute([0, 3, 1, 2]).contiguous() as never)).toEqual(given);
  }

  const cases: readonly [string, Partial<Case>][] = [
    ['one weight', { rows: 1, columns: 1 }],
    ['weights as large as the image', { rows: 5, columns: 5 }],
    ['padding of one side', { padding: [2, 0, 0, 1] }],
    ['padding that is wider than the image', { padding: [7, 7, 9, 9], stride: [3, 2] }],
    ['strides beyond the weights', { height: 20, width: 17, stride: [5, 4], rows: 2 }],
    ['dilation', { height: 9, width: 14, dilation: [2, 3], padding: [2, 2, 3, 3] }],
    [
      'colours',
      { images: 2, channels: 3, height: 11, width: 9, results: 16, padding: [1, 1, 1, 1] },
    ],
    ['a few results', { channels: 5, results: 7 }],
    [
      'tiles of 16 results',
      { images: 2, channels: 17, height: 13, width: 15, results: 18, padding: [1, 1, 1, 1] },
    ],
    [
      'tiles of 64 results',
      { channels: 20, results: 70, height: 9, width: 10, rows: 2, stride: [1, 2] },
    ],
    [
      'depthwise',
      {
        images: 2,
        channels: 6,
        results: 6,
        groups: 6,
        height: 12,
        width: 11,
        padding: [1, 1, 1, 1],
      },
    ],
    ['depthwise with three results each', { channels: 4, results: 12, groups: 4 }],
    ['groups with tiles', { channels: 6, results: 36, groups: 3, height: 8, width: 7 }],
  ];
  someOf(5, test)(cases)(
    '%s',
    async (_, of) => {
      await check({ ...PLAIN, ...of });
      await check({ ...PLAIN, ...of }, f32, true);
    },
    60_000,
  );

  test('tiles of 128 results', { tags: 'thorough' }, async () => {
    // There are enough pixels for such tiles to be chosen.
    await check({
      ...PLAIN,
      channels: 9,
      results: 130,
      height: 93,
      width: 92,
      rows: 1,
      columns: 1,
      images: 1,
    });
  });

  someOf(1, test)([f16, bf16])(
    '$name',
    async (dtype) => {
      await check(
        { ...PLAIN, channels: 20, results: 12, height: 7, width: 8, padding: [1, 1, 1, 1] },
        dtype,
        true,
      );
      await check({ ...PLAIN, channels: 4, results: 4, groups: 4 }, dtype, true);
    },
    60_000,
  );

  test('whatever the shape', { tags: 'random' }, async () => {
    const pair = (least: number, most: number) =>
      fc.tuple(fc.integer({ min: least, max: most }), fc.integer({ min: least, max: most }));
    const shapes = fc.record({
      images: fc.integer({ min: 1, max: 3 }),
      inGroup: fc.integer({ min: 1, max: 9 }),
      outOfGroup: fc.integer({ min: 1, max: 20 }),
      groups: fc.integer({ min: 1, max: 3 }),
      size: pair(1, 10),
      weights: pair(1, 4),
      stride: pair(1, 3),
      vertical: pair(0, 3),
      horizontal: pair(0, 3),
      dilation: pair(1, 3),
      dtype: fc.constantFrom<DType>(f32, f16, bf16),
      bias: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        shapes,
        async ({
          images,
          inGroup,
          outOfGroup,
          groups,
          size: [height, width],
          weights: [rows, columns],
          stride,
          vertical,
          horizontal,
          dilation,
          dtype,
          bias,
        }) => {
          const of: Case = {
            images,
            channels: inGroup * groups,
            height,
            width,
            results: outOfGroup * groups,
            rows,
            columns,
            stride,
            padding: [...vertical, ...horizontal],
            dilation,
            groups,
          };
          fc.pre(extents(of).every((extent) => extent > 0));
          await check(of, dtype, bias);
        },
      ),
      { numRuns: 12 },
    );
  });

  test('views, operations, and short forms of options', async () => {
    const values = numbers(2 * 6 * 7 * 8, 3);
    using x = await device.tensor(f32, values, [2, 6, 7, 8]);
    using weights = await device.tensor(f32, numbers(4 * 6 * 9, 9), [4, 6, 3, 3]);
    const whole = await read(
      convolution2d(x, weights, { stride: 2, padding: 1, dilation: 1 }) as never,
    );
    expect(
      await read(
        convolution2d(device.value(x), device.value(weights), {
          stride: [2, 2],
          padding: [1, 1],
        }) as never,
      ),
    ).toEqual(whole);
    expect(
      await read(convolution2d(x, weights, { stride: 2, padding: [1, 1, 1, 1] }) as never),
    ).toEqual(whole);
    // Every second channel, columns and rows exchanged, weights too.
    const part = x.slice(null, [0, 6, 2]).transpose();
    const turned = weights.slice(null, [0, 3]).transpose();
    using dense = await part.contiguous();
    using denseWeights = await turned.contiguous();
    expect(
      await read(convolution2d(part as Tensor<'f32'>, turned as Tensor<'f32'>) as never),
    ).toEqual(
      await read(convolution2d(dense as Tensor<'f32'>, denseWeights as Tensor<'f32'>) as never),
    );
    using ofBias = await device.tensor(f32, [1, 2, 3, 4]);
    const shifted = await read(
      convolution2d(x, weights, { stride: 2, padding: 1, bias: device.value(ofBias) }) as never,
    );
    expect(shifted).toEqual(
      whole.map((value, i) => Math.fround(value + 1 + (Math.floor(i / 16) % 4))),
    );
  }, 60_000);

  test('an activation follows the bias', async () => {
    using x = await device.tensor(f16, [-3, 1, 2, 0.5], [1, 1, 2, 2]);
    using weights = await device.tensor(f16, [2, -1], [2, 1, 1, 1]);
    using bias = await device.tensor(f16, [1, 1]);
    const relu = convolution2d(x, weights, { bias, activation: 'relu', precision: 'exact' });
    expect(await read(relu as never)).toEqual([0, 3, 5, 2, 4, 0, 0, 0.5]);
  });

  test('into an existing tensor, again and again', async () => {
    // Few results of a group, and tiles.
    for (const results of [2, 20]) {
      using x = await device.ones(f32, [1, 3, 4, 4]);
      using weights = await device.ones(f32, [results, 3, 2, 2]);
      using bias = await device.full(f32, [results], 0.5);
      using out = await device.full(f32, [1, results, 3, 3], 9);
      for (const [options, added] of [
        [{ out }, 0],
        [{ out, bias }, 0.5],
        [{ out, bias, activation: 'relu' }, 0.5],
      ] as const) {
        const op = convolution2d(x, weights, options);
        for (const value of [1, 2, 3]) {
          await x.fill(value);
          await out.fill(9);
          expect(await op).toBe(out);
          expect(new Set(await out.read())).toEqual(new Set([12 * value + added]));
        }
      }
    }
  });

  test('empty tensors', async () => {
    using weights = await device.ones(f32, [2, 3, 1, 1]);
    using none = await convolution2d(device.zeros(f32, [0, 3, 4, 4]), weights);
    expect(none.shape).toEqual([0, 2, 4, 4]);
    using noResults = await convolution2d(
      device.zeros(f32, [1, 3, 4, 4]),
      device.zeros(f32, [0, 3, 1, 1]),
    );
    expect(noResults.shape).toEqual([1, 0, 4, 4]);
    using bias = await device.tensor(f32, [3]);
    expect(
      await read(
        convolution2d(device.zeros(f32, [1, 0, 1, 2]), device.zeros(f32, [1, 0, 1, 1]), {
          bias,
        }) as never,
      ),
    ).toEqual([3, 3]);
    expect(
      await read(
        convolution2d(device.zeros(f32, [1, 1, 0, 2]), device.ones(f32, [1, 1, 1, 1]), {
          padding: 1,
        }) as never,
      ),
    ).toEqual(new Array(8).fill(0));
  }, 60_000);

  test('wrong arguments are refused at the call', async () => {
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    using x = await device.zeros(f32, [1, 4, 5, 6]);
    using weights = await device.zeros(f32, [6, 4, 3, 3]);
    using half = await device.zeros(f16, [6, 4, 3, 3]);
    using double = await device.zeros(f64, [1, 4, 5, 6]);
    using whole = await device.zeros(i32, [1, 4, 5, 6]);
    using seven = await device.zeros(f32, [7]);
    expect(await message(() => convolution2d(x.squeeze(0) as never, weights))).toContain(
      'x: expected 4 axes, NCHW, for convolution2d(…)',
    );
    expect(await message(() => convolution2d(x.squeeze(0) as never, weights))).toContain(
      'unsqueeze(0)',
    );
    expect(await message(() => convolution2d([1] as never, weights))).toContain(
      'x: expected a Tensor',
    );
    expect(await message(() => convolution2d(double as never, weights))).toContain(
      'Convert it with convert(f32).',
    );
    expect(await message(() => convolution2d(whole as never, weights))).toContain(
      'f16, bf16 or f32',
    );
    expect(await message(() => convolution2d(x, half as never))).toContain(
      'weights: expected a Tensor of f32, as x is',
    );
    expect(await message(() => convolution2d(x, weights, { groups: 3 }))).toContain(
      'options.groups: expected a divisor of the 4 channels of x, got 3',
    );
    expect(await message(() => convolution2d(x, weights, { groups: 4 }))).toContain(
      'options.groups: expected a divisor of the 6 results of weights',
    );
    expect(await message(() => convolution2d(x, weights, { groups: 2 }))).toContain(
      'weights: expected 2 channels on axis 1',
    );
    expect(await message(() => convolution2d(x, weights, { layout: 'NHWC' }))).toContain(
      'weights: expected 6 channels on axis 1',
    );
    expect(await message(() => convolution2d(x, weights, { layout: 'HWC' as never }))).toContain(
      'options.layout',
    );
    expect(await message(() => convolution2d(x, weights, { dilation: [3, 1] }))).toContain(
      'weights: expected at most the 5 rows that images have with their padding, got 7. 3 ' +
        'weights reach over so many with a dilation of 3.',
    );
    expect(await message(async () => convolution2d(x, device.zeros(f32, [6, 4, 3, 7])))).toContain(
      'weights: expected at most the 6 columns',
    );
    expect(await message(async () => convolution2d(x, device.zeros(f32, [6, 4, 0, 3])))).toContain(
      'weights: expected at least one of rows',
    );
    expect(await message(() => convolution2d(x, weights, { bias: seven }))).toContain(
      'options.bias: expected 6 elements',
    );
    expect(await message(() => convolution2d(x, weights, { bias: x }))).toContain(
      'options.bias: expected one axis',
    );
    using square = await device.zeros(f32, [4, 4, 3, 3]);
    expect(await message(() => convolution2d(x, square, { out: x }))).toContain('options.out');
    expect(await message(() => convolution2d(x, square, { out: x, padding: 1 }))).toContain(
      'options.out: expected a Tensor that has no memory in common with x',
    );
    expect(await message(() => convolution2d(x, weights, { stride: 0 }))).toContain(
      'options.stride',
    );
    expect(
      await message(() => convolution2d(x, weights, { stride: [1, 2, 3] as never })),
    ).toContain('options.stride: expected a whole number or a list of 2');
    expect(
      await message(() => convolution2d(x, weights, { padding: [1, 2, 3] as never })),
    ).toContain('options.padding: expected a whole number or a list of 2 or 4');
    expect(await message(() => convolution2d(x, weights, { padding: -1 }))).toContain(
      'options.padding',
    );
    expect(await message(() => convolution2d(x, weights, { padding: [0, 0, 0.5, 0] }))).toContain(
      'options.padding[2]',
    );
    expect(
      await message(() => convolution2d(x, weights, { activation: 'tanh' as never })),
    ).toContain('options.activation: expected relu, gelu, geluTanh, silu');
    expect(
      await message(() => convolution2d(x, weights, { precision: 'tf32' as never })),
    ).toContain('options.precision: expected one of tensor, exact');
    expect(await message(() => convolution2d(x, weights, { strides: 2 } as never))).toContain(
      "Did you mean 'stride'?",
    );
  });
});
