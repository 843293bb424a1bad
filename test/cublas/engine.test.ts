/**
 * The engine 'cublas' of `matmul` and `linear`: checks of arguments on a CPU device, and products
 * by a stand-in that records its calls, and computes in the memory of the CPU device.
 */
import { Device, bf16, f16, f32, f64, f8e4m3, f8e5m2, i8 } from 'async-cuda';
import type { Tensor } from 'async-cuda';
import type { DType } from 'async-cuda/core';
import { linear, matmul } from 'async-cuda/library';
import type { ActivationName } from 'async-cuda/library';
import type { AnyTensor } from 'async-cuda/tensor';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';

import { openCublasLt } from '../../src/cublas/index.js';
import type { CublasLt } from '../../src/cublas/index.js';
import { hostBase } from '../../src/core/host-work.js';
import { koffiPath } from '../../src/native/koffi.js';
import { whyNoStandIn } from '../core/stand-in-library.js';
import {
  failure,
  onCpu,
  onDevice,
  openTestDevice,
  range,
  turns,
  usedMemory,
} from '../core/test-device.js';
import { closeMade, keep, matrix, multiplied, numbers } from './products.test-support.js';
import { standInCublasLt } from './stand-in-cublaslt.js';

const cublas = { engine: 'cublas' } as const;

/** The message of the error that the call throws. */
function thrown(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
    return (error as Error).message;
  }
  return 'nothing';
}

onDevice('The engines of matmul and linear', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });
  afterEach(() => {
    closeMade();
  });
  const ones = async (dtype: DType, shape: number[]): Promise<never> =>
    keep((await device.ones(dtype as typeof f32, shape)) as unknown as AnyTensor) as never;

  test('another engine, and what only some factors have, are errors', async () => {
    const a = await ones(f32, [2, 2]);
    expect(thrown(() => matmul(a, a, { engine: 'npp' as never }))).toContain(
      "options.engine: expected one of own, cublas, got 'npp'",
    );
    const scales = { a: await ones(f32, [1]) };
    for (const engine of ['own', 'cublas'])
      expect(thrown(() => linear(a, a, { scales, engine } as never))).toContain(
        'options.scales.a: expected nothing, for factors of f32',
      );
    expect(thrown(() => matmul(a, a, { precision: 'tensor', ...cublas }))).toContain(
      'options.precision: expected nothing, with the engine cublas',
    );
    expect(thrown(() => matmul(a, a, { precision: 'tf32' as never }))).toContain(
      "options.precision: expected one of tensor, exact, got 'tf32'",
    );
    const wide = await ones(f64, [2, 2]);
    expect(thrown(() => matmul(wide, wide, { precision: 'tensor' }))).toContain(
      'options.precision: expected exact, for factors of f64',
    );
    const whole = await ones(i8, [2, 2]);
    expect(thrown(() => linear(whole, whole))).toContain('matmul(x, weights.transpose())');
    expect(thrown(() => matmul(whole, whole, cublas as never))).toContain(
      'our kernels multiply it',
    );
    expect(thrown(() => matmul(whole, whole, { dtype: f32 } as never))).toContain(
      'options.dtype: expected i32, for factors of i8',
    );
  });

  test('our kernels multiply factors of 8 bits, with scales', async () => {
    const a = await ones(f8e4m3, [3, 16]);
    const scale = async (value: number) =>
      keep((await device.full(f32, [1], value)) as unknown as AnyTensor) as never;
    const scales = { a: await scale(0.5), out: await scale(4) };
    for (const op of [
      matmul<[3, 16], [16, 3], 'f8e4m3'>(a, (a as Tensor<'f8e4m3'>).transpose() as never, {
        scales,
        dtype: f8e4m3,
      }),
      linear<[3, 16], [3, 16], 'f8e4m3'>(a, a, { scales, dtype: f8e4m3, activation: 'relu' }),
    ]) {
      using result = await op;
      expect([...(await result.read())]).toEqual(new Array(9).fill(32));
    }
  });

  test('precision: exact gives chains of f32 for factors of 16 bits', async () => {
    const values = range(64).map((i) => 1 + i / 64);
    const a = keep(
      (await device.tensor(f16, values, [1, 64])) as unknown as AnyTensor,
    ) as unknown as Tensor<'f16', [number, number]>;
    using exact = await matmul(a, a.transpose(), { precision: 'exact', dtype: f32 });
    const wanted = values.reduce((sum, x) => Math.fround(x * x + sum), 0);
    expect([...(await exact.read())]).toEqual([wanted]);
  });

  test('what cuBLASLt lacks is an error that says why, at the call', async () => {
    const lacking = 'options.engine: cuBLASLt has no such matmul(…). ';
    const leave = ' Or leave the engine out: our kernels compute it.';
    const wide = await ones(f64, [2, 2]);
    const ofF64 = thrown(() => matmul(wide, wide, cublas));
    expect(ofF64.startsWith(lacking)).toBe(true);
    expect(ofF64).toContain('f64 f64');
    expect(ofF64.endsWith(leave)).toBe(true);
    const half = await ones(f16, [4, 4]);
    expect(thrown(() => matmul(half, half, { dtype: bf16, ...cublas }))).toContain(
      "expected f16, f32 for factors of f16 f16, for cuBLASLt, got 'bf16'",
    );
    const stepped = ((await ones(f16, [4, 8])) as AnyTensor).slice(null, [0, 8, 2]);
    expect(thrown(() => matmul(stepped as never, half, cublas))).toContain(
      'contiguous rows or columns, for cuBLASLt',
    );
    const bias = await ones(f32, [4]);
    expect(thrown(() => linear(half, half, { bias, ...cublas }))).toContain(
      'options.engine: cuBLASLt has no such linear(…). bias: expected f16 where out is f16',
    );
  });

  test('options of factors of 8 bits are checked at the call', async () => {
    const [a, b] = [await ones(f8e4m3, [16, 16]), await ones(f8e5m2, [16, 16])];
    const [one, two] = [await ones(f32, [1]), await ones(f32, [2])];
    expect(thrown(() => matmul(a, a, { dtype: f64 as never, ...cublas }))).toContain(
      'options.dtype: expected f16, bf16, f32, f8e4m3, f8e5m2',
    );
    expect(thrown(() => matmul(b, b, cublas))).toContain('f8e5m2 f8e5m2');
    expect(thrown(() => matmul(b, b, cublas))).not.toContain('leave the engine out');
    expect(thrown(() => matmul(a, b, { scales: { a: two }, ...cublas }))).toContain(
      'options.scales.a: expected a Tensor of f32 of one element',
    );
    expect(thrown(() => matmul(a, b, { scales: { out: one }, ...cublas }))).toContain(
      'options.scales.out: expected nothing, where the result is bf16',
    );
    expect(thrown(() => matmul(a, b, { scales: { c: one } as never, ...cublas }))).toContain(
      'options.scales',
    );
    const options = { dtype: f8e4m3, scales: { out: one }, activation: 'silu', ...cublas } as const;
    expect(thrown(() => linear(a, a, options))).toContain('the activation silu');
    expect(thrown(() => matmul(a, [1, 2] as never, cublas))).toContain('b: expected a Tensor');
  });

  test('products without elements or products need no library', async () => {
    const [a, b] = [await ones(f32, [2, 0]), await ones(f32, [0, 3])];
    using sums = await matmul(a, b, cublas);
    expect([...((await sums.read()) as Float32Array)]).toEqual([0, 0, 0, 0, 0, 0]);
    using none = await matmul(b, await ones(f32, [3, 2]), cublas);
    expect(none.shape).toEqual([0, 2]);
  });
});

