/**
 * The common format of the ring's records.
 *
 * Every record begins with the same four words; the body of its command follows. Memory is named by
 * a handle and a byte offset, because its address is often not yet known when the record is
 * written. Byte counts and offsets are 64-bit integers in two words, low half first.
 */

/**
 * Word 0: the number of the command in bits 0–7, flags in bits 8–15, the length in words in bits
 * 16–31.
 */
export const RECORD_HEAD = 0;
/** Word 1: the operation (root) that the command belongs to. */
export const RECORD_ROOT = 1;
/** Word 2: the slot number of the stream, or -1. */
export const RECORD_STREAM = 2;
/** Word 3: the handle of an event to record on the stream after the command, 0 for none. */
export const RECORD_EVENT = 3;
/** The index of the command's own words. */
export const RECORD_BODY = 4;

/** The command runs although its stream is held: it is part of the transfer that holds it. */
export const FLAG_BYPASS = 1;
/**
 * The fence belongs to one of many short awaits in a row: the JavaScript thread executes the next
 * commands itself.
 */
export const FLAG_HOT = 2;
/**
 * The launch is of a graph with few nodes, on an idle stream: it takes no longer than launching a
 * few kernels.
 */
export const FLAG_SHORT = 4;
/**
 * The largest number of nodes of such a graph: launching them takes about ten microseconds (H200).
 */
export const SHORT_GRAPH_NODES = 128;

/** The access of one operand, in bits 24 and up of the word that contains its handle. */
export const ACCESS_READ = 1;
export const ACCESS_WRITE = 2;
/**
 * The command writes every byte of the allocation, which defines contents that an earlier failure
 * made undefined.
 */
export const ACCESS_WHOLE = 4;
export const HANDLE_MASK = 0xffffff;
export const ACCESS_SHIFT = 24;

const TWO32 = 4294967296;

/** Reads a 64-bit integer as a number. */
export function int64(memory: Int32Array, at: number): number {
  return (memory[at]! >>> 0) + memory[at + 1]! * TWO32;
}

/** Reads a 64-bit value with all of its bits. */
export function bigInt64(memory: Int32Array, at: number): bigint {
  return BigInt(memory[at]! >>> 0) | (BigInt(memory[at + 1]! >>> 0) << 32n);
}

/** Writes a 64-bit integer. */
export function putInt64(memory: Int32Array, at: number, value: number): void {
  memory[at] = value | 0;
  memory[at + 1] = (value / TWO32) | 0;
}
