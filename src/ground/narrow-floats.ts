/**
 * f16, bf16 and the two f8 formats to f32, and from doubles. Widening is exact. Narrowing rounds
 * once, to nearest, ties to even; f16, bf16 and f8e5m2 overflow to infinity as IEEE conversion
 * does, f8e4m3, which has no infinity, to NaN.
 *
 * For f8 that is `__nv_cvt_float_to_fp8` with `__NV_NOSAT`, and what ml_dtypes and PyTorch do: an
 * overflow stays to be seen. `__NV_SATFINITE`, which is what the instruction
 * `cvt.rn.satfinite.e4m3x2.f32` has, would give ±448 and ±57344; who wants that clamps before. A
 * NaN keeps its sign and no payload: 0x7f in f8e4m3, 0x7e in f8e5m2, where CUDA's has 0x7f.
 */
import type { DTypeName } from './dtype.js';

interface Format {
  exponentBits: number;
  fractionBits: number;
  /** Whether the highest exponent holds infinity and NaN; otherwise only all ones is NaN. */
  infinity: boolean;
}

export type NarrowName = 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2';

const FORMATS: Readonly<Record<NarrowName, Format>> = {
  f16: { exponentBits: 5, fractionBits: 10, infinity: true },
  bf16: { exponentBits: 8, fractionBits: 7, infinity: true },
  f8e4m3: { exponentBits: 4, fractionBits: 3, infinity: false },
  f8e5m2: { exponentBits: 5, fractionBits: 2, infinity: true },
};

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

export function isNarrow(name: DTypeName): name is NarrowName {
  return name in FORMATS;
}

function widenOne(bits: number, { exponentBits, fractionBits, infinity }: Format): number {
  const sign = bits >>> (exponentBits + fractionBits) === 0 ? 1 : -1;
  const exponent = (bits >>> fractionBits) & ((1 << exponentBits) - 1);
  const fraction = bits & ((1 << fractionBits) - 1);
  const bias = (1 << (exponentBits - 1)) - 1;
  const top = (1 << exponentBits) - 1;
  if (exponent === top) {
    if (infinity) return fraction === 0 ? sign * Infinity : NaN;
    if (fraction === (1 << fractionBits) - 1) return NaN;
  }
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * (1 + fraction / (1 << fractionBits)) * 2 ** (exponent - bias);
}

/**
 * The value's f32, rounded to odd where it has none: towards zero, with the last bit set. Rounding
 * that to 22 bits or fewer gives what rounding the value itself gives (Boldo and Melquiond,
 * "Emulation of a FMA and correctly rounded sums", 2008).
 */
function oddBits(value: number): number {
  float[0] = value;
  const rounded = float[0];
  if (rounded === value || Number.isNaN(value)) return word[0]!;
  // The bits of a float's magnitude are in the order of the magnitudes.
  if (Math.abs(rounded) > Math.abs(value)) word[0]!--;
  return word[0]! | 1;
}

/** Bits of `value` in the format, rounded once. */
function narrowOne(value: number, { exponentBits, fractionBits, infinity }: Format): number {
  const bits = oddBits(value);
  const sign = (bits >>> 31) << (exponentBits + fractionBits);
  const magnitude = bits & 0x7fffffff;
  const bias = (1 << (exponentBits - 1)) - 1;
  const top = (1 << exponentBits) - 1;
  const allOnes = (1 << (exponentBits + fractionBits)) - 1;
  if (magnitude > 0x7f800000)
    return sign | (infinity ? (top << fractionBits) | (1 << (fractionBits - 1)) : allOnes);
  const overflow = infinity ? top << fractionBits : allOnes;
  if (magnitude === 0x7f800000) return sign | overflow;
  const exponent = (magnitude >>> 23) - 127 + bias;
  if (exponent >= 1) {
    const shift = 23 - fractionBits;
    const low = magnitude & ((1 << shift) - 1);
    const half = 1 << (shift - 1);
    let result = ((magnitude >>> shift) - ((127 - bias) << fractionBits)) | 0;
    if (low > half || (low === half && (result & 1) === 1)) result++;
    const limit = infinity ? top << fractionBits : allOnes;
    return sign | (result >= limit ? overflow : result);
  }
  // Subnormal: the fraction counts units of 2^(1 - bias - fractionBits), and such a quotient is
  // exact in f64.
  const units = Math.abs(value) / 2 ** (1 - bias - fractionBits);
  const floor = Math.floor(units);
  const rest = units - floor;
  return sign | (rest > 0.5 || (rest === 0.5 && (floor & 1) === 1) ? floor + 1 : floor);
}

const tables = new Map<NarrowName, Float32Array>();

/** Every value of the format, indexed by its bits. */
function tableOf(name: NarrowName): Float32Array {
  let table = tables.get(name);
  if (table === undefined) {
    const format = FORMATS[name];
    table = new Float32Array(1 << (1 + format.exponentBits + format.fractionBits));
    for (let bits = 0; bits < table.length; bits++) table[bits] = widenOne(bits, format);
    tables.set(name, table);
  }
  return table;
}

/** Widens `bits` into `out`, element by element. */
export function widen(name: NarrowName, bits: Uint8Array | Uint16Array, out: Float32Array): void {
  const table = tableOf(name);
  for (let i = 0; i < bits.length; i++) out[i] = table[bits[i]!]!;
}

/** Narrows `values` into `out`, element by element. */
export function narrow(
  name: NarrowName,
  values: ArrayLike<number>,
  out: Uint8Array | Uint16Array,
): void {
  const format = FORMATS[name];
  for (let i = 0; i < out.length; i++) out[i] = narrowOne(values[i]!, format);
}
