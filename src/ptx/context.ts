// The contract between a compiled kernel and its caller: the 128-byte context block that describes
// one thread block, what a call of the kernel returns, and the kinds of fault that it reports.

/**
 * Byte offsets of the 32-bit fields of the context block. The caller fills all of them but
 * `fault*`.
 */
export const CTX = {
  bytes: 128,
  gridDim: 0,
  blockDim: 12,
  ctaid: 24,
  /** Address of the kernel's parameter bytes. */
  params: 36,
  /** Address of the block's shared memory, a multiple of {@link SHARED_ALIGNMENT}. */
  shared: 40,
  /** Static plus dynamic shared bytes: `ld.shared` and `st.shared` outside of them fault. */
  sharedBytes: 44,
  /** Address of `blockBytes(threads)` bytes, aligned to 16, zeroed before the first call. */
  scratch: 48,
  /** Threads of the block: the product of blockDim. */
  threads: 52,
  /** The first address after the memory that kernels may access; 0 stands for 4 GiB. */
  memoryTop: 56,
  faultKind: 60,
  /** A u64. */
  faultAddress: 64,
  faultThread: 72,
  faultLine: 76,
  clockLo: 80,
  clockHi: 84,
  gridId: 88,
  flags: 92,
  /**
   * The address of two zeroed words for the grid's barrier in a cooperative launch (%envreg1/2),
   * else 0.
   */
  workspace: 96,
  /**
   * The blocks to run in the same call after this one, along x, for code with `runsOn`. `ctaid`
   * counts up. If a call ends early and not by a fault, this field has counted down.
   */
  further: 100,
  /**
   * The blocks of the block's cluster along each axis, less one, 8 bits each from x up; {@link
   * EXPLICIT_CLUSTER}. 0: the cluster is one block.
   */
  cluster: 104,
  /** The block's number in its cluster. */
  clusterRank: 108,
  /**
   * Bytes from one block's memory to the next block's in the cluster. Shared memory and scratch
   * have the same offsets in all of them.
   */
  clusterStride: 112,
} as const;

/** A bit of `CTX.cluster`: the kernel or its launch sets the size of clusters. */
export const EXPLICIT_CLUSTER = 1 << 24;

/**
 * Several blocks in one slot that take turns: clusters, and blocks that run side by side
 * (`LaneCode.sideBySide`). They lie at equal distances (`CTX.clusterStride`) after a head. The head
 * begins with a context block, of which the place in the grid of such slots, the end of memory and
 * the clock are used. Then, at these offsets, come first the fields that are zero when the blocks
 * begin.
 */
export const TEAM = {
  zeroed: 128,
  zeroedBytes: 32,
  /** The blocks that have ended, one bit each. */
  ended: 128,
  /** The address of the block that has met a fault. */
  faulty: 132,
  /** Bytes from the head to the first block, and of each block's scratch. */
  first: 160,
  scratchBytes: 164,
  /** The number of blocks, for blocks that run side by side. */
  blocks: 168,
  bytes: 256,
  most: 32,
} as const;

/**
 * A block's shared memory begins at a multiple of so many bytes. Swizzling combines bits of the
 * address, which are then equal to those of the offset in shared memory.
 */
export const SHARED_ALIGNMENT = 1024;

/** What a call of a kernel returns. `waiting`: the block waits for other blocks of its cluster. */
export const STATUS = { done: 0, yielded: 1, stuck: 2, fault: 3, waiting: 4 } as const;

export const FAULT = {
  none: 0,
  outOfBounds: 1,
  misaligned: 2,
  trap: 3,
  /**
   * Threads failed assertions and ended. The block continues without them, and its last status is
   * `done`.
   */
  assert: 4,
  /** All live threads of the block wait, and no event can release any of them. */
  divergentBarrier: 5,
  /** Calls were nested deeper than the call stack. */
  stackOverflow: 6,
  invalidCall: 7,
  /**
   * A loop or a recursion in a function that cannot be suspended ran longer than that of any real
   * program.
   */
  runaway: 8,
  /** A checker refused an access, in code compiled with `check`. */
  checked: 9,
  breakpoint: 10,
  /** An instruction names bytes that are no tensor map, or one that it cannot use. */
  tensorMap: 11,
} as const;

/** Addresses below this are never valid. */
export const NULL_PAGE = 65536;
/**
 * A word of the null page, zero at first: code that reads or writes 128 bits as one value holds it
 * as a lock.
 */
export const WIDE_LOCK = 64;
/** The loop back edges that a thread may take before the next thread of its block gets its turn. */
export const THREAD_SLICE = 4096;
/**
 * The same in kernels whose threads give way where they need not: a thread that holds a lock may
 * keep it for its whole slice while all others poll it.
 */
export const SHORT_SLICE = 64;
