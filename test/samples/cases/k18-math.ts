/** The math library: sums of many functions, and of many roundings. */
import { near } from '../equality.js';
import { SPECIAL_F32, SPECIAL_F64, Values } from '../host-values.js';
import { f64 } from '../reference/rounded.js';
import {
  besselJ0,
  erf,
  erfc,
  gamma,
  nearestEven,
  normalCdf,
} from '../reference/special-functions.js';
import type { SampleModule } from '../sample-case.js';

const { fround } = Math;
const random = new Values(18);

/**
 * Beyond 1 asin is NaN, and so is the sum: these are where the functions go on slow paths and end.
 */
const beyond = [
  ...SPECIAL_F32,
  1.5,
  2,
  10,
  100,
  105414.36,
  105615.56,
  1e10,
  3.3e38,
  88.8,
  89,
  -88,
  -104,
  128,
  -127,
  35,
  34.5,
  1e-10,
  1e-20,
  1e-37,
  1e-40,
];
export const singles = Float32Array.of(
  ...random.floats(200, 0.01, 1),
  ...random.floats(40, 0, 0.01),
  ...random.floats(20, -1, 0),
  ...random.floats(20, -100, 100),
  ...beyond,
);

/** The sum that mathf computes, of terms in doubles. */
export function sumOfSingles(v: number): number {
  const whole = Math.trunc(v);
  const away = whole + (Math.abs(v - whole) >= 0.5 ? Math.sign(v) : 0);
  const step = v < 1 ? Math.max(v * 2 ** -23, 2 ** -149) : 0;
  return [
    Math.sin(v),
    Math.cos(v),
    Math.tan(v),
    Math.exp(v),
    2 ** v,
    10 ** v,
    Math.log(v),
    Math.log2(v),
    Math.log1p(v),
    v ** 2.5,
    erf(v),
    erfc(v),
    gamma(v),
    Math.log(gamma(v)),
    Math.atan2(v, 2),
    Math.asin(v),
    Math.sinh(v),
    Math.tanh(v),
    Math.cbrt(v),
    v % 3,
    Math.hypot(v, 2),
    nearestEven(v),
    away,
    whole,
    Math.ceil(v),
    Math.floor(v),
    v * 8,
    -Math.abs(v),
    v + step,
    v - 2 * nearestEven(v / 2),
    besselJ0(v),
    normalCdf(v),
  ].reduce((sum, term) => fround(sum + term), 0);
}

const doubles = Float64Array.of(
  ...random.doubles(100, 0, 5),
  ...random.doubles(50, 5, 700),
  ...random.doubles(20, -10, 0),
  ...SPECIAL_F64,
  1e-300,
  1e5,
  1e22,
  709.7,
  709.8,
  710.4,
);
function sumOfDoubles(v: number): number {
  return [
    Math.sin(v),
    Math.cos(v),
    Math.exp(v),
    Math.log(v),
    v ** 2.5,
    erf(v),
    Math.tanh(v),
    Math.sqrt(v),
    Math.cbrt(v),
    v % 3,
    Math.floor(v),
    nearestEven(v),
    1 / v,
    1 / Math.sqrt(v),
  ].reduce((sum, term) => sum + term, 0);
}

const threads = 256;
const x = random.wildFloats(threads);
const y = random.wildFloats(threads);
for (let i = 0; i < threads; i += 2) {
  x[i] = random.unit() * 3;
  y[i] = random.unit() * 3 + 0.1;
}
const d = random.wildDoubles(threads);
for (let i = 0; i < threads; i += 3) d[i] = (random.unit() - 0.5) * 2 ** random.below(70);

/** cvt to a signed or an unsigned integer of 32 bits: clamped, NaN is 0. */
const clamp32 = (value: number, low: number, high: number): number =>
  Number.isNaN(value) ? 0 : Math.min(Math.max(value, low), high);
const toInt = (value: number): number => clamp32(value, -2147483648, 2147483647);
/** To 64 bits: clamped, and NaN is 2^63 whatever the type. */
function to64(value: number, low: bigint, high: bigint): bigint {
  if (Number.isNaN(value)) return 2n ** 63n;
  if (value <= Number(low)) return low;
  return value >= Number(high) ? high : BigInt(value);
}
const bitsOfFloat = (value: number): number => new Int32Array(Float32Array.of(value).buffer)[0]!;

function integerOf(i: number): number {
  const [a, b] = [x[i]!, y[i]!];
  return (
    (toInt(Math.trunc(a)) +
      toInt(Math.floor(b)) +
      clamp32(nearestEven(a), 0, 4294967295) +
      toInt(Math.trunc(a)) +
      bitsOfFloat(b) +
      (Number.isNaN(a) ? 1 : 0) +
      (Math.abs(b) === Infinity ? 1 : 0) +
      (bitsOfFloat(a) >>> 31)) |
    0
  );
}

