/** When a wait is expected to end: repeated awaits of a slot take as long as the last one did. */
import type { CompletionSlot } from './slot.js';

/** After this long without a completion the runtime thread watches. */
export const HOT_MS = 1;

/**
 * Near the expected end a turn of the event loop reads the slot without pause: from this long
 * before it until this long after it, in milliseconds.
 */
const NEAR_BEFORE_MS = 0.004;
export const NEAR_AFTER_MS = 0.006;
/**
 * Longer waits vary by more: both times grow by this part of the wait, up to the length from which
 * its end cannot be expected that precisely.
 */
const NEAR_PART = 0.003;
const NEAR_LIMIT_MS = 5;

/** An end that is expected to be further off than this is far. */
const FAR_MS = 0.05;

/**
 * Where the device's own threads use all cores, the JavaScript thread naps instead of spinning: it
 * sleeps in a turn of its event loop. A wait that took longer than this the last time naps from its
 * start until its expected end, if that is soon: the end of each nap takes the processor for some
 * 10 µs (a grid of two threads took 1.70 ms with naps, 1.60 without).
 */
export const NAP_FROM_MS = 0.1;
const NAP_UNTIL_MS = 0.75;

/**
 * The runtime thread watches until this long before the expected end: waking this thread takes 50
 * µs, which is one percent of a copy of 256 MiB. The same time after the expected end it watches
 * again.
 */
const EXPECTED_MS = 1;

/** How long after the expected end of a wait that took `took` the end still counts as near. */
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

/** Whether the thread naps through the slot's first wait: see {@link NAP_FROM_MS}. */
export function isNapLong({ took, waiters }: CompletionSlot, now: number): boolean {
  return (
    took > NAP_FROM_MS &&
    took < NAP_UNTIL_MS &&
    waiters.length !== 0 &&
    now - waiters[0]!.start < 2 * took
  );
}

/**
 * Returns how long, in milliseconds, until the end of some wait is near; 0 where one is near now,
 * Infinity where none is expected.
 */
export function untilExpectedEnd(active: readonly CompletionSlot[], now: number): number {
  let least = Infinity;
  for (let i = 0; i < active.length; i++) {
    const { took, waiters } = active[i]!;
    // A wait that takes half of that may take all of it the next time.
    if (took < HOT_MS / 2 || waiters.length === 0) continue;
    const left = waiters[0]!.start + took - now;
    if (left > EXPECTED_MS) least = Math.min(least, left - EXPECTED_MS);
    else if (left > -EXPECTED_MS) return 0;
  }
  return least;
}
