/** When an operation has ended, and when its memory is freed. */
import { i32, u8 } from 'async-cuda/core';
import { allOf, operation, value } from 'async-cuda/ops';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';

import { queueHostWork } from '../../src/core/host-work.js';
import { FAULTING } from '../core/kernels/faulting.js';
import {
  failure,
  onCpu,
  onDevice,
  openTestDevice,
  range,
  stillPending,
  turns,
} from '../core/test-device.js';
import { LENGTH, RecordedWork } from './recorded-work.js';

onDevice('Completion and lifetime', (host) => {
  let work: RecordedWork;
  beforeAll(async () => {
    work = await RecordedWork.on(host);
  });
  afterEach(() => {
    work.taken();
  });

  test('the result of an awaited operation can be read', { tags: 'thorough' }, async () => {
    using buffer = host.device.alloc(u8, 64 << 20);
    await operation(host.device, ({ stream }) => {
      buffer.fill(stream, 7);
    });
    const values = await operation(host.device, ({ stream }) => buffer.read(stream));
    expect(values.every((byte) => byte === 7)).toBe(true);
  });

  test('turns of the event loop do not end a wait; all waits resolve', async () => {
    const { gate, held } = await work.hold();
    const stream = host.device.createStream();
    const running = held.map(() => 5).runOn(stream);
    const waits = range(3).map(() => running.then((result) => result));
    await turns(20);
    expect(await stillPending(Promise.race(waits))).toBe(true);
    await gate.open();
    expect(await Promise.all(waits)).toEqual([5, 5, 5]);
    expect(await running).toBe(5);
    stream.close();
  });

  test('an aborted wait does not affect the work and its memory', async () => {
    const { gate, held } = await work.hold();
    using result = host.device.alloc(i32, LENGTH);
    const controller = new AbortController();
    const op = held
      .andThen(() => work.make(41))
      .andThen((buffer) =>
        work.add(buffer).andThen(() =>
          operation(host.device, ({ stream }) => {
            result.copyFrom(stream, buffer);
          }),
        ),
      );
    const waited = op.run({ signal: controller.signal });
    controller.abort(new Error('enough'));
    expect((await failure(() => waited)).message).toBe('enough');
    // Other memory is allocated and written while the first is in use.
    const others = range(8).map(() => work.make(1).runOn(host.stream).value);
    await gate.open();
    expect(await work.read(result)).toBe(42);
    for (const other of others) other.close();
    expect(
      (await failure(() => value(1).run({ signal: AbortSignal.abort(new Error('before')) })))
        .message,
    ).toBe('before');
    expect(work.taken()).not.toContain('before');
  });

  test('an aborted wait for a value leaves the failure to other waits', async () => {
    const { device } = host;
    using bad = device.alloc(i32, LENGTH);
    await failure(() =>
      queueHostWork(host.stream, 'spoils', [{ buffer: bad, access: 'out' }], () =>
        Promise.reject(new Error('spoilt')),
      ),
    );
    for (const alone of [true, false]) {
      const { gate, held } = await work.hold();
      using target = device.alloc(i32, LENGTH);
      const controller = new AbortController();
      const running = held
        .andThen(() =>
          operation(device, ({ stream }) => {
            target.copyFrom(stream, bad);
          }),
        )
        .andThen(() => work.read(target))
        .runOn(device.stream);
      const waited = running.finished({ signal: controller.signal });
      const other = alone ? undefined : failure(() => running);
      controller.abort(new Error('enough'));
      expect((await failure(() => waited)).message).toBe('enough');
      await gate.open();
      await device.stream.finished();
      await turns(10);
      expect((await other)?.code).toBe(alone ? undefined : 'ERR_CUDA_UNDEFINED_CONTENTS');
      expect(host.errors.splice(0).map(({ code }) => code)).toEqual(
        alone ? ['ERR_CUDA_UNDEFINED_CONTENTS'] : [],
      );
    }
    work.taken();
  });

  test('200 awaits with pauses in between lose no wake-up', async () => {
    using buffer = host.device.alloc(i32, LENGTH);
    await work.fill(buffer, 0);
    const op = work.add(buffer);
    for (let i = 0; i < 200; i++) {
      await op;
      if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(await work.read(buffer)).toBe(200);
  });

  test('8 × 40 operations at once, each with its own result', async () => {
    const results = await Promise.all(
      range(8).map(async (lane) => {
        const seen: number[] = [];
        for (let i = 0; i < 40; i++)
          seen.push(await work.make(lane * 1000 + i).andThen((buffer) => work.read(buffer)));
        return seen;
      }),
    );
    expect(results).toEqual(range(8).map((lane) => range(40).map((i) => lane * 1000 + i)));
  });

  test('many more operations at once than there are slots', async () => {
    const ops = range(3000).map((i) => work.make(i).andThen((buffer) => work.read(buffer)));
    expect(await allOf(ops)).toEqual(range(3000));
    expect(await Promise.all(ops.slice(0, 300))).toEqual(range(300));
  });

  test('memory is freed after its last use on every stream', async () => {
    const [a, b] = [host.device.createStream(), host.device.createStream()];
    for (let i = 0; i < 50; i++) {
      const buffer = await work.make(i).runOn(a);
      const running = work.read(buffer).runOn(b);
      buffer.close();
      const other = work.make(-1).runOn(a);
      expect(await running).toBe(i);
      (await other).close();
    }
    a.close();
    b.close();
  });
});

describe('A device that is lost', () => {
  test('what is in flight rejects, and so does everything later', async () => {
    // A process cannot use a GPU again after a fault.
    if (!onCpu) return;
    const device = await openTestDevice();
    device.on('error', () => undefined);
    const module = await device.loadModule(FAULTING);
    const buffer = device.alloc(i32, LENGTH);
    const kernel = module.kernel('write_null', []);
    const fault = operation(device, ({ stream }) => {
      kernel.launch(stream, { grid: 1, block: 1 });
    });
    const beside = operation(device, ({ stream }) => buffer.read(stream));
    const [a, b] = await Promise.allSettled([fault, fault.andThen(() => beside)]);
    expect([a.status, b.status]).toEqual(['rejected', 'rejected']);
    expect(await failure(() => beside)).toMatchObject({ code: 'ERR_CUDA_DEVICE_LOST' });
    expect(() => beside.sync()).toThrow();
    await device.close();
    expect(await failure(() => beside)).toHaveProperty('code');
  });
});
