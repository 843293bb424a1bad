/**
 * The findings of the checking CPU device: plain data, which is passed between threads and attached
 * to errors.
 */

/**
 * The kinds of errors to check for. Everything that is not switched off is on, except `sameValue`
 * and `keepGoing`; `true` in place of the object means the same.
 */
export interface CheckOptions {
  /**
   * Accesses outside of allocations and variables, after a free, misaligned or in the wrong space;
   * wrong frees.
   */
  memory?: boolean;
  /** Reads of bytes that nothing has written. */
  uninitialised?: boolean;
  /** Conflicting accesses without an order between them, by threads, blocks and streams. */
  races?: boolean;
  /**
   * Fails the launch, too, where two threads store the same value to the same place without an
   * order between them. Otherwise that is reported, as `same-value`, and does not fail. Off by
   * default.
   */
  sameValue?: boolean;
  /**
   * Barriers that part of a block or warp does not reach, and warp operations whose masks disagree.
   */
  sync?: boolean;
  /** Memory that is still allocated when the device is closed. */
  leaks?: boolean;
  /** Reports the error and goes on. Otherwise the launch fails. */
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

/** An access or arrival, and its place. */
export interface CheckPlace {
  /** `read`, `write`, `atomic`, `wait`, `free`, or an action of the host: `copy`, `fill`, … */
  action: string;
  /** The kernel, or undefined for work of the host. */
  kernel?: string;
  /** Line of the PTX. */
  line?: number;
  /** The text of that line. */
  instruction?: string;
  /** Line of the source from which the PTX was made, where the PTX records it (`-lineinfo`). */
  source?: { file: string; line: number };
  block?: readonly [number, number, number];
  thread?: readonly [number, number, number];
}

/** The memory that contains an address, or is next to it. */
export interface CheckMemory {
  space: 'global' | 'shared' | 'local' | 'const' | 'heap';
  /** The name of the variable, or the label of the allocation. */
  label?: string;
  /** Address of the first byte. */
  address: number;
  bytes: number;
  /**
   * Offset of the access from the first byte: negative before the memory, `bytes` or more after it.
   */
  offset: number;
  /** Whether the memory was freed before. */
  freed?: true;
  /** The call stack of the allocation in JavaScript. */
  stack?: string;
  /** Number of the operation that allocated the memory. */
  root?: number;
  /**
   * The handle that the allocation had while it existed; 0 for some. Allocations of other
   * operations may have the same handle.
   */
  handle?: number;
}

export interface CheckReport {
  kind: CheckKind;
  /** The report as text. */
  message: string;
  address?: number;
  /** Bytes accessed. */
  bytes?: number;
  /** The access or arrival that is wrong. */
  place?: CheckPlace;
  /** The earlier access of a race. */
  other?: CheckPlace;
  memory?: CheckMemory;
  /** The waiting threads of a deadlock, and the instructions they wait at. */
  waits?: readonly { threads: string; line: number; instruction: string }[];
  /** How often it was found. The places are those of the first time. */
  count: number;
  /** The seed of the run's schedule. */
  seed?: number;
}
