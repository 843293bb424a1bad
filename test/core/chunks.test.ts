/** Data in pieces: async iteration and Web streams. */
import { f16, f32, i32, u8 } from 'async-cuda/core';
import type { DeviceBuffer } from 'async-cuda/core';
import { expect, test } from 'vitest';

import {
  failure,
  onCpu,
  onDeviceInEachMode,
  openTestDevice,
  range,
  stillPending,
  turns,
} from './test-device.js';
import type { TestDevice } from './test-device.js';

onDeviceInEachMode('Chunks', (host) => {
  test('come in order, the last one shorter', async () => {
    using buffer = host.device.alloc(i32, 10);
    buffer.write(host.stream, Int32Array.from(range(10)));
    const chunks: number[][] = [];
    for await (const chunk of buffer.chunks(host.stream, { length: 4 })) chunks.push([...chunk]);
    expect(chunks).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ]);
  });

  test('have a megabyte by default', async () => {
    using buffer = host.device.alloc(u8, (2 << 20) + 5);
    buffer.fill(host.stream, 1);
    const lengths: number[] = [];
    for await (const chunk of buffer.chunks(host.stream)) lengths.push(chunk.length);
    expect(lengths).toEqual([1 << 20, 1 << 20, 5]);
  });

  test('an empty buffer has none', async () => {
    using buffer = host.device.alloc(i32, 0);
    for await (const _ of buffer.chunks(host.stream)) expect.unreachable();
  });

  test('a loop may end early', async () => {
    using buffer = host.device.alloc(i32, 1000);
    buffer.fill(host.stream, 3);
    for await (const chunk of buffer.chunks(host.stream, { length: 10 })) {
      expect(chunk[0]).toBe(3);
      break;
    }
    await host.stream.finished();
  });

  test('each is an array of its own', async () => {
    using buffer = host.device.alloc(i32, 8);
    buffer.write(host.stream, Int32Array.from(range(8)));
    const kept: Int32Array[] = [];
    for await (const chunk of buffer.chunks(host.stream, { length: 2 })) kept.push(chunk);
    expect(kept.map((chunk) => chunk[0])).toEqual([0, 2, 4, 6]);
  });

  test('a length that is not a whole number is refused', async () => {
    using buffer = host.device.alloc(i32, 8);
    expect(await failure(() => buffer.chunks(host.stream, { length: 0 }).next())).toMatchObject({
      argument: 'options.length',
    });
  });

  test('of a closed buffer are refused', async () => {
    const buffer = host.device.alloc(i32, 8);
    buffer.close();
    expect(await failure(() => buffer.chunks(host.stream).next())).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test('a failure between them rejects the loop, with no unhandled rejection', async () => {
    const buffer = host.device.alloc(i32, 8);
    const chunks = buffer.chunks(host.stream, { length: 2 });
    await chunks.next();
    buffer.close();
    expect(
      await failure(async () => {
        for (;;) if ((await chunks.next()).done === true) return;
      }),
    ).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    await turns(4);
  });
});

/** A buffer whose write failed, so that reading it fails. */
async function undefinedBuffer(host: TestDevice): Promise<DeviceBuffer<'i32'>> {
  const buffer = host.device.alloc(i32, 2 ** 46);
  await failure(() => buffer.allocated());
  return buffer;
}

