/** Memory of allocations of their own: device.allocPlain. */
import { setTimeout as sleep } from 'node:timers/promises';

import { CoreDevice, f32, i32, inout, u16, u32, u8 } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import type { ProcedureName } from '../../src/runtime/procedures.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import {
  allModes,
  failure,
  onCpu,
  onDevice,
  openTestDevice,
  range,
  stillPending,
} from './test-device.js';
import { someOf } from '../random-runs.js';

const MIB = 1 << 20;

onDevice('A buffer of allocPlain', (host) => {
  test('is written, filled, used by kernels and read as any other', async () => {
    const { device, stream } = host;
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1', [inout(i32), u32]);
    using plain = await device.allocPlain(i32, 100);
    using pooled = device.alloc(i32, 100);
    plain.write(stream, Int32Array.from(range(100)));
    add1.launch(stream, { grid: 1, block: 128 }, plain, 100);
    pooled.copyFrom(stream, plain);
    plain.fill(stream, -1);
    expect([...(await pooled.read(stream))]).toEqual(range(100).map((i) => i + 1));
    plain.slice(50).copyFrom(stream, pooled.slice(0, 50));
    expect([...(await plain.read(stream))]).toEqual([
      ...range(50).fill(-1),
      ...range(50).map((i) => i + 1),
    ]);
  });

  test('has views, also of other dtypes', async () => {
    using plain = await host.device.allocPlain(u32, 4);
    plain.fill(host.stream, 0);
    plain
      .slice(1, 3)
      .reinterpret(u16)
      .write(host.stream, Uint16Array.of(1, 2, 3, 4));
    expect([...(await plain.read(host.stream))]).toEqual([0, 0x20001, 0x40003, 0]);
    const view = plain.slice(2);
    plain.close();
    expect(view.isClosed).toBe(true);
    expect(await failure(() => view.read(host.stream))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test('more than staging holds goes through it', { tags: 'thorough' }, async () => {
    using plain = await host.device.allocPlain(u32, 12 * MIB);
    const source = Uint32Array.from({ length: 12 * MIB }, (_, i) => Math.imul(i, 2654435761));
    plain.write(host.stream, source);
    expect(
      Buffer.compare(
        new Uint8Array((await plain.read(host.stream)).buffer),
        new Uint8Array(source.buffer),
      ),
    ).toBe(0);
  });

  test('is tracked: another stream waits for its writers', async () => {
    using a = host.device.createStream();
    using b = host.device.createStream();
    using plain = await host.device.allocPlain(i32, 1 << 16);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    a.call(() => released);
    plain.fill(a, 7);
    const read = plain.read(b);
    expect(await stillPending(read)).toBe(true);
    release();
    expect((await read).every((value) => value === 7)).toBe(true);
  });

  test('is allocated at once, also with no elements', async () => {
    const { device, stream } = host;
    using plain = await device.allocPlain(f32, 8, { label: 'flags' });
    expect(await plain.allocated()).toBe(plain);
    expect(plain.label).toBe('flags');
    using empty = await device.allocPlain(f32, 0);
    expect(await empty.allocated()).toBe(empty);
    empty.fill(stream, 1);
    await empty.write(stream, new Float32Array(0));
    expect((await empty.read(stream)).length).toBe(0);
    expect(empty.slice(0).reinterpret(u8).length).toBe(0);
  });

  test('is copied between devices, both ways', async () => {
    await using other = await openTestDevice({ thread: host.mode }, 'cpu:5');
    using here = await host.device.allocPlain(i32, 1000);
    using there = await other.allocPlain(i32, 1000);
    here.write(host.stream, Int32Array.from(range(1000)));
    there.copyFrom(other.stream, here);
    here.fill(host.stream, 0);
    expect([...(await there.read(other.stream))]).toEqual(range(1000));
    here.slice(0, 500).copyFrom(host.stream, there.slice(500));
    there.close();
    expect([...(await here.slice(498, 502).read(host.stream))]).toEqual([998, 999, 0, 0]);
  });

  test('is used by a graph; one that is closed within the capture is freed with it', async () => {
    const { device, stream } = host;
    using plain = await device.allocPlain(i32, 4);
    await using graph = await stream.capture(() => void plain.fill(stream, 3));
    graph.launch(stream);
    expect([...(await plain.read(stream))]).toEqual([3, 3, 3, 3]);
    const closed = await device.allocPlain(i32, 4);
    const beside = await device.allocPlain(i32, 4);
    await beside.fill(stream, 1);
    await using other = await stream.capture(() => {
      closed.fill(stream, 1);
      closed.close();
      beside.close();
    });
    expect(await failure(() => other.launch(stream))).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    expect((await plain.fill(stream, 4).then(() => plain.read(stream)))[0]).toBe(4);
  });

  test('can be closed twice, and then refuses everything', async () => {
    const plain = await host.device.allocPlain(i32, 4);
    plain.close();
    plain.close();
    expect(plain.isClosed).toBe(true);
    expect(plain.toString()).toContain('closed');
    expect(await failure(() => plain.fill(host.stream, 1))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test('refuses what alloc refuses', async () => {
    const { device } = host;
    expect(await failure(() => device.allocPlain({} as never, 1))).toMatchObject({
      argument: 'dtype',
    });
    expect(await failure(() => device.allocPlain(f32, -1))).toMatchObject({ argument: 'length' });
    expect(await failure(() => device.allocPlain(f32, 1, { lable: 'x' } as never))).toMatchObject({
      argument: 'options.lable',
    });
    expect(await failure(() => device.allocPlain(f32, 1, { label: 1 as never }))).toMatchObject({
      argument: 'options.label',
    });
  });

  test('more memory than the device has is a typed error that names the bytes', async () => {
    const error = await failure(() => host.device.allocPlain(u8, 2 ** 45));
    expect(error).toMatchObject({ name: 'CudaOutOfMemoryError', code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(error.message).toContain(`${2 ** 45} bytes`);
    expect(await failure(() => host.device.allocPlain(f32, 2 ** 60))).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
  });

  // On a GPU the calls that free block all other calls until the stream goes on, which is never.
  test('frees wait for streams that wait for values, and those for frees', async () => {
    const { device, stream } = host;
    using waiting = device.createStream();
    using flag = await device.allocPlain(u32, 1);
    await flag.fill(stream, 0);
    for (let i = 1; i <= 20; i++) {
      const plain = await device.allocPlain(u8, MIB);
      const managed = await device.managed(u8, 16);
      const pinned = await device.pinned(u8, 16);
      const array = await device.allocArray(f32, { width: 4 });
      plain.fill(waiting, i);
      waiting.waitValue(flag, 0, i);
      plain.close();
      await Promise.all([managed.close(), pinned.close(), array.close()]);
      const passed = waiting.finished();
      using other = device.alloc(i32, 1);
      expect((await other.fill(stream, i).then(() => other.read(stream)))[0]).toBe(i);
      stream.writeValue(flag, 0, i);
      await passed;
    }
  });
});

someOf(1, describe.runIf(onCpu))(allModes)('Memory of allocPlain (cpu, %s)', (thread) => {
  const open = (): Promise<CoreDevice> => CoreDevice.open('cpu', { thread, memoryBytes: 95 * MIB });

  /** Resolves to the free bytes when they are at least `bytes`. */
  async function free(device: CoreDevice, atLeast = 0): Promise<number> {
    for (let i = 0; ; i++) {
      const { free } = await device.memoryInfo();
      if (free >= atLeast || i === 200) return free;
      await sleep(5);
    }
  }

  /** Makes the call that frees slow, as a GPU's is. */
  function slowFrees(device: CoreDevice): void {
    const { runtime } = device;
    const call = runtime.call.bind(runtime);
    runtime.call = (async (name: ProcedureName, ...args: never) => {
      if (name === 'freePlain') await sleep(100);
      return call(name, ...args);
    }) as typeof runtime.call;
  }

  test('is freed when all uses are over, not before', async () => {
    await using device = await open();
    const before = await free(device);
    let release: () => void = () => undefined;
    const plain = await device.allocPlain(u8, 64 * MIB);
    plain.fill(device.stream, 1);
    const released = new Promise<void>((resolve) => (release = resolve));
    device.stream.call(() => released);
    plain.fill(device.stream, 2);
    const last = plain.slice(-1).read(device.stream);
    plain.close();
    expect(await stillPending(last)).toBe(true);
    expect(await free(device)).toBeLessThanOrEqual(before - 64 * MIB);
    release();
    expect((await last)[0]).toBe(2);
    expect(await free(device, before)).toBe(before);
  });

  test('is freed after the capture that closed it', async () => {
    await using device = await open();
    const before = await free(device);
    const plain = await device.allocPlain(u8, 64 * MIB);
    const graph = await device.stream.capture((stream) => {
      plain.fill(stream, 1);
      plain.close();
    });
    await graph.close();
    expect(await free(device, before)).toBe(before);
  });

  test('is freed only while no stream waits for a value', async () => {
    await using device = await open();
    using waiting = device.createStream();
    using flag = await device.allocPlain(u32, 1);
    await flag.fill(device.stream, 0);
    const before = await free(device);
    const plain = await device.allocPlain(u8, 64 * MIB);
    waiting.waitValue(flag, 0, 1);
    plain.close();
    await device.stream.finished();
    expect(await free(device)).toBeLessThanOrEqual(before - 64 * MIB);
    device.stream.writeValue(flag, 0, 1);
    expect(await free(device, before)).toBe(before);
  });

  test('uses memory that the pool keeps, and fails when that is too little', async () => {
    await using device = await open();
    const kept = device.alloc(u8, 64 * MIB);
    await kept.allocated();
    kept.close();
    await device.finished();
    const plain = await device.allocPlain(u8, 64 * MIB);
    expect(await failure(() => device.allocPlain(u32, 16 * MIB))).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
      message: expect.stringContaining(`${64 * MIB} bytes`) as string,
    });
    plain.close();
    using next = await device.allocPlain(u32, 16 * MIB);
    expect(
      (
        await next
          .slice(-1)
          .fill(device.stream, 9)
          .then(() => next.slice(-1).read(device.stream))
      )[0],
    ).toBe(9);
  });

  test('can be allocated again, however long the free takes', async () => {
    await using device = await open();
    slowFrees(device);
    for (let i = 0; i < 3; i++) {
      const plain = await device.allocPlain(u8, 64 * MIB);
      await plain.slice(-1).fill(device.stream, i);
      plain.close();
    }
  });

  test('closing the device frees what is left, and waits for unfinished frees', async () => {
    await using other = await open();
    const before = await free(other);
    const device = await open();
    const closed = await device.allocPlain(u8, 32 * MIB);
    const left = await device.allocPlain(u8, 32 * MIB, { label: 'left' });
    slowFrees(device);
    device.stream.call(() => sleep(30));
    closed.fill(device.stream, 1);
    left.fill(device.stream, 1);
    closed.close();
    await device.close();
    expect((await other.memoryInfo()).free).toBe(before);
    expect(left.isClosed).toBe(true);
  });

  test('closing one Device waits for no stream of another that waits for a value', async () => {
    await using other = await open();
    using waiting = other.createStream();
    using flag = await other.allocPlain(u32, 1);
    await flag.fill(other.stream, 0);
    const before = await free(other);
    const device = await open();
    const plain = await device.allocPlain(u8, 32 * MIB);
    waiting.waitValue(flag, 0, 1);
    plain.close();
    const start = performance.now();
    await device.close();
    expect(performance.now() - start).toBeLessThan(4000);
    expect(await free(other)).toBeLessThan(before);
    other.stream.writeValue(flag, 0, 1);
    expect(await free(other, before)).toBe(before);
  });

  test('can be closed after its device', async () => {
    const device = await open();
    const plain = await device.allocPlain(u8, 16);
    await device.close();
    plain.close();
    expect(plain.isClosed).toBe(true);
  });
});
