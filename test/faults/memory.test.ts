/** Allocations of too much, of no and of very much memory: typed errors, and work goes on. */
import { f32, i32, u8 } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { ELEMENTWISE } from '../core/kernels/elementwise.js';
import { failure, onCpu, onDevice, openTestDevice, turns } from '../core/test-device.js';

const TOO_MUCH = 2 ** 48;

onDevice('Out of memory', (host) => {
  test('is a typed error that names the allocation, its label and the driver’s code', async () => {
    using buffer = host.device.alloc(u8, TOO_MUCH, { label: 'huge' });
    const error = await failure(() => buffer.allocated());
    expect(error).toMatchObject({
      name: 'CudaOutOfMemoryError',
      code: 'ERR_CUDA_OUT_OF_MEMORY',
      driverName: 'CUDA_ERROR_OUT_OF_MEMORY',
      driverCode: 2,
    });
    expect(error.message).toContain(String(TOO_MUCH));
    expect(error.message).toContain("'huge'");
  });

  test('rejects what uses the buffer, with the allocation’s error as its cause', async () => {
    const add1 = (await host.load(ELEMENTWISE)).kernel('add1');
    using buffer = host.device.alloc(i32, TOO_MUCH, { label: 'huge' });
    using good = host.device.alloc(i32, 4);
    good.fill(host.stream, 1);
    const errors = await Promise.all([
      failure(() => buffer.fill(host.stream, 1)),
      failure(() => buffer.slice(0, 4).read(host.stream)),
      failure(() => buffer.slice(0, 4).write(host.stream, new Int32Array(4))),
      failure(() => buffer.slice(0, 4).copyFrom(host.stream, good)),
      failure(() => add1.launch(host.stream, { grid: 1, block: 1 }, buffer, 4)),
      failure(() => buffer.allocated()),
    ]);
    for (const error of errors) {
      const root = error.code === 'ERR_CUDA_OUT_OF_MEMORY' ? error : (error.cause as typeof error);
      expect(root.code).toBe('ERR_CUDA_OUT_OF_MEMORY');
      expect(root.message).toContain("'huge'");
    }
    expect(errors[0]).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
    expect([...(await good.read(host.stream))]).toEqual([1, 1, 1, 1]);
  });

  test('of an image is the same error', async () => {
    using image = host.device.alloc2D(f32, { width: 2 ** 26, height: 2 ** 20 });
    expect(await failure(() => image.allocated())).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
  });

  test('of managed memory is the same error', async () => {
    expect(await failure(() => host.device.managed(u8, TOO_MUCH))).toMatchObject({
      code: 'ERR_CUDA_OUT_OF_MEMORY',
    });
  });

  describe.each([
    ['2^48 bytes', 2 ** 48],
    ['as many bytes as a number counts', Number.MAX_SAFE_INTEGER],
    ['2^53 bytes', 2 ** 53],
  ])('of %s', (_, length) => {
    const ways: [string, () => Promise<unknown>][] = [
      [
        'a buffer',
        async () => {
          using buffer = host.device.alloc(u8, length);
          await buffer.allocated();
        },
      ],
      [
        'a buffer of a pool',
        async () => {
          await using pool = await host.device.createPool();
          using buffer = host.device.alloc(u8, length, { pool });
          await buffer.allocated();
        },
      ],
      [
        'an image',
        async () => {
          using image = host.device.alloc2D(u8, {
            width: 2 ** 24,
            height: Math.floor(Math.min(2 ** 31 - 1, length / 2 ** 24)),
            channels: Math.ceil(length / 2 ** 53),
          });
          await image.allocated();
        },
      ],
      ['page-locked memory', () => host.device.pinned(u8, length)],
      ['managed memory', () => host.device.managed(u8, length)],
    ];

    test.each(ways)(
      '%s is a typed error that names the bytes, and work goes on',
      async (way, make) => {
        const error = await failure(make);
        expect(error).toMatchObject({
          name: 'CudaOutOfMemoryError',
          code: 'ERR_CUDA_OUT_OF_MEMORY',
        });
        if (way !== 'an image') expect(error.message).toContain(String(length));
        using buffer = host.device.alloc(i32, 4);
        buffer.fill(host.stream, 7);
        expect([...(await buffer.read(host.stream))]).toEqual([7, 7, 7, 7]);
      },
    );
  });

  test('of an image of more bytes than a number counts is thrown at the call', async () => {
    expect(
      await failure(() => host.device.alloc2D(f32, { width: 2 ** 28, height: 2 ** 30 })),
    ).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
  });

  test('does not occur for zero elements', async () => {
    using buffer = host.device.alloc(i32, 0);
    await buffer.allocated();
    using image = host.device.alloc2D(i32, { width: 0, height: 5 });
    await image.allocated();
    await using pinned = await host.device.pinned(i32, 0);
    await using managed = await host.device.managed(i32, 0);
    expect([
      pinned.view().length,
      managed.view().length,
      (await buffer.read(host.stream)).length,
      (await image.read(host.stream)).length,
    ]).toEqual([0, 0, 0, 0]);
  });

  test('for the array of a read is a typed error, with how to read in pieces', async () => {
    // More than the address space: less may succeed where it is not accessed.
    using buffer = host.device.alloc(u8, 2 ** 48);
    await failure(() => buffer.allocated());
    const error = await failure(() => buffer.read(host.stream));
    expect(error).toMatchObject({ name: 'CudaOutOfMemoryError', code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(error.message).toContain(String(2 ** 48));
    expect(error.message).toContain('chunks');
  });

  test('of the engine’s memory limit, and not only of addresses, is the same error', async () => {
    const real = globalThis.SharedArrayBuffer;
    class Refused {
      constructor() {
        throw new RangeError('Array buffer allocation failed');
      }
    }
    globalThis.SharedArrayBuffer = Refused as never;
    const text = ' '.repeat(1 << 17);
    const errors = await Promise.all([
      failure(() => host.device.pinned(u8, 1000)),
      failure(() => openTestDevice({ thread: host.mode }, 'cpu:7')),
      failure(() => host.device.loadModule(text)),
    ]).finally(() => (globalThis.SharedArrayBuffer = real));
    for (const error of errors)
      expect(error).toMatchObject({ name: 'CudaOutOfMemoryError', code: 'ERR_CUDA_OUT_OF_MEMORY' });
    expect(errors[0]!.message).toContain('1000 bytes');
    await using pinned = await host.device.pinned(u8, 1000);
    expect(pinned.length).toBe(1000);
  });

  test('does not affect work before it, beside it, or after it', async () => {
    using stream = host.device.createStream();
    using before = host.device.alloc(i32, 100, { stream });
    before.fill(stream, 4);
    const failed = host.device.alloc(i32, TOO_MUCH, { stream });
    const error = failure(() => failed.allocated());
    using after = host.device.alloc(i32, 100, { stream });
    after.copyFrom(stream, before);
    expect((await after.read(stream))[99]).toBe(4);
    expect(await error).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
    failed.close();
  });

  test('leaves no handle and no byte after a hundred times in a row', async () => {
    // A device of its own: on the shared one, handles that earlier tests left to the garbage
    // collector are freed in the meantime.
    await using device = await openTestDevice({ thread: host.mode });
    const pool = await device.pool();
    const fail = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        const buffer = device.alloc(u8, TOO_MUCH);
        await failure(() => buffer.allocated());
        buffer.close();
      }
      await device.finished();
      await turns(5);
    };
    // Streams create their events as they need them, up to a number.
    await fail(40);
    const handles = device.runtime.handles.count;
    const { used } = await pool.statistics();
    await fail(100);
    expect(device.runtime.handles.count).toBe(handles);
    expect((await pool.statistics()).used).toBe(used);
  });

  test('filling the whole memory and freeing it frees all of it', async () => {
    if (!onCpu) return;
    const buffers = [];
    for (;;) {
      const buffer = host.device.alloc(u8, 256 << 20);
      buffers.push(buffer);
      try {
        await buffer.allocated();
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_CUDA_OUT_OF_MEMORY' });
        break;
      }
    }
    expect(buffers.length).toBeGreaterThan(4);
    for (const buffer of buffers) buffer.close();
    using again = host.device.alloc(u8, 256 << 20);
    await again.allocated();
  });
});

