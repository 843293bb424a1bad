/** The numbers that a device counts. */
import { i32, u8 } from 'async-cuda/core';
import type { Kernel, Module } from 'async-cuda/core';
import { beforeAll, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import { Gate, failure, onDevice, openTestDevice } from './test-device.js';

const N = 64;
const BYTES = N * 4;
const GRID = { grid: 1, block: N } as const;

onDevice('Stats', (host) => {
  let add1: Kernel;
  let module: Module;

  beforeAll(async () => {
    module = await host.load(ELEMENTWISE);
    add1 = module.kernel('add1');
  });

  test('launches are counted, on open and closed streams; graphs are counted apart', async () => {
    const { device } = host;
    const before = await device.stats();
    using buffer = device.alloc(i32, N);
    const stream = device.createStream();
    for (let i = 0; i < 700; i++) add1.launch(stream, GRID, buffer, N);
    await using graph = await stream.capture(() => {
      for (let i = 0; i < 5; i++) add1.launch(stream, GRID, buffer, N);
    });
    for (let i = 0; i < 3; i++) await graph.launch(stream);
    stream.close();
    await add1.launch(device.stream, GRID, buffer, N);
    const after = await device.stats();
    expect(after.launches - before.launches).toBe(701);
    expect(after.graphLaunches - before.graphLaunches).toBe(3);
  });

  test('copies are counted once, by direction, with their bytes', async () => {
    const { device, stream } = host;
    const long = 3 << 18;
    using a = device.alloc(i32, N);
    using b = device.alloc(i32, N);
    using large = device.alloc(i32, long);
    await using pinned = await device.pinned(i32, N);
    const { copies: before } = await device.stats();
    await a.write(stream, new Int32Array(N));
    await b.copyFrom(stream, a);
    await b.read(stream, pinned);
    await large.write(stream, new Int32Array(long));
    await large.read(stream);
    const { copies: after } = await device.stats();
    const since = (direction: keyof typeof after) => ({
      count: after[direction].count - before[direction].count,
      bytes: after[direction].bytes - before[direction].bytes,
    });
    expect(since('hostToDevice')).toEqual({ count: 2, bytes: BYTES + long * 4 });
    expect(since('deviceToDevice')).toEqual({ count: 1, bytes: BYTES });
    expect(since('deviceToHost')).toEqual({ count: 2, bytes: BYTES + long * 4 });
    expect(since('peer')).toEqual({ count: 0, bytes: 0 });
  });

  test('copies within a capture do not count', async () => {
    const { device, stream } = host;
    using a = device.alloc(i32, N);
    using b = device.alloc(i32, N);
    const { copies: before } = await device.stats();
    await using graph = await stream.capture(() => {
      b.copyFrom(stream, a);
    });
    const { copies: after } = await device.stats();
    expect(after).toEqual(before);
    expect(graph.device).toBe(device);
  });

  test('memory in use rises and falls, its peak stays', async () => {
    const { device } = host;
    const before = await device.stats();
    const kept = [
      device.alloc(i32, N),
      device.alloc2D(i32, { width: 3, height: 2 }),
      await device.managed(i32, N),
    ] as const;
    const pinned = await device.pinned(i32, N);
    const during = await device.stats();
    expect(during.allocations - before.allocations).toBe(4);
    expect(during.memory.inUse - before.memory.inUse).toBe(BYTES + 1024 + BYTES);
    expect(during.memory.pinned - before.memory.pinned).toBe(BYTES);
    expect(during.live.buffers - before.live.buffers).toBe(3);
    expect(during.live.pinnedBuffers - before.live.pinnedBuffers).toBe(1);
    kept[0].close();
    kept[1].close();
    await kept[2].close();
    await pinned.close();
    const after = await device.stats();
    expect(after.memory.inUse).toBe(before.memory.inUse);
    expect(after.memory.pinned).toBe(before.memory.pinned);
    expect(after.memory.peak).toBeGreaterThanOrEqual(during.memory.inUse);
    expect(after.live).toEqual(before.live);
  });

  test('failed allocations are not counted, whenever they are closed', async () => {
    const { device } = host;
    await device.finished();
    const before = await device.stats();
    const failed = device.alloc(u8, 2 ** 46);
    expect(await failure(() => failed.allocated())).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
    const buffer = device.alloc(i32, N);
    const during = await device.stats();
    expect(during.memory.inUse - before.memory.inUse).toBe(BYTES);
    expect(during.memory.peak).toBeLessThan(2 ** 46);
    expect([
      during.allocations - before.allocations,
      during.live.buffers - before.live.buffers,
    ]).toEqual([1, 2]);
    failed.close();
    const another = device.alloc(u8, 2 ** 46);
    const told = another.allocated().catch((error: unknown) => error);
    another.close();
    expect(await told).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    const after = await device.stats();
    expect(after.memory.inUse - before.memory.inUse).toBe(BYTES);
    expect(after.memory.peak).toBe(during.memory.peak);
    expect([
      after.allocations - before.allocations,
      after.live.buffers - before.live.buffers,
    ]).toEqual([1, 1]);
    buffer.close();
  });

  test('the peak is exact, however much is allocated and freed', async () => {
    const { device } = host;
    const {
      memory: { inUse },
    } = await device.stats();
    const kept = [device.alloc(u8, 1 << 24)];
    for (let i = 0; i < 1000; i++) device.alloc(u8, 1 << 10).close();
    const last = device.alloc(u8, 1 << 24);
    for (const each of [...kept, last]) each.close();
    const { memory } = await device.stats();
    expect(memory.inUse).toBe(inUse);
    expect(memory.peak).toBe(inUse + (2 << 24));
    for (let i = 0; i < 1000; i++) device.alloc(u8, 1 << 10).close();
    await device.finished();
    expect((await device.stats()).memory).toMatchObject({ inUse, peak: inUse + (2 << 24) });
  });

  test('open objects are counted', async () => {
    const { device } = host;
    const before = await device.stats();
    using stream = device.createStream();
    const own = await device.loadModule(ELEMENTWISE);
    own.kernel('add1');
    own.kernel('absorb');
    own.kernel('absorb');
    using buffer = device.alloc(i32, N);
    const graph = await stream.capture(() => {
      buffer.fill(stream, 1);
    });
    const during = await device.stats();
    const { buffers, ...others } = before.live;
    expect(during.live).toEqual({
      ...before.live,
      buffers: buffers + 1,
      streams: others.streams + 1,
      modules: others.modules + 1,
      kernels: others.kernels + 2,
      graphs: others.graphs + 1,
    });
    await graph.close();
    await own.close();
    stream.close();
    buffer.close();
    expect((await device.stats()).live).toEqual(before.live);
  });

  test('the numbers are frozen, and plain', async () => {
    const stats = await host.device.stats();
    for (const part of [
      stats,
      stats.copies,
      stats.copies.peer,
      stats.memory,
      stats.live,
      stats.queue,
    ])
      expect(Object.isFrozen(part)).toBe(true);
    expect(JSON.parse(JSON.stringify(stats))).toEqual(stats);
  });
});

onDevice('Stats of work under way', (host) => {
  test('fences that have not passed are counted', async () => {
    const { device } = host;
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using buffer = device.alloc(i32, 1);
    await buffer.fill(device.stream, 0);
    expect((await device.stats()).queue.fences).toBe(0);
    const held = module
      .kernel('hold')
      .launch(device.stream, { grid: 1, block: 1 }, buffer)
      .finished();
    const during = device.stats();
    expect((await Promise.race([during, held.then(() => undefined)]))?.queue.fences).toBe(1);
    await gate.open();
    await held;
    expect((await device.stats()).queue.fences).toBe(0);
  });

  test('numbers are those of one Device, though another shares its runtime', async () => {
    const other = await openTestDevice({ thread: host.mode });
    using buffer = other.alloc(i32, N);
    await buffer.fill(other.stream, 1);
    const stats = await other.stats();
    expect(stats.allocations).toBe(1);
    expect(stats.memory.inUse).toBe(BYTES);
    expect(stats.memory.poolReserved).toBeGreaterThanOrEqual(BYTES);
    expect(stats.memory.poolUsed).toBeGreaterThanOrEqual(BYTES);
    await other.close();
    await expect(other.stats()).rejects.toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  });
});
