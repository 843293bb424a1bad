/** Products of tiles by dtypes: exact integers, what is refused, and reports. */
import {
  Device,
  bf16,
  f16,
  f32,
  f64,
  i16,
  i32,
  i8,
  input,
  output,
  tileKernel,
  u8,
} from 'async-cuda';
import type { DType } from 'async-cuda';
import { beforeAll, expect, test } from 'vitest';

import type { KernelDTypeName } from '../../src/core/index.js';
import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type Any = DType<KernelDTypeName>;

const product = (a: Any, b: Any, c: Any, precision?: 'exact' | 'tensor') => {
  const signature = {
    c: output(c as typeof i32),
    a: input(a as typeof i32),
    b: input(b as typeof i32),
  };
  const options = {
    axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
    tile: { m: 16, n: 16, k: { walk: 16 } },
  } as const;
  return precision === 'tensor'
    ? tileKernel(
        'product',
        signature,
        ({ c, a, b }, tile) => {
          let sum = 0;
          for (const part of tile.over('k'))
            sum = tile.dot(a.load(part), b.load(part), sum, { precision: 'tensor' });
          c.store(sum);
        },
        options,
      )
    : tileKernel(
        'product',
        signature,
        ({ c, a, b }, tile) => {
          let sum = 0;
          for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
          c.store(sum);
        },
        options,
      );
};

onDevice('Products of tiles by dtypes', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const [m, n, k] = [10, 18, 20];
  /** `a · b` modulo 2^32. */
  const wanted = (xs: readonly number[], ys: readonly number[]): number[] =>
    range(m).flatMap((row) =>
      range(n).map((column) =>
        range(k).reduce(
          (sum, p) => (sum + Math.imul(xs[row * k + p]!, ys[p * n + column]!)) | 0,
          0,
        ),
      ),
    );
  const values = (count: number, least: number, most: number): number[] =>
    range(count).map((i) => ((i * 7919 + (i % 101) * 31) % (most - least + 1)) + least);

  // Sums of i16 and i32 are beyond what f32 holds, and those of i32 wrap around.
  someOf(
    1,
    test,
  )([
    ['i32', i32, i32, -(2 ** 31), 2 ** 31 - 1],
    ['i8', i8, i8, -128, 127],
    ['u8 and i8', u8, i8, 0, 127],
    ['i16', i16, i16, -32768, 32767],
  ] as const)(
    'of %s are exact i32, on the device and in simulation',
    async (_, a, b, least, most) => {
      const kernel = product(a, b, i32);
      const [xs, ys] = [values(m * k, least, most), values(k * n, least, most)];
      using left = await device.tensor(a as typeof i32, xs, [m, k]);
      using right = await device.tensor(b as typeof i32, ys, [k, n]);
      using c = (await kernel({ a: left, b: right })).c;
      expect([...(await c.read())]).toEqual(wanted(xs, ys));
      const simulated = await kernel.simulate({
        c: { data: new Int32Array(m * n), shape: [m, n] },
        a: { data: await left.read(), shape: [m, k] },
        b: { data: await right.read(), shape: [k, n] },
      } as never);
      expect([...(simulated as { c: { data: Int32Array } }).c.data]).toEqual(wanted(xs, ys));
    },
  );

  test('of computed integers are exact, and of integers with a fraction are f32', async () => {
    const kernel = tileKernel(
      'computed',
      { c: output(i32), d: output(f32), a: input(i8), b: input(i8) },
      ({ c, d, a, b }, tile) => {
        const left = a.load() * 4096;
        let right = 0;
        right = b.load() + 100_000;
        c.store(tile.dot(left, right));
        d.store(tile.dot(left * 0.5, right));
      },
      {
        axes: { c: ['m', 'n'], d: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
        tile: { m: 16, n: 16, k: null },
      },
    );
    using a = await device.full(i8, [2, 3], 1);
    using b = await device.full(i8, [3, 2], 1);
    using outputs = await kernel({ a, b });
    expect([...(await outputs.c.read())]).toEqual(range(4).map(() => 3 * 4096 * 100_001));
    expect([...(await outputs.d.read())]).toEqual(
      range(4).map(() => Math.fround(3 * 2048 * 100_001)),
    );
  });

  const message = async (kernel: ReturnType<typeof product>, a: Any, b: Any): Promise<string> =>
    (
      await failure(() =>
        kernel({
          a: device.zeros(a as typeof i32, [8, 8]),
          b: device.zeros(b as typeof i32, [8, 8]),
        }),
      )
    ).message;

  test('of f64 are refused', async () => {
    const refused = await message(product(f64, f64, f64), f64, f64);
    expect(refused).toContain('dot multiplies elements of up to 32 bits, and these are f64');
    expect(refused).toContain('Convert them first: const v = tile.f32(x.load(part)).');
  });

  test('on tensor cores, of dtypes that have no instruction, are refused', async () => {
    expect(await message(product(i32, i32, i32, 'tensor'), i32, i32)).toContain(
      'Tensor cores have no product of i32 and i32: tile.dot(',
    );
    expect(await message(product(f16, bf16, f32, 'tensor'), f16, bf16)).toContain(
      'They multiply two tiles of f16, bf16, f32, i8, u8, f8e4m3, f8e5m2: of one dtype',
    );
  });

  test('a sum of floats does not begin a product of integers', async () => {
    const wrong = tileKernel(
      'wrong',
      { c: output(f32), a: input(i8), b: input(i8), bias: input(f32) },
      ({ c, a, b, bias }, tile) => {
        c.store(tile.dot(a.load(), b.load(), bias.load()));
      },
      {
        axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'], bias: ['n'] },
        tile: { m: 16, n: 16, k: null },
      },
    );
    const refused = await failure(() =>
      wrong({
        a: device.zeros(i8, [8, 8]),
        b: device.zeros(i8, [8, 8]),
        bias: device.zeros(f32, [8]),
      }),
    );
    expect(refused.message).toContain(
      'What is written to i32 elements is f32, and has to be an integer: bias.load()',
    );
  });
});