onDevice('Buffers of 5 GiB', (host) => {
  const length = 5 * 2 ** 30;

  test('work to their last byte, or are out of memory where the device is smaller', async () => {
    using buffer = host.device.alloc(u8, length);
    if (host.device.properties.totalMemory < length) {
      expect(await failure(() => buffer.allocated())).toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
      });
      return;
    }
    buffer.fill(host.stream, 7);
    buffer.slice(-3).write(host.stream, Uint8Array.of(1, 2, 3));
    expect([...(await buffer.slice(-5).read(host.stream))]).toEqual([7, 7, 1, 2, 3]);
    const middle = 2 ** 32 - 2;
    buffer.slice(middle, middle + 4).fill(host.stream, 9);
    expect([...(await buffer.slice(middle - 1, middle + 5).read(host.stream))]).toEqual([
      7, 9, 9, 9, 9, 7,
    ]);
    using other = host.device.alloc(u8, length);
    other.copyFrom(host.stream, buffer);
    expect([...(await other.slice(-5).read(host.stream))]).toEqual([7, 7, 1, 2, 3]);
  });

  test('a slice at a large offset is passed to a kernel by its own address', async () => {
    if (host.device.properties.totalMemory < length) return;
    using buffer = host.device.alloc(i32, length / 4);
    const part = buffer.slice(-4);
    part.fill(host.stream, 41);
    (await host.load(ELEMENTWISE))
      .kernel('add1')
      .launch(host.stream, { grid: 1, block: 4 }, part, 4);
    expect([...(await part.read(host.stream))]).toEqual([42, 42, 42, 42]);
  });
});

