/**
 * Products of matrices, compared with JavaScript's in double precision within a bound, and on the
 * CPU device bit for bit.
 */
import { CudaArgumentError, DTYPES, Device, bf16, f16, f32, f64, i32 } from 'async-cuda';
import type { DType, DeviceOp } from 'async-cuda';
import type { KernelTensor } from 'async-cuda/tensor';
import { matmul, transpose } from 'async-cuda/library';
import * as fc from '../fast-check.js';
import { beforeAll, describe, expect, test } from 'vitest';

import { matmulBy } from '../../src/library/matmul.js';
import { PLANS } from '../../src/library/product.js';
import { sharedBytesOf, tensorCoreProduct } from '../../src/library/tensor-core-product.js';
import { allModes, failure, onCpu, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

type Name = 'f16' | 'bf16' | 'f32' | 'f64';

/** Bits of a result's fraction, with the hidden one. */
const DIGITS: Readonly<Record<Name, number>> = { f16: 11, bf16: 8, f32: 24, f64: 53 };

/** Numbers that every dtype holds exactly, of either sign, up to 2. */
const numbers = (length: number, seed: number): number[] =>
  range(length).map((i) => ((((i + seed) * 7919 + Math.imul(i, i) * 31) % 257) - 128) / 64);
const asHeld = (values: readonly number[], name: Name): number[] =>
  name === 'bf16' ? values.map((value) => Math.round(value * 32) / 32) : [...values];

interface Matrices {
  readonly values: readonly number[];
  /** Element of matrix `at`. */
  at(matrix: number, row: number, column: number): number;
}

/**
 * Each element within the bound of the sum of `k` products in the accumulator's precision, and of
 * one rounding to the result's.
 */
function check(
  result: ArrayLike<number>,
  a: Matrices['at'],
  b: Matrices['at'],
  [matrices, m, n, k]: readonly [number, number, number, number],
  factors: Name,
  out: Name,
): void {
  expect(result).toHaveLength(matrices * m * n);
  for (let at = 0; at < result.length; at++) {
    const [matrix, row, column] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
    let [sum, magnitude] = [0, 0];
    for (let p = 0; p < k; p++) {
      const product = a(matrix, row, p) * b(matrix, p, column);
      sum += product;
      magnitude += Math.abs(product);
    }
    const bound =
      k * (factors === 'f64' ? 2 ** -52 : 2 ** -22) * magnitude +
      Math.abs(sum) * 2 ** -DIGITS[out] +
      2 ** -24;
    if (!(Math.abs(result[at]! - sum) <= bound))
      expect({ at, got: result[at], sum, bound }).toBe('within the bound');
  }
}

onDevice(
  'Products of matrices',
  (host) => {
    let device: Device;
    beforeAll(() => {
      device = Device.of(host.device);
    });

    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    const given = async (
      name: Name,
      values: readonly number[],
      shape: readonly number[],
    ): Promise<KernelTensor> =>
      (await device.tensor(
        DTYPES[name] as DType<'f32'>,
        values,
        shape as number[],
      )) as unknown as KernelTensor;
    const read = async (op: DeviceOp<unknown>): Promise<Float32Array> =>
      (await (op as DeviceOp<KernelTensor>).andThen((tensor) => tensor.read())) as Float32Array;
    const product = (a: KernelTensor, b: KernelTensor, dtype?: Name): DeviceOp<KernelTensor> =>
      matmul(
        a as never,
        b as never,
        dtype === undefined ? {} : { dtype: DTYPES[dtype] as DType<'f32'> },
      ) as unknown as DeviceOp<KernelTensor>;

    const compare = async (
      factors: Name,
      out: Name,
      m: number,
      n: number,
      k: number,
      turnedA: boolean,
      turnedB: boolean,
    ): Promise<void> => {
      const [x, y] = [asHeld(numbers(m * k, 1), factors), asHeld(numbers(k * n, 2), factors)];
      using a = await given(factors, x, turnedA ? [k, m] : [m, k]);
      using b = await given(factors, y, turnedB ? [n, k] : [k, n]);
      const result = await read(
        product(
          turnedA ? (a.transpose() as never) : a,
          turnedB ? (b.transpose() as never) : b,
          out,
        ),
      );
      check(
        result,
        (_, row, p) => x[turnedA ? p * m + row : row * k + p]!,
        (_, p, column) => y[turnedB ? column * k + p : p * n + column]!,
        [1, m, n, k],
        factors,
        out,
      );
    };

    describe.each(['f16', 'bf16', 'f32', 'f64'] as const)('of %s', (factors) => {
      someOf(
        2,
        test,
      )([
        [1, 1, 1],
        [64, 64, 32],
        [65, 63, 33],
        [16, 8, 16],
        [1, 100, 40],
        [100, 1, 40],
        [33, 130, 72],
        [130, 66, 8],
        [7, 9, 300],
      ])('%i × %i, of %i', async (m, n, k) => {
        await compare(factors, factors, m, n, k, false, false);
      });

      test('transposed factors are read as they are', { tags: 'thorough' }, async () => {
        for (const [turnedA, turnedB] of [
          [true, false],
          [false, true],
          [true, true],
        ] as const) {
          await compare(factors, factors, 72, 88, 40, turnedA, turnedB);
          await compare(factors, factors, 37, 41, 43, turnedA, turnedB);
        }
      });

      test('results of other dtypes', { tags: 'thorough' }, async () => {
        for (const out of factors === 'f64'
          ? (['f64'] as const)
          : (['f16', 'bf16', 'f32'] as const)) {
          await compare(factors, out, 40, 48, 24, false, false);
          await compare(factors, out, 40, 47, 24, false, true);
        }
      });

      test('sizes and orders at random', { tags: 'random' }, async () => {
        const size = fc.integer({ min: 1, max: 90 });
        await fc.assert(
          fc.asyncProperty(
            size,
            size,
            size,
            fc.boolean(),
            fc.boolean(),
            async (m, n, k, turnedA, turnedB) => {
              await compare(factors, factors, m, n, k, turnedA, turnedB);
            },
          ),
          { numRuns: 8 },
        );
      });
    });

    test('factors of one element for all that is summed over', async () => {
      for (const name of ['f16', 'bf16', 'f32', 'f64'] as const) {
        for (const [m, k, n] of [
          [1, 6, 5],
          [5, 6, 1],
          [3, 8, 5],
          [1, 16, 16],
          [16, 32, 16],
        ] as const) {
          using column = await given(name, numbers(m, 5), [m, 1]);
          using row = await given(name, numbers(n, 6), [1, n]);
          const [a, b] = [
            column.broadcastTo([m, k] as never),
            row.broadcastTo([k, n] as never),
          ] as unknown as [KernelTensor, KernelTensor];
          const [x, y] = [await read(column.dup() as never), await read(row.dup() as never)];
          check(
            await read(product(a, b)),
            (_, r) => x[r]!,
            (_, p, c) => y[c]!,
            [1, m, n, k],
            name,
            name,
          );
        }
      }
    });

    test('axes before the last two count matrices, and broadcast', async () => {
      for (const name of ['f16', 'f32'] as const) {
        for (const [shapeA, shapeB] of [
          [[3], [3]],
          [[2, 3], [3]],
          [[3], [2, 1]],
          [
            [2, 1, 2],
            [3, 1],
          ],
          [
            [2, 3, 2],
            [1, 3, 1],
          ],
          [[1], []],
          [[], [4]],
        ] as const) {
          const [m, n, k] = [24, 17, 40];
          const count = (shape: readonly number[]): number =>
            shape.reduce((whole, extent) => whole * extent, 1);
          const [x, y] = [numbers(count(shapeA) * m * k, 3), numbers(count(shapeB) * k * n, 4)];
          using a = await given(name, x, [...shapeA, m, k]);
          using b = await given(name, y, [...shapeB, k, n]);
          using c = await product(a, b);
          const rank = Math.max(shapeA.length, shapeB.length);
          const batch = range(rank).map((axis) =>
            Math.max(shapeA.at(axis - rank) ?? 1, shapeB.at(axis - rank) ?? 1),
          );
          expect(c.shape).toEqual([...batch, m, n]);
          const matrixOf = (matrix: number, shape: readonly number[]): number => {
            let [rest, at, step] = [matrix, 0, 1];
            for (let axis = 1; axis <= rank; axis++) {
              const index = rest % batch[rank - axis]!;
              rest = Math.floor(rest / batch[rank - axis]!);
              const extent = shape[shape.length - axis] ?? 1;
              at += extent === 1 ? 0 : index * step;
              step *= extent;
            }
            return at;
          };
          check(
            (await c.read()) as Float32Array,
            (matrix, row, p) => x[(matrixOf(matrix, shapeA) * m + row) * k + p]!,
            (matrix, p, column) => y[(matrixOf(matrix, shapeB) * k + p) * n + column]!,
            [count(batch), m, n, k],
            name,
            name,
          );
        }
      }
    });

    test('views: parts of matrices, rows in reverse, axes exchanged', async () => {
      for (const name of ['f16', 'bf16', 'f32'] as const) {
        const values = numbers(100 * 96, 5);
        const held = asHeld(values, name);
        using whole = await given(name, held, [100, 96]);
        const view = whole as never as { slice(...axes: unknown[]): KernelTensor };
        const [m, n, k] = [20, 30, 24];
        // Views that begin at a multiple of 16 bytes, and elsewhere.
        for (const [top, left] of [
          [8, 16],
          [3, 5],
        ] as const) {
          const a = view.slice([top, top + m], [left, left + k]);
          const b = view
            .slice([top, top + n], [left + 8, left + 8 + k])
            .transpose() as unknown as KernelTensor;
          check(
            await read(product(a, b)),
            (_, row, p) => held[(top + row) * 96 + left + p]!,
            (_, p, column) => held[(top + column) * 96 + left + 8 + p]!,
            [1, m, n, k],
            name,
            name,
          );
        }
        // Heads of attention: [position][head][channel] as a batch of heads.
        using heads = await given(name, held, [20, 10, 48]);
        const q = heads.permute([1, 0, 2] as never) as unknown as KernelTensor;
        check(
          await read(product(q, q.transpose() as never)),
          (head, row, p) => held[(row * 10 + head) * 48 + p]!,
          (head, p, column) => held[(column * 10 + head) * 48 + p]!,
          [10, 20, 20, 48],
          name,
          name,
        );
      }
    });

    test('a common dimension of 0 gives zeros; no elements give an empty matrix', async () => {
      for (const name of ['f16', 'f32'] as const) {
        using a = await given(name, [], [3, 0]);
        using b = await given(name, [], [0, 2]);
        expect([...(await read(product(a, b)))]).toEqual([0, 0, 0, 0, 0, 0]);
        using none = await product(b, b.transpose() as never);
        expect(none.shape).toEqual([0, 0]);
      }
    });

    test('infinities and NaN affect their rows and columns only, also at tile edges', async () => {
      const [m, n, k] = [65, 67, 33];
      const x = numbers(m * k, 1);
      x[10 * k + 5] = Infinity;
      x[20 * k + 6] = NaN;
      using a = await given('f16', x, [m, k]);
      using b = await given('f16', new Array<number>(k * n).fill(1), [k, n]);
      const result = await read(product(a, b));
      expect(
        range(m * n)
          .filter((at) => !Number.isFinite(result[at]!))
          .map((at) => Math.floor(at / n)),
      ).toEqual([...new Array<number>(n).fill(10), ...new Array<number>(n).fill(20)]);
      expect(
        range(n).every(
          (column) => result[10 * n + column] === Infinity && Number.isNaN(result[20 * n + column]),
        ),
      ).toBe(true);
    });

    test('operations as factors, in graphs', async () => {
      using a = await device.ones(f16, [40, 24]);
      using c = await matmul(a, transpose(a), { dtype: f32 });
      expect(c.shape).toEqual([40, 40]);
      expect((await c.read()).every((value) => value === 24)).toBe(true);
      expect(
        await matmul(device.ones(f32, [3, 5]), device.full(f32, [5, 2], 2)).andThen((each) =>
          each.read(),
        ),
      ).toEqual(new Float32Array(6).fill(10));
    });

    test('f32 is one chain of fused multiply-adds', async () => {
      const [m, n, k] = [5, 6, 50];
      const [x, y] = [
        range(m * k).map((i) => Math.fround(Math.sin(i))),
        range(k * n).map((i) => Math.fround(Math.cos(i))),
      ];
      using a = await given('f32', x, [m, k]);
      using b = await given('f32', y, [k, n]);
      const expected = range(m * n).map((at) => {
        let sum = 0;
        // Products of f32 are exact in double; rounding twice differs in one case of 2^29.
        for (let p = 0; p < k; p++)
          sum = Math.fround(x[Math.floor(at / n) * k + p]! * y[p * n + (at % n)]! + sum);
        return sum;
      });
      expect([...(await read(product(a, b)))]).toEqual(expected);
    });

    test.runIf(onCpu)(
      'f16 on the CPU device: one sum in f32 along K, whatever the tiles',
      async () => {
        const [m, n, k] = [70, 66, 100];
        const [x, y] = [numbers(m * k, 8).map((value) => value * 0.9), numbers(k * n, 9)];
        using a = await given('f16', x, [m, k]);
        using b = await given('f16', y, [k, n]);
        const [held] = [(await a.read()) as ArrayLike<number>];
        const expected = range(m * n).map((at) => {
          let sum = 0;
          for (let p = 0; p < k; p++)
            sum = Math.fround(sum + held[Math.floor(at / n) * k + p]! * y[p * n + (at % n)]!);
          return sum;
        });
        expect([...(await read(product(a, b, 'f32')))]).toEqual(expected);
      },
    );

    const small = PLANS.at(-1)!;
    const variants = [
      ...PLANS,
      { ...small, depth: 64, stages: 2 },
      { ...small, columns: 128, stages: 3, warpColumns: 64, group: 1 },
      { ...small, rows: 32, columns: 32, warpRows: 16, warpColumns: 16 },
    ];

    someOf(1, test)(variants)(
      'every plan gives the same bits: $rows × $columns × $depth',
      async (plan) => {
        for (const [m, n, k] of [
          [150, 270, 70],
          [plan.rows * 3, plan.columns, plan.depth * 3],
        ] as const) {
          using a = await given('f16', numbers(m * k, 8), [m, k]);
          using b = await given('f16', numbers(k * n, 9), [k, n]);
          const [ours, expected] = [
            await read(matmulBy(plan, a, b, { dtype: f32 })),
            await read(matmulBy(small, a, b, { dtype: f32 })),
          ];
          expect(range(m * n).filter((at) => !Object.is(ours[at], expected[at]))).toEqual([]);
        }
      },
    );

    test("the kernel as JavaScript gives the CPU device's bits", { tags: 'thorough' }, async () => {
      const [m, n, k] = [37, 34, 40];
      const plan = { ...small, rows: 32, columns: 32, warpRows: 16, warpColumns: 16, stages: 3 };
      for (const [leftByDepth, rightByDepth] of [
        [true, false],
        [false, true],
      ] as const) {
        const [x, y] = [numbers(m * k, 8), numbers(k * n, 9)];
        using a = await given('f16', x, [m, k]);
        using b = await given('f16', y, [k, n]);
        // Rows and columns at multiples of 8 elements.
        const padded = (
          values: readonly number[],
          lines: number,
          depth: number,
          at: (line: number, depth: number) => number,
          byDepth: boolean,
        ): { elements: number[]; stride: number } => {
          const [outer, inner] = byDepth ? [lines, depth] : [depth, lines];
          const stride = Math.ceil(inner / 8) * 8;
          return {
            stride,
            elements: range(outer * stride).map((i) =>
              i % stride < inner
                ? values[
                    byDepth
                      ? at(Math.floor(i / stride), i % stride)
                      : at(i % stride, Math.floor(i / stride))
                  ]!
                : NaN,
            ),
          };
        };
        const [left, right] = [
          padded(x, m, k, (line, depth) => line * k + depth, leftByDepth),
          padded(y, n, k, (line, depth) => depth * n + line, rightByDepth),
        ];
        const kernel = tensorCoreProduct({
          plan,
          dtype: f16,
          out: f32,
          leftByDepth,
          rightByDepth,
          edges: true,
          pairs: true,
          wide: false,
        }) as unknown as {
          simulate(args: object, options: object): Promise<{ out: Float32Array }>;
        };
        const { out } = await kernel.simulate(
          {
            out: new Float32Array(m * n),
            a: Float32Array.from(left.elements),
            b: Float32Array.from(right.elements),
            m,
            n,
            k,
            strideA: left.stride,
            strideB: right.stride,
            pitch: n / 2,
            down: 2,
            across: 2,
            inner: 1,
            outerA: 0,
            innerA: 0,
            outerB: 0,
            innerB: 0,
            // Of grouped products; others do not read it.
            ends: new Float32Array(1),
          },
          { grid: 4, sharedBytes: sharedBytesOf(plan) },
        );
        if (onCpu) expect(out).toEqual(await read(matmulBy(plan, a, b, { dtype: f32 })));
        check(
          out,
          (_, row, p) => x[row * k + p]!,
          (_, p, column) => y[p * n + column]!,
          [1, m, n, k],
          'f16',
          'f32',
        );
      }
    });

    test('errors state what to write instead', async () => {
      using a = await device.ones(f16, [4, 6]);
      using b = await device.ones(f16, [4, 6]);
      using floats = await device.ones(f32, [6, 4]);
      using vector = await device.ones(f16, [6]);
      using whole = await device.ones(i32, [6, 4]);
      using many = await device.ones(f16, [3, 4, 6]);
      using others = await device.ones(f16, [2, 6, 4]);
      expect(await message(() => matmul(a, b))).toContain(
        'a has 6 columns and b 4 rows ([4, 6], [4, 6]). They have to be as many: write ' +
          'matmul(a, b.transpose())',
      );
      expect(await message(() => matmul(a, floats as never))).toContain(
        'Convert a with convert(f32).',
      );
      expect(await message(() => matmul(a, vector))).toContain('unsqueeze(1)');
      expect(await message(() => matmul(whole as never, whole as never))).toContain(
        'Convert it with convert(f32).',
      );
      expect(await message(() => matmul(many, others))).toContain(
        'axes before the last two that do not broadcast',
      );
      expect(await message(() => matmul(a, b.transpose(), { dtype: f64 }))).toContain(
        'f16, bf16, f32, for factors of f16',
      );
      expect(await message(() => matmul(a, b.transpose(), { type: f32 } as never))).toContain(
        'type',
      );
      expect(await message(() => matmul([1] as never, b))).toContain('device.tensor');
    });

    test('an operation that runs again multiplies what its tensors hold then', async () => {
      using a = await device.ones(f16, [40, 64]);
      using b = await device.ones(f16, [64, 48]);
      using out = await device.zeros(f16, [40, 48]);
      const product = matmul(a, b, { out });
      const streams = [device.core.createStream(), device.core.createStream()];
      for (let i = 1; i <= 6; i++) {
        await a.fill(i);
        await product.runOn(streams[i % 2]!);
        expect(new Set(await out.read())).toEqual(new Set([64 * i]));
      }
      const parts = out.partition([20, 48]);
      expect(await message(() => product)).toContain('partition');
      parts.unpartition();
      await product;
      b.close();
      expect(await failure(() => product)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    });

    test('types of results', async () => {
      using a = await device.ones(bf16, [4, 6]);
      using c = await matmul(a, a.transpose());
      const shape: readonly [4, 4] = c.shape;
      const { name }: { readonly name: 'bf16' } = c.dtype;
      expect([shape, name]).toEqual([[4, 4], 'bf16']);
      using wide = await matmul(a, a.transpose(), { dtype: f32 });
      const wider: 'f32' = wide.dtype.name;
      expect(wider).toBe('f32');
    });
  },
  allModes.slice(0, 1),
);
