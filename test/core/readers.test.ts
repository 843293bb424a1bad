/** Memory that many streams read: which of the reads are kept. */
import { i32 } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { onDevice } from './test-device.js';

const N = 64;

onDevice('memory that many streams read', (host) => {
  test('reads on many streams are dropped when they are over', async () => {
    const { device } = host;
    using source = device.alloc(i32, N);
    using target = device.alloc(i32, N);
    await source.fill(device.stream, 7);
    for (let i = 0; i < 200; i++) {
      using stream = device.createStream();
      target.copyFrom(stream, source);
      await stream.finished();
    }
    expect(source.memory.readerCount).toBeLessThan(40);
    expect([...new Set(await target.read(device.stream))]).toEqual([7]);
  });

  test('a write waits for each read that is not over, however many ended between', async () => {
    const { device } = host;
    using source = device.alloc(i32, N);
    await source.fill(device.stream, 7);
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const held = Array.from({ length: 40 }, () => ({
      stream: device.createStream(),
      target: device.alloc(i32, N),
    }));
    const queue = (from: number, to: number): void => {
      for (const { stream, target } of held.slice(from, to)) {
        void stream.call(() => gate);
        target.copyFrom(stream, source);
      }
    };
    queue(0, 20);
    for (let i = 0; i < 60; i++) {
      using stream = device.createStream();
      using target = device.alloc(i32, N, { stream });
      target.copyFrom(stream, source);
      await stream.finished();
    }
    queue(20, 40);
    expect(source.memory.readerCount).toBeGreaterThanOrEqual(40);
    const written = source.fill(device.stream, 9);
    open();
    await written;
    for (const { stream, target } of held) {
      expect([...new Set(await target.read(stream))]).toEqual([7]);
      target.close();
      stream.close();
    }
    expect((await source.read(device.stream))[0]).toBe(9);
  });
});
