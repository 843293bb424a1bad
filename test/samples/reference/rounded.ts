/** Arithmetic that is rounded once, in numbers, by exact integers underneath. */
import {
  BF16,
  F16,
  F32,
  F64,
  decode,
  encode,
  fma as exactFma,
} from '../../../src/ptx/exact-floats.test-support.js';
import type { Format, Mode } from '../../../src/ptx/exact-floats.test-support.js';

const scratch = new DataView(new ArrayBuffer(8));

function bitsOfDouble(x: number): bigint {
  scratch.setFloat64(0, x);
  return scratch.getBigUint64(0);
}

/** value = m * 2^e */
function valueOf(m: bigint, e: number): number {
  // Two steps: 2 ** e alone leaves the range for subnormals.
  const half = Math.trunc(e / 2);
  return Number(m) * 2 ** half * 2 ** (e - half);
}

function toBits(x: number, f: Format): bigint {
  const { m, e, negative } = decode(bitsOfDouble(x), F64)!;
  return m === 0n ? (negative ? 1n << BigInt(f.bits - 1) : 0n) : encode(m, e, f, 'rn');
}

function fromBits(bits: bigint, f: Format): number {
  const finite = decode(bits, f);
  if (finite !== undefined)
    return finite.m === 0n && finite.negative ? -0 : valueOf(finite.m, finite.e);
  const fraction = bits & ((1n << BigInt(f.mantissa)) - 1n);
  if (fraction !== 0n) return NaN;
  return bits >> BigInt(f.bits - 1) === 1n ? -Infinity : Infinity;
}

function arithmetic(f: Format) {
  /** A double rounded to the format. */
  const round = (x: number): number => (Number.isFinite(x) ? fromBits(toBits(x, f), f) : x);
  /** a * b + c of values of the format. */
  const fma = (a: number, b: number, c: number, mode: Mode = 'rn'): number => {
    if (!Number.isFinite(a) || !Number.isFinite(b)) return a * b + c;
    if (!Number.isFinite(c)) return c;
    return fromBits(exactFma(toBits(a, f), toBits(b, f), toBits(c, f), f, mode)!, f);
  };
  return { round, fma };
}

export const f16 = arithmetic(F16);
export const bf16 = arithmetic(BF16);
export const f32 = arithmetic(F32);
export const f64 = arithmetic(F64);
