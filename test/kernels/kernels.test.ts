/**
 * Kernels in TypeScript on the device: compiled from their text, launched, compared with
 * JavaScript.
 */
import {
  CudaCompileError,
  Device,
  deviceFunction,
  f32,
  f64,
  i32,
  i64,
  inout,
  input,
  kernel,
  output,
  u32,
  u8,
} from 'async-cuda';
import { CudaCheckError } from 'async-cuda/core';
import type { Gpu } from 'async-cuda';
import type { GpuWith } from 'async-cuda/kernels';
import { beforeAll, expect, test } from 'vitest';

import { failure, onCpu, onDevice, openTestDevice, range } from '../core/test-device.js';
import { Body, bodies, reversed, saxpy, transpose } from './kernels.test-support.js';

/** Sums of blocks, through shared memory. */
const sums = kernel(
  'sums',
  { out: output(f32), x: input(f32) },
  ({ out, x }, gpu) => {
    const part = gpu.shared.f32(gpu.THREADS);
    const t = gpu.threadIdx.x;
    let sum = 0;
    for (let i = gpu.globalId.x; i < x.length; i += gpu.globalSize.x) sum += x[i]!;
    part[t] = sum;
    gpu.block.sync();
    for (let half = gpu.THREADS >> 1; half > 0; half >>= 1) {
      if (t < half) part[t] = part[t]! + part[t + half]!;
      gpu.block.sync();
    }
    if (t === 0) out[gpu.blockIdx.x] = part[0]!;
  },
  { uses: { THREADS: 128 }, block: 128 },
);

const square = (x: number): number => x * x;
const uses = { SLOPE: 0.25, square };
const leaky = deviceFunction(
  (x: number, { SLOPE, square }: GpuWith<typeof uses>) => (x > 0 ? square(x) : SLOPE * x),
  { uses },
);
const clamped = (x: number, gpu: Gpu): number => gpu.clamp(x, -2, 2);
const activate = kernel(
  'activate',
  { y: output(f32), x: input(f32) },
  ({ y, x }, { globalId, leaky, clamped, weights, FLIP }) => {
    const i = globalId.x;
    if (i < y.length) y[i] = leaky(clamped(x[i]!)) * weights[1]! * (FLIP ? -1 : 1);
  },
  { uses: { leaky, clamped, weights: [1, 3], FLIP: false } },
);

const blurred = kernel(
  'blurred',
  { y: output(f32), fourfold: output(f32), x: input(f32) },
  ({ y, fourfold, x }, { globalId, WEIGHTS }) => {
    const i = globalId.x;
    if (i >= y.length) return;
    let sum = 0;
    for (let k = 0; k < WEIGHTS.length; k++) sum += WEIGHTS[k]! * x[i + k]!;
    y[i] = sum;
    fourfold[i] = WEIGHTS[i]! * 4;
  },
  { uses: { WEIGHTS: [0.25, 0.5, 0.25] } },
);

const meeting = kernel('meeting', { out: output(i32), sum: inout(i32) }, ({ out, sum }, gpu) => {
  gpu.atomicAdd(sum, 0, 1);
  gpu.grid.sync();
  out[gpu.globalId.x] = sum[0]!;
});

