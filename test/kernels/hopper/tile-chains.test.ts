/** Attention as a tile kernel: two products of one loop, by Hopper's warp groups. */
import { Device, bf16, f16, f32, i32, input, output, tileKernel } from 'async-cuda';
import type { DType, Tensor } from 'async-cuda';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { chainIn } from '../../../src/kernels/tile-chains.js';
import { failure, onCpu, range } from '../../core/test-device.js';
import { openHopper } from './hopper-device.js';

let device: Device;
let found: Device | undefined;
beforeAll(async () => {
  found = await openHopper();
  if (found !== undefined) device = found;
});
afterAll(() => found?.close());

type Operand = Tensor<'bf16', [number, number, number]>;

const operand = async <D extends 'f16' | 'bf16'>(
  dtype: DType<D>,
  shape: [number, number, number],
  seed: number,
  on = device,
): Promise<Operand> => {
  const size = shape.reduce((x, y) => x * y, 1);
  const values = range(size).map((i) => Math.sin(i * 12.9898 + seed * 78.233) * 2);
  return (await on.tensor(dtype as DType<'bf16'>, values, shape)) as never;
};

/** Attention in float64. `score`: the exponent of a share, by head, query and key. */
async function expected(
  [q, k, v]: readonly Operand[],
  factor: number,
  score: (scaled: number, query: number, key: number) => number = (scaled) => scaled,
): Promise<number[]> {
  const [heads, queries, channels] = q!.shape;
  const [, keys, width] = v!.shape;
  const [qs, ks, vs] = (await Promise.all(
    [q!, k!, v!].map((each) => each.read()),
  )) as Float32Array[];
  return range(heads * queries).flatMap((row) => {
    const head = Math.floor(row / queries);
    const scores = range(keys).map((key) => {
      let dot = 0;
      for (let c = 0; c < channels; c++)
        dot += qs![row * channels + c]! * ks![(head * keys + key) * channels + c]!;
      return score(dot * factor, row % queries, key);
    });
    const most = Math.max(...scores);
    const shares = scores.map((each) => 2 ** (each - most));
    const weight = shares.reduce((x, y) => x + y);
    return range(width).map(
      (c) =>
        shares.reduce((sum, share, key) => sum + share * vs![(head * keys + key) * width + c]!, 0) /
        weight,
    );
  });
}

/** Shares and results are rounded to bf16, of values of at most 2. */
const BOUND = 2 * 2 ** -8 + 2 ** -8;

function expectClose(got: ArrayLike<number>, wanted: readonly number[]): void {
  const worst = wanted.reduce((most, each, at) => Math.max(most, Math.abs(each - got[at]!)), 0);
  expect(got.length).toBe(wanted.length);
  expect([...range(wanted.length)].some((at) => Number.isNaN(got[at]!))).toBe(false);
  expect(worst).toBeLessThanOrEqual(BOUND);
}

const axes = {
  out: ['heads', 'queries', 'width'],
  q: ['heads', 'queries', 'channels'],
  k: ['heads', 'keys', 'channels'],
  v: ['heads', 'keys', 'width'],
} as const;
const tile = {
  ...{ heads: 1, queries: 128, keys: { walk: 128 }, channels: null, width: null },
} as const;

const attention = tileKernel(
  'attention',
  { out: output(bf16), q: input(bf16), k: input(bf16), v: input(bf16), factor: f32 },
  ({ out, q, k, v, factor }, tile) => {
    const queries = q.load();
    let most = -Infinity;
    let weight = 0;
    let sums = 0;
    for (const part of tile.over('keys')) {
      const scores = tile.dot(queries, tile.transpose(k.load(part)));
      const higher = Math.max(most, tile.max(scores, 1));
      const fade = tile.fast.exp2((most - higher) * factor);
      const share = tile.fast.exp2(tile.fma(scores, factor, -higher * factor));
      weight = weight * fade + tile.sum(share, 1);
      sums = tile.dot(tile.bf16(share), v.load(part), sums * fade);
      most = higher;
    }
    out.store(sums / weight);
  },
  { axes, tile },
);

/** A mask tile, a window by numbers of rows and columns, another order of statements, names. */
const windowed = tileKernel(
  'windowed',
  {
    ...{ out: output(f32), q: input(f16), k: input(f16), v: input(f16), mask: input(f32) },
    ...{ window: i32, factor: f32 },
  },
  (
    { out, q, k, v, mask, window, factor },
    { over, dot, transpose, index, start, end, max, sum, fast, f16: half },
  ) => {
    let most = -1e30;
    let weight = 0;
    let sums = 0;
    for (const part of over('keys', { from: start('queries') - window, to: end('queries') })) {
      const keys = k.load(part);
      const scores = dot(q.load(), transpose(keys)) * factor + mask.load(part);
      const row = index('queries', 0);
      const column = index('keys', 1);
      const seen = column <= row && row - column <= window ? scores : -Infinity;
      const higher = Math.max(most, max(seen, 1));
      const fade = fast.exp2(most - higher);
      const share = fast.exp2(seen - higher);
      sums = dot(half(share), v.load(part), sums * fade);
      weight = weight * fade + sum(share, 1);
      most = higher;
    }
    out.store(sums / weight);
  },
  {
    axes: { ...axes, mask: ['queries', 'keys'] },
    tile: { ...tile, queries: 64, keys: { walk: 64 } },
  },
);

