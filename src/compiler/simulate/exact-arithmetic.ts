/**
 * Arithmetic that gives a GPU's bits and that JavaScript has no operator for: fused multiply-add,
 * conversions that saturate, upper halves of products, bits of floats. f32 values are numbers that
 * an f32 holds; i64 and u64 are bigints.
 */

const float64 = new Float64Array(1);
const words = new Uint32Array(float64.buffer);
const bits64 = new BigUint64Array(float64.buffer);
const float32 = new Float32Array(float64.buffer);
/** The index of the word that holds sign and exponent. */
const HIGH = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? 1 : 0;

/** The NaNs that PTX's arithmetic gives. */
export const NAN_BITS_F32 = 0x7fffffff;
export const NAN_BITS_F64 = 0x7ff8000000000000n;

/**
 * Gives a + b rounded to odd: of the two numbers around an inexact sum, the one whose last bit is
 * set. Rounding that number once more, to fewer bits, equals rounding the sum.
 */
function addToOdd(a: number, b: number): number {
  const sum = a + b;
  const bPart = sum - a;
  const rest = a - (sum - bPart) + (b - bPart);
  if (rest === 0 || !Number.isFinite(sum)) return sum;
  float64[0] = sum;
  if ((words[1 - HIGH]! & 1) === 1) return sum;
  if (rest > 0 === sum > 0) {
    words[1 - HIGH]! |= 1;
  } else {
    if (words[1 - HIGH] === 0) words[HIGH]!--;
    words[1 - HIGH]!--;
  }
  return float64[0];
}

/** Gives a · b + c of f32, rounded once. The product of two f32 is exact in f64. */
export function fma32(a: number, b: number, c: number): number {
  return Math.fround(addToOdd(a * b, c));
}

/** Outside of these bounds, parts of products could overflow, or fall below the least number. */
const LEAST_FACTOR = 2 ** -400;
const LARGEST_FACTOR = 2 ** 400;
const LEAST_SUMMAND = 2 ** -900;
const LARGEST_SUMMAND = 2 ** 900;

/**
 * Gives a · b + c of f64, rounded once: from the exact product in two parts and a sum that is
 * rounded to odd (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008), or
 * in integers where those parts could leave the range.
 */
export function fma64(a: number, b: number, c: number): number {
  const product = a * b;
  if (a === 0 || b === 0 || !Number.isFinite(a) || !Number.isFinite(b)) return product + c;
  // The product of finite numbers is finite, even where it is too large for a double.
  if (!Number.isFinite(c)) return c;
  // The exact product is not zero, so its sign is the result's, even if it is rounded to zero.
  if (c === 0) return product;
  const sizeA = Math.abs(a);
  const sizeB = Math.abs(b);
  const sizeC = Math.abs(c);
  if (!(
    sizeA > LEAST_FACTOR &&
    sizeA < LARGEST_FACTOR &&
    sizeB > LEAST_FACTOR &&
    sizeB < LARGEST_FACTOR &&
    sizeC > LEAST_SUMMAND &&
    sizeC < LARGEST_SUMMAND
  ))
    return fmaOfIntegers(a, b, c);
  const splitA = 134217729 * a;
  const highA = splitA - (splitA - a);
  const lowA = a - highA;
  const splitB = 134217729 * b;
  const highB = splitB - (splitB - b);
  const lowB = b - highB;
  const productRest = lowA * lowB - (product - highA * highB - lowA * highB - highA * lowB);
  const low = c + productRest;
  const lowPart = low - c;
  const lowRest = c - (low - lowPart) + (productRest - lowPart);
  const high = product + low;
  const highPart = high - product;
  const highRest = product - (high - highPart) + (low - highPart);
  return high + addToOdd(lowRest, highRest);
}

/** value = m · 2^e */
function decompose(value: number): { m: bigint; e: number } {
  float64[0] = value;
  const bits = bits64[0]!;
  const field = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const m = field === 0 ? fraction : fraction | 0x10000000000000n;
  return { m: bits >> 63n === 1n ? -m : m, e: Math.max(field, 1) - 1075 };
}

const bitLength = (value: bigint): number => value.toString(2).length;

/** `magnitude` · 2^-shift to the nearest integer, ties to even. */
function shiftToNearest(magnitude: bigint, shift: number): bigint {
  if (shift <= 0) return magnitude << BigInt(-shift);
  const rest = BigInt.asUintN(shift, magnitude);
  const half = 1n << BigInt(shift - 1);
  const quotient = magnitude >> BigInt(shift);
  return rest > half || (rest === half && (quotient & 1n) === 1n) ? quotient + 1n : quotient;
}

function fmaOfIntegers(a: number, b: number, c: number): number {
  const x = decompose(a);
  const y = decompose(b);
  const z = decompose(c);
  const e = Math.min(x.e + y.e, z.e);
  const sum = ((x.m * y.m) << BigInt(x.e + y.e - e)) + (z.m << BigInt(z.e - e));
  // Terms that cancel exactly give +0.
  if (sum === 0n) return 0;
  const magnitude = sum < 0n ? -sum : sum;
  const unit = Math.max(e + bitLength(magnitude) - 53, -1074);
  const rounded = shiftToNearest(magnitude, unit - e) + (BigInt(unit + 1074) << 52n);
  bits64[0] = rounded < 0x7ff0000000000000n ? rounded : 0x7ff0000000000000n;
  return sum < 0n ? -float64[0]! : float64[0]!;
}

