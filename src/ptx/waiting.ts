// Reads out of a block's scratch memory what its threads wait for, so that a block that is stuck can be described.

import { CTX } from './context.js';
import { MAIL, SCRATCH, STATE } from './emit/frame-layout.js';

/** Where the threads' states begin in a block's scratch memory, a word each. */
export const SCRATCH_STATES = SCRATCH.states;
/** The state of a thread that has exited; others that wait are negative too. */
export const THREAD_EXITED = STATE.exited;

/** An instruction at which threads wait. */
export interface Wait {
  line: number;
  instruction: string;
}

export interface WaitPlaces {
  /** Whether waiting threads leave word of what they wait for; else every wait is for the whole block. */
  mail: boolean;
  /** By the number that a waiting thread's state holds. */
  places: readonly (Wait | undefined)[];
}

export interface WaitingThread {
  thread: number;
  /** Undefined for a thread that has exited. */
  wait: Wait | undefined;
  /** What it waits at: a barrier by number and count (0: the whole block), or the lanes of a mask. */
  at: { barrier: number; count: number } | { mask: number } | undefined;
}

/** `words`: the memory that the kernel runs in. `ctx`: the block's context block. Kernels that keep no state never wait. */
export function waitingThreads(words: Int32Array, ctx: number, { mail, places }: WaitPlaces): WaitingThread[] {
  const scratch = words[(ctx + CTX.scratch) >>> 2]! >>> 0;
  const threads = words[(ctx + CTX.threads) >>> 2]!;
  const boxes = scratch + SCRATCH.states + ((4 * threads + 15) & ~15);
  const found: WaitingThread[] = [];
  for (let thread = 0; thread < threads; thread++) {
    const state = words[(scratch + SCRATCH.states) / 4 + thread]!;
    if (state >= 0) continue;
    if (state === STATE.exited) {
      found.push({ thread, wait: undefined, at: undefined });
      continue;
    }
    const box = (boxes + thread * MAIL.bytes) >>> 2;
    const mask = mail ? words[box + (MAIL.mask >> 2)]! : 0;
    const atWarp = state >>> 0 >= STATE.warp >>> 0;
    found.push({
      thread, wait: places[state & STATE.entryMask],
      at: atWarp ? { mask: mask >>> 0 } : { barrier: mask, count: mail ? words[box + (MAIL.lane >> 2)]! : 0 },
    });
  }
  return found;
}
