/** Products of tiles of every dtype that Hopper's warp groups multiply. */
import { bf16, f16, f32, f8e4m3, f8e5m2, i32, i8, input, output, tileKernel, u8 } from 'async-cuda';
import type { Device, DType, Tensor } from 'async-cuda';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { range } from '../../core/test-device.js';
import { someOf } from '../../random-runs.js';
import type { KernelDTypeName } from '../../../src/core/index.js';
import { openHopper } from './hopper-device.js';

let device: Device;
let found: Device | undefined;
beforeAll(async () => {
  found = await openHopper();
  if (found !== undefined) device = found;
});
afterAll(() => found?.close());
beforeEach(({ skip }) => {
  if (found === undefined) skip('SKIPPED: the GPU is of another generation');
});

/** The greatest whole numbers; tensor cores keep 13 bits of a step's sum of products of f8. */
const MOST: Readonly<Partial<Record<KernelDTypeName, number>>> = {
  f8e4m3: 3,
  f8e5m2: 2,
  u8: 255,
  i8: 127,
};
const SIGNED: readonly KernelDTypeName[] = ['f32', 'f16', 'i8', 'f8e4m3', 'f8e5m2'];

interface Dtypes {
  readonly a: DType<KernelDTypeName>;
  readonly b: DType<KernelDTypeName>;
  readonly out: DType<KernelDTypeName>;
}

const numbers = (length: number, seed: number, { name }: DType<KernelDTypeName>): number[] => {
  const most = MOST[name] ?? 6;
  const least = SIGNED.includes(name) ? -most : 0;
  return range(length).map(
    (i) => ((((i + seed) * 7919 + ((i * i) % 10007) * 31) % 4093) % (most - least + 1)) + least,
  );
};

type AnyKernel = ((args: object) => PromiseLike<{ readonly c: Tensor<'f32'> }>) & {
  report(of: Device, shape: object): Promise<{ readonly products: readonly string[] }>;
  simulate(args: object): Promise<Record<'c', ArrayLike<number>>>;
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
/** The same of b as it is multiplied. */
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

const CASES: readonly (readonly [name: string, dtypes: Dtypes, instruction: string])[] = [
  ['f8e4m3', { a: f8e4m3, b: f8e4m3, out: f32 }, 'wgmma.m64n64k32 of f8e4m3'],
  ['both f8', { a: f8e5m2, b: f8e4m3, out: f32 }, 'wgmma.m64n64k32 of f8e5m2 and f8e4m3'],
  ['i8', { a: i8, b: i8, out: i32 }, 'wgmma.m64n64k32 of i8'],
  ['u8 and i8', { a: u8, b: i8, out: i32 }, 'wgmma.m64n64k32 of u8 and i8'],
  ['f32 as tf32', { a: f32, b: f32, out: f32 }, 'wgmma.m64n64k8 of tf32'],
];

const reference = (
  [m, n, k]: readonly [number, number, number],
  xs: ArrayLike<number>,
  ys: ArrayLike<number>,
): number[] =>
  range(m).flatMap((row) =>
    range(n).map((column) =>
      range(k).reduce((sum, p) => sum + xs[row * k + p]! * ys[column * k + p]!, 0),
    ),
  );

describe('whole numbers', () => {
  someOf(2, test)(CASES)('%s', async (_, dtypes, instruction) => {
    const [m, n, k] = [140, 72, 304];
    const kernel = turned(dtypes);
    expect((await kernel.report(device, { m, n, k })).products).toEqual([instruction]);
    const [xs, ys] = [numbers(m * k, 1, dtypes.a), numbers(n * k, 2, dtypes.b)];
    using a = await device.tensor(dtypes.a as typeof f32, xs, [m, k]);
    using b = await device.tensor(dtypes.b as typeof f32, ys, [n, k]);
    using c = (await kernel({ a, b })).c;
    expect([...(await c.read())]).toEqual(reference([m, n, k], xs, ys).map((sum) => sum * 2));
  });

  someOf(1, test)(CASES.filter(([, { a }]) => a !== f32))(
    '%s, whose right factor is a transposed view',
    async (_, dtypes, instruction) => {
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
      expect(instruction).toContain('k32');
    },
  );
});

const magnitudes = (
  [m, n, k]: readonly [number, number, number],
  xs: readonly number[],
  ys: readonly number[],
): number[] => reference([m, n, k], xs.map(Math.abs), ys.map(Math.abs));

describe('any numbers', () => {
  // The bounds of docs/kernels.md, of the sum of the products' magnitudes.
  test.each([
    ['f8', f8e4m3, 2 ** -10],
    ['f32 as tf32', f32, 2 ** -9],
  ] as const)('of %s are within the bound', async (_, dtype, bound) => {
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
    const most = magnitudes([m, n, k], [...xs!], [...ys!]);
    const sums = [...(await c.read())];
    expect(sums.every((sum, i) => Math.abs(sum / 2 - exact[i]!) <= bound * most[i]!)).toBe(true);
    for (const each of [a!, b!]) each.close();
  });
});

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
        sum = tile.dot(a.load(part), tile.transpose(b.load(part)), sum, { precision: 'exact' });
      c.store(sum);
    },
    { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['n', 'k'] }, tile },
  );
  expect(await reason(exact as unknown as AnyKernel)).toBe('wgmma.m64n64k32 of i8');
});

test('with nothing along the common axis, sums are what they begin with', async () => {
  const kernel = plain({ a: f16, b: f16, out: f32 });
  using a = await device.zeros(f16, [8, 0]);
  using b = await device.zeros(f16, [0, 8]);
  using c = (await kernel({ a, b })).c;
  expect([...(await c.read())]).toEqual(range(64).map(() => 0));
});
