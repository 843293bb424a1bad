/**
 * Tensors on a device: the behaviours 34 to 39 of the inventory, conversions, sequences, random
 * numbers, kernels.
 */
import { DTYPES, bool, f16, f32, f64, i32, i64, inout, u32, u64, u8 } from 'async-cuda/core';
import type { DTypeName, CoreDevice, HostArray } from 'async-cuda/core';
import { OpGraph, setDefaultDevice, value, zip } from 'async-cuda/ops';
import {
  Partitioned,
  Tensor,
  arange,
  callKernel,
  eye,
  full,
  layouts,
  linspace,
  loadNpy,
  loadSafetensors,
  ones,
  prepare,
  rand,
  randn,
  saveNpy,
  saveSafetensors,
  tensor,
  zeros,
} from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import * as fc from '../fast-check.js';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { failure, onCpu, onDevice, range } from '../core/test-device.js';

/**
 * tiles[block] = block + 1, by the first thread of a two-dimensional grid: tile (x, y) of a matrix
 * of `columns` columns, 2 × 2 each.
 */
const TILES = `.version 7.0
.target sm_70
.address_size 64
.visible .entry mark(.param .u64 out, .param .u32 rows, .param .u32 columns) {
  .reg .b64 %a, %o; .reg .b32 %r<12>; .reg .pred %p;
  ld.param.u64 %o, [out]; cvta.to.global.u64 %o, %o; ld.param.u32 %r0, [rows];
  ld.param.u32 %r1, [columns];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.y;
  mad.lo.u32 %r6, %r2, 2, %r4; setp.ge.u32 %p, %r6, %r0; @%p ret;
  mad.lo.u32 %r7, %r3, 2, %r5; setp.ge.u32 %p, %r7, %r1; @%p ret;
  mov.u32 %r8, %nctaid.y; mad.lo.u32 %r9, %r2, %r8, %r3; add.u32 %r9, %r9, 1;
  mad.lo.u32 %r10, %r6, %r1, %r7; mul.wide.u32 %a, %r10, 4; add.s64 %a, %a, %o;
  st.global.u32 [%a], %r9; ret;
}`;

