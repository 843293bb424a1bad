// Conversions to and from the formats of 4, 6 and 8 bits, stochastic rounding, and cvt.pack.

import type { Arg } from '../analysis/program.js';
import type { Emitter, Fit } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { widenHalf } from './half-values.js';

const F32 = scalarType('f32');
const B32 = scalarType('b32');
const S32 = scalarType('s32');
const U32 = scalarType('u32');

/**
 * A format: the bits of its mantissa, the bias of its exponent, the code of its largest finite
 * value, and that of NaN if it has one.
 */
interface Format {
  mantissa: number;
  bias: number;
  most: number;
  nan: number | undefined;
  sign: number;
  /** Bits from one element to the next in a packed value. */
  stride: number;
}

const FORMATS: Readonly<Record<string, Format>> = {
  e4m3: { mantissa: 3, bias: 7, most: 0x7e, nan: 0x7f, sign: 0x80, stride: 8 },
  e5m2: { mantissa: 2, bias: 15, most: 0x7b, nan: 0x7f, sign: 0x80, stride: 8 },
  e2m3: { mantissa: 3, bias: 1, most: 0x1f, nan: undefined, sign: 0x20, stride: 8 },
  e3m2: { mantissa: 2, bias: 3, most: 0x1f, nan: undefined, sign: 0x20, stride: 8 },
  e2m1: { mantissa: 1, bias: 1, most: 0x7, nan: undefined, sign: 0x8, stride: 4 },
  f16: { mantissa: 10, bias: 15, most: 0x7bff, nan: 0x7fff, sign: 0x8000, stride: 16 },
  bf16: { mantissa: 7, bias: 127, most: 0x7f7f, nan: 0x7fff, sign: 0x8000, stride: 16 },
};

const formatOf = (type: ScalarType): Format | undefined => FORMATS[type.name.replace(/x[24]$/, '')];

/** True for conversions that this file covers. */
export function isSmallConversion(e: Emitter, to: ScalarType, from: ScalarType): boolean {
  return e.has('rs') || /^(e\dm|ue8)/.test(to.name) || /^(e\dm|ue8)/.test(from.name);
}

export function convertSmall(e: Emitter, to: ScalarType, from: ScalarType): void {
  onlyOfBytes(e, e.arg(0), to);
  onlyOfBytes(e, e.arg(1), from);
  if (to.name === 'ue8m0x2') toExponents(e, from);
  else if (from.name === 'ue8m0x2') fromExponents(e, to);
  else if (to.name === 'f16x2' && from.name !== 'f32') toHalves(e, from);
  else fromFloats(e, to, from);
}

/**
 * Two numbers of 4 bits are in a register of 8, and in no larger one; others have a register of
 * their own width, or of 16.
 */
function onlyOfBytes(e: Emitter, arg: Arg, type: ScalarType): void {
  if (type.bits !== 8 || arg.kind !== 'register' || arg.register.type.bits === 8) return;
  throw e.semantic(
    `'${arg.register.name}' is .${arg.register.type.name}, the instruction needs .b8 for ` +
      `.${type.name}`,
    arg.at,
  );
}

/** Leaves the operands to convert in f64 locals, the one for the highest bits first. */
function sources(e: Emitter, from: ScalarType, count: number, fit: Fit = 'exact'): number[] {
  const { code } = e;
  const local = (push: () => void): number => {
    push();
    code.op('f64.promote_f32');
    const value = e.temp('f64');
    code.set(value);
    return value;
  };
  const single = (arg: Arg): number =>
    local(() => {
      e.push(arg, F32, fit);
    });
  if (from.name === 'f32') {
    const list = e.arg(1);
    if (count === 4) {
      if (list.kind !== 'vector' || list.elements.length !== 4)
        throw e.semantic('expected a vector of 4', list.at);
      return list.elements.map(single);
    }
    return [single(list), single(e.arg(2))];
  }
  const half = scalarType(from.name.slice(0, -2));
  const whole = e.temp('i32');
  e.push(e.arg(1), from);
  code.set(whole);
  return [16, 0].map((shift) =>
    local(() => {
      code.get(whole).i32(shift).op('i32.shr_u').i32(0xffff).op('i32.and');
      widenHalf(e, half);
    }),
  );
}

