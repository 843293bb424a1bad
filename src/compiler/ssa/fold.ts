/**
 * Constant folding, with the same bits as the device's. It gives undefined where the bits are not
 * certain, and then the device computes the value.
 */
import { towardsZero, wholeTowardsZero } from '../round-to-odd.js';
import type { Constant, NumberType, RegisterType } from './function.js';

const scratch = new DataView(new ArrayBuffer(8));

/** Bits of a float as PTX writes them; a NaN has the bits that instructions give. */
export function floatBits(value: number): number {
  if (Number.isNaN(value)) return 0x7fffffff;
  scratch.setFloat32(0, value);
  return scratch.getInt32(0);
}

export function doubleBits(value: number): bigint {
  if (Number.isNaN(value)) return 0x7fffffffffffffffn;
  scratch.setFloat64(0, value);
  return scratch.getBigInt64(0);
}

export function floatOfBits(bits: number): number {
  scratch.setInt32(0, bits);
  return scratch.getFloat32(0);
}

export function doubleOfBits(bits: bigint): number {
  scratch.setBigInt64(0, bits);
  return scratch.getFloat64(0);
}

/** The nearest integer, ties to even. */
function roundEven(value: number): number {
  if (!Number.isFinite(value) || Math.abs(value) >= 2 ** 52) return value;
  const floor = Math.floor(value);
  const rest = value - floor;
  const rounded = rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1;
  return rounded === 0 && (value < 0 || Object.is(value, -0)) ? -0 : rounded;
}

const clamp = (value: number, low: number, high: number): number =>
  Number.isNaN(value) ? 0 : Math.min(Math.max(Math.trunc(value), low), high);

function toBigInteger(value: number, low: bigint, high: bigint): bigint {
  if (Number.isNaN(value)) return 0n;
  if (!Number.isFinite(value)) return value < 0 ? low : high;
  const whole = BigInt(Math.trunc(value));
  return whole < low ? low : whole > high ? high : whole;
}

/** The f32 nearest to a 64-bit integer; a conversion through f64 would round twice. */
function floatOfBig(value: bigint): number | undefined {
  const double = Number(value);
  if (BigInt(double) === value) return Math.fround(double);
  // f64 has rounded already: the f32 is certain unless the f64 is the midpoint of two floats.
  const bits = doubleBits(double) & 0x1fffffffn;
  return bits === 0x10000000n ? undefined : Math.fround(double);
}

const i32: Readonly<Record<string, (a: number, b: number) => number>> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: Math.imul,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  shl: (a, b) => a << b,
};

const i64: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

const float: Readonly<Record<string, (a: number, b: number) => number>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  rem: (a, b) => a % b,
  min: Math.min,
  max: Math.max,
};

/** For these, rounding to f64 and then to f32 is exact: 53 bits are more than 2 · 24 + 2. */
const floatUnary: Readonly<Record<string, (a: number) => number>> = {
  neg: (a) => -a,
  abs: Math.abs,
  floor: Math.floor,
  ceil: Math.ceil,
  trunc: Math.trunc,
  rint: roundEven,
  sqrt: Math.sqrt,
};

const comparisons: Readonly<Record<string, (a: Constant, b: Constant) => boolean>> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
};

const unsigned = (as: NumberType | undefined): boolean => as === 'u32' || as === 'u64';

function foldInteger(
  op: string,
  as: NumberType | undefined,
  a: number,
  b: number,
): number | undefined {
  const plain = i32[op];
  if (plain) return plain(a, b);
  const [x, y] = unsigned(as) ? [a >>> 0, b >>> 0] : [a, b];
  switch (op) {
    case 'shr':
      return unsigned(as) ? a >>> b : a >> b;
    case 'min':
      return Math.min(x, y);
    case 'max':
      return Math.max(x, y);
    case 'div':
      return y === 0 ? undefined : Math.trunc(x / y);
    case 'rem':
      return y === 0 ? undefined : x % y;
    case 'mulhi':
      return Number((BigInt(x) * BigInt(y)) >> 32n);
    default:
      return undefined;
  }
}

