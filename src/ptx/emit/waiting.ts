// The places of the threads of a suspended block, read from its scratch memory, for the report of a
// program that hangs.

import { MAIL, SCRATCH, STATE } from './frame-layout.js';

/** Threads that continue at the same place. */
export interface Waiting {
  /**
   * The line of PTX of the barrier or warp operation at which they wait, or where their loop
   * begins. 0: they have not begun.
   */
  line: number;
  /** The instruction at which they wait, with the barrier or the mask: undefined in a loop. */
  instruction: string | undefined;
  /** They have ended. */
  exited: boolean;
  /** In ascending order. */
  threads: number[];
}

/** A place where a thread continues. */
export interface EntryPlace {
  line: number;
  /** The instruction before it at which the thread waited. */
  instruction: string | undefined;
}

/**
 * The bytes at the beginning of scratch with the number of the unit whose turn it is. Everything
 * else there is unchanged after a pass in which the block has made no progress.
 */
export const TURN_BYTES = SCRATCH.arrivals;

/**
 * The word of scratch from which the order of warps is drawn in code compiled with `ordered`; 0:
 * their own order.
 */
export const ORDER_SEED = SCRATCH.orderSeed;

/** The offset of the threads' states in scratch memory, one word each. */
export const SCRATCH_STATES = SCRATCH.states;
/** The state of a thread that has exited; the states of waiting threads are negative too. */
export const THREAD_EXITED = STATE.exited;

/**
 * `places` gives each entry, from the first. `mail`: waiting threads write what they wait for to
 * their mailboxes; otherwise every wait is for the whole block.
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
