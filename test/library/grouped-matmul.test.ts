/**
 * Products of grouped rows, on the device of the suite and on one of compute capability 9.0: small
 * whole numbers, so that sums are exact in any order.
 */
import {
  CudaArgumentError,
  Device,
  bf16,
  f16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  i32,
  i8,
} from 'async-cuda';
import type { DType, Tensor } from 'async-cuda';
import type { KernelDType } from 'async-cuda/core';
import { cumsum, groupedMatmul, matmul } from 'async-cuda/library';
import type { KernelTensor } from 'async-cuda/tensor';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { groupedMatmulBy } from '../../src/library/grouped-matmul.js';
import type { WarpGroupPlan } from '../../src/library/warp-group-product.js';
import { failure, onCpu, range, testDevice } from '../core/test-device.js';
import * as fc from '../fast-check.js';
import { hopperOptions, openHopper } from '../kernels/hopper/hopper-device.js';
import { someOf } from '../random-runs.js';

interface Case {
  readonly m: number;
  readonly k: number;
  readonly n: number;
  readonly ends: readonly number[];
  readonly dtype?: KernelDType;
  readonly right?: KernelDType;
  readonly out?: KernelDType;
  readonly precision?: 'tensor' | 'exact';
  /** Which of the factors is the transpose of what was written. */
  readonly turned?: string;
  /** Whether all groups have one matrix, by a stride of 0. */
  readonly shared?: boolean;
  readonly plan?: Partial<WarpGroupPlan>;
}

const PLAN: WarpGroupPlan = { rows: 128, columns: 128, stages: 3, splits: 1, group: 4 };

const numbers = (length: number, seed: number, most: number): number[] =>
  range(length).map((i) => ((((i + seed) * 7919 + Math.imul(i, i) * 31) >>> 3) % (most + 1)) - 1);

/** The group of each row, and -1 after the last: each end is at least the one before. */
function groupsOf(m: number, ends: readonly number[]): number[] {
  const groups = new Array<number>(m).fill(-1);
  let from = 0;
  ends.forEach((given, group) => {
    const end = Math.max(from, Math.min(given, m));
    groups.fill(group, from, end);
    from = end;
  });
  return groups;
}

async function check(device: Device, of: Case): Promise<void> {
  const { m, k, n, ends, dtype = f32, right = dtype, turned = '', shared = false } = of;
  const out = of.out ?? (dtype === i8 ? i32 : f32);
  const count = shared ? 1 : ends.length;
  const [xs, ys] = [numbers(m * k, 1, 3), numbers(count * k * n, 2, 2)];
  const made = (values: number[], shape: number[], as: KernelDType, isTurned: boolean) =>
    isTurned
      ? device
          .tensor(f32, values, shape)
          .andThen((x) => x.transpose().contiguous())
          .andThen((x) => x.convert(as as DType<'f32'>))
          .map((x) => x.transpose())
      : device.tensor(f32, values, shape).andThen((x) => x.convert(as as DType<'f32'>));
  using a = (await made(xs, [m, k], dtype, turned.includes('a'))) as unknown as KernelTensor;
  using b = (await made(ys, [count, k, n], right, turned.includes('b'))) as unknown as KernelTensor;
  using given = await device.tensor(i32, [...ends]);
  const factors = (shared ? b.broadcastTo([ends.length, k, n] as never) : b) as KernelTensor;
  const options = {
    dtype: out as DType<'f32'>,
    ...(of.precision === undefined ? {} : { precision: of.precision }),
  };
  using result = (await (of.plan === undefined
    ? groupedMatmul(
        a as unknown as Tensor<'f32'>,
        factors as unknown as Tensor<'f32'>,
        given,
        options,
      )
    : groupedMatmulBy(
        { ...PLAN, ...of.plan },
        a,
        factors,
        given,
        options,
      ))) as unknown as Tensor<'f32'>;
  expect(result.shape).toEqual([m, n]);
  expect(result.dtype).toBe(out);
  const values = await result.read();
  const groups = groupsOf(m, ends);
  for (let row = 0; row < m; row++)
    for (let column = 0; column < n; column++) {
      let sum = 0;
      const from = (shared ? 0 : groups[row]!) * k * n;
      if (groups[row]! >= 0)
        for (let i = 0; i < k; i++) sum += xs[row * k + i]! * ys[from + i * n + column]!;
      if (values[row * n + column] !== sum)
        throw new Error(
          `element [${row}][${column}] of group ${groups[row]} is ` +
            `${values[row * n + column]}, not ${sum}`,
        );
    }
}