onDevice('Kernels in TypeScript', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('saxpy', async () => {
    const x = Float32Array.from(range(1000), (i) => i / 7);
    const y = Float32Array.from(range(1000), (i) => 1 / (i + 1));
    const values = await saxpy({
      y: device.tensor(f32, y),
      a: 2,
      x: device.tensor(f32, x),
    }).andThen((given) => given.y.read());
    expect(values).toEqual(x.map((each, i) => 2 * each + y[i]!));
  });

  test('use closes what the operations of a call made, and no argument', async () => {
    using mine = await device.ones(f32, [100]);
    const made: { isClosed: boolean }[] = [];
    const op = saxpy({ y: mine, a: 2, x: device.full(f32, [100], 3) });
    expect(
      (
        await op.andThen(({ y, x }) => {
          made.push(x);
          return y.read();
        })
      )[99],
    ).toBe(7);
    expect([made[0]!.isClosed, mine.isClosed]).toEqual([true, false]);
    // Each run makes its own.
    expect((await op.andThen(({ y }) => y.read()))[0]).toBe(13);
  });

  test('tensors of two axes, and views of them', async () => {
    using x = await device.tensor(f32, Float32Array.from(range(35)), [5, 7]);
    using out = await device.zeros(f32, [7, 5]);
    await transpose({ out, x });
    expect([...(await out.read())]).toEqual(range(35).map((i) => (i % 5) * 7 + Math.floor(i / 5)));
    // Rows backwards into columns backwards: strides of either sign.
    await transpose({ out: out.slice([null, null, -1]), x: x.slice([null, null, -1]) });
    expect([...(await out.read())]).toEqual(
      range(35).map((i) => (4 - (i % 5)) * 7 + 6 - Math.floor(i / 5)),
    );
    // A copy onto itself is refused, one between its columns is not.
    using both = await device.tensor(f32, Float32Array.from(range(8)), [2, 4]);
    await transpose({ out: both.slice([null, null], [0, 2]), x: both.slice([null, null], [2, 4]) });
    expect([...(await both.read())]).toEqual([2, 6, 2, 3, 3, 7, 6, 7]);
  });

  test("shared memory, constants, a grid of the caller's", async () => {
    using x = await device.ones(f32, [10_000]);
    using out = await device.zeros(f32, [8]);
    await sums({ out, x }, { grid: 8 });
    expect((await out.read()).reduce((a, b) => a + b)).toBe(10_000);
    const wider = sums.with({ uses: { THREADS: 256 }, block: 256 });
    await wider({ out, x }, { grid: 8 });
    expect((await out.read()).reduce((a, b) => a + b)).toBe(10_000);
  });

  test('the first few blocks that a caller passes have code of their own', async () => {
    const total = kernel('total', { out: output(f32), x: input(f32) }, ({ out, x }, gpu) => {
      let sum = 0;
      for (let i = gpu.threadIdx.x; i < x.length; i += gpu.blockDim.x) sum += x[i]!;
      sum = gpu.block.sum(sum);
      if (gpu.threadIdx.x === 0) out[0] = sum;
    });
    using x = await device.ones(f32, [1000]);
    const totalBy = async (block: number): Promise<number> =>
      (
        await total({ out: device.zeros(f32, [1]), x }, { grid: 1, block }).andThen((given) =>
          given.out.read(),
        )
      )[0]!;
    const [sameAsOwn, own] = [
      await total.ptx(device, { block: [256, 1] }),
      await total.ptx(device),
    ];
    expect(sameAsOwn).toBe(own);
    expect(own).toContain('.reqntid 256, 1, 1');
    // 2048 threads exceed a block: no code is compiled for them.
    expect((await failure(async () => totalBy(2048))).message).toContain(
      'from 1 to 1024 (threads), got 2048',
    );
    for (const block of [32, 64, 96, 100, 128, 512, 768, 1024, 33, 50])
      expect(await totalBy(block), `by ${block}`).toBe(1000);
    expect(await total.ptx(device, { block: 100 })).toContain('.reqntid 100, 1, 1');
    expect(await total.ptx(device, { block: 50 })).not.toContain('.reqntid');
    expect((await failure(async () => total.ptx('9.0' as never))).message).toBe(
      "target: expected a Device, or { capability: [9, 0] }, got '9.0'.",
    );
    expect((await failure(async () => total.ptx(device, { block: 0 }))).message).toContain(
      'options.block: expected a whole number of at least 1',
    );
  });

  test('one divided by a number is its reciprocal, to the bit', async () => {
    const inverse = kernel(
      'inverse',
      { y: output(f32), z: output(f64), x: input(f32), w: input(f64) },
      ({ y, z, x, w }, gpu) => {
        const i = gpu.globalId.x;
        if (i >= y.length) return;
        y[i] = 1 / x[i]!;
        z[i] = gpu.f64(1) / w[i]!;
      },
    );
    const ptx = await inverse.ptx(device);
    for (const type of ['f32', 'f64']) expect(ptx).toContain(`rcp.rn.${type}`);
    expect(ptx).not.toContain('div.rn');
    const word = new Float32Array(
      new Uint32Array(20_000).map((_, at) => Math.imul(at, 2654435761)).buffer,
    );
    const values = Float32Array.of(
      0,
      -0,
      1,
      -3,
      Infinity,
      -Infinity,
      2 ** -149,
      -(2 ** -127),
      2 ** -126,
      3.4028234663852886e38,
      1.7e38,
      ...word.filter((value) => !Number.isNaN(value)),
    );
    const doubles = Float64Array.from(values, (value, at) =>
      at % 3 === 0 ? value * 2 ** -900 : at % 3 === 1 ? value * Math.PI : value * 2 ** 890,
    );
    using y = await device.zeros(f32, [values.length]);
    using z = await device.zeros(f64, [values.length]);
    using x = await device.tensor(f32, values);
    using w = await device.tensor(f64, doubles);
    await inverse({ y, z, x, w });
    expect(await y.read()).toEqual(values.map((value) => 1 / value));
    expect(await z.read()).toEqual(doubles.map((value) => 1 / value));
  });

  test('the last warp of a block may have fewer lanes', async () => {
    const warps = kernel(
      'warps',
      { sums: output(f32), extremes: output(i32) },
      ({ sums, extremes }, gpu) => {
        const t = gpu.threadIdx.x + gpu.threadIdx.y * gpu.blockDim.x;
        sums[t] = gpu.warp.sum(gpu.f32(t));
        extremes[t] = gpu.warp.max(t) * 1000 + gpu.warp.min(t);
      },
    );
    for (const block of [1, 5, 32, 33, [8, 5] as const, 64, 100, 96, 31, 7]) {
      const threads = typeof block === 'number' ? block : block[0] * block[1];
      const last = (t: number): number => Math.min(threads, (t | 31) + 1) - 1;
      const sum = (t: number): number => (((t & ~31) + last(t)) * (last(t) - (t & ~31) + 1)) / 2;
      using sums = await device.zeros(f32, [threads]);
      using extremes = await device.zeros(i32, [threads]);
      await warps({ sums, extremes }, { grid: 1, block });
      expect([...(await sums.read())], `sums of a block of ${block.toString()}`).toEqual(
        Array.from({ length: threads }, (_, t) => sum(t)),
      );
      expect([...(await extremes.read())]).toEqual(
        Array.from({ length: threads }, (_, t) => last(t) * 1000 + (t & ~31)),
      );
      const simulated = await warps.simulate(
        { sums: new Float32Array(threads), extremes: new Int32Array(threads) },
        { grid: 1, block },
      );
      expect([...simulated.sums]).toEqual([...(await sums.read())]);
      expect([...simulated.extremes]).toEqual([...(await extremes.read())]);
    }
  });

  test('quotients of whole numbers are rounded as in JavaScript', async () => {
    const round = kernel(
      'round',
      {
        down: output(i32),
        up: output(i32),
        cut: output(i32),
        of: output(u32),
        a: input(i32),
        b: input(i32),
      },
      ({ down, up, cut, of, a, b }, gpu) => {
        const i = gpu.globalId.x;
        if (i >= down.length) return;
        down[i] = Math.floor(a[i]! / b[i]!);
        up[i] = Math.ceil(a[i]! / b[i]!);
        cut[i] = Math.trunc(a[i]! / b[i]!);
        of[i] = Math.ceil(gpu.u32(a[i]!) / 7) + Math.floor(gpu.u32(a[i]!) / 7);
      },
    );
    const pairs = [-9, -8, -1, 0, 1, 5, 8, 9, 2 ** 31 - 1, -(2 ** 31)]
      .flatMap((a) => [-4, -3, -1, 1, 2, 3, 2 ** 30].map((b) => [a, b] as const))
      .filter(([a, b]) => a !== -(2 ** 31) || b !== -1);
    const [a, b] = [Int32Array.from(pairs, ([x]) => x), Int32Array.from(pairs, ([, y]) => y)];
    const expected = {
      down: Int32Array.from(pairs, ([x, y]) => Math.floor(x / y)),
      up: Int32Array.from(pairs, ([x, y]) => Math.ceil(x / y)),
      cut: Int32Array.from(pairs, ([x, y]) => Math.trunc(x / y)),
      of: Uint32Array.from(pairs, ([x]) => Math.ceil((x >>> 0) / 7) + Math.floor((x >>> 0) / 7)),
    };
    using down = await device.zeros(i32, [pairs.length]);
    using up = await device.zeros(i32, [pairs.length]);
    using cut = await device.zeros(i32, [pairs.length]);
    using of = await device.zeros(u32, [pairs.length]);
    using x = await device.tensor(i32, a);
    using y = await device.tensor(i32, b);
    await round({ down, up, cut, of, a: x, b: y });
    expect({
      down: await down.read(),
      up: await up.read(),
      cut: await cut.read(),
      of: await of.read(),
    }).toEqual(expected);
    const n = pairs.length;
    const simulated = await round.simulate({
      down: new Int32Array(n),
      up: new Int32Array(n),
      cut: new Int32Array(n),
      of: new Uint32Array(n),
      a,
      b,
    });
    expect({
      down: simulated.down,
      up: simulated.up,
      cut: simulated.cut,
      of: simulated.of,
    }).toEqual(expected);
  });

  test('device functions and lists', async () => {
    const y = await activate({
      y: device.zeros(f32, [4]),
      x: device.tensor(f32, [-4, -1, 1.5, 9]),
    }).andThen((given) => given.y.read());
    expect([...y]).toEqual([-1.5, -0.75, 6.75, 12]);
    const flipped = activate.with({ uses: { FLIP: true } });
    expect([
      ...(await flipped({ y: device.zeros(f32, [1]), x: device.ones(f32, [1]) }).andThen((given) =>
        given.y.read(),
      )),
    ]).toEqual([-3]);
  });

  test('a list is indexed by a loop’s counter or a computed number', async () => {
    const x = Float32Array.of(4, 8, 0, 16, 4, 8);
    const meant = [
      [5, 6, 9, 8],
      [1, 2, 1, 1],
    ];
    const { y, fourfold } = await blurred.simulate({
      y: new Float32Array(4),
      fourfold: new Float32Array(4),
      x,
    });
    expect([[...y], [...fourfold]]).toEqual(meant);
    const given = await blurred({
      y: device.zeros(f32, [4]),
      fourfold: device.zeros(f32, [4]),
      x: device.tensor(f32, x),
    });
    expect([[...(await given.y.read())], [...(await given.fourfold.read())]]).toEqual(meant);
    for (const each of [given.y, given.fourfold, given.x]) each.close();
  });

  test('structures, and scalars of every kind', async () => {
    using all = await device.tensor(
      u8,
      Body.pack([
        { x: 1, id: 5, alive: true },
        { x: 2, id: -6n, alive: false },
      ]),
    );
    await bodies({
      all,
      offset: { x: 0.5, id: 1n << 40n, alive: false },
      factor: 10,
      half: 0.25,
      small: 3,
      on: true,
      count: 100,
    });
    expect(Body.unpack(await all.read())).toEqual([
      { x: 113.75, id: 5n + (1n << 40n), alive: false },
      { x: 123.75, id: (1n << 40n) - 6n, alive: true },
    ]);
    await bodies({
      all,
      offset: { x: 0, id: 0, alive: false },
      factor: 0,
      half: 0,
      small: 0,
      on: false,
      count: 0,
    });
    expect(Body.unpack(await all.read())[0]!.x).toBe(113.75);
  });

  test('dynamic shared memory', async () => {
    using out = await device.zeros(i32, [100]);
    expect((await failure(() => reversed({ out }, { block: 100 }))).message).toBe(
      "options.sharedBytes: kernel 'reversed' has gpu.dynamicShared, whose bytes the launch " +
        'gives. Write reversed(args, { sharedBytes }).',
    );
    await reversed({ out }, { block: 100, sharedBytes: 400 });
    expect([...(await out.read())]).toEqual(range(100).map((t) => (99 - t) ** 2));
  });

  test('a kernel with a grid barrier is launched cooperatively', async () => {
    using out = await device.zeros(i32, [4 * 64]);
    using sum = await device.zeros(i32, [1]);
    await meeting({ out, sum }, { block: 64 });
    expect(new Set(await out.read())).toEqual(new Set([256]));
  });

  test('indices of 64 bits give the same results', async () => {
    const wide = saxpy.with({ index: 'i64' });
    expect(await wide.ptx(device)).not.toBe(await saxpy.ptx(device));
    expect([
      ...(await wide({ y: device.ones(f32, [3]), a: 2, x: device.ones(f32, [3]) }).andThen(
        (given) => given.y.read(),
      )),
    ]).toEqual([3, 3, 3]);
  });

  test('indices have 64 bits where 32 do not count the elements', async () => {
    const count = kernel('count', { out: output(i64), x: input(f32, 2) }, ({ out, x }, gpu) => {
      const i = gpu.globalId.x;
      if (i === 0) out[i] = x.length + gpu.i64(x[65_535]![32_767]!);
    });
    using one = await device.full(f32, [1, 1], 5);
    using out = await device.zeros(i64, [1]);
    // A view of one element, 2^31 times.
    await count({ out, x: one.broadcastTo([65_536, 32_768]) });
    expect([...(await out.read())]).toEqual([2n ** 31n + 5n]);
    expect(
      (await failure(() => count({ out, x: one.broadcastTo([65_536, 32_768]) }, { index: 'i32' })))
        .message,
    ).toBe(
      "options.index: expected 'i64', or nothing, got 'i32'. A tensor of kernel 'count' has " +
        '2^31 elements or more.',
    );
  });

  test('results do not depend on a tensor’s address', async () => {
    using x = await device.tensor(f32, Float32Array.from(range(70)));
    using y = await device.zeros(f32, [70]);
    for (const from of [0, 1, 2, 3, 4]) {
      await saxpy({ y: y.slice([from, from + 60]), a: 1, x: x.slice([5 - from, 65 - from]) });
    }
    expect([...(await y.read())]).toEqual(
      range(70).map((i) =>
        range(5).reduce(
          (sum, from) => sum + (i >= from && i < from + 60 ? i - from + 5 - from : 0),
          0,
        ),
      ),
    );
  });

  test('values that are not kernels are an error with their text', async () => {
    const outside = 3;
    const wrong = kernel('wrong', { y: output(f32) }, ({ y }, gpu) => {
      y[gpu.globalId.x] = outside;
    });
    using y = await device.zeros(f32, [4]);
    const error = (await failure(() => wrong({ y }))) as unknown as CudaCompileError;
    expect(error).toBeInstanceOf(CudaCompileError);
    expect(error.message).toMatch(
      /^kernel 'wrong': .*kernels\.test\.ts:\d+:\d+: `outside` is not defined in a kernel/,
    );
    expect(error.message).toContain('y[gpu.globalId.x] = outside;');
    expect(error.message).toContain('^^^^^^^');
    expect(error.place).toMatchObject({
      file: expect.stringMatching(/test\/kernels\/kernels\.test\.ts$/) as string,
      column: 27,
    });
    await expect(wrong.prepare(device)).rejects.toThrow(CudaCompileError);
    await expect(wrong.ptx({ capability: [9, 0] })).rejects.toThrow('outside');
  });

  test('a kernel of numbers only takes its device as an option', async () => {
    const idle = kernel('idle', { n: i32 }, ({ n }) => {
      if (n > 5) return;
    });
    expect(await idle({ n: 3 }, { grid: 1, device })).toEqual({ n: 3 });
  });

  test('tune chooses among constants', async () => {
    using x = await device.ones(f32, [100_000]);
    using out = await device.zeros(f32, [1]);
    const { kernel: tuned, candidates } = await sums.tune(
      { out, x },
      {
        candidates: [
          {},
          { uses: { THREADS: 64 }, block: 64 },
          { uses: { THREADS: 256 }, block: 256 },
        ],
        launch: { grid: 1 },
        rounds: 2,
        anew: true,
      },
    );
    expect(candidates.map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
    await tuned({ out, x }, { grid: 1 });
    expect([...(await out.read())]).toEqual([100_000]);
  });

  const beyond = kernel('beyond', { y: output(f32) }, ({ y }, gpu) => {
    const i = gpu.globalId.x;
    y[i + 1] = 1;
  });

  test.runIf(onCpu)('with checks an index outside of a tensor fails', async () => {
    await using other = Device.of(await openTestDevice({ check: false }, 'cpu:1'));
    using y = await other.zeros(f32, [8]);
    using part = y.slice([0, 4]);
    await beyond({ y: part }, { block: 4 });
    expect([...(await y.read())]).toEqual([0, 1, 1, 1, 1, 0, 0, 0]);
    const error = await failure(() => beyond({ y: part }, { block: 4, checks: true }));
    expect([error.code, error.message]).toEqual([
      'ERR_CUDA_DEVICE_LOST',
      expect.stringMatching(
        /kernels\.test\.ts:\d+: beyond: Assertion `an index of y is out of bounds` failed/,
      ) as string,
    ]);
  });

  test.runIf(onCpu)('a device that checks names the line', async () => {
    await using other = Device.of(await openTestDevice({ check: true }, 'cpu:1'));
    using y = await other.zeros(f32, [4]);
    const error = await failure(() => beyond({ y }, { block: 4 }));
    expect(error).toBeInstanceOf(CudaCheckError);
    expect(error.message).toMatch(/kernels\.test\.ts:\d+/);
  });

  test.runIf(onCpu)('the CPU device has no machine code', async () => {
    expect(await failure(() => saxpy.sass(device))).toMatchObject({ code: 'ERR_CUDA_UNSUPPORTED' });
  });
});
