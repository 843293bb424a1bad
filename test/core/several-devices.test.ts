/** Work on one device that waits for another's, and copies between devices. */
import { f16, f32, i32, inout, input, u32, u8 } from 'async-cuda/core';
import type { CoreDevice, DeviceBuffer, Event, Kernel, Stream } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { beforeAll, describe, expect, test } from 'vitest';

import { copyThroughHost } from '../../src/core/copy-through-host.js';
import { onPairs } from './device-pair.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import { WAITING } from './kernels/waiting.js';
import { Gate, failure, range, stillPending, turns } from './test-device.js';
import { someOf } from '../random-runs.js';

const ONE = { grid: 1, block: 1 };

onPairs('Copies between devices', (pair) => {
  someOf(3, test)([1, 1000, 3_000_001])(
    'copyFrom gives the bytes of the other device: %d elements',
    async (length) => {
      const { a, b } = pair;
      using source = a.alloc(i32, length);
      using target = b.alloc(i32, length);
      source.write(
        a.stream,
        Int32Array.from({ length }, (_, i) => i * 3),
      );
      target.fill(b.stream, -1);
      await target.copyFrom(b.stream, source);
      const values = await target.read(b.stream);
      expect(values.every((value, i) => value === i * 3)).toBe(true);
    },
  );

  test('copyTo is copyFrom with the operands exchanged', async () => {
    const { a, b } = pair;
    using source = a.alloc(f32, 5);
    using target = b.alloc(f32, 5);
    source.fill(a.stream, 2.5);
    source.copyTo(b.stream, target);
    expect([...(await target.read(b.stream))]).toEqual(Array(5).fill(2.5));
    expect(await failure(() => source.copyTo(a.stream, target))).toMatchObject({
      argument: 'stream',
    });
    expect(await failure(() => source.copyTo(b.stream, {} as never))).toMatchObject({
      argument: 'target',
    });
  });

  test('parts of buffers are copied to parts of buffers', async () => {
    const { a, b } = pair;
    using source = a.alloc(i32, 10);
    using target = b.alloc(i32, 8);
    source.write(a.stream, Int32Array.from(range(10)));
    target.fill(b.stream, -1);
    target.slice(2, 5).copyFrom(b.stream, source.slice(6, 9));
    expect([...(await target.read(b.stream))]).toEqual([-1, -1, 6, 7, 8, -1, -1, -1]);
  });

  test('data is copied to the other device and back without a wait between', async () => {
    const { a, b } = pair;
    using here = a.alloc(i32, 5000);
    using there = b.alloc(i32, 5000);
    const add = [await pair.load(a, ELEMENTWISE), await pair.load(b, ELEMENTWISE)].map((module) =>
      module.kernel('add1', [inout(i32), u32]),
    );
    const shape = { grid: 20, block: 256 };
    here.fill(a.stream, 0);
    for (let i = 0; i < 20; i++) {
      add[0]!.launch(a.stream, shape, here, 5000);
      there.copyFrom(b.stream, here);
      add[1]!.launch(b.stream, shape, there, 5000);
      here.copyFrom(a.stream, there);
    }
    expect((await here.read(a.stream)).every((value) => value === 40)).toBe(true);
  });

  test('pitched images, whole and cropped', async () => {
    const { a, b } = pair;
    using source = a.alloc2D(u8, { width: 30, height: 20, channels: 3 });
    using target = b.alloc2D(u8, { width: 30, height: 20, channels: 3 });
    const pixels = Uint8Array.from({ length: 1800 }, (_, i) => i * 7);
    source.write(a.stream, pixels);
    target.copyFrom(b.stream, source);
    expect(await target.read(b.stream)).toEqual(pixels);
    target.fill(b.stream, 9);
    target
      .crop({ x: 1, y: 2, width: 4, height: 3 })
      .copyFrom(b.stream, source.crop({ x: 10, y: 15, width: 4, height: 3 }));
    const image = await target.read(b.stream);
    const expected = new Uint8Array(1800).fill(9);
    for (let y = 0; y < 3; y++)
      expected.set(
        pixels.subarray(((15 + y) * 30 + 10) * 3, ((15 + y) * 30 + 14) * 3),
        ((2 + y) * 30 + 1) * 3,
      );
    expect(image).toEqual(expected);
    expect(
      await failure(() =>
        target.copyFrom(b.stream, source.crop({ x: 0, y: 0, width: 2, height: 2 })),
      ),
    ).toMatchObject({ argument: 'source' });
    expect(await failure(() => target.copyFrom(a.stream, source))).toMatchObject({
      argument: 'stream',
    });
  });

  test('copies between two kinds of device go through the host', async () => {
    // Between devices of one kind copyFrom never takes this path.
    const { a, b } = pair;
    using source = a.alloc(f16, 100_000);
    using target = b.alloc(f16, 100_000);
    source.fill(a.stream, 1.5);
    target.fill(b.stream, 0);
    copyThroughHost(b.stream, target, source);
    expect((await target.read(b.stream)).every((value) => value === 1.5)).toBe(true);
  });

  test('a closed or foreign source, another dtype or length are refused at the call', async () => {
    const { a, b } = pair;
    using target = b.alloc(i32, 4);
    const closed = a.alloc(i32, 4);
    closed.close();
    using floats = a.alloc(f32, 4);
    using short = a.alloc(i32, 3);
    expect((await failure(() => target.copyFrom(b.stream, closed))).code).toBe('ERR_CUDA_DISPOSED');
    expect(await failure(() => target.copyFrom(b.stream, floats as never))).toMatchObject({
      argument: 'source',
    });
    expect(await failure(() => target.copyFrom(b.stream, short))).toMatchObject({
      argument: 'source',
    });
  });

  test('a copy of no elements does nothing', async () => {
    const { a, b } = pair;
    using source = a.alloc(i32, 0);
    using target = b.alloc(i32, 0);
    await target.copyFrom(b.stream, source);
    expect((await target.read(b.stream)).length).toBe(0);
  });

  test('an undefined source leaves the target undefined, with the first reason', async () => {
    const { a, b } = pair;
    using huge = a.alloc(i32, 2 ** 45, { label: 'huge' });
    using target = b.alloc(i32, 4);
    const allocated = failure(() => huge.allocated());
    const copied = await failure(() => target.copyFrom(b.stream, huge.slice(0, 4)));
    expect(copied.code).toBe('ERR_CUDA_UNDEFINED_CONTENTS');
    expect(copied.cause).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(await failure(() => target.read(b.stream))).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    await target.fill(b.stream, 3);
    expect([...(await target.read(b.stream))]).toEqual([3, 3, 3, 3]);
    expect((await allocated).code).toBe('ERR_CUDA_OUT_OF_MEMORY');
  });

  describe('that are held up', () => {
    let gates: { a: Gate; b: Gate };
    let hold: { a: Kernel; b: Kernel };

    beforeAll(async () => {
      const [onA, onB] = [await pair.load(pair.a, WAITING), await pair.load(pair.b, WAITING)];
      gates = { a: await Gate.of(onA), b: await Gate.of(onB) };
      hold = { a: onA.kernel('hold', [inout(i32)]), b: onB.kernel('hold', [inout(i32)]) };
    });

    test('a copy waits for the last writer of its source', async () => {
      const { a, b } = pair;
      using source = a.alloc(i32, 1);
      using target = b.alloc(i32, 1);
      source.fill(a.stream, 6);
      hold.a.launch(a.stream, ONE, source);
      const copied = target.copyFrom(b.stream, source);
      expect(await stillPending(copied)).toBe(true);
      await gates.a.open();
      await copied;
      expect((await target.read(b.stream))[0]).toBe(7);
      await gates.a.shut();
    });

    test('the next writer of the source waits for the copy, and nothing else does', async () => {
      const { a, b } = pair;
      using slow = b.alloc(i32, 1);
      using source = a.alloc(i32, 1);
      using other = a.alloc(i32, 1);
      using target = b.alloc(i32, 1);
      source.fill(a.stream, 6);
      slow.fill(b.stream, 0);
      hold.b.launch(b.stream, ONE, slow);
      target.copyFrom(b.stream, source);
      if (!pair.alike) await source.read(a.stream); // The copy has read its source by then.
      using writer = a.createStream();
      const written = source.fill(writer, 8);
      expect(await stillPending(written)).toBe(pair.alike);
      await other.fill(a.stream, 1);
      await gates.b.open();
      await written;
      expect((await target.read(b.stream))[0]).toBe(6);
      await gates.b.shut();
    });

    test('memory that is closed at once is freed after the copy', async () => {
      const { a, b } = pair;
      using slow = b.alloc(i32, 1);
      using target = b.alloc(i32, 1000);
      const source = a.alloc(i32, 1000);
      source.fill(a.stream, 6);
      slow.fill(b.stream, 0);
      hold.b.launch(b.stream, ONE, slow);
      target.copyFrom(b.stream, source);
      source.close();
      await turns(3);
      using next = a.alloc(i32, 1000);
      const overwritten = next.fill(a.stream, 1);
      await gates.b.open();
      await overwritten;
      expect((await target.read(b.stream)).every((value) => value === 6)).toBe(true);
      await gates.b.shut();
    });

    test('a stream waits for a stream of another device', async () => {
      const { a, b } = pair;
      using slow = a.alloc(i32, 1);
      using mine = b.alloc(i32, 1);
      slow.fill(a.stream, 0);
      hold.a.launch(a.stream, ONE, slow);
      b.stream.wait(a.stream);
      const filled = mine.fill(b.stream, 1);
      expect(await stillPending(filled)).toBe(true);
      await gates.a.open();
      await filled;
      await gates.a.shut();
    });

    test('a stream waits for an event of another device and nothing after it', async () => {
      const { a, b } = pair;
      using slow = a.alloc(i32, 1);
      using mine = b.alloc(i32, 1);
      const before = a.stream.record();
      slow.fill(a.stream, 0);
      hold.a.launch(a.stream, ONE, slow);
      const behind = a.stream.record();
      b.stream.wait(before);
      await mine.fill(b.stream, 1);
      b.stream.wait(behind);
      const filled = mine.fill(b.stream, 2);
      expect(await stillPending(filled)).toBe(true);
      await gates.a.open();
      await filled;
      await gates.a.shut();
      before.close();
      behind.close();
    });

    test('a wait is for the point at which the event was recorded when it was queued', async () => {
      const { a, b } = pair;
      using slow = a.alloc(i32, 1);
      using mine = b.alloc(i32, 1);
      slow.fill(a.stream, 0);
      const event = a.stream.record();
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      b.stream.call(() => released);
      b.stream.wait(event);
      hold.a.launch(a.stream, ONE, slow);
      a.stream.record(event);
      const filled = mine.fill(b.stream, 3);
      release();
      await filled;
      expect(event.reached).toBe(false);
      await gates.a.open();
      await event.finished();
      await gates.a.shut();
      event.close();
    });

    test('objects that are closed right after the call are still waited for', async () => {
      const { a, b } = pair;
      using slow = a.alloc(i32, 1);
      using mine = b.alloc(i32, 1);
      const stream = a.createStream();
      slow.fill(stream, 0);
      hold.a.launch(stream, ONE, slow);
      const event = stream.record();
      const waits = [b.createStream(), b.createStream()];
      waits[0]!.wait(event);
      waits[1]!.wait(stream);
      event.close();
      stream.close();
      const filled = waits.map((each) => mine.fill(each, 3));
      expect(await stillPending(filled[0]!)).toBe(true);
      await gates.a.open();
      await Promise.all(filled);
      await gates.a.shut();
      for (const each of waits) each.close();
    });

    test('other streams of both devices go on meanwhile', async () => {
      const { a, b } = pair;
      using slow = a.alloc(i32, 1);
      using ours = a.alloc(i32, 1);
      using mine = b.alloc(i32, 1);
      slow.fill(a.stream, 0);
      hold.a.launch(a.stream, ONE, slow);
      using waiting = b.createStream();
      using free = b.createStream();
      using freeToo = a.createStream();
      waiting.wait(a.stream);
      const end = waiting.record();
      mine.fill(free, 4);
      ours.fill(freeToo, 5);
      expect([(await mine.read(free))[0], (await ours.read(freeToo))[0]]).toEqual([4, 5]);
      expect(end.reached).toBe(false);
      await gates.a.open();
      await end.finished();
      await gates.a.shut();
      end.close();
    });
  });

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

  describe('Any program', () => {
    const DEVICES = 2;
    const STREAMS = 3;
    const BUFFERS = 2;
    type Step =
      | { kind: 'fill'; device: number; stream: number; buffer: number; value: number }
      | { kind: 'add1' | 'read' | 'renew'; device: number; stream: number; buffer: number }
      | {
          kind: 'copy';
          device: number;
          stream: number;
          buffer: number;
          from: number;
          across: boolean;
        }
      | { kind: 'delay'; device: number; stream: number; rounds: number }
      | { kind: 'wait'; device: number; stream: number; on: number; event: boolean }
      | { kind: 'restart'; device: number; stream: number };
    const device = fc.nat(DEVICES - 1);
    const stream = fc.nat(STREAMS - 1);
    const buffer = fc.nat(BUFFERS - 1);
    const step: fc.Arbitrary<Step> = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          kind: fc.constant('fill' as const),
          device,
          stream,
          buffer,
          value: fc.integer({ min: -99, max: 99 }),
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          kind: fc.constantFrom('add1' as const, 'read' as const),
          device,
          stream,
          buffer,
        }),
      },
      {
        weight: 8,
        arbitrary: fc.record({
          kind: fc.constant('copy' as const),
          device,
          stream,
          buffer,
          from: buffer,
          across: fc.boolean(),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('delay' as const),
          device,
          stream,
          rounds: fc.nat(20_000),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('wait' as const),
          device,
          stream,
          on: stream,
          event: fc.boolean(),
        }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('restart' as const), device, stream }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant('renew' as const), device, stream, buffer }),
      },
    );

    async function check(steps: readonly Step[], length: number): Promise<void> {
      const devices: CoreDevice[] = [pair.a, pair.b];
      const modules = await Promise.all(devices.map((each) => pair.load(each, ELEMENTWISE)));
      const waiting = await Promise.all(devices.map((each) => pair.load(each, WAITING)));
      const add1 = modules.map((module) => module.kernel('add1', [inout(i32), u32]));
      const spin = waiting.map((module) => module.kernel('spin'));
      const streams: Stream[][] = devices.map((each) =>
        range(STREAMS).map(() => each.createStream()),
      );
      const buffers: DeviceBuffer<'i32'>[][] = devices.map((each) =>
        range(BUFFERS).map(() => each.alloc(i32, length)),
      );
      const delays = devices.map((each) => range(STREAMS).map(() => each.alloc(u32, 32)));
      const events: Event[] = devices.map((each) => each.createEvent());
      const model = devices.map(() => range(BUFFERS).map(() => new Int32Array(length)));
      for (const [i, row] of buffers.entries())
        for (const each of row) each.fill(devices[i]!.stream, 0);
      const shape = { grid: Math.ceil(length / 128), block: 128 };
      const reads: { got: PromiseLike<Int32Array>; expected: Int32Array }[] = [];
      for (const next of steps) {
        const { device: d } = next;
        const on = streams[d]![next.stream]!;
        switch (next.kind) {
          case 'fill':
            buffers[d]![next.buffer]!.fill(on, next.value);
            model[d]![next.buffer]!.fill(next.value);
            break;
          case 'add1':
            add1[d]!.launch(on, shape, buffers[d]![next.buffer]!, length);
            model[d]![next.buffer] = model[d]![next.buffer]!.map((x) => x + 1);
            break;
          case 'read':
            reads.push({
              got: buffers[d]![next.buffer]!.read(on),
              expected: model[d]![next.buffer]!.slice(),
            });
            break;
          case 'copy': {
            const from = next.across ? 1 - d : d;
            if (from === d && next.from === next.buffer) break;
            buffers[d]![next.buffer]!.copyFrom(on, buffers[from]![next.from]!);
            model[d]![next.buffer] = model[from]![next.from]!.slice();
            break;
          }
          case 'delay':
            spin[d]!.launch(on, { grid: 1, block: 32 }, delays[d]![next.stream]!, 1, next.rounds);
            break;
          case 'wait': {
            const other = streams[1 - d]![next.on]!;
            on.wait(next.event ? other.record(events[1 - d]) : other);
            break;
          }
          case 'restart':
            on.close();
            streams[d]![next.stream] = devices[d]!.createStream();
            break;
          case 'renew':
            buffers[d]![next.buffer]!.close();
            buffers[d]![next.buffer] = devices[d]!.alloc(i32, length, { stream: on });
            buffers[d]![next.buffer]!.fill(streams[d]![(next.stream + 1) % STREAMS]!, 7);
            model[d]![next.buffer]!.fill(7);
            break;
        }
      }
      for (const [d, row] of buffers.entries()) {
        for (const [i, each] of row.entries())
          reads.push({ got: each.read(streams[d]![i]!), expected: model[d]![i]!.slice() });
      }
      const results = await Promise.all(reads.map(({ got }) => got));
      results.forEach((values, i) => expect(values).toEqual(reads[i]!.expected));
      for (const each of [...buffers.flat(), ...delays.flat(), ...streams.flat(), ...events])
        each.close();
    }

    const runs = 30;

    test(
      'small buffers: gives the sequential result',
      { tags: 'random', timeout: 120_000 },
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 60 }), (steps) => check(steps, 16)),
          { numRuns: runs },
        );
      },
    );

    test(
      'buffers that are copied in steps: gives the sequential result',
      { tags: 'random', timeout: 120_000 },
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 25 }), (steps) => check(steps, 300_000)),
          { numRuns: Math.ceil(runs / 10) },
        );
      },
    );

    test(
      'long programs: gives the sequential result',
      { tags: 'random', timeout: 120_000 },
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(step, { minLength: 300, maxLength: 400 }), (steps) =>
            check(
              steps.filter(({ kind }) => kind !== 'delay'),
              8,
            ),
          ),
          { numRuns: Math.ceil(runs / 10) },
        );
      },
    );
  });
});