test.runIf(onCpu)('a CPU device has no cuBLASLt, and refuses the engine', async () => {
  const device = Device.of(await openTestDevice());
  using a = await device.ones(f32, [2, 2]);
  for (const op of [matmul(a, a, cublas), linear(a, a, { activation: 'silu', ...cublas })])
    expect(await failure(() => op)).toMatchObject({
      code: 'ERR_CUDA_UNSUPPORTED',
      message: expect.stringContaining('NVIDIA GPUs only') as string,
    });
  // The results that were allocated for it are closed.
  expect((await device.core.stats()).live.buffers).toBe(1);
  await device.core.close();
});

const why =
  whyNoStandIn ??
  (onCpu ? undefined : 'SKIPPED: on a GPU cuBLASLt itself is called, see gpu.test.ts');

if (why !== undefined) describe.skip(why, () => undefined);
else
  onDevice('matmul and linear by cuBLASLt', (host) => {
    const standIn = standInCublasLt(130003);
    const { library } = standIn;
    let device: Device;
    let lt: CublasLt;
    beforeAll(async () => {
      device = Device.of(host.device);
      lt = await openCublasLt(host.device, { path: library.path, anyDevice: true });
      standIn.base((await hostBase(host.device, koffiPath())) ?? 0);
    });
    afterEach(() => {
      standIn.reset();
      lt.dropPlans();
      closeMade();
    });
    const tensor = async (dtype: DType, shape: number[], seed = 1): Promise<never> =>
      (await matrix(device, dtype, numbers(shape, seed))) as never;
    /** The number of products that were computed since the last call. */
    const calls = (): number => library.take().filter((line) => line.startsWith('multiply')).length;

    test.each([
      ['f32', f32, undefined, [3, 5], [5, 4]],
      ['f16', f16, undefined, [3, 5], [5, 4]],
      ['bf16 to f32', bf16, f32, [3, 5], [5, 4]],
      ['a batch', f16, undefined, [2, 3, 5], [2, 5, 4]],
      ['a batch with one b', f16, undefined, [2, 3, 5], [5, 4]],
    ] as const)('matmul is one call: %s', async (_, dtype, result, a, b) => {
      const { values, shape } = multiplied({ a: numbers([...a], 1), b: numbers([...b], 2) });
      const given = result === undefined ? cublas : { dtype: result, ...cublas };
      calls();
      const op = matmul(await tensor(dtype, [...a], 1), await tensor(dtype, [...b], 2), given);
      const out = keep((await op) as unknown as AnyTensor);
      expect(calls()).toBe(1);
      expect(out.shape).toEqual(shape);
      expect(out.dtype).toBe(result ?? dtype);
      expect([...((await out.read()) as Float32Array)]).toEqual(values);
    });

    test('a transposed factor is read where it is, and an existing result is written', async () => {
      const [a, b] = [numbers([3, 5], 1), numbers([5, 4], 2)];
      const [first, second] = [await matrix(device, f16, a, true), await matrix(device, f16, b)];
      using out = await device.zeros(f16, [3, 4]);
      const op = matmul(first as never, second as never, { out, ...cublas });
      const before = (await device.core.stats()).live.buffers;
      for (let time = 0; time < 3; time++) {
        await out.fill(7);
        expect(await op).toBe(out);
        expect([...(await out.read())]).toEqual(multiplied({ a, b }).values);
      }
      expect(calls()).toBe(3);
      expect((await device.core.stats()).live.buffers).toBe(before);
    });

    test('factors that operations give are closed after it', async () => {
      const used = await usedMemory(host.device);
      const op = matmul(device.ones(f32, [2, 3]), device.ones(f32, [3, 2]), cublas);
      const out = await op;
      expect([...(await out.read())]).toEqual([3, 3, 3, 3]);
      out.close();
      expect(await usedMemory(host.device)).toBe(used);
    });

    test('a product comes after the work that its run has queued before', async () => {
      const few = device.ones(f32, [3, 2]);
      // The fills of large factors take the device several steps.
      const [rows, inner] = [64, 2 ** 14];
      for (let time = 1; time <= 36; time++) {
        using small = await matmul(device.full(f32, [2, 3], time), few, cublas);
        expect([...(await small.read())]).toEqual(new Array(4).fill(3 * time));
        if (time % 12 !== 0) continue;
        const factors = [
          device.full(f32, [rows, inner], time),
          device.ones(f32, [inner, 1]),
        ] as const;
        using large = await matmul(...factors, cublas);
        expect([...(await large.read())]).toEqual(new Array(rows).fill(inner * time));
      }
    });

    test('what operations give is kept while the plan of the product is made', async () => {
      const used = await usedMemory(host.device);
      const ask = lt.library.ask.bind(lt.library);
      let delay = 0;
      const delayed = vi.spyOn(lt.library, 'ask').mockImplementation(async (...args) => {
        await turns(delay);
        return ask(...args);
      });
      try {
        for (let time = 1; time <= 36; time++) {
          delay = time % 4;
          lt.dropPlans();
          const x = device.full(f32, [2, 3], time);
          const w = device.ones(f32, [2, 3]);
          const bias = device.full(f32, [2], 1);
          const product = linear(x, w, { bias, activation: 'silu', ...cublas }).run();
          // Memory of the same sizes, which would be that of the factors if they were closed.
          const others = [];
          for (let turn = 0; turn < 4; turn++) {
            others.push(await device.full(f32, [2, 3], -7), await device.full(f32, [2], -7));
            await turns(1);
          }
          using y = await product;
          const wanted = exact.silu(3 * time + 1);
          for (const value of await y.read()) expect(value).toBeCloseTo(wanted, 3);
          for (const other of others) {
            expect(new Set(await other.read())).toEqual(new Set([-7]));
            other.close();
          }
        }
        expect(delayed).toHaveBeenCalled();
      } finally {
        delayed.mockRestore();
      }
      expect(await usedMemory(host.device)).toBe(used);
    });

    const exact: Readonly<Record<ActivationName, (x: number) => number>> = {
      relu: (x) => Math.max(x, 0),
      // By a table of the values of erf(x / √2) that whole numbers have.
      gelu: (x) =>
        0.5 * x * (1 + Math.sign(x) * ([0, 0.6826895, 0.9544997, 0.9973002][Math.abs(x)] ?? 1)),
      geluTanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
      silu: (x) => x / (1 + Math.exp(-x)),
    };

    test.each([
      ['none', 4],
      ['relu', 6],
      ['geluTanh', 36],
      ['gelu', 1],
      ['silu', 1],
    ] as const)('linear with bias and %s', async (activation, epilogue) => {
      const [x, w, bias] = [numbers([2, 3, 4], 1), numbers([5, 4], 2), numbers([5], 3)];
      const turned = {
        shape: [4, 5],
        data: Array.from({ length: 20 }, (_, i) => w.data[(i % 5) * 4 + Math.floor(i / 5)]!),
      };
      const { values } = multiplied({ a: x, b: turned, bias });
      library.take();
      const y = await linear(await tensor(f16, [2, 3, 4], 1), await tensor(f16, [5, 4], 2), {
        bias: await tensor(f16, [5], 3),
        ...(activation === 'none' ? {} : { activation }),
        ...cublas,
      });
      keep(y as unknown as AnyTensor);
      const choice = library.take().find((line) => line.startsWith('choose'))!;
      const isOurs = activation === 'gelu' || activation === 'silu';
      expect(choice).toContain(` epilogue=${epilogue} `);
      expect(choice).toContain(isOurs ? 'D=0:' : 'D=2:');
      expect(y.shape).toEqual([2, 3, 5]);
      const expected = activation === 'none' ? values : values.map(exact[activation]);
      [...((await y.read()) as Float32Array)].forEach((value, i) => {
        expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(
          2e-3 + 2 ** -10 * Math.abs(expected[i]!),
        );
      });
    });

    test('linear of one row, with a bias of another dtype before our activation', async () => {
      const y = await linear(await tensor(f32, [4], 1), await tensor(f32, [3, 4], 2), {
        bias: await tensor(bf16, [3], 3),
        activation: 'silu',
        ...cublas,
      });
      keep(y as unknown as AnyTensor);
      expect(y.shape).toEqual([3]);
      using own = await linear(await tensor(f32, [4], 1), await tensor(f32, [3, 4], 2), {
        bias: await tensor(bf16, [3], 3),
        activation: 'silu',
      });
      expect([...(await y.read())]).toEqual([...(await own.read())]);
    });

    test('factors of 8 bits give bf16, and are scaled', async () => {
      const [a, b] = [numbers([3, 16], 1), numbers([16, 32], 2)];
      const left = (await matrix(device, f8e4m3, a)) as never;
      const right = (await matrix(device, f8e5m2, b, true)) as never;
      const { values } = multiplied({ a, b });
      const scale = async (value: number) => keep(await device.tensor(f32, [value]));
      using plain = await matmul(left, right, { dtype: f32, ...cublas } as const);
      expect([...((await plain.read()) as Float32Array)]).toEqual(values);
      const scales = { a: await scale(0.5), b: await scale(4) };
      using scaled = await matmul<[3, 16], [16, 32]>(left, right, { scales, ...cublas });
      expect(scaled.dtype).toBe(bf16);
      [...(await scaled.read())].forEach((value, i) => {
        expect(Math.abs(value - 2 * values[i]!)).toBeLessThanOrEqual(2 ** -7 * Math.abs(value));
      });
      const all = { ...scales, out: await scale(0.125) };
      using small = await matmul(left, right, { dtype: f8e4m3, scales: all, ...cublas });
      [...((await small.read()) as Float32Array)].forEach((value, i) => {
        const expected = values[i]! / 4;
        expect(Math.abs(value - expected)).toBeLessThanOrEqual(0.01 + Math.abs(expected) / 16);
      });
    });

    test('a linear layer of 8 bits, with scales that operations give', async () => {
      const [x, w] = [await tensor(f8e4m3, [4, 16], 1), await tensor(f8e4m3, [16, 16], 2)];
      const bias = await tensor(bf16, [16], 3);
      const scales = { a: device.full(f32, [1], 2) };
      for (const activation of ['relu', 'silu'] as const) {
        using y = await linear(x, w, { bias, activation, scales, dtype: f32, ...cublas });
        const wide = await tensor(f32, [4, 16], 1);
        const weights = await tensor(f32, [16, 16], 2);
        using sums = (await linear(wide, weights)) as AnyTensor;
        const expected = (await sums.read()) as Float32Array;
        const biases = numbers([16], 3).data;
        [...((await y.read()) as Float32Array)].forEach((value, i) => {
          const wanted = exact[activation](2 * expected[i]! + biases[i % 16]!);
          expect(Math.abs(value - wanted)).toBeLessThanOrEqual(1e-4 * (1 + Math.abs(wanted)));
        });
      }
    });

    test('a product is recorded in a graph', async () => {
      const [a, b] = [await tensor(f32, [2, 3], 1), await tensor(f32, [3, 2], 2)];
      using out = await device.zeros(f32, [2, 2]);
      const op = matmul(a, b, { out, ...cublas });
      await op;
      library.take();
      await using graph = await op.capture();
      expect(graph).toBeDefined();
      expect(calls()).toBe(1);
    });
  });
