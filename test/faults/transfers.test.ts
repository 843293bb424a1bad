/**
 * A typed array that is changed, detached, resized or transferred during its copy is an error or
 * harmless.
 */
import { f16, u8 } from 'async-cuda/core';
import { MessageChannel } from 'node:worker_threads';

import { beforeAll, describe, expect, test } from 'vitest';

import { WAITING } from '../core/kernels/waiting.js';
import { Gate, failure, onDevice, stillPending, turns } from '../core/test-device.js';

const SMALL = 1000;
const LARGE = 12 << 20;

const detach = (buffer: ArrayBufferLike): void => {
  structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
};

/** ArrayBuffer.prototype.resize is not in every TypeScript lib. */
interface Resizable {
  resize(bytes: number): void;
}
const resizable = (bytes: number): ArrayBuffer & Resizable =>
  new (
    ArrayBuffer as unknown as new (
      bytes: number,
      options: { maxByteLength: number },
    ) => ArrayBuffer & Resizable
  )(bytes, { maxByteLength: 2 * bytes });

onDevice('A source in flight', (host) => {
  test('small and changed after the call: the old bytes arrive', async () => {
    const source = new Uint8Array(SMALL).fill(1);
    using buffer = host.device.alloc(u8, SMALL);
    const written = buffer.write(host.stream, source);
    source.fill(2);
    await written;
    expect((await buffer.read(host.stream)).every((value) => value === 1)).toBe(true);
  });

  test('small and detached after the call: the bytes arrive', async () => {
    const source = new Uint8Array(SMALL).fill(1);
    using buffer = host.device.alloc(u8, SMALL);
    const written = buffer.write(host.stream, source);
    detach(source.buffer);
    await written;
    expect((await buffer.read(host.stream)).every((value) => value === 1)).toBe(true);
  });

  test('large and changed: old or new bytes arrive, and nothing else', async () => {
    const source = new Uint8Array(LARGE).fill(1);
    using buffer = host.device.alloc(u8, LARGE);
    const written = buffer.write(host.stream, source);
    source.fill(2);
    await written;
    expect((await buffer.read(host.stream)).every((value) => value === 1 || value === 2)).toBe(
      true,
    );
  });

  test.each(['at once', 'a few turns later'])(
    'large and detached %s: a typed error, or all of it has arrived',
    async (when) => {
      const source = new Uint8Array(LARGE).fill(1);
      using buffer = host.device.alloc(u8, LARGE);
      const written = buffer
        .write(host.stream, source)
        .finished()
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      if (when !== 'at once') await turns(2);
      detach(source.buffer);
      const error = await written;
      if (error === undefined)
        expect((await buffer.read(host.stream)).every((value) => value === 1)).toBe(true);
      else {
        expect(error).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
        expect((error as Error).message).toContain('detached or transferred');
      }
    },
  );

  test('large and transferred to a thread: a typed error, and the thread has it', async () => {
    const source = new Uint8Array(LARGE).fill(3);
    using buffer = host.device.alloc(u8, LARGE);
    const written = failure(() => buffer.write(host.stream, source));
    const { port1, port2 } = new MessageChannel();
    const received = new Promise<Uint8Array>((resolve) => {
      port2.on('message', resolve);
    });
    port1.postMessage(source, [source.buffer]);
    expect(await written).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
    expect((await received).every((value) => value === 3)).toBe(true);
    port1.close();
  });

  test.each([
    ['shrunk', LARGE / 2],
    ['grown', LARGE + 16],
  ])('large and %s: a typed error, or all of it has arrived', async (_, bytes) => {
    const memory = resizable(LARGE);
    const source = new Uint8Array(memory).fill(1);
    using buffer = host.device.alloc(u8, LARGE);
    const written = buffer
      .write(host.stream, source)
      .finished()
      .then(
        () => undefined,
        (error: unknown) => error,
      );
    memory.resize(bytes);
    const error = await written;
    expect(
      error === undefined ? 'ERR_CUDA_SOURCE_DETACHED' : (error as { code: string }).code,
    ).toBe('ERR_CUDA_SOURCE_DETACHED');
  });

  test('detached before the call: a typed error at the call', async () => {
    const source = new Uint8Array(SMALL);
    detach(source.buffer);
    using buffer = host.device.alloc(u8, SMALL);
    expect(await failure(() => buffer.write(host.stream, source))).toMatchObject({
      argument: 'source',
    });
  });

  test('large, converted and detached: a typed error', async () => {
    const source = new Float32Array(LARGE / 4);
    using buffer = host.device.alloc(f16, LARGE / 4);
    const written = failure(() => buffer.write(host.stream, source));
    detach(source.buffer);
    expect(await written).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
  });

  test('after such a failure the stream and its staging go on', async () => {
    for (let i = 0; i < 40; i++) {
      const source = new Uint8Array(4 << 20);
      using buffer = host.device.alloc(u8, 4 << 20);
      const written = failure(() => buffer.write(host.stream, source));
      detach(source.buffer);
      expect(await written).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
    }
    using buffer = host.device.alloc(u8, LARGE);
    buffer.write(host.stream, new Uint8Array(LARGE).fill(9));
    expect((await buffer.read(host.stream)).every((value) => value === 9)).toBe(true);
  });

  test('after such failures a call still holds the work after it', async () => {
    for (let i = 0; i < 5; i++) {
      const source = new Uint8Array(4 << 20);
      using buffer = host.device.alloc(u8, 4 << 20);
      const written = failure(() => buffer.write(host.stream, source));
      detach(source.buffer);
      await written;
    }
    let goOn!: () => void;
    const called = new Promise<void>((resolve) => {
      void host.stream.call(() => {
        resolve();
        return new Promise<void>((end) => (goOn = end));
      });
    });
    using buffer = host.device.alloc(u8, 1);
    const filled = buffer.fill(host.stream, 1);
    // On a busy machine the stream may reach the call late.
    await called;
    expect(await stillPending(filled)).toBe(true);
    goOn();
    await filled;
  });
});

