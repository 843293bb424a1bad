/**
 * Single reads of words that threads share, and stores to them. Atomics.load and Atomics.store are
 * calls of 10 to 20 ns wherever they occur (Node 20 and 26, measured), and the path from a launch
 * to its end has thirty reads.
 */

/**
 * x86 makes a thread's stores visible to the others in their order, and does not delay its loads:
 * there a plain access is as good as one that acquires or releases. It is not as good as a
 * sequentially consistent one: a store may become visible after the thread's next load is done.
 * Where that matters (`ThreadLoop.sleep`, `Visits.giveBack`) Atomics are used, or the word is read
 * once more.
 */
export const STORES_IN_ORDER = process.arch === 'x64';

/**
 * Reads a word once. It is not for a loop that waits for the word to change: V8 may move the load
 * out of the loop.
 */
export function peek(words: Int32Array, at: number): number {
  return STORES_IN_ORDER ? words[at]! : Atomics.load(words, at);
}

/** Stores a word after all earlier stores. */
export function release(words: Int32Array, at: number, value: number): void {
  if (STORES_IN_ORDER) words[at] = value;
  else Atomics.store(words, at, value);
}
