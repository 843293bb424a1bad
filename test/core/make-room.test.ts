/**
 * Allocations when memory is short: pools return what they keep, queued frees are waited for, and
 * an idle device keeps nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { CoreDevice, i32, u8 } from 'async-cuda/core';
import type { MemoryPool } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { WAITING } from './kernels/waiting.js';
import { Gate, allModes, failure, onCpu, onDevice, stillPending } from './test-device.js';
import { someOf } from '../random-runs.js';

const MIB = 1 << 20;

/** A pool with room for one buffer of 48 MiB and not for two. */
async function smallPool(device: CoreDevice): Promise<MemoryPool> {
  return device.createPool({ maxBytes: 64 * MIB });
}

onDevice('An allocation that finds too little memory', (host) => {
  test('waits for a free that is queued after work of another stream', async () => {
    const { device } = host;
    await using pool = await smallPool(device);
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using busy = device.createStream();
    using stream = device.createStream();
    using flag = device.alloc(i32, 1);
    await flag.fill(device.stream, 0);
    const first = device.alloc(u8, 48 * MIB, { stream: busy, pool });
    await first.allocated();
    module.kernel('hold').launch(busy, { grid: 1, block: 1 }, flag);
    first.close();
    using second = device.alloc(u8, 48 * MIB, { stream, pool });
    const allocated = second.allocated();
    expect(await stillPending(allocated, 100)).toBe(true);
    await gate.open();
    await allocated;
    second.fill(stream, 5);
    expect((await second.slice(-1).read(stream))[0]).toBe(5);
  });

  test('waits for an earlier free on its own stream', async () => {
    const { device } = host;
    await using pool = await smallPool(device);
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using stream = device.createStream();
    using flag = device.alloc(i32, 1);
    await flag.fill(device.stream, 0);
    const first = device.alloc(u8, 48 * MIB, { stream, pool });
    await first.allocated();
    module.kernel('hold').launch(stream, { grid: 1, block: 1 }, flag);
    first.close();
    // Another size, so that it does not reuse the memory of the first.
    using second = device.alloc(u8, 40 * MIB, { stream, pool });
    second.fill(stream, 6);
    const read = second.slice(-1).read(stream);
    expect(await stillPending(read, 100)).toBe(true);
    await gate.open();
    expect((await read)[0]).toBe(6);
  });

  test('delays its own stream, in order, and no other', async () => {
    const { device } = host;
    await using pool = await smallPool(device);
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using busy = device.createStream();
    using stream = device.createStream();
    using flag = device.alloc(i32, 1);
    using small = device.alloc(i32, 4, { stream });
    small.fill(stream, 1);
    await flag.fill(device.stream, 0);
    const first = device.alloc(u8, 48 * MIB, { stream: busy, pool });
    await first.allocated();
    module.kernel('hold').launch(busy, { grid: 1, block: 1 }, flag);
    first.close();
    using second = device.alloc(u8, 48 * MIB, { stream, pool });
    second.fill(stream, 7);
    small.fill(stream, 2);
    const behind = small.read(stream);
    using elsewhere = device.alloc(i32, 4);
    elsewhere.fill(device.stream, 3);
    expect((await elsewhere.read(device.stream))[0]).toBe(3);
    expect(await stillPending(behind)).toBe(true);
    await gate.open();
    expect((await behind)[0]).toBe(2);
    expect((await second.slice(-1).read(stream))[0]).toBe(7);
  });

  // A GPU's driver allocates the memory at once and makes the stream wait for the free
  // (CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES).
  test.runIf(onCpu)('fails where the frees are held, and the stream goes on', async () => {
    const { device } = host;
    await using pool = await smallPool(device);
    const module = await host.load(WAITING);
    const gate = await Gate.of(module);
    using busy = device.createStream();
    using stream = device.createStream();
    using flag = device.alloc(i32, 1);
    await flag.fill(device.stream, 0);
    const first = device.alloc(u8, 48 * MIB, { stream: busy, pool });
    await first.allocated();
    module.kernel('hold').launch(busy, { grid: 1, block: 1 }, flag);
    first.close();
    try {
      using second = device.alloc(u8, 48 * MIB, { stream, pool, label: 'second' });
      const error = await failure(() => second.allocated());
      expect(error.code).toBe('ERR_CUDA_OUT_OF_MEMORY');
      expect(error.message).toContain("'second'");
      await stream.finished();
    } finally {
      await gate.open();
    }
  });

  test('fails at once where no free is queued', async () => {
    const { device } = host;
    await using pool = await smallPool(device);
    using first = device.alloc(u8, 48 * MIB, { pool });
    using second = device.alloc(u8, 48 * MIB, { pool });
    expect(await failure(() => second.allocated())).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
    first.fill(device.stream, 1);
    expect((await first.slice(-1).read(device.stream))[0]).toBe(1);
  });

  test('can be closed before the memory is allocated', async () => {
    const { device } = host;
    await using pool = await smallPool(device);
    using first = device.alloc(u8, 48 * MIB, { pool });
    const second = device.alloc(u8, 48 * MIB, { pool });
    const allocated = failure(() => second.allocated());
    second.close();
    expect(await allocated).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    await first.allocated();
  });
});

