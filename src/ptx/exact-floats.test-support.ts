// Test only: floating-point formats and their arithmetic with exact integers, rounded once.

export interface Format {
  bits: number;
  mantissa: number;
  bias: number;
}
export const F64: Format = { bits: 64, mantissa: 52, bias: 1023 };
export const F32: Format = { bits: 32, mantissa: 23, bias: 127 };
export const F16: Format = { bits: 16, mantissa: 10, bias: 15 };
export const BF16: Format = { bits: 16, mantissa: 7, bias: 127 };
export type Mode = 'rn' | 'rz' | 'rm' | 'rp';

/** The value is m * 2^e exactly; undefined for infinities and NaN. */
export function decode(
  bits: bigint,
  f: Format,
): { m: bigint; e: number; negative: boolean } | undefined {
  const exponent = Number(
    (bits >> BigInt(f.mantissa)) & ((1n << BigInt(f.bits - 1 - f.mantissa)) - 1n),
  );
  const fraction = bits & ((1n << BigInt(f.mantissa)) - 1n);
  if (exponent === 2 * f.bias + 1) return undefined;
  const negative = bits >> BigInt(f.bits - 1) === 1n;
  const m = exponent ? fraction | (1n << BigInt(f.mantissa)) : fraction;
  return { m: negative ? -m : m, e: Math.max(exponent, 1) - f.bias - f.mantissa, negative };
}

/** Rounds m * 2^e to a format. */
export function encode(m: bigint, e: number, f: Format, mode: Mode): bigint {
  const negative = m < 0n;
  let magnitude = negative ? -m : m;
  const length = magnitude.toString(2).length;
  const least = 1 - f.bias - f.mantissa;
  const target = Math.max(e + length - 1 - f.mantissa, least);
  let up = false;
  if (target > e) {
    const shift = BigInt(target - e);
    const rest = magnitude & ((1n << shift) - 1n);
    magnitude >>= shift;
    const half = 1n << (shift - 1n);
    if (mode === 'rn') up = rest > half || (rest === half && (magnitude & 1n) === 1n);
    else up = rest !== 0n && ((mode === 'rm' && negative) || (mode === 'rp' && !negative));
  } else {
    magnitude <<= BigInt(e - target);
  }
  if (up) magnitude++;
  // The hidden bit adds one to the exponent field.
  const result = magnitude + (BigInt(target - least) << BigInt(f.mantissa));
  const infinity = BigInt(2 * f.bias + 1) << BigInt(f.mantissa);
  const sign = negative ? 1n << BigInt(f.bits - 1) : 0n;
  if (result < infinity) return result | sign;
  const away = mode === 'rn' || (mode === 'rm' && negative) || (mode === 'rp' && !negative);
  return (away ? infinity : infinity - 1n) | sign;
}

export function fma(a: bigint, b: bigint, c: bigint, f: Format, mode: Mode): bigint | undefined {
  const x = decode(a, f);
  const y = decode(b, f);
  const z = decode(c, f);
  if (!x || !y || !z) return undefined;
  const e = Math.min(x.e + y.e, z.e);
  const sum = ((x.m * y.m) << BigInt(x.e + y.e - e)) + (z.m << BigInt(z.e - e));
  if (sum !== 0n) return encode(sum, e, f, mode);
  const productNegative = x.negative !== y.negative;
  const negative = productNegative === z.negative ? z.negative : mode === 'rm';
  return negative ? 1n << BigInt(f.bits - 1) : 0n;
}
