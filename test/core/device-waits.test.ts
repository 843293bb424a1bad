/** Waits of one device for the work of another, also in captures and when a device is closed. */
import { i32, inout, input, u32 } from 'async-cuda/core';
import type { Event } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { onPairs } from './device-pair.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import { failure, stillPending, turns } from './test-device.js';

const ONE = { grid: 1, block: 1 };

onPairs('Waits between devices', (pair) => {
  test('a wait for an event does not include later work held by JavaScript', async () => {
    const { a, b } = pair;
    using mine = b.alloc(i32, 1);
    const event = a.stream.record();
    const called = a.stream.call(async () => {
      await b.stream.finished();
      return (await mine.read(b.stream))[0];
    });
    b.stream.wait(event);
    mine.fill(b.stream, 12);
    expect(await called).toBe(12);
    event.close();
  });

  test('a wait for an event includes earlier work held by JavaScript', async () => {
    const { a, b } = pair;
    let release: () => void = () => undefined;
    const called = a.stream.call(() => new Promise<void>((resolve) => (release = resolve)));
    const event = a.stream.record();
    b.stream.wait(event);
    const reached = b.stream.finished();
    expect(await stillPending(reached)).toBe(true);
    release();
    await Promise.all([called, reached]);
    event.close();
  });

  test('an event that was never recorded is not waited for', async () => {
    const { a, b } = pair;
    using event = a.createEvent();
    b.stream.wait(event);
    await b.stream.finished();
    expect(event.reached).toBe(true);
  });

  test('waits keep no handles', { tags: 'thorough' }, async () => {
    const { a, b } = pair;
    using source = a.alloc(i32, 64);
    using target = b.alloc(i32, 64);
    const event = a.createEvent();
    const once = async (): Promise<void> => {
      for (let i = 0; i < 50; i++) {
        source.fill(a.stream, i);
        target.copyFrom(b.stream, source);
        a.stream.record(event);
        b.stream.wait(event);
        a.stream.wait(b.stream);
        const copy = a.alloc(i32, 64);
        target.copyFrom(b.stream, copy);
        copy.close();
      }
      await Promise.all([a.finished(), b.finished()]);
      await turns(20);
    };
    await once();
    await once();
    const before = a.runtime.handles.count + b.runtime.handles.count;
    for (let i = 0; i < 20; i++) await once();
    // The handles of the last round, 250 at most, are released at later waits; a thousand
    // iterations leave none.
    expect(a.runtime.handles.count + b.runtime.handles.count - before).toBeLessThan(500);
    event.close();
  });

  test('time is measured on one device only', async () => {
    const { a, b } = pair;
    using start = a.stream.record();
    using end = b.stream.record();
    const error = await failure(() => start.elapsed(end));
    expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'end' });
    expect(error.message).toContain('clock of its own');
  });

  describe('in a capture', () => {
    test('waiting for another device is refused', async () => {
      const { a, b } = pair;
      const event = a.stream.record();
      const stream = b.createStream();
      const codes: string[] = [];
      const graph = await stream.capture(() => {
        for (const on of [event, a.stream]) {
          try {
            stream.wait(on);
          } catch (error) {
            codes.push((error as { code: string }).code);
          }
        }
      });
      expect(codes).toEqual(['ERR_CUDA_CAPTURE', 'ERR_CUDA_CAPTURE']);
      await graph.close();
      stream.close();
      event.close();
    });

    test('a recorded copy from another device waits at each launch for what it reads', async () => {
      const { a, b } = pair;
      if (!pair.alike) return expect(pair.a.kind).not.toBe(pair.b.kind);
      using source = await a.alloc(i32, 4).allocated();
      using target = await b.alloc(i32, 4).allocated();
      using stream = b.createStream();
      const record = () =>
        stream.capture(() => {
          target.copyFrom(stream, source);
          target
            .box({ width: 2, height: 1, depth: 1 })
            .copyFrom(stream, source.slice(2).box({ width: 2, height: 1, depth: 1 }));
        });
      if (a.kind === 'cuda') {
        expect(await failure(record)).toMatchObject({
          code: 'ERR_CUDA_CAPTURE',
          message: expect.stringContaining('enablePeerAccess') as string,
        });
        if (!(await b.canAccessPeer(a))) return;
        await b.enablePeerAccess(a);
      }
      await using graph = await record();
      for (let i = 0; i < 10; i++) {
        source.write(a.stream, Int32Array.of(1, 2, 3, i));
        graph.launch(stream);
        expect([...(await target.read(b.stream))]).toEqual([3, i, 3, i]);
      }
      if (a.kind !== 'cuda') return;
      await b.disablePeerAccess(a);
      expect(await failure(() => graph.launch(stream))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        argument: 'graph',
      });
    });
  });

  test('work of another device waits for streams that are outside a capture', async () => {
    const { a, b } = pair;
    if (!pair.alike) return expect(pair.a.kind).not.toBe(pair.b.kind);
    using source = await a.alloc(i32, 4).allocated();
    using target = b.alloc(i32, 4);
    using stream = a.createStream();
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const held = a.stream.call(() => released);
    source.fill(a.stream, 7);
    let event: Event | undefined;
    await using graph = await stream.capture(() => {
      target.copyFrom(b.stream, source);
      b.stream.wait(a.stream);
      event = b.stream.record();
    });
    expect(await graph.nodeCount()).toBe(0);
    expect(event!.reached).toBe(false);
    release();
    expect([...(await target.read(b.stream))]).toEqual([7, 7, 7, 7]);
    await held;
    event!.close();
  });

  describe('Peer access', () => {
    test('is available or refused with the alternative', async () => {
      const { a, b } = pair;
      const can = await b.canAccessPeer(a);
      using mine = b.alloc(i32, 4);
      using theirs = a.alloc(i32, 4);
      theirs.fill(a.stream, 5);
      mine.fill(b.stream, 1);
      const absorb = (await pair.load(b, ELEMENTWISE)).kernel('absorb', [
        inout(i32),
        input(i32),
        u32,
      ]);
      const refused = await failure(() =>
        absorb.launch(b.stream, { grid: 1, block: 4 }, mine, theirs, 4),
      );
      expect(refused).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'args[1]' });
      expect(refused.message).toContain('copyFrom');
      if (!can) {
        expect(await failure(() => b.enablePeerAccess(a))).toMatchObject({
          code: 'ERR_CUDA_UNSUPPORTED',
        });
        await b.disablePeerAccess(a);
        return;
      }
      expect(refused.message).toContain('enablePeerAccess');
      await b.enablePeerAccess(a);
      await b.enablePeerAccess(a);
      absorb.launch(b.stream, { grid: 1, block: 4 }, mine, theirs, 4);
      expect([...(await mine.read(b.stream))]).toEqual(Array(4).fill(36));

      // Tracked in both directions, and with memory of a later pool.
      await using pool = await a.createPool();
      using pooled = a.alloc(i32, 4, { pool });
      pooled.fill(a.stream, 2);
      for (let i = 0; i < 20; i++) {
        absorb.launch(b.stream, { grid: 1, block: 4 }, pooled, theirs, 4);
        theirs.copyFrom(a.stream, pooled);
      }
      let [x, y] = [2, 5];
      for (let i = 0; i < 20; i++) y = x = (Math.imul(x, 31) + y) | 0;
      expect([...(await theirs.read(a.stream))]).toEqual(Array(4).fill(y));
      await b.disablePeerAccess(a);
      expect(
        await failure(() => absorb.launch(b.stream, { grid: 1, block: 4 }, mine, theirs, 4)),
      ).toMatchObject({ argument: 'args[1]' });
    });

    test('of a device to itself, or to a value that is not a device, is refused', async () => {
      const { a } = pair;
      expect(await failure(() => a.enablePeerAccess(a))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        argument: 'other',
      });
      expect(await failure(() => a.canAccessPeer({} as never))).toMatchObject({
        argument: 'other',
      });
      expect(await a.canAccessPeer(a)).toBe(false);
    });
  });

  describe('Closing a device', () => {
    test('that others wait for ends the wait with its work', async () => {
      const [a, b] = await pair.openAnew();
      using slow = a.alloc(i32, 1);
      const module = await a.loadModule(WAITING);
      slow.fill(a.stream, 0);
      module.kernel('spin').launch(a.stream, ONE, slow.reinterpret(u32), 1, 200_000);
      b.stream.wait(a.stream);
      const waited = b.stream.finished();
      await a.close();
      await waited;
      await b.close();
    });

    test('that waits for others leaves them unchanged', async () => {
      const [a, b] = await pair.openAnew();
      const source = a.alloc(i32, 100);
      const target = b.alloc(i32, 100);
      source.fill(a.stream, 4);
      target.copyFrom(b.stream, source);
      await b.close();
      source.fill(a.stream, 5);
      expect((await source.read(a.stream))[0]).toBe(5);
      source.close();
      await a.close();
    });

    test('a device that was opened again is another one', async () => {
      const [a, b] = await pair.openAnew();
      const target = b.alloc(i32, 1);
      let one = a;
      for (let i = 0; i < 3; i++) {
        const source = one.alloc(i32, 1);
        source.fill(one.stream, i);
        target.copyFrom(b.stream, source);
        expect((await target.read(b.stream))[0]).toBe(i);
        await one.close();
        const [again, spare] = await pair.openAnew();
        await spare.close();
        one = again;
      }
      await one.close();
      await b.close();
    });
  });
});
