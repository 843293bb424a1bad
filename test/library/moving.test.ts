/**
 * Cumulative sums, transposed copies, gathering, scattering and histograms, compared with
 * JavaScript.
 */
import {
  CudaArgumentError,
  DTYPES,
  Device,
  bf16,
  bool,
  f16,
  f32,
  f64,
  i16,
  i32,
  i64,
  i8,
  u32,
  u64,
  u8,
} from 'async-cuda';
import type { DType, DeviceOp } from 'async-cuda';
import type { KernelTensor } from 'async-cuda/tensor';
import { cumsum, gather, histogram, scatter, scatterAdd, transpose } from 'async-cuda/library';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const numbers = (size: number): number[] => range(size).map((i) => ((i * 7919) % 101) - 50);

function sums(values: readonly number[], exclusive = false): number[] {
  let sum = 0;
  return values.map((value) => {
    sum += value;
    return exclusive ? sum - value : sum;
  });
}

/**
 * Sums of f32 in the order that the scan has: lanes of four elements joined in a warp as by
 * shuffles, four such runs one after another, eight warps; of chunks the 32 of a group by
 * butterfly, 32 groups likewise, then what is before.
 */
function sumsInOrder(values: Float32Array): Float32Array {
  const { fround } = Math;
  const out = new Float32Array(values.length);
  const chunks = Math.ceil(values.length / 4096);
  const totals = new Float32Array(chunks);
  const inChunks: Float32Array[] = [];
  const starts: number[] = [];
  for (let chunk = 0; chunk < chunks; chunk++) {
    const inside = new Float32Array(4096);
    const begins = new Float32Array(1024);
    inside.set(values.subarray(chunk * 4096, (chunk + 1) * 4096));
    for (let warp = 0, before = 0; warp < 8; warp++) {
      let sum = 0;
      for (let run = warp * 4; run < warp * 4 + 4; run++) {
        let upTo = new Float32Array(32);
        for (let lane = 0; lane < 32; lane++) {
          const at = run * 128 + lane * 4;
          for (let k = 1; k < 4; k++)
            inside[at + k] = fround(inside[at + k - 1]! + inside[at + k]!);
          upTo[lane] = inside[at + 3]!;
        }
        for (let step = 1; step < 32; step <<= 1)
          upTo = upTo.map((value, lane) =>
            lane >= step ? fround(value + upTo[lane - step]!) : value,
          );
        for (let lane = 0; lane < 32; lane++)
          begins[run * 32 + lane] = lane > 0 ? fround(sum + upTo[lane - 1]!) : sum;
        sum = fround(sum + upTo[31]!);
      }
      starts[chunk * 8 + warp] = before;
      before = fround(before + sum);
      totals[chunk] = before;
    }
    inChunks.push(inside, begins);
  }
  const butterfly = (from: number, count: number, of: Float32Array): number => {
    let lanes = new Float32Array(32).map((_, lane) => (lane < count ? of[from + lane]! : 0));
    for (let bits = 16; bits > 0; bits >>= 1)
      lanes = lanes.map((value, lane) => fround(value + lanes[lane ^ bits]!));
    return lanes[0]!;
  };
  const groups = new Float32Array(Math.ceil(chunks / 32));
  const spans = new Float32Array(Math.ceil(chunks / 1024));
  for (let chunk = 0; chunk < chunks; chunk++) {
    const [group, span] = [chunk >> 5, chunk >> 10];
    const inGroup = butterfly(group * 32, chunk % 32, totals);
    if (chunk % 32 === 31) groups[group] = fround(inGroup + totals[chunk]!);
    const inSpan = butterfly(span * 32, group % 32, groups);
    const before = span > 0 ? spans[span - 1]! : 0;
    if (chunk % 1024 === 1023)
      spans[span] = fround(before + fround(inSpan + fround(inGroup + totals[chunk]!)));
    const first = fround(fround(before + inSpan) + inGroup);
    for (let i = 0; i < 4096 && chunk * 4096 + i < values.length; i++) {
      const start = fround(starts[chunk * 8 + (i >> 9)]! + first);
      out[chunk * 4096 + i] = fround(
        fround(start + inChunks[chunk * 2 + 1]![i >> 2]!) + inChunks[chunk * 2]![i]!,
      );
    }
  }
  return out;
}

