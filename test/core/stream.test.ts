/**
 * Streams: each runs in order, independent of the others, and is made and closed without waiting.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';

import { i32 } from 'async-cuda/core';
import type { Stream } from 'async-cuda/core';
import { beforeAll, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import {
  Gate,
  failure,
  onDeviceInEachMode,
  openTestDevice,
  stillPending,
  turns,
} from './test-device.js';

onDeviceInEachMode('Stream', (host) => {
  let gate: Gate;

  beforeAll(async () => {
    gate = await Gate.of(await host.load(WAITING));
  });

  /** Work on `stream` that ends when the gate opens. */
  async function holdUp(stream: Stream): Promise<ReturnType<typeof host.device.alloc<'i32'>>> {
    const hold = (await host.load(WAITING)).kernel('hold');
    const buffer = host.device.alloc(i32, 1, { stream });
    buffer.fill(stream, 0);
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    return buffer;
  }

  test('is shown with its label and its device', () => {
    using stream = host.device.createStream({ label: 'copies' });
    expect(String(stream)).toMatch(/^Stream 'copies' on (cpu|cuda):0 /);
    expect(inspect(stream)).toBe(String(stream));
  });

  test('runs its work in the order of the calls', async () => {
    const { device } = host;
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    using stream = device.createStream();
    using buffer = device.alloc(i32, 100, { stream });
    buffer.fill(stream, 5);
    add1.launch(stream, { grid: 1, block: 128 }, buffer, 100);
    const before = buffer.read(stream);
    buffer.fill(stream, 70);
    add1.launch(stream, { grid: 1, block: 128 }, buffer, 100);
    const after = buffer.read(stream);
    expect((await before)[99]).toBe(6);
    expect((await after)[99]).toBe(71);
  });

  test('sync resolves when everything queued so far is done', async () => {
    const { device } = host;
    using stream = device.createStream();
    using buffer = await holdUp(stream);
    const synced = stream.finished();
    expect(await stillPending(synced)).toBe(true);
    await gate.open();
    await synced;
    await gate.shut();
    expect((await buffer.read(stream))[0]).toBe(1);
  });

  test.skipIf(host.mode === 'inline')(
    'work of one turn runs while this thread computes',
    async () => {
      const { device } = host;
      const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
      using stream = device.createStream();
      using buffer = device.alloc(i32, 1, { stream });
      await using pinned = await device.pinned(i32, 1);
      const seen = pinned.view();
      // Few commands take another path than many, and each another one after many than after few.
      for (const launches of [0, 1, 2, 3, 20, 1, 2, 4, 30, 5, 0]) {
        seen[0] = -1;
        await stream.finished();
        // Long enough for the runtime thread to have gone to sleep.
        await delay(10);
        buffer.fill(stream, 5);
        for (let i = 0; i < launches; i++) add1.launch(stream, { grid: 1, block: 1 }, buffer, 1);
        const read = buffer.read(stream, pinned);
        const deadline = performance.now() + 5000;
        while (Atomics.load(seen, 0) !== 5 + launches && performance.now() < deadline);
        expect({ launches, value: seen[0] }).toEqual({ launches, value: 5 + launches });
        await read;
      }
    },
  );

  test('sync of a stream that did nothing resolves', async () => {
    using stream = host.device.createStream();
    await expect(stream.finished()).resolves.toBeUndefined();
  });

  test('a stream that is held does not delay another', async () => {
    const { device } = host;
    using slow = device.createStream();
    using fast = device.createStream();
    using waiting = await holdUp(slow);
    using buffer = device.alloc(i32, 4, { stream: fast });
    buffer.fill(fast, 3);
    expect([...(await buffer.read(fast))]).toEqual([3, 3, 3, 3]);
    expect(await stillPending(slow.finished())).toBe(true);
    await gate.open();
    await slow.finished();
    await gate.shut();
    expect(waiting.isClosed).toBe(false);
  });

  test('wait(stream) makes later work wait for what the other has queued', async () => {
    const { device } = host;
    using first = device.createStream();
    using second = device.createStream();
    using waiting = await holdUp(first);
    second.wait(first);
    const synced = second.finished();
    expect(await stillPending(synced)).toBe(true);
    await gate.open();
    await synced;
    await gate.shut();
    expect((await waiting.read(second))[0]).toBe(1);
  });

  test('wait(event) makes later work wait for the event and for nothing after it', async () => {
    const { device } = host;
    using first = device.createStream();
    using second = device.createStream();
    using event = first.record();
    using waiting = await holdUp(first);
    second.wait(event);
    await second.finished();
    expect(await stillPending(first.finished())).toBe(true);
    await gate.open();
    await first.finished();
    await gate.shut();
    expect(waiting.isClosed).toBe(false);
  });

  test('waiting for itself has no effect', async () => {
    using stream = host.device.createStream();
    stream.wait(stream);
    await stream.finished();
  });

  test('takes the priorities that the device has', async () => {
    const { device } = host;
    const { least, greatest } = device.streamPriorities;
    for (const priority of [least, greatest]) {
      using stream = device.createStream({ priority });
      expect(stream.priority).toBe(priority);
      using buffer = device.alloc(i32, 1, { stream });
      buffer.fill(stream, priority);
      expect((await buffer.read(stream))[0]).toBe(priority);
    }
  });

  test('a blocking stream works like any other', async () => {
    using stream = host.device.createStream({ blocking: true });
    using buffer = host.device.alloc(i32, 1, { stream });
    buffer.fill(stream, 4);
    expect((await buffer.read(stream))[0]).toBe(4);
  });

  test('keeps its label', () => {
    using stream = host.device.createStream({ label: 'copies' });
    expect(stream.label).toBe('copies');
  });

  test('refuses a priority that is not a number', async () => {
    expect(
      await failure(() => host.device.createStream({ priority: 'high' as never })),
    ).toMatchObject({ argument: 'options.priority' });
  });

  test('refuses an option that does not exist', async () => {
    const error = await failure(() => host.device.createStream({ prority: 1 } as object));
    expect(error.message).toContain("Did you mean 'priority'?");
  });

  test('ready resolves when the queue has room', async () => {
    const { device, stream } = host;
    const nothing = (await host.load(ELEMENTWISE)).kernel('nothing');
    for (let i = 0; i < 30_000; i++) nothing.launch(stream, { grid: 1, block: 1 });
    await stream.ready();
    expect(device.runtime.ring.waiting).toBe(0);
    await stream.finished();
  });

  test('many streams at once each run their own work', async () => {
    const { device } = host;
    const streams = Array.from({ length: 40 }, () => device.createStream());
    const reads = streams.map((stream, i) => {
      const buffer = device.alloc(i32, 8, { stream });
      buffer.fill(stream, i);
      const read = buffer.read(stream);
      buffer.close();
      return read;
    });
    const values = await Promise.all(reads);
    expect(values.map((value) => value[7])).toEqual(streams.map((_, i) => i));
    for (const stream of streams) stream.close();
  });

  test('streams can be made and closed many more times than there are slots', async () => {
    const { device } = host;
    for (let i = 0; i < 3000; i++) {
      const stream = device.createStream();
      if (i % 3 === 0) stream.record().close();
      stream.close();
      if (i % 100 === 0) {
        host.stream.record().close();
        await host.stream.finished();
      }
    }
    await device.finished();
  });

  test('call runs the function after earlier work and before later work', async () => {
    const { device } = host;
    using stream = device.createStream();
    using waiting = await holdUp(stream);
    const order: string[] = [];
    const called = stream.call(() => {
      order.push('call');
    });
    const after = stream.finished().then(() => order.push('after'));
    expect(await stillPending(called)).toBe(true);
    expect(order).toEqual([]);
    await gate.open();
    await Promise.all([called, after]);
    await gate.shut();
    expect(order).toEqual(['call', 'after']);
    expect(waiting.isClosed).toBe(false);
  });

  test('call resolves to what the function returns, or what its promise resolves to', async () => {
    const { stream } = host;
    expect(await stream.call(() => 17)).toBe(17);
    expect(await stream.call(async () => 'later')).toBe('later');
  });

  test('work after a call waits until its promise settles', async () => {
    const { device } = host;
    using stream = device.createStream();
    let finish!: () => void;
    let called!: Promise<void>;
    const begun = new Promise<void>((begins) => {
      called = Promise.resolve(
        stream.call(
          () =>
            new Promise<void>((resolve) => {
              finish = resolve;
              begins();
            }),
        ),
      );
    });
    using buffer = device.alloc(i32, 1, { stream });
    buffer.fill(stream, 1);
    const read = buffer.read(stream);
    await begun;
    expect(await stillPending(read)).toBe(true);
    finish();
    await called;
    expect((await read)[0]).toBe(1);
  });

  test('a stream that waits for one with a call in it waits for the call', async () => {
    const { device } = host;
    using first = device.createStream();
    using second = device.createStream();
    using shared = device.alloc(i32, 1, { stream: first });
    let finish!: () => void;
    const begun = new Promise<void>((begins) => {
      void first.call(
        () =>
          new Promise<void>((resolve) => {
            finish = resolve;
            begins();
          }),
      );
    });
    shared.fill(first, 6);
    const read = shared.read(second);
    await begun;
    expect(await stillPending(read)).toBe(true);
    finish();
    expect((await read)[0]).toBe(6);
  });

  test('a function that throws rejects its call, and the stream goes on', async () => {
    const { stream } = host;
    const boom = new Error('boom');
    await expect(
      stream.call(() => {
        throw boom;
      }),
    ).rejects.toBe(boom);
    await stream.finished();
  });

  test('a function whose promise rejects rejects its call, and the stream goes on', async () => {
    const { stream } = host;
    await expect(stream.call(() => Promise.reject(new Error('later')))).rejects.toThrow('later');
    await stream.finished();
  });

  test('a call that is not awaited reports its failure to the device', async () => {
    const { stream } = host;
    stream.call(() => {
      throw new Error('unheard');
    });
    await stream.finished();
    await turns(4);
    expect(host.errors.splice(0).map((error) => error.cause)).toMatchObject([
      { message: 'unheard' },
    ]);
  });

  test('call refuses a value that is not a function', async () => {
    expect(await failure(() => host.stream.call(3 as never))).toMatchObject({
      argument: 'callback',
    });
  });

  test('close lets the work in flight end first', async () => {
    const { device } = host;
    const stream = device.createStream();
    using buffer = device.alloc(i32, 1);
    buffer.fill(stream, 8);
    const hold = (await host.load(WAITING)).kernel('hold');
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    stream.close();
    const read = buffer.read(host.stream);
    expect(await stillPending(read)).toBe(true);
    await gate.open();
    expect((await read)[0]).toBe(9);
    await gate.shut();
  });

  test('a closed stream refuses work, with the remedy', async () => {
    const stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 1);
    stream.close();
    for (const call of [
      () => stream.finished(),
      () => stream.record(),
      () => stream.wait(host.stream),
      () => stream.call(() => 1),
      () => stream.ready(),
      () => stream.capture(() => undefined),
      () => buffer.fill(stream, 1),
      () => buffer.read(stream),
      () => buffer.write(stream, Int32Array.of(1)),
      () => host.device.alloc(i32, 1, { stream }),
    ]) {
      const error = await failure(call);
      expect(error.code).toBe('ERR_CUDA_DISPOSED');
      expect(error.message).toContain('createStream');
    }
  });

  test('the error of a closed stream has its label', async () => {
    const stream = host.device.createStream({ label: 'upload' });
    stream.close();
    expect((await failure(() => stream.finished())).message).toMatch(
      /^stream 'upload': used after it was closed\./,
    );
  });

  test('close can be called twice', () => {
    const stream = host.device.createStream();
    stream.close();
    expect(() => stream.close()).not.toThrow();
  });

  test("the device's own stream cannot be closed", async () => {
    const error = await failure(() => host.stream.close());
    expect(error.message).toContain('close the device instead');
    await host.stream.finished();
  });

  test('memory that was allocated on a closed stream can still be used', async () => {
    const { device } = host;
    const stream = device.createStream();
    const buffer = device.alloc(i32, 4, { stream });
    buffer.fill(stream, 2);
    stream.close();
    expect([...(await buffer.read(host.stream))]).toEqual([2, 2, 2, 2]);
    buffer.close();
    await device.finished();
  });

  test('refuses a stream of another device', async () => {
    const other = await openTestDevice({ thread: host.mode }, 'cpu:7');
    try {
      using buffer = host.device.alloc(i32, 1);
      for (const call of [
        () => buffer.fill(other.stream, 1),
        () => other.stream.record(host.device.createEvent()),
        () => host.device.alloc(i32, 1, { stream: other.stream }),
      ]) {
        expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
      }
      const { message } = await failure(() => buffer.fill(other.stream, 1));
      for (const { kind, ordinal, name } of [host.device, other])
        expect(message).toContain(`${kind}:${ordinal} ${name}`);
    } finally {
      await other.close();
    }
  });

  test('wait refuses values that are neither events nor streams', async () => {
    expect(await failure(() => host.stream.wait({} as never))).toMatchObject({ argument: 'on' });
  });
});
