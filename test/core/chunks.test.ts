/** Data in pieces: async iteration and Web streams. */
import { f16, f32, i32, u8 } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { failure, onDevice, range, turns } from './test-device.js';

onDevice('Chunks', (host) => {
  test('come in order, the last one shorter', async () => {
    using buffer = host.device.alloc(i32, 10);
    buffer.write(host.stream, Int32Array.from(range(10)));
    const chunks: number[][] = [];
    for await (const chunk of buffer.chunks(host.stream, { length: 4 })) chunks.push([...chunk]);
    expect(chunks).toEqual([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]);
  });

  test('are a megabyte where nothing is asked for', async () => {
    using buffer = host.device.alloc(u8, (2 << 20) + 5);
    buffer.fill(host.stream, 1);
    const lengths: number[] = [];
    for await (const chunk of buffer.chunks(host.stream)) lengths.push(chunk.length);
    expect(lengths).toEqual([1 << 20, 1 << 20, 5]);
  });

  test('of an empty buffer are none', async () => {
    using buffer = host.device.alloc(i32, 0);
    for await (const _ of buffer.chunks(host.stream)) expect.unreachable();
  });

  test('a loop may be left early', async () => {
    using buffer = host.device.alloc(i32, 1000);
    buffer.fill(host.stream, 3);
    for await (const chunk of buffer.chunks(host.stream, { length: 10 })) {
      expect(chunk[0]).toBe(3);
      break;
    }
    await host.stream.sync();
  });

  test('each is an array of its own', async () => {
    using buffer = host.device.alloc(i32, 8);
    buffer.write(host.stream, Int32Array.from(range(8)));
    const kept: Int32Array[] = [];
    for await (const chunk of buffer.chunks(host.stream, { length: 2 })) kept.push(chunk);
    expect(kept.map((chunk) => chunk[0])).toEqual([0, 2, 4, 6]);
  });

  test('refuse a length that is no whole number', async () => {
    using buffer = host.device.alloc(i32, 8);
    expect(await failure(() => buffer.chunks(host.stream, { length: 0 }).next())).toMatchObject({ argument: 'options.length' });
  });

  test('of a closed buffer are an error', async () => {
    const buffer = host.device.alloc(i32, 8);
    buffer.close();
    expect(await failure(() => buffer.chunks(host.stream).next())).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
  });

  test('a failure between them rejects the loop and leaves nothing unheard', async () => {
    const buffer = host.device.alloc(i32, 8);
    const chunks = buffer.chunks(host.stream, { length: 2 });
    await chunks.next();
    buffer.close();
    expect(await failure(async () => {
      for (;;) if ((await chunks.next()).done === true) return;
    })).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    await turns(4);
  });
});

onDevice('Web streams', (host) => {
  test('readable gives the contents', async () => {
    using buffer = host.device.alloc(f32, 7);
    buffer.write(host.stream, Float32Array.from(range(7)));
    const values: number[] = [];
    for await (const chunk of buffer.readable(host.stream, { length: 3 })) values.push(...chunk);
    expect(values).toEqual(range(7));
  });

  test('readable reads as it is asked, not ahead without end', async () => {
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
    expect(await failure(() => writer.write(Int32Array.of(3)))).toMatchObject({ argument: 'chunk' });
  });

  test('writable refuses a chunk of another type', async () => {
    using buffer = host.device.alloc(i32, 2);
    const writer = buffer.writable(host.stream).getWriter();
    writer.closed.catch(() => undefined);
    expect(await failure(() => writer.write(new Float32Array(2) as never))).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
  });

  test.each(['text', undefined, 5])('writable refuses the chunk %s', async (chunk) => {
    using buffer = host.device.alloc(i32, 2);
    const writer = buffer.writable(host.stream).getWriter();
    writer.closed.catch(() => undefined);
    expect(await failure(() => writer.write(chunk as never))).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
  });
});
