// A growing run of WebAssembly instructions. In development each instruction is validated where it
// is written.

import { Bytes } from './bytes.js';
import { accessWidth, opcode } from './opcodes.js';
import type { AccessOpcode, LaneOpcode, Opcode } from './opcodes.js';
import { Validator } from './validation.js';
import type { FunctionTypes } from './validation.js';

/**
 * scripts/build.mjs defines it: the built package does not validate. It is tested at each place, so
 * that the validator is left out of the package.
 */
declare const ASYNC_CUDA_BUILT: boolean;

export class Code extends Bytes {
  private readonly validator: Validator | undefined;

  /**
   * @param types the types of the function that contains the code; without them the code is not
   * validated
   */
  constructor(types?: FunctionTypes) {
    super();
    this.validator =
      typeof ASYNC_CUDA_BUILT === 'undefined' && types ? new Validator(types) : undefined;
  }

  override byte(value: number): this {
    super.byte(value);
    if (typeof ASYNC_CUDA_BUILT === 'undefined') this.validator?.read(this.bytes, this.length);
    return this;
  }

  override append(bytes: Uint8Array): this {
    super.append(bytes);
    if (typeof ASYNC_CUDA_BUILT === 'undefined') this.validator?.read(this.bytes, this.length);
    return this;
  }

  /** Removes the code from `start` on, and returns it. */
  cut(start: number): Uint8Array {
    const bytes = this.bytes.slice(start, this.length);
    this.length = start;
    if (typeof ASYNC_CUDA_BUILT === 'undefined') this.validator?.cut(start);
    return bytes;
  }

  /** Writes code before what is already written from `start` on. */
  insert(start: number, write: () => void): this {
    const after = this.cut(start);
    write();
    return this.append(after);
  }

  op(name: Opcode): this {
    const code = opcode(name);
    if (code < 256) return this.byte(code);
    this.byte(code >>> 16).u32(code & 0xffff);
    if (name === 'atomic.fence') this.byte(0);
    return this;
  }

  /** Writes extract_lane or replace_lane. */
  lane(name: LaneOpcode, lane: number): this {
    return this.op(name).byte(lane);
  }

  /** v128.const of four 32-bit lanes. */
  v128(lanes: readonly [number, number, number, number]): this {
    this.op('v128.const');
    for (const lane of lanes) for (let i = 0; i < 4; i++) this.byte((lane >>> (8 * i)) & 255);
    return this;
  }

  /**
   * Writes i8x16.shuffle; `lanes` are the 32-bit lanes to take, 0 to 3 of the first operand, 4 to 7
   * of the second.
   */
  shuffle(lanes: readonly [number, number, number, number]): this {
    this.op('i8x16.shuffle');
    for (const lane of lanes) for (let i = 0; i < 4; i++) this.byte(lane * 4 + i);
    return this;
  }

  /**
   * Writes i8x16.shuffle; `taken` are the 16 bytes to take, 0 to 15 of the first operand, 16 to 31
   * of the second.
   */
  shuffleBytes(taken: readonly number[]): this {
    this.op('i8x16.shuffle');
    for (const byte of taken) this.byte(byte);
    return this;
  }

  /** Writes a memory instruction with natural alignment. */
  memory(name: AccessOpcode, offset = 0): this {
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