function foldBig(op: string, as: NumberType | undefined, a: bigint, b: bigint): bigint | undefined {
  const plain = i64[op];
  if (plain) return plain(a, b);
  const [x, y] = unsigned(as) ? [BigInt.asUintN(64, a), BigInt.asUintN(64, b)] : [a, b];
  switch (op) {
    case 'min':
      return x < y ? x : y;
    case 'max':
      return x > y ? x : y;
    case 'div':
      return y === 0n ? undefined : x / y;
    case 'rem':
      return y === 0n ? undefined : x % y;
    case 'mulhi':
      return (x * y) >> 64n;
    default:
      return undefined;
  }
}

/**
 * a * b + c with one rounding, where plain arithmetic shows that it is exact; undefined elsewhere.
 */
function foldFma(type: RegisterType, a: number, b: number, c: number): number | undefined {
  if (type !== 'f32') return undefined;
  // The product is exact: 24 + 24 bits.
  const product = a * b;
  const sum = product + c;
  const back = sum - product;
  const error = product - (sum - back) + (c - back);
  return error === 0 || !Number.isFinite(sum) ? Math.fround(sum) : undefined;
}

/** A wider number as f32, rounded towards zero. */
function cutOff(from: string, a: Constant): number {
  switch (from) {
    case 's64':
      return wholeTowardsZero(a as bigint);
    case 'u64':
      return wholeTowardsZero(BigInt.asUintN(64, a as bigint));
    case 'u32':
      return towardsZero((a as number) >>> 0);
    default:
      return towardsZero(a as number);
  }
}

function foldConvert(detail: string, a: Constant): Constant | undefined {
  const [to, from, rounding] = detail.split('.') as [string, string, string?];
  const number = Number(a);
  if (rounding === 'rz') return cutOff(from, a);
  switch (from) {
    case 's32':
      return to === 'f32' ? Math.fround(number) : number;
    case 'u32':
      return to === 'f32' ? Math.fround(number >>> 0) : number >>> 0;
    case 's64':
    case 'u64': {
      const big = from === 'u64' ? BigInt.asUintN(64, a as bigint) : (a as bigint);
      return to === 'f32' ? floatOfBig(big) : Number(big);
    }
    default:
      break;
  }
  switch (to) {
    case 's32':
      return clamp(number, -(2 ** 31), 2 ** 31 - 1);
    case 'u32':
      return clamp(number, 0, 2 ** 32 - 1);
    case 's64':
      return toBigInteger(number, -(2n ** 63n), 2n ** 63n - 1n);
    case 'u64':
      return toBigInteger(number, 0n, 2n ** 64n - 1n);
    case 'f32':
      return from === 'f64' ? Math.fround(number) : undefined;
    case 'f64':
      return from === 'f32' ? number : undefined;
    default:
      return undefined;
  }
}

const narrowed: Readonly<Record<string, (a: number) => number>> = {
  s8: (a) => (a << 24) >> 24,
  u8: (a) => a & 0xff,
  s16: (a) => (a << 16) >> 16,
  u16: (a) => a & 0xffff,
};

function foldBits(type: RegisterType, a: Constant): Constant | undefined {
  switch (type) {
    case 'b32':
      return typeof a === 'number' && !Number.isNaN(a) ? floatBits(a) : undefined;
    case 'b64':
      return typeof a === 'number' && !Number.isNaN(a) ? doubleBits(a) : undefined;
    // The bits of a NaN would be lost.
    case 'f32':
      return Number.isNaN(floatOfBits(a as number)) ? undefined : floatOfBits(a as number);
    case 'f64':
      return Number.isNaN(doubleOfBits(a as bigint)) ? undefined : doubleOfBits(a as bigint);
    default:
      return undefined;
  }
}

