/** Work of the host in stream order, through page-locked memory, as libraries on the CPU use it. */
import { setImmediate } from 'node:timers/promises';

import { i32, u8 } from 'async-cuda/core';
import type { DeviceBuffer } from 'async-cuda/core';
import { value } from 'async-cuda/ops';
import { expect, test } from 'vitest';

import { copyFromStaging, copyToStaging, queueHostWork } from '../../src/core/host-work.js';
import type { HostUse } from '../../src/core/host-work.js';
import { Operation } from '../../src/core/operation.js';
import type { Run } from '../../src/ops/run.js';
import { failure, onDevice } from './test-device.js';

onDevice('work of the host', (host) => {
  const BYTES = 4096;

  /** Makes the contents of a buffer undefined. */
  async function spoil(buffer: DeviceBuffer): Promise<void> {
    await failure(() =>
      queueHostWork(host.stream, 'spoils', [{ buffer, access: 'out' }], () =>
        Promise.reject(new Error('spoilt')),
      ),
    );
  }

  test('keeps its place in the stream although its memory is allocated later', async () => {
    const { device } = host;
    using one = device.createStream();
    using two = device.createStream();
    using x = device.alloc(i32, BYTES / 4, { stream: one });
    using y = device.alloc(i32, BYTES / 4, { stream: one });
    x.fill(one, 3);
    const pinned = device.pinned(u8, BYTES);
    const done = queueHostWork(
      one,
      'doubles',
      [
        { buffer: x, access: 'in' },
        { buffer: y, access: 'out' },
      ],
      async (turn) => {
        const staging = await pinned;
        turn.keep(staging);
        turn.copyIn(x, staging, 0);
        await turn.copied();
        const words = new Int32Array(staging.buffer, staging.bufferOffset, BYTES / 4);
        words.forEach((word, i) => {
          words[i] = 2 * word;
        });
        turn.copyOut(staging, 0, y);
        await turn.copied();
      },
    );
    // Later work on other streams: the host work reads the earlier contents, and its result is
    // seen.
    x.fill(two, 100);
    const read = y.read(two);
    await done;
    expect(new Set(await read)).toEqual(new Set([6]));
    expect(new Set(await x.read(two))).toEqual(new Set([100]));
    await (await pinned).close();
  });

  test('staging is usable after a copy into it that failed', async () => {
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
    expect(await failure(() => operation.pending(stream))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    copyToStaging(stream, good, staging, 0);
    using copy = device.alloc(i32, BYTES / 4);
    await queueHostWork(
      stream,
      'hands on',
      [
        { buffer: staging, access: 'inout' },
        { buffer: copy, access: 'out' },
      ],
      (turn) => {
        turn.copyOut(staging, 0, copy);
        return Promise.resolve();
      },
    );
    expect(new Set(await copy.read(stream))).toEqual(new Set([9]));
  });

  test('a buffer that it writes whole is defined again, at its place and after it', async () => {
    const { device, stream } = host;
    await using staging = await device.pinned(u8, BYTES);
    new Int32Array(staging.buffer, staging.bufferOffset, BYTES / 4).fill(7);
    using y = device.alloc(i32, BYTES / 4);
    await spoil(y);
    await queueHostWork(stream, 'writes', [{ buffer: y, access: 'out' }], (turn) => {
      turn.copyOut(staging, 0, y);
      return Promise.resolve();
    });
    expect(new Set(await y.read(stream))).toEqual(new Set([7]));
    await spoil(y);
    const done = queueHostWork(stream, 'writes', [{ buffer: staging, access: 'out' }], () =>
      Promise.resolve(),
    );
    copyFromStaging(stream, staging, 0, y);
    await done;
    expect(new Set(await y.read(stream))).toEqual(new Set([7]));
  });

  test('a copy at its place that fails makes the work fail and its output undefined', async () => {
    const { device, stream } = host;
    await using staging = await device.pinned(u8, BYTES);
    using bad = device.alloc(i32, BYTES / 4);
    using y = device.alloc(i32, BYTES / 4);
    const uses: HostUse[] = [{ buffer: y, access: 'out' }];
    // The buffer is not declared as used, so that no earlier check refuses it: being undefined
    // stands for any reason for which a driver refuses.
    await spoil(bad);
    y.fill(stream, 1);
    let after = false;
    expect(
      await failure(() =>
        queueHostWork(stream, 'reads', uses, async (turn) => {
          turn.copyIn(bad, staging, 0);
          await turn.copied();
          after = true;
        }),
      ),
    ).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      message: expect.stringMatching(/^reads: .*spoilt/) as string,
    });
    expect(after).toBe(false);
    expect(await failure(() => y.read(stream))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    // No code waits for the last copy; the work has failed nevertheless.
    y.fill(stream, 1);
    expect(
      await failure(() =>
        queueHostWork(stream, 'writes', [], (turn) => {
          turn.copyOut(staging, 0, bad);
          return Promise.resolve();
        }),
      ),
    ).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
    expect(await failure(() => bad.read(stream))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    expect(new Set(await y.read(stream))).toEqual(new Set([1]));
  });

  test('that fails makes later copies undefined, and page-locked memory is usable', async () => {
    const { device, stream } = host;
    await using staging = await device.pinned(u8, BYTES);
    using x = device.alloc(i32, BYTES / 4);
    using y = device.alloc(i32, BYTES / 4);
    x.fill(stream, 6);
    for (let round = 0; round < 2; round++) {
      const operation = new Operation(stream);
      operation.take();
      copyToStaging(stream, x, staging, 0);
      const done = queueHostWork(stream, 'fails', [{ buffer: staging, access: 'inout' }], () =>
        Promise.reject(new Error('spoilt')),
      );
      copyFromStaging(stream, staging, 0, y);
      operation.letGo();
      expect(await failure(() => done)).toMatchObject({ message: 'spoilt' });
      // The operation rejects with this error, not with that of a copy that had nothing to copy.
      expect((await failure(() => operation.pending(stream))).message).toMatch(/spoilt$/);
      expect(await failure(() => y.read(stream))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      copyToStaging(stream, x, staging, 0);
      const good = queueHostWork(stream, 'goes', [{ buffer: staging, access: 'inout' }], () =>
        Promise.resolve(),
      );
      copyFromStaging(stream, staging, 0, y);
      await good;
      expect(new Set(await y.read(stream))).toEqual(new Set([6]));
    }
  });

  test('does not write a part of memory that is undefined', async () => {
    const { device, stream } = host;
    using y = device.alloc(i32, BYTES / 4);
    await spoil(y);
    let begun = false;
    expect(
      await failure(() =>
        queueHostWork(stream, 'writes', [{ buffer: y.slice(0, 16), access: 'out' }], () => {
          begun = true;
          return Promise.resolve();
        }),
      ),
    ).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
    expect(begun).toBe(false);
  });

  test('does not begin where its operation has failed before', async () => {
    const { device, stream } = host;
    using bad = device.alloc(i32, BYTES / 4);
    using x = device.alloc(i32, BYTES / 4);
    using y = device.alloc(i32, BYTES / 4);
    await spoil(bad);
    let begun = false;
    const operation = new Operation(stream);
    operation.take();
    bad.copyTo(stream, x);
    const done = queueHostWork(stream, 'comes too late', [{ buffer: y, access: 'out' }], () => {
      begun = true;
      return Promise.resolve();
    });
    operation.letGo();
    const [first, second] = await Promise.all([
      failure(() => operation.pending(stream)),
      failure(() => done),
    ]);
    expect(first).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
    expect(second).toBe(first);
    expect(begun).toBe(false);
    expect(await failure(() => y.read(stream))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
  });

  test('the device reports a failure after one of its operation that is not awaited', async () => {
    const { device, stream } = host;
    using bad = device.alloc(i32, BYTES / 4);
    using x = device.alloc(i32, BYTES / 4);
    using y = device.alloc(i32, BYTES / 4);
    let late: Promise<unknown> = Promise.resolve();
    const queue = async (): Promise<Operation> => {
      await spoil(bad);
      const operation = new Operation(stream);
      operation.take();
      bad.copyTo(stream, x);
      late = failure(() =>
        queueHostWork(stream, 'comes too late', [{ buffer: y, access: 'out' }], () =>
          Promise.resolve(),
        ),
      );
      operation.letGo();
      return operation;
    };
    const told = async (): Promise<string[]> => {
      await stream.finished();
      for (let turn = 0; turn < 10; turn++) await setImmediate();
      return host.errors.splice(0).map(({ code }) => code);
    };
    await queue();
    expect(await told()).toEqual(['ERR_CUDA_UNDEFINED_CONTENTS']);
    // The same where the operation was awaited, but the wait was aborted.
    const operation = await queue();
    let goOn = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const held = stream.call(() => gate);
    const controller = new AbortController();
    const wait = failure(() => operation.pending(stream).finished({ signal: controller.signal }));
    await late;
    controller.abort(new Error('enough'));
    expect(await wait).toMatchObject({ message: 'enough' });
    goOn();
    await held;
    expect(await told()).toEqual(['ERR_CUDA_UNDEFINED_CONTENTS']);
  });

  test('whose last copy fails rejects the operation, without an event of the device', async () => {
    const { device, stream } = host;
    await using staging = await device.pinned(u8, BYTES);
    using bad = device.alloc(i32, BYTES / 4);
    for (let round = 0; round < 5; round++) {
      await spoil(bad);
      const op = value(1).withContext((context) => {
        (context as Run).dependOn(
          queueHostWork(context.stream, 'writes', [], (turn) => {
            turn.copyOut(staging, 0, bad);
            return Promise.resolve();
          }),
        );
        return value(2);
      });
      expect(await failure(() => op.runOn(stream))).toMatchObject({
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
      });
      for (let turn = 0; turn < 10; turn++) await setImmediate();
      expect(host.errors).toEqual([]);
    }
  });

  test('events that an operation records for others are recorded after its failure', async () => {
    const { device } = host;
    using one = device.createStream();
    using two = device.createStream();
    using bad = device.alloc(i32, 16);
    using x = device.alloc(i32, 16, { stream: one });
    using y = device.alloc(i32, 16, { stream: two });
    await spoil(bad);
    await host.stream.finished();
    // The parts of an operation have no event of their own: a wait for one of them requests it,
    // here that of the operation that fails.
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
