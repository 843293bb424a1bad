/** What the tests of the batcher share. */
import { setImmediate } from 'node:timers/promises';

import { afterEach, beforeEach, vi } from 'vitest';
import { Batcher } from './batcher.js';
import type { BatcherOptions } from './batcher.js';

/** Runs each test of the file with a fake clock. */
export function withFakeClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Lets results be delivered, and the batches that start then end, too. */
export async function turns(): Promise<void> {
  for (let k = 0; k < 4; k++) await setImmediate();
}

/** Advances the fake clock, and lets the results of that time be delivered. */
export async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
  await turns();
}

/** A batcher whose batches take `duration` and double their items, and the batches that it ran. */
export function doubling(
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
export class Keeping extends Batcher<number, number> {
  readonly discarded: number[] = [];

  protected override discard(result: number): void {
    this.discarded.push(result);
  }
}

/** The state of a promise so far. */
export function watched<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: number } {
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
