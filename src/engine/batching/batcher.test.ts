import { performance as real } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers';
import { setImmediate } from 'node:timers/promises';

import * as fc from '../../../test/fast-check.js';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { CudaQueueFullError } from '../../core/index.js';
import { Batcher, ItemFailure } from './batcher.js';
import type { BatcherOptions } from './batcher.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Counts the turns of the event loop. It is taken before any clock is a fake one. */
const { nodeTiming } = real;

const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Lets results be delivered, and the batches that start then end, too. */
async function turns(): Promise<void> {
  for (let k = 0; k < 4; k++) await setImmediate();
}

/** Advances the fake clock, and lets the results of that time be delivered. */
async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
  await turns();
}

/** A batcher whose batches take `duration` and double their items, and the batches that it ran. */
function doubling(
  options: BatcherOptions,
  duration = 10,
): { batcher: Batcher<number, number>; batches: number[][] } {
  const batches: number[][] = [];
  const batcher = new Batcher(async (items: readonly number[]) => {
    batches.push([...items]);
    await sleep(duration);
    return items.map((item) => 2 * item);
  }, options);
  return { batcher, batches };
}

/** Keeps the discarded results. */
class Keeping extends Batcher<number, number> {
  readonly discarded: number[] = [];

  protected override discard(result: number): void {
    this.discarded.push(result);
  }
}

/** The state of a promise so far. */
function watched<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: number } {
  const seen: { value?: T; error?: unknown; settled: number } = { settled: 0 };
  promise.then(
    (value) => {
      seen.value = value;
      seen.settled++;
    },
    (error: unknown) => {
      seen.error = error;
      seen.settled++;
    },
  );
  return seen;
}

