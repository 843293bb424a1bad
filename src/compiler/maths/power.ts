/** pow, cbrt, hypot, rsqrt. */
import { reduceTwo32, reduceTwo64, scale32, scale64 } from './exponential.js';
import { split32, split64 } from './logarithm.js';
import { horner, literal } from './polynomial.js';

/**
 * The constants of pow in one type. The logarithm has the base 2: `factor` is 2 / ln(2) in two
 * parts, `third` 1/3.
 */
interface PowerNumbers {
  readonly type: 'f32' | 'f64';
  /** The signed integer type of the float's width. */
  readonly integer: 'i32' | 'i64';
  readonly split: string;
  readonly reduce: string;
  readonly scale: string;
  readonly factor: string;
  readonly factorLow: string;
  readonly third: string;
  readonly thirdLow: string;
  /** (atanh(r) - r - r³/3) / r⁵ for |r| <= 0.1717, in r². */
  readonly fifth: readonly number[];
  /** 2^f for |f| <= 1/2. */
  readonly two: readonly number[];
  /** Beyond this binary logarithm the result is 0 or infinite. */
  readonly bound: string;
}

/** Within 2^-36.8 of r, and within 2^-30.6 of 2^f. */
const numbers32: PowerNumbers = {
  type: 'f32',
  integer: 'i32',
  split: split32('a'),
  reduce: reduceTwo32,
  scale: scale32,
  factor: '2.88539',
  factorLow: '3.851926e-8',
  third: '0.33333334',
  thirdLow: '-9.934108e-9',
  bound: '200.0',
  fifth: [0.20000076, 0.14273544, 0.11709884],
  two: [
    1, 0.6931472, 0.2402265, 0.055504035, 0.009618058, 0.0013338965, 0.00015466142, 1.4251866e-5,
  ],
};
/** Within 2^-77.0 of r, and within 2^-59.1 of 2^f. */
const numbers64: PowerNumbers = {
  type: 'f64',
  integer: 'i64',
  split: split64('a'),
  reduce: reduceTwo64,
  scale: scale64,
  factor: '2.8853900817779268',
  factorLow: '4.0710547481862066e-17',
  third: '0.3333333333333333',
  thirdLow: '1.850371707708594e-17',
  bound: '1200.0',
  fifth: [
    0.2, 0.14285714285713444, 0.11111111111358199, 0.09090909053027915, 0.07692311090419883,
    0.06666480116381004, 0.05888627676099666, 0.051396018403266984, 0.06013480810215692,
  ],
  two: [
    1, 0.6931471805599453, 0.2402265069591007, 0.05550410866482338, 0.009618129107630217,
    0.001333355814603273, 0.00015403530388958736, 1.5252734168651707e-5, 1.3215491210020705e-6,
    1.0177930914297577e-7, 7.053021145912453e-9, 4.4736184122736746e-10, 2.859175876370723e-11,
  ],
};

/**
 * 2^(y·log2|x|). The logarithm is a sum of two floats in all steps: log2(m) = 2/ln(2)·atanh(r) with
 * r = (m - 1) / (m + 1), and atanh(r) = r + r³·(1/3 + r²·…). Special cases are those of IEEE
 * 754-2019 (9.2.1), C and CUDA: 1 to any power and any base to the power of 0 is 1, also with NaN,
 * and -1 to an infinite power is 1. ECMAScript gives NaN for these, except for the power of 0.
 */
const powOf = ({
  type,
  integer,
  split,
  reduce,
  scale,
  factor,
  factorLow,
  third,
  thirdLow,
  fifth,
  two,
  bound,
}: PowerNumbers): string => `(x, y, gpu) => {
  const a = Math.abs(x);${split}
  const above = f + 2.0;
  const aboveLow = f - (above - 2.0);
  const inverse = 1.0 / above;
  const r = f * inverse;
  const left = f - r * above;
  const leftAll = left - r * aboveLow;
  const rLow = leftAll * inverse;
  const square = r * r;
  const squareLost = r * r - square;
  const squareLow = (r + r) * rLow + squareLost;
  const bend = square * ${horner('square', fifth)};
  const share = bend + ${third};
  const shareLost = ${third} - share + bend;
  const shareLow = shareLost + ${thirdLow};
  const cube = square * r;
  const cubeLost = square * r - cube;
  const cubeHalf = square * rLow + cubeLost;
  const cubeLow = squareLow * r + cubeHalf;
  const term = cube * share;
  const termLost = cube * share - term;
  const termHalf = cube * shareLow + termLost;
  const termLow = cubeLow * share + termHalf;
  const arc = r + term;
  const arcLow = r - arc + term + (rLow + termLow);
  const main = arc * ${factor};
  const mainLost = arc * ${factor} - main;
  const mainHalf = arc * ${factorLow} + mainLost;
  const mainLow = arcLow * ${factor} + mainHalf;
  const whole = e + main;
  const wholeLow = e - whole + main + mainLow;
  const log = whole + wholeLow;
  const logLow = whole - log + wholeLow;
  const product = y * log;
  const productLost = y * log - product;
  const productLow = y * logLow + productLost;
  const c = Math.max(Math.min(product, ${bound}), -${bound});
  const rest = c === product ? productLow : 0.0;${reduce}
  const q = c - k + rest;
  const power = ${horner('q', two)};${scale}
  const finite = power * scaleA * scaleB;
  const grows = a > 1.0 ? y > 0.0 : y < 0.0;
  const edge = grows ? gpu.${type}(Infinity) : 0.0;
  const atEdge = a === 0.0 || a === Infinity || Math.abs(y) === Infinity;
  const magnitude = atEdge ? (a === 1.0 ? 1.0 : edge) : finite;
  const integral = Math.trunc(y) === y;
  const yHalf = y * 0.5;
  const odd = integral && Math.trunc(yHalf) !== yHalf;
  const negative = gpu.${integer}(gpu.bits(x)) < 0;
  const signedMagnitude = odd && negative ? -magnitude : magnitude;
  const nowhere = x !== x || y !== y || (x < 0.0 && !integral && a !== Infinity);
  return y === 0.0 || x === 1.0 ? 1.0 : nowhere ? NaN : signedMagnitude;
}`;