/** Converts i64 or u64 to f32 with one rounding; a conversion through f64 would round twice. */
export function i64ToF32(value: bigint): number {
  const magnitude = value < 0n ? -value : value;
  const unit = Math.max(bitLength(magnitude) - 24, 0);
  const rounded = Number(shiftToNearest(magnitude, unit)) * 2 ** unit;
  return value < 0n ? -rounded : rounded;
}

/** Truncates and saturates; NaN gives 0. */
export function floatToI32(value: number): number {
  return Math.max(-2147483648, Math.min(2147483647, value)) | 0;
}

export function floatToU32(value: number): number {
  return Math.max(0, Math.min(4294967295, value)) >>> 0;
}

export function floatToI64(value: number): bigint {
  if (Number.isNaN(value)) return 0n;
  if (value >= 2 ** 63) return 0x7fffffffffffffffn;
  return value <= -(2 ** 63) ? -0x8000000000000000n : BigInt(Math.trunc(value));
}

export function floatToU64(value: number): bigint {
  if (!(value > 0)) return 0n;
  return value >= 2 ** 64 ? 0xffffffffffffffffn : BigInt(Math.trunc(value));
}

/** Rounds to the nearest integer, ties to even; the sign of zero stays. */
export function rint(value: number): number {
  const nearest = Math.round(value);
  // Math.round rounds ties up.
  const even = nearest - value === 0.5 && nearest % 2 !== 0 ? nearest - 1 : nearest;
  return even === 0 ? value * 0 : even;
}

export function copysign(magnitude: number, sign: number): number {
  const size = Math.abs(magnitude);
  return sign < 0 || Object.is(sign, -0) ? -size : size;
}

export function mulhiI32(a: number, b: number): number {
  return Number((BigInt(a) * BigInt(b)) >> 32n);
}

export function mulhiU32(a: number, b: number): number {
  return Number((BigInt(a) * BigInt(b)) >> 32n);
}

/** The upper half of the product. Both operands are i64, or both u64. */
export function mulhi64(a: bigint, b: bigint): bigint {
  return (a * b) >> 64n;
}

/** The quotient. Division by zero is unspecified in PTX and gives 0 here; BigInt would throw. */
export function divide64(a: bigint, b: bigint): bigint {
  return b === 0n ? 0n : a / b;
}

export function remainder64(a: bigint, b: bigint): bigint {
  return b === 0n ? 0n : a % b;
}

export function min64(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function max64(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** The number of set bits, of 32. */
export function popcount(value: number): number {
  let pairs = value - ((value >>> 1) & 0x55555555);
  pairs = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((pairs + (pairs >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

const lowWord = (value: bigint): number => Number(BigInt.asUintN(32, value));
const highWord = (value: bigint): number => Number(BigInt.asUintN(32, value >> 32n));

export function popcount64(value: bigint): number {
  return popcount(lowWord(value)) + popcount(highWord(value));
}

export function clz64(value: bigint): number {
  const high = highWord(value);
  return high === 0 ? 32 + Math.clz32(lowWord(value)) : Math.clz32(high);
}

/** The 32 bits in reverse order, as an i32. */
export function reverseBits(value: number): number {
  let bits = ((value >>> 1) & 0x55555555) | ((value & 0x55555555) << 1);
  bits = ((bits >>> 2) & 0x33333333) | ((bits & 0x33333333) << 2);
  bits = ((bits >>> 4) & 0x0f0f0f0f) | ((bits & 0x0f0f0f0f) << 4);
  bits = ((bits >>> 8) & 0x00ff00ff) | ((bits & 0x00ff00ff) << 8);
  return (bits >>> 16) | (bits << 16);
}

/** The 64 bits in reverse order, as a u64. */
export function reverseBits64(value: bigint): bigint {
  return (
    (BigInt(reverseBits(lowWord(value)) >>> 0) << 32n) | BigInt(reverseBits(highWord(value)) >>> 0)
  );
}

/** The bits as a u32; a NaN has PTX's bits. */
export function bitsOfF32(value: number): number {
  if (Number.isNaN(value)) return NAN_BITS_F32;
  float32[0] = value;
  return words[0]!;
}

export function f32OfBits(bits: number): number {
  words[0] = bits;
  return float32[0]!;
}

/** The bits as a u64; a NaN has PTX's bits. */
export function bitsOfF64(value: number): bigint {
  if (Number.isNaN(value)) return NAN_BITS_F64;
  float64[0] = value;
  return bits64[0]!;
}

export function f64OfBits(bits: bigint): number {
  bits64[0] = bits;
  return float64[0]!;
}

/**
 * Flushes subnormal numbers to zero, as atomic addition to f32 in global memory does with its
 * operands and result (PTX ISA, atom).
 */
export function flushed(value: number): number {
  return Math.abs(value) < 2 ** -126 ? value * 0 : value;
}
