/**
 * How long the event loop is blocked, window by window: the gaps between `setImmediate` callbacks.
 * A machine takes a processor from any process for some milliseconds now and then (a virtual one
 * also from an idle loop): this affects some windows. Delays by the program itself are in all of
 * them. So a bar of a millisecond is for the median of the windows' longest gaps, and the longest
 * of all is reported as well.
 */
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';

import { collectGarbage } from './garbage.js';

export interface Windows {
  /** Before the first window: see `garbage.ts`. */
  readonly settleMs: number;
  readonly windowMs: number;
  /** The number of windows, or as many as the work lasts for. */
  readonly windows: number;
}

/** Set for the work to end with the last window. */
export interface Stop {
  now: boolean;
}

/** Reports the end of each gap between turns, and its length, until the work ends. */
async function watched(
  work: () => Promise<unknown>,
  turned: (now: number, gap: number) => void,
): Promise<void> {
  let running = true;
  let last = performance.now();
  const working = work().finally(() => {
    running = false;
  });
  // A failure is thrown below, at the end.
  working.catch(() => undefined);
  await new Promise<void>((resolve) => {
    // A callback, not an await: the promises of a million turns would be a good part of the
    // garbage.
    const turn = (): void => {
      const now = performance.now();
      turned(now, now - last);
      last = now;
      if (running) setImmediate(turn);
      else resolve();
    };
    setImmediate(turn);
  });
  await working;
}

/**
 * The longest gap of each window, milliseconds. @throws Error where the work ends before the first
 * one does
 */
export async function longestGaps(
  work: (stop: Stop) => Promise<unknown>,
  { settleMs, windowMs, windows }: Windows,
): Promise<number[]> {
  collectGarbage();
  // Created beforehand: objects of a turn would be garbage of the measured loop.
  const longest = new Float64Array(windows);
  const stop: Stop = { now: false };
  const begin = performance.now() + settleMs;
  let window = -1;
  await watched(
    () => work(stop),
    (now, gap) => {
      window = Math.floor((now - begin) / windowMs);
      // A gap belongs to the window in which it ends.
      if (window >= 0 && window < windows) longest[window] = Math.max(longest[window]!, gap);
      stop.now ||= window >= windows;
    },
  );
  const whole = Math.min(window, windows);
  if (whole < 1) throw new Error('the work ended before there was a window to look at');
  return [...longest.subarray(0, whole)];
}

/** The longest gap while the work lasts, from its beginning on, milliseconds. */
export async function longestGap(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  await watched(work, (_, gap) => {
    longest = Math.max(longest, gap);
  });
  return longest;
}
