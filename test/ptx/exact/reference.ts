/**
 * Results by IEEE 754 and the PTX ISA, in exact integer arithmetic. It is written for the tests
 * alone and shares nothing with the compiler, so that the two have no error in common.
 *
 * Values are bits in a BigInt. A number is m * 2^e, or lies between m * 2^e and (m + 1) * 2^e where
 * `more` is set.
 */

export interface Format {
  name: string;
  bits: number;
  mantissa: number;
  bias: number;
  /** Tiny results are zeros of their sign: see `flushing`. */
  flushes?: true;
}
export const F16: Format = { name: 'f16', bits: 16, mantissa: 10, bias: 15 };
export const BF16: Format = { name: 'bf16', bits: 16, mantissa: 7, bias: 127 };
export const F32: Format = { name: 'f32', bits: 32, mantissa: 23, bias: 127 };
export const F64: Format = { name: 'f64', bits: 64, mantissa: 52, bias: 1023 };
export const FORMATS: Readonly<Record<string, Format>> = {
  f16: F16,
  bf16: BF16,
  f32: F32,
  f64: F64,
};

export interface Integer {
  name: string;
  bits: number;
  signed: boolean;
}
export const INTEGERS: Readonly<Record<string, Integer>> = Object.fromEntries(
  [8, 16, 32, 64].flatMap((bits) =>
    [true, false].map((signed) => {
      const name = `${signed ? 's' : 'u'}${bits}`;
      return [name, { name, bits, signed }];
    }),
  ),
);

export const MODES = ['rn', 'rz', 'rm', 'rp'] as const;
export type Mode = (typeof MODES)[number];

/** Any NaN: its bits are tested separately. */
export const NAN = 'nan';
export type Result = bigint | typeof NAN;

type Value =
  | { kind: 'nan' }
  | { kind: 'infinity'; negative: boolean }
  | { kind: 'number'; negative: boolean; m: bigint; e: number };

const mask = (bits: number): bigint => (1n << BigInt(bits)) - 1n;
const lengthOf = (value: bigint): number =>
  value === 0n
    ? 0
    : value.toString(16).length * 4 - Math.clz32(parseInt(value.toString(16)[0]!, 16)) + 28;

export function decode(bits: bigint, f: Format): Value {
  const negative = ((bits >> BigInt(f.bits - 1)) & 1n) === 1n;
  const exponent = Number((bits >> BigInt(f.mantissa)) & mask(f.bits - 1 - f.mantissa));
  const fraction = bits & mask(f.mantissa);
  if (exponent === 2 * f.bias + 1)
    return fraction ? { kind: 'nan' } : { kind: 'infinity', negative };
  return {
    kind: 'number',
    negative,
    m: exponent ? fraction | (1n << BigInt(f.mantissa)) : fraction,
    e: Math.max(exponent, 1) - f.bias - f.mantissa,
  };
}

const signBit = (negative: boolean, f: Format): bigint =>
  negative ? 1n << BigInt(f.bits - 1) : 0n;
const infinity = (negative: boolean, f: Format): bigint =>
  signBit(negative, f) | (BigInt(2 * f.bias + 1) << BigInt(f.mantissa));

/** Whether what is cut off makes the magnitude larger by one. */
function roundsUp(
  mode: Mode,
  negative: boolean,
  odd: boolean,
  rest: bigint,
  half: bigint,
  more: boolean,
): boolean {
  switch (mode) {
    case 'rn':
      return rest > half || (rest === half && (more || odd));
    case 'rz':
      return false;
    case 'rm':
      return negative && (rest !== 0n || more);
    case 'rp':
      return !negative && (rest !== 0n || more);
  }
}

/** How often 2^target goes into m * 2^e, rounded. */
function multiple(
  negative: boolean,
  m: bigint,
  e: number,
  more: boolean,
  target: number,
  mode: Mode,
): bigint {
  if (target > e) {
    const cut = BigInt(target - e);
    const kept = m >> cut;
    return (
      kept +
      (roundsUp(mode, negative, (kept & 1n) === 1n, m & mask(target - e), 1n << (cut - 1n), more)
        ? 1n
        : 0n)
    );
  }
  const kept = m << BigInt(e - target);
  return kept + (more && roundsUp(mode, negative, (kept & 1n) === 1n, 0n, 1n, true) ? 1n : 0n);
}

