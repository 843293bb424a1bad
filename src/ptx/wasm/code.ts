// A growing run of WebAssembly bytes with the handful of encodings that instructions need.

import { accessWidth, opcode } from './opcodes.js';

export class Code {
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

  /** Takes away what stands from `start` on. */
  cut(start: number): Uint8Array {
    const bytes = this.bytes.slice(start, this.length);
    this.length = start;
    return bytes;
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

  op(name: string): this {
    const code = opcode(name);
    if (code < 256) return this.byte(code);
    this.byte(code >>> 16).u32(code & 0xffff);
    if (name === 'atomic.fence') this.byte(0);
    return this;
  }

  /** extract_lane or replace_lane. */
  lane(name: string, lane: number): this {
    return this.op(name).byte(lane);
  }

  /** v128.const of four 32-bit lanes. */
  v128(lanes: readonly [number, number, number, number]): this {
    this.op('v128.const');
    for (const lane of lanes) for (let i = 0; i < 4; i++) this.byte((lane >>> (8 * i)) & 255);
    return this;
  }

  /**
   * i8x16.shuffle, given the 32-bit lanes (0 to 3 of the first operand, 4 to 7 of the second) to
   * take.
   */
  shuffle(lanes: readonly [number, number, number, number]): this {
    this.op('i8x16.shuffle');
    for (const lane of lanes) for (let i = 0; i < 4; i++) this.byte(lane * 4 + i);
    return this;
  }

  /**
   * i8x16.shuffle, given the 16 bytes to take: 0 to 15 of the first operand, 16 to 31 of the
   * second.
   */
  shuffleBytes(taken: readonly number[]): this {
    this.op('i8x16.shuffle');
    for (const byte of taken) this.byte(byte);
    return this;
  }

  /** A memory instruction at natural alignment. */
  memory(name: string, offset = 0): this {
    return this.op(name).u32(accessWidth(name)).u32(offset);
  }

  i32(value: number): this {
    return this.byte(0x41).s32(value);
  }

  i64(value: bigint | number): this {
    return this.byte(0x42).s64(BigInt(value));
  }

  f32Bits(bits: number): this {
    this.byte(0x43);
    for (let i = 0; i < 4; i++) this.byte((bits >>> (8 * i)) & 255);
    return this;
  }

  f64Bits(bits: bigint): this {
    this.byte(0x44);
    for (let i = 0n; i < 8n; i++) this.byte(Number((bits >> (8n * i)) & 255n));
    return this;
  }

  f32(value: number): this {
    return this.f32Bits(new Uint32Array(new Float32Array([value]).buffer)[0]!);
  }

  f64(value: number): this {
    return this.f64Bits(new BigUint64Array(new Float64Array([value]).buffer)[0]!);
  }

  get(local: number): this {
    return this.byte(0x20).u32(local);
  }

  set(local: number): this {
    return this.byte(0x21).u32(local);
  }

  tee(local: number): this {
    return this.byte(0x22).u32(local);
  }
}
