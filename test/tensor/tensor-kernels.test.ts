/** Tensors as arguments of kernels, in graphs and in files. */
import { f16, f32, i32, inout, u32 } from 'async-cuda/core';
import type { CoreDevice } from 'async-cuda/core';
import { OpGraph, setDefaultDevice, value } from 'async-cuda/ops';
import {
  arange,
  callKernel,
  loadNpy,
  loadSafetensors,
  rand,
  saveNpy,
  saveSafetensors,
  tensor,
  zeros,
} from 'async-cuda/tensor';
import type { AnyTensor } from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { failure, onDevice, range } from '../core/test-device.js';

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

onDevice('Tensors in kernels, graphs and files', (host) => {
  const device = (): CoreDevice => host.device;
  beforeAll(() => {
    setDefaultDevice(host.device);
  });

  test('a partition has exclusive use of its elements', async () => {
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

  test('the grid follows from the partition, and edges are clipped', async () => {
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
});