onDeviceInEachMode('A loop over chunks', (host) => {
  test('reads one piece ahead and no further', async () => {
    using buffer = host.device.alloc(i32, 6);
    await buffer.write(host.stream, Int32Array.from(range(6)));
    const chunks = buffer.chunks(host.stream, { length: 2 });
    expect((await chunks.next()).value).toEqual(Int32Array.of(0, 1));
    await buffer.fill(host.stream, 9);
    expect((await chunks.next()).value).toEqual(Int32Array.of(2, 3));
    expect((await chunks.next()).value).toEqual(Int32Array.of(9, 9));
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
  });

  test('that fails rejects once, with no unhandled rejection', async () => {
    using buffer = await undefinedBuffer(host);
    const error = await failure(async () => {
      for await (const _ of buffer.slice(0, 100).chunks(host.stream, { length: 10 }))
        expect.unreachable();
    });
    expect(error.code).toBe('ERR_CUDA_UNDEFINED_CONTENTS');
    await turns(6);
  });

  test('whose body throws ends with that error', async () => {
    using buffer = host.device.alloc(i32, 100);
    buffer.fill(host.stream, 3);
    const mine = new Error('mine');
    expect(
      await failure(async () => {
        for await (const _ of buffer.chunks(host.stream, { length: 10 })) throw mine;
      }),
    ).toBe(mine);
    await turns(6);
  });

  test('yields the piece that was read before the buffer was closed, then fails', async () => {
    const buffer = host.device.alloc(i32, 6);
    buffer.write(host.stream, Int32Array.from(range(6)));
    const chunks = buffer.chunks(host.stream, { length: 2 });
    await chunks.next();
    buffer.close();
    expect((await chunks.next()).value).toEqual(Int32Array.of(2, 3));
    expect(await failure(() => chunks.next())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
  });

  test('ends when its signal aborts, while the device is busy', async () => {
    using stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 100, { stream });
    buffer.fill(stream, 1);
    const busy = new Promise<() => void>(
      (called) => void stream.call(() => new Promise<void>((resolve) => called(resolve))),
    );
    const controller = new AbortController();
    const looped = failure(async () => {
      for await (const _ of buffer.chunks(stream, { length: 10, signal: controller.signal }))
        expect.unreachable();
    });
    expect(await stillPending(looped)).toBe(true);
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await looped).toBe(reason);
    (await busy)();
    await stream.finished();
    expect((await buffer.read(stream))[99]).toBe(1);
  });

  test('does not begin with a signal that has aborted', async () => {
    using buffer = host.device.alloc(i32, 4);
    buffer.fill(host.stream, 1);
    expect(
      await failure(() => buffer.chunks(host.stream, { signal: AbortSignal.abort() }).next()),
    ).toMatchObject({ name: 'AbortError' });
  });

  test('refuses wrong options and streams at the call', () => {
    using buffer = host.device.alloc(i32, 4);
    for (const make of [
      () => buffer.chunks(host.stream, { size: 4 } as object),
      () => buffer.chunks(host.stream, { length: 1.5 }),
      () => buffer.chunks(host.stream, { signal: {} as AbortSignal }),
      () => buffer.chunks(undefined as never),
      () => buffer.chunks(host.stream, null as never),
      () => buffer.readable(host.stream, { length: -1 }),
      () => buffer.readable(host.stream, { signal: {} as AbortSignal }),
      () => buffer.readable(host.stream, null as never),
      () => buffer.readable(undefined as never),
      () => buffer.writable({} as never),
    ]) {
      expect(make).toThrow(expect.objectContaining({ code: 'ERR_CUDA_INVALID_ARGUMENT' }) as Error);
    }
  });

  test('on a device that is closed meanwhile rejects', async () => {
    const device = await openTestDevice({
      thread: host.mode,
      ...(onCpu ? { memoryBytes: 64 << 20 } : {}),
    });
    const buffer = device.alloc(i32, 100);
    buffer.fill(device.stream, 1);
    const chunks = buffer.chunks(device.stream, { length: 10 });
    await chunks.next();
    await device.close();
    const error = await failure(async () => {
      for (;;)
        await chunks.next().then(({ done }) => {
          if (done === true) throw new Error('ended');
        });
    });
    expect(['ERR_CUDA_DISPOSED', 'ERR_CUDA_DEVICE_CLOSED']).toContain(error.code);
  });
});

