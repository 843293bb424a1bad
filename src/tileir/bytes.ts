/** Bytes that are written one after the other, in the encodings of Tile IR's bytecode. */

/** The byte between parts that begin at a multiple of some bytes. */
const PADDING = 0xcb;

/** A growing array of bytes. */
export class Bytes {
  private buffer = new Uint8Array(256);
  /** The number of bytes that were written. */
  length = 0;

  byte(value: number): void {
    this.reserve(1);
    this.buffer[this.length++] = value;
  }

  bytes(values: Uint8Array): void {
    this.reserve(values.length);
    this.buffer.set(values, this.length);
    this.length += values.length;
  }

  /** A number of at least 0: seven bits in each byte, the lowest first. */
  varint(value: number | bigint): void {
    let rest = BigInt(value);
    while (rest > 0x7fn) {
      this.byte(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.byte(Number(rest));
  }

  /** A number with a sign, which is the lowest bit. */
  signedVarint(value: number | bigint): void {
    const whole = BigInt(value);
    this.varint(whole < 0n ? ~(whole << 1n) : whole << 1n);
  }

  /** An integer of `width` bytes, the lowest byte first. */
  integer(value: number | bigint, width: number): void {
    let rest = BigInt.asUintN(8 * width, BigInt(value));
    for (let at = 0; at < width; at++) {
      this.byte(Number(rest & 0xffn));
      rest >>= 8n;
    }
  }

  /** The number of integers, and each in `width` bytes. */
  integers(values: readonly (number | bigint)[], width: number): void {
    this.varint(values.length);
    for (const value of values) this.integer(value, width);
  }

  /** The number of varints, and each. */
  varints(values: readonly number[]): void {
    this.varint(values.length);
    for (const value of values) this.varint(value);
  }

  pad(alignment: number): void {
    while (this.length % alignment !== 0) this.byte(PADDING);
  }

  /** A copy of the bytes that were written. */
  toArray(): Uint8Array {
    return this.buffer.slice(0, this.length);
  }

  private reserve(more: number): void {
    if (this.length + more <= this.buffer.length) return;
    const larger = new Uint8Array(Math.max(2 * this.buffer.length, this.length + more));
    larger.set(this.buffer.subarray(0, this.length));
    this.buffer = larger;
  }
}
