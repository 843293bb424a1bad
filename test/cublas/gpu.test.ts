/**
 * Products by NVIDIA's cuBLASLt, on a GPU where it is installed, compared with JavaScript:
 *
 *     ASYNC_CUDA_TEST_DEVICE=cuda npx vitest run --mode all test/cublas/gpu.test.ts
 *
 * Elsewhere the tests are skipped, with a message.
 */
import { Device, bf16, f16, f32, f8e4m3, f8e5m2 } from 'async-cuda';
import type { DType } from 'async-cuda/core';
import { linear, matmul } from 'async-cuda/library';
import type { AnyTensor } from 'async-cuda/tensor';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';

import { cublasProduct, openCublasLt, prepareProduct } from '../../src/cublas/index.js';
import type { Product } from '../../src/cublas/index.js';
import { findLibrary } from '../../src/native/find.js';
import { KNOWN_LIBRARIES } from '../../src/native/libraries.js';
import { failure, onCpu, onDevice } from '../core/test-device.js';
import { closeMade, keep, matrix, multiplied } from './products.test-support.js';
import type { HostProduct, Values } from './products.test-support.js';

const why = onCpu
  ? 'SKIPPED: cuBLASLt needs a GPU: ASYNC_CUDA_TEST_DEVICE=cuda'
  : 'tried' in findLibrary(KNOWN_LIBRARIES.cublasLt)
    ? 'SKIPPED: cuBLASLt is not installed'
    : undefined;

/** Half of the distance from 1 to the next number. */
const ROUNDING: Readonly<Record<string, number>> = {
  f32: 2 ** -22,
  f16: 2 ** -11,
  bf16: 2 ** -8,
  f8e4m3: 2 ** -4,
  f8e5m2: 2 ** -3,
};