onDevice('A target in flight', (host) => {
  let gate: Gate;

  beforeAll(async () => {
    gate = await Gate.of(await host.load(WAITING));
  });

  test.each([SMALL, LARGE])('of %i bytes, detached: a typed error', async (bytes) => {
    using buffer = host.device.alloc(u8, bytes);
    buffer.fill(host.stream, 1);
    const into = new Uint8Array(bytes);
    const read = failure(() => buffer.read(host.stream, { into }));
    detach(into.buffer);
    const error = await read;
    expect(error).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
    expect(error.message).toContain('into');
  });

  test.each([SMALL, LARGE])('of %i bytes, shrunk: a typed error', async (bytes) => {
    using buffer = host.device.alloc(u8, bytes);
    buffer.fill(host.stream, 1);
    const memory = resizable(bytes);
    const into = new Uint8Array(memory);
    const read = failure(() => buffer.read(host.stream, { into }));
    memory.resize(bytes / 2);
    expect(await read).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
  });

  test('after such a failure the stream and its staging go on', async () => {
    for (let i = 0; i < 40; i++) {
      using buffer = host.device.alloc(u8, 2 << 20);
      const into = new Uint8Array(2 << 20);
      buffer.fill(host.stream, 1);
      const read = failure(() => buffer.read(host.stream, { into }));
      detach(into.buffer);
      await read;
    }
    using buffer = host.device.alloc(u8, LARGE);
    buffer.fill(host.stream, 8);
    expect((await buffer.read(host.stream)).every((value) => value === 8)).toBe(true);
  });

  test(
    'many reads that are never awaited do not stop later ones',
    { tags: 'thorough' },
    async () => {
      using buffer = host.device.alloc(u8, 60_000);
      buffer.fill(host.stream, 4);
      for (let i = 0; i < 2000; i++) buffer.read(host.stream);
      expect((await buffer.read(host.stream))[59_999]).toBe(4);
    },
  );

  test(
    'many large transfers that are not awaited run one after the other',
    { tags: 'thorough' },
    async () => {
      using buffer = host.device.alloc(u8, 100_000);
      for (let i = 0; i < 1500; i++) {
        buffer.write(host.stream, new Uint8Array(100_000).fill(i & 255));
        if (i % 3 === 0) buffer.read(host.stream);
      }
      expect((await buffer.read(host.stream))[99_999]).toBe(1499 & 255);
    },
  );

  test('small copies after a large one do not take its staging', async () => {
    using large = host.device.alloc(u8, 8 << 20);
    using small = host.device.alloc(u8, 60_000);
    const written = large.write(host.stream, new Uint8Array(8 << 20).fill(1));
    for (let i = 0; i < 1000; i++) small.write(host.stream, new Uint8Array(60_000).fill(i & 255));
    await written;
    expect((await small.read(host.stream))[0]).toBe(999 & 255);
    expect((await large.read(host.stream)).every((value) => value === 1)).toBe(true);
  });

  test('large transfers after endless work leave staging to other streams', async () => {
    const hold = (await host.load(WAITING)).kernel('hold');
    using stream = host.device.createStream();
    using stuck = host.device.alloc(u8, 64 << 20, { stream });
    stuck.slice(0, 4).fill(stream, 0);
    hold.launch(stream, { grid: 1, block: 1 }, stuck);
    stuck.write(stream, new Uint8Array(64 << 20));
    stuck.read(stream);
    using buffer = host.device.alloc(u8, 8 << 20);
    buffer.write(host.stream, new Uint8Array(8 << 20).fill(5));
    expect((await buffer.read(host.stream)).every((value) => value === 5)).toBe(true);
    await gate.open();
    await stream.finished();
    await gate.shut();
  });

  test('more small writes than staging holds, after endless work, all arrive', async () => {
    const hold = (await host.load(WAITING)).kernel('hold');
    using stream = host.device.createStream();
    using first = host.device.alloc(u8, 4, { stream });
    first.fill(stream, 0);
    using buffer = host.device.alloc(u8, 600 * 60_000, { stream });
    hold.launch(stream, { grid: 1, block: 1 }, first);
    const source = new Uint8Array(60_000);
    for (let i = 0; i < 600; i++) {
      source.fill(i & 255);
      // A write that finds no room takes its bytes later: each gets an array of its own.
      buffer.slice(i * 60_000, (i + 1) * 60_000).write(stream, source.slice());
    }
    const read = buffer.read(stream);
    expect(await stillPending(read)).toBe(true);
    await gate.open();
    const values = await read;
    await gate.shut();
    const wrong = Array.from({ length: 600 }, (_, i) => i).filter(
      (i) => values[i * 60_000] !== (i & 255) || values[(i + 1) * 60_000 - 1] !== (i & 255),
    );
    expect(wrong).toEqual([]);
  });
});

describe('The event loop', () => {
  onDevice('during large copies', (host) => {
    test('has turns while 64 MiB are written and read', async () => {
      using buffer = host.device.alloc(u8, 64 << 20);
      const source = new Uint8Array(64 << 20);
      let rounds = 0;
      let going = true;
      const count = (): void => {
        rounds++;
        if (going) setImmediate(count);
      };
      setImmediate(count);
      try {
        await buffer.write(host.stream, source);
        await buffer.read(host.stream);
      } finally {
        going = false;
      }
      // 128 MiB, four at a time.
      expect(rounds).toBeGreaterThan(16);
    });
  });
});
