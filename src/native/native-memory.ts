/**
 * Memory with an address that C code can use: the driver writes its results there and reads its
 * structures there.
 *
 * It is a SharedArrayBuffer, not malloc: its bytes never move, JavaScript reads and writes them as
 * fast as any typed array, nothing has to be freed, and runtimes that forbid views of foreign
 * memory (Electron) allow it. It is freed when this object is no longer referenced. Addresses are
 * plain numbers.
 */
import type { Koffi } from './koffi.js';

const TWO_32 = 4294967296;
/** Alignment of the first byte: a cache line, more than any structure of the driver requires. */
const ALIGNMENT = 64;

export class NativeMemory {
  /** The address of the first byte, a multiple of 64. */
  readonly address: number;
  readonly bytes: Uint8Array;
  readonly i32: Int32Array;
  readonly u32: Uint32Array;
  readonly f32: Float32Array;

  constructor(koffi: Koffi, size: number) {
    const buffer = new SharedArrayBuffer(size + ALIGNMENT);
    const start = Number(koffi.address(new Uint8Array(buffer)));
    const skip = (ALIGNMENT - (start % ALIGNMENT)) % ALIGNMENT;
    this.address = start + skip;
    this.bytes = new Uint8Array(buffer, skip, size);
    this.i32 = new Int32Array(buffer, skip, size >> 2);
    this.u32 = new Uint32Array(buffer, skip, size >> 2);
    this.f32 = new Float32Array(buffer, skip, size >> 2);
  }

  /** Returns the 64-bit number at byte `offset` (a multiple of 4); exact up to 2^53. */
  u64(offset: number): number {
    const word = offset >> 2;
    return this.u32[word]! + this.u32[word + 1]! * TWO_32;
  }

  /**
   * Returns all 64 bits at byte `offset` (a multiple of 4), for values that may not be exact as a
   * number.
   */
  bits64(offset: number): bigint {
    const word = offset >> 2;
    return BigInt(this.u32[word]!) | (BigInt(this.u32[word + 1]!) << 32n);
  }

  /**
   * Writes a 64-bit number at byte `offset` (a multiple of 4). For values from 2^64 on (also
   * Infinity) all bits are set.
   */
  setU64(offset: number, value: number): void {
    const word = offset >> 2;
    const full = value >= TWO_32 * TWO_32;
    this.u32[word] = full ? 0xffffffff : value;
    this.u32[word + 1] = full ? 0xffffffff : Math.floor(value / TWO_32);
  }

  /** Returns the text at byte `offset`, up to its terminating zero or `limit` bytes. */
  text(offset: number, limit: number): string {
    const all = this.bytes.subarray(offset, offset + limit);
    const end = all.indexOf(0);
    // Buffer.from copies the bytes, since decoders do not accept shared memory.
    return Buffer.from(all.subarray(0, end === -1 ? limit : end)).toString('utf8');
  }
}

/**
 * The size of the memory that one provider's calls share, each for the length of the call: results
 * in 8-byte slots from 0 on, and a structure from {@link STRUCTURE} on.
 */
export const SCRATCH_SIZE = 4096;
/** The offset of a call's structure, name or text. */
export const STRUCTURE = 256;