onDevice('Tensors', (host) => {
  const device = (): CoreDevice => host.device;
  beforeAll(() => {
    setDefaultDevice(host.device);
  });

  test('are read into an existing array, each time the operation runs', async () => {
    using x = await tensor(device(), f32, [1, 2, 3, 4, 5, 6], [2, 3]);
    const into = new Float32Array(6);
    const read = x.read({ into });
    expect(await read).toBe(into);
    expect([...into]).toEqual([1, 2, 3, 4, 5, 6]);
    await x.write(new Float32Array([6, 5, 4, 3, 2, 1]));
    expect(await read.andThen((values) => value(values[0]))).toBe(6);
    expect([...into]).toEqual([6, 5, 4, 3, 2, 1]);
    // A view with gaps is read into a part of a larger array, on a thread that blocks.
    const room = new Float32Array(10).fill(7);
    await x.transpose().read({ into: room.subarray(2, 8) });
    expect([...room]).toEqual([7, 7, 6, 3, 5, 2, 4, 1, 7, 7]);
    expect(
      x
        .slice([0, 1])
        .read({ into: room.subarray(0, 3) })
        .sync().byteOffset,
    ).toBe(0);
    expect([...room]).toEqual([6, 5, 4, 3, 5, 2, 4, 1, 7, 7]);
    for (const wrong of [
      new Float32Array(5),
      new Float64Array(6),
      [1, 2, 3, 4, 5, 6],
      7,
    ] as never[]) {
      expect(() => x.read({ into: wrong })).toThrow(
        expect.objectContaining({
          code: 'ERR_CUDA_INVALID_ARGUMENT',
          message: expect.stringContaining('into') as string,
        }) as Error,
      );
    }
    expect(() => x.read({ to: into } as never)).toThrow(
      /there is no option 'to'. Did you mean 'into'/,
    );
    const gone = new Float32Array(6);
    const detached = x.read({ into: gone });
    structuredClone(gone, { transfer: [gone.buffer] });
    await expect(detached).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_CUDA_/) as string,
    });
  });

  test('are made of host arrays and read back, of every dtype', async () => {
    for (const dtype of Object.values(DTYPES)) {
      const source = (
        dtype.kind === 'complex'
          ? [
              [0, 1],
              [1, 2],
              [2, 12],
              [-1, 0.5],
            ]
          : dtype.name.endsWith('64') && dtype.kind !== 'float'
            ? [0n, 1n, 2n, 100n]
            : dtype === bool
              ? [0, 1, 1, 0]
              : [0, 1, 2, 12]
      ) as number[];
      using x = await tensor(device(), dtype, source, [2, 2]);
      expect([x.dtype, x.shape, x.size, x.byteLength, x.rank]).toEqual([
        dtype,
        [2, 2],
        4,
        4 * dtype.bytes,
        2,
      ]);
      expect([...((await x.read()) as Iterable<number>)]).toEqual(source.flat());
    }
  });

  test('large ones are written and read whole', async () => {
    const source = Float32Array.from({ length: 3_000_001 }, (_, i) => i);
    using x = await tensor(device(), f32, source);
    expect(Buffer.compare(Buffer.from((await x.read()).buffer), Buffer.from(source.buffer))).toBe(
      0,
    );
    expect(Buffer.compare(Buffer.from(x.read().sync().buffer), Buffer.from(source.buffer))).toBe(0);
    x.write(source.map((v) => v + 1)).sync();
    expect((await x.read())[3_000_000]).toBe(3_000_001);
  });

  test('raw words are written and read, also on a thread that blocks', async () => {
    const words = Uint16Array.of(0x3c00, 0x7e01, 0xfbff);
    using x = await zeros(device(), f16, [3]);
    expect([...(await x.writeBits(words).andThen((each) => each.readBits()))]).toEqual([...words]);
    using y = zeros(device(), f16, [3]).sync();
    expect([...y.writeBits(words).sync().readBits().sync()]).toEqual([...words]);
    expect([...(await y.readBits())]).toEqual([...words]);
    expect((await failure(() => y.writeBits(new Uint16Array(2)).sync())).message).toContain(
      '3 elements',
    );
    using none = await zeros(device(), f16, [0]);
    expect(none.readBits().sync()).toEqual(new Uint16Array());
  });

  test('sequences: arange, linspace, eye, full', async () => {
    expect([
      ...(await arange(device(), i32, 5, { start: 10, step: -3 }).andThen((x) => x.read())),
    ]).toEqual([10, 7, 4, 1, -2]);
    expect([
      ...(await arange(device(), i64, 3, { start: 2n ** 60n, step: 1n }).andThen((x) => x.read())),
    ]).toEqual([2n ** 60n, 2n ** 60n + 1n, 2n ** 60n + 2n]);
    expect([
      ...(await arange(device(), f16, 4, { start: 0.5, step: 0.25 }).andThen((x) => x.read())),
    ]).toEqual([0.5, 0.75, 1, 1.25]);
    expect([...(await linspace(device(), f64, -1, 1, 5).andThen((x) => x.read()))]).toEqual([
      -1, -0.5, 0, 0.5, 1,
    ]);
    expect((await linspace(device(), f64, 0, 0.3, 4).andThen((x) => x.read()))[3]).toBe(0.3);
    expect([...(await linspace(device(), f32, 7, 9, 1).andThen((x) => x.read()))]).toEqual([7]);
    expect([...(await eye(device(), u8, 2, 3, { diagonal: 1 }).andThen((x) => x.read()))]).toEqual([
      0, 1, 0, 0, 0, 1,
    ]);
    expect([
      ...(await eye(device(), f32, 3, 3, { diagonal: -1 }).andThen((x) => x.read())),
    ]).toEqual([0, 0, 0, 1, 0, 0, 0, 1, 0]);
    expect([
      ...(await zip(
        zeros(device(), i64, [1]).andThen((x) => x.item()),
        ones(device(), bool, [1]).andThen((x) => x.item()),
        full(device(), f16, [], 2.5).andThen((x) => x.item()),
      )),
    ]).toEqual([0n, 1, 2.5]);
    expect((await zeros(device(), f32, [0, 3]).andThen((x) => x.read())).length).toBe(0);
  });

  test('random numbers depend on the seed only, and are distributed as they should', async () => {
    const [a, b, c] = await zip(
      rand(device(), f32, [40, 50], { seed: 7 }).andThen((x) => x.read()),
      rand(device(), f32, [2000], { seed: 7 }).andThen((x) => x.read()),
      rand(device(), f32, [2000], { seed: 8 }).andThen((x) => x.read()),
    );
    expect(a).toEqual(b);
    expect(a).not.toEqual(c);
    // The first block of Philox4x32-10 with counter 0 and key 0, whose words the authors publish.
    const known = [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8].map(
      (word) => (word >>> 8) / 2 ** 24,
    );
    expect([...(await rand(device(), f32, [4], { seed: 0 }).andThen((x) => x.read()))]).toEqual(
      known,
    );
    const uniform = await rand(device(), f64, [20_001], { seed: 3n, from: -2, to: 4 }).andThen(
      (x) => x.read(),
    );
    expect(Math.min(...uniform)).toBeGreaterThanOrEqual(-2);
    expect(Math.max(...uniform)).toBeLessThanOrEqual(4);
    expect(uniform.reduce((sum, x) => sum + x, 0) / uniform.length).toBeCloseTo(1, 1);
    const normal = await randn(device(), f32, [40_000], {
      seed: 3,
      mean: 5,
      deviation: 2,
    }).andThen((x) => x.read());
    const mean = normal.reduce((sum, x) => sum + x, 0) / normal.length;
    const variance = normal.reduce((sum, x) => sum + (x - mean) ** 2, 0) / normal.length;
    expect(Math.abs(mean - 5)).toBeLessThan(0.05);
    expect(Math.abs(variance - 4)).toBeLessThan(0.1);
    expect(normal.every(Number.isFinite)).toBe(true);
  });

  test('34: views do not copy; offsets add up; ranges outside are refused', async () => {
    using x = await arange(device(), i32, 24);
    const cube = x.reshape([2, 3, 4]);
    const part = cube.slice(1).slice([1, 3]).slice(null, [null, null, -1]);
    expect(part.buffer).toBe(x.buffer);
    expect([part.shape, part.isView, part.isContiguous]).toEqual([[2, 4], true, false]);
    expect([...(await part.read())]).toEqual([19, 18, 17, 16, 23, 22, 21, 20]);
    expect([...(await cube.permute([2, 0, 1]).slice(0).read())]).toEqual([0, 4, 8, 12, 16, 20]);
    const loose = cube as AnyTensor;
    expect(() => loose.slice(2)).toThrow('indices[0]');
    expect(() => loose.slice(0, 0, 0, 0)).toThrow('at most 3');
  });

  test('36: reshape and reinterpret check what they need', async () => {
    using x = await arange(device(), i32, 12);
    const matrix = x.reshape([3, 4]);
    expect(() => (matrix.transpose() as AnyTensor).reshape([12] as never)).toThrow('contiguous');
    expect([
      ...(await matrix
        .transpose()
        .contiguous()
        .andThen((copy) => copy.reshape([12]).read())),
    ]).toEqual([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    expect(() => (matrix as AnyTensor).reshape([5, 2] as never)).toThrow('elements');
    expect(x.reinterpret(u8).shape).toEqual([48]);
    expect([...(await x.reinterpret(i64).read()).slice(0, 2)]).toEqual([
      2n ** 32n,
      3n * 2n ** 32n + 2n,
    ]);
    expect(() => matrix.slice(null, [1, 3]).reinterpret(i64 as never)).toThrow('dtype');
    expect(() => (matrix.transpose() as AnyTensor).reinterpret(u8 as never)).toThrow(
      'contiguous copy',
    );
  });

  test('views are written: filled, written to, copied to', async () => {
    using x = await zeros(device(), i32, [4, 4]);
    await x.slice(1).fill(5);
    await x.slice(null, 2).fill(7);
    await x.slice([2, 4], [0, 2]).write(Int32Array.of(1, 2, 3, 4));
    using row = await arange(device(), f32, 4);
    await x.slice(0).copyFrom(row);
    expect([...(await x.read())]).toEqual([0, 1, 2, 3, 5, 5, 7, 5, 1, 2, 7, 0, 3, 4, 7, 0]);
    expect(await failure(() => x.copyFrom(x.transpose() as never))).toMatchObject({
      argument: 'source',
      message: expect.stringContaining('dup()') as string,
    });
    expect(await failure(() => row.broadcastTo([3, 4]).fill(1))).toMatchObject({
      message: expect.stringContaining('same place') as string,
    });
    using wide = await zeros(device(), f32, [3, 4]);
    await wide.copyFrom(row);
    expect([...(await wide.read())]).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
  });

  test(
    'any view has the elements of the same view of a host array',
    { tags: 'random' },
    async () => {
      using base = await arange(device(), i32, 120);
      const host = Int32Array.from(range(120));
      await fc.assert(
        fc.asyncProperty(
          fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 }),
          fc.array(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.constantFrom(1, -1, 2, -2)), {
            minLength: 4,
            maxLength: 4,
          }),
          async (order, cuts) => {
            let view: AnyTensor = base.reshape([2, 3, 4, 5]) as AnyTensor;
            view = view.permute(order as never) as AnyTensor;
            view = (view.slice as (...indices: unknown[]) => AnyTensor).apply(
              view,
              cuts.map(([skip, step]) =>
                step > 0 ? [skip > 1 ? 1 : skip, null, step] : [null, null, step],
              ),
            );
            const wanted = [...layouts.elements(view.layout)].map((at) => host[at]);
            expect([...((await view.read()) as Int32Array)]).toEqual(wanted);
          },
        ),
        { numRuns: 40 },
      );
    },
  );

  test('conversions give the elements that the host computes', async () => {
    const values = [
      0,
      1,
      -1,
      0.5,
      1.5,
      2.5,
      447,
      448,
      449,
      464,
      465,
      57344,
      61439,
      61440,
      65504,
      65519,
      65520,
      1e10,
      3e38,
      NaN,
      Infinity,
      -Infinity,
      1e-40,
      2 ** -9,
      2 ** -10,
      2 ** -10 * 1.0001,
      2 ** -16,
      2 ** -17,
      ...range(500).map((i) => Math.sin(i) * 2 ** ((i % 60) - 30)),
    ];
    const source = Float32Array.from(values);
    using x = await tensor(device(), f32, source);
    for (const to of [DTYPES.f16, DTYPES.bf16, DTYPES.f8e4m3, DTYPES.f8e5m2, f64]) {
      using wanted = await tensor(
        device(),
        to as typeof f16,
        (to === f64 ? Float64Array.from(source) : source) as Float32Array,
      );
      const [mine, hosts] = await zip(
        x.convert(to as typeof f16).andThen((y) => y.read()),
        wanted.read(),
      );
      expect([...mine], to.name).toEqual([...hosts]);
    }
  });

  test('floats truncate and clamp to integers, integers wrap, non-zeros are true', async () => {
    using x = await tensor(
      device(),
      f64,
      Float64Array.of(1.9, -1.9, 300, -300, 1e20, -1e20, NaN, 0),
    );
    const read = async (name: DTypeName): Promise<unknown[]> => [
      ...((await x.convert(DTYPES[name]).andThen((y) => y.read())) as Iterable<unknown>),
    ];
    expect(await read('u8')).toEqual([1, 0, 255, 0, 255, 0, 0, 0]);
    expect(await read('i8')).toEqual([1, -1, 127, -128, 127, -128, 0, 0]);
    expect(await read('i32')).toEqual([1, -1, 300, -300, 2 ** 31 - 1, -(2 ** 31), 0, 0]);
    expect(await read('i64')).toEqual([1n, -1n, 300n, -300n, 2n ** 63n - 1n, -(2n ** 63n), 0n, 0n]);
    expect(await read('u64')).toEqual([1n, 0n, 300n, 0n, 2n ** 64n - 1n, 0n, 0n, 0n]);
    expect(await read('bool')).toEqual([1, 1, 1, 1, 1, 1, 1, 0]);
    using y = await tensor(device(), i32, Int32Array.of(257, -1, 65536));
    expect([...(await y.convert(u8).andThen((z) => z.read()))]).toEqual([1, 255, 0]);
    using big = await tensor(
      device(),
      i64,
      BigInt64Array.of(2n ** 53n + 1n, -(2n ** 40n) - 1n, 0x1010000000001n),
    );
    expect([...(await big.convert(f32).andThen((z) => z.read()))]).toEqual([
      2 ** 53,
      Math.fround(-(2 ** 40) - 1),
      Math.fround(0x1010000000001),
    ]);
    expect([...(await big.convert(DTYPES.bf16).andThen((z) => z.read()))][2]).toBe(
      2 ** 48 + 2 ** 41,
    );
  });

  test('every dtype converts to every other for small whole numbers', async () => {
    const real = Object.values(DTYPES).filter(({ kind }) => kind !== 'complex');
    for (const from of real) {
      const one = from.name.endsWith('64') && from.kind !== 'float' ? [0n, 1n, 1n] : [0, 1, 1];
      using x = await tensor(device(), from, one as number[]);
      for (const to of real as (typeof DTYPES.f32)[]) {
        const values = await x.convert(to).andThen((y) => y.read());
        expect(
          [...(values as Iterable<number | bigint>)].map(Number),
          `${from.name} to ${to.name}`,
        ).toEqual([0, 1, 1]);
      }
    }
  }, 120_000);

  test('35: a partition has exclusive use of its elements', async () => {
    using x = await zeros(device(), u32, [5, 4]);
    const tiles = x.partition([2, 2]);
    expect([tiles.grid, tiles.count]).toEqual([[3, 2], 6]);
    expect(() => x.partition([1, 1])).toThrow('already');
    expect(x.tryPartition([1, 1])).toBe(undefined);
    expect(await failure(() => x.fill(1))).toMatchObject({
      message: expect.stringContaining('unpartition') as string,
    });
    expect(tiles.unpartition()).toBe(x);
    expect(() => tiles.tile(0)).toThrow('unpartition');
    // Parts that share nothing can be cut at the same time.
    using upper = x.slice([0, 2]).partition([1, 4]);
    using lower = x.slice([2, 5]).partition([1, 4]);
    expect([upper.isOpen, lower.isOpen]).toEqual([true, true]);
    expect(x.tryPartition([1, 1])).toBe(undefined);
  });

  test('launches, loadKernels and lists refuse other values, with their names', async () => {
    const module = await host.load(ELEMENTWISE);
    const add1 = module.kernel('add1');
    using x = await ones(device(), i32, [4]);
    for (const options of [undefined, null, 5, x, arange(device(), i32, 4)]) {
      const error = await failure(() => callKernel(add1, options as never, x, 4));
      expect(error).toMatchObject({
        argument: 'options',
        message: expect.stringMatching(
          /^options: expected an object with grid and block, got .* Write launch\(/,
        ) as string,
      });
    }
    expect(await failure(() => prepare(device(), i32, 'f32' as never))).toMatchObject({
      argument: 'dtypes[1]',
      message: expect.stringContaining("got 'f32'") as string,
    });
    expect(
      await failure(() =>
        value(5 as never)
          .first()
          .run(),
      ),
    ).toMatchObject({
      message:
        "first: there is no value; the operation's value is not a list. Call it on an " +
        'operation whose value is a list: zip(a, b).first().',
    });
    expect(
      await failure(() =>
        value([] as never)
          .last()
          .run(),
      ),
    ).toMatchObject({
      message:
        "last: there is no value; the operation's value is an empty list. Call it on an " +
        'operation whose value is a list: zip(a, b).last().',
    });
  });

  test('37 and 39: the grid follows from the partition, and edges are clipped', async () => {
    const module = await host.load(TILES);
    const mark = module.kernel('mark', [inout(u32), u32, u32]);
    using x = await zeros(device(), u32, [5, 4]);
    const tiles = x.partition([2, 2]);
    const [back, rows] = await callKernel(mark, { block: [2, 2] }, tiles, 5, 4);
    expect([back, rows]).toEqual([tiles, 5]);
    expect([...(await x.read())]).toEqual([
      1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4, 5, 5, 6, 6,
    ]);
    expect([...(await tiles.tile([2, 1]).read())]).toEqual([6, 6]);
    expect(
      await failure(() => callKernel(mark, { grid: [2, 2], block: [2, 2] }, tiles, 5, 4)),
    ).toMatchObject({ argument: 'options.grid' });
    // The first tiles only: a smaller grid.
    await tiles
      .tile(0)
      .dup()
      .andThen((copy) => copy.fill(0));
    const some = tiles.prefix(2);
    expect(some.count).toBe(2);
    await callKernel(mark, { grid: [1, 2], block: [2, 2] }, some, 5, 4);
    expect(
      await failure(() => callKernel(mark, { grid: [4, 2], block: [2, 2] }, some, 5, 4)),
    ).toMatchObject({ argument: 'options.grid' });
    tiles.unpartition();
    expect(await failure(() => callKernel(mark, { block: [2, 2] }, tiles, 5, 4))).toMatchObject({
      argument: 'partition',
    });
    expect(await failure(() => callKernel(mark, { block: [2, 2] }, x, 5, 4))).toMatchObject({
      argument: 'options.grid',
    });
  });

  test('kernels take tensors, views and operations, and return their arguments', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1', [inout(i32), u32]);
    const shape = { grid: 1, block: 64 };
    const [x, n] = await callKernel(add1, shape, arange(device(), i32, 10), 10);
    expect(n).toBe(10);
    expect([...(await x.read())]).toEqual(range(10).map((i) => i + 1));
    await callKernel(add1, shape, x.slice([2, 5]), value(3));
    expect([...(await x.read())]).toEqual([1, 2, 4, 5, 6, 6, 7, 8, 9, 10]);
    expect(await failure(() => callKernel(add1, shape, x.slice([null, null, 2]), 5))).toMatchObject(
      {
        argument: 'args[0]',
        message: expect.stringContaining('contiguous()') as string,
      },
    );
    expect(await failure(() => callKernel(add1, shape, x.convert(f32), 5))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
    x.close();
    expect(await failure(() => x.read())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    expect(await failure(() => callKernel(add1, shape, x, 5))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test('graphs keep the tensors and host arrays of their capture', async () => {
    const source = Int32Array.of(1, 2, 3, 4);
    const graph = await tensor(device(), i32, source, [2, 2])
      .andThen((x) => x.transpose().dup())
      .andThen((x) => x.convert(f32))
      .capture();
    source.fill(0);
    expect([...(await graph.replay().andThen((x) => x.read()))]).toEqual([1, 3, 2, 4]);
    expect(graph.output.shape).toEqual([2, 2]);
    await graph.close();
    expect(graph.output.isClosed).toBe(true);
    using y = await zeros(device(), i32, [4]);
    const pinned = await device().pinned(i32, 4);
    await using streaming = await OpGraph.scope(device().createStream(), ({ record }) =>
      record(y.write(pinned)),
    );
    for (const first of [5, 6]) {
      pinned.view().fill(first);
      await streaming.replay();
      expect(await y.slice(3).item()).toBe(first);
    }
    expect(await failure(() => y.read().capture())).toMatchObject({
      code: 'ERR_CUDA_CAPTURE',
      message: expect.stringContaining('read') as string,
    });
  });

  test('are saved to files and loaded, bit for bit', { tags: 'thorough' }, async () => {
    using x = await tensor(device(), f32, Float32Array.of(1, -0, NaN, Infinity, 1e-45, 6), [2, 3]);
    using half = await x.transpose().convert(f16);
    const file = await saveNpy(x.transpose() as AnyTensor);
    using back = await loadNpy(device(), file);
    expect([back.shape, [...((await back.read()) as Float32Array)]]).toEqual([
      [3, 2],
      [1, Infinity, -0, 1e-45, NaN, 6].map(Math.fround),
    ]);
    const bytes = await saveSafetensors(
      { x: x as AnyTensor, half: half as AnyTensor },
      { metadata: { made: 'here' } },
    );
    const tensors = await loadSafetensors(device(), bytes);
    expect([...tensors.keys()].sort()).toEqual(['half', 'x']);
    expect(await (tensors.get('half')! as typeof half).readBits()).toEqual(await half.readBits());
    const [some] = [...(await loadSafetensors(device(), bytes, ['x']))];
    expect(some![0]).toBe('x');
    expect(() => loadSafetensors(device(), bytes, ['y'])).toThrow('names');
    expect(() => loadNpy(device(), new Uint8Array(3))).toThrow();
    for (const each of [...tensors.values(), some![1]]) each.close();
    const large = await rand(device(), f32, [500_000], { seed: 5 });
    using again = await saveNpy(large as AnyTensor).andThen((written) =>
      loadNpy(device(), written),
    );
    expect(await again.read()).toEqual(await large.read());
    large.close();
  });

  test('are shown with dtype, shape and device', async () => {
    using x = await zeros(device(), f16, [2, 3], { label: 'weights' });
    expect(inspect(x)).toBe(`Tensor<f16, [2, 3]> 'weights' on ${device().kind}:0`);
    expect(inspect(x.transpose())).toContain('strides [1, 3], a view');
    expect(inspect(x.partition([1, 3]))).toBe('Partitioned [2, 3] in tiles of [1, 3], 2 × 1');
    expect(inspect(x.convert(f32).andThen((y) => y.read()))).toContain(
      "DeviceOp 'weights'.convert(f32).andThen(…)",
    );
  });

  test.each(['u8', 'i8', 'u16', 'i16', 'u32', 'i32', 'u64', 'i64'] as const)(
    'a sequence of %s stays within the dtype',
    async (name) => {
      const dtype = DTYPES[name];
      const bits = BigInt(dtype.bytes * 8);
      const [low, high] =
        dtype.kind === 'signed'
          ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
          : [0n, (1n << bits) - 1n];
      const read = async (start: bigint, step: bigint, length: number): Promise<bigint[]> =>
        Array.from(
          (await arange(device(), dtype, length, { start, step }).andThen((x) =>
            x.read(),
          )) as ArrayLike<number | bigint>,
          BigInt,
        );
      expect(await read(high - 3n, 1n, 4)).toEqual([high - 3n, high - 2n, high - 1n, high]);
      expect(await read(low + 2n, -1n, 3)).toEqual([low + 2n, low + 1n, low]);
      expect(await read(low, high - low, 2)).toEqual([low, high]);
      expect(await read(high, low - high, 2)).toEqual([high, low]);
      expect(await read(high, high, 1)).toEqual([high]);
      expect(await read(high + 1n, 1n, 0)).toEqual([]);
      for (const [start, step, length, argument] of [
        [low - 1n, 1n, 2, 'start'],
        [high + 1n, -1n, 2, 'start'],
        [high - 2n, 1n, 4, 'step'],
        [low + 2n, -1n, 4, 'step'],
        [low, high - low + 1n, 2, 'step'],
      ] as const) {
        const error = await failure(() => arange(device(), dtype, length, { start, step }));
        expect(error).toMatchObject({
          code: 'ERR_CUDA_INVALID_ARGUMENT',
          argument: `options.${argument}`,
        });
      }
    },
  );

  test('values outside an integer dtype are refused by creation and fill', async () => {
    using x = await zeros(device(), u8, [2]);
    using wide = await zeros(device(), i64, [2]);
    for (const call of [
      () => full(device(), u8, [2], -1),
      () => full(device(), i32, [2], 2 ** 31),
      () => full(device(), u64, [2], -1n),
      () => full(device(), i64, [2], 2n ** 63n),
      () => full(device(), bool, [2], 2),
      () => full(device(), u8, [2], 0.5),
      () => x.fill(256),
      () => x.fill(-1),
      () => wide.fill(-(2n ** 63n) - 1n),
      () => wide.fill(1 as never),
      () => tensor(device(), u8, [256]),
      () => tensor(device(), i64, [2n ** 63n]),
      () => arange(device(), bool, 3),
      () => arange(device(), f16, 3, { start: '1' as never }),
    ])
      expect(call).toThrow(expect.objectContaining({ code: 'ERR_CUDA_INVALID_ARGUMENT' }));
  });

  test('a detached array is refused, and not taken as an empty one', () => {
    const gone = Int32Array.of(1, 2);
    structuredClone(gone, { transfer: [gone.buffer] });
    expect(() => tensor(device(), i32, gone)).toThrow(
      'source: expected an array that has its bytes',
    );
  });

  test('wrong arguments are refused at the call', () => {
    expect(() => zeros(device(), 'f32' as never, [1])).toThrow('without quotes');
    expect(() => zeros(device(), f32, [1.5])).toThrow('shape');
    for (const make of [zeros, ones, arange, eye, rand, randn] as ((
      ...given: unknown[]
    ) => unknown)[]) {
      for (const none of [undefined, null])
        expect(() => make(device(), none, 2)).toThrow(
          `dtype: expected one of ${Object.keys(DTYPES).join(', ')}, got ${none}.`,
        );
    }
    for (const call of [
      () => zeros(device(), f32, [2], null as never),
      () => arange(device(), f32, 2, null as never),
      () => eye(device(), f32, 2, 2, null as never),
      () => rand(device(), f32, [2], null as never),
      () => randn(device(), f32, [2], null as never),
    ]) {
      expect(call).toThrow(/^options: expected an object with label.*, got null/);
    }
    expect(() => randn(device(), f32, [2], { deviation: Symbol('x') as never })).toThrow(
      'options.deviation: expected a number of at least 0, got Symbol(x).',
    );
    expect(() => zeros(device(), f32, [2], { lable: 'x' } as never)).toThrow(
      "Did you mean 'label'",
    );
    expect(() => arange(device(), i32, 3, { step: 0.5 })).toThrow('whole number');
    expect(() => zeros(f32 as never, [4] as never, undefined as never)).toThrow(
      'device: expected a Device, got',
    );
    expect(() => arange(device(), i32, 0, 3 as never)).toThrow(
      'options: expected an object with start and step, got 3. Write arange(dtype, length, { ' +
        'start, step }).',
    );
    expect(() => tensor(device(), f32, [1, 2, 3], [2, 2])).toThrow('3 elements');
    expect(() => rand(device(), i32 as never, [1])).toThrow('f16, bf16, f32 or f64');
    expect(() => Tensor.of(device().alloc(f32, 3), [4])).toThrow('at most the 3 elements');
    expect(() =>
      Tensor.of(device().alloc(f32, 3), { shape: [3], strides: [-1], offset: 0 }),
    ).toThrow('offset: expected at least 2');
    expect(() => Tensor.of(device().alloc(f32, 3), 3 as never)).toThrow(
      'shape: expected a list of extents, or a layout',
    );
    expect(() => Tensor.of({} as never, [3])).toThrow('buffer: expected a DeviceBuffer');
    expect(() => arange(device(), u64, 3, { start: 2n ** 64n })).toThrow(
      'options.start: expected from 0 to 18446744073709551615, for u64, got 18446744073709551616n.',
    );
    for (const seed of [-1, 2n ** 64n, 0.5, 2 ** 60])
      expect(() => rand(device(), f32, [3], { seed })).toThrow(
        'options.seed: expected a whole number from 0 to 2^64 - 1',
      );
    expect(() => rand(device(), f32, [3], { to: 1e39 })).toThrow(
      'options.to: expected from -3.4028234663852886e+38 to 3.4028234663852886e+38, for f32',
    );
    expect(() => rand(device(), f16, [3], { from: -1e6 })).toThrow(
      'options.from: expected from -65504 to 65504, for f16',
    );
    expect(() => rand(device(), f32, [3], { from: -3e38, to: 3e38 })).toThrow(
      'options.to: expected at most 3.4028234663852886e+38 above options.from',
    );
    expect(() => rand(device(), f64, [3], { from: 2, to: 1 })).toThrow(
      'options.to: expected at least options.from, 2',
    );
  });

  test('elements of a plain list are checked: none is wrapped or truncated', async () => {
    const list = (dtype: (typeof DTYPES)[DTypeName], values: readonly unknown[]) => () =>
      tensor(device(), dtype as typeof f32, values as number[]);
    expect(list(u8, [1, 300])).toThrow(
      'source[1]: expected a whole number from 0 to 255, for u8, got 300',
    );
    expect(list(u8, [-1])).toThrow('source[0]');
    expect(list(i32, [1.5])).toThrow('source[0]');
    expect(list(i32, [2 ** 31])).toThrow('source[0]');
    expect(
      list(f32, [
        [1, 2],
        [3, 4],
      ]),
    ).toThrow('in one list, and the shape after it');
    expect(list(f32, ['1'])).toThrow("a number, for f32, got '1'");
    expect(list(f32, [1, undefined])).toThrow('source[1]');
    expect(list(f32, [1, , 3])).toThrow('source[1]');
    expect(list(f32, [1n])).toThrow('source[0]');
    expect(list(i64, [0.5])).toThrow('source[0]');
    expect(list(u64, [-1n])).toThrow('from 0 to 2^64 - 1');
    expect(list(i64, [1n << 63n])).toThrow('source[0]');
    expect(list(bool, [2])).toThrow('true, false, 0 or 1');
    expect(() => tensor(device(), f32, undefined as never)).toThrow('source');
    expect(() => tensor(device(), f32, 'abc' as never)).toThrow('source');

    using wide = await tensor(device(), i64, [1, -2, 3]);
    expect([...(await wide.read())]).toEqual([1n, -2n, 3n]);
    using flags = await tensor(device(), bool, [true, false]);
    expect([...(await flags.read())]).toEqual([1, 0]);
    using floats = await tensor(device(), f32, [NaN, Infinity, -0]);
    expect([...(await floats.read())]).toEqual([NaN, Infinity, -0]);
  });

  test('an option of another function is refused', () => {
    expect(() => zeros(device(), f32, [3], { seed: 1 } as never)).toThrow(
      "options: there is no option 'seed'. Options are label",
    );
    expect(() => rand(device(), f32, [3], { sed: 1 } as never)).toThrow("Did you mean 'seed'");
    expect(() => rand(device(), f32, [3], { mean: 1 } as never)).toThrow("no option 'mean'");
    expect(() => arange(device(), f32, 3, { diagonal: 1 } as never)).toThrow(
      "no option 'diagonal'",
    );
    expect(() => randn(device(), f32, [3], { deviation: -1 })).toThrow(
      'options.deviation: expected a number of at least 0, got -1',
    );
  });

  test('the lazy device is taken; values that are not files or tensors are named', async () => {
    const lazy = { core: device() };
    using x = await arange(lazy, f32, 6);
    const file = await saveNpy(x);
    using back = await loadNpy(lazy, file);
    expect([...((await back.read()) as Float32Array)]).toEqual(range(6));
    expect(() => loadNpy(lazy, 'x.npy' as never)).toThrow(
      "file: expected a Uint8Array, the bytes of the file, got 'x.npy'. Read them first: " +
        'await readFile(path).',
    );
    expect(() => loadSafetensors(lazy, 'x.safetensors' as never)).toThrow('await readFile(path)');
    expect(() => loadNpy({} as never, file)).toThrow('device: expected a Device');
    expect(() => saveNpy('x.npy' as never)).toThrow('tensor: expected a Tensor');
    expect(() => saveSafetensors({ x: 5 } as never)).toThrow(
      'tensors["x"]: expected a Tensor, got 5',
    );
    expect(() => saveSafetensors(x as never)).toThrow('Write saveSafetensors({ weights })');
  });

  test('empty views are read and written wherever they begin', async () => {
    using nothing = await zeros(device(), f32, [0, 5]);
    using whole = await zeros(device(), f32, [4, 5]);
    for (const view of [
      nothing.slice([0, 0], [3, 5]),
      nothing.slice([0, 0], [null, null, -1]),
      whole.slice([4, 4], [3, 5]),
      whole.slice([3, 3], [3, 5]),
    ] as Tensor<'f32'>[]) {
      expect(view.size).toBe(0);
      await view.write(new Float32Array(0));
      expect(await view.read()).toEqual(new Float32Array(0));
    }
  });

  test('types of views without arguments do not depend on the assignment target', async () => {
    using x = await arange(device(), f32, 6);
    using one = await zeros(device(), f32, [1, 3]);
    const turned: Tensor<'f32', [3, 2]> = x.reshape([2, 3]).transpose();
    const line: Tensor<'f32', [3]> = one.squeeze();
    expect([turned.shape, line.shape]).toEqual([[3, 2], [3]]);
    // @ts-expect-error the axes are exchanged
    const wrong: Tensor<'f32', [2, 3]> = x.reshape([2, 3]).transpose();
    expect(wrong.shape).toEqual([3, 2]);
  });

  test('closing a tensor of a borrowed buffer leaves the buffer open', async () => {
    const buffer = device().alloc(i32, 6);
    const x = Tensor.of(buffer, [2, 3]);
    await x.fill(4);
    x.close();
    expect(buffer.isClosed).toBe(false);
    expect([...(await buffer.read(host.stream))]).toEqual([4, 4, 4, 4, 4, 4]);
    expect(layouts.elementAt(layouts.contiguous([2, 3]), [1, 1])).toBe(4);
    expect(new Partitioned(x, [1, 1]).unpartition()).toBe(x);
    buffer.close();
  });
});

describe.runIf(onCpu)('Tensors on two devices', () => {
  test('38: tensors of another device are copied or refused', async () => {
    const { openTestDevice } = await import('../core/test-device.js');
    const [a, b] = [await openTestDevice({}, 'cpu:0'), await openTestDevice({}, 'cpu:1')];
    using x = await arange(a, f32, 6);
    using y = await x.reshape([2, 3]).transpose().to(b);
    expect([y.device === b, y.shape]).toEqual([true, [3, 2]]);
    expect([...((await y.read()) as HostArray<'f32'>)]).toEqual([0, 3, 1, 4, 2, 5]);
    expect(await failure(() => y.copyFrom(x.reshape([3, 2])))).toMatchObject({
      argument: 'source',
      message: expect.stringContaining('to(device)') as string,
    });
    await a.close();
    await b.close();
  });
});
