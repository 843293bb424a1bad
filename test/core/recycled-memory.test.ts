/**
 * Memory of closed buffers that is used again: the old and the new buffer have their own values
 * only.
 */
import { i32, u8 } from 'async-cuda/core';
import type { CoreDevice, DeviceBuffer, Stream } from 'async-cuda/core';
import * as fc from '../fast-check.js';
import { describe, expect, test } from 'vitest';

import { onCpu, onDevice, openTestDevice, range } from './test-device.js';

const N = 64;

const addressOf = ({ device, memory }: DeviceBuffer): number =>
  device.runtime.shared.values[memory.handle]!;

/** Streams that are held until `open` is called. */
function heldStreams(device: CoreDevice, count: number): { streams: Stream[]; open: () => void } {
  let open!: () => void;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const streams = range(count).map(() => device.createStream());
  for (const stream of streams) void stream.call(() => gate);
  return { streams, open };
}

const isChecked = process.env['ASYNC_CUDA_TEST_CHECK'] !== undefined && onCpu;

describe.skipIf(isChecked)('memory that is used again', () => {
  onDevice('on an open device', (host) => {
    /** A buffer of the device. */
    async function made(length = N): Promise<DeviceBuffer<'i32'>> {
      return host.device.recycled!.alloc(i32, length, host.stream).allocated();
    }

    test('a buffer has the memory of a closed one of as many bytes', async () => {
      const first = await made();
      const address = addressOf(first);
      first.close();
      using second = host.device.recycled!.alloc(u8, 4 * N, host.stream);
      expect(addressOf(second)).toBe(address);
      expect([first.isClosed, second.isClosed]).toEqual([true, false]);
      expect(() => first.read(host.stream)).toThrow(
        expect.objectContaining({ code: 'ERR_CUDA_DISPOSED' }),
      );
    });

    test('not while that one is open or lent, and not for another size', async () => {
      const open = await made();
      using beside = await made();
      expect(addressOf(beside)).not.toBe(addressOf(open));
      const address = addressOf(open);
      const giveBack = open.memory.borrow();
      open.close();
      using borrowed = await made();
      using other = await made(N / 2);
      expect([addressOf(borrowed), addressOf(other)]).not.toContain(address);
      giveBack();
      using again = await made();
      expect(addressOf(again)).toBe(address);
    });

    test('the oldest of many are freed', async () => {
      const all = await Promise.all(range(70).map(() => made()));
      const [first, last] = [all[0]!, all.at(-1)!];
      const address = addressOf(last);
      first.close();
      last.close();
      using again = await made();
      expect(addressOf(again)).toBe(address);
      expect(first.memory.isLeftToBorrower).toBe(false);
      for (const buffer of all.slice(1, -1)) buffer.close();
    });

    test('memory of an unreferenced buffer is freed instead', async () => {
      const first = await made();
      const { memory } = first;
      first.close();
      host.device.recycled!.drop(memory);
      await host.stream.finished();
      expect(memory.isLeftToBorrower).toBe(false);
      using second = await made();
      expect(second.memory.root).not.toBe(memory.root);
    });

    test('a read in flight when a buffer is closed gives its contents', async () => {
      const first = await made();
      await first.fill(host.stream, 5);
      const {
        streams: [reader],
        open,
      } = heldStreams(host.device, 1);
      using target = host.device.alloc(i32, N);
      target.copyFrom(reader!, first);
      first.close();
      using second = host.device.recycled!.alloc(i32, N, host.stream);
      expect(second.memory.root).toBe(first.memory.root);
      second.fill(host.stream, 6);
      const read = second.read(host.stream);
      open();
      expect((await read)[0]).toBe(6);
      expect((await target.read(reader!))[0]).toBe(5);
      reader!.close();
    });

    test(
      'on any streams, in any order, each buffer holds what was last written to it',
      { tags: 'random' },
      async () => {
        const action = fc.oneof(
          fc.record({ kind: fc.constant('make' as const), slot: fc.nat(2), stream: fc.nat(2) }),
          fc.record({
            kind: fc.constant('fill' as const),
            slot: fc.nat(2),
            stream: fc.nat(2),
            value: fc.integer({ min: 1, max: 1000 }),
          }),
          fc.record({
            kind: fc.constant('copy' as const),
            slot: fc.nat(2),
            from: fc.nat(2),
            stream: fc.nat(2),
          }),
          fc.record({ kind: fc.constant('read' as const), slot: fc.nat(2), stream: fc.nat(2) }),
        );
        await fc.assert(
          fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (actions) => {
            const recycled = host.device.recycled!;
            for (const buffer of await Promise.all(range(4).map(() => made()))) buffer.close();
            const { streams, open } = heldStreams(host.device, 3);
            const slots = range(3).map((slot) => ({
              buffer: recycled.alloc(i32, N, streams[0]!),
              value: slot,
            }));
            slots.forEach(({ buffer, value }) => {
              buffer.fill(streams[0]!, value);
            });
            const seen: Promise<number>[] = [];
            const wanted: number[] = [];
            for (const each of actions) {
              const [slot, stream] = [slots[each.slot]!, streams[each.stream]!];
              if (each.kind === 'make') {
                slot.buffer.close();
                slot.buffer = recycled.alloc(i32, N, stream);
                slot.buffer.fill(stream, -each.slot);
                slot.value = -each.slot;
              } else if (each.kind === 'fill') {
                slot.buffer.fill(stream, each.value);
                slot.value = each.value;
              } else if (each.kind === 'copy') {
                if (each.from === each.slot) continue;
                slot.buffer.copyFrom(stream, slots[each.from]!.buffer);
                slot.value = slots[each.from]!.value;
              } else {
                seen.push(slot.buffer.read(stream).then((values) => values[N - 1]!));
                wanted.push(slot.value);
              }
            }
            slots.forEach(({ buffer, value }, i) => {
              seen.push(buffer.read(streams[i]!).then((values) => values[0]!));
              wanted.push(value);
            });
            open();
            // -0 is 0 on the device.
            expect(await Promise.all(seen)).toEqual(wanted.map((value) => value + 0));
            for (const { buffer } of slots) buffer.close();
            for (const stream of streams) stream.close();
          }),
          { numRuns: 40 },
        );
      },
    );

    test('is freed after a second without an allocation', async () => {
      const first = await made();
      const { memory } = first;
      first.close();
      expect(memory.isLeftToBorrower).toBe(true);
      await expect.poll(() => memory.isLeftToBorrower, { timeout: 5000 }).toBe(false);
    });
  });

  test('is freed where memory is short', async () => {
    const bytes = 48 << 20;
    const device = await openTestDevice(onCpu ? { memoryBytes: 64 << 20 } : {});
    try {
      // On a GPU the test only observes that it is freed.
      const first = await device.recycled!.alloc(u8, bytes, device.stream).allocated();
      first.close();
      if (!onCpu) device.makeRoomOfRecycled();
      using second = await device.alloc(u8, bytes).allocated();
      await second.fill(device.stream, 3);
      expect(first.memory.isLeftToBorrower).toBe(false);
    } finally {
      await device.close();
    }
  });

  test('a device can be closed while memory is kept', async () => {
    const device = await openTestDevice();
    const first = await device.recycled!.alloc(u8, 1 << 20, device.stream).allocated();
    const open = device.recycled!.alloc(u8, 1 << 20, device.stream);
    first.close();
    await device.close();
    expect([open.isClosed, device.isClosed, first.memory.isLeftToBorrower]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

test.runIf(onCpu)('on a checked device each buffer has memory of its own', async () => {
  const device = await openTestDevice({ check: true }, 'cpu');
  try {
    expect(device.recycled).toBeUndefined();
  } finally {
    await device.close();
  }
});