onDevice('Scans, transposed copies, indices, histograms', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const read = async (op: DeviceOp<unknown>): Promise<(number | bigint)[]> =>
    Array.from(
      (await (op as DeviceOp<KernelTensor>).andThen((tensor) =>
        tensor.read(),
      )) as ArrayLike<number>,
    );
  const plain = async (op: DeviceOp<unknown>): Promise<number[]> => (await read(op)).map(Number);
  const message = async (call: () => unknown): Promise<string> => {
    const error = await failure(call);
    expect(error).toBeInstanceOf(CudaArgumentError);
    return error.message;
  };

  someOf(
    2,
    test,
  )([0, 1, 31, 33, 128, 129, 255, 511, 512, 513, 1025, 4095, 4096, 4097, 8191, 70_001, 140_003])(
    'cumulative sums of %i elements',
    async (size) => {
      const values = numbers(size);
      using whole = await device.tensor(i32, values);
      using floats = await device.tensor(f32, values);
      for (const exclusive of [false, true]) {
        expect(await plain(cumsum(whole, { exclusive }))).toEqual(sums(values, exclusive));
        expect(await plain(cumsum(floats, { exclusive }))).toEqual(sums(values, exclusive));
      }
    },
  );

  test('cumulative sums of rows, views and other dtypes', async () => {
    const values = numbers(3 * 2500);
    using x = await device.tensor(f32, values, [3, 2500]);
    using rows = await cumsum(x, { axis: -1 });
    expect(rows.shape).toEqual([3, 2500]);
    expect([...(await rows.read())]).toEqual(
      [0, 1, 2].flatMap((row) => sums(values.slice(row * 2500, (row + 1) * 2500))),
    );
    expect(await plain(cumsum(x.slice([0, 2], [10, 14]).transpose(), { axis: 1 }))).toEqual(
      [10, 11, 12, 13].flatMap((at) => sums([values[at]!, values[2500 + at]!])),
    );
    expect(await read(cumsum(device.tensor(u8, [255, 255, 255])))).toEqual([255n, 510n, 765n]);
    expect(await read(cumsum(device.tensor(bool, [1, 0, 1])))).toEqual([1n, 1n, 2n]);
    expect(await read(cumsum(device.tensor(i64, [1n << 40n, -1n])))).toEqual([
      1n << 40n,
      (1n << 40n) - 1n,
    ]);
    expect((await plain(cumsum(device.ones(f16, [2048])))).at(-1)).toBe(2048);
    expect(await plain(cumsum(device.tensor(f64, [0.1, 0.2])))).toEqual([0.1, 0.1 + 0.2]);
    expect(await message(() => cumsum(x, { axis: 0 }))).toContain('Sum up x.transpose(axis, -1).');
  });

  // There are millions of elements, and the kernels are the same in each mode: one mode is enough.
  test.runIf(host.mode === 'worker')(
    'cumulative sums across groups of blocks, and groups of those',
    { tags: 'thorough' },
    async () => {
      const size = 2 * 1024 * 4096 + 4097;
      using ones = await device.ones(u8, [size]);
      using sums = await cumsum(ones, { exclusive: true });
      const values = await sums.read();
      expect(values.findIndex((value, i) => value !== BigInt(i))).toBe(-1);
    },
  );

  test(
    'cumulative sums of floats are the same bits in each run, in one order',
    { tags: 'thorough' },
    async () => {
      const values = Float32Array.from(
        { length: 64 * 4096 + 77 },
        (_, i) => ((Math.imul(i + 1, 2654435761) >>> 8) / 2 ** 24) ** 4 - 0.1,
      );
      using x = await device.tensor(f32, values);
      const expected = sumsInOrder(values);
      for (let run = 0; run < 2; run++) {
        using sums = await cumsum(x);
        expect(
          Buffer.compare(Buffer.from((await sums.read()).buffer), Buffer.from(expected.buffer)),
        ).toBe(0);
      }
      using shifted = await cumsum(x.slice([1, values.length]));
      expect(
        Buffer.compare(
          Buffer.from((await shifted.read()).buffer),
          Buffer.from(sumsInOrder(values.slice(1)).buffer),
        ),
      ).toBe(0);
    },
  );

  test.runIf(host.mode === 'worker')(
    'cumulative sums of many rows, each by a warp, by a block or by several blocks',
    { tags: 'thorough' },
    async () => {
      for (const [rows, count] of [
        [70_000, 2],
        [70, 130],
        [5, 513],
        [3, 4098],
        [2, 9000],
      ] as const) {
        const values = numbers(rows * count);
        using x = await device.tensor(i32, values, [rows, count]);
        const expected = range(rows).flatMap((row) =>
          sums(values.slice(row * count, (row + 1) * count)),
        );
        expect(await plain(cumsum(x, { axis: 1 }))).toEqual(expected);
      }
    },
  );

  test('infinities and NaN in cumulative sums affect later elements only', async () => {
    const values = new Float32Array(10_000).fill(1);
    values[5000] = Infinity;
    values[9000] = -Infinity;
    using x = await device.tensor(f32, values);
    const found = await plain(cumsum(x));
    expect([found[4999], found[5000], found[8999], found[9000], found[9999]]).toEqual([
      5000,
      Infinity,
      Infinity,
      NaN,
      NaN,
    ]);
  });

  someOf(
    2,
    test,
  )([
    [1, 1],
    [31, 33],
    [32, 32],
    [100, 7],
    [1, 65],
    [0, 4],
    [64, 64],
    [65, 67],
    [68, 130],
    [200, 16],
  ])('transposed copies of %i × %i, of every dtype', async (rows, columns) => {
    for (const dtype of Object.values(DTYPES).filter(({ kind }) => kind !== 'complex') as DType[]) {
      const wide = dtype.name === 'i64' || dtype.name === 'u64';
      const element = (i: number): number => (dtype === bool ? i % 2 : (i * 7) % 8);
      using x = await device.tensor(
        dtype,
        range(rows * columns).map((i) => (wide ? BigInt(element(i)) : element(i))) as number[],
        [rows, columns],
      );
      using turned = await transpose(x as unknown as KernelTensor);
      expect(turned.shape).toEqual([columns, rows]);
      expect(Array.from((await turned.read()) as ArrayLike<number>, Number), dtype.name).toEqual(
        range(rows * columns).map((i) => element((i % rows) * columns + Math.floor(i / rows))),
      );
    }
  });

  test('transposed copies of several matrices, of views', async () => {
    using x = await device.arange(f32, 2 * 3 * 40 * 5);
    const many = x.reshape([2, 3, 40, 5]);
    using turned = await transpose(many);
    expect(turned.shape).toEqual([2, 3, 5, 40]);
    expect([...(await turned.read())]).toEqual([...(await many.transpose().read())]);
    expect(await plain(transpose(many.transpose()))).toEqual([...(await x.read())]);
    using y = await device.arange(f32, 3 * 70 * 84);
    const larger = y.reshape([3, 70, 84]);
    expect(await plain(transpose(larger))).toEqual([...(await larger.transpose().read())]);
    // Matrices that do not begin at a multiple of 16 bytes, and many small ones.
    const shifted = y.slice([1, 1 + 64 * 64]).reshape([64, 64]);
    expect(await plain(transpose(shifted))).toEqual([...(await shifted.transpose().read())]);
    using small = await device.arange(f32, 70_000 * 4);
    expect(await plain(transpose(small.reshape([70_000, 2, 2])))).toEqual(
      range(280_000).map((i) => i - (i % 4) + (((i % 4) * 2) % 4) + ((i % 4) >> 1)),
    );
    expect(await message(() => transpose(x))).toContain('at least two axes');
  });

  test('gather', async () => {
    using x = await device.arange(f32, 24);
    const cube = x.reshape([2, 3, 4]);
    using indices = await device.tensor(i32, [2, 0, -1, 2, 7], [5]);
    using picked = await gather(cube, indices, { axis: 1 });
    expect(picked.shape).toEqual([2, 5, 4]);
    expect([...(await picked.read())]).toEqual(
      [0, 1].flatMap((outer) =>
        [2, 0, 2, 2, -1].flatMap((at) =>
          range(4).map((inner) => (at < 0 ? 0 : outer * 12 + at * 4 + inner)),
        ),
      ),
    );
    using square = await device.tensor(i64, [1n, 0n, -1n, 1n], [2, 2]);
    using rows = await gather(cube, square);
    expect(rows.shape).toEqual([2, 2, 3, 4]);
    expect([...(await rows.read())]).toEqual(
      [1, 0, 1, 1].flatMap((at) => range(12).map((i) => at * 12 + i)),
    );
    expect(await plain(gather(cube.transpose(), device.tensor(i32, [1]), { axis: 2 }))).toEqual(
      range(8).map((i) => Math.floor(i / 4) * 12 + 4 + (i % 4)),
    );
    expect(await plain(gather(device.tensor(bool, [0, 1]), device.tensor(i32, [1, 1, 0])))).toEqual(
      [1, 1, 0],
    );
    expect(await read(gather(device.tensor(u64, [5n, 6n]), device.tensor(i32, [1])))).toEqual([6n]);
    expect(await plain(gather(cube, device.zeros(i32, [0])))).toEqual([]);
    expect(await message(() => gather(cube, x as never))).toContain(
      'indices: expected a Tensor of i32 or i64',
    );
    expect(await message(() => gather(cube, indices, { axis: 3 }))).toContain('options.axis');
  });

  test('scatter, and scatterAdd', async () => {
    using x = await device.zeros(i8, [3, 4]);
    expect(
      await plain(scatter(x, device.tensor(i32, [2, -3, 9]), device.tensor(i8, range(12), [3, 4]))),
    ).toEqual([4, 5, 6, 7, 0, 0, 0, 0, 0, 1, 2, 3]);
    expect(
      await plain(
        scatter(x, device.tensor(i32, [1]), device.tensor(i8, [1, 2, 3], [3, 1]), { axis: 1 }),
      ),
    ).toEqual([0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0]);
    expect([...(await x.read())]).toEqual(new Array(12).fill(0));
    for (const dtype of [i32, u32, f32, f64] as const) {
      using target = await device.ones(dtype, [10]);
      const at = range(1000).map((i) => (i * i) % 7);
      const expected = range(10).map(
        (bin) => 1 + at.reduce((sum, each, i) => (each === bin ? sum + i : sum), 0),
      );
      expect(
        await plain(
          scatterAdd(target as never, device.tensor(i32, at), device.arange(dtype, 1000) as never),
        ),
        dtype.name,
      ).toEqual(expected);
    }
    expect(await message(() => scatterAdd(x as never, x as never, x as never))).toContain(
      'indices',
    );
    using one = await device.zeros(i32, [1]);
    expect(await message(() => scatterAdd(x as never, one, x as never))).toContain(
      'a Tensor of i32, u32, u64, f32, f64',
    );
    expect(await message(() => scatter(x, one, x))).toContain(
      'source: expected a Tensor of i8 and [1, 4]',
    );
  });

  someOf(2, test)([0, 1, 33, 1025, 50_000])('histograms of %i elements', async (size) => {
    const values = range(size).map((i) => ((i * 7919) % 1000) / 100);
    using x = await device.tensor(f64, values);
    for (const bins of [1, 10, 5000]) {
      const expected = new Array<number>(bins).fill(0);
      for (const value of values)
        if (value >= 1 && value <= 9)
          expected[Math.min(bins - 1, Math.trunc((value - 1) * (bins / 8)))]!++;
      expect(await plain(histogram(x, bins, { from: 1, to: 9 }))).toEqual(expected);
    }
    using bytes = await device.tensor(
      u8,
      range(size).map((i) => i % 256),
    );
    expect(await plain(histogram(bytes, 256, { from: 0, to: 256 }))).toEqual(
      range(256).map((bin) => Math.floor((size + 255 - bin) / 256)),
    );
  });

  /** NumPy's: in doubles, with numbers halved where the width would be infinite. */
  const counted = (values: readonly number[], bins: number, from: number, to: number): number[] => {
    const counts = new Array<number>(bins).fill(0);
    const half = to - from === Infinity ? 0.5 : 1;
    for (const x of values)
      if (x >= from && x <= to)
        counts[
          Math.min(
            bins - 1,
            Math.floor(((x * half - from * half) / (to * half - from * half)) * bins),
          )
        ]!++;
    return counts;
  };

  test.each<[string, DType<'f32' | 'f64' | 'bf16' | 'i32'>, number, number]>([
    ['wider than f32', f32, -3e38, 3e38],
    ['beyond f32', f32, -1e300, 1e300],
    ['wider than f64', f64, -1.5e308, 1.7e308],
    ['as wide as f64', f64, 0, 1.7e308],
    ['tiny', f32, 0, 1e-42],
    ['tiny in f64', f64, -1e-306, 3e-306],
    ['of bf16', bf16, -3e38, 2e38],
    ['of i32', i32, -(2 ** 31), 2 ** 31 - 1],
  ])('histograms of a range that is %s', async (_, dtype, from, to) => {
    const given = range(400).map(
      (i) => (from / 200) * ((i * 37) % 200) * 0.99 + (to / 200) * ((i * 61) % 200) * 0.98,
    );
    using x = (await device.tensor(
      dtype,
      dtype.kind === 'float' ? given : given.map(Math.round),
    )) as unknown as KernelTensor & Disposable;
    const values = Array.from((await x.read()) as ArrayLike<number>);
    for (const bins of [1, 7, 64])
      expect(await plain(histogram(x as never, bins, { from, to }))).toEqual(
        counted(values, bins, from, to),
      );
  });

  test('histograms of more bins than f32 numbers count each element in its own', async () => {
    const bins = 2 ** 25;
    const places = [0, 1, 2 ** 24 + 1, 2 ** 25 - 1];
    const counts = await histogram(device.tensor(i16, [0, 1]), bins, { from: 0, to: bins }).andThen(
      (y) => y.slice([0, 3]).read(),
    );
    expect([...counts]).toEqual([1, 1, 0]);
    using x = await device.tensor(f64, places);
    using all = await histogram(x, bins, { from: 0, to: bins });
    for (const place of places) expect(await all.slice(place).item()).toBe(1);
  });

  test('a histogram skips values outside of its range, and refuses wrong arguments', async () => {
    expect(
      await message(() => histogram(device.zeros(f64, [1]), 4, { from: 0, to: 5e-324 })),
    ).toContain('options.to: expected further above options.from, 0');
    expect(
      await plain(
        histogram(device.tensor(f32, [NaN, -1, 0, 1, 2, Infinity]), 2, { from: 0, to: 1 }),
      ),
    ).toEqual([1, 1]);
    using x = await device.zeros(f32, [3]);
    expect(await message(() => histogram(x, 0, { from: 0, to: 1 }))).toContain('bins');
    expect(await message(() => histogram(x, 4, { from: 1, to: 1 }))).toContain('options.to');
    expect(await message(() => histogram(x, 4, undefined as never))).toContain('options.from');
  });
});