/** Numbers from -1 to 1. */
function randoms(shape: readonly number[], seed: number): Values {
  let state = seed * 2654435761 + 1;
  const size = shape.reduce((product, extent) => product * extent, 1);
  const data = Array.from({ length: size }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  return { shape, data };
}

if (why !== undefined) describe.skip(why, () => undefined);
else
  onDevice('cuBLASLt', (host) => {
    let device: Device;
    beforeAll(async () => {
      device = Device.of(host.device);
      const { version, path } = await openCublasLt(host.device);
      console.log(`cuBLASLt ${version} from ${path}`);
    });
    afterEach(() => {
      closeMade();
    });

    /** The values as the device has them, after they were rounded to its dtype. */
    async function rounded(
      dtype: DType,
      values: Values,
      columns = false,
    ): Promise<[AnyTensor, Values]> {
      const tensor = await matrix(device, dtype, values, columns);
      return [tensor, { shape: values.shape, data: (await tensor.read()) as Float32Array }];
    }

    interface Options extends Partial<Product> {
      /** The operands that are by columns: letters of `abo`. */
      readonly columns?: string;
      readonly biasType?: DType;
      readonly cType?: DType;
    }

    /** Computes a product, and gives its largest error relative to the rounding of its dtype. */
    async function errorOf(
      [factors, others, results]: readonly [DType, DType, DType],
      shapes: { a: number[]; b: number[]; c?: boolean; bias?: boolean },
      { columns = '', biasType = results, cType = results, ...options }: Options = {},
    ): Promise<number> {
      const [a, hostA] = await rounded(factors, randoms(shapes.a, 1), columns.includes('a'));
      const [b, hostB] = await rounded(others, randoms(shapes.b, 2), columns.includes('b'));
      const { shape } = multiplied({ a: hostA, b: hostB });
      const out = await matrix(device, results, randoms(shape, 5), columns.includes('o'));
      const [c, hostC] = shapes.c
        ? await rounded(cType, randoms(shape, 3), columns.includes('o'))
        : [];
      const [bias, hostBias] = shapes.bias
        ? await rounded(biasType, randoms([shape.at(-1)!], 4))
        : [];
      const { alpha, beta, activation } = options;
      const given: HostProduct = {
        a: hostA,
        b: hostB,
        ...(hostC === undefined ? {} : { c: hostC }),
        ...(hostBias === undefined ? {} : { bias: hostBias }),
        ...(alpha === undefined ? {} : { alpha }),
        ...(beta === undefined ? {} : { beta }),
        ...(activation === undefined ? {} : { activation }),
      };
      await cublasProduct({
        a,
        b,
        out,
        ...(c === undefined ? {} : { c }),
        ...(bias === undefined ? {} : { bias }),
        ...options,
      });
      const got = (await out.read()) as Float32Array;
      const { values } = multiplied(given);
      const k = shapes.a.at(-1)!;
      let most = 0;
      got.forEach((value, i) => {
        const bound = ROUNDING[results.name]! * Math.abs(values[i]!) + 2 ** -20 * k;
        most = Math.max(most, Math.abs(value - values[i]!) / bound);
      });
      return most;
    }

    test.each([
      ['f32 to f32', f32, f32],
      ['f16 to f16', f16, f16],
      ['f16 to f32', f16, f32],
      ['bf16 to bf16', bf16, bf16],
      ['bf16 to f32', bf16, f32],
    ] as const)('%s in each order', async (_, factors, results) => {
      for (const columns of ['', 'a', 'b', 'o', 'ab', 'ao', 'bo', 'abo'])
        expect(
          await errorOf([factors, factors, results], { a: [96, 72], b: [72, 40] }, { columns }),
          columns,
        ).toBeLessThanOrEqual(1.01);
    });

    test.each([
      [
        [1, 64],
        [64, 48],
      ],
      [
        [33, 65],
        [65, 17],
      ],
      [
        [5, 3],
        [3, 1],
      ],
      [
        [4, 32, 24],
        [4, 24, 40],
      ],
      [
        [4, 32, 24],
        [24, 40],
      ],
      [
        [32, 24],
        [4, 24, 40],
      ],
    ])('%j by %j', async (a, b) => {
      for (const dtype of [f32, f16])
        expect(await errorOf([dtype, dtype, dtype], { a, b })).toBeLessThanOrEqual(1.01);
    });

    test('views of larger tensors', async () => {
      const whole = await matrix(device, f16, randoms([3, 40, 96], 1));
      const other = await matrix(device, f16, randoms([3, 41, 32], 2));
      const out = await matrix(device, f16, randoms([3, 40, 32], 3));
      const a = whole.slice(null, null, [8, 48]) as AnyTensor;
      const b = other.slice(null, [1, 41], null) as AnyTensor;
      await cublasProduct({ a, b, out });
      const read = async (tensor: AnyTensor): Promise<Values> => ({
        shape: tensor.shape,
        data: (await tensor.read()) as Float32Array,
      });
      const { values } = multiplied({ a: await read(a), b: await read(b) });
      ((await out.read()) as Float32Array).forEach((value, i) =>
        expect(Math.abs(value - values[i]!)).toBeLessThanOrEqual(
          2 ** -10 * (1 + Math.abs(values[i]!)),
        ),
      );
    });

    test.each<Options>([
      { alpha: 0.5 },
      { beta: -1.5 },
      { activation: 'relu' },
      { activation: 'gelu' },
    ])('%j, with and without bias and residual', async (options) => {
      for (const dtype of [f16, bf16, f32])
        for (const bias of [false, true])
          for (const c of [false, true]) {
            if (options.beta !== undefined && !c) continue;
            // The library's gelu is an approximation in f32.
            const bound = options.activation === 'gelu' && dtype === f32 ? 20 : 1.1;
            expect(
              await errorOf([dtype, dtype, dtype], { a: [64, 48], b: [48, 80], bias, c }, options),
              `${dtype.name} ${bias} ${c}`,
            ).toBeLessThanOrEqual(bound);
          }
    });

    test('tf32 rounds the factors, and is not used by itself', async () => {
      const shapes = { a: [64, 64], b: [64, 64] };
      expect(await errorOf([f32, f32, f32], shapes)).toBeLessThanOrEqual(1.01);
      const error = await errorOf([f32, f32, f32], shapes, { tf32: true });
      expect(error).toBeGreaterThan(2);
      expect(error).toBeLessThan(2 ** 10);
    });

    test('factors of 8 bits', async () => {
      const shapes = { a: [48, 64], b: [64, 32] };
      for (const [factors, others, results] of [
        [f8e4m3, f8e4m3, f16],
        [f8e4m3, f8e4m3, bf16],
        [f8e4m3, f8e4m3, f32],
        [f8e5m2, f8e4m3, bf16],
        [f8e4m3, f8e5m2, f32],
        [f8e4m3, f8e4m3, f8e4m3],
      ] as const)
        for (const bias of [false, true])
          expect(
            await errorOf(
              [factors, others, results],
              { ...shapes, bias },
              {
                columns: 'b',
                biasType: results === f16 ? f16 : bf16,
              },
            ),
            `${factors.name} ${others.name} ${results.name} ${bias}`,
          ).toBeLessThanOrEqual(16);
    });

    test('scales of factors of 8 bits, of the result, and its largest magnitude', async () => {
      const [a, hostA] = await rounded(f8e4m3, randoms([32, 64], 1));
      const [b, hostB] = await rounded(f8e4m3, randoms([64, 48], 2), true);
      const { values } = multiplied({ a: hostA, b: hostB });
      const scales = {
        a: keep(await device.tensor(f32, [2], [1])),
        b: keep(await device.tensor(f32, [0.25], [1])),
      };
      const out = keep(await device.zeros(f32, [32, 48])) as unknown as AnyTensor;
      await cublasProduct({ a, b, out, scales });
      ((await out.read()) as Float32Array).forEach((value, i) =>
        expect(value).toBeCloseTo(values[i]! / 2, 2),
      );
      const small = keep(await device.zeros(f8e4m3, [32, 48])) as unknown as AnyTensor;
      const amax = keep(await device.zeros(f32, [1]));
      const ofOut = keep(await device.tensor(f32, [4], [1]));
      await cublasProduct({ a, b, out: small, scales: { ...scales, out: ofOut }, amax });
      ((await small.read()) as Float32Array).forEach((value, i) =>
        expect(Math.abs(value - values[i]! * 2)).toBeLessThanOrEqual(
          0.1 + Math.abs(values[i]!) / 7,
        ),
      );
      const [most] = (await amax.read()) as Float32Array;
      expect(most).toBeCloseTo(Math.max(...values.map(Math.abs)) / 2, 1);
    });

    test('scales for each row and column', async () => {
      const [a, hostA] = await rounded(f8e4m3, randoms([32, 64], 1));
      const [b, hostB] = await rounded(f8e4m3, randoms([64, 48], 2), true);
      const { values } = multiplied({ a: hostA, b: hostB });
      const [ofA, ofB] = [randoms([32], 6), randoms([48], 7)];
      const scales = {
        a: await matrix(device, f32, ofA),
        b: await matrix(device, f32, ofB),
      };
      const out = keep(await device.zeros(bf16, [32, 48])) as unknown as AnyTensor;
      await cublasProduct({ a, b, out, scales });
      ((await out.read()) as Float32Array).forEach((value, i) => {
        const expected = values[i]! * ofA.data[Math.floor(i / 48)]! * ofB.data[i % 48]!;
        expect(Math.abs(value - expected)).toBeLessThanOrEqual(0.02 + Math.abs(expected) / 100);
      });
    });

    test('what the library has no kernel for is an error', async () => {
      const error = await failure(() =>
        errorOf([f8e4m3, f8e4m3, bf16], { a: [32, 64], b: [64, 48] }, { columns: 'a' }),
      );
      expect(error).toMatchObject({ code: 'ERR_CUDA_UNSUPPORTED' });
      expect(error.message).toContain('[32, 64] × [64, 48] of f8e4m3 to bf16');
    });

    test('a graph computes again what its operands hold', async () => {
      const [a] = await rounded(f16, randoms([512, 512], 1));
      const [b] = await rounded(f16, randoms([512, 512], 2));
      const out = keep(await device.zeros(f16, [512, 512])) as unknown as AnyTensor;
      const bias = keep(await device.zeros(f16, [512])) as unknown as AnyTensor;
      await prepareProduct({ a, b, out, bias });
      await cublasProduct({ a, b, out, bias });
      const before = (await out.read()) as Float32Array;
      await using graph = await cublasProduct({ a, b, out, bias }).capture();
      await (out as never as { fill(x: number): PromiseLike<void> }).fill(0);
      await graph.replay();
      // A difference of so many elements would take minutes to print.
      const after = await out.read();
      expect(before.every((value, i) => value === after[i])).toBe(true);
      await (a as never as { fill(x: number): PromiseLike<void> }).fill(0);
      await (bias as never as { fill(x: number): PromiseLike<void> }).fill(3);
      await graph.replay();
      expect(((await out.read()) as Float32Array).every((value) => value === 3)).toBe(true);
    });

    test('several streams share a plan', async () => {
      const streams = Array.from({ length: 4 }, () => host.device.createStream());
      const [a, hostA] = await rounded(f16, randoms([64, 256], 1));
      const [b, hostB] = await rounded(f16, randoms([256, 64], 2));
      const { values } = multiplied({ a: hostA, b: hostB });
      const rows = await Promise.all(
        streams.map(async (_, i) => ({
          out: keep(await device.zeros(f32, [64, 64])) as unknown as AnyTensor,
          bias: await matrix(device, f32, { shape: [64], data: new Array(64).fill(i) }),
        })),
      );
      for (let time = 0; time < 50; time++)
        for (const [i, stream] of streams.entries())
          void cublasProduct({ a, b, ...rows[i]! }).runOn(stream);
      await host.device.finished();
      for (const [i, { out }] of rows.entries())
        ((await out.read()) as Float32Array).forEach((value, at) =>
          expect(Math.abs(value - values[at]! - i)).toBeLessThan(1e-3),
        );
      for (const stream of streams) stream.close();
    });

    describe('as the engine of matmul and linear', () => {
      const cublas = { engine: 'cublas' } as const;
      const furthest = async (one: unknown, other: unknown): Promise<number> => {
        const [got, wanted] = await Promise.all(
          [one, other].map(async (each) => (await (each as AnyTensor).read()) as Float32Array),
        );
        return got!.reduce((most, value, i) => Math.max(most, Math.abs(value - wanted![i]!)), 0);
      };

      test.each([
        ['f16', f16],
        ['bf16', bf16],
        ['f32', f32],
      ] as const)('%s is what our kernels give', async (_, dtype) => {
        const given = async (shape: number[], seed: number): Promise<never> =>
          (await rounded(dtype, randoms(shape, seed)))[0] as never;
        const [a, b, bias] = [
          await given([130, 96], 1),
          await given([72, 96], 2),
          await given([72], 3),
        ];
        const turned = (b as AnyTensor).transpose() as never;
        const bound = ROUNDING[dtype.name]! * 64;
        const product = keep((await matmul(a, turned, cublas)) as AnyTensor);
        const own = keep((await matmul(a, turned)) as AnyTensor);
        expect(await furthest(product, own)).toBeLessThan(bound);
        for (const activation of [undefined, 'relu', 'gelu', 'geluTanh', 'silu'] as const) {
          const options = { bias, ...(activation === undefined ? {} : { activation }) };
          const layer = keep((await linear(a, b, { ...options, ...cublas })) as AnyTensor);
          const ours = keep((await linear(a, b, options)) as AnyTensor);
          // The library's gelu is an approximation in f32 too.
          expect(await furthest(layer, ours), activation ?? 'none').toBeLessThan(
            activation === 'geluTanh' ? Math.max(bound, 1e-3) : bound,
          );
        }
      });

      test('factors of 8 bits, with scales', async () => {
        const [x, hostX] = await rounded(f8e4m3, randoms([48, 64], 1));
        const [weights, hostW] = await rounded(f8e4m3, randoms([32, 64], 2));
        const [bias, hostBias] = await rounded(bf16, randoms([32], 3));
        const scales = {
          a: keep(await device.tensor(f32, [2])),
          b: keep(await device.tensor(f32, [0.25])),
        };
        const turned = { shape: [64, 32], data: new Array<number>(64 * 32) };
        for (let i = 0; i < 64 * 32; i++)
          turned.data[i] = hostW.data[(i % 32) * 64 + Math.floor(i / 32)]!;
        const { values } = multiplied({ a: hostX, b: turned, alpha: 0.5, bias: hostBias });
        for (const dtype of [undefined, f32] as const)
          for (const activation of ['relu', 'silu'] as const) {
            const y = await linear(x as never, weights as never, {
              ...cublas,
              ...{ scales, activation, bias: bias as never },
              ...(dtype === undefined ? {} : { dtype: dtype as never }),
            });
            keep(y as unknown as AnyTensor);
            expect(y.dtype).toBe(dtype ?? bf16);
            ((await y.read()) as Float32Array).forEach((value, i) => {
              const sum = values[i]!;
              const wanted = activation === 'relu' ? Math.max(sum, 0) : sum / (1 + Math.exp(-sum));
              expect(Math.abs(value - wanted)).toBeLessThanOrEqual(0.01 + Math.abs(wanted) / 64);
            });
          }
        const out = keep(await device.tensor(f32, [4]));
        const product = await matmul(x as never, (weights as AnyTensor).transpose() as never, {
          ...cublas,
          ...{ dtype: f8e4m3, scales: { ...scales, out } },
        });
        keep(product as unknown as AnyTensor);
        const { values: sums } = multiplied({ a: hostX, b: turned, alpha: 2 });
        ((await product.read()) as Float32Array).forEach((value, i) => {
          expect(Math.abs(value - sums[i]!)).toBeLessThanOrEqual(0.1 + Math.abs(sums[i]!) / 7);
        });
      });
    });
  });
