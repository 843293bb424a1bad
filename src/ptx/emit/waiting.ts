// Where the threads of a suspended block are, read from its scratch memory: for the report of a
// program that hangs.

import { MAIL, SCRATCH, STATE } from './frame-layout.js';

/** Threads that will go on at the same place. */
export interface Waiting {
  /**
   * Line of PTX: of the barrier or warp operation that they wait at, or where their loop begins. 0:
   * they have not begun.
   */
  line: number;
  /** What they wait at, with the barrier or the mask: undefined in a loop. */
  instruction: string | undefined;
  /** They have ended. */
  exited: boolean;
  /** In ascending order. */
  threads: number[];
}

/** A place where a thread goes on. */
export interface EntryPlace {
  line: number;
  /** The instruction that was waited at before it. */
  instruction: string | undefined;
}

/**
 * Bytes at the beginning of scratch that say whose turn it is; everything else there is the same
 * again when a block has gone round without getting anywhere.
 */
export const TURN_BYTES = SCRATCH.arrivals;

/**
 * Word of scratch that the order of warps is drawn from in code compiled with `ordered`; 0: their
 * own.
 */
export const ORDER_SEED = SCRATCH.orderSeed;

/** Where the threads' states begin in scratch memory, a word each. */
export const SCRATCH_STATES = SCRATCH.states;
/** The state of a thread that has exited; others that wait are negative too. */
export const THREAD_EXITED = STATE.exited;

/**
 * `places`: of each entry, from the first. `mail`: waiting threads leave word of what they wait
 * for; else every wait is for the whole block.
 */
export function waitingThreads(
  places: readonly EntryPlace[],
  mail: boolean,
  words: Int32Array,
  scratch: number,
  threads: number,
): Waiting[] {
  const found = new Map<string, Waiting>();
  const states = (scratch + SCRATCH.states) >>> 2;
  const boxes = scratch + SCRATCH.states + ((4 * threads + 127) & ~127);
  for (let thread = 0; thread < threads; thread++) {
    const state = words[states + thread]!;
    const exited = state === STATE.exited;
    const { line, instruction: waited } = (exited
      ? undefined
      : places[(state & STATE.entryMask) - 1]) ?? { line: 0, instruction: undefined };
    let instruction: string | undefined;
    if (state < 0 && waited !== undefined) {
      const box = (boxes + thread * MAIL.bytes) >>> 2;
      const mask = mail ? words[box + (MAIL.mask >> 2)]! : 0;
      const count = mail ? words[box + (MAIL.lane >> 2)]! : 0;
      instruction =
        state >>> 0 >= STATE.warp >>> 0
          ? `${waited} with mask 0x${(mask >>> 0).toString(16)}`
          : waited.includes('cluster')
            ? waited
            : `${waited} ${mask}${count === 0 ? '' : ` for ${count} threads`}`;
    }
    const key = exited ? 'exited' : `${line} ${instruction}`;
    const place = found.get(key);
    if (place === undefined) found.set(key, { line, instruction, exited, threads: [thread] });
    else place.threads.push(thread);
  }
  return [...found.values()];
}