/** The number of a format that stands for m * 2^e. */
export function encode(
  negative: boolean,
  m: bigint,
  e: number,
  more: boolean,
  f: Format,
  mode: Mode,
): bigint {
  if (m === 0n && !more) return signBit(negative, f);
  const least = 1 - f.bias - f.mantissa;
  const unlimited = e + lengthOf(m) - 1 - f.mantissa;
  if (
    f.flushes &&
    lengthOf(multiple(negative, m, e, more, unlimited, mode)) + unlimited - 1 < 1 - f.bias
  )
    return signBit(negative, f);
  const target = Math.max(unlimited, least);
  const kept = multiple(negative, m, e, more, target, mode);
  // The hidden bit adds one to the exponent field by itself, and so does a carry.
  const magnitude = kept + (BigInt(target - least) << BigInt(f.mantissa));
  const limit = infinity(false, f);
  if (magnitude < limit) return signBit(negative, f) | magnitude;
  const away = mode === 'rn' || (mode === 'rm' && negative) || (mode === 'rp' && !negative);
  return signBit(negative, f) | (away ? limit : limit - 1n);
}

/**
 * The format of results with .ftz. By the ISA subnormal results become zeros, and an H200 takes
 * IEEE 754's tininess after rounding for that: what is below the least normal number when it is
 * rounded as if the exponent had no limit.
 */
export const flushing = (f: Format): Format => ({ ...f, flushes: true });

/** .ftz of an operand: subnormals become zeros of their sign. */
export function flush(bits: bigint, f: Format): bigint {
  const value = decode(bits, f);
  return value.kind === 'number' && value.m >> BigInt(f.mantissa) === 0n
    ? signBit(value.negative, f)
    : bits;
}

/** .sat: into [0, 1], NaN to +0. */
export function saturate(result: Result, f: Format): bigint {
  const one = BigInt(f.bias) << BigInt(f.mantissa);
  if (result === NAN || result >> BigInt(f.bits - 1) === 1n) return 0n;
  return result > one ? one : result;
}

/** .relu: negative numbers become +0. */
export function rectify(result: Result, f: Format): Result {
  return result !== NAN && result >> BigInt(f.bits - 1) === 1n ? 0n : result;
}

export function fma(a: bigint, b: bigint, c: bigint, f: Format, mode: Mode): Result {
  const [x, y, z] = [decode(a, f), decode(b, f), decode(c, f)];
  if (x.kind === 'nan' || y.kind === 'nan' || z.kind === 'nan') return NAN;
  const negative = x.negative !== y.negative;
  if (x.kind === 'infinity' || y.kind === 'infinity') {
    if ((x.kind === 'number' && x.m === 0n) || (y.kind === 'number' && y.m === 0n)) return NAN;
    return z.kind === 'infinity' && z.negative !== negative ? NAN : infinity(negative, f);
  }
  if (z.kind === 'infinity') return infinity(z.negative, f);
  const e = Math.min(x.e + y.e, z.e);
  const product = (x.m * y.m) << BigInt(x.e + y.e - e);
  const addend = z.m << BigInt(z.e - e);
  const sum = (negative ? -product : product) + (z.negative ? -addend : addend);
  if (sum !== 0n) return encode(sum < 0n, sum < 0n ? -sum : sum, e, false, f, mode);
  return signBit(negative === z.negative ? negative : mode === 'rm', f);
}

const one = (f: Format): bigint => BigInt(f.bias) << BigInt(f.mantissa);
export const negate = (bits: bigint, f: Format): bigint => bits ^ signBit(true, f);
export const add = (a: bigint, b: bigint, f: Format, mode: Mode): Result =>
  fma(a, one(f), b, f, mode);
export const subtract = (a: bigint, b: bigint, f: Format, mode: Mode): Result =>
  fma(a, one(f), negate(b, f), f, mode);

export function multiply(a: bigint, b: bigint, f: Format, mode: Mode): Result {
  const sign = (a ^ b) & signBit(true, f);
  // A zero of the product's sign changes neither its value nor the sign of its zero.
  return fma(a, b, sign, f, mode);
}

