/**
 * Tile kernels whose tensors have named axes: loops over tiles, products, transposed tiles, and
 * errors.
 */
import {
  CudaCompileError,
  Device,
  bf16,
  f16,
  f32,
  i32,
  inout,
  input,
  output,
  tileKernel,
} from 'async-cuda';
import type { DeviceOp, Tensor } from 'async-cuda';
import * as fc from '../fast-check.js';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';

const product = tileKernel(
  'product',
  { c: output(f32), a: input(f32), b: input(f32) },
  ({ c, a, b }, tile) => {
    let sum = 0;
    for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
    c.store(sum);
  },
  {
    axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
    tile: { m: 32, n: 32, k: { walk: 16 } },
  },
);

const attention = tileKernel(
  'attention',
  { out: output(f32), q: input(f32), k: input(f32), v: input(f32), scale: f32 },
  ({ out, q, k, v, scale }, tile) => {
    const queries = q.load();
    let most = -Infinity;
    let weight = 0;
    let sums = 0;
    for (const part of tile.over('keys')) {
      const scores = tile.dot(queries, tile.transpose(k.load(part))) * scale;
      const higher = Math.max(most, tile.max(scores, 1));
      const fade = Math.exp(most - higher);
      const share = Math.exp(scores - higher);
      weight = weight * fade + tile.sum(share, 1);
      sums = tile.dot(share, v.load(part), sums * fade);
      most = higher;
    }
    out.store(sums / weight);
  },
  {
    axes: {
      out: ['heads', 'queries', 'channels'],
      q: ['heads', 'queries', 'channels'],
      k: ['heads', 'keys', 'channels'],
      v: ['heads', 'keys', 'channels'],
    },
    tile: { heads: 1, queries: 16, keys: { walk: 16 }, channels: null },
  },
);

const longSoftmax = tileKernel(
  'long_softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => {
    let most = -Infinity;
    let sum = 0;
    for (const part of tile.over('columns')) {
      const v = x.load(part);
      const higher = Math.max(most, tile.max(v, 1));
      sum *= Math.exp(most - higher);
      sum += tile.sum(Math.exp(v - higher), 1);
      most = higher;
    }
    for (const part of tile.over('columns')) y.store(Math.exp(x.load(part) - most) / sum, part);
  },
  { tile: [2, { walk: 64 }] },
);

const turned = tileKernel(
  'turned',
  { y: output(i32), x: input(i32) },
  ({ y, x }, tile) => y.store(tile.transpose(x.load())),
  {
    axes: { y: ['n', 'm'], x: ['m', 'n'] },
    tile: { m: 16, n: 8 },
  },
);

