// A growing run of bytes with WebAssembly's encodings of numbers and names.

export class Bytes {
  bytes = new Uint8Array(256);
  length = 0;

  private grow(extra: number): void {
    if (this.length + extra <= this.bytes.length) return;
    const bigger = new Uint8Array(Math.max(this.bytes.length * 2, this.length + extra));
    bigger.set(this.bytes.subarray(0, this.length));
    this.bytes = bigger;
  }

  byte(value: number): this {
    if (this.length === this.bytes.length) this.grow(1);
    this.bytes[this.length++] = value;
    return this;
  }

  append(bytes: Uint8Array): this {
    this.grow(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
    return this;
  }

  finish(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }

  /** Unsigned LEB128. */
  u32(value: number): this {
    value >>>= 0;
    while (value > 127) {
      this.byte((value & 127) | 128);
      value >>>= 7;
    }
    return this.byte(value);
  }

  /** Signed LEB128 of a 32-bit value. */
  s32(value: number): this {
    value |= 0;
    for (;;) {
      const low = value & 127;
      value >>= 7;
      if ((value === 0 && !(low & 64)) || (value === -1 && low & 64)) return this.byte(low);
      this.byte(low | 128);
    }
  }

  /** Signed LEB128 of a 64-bit value. */
  s64(value: bigint): this {
    value = BigInt.asIntN(64, value);
    for (;;) {
      const low = Number(value & 127n);
      value >>= 7n;
      if ((value === 0n && !(low & 64)) || (value === -1n && low & 64)) return this.byte(low);
      this.byte(low | 128);
    }
  }

  name(text: string): this {
    const bytes = new TextEncoder().encode(text);
    return this.u32(bytes.length).append(bytes);
  }
}
