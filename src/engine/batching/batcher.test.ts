/** When batches start, and what becomes of their results. */
import { performance as real } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers';
import { setImmediate } from 'node:timers/promises';

import { describe, expect, test, vi } from 'vitest';
import { Batcher, ItemFailure } from './batcher.js';
import type { BatcherOptions } from './batcher.js';
import {
  Keeping,
  doubling,
  pass,
  sleep,
  turns,
  watched,
  withFakeClock,
} from './batcher.test-support.js';

withFakeClock();

/** Counts the turns of the event loop. It is taken before any clock is a fake one. */
const { nodeTiming } = real;

describe('when a batch starts', () => {
  test('at once when it is full', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 3, maxQueueDelay: 1000 });
    const results = Promise.all([1, 2, 3].map((item) => batcher.run(item)));
    expect(batches).toEqual([[1, 2, 3]]);
    await vi.advanceTimersByTimeAsync(10);
    expect(await results).toEqual([2, 4, 6]);
  });

  test('when the first request has waited for the delay, with all that have arrived', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 5 });
    void batcher.run(1);
    await vi.advanceTimersByTimeAsync(4);
    void batcher.run(2);
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([[1, 2]]);
  });

  test('in the same turn with a delay of 0, with all requests of the turn', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 0 });
    void batcher.run(1);
    void batcher.run(2);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([[1, 2]]);
  });

  test('when one of the permitted number has ended, with all requests that wait', async () => {
    const { batcher, batches } = doubling(
      { maxBatchSize: 4, maxQueueDelay: 1, maxConcurrentBatches: 1 },
      20,
    );
    void batcher.run(1);
    await vi.advanceTimersByTimeAsync(1);
    for (const item of [2, 3, 4, 5, 6]) void batcher.run(item);
    await vi.advanceTimersByTimeAsync(19);
    expect(batches).toEqual([[1]]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([[1], [2, 3, 4, 5]]);
    await vi.advanceTimersByTimeAsync(20);
    expect(batches).toEqual([[1], [2, 3, 4, 5], [6]]);
  });

  test(
    'eager: at once while none runs, with all requests of the turn, and beside ' +
      'another one when the first request has waited',
    async () => {
      const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 5, eager: true }, 20);
      void batcher.run(1);
      void batcher.run(2);
      // Requests of other calls in the same turn of the event loop join the batch.
      await Promise.resolve();
      void batcher.run(0);
      expect(batches).toEqual([]);
      await setImmediate();
      expect(batches).toEqual([[1, 2, 0]]);
      void batcher.run(3);
      await vi.advanceTimersByTimeAsync(4);
      void batcher.run(4);
      expect(batches).toEqual([[1, 2, 0]]);
      await vi.advanceTimersByTimeAsync(1);
      expect(batches).toEqual([
        [1, 2, 0],
        [3, 4],
      ]);
      expect(batcher.statistics.running).toBe(2);
      await pass(20);
      expect(batcher.statistics.running).toBe(0);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  test('eager: when it is full, as long as requests fill a batch within the delay', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 4, maxQueueDelay: 10, eager: true }, 1);
    let item = 0;
    /** Sends a request every `every` milliseconds; no batch runs when the next one comes. */
    const come = async (count: number, every: number): Promise<number[]> => {
      const before = batches.length;
      for (let i = 0; i < count; i++) {
        void batcher.run(item++);
        await setImmediate();
        await vi.advanceTimersByTimeAsync(every);
      }
      return batches.slice(before).map(({ length }) => length);
    };
    expect(await come(10, 5)).toEqual(Array.from({ length: 10 }, () => 1));
    // Ten come in the delay. The first ones start at once, until the rate is known.
    const dense = await come(40, 1.2);
    expect(dense.slice(-6)).toEqual([4, 4, 4, 4, 4, 4]);
    await pass(20);
    expect((await come(5, 5)).slice(-4)).toEqual([1, 1, 1, 1]);
    await pass(20);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('eager: with all requests that wait, once the last batch has ended', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 50, eager: true }, 20);
    void batcher.run(1);
    await setImmediate();
    await vi.advanceTimersByTimeAsync(10);
    for (const item of [2, 3]) void batcher.run(item);
    await vi.advanceTimersByTimeAsync(9);
    expect(batches).toEqual([[1]]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([[1], [2, 3]]);
  });

  test('eager: a close, or an abort, before that turn is over', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 50, eager: true }, 20);
    const controller = new AbortController();
    const gone = watched(batcher.run(1, { signal: controller.signal }));
    controller.abort(new Error('gone'));
    await setImmediate();
    expect(batches).toEqual([]);
    expect(gone.error).toEqual(new Error('gone'));
    void batcher.run(2);
    const closed = watched(batcher.close());
    expect(batches).toEqual([[2]]);
    await pass(20);
    expect(closed.settled).toBe(1);
    expect(batches).toEqual([[2]]);
  });

  test('after the delay of the next request, where the first has left the queue', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 5 });
    const controller = new AbortController();
    const first = watched(batcher.run(1, { signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(3);
    void batcher.run(2);
    controller.abort(new Error('gone'));
    await vi.advanceTimersByTimeAsync(4);
    expect(first.error).toEqual(new Error('gone'));
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([[2]]);
  });
});

