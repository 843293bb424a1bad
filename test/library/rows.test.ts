/** Softmax and norms of rows, compared with JavaScript in doubles. */
import { CudaArgumentError, Device, bf16, f16, f32, f64, f8e4m3, i32 } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import * as library from 'async-cuda/library';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const total = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

function softmax(row: readonly number[]): number[] {
  const greatest = Math.max(...row);
  const powers = row.map((value) => Math.exp(value - greatest));
  const sum = total(powers);
  return powers.map((value) => value / sum);
}
const logSoftmax = (row: readonly number[]): number[] => softmax(row).map(Math.log);
function layerNorm(row: readonly number[], eps = 1e-5): number[] {
  const mean = total(row) / row.length;
  const variance = total(row.map((value) => (value - mean) ** 2)) / row.length;
  return row.map((value) => (value - mean) / Math.sqrt(variance + eps));
}
function rmsNorm(row: readonly number[], eps = 1e-6): number[] {
  const square = total(row.map((value) => value * value)) / row.length;
  return row.map((value) => value / Math.sqrt(square + eps));
}

const FUNCTIONS = {
  softmax,
  logSoftmax,
  layerNorm: (row: readonly number[]) => layerNorm(row),
  rmsNorm: (row: readonly number[]) => rmsNorm(row),
} as const;
type Name = keyof typeof FUNCTIONS;
const NAMES = Object.keys(FUNCTIONS) as Name[];
const of = (name: Name): ((x: unknown, options?: unknown) => DeviceOp<AnyTensor>) =>
  library[name] as never;

const numbers = (size: number): number[] =>
  range(size).map((i) => (((i * 7919) % 1009) - 504) / 128);

onDevice('Rows', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<AnyTensor>): Promise<number[]> =>
    Array.from((await op.andThen((tensor) => tensor.read())) as ArrayLike<number>);
  const byRows = (
    f: (row: readonly number[]) => number[],
    values: readonly number[],
    columns: number,
  ): number[] =>
    range(values.length / columns).flatMap((row) =>
      f(values.slice(row * columns, (row + 1) * columns)),
    );
  const close = (given: readonly number[], expected: readonly number[], error: number): void => {
    expect(given.length).toBe(expected.length);
    expect(
      Math.max(
        0,
        ...given.map(
          (value, i) => Math.abs(value - expected[i]!) / Math.max(1, Math.abs(expected[i]!)),
        ),
      ),
    ).toBeLessThan(error);
  };

  someOf(
    2,
    test,
  )([
    [1, 1],
    [5, 3],
    [3, 31],
    [7, 32],
    [2, 33],
    [5, 64],
    [9, 128],
    [3, 130],
    [2, 1000],
    [3, 1024],
    [2, 1025],
    [2, 4096],
    [1, 5000],
    [2, 8192],
    [1, 16384],
    [1, 32767],
    [1, 33001],
  ])('%i rows of %i', async (rows, columns) => {
    const values = [...Float32Array.from(numbers(rows * columns))];
    using x = await device.tensor(f32, values, [rows, columns]);
    for (const name of NAMES)
      close(await read(of(name)(x)), byRows(FUNCTIONS[name], values, columns), 2e-5);
  });

  someOf(
    1,
    test,
  )([
    [f16, 2e-3],
    [bf16, 2e-2],
    [f8e4m3, 0.2],
    [f64, 1e-12],
  ] as const)('$0.name', async (dtype, error) => {
    for (const columns of [40, 96, 2000]) {
      using x = await device.tensor(dtype, numbers(2 * columns), [2, columns]);
      const values = Array.from(await x.read());
      for (const name of NAMES)
        close(await read(of(name)(x)), byRows(FUNCTIONS[name], values, columns), error);
    }
  });

  test('the rows of f64 that registers do not hold', async () => {
    const values = numbers(17000);
    using x = await device.tensor(f64, values);
    for (const name of NAMES) close(await read(of(name)(x)), FUNCTIONS[name](values), 1e-10);
  });

  test('weights and biases', async () => {
    for (const columns of [6, 200, 33001]) {
      const [values, weights, biases] = [
        numbers(2 * columns),
        numbers(columns).map((value) => value + 1),
        numbers(columns).reverse(),
      ];
      using x = await device.tensor(f32, values, [2, columns]);
      using weight = await device.tensor(f32, weights);
      using bias = await device.tensor(f32, biases);
      const weighted = (f: typeof layerNorm, eps?: number) =>
        byRows((row) => f(row, eps).map((value, i) => value * weights[i]!), values, columns);
      close(
        await read(of('layerNorm')(x, { weight, bias, eps: 0.1 })),
        weighted(layerNorm, 0.1).map((value, i) => value + biases[i % columns]!),
        5e-5,
      );
      close(
        await read(of('layerNorm')(x, { weight: device.value(weight) })),
        weighted(layerNorm),
        5e-5,
      );
      close(
        await read(of('layerNorm')(x, { bias })),
        byRows(layerNorm, values, columns).map((value, i) => value + biases[i % columns]!),
        5e-5,
      );
      close(await read(of('rmsNorm')(x, { weight })), weighted(rmsNorm), 5e-5);
    }
  });

  test('views, and empty tensors', async () => {
    const values = numbers(60);
    using x = await device.tensor(f32, values, [3, 4, 5]);
    const order = range(60).map(
      (i) => values[Math.floor(i / 12) + (Math.floor(i / 4) % 3) * 20 + (i % 4) * 5]!,
    );
    for (const name of NAMES) {
      close(await read(of(name)(x.permute([2, 0, 1]))), byRows(FUNCTIONS[name], order, 4), 1e-5);
      // The view begins at an odd element.
      close(
        await read(of(name)(x.reshape([60]).slice([3, 51]).reshape([3, 16]))),
        byRows(FUNCTIONS[name], values.slice(3, 51), 16),
        1e-5,
      );
      for (const shape of [[0], [3, 0], [0, 4]])
        expect((await of(name)(device.zeros(f32, shape))).shape).toEqual(shape);
    }
  });

  test('large and infinite numbers', async () => {
    close(
      await read(library.softmax(device.tensor(f32, [1e30, 1e30, -1e30])) as never),
      [0.5, 0.5, 0],
      1e-6,
    );
    close(
      await read(library.softmax(device.tensor(f32, [-Infinity, 0, 0])) as never),
      [0, 0.5, 0.5],
      1e-6,
    );
    expect(await read(library.softmax(device.tensor(f32, [NaN, 0])) as never)).toEqual([NaN, NaN]);
    // Small probabilities keep their digits.
    close(await read(library.logSoftmax(device.tensor(f32, [0, -200])) as never), [0, -200], 1e-6);
  });

  test('wrong arguments are refused at the call', async () => {
    using x = await device.zeros(f32, [2, 3]);
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message(() => of('softmax')(x.slice(0, 0)))).toContain('at least one axis');
    using whole = await device.zeros(i32, [3]);
    expect(await message(() => of('softmax')(whole))).toContain('Convert it with convert(f32).');
    expect(await message(() => of('softmax')(x, { axis: 0 } as never))).toBe(
      'options: expected nothing, since softmax(…) takes no options, got { axis: 0 }. It is ' +
        'along the last axis: for another one give it x.transpose(axis, -1).',
    );
    expect(await message(() => of('layerNorm')(x, { weight: whole }))).toContain(
      'options.weight: expected a Tensor of f32 and [3], the last axis of x',
    );
    expect(await message(() => of('rmsNorm')(x, { bias: x }))).toContain("no option 'bias'");
    expect(await message(() => of('layerNorm')(x, { eps: -1 }))).toContain('options.eps');
  });
});
