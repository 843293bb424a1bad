/** Memory that host and device both access: page-locked and managed. */
import { f16, f32, i32, u32, u8 } from 'async-cuda/core';
import { beforeAll, describe, expect, test } from 'vitest';

import { collectGarbage } from './garbage.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import {
  Gate,
  failure,
  onCpu,
  onDevice,
  openTestDevice,
  range,
  stillPending,
} from './test-device.js';

onDevice('PinnedBuffer', (host) => {
  test('is a page-aligned SharedArrayBuffer', async () => {
    await using pinned = await host.device.pinned(f32, 10);
    expect(pinned.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(pinned.view()).toBeInstanceOf(Float32Array);
    expect(pinned.view().buffer).toBe(pinned.buffer);
    expect(pinned.view().length).toBe(10);
    expect(pinned.bufferOffset + pinned.byteLength).toBeLessThanOrEqual(pinned.buffer.byteLength);
  });

  test('copies to the device and back', async () => {
    await using source = await host.device.pinned(i32, 100_000);
    await using target = await host.device.pinned(i32, 100_000);
    using buffer = host.device.alloc(i32, 100_000);
    source.view().set(range(100_000));
    buffer.write(host.stream, source);
    await buffer.read(host.stream, target);
    expect(target.view()).toEqual(Int32Array.from(range(100_000)));
  });

  test('copies parts', async () => {
    await using pinned = await host.device.pinned(i32, 6);
    using buffer = host.device.alloc(i32, 4);
    pinned.view().set([1, 2, 3, 4, 5, 6]);
    buffer.fill(host.stream, 0);
    buffer.slice(1, 3).write(host.stream, pinned.slice(2, 4));
    await buffer.read(host.stream, pinned.slice(0, 4));
    expect([...pinned.view()]).toEqual([0, 3, 4, 0, 5, 6]);
  });

  test('a slice of a slice is a view of the same bytes', async () => {
    await using pinned = await host.device.pinned(i32, 6);
    pinned.view().set([1, 2, 3, 4, 5, 6]);
    expect([...pinned.slice(1, -1).slice(-2).view()]).toEqual([4, 5]);
  });

  test('uses of one buffer on two streams are ordered', async () => {
    using other = host.device.createStream();
    await using pinned = await host.device.pinned(i32, 50_000);
    using first = host.device.alloc(i32, 50_000);
    using second = host.device.alloc(i32, 50_000);
    first.fill(host.stream, 5);
    first.read(host.stream, pinned);
    second.write(other, pinned);
    first.fill(host.stream, 6);
    expect((await second.read(other)).every((value) => value === 5)).toBe(true);
  });

  test('has words as the elements of a narrow dtype', async () => {
    await using pinned = await host.device.pinned(f16, 2);
    expect((await failure(() => pinned.view())).message).toContain('bits()');
    pinned.bits().set([0x3c00, 0xbc00]);
    using buffer = host.device.alloc(f16, 2);
    buffer.write(host.stream, pinned);
    expect([...(await buffer.read(host.stream))]).toEqual([1, -1]);
  });

  test('of no elements can be copied', async () => {
    await using pinned = await host.device.pinned(f32, 0);
    using buffer = host.device.alloc(f32, 0);
    await buffer.write(host.stream, pinned);
    await buffer.read(host.stream, pinned);
    expect(pinned.view().length).toBe(0);
  });

  test('its views stay valid after it was closed', async () => {
    const pinned = await host.device.pinned(f32, 3);
    const view = pinned.view();
    view.fill(2);
    await pinned.close();
    await pinned.close();
    expect([...view]).toEqual([2, 2, 2]);
  });

  test('close waits for the copies that use it', async () => {
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 4, { stream });
    const pinned = await host.device.pinned(i32, 4);
    buffer.fill(stream, 1);
    module.kernel('hold').launch(stream, { grid: 1, block: 1 }, buffer);
    buffer.read(stream, pinned);
    const closed = pinned.close();
    expect(await stillPending(closed)).toBe(true);
    await gate.open();
    await closed;
    await gate.shut();
    expect([...pinned.view()]).toEqual([2, 1, 1, 1]);
  });

  test('a closed one refuses copies', async () => {
    const pinned = await host.device.pinned(f32, 3);
    using buffer = host.device.alloc(f32, 3);
    await pinned.close();
    expect(await failure(() => buffer.write(host.stream, pinned))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
    expect(await failure(() => buffer.read(host.stream, pinned))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
    expect(await failure(() => pinned.slice(0))).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  });

  test('refuses another dtype, length or device', async () => {
    await using pinned = await host.device.pinned(f32, 3);
    using ints = host.device.alloc(i32, 3);
    using short = host.device.alloc(f32, 2);
    expect(await failure(() => ints.write(host.stream, pinned as never))).toMatchObject({
      argument: 'source',
    });
    expect(await failure(() => short.read(host.stream, pinned))).toMatchObject({
      argument: 'target',
    });
    const other = await openTestDevice({ thread: host.mode }, 'cpu:6');
    using far = other.alloc(f32, 3);
    expect(await failure(() => far.write(other.stream, pinned))).toMatchObject({
      argument: 'source',
    });
    await other.close();
  });

  test('is refused as a kernel argument', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    await using pinned = await host.device.pinned(i32, 3);
    expect(
      await failure(() => add1.launch(host.stream, { grid: 1, block: 1 }, pinned as never, 3)),
    ).toMatchObject({ argument: 'args[0]' });
  });

  test('can be sent to a Worker, since it is shared memory', async () => {
    await using pinned = await host.device.pinned(u8, 4);
    const there = structuredClone(pinned.buffer);
    pinned.view()[0] = 200;
    expect(new Uint8Array(there)[pinned.bufferOffset]).toBe(200);
  });

  test('more memory than the host has is a typed error', async () => {
    expect(await failure(() => host.device.pinned(u8, 2 ** 46))).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
  });
});

onDevice('ManagedBuffer', (host) => {
  let gate: Gate;

  beforeAll(async () => {
    gate = await Gate.of(await host.load(WAITING));
  });

  test('a kernel reads what the host wrote, and the host what the kernel wrote', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    await using managed = await host.device.managed(i32, 100);
    managed.view().set(range(100));
    await add1.launch(host.stream, { grid: 1, block: 128 }, managed, 100);
    expect([...managed.view()]).toEqual(range(100).map((i) => i + 1));
  });

  test('is prefetched to the device and back', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    await using managed = await host.device.managed(i32, 10);
    managed.view().fill(4);
    managed.prefetch(host.stream);
    add1.launch(host.stream, { grid: 1, block: 32 }, managed, 10);
    await managed.prefetch(host.stream, 'host');
    expect(managed.view()[9]).toBe(5);
  });

  test('view refuses while queued work uses it', async () => {
    const hold = (await host.load(WAITING)).kernel('hold');
    await using managed = await host.device.managed(i32, 1);
    managed.view()[0] = 1;
    const launched = hold.launch(host.stream, { grid: 1, block: 1 }, managed);
    expect((await failure(() => managed.view())).message).toContain('Await that work');
    await gate.open();
    await launched;
    expect(managed.view()[0]).toBe(2);
    await gate.shut();
  });

  test('has words as the elements of a narrow dtype', async () => {
    await using managed = await host.device.managed(f16, 2);
    expect((await failure(() => managed.view())).message).toContain('bits()');
    managed.bits().set([1, 2]);
    expect([...managed.bits()]).toEqual([1, 2]);
  });

  test('of no elements has an empty view', async () => {
    await using managed = await host.device.managed(f32, 0);
    expect(managed.view().length).toBe(0);
    await managed.prefetch(host.stream);
  });

  test('refuses everything after it was closed', async () => {
    const managed = await host.device.managed(f32, 2);
    await managed.close();
    await managed.close();
    expect(await failure(() => managed.view())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    expect(await failure(() => managed.prefetch(host.stream))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test.skipIf(onCpu)('its views are detached when it is closed', async () => {
    const managed = await host.device.managed(f32, 2);
    const view = managed.view();
    await managed.close();
    expect(view.length).toBe(0);
  });

  test('that is unreferenced keeps its memory while a view of it is referenced', async () => {
    const { inUse } = (await host.device.stats()).memory;
    const held = async (): Promise<number> => (await host.device.stats()).memory.inUse - inUse;
    let part: Uint32Array | undefined = await (async () =>
      (await host.device.managed(u32, 100)).view().fill(4).subarray(10, 20))();
    await collectGarbage(5);
    expect([await held(), ...part]).toEqual([400, ...range(10).map(() => 4)]);
    using other = host.device.alloc(u32, 100);
    await other.fill(host.stream, 9);
    expect(part[0]).toBe(4);
    part.fill(1);
    expect((await other.read(host.stream)).every((value) => value === 9)).toBe(true);
    part = undefined;
    for (let i = 0; i < 50 && (await held()) > 400; i++) await collectGarbage(1);
    expect(await held()).toBe(400);
  });

  test('that is unreferenced, without a view, is freed', async () => {
    const { inUse } = (await host.device.stats()).memory;
    await (async () => {
      await host.device.managed(u32, 100);
    })();
    for (let i = 0; i < 50 && (await host.device.stats()).memory.inUse > inUse; i++)
      await collectGarbage(1);
    expect((await host.device.stats()).memory.inUse).toBe(inUse);
  });

  test('that is unreferenced is freed with its device, and its views are safe', async () => {
    const device = await openTestDevice({ thread: host.mode });
    const view = await (async () => (await device.managed(u32, 100)).view().fill(4))();
    await collectGarbage(5);
    await device.close();
    // Where the view was detached, the write has no effect.
    if (view.length > 0) view.fill(5);
    await collectGarbage(5);
    expect([0, 100]).toContain(view.length);
  });

  test('two buffers have memory of their own', async () => {
    await using first = await host.device.managed(i32, 4);
    await using second = await host.device.managed(i32, 4);
    first.view().fill(1);
    second.view().fill(2);
    expect([...first.view()]).toEqual([1, 1, 1, 1]);
  });
});

onDevice('MemoryPool', (host) => {
  describe('of its own', () => {
    test('counts the bytes that are allocated from it', async () => {
      await using pool = await host.device.createPool();
      const buffer = host.device.alloc(u8, 1 << 20, { pool });
      await buffer.fill(host.stream, 1);
      const statistics = await pool.statistics();
      expect(statistics.used).toBe(1 << 20);
      expect(statistics.reserved).toBeGreaterThanOrEqual(statistics.used);
      expect(statistics.usedHigh).toBeGreaterThanOrEqual(statistics.used);
      buffer.close();
      await host.stream.finished();
      expect((await pool.statistics()).used).toBe(0);
    });

    test('trim returns its memory to the device', async () => {
      await using pool = await host.device.createPool();
      const buffer = host.device.alloc(u8, 8 << 20, { pool });
      buffer.close();
      await host.device.finished();
      await pool.trim();
      expect((await pool.statistics()).reserved).toBe(0);
    });

    test('allocates no more than its upper bound', async () => {
      await using pool = await host.device.createPool({ maxBytes: 64 << 20 });
      const buffer = host.device.alloc(u8, 1 << 30, { pool });
      expect(await failure(() => buffer.allocated())).toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
      });
      buffer.close();
    });

    test('takes a release threshold', async () => {
      await using pool = await host.device.createPool({ releaseThreshold: 0 });
      await pool.setReleaseThreshold(1 << 20);
      using buffer = host.device.alloc(f32, 16, { pool });
      buffer.fill(host.stream, 3);
      expect((await buffer.read(host.stream))[0]).toBe(3);
    });

    test('has a release threshold, in bytes or Infinity', async () => {
      await using pool = await host.device.createPool();
      expect(await pool.releaseThreshold()).toBe(Infinity);
      await pool.setReleaseThreshold(4096);
      expect(await pool.releaseThreshold()).toBe(4096);
      await pool.setReleaseThreshold(Infinity);
      expect(await pool.releaseThreshold()).toBe(Infinity);
      expect(await failure(() => pool.setReleaseThreshold(-1))).toMatchObject({
        argument: 'bytes',
      });
      expect(await failure(() => host.device.createPool({ releaseThreshold: NaN }))).toMatchObject({
        argument: 'options.releaseThreshold',
      });
    });

    test('its high-water marks can be reset', async () => {
      await using pool = await host.device.createPool();
      const large = host.device.alloc(u8, 32 << 20, { pool });
      const small = host.device.alloc(u8, 1 << 20, { pool });
      large.close();
      await host.device.finished();
      expect((await pool.statistics()).usedHigh).toBe(33 << 20);
      await pool.resetHigh();
      const { used, usedHigh, reserved, reservedHigh } = await pool.statistics();
      expect([used, usedHigh]).toEqual([1 << 20, 1 << 20]);
      expect(reservedHigh).toBe(reserved);
      small.close();
    });

    test('has settings of how it reuses memory, which can be changed', async () => {
      await using pool = await host.device.createPool();
      expect(await pool.reuse()).toEqual({
        followEventDependencies: true,
        allowOpportunistic: true,
        allowInternalDependencies: true,
      });
      await pool.setReuse({ allowOpportunistic: false });
      expect(await pool.reuse()).toEqual({
        followEventDependencies: true,
        allowOpportunistic: false,
        allowInternalDependencies: true,
      });
      expect(await failure(() => pool.setReuse({ oportunistic: true } as object))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
      });
      expect(await failure(() => pool.setReuse({ allowOpportunistic: 1 as never }))).toMatchObject({
        argument: 'switches.allowOpportunistic',
      });
    });

    test('close waits for work in flight that uses it, and for nothing else', async () => {
      const pool = await host.device.createPool();
      const stream = host.device.createStream();
      let release!: () => void;
      let begin!: () => void;
      const begun = new Promise<void>((resolve) => (begin = resolve));
      const held = new Promise<void>((resolve) => (release = resolve));
      const buffer = host.device.alloc(i32, 1 << 16, { pool, stream });
      buffer.fill(stream, 1);
      stream.call(() => {
        begin();
        return held;
      });
      buffer.fill(stream, 2);
      const read = buffer.read(stream);
      buffer.close();
      const closed = pool.close();
      await begun;
      expect(await stillPending(closed)).toBe(true);
      expect(await failure(() => host.device.alloc(i32, 1, { pool }))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
      release();
      expect((await read).every((value) => value === 2)).toBe(true);
      await closed;
      stream.close();
    });

    test('close waits for its buffers', async () => {
      const pool = await host.device.createPool();
      const buffer = host.device.alloc(f32, 16, { pool });
      const closed = pool.close();
      expect(await stillPending(closed)).toBe(true);
      buffer.fill(host.stream, 3);
      expect((await buffer.read(host.stream))[0]).toBe(3);
      buffer.close();
      await closed;
    });

    test('refuses everything after it was closed', async () => {
      const pool = await host.device.createPool();
      await pool.close();
      await pool.close();
      expect(await failure(() => host.device.alloc(f32, 1, { pool }))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
      expect(await failure(() => pool.statistics())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    });
  });

  test("the device's own pool is always the same object", async () => {
    expect(await host.device.pool()).toBe(await host.device.pool());
  });

  test("closing the device's own pool has no effect", async () => {
    const pool = await host.device.pool();
    await pool.close();
    expect((await pool.statistics()).used).toBeGreaterThanOrEqual(0);
  });

  test('memory that was freed is allocated again', async () => {
    await using pool = await host.device.createPool();
    for (let i = 0; i < 200; i++) {
      using buffer = host.device.alloc(u8, 1 << 20, { pool });
      buffer.fill(host.stream, i);
    }
    await host.stream.finished();
    expect((await pool.statistics()).reservedHigh).toBeLessThanOrEqual(64 << 20);
  });

  test.each([{ maxBytes: -1 }, { maxByte: 1 }, { releaseThreshold: 0.5 }])(
    'refuses the options %j',
    async (options) => {
      expect(await failure(() => host.device.createPool(options as object))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
      });
    },
  );

  test('alloc refuses a value that is not a pool', async () => {
    expect(await failure(() => host.device.alloc(f32, 1, { pool: {} as never }))).toMatchObject({
      argument: 'options.pool',
    });
  });
});