onDevice('Undefined contents', (host) => {
  const N = 1024;

  /** A buffer whose contents an earlier failure left undefined: its large write was cut short. */
  async function spoiled(): Promise<ReturnType<typeof host.device.alloc<'u8'>>> {
    const buffer = host.device.alloc(u8, 8 << 20);
    buffer.fill(host.stream, 1);
    const source = new Uint8Array(8 << 20);
    const written = buffer.write(host.stream, source);
    structuredClone(source.buffer, { transfer: [source.buffer] });
    expect(await failure(() => written)).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
    return buffer;
  }

  test('reject their readers, with the reason', async () => {
    using buffer = await spoiled();
    const error = await failure(() => buffer.slice(0, 10).read(host.stream));
    expect(error.code).toBe('ERR_CUDA_UNDEFINED_CONTENTS');
    expect(error.cause).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
  });

  test('spread to results that depend on them, with the first error as the cause', async () => {
    using buffer = await spoiled();
    using copy = host.device.alloc(u8, 8 << 20);
    copy.fill(host.stream, 2);
    const copied = failure(() => copy.copyFrom(host.stream, buffer));
    const read = await failure(() => copy.slice(0, 4).read(host.stream));
    expect((await copied).cause).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
    expect(read.cause).toMatchObject({ code: 'ERR_CUDA_SOURCE_DETACHED' });
  });

  test('are defined again by a fill of the whole buffer', async () => {
    using buffer = await spoiled();
    buffer.fill(host.stream, 5);
    expect((await buffer.slice(N, N + 1).read(host.stream))[0]).toBe(5);
  });

  test('are defined again by a write of the whole buffer', async () => {
    using buffer = await spoiled();
    buffer.write(host.stream, new Uint8Array(8 << 20).fill(6));
    expect((await buffer.slice(-1).read(host.stream))[0]).toBe(6);
  });

  test('are defined again by a copy of the whole buffer', async () => {
    using buffer = await spoiled();
    using good = host.device.alloc(u8, 8 << 20);
    good.fill(host.stream, 7);
    buffer.copyFrom(host.stream, good);
    expect((await buffer.slice(-1).read(host.stream))[0]).toBe(7);
  });

  test('are not defined again by a write of a part', async () => {
    using buffer = await spoiled();
    expect((await failure(() => buffer.slice(0, 4).fill(host.stream, 1))).code).toBe(
      'ERR_CUDA_UNDEFINED_CONTENTS',
    );
    expect((await failure(() => buffer.slice(0, 4).read(host.stream))).code).toBe(
      'ERR_CUDA_UNDEFINED_CONTENTS',
    );
  });

  test('do not affect other buffers', async () => {
    using buffer = await spoiled();
    using good = host.device.alloc(u8, 4);
    good.fill(host.stream, 3);
    await failure(() => buffer.slice(0, 4).read(host.stream));
    expect([...(await good.read(host.stream))]).toEqual([3, 3, 3, 3]);
  });

  test('of an allocation that failed cannot be defined again', async () => {
    using buffer = host.device.alloc(u8, TOO_MUCH);
    await failure(() => buffer.allocated());
    expect((await failure(() => buffer.fill(host.stream, 0))).code).toBe(
      'ERR_CUDA_UNDEFINED_CONTENTS',
    );
    expect((await failure(() => buffer.slice(0, 1).read(host.stream))).code).toBe(
      'ERR_CUDA_UNDEFINED_CONTENTS',
    );
  });

  test('that are not awaited go to the error event, each once', async () => {
    using buffer = await spoiled();
    buffer.slice(0, 4).fill(host.stream, 1);
    buffer.slice(4, 8).fill(host.stream, 1);
    await host.stream.finished();
    await turns(4);
    expect(host.errors.splice(0).map((error) => error.code)).toEqual([
      'ERR_CUDA_UNDEFINED_CONTENTS',
      'ERR_CUDA_UNDEFINED_CONTENTS',
    ]);
  });
});
