/** Device buffers: elements of every dtype are written and read, whole and in parts. */
import { runInNewContext } from 'node:vm';

import { DTYPES, f16, f32, f64, f8e4m3, i32, i64, u16, u32, u64, u8 } from 'async-cuda/core';
import type { DTypeName, DeviceBuffer } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { countOf, fillOf, inArray, valuesOf, zeroOf } from './dtype-values.js';
import { someOf } from '../random-runs.js';
import {
  failure,
  onDeviceInEachMode,
  openTestDevice,
  range,
  stillPending,
  turns,
} from './test-device.js';

const dtypes = Object.keys(DTYPES) as DTypeName[];

function detach(buffer: ArrayBuffer): void {
  structuredClone(buffer, { transfer: [buffer] });
}

onDeviceInEachMode('DeviceBuffer', (host) => {
  describe.each(dtypes)('of %s', (name) => {
    const dtype = DTYPES[name];
    const values = valuesOf(name);
    const count = countOf(name);
    const parts = values.length / count;

    test('reads what was written', async () => {
      using buffer = host.device.alloc(dtype, count);
      buffer.write(host.stream, values as never);
      const read = await buffer.read(host.stream);
      expect(read.constructor).toBe(values.constructor);
      expect([...read].every((value, i) => Object.is(value, values[i]))).toBe(true);
      expect(read.length).toBe(values.length);
    });

    test('reads raw words', async () => {
      using buffer = host.device.alloc(dtype, count);
      buffer.write(host.stream, values as never);
      const bits = await buffer.readBits(host.stream);
      expect(bits.BYTES_PER_ELEMENT * parts).toBe(dtype.bytes);
      using copy = host.device.alloc(dtype, count);
      copy.writeBits(host.stream, bits as never);
      expect(await copy.read(host.stream)).toEqual(values);
    });

    test('is filled with a value', async () => {
      using buffer = host.device.alloc(dtype, 1000);
      const value = fillOf(name);
      await buffer.fill(host.stream, value as never);
      const read = [...(await buffer.read(host.stream))];
      expect(read.length).toBe(1000 * parts);
      expect(read.every((element, i) => element === inArray(value)[i % parts])).toBe(true);
    });

    test('a slice is filled, and the elements around it stay', async () => {
      using buffer = host.device.alloc(dtype, 10);
      const zero = zeroOf(name);
      buffer.fill(host.stream, zero as never);
      buffer.slice(3, 7).fill(host.stream, fillOf(name) as never);
      const read = [...(await buffer.read(host.stream))];
      expect(read).toEqual(
        range(10).flatMap((i) => inArray(i >= 3 && i < 7 ? fillOf(name) : zero)),
      );
    });

    test('of no elements can be written, filled, read and copied', async () => {
      using buffer = host.device.alloc(dtype, 0);
      using other = host.device.alloc(dtype, 0);
      await buffer.write(host.stream, values.slice(0, 0) as never);
      await buffer.fill(host.stream, fillOf(name) as never);
      await buffer.copyFrom(host.stream, other as never);
      expect((await buffer.read(host.stream)).length).toBe(0);
      expect((await buffer.readBits(host.stream)).length).toBe(0);
    });

    test('has the number of bytes that follows from its dtype', () => {
      using buffer = host.device.alloc(dtype, 7);
      expect(buffer.byteLength).toBe(7 * dtype.bytes);
      expect(buffer.dtype).toBe(dtype);
    });

    test('copies from another buffer', async () => {
      using source = host.device.alloc(dtype, count);
      using target = host.device.alloc(dtype, count);
      source.write(host.stream, values as never);
      target.copyFrom(host.stream, source as never);
      expect(await target.read(host.stream)).toEqual(values);
    });
  });

  test('writes the bytes of an ArrayBuffer as they are', async () => {
    using buffer = host.device.alloc(f16, 2);
    await buffer.write(host.stream, Uint16Array.of(0x3c00, 0xc000).buffer);
    expect([...(await buffer.read(host.stream))]).toEqual([1, -2]);
  });

  test('writes from shared memory', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(16));
    shared.set([1, 2, 3, 4]);
    using buffer = host.device.alloc(i32, 4);
    buffer.write(host.stream, shared);
    expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3, 4]);
  });

  test('writes from a view into a larger array', async () => {
    const all = Float64Array.from(range(20));
    using buffer = host.device.alloc(f64, 5);
    buffer.write(host.stream, all.subarray(7, 12));
    expect([...(await buffer.read(host.stream))]).toEqual([7, 8, 9, 10, 11]);
  });

  test('writes arrays and their bytes that were made in another realm', async () => {
    using buffer = host.device.alloc(i32, 3);
    for (const text of [
      'Int32Array.of(1, 2, 3)',
      'Int32Array.of(1, 2, 3).buffer',
      'new Int32Array(new SharedArrayBuffer(12)).map((_, i) => i + 1).buffer',
    ]) {
      await buffer.fill(host.stream, 0);
      buffer.write(host.stream, runInNewContext(text) as Int32Array);
      expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3]);
    }
    const into = runInNewContext('new Int32Array(3)') as Int32Array<ArrayBuffer>;
    await buffer.read(host.stream, { into });
    expect([...into]).toEqual([1, 2, 3]);
  });

  test('a small array may be changed right after the call', async () => {
    const values = Int32Array.of(1, 2, 3);
    using buffer = host.device.alloc(i32, 3);
    const written = buffer.write(host.stream, values);
    values.fill(9);
    await written;
    expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3]);
  });

  describe('more small writes under way than staging holds', () => {
    /**
     * Queues work that lasts until the returned function is called, so that no later copy frees its
     * staging memory.
     */
    const holdUp = (): (() => Promise<void>) => {
      let end: () => void = () => undefined;
      const held = host.stream.call(() => new Promise<void>((resolve) => (end = resolve)));
      return async () => {
        while (!(await Promise.race([held.then(() => true), turns(1).then(() => false)]))) end();
      };
    };

    test('copy their sources before the calls return', async () => {
      const [length, count] = [16384, 512];
      using buffer = host.device.alloc(u32, length * count);
      const end = holdUp();
      const scratch = new Uint32Array(length);
      const written = range(count).map((i) =>
        buffer.slice(i * length, (i + 1) * length).write(host.stream, scratch.fill(i + 1)),
      );
      scratch.fill(0xdead);
      await end();
      await Promise.all(written);
      const values = await buffer.read(host.stream);
      expect(
        range(count).filter(
          (i) => values[i * length] !== i + 1 || values[(i + 1) * length - 1] !== i + 1,
        ),
      ).toEqual([]);
    });

    test('so do converted arrays, images and the bytes of buffers', async () => {
      using filler = host.device.alloc(u8, 65536);
      using halves = host.device.alloc(f16, 1000);
      using image = host.device.alloc2D(f16, { width: 10, height: 7 });
      using bytes = host.device.alloc(u32, 4);
      const end = holdUp();
      const full = new Uint8Array(65536);
      for (let i = 0; i < 512; i++) filler.write(host.stream, full);
      const values = new Float32Array(1000).fill(1.5);
      const pixels = new Float32Array(70).fill(-2);
      const raw = Uint32Array.of(1, 2, 3, 4);
      halves.write(host.stream, values);
      image.write(host.stream, pixels);
      bytes.write(host.stream, raw.buffer);
      for (const array of [values, pixels, raw]) array.fill(7);
      // The memory may be detached after the call as well.
      detach(raw.buffer);
      await end();
      expect((await halves.read(host.stream)).every((value) => value === 1.5)).toBe(true);
      expect((await image.read(host.stream)).every((value) => value === -2)).toBe(true);
      expect([...(await bytes.read(host.stream))]).toEqual([1, 2, 3, 4]);
    });
  });

  test('reads into an array that the caller passes', async () => {
    using buffer = host.device.alloc(i32, 3);
    buffer.fill(host.stream, 6);
    const into = new Int32Array(3);
    expect(await buffer.read(host.stream, { into })).toBe(into);
    expect([...into]).toEqual([6, 6, 6]);
  });

  test('reads into a view and leaves the elements around it', async () => {
    using buffer = host.device.alloc(i32, 3);
    buffer.fill(host.stream, 6);
    const all = new Int32Array(6);
    await buffer.read(host.stream, { into: all.subarray(2, 5) });
    expect([...all]).toEqual([0, 0, 6, 6, 6, 0]);
  });

  someOf(3, test)([65_535, 65_536, 65_537, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5_000_001])(
    'reads %i bytes as written, on every path',
    async (length) => {
      const values = Uint8Array.from(
        { length },
        (_, i) => (i * 31 + (i >> 8) * 7 + (i >> 16)) & 255,
      );
      using buffer = host.device.alloc(u8, length);
      buffer.write(host.stream, values);
      const read = await buffer.read(host.stream);
      expect(Buffer.compare(read, values)).toBe(0);
    },
  );

  describe('many small reads that are converted and end together', () => {
    const N = 32768;

    test('resolve over several turns of the event loop', async () => {
      using buffer = host.device.alloc(f16, N);
      await buffer.fill(host.stream, 1.5);
      let go: () => void = () => undefined;
      const held = new Promise<void>((begun) => {
        host.stream.call(() => {
          begun();
          return new Promise<void>((resolve) => (go = resolve));
        });
      });
      const given: number[] = [0];
      const reads = range(100).map(() =>
        buffer.read(host.stream).then((values) => {
          given[given.length - 1]!++;
          return values[0] === 1.5 && values[N - 1] === 1.5;
        }),
      );
      await held;
      go();
      let over = false;
      const all = Promise.all(reads).finally(() => (over = true));
      while (!over) {
        await turns(1);
        given.push(0);
      }
      expect((await all).every((right) => right)).toBe(true);
      // A turn's share is 0.12 ms of copying: a few of these.
      expect(Math.max(...given)).toBeLessThanOrEqual(10);
    });

    test.each([false, true])(
      'all resolve when the device is closed meanwhile; its end was observed: %s',
      async (over) => {
        const device = await openTestDevice({ thread: host.mode });
        const { stream } = device;
        const buffer = device.alloc(f16, N);
        buffer.fill(stream, -2);
        let left = 50;
        const reads = range(50).map(() =>
          buffer.read(stream).then((values) => {
            left--;
            return values.every((value) => value === -2);
          }),
        );
        buffer.close();
        // No turn of the event loop passes in which the reads could resolve.
        if (over) stream.block(stream.mark);
        await device.close();
        expect([left, ...(await Promise.all(reads))]).toEqual([0, ...reads.map(() => true)]);
      },
    );

    test('all resolve where one of two devices of the same number is closed', async () => {
      const [device, other] = [
        await openTestDevice({ thread: host.mode }),
        await openTestDevice({ thread: host.mode }),
      ];
      try {
        const buffer = device.alloc(f16, N);
        buffer.fill(device.stream, -2);
        const others = other.alloc(f16, N);
        others.fill(other.stream, 3);
        let open!: () => void;
        const opened = new Promise<void>((resolve) => (open = resolve));
        other.stream.call(() => opened);
        const held = others.read(other.stream);
        let left = 20;
        const reads = range(20).map(() => buffer.read(device.stream).then(() => left--));
        await Promise.all([device.close(), ...reads.slice(0, 1)]);
        expect(left).toBe(0);
        expect(await stillPending(held)).toBe(true);
        open();
        expect((await held).every((value) => value === 3)).toBe(true);
      } finally {
        await other.close();
      }
    });
  });

  test('a large converted array is read as it was written', async () => {
    const values = Float32Array.from({ length: 300_001 }, (_, i) => (i % 2048) - 1024);
    using buffer = host.device.alloc(f16, values.length);
    buffer.write(host.stream, values);
    const read = await buffer.read(host.stream);
    expect(Buffer.compare(new Uint8Array(read.buffer), new Uint8Array(values.buffer))).toBe(0);
  });

  test('large writes and reads keep their place among the work of the stream', async () => {
    const length = 700_000;
    using buffer = host.device.alloc(i32, length);
    buffer.fill(host.stream, 1);
    const first = buffer.read(host.stream);
    buffer.write(host.stream, new Int32Array(length).fill(2));
    const second = buffer.read(host.stream);
    buffer.fill(host.stream, 3);
    const third = buffer.read(host.stream);
    const all = await Promise.all([first, second, third]);
    expect(all.map((values) => [values[0], values[length - 1]])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
  });

  test('several large transfers at once on several streams do not mix', async () => {
    const streams = range(4).map(() => host.device.createStream());
    const length = 600_000;
    const reads = streams.map((stream, i) => {
      const buffer = host.device.alloc(i32, length, { stream });
      buffer.write(stream, new Int32Array(length).fill(i + 1));
      const read = buffer.read(stream);
      buffer.close();
      return read;
    });
    for (const [i, values] of (await Promise.all(reads)).entries())
      expect(values.every((value) => value === i + 1)).toBe(true);
    for (const stream of streams) stream.close();
  });

  describe('slice', () => {
    test('takes negative bounds from the end, as arrays do', () => {
      using buffer = host.device.alloc(i32, 10);
      expect(buffer.slice(-3)).toMatchObject({ byteOffset: 28, length: 3 });
      expect(buffer.slice(2, -2)).toMatchObject({ byteOffset: 8, length: 6 });
      expect(buffer.slice(5, 2)).toMatchObject({ length: 0 });
      expect(buffer.slice()).toMatchObject({ byteOffset: 0, length: 10 });
    });

    test('of a slice is a view of the same memory', async () => {
      using buffer = host.device.alloc(i32, 10);
      buffer.write(host.stream, Int32Array.from(range(10)));
      expect([...(await buffer.slice(2, 9).slice(1, 4).read(host.stream))]).toEqual([3, 4, 5]);
    });

    test('can be written', async () => {
      using buffer = host.device.alloc(i32, 5);
      buffer.fill(host.stream, 0);
      buffer.slice(1, 3).write(host.stream, Int32Array.of(7, 8));
      expect([...(await buffer.read(host.stream))]).toEqual([0, 7, 8, 0, 0]);
    });

    test('is a view, and closing it frees nothing', async () => {
      using buffer = host.device.alloc(i32, 4);
      buffer.fill(host.stream, 1);
      const view = buffer.slice(1, 2);
      expect(view.isView).toBe(true);
      view.close();
      expect((await buffer.read(host.stream))[1]).toBe(1);
    });

    test('of a closed buffer refuses work', async () => {
      const buffer = host.device.alloc(i32, 4);
      const view = buffer.slice(1, 2);
      buffer.close();
      expect(await failure(() => view.read(host.stream))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
      expect(await failure(() => buffer.slice(0))).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    });

    test.each([[11], [-11], [0, 11], [1.5], ['1']])('refuses the bounds %j', async (...bounds) => {
      using buffer = host.device.alloc(i32, 10);
      expect(await failure(() => buffer.slice(...(bounds as [number, number])))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
      });
    });
  });

  describe('reinterpret', () => {
    test('shows the same bytes as another dtype', async () => {
      using buffer = host.device.alloc(f32, 2);
      buffer.write(host.stream, Float32Array.of(1, -2));
      expect([...(await buffer.reinterpret(u32).read(host.stream))]).toEqual([
        0x3f800000, 0xc0000000,
      ]);
      expect(buffer.reinterpret(u16).length).toBe(4);
    });

    test('refuses a dtype whose size does not divide the bytes', async () => {
      using buffer = host.device.alloc(u8, 10);
      expect(await failure(() => buffer.reinterpret(u32))).toMatchObject({ argument: 'dtype' });
    });

    test('refuses a dtype for which the offset is not aligned', async () => {
      using buffer = host.device.alloc(u8, 10);
      expect(await failure(() => buffer.slice(2, 10).reinterpret(u64))).toMatchObject({
        argument: 'dtype',
      });
      expect(buffer.slice(2, 10).reinterpret(u16).length).toBe(4);
    });
  });

  describe('copyFrom', () => {
    test('copies between parts of one buffer that do not overlap', async () => {
      using buffer = host.device.alloc(i32, 6);
      buffer.write(host.stream, Int32Array.of(1, 2, 3, 0, 0, 0));
      buffer.slice(3).copyFrom(host.stream, buffer.slice(0, 3));
      expect([...(await buffer.read(host.stream))]).toEqual([1, 2, 3, 1, 2, 3]);
    });

    test('refuses parts of one buffer that overlap', async () => {
      using buffer = host.device.alloc(i32, 6);
      const error = await failure(() =>
        buffer.slice(1, 5).copyFrom(host.stream, buffer.slice(0, 4)),
      );
      expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'source' });
      expect(error.message).toContain('overlaps');
    });

    test('refuses another dtype, another length, and values that are not buffers', async () => {
      using buffer = host.device.alloc(i32, 6);
      using floats = host.device.alloc(f32, 6);
      using short = host.device.alloc(i32, 5);
      expect(
        (await failure(() => buffer.copyFrom(host.stream, floats as never))).message,
      ).toContain('expected dtype i32');
      expect((await failure(() => buffer.copyFrom(host.stream, short))).message).toContain(
        'slice(from, to)',
      );
      expect(
        await failure(() => buffer.copyFrom(host.stream, new Int32Array(6) as never)),
      ).toMatchObject({ argument: 'source' });
    });

    test('refuses a closed source', async () => {
      using buffer = host.device.alloc(i32, 6);
      const closed = host.device.alloc(i32, 6);
      closed.close();
      expect(await failure(() => buffer.copyFrom(host.stream, closed))).toMatchObject({
        code: 'ERR_CUDA_DISPOSED',
      });
    });

    test('copies from a buffer of another device', async () => {
      const other = await openTestDevice({ thread: host.mode }, 'cpu:5');
      try {
        const source = other.alloc(i32, 400_000);
        source.fill(other.stream, 12);
        using target = host.device.alloc(i32, 400_000);
        target.fill(host.stream, 1);
        const copied = target.copyFrom(host.stream, source);
        const read = target.read(host.stream);
        await copied;
        expect((await read).every((value) => value === 12)).toBe(true);
      } finally {
        await other.close();
      }
    });
  });

  describe('refuses', () => {
    test('an array of another dtype, with how to convert it', async () => {
      using buffer = host.device.alloc(f32, 3);
      const error = await failure(() => buffer.write(host.stream, new Float64Array(3) as never));
      expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT', argument: 'source' });
      expect(error.message).toContain('Float32Array.from(array)');
    });

    test('raw words in write, with the name of writeBits', async () => {
      using buffer = host.device.alloc(f16, 3);
      expect(
        (await failure(() => buffer.write(host.stream, new Uint16Array(3) as never))).message,
      ).toContain('writeBits');
    });

    test('values in writeBits', async () => {
      using buffer = host.device.alloc(f16, 3);
      expect(
        await failure(() => buffer.writeBits(host.stream, new Float32Array(3) as never)),
      ).toMatchObject({ argument: 'source' });
    });

    test('a plain array, with the constructor to use', async () => {
      using buffer = host.device.alloc(f32, 3);
      expect(
        (await failure(() => buffer.write(host.stream, [1, 2, 3] as never))).message,
      ).toContain('Float32Array.from(values)');
    });

    test('too few elements, with how to write a part', async () => {
      using buffer = host.device.alloc(f32, 3);
      expect(
        (await failure(() => buffer.write(host.stream, new Float32Array(2)))).message,
      ).toContain('buffer.slice(0, 2).write');
    });

    test('too many elements', async () => {
      using buffer = host.device.alloc(f32, 3);
      expect(await failure(() => buffer.write(host.stream, new Float32Array(4)))).toMatchObject({
        argument: 'source',
      });
    });

    test('to read into an array of the wrong type or length', async () => {
      using buffer = host.device.alloc(f32, 3);
      for (const into of [new Float32Array(2), new Int32Array(3), [1, 2, 3]]) {
        expect(
          await failure(() => buffer.read(host.stream, { into: into as never })),
        ).toMatchObject({ argument: 'into' });
      }
    });

    test('a target of another length or dtype, with the one that fits', async () => {
      using floats = host.device.alloc(f32, 3);
      using halves = host.device.alloc(f16, 3);
      const said = async (call: () => unknown): Promise<string> => (await failure(call)).message;
      expect(await said(() => floats.read(host.stream, { into: new Int32Array(3) as never }))).toBe(
        'into: expected a Float32Array for dtype f32, got Int32Array(3). Pass a ' +
          'Float32Array, or leave it out: a new one is made.',
      );
      expect(
        await said(() => halves.readBits(host.stream, { into: new Float32Array(3) as never })),
      ).toContain('Pass a Uint16Array, or leave it out');
      expect(
        await said(() => halves.read(host.stream, { into: new Uint16Array(3) as never })),
      ).toContain('use writeBits and readBits');
      expect(await said(() => floats.read(host.stream, new Float32Array(3) as never))).toContain(
        'Write { into }.',
      );
    });

    test('arrays that were transferred to another thread, with that reason', async () => {
      using buffer = host.device.alloc(f32, 3);
      using none = host.device.alloc(f32, 0);
      const gone = new Float32Array(3);
      const bytes = gone.buffer;
      detach(bytes);
      for (const call of [
        () => buffer.write(host.stream, gone),
        () => buffer.write(host.stream, bytes),
        () => none.write(host.stream, gone),
        () => buffer.read(host.stream, { into: gone }),
      ]) {
        const error = await failure(call);
        expect(error).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
        expect(error.message).toContain('It was detached or transferred');
      }
    });

    test('a misspelled option of read', async () => {
      using buffer = host.device.alloc(f32, 3);
      expect(
        (await failure(() => buffer.read(host.stream, { int: 1 } as never))).message,
      ).toContain("Did you mean 'into'?");
    });

    test.each([
      [u8, 256],
      [u8, -1],
      [u8, 1.5],
      [i32, 2 ** 31],
      [f32, '1'],
      [u64, 1],
      [u64, -1n],
      [i64, 2n ** 63n],
      [DTYPES.bool, 2],
      [f8e4m3, undefined],
    ] as const)('to fill %o with %s', async (dtype, value) => {
      using buffer = host.device.alloc(dtype as never, 3) as DeviceBuffer;
      expect(await failure(() => buffer.fill(host.stream, value as never))).toMatchObject({
        argument: 'value',
      });
    });

    test('a fill of 64 bits with a number, with the exact bigint to write', async () => {
      using buffer = host.device.alloc(i64, 1);
      expect((await failure(() => buffer.fill(host.stream, (2 ** 60) as never))).message).toContain(
        'Write 1152921504606846976n.',
      );
      expect((await failure(() => buffer.fill(host.stream, 0.5 as never))).message).toBe(
        'value: expected a bigint for dtype i64, got 0.5.',
      );
    });

    test.each([
      [i64, 2 ** 63, '-9223372036854775808 to 9223372036854775807'],
      [i64, -(2 ** 64), '-9223372036854775808 to 9223372036854775807'],
      [u64, -1, '0 to 18446744073709551615'],
      [u64, 2 ** 64, '0 to 18446744073709551615'],
    ] as const)(
      'a fill of %o with %s, which no bigint replaces, with the range',
      async (dtype, value, range) => {
        using buffer = host.device.alloc(dtype as never, 1) as DeviceBuffer;
        const { message } = await failure(() => buffer.fill(host.stream, value as never));
        expect(message).toContain(`It is from ${range}.`);
        expect(message).not.toContain('Write');
      },
    );

    test('a value that is not a stream', async () => {
      using buffer = host.device.alloc(f32, 3);
      for (const stream of [undefined, null, {}, host.device]) {
        expect(await failure(() => buffer.fill(stream as never, 1))).toMatchObject({
          argument: 'stream',
        });
      }
    });

    test('work after the buffer is closed, with that reason', async () => {
      const buffer = host.device.alloc(f32, 3, { label: 'weights' });
      buffer.close();
      buffer.close();
      for (const call of [
        () => buffer.fill(host.stream, 1),
        () => buffer.read(host.stream),
        () => buffer.readBits(host.stream),
        () => buffer.write(host.stream, new Float32Array(3)),
        () => buffer.reinterpret(i32),
      ]) {
        const error = await failure(call);
        expect(error.code).toBe('ERR_CUDA_DISPOSED');
        expect(error.message).toContain("'weights'");
      }
    });
  });

  test('allocated resolves to the buffer', async () => {
    using buffer = host.device.alloc(f32, 3);
    expect(await buffer.allocated()).toBe(buffer);
  });

  test('is shown with its dtype and length', () => {
    using buffer = host.device.alloc(f32, 3, { label: 'weights' });
    expect(String(buffer)).toContain("DeviceBuffer<f32>[3] 'weights'");
  });

  test('using closes it', () => {
    let kept: DeviceBuffer;
    {
      using buffer = host.device.alloc(f32, 3);
      kept = buffer;
    }
    expect(kept.isClosed).toBe(true);
  });

  test('closing it does not affect work in flight', async () => {
    const buffer = host.device.alloc(i32, 100_000);
    buffer.fill(host.stream, 4);
    const read = buffer.read(host.stream);
    buffer.close();
    // The read must not see what the memory's next buffer contains.
    using next = host.device.alloc(i32, 100_000);
    next.fill(host.stream, 5);
    expect((await read).every((value) => value === 4)).toBe(true);
  });
});
