// Where the threads of a suspended block are, read from its scratch memory: for the report of a program that hangs.

import { SCRATCH, STATE } from './frame-layout.js';

/** Threads that will go on at the same place. */
export interface Waiting {
  /** Line of PTX: of the barrier or warp operation that they wait at, or where their loop begins. 0: they have not begun. */
  line: number;
  threads: number;
  /** The first of them. */
  first: number;
}

/**
 * Bytes at the beginning of scratch that say whose turn it is; everything else there is the same again when a block has
 * gone round without getting anywhere.
 */
export const TURN_BYTES = SCRATCH.arrivals;

/** `lines`: of each entry, from the first. */
export function waitingThreads(lines: readonly number[], words: Int32Array, scratch: number, threads: number): Waiting[] {
  const places = new Map<number, Waiting>();
  const at = (scratch + SCRATCH.states) >>> 2;
  for (let thread = 0; thread < threads; thread++) {
    const state = words[at + thread]!;
    if (state === STATE.exited) continue;
    const line = lines[(state & STATE.entryMask) - 1] ?? 0;
    const place = places.get(line);
    if (place === undefined) places.set(line, { line, threads: 1, first: thread });
    else place.threads++;
  }
  return [...places.values()];
}
