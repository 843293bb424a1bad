// cvt in all its forms, and cvta. A conversion is a source class, a destination class and a
// rounding; each pair of classes is one function here.

import type { Emitter } from '../emit/emitter.js';
import { ROUNDING } from '../runtime/floats.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { flush, flushRounded } from './flush.js';
import { roundToHalf, widenHalf } from './half-values.js';
import { convertPack, convertSmall, isSmallConversion } from './convert-small.js';
import { canonicalNaN } from './nan.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const F32 = scalarType('f32');
const TF32 = scalarType('tf32');

const INTEGER_ROUNDING: Record<string, string> = {
  rni: 'nearest',
  rzi: 'trunc',
  rmi: 'floor',
  rpi: 'ceil',
};
const isHalfType = (type: ScalarType): boolean => type.kind === 'float' && type.bits === 16;

export function convert(e: Emitter): void {
  if (e.has('pack')) {
    convertPack(e);
    return;
  }
  const [to, from] = e.types();
  if (!to || !from) throw e.semantic("'cvt' needs two types");
  if (isSmallConversion(e, to, from)) {
    convertSmall(e, to, from);
    return;
  }
  if (to.name === 'f16x2' || to.name === 'bf16x2') {
    convertPair(e, to, from);
    return;
  }
  if (to.name === 'tf32') {
    roundToTf32(e);
    return;
  }
  e.argCount(2);
  const fit = to.name === 'bf16' || from.name === 'bf16' ? 'exact' : 'wide';
  e.push(e.arg(1), from, fit);
  // The ISA flushes every f32 that is read; in conversions to f16 a GPU does not, which .rm and .rp
  // show (H200).
  if (e.has('ftz') && from.wasm === 'f32' && to.name !== 'f16') flush(e);
  if (from.kind === 'float') {
    if (to.kind === 'float') floatToFloat(e, from, to);
    else floatToInteger(e, from, to);
  } else if (to.kind === 'float') {
    integerToFloat(e, from, to);
  } else {
    integerToInteger(e, from, to);
  }
  e.pop(e.arg(0), to, fit);
}