someOf(1, describe.runIf(onCpu))(allModes)('On a small device (cpu, %s)', (thread) => {
  test('memory that one pool keeps is available to another', async () => {
    await using device = await CoreDevice.open('cpu', { thread, memoryBytes: 96 * MIB });
    await using pool = await device.createPool();
    const kept = device.alloc(u8, 64 * MIB, { pool });
    await kept.allocated();
    kept.close();
    await device.finished();
    expect((await pool.statistics()).reserved).toBe(64 * MIB);
    using wanted = device.alloc(u8, 64 * MIB);
    await wanted.allocated();
    expect((await pool.statistics()).reserved).toBe(0);
  });

  test('sizes may change from one allocation to the next', async () => {
    await using device = await CoreDevice.open('cpu', { thread, memoryBytes: 96 * MIB });
    for (let i = 0; i < 40; i++) {
      const stream = device.createStream();
      const buffer = device.alloc(u8, 50 * MIB + i * 4096, { stream });
      buffer.fill(stream, i);
      expect((await buffer.slice(-1).read(stream))[0]).toBe(i);
      buffer.close();
      stream.close();
    }
  });
});

// Inline, no command runs without a wait, so that nothing is returned either.
onDevice(
  'A device that has been idle for some seconds',
  (host) => {
    // This test is first: the next one sets the release threshold.
    test('keeps all of it while a kernel runs', { tags: 'thorough' }, async () => {
      const { device } = host;
      const pool = await device.pool();
      const module = await host.load(WAITING);
      const gate = await Gate.of(module);
      using busy = device.createStream();
      using flag = device.alloc(i32, 1);
      await flag.fill(device.stream, 0);
      const launched = module.kernel('hold').launch(busy, { grid: 1, block: 1 }, flag);
      const buffer = device.alloc(u8, 64 * MIB);
      await buffer.allocated();
      buffer.close();
      await device.stream.finished();
      await sleep(3000);
      expect((await pool.statistics()).reserved).toBeGreaterThanOrEqual(64 * MIB);
      await gate.open();
      await launched;
    });

    test(
      'returns what its own pool keeps, down to the release threshold',
      { tags: 'thorough' },
      async () => {
        const { device } = host;
        const pool = await device.pool();
        const run = async (): Promise<number> => {
          const buffer = device.alloc(u8, 64 * MIB);
          await buffer.fill(device.stream, 1);
          buffer.close();
          await device.finished();
          const { reserved } = await pool.statistics();
          expect(reserved).toBeGreaterThanOrEqual(64 * MIB);
          await sleep(3500);
          return (await pool.statistics()).reserved;
        };
        expect(await run()).toBeLessThan(64 * MIB);
        await pool.setReleaseThreshold(Number.MAX_SAFE_INTEGER);
        expect(await run()).toBeGreaterThanOrEqual(64 * MIB);
      },
    );
  },
  ['worker'],
);
