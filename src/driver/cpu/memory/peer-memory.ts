/**
 * Memory of a CPU device on another thread: copies reach it, kernels do not. Its contents and its
 * allocations are known on the other thread only, so only its size is checked here.
 */
import type { ByteSpace } from './byte-space.js';

/**
 * The first address of such memory here, far above those of host memory: every device's addresses
 * begin at zero, so that each adopted one gets an interval of 2^32.
 */
export const PEER_BASE = 2 ** 50;
/** A word below all device memory in which another thread records that it writes to this memory. */
export const FOREIGN_WORD = 2;
export const PEER_STRIDE = 2 ** 32;

export class PeerMemory implements ByteSpace {
  readonly kind = 'device';
  /** The address here of this memory's address 0. */
  readonly origin: number;
  /** The context's handle here. */
  readonly handle: number;
  private readonly memory: WebAssembly.Memory;
  private seen: Uint8Array;
  private seenWords: Int32Array;

  constructor(handle: number, origin: number, memory: WebAssembly.Memory) {
    this.handle = handle;
    this.origin = origin;
    this.memory = memory;
    this.seen = new Uint8Array(memory.buffer);
    this.seenWords = new Int32Array(memory.buffer);
    // The checker of that memory must be told that other threads write to it.
    Atomics.store(this.seenWords, FOREIGN_WORD, 1);
  }

  /** The other thread may have grown the memory: `buffer` is then another one. */
  get bytes(): Uint8Array {
    const { buffer } = this.memory;
    if (buffer !== this.seen.buffer) this.seen = new Uint8Array(buffer);
    return this.seen;
  }

  get words(): Int32Array {
    const { buffer } = this.memory;
    if (buffer !== this.seenWords.buffer) this.seenWords = new Int32Array(buffer);
    return this.seenWords;
  }

  /** Whether all of [address, address + bytes) is in it. */
  holds(address: number, bytes: number): boolean {
    const end = address - this.origin + bytes;
    if (!this.owns(address)) return false;
    if (end <= this.bytes.length) return true;
    // A thread sees that another has grown memory when it is next interrupted, or when it grows the
    // memory itself, even by zero.
    this.memory.grow(0);
    return end <= this.bytes.length;
  }

  owns(address: number): boolean {
    return address >= this.origin && address < this.origin + PEER_STRIDE;
  }

  fill(at: number, byte: number, bytes: number): void {
    this.bytes.fill(byte, at, at + bytes);
  }

  move(to: number, from: number, bytes: number): void {
    this.bytes.copyWithin(to, from, from + bytes);
  }
}
