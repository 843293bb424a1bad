/** Work of the host in stream order, by way of page-locked memory, as libraries on the processor's cores do it. */
import { i32, u8 } from 'async-cuda/core';
import type { DeviceBuffer } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { copyToStaging, queueHostWork } from '../../src/core/host-work.js';
import { Operation } from '../../src/core/operation.js';
import { failure, onDevice } from './test-device.js';

onDevice('work of the host', (host) => {
  const BYTES = 4096;

  /** Leaves what a buffer has undefined. */
  async function spoil(buffer: DeviceBuffer): Promise<void> {
    await failure(() => queueHostWork(host.stream, 'spoils', [{ buffer, access: 'out' }], () => Promise.reject(new Error('spoilt'))));
  }

  test('has its place in the stream though its memory is made later', async () => {
    const { device } = host;
    using one = device.createStream();
    using two = device.createStream();
    using x = device.alloc(i32, BYTES / 4, { stream: one });
    using y = device.alloc(i32, BYTES / 4, { stream: one });
    x.fill(one, 3);
    const pinned = device.pinned(u8, BYTES);
    const done = queueHostWork(one, 'doubles', [{ buffer: x, access: 'in' }, { buffer: y, access: 'out' }], async (turn) => {
      const staging = await pinned;
      await turn.keep(staging);
      turn.copyIn(x, staging, 0);
      await turn.copied();
      const words = new Int32Array(staging.buffer, staging.bufferOffset, BYTES / 4);
      words.forEach((word, i) => { words[i] = 2 * word; });
      turn.copyOut(staging, 0, y);
      await turn.copied();
    });
    // Queued behind, on other streams: the work reads what was before, and its result is there.
    x.fill(two, 100);
    const read = y.read(two);
    await done;
    expect(new Set(await read)).toEqual(new Set([6]));
    expect(new Set(await x.read(two))).toEqual(new Set([100]));
    await (await pinned).close();
  });

  test('staging is good again after a copy into it that failed', async () => {
    const { device, stream } = host;
    using bad = device.alloc(i32, BYTES / 4);
    using good = device.alloc(i32, BYTES / 4);
    await using staging = await device.pinned(u8, BYTES);
    good.fill(stream, 9);
    await spoil(bad);
    const operation = new Operation(stream);
    operation.take();
    copyToStaging(stream, bad, staging, 0);
    operation.letGo();
    expect(await failure(() => operation.pending(stream))).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
    copyToStaging(stream, good, staging, 0);
    using copy = device.alloc(i32, BYTES / 4);
    await queueHostWork(stream, 'hands on', [{ buffer: staging, access: 'inout' }, { buffer: copy, access: 'out' }], (turn) => {
      turn.copyOut(staging, 0, copy);
      return Promise.resolve();
    });
    expect(new Set(await copy.read(stream))).toEqual(new Set([9]));
  });

  test('events that an operation makes for others are made though it has failed', async () => {
    const { device } = host;
    using one = device.createStream();
    using two = device.createStream();
    using bad = device.alloc(i32, 16);
    using x = device.alloc(i32, 16, { stream: one });
    using y = device.alloc(i32, 16, { stream: two });
    await spoil(bad);
    await host.stream.sync();
    // The parts of an operation have no event of their own: who waits for one of them asks for it, here the operation that fails.
    const filling = new Operation(one);
    filling.take();
    x.fill(one, 4);
    filling.letGo();
    const operation = new Operation(two);
    operation.take();
    bad.copyTo(two, y);
    x.copyTo(two, y);
    operation.letGo();
    const failed = failure(() => operation.pending(two));
    const later = x.read(two);
    expect(await failed).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
    expect(new Set(await later)).toEqual(new Set([4]));
  });
});
