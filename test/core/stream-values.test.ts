/** Stream memory operations: streams that write numbers into memory and wait for them. */
import { f32, i32, inout, u32, u64 } from 'async-cuda/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { CoreDevice } from '../../src/core/index.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import { failure, onCpu, onDeviceInEachMode, openTestDevice, stillPending } from './test-device.js';

onDeviceInEachMode('Stream memory operations', (host) => {
  test('writeValue writes one element, in stream order', async () => {
    using words = await host.device.allocPlain(u32, 4);
    words.fill(host.stream, 1);
    host.stream.writeValue(words, 2, 0xffffffff);
    expect([...(await words.read(host.stream))]).toEqual([1, 1, 0xffffffff, 1]);
    words.fill(host.stream, 5);
    expect([...(await words.read(host.stream))]).toEqual([5, 5, 5, 5]);
  });

  test('writeValue writes 64 bits into a view', async () => {
    using words = await host.device.allocPlain(u64, 4);
    words.fill(host.stream, 1n);
    host.stream.writeValue(words.slice(1), 2, 0xfedcba9876543210n);
    host.stream.writeValue(words, 0, 2 ** 40);
    expect([...(await words.read(host.stream))]).toEqual([2n ** 40n, 1n, 1n, 0xfedcba9876543210n]);
  });

  test('waitValue holds its stream until another stream has written, and no other', async () => {
    const { device } = host;
    using waiting = device.createStream();
    using free = device.createStream();
    using flag = await device.allocPlain(u32, 2);
    using mine = device.alloc(i32, 1);
    using theirs = device.alloc(i32, 1);
    await flag.fill(host.stream, 0);
    waiting.waitValue(flag, 1, 3);
    const filled = mine.fill(waiting, 1);
    expect((await theirs.fill(free, 2).then(() => theirs.read(free)))[0]).toBe(2);
    host.stream.writeValue(flag, 1, 2);
    await host.stream.finished();
    expect(await stillPending(filled)).toBe(true);
    host.stream.writeValue(flag, 1, 4);
    await filled;
  });

  test.each([
    ['geq', 5, [4, 0x80000005], 0x7fffffff],
    ['eq', 5, [4, 6], 5],
    ['and', 6, [0, 1, 8], 2],
    ['nor', 1, [0xffffffff, 0xfffffffe], 0],
  ] as const)('the condition %s', async (condition, value, not, yes) => {
    const { device } = host;
    using waiting = device.createStream();
    using flag = await device.allocPlain(u32, 1);
    for (const have of not) {
      await host.stream.writeValue(flag, 0, have);
      waiting.waitValue(flag, 0, value, condition);
      const passed = waiting.finished();
      expect([have, await stillPending(passed, 10)]).toEqual([have, true]);
      host.stream.writeValue(flag, 0, yes);
      await passed;
    }
  });

  test.each([
    ['geq', 2n ** 33n, [2n ** 33n - 1n, 2n ** 33n + 2n ** 63n], 2n ** 34n],
    ['eq', 2n ** 33n, [0n, 2n ** 33n + 1n], 2n ** 33n],
    ['and', 2n ** 63n, [2n ** 63n - 1n], 2n ** 63n],
    ['nor', 1n, [2n ** 64n - 1n], 2n ** 63n],
  ] as const)('the condition %s on 64 bits', async (condition, value, not, yes) => {
    using waiting = host.device.createStream();
    using flag = await host.device.allocPlain(u64, 1);
    for (const have of not) {
      await host.stream.writeValue(flag, 0, have);
      waiting.waitValue(flag, 0, value, condition);
      const passed = waiting.finished();
      expect([have, await stillPending(passed, 10)]).toEqual([have, true]);
      host.stream.writeValue(flag, 0, yes);
      await passed;
    }
  });

  test('the device goes on with more launches after it than the driver queues', async () => {
    const { device } = host;
    using waiting = device.createStream();
    using flag = await device.allocPlain(u32, 1);
    using counter = device.alloc(i32, 1);
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1', [inout(i32), u32]);
    await flag.fill(host.stream, 0);
    await counter.fill(host.stream, 0);
    waiting.waitValue(flag, 0, 1);
    for (let i = 0; i < 3000; i++) add1.launch(waiting, { grid: 1, block: 1 }, counter, 1);
    const end = waiting.record();
    using other = device.alloc(i32, 1);
    expect((await other.fill(host.stream, 6).then(() => other.read(host.stream)))[0]).toBe(6);
    expect(end.reached).toBe(false);
    host.stream.writeValue(flag, 0, 1);
    expect((await counter.read(waiting))[0]).toBe(3000);
    end.close();
  });

  test('the device goes on with thousands of waits on one stream', async () => {
    const { device } = host;
    using waiting = device.createStream();
    using flag = await device.allocPlain(u32, 2);
    await flag.fill(host.stream, 0);
    waiting.waitValue(flag, 0, 1);
    for (let i = 1; i <= 2000; i++) {
      waiting.writeValue(flag, 1, i);
      waiting.waitValue(flag, 1, i, 'eq');
    }
    using other = device.alloc(i32, 1);
    expect((await other.fill(host.stream, 6).then(() => other.read(host.stream)))[0]).toBe(6);
    host.stream.writeValue(flag, 0, 1);
    expect((await flag.read(waiting))[1]).toBe(2000);
  });

  test('JavaScript releases a stream, and reads its progress, by page-locked memory', async () => {
    const { device } = host;
    using stream = device.createStream();
    await using pinned = await device.pinned(u32, 4);
    const words = pinned.view();
    stream.waitValue(pinned.slice(1), 0, 7, 'eq');
    stream.writeValue(pinned, 3, 9);
    const passed = stream.finished();
    expect(await stillPending(passed)).toBe(true);
    expect(words[3]).toBe(0);
    Atomics.store(words, 1, 7);
    await passed;
    expect(words[3]).toBe(9);
  });

  test('variables of modules can be used', async () => {
    const value = (await (await host.load(WAITING)).global('gate')).slice(0, 4).reinterpret(u32);
    await host.stream.writeValue(value, 0, 0);
    host.stream.waitValue(value, 0, 1, 'nor');
    host.stream.writeValue(value, 0, 11);
    host.stream.waitValue(value, 0, 11);
    expect((await value.read(host.stream))[0]).toBe(11);
    await host.stream.writeValue(value, 0, 0);
  });

  test('a buffer that is closed at once stays until the stream’s wait ends', async () => {
    const { device } = host;
    using waiting = device.createStream();
    using writer = device.createStream();
    const flag = await device.allocPlain(u32, 1);
    await flag.fill(host.stream, 0);
    waiting.waitValue(flag, 0, 1);
    writer.writeValue(flag, 0, 1);
    flag.close();
    using next = await device.allocPlain(u32, 1);
    next.fill(host.stream, 0);
    await waiting.finished();
    expect((await next.read(host.stream))[0]).toBe(0);
  });

  describe('refuses', () => {
    test('other dtypes, places, values and conditions', async () => {
      const { device, stream } = host;
      using words = await device.allocPlain(u32, 4);
      using wide = await device.allocPlain(u64, 4);
      using floats = await device.allocPlain(f32, 4);
      const refused = async (call: () => unknown): Promise<string | undefined> =>
        (await failure(call)).argument;
      expect(await refused(() => stream.writeValue(floats as never, 0, 1))).toBe('buffer');
      await using pinned = await device.pinned(f32, 4);
      await using managed = await device.managed(f32, 4);
      expect((await failure(() => stream.writeValue(floats as never, 0, 1))).message).toContain(
        'buffer.reinterpret(u32)',
      );
      for (const buffer of [pinned, managed]) {
        expect((await failure(() => stream.waitValue(buffer as never, 0, 1))).message).toContain(
          'Write await device.pinned(u32, 4).',
        );
      }
      expect(await refused(() => stream.waitValue({} as never, 0, 1))).toBe('buffer');
      expect(await refused(() => stream.waitValue(words, 4, 1))).toBe('index');
      expect(await refused(() => stream.writeValue(words, -1, 1))).toBe('index');
      expect(await refused(() => stream.writeValue(words, 0, 2 ** 32))).toBe('value');
      expect(await refused(() => stream.writeValue(words, 0, 1n as never))).toBe('value');
      expect(await refused(() => stream.writeValue(wide, 0, -1n))).toBe('value');
      expect(await refused(() => stream.writeValue(wide, 0, 2n ** 64n))).toBe('value');
      expect(await refused(() => stream.waitValue(words, 0, 1, 'gt' as never))).toBe('condition');
    });

    test.each(['writeValue', 'waitValue'] as const)(
      '%s: memory of a pool, and managed memory, which a GPU refuses',
      async (call) => {
        const { device, stream } = host;
        await using pool = await device.createPool();
        using pooled = device.alloc(u32, 4);
        using own = device.alloc(u64, 2, { pool });
        await using managed = await device.managed(u32, 3);
        for (const [buffer, instead] of [
          [pooled, '(u32, 4)'],
          [pooled.slice(1), '(u32, 3)'],
          [own, '(u64, 2)'],
          [managed, '(u32, 3)'],
        ] as const) {
          const error = await failure(() => stream[call](buffer as never, 0, 1));
          expect(error).toMatchObject({ name: 'CudaArgumentError', argument: 'buffer' });
          expect(error.message).toContain(
            `await device.allocPlain${instead} or await device.pinned${instead}`,
          );
        }
        await stream.finished();
      },
    );

    test('a closed buffer, one of another device, and captures', async () => {
      const { device, stream } = host;
      const closed = device.alloc(u32, 1);
      closed.close();
      expect(await failure(() => stream.writeValue(closed, 0, 1))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
      const other = await openTestDevice({ thread: host.mode }, 'cpu:6');
      using theirs = await other.allocPlain(u32, 1);
      expect(await failure(() => stream.writeValue(theirs, 0, 1))).toMatchObject({
        argument: 'buffer',
      });
      await other.close();
      using words = await device.allocPlain(u32, 1);
      expect(
        await failure(() => stream.capture(() => void stream.waitValue(words, 0, 1))),
      ).toMatchObject({ code: 'ERR_CUDA_CAPTURE' });
    });
  });

  test('a buffer whose contents are undefined fails the operation, not the stream', async () => {
    const { stream } = host;
    using flag = await host.device.allocPlain(u32, 1 << 20);
    const source = new Uint32Array(1 << 20);
    const written = failure(() => flag.write(stream, source));
    structuredClone(source.buffer, { transfer: [source.buffer] });
    expect(await failure(() => stream.waitValue(flag, 0, 1))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    await stream.finished();
    expect((await written).code).toBe('ERR_CUDA_SOURCE_DETACHED');
  });
});

describe('Where the platform has no stream memory operations', () => {
  let device: CoreDevice;
  beforeAll(async () => {
    process.env['ASYNC_CUDA_WITHOUT'] = 'memops';
    try {
      device = await CoreDevice.open(
        onCpu ? 'cpu' : 'cuda',
        onCpu ? { memoryBytes: 77 << 20 } : {},
      );
    } finally {
      delete process.env['ASYNC_CUDA_WITHOUT'];
    }
  });
  afterAll(() => device.close());

  test('they are an error with that reason, and events order the work as before', async () => {
    using words = await device.allocPlain(u32, 1);
    expect(await failure(() => device.stream.writeValue(words, 0, 1))).toMatchObject({
      code: 'ERR_CUDA_UNSUPPORTED',
    });
    expect(await failure(() => device.stream.waitValue(words, 0, 1))).toMatchObject({
      code: 'ERR_CUDA_UNSUPPORTED',
    });
    words.fill(device.stream, 3);
    expect((await words.read(device.stream))[0]).toBe(3);
  });
});
