/** Products of tiles by Hopper's warp groups: whole numbers, whose sums f32 holds exactly. */
import { Device, bf16, f16, f32, input, output, tileKernel } from 'async-cuda';
import type { DType, Tensor } from 'async-cuda';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { someOf } from '../../random-runs.js';

import { productIn } from '../../../src/kernels/tile-products.js';
import { failure, onCpu, range } from '../../core/test-device.js';
import { openHopper } from './hopper-device.js';

let device: Device;
let found: Device | undefined;
beforeAll(async () => {
  found = await openHopper();
  if (found !== undefined) device = found;
});
afterAll(() => found?.close());

const numbers = (length: number, seed: number): number[] =>
  range(length).map((i) => (((i + seed) * 7919 + ((i * i) % 10007) * 31) % 13) - 6);
const made = async <D extends 'f16' | 'bf16'>(
  dtype: DType<D>,
  shape: number[],
  seed: number,
): Promise<Tensor<D, number[]>> => {
  const size = shape.reduce((x, y) => x * y, 1);
  return (await device.tensor(
    dtype as DType<'f16'>,
    numbers(size, seed),
    shape,
  )) as unknown as Tensor<D, number[]>;
};

/** `sum of k` of a[m][k] · b[k][n], by the places of their elements. */
const products = (
  [m, n, k]: readonly [number, number, number],
  a: (row: number, p: number) => number,
  b: (p: number, column: number) => number,
): number[] =>
  range(m).flatMap((row) =>
    range(n).map((column) => range(k).reduce((sum, p) => sum + a(row, p) * b(p, column), 0)),
  );

const plain = tileKernel(
  'plain',
  { c: output(f32), a: input(f16), b: input(f16) },
  ({ c, a, b }, tile) => {
    let sum = 0;
    for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
    c.store(sum);
  },
  {
    axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
    tile: { m: 128, n: 256, k: { walk: 64 } },
  },
);