function longOf(i: number): bigint {
  const unsigned = (value: number): bigint => to64(value, 0n, 2n ** 64n - 1n);
  return BigInt.asUintN(
    64,
    unsigned(Math.trunc(d[i]!)) +
      unsigned(Math.trunc(x[i]!)) +
      to64(nearestEven(d[i]!), -(2n ** 63n), 2n ** 63n - 1n),
  );
}

/** A bigint to the nearest float. */
function singleOf(value: bigint): number {
  // Through a double with the lost bits kept in its last one: rounding twice is then rounding once.
  const magnitude = value < 0n ? -value : value;
  const shift = BigInt(Math.max(0, magnitude.toString(2).length - 40));
  const kept = (magnitude >> shift) | ((magnitude & ((1n << shift) - 1n)) === 0n ? 0n : 1n);
  return Math.sign(Number(value)) * fround(Number(kept) * 2 ** Number(shift));
}

function doubleOf(i: number): number {
  const [k, l, value] = [integerOf(i), longOf(i), d[i]!];
  const words = new DataView(new ArrayBuffer(8));
  words.setFloat64(0, value);
  const highWord = words.getInt32(0);
  words.setInt32(0, k);
  words.setInt32(4, 3);
  return (
    f64.fma(value, 1, x[i]!, 'rm') +
    Number(l) +
    k +
    fround(value) +
    singleOf(BigInt.asIntN(64, l)) +
    words.getFloat64(0) +
    highWord
  );
}

/** The sum of o, in doubles; only where nothing leaves the ordinary range. */
function floatOf(a: number, b: number): number {
  return (
    a +
    b +
    a * b +
    a / b +
    Math.sqrt(a) +
    1 / a +
    (a * b + a) +
    a / b +
    Math.max(a - b, 0) +
    Math.max(a, b) +
    a / b +
    a ** b +
    Math.sin(a) +
    Math.cos(b) +
    Math.log2(a) +
    Math.tan(a)
  );
}

const ordinary = {
  x: Float32Array.from({ length: 100 }, () => 0.3 + random.unit() * 1.1),
  y: Float32Array.from({ length: 100 }, () => 0.3 + random.unit() * 2),
};
const quotients = random.wildFloats(300);

export const K18_MATH: SampleModule = {
  name: 'k18_math',
  cases: [
    {
      // 31 sums below 32, each of them half an ulp; a term that has more than an ulp is small.
      kernel: 'mathf',
      name: 'from 0 to 1, and all kinds of floats',
      memory: { x: singles, o: new Float32Array(singles.length) },
      launches: [{ grid: 3, block: 192, args: ['x', 'o', singles.length] }],
      outputs: {
        o: {
          equal: near(4, 32),
          reference: () => Array.from(singles, sumOfSingles),
          referenceEqual: near(24, 64),
        },
      },
    },
    {
      kernel: 'mathd',
      name: 'from 0 to 700, and all kinds of doubles',
      memory: { x: doubles, o: new Float64Array(doubles.length) },
      launches: [{ grid: 2, block: 128, args: ['x', 'o', doubles.length] }],
      outputs: {
        o: {
          equal: near(2, 16),
          reference: () => Array.from(doubles, sumOfDoubles),
          referenceEqual: near(16, 64),
        },
      },
    },
    {
      kernel: 'rounds',
      name: 'integers of all kinds of floats and doubles',
      memory: {
        x,
        y,
        o: new Float32Array(threads),
        k: new Int32Array(threads),
        l: new BigUint64Array(threads),
        d,
      },
      launches: [{ grid: 1, block: threads, args: ['x', 'y', 'o', 'k', 'l', 'd'] }],
      outputs: {
        k: { equal: 'bits', reference: () => Array.from(x, (_, i) => integerOf(i)) },
        l: {
          equal: 'bits',
          reference: () => BigUint64Array.from({ length: threads }, (_, i) => longOf(i)),
        },
        d: { equal: 'bits', reference: () => Array.from(d, (_, i) => doubleOf(i)) },
      },
    },
    {
      // tan is a quotient of sin and cos.approx: an absolute error of 2^-20 where its cosine is
      // above 0.1.
      kernel: 'rounds',
      name: 'floats of an ordinary size',
      memory: {
        ...ordinary,
        o: new Float32Array(100),
        k: new Int32Array(100),
        l: new BigUint64Array(100),
        d: new Float64Array(100),
      },
      launches: [{ grid: 1, block: 100, args: ['x', 'y', 'o', 'k', 'l', 'd'] }],
      outputs: {
        o: {
          equal: near(32, 64),
          reference: () => Array.from(ordinary.x, (a, i) => floatOf(a, ordinary.y[i]!)),
          referenceEqual: near(48, 64),
        },
      },
    },
    {
      kernel: 'fastdiv',
      name: 'all kinds of floats',
      memory: { x: quotients, o: new Float32Array(300) },
      launches: [{ grid: 1, block: 300, args: ['x', 'o'] }],
      outputs: { o: { equal: 'bits', reference: () => quotients.map((value) => value / 3) } },
    },
  ],
};
