/**
 * When a wait is expected to end: what is awaited again and again takes as long as it took the last
 * time.
 */
import type { CompletionSlot } from './slot.js';

/** After this long without a completion the runtime thread watches. */
export const HOT_MS = 1;

/**
 * Around the expected end a turn of the event loop looks at the slot without pause: from so long
 * before it until so long after it, in milliseconds.
 */
const NEAR_BEFORE_MS = 0.004;
export const NEAR_AFTER_MS = 0.006;
/**
 * Longer waits vary by more: both grow by this part of the wait, until it is too long to be
 * expected that well.
 */
const NEAR_PART = 0.003;
const NEAR_LIMIT_MS = 5;

/** An end that is expected to be further off than this is far. */
const FAR_MS = 0.05;

/**
 * Where the device's own threads want all cores, the JS thread naps instead of looking: it sleeps in
 * a turn of its event loop. What took longer than this the last time is awaited so, from the start
 * until it should have ended, where that is soon: the end of each nap takes the processor for some
 * 10 µs (a grid of two threads took 1.70 ms with naps, 1.60 without).
 */
export const NAP_FROM_MS = 0.1;
const NAP_UNTIL_MS = 0.75;

/**
 * The runtime thread watches until so long before the expected end: being woken takes 50 µs, which
 * is one percent of a copy of 256 MiB. The same time after the expected end it watches again.
 */
const EXPECTED_MS = 1;

/** How long after the expected end of a wait that took `took` it still counts as near. */
export function nearAfter(took: number): number {
  return NEAR_AFTER_MS + NEAR_PART * took;
}

/** Whether the first wait of the slot is expected to end within some microseconds. */
export function isNearEnd(slot: CompletionSlot, crowded: boolean): boolean {
  const first = slot.waiters[0];
  const { took } = slot;
  if (first === undefined || took > (crowded ? HOT_MS : NEAR_LIMIT_MS)) return false;
  const late = performance.now() - first.start - took;
  return late >= -(NEAR_BEFORE_MS + NEAR_PART * took) && late < nearAfter(took);
}

/** Whether the end of the slot's first wait is expected to be some time off. */
export function isFarFromEnd({ took, waiters }: CompletionSlot, now: number): boolean {
  return waiters.length !== 0 && waiters[0]!.start + took - now > FAR_MS;
}

/** Whether the slot's first wait is one to nap through: see {@link NAP_FROM_MS}. */
export function isNapLong({ took, waiters }: CompletionSlot, now: number): boolean {
  return (
    took > NAP_FROM_MS &&
    took < NAP_UNTIL_MS &&
    waiters.length !== 0 &&
    now - waiters[0]!.start < 2 * took
  );
}

/**
 * How long, in milliseconds, until the end of some wait is near; 0 where one is near now, Infinity
 * where none is expected.
 */
export function untilExpectedEnd(active: readonly CompletionSlot[], now: number): number {
  let least = Infinity;
  for (let i = 0; i < active.length; i++) {
    const { took, waiters } = active[i]!;
    // What takes half of that may take all of it the next time.
    if (took < HOT_MS / 2 || waiters.length === 0) continue;
    const left = waiters[0]!.start + took - now;
    if (left > EXPECTED_MS) least = Math.min(least, left - EXPECTED_MS);
    else if (left > -EXPECTED_MS) return 0;
  }
  return least;
}
