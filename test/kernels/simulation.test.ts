/** Kernels that JavaScript simulates. */
import {
  CudaArgumentError,
  Device,
  f32,
  i32,
  i64,
  inout,
  input,
  kernel,
  output,
  u32,
} from 'async-cuda';
import { SimulationError } from 'async-cuda/kernels';
import type { SimulationOptions } from 'async-cuda/kernels';
import { beforeAll, describe, expect, test } from 'vitest';

import { failure, onDevice, range } from '../core/test-device.js';
import { Body, bodies, reversed, saxpy, transpose } from './kernels.test-support.js';

onDevice('Simulation of kernels', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('simulate reports a division by zero', async () => {
    const divide = kernel('divide', { y: inout(i32) }, ({ y }) => {
      y[0] = y[1]! / y[2]!;
      y[3] = y[1]! % y[4]!;
    });
    expect([
      ...(await divide.simulate({ y: Int32Array.of(0, -7, 2, 0, 4) }, { grid: 1, block: 1 })).y,
    ]).toEqual([-3, -7, 2, -3, 4]);
    for (const zero of [2, 4]) {
      const y = Int32Array.of(0, 7, 2, 0, 4).fill(0, zero, zero + 1);
      const error = (await divide
        .simulate({ y }, { grid: 1, block: 1 })
        .catch((each: unknown) => each)) as SimulationError;
      expect(error).toBeInstanceOf(SimulationError);
      expect(error.message).toContain('an integer was divided by zero');
    }
  });

  test('simulation has the same results', async () => {
    const x = Float32Array.from(range(300), (i) => i / 7);
    const y = Float32Array.from(range(300), (i) => 1 / (i + 1));
    const launched = await saxpy({
      y: device.tensor(f32, y),
      a: 0.1,
      x: device.tensor(f32, x),
    }).andThen((given) => given.y.read());
    const simulated = await saxpy.simulate({ y, a: 0.1, x });
    expect(simulated.y).toEqual(launched);
    const out = new Float32Array(35);
    await transpose.simulate({
      out: { data: out, shape: [7, 5] },
      x: { data: Float32Array.from(range(35)), shape: [5, 7] },
    });
    expect([...out]).toEqual(range(35).map((i) => (i % 5) * 7 + Math.floor(i / 5)));
    const squares = new Int32Array(100);
    await reversed.simulate({ out: squares }, { block: 100, sharedBytes: 400 });
    expect([...squares]).toEqual(range(100).map((t) => (99 - t) ** 2));
    const all = Body.pack([{ x: 1, id: 5, alive: true }]);
    await bodies.simulate({
      all,
      offset: { x: 0.5, id: 1n, alive: false },
      factor: 10,
      half: 0.25,
      small: 3,
      on: true,
      count: 100,
    });
    expect(Body.unpack(all)).toEqual([{ x: 113.75, id: 6n, alive: false }]);
  });

  test('simulation reports faults with their place', async () => {
    const beyond = kernel('beyond', { y: output(f32) }, ({ y }, gpu) => {
      y[gpu.globalId.x + 1] = 1;
    });
    const error = (await beyond
      .simulate({ y: new Float32Array(4) }, { grid: 1, block: 4 })
      .catch((each: unknown) => each)) as SimulationError;
    expect(error).toBeInstanceOf(SimulationError);
    expect(error.message).toContain('y[gpu.globalId.x + 1] = 1;');
    expect(error.position?.file).toMatch(/simulation\.test\.ts$/);
    expect(await failure(() => beyond.simulate({ y: new Int32Array(4) as never }))).toBeInstanceOf(
      CudaArgumentError,
    );
    expect((await failure(() => beyond.simulate(undefined as never))).message).toBe(
      'args: expected what the kernel takes, by name: y, got undefined.',
    );
    expect(
      (await failure(() => kernel('k', { n: i32 }, () => undefined).simulate({ n: 1 }))).message,
    ).toContain('options.grid');
  });

  test('simulation gives lanes at two places their own active masks', async () => {
    const masks = kernel('masks', { u: output(u32) }, ({ u }, gpu) => {
      const t = gpu.threadIdx.x;
      if (gpu.lane % 2 === 0) u[t] = gpu.warp.activeMask();
      else u[t] = gpu.warp.activeMask();
    });
    const { u } = await masks.simulate({ u: new Uint32Array(64) }, { grid: 1, block: 64 });
    expect([...u]).toEqual(range(64).map((t) => (t % 2 === 0 ? 0x55555555 : 0xaaaaaaaa)));
  });

  describe('simulation refuses what a call does', () => {
    const scaled = kernel(
      'scaled',
      { y: output(f32), x: input(f32), n: i32, wide: i64 },
      ({ y, x, n }, gpu) => {
        const i = gpu.globalId.x;
        if (i < y.length) y[i] = x[i]! * n;
      },
    );
    const given = () => ({
      y: new Float32Array(8),
      x: new Float32Array(8).fill(2),
      n: 3,
      wide: 1n,
    });

    test.each<[unknown, string]>([
      [
        { sharedBytes: -1 },
        'options.sharedBytes: expected a whole number from 0 to 2147483647 (bytes), got -1',
      ],
      [
        { sharedBytes: '1' },
        "options.sharedBytes: expected a whole number from 0 to 2147483647 (bytes), got '1'",
      ],
      [{ block: 0 }, 'options.block: expected a whole number of at least 1 (threads), got 0'],
      [{ block: [32, 64] }, 'options.block: expected at most 1024 threads in a block, got 2048'],
      [
        { grid: '1' },
        "options.grid: expected a number or an array of one to three numbers, got '1'",
      ],
      [
        { grid: [1, '1'] },
        "options.grid[1]: expected a whole number from 1 to 2147483647 (blocks), got '1'",
      ],
      [
        { grid: 2 ** 31 },
        'options.grid: expected a whole number from 1 to 2147483647 (blocks), got 2147483648',
      ],
      [{ print: 1 }, 'options.print: expected a function that takes what the kernel prints, got 1'],
      [{ checkUninitialized: 0 }, 'options.checkUninitialized: expected true or false, got 0'],
    ])('options: %o', async (options, message) => {
      const error = await failure(() => scaled.simulate(given(), options as SimulationOptions));
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect(error.message).toContain(message);
    });

    const bytes = new ArrayBuffer(64);
    test.each<[string, object, string, string]>([
      [
        'a bigint for an i32',
        { n: 1n },
        "args.n of kernel 'scaled'",
        "args.n of kernel 'scaled': expected a whole number for i32, from -2147483648 to " +
          '2147483647, got 1n',
      ],
      [
        'a number of more bits than it holds',
        { wide: 2 ** 60 },
        "args.wide of kernel 'scaled'",
        'Beyond 2^53 pass a bigint.',
      ],
      [
        'overlapping arrays',
        { y: new Float32Array(bytes, 0, 8), x: new Float32Array(bytes, 28, 8) },
        'args.y',
        "args.y of kernel 'scaled' is written and overlaps args.x: Float32Array(8) and " +
          'Float32Array(8). Pass arrays that share no elements; copy one with slice() where ' +
          'they have to.',
      ],
      [
        'overlapping tensors',
        {
          y: { data: new Float32Array(bytes), shape: [8], offset: 4 },
          x: { data: new Float32Array(bytes), shape: [5] },
        },
        'args.y',
        'is written and overlaps args.x: Float32Array(16) and Float32Array(16)',
      ],
      [
        'a shape that is none',
        { x: { data: new Float32Array(8), shape: 8 } },
        "args.x of kernel 'scaled': shape",
        'a list of whole numbers from 0, the length of each axis, got 8',
      ],
      [
        'strides that are none',
        { x: { data: new Float32Array(8), shape: [8], strides: ['1'] } },
        "args.x of kernel 'scaled': strides",
        "a whole number for each axis, in elements, got [ '1' ]",
      ],
      [
        'an offset that is none',
        { x: { data: new Float32Array(8), shape: [8], offset: -1 } },
        "args.x of kernel 'scaled': offset",
        'got -1',
      ],
      [
        'an output that is none',
        { y: 'eight' },
        'args.y',
        "'y' is a tensor of f32, but got 'eight'. Pass a Float32Array.",
      ],
      [
        'an output that is left out',
        { y: undefined },
        'args.y',
        "'scaled' needs 'y', a tensor, but got nothing",
      ],
      [
        'another name',
        { z: 1 },
        'args.z',
        "'scaled' has no parameter 'z'. It takes y, x, n, wide.",
      ],
    ])('%s', async (_, other, argument, message) => {
      const error = await failure(() => scaled.simulate({ ...given(), ...other } as never));
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect((error as CudaArgumentError).argument).toBe(argument);
      expect(error.message).toContain(message);
    });

    test('adjacent and interleaved arrays are taken, and empty outputs', async () => {
      const [y, x] = [new Float32Array(bytes, 0, 8), new Float32Array(bytes, 32, 8).fill(2)];
      expect([...(await scaled.simulate({ ...given(), y, x })).y]).toEqual(range(8).map(() => 6));
      const data = Float32Array.from(range(16));
      const halved = kernel(
        'halved',
        { out: output(f32, 2), x: input(f32, 2) },
        ({ out, x }, gpu) => {
          const { x: column, y: row } = gpu.globalId;
          if (row < out.shape[0] && column < out.shape[1]) out[row]![column] = x[row]![column]! / 2;
        },
      );
      const columns = { data, shape: [2, 4], strides: [8, 2] };
      await halved.simulate({ out: columns, x: { ...columns, offset: 1 } });
      expect([...data]).toEqual(range(16).map((i) => (i % 2 === 0 ? (i + 1) / 2 : i)));
      expect(
        (await failure(() => halved.simulate({ out: columns, x: { ...columns, offset: 2 } })))
          .message,
      ).toContain('is written and overlaps args.x');
      expect((await scaled.simulate({ ...given(), y: new Float32Array(0) })).y).toHaveLength(0);
    });

    test('structures and shared memory', async () => {
      const error = await failure(() =>
        bodies.simulate({
          all: new Uint8Array(Body.bytes),
          offset: { x: 0.5, id: 1, alive: 1 as never },
          factor: 10,
          half: 0.25,
          small: 3,
          on: true,
          count: 1,
        }),
      );
      expect(error).toMatchObject({ argument: "args.offset of kernel 'bodies'.alive" });
      expect(
        (await failure(() => reversed.simulate({ out: new Int32Array(4) }, { block: 4 }))).message,
      ).toContain("options.sharedBytes: kernel 'reversed' has gpu.dynamicShared");
      const all = new Uint8Array(2 * Body.bytes);
      const twice = kernel(
        'twice',
        { to: output(Body), from: input(Body) },
        ({ to, from }, gpu) => {
          to[gpu.globalId.x]!.x = 2 * from[gpu.globalId.x]!.x;
        },
      );
      expect(
        await failure(() =>
          twice.simulate({ to: all, from: all.subarray(Body.bytes) }, { grid: 1, block: 1 }),
        ),
      ).toMatchObject({ argument: 'args.to' });
      await twice.simulate(
        { to: all.subarray(0, Body.bytes), from: all.subarray(Body.bytes) },
        { grid: 1, block: 1 },
      );
    });
  });
});
