/** What eager methods return: work that has been queued, awaited or not. */
import { f32, i32, u8 } from 'async-cuda/core';
import type { Pending } from 'async-cuda/core';
import { beforeAll, describe, expect, test } from 'vitest';

import { gc } from './garbage.js';
import { WAITING } from './kernels/waiting.js';
import { Gate, failure, onDevice, range, stillPending, turns } from './test-device.js';

onDevice('Pending', (host) => {
  let gate: Gate;

  beforeAll(async () => {
    gate = await Gate.of(await host.load(WAITING));
  });

  test('resolves to undefined for work without a result', async () => {
    using buffer = host.device.alloc(f32, 1);
    expect(await buffer.fill(host.stream, 1)).toBeUndefined();
  });

  test('makes no fence until it is awaited', async () => {
    using buffer = host.device.alloc(f32, 1);
    await buffer.fill(host.stream, 1);
    const before = host.stream.slot.issued;
    const pending = buffer.fill(host.stream, 2);
    await turns(2);
    expect(host.stream.slot.issued).toBe(before);
    await pending;
    expect(host.stream.slot.issued).toBe(before + 1);
  });

  test('several awaited at once share one fence', async () => {
    using buffer = host.device.alloc(f32, 1);
    await buffer.fill(host.stream, 1);
    const before = host.stream.slot.issued;
    await Promise.all(
      [
        buffer.fill(host.stream, 2),
        buffer.fill(host.stream, 3),
        buffer.fill(host.stream, 4),
      ].reverse(),
    );
    expect(host.stream.slot.issued).toBe(before + 1);
  });

  test('resolves to the same value when awaited again', async () => {
    using buffer = host.device.alloc(f32, 1);
    buffer.fill(host.stream, 6);
    const read = buffer.read(host.stream);
    const first = await read;
    buffer.fill(host.stream, 7);
    const second = await read;
    expect(second).toBe(first);
    expect(second[0]).toBe(6);
  });

  test('resolves when awaited long after its work is done', async () => {
    using buffer = host.device.alloc(f32, 1);
    const pending = buffer.fill(host.stream, 1);
    await host.stream.finished();
    await turns(5);
    await pending;
  });

  test('then, catch and finally work as a promise’s', async () => {
    using buffer = host.device.alloc(f32, 1);
    const order: string[] = [];
    const value = await buffer
      .fill(host.stream, 1)
      .finally(() => {
        order.push('finally');
      })
      .then(() => 'value');
    expect([value, ...order]).toEqual(['value', 'finally']);
    expect(await buffer.fill(host.stream, 1).catch(() => 'caught')).toBeUndefined();
  });

  test('catch receives the failure', async () => {
    const buffer = host.device.alloc(f32, 2 ** 48);
    const caught = await buffer.fill(host.stream, 1).catch((error: unknown) => error);
    expect(caught).toBeInstanceOf(Error);
    buffer.close();
    await turns(4);
    host.errors.length = 0;
  });

  test('works with Promise.all, race and allSettled', async () => {
    using buffer = host.device.alloc(f32, 2);
    const [none, values] = await Promise.all([
      buffer.fill(host.stream, 3),
      buffer.read(host.stream),
    ]);
    expect(none).toBeUndefined();
    expect([...values]).toEqual([3, 3]);
    expect((await Promise.race([buffer.read(host.stream)]))[0]).toBe(3);
    expect((await Promise.allSettled([buffer.fill(host.stream, 1)]))[0]!.status).toBe('fulfilled');
  });

  test('is awaited when an async function returns it', async () => {
    using buffer = host.device.alloc(f32, 2);
    buffer.fill(host.stream, 5);
    const read = (async () => buffer.read(host.stream))();
    expect([...(await read)]).toEqual([5, 5]);
  });

  describe('wait', () => {
    test('without options is as awaiting', async () => {
      using buffer = host.device.alloc(f32, 2);
      buffer.fill(host.stream, 5);
      expect((await buffer.read(host.stream).finished())[1]).toBe(5);
    });

    test('rejects with the signal’s reason, and the work goes on', async () => {
      const hold = (await host.load(WAITING)).kernel('hold');
      using buffer = host.device.alloc(i32, 1);
      buffer.fill(host.stream, 1);
      const pending = hold.launch(host.stream, { grid: 1, block: 1 }, buffer);
      const controller = new AbortController();
      const waited = pending.finished({ signal: controller.signal });
      expect(await stillPending(waited)).toBe(true);
      const reason = new Error('enough');
      controller.abort(reason);
      await expect(waited).rejects.toBe(reason);
      await gate.open();
      await pending;
      await gate.shut();
      expect((await buffer.read(host.stream))[0]).toBe(2);
    });

    test('rejects at once for a signal that was aborted before', async () => {
      using buffer = host.device.alloc(f32, 1);
      const error = await failure(() =>
        buffer.fill(host.stream, 1).finished({ signal: AbortSignal.abort() }),
      );
      expect(error.name).toBe('AbortError');
    });

    test('rejects with a TimeoutError for AbortSignal.timeout', async () => {
      const hold = (await host.load(WAITING)).kernel('hold');
      using buffer = host.device.alloc(i32, 1);
      const pending = hold.launch(host.stream, { grid: 1, block: 1 }, buffer);
      const error = await failure(() => pending.finished({ signal: AbortSignal.timeout(10) }));
      expect(error.name).toBe('TimeoutError');
      await gate.open();
      await pending;
      await gate.shut();
    });

    test('rejects with an AbortError for a reason that is not an Error', async () => {
      using buffer = host.device.alloc(f32, 1);
      const error = await failure(() =>
        buffer.fill(host.stream, 1).finished({ signal: AbortSignal.abort('stop') }),
      );
      expect(error.name).toBe('AbortError');
      expect(error.message).toContain('stop');
    });

    test('an abort after the work is done changes nothing', async () => {
      using buffer = host.device.alloc(f32, 1);
      const controller = new AbortController();
      await buffer.fill(host.stream, 1).finished({ signal: controller.signal });
      controller.abort();
      await turns(2);
    });

    test('leaves no listener on the signal', async () => {
      using buffer = host.device.alloc(f32, 1);
      const { signal } = new AbortController();
      let listeners = 0;
      const add = signal.addEventListener.bind(signal);
      const remove = signal.removeEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
      signal.removeEventListener = (...args: Parameters<typeof remove>) => (
        listeners--,
        remove(...args)
      );
      for (let i = 0; i < 20; i++) await buffer.fill(host.stream, i).finished({ signal });
      expect(listeners).toBe(0);
    });

    test('refuses a value that is not an AbortSignal', async () => {
      using buffer = host.device.alloc(f32, 1);
      expect(
        await failure(() => buffer.fill(host.stream, 1).finished({ signal: {} as never })),
      ).toMatchObject({ argument: 'signal' });
    });

    test('refuses an option that does not exist', async () => {
      using buffer = host.device.alloc(f32, 1);
      expect(
        await failure(() => buffer.fill(host.stream, 1).finished({ sginal: undefined } as never)),
      ).toMatchObject({ code: 'ERR_CUDA_INVALID_ARGUMENT' });
    });
  });

  describe('an aborted wait', () => {
    const TOO_MUCH = 2 ** 48;

    /** Holds the stream until the returned function is called. */
    function hold(): () => Promise<void> {
      let goOn!: () => void;
      const held = host.stream.call(() => new Promise<void>((resolve) => (goOn = resolve)));
      return async () => {
        while ((goOn as unknown) === undefined) await turns(1);
        goOn();
        await held;
      };
    }

    async function told(): Promise<string[]> {
      await host.stream.finished();
      await turns(5);
      return host.errors.splice(0).map((error) => error.message);
    }

    test.each([
      [
        'an operation',
        (buffer: ReturnType<typeof host.device.alloc<'f32'>>) => buffer.fill(host.stream, 1),
      ],
      [
        'a read',
        (buffer: ReturnType<typeof host.device.alloc<'f32'>>) =>
          buffer.slice(0, 4).read(host.stream),
      ],
      [
        'a large read',
        (buffer: ReturnType<typeof host.device.alloc<'f32'>>) =>
          buffer.slice(0, 1 << 16).read(host.stream),
      ],
    ])('leaves a failure that comes later to the error event: of %s', async (_, queue) => {
      await told();
      const release = hold();
      using buffer = host.device.alloc(f32, TOO_MUCH, { label: 'huge' });
      buffer.allocated().catch(() => undefined);
      const pending = queue(buffer);
      const controller = new AbortController();
      const waited = failure(() => pending.finished({ signal: controller.signal }));
      expect(await stillPending(waited)).toBe(true);
      controller.abort();
      expect((await waited).name).toBe('AbortError');
      await release();
      const messages = await told();
      expect(messages.length).toBe(1);
      expect(messages[0]).toContain("'huge'");
    });

    test('leaves a failure that came before the abort to the error event', async () => {
      await told();
      const gated = (await host.load(WAITING)).kernel('hold');
      using held = host.device.alloc(i32, 1);
      using buffer = host.device.alloc(f32, TOO_MUCH, { label: 'huge' });
      buffer.allocated().catch(() => undefined);
      gated.launch(host.stream, { grid: 1, block: 1 }, held);
      const controller = new AbortController();
      const waited = failure(() =>
        buffer.fill(host.stream, 1).finished({ signal: controller.signal }),
      );
      expect(await stillPending(waited, 50)).toBe(true);
      expect(host.errors).toEqual([]);
      controller.abort();
      await waited;
      await turns(5);
      expect(host.errors.splice(0).map((error) => error.code)).toEqual([
        'ERR_CUDA_UNDEFINED_CONTENTS',
      ]);
      await gate.open();
      expect(await told()).toEqual([]);
      await gate.shut();
    });

    test('leaves the failure to other waits for the same work, before or after', async () => {
      await told();
      for (const again of [false, true]) {
        const release = hold();
        using buffer = host.device.alloc(f32, TOO_MUCH);
        buffer.allocated().catch(() => undefined);
        const pending = buffer.fill(host.stream, 1);
        const controller = new AbortController();
        const before = again ? undefined : failure(() => pending);
        const waited = failure(() => pending.finished({ signal: controller.signal }));
        await stillPending(waited, 5);
        controller.abort();
        expect((await waited).name).toBe('AbortError');
        const other = before ?? failure(() => pending);
        await release();
        expect(await other).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
        expect(await told()).toEqual([]);
      }
    });

    test('with a signal that was aborted before does not count as a wait', async () => {
      await told();
      using buffer = host.device.alloc(f32, TOO_MUCH, { label: 'huge' });
      buffer.allocated().catch(() => undefined);
      const pending = buffer.fill(host.stream, 1);
      expect((await failure(() => pending.finished({ signal: AbortSignal.abort() }))).name).toBe(
        'AbortError',
      );
      expect((await told()).length).toBe(1);
      expect(await failure(() => pending)).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
      expect(await told()).toEqual([]);
    });
  });

  describe('an AbortSignal', () => {
    test.each(['stream.finished', 'event.finished', 'device.finished'] as const)(
      'stops %s',
      async (what) => {
        const hold = (await host.load(WAITING)).kernel('hold');
        using buffer = host.device.alloc(i32, 1);
        hold.launch(host.stream, { grid: 1, block: 1 }, buffer);
        using event = host.stream.record();
        const signal = AbortSignal.timeout(10);
        const call = {
          'stream.finished': host.stream,
          'event.finished': event,
          'device.finished': host.device,
        }[what];
        expect((await failure(() => call.finished({ signal }))).name).toBe('TimeoutError');
        await gate.open();
        await host.stream.finished();
        await gate.shut();
      },
    );
  });

  describe('a failure that is not awaited', () => {
    test('goes to the device’s error event, once', async () => {
      const buffer = host.device.alloc(f32, 2 ** 48, { label: 'huge' });
      await host.stream.finished();
      await turns(4);
      const errors = host.errors.splice(0);
      expect(errors.map((error) => error.code)).toEqual(['ERR_CUDA_OUT_OF_MEMORY']);
      expect(errors[0]!.message).toContain('huge');
      buffer.close();
    });

    test('that is awaited in time does not go to the event', async () => {
      const buffer = host.device.alloc(f32, 2 ** 48);
      expect(await failure(() => buffer.allocated())).toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
      });
      await turns(4);
      buffer.close();
      expect(host.errors).toEqual([]);
    });

    test('that is awaited after it went to the event still rejects', async () => {
      const buffer = host.device.alloc(f32, 2 ** 48);
      await host.stream.finished();
      await turns(4);
      expect(host.errors.splice(0).length).toBe(1);
      expect(await failure(() => buffer.allocated())).toMatchObject({
        code: 'ERR_CUDA_OUT_OF_MEMORY',
      });
      buffer.close();
    });
  });
});

