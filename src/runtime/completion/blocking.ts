/** Waits that block the thread. */
import { sleepFor } from '../pause.js';
import { HOT_MS } from './expected-end.js';
import type { CompletionHost } from './host.js';

/**
 * A blocked thread reads the slot {@link LOOKS_PER_MESSAGE} times between two checks for messages.
 * It does so without a pause for {@link BLOCKED_LOOK_MS}, unless the device needs its processor,
 * and then sleeps for {@link BLOCKED_PAUSE_MS} between reads: that takes twice the time in
 * practice, which is noticeable for a graph of a millisecond.
 */
const LOOKS_PER_MESSAGE = 64;
const BLOCKED_LOOK_MS = 20;
const BLOCKED_PAUSE_MS = 0.05;

/**
 * Blocks until `test` holds.
 * @throws the error that everything in flight rejects with, where the device is lost meanwhile
 */
export function blockUntil(
  host: CompletionHost,
  readMessages: () => void,
  test: () => boolean,
): void {
  const start = performance.now();
  const lookMs = host.crowded ? HOT_MS : BLOCKED_LOOK_MS;
  for (let turns = 0; !test(); turns++) {
    if (host.turn !== undefined) {
      host.turn();
      continue;
    }
    const flushed = host.flush();
    if (turns === 0 || !flushed) host.wake();
    if (turns % LOOKS_PER_MESSAGE === 0) readMessages();
    const lost = host.lost();
    if (lost !== undefined) throw lost;
    // The thread spins for the end of short work; after that it leaves the processor to others.
    if (flushed && performance.now() - start > lookMs) sleepFor(BLOCKED_PAUSE_MS);
  }
}
