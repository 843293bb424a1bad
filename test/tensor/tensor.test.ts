/** Tensors on a device: how they are made, read, written and viewed. */
import { DTYPES, bool, f16, f32, f64, i32, i64, u8 } from 'async-cuda/core';
import type { CoreDevice, HostArray } from 'async-cuda/core';
import { setDefaultDevice, value, zip } from 'async-cuda/ops';
import {
  Partitioned,
  Tensor,
  arange,
  eye,
  full,
  layouts,
  linspace,
  ones,
  rand,
  randn,
  tensor,
  zeros,
} from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import * as fc from '../fast-check.js';
import { inspect } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';

import { failure, onCpu, onDevice, range } from '../core/test-device.js';

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

  test('views do not copy; offsets add up; ranges outside are refused', async () => {
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

  test('reshape and reinterpret check what they need', async () => {
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

  test('are shown with dtype, shape and device', async () => {
    using x = await zeros(device(), f16, [2, 3], { label: 'weights' });
    expect(inspect(x)).toBe(`Tensor<f16, [2, 3]> 'weights' on ${device().kind}:0`);
    expect(inspect(x.transpose())).toContain('strides [1, 3], a view');
    expect(inspect(x.partition([1, 3]))).toBe('Partitioned [2, 3] in tiles of [1, 3], 2 × 1');
    expect(inspect(x.convert(f32).andThen((y) => y.read()))).toContain(
      "DeviceOp 'weights'.convert(f32).andThen(…)",
    );
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
  test('tensors of another device are copied or refused', async () => {
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
