import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';
import * as exact from './exact-arithmetic.js';

const doubles = new Float64Array(1);
const bits64 = new BigUint64Array(doubles.buffer);
const floats = new Float32Array(1);
const bits32 = new Uint32Array(floats.buffer);

const f32 = (bits: number): number => {
  bits32[0] = bits;
  return floats[0]!;
};
const f64 = (bits: bigint): number => {
  bits64[0] = bits;
  return doubles[0]!;
};

/** value = m · 2^e */
function parts(value: number): { m: bigint; e: number } {
  doubles[0] = value;
  const bits = bits64[0]!;
  const field = Number((bits >> 52n) & 2047n);
  const m = (bits & ((1n << 52n) - 1n)) | (field ? 1n << 52n : 0n);
  return { m: bits >> 63n ? -m : m, e: Math.max(field, 1) - 1075 };
}

/**
 * a · b + c as a fraction, rounded to `precision` bits, least exponent `least`, by a comparison
 * with the floats on both sides.
 */
function reference(
  a: number,
  b: number,
  c: number,
  precision: number,
  least: number,
  most: number,
): number {
  const plain = a * b + c;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return plain;
  if (!Number.isFinite(c)) return c;
  const [x, y, z] = [parts(a), parts(b), parts(c)];
  const e = Math.min(x.e + y.e, z.e);
  const sum = ((x.m * y.m) << BigInt(x.e + y.e - e)) + (z.m << BigInt(z.e - e));
  if (sum === 0n) return x.m * y.m === 0n && z.m === 0n ? a * b + c : 0;
  const size = sum < 0n ? -sum : sum;
  const unit = Math.max(e + size.toString(2).length - precision, least);
  let scaled: bigint;
  if (unit <= e) scaled = size << BigInt(e - unit);
  else {
    const one = 1n << BigInt(unit - e);
    const [quotient, rest] = [size / one, size % one];
    scaled =
      rest * 2n > one || (rest * 2n === one && quotient % 2n === 1n) ? quotient + 1n : quotient;
  }
  let value = Number(scaled);
  // Two steps, each of which is exact: a normal number cannot be multiplied by 2^-1074 twice.
  value =
    unit < -1000
      ? value * 2 ** (unit + 100) * 2 ** -100
      : unit > 900
        ? value * 2 ** 900 * 2 ** (unit - 900)
        : value * 2 ** unit;
  return (sum < 0n ? -1 : 1) * (value >= most ? Infinity : value);
}

const edges32 = [
  0, 1, 2, 0x7fffff, 0x800000, 0x800001, 0x3f800000, 0x3f800001, 0x3f7fffff, 0x7f7fffff, 0x7f800000,
  0x7fc00000, 0x4b800000, 0x33800000,
];
const anyF32 = fc
  .oneof(
    fc.integer({ min: 0, max: 0xffffffff }),
    fc.constantFrom(...edges32, ...edges32.map((bits) => (bits | 0x80000000) >>> 0)),
    fc.integer({ min: 0x3f000000, max: 0x41000000 }),
  )
  .map(f32);
const edges64 = [
  0n,
  1n,
  2n,
  0xfffffffffffffn,
  0x10000000000000n,
  0x3ff0000000000000n,
  0x3ff0000000000001n,
  0x3fefffffffffffffn,
  0x7fefffffffffffffn,
  0x7ff0000000000000n,
  0x7ff8000000000000n,
  0x3ca0000000000000n,
];
const anyF64 = fc
  .oneof(
    fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
    fc.constantFrom(...edges64, ...edges64.map((bits) => bits | (1n << 63n))),
    fc.bigInt({ min: 0x3f80000000000000n, max: 0x4080000000000000n }),
    fc.bigInt({ min: 0xbf80000000000000n, max: 0xc080000000000000n }),
  )
  .map(f64);

test(
  'fma of f32 is rounded once, subnormal, overflowing and NaN included',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(anyF32, anyF32, anyF32, (a, b, c) => {
        expect(exact.fma32(a, b, c)).toBe(reference(a, b, c, 24, -149, 2 ** 128));
      }),
      { numRuns: 20_000 },
    );
  },
);

test('fma of f32 decides ties by digits beyond the double', () => {
  // (1 + 2^-12)² = 1 + 2^-11 + 2^-24, a tie of f32; a tiny summand decides it, and is lost in the
  // double sum.
  const a = 1 + 2 ** -12;
  expect(exact.fma32(a, a, 2 ** -80)).toBe(1 + 2 ** -11 + 2 ** -23);
  expect(exact.fma32(a, a, -(2 ** -80))).toBe(1 + 2 ** -11);
  expect(exact.fma32(a, a, 0)).toBe(1 + 2 ** -11);
});