onDevice('Many failures', (host) => {
  /** Copies of what was never allocated. */
  function failing(count: number): { copies: Pending[]; close: () => void } {
    const missing = host.device.alloc(u8, 2 ** 46, { label: 'missing' });
    const target = host.device.alloc(u8, 16, { label: 'target' });
    const copies = range(count).map(() => target.copyFrom(host.stream, missing.slice(0, 16)));
    return {
      copies,
      close: () => {
        for (const buffer of [missing, target]) buffer.close();
      },
    };
  }

  test('rejects each late wait with its full error', async () => {
    const { copies, close } = failing(4000);
    await host.stream.finished();
    await turns(5);
    for (const [i, copy] of copies.entries()) {
      const error = await failure(() => copy);
      if (i % 500 !== 0) continue;
      expect(error).toMatchObject({
        name: 'CudaError',
        code: 'ERR_CUDA_UNDEFINED_CONTENTS',
        cause: { name: 'CudaOutOfMemoryError' },
      });
      expect(error.message).toContain("alloc u8[70368744177664] 'missing'");
    }
    close();
    // By then none of them had been awaited, and neither had the allocation.
    expect(host.errors.splice(0).length).toBe(4001);
  });

  test('take little memory', { tags: 'thorough' }, async () => {
    const fail = async (rounds: number): Promise<void> => {
      for (let i = 0; i < rounds; i++) {
        const { copies, close } = failing(100);
        await Promise.allSettled(copies);
        close();
        await host.stream.finished();
      }
    };
    const heap = async (): Promise<number> => {
      for (let i = 0; i < 4; i++) {
        gc();
        await turns(2);
      }
      return process.memoryUsage().heapUsed;
    };
    await fail(20);
    const before = await heap();
    await fail(50);
    expect(((await heap()) - before) / 5000).toBeLessThan(1000);
  });

  test(
    'of an operation that is awaited are kept, however many others fail',
    { tags: 'thorough' },
    async () => {
      const {
        copies: [first],
        close,
      } = failing(1);
      // As a wait that continues does.
      host.device.runtime.expect((first as unknown as { root: number }).root);
      for (let i = 0; i < 170; i++) {
        const { copies, close } = failing(100);
        await Promise.allSettled(copies);
        close();
      }
      expect(await failure(() => first!)).toMatchObject({ code: 'ERR_CUDA_UNDEFINED_CONTENTS' });
      close();
      host.errors.splice(0);
    },
  );
});