function fromFloats(e: Emitter, to: ScalarType, from: ScalarType): void {
  const { code } = e;
  const format = formatOf(to);
  if (!format) throw e.unsupported();
  const count = to.name.endsWith('x4') ? 4 : 2;
  const stochastic = e.has('rs');
  const finite = e.has('satfinite');
  // Registers of f16x2 and of its operands may be wider, as in the other roundings.
  const fit = to.name === 'f16x2' ? 'wide' : 'exact';
  const values = sources(e, from, count, fit);
  const random = e.temp('i32');
  if (stochastic) {
    e.push(e.inst.args.at(-1)!, B32);
    code.set(random);
  }
  values.forEach((value, index) => {
    code
      .get(value)
      .i32(format.mantissa)
      .i32(format.bias)
      .i32(format.most + (finite ? 0 : 1));
    code.i32(format.nan ?? format.most).i32(format.sign);
    if (stochastic) pushRandom(e, to, random, index < count / 2);
    else code.f64(-1);
    e.call('f64_to_tiny');
    if (e.has('relu')) {
      const bits = e.temp('i32');
      code.set(bits).i32(0).get(bits).get(bits).i32(format.sign).op('i32.and').op('select');
    }
    const shift = format.stride * (count - 1 - index);
    if (shift) code.i32(shift).op('i32.shl');
    if (index) code.op('i32.or');
  });
  e.pop(e.arg(0), to, fit);
}

/**
 * Pushes the fraction, as f64, that is added before the value is truncated. The halves of rbits
 * belong to the first and the second half of the operands; f16 uses 13 bits, and e2m1x4 combines
 * bits from both halves.
 */
function pushRandom(e: Emitter, to: ScalarType, random: number, first: boolean): void {
  const { code } = e;
  if (to.name === 'e2m1x4') {
    const shift = first ? 8 : 0;
    code
      .get(random)
      .i32(16 + shift)
      .op('i32.shr_u')
      .i32(0xff)
      .op('i32.and')
      .i32(8)
      .op('i32.shl');
    code.get(random).i32(shift).op('i32.shr_u').i32(0xff).op('i32.and').op('i32.or');
  } else {
    code
      .get(random)
      .i32(first ? 16 : 0)
      .op('i32.shr_u')
      .i32(to.name === 'f16x2' ? 0x1fff : 0xffff)
      .op('i32.and');
  }
  code
    .op('f64.convert_i32_u')
    .f64(to.name === 'f16x2' ? 2 ** -13 : 2 ** -16)
    .op('f64.mul');
}

function toHalves(e: Emitter, from: ScalarType): void {
  const { code } = e;
  const format = formatOf(from)!;
  e.argCount(2);
  const whole = e.temp('i32');
  e.push(e.arg(1), from);
  code.set(whole);
  for (const index of [1, 0]) {
    code
      .get(whole)
      .i32(format.stride * index)
      .op('i32.shr_u')
      .i32(format.sign * 2 - 1)
      .op('i32.and');
    code.i32(format.mantissa).i32(format.bias).i32(format.sign);
    // Only e5m2 has infinities; they have the codes of f16's.
    code.i32(format.bias === 15 ? 0x7c : (format.nan ?? 0x100));
    e.call('tiny_to_f16');
    if (e.has('relu')) {
      const bits = e.temp('i32');
      code.set(bits).i32(0).get(bits).get(bits).i32(0x8000).op('i32.and').op('select');
    }
    if (index) code.i32(16).op('i32.shl');
    else code.op('i32.or');
  }
  e.pop(e.arg(0), scalarType('f16x2'));
}

/** ue8m0 is an exponent alone: the magnitude of a number as a power of two. */
function toExponents(e: Emitter, from: ScalarType): void {
  const { code } = e;
  sources(e, from, 2).forEach((value, index) => {
    code
      .get(value)
      .op('f32.demote_f64')
      .op('i32.reinterpret_f32')
      .i32(e.has('rp') ? 1 : 0)
      .i32(e.has('satfinite') ? 1 : 0);
    e.call('f32_to_ue8m0');
    if (index === 0) code.i32(8).op('i32.shl');
    else code.op('i32.or');
  });
  e.pop(e.arg(0), scalarType('ue8m0x2'));
}

function fromExponents(e: Emitter, to: ScalarType): void {
  const { code } = e;
  e.argCount(2);
  const whole = e.temp('i32');
  const exponent = e.temp('i32');
  e.push(e.arg(1), scalarType('ue8m0x2'));
  code.set(whole);
  for (const shift of [8, 0]) {
    code.get(whole).i32(shift).op('i32.shr_u').i32(0xff).op('i32.and').set(exponent);
    // 2^-127 is subnormal, 255 is NaN.
    code
      .i32(0x7fff)
      .i32(0x40)
      .get(exponent)
      .i32(7)
      .op('i32.shl')
      .get(exponent)
      .op('i32.eqz')
      .op('select');
    code.get(exponent).i32(255).op('i32.eq').op('select');
    if (shift) code.i32(16).op('i32.shl');
    else code.op('i32.or');
  }
  e.pop(e.arg(0), to);
}