test(
  'fma of f64 is rounded once, subnormal, overflowing and NaN included',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(anyF64, anyF64, anyF64, (a, b, c) => {
        expect(exact.fma64(a, b, c)).toBe(reference(a, b, c, 53, -1074, Infinity));
      }),
      { numRuns: 20_000 },
    );
  },
);

test('fma of f64 where the summand nearly cancels the product', { tags: 'random' }, () => {
  fc.assert(
    fc.property(anyF64, anyF64, fc.integer({ min: -3, max: 3 }), (a, b, steps) => {
      const product = a * b;
      if (!Number.isFinite(product)) return;
      doubles[0] = -product;
      bits64[0]! += BigInt(steps);
      const c = doubles[0]!;
      expect(exact.fma64(a, b, c)).toBe(reference(a, b, c, 53, -1074, Infinity));
    }),
    { numRuns: 10_000 },
  );
});

test('fma of f64 keeps the sign of results that underflow, and of zeros', () => {
  expect(exact.fma64(-1e-200, 1e-200, 0)).toBe(-0);
  expect(exact.fma64(1e-200, 1e-200, -0)).toBe(0);
  expect(exact.fma64(0, -1, -0)).toBe(-0);
  expect(exact.fma64(2, 3, -6)).toBe(0);
  expect(exact.fma64(1e300, 1e300, -Infinity)).toBe(-Infinity);
  expect(exact.fma64(2 ** 1000, 2 ** 1000, -(2 ** 1000))).toBe(Infinity);
});

test('integers of 64 bits are converted to f32 with one rounding', () => {
  // Through a double it would be 2^53 + 2^29 exactly, and then the even float below.
  expect(exact.i64ToF32(2n ** 53n + 2n ** 29n + 1n)).toBe(2 ** 53 + 2 ** 30);
  expect(exact.i64ToF32(-(2n ** 53n) - 2n ** 29n)).toBe(-(2 ** 53));
  expect(exact.i64ToF32((1n << 64n) - 1n)).toBe(2 ** 64);
  expect(exact.i64ToF32(0n)).toBe(0);
});

test.each([
  [NaN, 0, 0, 0n, 0n],
  [-1.5, -1, 0, -1n, 0n],
  [3e9, 2147483647, 3000000000, 3000000000n, 3000000000n],
  [-3e9, -2147483648, 0, -3000000000n, 0n],
  [Infinity, 2147483647, 4294967295, 0x7fffffffffffffffn, 0xffffffffffffffffn],
  [-Infinity, -2147483648, 0, -0x8000000000000000n, 0n],
  [2 ** 63, 2147483647, 4294967295, 0x7fffffffffffffffn, 1n << 63n],
])('%d to integers truncates and saturates', (value, i32, u32, i64, u64) => {
  expect(exact.floatToI32(value)).toBe(i32);
  expect(exact.floatToU32(value)).toBe(u32);
  expect(exact.floatToI64(value)).toBe(i64);
  expect(exact.floatToU64(value)).toBe(u64);
});

test('rint rounds ties to even, and keeps the sign of zero', () => {
  expect(
    [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 4503599627370495.5, NaN].map(exact.rint),
  ).toEqual([0, 2, 2, -0, -2, -2, 0, 4503599627370496, NaN]);
});

test('bits in reverse, counted, and multiplied into the upper half', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
      fc.integer({ min: 0, max: 0xffffffff }),
      (wide, narrow) => {
        const text = wide.toString(2).padStart(64, '0');
        expect(exact.reverseBits64(wide)).toBe(BigInt(`0b${[...text].reverse().join('')}`));
        expect(exact.popcount64(wide)).toBe(text.replaceAll('0', '').length);
        expect(exact.clz64(wide)).toBe(`${text}1`.indexOf('1'));
        const short = narrow.toString(2).padStart(32, '0');
        expect(exact.reverseBits(narrow) >>> 0).toBe(
          Number.parseInt([...short].reverse().join(''), 2),
        );
        expect(exact.popcount(narrow)).toBe(short.replaceAll('0', '').length);
        expect(exact.mulhiU32(narrow, narrow)).toBe(
          Number((BigInt(narrow) * BigInt(narrow)) >> 32n),
        );
        expect(exact.mulhiI32(narrow | 0, -7)).toBe(Number((BigInt(narrow | 0) * -7n) >> 32n));
      },
    ),
  );
});

test('a NaN has the bits of PTX', () => {
  expect(exact.bitsOfF32(NaN)).toBe(0x7fffffff);
  expect(exact.bitsOfF64(NaN)).toBe(0x7ff8000000000000n);
  expect(exact.bitsOfF32(-0)).toBe(0x80000000);
  expect(exact.f32OfBits(0x3f800000)).toBe(1);
  expect(exact.f64OfBits(exact.bitsOfF64(-1.5))).toBe(-1.5);
});