onDevice('Tile kernels with loops', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<Tensor> | Tensor): Promise<number[]> => [
    ...((await (await op).read()) as Iterable<number>),
  ];
  const values = (count: number, seed: number): Float32Array =>
    Float32Array.from(range(count), (i) => Math.fround(Math.sin(i * 12.9898 + seed) * 3));

  /** Adds term by term, each rounded once, as dot guarantees. */
  function productOf(
    a: ArrayLike<number>,
    b: ArrayLike<number>,
    m: number,
    n: number,
    k: number,
  ): Float64Array {
    const c = new Float64Array(m * n);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++)
        for (let l = 0; l < k; l++) c[i * n + j]! += a[i * k + l]! * b[l * n + j]!;
    return c;
  }

  test('a product of matrices of any extents', { tags: 'random' }, async () => {
    const extent = fc.integer({ min: 1, max: 70 });
    await fc.assert(
      fc.asyncProperty(extent, extent, extent, async (m, n, k) => {
        const [a, b] = [values(m * k, 1), values(k * n, 2)];
        const { c } = await product({
          a: device.tensor(f32, a, [m, k]),
          b: device.tensor(f32, b, [k, n]),
        });
        expect(c.shape).toEqual([m, n]);
        const [got, expected] = [await read(c), productOf(a, b, m, n, k)];
        for (const [at, each] of got.entries())
          expect(Math.abs(each - expected[at]!)).toBeLessThan(2e-4 * (1 + k));
        c.close();
      }),
      { numRuns: 15 },
    );
  });

  test('a sum over no terms is zero', async () => {
    const { c } = await product({ a: device.zeros(f32, [3, 0]), b: device.zeros(f32, [0, 5]) });
    expect(await read(c)).toEqual(range(15).map(() => 0));
  });

  test(
    'bits do not depend on the tiles, nor on the layout of tensors',
    { tags: 'thorough' },
    async () => {
      const [m, n, k] = [40, 36, 50];
      const [a, b] = [values(m * k, 3), values(k * n, 4)];
      using left = await device.tensor(f32, a, [m, k]);
      using right = await device.tensor(f32, b, [k, n]);
      const { c: expected } = await product({ a: left, b: right });
      const bits = await read(expected);
      for (const tile of [
        { m: 8, n: 8, k: { walk: 4 } },
        { m: 64, n: 16, k: { walk: 3 } },
        { m: 1, n: 64, k: { walk: 32 } },
        { m: 16, n: 32, k: null },
        { m: 33, n: 7, k: { walk: 5 } },
        { m: null, n: null, k: { walk: 8 } },
      ] as const) {
        expect(
          await read(
            product
              .with({ tile })({ a: left, b: right })
              .map(({ c }) => c as Tensor),
          ),
          JSON.stringify(tile),
        ).toEqual(bits);
      }
      using leftTurned = await left.transpose().contiguous();
      using rightTurned = await right.transpose().contiguous();
      using wide = await device.zeros(f32, [m, n + 3]);
      const part = wide.slice([0, m], [1, n + 1]) as unknown as Tensor<'f32', [number, number]>;
      await product({ c: part, a: leftTurned.transpose(), b: rightTurned.transpose() });
      expect(await read(part.contiguous() as never)).toEqual(bits);
      expect(
        (await read(wide))
          .filter((_, at) => at % (n + 3) === 0 || at % (n + 3) > n)
          .every((each) => each === 0),
      ).toBe(true);
      const simulated = await product.simulate({
        c: { data: new Float32Array(m * n), shape: [m, n] },
        a: { data: a, shape: [m, k] },
        b: { data: b, shape: [k, n] },
      });
      expect([...simulated.c.data]).toEqual(bits);
      for (const tensor of [expected]) tensor.close();
    },
  );

  test('operands of 16 bits are multiplied as f32', async () => {
    const axes = { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] } as const;
    const tile = { m: 32, n: 32, k: { walk: 16 } } as const;
    const half = tileKernel(
      'half',
      { c: output(f32), a: input(f16), b: input(f16) },
      ({ c, a, b }, { over, dot }) => {
        let sum = 0;
        for (const part of over('k')) sum = dot(a.load(part), b.load(part), sum);
        c.store(sum);
      },
      { axes, tile },
    );
    const brain = tileKernel(
      'brain',
      { c: output(bf16), a: input(bf16), b: input(bf16) },
      (args, tile) => {
        let sum = 1;
        for (const part of tile.over('k')) sum += tile.dot(args.a.load(part), args.b.load(part));
        args.c.store(sum);
      },
      { axes, tile },
    );
    const [a, b] = [values(20 * 24, 5), values(24 * 28, 6)];
    using left = await device.tensor(f32, a, [20, 24]).andThen((each) => each.convert(f16));
    using right = await device.tensor(f32, b, [24, 28]).andThen((each) => each.convert(f16));
    const expected = await product({ a: left.convert(f32), b: right.convert(f32) });
    expect(await read((await half({ a: left, b: right })).c)).toEqual(await read(expected.c));
    const bits = await product({
      a: left.convert(bf16).andThen((each) => each.convert(f32)),
      b: right.convert(bf16).andThen((each) => each.convert(f32)),
    });
    const sums = await read(bits.c);
    const got = await read((await brain({ a: left.convert(bf16), b: right.convert(bf16) })).c);
    for (const [at, each] of got.entries())
      expect(Math.abs(each - 1 - sums[at]!)).toBeLessThan(Math.abs(each) / 128 + 1e-5);
  });

  test(
    'attention computes its softmax in the loop over the keys',
    { tags: 'thorough' },
    async () => {
      for (const [heads, queries, keys, channels] of [
        [2, 20, 37, 16],
        [1, 16, 16, 8],
        [1, 1, 1, 1],
        [3, 33, 5, 20],
      ] as const) {
        const [q, k, v] = [
          values(heads * queries * channels, 7),
          values(heads * keys * channels, 8),
          values(heads * keys * channels, 9),
        ];
        const scale = 1 / Math.sqrt(channels);
        const { out } = await attention({
          q: device.tensor(f32, q, [heads, queries, channels]),
          k: device.tensor(f32, k, [heads, keys, channels]),
          v: device.tensor(f32, v, [heads, keys, channels]),
          scale,
        });
        const got = await read(out);
        for (let head = 0; head < heads; head++) {
          for (let query = 0; query < queries; query++) {
            const own = q.subarray(
              (head * queries + query) * channels,
              (head * queries + query + 1) * channels,
            );
            const scores = range(keys).map(
              (key) =>
                own.reduce(
                  (sum, each, c) => sum + each * k[(head * keys + key) * channels + c]!,
                  0,
                ) * scale,
            );
            const most = Math.max(...scores);
            const shares = scores.map((score) => Math.exp(score - most));
            const weight = shares.reduce((x, y) => x + y);
            for (let c = 0; c < channels; c++) {
              const expected =
                shares.reduce(
                  (sum, share, key) => sum + share * v[(head * keys + key) * channels + c]!,
                  0,
                ) / weight;
              expect(
                Math.abs(got[(head * queries + query) * channels + c]! - expected),
              ).toBeLessThan(1e-4);
            }
          }
        }
        const shapeOf = (rows: number): [number, number, number] => [heads, rows, channels];
        const simulated = await attention.simulate({
          out: { data: new Float32Array(heads * queries * channels), shape: shapeOf(queries) },
          q: { data: q, shape: shapeOf(queries) },
          k: { data: k, shape: shapeOf(keys) },
          v: { data: v, shape: shapeOf(keys) },
          scale,
        });
        expect([...simulated.out.data]).toEqual(got);
      }
    },
  );

  test('rows longer than a tile', { tags: 'thorough' }, async () => {
    for (const [rows, length] of [
      [3, 1000],
      [1, 5],
      [4, 128],
    ] as const) {
      const x = values(rows * length, 10);
      const { y } = await longSoftmax({ x: device.tensor(f32, x, [rows, length]) });
      const got = await read(y);
      for (let row = 0; row < rows; row++) {
        const own = [...x.subarray(row * length, (row + 1) * length)];
        const most = Math.max(...own);
        const all = own.reduce((sum, each) => sum + Math.exp(each - most), 0);
        for (const [i, each] of own.entries())
          expect(Math.abs(got[row * length + i]! / (Math.exp(each - most) / all) - 1)).toBeLessThan(
            1e-5,
          );
      }
      const simulated = await longSoftmax.simulate({
        y: { data: new Float32Array(rows * length), shape: [rows, length] },
        x: { data: x, shape: [rows, length] },
      });
      expect([...simulated.y.data]).toEqual(got);
    }
  });

  test('reductions of loops into outputs of one column', async () => {
    const sums = tileKernel(
      'sums',
      { out: output(f32), x: input(f32) },
      ({ out, x }, tile) => {
        let sum = 0;
        for (const part of tile.over('columns')) sum += tile.sum(x.load(part), 1);
        out.store(sum);
      },
      { tile: [4, { walk: 32 }] },
    );
    const named = tileKernel(
      'named',
      { out: output(f32), x: input(f32) },
      ({ out, x }, tile) => {
        let sum = 0;
        for (const part of tile.over('c')) sum += x.load(part);
        out.store(tile.sum(sum, 0));
      },
      { axes: { out: ['n'], x: ['c', 'm', 'n'] }, tile: { c: { walk: 1 }, m: null, n: 16 } },
    );
    const x = Float32Array.from(range(9 * 100), (i) => i % 13);
    using out = await device.zeros(f32, [9, 1]);
    await sums({ out, x: device.tensor(f32, x, [9, 100]) });
    expect(await read(out)).toEqual(
      range(9).map((row) => x.subarray(row * 100, row * 100 + 100).reduce((a, b) => a + b, 0)),
    );
    const { out: all } = await named({ x: device.tensor(f32, x, [5, 6, 30]) });
    expect(all.shape).toEqual([30]);
    expect(await read(all as Tensor)).toEqual(
      range(30).map((n) => range(30).reduce((sum, row) => sum + x[row * 30 + n]!, 0)),
    );
  });

  test('rows and columns exchanged', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 40 }),
        async (m, n, down, across) => {
          const { y } = await turned.with({ tile: { m: down, n: across } })({
            x: device.arange(i32, m * n).map((x) => x.reshape([m, n])),
          });
          expect(await read(y)).toEqual(range(m * n).map((i) => (i % m) * n + Math.floor(i / m)));
          y.close();
        },
      ),
      { numRuns: 20 },
    );
  });

  test('every element of an output is written by one block', async () => {
    const counted = tileKernel(
      'counted',
      { y: inout(i32), z: inout(i32) },
      ({ y, z }, tile) => {
        for (const part of tile.over('walked')) y.store(y.load(part) + 1, part);
        z.store(z.load() + 1);
      },
      {
        axes: { y: ['outer', 'rows', 'walked'], z: ['outer', 'rows', 1] },
        tile: { outer: 1, rows: 4, walked: { walk: 8 } },
      },
    );
    for (const tile of [
      { outer: 1, rows: 4, walked: { walk: 8 } },
      { outer: 1, rows: 3, walked: { walk: 5 } },
      { outer: { walk: 1 }, rows: 4, walked: { walk: 8 } },
    ] as const) {
      using y = await device.zeros(i32, [3, 10, 33]);
      using z = await device.zeros(i32, [3, 10, 1]);
      if (typeof tile.outer === 'number') await counted.with({ tile })({ y, z });
      else
        expect((await failure(() => counted.with({ tile })({ y, z }))).message).toContain(
          'y has many tiles along outer, and this does not say which: y.load(part)',
        );
      expect(
        (await read(y)).every((each) => each === (typeof tile.outer === 'number' ? 1 : 0)),
      ).toBe(true);
      expect(
        (await read(z)).every((each) => each === (typeof tile.outer === 'number' ? 1 : 0)),
      ).toBe(true);
    }
  });

  // Section 3 of the paper on cuda-async: two writers of one place. Blocks differ by their tiles
  // along the axes that are cut, so an output without such an axis would have the same tile in many
  // blocks.
  test('two blocks that write one tile cannot be written', async () => {
    const body = (): void => {
      /* checked before */
    };
    expect(() =>
      tileKernel('race', { c: output(f32), a: input(f32) }, body, {
        axes: { c: ['m'], a: ['m', 'k'] },
        tile: { m: 16, k: 32 },
      }),
    ).toThrow(
      'options.tile.k: expected { walk: 32 } or null, since output c has no axis k, got 32. ' +
        'Blocks with different tiles along k would write the same elements of c. Its axes are m.',
    );
    expect(() => product.with({ tile: { m: 32, n: 32, k: 16 } })).toThrow(
      'changes.tile.k: expected { walk: 16 } or null, since output c has no axis k',
    );
    expect(() =>
      tileKernel('race', { c: output(f32) }, body, { axes: { c: ['m', 'm'] }, tile: { m: 16 } }),
    ).toThrow('options.axes.c: expected each axis once');
    using shared = await device.zeros(f32, [8, 8]);
    expect(() => product({ c: shared, a: shared, b: device.zeros(f32, [8, 8]) })).toThrow(
      "args.c of kernel 'product' is written and overlaps args.a",
    );
    expect(() =>
      product({
        c: shared.slice([0, 1]).broadcastTo([8, 8]) as never,
        a: device.zeros(f32, [8, 8]),
        b: device.zeros(f32, [8, 8]),
      }),
    ).toThrow('lie in the same place');
    // A loop's step is not a number that an index could be computed from.
    const byStep = tileKernel(
      'race',
      { c: output(f32) },
      ({ c }, tile) => {
        // @ts-expect-error: a step is no number
        for (const part of tile.over('m')) c.store(1, part * 0);
      },
      { axes: { c: ['m', 'n'] }, tile: { m: { walk: 4 }, n: 4 } },
    );
    const error = await failure(() => byStep({ c: shared }));
    expect(error).toBeInstanceOf(CudaCompileError);
    expect(error.message).toContain(
      'store takes what a loop over tiles counts, and no index: part * 0',
    );
    expect(error.message).toContain('tile-loops.test.ts');
  });

  test('shapes that do not go together are refused, with what to write instead', async () => {
    using a = await device.ones(f32, [8, 6]);
    using b = await device.ones(f32, [7, 8]);
    expect((await failure(() => product({ a, b }))).message).toContain(
      "args.b of kernel 'product': expected a Tensor of 6 elements along k, as args.a has (k " +
        '× n), got [ 7, 8 ]',
    );
    expect((await failure(() => product({ a, b: device.ones(f32, [6]) }))).message).toContain(
      'expected a Tensor of 2 axes, k × n, got [ 6 ]',
    );
    const wrong = product.with({ tile: { m: 32, n: 32, k: { walk: 16 } } });
    expect(
      (
        await failure(() =>
          wrong.with({ tile: { m: 256, n: 256, k: { walk: 16 } } })({
            a,
            b: a.transpose() as never,
          }),
        )
      ).message,
    ).toContain('take');
    const badly = tileKernel(
      'badly',
      { c: output(f32), a: input(f32), b: input(f32) },
      ({ c, a, b }, tile) => {
        let sum = 0;
        for (const part of tile.over('k')) sum = tile.dot(b.load(part), a.load(part), sum);
        c.store(sum);
      },
      {
        axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
        tile: { m: 32, n: 32, k: { walk: 16 } },
      },
    );
    const error = (await failure(() =>
      badly({ a, b: a.transpose() as never }),
    )) as CudaCompileError;
    expect(error).toBeInstanceOf(CudaCompileError);
    expect(error.message).toContain(
      'The columns of the left tile are n, the rows of the right one m: tile.dot(',
    );
    expect(error.message).toContain('tile.transpose(…)');
    expect(error.place?.file).toContain('tile-loops.test.ts');
    const body = (): void => {
      /* checked before */
    };
    expect(() =>
      tileKernel('t', { c: output(f32) }, body, {
        axes: { c: ['m', 'x' as 'm'] },
        tile: { m: 16 },
      }),
    ).toThrow("options.axes.c[1]: the tile has no axis 'x'");
    expect(() =>
      tileKernel('t', { c: output(f32) }, body, {
        axes: { c: ['b', 'm', 'n'] },
        tile: { b: 2, m: 16, n: 16 },
      }),
    ).toThrow('options.axes.c[0]: expected an axis whose tiles have one element');
    expect(() =>
      tileKernel('t', { c: output(f32) }, body, { axes: { d: ['m'] } as never, tile: { m: 16 } }),
    ).toThrow("options.axes.d: the signature has no tensor 'd'");
    expect(() =>
      tileKernel('t', { c: output(f32) }, body, { axes: {} as never, tile: { m: 16 } }),
    ).toThrow('options.axes.c: expected one to 4 names of axes');
    expect(() =>
      tileKernel('t', { c: output(f32) }, body, { axes: { c: ['m'] }, tile: { m: { walk: 0 } } }),
    ).toThrow('options.tile.m: expected a whole number of at least 1');
  });

  test('accumulators and operands stay in registers', async () => {
    const square = product.with({ tile: { m: 64, n: 64, k: { walk: 32 } } });
    const text = await square.ptx({ capability: [9, 0] }, { m: 1024, n: 1024, k: 1024 });
    expect(text).not.toContain('.local');
    expect(text).toMatch(/ld\.global\S*\.v4/);
    expect(text).toMatch(/st\.global\S*\.v4/);
    const flash = attention.with({
      tile: { heads: 1, queries: 64, keys: { walk: 32 }, channels: null },
    });
    expect(
      await flash.ptx(
        { capability: [9, 0] },
        { heads: 8, queries: 1024, keys: 1024, channels: 64 },
      ),
    ).not.toContain('.local');
  });
});
