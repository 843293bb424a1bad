/** Copies between devices. */
import { f16, f32, i32, inout, u32, u8 } from 'async-cuda/core';
import type { Kernel } from 'async-cuda/core';
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
});