const FACTOR = Math.LOG2E / 8;

describe('two products of one loop', () => {
  beforeEach(({ skip }) => {
    if (found === undefined) skip('SKIPPED: the GPU is of another generation');
  });

  const compare = async (
    [heads, queries, keys, channels, width]: readonly [number, number, number, number, number],
    kernel = attention,
  ): Promise<void> => {
    using q = await operand(bf16, [heads, queries, channels], 1);
    using k = await operand(bf16, [heads, keys, channels], 2);
    using v = await operand(bf16, [heads, keys, width], 3);
    using made = await kernel({ q, k, v, factor: FACTOR });
    expectClose(await made.out.read(), await expected([q, k, v], FACTOR));
  };

  test('of whole tiles and of parts of them', async () => {
    const shape = { heads: 2, queries: 130, keys: 298, channels: 64, width: 64 };
    expect((await attention.report(device, shape)).products).toEqual([
      'wgmma.m64n128k16 of bf16',
      'wgmma.m64n64k16 of bf16',
    ]);
    await compare([2, 130, 298, 64, 64]);
  });

  test.each([
    [1, 128, 128, 128, 128],
    [3, 20, 40, 64, 128],
    [1, 300, 514, 128, 64],
    [140, 10, 16, 64, 64],
  ] as const)('%i heads, %i × %i, %i and %i channels', { tags: 'thorough' }, async (...sizes) => {
    await compare(sizes);
  });

  test.each([
    [64, 16],
    [64, 96],
    [192, 64],
    [128, 160],
  ])('tiles of %i × %i', { tags: 'thorough' }, async (queries, keys) => {
    await compare(
      [2, 200, 250, 64, 64],
      attention.with({ tile: { ...tile, queries, keys: { walk: keys } } }),
    );
  });

  const compareWindow = async (length: number, window: number, on = device): Promise<void> => {
    using q = await operand(f16, [2, length, 64], 1, on);
    using k = await operand(f16, [2, length, 64], 2, on);
    using v = await operand(f16, [2, length, 64], 3, on);
    const added = range(length * length).map((i) => Math.cos(i * 1.7));
    using mask = await on.tensor(f32, added, [length, length]);
    using made = await windowed({ q, k, v, mask, window, factor: FACTOR } as never);
    const wanted = await expected([q, k, v], FACTOR, (scaled, query, key) =>
      key <= query && query - key <= window ? scaled + added[query * length + key]! : -Infinity,
    );
    expectClose(await (made as unknown as { out: Tensor<'f32'> }).out.read(), wanted);
  };

  test('with a mask and a window', async () => {
    const shape = { heads: 2, queries: 200, keys: 200, channels: 64, width: 64 };
    expect((await windowed.report(device, shape)).products[0]).toBe('wgmma.m64n64k16 of f16');
    await compareWindow(200, 40);
  });

  test.runIf(onCpu)('on other devices in f32', { tags: 'thorough' }, async () => {
    await using other = await Device.open('cpu');
    const shape = { heads: 2, queries: 200, keys: 200, channels: 64, width: 64 };
    expect((await windowed.report(other, shape)).products).toEqual([
      'f32: two products of one loop are computed by compute capability 9.0',
    ]);
    await compareWindow(72, 20, other);
  });

  test('simulated', async () => {
    using q = await operand(bf16, [1, 6, 64], 1);
    using k = await operand(bf16, [1, 10, 64], 2);
    using v = await operand(bf16, [1, 10, 64], 3);
    const [qs, ks, vs] = await Promise.all([q, k, v].map((each) => each.read()));
    const out = new Float32Array(6 * 64);
    const of = (data: unknown, shape: number[]) => ({ data, shape });
    await attention.simulate({
      out: of(out, [1, 6, 64]),
      q: of(qs, [1, 6, 64]),
      k: of(ks, [1, 10, 64]),
      v: of(vs, [1, 10, 64]),
      factor: FACTOR,
    } as never);
    expectClose(out, await expected([q, k, v], FACTOR));
  });

  test('reports say why others are not', { tags: 'thorough' }, async () => {
    const shape = { heads: 1, queries: 128, keys: 128, channels: 64, width: 64 };
    const reason = async (
      kernel: { report: (of: Device, shape: never) => Promise<{ products: readonly string[] }> },
      changes: object = {},
    ): Promise<string> =>
      (await kernel.report(device, { ...shape, ...changes } as never)).products.join();
    const cut = (changes: object) => attention.with({ tile: { ...tile, ...changes } as never });
    expect(await reason(cut({ queries: 32 }))).toBe(
      'f32: tiles have 32 queries, and not 64, 128 or 192',
    );
    expect(await reason(cut({ keys: { walk: 24 } }))).toBe(
      'f32: tiles have 24 keys, and not a multiple of 16 of at most 256',
    );
    expect(await reason(attention, { keys: 77 })).toBe('f32: the number of keys is odd');
    expect(await reason(attention, { channels: 40 })).toContain('not all in one of 64');
    expect(await reason(cut({ keys: { walk: 256 } }), { width: 128 })).toContain(
      'too many registers',
    );
    expect(await reason(attention, { channels: 60 })).toContain('rows that do not begin');
  });
});