function integerToInteger(e: Emitter, from: ScalarType, to: ScalarType): void {
  const { code } = e;
  const signed = from.kind === 'signed';
  if (e.has('sat')) {
    // The clamp is in 64 bits: every integer but a large u64 fits a signed one.
    if (from.wasm === 'i32') code.op(signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
    const value = e.temp('i64');
    const least = to.kind === 'signed' ? -(1n << BigInt(to.bits - 1)) : 0n;
    const most =
      to.kind === 'signed' ? (1n << BigInt(to.bits - 1)) - 1n : (1n << BigInt(to.bits)) - 1n;
    code.set(value);
    if (signed) {
      if (to.bits < 64 || to.kind !== 'signed') {
        code.get(value).i64(least).get(value).i64(least).op('i64.gt_s').op('select').set(value);
        if (to.bits < 64)
          code.get(value).i64(most).get(value).i64(most).op('i64.lt_s').op('select').set(value);
      }
    } else {
      code.get(value).i64(most).get(value).i64(most).op('i64.lt_u').op('select').set(value);
    }
    code.get(value);
    if (to.wasm === 'i32') code.op('i32.wrap_i64');
    return;
  }
  if (to.wasm === 'i64') {
    if (from.wasm === 'i32') code.op(signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
    return;
  }
  if (from.wasm === 'i64') code.op('i32.wrap_i64');
  if (to.bits < 32) {
    // In a wider register the result is extended by its own sign.
    if (to.kind === 'signed') code.op(to.bits === 8 ? 'i32.extend8_s' : 'i32.extend16_s');
    else e.narrow(to);
  }
}

function roundingMode(e: Emitter): number {
  const mode = e.oneOf('rn', 'rz', 'rm', 'rp');
  return mode ? ROUNDING[mode] : 0;
}

function integerToFloat(e: Emitter, from: ScalarType, to: ScalarType): void {
  const { code } = e;
  const suffix = from.kind === 'signed' ? 's' : 'u';
  const mode = roundingMode(e);
  if (to.wasm === 'f32' || to.wasm === 'f64') {
    if (mode === 0) {
      code.op(opcodeNamed(`${to.wasm}.convert_${from.wasm}_${suffix}`));
    } else {
      const exact = from.wasm === 'i32';
      if (exact) {
        code.op(`f64.convert_i32_${suffix}`);
        if (to.wasm === 'f32') {
          code.f64(0).i32(mode);
          e.call('round_f32');
        }
      } else {
        code.i32(mode);
        e.call(`${to.wasm}_from_${suffix}64`);
      }
    }
    if (e.has('sat')) e.call(`saturate_${to.wasm}`);
    return;
  }
  // A 64-bit integer may need more bits than f64 has: the first of the two roundings is to odd.
  if (from.bits === 64) e.call(`f64_odd_${suffix}64`);
  else code.op(opcodeNamed(`f64.convert_${from.wasm}_${suffix}`));
  toHalf(e, to, mode);
}

/** Rounds the f64 on the stack to a half in a mode. */
function toHalf(e: Emitter, to: ScalarType, mode: number): void {
  const { code } = e;
  if (e.has('sat')) e.call('saturate_f64');
  if (mode === 0) roundToHalf(e, to);
  else {
    code
      .i32(to.name === 'bf16' ? 7 : 10)
      .i32(to.name === 'bf16' ? 127 : 15)
      .i32(mode);
    e.call('f64_to_small');
  }
  if (e.has('satfinite')) clampFinite(e, to);
  if (e.has('relu')) reluHalf(e, to);
}

function clampFinite(e: Emitter, type: ScalarType): void {
  const { code } = e;
  const infinity = type.name === 'bf16' ? 0x7f80 : 0x7c00;
  const bits = e.temp('i32');
  code.set(bits).get(bits).i32(1).op('i32.sub').get(bits);
  code.get(bits).i32(0x7fff).op('i32.and').i32(infinity).op('i32.eq').op('select');
}

function reluHalf(e: Emitter, type: ScalarType): void {
  const { code } = e;
  const infinity = type.name === 'bf16' ? 0x7f80 : 0x7c00;
  const bits = e.temp('i32');
  code
    .set(bits)
    .get(bits)
    .i32(0)
    .get(bits)
    .i32(0x8000)
    .op('i32.and')
    .op('i32.eqz')
    .get(bits)
    .i32(0x7fff)
    .op('i32.and')
    .i32(infinity)
    .op('i32.gt_u')
    .op('i32.or')
    .op('select');
}

function floatToInteger(e: Emitter, from: ScalarType, to: ScalarType): void {
  const { code } = e;
  const mode = Object.keys(INTEGER_ROUNDING).find((name) => e.has(name));
  if (!mode) throw e.semantic('a conversion to an integer needs .rni, .rzi, .rmi or .rpi');
  let type = from;
  if (isHalfType(from)) {
    widenHalf(e, from);
    type = F32;
  }
  code.op(opcodeNamed(`${type.wasm}.${INTEGER_ROUNDING[mode]!}`));
  const signed = to.kind === 'signed';
  if (to.bits < 32) {
    // Narrow targets clamp to their own range.
    const source = e.temp(type.wasm);
    code.tee(source).op(opcodeNamed(`i32.trunc_sat_${type.wasm}_s`));
    const value = e.temp('i32');
    const least = signed ? -(2 ** (to.bits - 1)) : 0;
    const most = signed ? 2 ** (to.bits - 1) - 1 : 2 ** to.bits - 1;
    code
      .set(value)
      .get(value)
      .i32(least)
      .get(value)
      .i32(least)
      .op('i32.gt_s')
      .op('select')
      .set(value);
    code.get(value).i32(most).get(value).i32(most).op('i32.lt_s').op('select');
    if (from.bits === 64)
      code
        .i32(signed ? least : 1 << (to.bits - 1))
        .get(source)
        .get(source)
        .op('f64.eq')
        .op('select');
    return;
  }
  // PTX ISA, cvt: NaN gives 0 for 32-bit targets from f16 and f32, and the most negative value
  // (unsigned: the top bit) for 64-bit targets and for f64 sources.
  const oddNaN = to.bits === 64 || from.bits === 64;
  const value = e.temp(type.wasm);
  if (oddNaN) code.tee(value);
  code.op(opcodeNamed(`${to.wasm}.trunc_sat_${type.wasm}_${signed ? 's' : 'u'}`));
  if (!oddNaN) return;
  if (to.wasm === 'i64') code.i64(1n << 63n);
  else code.i32(0x80000000);
  code.get(value).get(value).op(`${type.wasm}.eq`).op('select');
}

function floatToFloat(e: Emitter, from: ScalarType, to: ScalarType): void {
  const { code } = e;
  const integral = Object.keys(INTEGER_ROUNDING).find((name) => e.has(name));
  const mode = roundingMode(e);
  let type = from;
  if (isHalfType(from)) {
    if (from === to && !integral && !e.has('sat')) return;
    widenHalf(e, from);
    type = F32;
  }
  if (integral) {
    code.op(opcodeNamed(`${type.wasm}.${INTEGER_ROUNDING[integral]!}`));
  }
  if (isHalfType(to)) {
    if (type.wasm === 'f32') code.op('f64.promote_f32');
    toHalf(e, to, mode);
    return;
  }
  if (to.wasm === 'f64' && type.wasm === 'f32') code.op('f64.promote_f32');
  if (to.wasm === 'f32' && isHalfType(from) && e.has('ftz')) flush(e);
  if (to.wasm === 'f32' && type.wasm === 'f64') {
    const source = e.temp('f64');
    code.tee(source);
    if (mode === 0) {
      code.op('f32.demote_f64');
    } else {
      code.f64(0).i32(mode);
      e.call('round_f32');
    }
    if (e.has('ftz')) {
      flushRounded(e, () => {
        code.get(source).i32(mode);
        e.call('unless_tiny');
      });
    }
  }
  if (e.has('sat')) e.call(`saturate_${to.wasm}`);
  else canonicalNaN(e, to);
}

/** cvt.rn.f16x2.f32 d, a, b: a becomes the high half. */
function convertPair(e: Emitter, to: ScalarType, from: ScalarType): void {
  if (from.name !== 'f32') throw e.unsupported(`type '.${from.name}' is`);
  const { code } = e;
  e.argCount(3);
  const half = scalarType(to.name.replace('x2', ''));
  // Registers of f16x2 and of its operands may be wider, those of bf16x2 may not.
  const fit = to.name === 'f16x2' ? 'wide' : 'exact';
  for (const index of [1, 2]) {
    e.push(e.arg(index), F32, fit);
    code.op('f64.promote_f32');
    toHalf(e, half, roundingMode(e));
    if (index === 1) code.i32(16).op('i32.shl');
  }
  code.op('i32.or');
  e.pop(e.arg(0), to, fit);
}

/** tf32 is an f32 with 10 mantissa bits; .rna rounds ties away from zero. */
function roundToTf32(e: Emitter): void {
  const { code } = e;
  e.argCount(2);
  const bits = e.temp('i32');
  e.push(e.arg(1), F32);
  code.op('i32.reinterpret_f32').set(bits);
  const magnitude = (): void => {
    code.get(bits).i32(0x7fffffff).op('i32.and');
  };
  if (e.has('rz')) {
    code.get(bits);
  } else if (e.has('rn')) {
    code
      .get(bits)
      .i32(0xfff)
      .op('i32.add')
      .get(bits)
      .i32(13)
      .op('i32.shr_u')
      .i32(1)
      .op('i32.and')
      .op('i32.add');
  } else {
    code.get(bits).i32(0x1000).op('i32.add');
  }
  code.i32(0xffffe000).op('i32.and').get(bits);
  magnitude();
  code.i32(0x7f800000).op('i32.lt_u').op('select');
  if (e.has('satfinite')) {
    // Infinity, as the operand or after rounding, becomes the largest finite value.
    code.set(bits).get(bits).i32(0x2000).op('i32.sub').get(bits);
    magnitude();
    code.i32(0x7f800000).op('i32.eq').op('select');
  }
  if (e.has('relu')) {
    code.set(bits).i32(0x7fffffff).i32(0).get(bits).get(bits).i32(0).op('i32.lt_s').op('select');
    magnitude();
    code.i32(0x7f800000).op('i32.gt_u').op('select');
  }
  e.pop(e.arg(0), TF32);
}

/** All spaces are one memory: converting an address is a move. */
export function convertAddress(e: Emitter): void {
  const type = e.type();
  e.argCount(2);
  const source = e.arg(1);
  if (source.kind === 'symbol' && source.offset === 0 && e.has('to'))
    throw e.semantic(
      "'cvta.to' takes no variable, whose name is an address in its space already",
      source.at,
    );
  e.push(source, type);
  e.pop(e.arg(0), type);
}

export const CONVERSION_FUNCTIONS = `
${[
  ['s', '(i64.le_u (i64.add $x 0x20000000000000L) 0x40000000000000L)'],
  ['u', '(i64.le_u $x 0x20000000000000L)'],
]
  .map(
    ([sign, condition]) => `
(func $f64_odd_${sign}64 (param $x i64) (result f64)
  (if (result f64) ${condition}
    (then (f64.convert_i64_${sign} $x))
    (else (f64.mul 2048d (f64.convert_i64_${sign}
      (i64.or (i64.shr_${sign} $x 11L) (i64.extend_i32_u (i64.ne (i64.and $x 2047L) 0L))))))))`,
  )
  .join('')}
(func $f64_from_u64 (param $x i64) (param $mode i32) (result f64) (local $hi $lo $s $e f64)
  (local.set $hi (f64.mul (f64.convert_i32_u (i32.wrap_i64 (i64.shr_u $x 32L))) 4294967296d))
  (local.set $lo (f64.convert_i32_u (i32.wrap_i64 $x)))
  (call $f64_from_parts $hi $lo $mode))
(func $f64_from_s64 (param $x i64) (param $mode i32) (result f64)
  (call $f64_from_parts (f64.mul (f64.convert_i32_s (i32.wrap_i64 (i64.shr_s $x 32L))) 4294967296d)
    (f64.convert_i32_u (i32.wrap_i64 $x)) $mode))
(func $f64_from_parts (param $hi $lo f64) (param $mode i32) (result f64) (local $s $e f64)
  (local.set $s (f64.add $hi $lo))
  (local.set $e (f64.sub $lo (f64.sub $s $hi)))
  (call $directed_f64 $s (i32.sub (f64.lt $e 0d) (f64.gt $e 0d)) $mode))
(func $f32_from_u64 (param $x i64) (param $mode i32) (result f32) (local $hi $lo $s f64)
  (local.set $hi (f64.mul (f64.convert_i32_u (i32.wrap_i64 (i64.shr_u $x 32L))) 4294967296d))
  (local.set $lo (f64.convert_i32_u (i32.wrap_i64 $x)))
  (local.set $s (f64.add $hi $lo))
  (call $round_f32 $s (f64.sub $lo (f64.sub $s $hi)) $mode))
(func $f32_from_s64 (param $x i64) (param $mode i32) (result f32) (local $hi $lo $s f64)
  (local.set $hi (f64.mul (f64.convert_i32_s (i32.wrap_i64 (i64.shr_s $x 32L))) 4294967296d))
  (local.set $lo (f64.convert_i32_u (i32.wrap_i64 $x)))
  (local.set $s (f64.add $hi $lo))
  (call $round_f32 $s (f64.sub $lo (f64.sub $s $hi)) $mode))
`;
