/**
 * The memory that the threads of a crew share besides the device's: one block of words with the
 * grids that are open to all (jobs), the slots that their blocks run in (entries), and for each
 * member a mailbox and a ring for the output of its kernels. Everything that a thread needs to
 * run a block of a job is here or in the device's memory, so a member can be ended at any time.
 */

/** Words at the beginning. */
export const WORD = {
  /** 1: members leave. */
  stop: 0,
  /** Open jobs, one bit each. */
  open: 1,
  /** Members sleep on it; it is incremented when there may be work. */
  bell: 2,
  sleepers: 3,
  /** The owner sleeps on it; it is incremented when a job has ended or a member needs the owner. */
  news: 4,
  /** Members that are running. */
  online: 5,
  /** The end of memory that kernels see. */
  top: 6,
  /** Members that wait for the owner to execute a call. */
  calls: 7,
  /** Members that look for work without sleeping. */
  looking: 8,
} as const;

export const MAX_JOBS = 31;
const JOBS = 16;
export const JOB_WORDS = 32;

/** Words of a job. */
export const JOB = {
  /** Threads that work on the job. */
  active: 0,
  /** 0 free, 1 taken, 2 taken while another thread sleeps on it. It guards the two lists. */
  lock: 1,
  /** The number of the next block to start; it may exceed `total`. */
  next: 2,
  total: 3,
  finished: 4,
  /** Entries of blocks that have begun and wait for a turn, as a queue. */
  head: 5,
  tail: 6,
  queued: 7,
  /** Entries without a block, as a stack. */
  spare: 8,
  /** 1: blocks wait for others that have not begun, and there is no spare entry. */
  hungry: 9,
  /** 1: a thread has met a fault and records it, 2: it is recorded. */
  fault: 10,
  faultEntry: 11,
  /** The kernel's status; -1 where WebAssembly stopped it; the message is in the mailbox then. */
  faultStatus: 12,
  faultMember: 13,
  module: 14,
  kernel: 15,
  gridX: 16,
  gridY: 17,
  scratch: 18,
  scratchBytes: 19,
  /** Where a block's shared memory lies in the block, for code that reads its state. */
  shared: 20,
  /** See `../kernels/stall.ts`; 0 where blocks are not checked. */
  round: 21,
  /** The largest number of blocks that one call runs; see {@link pieceOf}. */
  most: 22,
  /** What an entry contains: one of {@link HELD}. */
  held: 23,
  /** The scratch of a block, for code that reads its state. */
  blockScratch: 24,
  blockScratchBytes: 25,
  /**
   * The smallest number of blocks that one call runs, where there are as many; and the share of the
   * remaining blocks that it takes: one part of this number.
   */
  least: 26,
  parts: 27,
  /**
   * Blocks of a row that one thread runs of each row; the length of a row where there is one row
   * only.
   */
  strip: 28,
} as const;

/**
 * Returns the number of blocks that a call beginning with the given one runs. Calls become shorter
 * towards the end of a grid, so that all threads have work until then. A call stays in one row, and
 * in one strip of it where it could run more: threads then tend to keep to a strip each, and to its
 * memory. A thread that takes whole rows writes next to another thread's writes wherever a row of
 * blocks is a column of the output, and each processor prefetches lines that the other uses: a
 * transpose of 2048² by two threads took 1.7 ms by rows and takes 1.25 by halves of rows (one
 * thread: 2.35).
 */
export function pieceOf(words: Int32Array, at: number, block: number): number {
  const gridX = words[at + JOB.gridX]!;
  const left = words[at + JOB.total]! - block;
  const [most, least] = [words[at + JOB.most]!, words[at + JOB.least]!];
  const part = Math.max(Math.floor(left / words[at + JOB.parts]!), least);
  const column = block % gridX;
  const strip = Math.max(words[at + JOB.strip]!, least);
  const end = most < strip ? gridX : Math.min(column - (column % strip) + strip, gridX);
  return Math.min(part, most, left, end - column);
}

export const TRAPPED = -1;

/**
 * What an entry contains: a block, a cluster (see `../kernels/cluster.ts`), or a team of blocks
 * that the kernel's code runs side by side.
 */
export const HELD = { block: 0, cluster: 1, team: 2 } as const;

export const jobAt = (job: number): number => JOBS + job * JOB_WORDS;

/** Entries are numbered from 1; 0 is none. */
export const MAX_ENTRIES = 4096;
const ENTRIES = JOBS + MAX_JOBS * JOB_WORDS;
const ENTRY_WORDS = 8;

/** Words of an entry. */
export const ENTRY = {
  address: 0,
  /** The next entry of the list that it is in. */
  next: 1,
  yields: 2,
  /** 1: it contains a block that has begun and not ended. */
  busy: 3,
  /** Four words, see `../kernels/stall.ts`. */
  watch: 4,
} as const;

export const entryAt = (entry: number): number => ENTRIES + (entry - 1) * ENTRY_WORDS;

const MEMBERS = ENTRIES + MAX_ENTRIES * ENTRY_WORDS;

/** Bytes of a member's ring for printed text, and of the text in its mailbox. */
export const RING_BYTES = 65536;
export const TEXT_BYTES = 1024;
const MEMBER_HEAD = 32;
const MEMBER_WORDS = MEMBER_HEAD + (TEXT_BYTES + RING_BYTES) / 4;

/** Words of a member. */
export const MEMBER = {
  /** See {@link CALL_STATE}. */
  call: 0,
  /** The number of the host function, see {@link HOST_CALLS}. */
  name: 1,
  module: 2,
  /** The result, two words. */
  result: 4,
  /** Four arguments of two words. */
  args: 8,
  /** Bytes ever written to its ring, and ever read, modulo 2^32. */
  written: 16,
  read: 17,
  textBytes: 18,
  /** The system's number of its thread, where its starter has determined it; else 0. */
  thread: 19,
} as const;

export const CALL_STATE = { none: 0, asked: 1, answered: 2 } as const;

/** Functions of the host that members leave to the owner. */
export const HOST_CALLS = ['host_malloc', 'host_free', 'host_assert'] as const;

/** Members are numbered from 0. */
export const memberAt = (member: number): number => MEMBERS + member * MEMBER_WORDS;
export const textOf = (member: number): number => (memberAt(member) + MEMBER_HEAD) * 4;
export const ringOf = (member: number): number => textOf(member) + TEXT_BYTES;

export const controlBytes = (members: number): number => (MEMBERS + members * MEMBER_WORDS) * 4;

/** A kernel's module, as it is sent to members. */
export interface ModuleMessage {
  readonly module: number;
  readonly wasm: WebAssembly.Module;
  readonly dataBase: number;
  readonly hostImports: readonly string[];
  readonly inLanes: boolean;
  /** Exported functions, in the order of the numbers that jobs use for kernels. */
  readonly kernels: readonly string[];
}

/** The module was unloaded. */
export interface ForgetMessage {
  readonly forget: number;
}

export type MemberMessage = ModuleMessage | ForgetMessage;

/** The data that a member is started with. */
export interface MemberStart {
  readonly member: number;
  readonly control: SharedArrayBuffer;
  readonly memory: WebAssembly.Memory;
  /** The largest number of members that look for work at once without sleeping. */
  readonly lookers: number;
  /** The owner's `performance.timeOrigin`: %clock and %globaltimer are one clock on all threads. */
  readonly timeOrigin: number;
}

export function ring(words: Int32Array, word: number): void {
  Atomics.add(words, word, 1);
  Atomics.notify(words, word);
}