test('bounds of a loop and numbers of elements are those of the whole tile', async () => {
  await using other = await Device.open('cpu');
  const wrong = tileKernel(
    'wrong',
    { y: output(f32), x: input(f32) },
    ({ y, x }, tile) => {
      let sum = 0;
      for (const part of tile.over('columns', { to: tile.index('rows', 0) }))
        sum = sum + tile.sum(x.load(part), 1);
      y.store(sum);
    },
    { tile: [4, { walk: 32 }] },
  );
  const error = await failure(async () => {
    await wrong({ x: other.ones(f32, [8, 40]), y: other.zeros(f32, [8, 1]) });
  });
  expect(error.message).toContain('the same for the whole tile');
});

test('sums of a part of each row, without products', async () => {
  await using other = await Device.open('cpu');
  const below = tileKernel(
    'below',
    { y: output(f32), x: input(f32), from: i32 },
    ({ y, x, from }, tile) => {
      let sum = 0;
      for (const part of tile.over('n', { from, to: tile.end('m') })) {
        const inside = tile.index('n', 1) <= tile.index('m', 0) && tile.index('n', 1) >= from;
        sum = sum + tile.sum(inside ? x.load(part) : 0, 1);
      }
      y.store(sum);
    },
    { axes: { y: ['m', 1], x: ['m', 'n'] }, tile: { m: 8, n: { walk: 16 } } },
  );
  const values = range(50 * 60).map((i) => (i * 7) % 11);
  using made = await below({ x: other.tensor(f32, values, [50, 60]), from: 21 });
  expect([...(await made.y.read())]).toEqual(
    range(50).map((row) =>
      range(60)
        .filter((column) => column <= row && column >= 21)
        .reduce((sum, column) => sum + values[row * 60 + column]!, 0),
    ),
  );
});

describe('two products in the text of a body', () => {
  const tensors = ['o', 'q', 'k', 'v'];
  const loop = (body: string, options = ''): string =>
    '({o,q,k,v,n},t)=>{const a=q.load();let m=0;let s=0;' +
    `for(const p of t.over('x'${options})){${body}}o.store(s)}`;
  const plain =
    'const c=t.dot(a,t.transpose(k.load(p)));const h=t.max(c,1);' +
    's=t.dot(t.bf16(c-h),v.load(p),s*h);m=h';
  test.each([
    ['one after the other', loop(plain), 'bf16'],
    ['bounded', loop(plain, ",{from:t.start('a')-n,to:n}"), 'bf16'],
    [
      'one within the other',
      loop('s=t.dot(t.dot(a,t.transpose(k.load(p))),v.load(p),s)'),
      undefined,
    ],
    ['in part converted', loop(plain.replace('t.bf16(c-h)', 't.bf16(c)*t.bf16(h)')), undefined],
  ])('%s', (_, text, converted) => {
    expect(chainIn(text, tensors)).toEqual({
      ...{ summed: 'x', left: 'q', right: 'k', values: 'v', stored: ['o'], isExact: false },
      converted,
    });
  });
  test.each([
    ['a factor that is used again', loop(`${plain};m=t.sum(a,1)`)],
    ['a sum that is used within the loop', loop(`${plain};m=s`)],
    ['an operand that changes after it', loop(plain.replace('t.bf16(c-h)', 't.bf16(c-m)'))],
    ['a reduction along columns', loop(plain.replace('t.max(c,1)', 't.max(c,0)'))],
    ['a reduction of the whole tile', loop(plain.replace('t.max(c,1)', 't.max(c)'))],
    ['three products', loop(`${plain};m=t.dot(a,a)`)],
    ['a first product that is added', loop(plain.replace('(p)));', '(p)),m);'))],
    ['keys that are not transposed', loop(plain.replace('t.transpose(k.load(p))', 'k.load(p)'))],
    ['bounds of local values', loop(plain, ',{to:m}')],
    ['bounds that are reduced', loop(plain, ",{to:t.max(t.index('a',0))}")],
    ['a second loop', loop(plain).replace('o.store', "for(const z of t.over('x'))m=1;o.store")],
    ['a parameter that is renamed', loop(plain).replace('o.store', 'const u=t;o.store')],
  ])('not %s', (_, text) => {
    expect(chainIn(text, tensors)).toBeUndefined();
  });
});