describe('products by warp groups', () => {
  beforeEach(({ skip }) => {
    if (found === undefined) skip('SKIPPED: the GPU is of another generation');
  });

  someOf(
    2,
    test,
  )([
    [130, 264, 200],
    [128, 256, 64],
    [8, 8, 8],
    [300, 520, 72],
  ] as const)('%i × %i by %i', async (m, n, k) => {
    expect((await plain.report(device, { m, n, k })).products).toEqual(['wgmma.m64n256k16 of f16']);
    using a = await made(f16, [m, k], 1);
    using b = await made(f16, [k, n], 2);
    using out = (await plain({ a, b })).c;
    const [xs, ys] = [numbers(m * k, 1), numbers(k * n, 2)];
    expect([...(await out.read())]).toEqual(
      products(
        [m, n, k],
        (row, p) => xs[row * k + p]!,
        (p, column) => ys[p * n + column]!,
      ),
    );
  });

  test('of transposed factors and batches, from and to another sum', async () => {
    const layer = tileKernel(
      'layer',
      {
        y: output(bf16),
        x: input(bf16),
        w: input(bf16),
        bias: input(f32),
        first: input(f32),
      },
      ({ y, x, w, bias, first }, tile) => {
        let sum = first.load();
        for (const part of tile.over('k')) {
          sum = tile.dot(tile.transpose(x.load(part)), tile.transpose(w.load(part)), sum);
        }
        const shifted = sum + bias.load();
        y.store(Math.max(shifted, 0) / 2);
      },
      {
        axes: {
          y: ['z', 'm', 'n'],
          x: ['z', 'k', 'm'],
          w: ['z', 'n', 'k'],
          bias: ['n'],
          first: ['m', 1],
        },
        tile: { z: 1, m: 64, n: 128, k: { walk: 32 } },
      },
    );
    const [z, m, n, k] = [2, 72, 136, 40];
    expect((await layer.report(device, { z, m, n, k })).products).toEqual([
      'wgmma.m64n128k16 of bf16',
    ]);
    using x = await made(bf16, [z, k, m], 1);
    using w = await made(bf16, [z, n, k], 2);
    const [bs, fs] = [numbers(n, 3), numbers(m, 4)];
    using bias = await device.tensor(f32, bs);
    using first = await device.tensor(f32, fs, [m, 1]);
    using made2 = (await layer({ x, w, bias, first })).y;
    const [xs, ws] = [numbers(z * k * m, 1), numbers(z * n * k, 2)];
    const sums = range(z).flatMap((image) =>
      products(
        [m, n, k],
        (row, p) => xs[(image * k + p) * m + row]!,
        (p, column) => ws[(image * n + column) * k + p]!,
      ),
    );
    const wanted = sums.map(
      (sum, i) => Math.max(sum + fs[Math.floor(i / n) % m]! + bs[i % n]!, 0) / 2,
    );
    using expected = await device.tensor(bf16, wanted, [z, m, n]);
    expect(await made2.read()).toEqual(await expected.read());
  });

  test('a view whose rows begin elsewhere is computed without tensor cores', async () => {
    using whole = await made(f16, [20, 33], 1);
    using b = await made(f16, [32, 16], 2);
    const a = whole.slice(null, [1, 33]) as unknown as Tensor<'f16', [number, number]>;
    using out = (await plain({ a, b } as never)) as unknown as { c: Tensor<'f32'> } & Disposable;
    const [xs, ys] = [numbers(20 * 33, 1), numbers(32 * 16, 2)];
    expect([...(await out.c.read())]).toEqual(
      products(
        [20, 16, 32],
        (row, p) => xs[row * 33 + 1 + p]!,
        (p, column) => ys[p * 16 + column]!,
      ),
    );
  });

  test('reports say why another product is not', async () => {
    const reason = async (
      kernel: { report: (of: Device, shape: never) => Promise<{ products: readonly string[] }> },
      shape: object,
    ): Promise<string> => (await kernel.report(device, shape as never)).products.join();
    const shape = { m: 128, n: 128, k: 64 };
    expect(await reason(plain.with({ tile: { m: 96, n: 64, k: { walk: 16 } } }), shape)).toBe(
      'f32: tiles have 96 rows, and not 64 or 128',
    );
    expect(await reason(plain.with({ tile: { m: 64, n: 32, k: { walk: 16 } } }), shape)).toBe(
      'f32: tiles have 32 columns, and not 64, 128, 192 or 256',
    );
    const small = plain.with({ tile: { m: 64, n: 64, k: { walk: 16 } } });
    expect(await reason(small, { ...shape, k: 63 })).toContain('a has rows that do not begin');
    const exact = tileKernel(
      'exact',
      { c: output(f32), a: input(f16), b: input(f16) },
      ({ c, a, b }, tile) => {
        let sum = 0;
        for (const part of tile.over('k'))
          sum = tile.dot(a.load(part), b.load(part), sum, { precision: 'exact' });
        c.store(sum);
      },
      {
        axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
        tile: { m: 64, n: 64, k: { walk: 16 } },
      },
    );
    expect(await reason(exact, shape)).toBe('f32: it is exact');
    // Tiles that are too large without tensor cores are smaller.
    const large = exact.with({ tile: { m: 128, n: 256, k: { walk: 64 } } });
    using out = (await large({ a: device.ones(f16, [8, 24]), b: device.ones(f16, [24, 8]) })).c;
    expect([...(await out.read())]).toEqual(range(64).map(() => 24));
  });
});

test.runIf(onCpu)('on another device warps compute the product', async () => {
  await using other = await Device.open('cpu');
  expect((await plain.report(other, { m: 64, n: 64, k: 16 })).products).toEqual([
    'mma.m16n8k16 of f16',
  ]);
  using out = (await plain({ a: other.ones(f16, [130, 72]), b: other.ones(f16, [72, 300]) })).c;
  expect((await out.read()).every((value) => value === 72)).toBe(true);
});

test('options of dot are constants', async () => {
  await using other = await Device.open('cpu');
  const wrong = tileKernel(
    'wrong',
    { c: output(f32), a: input(f16), b: input(f16) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k'))
        sum = tile.dot(a.load(part), b.load(part), sum, { precision: 'fast' as 'exact' });
      c.store(sum);
    },
    {
      axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
      tile: { m: 16, n: 16, k: { walk: 16 } },
    },
  );
  const error = await failure(async () => {
    await wrong({ a: other.ones(f16, [8, 8]), b: other.ones(f16, [8, 8]) });
  });
  expect(error.message).toContain("{ precision: 'exact' }");
});

