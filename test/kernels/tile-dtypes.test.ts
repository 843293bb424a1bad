/**
 * Products of tiles on tensor cores, of every dtype that they multiply: by warp groups on compute
 * capability 9.0, by warps on others.
 */
import { bf16, f16, f32, f8e4m3, f8e5m2, i32, i8, input, output, tileKernel, u8 } from 'async-cuda';
import type { DType, Tensor, Device } from 'async-cuda';
import { beforeAll, expect, test } from 'vitest';

import type { KernelDTypeName } from '../../src/core/index.js';
import { range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';
import { onTensorCores } from './tensor-core-devices.js';

/** The greatest whole numbers; tensor cores keep 13 bits of a step's sum of products of f8. */
const MOST: Readonly<Partial<Record<KernelDTypeName, number>>> = {
  f8e4m3: 3,
  f8e5m2: 2,
  u8: 255,
  i8: 127,
};

interface Dtypes {
  readonly a: DType<KernelDTypeName>;
  readonly b: DType<KernelDTypeName>;
  readonly out: DType<KernelDTypeName>;
}
type Extents = readonly [m: number, n: number, k: number];

const numbers = (length: number, seed: number, { name }: DType<KernelDTypeName>): number[] => {
  const most = MOST[name] ?? 6;
  const least = name === 'u8' ? 0 : -most;
  return range(length).map(
    (i) => ((((i + seed) * 7919 + ((i * i) % 10007) * 31) % 4093) % (most - least + 1)) + least,
  );
};

type AnyKernel = ((args: object) => PromiseLike<{ readonly c: Tensor<'f32'> }>) & {
  report(of: Device, shape: object): Promise<{ readonly products: readonly string[] }>;
  ptx(target: object, shape: object): Promise<string>;
  with(changes: object): AnyKernel;
};

const tile = { m: 128, n: 64, k: { walk: 32 } };
/** `c = 2 · a · bᵀ`, whose b has the common axis last. */
const turned = ({ a, b, out }: Dtypes): AnyKernel =>
  tileKernel(
    'turned',
    { c: output(out as typeof f32), a: input(a as typeof f32), b: input(b as typeof f32) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k'))
        sum = tile.dot(a.load(part), tile.transpose(b.load(part)), sum, { precision: 'tensor' });
      c.store(sum * 2);
    },
    { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['n', 'k'] }, tile },
  ) as unknown as AnyKernel;
/** The same of b as it is multiplied, begun with a row. */
const plain = ({ a, b, out }: Dtypes): AnyKernel =>
  tileKernel(
    'plain',
    { c: output(out as typeof f32), a: input(a as typeof f32), b: input(b as typeof f32) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
      c.store(sum);
    },
    { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] }, tile },
  ) as unknown as AnyKernel;

const CASES: readonly (readonly [name: string, dtypes: Dtypes, factors: string])[] = [
  ['f8e4m3', { a: f8e4m3, b: f8e4m3, out: f32 }, 'k32 of f8e4m3'],
  ['both f8', { a: f8e5m2, b: f8e4m3, out: f32 }, 'k32 of f8e5m2 and f8e4m3'],
  ['i8', { a: i8, b: i8, out: i32 }, 'k32 of i8'],
  ['u8 and i8', { a: u8, b: i8, out: i32 }, 'k32 of u8 and i8'],
  ['f32 as tf32', { a: f32, b: f32, out: f32 }, 'k8 of tf32'],
  ['bf16', { a: bf16, b: bf16, out: f32 }, 'k16 of bf16'],
];
/** Rows and columns of tiles, and the length of the summed axis. */
const TILES = [
  [64, 64, 96],
  [64, 128, 40],
  [128, 128, 200],
  [128, 256, 96],
  [64, 256, 200],
] as const;

const reference = ([m, n, k]: Extents, xs: ArrayLike<number>, ys: ArrayLike<number>): number[] =>
  range(m).flatMap((row) =>
    range(n).map((column) =>
      range(k).reduce((sum, p) => sum + xs[row * k + p]! * ys[column * k + p]!, 0),
    ),
  );

