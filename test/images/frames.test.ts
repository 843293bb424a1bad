/** Frames of videos from raw bytes. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from '../fast-check.js';
import { CudaArgumentError, CudaDisposedError, Device, u8 } from 'async-cuda';
import { CudaFormatError } from 'async-cuda/core';
import { frames, yuvToRgb } from 'async-cuda/images';
import type { VideoFrame } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { RGB, RGB_BYTES, firstValues, pieces } from './frames.test-support.js';

/** A stream of the bytes in pieces of this size. */
async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) {
    await sleep(0);
    yield bytes.subarray(at, at + size);
  }
}

onDevice('Frames', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('pieces of any size give the same frames', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 0, max: 5 }),
        fc.integer({ min: 2, max: 4 }),
        async (size, count, buffers) => {
          expect(
            await firstValues(
              frames(device, { raw: cut(pieces(count, RGB_BYTES), size), ...RGB, buffers }),
            ),
          ).toEqual(Array.from({ length: count }, (_, i) => i + 1));
        },
      ),
      { numRuns: 15 },
    );
  });

  test('a frame has its size and format, and uploads as a tensor', async () => {
    let seen = 0;
    for await (const frame of frames(device, {
      raw: Readable.from([pieces(3, RGB_BYTES)]),
      ...RGB,
    })) {
      expect([
        frame.index,
        frame.width,
        frame.height,
        frame.pixelFormat,
        frame.dtype,
        frame.shape,
      ]).toEqual([seen, 4, 2, 'rgb24', u8, [2, 4, 3]]);
      using tensor = await frame.upload();
      expect(tensor.shape).toEqual([2, 4, 3]);
      expect([...(await tensor.read())]).toEqual(new Array(RGB_BYTES).fill(++seen));
    }
    expect(seen).toBe(3);
  });

  test('copies that are not awaited have the bytes of their frame', async () => {
    const tensors: Promise<number[]>[] = [];
    for await (const frame of frames(device, {
      raw: cut(pieces(12, RGB_BYTES), 100),
      ...RGB,
      buffers: 2,
    })) {
      tensors.push(
        frame
          .upload()
          .andThen((tensor) => tensor.read())
          .run()
          .then((values) => [...new Set(values)]),
      );
    }
    expect(await Promise.all(tensors)).toEqual(Array.from({ length: 12 }, (_, i) => [i + 1]));
  });

  test('a frame is copied to an existing tensor, and ends with the next one', async () => {
    using tensor = await device.zeros(u8, [2, 4, 3]);
    let last: VideoFrame<'rgb24'> | undefined;
    let late: PromiseLike<unknown> | undefined;
    for await (const frame of frames(device, { raw: cut(pieces(2, RGB_BYTES), 7), ...RGB })) {
      await tensor.write(frame.pinned);
      expect((await tensor.read())[0]).toBe(frame.index + 1);
      if (last !== undefined) expect(() => last!.data).toThrow(CudaDisposedError);
      last = frame;
      late ??= frame.upload();
    }
    expect(await failure(() => late)).toBeInstanceOf(CudaDisposedError);
    expect((await failure(() => late)).message).toMatch(
      /^frame 0: used after the next one was requested/,
    );
    expect(() => last!.pinned).toThrow(CudaDisposedError);
  });

  test.each([
    ['gray', [6, 4, 1], 24],
    ['nv12', [9, 4], 36],
    ['yuv420p', [9, 4], 36],
    ['bgra', [6, 4, 4], 96],
    ['gray16le', [6, 4, 1], 48],
    ['rgb48le', [6, 4, 3], 144],
  ] as const)('%s is %j', async (pixelFormat, shape, bytes) => {
    let count = 0;
    for await (const frame of frames(device, {
      raw: Readable.from([pieces(2, bytes)]),
      width: 4,
      height: 6,
      pixelFormat,
    })) {
      using tensor = await frame.upload();
      expect([tensor.shape, tensor.byteLength]).toEqual([shape, bytes]);
      count++;
    }
    expect(count).toBe(2);
  });

  test('frames of video are converted to RGB', async () => {
    for await (const frame of frames(device, {
      raw: Readable.from([Uint8Array.of(235, 235, 16, 16, 128, 128)]),
      width: 2,
      height: 2,
      pixelFormat: 'nv12',
    })) {
      expect([
        ...(await frame
          .upload()
          .andThen((yuv) => yuvToRgb(yuv, { format: 'nv12' }))
          .andThen((rgb) => rgb.read())),
      ]).toEqual([255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0]);
    }
  });

  test('at most one frame is read ahead', async () => {
    let given = 0;
    async function* source(): AsyncGenerator<Uint8Array> {
      for (;;) {
        await sleep(0);
        yield new Uint8Array(RGB_BYTES).fill(++given);
      }
    }
    for await (const frame of frames(device, { raw: source(), ...RGB })) {
      await sleep(5);
      expect(given).toBeLessThanOrEqual(frame.index + 2);
      if (frame.index === 5) break;
    }
    await sleep(5);
    expect(given).toBeLessThanOrEqual(7);
  });

  test('leaving a loop ends a stream that has no more data', async () => {
    const readable = new Readable({
      read() {
        /* There is no data. */
      },
    });
    readable.push(pieces(1, RGB_BYTES));
    for await (const frame of frames(device, { raw: readable, ...RGB })) {
      expect(frame.index).toBe(0);
      break;
    }
    expect(readable.destroyed).toBe(true);
    async function* hanging(): AsyncGenerator<Uint8Array> {
      yield pieces(1, RGB_BYTES);
      await new Promise<never>(() => undefined);
    }
    for await (const frame of frames(device, { raw: hanging(), ...RGB })) {
      expect(frame.index).toBe(0);
      break;
    }
  });

  test('a partial last frame is an error, after the frames before it', async () => {
    const seen: number[] = [];
    const error = await failure(async () => {
      for await (const frame of frames(device, {
        raw: Readable.from([pieces(3, RGB_BYTES).subarray(0, 60)]),
        ...RGB,
      }))
        seen.push(frame.index);
    });
    expect(seen).toEqual([0, 1]);
    expect(error).toBeInstanceOf(CudaFormatError);
    expect(error.message).toBe(
      'frames: options.raw: it ends within frame 2, after 12 of its 24 bytes (4 × 2 of ' +
        'rgb24). Is that its size and its pixel format?',
    );
  });

  test('errors of the stream are passed on, and text is refused', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield pieces(1, RGB_BYTES);
      await sleep(0);
      throw new Error('the network is gone');
    }
    expect(
      await failure(() => firstValues(frames(device, { raw: failing(), ...RGB }))),
    ).toMatchObject({ message: 'the network is gone' });
    expect(
      await failure(() =>
        firstValues(frames(device, { raw: Readable.from(['text']) as never, ...RGB })),
      ),
    ).toBeInstanceOf(CudaArgumentError);
  });

  test('a signal ends the iteration, also while it waits', async () => {
    const controller = new AbortController();
    const readable = new Readable({
      read() {
        /* There is no data. */
      },
    });
    const waiting = failure(() =>
      firstValues(frames(device, { raw: readable, ...RGB, signal: controller.signal })),
    );
    await sleep(5);
    controller.abort(new Error('enough'));
    expect(await waiting).toMatchObject({ message: 'enough' });
    expect(readable.destroyed).toBe(true);
    expect(
      await failure(() =>
        firstValues(
          frames(device, {
            raw: Readable.from([pieces(1, RGB_BYTES)]),
            ...RGB,
            signal: controller.signal,
          }),
        ),
      ),
    ).toMatchObject({ message: 'enough' });
  });

  test('arguments are checked at the call', () => {
    const raw = Readable.from([]);
    const calls: (() => unknown)[] = [
      () => frames(device, { raw, ...RGB, pixelFormat: 'rgb' as never }),
      () => frames(device, { raw, ...RGB, pixelFormat: 'i420' as never }),
      () => frames(device, { raw, ...RGB, width: 0 }),
      () => frames(device, { raw, ...RGB, width: 3, pixelFormat: 'nv12' }),
      () => frames(device, { raw, ...RGB, buffers: 1 }),
      () => frames(device, { raw: 'film.mp4' as never, ...RGB }),
      () => frames(device, { raw, ...RGB, args: [] } as never),
      () => frames(device, undefined as never),
      () => frames(device, { input: '', pixelFormat: 'gray' }),
      () => frames(device, { input: 'a', pixelFormat: 'gray', width: 4 }),
      () => frames(device, { input: 'a', pixelFormat: 'gray', args: '-an' as never }),
      () => frames(device, { input: 'a', pixelFormat: 'gray', signal: 3 as never }),
    ];
    for (const call of calls) expect(call).toThrow(CudaArgumentError);
    expect(() => frames(device, { raw, ...RGB, pixelFormat: 'i420' as never })).toThrow(/yuv420p/);
  });
});