describe('products in the text of a body', () => {
  const tensors = ['c', 'a', 'b'];
  const loop = "for(const p of t.over('k'))s=t.dot(a.load(p),b.load(p),s);";
  test.each([
    ['by names', `({c,a,b},t)=>{let s=0;${loop}c.store(s)}`, ['a', 'b']],
    ['renamed', `({c:x,a:b,b:a},t)=>{let s=0;${loop}x.store(s)}`, ['b', 'a']],
    ['a function', `function f({ c, a, b }, t) { let s = 0; ${loop} c.store(s); }`, ['a', 'b']],
    [
      'in a block, turned, with double quotes',
      '({c,a,b},{over,dot,transpose})=>{let s=0;for(let p of over("k")){' +
        's=dot(transpose(a.load(p)),b.load(p),s)}c.store(Math.max(s,0))}',
      ['a turned', 'b'],
    ],
    [
      'with comments and without semicolons',
      '({ c, a, b }, tile) => { // a times b\n let s = 0\n' +
        " for (const p of tile.over('k')) /* of a */\n" +
        ' s = tile.dot(a.load(p), b.load(p), s)\n c.store(tile.exp(s)) }',
      ['a', 'b'],
    ],
    [
      'that may use tensor cores',
      `({c,a,b},t)=>{let s=0;${loop.replace(',s)', ",s,{precision:'tensor'})")}c.store(s)}`,
      ['a', 'b'],
    ],
  ])('%s', (_, text, wanted) => {
    const { left, right, summed } = productIn(text, tensors)!;
    expect(summed).toBe('k');
    expect([left, right].map(({ name, turned }) => name + (turned ? ' turned' : ''))).toEqual(
      wanted,
    );
  });
  test('that is exact', () => {
    const exact = loop.replace(',s)', ",s,{precision:'exact'})");
    const text = `({c,a,b},t)=>{let s=0;${exact}c.store(s)}`;
    expect(productIn(text, tensors)).toMatchObject({ precision: 'exact' });
  });
  test.each([
    ['{accumulate:"f16"}', { accumulate: 'f16' }],
    ["{ accumulate: 'f32', precision: 'tensor', }", { accumulate: 'f32', precision: 'tensor' }],
    ['{}', {}],
    ["{ accumulate: 'f64' }", undefined],
    ['{ accumulate: kind }', undefined],
    ["{ sums: 'f16' }", undefined],
  ])('with the options %s', (options, wanted) => {
    const text = `({c,a,b},t)=>{let s=0;${loop.replace(',s)', `,s,${options})`)}c.store(s)}`;
    const found = productIn(text, tensors);
    if (wanted === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject({ summed: 'k', ...wanted });
  });
  test.each([
    ['another statement in the loop', `({c,a,b},t)=>{let s=0;${loop.replace('s=', '{u=1;s=')}}}`],
    ['a factor that is loaded again', `({c,a,b},t)=>{let s=0;${loop}c.store(s+a.load())}`],
    ['a reduction', `({c,a,b},t)=>{let s=0;${loop}c.store(t.sum(s,1))}`],
    ['a reduction of another name', `({c,a,b},{over,dot,max:m})=>{let s=0;${loop}c.store(m(s,1))}`],
    ['a reduction by a computed name', `({c,a,b},t)=>{let s=0;${loop}c.store(t['max'](s,1))}`],
    ['a tile that is renamed', `({c,a,b},t)=>{let s=0;${loop}const u=t;c.store(u.max(s,1))}`],
    [
      'a statement after it in the loop',
      `({c,a,b},t)=>{let s=0;${loop.replace('s=', '{s=')}n=n+1}c.store(s)}`,
    ],
    ['two products', `({c,a,b},t)=>{let s=0;${loop}${loop}c.store(s)}`],
    ['one tensor twice', `({c,a,b},t)=>{let s=0;${loop.replace('b.load', 'a.load')}c.store(s)}`],
    ['a sum of another name', `({c,a,b},t)=>{let s=0;${loop.replace(',s)', ',u)')}c.store(s)}`],
    ['what is no parameter', `({c,a},t)=>{let s=0;${loop}c.store(s)}`],
    ['parameters as a whole', `(x,t)=>{let s=0;${loop}x.c.store(s)}`],
  ])('not %s', (_, text) => {
    expect(productIn(text, tensors)).toBeUndefined();
  });
});
