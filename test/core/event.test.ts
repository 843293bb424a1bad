/** Events: points in a stream, and the time between two of them. */
import { i32 } from 'async-cuda/core';
import { beforeAll, expect, test } from 'vitest';

import { WAITING, spun } from './kernels/waiting.js';
import { Gate, failure, onDeviceInEachMode, stillPending, turns } from './test-device.js';

onDeviceInEachMode('Event', (host) => {
  test('closed after its stream, it is destroyed after a record that is held', async () => {
    const stream = host.device.createStream();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const called = stream.call(() => released);
    const event = stream.record();
    stream.close();
    event.close();
    await turns(5);
    release();
    await called;
    await host.device.finished();
    await turns(5);
    expect(host.errors).toEqual([]);
  });

  let gate: Gate;

  beforeAll(async () => {
    gate = await Gate.of(await host.load(WAITING));
  });

  test('is reached when the work before it is done, and not before', async () => {
    const { device } = host;
    const hold = (await host.load(WAITING)).kernel('hold');
    using stream = device.createStream();
    using buffer = device.alloc(i32, 1, { stream });
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    using event = stream.record();
    const synced = event.finished();
    expect(event.reached).toBe(false);
    expect(await stillPending(synced)).toBe(true);
    await gate.open();
    await synced;
    await gate.shut();
    expect(event.reached).toBe(true);
  });

  test('a wait for a stream that ends with a record includes held work before it', async () => {
    const { device } = host;
    using stream = device.createStream();
    using other = device.createStream();
    using buffer = device.alloc(i32, 1, { stream });
    buffer.fill(stream, 1);
    // From the second stream on, operations record events of their own.
    await Promise.all([stream.finished(), other.call(() => undefined)]);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const called = stream.call(() => released);
    using _event = stream.record();
    other.wait(stream);
    const synced = other.finished();
    expect(await stillPending(synced)).toBe(true);
    release();
    await called;
    await synced;
  });

  test('does not wait for work after it', async () => {
    const { device } = host;
    const hold = (await host.load(WAITING)).kernel('hold');
    using stream = device.createStream();
    using buffer = device.alloc(i32, 1, { stream });
    using event = stream.record();
    const early = event.finished();
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    await early;
    expect(await stillPending(stream.finished())).toBe(true);
    await gate.open();
    await stream.finished();
    await gate.shut();
  });

  test('a second wait is not delayed by a wait for a later point in between', async () => {
    const { device } = host;
    const hold = (await host.load(WAITING)).kernel('hold');
    const spin = (await host.load(WAITING)).kernel('spin');
    using stream = device.createStream();
    using buffer = device.alloc(i32, 32, { stream });
    spin.launch(stream, { grid: 1, block: 32 }, buffer, 1, 200_000);
    using event = stream.record();
    const first = event.finished();
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    const end = stream.finished();
    await event.finished();
    await first;
    expect(await stillPending(end)).toBe(true);
    await gate.open();
    await end;
    await gate.shut();
  });

  test('that was never recorded counts as reached', async () => {
    using event = host.device.createEvent();
    expect(event.reached).toBe(true);
    await event.finished();
    host.stream.wait(event);
    await host.stream.finished();
  });

  test('moves to the new point when it is recorded again', async () => {
    const { device } = host;
    const hold = (await host.load(WAITING)).kernel('hold');
    using stream = device.createStream();
    using buffer = device.alloc(i32, 1, { stream });
    using event = stream.record();
    await event.finished();
    hold.launch(stream, { grid: 1, block: 1 }, buffer);
    expect(stream.record(event)).toBe(event);
    expect(event.reached).toBe(false);
    await gate.open();
    await event.finished();
    await gate.shut();
  });

  test('elapsed measures the work between two events', async () => {
    const { device } = host;
    const spin = (await host.load(WAITING)).kernel('spin');
    using stream = device.createStream();
    using buffer = device.alloc(i32, 32, { stream });
    const start = stream.record();
    const middle = stream.record();
    const rounds = 400_000;
    spin.launch(stream, { grid: 1, block: 32 }, buffer, 3, rounds);
    const end = stream.record();
    const work = await start.elapsed(end);
    const none = await start.elapsed(middle);
    expect((await buffer.read(stream))[31]).toBe(spun(3, rounds));
    expect(none).toBeGreaterThanOrEqual(0);
    // Four hundred thousand dependent multiplications take any machine more than a tenth of a
    // millisecond.
    expect(work).toBeGreaterThan(0.1);
    expect(work).toBeGreaterThanOrEqual(none);
    expect(work).toBeLessThan(30_000);
    for (const event of [start, middle, end]) event.close();
  });

  test('elapsed between events of two streams works', async () => {
    const { device } = host;
    using first = device.createStream();
    using second = device.createStream();
    using start = first.record();
    second.wait(start);
    using end = second.record();
    expect(await start.elapsed(end)).toBeGreaterThanOrEqual(0);
  });

  test('recorded on another stream while a record is held, it belongs to that stream', async () => {
    const { device } = host;
    using held = device.createStream();
    using stream = device.createStream();
    await Promise.all([held.finished(), stream.finished()]);
    const start = device.createEvent();
    const end = device.createEvent();
    stream.record(end);
    let release: () => void = () => undefined;
    const called = held.call(() => new Promise<void>((resolve) => (release = resolve)));
    held.record(end);
    stream.record(start);
    stream.record(end);
    const between = await start.elapsed(end);
    expect(await stillPending(called, 60)).toBe(true);
    release();
    await called;
    await held.finished();
    expect(await start.elapsed(end)).toBe(between);
    for (const event of [start, end]) event.close();
  });

  test('recorded on two streams in turn, it takes no further resources', async () => {
    const { device } = host;
    using first = device.createStream();
    using second = device.createStream();
    await Promise.all([first.finished(), second.finished()]);
    const { handles } = device.runtime;
    const before = handles.count;
    const event = device.createEvent();
    for (let i = 0; i < 500; i++) (i % 2 === 0 ? first : second).record(event);
    second.wait(event);
    await Promise.all([first.finished(), second.finished()]);
    event.close();
    await turns(5);
    // Streams record events of their own after their work.
    expect(handles.count - before).toBeLessThanOrEqual(64);
  });

  test('elapsed of an event without timing is an error with how to make one', async () => {
    using start = host.stream.record(host.device.createEvent({ timing: false }));
    using end = host.stream.record();
    const error = await failure(() => start.elapsed(end));
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
    expect(error.message).toContain('timing: true');
  });

  test('elapsed of an event that was never recorded is an error', async () => {
    using start = host.device.createEvent();
    using end = host.stream.record();
    expect((await failure(() => start.elapsed(end))).message).toContain('stream.record(event)');
    expect((await failure(() => end.elapsed(start))).message).toContain('stream.record(event)');
  });

  test('elapsed refuses a value that is not an event', async () => {
    using start = host.stream.record();
    expect(await failure(() => start.elapsed(3 as never))).toMatchObject({ argument: 'end' });
  });

  test('a closed event refuses everything', async () => {
    const event = host.stream.record();
    using open = host.stream.record();
    event.close();
    event.close();
    for (const call of [
      () => event.finished(),
      () => event.elapsed(open),
      () => open.elapsed(event),
      () => host.stream.record(event),
      () => host.stream.wait(event),
    ]) {
      expect(await failure(call)).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    }
  });

  test('refuses an option that does not exist', async () => {
    expect(await failure(() => host.device.createEvent({ timings: true } as object))).toMatchObject(
      { code: 'ERR_CUDA_INVALID_ARGUMENT' },
    );
  });

  test('closing an event that a stream waits for does not release that stream', async () => {
    const { device } = host;
    const hold = (await host.load(WAITING)).kernel('hold');
    using first = device.createStream();
    using second = device.createStream();
    using buffer = device.alloc(i32, 1, { stream: first });
    buffer.fill(first, 0);
    hold.launch(first, { grid: 1, block: 1 }, buffer);
    const event = first.record();
    second.wait(event);
    event.close();
    const synced = second.finished();
    expect(await stillPending(synced)).toBe(true);
    await gate.open();
    await synced;
    await gate.shut();
    expect((await buffer.read(first))[0]).toBe(1);
  });

  test('many thousands of events can be made and closed', async () => {
    const { device, stream } = host;
    for (let i = 0; i < 5000; i++) {
      const event = stream.record();
      event.close();
      if (i % 500 === 0) await stream.finished();
    }
    await device.finished();
  });
});