onDeviceInEachMode('Web streams', (host) => {
  test('readable does nothing until it is read from', async () => {
    using buffer = host.device.alloc(i32, 4);
    await buffer.fill(host.stream, 1);
    const { mark } = host.stream;
    const readable = buffer.readable(host.stream);
    await turns(10);
    expect(host.stream.mark).toBe(mark);
    await buffer.fill(host.stream, 2);
    expect((await readable.getReader().read()).value).toEqual(Int32Array.of(2, 2, 2, 2));
  });

  test('readable waits for a slow reader', async () => {
    using buffer = host.device.alloc(i32, 1000);
    buffer.fill(host.stream, 1);
    let taken = 0;
    const start = host.stream.mark;
    const marks: number[] = [];
    await buffer.readable(host.stream, { length: 100 }).pipeTo(
      new WritableStream(
        {
          async write(chunk: Int32Array) {
            taken += chunk.length;
            await turns(3);
            marks.push(host.stream.mark);
          },
        },
        { highWaterMark: 1 },
      ),
    );
    expect(taken).toBe(1000);
    // One piece is in the pipe, one on its way to it, and one is read ahead.
    marks.forEach((mark, i) => expect(mark - start).toBeLessThanOrEqual(i + 4));
    expect(marks.length).toBe(10);
  });

  test('readable is cancelled at once while the device is busy', async () => {
    using stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 100, { stream });
    buffer.fill(stream, 1);
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    void stream.call(() => opened);
    const reader = buffer.readable(stream, { length: 10 }).getReader();
    const read = reader.read();
    expect(await stillPending(read)).toBe(true);
    await reader.cancel('enough');
    expect(await read).toEqual({ done: true, value: undefined });
    open();
    await stream.finished();
    await turns(6);
  });

  test('readable fails with the error of the work, once', async () => {
    using buffer = await undefinedBuffer(host);
    const reader = buffer.slice(0, 100).readable(host.stream, { length: 10 }).getReader();
    reader.closed.catch(() => undefined);
    expect(await failure(() => reader.read())).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    expect(await failure(() => reader.read())).toMatchObject({
      code: 'ERR_CUDA_UNDEFINED_CONTENTS',
    });
    await turns(6);
  });

  test('a pipe that fails at its end stops reading', async () => {
    using source = host.device.alloc(i32, 100);
    using target = host.device.alloc(i32, 30);
    source.fill(host.stream, 4);
    const error = await failure(() =>
      source.readable(host.stream, { length: 20 }).pipeTo(target.writable(host.stream)),
    );
    expect(error).toMatchObject({ argument: 'chunk' });
    expect((await target.read(host.stream))[19]).toBe(4);
    await turns(6);
  });

  test('a pipe is aborted by its signal', async () => {
    using stream = host.device.createStream();
    using source = host.device.alloc(i32, 100, { stream });
    using target = host.device.alloc(i32, 100, { stream });
    source.fill(stream, 4);
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    void stream.call(() => opened);
    const controller = new AbortController();
    const piped = failure(() =>
      source
        .readable(stream, { length: 10 })
        .pipeTo(target.writable(stream), { signal: controller.signal }),
    );
    expect(await stillPending(piped)).toBe(true);
    controller.abort();
    expect(await piped).toMatchObject({ name: 'AbortError' });
    open();
    await stream.finished();
    await turns(6);
  });

  test('writable takes the next chunk after the one before is copied', async () => {
    using stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 6, { stream });
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    void stream.call(() => opened);
    const writer = buffer.writable(stream).getWriter();
    const first = writer.write(Int32Array.of(1, 2));
    const second = writer.write(Int32Array.of(3, 4));
    expect(writer.desiredSize).toBeLessThanOrEqual(0);
    expect(await stillPending(first)).toBe(true);
    open();
    await Promise.all([first, second]);
    await writer.close();
    expect([...(await buffer.read(stream))].slice(0, 4)).toEqual([1, 2, 3, 4]);
  });

  test('writable is aborted at once while the device is busy', async () => {
    using stream = host.device.createStream();
    using buffer = host.device.alloc(i32, 4, { stream });
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    void stream.call(() => opened);
    const writer = buffer.writable(stream).getWriter();
    writer.closed.catch(() => undefined);
    const written = failure(() => writer.write(Int32Array.of(1, 2)));
    expect(await stillPending(written)).toBe(true);
    const reason = new Error('enough');
    await writer.abort(reason);
    expect(await written).toBe(reason);
    open();
    // Work that was queued still runs.
    expect([...(await buffer.slice(0, 2).read(stream))]).toEqual([1, 2]);
  });

  test('writable into a buffer that is closed meanwhile fails', async () => {
    const buffer = host.device.alloc(i32, 4);
    const writer = buffer.writable(host.stream).getWriter();
    writer.closed.catch(() => undefined);
    await writer.write(Int32Array.of(1));
    buffer.close();
    expect(await failure(() => writer.write(Int32Array.of(2)))).toMatchObject({
      code: 'ERR_CUDA_DISPOSED',
    });
  });

  test('readable yields the contents', async () => {
    using buffer = host.device.alloc(f32, 7);
    buffer.write(host.stream, Float32Array.from(range(7)));
    const values: number[] = [];
    for await (const chunk of buffer.readable(host.stream, { length: 3 })) values.push(...chunk);
    expect(values).toEqual(range(7));
  });

  test('readable reads on demand, with a bound on reading ahead', async () => {
    using buffer = host.device.alloc(i32, 100);
    buffer.fill(host.stream, 1);
    const reader = buffer.readable(host.stream, { length: 1 }).getReader();
    await reader.read();
    await turns(20);
    const before = host.stream.mark;
    await turns(20);
    expect(host.stream.mark).toBe(before);
    await reader.cancel();
  });

  test('writable fills the buffer from its start', async () => {
    using buffer = host.device.alloc(i32, 6);
    buffer.fill(host.stream, 0);
    const writer = buffer.writable(host.stream).getWriter();
    await writer.write(Int32Array.of(1, 2));
    await writer.write(Int32Array.of(3));
    await writer.close();
    expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3, 0, 0, 0]);
  });

  test('one buffer is piped into another', async () => {
    using source = host.device.alloc(f16, 5000);
    using target = host.device.alloc(f16, 5000);
    source.fill(host.stream, 1.5);
    await source.readable(host.stream, { length: 512 }).pipeTo(target.writable(host.stream));
    expect((await target.read(host.stream)).every((value) => value === 1.5)).toBe(true);
  });

  test('writable refuses more than the buffer holds', async () => {
    using buffer = host.device.alloc(i32, 2);
    const writer = buffer.writable(host.stream).getWriter();
    writer.closed.catch(() => undefined);
    await writer.write(Int32Array.of(1, 2));
    expect(await failure(() => writer.write(Int32Array.of(3)))).toMatchObject({
      argument: 'chunk',
    });
  });

  test('writable refuses a chunk of another type', async () => {
    using buffer = host.device.alloc(i32, 2);
    const writer = buffer.writable(host.stream).getWriter();
    writer.closed.catch(() => undefined);
    expect(await failure(() => writer.write(new Float32Array(2) as never))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
    const another = buffer.writable(host.stream).getWriter();
    another.closed.catch(() => undefined);
    // Three quarters of an element.
    const error = await failure(() => another.write(new Uint8Array(3) as never));
    expect(error.message).toBe(
      'chunk: expected a Int32Array for dtype i32, got Uint8Array(3). Pass ' +
        "Int32Array.from(array), or make the buffer with the array's dtype.",
    );
  });

  test.each(['text', undefined, 5])('writable refuses the chunk %s', async (chunk) => {
    using buffer = host.device.alloc(i32, 2);
    const writer = buffer.writable(host.stream).getWriter();
    writer.closed.catch(() => undefined);
    expect(await failure(() => writer.write(chunk as never))).toMatchObject({
      code: 'ERR_CUDA_INVALID_ARGUMENT',
    });
  });
});