onTensorCores('compute capability ', (host) => {
  let device: Device;
  let version = 0;
  beforeAll(() => {
    ({ device, version } = host);
  });
  const instruction = (columns: number, factors: string): string =>
    `${version === 90 ? `wgmma.m64n${columns}` : 'mma.m16n8'}${factors}`;

  someOf(1, test)(CASES)('whole numbers of %s', async (_, dtypes, factors) => {
    const [m, n, k] = [140, 72, 304];
    const kernel = turned(dtypes);
    expect((await kernel.report(device, { m, n, k })).products).toEqual([instruction(64, factors)]);
    const [xs, ys] = [numbers(m * k, 1, dtypes.a), numbers(n * k, 2, dtypes.b)];
    using a = await device.tensor(dtypes.a as typeof f32, xs, [m, k]);
    using b = await device.tensor(dtypes.b as typeof f32, ys, [n, k]);
    using c = (await kernel({ a, b })).c;
    expect([...(await c.read())]).toEqual(reference([m, n, k], xs, ys).map((sum) => sum * 2));
  });

  someOf(1, test)(CASES.filter(([, { a }]) => a.bytes === 1))(
    '%s, whose right factor is a transposed view',
    async (_, dtypes) => {
      const [m, n, k] = [64, 64, 96];
      const kernel = plain(dtypes);
      const [xs, ys] = [numbers(m * k, 1, dtypes.a), numbers(n * k, 2, dtypes.b)];
      using a = await device.tensor(dtypes.a as typeof f32, xs, [m, k]);
      using b = await device.tensor(dtypes.b as typeof f32, ys, [n, k]);
      using c = (await kernel({ a, b: b.transpose() })).c;
      expect([...(await c.read())]).toEqual(reference([m, n, k], xs, ys));
      // Its own rows are along n, which products of 8 bits do not take.
      expect((await kernel.report(device, { m, n, k })).products[0]).toBe(
        `${dtypes.out === i32 ? 'i32' : 'f32'}: elements of b are not adjacent along k, which ` +
          `products of ${dtypes.b.name} need`,
      );
    },
  );

  // Short axes have steps of 64 bytes where those suit them better.
  someOf(1, test)(TILES)(
    'f16 in tiles of %i × %i, %i of the summed axis, in a batch and transposed',
    async (rows, columns, k) => {
      const kernel = tileKernel(
        'batch',
        { c: output(f16), a: input(f16), b: input(f16), bias: input(f32), first: input(f32) },
        ({ c, a, b, bias, first }, tile) => {
          let sum = first.load();
          for (const part of tile.over('k'))
            sum = tile.dot(tile.transpose(a.load(part)), b.load(part), sum);
          c.store(Math.max(sum + bias.load(), 0));
        },
        {
          axes: {
            c: ['z', 'm', 'n'],
            a: ['z', 'k', 'm'],
            b: ['z', 'k', 'n'],
            bias: ['n'],
            first: ['m', 1],
          },
          tile: { z: 1, m: rows, n: columns, k: { walk: 32 } },
        },
      );
      const [z, m, n] = [2, 136, 264];
      expect((await kernel.report(device, { z, m, n, k })).products).toEqual([
        instruction(columns, 'k16 of f16'),
      ]);
      const [xs, ys] = [numbers(z * k * m, 1, f16), numbers(z * k * n, 2, f16)];
      const [bs, fs] = [numbers(n, 3, f32), numbers(m, 4, f32)];
      using a = await device.tensor(f16, xs, [z, k, m]);
      using b = await device.tensor(f16, ys, [z, k, n]);
      using bias = await device.tensor(f32, bs);
      using first = await device.tensor(f32, fs, [m, 1]);
      using c = (await kernel({ a, b, bias, first })).c;
      const sums = range(z).flatMap((image) =>
        range(m).flatMap((row) =>
          range(n).map((column) =>
            range(k).reduce(
              (sum, p) => sum + xs[(image * k + p) * m + row]! * ys[(image * k + p) * n + column]!,
              fs[row]! + bs[column]!,
            ),
          ),
        ),
      );
      using expected = await device.tensor(
        f16,
        sums.map((sum) => Math.max(sum, 0)),
      );
      expect([...(await c.read())]).toEqual([...(await expected.read())]);
    },
  );

  // The bounds of docs/kernels.md, of the sum of the products' magnitudes.
  test.each([
    ['f8', f8e4m3, 2 ** -10],
    ['f32 as tf32', f32, 2 ** -9],
    ['f16', f16, 400 * 2 ** -22],
  ] as const)(
    'any numbers of %s are within the bound',
    { tags: 'thorough' },
    async (_, dtype, bound) => {
      const [m, n, k] = [64, 64, 400];
      const kernel = turned({ a: dtype, b: dtype, out: f32 });
      const [a, b] = await Promise.all(
        [m, n].map((rows, seed) =>
          device.randn(f32, [rows, k], { seed }).andThen((x) => x.convert(dtype as typeof f32)),
        ),
      );
      const [xs, ys] = await Promise.all(
        [a!, b!].map((x) => x.convert(f32).andThen((wide) => wide.read())),
      );
      using c = (await kernel({ a: a!, b: b! })).c;
      const exact = reference([m, n, k], xs!, ys!);
      const most = reference([m, n, k], xs!.map(Math.abs), ys!.map(Math.abs));
      const sums = [...(await c.read())];
      expect(sums.every((sum, i) => Math.abs(sum / 2 - exact[i]!) <= bound * most[i]!)).toBe(true);
      for (const each of [a!, b!]) each.close();
    },
  );

  test('reports say why a product is not computed by tensor cores', async () => {
    const shape = { m: 128, n: 256, k: 64 };
    const reason = async (kernel: AnyKernel): Promise<string> =>
      (await kernel.report(device, shape)).products.join();
    expect(await reason(plain({ a: f32, b: f32, out: f32 }))).toBe(
      "f32: f32 is exact by default: { precision: 'tensor' } rounds it to tf32",
    );
    const wide = turned({ a: f8e4m3, b: f8e4m3, out: f32 });
    expect(await reason(wide.with({ tile: { ...tile, n: 256 } }))).toBe(
      'f32: tiles have 256 columns, and not 64 or 128',
    );
    expect(await reason(plain({ a: f16, b: bf16, out: f32 }))).toBe(
      'f32: tensor cores have no product of f16 and bf16',
    );
    // Integers are exact on tensor cores, too.
    const exact = tileKernel(
      'exact',
      { c: output(i32), a: input(i8), b: input(i8) },
      ({ c, a, b }, tile) => {
        let sum = 0;
        for (const part of tile.over('k'))
          sum = tile.dot(a.load(part), tile.transpose(b.load(part)), sum, {
            precision: 'exact',
          });
        c.store(sum);
      },
      { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['n', 'k'] }, tile },
    );
    expect(await reason(exact as unknown as AnyKernel)).toBe(instruction(64, 'k32 of i8'));
  });

  test('with nothing along the common axis, sums are what they begin with', async () => {
    const kernel = plain({ a: f16, b: f16, out: f32 });
    using a = await device.zeros(f16, [8, 0]);
    using b = await device.zeros(f16, [0, 8]);
    using c = (await kernel({ a, b })).c;
    expect([...(await c.read())]).toEqual(range(64).map(() => 0));
  });
});

test('older GPUs, and GPUs with less shared memory', { tags: 'thorough' }, async () => {
  const shape = { m: 512, n: 512, k: 512 };
  const ptx = (kernel: AnyKernel, capability: readonly [number, number]): Promise<string> =>
    kernel.ptx({ capability }, shape);
  const wide = turned({ a: f16, b: f16, out: f16 }).with({ tile: { ...tile, n: 256 } });
  // Three steps of 128 bytes take 144 KiB, and four of 64 bytes 96.
  expect(await ptx(wide, [8, 0])).toContain('cp.async.wait_group 1;');
  expect(await ptx(wide, [8, 6])).toContain('cp.async.wait_group 2;');
  const small = turned({ a: f8e4m3, b: f8e5m2, out: f32 });
  expect(await ptx(small, [8, 0])).not.toContain('mma.sync');
  const mma = 'mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32';
  expect(await ptx(small, [8, 9])).toContain(mma);
  expect(await ptx(small, [8, 9])).toContain('.version 8.4');
  expect(await ptx(small, [12, 0])).toContain(mma);
  expect(await ptx(turned({ a: f16, b: f16, out: f16 }), [7, 5])).not.toContain('mma.sync');
});
