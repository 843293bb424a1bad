/**
 * Products by Hopper's warp groups, on a device of compute capability 9.0: whole numbers whose sums
 * f32 holds, so that results are exact.
 */
import { bf16, f16, f32, f8e4m3, f8e5m2, i32, i8, u8 } from 'async-cuda';
import { Device } from 'async-cuda';
import type { DType } from 'async-cuda';
import type { KernelDType } from 'async-cuda/core';
import { matmul } from 'async-cuda/library';
import type { KernelTensor } from 'async-cuda/tensor';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { matmulBy } from '../../src/library/matmul.js';
import { planFor } from '../../src/library/warp-group-matmul.js';
import type { WarpGroupPlan } from '../../src/library/warp-group-product.js';
import { onCpu, range } from '../core/test-device.js';
import { tagsOf } from '../random-runs.js';
import { hopperOptions, openHopper } from '../kernels/hopper/hopper-device.js';

let device: Device | undefined;
beforeAll(async () => {
  device = await openHopper();
});
afterAll(() => device?.close());

const numbers = (length: number, seed: number): number[] =>
  range(length).map((i) => (((i + seed) * 7919 + Math.imul(i, i) * 31) % 13) - 6);

interface Case {
  readonly a: readonly number[];
  readonly b: readonly number[];
  /** Which of the factors is the transpose of what was written. */
  readonly turned?: string;
  readonly dtype?: KernelDType;
  /** The dtype of b; default: that of a. */
  readonly right?: KernelDType;
  readonly out?: KernelDType;
  readonly precision?: 'tensor';
  readonly plan?: Partial<WarpGroupPlan>;
}

const PLAN: WarpGroupPlan = { rows: 128, columns: 128, stages: 3, splits: 1, group: 4 };
const CASES: Readonly<Record<string, Case>> = {
  'rows and columns that end within a tile': { a: [100, 72], b: [72, 88] },
  'an odd number of columns, and a depth that is copied': { a: [33, 71], b: [71, 45] },
  'two batches that broadcast': { a: [3, 1, 40, 64], b: [2, 64, 72], out: f16 },
  'a batch of strides': { a: [3, 2, 40, 64], b: [3, 2, 64, 72], dtype: bf16, out: bf16 },
  'a transposed left factor': { a: [64, 104], b: [64, 96], turned: 'a' },
  'a transposed right factor': { a: [100, 64], b: [90, 64], turned: 'b', dtype: bf16 },
  'both transposed': { a: [72, 104], b: [96, 72], turned: 'ab', out: f16 },
  'one row and one column': { a: [1, 256], b: [256, 1] },
  'several tiles for each block': { a: [300, 64], b: [64, 520], plan: { columns: 256 } },
  'tiles of 192 columns': { a: [130, 128], b: [128, 200], plan: { columns: 192 }, out: f16 },
  'parts of the depth in a cluster': { a: [100, 1000], b: [1000, 90], plan: { splits: 4 } },
  'parts, one warp group, halves': {
    ...{ a: [70, 640], b: [640, 200], dtype: bf16, out: bf16 },
    plan: { rows: 64, columns: 64, splits: 8 },
  },
  'f8 whose rows and columns end within a tile': {
    ...{ a: [100, 72], b: [72, 88], dtype: f8e4m3, out: f32 },
  },
  'f8 of both kinds, by columns of b': {
    ...{ a: [70, 256], b: [90, 256], turned: 'b', dtype: f8e4m3, right: f8e5m2, out: bf16 },
  },
  'f8 in a batch, to f8': { a: [3, 40, 20], b: [20, 80], dtype: f8e5m2, out: f8e4m3 },
  'f8, parts of the depth in a cluster': {
    ...{ a: [100, 1000], b: [1000, 90], dtype: f8e4m3 },
    plan: { splits: 4 },
  },
  'whole numbers': { a: [130, 200], b: [200, 70], dtype: i8, out: i32 },
  'whole numbers of both kinds, by columns of b': {
    ...{ a: [2, 70, 160], b: [2, 140, 160], turned: 'b', dtype: i8, right: u8, out: i32 },
    plan: { columns: 256, stages: 2 },
  },
  'whole numbers, parts of the depth': {
    ...{ a: [64, 1024], b: [1024, 64], dtype: u8, right: i8, out: i32 },
    plan: { rows: 64, columns: 64, splits: 2 },
  },
  'f32 as tf32': { a: [100, 70], b: [70, 90], dtype: f32, precision: 'tensor' },
  'f32 as tf32, both transposed': {
    ...{ a: [72, 104], b: [96, 72], turned: 'ab', dtype: f32, out: f16, precision: 'tensor' },
    plan: { columns: 192 },
  },
};
/** The greatest whole numbers; tensor cores keep 13 bits of a step's sum of products of f8. */
const MOST: Readonly<Record<string, number>> = { f8e4m3: 3, f8e5m2: 2 };
const held = (value: number, { name }: KernelDType): number =>
  name === 'u8'
    ? Math.abs(value)
    : Math.max(-(MOST[name] ?? 18), Math.min(MOST[name] ?? 18, value));

