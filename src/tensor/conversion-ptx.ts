/**
 * PTX that reads an element of one dtype and writes it as another. Results are those of the host's
 * conversions: floats round to nearest even, and become infinity beyond the range (f8e4m3, which
 * has no infinity: NaN); floats become integers towards zero, clamped to the range, NaN as 0;
 * integers become narrower ones by their low bits; a bool is whether the value is not zero.
 *
 * Only instructions of sm_70 are used: conversions of bf16 and f8, which later targets have as
 * instructions, are integer arithmetic.
 */
import { DTYPES } from '../ground/dtype.js';
import type { FloatName, KernelDTypeName } from '../ground/dtype.js';

/** The type of the register that holds a value between reading and writing. */
export type Carrier = 'u32' | 's32' | 'u64' | 's64' | 'f32' | 'f64';

/** The register of each carrier. */
const REGISTER: Readonly<Record<Carrier, string>> = {
  u32: '%w0',
  s32: '%w0',
  u64: '%d0',
  s64: '%d0',
  f32: '%f0',
  f64: '%g0',
};

/** Declares the registers that the texts use. */
export const CONVERSION_REGISTERS =
  '.reg .b16 %h<2>; .reg .b32 %w<8>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %g<2>; .reg ' +
  '.pred %q<3>;';

interface Reading {
  readonly as: Carrier;
  /** PTX, in which `@` stands for the address. */
  readonly text: string;
}

/**
 * 2^120, 2^-120, 2^-112 and 2^112 as bits: factors between the exponents of the two f8 and those of
 * f32.
 */
const E4M3_SCALE = '0f7B800000';
const E4M3_UNSCALE = '0f03800000';
const E5M2_UNSCALE = '0f07800000';
const E5M2_SCALE = '0f77800000';

const READINGS: Readonly<Record<KernelDTypeName, Reading>> = {
  u8: { as: 'u32', text: 'ld.global.u8 %w0, @;' },
  i8: { as: 's32', text: 'ld.global.s8 %w0, @;' },
  u16: { as: 'u32', text: 'ld.global.u16 %w0, @;' },
  i16: { as: 's32', text: 'ld.global.s16 %w0, @;' },
  u32: { as: 'u32', text: 'ld.global.u32 %w0, @;' },
  i32: { as: 's32', text: 'ld.global.s32 %w0, @;' },
  u64: { as: 'u64', text: 'ld.global.u64 %d0, @;' },
  i64: { as: 's64', text: 'ld.global.s64 %d0, @;' },
  f16: { as: 'f32', text: 'ld.global.b16 %h0, @; cvt.f32.f16 %f0, %h0;' },
  bf16: { as: 'f32', text: 'ld.global.u16 %w1, @; shl.b32 %w1, %w1, 16; mov.b32 %f0, %w1;' },
  f32: { as: 'f32', text: 'ld.global.f32 %f0, @;' },
  f64: { as: 'f64', text: 'ld.global.f64 %g0, @;' },
  // Fraction and exponent are put at the top of those of f32, whose exponent bias is larger by 120.
  f8e4m3: {
    as: 'f32',
    text: `ld.global.u8 %w1, @; and.b32 %w2, %w1, 127; shl.b32 %w3, %w2, 20; mov.b32 %f0, %w3;
  mul.rn.f32 %f0, %f0, ${E4M3_SCALE};
  mov.b32 %w3, %f0; setp.eq.u32 %q0, %w2, 127; selp.b32 %w3, 0x7fc00000, %w3, %q0;
  and.b32 %w1, %w1, 128; shl.b32 %w1, %w1, 24; or.b32 %w3, %w3, %w1; mov.b32 %f0, %w3;`,
  },
  // An f8e5m2 is the upper half of an f16.
  f8e5m2: {
    as: 'f32',
    text: 'ld.global.u8 %w1, @; shl.b32 %w1, %w1, 8; cvt.u16.u32 %h0, %w1; cvt.f32.f16 %f0, %h0;',
  },
  bool: {
    as: 'u32',
    text: 'ld.global.u8 %w0, @; setp.ne.u32 %q0, %w0, 0; selp.u32 %w0, 1, 0, %q0;',
  },
};

/** Gives the carrier that holds every value of the dtype. */
export function carrierOf(dtype: KernelDTypeName): Carrier {
  return READINGS[dtype].as;
}

/** Gives PTX that reads an element of the dtype at an address such as `[%rd1]` into its carrier. */
export function readText(dtype: KernelDTypeName, address: string): string {
  return READINGS[dtype].text.replace('@', address);
}

/** Gives PTX that writes the carrier's value to an address such as `[%rd1]`, as the dtype. */
export function writeText(from: Carrier, dtype: KernelDTypeName, address: string): string {
  const { bytes, kind } = DTYPES[dtype];
  const register = REGISTER[from];
  const isFloat = from === 'f32' || from === 'f64';
  if (dtype === 'bool')
    return (
      `setp.${isFloat ? 'neu' : 'ne'}.${from} %q0, ${register}, ` +
      `${isFloat ? (from === 'f32' ? '0f00000000' : '0d0000000000000000') : '0'}; selp.u32 ` +
      `%w1, 1, 0, %q0; st.global.u8 ${address}, %w1;`
    );
  if (kind === 'signed' || kind === 'unsigned') {
    const integer = { bits: bytes * 8, signed: kind === 'signed' };
    return isFloat ? clamped(from, integer, address) : lowBits(from, integer.bits, address);
  }
  return FLOATS[dtype as FloatName](from, address);
}

