/**
 * Norms of rows whose squares leave the range of their dtype, and of rows that are far from 0: as
 * computed in f64, or exactly, and rounded.
 */
import { Device, bf16, f16, f32, f64 } from 'async-cuda';
import type { AnyTensor, DType, DeviceOp } from 'async-cuda';
import { layerNorm, rmsNorm } from 'async-cuda/library';
import * as fc from '../fast-check.js';
import { beforeAll, describe, expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

/** In f64, of values that it squares without losing any: those of 32 bits and fewer. */
function reference(row: readonly number[], isCentred: boolean, eps: number): number[] {
  const mean = isCentred ? row.reduce((sum, x) => sum + x, 0) / row.length : 0;
  const rest = isCentred ? row.reduce((sum, x) => sum + (x - mean), 0) / row.length : 0;
  const square = row.reduce((sum, x) => sum + (x - mean - rest) ** 2, 0) / row.length;
  return row.map((x) => (x - mean - rest) / Math.sqrt(square + eps));
}

/**
 * Of whole numbers times a power of two, without eps: d √n / √Σd² with d = n x - Σx, in integers up
 * to the roots.
 */
function exactReference(row: readonly bigint[], isCentred: boolean): number[] {
  const n = BigInt(row.length);
  const sum = isCentred ? row.reduce((a, b) => a + b, 0n) : 0n;
  const parts = row.map((x) => (isCentred ? n * x - sum : x));
  const squares = parts.reduce((all, d) => all + d * d, 0n);
  return parts.map((d) => Number(d) * (Math.sqrt(row.length) / Math.sqrt(Number(squares))));
}

const SIZES = [1, 5, 16, 33, 1000, 3000, 20_000, 33_001];

onDevice('Norms', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const norm = (isCentred: boolean): ((x: AnyTensor, options: object) => DeviceOp<AnyTensor>) =>
    (isCentred ? layerNorm : rmsNorm) as never;

  /** Rows in the dtype, their norms, and the expected norms. */
  async function check(
    dtype: DType,
    rows: readonly (readonly number[])[],
    isCentred: boolean,
    eps: number,
    error: number,
  ): Promise<void> {
    const columns = rows[0]!.length;
    using x = (await device.tensor(dtype as DType<'f32'>, rows.flat(), [
      rows.length,
      columns,
    ])) as unknown as AnyTensor & Disposable;
    const held = Array.from((await x.read()) as ArrayLike<number>);
    const found = (await norm(isCentred)(x, { eps }).andThen((y) => y.read())) as ArrayLike<number>;
    rows.forEach((_, row) => {
      const wanted = reference(held.slice(row * columns, (row + 1) * columns), isCentred, eps);
      wanted.forEach((value, i) => {
        const got = found[row * columns + i]!;
        if (
          !Object.is(got, value) &&
          !(Math.abs(got - value) <= error * Math.max(1, Math.abs(value)))
        )
          expect.fail(
            `row ${row} of ${columns}, element ${i} of ${dtype.name}: ${got}, not ${value}`,
          );
      });
    });
  }

  const wave = (size: number, seed: number): number[] =>
    Array.from({ length: size }, (_, i) => (((i * 7919 + seed * 104_729) % 2003) - 1001) / 500);

  describe.each([
    { isCentred: true, name: 'layerNorm' },
    { isCentred: false, name: 'rmsNorm' },
  ])('$name', ({ isCentred }) => {
    someOf(2, test)(SIZES)(
      'rows of %i f32: large, tiny, far from 0, and usual ones among them',
      async (size) => {
        const rows = [
          wave(size, 1),
          wave(size, 2).map((x) => x * 1e30),
          wave(size, 3).map((x) => x * 1.6e38),
          wave(size, 4).map((x) => x * 1e-25),
          wave(size, 5).map((x) => x * 1e-38),
          wave(size, 6).map((x) => x * 1e-43),
          wave(size, 7).map((x) => 10_000 + x),
          wave(size, 8).map((x) => -1e6 + x * 3),
          wave(size, 9).map((x) => 3e38 + x * 1e35),
          new Array<number>(size).fill(0),
          new Array<number>(size).fill(7.3),
          wave(size, 10),
        ];
        await check(f32, rows, isCentred, 1e-5, 2e-6);
        if (size > 1)
          await check(
            f32,
            rows.filter((row) => new Set(row.map(Math.fround)).size > 1),
            isCentred,
            0,
            2e-6,
          );
      },
      60_000,
    );

    someOf(
      1,
      test,
    )([
      { dtype: f16, scales: [1, 3e4, 1e-6], error: 6e-4 },
      { dtype: bf16, scales: [1, 1e30, 1e38, 1e-30, 1e-39], error: 5e-3 },
    ])(
      '$dtype.name',
      async ({ dtype, scales, error }) => {
        for (const size of [6, 40, 2000]) {
          await check(
            dtype,
            scales.map((scale, seed) => wave(size, seed).map((x) => x * scale)),
            isCentred,
            0,
            error,
          );
          await check(
            dtype,
            scales.map((scale, seed) => wave(size, seed).map((x) => ((x + 40) * scale) / 50)),
            isCentred,
            1e-30,
            error,
          );
        }
      },
      60_000,
    );

    test(
      'of f64 as exact arithmetic has them, at every scale and offset',
      { tags: 'random' },
      async () => {
        const scale = fc.integer({ min: -1060, max: 960 });
        const offset = fc.constantFrom(0n, 3n, 1n << 20n, -(1n << 40n), 1n << 51n);
        await fc.assert(
          fc.asyncProperty(
            fc.constantFrom(2, 5, 40, 1500, 17_000),
            fc.array(fc.tuple(scale, offset, fc.nat(1000)), { minLength: 3, maxLength: 3 }),
            async (size, rows) => {
              const whole = rows.map(([, by, seed]) =>
                wave(size, seed).map((x) => BigInt(Math.round(x * 500)) + by),
              );
              const values = rows.flatMap(([power], row) =>
                whole[row]!.map((x) => Number(x) * 2 ** power),
              );
              // Below the least normal number a double does not hold them all.
              fc.pre(
                rows.every(([power], row) =>
                  whole[row]!.every(
                    (x) =>
                      (Number(x) * 2 ** power) / 2 ** power === Number(x) &&
                      Number.isFinite(Number(x) * 2 ** power),
                  ),
                ),
              );
              const found = (await device
                .tensor(f64, values, [rows.length, size])
                .andThen((x) => norm(isCentred)(x as never, { eps: 0 }))
                .andThen((y) => y.read())) as Float64Array;
              whole.forEach((row, r) =>
                exactReference(row, isCentred).forEach((wanted, i) => {
                  const got = found[r * size + i]!;
                  if (!(Math.abs(got - wanted) <= 1e-13 * Math.max(1, Math.abs(wanted))))
                    expect.fail(
                      `row ${r} of ${size} (2^${rows[r]![0]}, + ${rows[r]![1]}), element ${i}: ` +
                        `${got}, not ${wanted}`,
                    );
                }),
              );
            },
          ),
          { numRuns: 12 },
        );
      },
    );

    test('weights and biases are applied after, and NaN stays NaN', async () => {
      const row = [1e30, -2e30, 3e30, 1e30];
      const weight = [1, 2, 0.5, -1];
      const bias = [0.25, 0, -3, 1];
      using w = await device.tensor(f32, weight);
      using b = await device.tensor(f32, bias);
      const found = Array.from(
        (await device
          .tensor(f32, row)
          .andThen((x) =>
            norm(isCentred)(x as never, isCentred ? { weight: w, bias: b } : { weight: w }),
          )
          .andThen((y) => y.read())) as Float32Array,
      );
      reference(row, isCentred, 0).forEach((value, i) =>
        expect(found[i]).toBeCloseTo(value * weight[i]! + (isCentred ? bias[i]! : 0), 5),
      );
      const odd = (await device
        .tensor(f32, [1, NaN, 2, 3, Infinity, 1, 2, 4, 1, 2, 3, 4], [3, 4])
        .andThen((x) => norm(isCentred)(x as never, {}))
        .andThen((y) => y.read())) as Float32Array;
      expect([...odd.subarray(0, 4)]).toEqual([NaN, NaN, NaN, NaN]);
      expect([...odd.subarray(4, 8)]).toEqual(isCentred ? [NaN, NaN, NaN, NaN] : [NaN, 0, 0, 0]);
      expect(odd.subarray(8).every((value) => Number.isFinite(value))).toBe(true);
    });
  });
});
