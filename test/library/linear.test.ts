/** Linear layers, compared with JavaScript's in double precision within a bound. */
import { CudaArgumentError, DTYPES, Device, bf16, f16, f32, f64, i32 } from 'async-cuda';
import { linear } from 'async-cuda/library';
import type { ActivationName, LinearOptions } from 'async-cuda/library';
import type { KernelTensor } from 'async-cuda/tensor';
import { beforeAll, describe, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { openHopper } from '../kernels/hopper/hopper-device.js';

type Name = 'f16' | 'bf16' | 'f32' | 'f64';

/** The unit of the last place of a result, relative to it. */
const ULP: Readonly<Record<Name, number>> = { f16: 2 ** -10, bf16: 2 ** -7, f32: 1e-6, f64: 1e-12 };

function erf(x: number): number {
  // Its series, exact enough for the arguments of these tests.
  let [sum, term] = [0, x];
  for (let n = 0; n < 200; n++) {
    sum += term / (2 * n + 1);
    term *= -(x * x) / (n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}
const ACTIVATIONS: Readonly<Record<ActivationName | 'none', (x: number) => number>> = {
  none: (x) => x,
  relu: (x) => Math.max(x, 0),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  geluTanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
};

/** Sixteenths up to 1, which every dtype holds exactly. */
const numbers = (length: number, seed: number): number[] =>
  range(length).map((i) => ((((i + seed) * 7919 + Math.imul(i, i) * 31) % 33) - 16) / 16);

interface Case {
  readonly rows: number;
  readonly n: number;
  readonly k: number;
  readonly name: Name;
  readonly activation?: ActivationName | undefined;
  readonly biased?: Name | undefined;
}

async function check(
  device: Device,
  { rows, n, k, name, activation, biased }: Case,
): Promise<void> {
  const [xs, ws, bs] = [numbers(rows * k, 1), numbers(n * k, 2), numbers(n, 3)];
  const dtype = DTYPES[name];
  using x = await device.tensor(dtype, xs, [rows, k]);
  using w = await device.tensor(dtype, ws, [n, k]);
  using bias = await device.tensor(DTYPES[biased ?? name], bs);
  const options: LinearOptions = {
    ...(activation === undefined ? {} : { activation }),
    ...(biased === undefined ? {} : { bias: bias as never }),
  };
  using y = (await linear(x as never, w as never, options as never)) as unknown as KernelTensor;
  expect(y.shape).toEqual([rows, n]);
  expect(y.dtype).toBe(dtype);
  const given = (await y.read()) as ArrayLike<number>;
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < n; column++) {
      let sum = biased === undefined ? 0 : bs[column]!;
      for (let i = 0; i < k; i++) sum += xs[row * k + i]! * ws[column * k + i]!;
      const wanted = ACTIVATIONS[activation ?? 'none'](sum);
      // Sixteenths add without an error in f32; the activation has one.
      const bound = ULP[name] * Math.abs(wanted) + (name === 'f64' ? 1e-12 : 2e-6);
      const got = given[row * n + column]!;
      if (!(Math.abs(got - wanted) <= bound))
        expect.fail(`[${row}][${column}] of ${name}: ${got}, not ${wanted}`);
    }
}

const CASES: readonly Case[] = [
  { rows: 5, n: 7, k: 9, name: 'f32', activation: 'gelu', biased: 'f16' },
  { rows: 20, n: 24, k: 16, name: 'f16', activation: 'relu', biased: 'f16' },
  { rows: 3, n: 40, k: 72, name: 'bf16', activation: 'silu', biased: 'f32' },
  { rows: 130, n: 72, k: 136, name: 'f16', activation: 'geluTanh' },
  { rows: 17, n: 33, k: 40, name: 'bf16', biased: 'bf16' },
  { rows: 8, n: 8, k: 8, name: 'f64', activation: 'gelu', biased: 'f64' },
  { rows: 6, n: 6, k: 300, name: 'f32' },
];

onDevice('Linear layers', (host) => {
  let device: Device;
  let hopper: Device | undefined;
  beforeAll(async () => {
    device = Device.of(host.device);
    hopper = await openHopper();
    return () => hopper?.close();
  });

  describe('activation(x · weightsᵀ + bias)', () => {
    for (const each of CASES) {
      const { rows, n, k, name, activation, biased } = each;
      const what = `${activation ?? 'none'}, bias ${biased ?? 'none'}`;
      const title = `${rows} × ${n} × ${k} of ${name}, ${what}`;
      test(title, () => check(device, each));
      if (name === 'f16' || name === 'bf16')
        test(`by warp groups: ${title}`, async ({ skip }) => {
          if (hopper === undefined) skip('SKIPPED: no device of compute capability 9.0');
          await check(hopper!, each);
        });
    }

    test('axes before the last one, views, and an existing result', async () => {
      using all = await device.arange(f32, 24);
      const x = all.reshape([2, 3, 4]);
      using w = await device.tensor(f32, [1, 0, 0, 0, 0, 0, 0, 2], [2, 4]);
      using out = await device.uninitialized(f32, [2, 4, 2]);
      const y = await linear(x.permute([0, 2, 1]), await device.ones(f32, [2, 3]), { out });
      expect(y).toBe(out);
      expect([...(await out.read())].slice(0, 4)).toEqual([12, 12, 15, 15]);
      using z = await linear(x, w);
      expect(z.shape).toEqual([2, 3, 2]);
      expect([...(await z.read())]).toEqual([0, 6, 4, 14, 8, 22, 12, 30, 16, 38, 20, 46]);
    });

    test('no columns give the activation of the bias, and no rows nothing', async () => {
      using bias = await device.tensor(f32, [-1, 2]);
      using y = await linear(device.zeros(f32, [3, 0]), device.zeros(f32, [2, 0]), {
        bias,
        activation: 'relu',
      });
      expect([...(await y.read())]).toEqual([0, 2, 0, 2, 0, 2]);
      using none = await linear(device.zeros(f32, [0, 4]), device.zeros(f32, [2, 4]));
      expect(none.shape).toEqual([0, 2]);
    });
  });

  describe('what is refused', () => {
    const refused = async (run: () => unknown, argument: string, text: string): Promise<void> => {
      const error = await failure(async () => {
        await run();
      });
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect((error as CudaArgumentError).argument).toBe(argument);
      expect(error.message).toContain(text);
    };

    test('shapes, dtypes, a bias and activations that do not fit', async () => {
      using x = await device.zeros(f32, [2, 3]);
      using w = await device.zeros(f32, [4, 3]);
      using turned = await device.zeros(f32, [3, 4]);
      using half = await device.zeros(f16, [4, 3]);
      using short = await device.zeros(f32, [3]);
      using wide = await device.zeros(f64, [4]);
      using whole = await device.zeros(i32, [4]);
      using brain = await device.zeros(bf16, [2, 4]);
      await refused(() => linear(x, turned), 'weights', 'write linear(x, weights.transpose())');
      await refused(() => linear(x, half as never), 'weights', 'convert(f32)');
      await refused(() => linear(x, short as never), 'weights', 'two axes');
      await refused(() => linear(x, w, { bias: short }), 'options.bias', 'shape [4]');
      await refused(() => linear(x, w, { bias: wide }), 'options.bias', 'f16, bf16, f32');
      await refused(() => linear(x, w, { bias: whole as never }), 'options.bias', 'f16, bf16, f32');
      await refused(() => linear(x, w, { out: brain as never }), 'options.out', 'f32');
      await refused(
        () => linear(x, w, { activation: 'tanh' as never }),
        'options.activation',
        'relu, gelu, geluTanh, silu',
      );
      await refused(() => linear(x, w, { bais: short } as never), 'options.bais', 'bais');
    });
  });
});
