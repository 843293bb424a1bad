// Where a block's scratch memory keeps what its threads need between two calls. The order is fixed;
// the places of everything after the states depend on the number of threads.

import { alignUp } from '../analysis/data-layout.js';

export const SCRATCH = {
  /** Thread at which a suspended call goes on. */
  cursor: 0,
  /** What is left of that thread's slice. */
  carry: 4,
  /** Warp that was being run. */
  warp: 8,
  /**
   * In code compiled with `ordered`: place of the warp within the pass, from 1; the pass's order;
   * and the state that orders are drawn from.
   */
  position: 12,
  order: 16,
  orderSeed: 20,
  /** In lanes whose function runs the whole block: how far its pass over the units has come. */
  pass: 24,
  /** Turns that the warp has had in this pass. */
  turns: 28,
  /** In lanes: 8 bytes through which values pass that are to be computed once for a call. */
  kept: 32,
  /** Threads that arrived at each of the 16 barriers without waiting. */
  arrivals: 64,
  /** How far the block is at its cluster's barrier: see {@link CLUSTER_STATE}. */
  cluster: 128,
  states: 144,
} as const;

/** The cluster's barrier comes after the 16 of the block. */
export const CLUSTER_BARRIER = 16;

/**
 * Some thread has not arrived at the cluster's barrier, all have that have not exited, all have
 * exited.
 */
export const CLUSTER_STATE = { open: 0, arrived: 1, ended: 2 } as const;

/**
 * Thread states: a ready thread holds the number of the entry where it goes on, the others are
 * negative.
 */
export const STATE = {
  exited: -1,
  barrier: 0x80000000 | 0,
  warp: 0xc0000000 | 0,
  entryMask: 0x3fffffff,
} as const;

/** What a waiting thread leaves for the resolver, and finds when it goes on. */
export const MAIL = {
  operation: 0,
  mask: 4,
  value: 8,
  lane: 16,
  clamp: 20,
  result: 24,
  bytes: 32,
} as const;

/** Frames of functions that are really called, shared by the threads of a block. */
export const CALL_STACK_BYTES = 256 * 1024;
export const DEEPEST_CALL = 400;

export interface FrameLayout {
  /** Threads can be suspended: states are kept. */
  stateful: boolean;
  mail: boolean;
  /**
   * A byte per thread behind the mailboxes: 1 where it has arrived at the cluster's barrier and not
   * all others have.
   */
  cluster: boolean;
  /** Bytes per warp for its matrices, and how many of them are for operands. */
  matrixBytes: number;
  matrixOperandBytes: number;
  /** Bytes of spilled registers per thread. */
  frameBytes: number;
  /** Bytes of local variables per thread, a multiple of their alignment. */
  localBytes: number;
  localAlign: number;
  callStack: boolean;
}

/** Bytes that say who has arrived at the cluster's barrier. */
const clusterBytes = (threads: number): number => (threads + 15) & ~15;

/** What `scratch-places.ts` lays out. */
export function bytesBeforeFrames(layout: FrameLayout, threads: number): number {
  let bytes: number = SCRATCH.states;
  // Whole warps: lanes read and write as many states at once.
  if (layout.stateful) bytes += (4 * threads + 127) & ~127;
  if (layout.mail) bytes += MAIL.bytes * threads;
  if (layout.cluster) bytes += clusterBytes(threads);
  return bytes + layout.matrixBytes * ((threads + 31) >> 5);
}

/** What whoever runs blocks lets their scratch begin at a multiple of. */
const SCRATCH_ALIGN = 128;

/** Where the threads' local variables begin, in a block whose scratch begins at the address. */
export function localsAddress(layout: FrameLayout, scratch: number, threads: number): number {
  return alignUp(
    scratch + bytesBeforeFrames(layout, threads) + layout.frameBytes * threads,
    layout.localAlign,
  );
}

/**
 * Bytes of scratch up to the end of the local variables, wherever it begins, if so many stand
 * before them.
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