/** cvt.pack: two clamped integers above the bits of c. */
export function convertPack(e: Emitter): void {
  const { code } = e;
  const target = e.inst.modifiers.find((word) => /^[us](16|8|4|2)$/.test(word));
  if (!target) throw e.semantic("'cvt.pack' needs the type to convert to");
  const bits = Number(target.slice(1));
  const signed = target.startsWith('s');
  e.argCount(bits === 16 ? 3 : 4);
  const value = e.temp('i32');
  const least = signed ? -(2 ** (bits - 1)) : 0;
  const most = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  if (bits === 16) {
    code.i32(0);
  } else {
    e.push(e.arg(3), B32, 'wide');
    code.i32(2 * bits).op('i32.shl');
  }
  for (const index of [1, 2]) {
    e.push(e.arg(index), S32, 'wide');
    code
      .set(value)
      .get(value)
      .i32(least)
      .get(value)
      .i32(least)
      .op('i32.gt_s')
      .op('select')
      .set(value);
    code
      .get(value)
      .i32(most)
      .get(value)
      .i32(most)
      .op('i32.lt_s')
      .op('select')
      .i32(2 ** bits - 1)
      .op('i32.and');
    if (index === 1) code.i32(bits).op('i32.shl');
    code.op('i32.or');
  }
  e.pop(e.arg(0), U32, 'wide');
}

export const SMALL_FLOAT_FUNCTIONS = `
;; Rounds to a format whose codes increase with the value: to nearest even or, if \`random\` is not
;; negative, by adding it to the part that is truncated. Values larger than \`most\` become
;; \`most\`.
(func $f64_to_tiny (param $x f64) (param $m $bias $most $nan $sign i32) (param $random f64)
  (result i32)
  (local $a $n f64) (local $e $code i32)
  (if (f64.ne $x $x) (then (return $nan)))
  (local.set $sign (select $sign 0 (i64.lt_s (i64.reinterpret_f64 $x) 0L)))
  (local.set $a (f64.abs $x))
  (local.set $e (i32.sub (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 $a) 52L)) 1023))
  (if (i32.gt_s $e (i32.add $bias 1)) (then (return (i32.or $most $sign))))
  (if (i32.lt_s $e (i32.sub 1 $bias)) (then (local.set $e (i32.sub 1 $bias))))
  ;; In units of the last bit of the result.
  (local.set $n (f64.mul $a (f64.reinterpret_i64
        (i64.shl (i64.extend_i32_s (i32.add (i32.sub 1023 $e) $m)) 52L))))
  (local.set $n (if (result f64) (f64.lt $random 0d) (then (f64.nearest $n))
      (else (f64.floor (f64.add $n $random)))))
  (local.set $code (i32.add (i32.shl (i32.sub (i32.add $e $bias) 1) $m) (i32.trunc_sat_f64_s $n)))
  (i32.or (select $code $most (i32.lt_u $code $most)) $sign))

;; Codes from \`special\` on are NaN, except the infinity of e5m2.
(func $tiny_to_f16 (param $code $m $bias $sign $special i32) (result i32) (local $magnitude $e i32)
  (local $value f64)
  (local.set $magnitude (i32.and $code (i32.sub $sign 1)))
  (if (i32.ge_u $magnitude $special) (then
    (if (i32.eq $magnitude 0x7c) (then (return (i32.shl $code 8))))
    (return 0x7fff)))
  (local.set $e (i32.shr_u $magnitude $m))
  (local.set $value (f64.convert_i32_u (i32.and $magnitude (i32.sub (i32.shl 1 $m) 1))))
  (if $e
    (then (local.set $value (f64.add $value (f64.convert_i32_u (i32.shl 1 $m)))))
    (else (local.set $e 1)))
  (local.set $value (f64.mul $value (f64.reinterpret_i64
        (i64.shl (i64.extend_i32_s (i32.sub (i32.sub (i32.add 1023 $e) $bias) $m)) 52L))))
  (i32.or (call $f64_to_f16 $value) (select 0x8000 0 (i32.and $code $sign))))

(func $f32_to_ue8m0 (param $bits $up $finite i32) (result i32) (local $e i32)
  (local.set $bits (i32.and $bits 0x7fffffff))
  (local.set $e (i32.shr_u $bits 23))
  (if (i32.gt_u $bits 0x7f800000) (then (return 255)))
  (if (i32.and (i32.and $up (i32.ne (i32.and $bits 0x7fffff) 0)) (i32.gt_u $bits 0x400000)) (then
    (local.set $e (i32.add $e 1))))
  (i32.sub $e (i32.and $finite (i32.eq $e 255))))
`;
