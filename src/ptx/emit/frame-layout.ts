// The layout of a block's scratch memory, which keeps what its threads need between two calls. The
// order is fixed; the offsets of everything after the states depend on the number of threads.

import { alignUp } from '../analysis/data-layout.js';

export const SCRATCH = {
  /** The thread at which a suspended call continues. */
  cursor: 0,
  /** The rest of that thread's slice. */
  carry: 4,
  /** The warp that was running. */
  warp: 8,
  /**
   * In code compiled with `ordered`: the warp's position within the pass, from 1; the pass's order;
   * and the state from which orders are drawn.
   */
  position: 12,
  order: 16,
  orderSeed: 20,
  /** In lanes whose function runs the whole block: how far its pass over the units is. */
  pass: 24,
  /** The turns that the warp has had in this pass. */
  turns: 28,
  /** In lanes: 8 bytes for values that are computed once for a call. */
  kept: 32,
  /** Threads that arrived at each of the 16 barriers without waiting. */
  arrivals: 64,
  /** The block's state at its cluster's barrier: see {@link CLUSTER_STATE}. */
  cluster: 128,
  /** For each warp a byte: how many products of its group it has arrived at, modulo 256. */
  products: 144,
  states: 176,
} as const;

/** The number of the cluster's barrier, after the block's 16. */
export const CLUSTER_BARRIER = 16;

/**
 * Some thread has not arrived at the cluster's barrier; all that have not exited have arrived; all
 * have exited.
 */
export const CLUSTER_STATE = { open: 0, arrived: 1, ended: 2 } as const;

/**
 * Thread states: a ready thread has the number of the entry at which it continues, the others are
 * negative.
 */
export const STATE = {
  exited: -1,
  barrier: 0x80000000 | 0,
  warp: 0xc0000000 | 0,
  entryMask: 0x3fffffff,
} as const;

/**
 * The fields that a waiting thread writes for the resolver, and those that it reads when it
 * continues.
 */
export const MAIL = {
  operation: 0,
  mask: 4,
  value: 8,
  lane: 16,
  clamp: 20,
  result: 24,
  bytes: 32,
} as const;

/** Frames of functions that are called and not inlined, shared by the threads of a block. */
export const CALL_STACK_BYTES = 256 * 1024;
export const DEEPEST_CALL = 400;

export interface FrameLayout {
  /** Threads can be suspended, so states are kept. */
  stateful: boolean;
  mail: boolean;
  /**
   * One byte for each thread after the mailboxes: 1 if it has arrived at the cluster's barrier and
   * the barrier is not complete.
   */
  cluster: boolean;
  /** Bytes for the matrices of each warp, and how many of them are for operands. */
  matrixBytes: number;
  matrixOperandBytes: number;
  /** Bytes of spilled registers for each thread. */
  frameBytes: number;
  /** Bytes of local variables for each thread, a multiple of their alignment. */
  localBytes: number;
  localAlign: number;
  callStack: boolean;
}

/** Bytes for the marks of threads at the cluster's barrier. */
const clusterBytes = (threads: number): number => (threads + 15) & ~15;

/** The bytes that `scratch-places.ts` lays out. */
export function bytesBeforeFrames(layout: FrameLayout, threads: number): number {
  let bytes: number = SCRATCH.states;
  // Whole warps: lanes read and write this many states at once.
  if (layout.stateful) bytes += (4 * threads + 127) & ~127;
  if (layout.mail) bytes += MAIL.bytes * threads;
  if (layout.cluster) bytes += clusterBytes(threads);
  return bytes + layout.matrixBytes * ((threads + 31) >> 5);
}

/** The alignment that the caller gives scratch memory. */
const SCRATCH_ALIGN = 128;

/** The address of the threads' local variables in a block whose scratch begins at the address. */
export function localsAddress(layout: FrameLayout, scratch: number, threads: number): number {
  return alignUp(
    scratch + bytesBeforeFrames(layout, threads) + layout.frameBytes * threads,
    layout.localAlign,
  );
}

/**
 * The bytes of scratch up to the end of the local variables, wherever it begins, with `before`
 * bytes before them.
 */
export function bytesWithLocals(layout: FrameLayout, before: number, threads: number): number {
  const { localAlign, localBytes } = layout;
  return (
    alignUp(before, Math.min(localAlign, SCRATCH_ALIGN)) +
    Math.max(localAlign - SCRATCH_ALIGN, 0) +
    localBytes * threads
  );
}

export function scratchBytes(layout: FrameLayout, threads: number): number {
  let bytes = bytesWithLocals(
    layout,
    bytesBeforeFrames(layout, threads) + layout.frameBytes * threads,
    threads,
  );
  if (layout.callStack) bytes += CALL_STACK_BYTES;
  return bytes;
}
