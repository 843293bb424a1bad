/**
 * Threads that compute give way to the event loop where all cores are busy. Linux has a niceness
 * for each thread, and threads inherit it from those that start them: a session's have that of the
 * thread that loads it. What one has taken on it cannot lay off.
 */
import { setPriority } from 'node:os';

let own = 0;

export function giveWay(niceness: number): void {
  if (niceness <= own || process.platform !== 'linux') return;
  own = niceness;
  try {
    setPriority(0, niceness);
  } catch {
    // It computes as the others do.
  }
}
