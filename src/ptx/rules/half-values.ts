// f16 and bf16 values: they are bits in an i32, and are computed as f32 or f64.

import type { Emitter } from '../emit/emitter.js';
import type { ScalarType } from '../scalar-types.js';

/** Converts the half on the stack to an f32; this is exact. */
export function widenHalf(e: Emitter, type: ScalarType): void {
  if (type.name === 'bf16') e.code.i32(16).op('i32.shl').op('f32.reinterpret_i32');
  else e.call('f16_to_f32');
}

/** Rounds the f64 on the stack to a half, once. */
export function roundToHalf(e: Emitter, type: ScalarType): void {
  e.call(type.name === 'bf16' ? 'f64_to_bf16' : 'f64_to_f16');
}

/** Replaces a subnormal half on the stack by a zero of its sign. */
export function flushHalf(e: Emitter, type: ScalarType): void {
  const { code } = e;
  const least = type.name === 'bf16' ? 0x80 : 0x400;
  const bits = e.temp('i32');
  code.set(bits).get(bits).i32(0x8000).op('i32.and').get(bits);
  code.get(bits).i32(0x7fff).op('i32.and').i32(least).op('i32.lt_u').op('select');
}
