/**
 * How long the event loop is held up, window by window: the gaps between `setImmediate` callbacks. A machine takes a processor
 * from any process for some milliseconds now and then (a virtual one does, beside a loop that does nothing, too): that falls into
 * some windows. What a program does to its own loop lies in all of them. So a bar of a millisecond is for the median of the windows'
 * longest gaps, and the longest of all is told beside it.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';

import { collectGarbage } from './garbage.js';

export interface Windows {
  /** Before the first window: see `garbage.ts`. */
  readonly settleMs: number;
  readonly windowMs: number;
  /** So many, or as many as the work lasts for. */
  readonly windows: number;
}

/** What the work looks at to end with the last window. */
export interface Stop {
  now: boolean;
}

/** The longest gap of each window, milliseconds. @throws Error where the work ends before the first one does */
export async function longestGaps(work: (stop: Stop) => Promise<unknown>, { settleMs, windowMs, windows }: Windows): Promise<number[]> {
  collectGarbage();
  // Made beforehand: what a turn makes is garbage of the loop that is watched.
  const longest = new Float64Array(windows);
  const stop: Stop = { now: false };
  const begin = performance.now() + settleMs;
  let running = true;
  const working = work(stop).finally(() => {
    running = false;
  });
  working.catch(() => undefined);
  let last = performance.now();
  let window = -1;
  await new Promise<void>((resolve) => {
    // A callback, not an await: the promises of a million turns would be a good part of the garbage.
    const turn = (): void => {
      const now = performance.now();
      window = Math.floor((now - begin) / windowMs);
      // A gap is of the window in which it ends.
      if (window >= 0 && window < windows) longest[window] = Math.max(longest[window]!, now - last);
      last = now;
      stop.now ||= window >= windows;
      if (running) setImmediate(turn);
      else resolve();
    };
    setImmediate(turn);
  });
  await working;
  const whole = Math.min(window, windows);
  if (whole < 1) throw new Error('the work ended before there was a window to look at');
  return [...longest.subarray(0, whole)];
}
