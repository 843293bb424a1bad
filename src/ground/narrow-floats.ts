/**
 * Conversion of the floats that JavaScript has no array for (f16, bf16 and the two f8). They are
 * converted to f32, which is exact, and from doubles, which is rounded once, to nearest, ties to
 * even.
 *
 * Values beyond the largest number, and NaN, are written in two ways:
 *
 * - The host ({@link narrow}) overflows to infinity as IEEE conversion does; f8e4m3 has no infinity
 *   and overflows to NaN. For f8 this equals `__nv_cvt_float_to_fp8` with `__NV_NOSAT`, and what
 *   ml_dtypes and PyTorch do: an overflow stays visible. A NaN keeps its sign and no payload: 0x7e
 *   in f8e5m2, where CUDA writes 0x7f.
 * - A kernel ({@link kernelBits}) writes as the GPU's conversions do: f16 and bf16 overflow to
 *   infinity (`cvt.rn`), the f8 saturate (`cvt.rn.satfinite`), and a NaN becomes PTX's canonical
 *   one, without its sign: 0x7fff, and 0x7f in the f8.
 *
 * The rows of the dtypes hold the formats and what each of the two writes.
 */
import { DTYPE_FACTS, FLOAT_LIMITS } from './dtype.js';
import type { NarrowName } from './dtype.js';

export type { NarrowName } from './dtype.js';

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);

interface Format {
  readonly exponentBits: number;
  readonly fractionBits: number;
  /** Whether the highest exponent holds infinity and NaN; otherwise only all ones is NaN. */
  readonly infinity: boolean;
  readonly hostNaN: number;
  readonly kernelNaN: number;
  readonly saturates: boolean;
  /** The code of the greatest finite number. */
  readonly largest: number;
}

const FORMATS = Object.fromEntries(
  Object.entries(DTYPE_FACTS).flatMap(([name, { float: format, narrow: written }]) => {
    if (format === null || written === null) return [];
    const top = Number(FLOAT_LIMITS[name as NarrowName]!.topBits);
    return [[name, { ...format, ...written, largest: format.infinity ? top - 1 : top }]];
  }),
) as Readonly<Record<NarrowName, Format>>;

export function isNarrow(name: string): name is NarrowName {
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

/** Bits of `value` in the format, rounded once, as the host writes it. */
function narrowOne(
  value: number,
  { exponentBits, fractionBits, infinity, hostNaN }: Format,
): number {
  const bits = oddBits(value);
  const sign = (bits >>> 31) << (exponentBits + fractionBits);
  const magnitude = bits & 0x7fffffff;
  const bias = (1 << (exponentBits - 1)) - 1;
  const top = (1 << exponentBits) - 1;
  if (magnitude > 0x7f800000) return sign | hostNaN;
  const overflow = infinity ? top << fractionBits : (1 << (exponentBits + fractionBits)) - 1;
  if (magnitude === 0x7f800000) return sign | overflow;
  const exponent = (magnitude >>> 23) - 127 + bias;
  if (exponent >= 1) {
    const shift = 23 - fractionBits;
    const low = magnitude & ((1 << shift) - 1);
    const half = 1 << (shift - 1);
    let result = ((magnitude >>> shift) - ((127 - bias) << fractionBits)) | 0;
    if (low > half || (low === half && (result & 1) === 1)) result++;
    return sign | (result >= overflow ? overflow : result);
  }
  // Subnormal: the fraction counts units of 2^(1 - bias - fractionBits), and such a quotient is
  // exact in f64.
  const units = Math.abs(value) / 2 ** (1 - bias - fractionBits);
  const floor = Math.floor(units);
  const rest = units - floor;
  return sign | (rest > 0.5 || (rest === 0.5 && (floor & 1) === 1) ? floor + 1 : floor);
}

const tables = new Map<NarrowName, Float32Array>();

/** Every value of the format as f32, indexed by its bits. */
export function wideValues(name: NarrowName): Float32Array {
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
  const table = wideValues(name);
  for (let i = 0; i < bits.length; i++) out[i] = table[bits[i]!]!;
}

/** Narrows `values` into `out`, element by element, as the host writes them. */
export function narrow(
  name: NarrowName,
  values: ArrayLike<number>,
  out: Uint8Array | Uint16Array,
): void {
  const format = FORMATS[name];
  for (let i = 0; i < out.length; i++) out[i] = narrowOne(values[i]!, format);
}

/** Bits of `value` as the host writes it. */
export function hostBits(name: NarrowName, value: number): number {
  return narrowOne(value, FORMATS[name]);
}

/** Bits of `value` as a kernel writes it. */
export function kernelBits(name: NarrowName, value: number): number {
  const format = FORMATS[name];
  if (Number.isNaN(value)) return format.kernelNaN;
  const bits = narrowOne(value, format);
  if (!format.saturates) return bits;
  const sign = 1 << (format.exponentBits + format.fractionBits);
  return (bits & ~sign) > format.largest ? (bits & sign) | format.largest : bits;
}

/** The value that is read back after the host has written `value`. */
export function hostValue(name: NarrowName, value: number): number {
  return wideValues(name)[hostBits(name, value)]!;
}

/** The value that is read back after a kernel has written `value`. */
export function kernelValue(name: NarrowName, value: number): number {
  return wideValues(name)[kernelBits(name, value)]!;
}
