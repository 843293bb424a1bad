/**
 * What the checking CPU device finds: plain data, which travels between threads and stands in
 * errors.
 */

/**
 * What to look for. Everything that is not switched off is on but `sameValue` and `keepGoing`; so
 * it is with `true` in place of the object.
 */
export interface CheckOptions {
  /**
   * Accesses outside of allocations and variables, after a free, misaligned, in the wrong space;
   * wrong frees.
   */
  memory?: boolean;
  /** Reads of bytes that nothing has written. */
  uninitialised?: boolean;
  /** Conflicting accesses that nothing orders: of threads, blocks and streams. */
  races?: boolean;
  /**
   * Fails the launch, too, where two threads store the same value to the same place and nothing
   * orders the two. Otherwise that is reported, as `same-value`, and fails nothing. Off by default.
   */
  sameValue?: boolean;
  /**
   * Barriers that part of a block or warp does not reach, and warp operations whose masks disagree.
   */
  sync?: boolean;
  /** Memory that is still allocated when the device is closed. */
  leaks?: boolean;
  /** Reports and goes on, where otherwise the launch fails. */
  keepGoing?: boolean;
}

export type CheckKind =
  | 'out-of-bounds'
  | 'use-after-free'
  | 'misaligned'
  | 'wrong-space'
  | 'read-only'
  | 'uninitialised'
  | 'invalid-free'
  | 'double-free'
  | 'race'
  | 'same-value'
  | 'divergent-barrier'
  | 'barrier-count'
  | 'warp-mask'
  | 'deadlock'
  | 'leak';

/** Who did something, and where. */
export interface CheckPlace {
  /** `read`, `write`, `atomic`, `wait`, `free`, or what the host did: `copy`, `fill`, … */
  action: string;
  /** The kernel, or undefined for work of the host. */
  kernel?: string;
  /** Line of the PTX. */
  line?: number;
  /** What stands there. */
  instruction?: string;
  /** Line of the program that the PTX was made from, where the PTX says (`-lineinfo`). */
  source?: { file: string; line: number };
  block?: readonly [number, number, number];
  thread?: readonly [number, number, number];
}

/** The memory that an address is in or next to. */
export interface CheckMemory {
  space: 'global' | 'shared' | 'local' | 'const' | 'heap';
  /** Of the variable, or of the allocation. */
  label?: string;
  /** Address of the first byte. */
  address: number;
  bytes: number;
  /** Of the access, from the first byte: negative before it, `bytes` or more behind it. */
  offset: number;
  /** It was freed before. */
  freed?: true;
  /** Where JavaScript allocated it: the stack of the call. */
  stack?: string;
  /** Number of the operation that allocated it. */
  root?: number;
  /**
   * Number that the allocation had while it lived; 0 for some. Others of other operations may have
   * the same.
   */
  handle?: number;
}

export interface CheckReport {
  kind: CheckKind;
  /** All of it in words. */
  message: string;
  address?: number;
  /** Bytes accessed. */
  bytes?: number;
  /** The access or arrival that was found at fault. */
  place?: CheckPlace;
  /** Of a race: the earlier access. */
  other?: CheckPlace;
  memory?: CheckMemory;
  /** What waits where, of a deadlock. */
  waits?: readonly { threads: string; line: number; instruction: string }[];
  /** How often it was found; the places are those of the first time. */
  count: number;
  /** The seed that the run was scheduled with. */
  seed?: number;
}
