/**
 * Single looks at words that threads share, and stores to them. Atomics.load and Atomics.store are
 * calls of 10 to 20 ns wherever they stand (Node 20 and 26, measured), and the way from a launch to
 * its end takes thirty looks.
 */

/**
 * x86 shows a thread's stores to the others in their order, and does not put its loads off: there a
 * plain access is as good as one that acquires or releases. It is not as good as a sequentially
 * consistent one: a store may show later than the thread's next load is done. Where that matters
 * (`ThreadLoop.sleep`, `Visits.giveBack`) Atomics are used, or the word is looked at once more.
 */
export const STORES_IN_ORDER = process.arch === 'x64';

/**
 * One look. Not for a loop that waits for the word to change: the engine may take the load out of
 * it.
 */
export function peek(words: Int32Array, at: number): number {
  return STORES_IN_ORDER ? words[at]! : Atomics.load(words, at);
}

/** A store that shows what was stored before it. */
export function release(words: Int32Array, at: number, value: number): void {
  if (STORES_IN_ORDER) words[at] = value;
  else Atomics.store(words, at, value);
}
