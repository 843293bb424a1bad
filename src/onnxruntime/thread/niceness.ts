/**
 * Threads that compute give way to the event loop where all cores are busy. Linux has a niceness
 * for each thread, and threads inherit it from those that start them: a session's threads have that
 * of the thread that loads it. A thread cannot lower its niceness again.
 */
import { setPriority } from 'node:os';

let own = 0;

export function giveWay(niceness: number): void {
  if (niceness <= own || process.platform !== 'linux') return;
  own = niceness;
  try {
    setPriority(0, niceness);
  } catch {
    // Without the permission the thread computes like others.
  }
}
