/**
 * The PTX of each operation. A row is the mnemonic of an operation for each kind of register; its
 * operands are the value and then the arguments. `sequences` has the operations with other
 * operands. Floats are rounded explicitly, so that ptxas fuses nothing.
 */
import type { RegisterType, Value } from '../ssa/function.js';

type Row = Readonly<Partial<Record<RegisterType, string>>>;

const logic = (name: string): Row => ({
  pred: `${name}.pred`,
  b32: `${name}.b32`,
  b64: `${name}.b64`,
});

/** Mnemonics by operation, then by the type of the value. */
export const rows: Readonly<Record<string, Row>> = {
  add: { b32: 'add.s32', b64: 'add.s64', f32: 'add.rn.f32', f64: 'add.rn.f64' },
  sub: { b32: 'sub.s32', b64: 'sub.s64', f32: 'sub.rn.f32', f64: 'sub.rn.f64' },
  mul: { b32: 'mul.lo.s32', b64: 'mul.lo.s64', f32: 'mul.rn.f32', f64: 'mul.rn.f64' },
  div: { f32: 'div.rn.f32', f64: 'div.rn.f64' },
  fma: { f32: 'fma.rn.f32', f64: 'fma.rn.f64' },
  and: logic('and'),
  or: logic('or'),
  xor: logic('xor'),
  not: logic('not'),
  shl: { b32: 'shl.b32', b64: 'shl.b64' },
  neg: { b32: 'neg.s32', b64: 'neg.s64', f32: 'neg.f32', f64: 'neg.f64' },
  abs: { b32: 'abs.s32', b64: 'abs.s64', f32: 'abs.f32', f64: 'abs.f64' },
  floor: { f32: 'cvt.rmi.f32.f32', f64: 'cvt.rmi.f64.f64' },
  ceil: { f32: 'cvt.rpi.f32.f32', f64: 'cvt.rpi.f64.f64' },
  trunc: { f32: 'cvt.rzi.f32.f32', f64: 'cvt.rzi.f64.f64' },
  rint: { f32: 'cvt.rni.f32.f32', f64: 'cvt.rni.f64.f64' },
  sqrt: { f32: 'sqrt.rn.f32', f64: 'sqrt.rn.f64' },
  brev: { b32: 'brev.b32', b64: 'brev.b64' },
  truncate: { b32: 'cvt.u32.u64' },
  low: { b32: 'cvt.u32.u64' },
  global: { b64: 'cvta.to.global.u64' },
  activemask: { b32: 'activemask.b32' },
};

/** Operations whose mnemonic ends in the type of their operands. */
export const signedRows: Readonly<Record<string, string>> = {
  div: 'div',
  rem: 'rem',
  shr: 'shr',
  mulhi: 'mul.hi',
  wide: 'mul.wide',
  min: 'min',
  max: 'max',
};

export const approximateRows: Readonly<Record<string, string>> = {
  div: 'div.approx.f32',
  rcp: 'rcp.approx.ftz.f32',
  sqrt: 'sqrt.approx.f32',
  rsqrt: 'rsqrt.approx.f32',
  ex2: 'ex2.approx.ftz.f32',
  lg2: 'lg2.approx.f32',
  sin: 'sin.approx.f32',
  cos: 'cos.approx.f32',
  tanh: 'tanh.approx.f32',
};

/** Mnemonics by the conversion's name: to, from. */
export const convertRows: Readonly<Record<string, string>> = {
  'f32.s32': 'cvt.rn.f32.s32',
  'f32.u32': 'cvt.rn.f32.u32',
  'f32.s64': 'cvt.rn.f32.s64',
  'f32.u64': 'cvt.rn.f32.u64',
  'f64.s32': 'cvt.rn.f64.s32',
  'f64.u32': 'cvt.rn.f64.u32',
  'f64.s64': 'cvt.rn.f64.s64',
  'f64.u64': 'cvt.rn.f64.u64',
  's32.f32': 'cvt.rzi.s32.f32',
  'u32.f32': 'cvt.rzi.u32.f32',
  's64.f32': 'cvt.rzi.s64.f32',
  'u64.f32': 'cvt.rzi.u64.f32',
  's32.f64': 'cvt.rzi.s32.f64',
  'u32.f64': 'cvt.rzi.u32.f64',
  's64.f64': 'cvt.rzi.s64.f64',
  'u64.f64': 'cvt.rzi.u64.f64',
  'f32.s32.rz': 'cvt.rz.f32.s32',
  'f32.u32.rz': 'cvt.rz.f32.u32',
  'f32.s64.rz': 'cvt.rz.f32.s64',
  'f32.u64.rz': 'cvt.rz.f32.u64',
  'f32.f64.rz': 'cvt.rz.f32.f64',
  'f32.f64': 'cvt.rn.f32.f64',
  'f64.f32': 'cvt.f64.f32',
  'f32.f16': 'cvt.f32.f16',
  'f16.f32': 'cvt.rn.f16.f32',
  'bf16.f32': 'cvt.rn.bf16.f32',
};

/** PTX's comparisons of floats: `ne` is true for NaN, the others are false. */
export function comparison(value: Value): string {
  const isFloat = value.as === 'f32' || value.as === 'f64';
  return `setp.${isFloat && value.detail === 'ne' ? 'neu' : value.detail}.${value.as!}`;
}

/** Suffixes of loads and stores. */
export const memoryTypes = {
  s8: 's8',
  u8: 'u8',
  s16: 's16',
  u16: 'u16',
  b16: 'u16',
  b32: 'u32',
  b64: 'u64',
  f32: 'f32',
  f64: 'f64',
} as const;

export const scopeNames: Readonly<Record<string, string>> = {
  block: 'cta',
  device: 'gpu',
  system: 'sys',
};
export const fenceNames: Readonly<Record<string, string>> = {
  block: 'membar.cta',
  device: 'membar.gl',
  system: 'membar.sys',
};

/** Suffixes of moves and selections. */
export const bitTypes: Readonly<Record<RegisterType, string>> = {
  pred: 'pred',
  b16: 'b16',
  b32: 'b32',
  b64: 'b64',
  f32: 'f32',
  f64: 'f64',
  none: '',
};