/**
 * The cube root through its reciprocal: an estimate from the bits (a third of the exponent), two
 * steps of fourth (third) order without a division, and a last one whose residue is exact.
 */
const cbrtOf = (
  guess: string,
  step: string,
  { least, up, down }: Readonly<Record<'least' | 'up' | 'down', string>>,
): string => `(x, gpu) => {
  const a = Math.abs(x);
  const tiny = a < ${least};
  const normal = tiny ? a * ${up} : a;
  const r0 = ${guess};
  const part0 = normal * r0;
  const miss0 = 1.0 - r0 * r0 * part0;
  const gain0 = miss0 * ${step.replaceAll('miss', 'miss0')};
  const r1 = r0 * gain0 + r0;
  const part1 = normal * r1;
  const miss1 = 1.0 - r1 * r1 * part1;
  const gain1 = miss1 * ${step.replaceAll('miss', 'miss1')};
  const r2 = r1 * gain1 + r1;
  const reciprocal = r2 * r2;
  const root = normal * reciprocal;
  const square = root * root;
  const squareLow = root * root - square;
  const left = normal - square * root;
  const leftAll = left - squareLow * root;
  const third = reciprocal * ${literal(1 / 3)};
  const better = leftAll * third + root;
  const result = tiny ? better * ${down} : better;
  return a > 0.0 && a < Infinity ? gpu.copysign(result, x) : x;
}`;
const cbrt32 = cbrtOf(
  'gpu.fromBits(0x54a20000 - gpu.mulhi(gpu.bits(normal), 0x55555556))',
  '(miss * 0.22222222 + 0.33333334)',
  { least: '1.1754944e-38', up: '16777216.0', down: '0.00390625' },
);
const cbrt64 = cbrtOf(
  'gpu.fromBits(gpu.u64(0x553ee800 - gpu.mulhi(gpu.u32(gpu.bits(normal) >>> 32), ' +
    '0x55555556)) << 32)',
  '((miss * 0.1728395061728395 + 0.2222222222222222) * miss + 0.3333333333333333)',
  { least: '2.2250738585072014e-308', up: '18014398509481984.0', down: '3.814697265625e-6' },
);

/**
 * Both are scaled by a power of two where squares would leave the range. The result is infinite
 * where one of them is, whatever the other is.
 */
const hypotOf = (type: 'f32' | 'f64', bound: number): string => `(x, y, gpu) => {
  const a = Math.abs(x);
  const b = Math.abs(y);
  const largest = Math.max(a, b);
  const smallest = Math.min(a, b);
  const one = gpu.${type}(1.0);
  const large = largest > ${literal(2 ** bound)};
  const small = largest < ${literal(2 ** -bound)};
  const scale = large ? ${literal(2 ** (-2 * bound))} : small ? ${literal(2 ** (2 * bound))} : one;
  const back = large ? ${literal(2 ** (2 * bound))} : small ? ${literal(2 ** (-2 * bound))} : one;
  const p = largest * scale;
  const q = smallest * scale;
  const square = q * q;
  const sum = p * p + square;
  const root = Math.sqrt(sum) * back;
  return a === Infinity || b === Infinity ? Infinity : root;
}`;

const rsqrt = `(x, gpu) => {
  return 1.0 / Math.sqrt(x);
}`;

export const powerTexts = {
  pow: { f32: powOf(numbers32), f64: powOf(numbers64) },
  cbrt: { f32: cbrt32, f64: cbrt64 },
  hypot: { f32: hypotOf('f32', 50), f64: hypotOf('f64', 400) },
  rsqrt: { f32: rsqrt, f64: rsqrt },
};