export function divide(a: bigint, b: bigint, f: Format, mode: Mode): Result {
  const [x, y] = [decode(a, f), decode(b, f)];
  if (x.kind === 'nan' || y.kind === 'nan') return NAN;
  const negative = x.negative !== y.negative;
  if (x.kind === 'infinity') return y.kind === 'infinity' ? NAN : infinity(negative, f);
  if (y.kind === 'infinity') return signBit(negative, f);
  if (y.m === 0n) return x.m === 0n ? NAN : infinity(negative, f);
  const shift = 2 * f.mantissa + 8;
  const dividend = x.m << BigInt(shift);
  return encode(negative, dividend / y.m, x.e - y.e - shift, dividend % y.m !== 0n, f, mode);
}

export const reciprocal = (a: bigint, f: Format, mode: Mode): Result => divide(one(f), a, f, mode);

/** The largest integer whose square is not above n. */
export function integerSquareRoot(n: bigint): bigint {
  if (n < 2n) return n;
  let x = 1n << BigInt((lengthOf(n) >> 1) + 1);
  for (;;) {
    const y = (x + n / x) >> 1n;
    if (y >= x) return x;
    x = y;
  }
}

export function squareRoot(a: bigint, f: Format, mode: Mode): Result {
  const x = decode(a, f);
  if (x.kind === 'nan') return NAN;
  if (x.kind === 'number' && x.m === 0n) return a;
  if (x.negative) return NAN;
  if (x.kind === 'infinity') return a;
  let shift = 2 * f.mantissa + 8;
  if ((x.e - shift) % 2 !== 0) shift++;
  const scaled = x.m << BigInt(shift);
  const root = integerSquareRoot(scaled);
  return encode(false, root, (x.e - shift) / 2, root * root !== scaled, f, mode);
}

export function convertFloat(a: bigint, from: Format, to: Format, mode: Mode): Result {
  const x = decode(a, from);
  if (x.kind === 'nan') return NAN;
  return x.kind === 'infinity'
    ? infinity(x.negative, to)
    : encode(x.negative, x.m, x.e, false, to, mode);
}

const INTEGRAL: Readonly<Record<string, Mode>> = { rni: 'rn', rzi: 'rz', rmi: 'rm', rpi: 'rp' };
export const INTEGRAL_MODES = Object.keys(INTEGRAL);

/** The magnitude of a number as an integer. */
function integral(x: Value & { kind: 'number' }, mode: string): bigint {
  if (x.e >= 0) return x.m << BigInt(x.e);
  const cut = BigInt(-x.e);
  const kept = x.m >> cut;
  return (
    kept +
    (roundsUp(
      INTEGRAL[mode]!,
      x.negative,
      (kept & 1n) === 1n,
      x.m & mask(-x.e),
      1n << (cut - 1n),
      false,
    )
      ? 1n
      : 0n)
  );
}

/** cvt.rni.f32.f32 and the like. */
export function roundToIntegral(a: bigint, f: Format, mode: string): Result {
  const x = decode(a, f);
  if (x.kind === 'nan') return NAN;
  return x.kind === 'infinity' ? a : encode(x.negative, integral(x, mode), 0, false, f, 'rn');
}

export function clamp(value: bigint, to: Integer): bigint {
  const least = to.signed ? -(1n << BigInt(to.bits - 1)) : 0n;
  const most = to.signed ? mask(to.bits - 1) : mask(to.bits);
  return value < least ? least : value > most ? most : value;
}

/**
 * PTX ISA, cvt: out of range is clamped; NaN is 0, but the least value, or for unsigned types the
 * top bit, for 64-bit targets and from f64.
 */
export function floatToInteger(a: bigint, from: Format, to: Integer, mode: string): bigint {
  const x = decode(a, from);
  if (x.kind === 'nan') {
    const top = 1n << BigInt(to.bits - 1);
    return from.bits !== 64 && to.bits !== 64 ? 0n : to.signed ? -top : top;
  }
  if (x.kind === 'infinity') return clamp(x.negative ? -(1n << 70n) : 1n << 70n, to);
  const magnitude = integral(x, mode);
  return clamp(x.negative ? -magnitude : magnitude, to);
}

export const integerToFloat = (value: bigint, to: Format, mode: Mode): bigint =>
  encode(value < 0n, value < 0n ? -value : value, 0, false, to, mode);

export const isNaNBits = (bits: bigint, f: Format): boolean => decode(bits, f).kind === 'nan';

/** PTX's NaN: all ones but the sign; a double's is the usual quiet one. */
export const canonicalNaN = (f: Format): bigint =>
  f.bits === 64 ? 0x7ff8000000000000n : mask(f.bits - 1);