function bitCount(value: number): number {
  let count = 0;
  for (let rest = value >>> 0; rest !== 0; rest &= rest - 1) count++;
  return count;
}

const low32 = (value: bigint): number => Number(BigInt.asIntN(32, value));

function foldUnary(
  op: string,
  type: RegisterType,
  detail: string,
  as: NumberType | undefined,
  a: Constant,
): Constant | undefined {
  if (type === 'f32' || type === 'f64') {
    const apply = floatUnary[op];
    if (apply) return type === 'f32' ? Math.fround(apply(a as number)) : apply(a as number);
  }
  switch (op) {
    case 'neg':
      return typeof a === 'bigint' ? -a : -(a as number) | 0;
    case 'not':
      return typeof a === 'bigint' ? ~a : typeof a === 'boolean' ? !a : ~a;
    case 'abs':
      return typeof a === 'bigint' ? (a < 0n ? -a : a) : Math.abs(a as number) | 0;
    case 'clz':
      return typeof a === 'number' ? Math.clz32(a) : undefined;
    case 'popc':
      return typeof a === 'number'
        ? bitCount(a)
        : bitCount(low32(a as bigint)) + bitCount(low32((a as bigint) >> 32n));
    case 'extend':
      return as === 'u32' ? BigInt((a as number) >>> 0) : BigInt(a);
    case 'truncate':
    case 'low':
      return low32(a as bigint);
    case 'high':
      return low32((a as bigint) >> 32n);
    case 'narrow':
      return narrowed[detail]!(a as number);
    case 'convert':
      return foldConvert(detail, a);
    case 'bits':
      return foldBits(type, a);
    default:
      return undefined;
  }
}

function foldCompare(
  detail: string,
  as: NumberType | undefined,
  a: Constant,
  b: Constant,
): boolean | undefined {
  const apply = comparisons[detail];
  if (!apply) return undefined;
  if (as === 'u32') return apply((a as number) >>> 0, (b as number) >>> 0);
  if (as === 'u64') return apply(BigInt.asUintN(64, a as bigint), BigInt.asUintN(64, b as bigint));
  return apply(a, b);
}

/** Gives the constant of an operation. */
export function foldConstants(
  op: string,
  type: RegisterType,
  detail: string,
  as: NumberType | undefined,
  args: readonly Constant[],
): Constant | undefined {
  const [a, b, c] = args as [Constant, Constant, Constant];
  if (args.length === 1) return foldUnary(op, type, detail, as, a);
  if (op === 'compare') return foldCompare(detail, as, a, b);
  if (op === 'select') return a ? b : c;
  if (op === 'fma') return foldFma(type, a as number, b as number, c as number);
  if (args.length !== 2) return undefined;
  if (op === 'wide')
    return as === 'u32'
      ? BigInt((a as number) >>> 0) * BigInt((b as number) >>> 0)
      : BigInt(a) * BigInt(b);
  if (op === 'shl' && type === 'b64') return (a as bigint) << BigInt((b as number) & 63);
  if (op === 'shr' && type === 'b64')
    return (
      (as === 'u64' ? BigInt.asUintN(64, a as bigint) : (a as bigint)) >> BigInt((b as number) & 63)
    );
  switch (type) {
    case 'b32':
      return foldInteger(op, as, a as number, b as number);
    case 'b64':
      return foldBig(op, as, a as bigint, b as bigint);
    case 'pred':
      return op === 'and'
        ? Boolean(a) && Boolean(b)
        : op === 'or'
          ? Boolean(a) || Boolean(b)
          : op === 'xor'
            ? a !== b
            : undefined;
    case 'f32': {
      const apply = float[op];
      return apply && Math.fround(apply(a as number, b as number));
    }
    case 'f64':
      return float[op]?.(a as number, b as number);
    default:
      return undefined;
  }
}
