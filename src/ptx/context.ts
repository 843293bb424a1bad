// The contract between a compiled kernel and whoever runs it: the 128-byte context block that
// describes one thread block, what a call of the kernel returns, and the kinds of fault it reports.

/** Byte offsets of the 32-bit fields of the context block. The caller fills all but `fault*`. */
export const CTX = {
  bytes: 128,
  gridDim: 0,
  blockDim: 12,
  ctaid: 24,
  /** Address of the kernel's parameter bytes. */
  params: 36,
  /** Address of the block's shared memory, aligned to 128. */
  shared: 40,
  /** Static plus dynamic shared bytes: `ld.shared` and `st.shared` outside them fault. */
  sharedBytes: 44,
  /** Address of `blockBytes(threads)` bytes, aligned to 16, zeroed before the first call. */
  scratch: 48,
  /** Threads of the block: the product of blockDim. */
  threads: 52,
  /** First address past the memory that kernels may touch; 0 stands for 4 GiB. */
  memoryTop: 56,
  faultKind: 60,
  /** u64 */
  faultAddress: 64,
  faultThread: 72,
  faultLine: 76,
  clockLo: 80,
  clockHi: 84,
  gridId: 88,
  flags: 92,
  /**
   * Address of a zeroed grid-wide barrier word pair for cooperative launches (%envreg1/2), else 0.
   */
  workspace: 96,
  /**
   * Blocks to run in the same call after this one, along x: for code that takes that (`runsOn`).
   * `ctaid` counts up; where a call ends early and not by a fault, this has counted down.
   */
  further: 100,
  /**
   * Blocks of the block's cluster along each axis, less one, 8 bits each from x up;
   * {@link EXPLICIT_CLUSTER}. 0: it is alone.
   */
  cluster: 104,
  /** The block's number in its cluster. */
  clusterRank: 108,
  /**
   * Bytes from one block's memory to the next one's in the cluster: shared memory and scratch lie
   * alike in all of them.
   */
  clusterStride: 112,
} as const;

/** In `CTX.cluster`: the kernel or its launch says how large clusters are. */
export const EXPLICIT_CLUSTER = 1 << 24;

/**
 * Several blocks in one slot, which take turns: clusters, and blocks that run side by side
 * (`LaneCode.sideBySide`). They lie at equal distances (`CTX.clusterStride`) behind a head. It
 * begins with a context block, of which the place in the grid of such slots, the end of memory and
 * the clock are used. Behind that, at these offsets: first what is zero when the blocks begin.
 */
export const TEAM = {
  zeroed: 128,
  zeroedBytes: 32,
  /** The blocks that have ended, one bit each. */
  ended: 128,
  /** Address of the block that has met a fault. */
  faulty: 132,
  /** Bytes from the head to the first block, and of each block's scratch. */
  first: 160,
  scratchBytes: 164,
  /** How many there are, for those that run side by side. */
  blocks: 168,
  bytes: 256,
  most: 32,
} as const;

/**
 * What a call of a kernel returns. `waiting`: for other blocks of its cluster; it goes on once
 * these have come as far.
 */
export const STATUS = { done: 0, yielded: 1, stuck: 2, fault: 3, waiting: 4 } as const;

export const FAULT = {
  none: 0,
  outOfBounds: 1,
  misaligned: 2,
  trap: 3,
  /**
   * Threads failed assertions and ended; the block went on without them, and its last status is
   * `done`.
   */
  assert: 4,
  /** All live threads of the block wait, and nothing can release any of them. */
  divergentBarrier: 5,
  /** Calls nested deeper than the call stack. */
  stackOverflow: 6,
  invalidCall: 7,
  /**
   * A loop or a recursion inside a function that cannot be suspended ran longer than any real
   * program's.
   */
  runaway: 8,
  /** A watching function refused an access, in code compiled with `check`. */
  checked: 9,
  breakpoint: 10,
} as const;

/** Addresses below this are never valid. */
export const NULL_PAGE = 65536;
/** A word of the null page, zero at first: who reads or writes 128 bits as one holds it. */
export const WIDE_LOCK = 64;
/** Loop back edges that a thread may take before the next thread of its block gets its turn. */
export const THREAD_SLICE = 4096;
/**
 * So many in kernels whose threads give way where they need not: they may hold a lock that all
 * others look at for as long as they may.
 */
export const SHORT_SLICE = 64;