describe('when a batch starts', () => {
  test('at once when it is full', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 3, maxQueueDelay: 1000 });
    const results = Promise.all([1, 2, 3].map((item) => batcher.run(item)));
    expect(batches).toEqual([[1, 2, 3]]);
    await vi.advanceTimersByTimeAsync(10);
    expect(await results).toEqual([2, 4, 6]);
  });

  test('when the first request has waited for the delay, with what has come by then', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 5 });
    void batcher.run(1);
    await vi.advanceTimersByTimeAsync(4);
    void batcher.run(2);
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([[1, 2]]);
  });

  test('in the same turn with a delay of 0, joining what the turn asks for', async () => {
    const { batcher, batches } = doubling({ maxBatchSize: 8, maxQueueDelay: 0 });
    void batcher.run(1);
    void batcher.run(2);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([[1, 2]]);
  });

  test('not before one of as many as may run has ended, and then with all that waits', async () => {
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
    'eager: at once while none runs, with what the turn asks for, and beside one when the ' +
      'first has waited',
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

  test(
    'eager: where a batch fills within the delay it is waited for, ' + 'until fewer come',
    async () => {
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
    },
  );

  test('eager: with what waits once the last that ran has ended', async () => {
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

  test('one that left the queue is not waited for: the delay is that of the next', async () => {
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

  test(
    'each waits for its own oldest request, and the oldest of those that could ' + 'start is first',
    async () => {
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
    },
  );

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

test(
  'an item that fails by itself is told to its caller, and the others get ' + 'their results',
  async () => {
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
  },
);

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

  test('a signal that has aborted already takes nothing', async () => {
    const { batcher } = doubling({ maxBatchSize: 2 });
    await expect(batcher.run(1, { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow(
      'no',
    );
    expect(batcher.statistics).toMatchObject({ taken: 0, queued: 0 });
  });

  test(
    'of a batch that runs the others get their results, and the result of the one ' +
      'is discarded',
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

describe('giving out results', () => {
  /**
   * One batch of so many, whose callers each take `milliseconds` with theirs: in which turn of the
   * event loop each got its own.
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

  test('callers who take long with theirs get one in a turn', async () => {
    vi.useRealTimers();
    const found = await turnsOf(12, 2);
    expect(found).toEqual(Array.from({ length: 12 }, (_, i) => found[0]! + i));
  });

  test('quick ones get theirs in the turn after the first', async () => {
    // On the fake clock no caller takes any time.
    expect((await turnsOf(64, 0)).map((turn, _, all) => turn - all[0]!)).toEqual(
      Array.from({ length: 64 }, (_, i) => Math.min(i, 1)),
    );
  });

  test('as quickly where turns are long, with work that has nothing to do with them', async () => {
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

  test(
    'one that is aborted before its turn settles with that, and its result ' + 'is discarded',
    async () => {
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
    },
  );
});

test(
  'a discard that throws is an uncaught exception, and the others get ' + 'their results',
  async () => {
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
  },
);

describe('back-pressure', () => {
  test(
    'one request more than the queue holds is refused, with the time after which ' +
      'there is room',
    async () => {
      const { batcher } = doubling(
        { maxBatchSize: 2, maxQueueSize: 4, maxConcurrentBatches: 1 },
        40,
      );
      const first = [1, 2].map((item) => watched(batcher.run(item)));
      await pass(40);
      expect(first.map(({ value }) => value)).toEqual([2, 4]);
      const rest = [3, 4, 5, 6, 7, 8].map((item) => watched(batcher.run(item))); // 2 run, 4 wait
      const error = await batcher.run(9).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(CudaQueueFullError);
      expect(error).toMatchObject({ code: 'ERR_CUDA_QUEUE_FULL', queueSize: 4, retryAfter: 80 });
      expect((error as Error).message).toBe(
        "The batcher's queue is full: 4 requests wait, as many as its maxQueueSize allows. " +
          'Send this one again in 80 ms, or fewer at a time.',
      );
      await pass(120);
      expect(rest.map(({ value }) => value)).toEqual([6, 8, 10, 12, 14, 16]);
      expect(batcher.statistics).toEqual({
        queued: 0,
        running: 0,
        taken: 8,
        fulfilled: 8,
        failed: 0,
        aborted: 0,
        refused: 1,
        batches: 4,
        items: 8,
      });
    },
  );

  describe('by weight', () => {
    class Weighing extends Batcher<number, number> {
      protected override weightOf(item: number): number {
        return item;
      }
    }
    const held = async (items: readonly number[]): Promise<number[]> => {
      await sleep(40);
      return [...items];
    };

    test(
      'a request that would make those that wait too heavy is refused; one alone is taken, ' +
        'whatever it weighs',
      async () => {
        const batcher = new Weighing(held, {
          maxBatchSize: 1,
          maxQueueWeight: 10,
          maxConcurrentBatches: 1,
        });
        const taken = [100, 50].map((item) => watched(batcher.run(item))); // one runs, one waits
        await pass(1);
        await expect(batcher.run(1)).rejects.toMatchObject({
          code: 'ERR_CUDA_QUEUE_FULL',
          message: expect.stringContaining(
            '1 request waits, with a weight of 50, and its maxQueueWeight is 10.',
          ) as string,
        });
        await pass(40);
        taken.push(...[4, 6].map((item) => watched(batcher.run(item))));
        await expect(batcher.run(1)).rejects.toMatchObject({ code: 'ERR_CUDA_QUEUE_FULL' });
        await pass(200);
        expect(taken.map(({ value }) => value)).toEqual([100, 50, 4, 6]);
      },
    );

    test('what leaves the queue on its abort makes room', async () => {
      const batcher = new Weighing(held, {
        maxBatchSize: 1,
        maxQueueWeight: 10,
        maxConcurrentBatches: 1,
      });
      const controller = new AbortController();
      const running = watched(batcher.run(1));
      const aborted = watched(batcher.run(10, { signal: controller.signal }));
      await expect(batcher.run(5)).rejects.toMatchObject({ code: 'ERR_CUDA_QUEUE_FULL' });
      controller.abort(new Error('gone'));
      const next = watched(batcher.run(9));
      await pass(100);
      expect([running.value, aborted.error, next.value]).toEqual([1, new Error('gone'), 9]);
    });

    test.each([NaN, -1, Infinity, '1', 1n])('a weight of %s is refused', (weight) => {
      class Wrong extends Batcher<number, number> {
        protected override weightOf(): number {
          return weight as number;
        }
      }
      const batcher = new Wrong(held, { maxBatchSize: 1 });
      expect(() => batcher.run(1)).toThrow('weightOf: expected a finite number, 0 or more');
    });
  });

  test('a queue without a limit takes all', async () => {
    const { batcher } = doubling({ maxBatchSize: 10, maxQueueSize: Infinity }, 1);
    const all = Promise.all(Array.from({ length: 1000 }, (_, item) => batcher.run(item)));
    await vi.advanceTimersByTimeAsync(60);
    expect((await all).at(-1)).toBe(1998);
  });
});

describe('failures', () => {
  test('the error of a batch is that of each of its callers, and later batches run', async () => {
    let calls = 0;
    const batcher = new Batcher<number, number>(
      (items) =>
        ++calls === 1 ? Promise.reject(new Error('broken')) : Promise.resolve([...items]),
      { maxBatchSize: 2 },
    );
    const both = await Promise.allSettled([batcher.run(1), batcher.run(2)]);
    expect(both.map((end) => end.status === 'rejected' && (end.reason as Error).message)).toEqual([
      'broken',
      'broken',
    ]);
    expect(await Promise.all([batcher.run(3), batcher.run(4)])).toEqual([3, 4]);
  });

  test('a function that throws is one that rejects', async () => {
    const batcher = new Batcher<number, number>(
      () => {
        throw new Error('at once');
      },
      { maxBatchSize: 1 },
    );
    await expect(batcher.run(1)).rejects.toThrow('at once');
  });

  test.each([
    [
      'too few results',
      [1],
      'runBatch: expected 2 results, got 1. runBatch gives a result for each of its items, ' +
        'in their order.',
    ],
    [
      'no array',
      7,
      'runBatch: expected an array of 2 results, got 7. runBatch gives a result for each of ' +
        'its items, in their order.',
    ],
  ])('%s', async (_, given, message) => {
    const batcher = new Batcher<number, number>(() => Promise.resolve(given as number[]), {
      maxBatchSize: 2,
    });
    const ends = await Promise.allSettled([batcher.run(1), batcher.run(2)]);
    expect(ends.map((end) => end.status === 'rejected' && (end.reason as Error).message)).toEqual([
      message,
      message,
    ]);
  });
});

describe('closing', () => {
  test('finishes what was taken, without further delay, and refuses what comes', async () => {
    const { batcher, batches } = doubling({
      maxBatchSize: 2,
      maxQueueDelay: 1000,
      maxConcurrentBatches: 1,
    });
    const taken = [1, 2, 3].map((item) => watched(batcher.run(item)));
    const closed = watched(batcher.close());
    await expect(batcher.run(4)).rejects.toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
    await vi.advanceTimersByTimeAsync(19);
    expect(closed.settled).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(closed.settled).toBe(1);
    expect(batches).toEqual([[1, 2], [3]]);
    expect(taken.map(({ value }) => value)).toEqual([2, 4, 6]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('ends at once where nothing was taken, and may be asked for twice', async () => {
    const { batcher } = doubling({ maxBatchSize: 2 });
    const [first, second] = [batcher.close(), batcher.close()];
    expect(first).toBe(second);
    await first;
    expect(batcher.isClosed).toBe(true);
  });
});

test.each([
  [{}, 'options.maxBatchSize: expected a whole number of at least 1 (items), got undefined.'],
  [
    { maxBatchSize: 4n },
    'options.maxBatchSize: expected a whole number of at least 1 (items), got 4n.',
  ],
  [
    { maxBatchSize: 0 },
    'options.maxBatchSize: expected a whole number of at least 1 (items), got 0.',
  ],
  [
    { maxBatchSize: 1, maxQueueDelay: -1 },
    'options.maxQueueDelay: expected milliseconds, from 0 to 2147483647, got -1.',
  ],
  [
    { maxBatchSize: 1, maxQueueDelay: Infinity },
    'options.maxQueueDelay: expected milliseconds, from 0 to 2147483647, got Infinity.',
  ],
  [
    { maxBatchSize: 1, maxQueueSize: 0 },
    'options.maxQueueSize: expected a whole number of at least 1 (requests), got 0.',
  ],
  [
    { maxBatchSize: 1, maxQueueWeight: 0 },
    'options.maxQueueWeight: expected a number above 0, got 0.',
  ],
  [
    { maxBatchSize: 1, maxConcurrentBatches: 0.5 },
    'options.maxConcurrentBatches: expected a whole number of at least 1 (batches), got 0.5.',
  ],
  [{ maxBatchSize: 1, eager: 1 }, 'options.eager: expected true or false, got 1.'],
  [{ maxBatchsize: 1 }, "options: there is no option 'maxBatchsize'. Did you mean 'maxBatchSize'?"],
])('options %o are refused', (options, message) => {
  expect(() => new Batcher(() => Promise.resolve([]), options as BatcherOptions)).toThrow(message);
});

test('a signal in the place of the options is refused', () => {
  const { batcher } = doubling({ maxBatchSize: 1 });
  expect(() => batcher.run(1, new AbortController().signal as never)).toThrow('Write { signal }.');
});

/** A batch that ran: its items, its begin and end on the fake clock, and whether it failed. */
interface Ran {
  readonly items: readonly number[];
  readonly start: number;
  end: number;
  readonly error: Error | undefined;
}

describe('whatever arrives, aborts and fails', () => {
  const arrivals = fc.array(
    fc.record({
      after: fc.nat({ max: 6 }),
      abortAfter: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 60 },
  );
  const courses = fc.array(fc.record({ duration: fc.nat({ max: 30 }), fails: fc.boolean() }), {
    minLength: 1,
    maxLength: 6,
  });
  const settings = fc.record({
    maxBatchSize: fc.integer({ min: 1, max: 7 }),
    maxQueueDelay: fc.nat({ max: 12 }),
    maxQueueSize: fc.integer({ min: 1, max: 12 }),
    maxConcurrentBatches: fc.integer({ min: 1, max: 3 }),
  });

  test(
    'every request settles once, with what is its own; batches keep their size, their order ' +
      'and their time',
    { tags: 'random' },
    async () => {
      const ends = new Set<string>();
      await fc.assert(
        fc.asyncProperty(
          settings,
          arrivals,
          courses,
          fc.option(fc.nat({ max: 150 }), { nil: undefined }),
          async (options, requests, course, closeAt) => {
            const ran: Ran[] = [];
            let running = 0;
            const batcher = new Batcher(async (items: readonly number[]) => {
              const { duration, fails } = course[ran.length % course.length]!;
              const batch: Ran = {
                items: [...items],
                start: performance.now(),
                end: Infinity,
                error: fails ? new Error(`batch ${ran.length}`) : undefined,
              };
              ran.push(batch);
              expect(++running).toBeLessThanOrEqual(options.maxConcurrentBatches);
              if (duration > 0) await sleep(duration);
              running--;
              batch.end = performance.now();
              if (batch.error !== undefined) throw batch.error;
              return items.map((item) => ({ of: item }));
            }, options);

            const zero = performance.now();
            let closedAt = Infinity;
            let closed: { settled: number } | undefined;
            if (closeAt !== undefined) {
              setTimeout(() => {
                closedAt = performance.now();
                closed = watched(batcher.close());
              }, closeAt);
            }
            let at = 0;
            const seen = requests.map(({ after, abortAfter }, id) => {
              at += after;
              const request = {
                since: zero + at,
                reason: new Error(`abort ${id}`),
                abortedAt: Infinity,
                seen: undefined as ReturnType<typeof watched<{ of: number }>> | undefined,
                queuedBefore: 0,
              };
              setTimeout(() => {
                const controller = new AbortController();
                if (abortAfter !== undefined) {
                  setTimeout(() => {
                    request.abortedAt = performance.now();
                    controller.abort(request.reason);
                  }, abortAfter);
                }
                request.queuedBefore = batcher.statistics.queued;
                request.seen = watched(batcher.run(id, { signal: controller.signal }));
              }, at);
              return request;
            });
            while (vi.getTimerCount() > 0) {
              await vi.advanceTimersToNextTimerAsync();
              await turns();
            }

            const batchOf = new Map(
              ran.flatMap((batch) => batch.items.map((item) => [item, batch] as const)),
            );
            for (const [
              id,
              { seen: end, reason, abortedAt, queuedBefore, since },
            ] of seen.entries()) {
              expect(end!.settled).toBe(1);
              const batch = batchOf.get(id);
              if (end!.value !== undefined) {
                ends.add('value');
                expect(end!.value).toEqual({ of: id });
                expect(batch?.error).toBeUndefined();
              } else if (end!.error === reason) {
                ends.add(batch === undefined ? 'aborted in the queue' : 'aborted in its batch');
                expect(abortedAt).toBeLessThanOrEqual(batch?.end ?? Infinity);
              } else if (batch !== undefined) {
                ends.add('failed');
                expect(end!.error).toBe(batch.error);
              } else if (since >= closedAt) {
                ends.add('closed');
                expect(end!.error).toMatchObject({ code: 'ERR_CUDA_DISPOSED' });
              } else {
                ends.add('full');
                expect(end!.error).toMatchObject({ code: 'ERR_CUDA_QUEUE_FULL' });
                expect(queuedBefore).toBe(options.maxQueueSize);
              }
            }

            // No item is there twice, and none is out of order.
            const items = ran.flatMap((batch) => batch.items);
            expect(items).toEqual([...new Set(items)].sort((a, b) => a - b));
            for (const batch of ran) {
              expect(batch.items.length).toBeLessThanOrEqual(options.maxBatchSize);
              const due = seen[batch.items[0]!]!.since + options.maxQueueDelay;
              // It is not early, unless it was full or the batcher was closing; it is not late,
              // unless as many as may run did all the while.
              if (batch.items.length < options.maxBatchSize && batch.start < closedAt)
                expect(batch.start).toBeGreaterThanOrEqual(due);
              if (batch.start > due) {
                const moments = [due, ...ran.map(({ end }) => end)].filter(
                  (moment) => moment >= due && moment < batch.start,
                );
                for (const moment of moments) {
                  const busy = ran.filter(
                    ({ start, end }) => start <= moment && moment < end,
                  ).length;
                  expect(
                    busy,
                    `batches that run at ${moment}, when one that was due at ${due} had to ` +
                      `wait until ${batch.start}`,
                  ).toBe(options.maxConcurrentBatches);
                }
              }
            }

            expect(batcher.statistics).toMatchObject({
              queued: 0,
              running: 0,
              batches: ran.length,
              items: items.length,
            });
            const { taken, fulfilled, failed, aborted } = batcher.statistics;
            expect(fulfilled + failed + aborted).toBe(taken);
            if (closed !== undefined) expect(closed.settled).toBe(1);
            expect(vi.getTimerCount()).toBe(0);
          },
        ),
        { numRuns: 400 },
      );
      // Every possible end of a request has occurred.
      expect([...ends].sort()).toEqual([
        'aborted in its batch',
        'aborted in the queue',
        'closed',
        'failed',
        'full',
        'value',
      ]);
    },
  );
});
