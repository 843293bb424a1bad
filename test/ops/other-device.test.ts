/**
 * Operations and tensors of two devices: which are copied from one to the other, and which are
 * refused.
 */
import { f16, f32, i32, u8 } from 'async-cuda/core';
import type { Stream } from 'async-cuda/core';
import { setPolicy, SingleStream, zip } from 'async-cuda/ops';
import { arange, full, prepare, zeros } from 'async-cuda/tensor';
import type { Tensor } from 'async-cuda/tensor';
import { beforeAll, expect, test } from 'vitest';

import { onPairs } from '../core/device-pair.js';
import { failure } from '../core/test-device.js';

onPairs('Tensors of two devices', (pair) => {
  beforeAll(async () => {
    await Promise.all([prepare(pair.a, f32, i32, f16), prepare(pair.b, f32, i32, f16)]);
  });

  test('a copy on another device keeps shapes and dtypes', async () => {
    using x = await arange(pair.a, f32, 6);
    using y = await x.reshape([2, 3]).transpose().to(pair.b);
    expect([y.device === pair.b, y.shape, y.isContiguous, y.isView]).toEqual([
      true,
      [3, 2],
      true,
      false,
    ]);
    expect([...(await y.read())]).toEqual([0, 3, 1, 4, 2, 5]);
    using half = await arange(pair.a, f16, 3).andThen((each) => each.to({ core: pair.b }));
    expect([...(await half.read())]).toEqual([0, 1, 2]);
    using none = await zeros(pair.a, i32, [0]).andThen((each) => each.to(pair.b));
    expect((await none.read()).length).toBe(0);
  });

  test('a copy is ordered after earlier and before later work of both devices', async () => {
    const streams: [Stream, Stream] = [pair.a.createStream(), pair.b.createStream()];
    using x = await zeros(pair.a, i32, [1 << 16]);
    const copies: Tensor<'i32', [number]>[] = [];
    for (let i = 0; i < 10; i++) {
      const running = x
        .fill(i)
        .andThen((filled) => filled.to(pair.b))
        .runOn(streams[0]);
      const y = running.value as unknown as Tensor<'i32', [number]>;
      // Neither waits for the host: the next value is written after the copy, and the copy is
      // changed after that.
      x.fill(-1).runOn(pair.a.stream);
      y.slice([0, 1])
        .fill(100 + i)
        .runOn(streams[1]);
      copies.push(y);
      await running;
    }
    for (const [i, y] of copies.entries()) {
      const values = await y.read();
      expect([values[0], values[1], values[65535]]).toEqual([100 + i, i, i]);
      y.close();
    }
    for (const stream of streams) stream.close();
  });

  test('the copy is part of the operation, on a stream of the other policy', async () => {
    const own = pair.b.createStream({ label: 'copies' });
    setPolicy(pair.b, new SingleStream(own));
    const before = own.mark;
    using y = await full(pair.a, i32, [1 << 18], 3).andThen((x) => x.to(pair.b));
    expect(own.mark).toBeGreaterThan(before);
    setPolicy(pair.b, undefined);
    expect((await y.read())[(1 << 18) - 1]).toBe(3);
    own.close();
  });

  test('the copy back is an operation of the other device', async () => {
    using y = await arange(pair.a, i32, 100).andThen((x) => x.to(pair.b));
    using z = await y.to(pair.a);
    expect([...(await z.read())]).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(
      (
        await failure(() =>
          arange(pair.a, i32, 100)
            .andThen((x) => x.to(pair.b))
            .andThen((other) => other.to(pair.a)),
        )
      ).message,
    ).toContain('runs on the device of its tensors only');
  });

  test('copies work on a thread that blocks', () => {
    using x = arange(pair.a, f32, 5).sync();
    using y = x.to(pair.b).sync();
    expect([...y.read().sync()]).toEqual([0, 1, 2, 3, 4]);
  });

  test('tensors of another device are refused, with both names', async () => {
    using x = await zeros(pair.a, i32, [4]);
    using y = await zeros(pair.b, i32, [4]);
    const refusals = await Promise.all([
      failure(() => y.copyFrom(x)),
      failure(() => x.fill(1).runOn(pair.b.stream)),
      failure(() => zip(x.fill(1), y.fill(1))),
    ]);
    expect(refusals.map(({ message }) => message)).toEqual([
      expect.stringContaining('Copy it with to(device) first'),
      expect.stringContaining('runs on the device of its tensors only'),
      expect.stringContaining('runs on the device of its tensors only'),
    ]);
    expect((await failure(() => x.to(pair.b).capture())).message).toContain(
      'copy before the capture',
    );
    expect((await failure(() => x.to(1 as never))).message).toContain('device: expected a Device');
    // Each on its own device, at the same time.
    await Promise.all([x.fill(1), y.fill(2)]);
    expect([(await x.read())[0], (await y.read())[0]]).toEqual([1, 2]);
  });

  test('a copy that fails rejects the operation', async () => {
    const running = full(pair.a, u8, [2 ** 46], 1).runOn(pair.a.stream);
    const greedy = running.value;
    expect((await failure(() => running)).code).toBe('ERR_CUDA_OUT_OF_MEMORY');
    const error = await failure(() => greedy.slice([0, 4]).to(pair.b));
    expect(error.code).toMatch(/ERR_CUDA_(OUT_OF_MEMORY|UNDEFINED_CONTENTS)/);
    greedy.close();
  });
});