const CASES: readonly (readonly [string, Case])[] = [
  ['groups that end within tiles', { m: 150, k: 40, n: 72, ends: [10, 75, 150], dtype: f16 }],
  [
    'groups without rows, ends that decrease, rows after the last group',
    { m: 100, k: 24, n: 40, ends: [0, -5, 30, 20, 30, 90], dtype: bf16 },
  ],
  ['ends after the last row', { m: 20, k: 8, n: 16, ends: [7, 1000, 2 ** 31 - 1] }],
  ['no rows in any group', { m: 40, k: 16, n: 24, ends: [0, 0], dtype: f16 }],
  ['odd extents, which are copied', { m: 33, k: 13, n: 7, ends: [20, 33], dtype: f16 }],
  [
    'more groups than a warp has lanes',
    { m: 90, k: 8, n: 8, ends: range(70).map((i) => Math.floor((i * i) / 50)), dtype: f16 },
  ],
  ['32 groups and rows after them', { m: 40, k: 8, n: 8, ends: range(32), dtype: bf16 }],
  [
    'transposed factors',
    { m: 72, k: 64, n: 40, ends: [30, 72], dtype: f16, turned: 'ab', out: f16 },
  ],
  ['weights by rows of results', { m: 70, k: 32, n: 24, ends: [9, 70], dtype: bf16, turned: 'b' }],
  ['one matrix for all groups', { m: 50, k: 16, n: 16, ends: [20, 50], dtype: f16, shared: true }],
  ['f32', { m: 70, k: 20, n: 33, ends: [40, 70], turned: 'a' }],
  ['f32 as tf32', { m: 70, k: 36, n: 32, ends: [40, 70], precision: 'tensor' }],
  ['f64', { m: 40, k: 20, n: 33, ends: [4, 40], dtype: f64, out: f64 }],
  ['f16, exact', { m: 40, k: 20, n: 34, ends: [4, 40], dtype: f16, precision: 'exact' }],
  [
    'f8 of both kinds',
    { m: 70, k: 64, n: 48, ends: [40, 64], dtype: f8e4m3, right: f8e5m2, turned: 'b', out: bf16 },
  ],
  ['whole numbers', { m: 70, k: 48, n: 20, ends: [40, 70], dtype: i8 }],
];

function checkAll(open: () => Promise<Device | undefined>): void {
  let device: Device | undefined;
  beforeAll(async () => {
    device = await open();
  });
  afterAll(() => device?.close());

  someOf(8, test)(CASES)('%s', async (_, of) => {
    if (device !== undefined) await check(device, of);
  });

  test('whatever the groups are', { tags: 'random' }, async () => {
    if (device === undefined) return;
    const shapes = fc.record({
      m: fc.integer({ min: 1, max: 300 }),
      k: fc.integer({ min: 1, max: 80 }),
      n: fc.integer({ min: 1, max: 90 }),
      ends: fc.array(fc.integer({ min: -10, max: 320 }), { minLength: 1, maxLength: 40 }),
      sorted: fc.boolean(),
      dtype: fc.constantFrom<KernelDType>(f16, bf16, f32),
      turned: fc.constantFrom('', 'a', 'b', 'ab'),
    });
    await fc.assert(
      fc.asyncProperty(shapes, async ({ sorted, ends, ...of }) => {
        await check(device!, { ...of, ends: sorted ? [...ends].sort((x, y) => x - y) : ends });
      }),
      { numRuns: 20 },
    );
  });
}

describe('products of grouped rows', () => {
  checkAll(() => Device.open(testDevice));
});

describe('products of grouped rows by warp groups', () => {
  checkAll(openHopper);

  let device: Device | undefined;
  beforeAll(async () => {
    device = await openHopper();
  });
  afterAll(() => device?.close());

  const PLANS: readonly (readonly [string, Case])[] = [
    [
      'several tiles for each block',
      { m: 700, k: 64, n: 330, ends: [130, 400, 690], dtype: f16, plan: { rows: 64, columns: 64 } },
    ],
    [
      'tiles of 192 columns, written by copies and by threads',
      { m: 300, k: 72, n: 400, ends: [128, 250], dtype: f16, out: f16, plan: { columns: 192 } },
    ],
    [
      'tiles of 256 columns of f32',
      { m: 200, k: 64, n: 264, ends: [150, 200], dtype: bf16, plan: { columns: 256 } },
    ],
  ];
  someOf(1, test)(PLANS)('%s', async (_, of) => {
    if (device !== undefined) await check(device, of);
  });

  // The checker takes ten seconds and more to compile the kernel.
  test.runIf(onCpu)('under the checker', { tags: 'thorough', timeout: 300_000 }, async () => {
    await using checked = await Device.open('cpu', { ...hopperOptions, check: true });
    const plan = { rows: 64, columns: 64, stages: 2 };
    await check(checked, { m: 260, k: 136, n: 72, ends: [100, 90, 200], dtype: f16, plan });
  });
});