/** PTX that writes the carrier's value as each float dtype. */
const FLOATS: Readonly<Record<FloatName, (from: Carrier, address: string) => string>> = {
  f64: (from, address) => {
    const rounding = from === 'f32' ? '' : '.rn';
    const converted = from === 'f64' ? '' : `cvt${rounding}.f64.${from} %g0, ${REGISTER[from]};`;
    return `${converted} st.global.f64 ${address}, %g0;`;
  },
  f32: (from, address) =>
    `${from === 'f32' ? '' : `cvt.rn.f32.${from} %f0, ${REGISTER[from]};`} st.global.f32 ` +
    `${address}, %f0;`,
  f16: (from, address) =>
    `cvt.rn.f16.${from} %h0, ${REGISTER[from]}; st.global.b16 ${address}, %h0;`,
  bf16: (from, address) =>
    `${toOdd(from)} mov.b32 %w1, %f0; shr.u32 %w2, %w1, 16; and.b32 %w2, %w2, 1;
  add.u32 %w2, %w2, 0x7fff; add.u32 %w2, %w2, %w1; shr.u32 %w2, %w2, 16;
  setp.nan.f32 %q0, %f0, %f0; selp.b32 %w2, 0x7fff, %w2, %q0; st.global.u16 ${address}, %w2;`,
  f8e4m3: (from, address) =>
    narrow8(
      from,
      { unscale: E4M3_UNSCALE, scale: E4M3_SCALE, shift: 20, most: 0x7f, nan: 0x7f },
      address,
    ),
  f8e5m2: (from, address) =>
    narrow8(
      from,
      { unscale: E5M2_UNSCALE, scale: E5M2_SCALE, shift: 21, most: 0x7c, nan: 0x7f },
      address,
    ),
};

function lowBits(from: Carrier, bits: number, address: string): string {
  const wide = from === 'u64' || from === 's64';
  if (bits === 64)
    return (
      `${wide ? '' : `cvt.${from === 's32' ? 's64' : 'u64'}.${from} %d0, %w0;`} st.global.u64 ` +
      `${address}, %d0;`
    );
  return `${wide ? 'cvt.u32.u64 %w0, %d0;' : ''} st.global.u${bits} ${address}, %w0;`;
}

function clamped(
  from: Carrier,
  { bits, signed }: { bits: number; signed: boolean },
  address: string,
): string {
  const sign = signed ? 's' : 'u';
  if (bits === 64)
    return (
      `cvt.rzi.${sign}64.${from} %d0, ${REGISTER[from]}; ${zeroWhereNan(from, '%d0', 'b64')} ` +
      `st.global.u64 ${address}, %d0;`
    );
  const most = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  const clamp =
    bits === 32
      ? ''
      : `min.${sign}32 %w0, %w0, ${most};${signed ? ` max.s32 %w0, %w0, ${-most - 1};` : ''}`;
  return (
    `cvt.rzi.${sign}32.${from} %w0, ${REGISTER[from]}; ${clamp} ` +
    `${zeroWhereNan(from, '%w0', 'b32')} st.global.u${bits} ${address}, %w0;`
  );
}

/** PTX's `cvt` makes NaN 0 for some integer types and the largest value for others. */
function zeroWhereNan(from: Carrier, register: string, type: string): string {
  return (
    `setp.nan.${from} %q0, ${REGISTER[from]}, ${REGISTER[from]}; selp.${type} ${register}, 0, ` +
    `${register}, %q0;`
  );
}

/**
 * Rounds the value to odd as f32 in %f0: towards zero, with the last bit set where the result is
 * not exact. Rounding that to fewer bits gives the same as rounding the value once.
 */
function toOdd(from: Carrier): string {
  if (from === 'f32') return '';
  const register = REGISTER[from];
  const back =
    from === 'f64'
      ? 'cvt.f64.f32 %g1, %f0; setp.ne.f64 %q0, %g1, %g0;'
      : from === 'u32' || from === 's32'
        ? `cvt.rzi.${from}.f32 %w1, %f0; setp.ne.u32 %q0, %w1, %w0;`
        : `cvt.rzi.${from}.f32 %d1, %f0; setp.ne.u64 %q0, %d1, %d0;`;
  return (
    `cvt.rz.f32.${from} %f0, ${register}; ${back} mov.b32 %w1, %f0; or.b32 %w2, %w1, 1; ` +
    'selp.b32 %w1, %w2, %w1, %q0; mov.b32 %f0, %w1;'
  );
}

interface Format {
  unscale: string;
  scale: string;
  shift: number;
  /** The bits that values beyond the range become. */
  most: number;
  nan: number;
}

function narrow8(
  from: Carrier,
  { unscale, scale, shift, most, nan }: Format,
  address: string,
): string {
  return `${toOdd(from)} mov.b32 %w1, %f0; shr.u32 %w4, %w1, 24; and.b32 %w4, %w4, 128;
  abs.f32 %f1, %f0; mul.rz.f32 %f2, %f1, ${unscale}; mul.rn.f32 %f3, %f2, ${scale};
  mov.b32 %w1, %f2; setp.ne.f32 %q0, %f3, %f1; or.b32 %w2, %w1, 1; selp.b32 %w1, %w2, %w1, %q0;
  shr.u32 %w2, %w1, ${shift}; and.b32 %w2, %w2, 1; add.u32 %w2, %w2, ${2 ** (shift - 1) - 1};
  add.u32 %w2, %w2, %w1; shr.u32 %w2, %w2, ${shift}; min.u32 %w2, %w2, ${most};
  setp.nan.f32 %q0, %f0, %f0; selp.b32 %w2, ${nan}, %w2, %q0; or.b32 %w2, %w2, %w4;
  st.global.u8 ${address}, %w2;`;
}
