/** Random arrivals, aborts and failures. */

import * as fc from '../../../test/fast-check.js';
import { describe, expect, test, vi } from 'vitest';
import { Batcher } from './batcher.js';
import { sleep, turns, watched, withFakeClock } from './batcher.test-support.js';

withFakeClock();

/** A batch that ran: its items, its begin and end on the fake clock, and whether it failed. */
interface Ran {
  readonly items: readonly number[];
  readonly start: number;
  end: number;
  readonly error: Error | undefined;
}

describe('random arrivals, aborts and failures', () => {
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
    'every request settles once, with its own result; batches have their size, order and time',
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