describe('groups', () => {
  /** Has a group of even and a group of odd numbers. */
  class Parity extends Batcher<number, number> {
    readonly batches: number[][] = [];
    constructor(options: BatcherOptions) {
      super(async (items) => {
        this.batches.push([...items]);
        await sleep(10);
        return items.map((item) => 2 * item);
      }, options);
    }

    protected override groupOf(item: number): number {
      return item % 2;
    }
  }

  test('a batch holds requests of one of them, and is full by itself', async () => {
    const batcher = new Parity({ maxBatchSize: 2, maxQueueDelay: 100 });
    const results = Promise.all([1, 2, 3, 4, 6].map((item) => batcher.run(item)));
    expect(batcher.batches).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(batcher.statistics.queued).toBe(1);
    await vi.advanceTimersByTimeAsync(110);
    expect(batcher.batches).toEqual([[1, 3], [2, 4], [6]]);
    expect(await results).toEqual([2, 4, 6, 8, 12]);
  });

  test('each waits for its own oldest request; the oldest that can start is first', async () => {
    const batcher = new Parity({ maxBatchSize: 4, maxQueueDelay: 5, maxConcurrentBatches: 1 });
    void batcher.run(1);
    await vi.advanceTimersByTimeAsync(3);
    void batcher.run(2);
    await vi.advanceTimersByTimeAsync(2);
    expect(batcher.batches).toEqual([[1]]);
    for (const item of [3, 5, 7, 9]) void batcher.run(item);
    // A full group does not start before one that has waited longer.
    await vi.advanceTimersByTimeAsync(10);
    expect(batcher.batches).toEqual([[1], [2]]);
    await vi.advanceTimersByTimeAsync(10);
    expect(batcher.batches).toEqual([[1], [2], [3, 5, 7, 9]]);
  });

  test('with a delay of 0 all of a turn start, and a close starts all', async () => {
    const batcher = new Parity({ maxBatchSize: 4, maxQueueDelay: 0 });
    for (const item of [1, 2, 3]) void batcher.run(item);
    await vi.advanceTimersByTimeAsync(0);
    expect(batcher.batches).toEqual([[1, 3], [2]]);
    const closing = new Parity({ maxBatchSize: 4, maxQueueDelay: 1000 });
    for (const item of [1, 2]) void closing.run(item);
    const closed = closing.close();
    expect(closing.batches).toEqual([[1], [2]]);
    await vi.advanceTimersByTimeAsync(10);
    await closed;
  });
});

test('an item that fails by itself rejects its request; the others get their results', async () => {
  const batcher = new Batcher(
    (items: readonly number[]) =>
      Promise.resolve(
        items.map((item) =>
          item < 0 ? new ItemFailure(new RangeError(`${item} is negative`)) : Math.sqrt(item),
        ),
      ),
    { maxBatchSize: 3 },
  );
  const results = await Promise.allSettled([4, -1, 9].map((item) => batcher.run(item)));
  expect(results).toEqual([
    { status: 'fulfilled', value: 2 },
    { status: 'rejected', reason: new RangeError('-1 is negative') },
    { status: 'fulfilled', value: 3 },
  ]);
  expect(batcher.statistics).toMatchObject({ batches: 1, fulfilled: 2, failed: 1 });
});

