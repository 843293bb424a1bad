/** A full queue, failures, the end, and options that are refused. */

import { describe, expect, test, vi } from 'vitest';
import { CudaQueueFullError } from '../../core/index.js';
import { Batcher } from './batcher.js';
import type { BatcherOptions } from './batcher.js';
import { doubling, pass, sleep, watched, withFakeClock } from './batcher.test-support.js';

withFakeClock();

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
      'a request that would exceed the weight limit is refused; a single one is ' +
        'taken, whatever its weight',
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

    test('an aborted request leaves room in the queue', async () => {
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

  test('a function that throws counts as one that rejects', async () => {
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
  test('finishes queued requests without further delay, and refuses later ones', async () => {
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

  test('ends at once where nothing was taken, and may be called twice', async () => {
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