describe('products by warp groups', () => {
  for (const [
    name,
    { a: shapeA, b: shapeB, turned = '', dtype = f16, right = dtype, out = f32, plan, precision },
  ] of Object.entries(CASES))
    test(name, { tags: tagsOf(Object.keys(CASES), name, 7) }, async ({ skip }) => {
      if (device === undefined) return skip('SKIPPED: no device of compute capability 9.0');
      const size = (shape: readonly number[]): number => shape.reduce((x, y) => x * y, 1);
      const xs = numbers(size(shapeA), 1).map((x) => held(x, dtype));
      const ys = numbers(size(shapeB), 2).map((y) => held(y, right));
      const made = async (values: number[], shape: readonly number[], of: KernelDType) =>
        (await device!.tensor(of as DType<'f32'>, values, [...shape])) as unknown as KernelTensor;
      const view = (tensor: KernelTensor, letter: string): KernelTensor =>
        turned.includes(letter) ? (tensor.transpose() as unknown as KernelTensor) : tensor;
      using a = await made(xs, shapeA, dtype);
      using b = await made(ys, shapeB, right);
      using wideA = await made(xs, shapeA, f32);
      using wideB = await made(ys, shapeB, f32);
      const options = {
        dtype: out as DType<'f32'>,
        ...(precision === undefined ? {} : { precision }),
      };
      const product =
        plan === undefined
          ? matmul(view(a, 'a') as never, view(b, 'b') as never, options)
          : matmulBy({ ...PLAN, ...plan }, view(a, 'a'), view(b, 'b'), options);
      using result = (await product) as unknown as KernelTensor;
      using wanted = (await matmul(view(wideA, 'a') as never, view(wideB, 'b') as never).andThen(
        (sums: KernelTensor) => sums.convert(options.dtype),
      )) as unknown as KernelTensor;
      expect(result.shape).toEqual(wanted.shape);
      expect(await result.read()).toEqual(await wanted.read());
    });

  test('factors that are one element along the depth', async ({ skip }) => {
    if (device === undefined) return skip('SKIPPED: no device of compute capability 9.0');
    using column = await device.tensor(f16, numbers(40, 1), [40, 1]);
    using row = await device.tensor(f16, numbers(24, 2), [1, 24]);
    using out = await matmul(column.broadcastTo([40, 32]), row.broadcastTo([32, 24]), {
      dtype: f32,
    });
    const [xs, ys] = [numbers(40, 1), numbers(24, 2)];
    expect([...(await out.read())]).toEqual(xs.flatMap((x) => ys.map((y) => 32 * x * y)));
  });

  test('a repeated product into an existing tensor', async ({ skip }) => {
    if (device === undefined) return skip('SKIPPED: no device of compute capability 9.0');
    using a = await device.ones(f16, [80, 64]);
    using b = await device.full(f16, [64, 72], 2);
    using out = await device.zeros(f16, [80, 72]);
    const product = matmul(a, b, { out });
    for (const factor of [1, 3]) {
      await a.fill(factor);
      expect(await product).toBe(out);
      expect((await out.read()).every((value) => value === 128 * factor)).toBe(true);
    }
  });
});

describe.runIf(onCpu)('under the checker', () => {
  // Blocks that compute several tiles of an odd number of parts, which take turns in shared memory.
  const name = 'several tiles of %i columns for each block';
  test.each([64, 192])(name, { tags: 'thorough' }, async (columns) => {
    await using checked = await Device.open('cpu', {
      ...hopperOptions,
      check: true,
    });
    const tiles = 2 * checked.properties.multiprocessorCount + 1;
    using a = await checked.ones(f16, [64 * tiles, 64]);
    using b = await checked.ones(f16, [64, columns]);
    const plan: WarpGroupPlan = { rows: 64, columns, stages: 2, splits: 1, group: 4 };
    using out = (await matmulBy(
      plan,
      a as unknown as KernelTensor,
      b as unknown as KernelTensor,
    )) as unknown as KernelTensor;
    expect(((await out.read()) as Float32Array).every((value) => value === 64)).toBe(true);
  });
});

test('plans: large tiles for large products, clusters for few tiles', () => {
  const plan = (m: number, n: number, k: number): string => {
    const { rows, columns, splits } = planFor(m, n, k, 1, 132);
    return `${rows} × ${columns} in ${splits}`;
  };
  expect(plan(4096, 4096, 4096)).toBe('128 × 256 in 1');
  expect(plan(16, 4096, 4096)).toBe('64 × 256 in 4');
  expect(plan(64, 64, 64)).toBe('64 × 64 in 1');
});