describe('aborting', () => {
  test('a queue that became empty keeps no timer', () => {
    const { batcher } = doubling({ maxBatchSize: 2 });
    const controller = new AbortController();
    const gone = watched(batcher.run(1, { signal: controller.signal }));
    expect(vi.getTimerCount()).toBe(1);
    controller.abort();
    expect(vi.getTimerCount()).toBe(0);
    expect(gone.settled).toBe(0); // promises settle after the call
  });

  test('a request whose signal has aborted already is not queued', async () => {
    const { batcher } = doubling({ maxBatchSize: 2 });
    await expect(batcher.run(1, { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow(
      'no',
    );
    expect(batcher.statistics).toMatchObject({ taken: 0, queued: 0 });
  });

  test(
    'the other requests of a running batch get their results, and that of the ' +
      'aborted one is discarded',
    async () => {
      const batcher = new Keeping(
        async (items) => {
          await sleep(10);
          return items.map((item) => 2 * item);
        },
        { maxBatchSize: 2 },
      );
      const controller = new AbortController();
      const aborted = watched(batcher.run(1, { signal: controller.signal }));
      const other = watched(batcher.run(2));
      await vi.advanceTimersByTimeAsync(5);
      controller.abort(new Error('gone'));
      await vi.advanceTimersByTimeAsync(0);
      expect(aborted.error).toEqual(new Error('gone'));
      await pass(5);
      expect(other.value).toBe(4);
      expect(batcher.discarded).toEqual([2]);
      expect(batcher.statistics).toMatchObject({ aborted: 1, fulfilled: 1, running: 0 });
    },
  );

  test('no listener remains on a signal that outlives the request', async () => {
    const { batcher } = doubling({ maxBatchSize: 1 });
    const { signal } = new AbortController();
    const removed = vi.spyOn(signal, 'removeEventListener');
    const added = vi.spyOn(signal, 'addEventListener');
    const result = batcher.run(1, { signal });
    await vi.advanceTimersByTimeAsync(10);
    await result;
    expect(removed).toHaveBeenCalledTimes(1);
    expect(removed.mock.calls[0]![1]).toBe(added.mock.calls[0]![1]);
  });
});

describe('the delivery of results', () => {
  /**
   * Runs one batch of so many requests, each of whose callers takes `milliseconds` for its result.
   * Returns the turn of the event loop in which each was delivered.
   */
  async function turnsOf(size: number, milliseconds: number): Promise<number[]> {
    const batcher = new Batcher((items: readonly number[]) => Promise.resolve(items), {
      maxBatchSize: size,
    });
    const found: number[] = [];
    // Immediates that are set while immediates run are called in the next turn.
    await setImmediate();
    const results = await Promise.all(
      Array.from({ length: size }, async (_, item) => {
        const result = await batcher.run(item);
        found.push(nodeTiming.uvMetricsInfo.loopCount);
        for (const begun = performance.now(); performance.now() - begun < milliseconds;);
        return result;
      }),
    );
    expect(results).toEqual(Array.from({ length: size }, (_, item) => item));
    return found;
  }

  test('is one result in a turn where callers take long', async () => {
    vi.useRealTimers();
    const found = await turnsOf(12, 2);
    expect(found).toEqual(Array.from({ length: 12 }, (_, i) => found[0]! + i));
  });

  test('is the turn after the first for all results where callers are quick', async () => {
    // On the fake clock no caller takes any time.
    expect((await turnsOf(64, 0)).map((turn, _, all) => turn - all[0]!)).toEqual(
      Array.from({ length: 64 }, (_, i) => Math.min(i, 1)),
    );
  });

  test('is as quick where other work makes the turns long', async () => {
    vi.useRealTimers();
    let isDone = false;
    const work = (): void => {
      if (isDone) return;
      for (const begun = performance.now(); performance.now() - begun < 3;);
      nextTurn(work);
    };
    work();
    const found = await turnsOf(64, 0).finally(() => {
      isDone = true;
    });
    // 64 turns would be 200 ms. V8's compilation in the first run is allowed for.
    expect(found.at(-1)! - found[0]!).toBeLessThan(8);
  });

  test(
    'the next batch starts before, those that end meanwhile are delivered later, and close() ' +
      'waits for the last',
    async () => {
      const log: string[] = [];
      const batcher = new Batcher(
        async (items: readonly number[]) => {
          log.push(`run ${items.join()}`);
          await Promise.resolve();
          return items;
        },
        { maxBatchSize: 2, maxConcurrentBatches: 1 },
      );
      for (const item of [1, 2, 3, 4, 5])
        void batcher.run(item).then(() => log.push(`got ${item}`));
      await batcher.close().then(() => log.push('closed'));
      expect(log).toEqual([
        'run 1,2',
        'run 3,4',
        'got 1',
        'run 5',
        'got 2',
        'got 3',
        'got 4',
        'got 5',
        'closed',
      ]);
    },
  );

  test('a request that is aborted before its turn rejects; its result is discarded', async () => {
    const batcher = new Keeping((items) => Promise.resolve(items), { maxBatchSize: 2 });
    const controller = new AbortController();
    const first = batcher.run(1);
    const second = watched(batcher.run(2, { signal: controller.signal }));
    await first;
    expect(batcher.statistics).toMatchObject({ running: 0, fulfilled: 1, aborted: 0 });
    controller.abort(new Error('gone'));
    await turns();
    expect(second).toEqual({ error: new Error('gone'), settled: 1 });
    expect(batcher.discarded).toEqual([2]);
  });
});

test('a discard that throws is an uncaught exception; the others get their results', async () => {
  class Throwing extends Batcher<number, number> {
    protected override discard(): void {
      throw new Error('in discard');
    }
  }
  const batcher = new Throwing(
    async (items) => {
      await sleep(10);
      return items;
    },
    { maxBatchSize: 2 },
  );
  const controller = new AbortController();
  const aborted = watched(batcher.run(1, { signal: controller.signal }));
  const other = watched(batcher.run(2));
  const uncaught: unknown[] = [];
  const listeners = process.listeners('uncaughtException');
  process
    .removeAllListeners('uncaughtException')
    .on('uncaughtException', (error) => uncaught.push(error));
  try {
    controller.abort(new Error('gone'));
    await pass(10);
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
  }
  expect(uncaught).toEqual([new Error('in discard')]);
  expect([aborted.error, other.value]).toEqual([new Error('gone'), 2]);
});