describe('arguments of grouped products', () => {
  let device: Device;
  beforeAll(async () => {
    device = await Device.open(testDevice);
  });
  afterAll(() => device.close());

  test('sizes by cumsum, an existing result, repeated runs', async () => {
    using a = await device.ones(f32, [6, 4]);
    using b = await device.tensor(f32, [1, 1, 1, 1, 2, 2, 2, 2], [2, 4, 1]);
    using sizes = await device.tensor(i32, [2, 3]);
    using ends = await cumsum(sizes);
    using out = await device.full(f32, [6, 1], 9);
    const product = groupedMatmul(a, b, ends, { out });
    expect(await product).toBe(out);
    expect([...(await out.read())]).toEqual([4, 4, 8, 8, 8, 0]);
    await sizes.write(new Int32Array([6, 0]));
    await ends.copyFrom(cumsum(sizes));
    await product;
    expect([...(await out.read())]).toEqual([4, 4, 4, 4, 4, 4]);
  });

  test('the bits of f32 are those of the separate products', async () => {
    using a = await device.randn(f32, [40, 50], { seed: 1 });
    using b = await device.randn(f32, [2, 50, 30], { seed: 2 });
    using ends = await device.tensor(i32, [17, 40]);
    using whole = await groupedMatmul(a, b, ends);
    using first = await matmul(a.slice([0, 17]), b.slice(0));
    using second = await matmul(a.slice([17, 40]), b.slice(1));
    expect([...(await whole.read())]).toEqual([...(await first.read()), ...(await second.read())]);
  });

  test('empty tensors', async () => {
    const run = async (m: number, k: number, n: number, groups: number) => {
      using a = await device.ones(f32, [m, k]);
      using b = await device.ones(f32, [groups, k, n]);
      using ends = await device.zeros(i32, [groups]);
      using out = await groupedMatmul(a, b, ends);
      return [...(await out.read())];
    };
    expect(await run(0, 3, 2, 2)).toEqual([]);
    expect(await run(2, 3, 0, 2)).toEqual([]);
    expect(await run(1, 0, 2, 2)).toEqual([0, 0]);
    expect(await run(1, 2, 2, 0)).toEqual([0, 0]);
  });

  test('wrong arguments are refused at the call', async () => {
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    using a = await device.zeros(f32, [6, 4]);
    using b = await device.zeros(f32, [2, 4, 3]);
    using half = await device.zeros(f16, [2, 4, 3]);
    using ends = await device.zeros(i32, [2]);
    expect(await message(() => groupedMatmul(b as never, b, ends))).toContain(
      'a: expected two axes [M, K], for groupedMatmul(…)',
    );
    expect(await message(() => groupedMatmul(a, a as never, ends))).toContain('write matmul(a, b)');
    expect(await message(() => groupedMatmul(a, half as never, ends))).toContain('b: expected');
    expect(await message(() => groupedMatmul(a, b.transpose(), ends))).toContain(
      'write groupedMatmul(a, b.transpose(), ends)',
    );
    expect(await message(async () => groupedMatmul(a, b, device.zeros(i32, [3])))).toContain(
      'ends: expected a Tensor of i32 or i64 of shape [2]',
    );
    expect(await message(() => groupedMatmul(a, b, a as never))).toContain('cumsum(sizes)');
    expect(
      await message(() => groupedMatmul(a, b, ends, { precision: 'fast' as never })),
    ).toContain('options.precision: expected one of tensor, exact');
    expect(await message(() => groupedMatmul(a, b, ends, { engine: 'own' } as never))).toContain(
      'engine',
    );
    expect(await message(() => groupedMatmul(a, b, ends, { dtype: f64 as never }))).toContain(
      'options.dtype',
    );
  });
});
