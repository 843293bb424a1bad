/**
 * sinh, cosh, tanh, asinh, acosh, atanh: odd polynomials near 0, exponentials and logarithms
 * beyond.
 */
import { precisePower32, precisePower64, reduce32, reduce64 } from './exponential.js';
import { log1pFrom32, log1pFrom64 } from './logarithm.js';
import { horner } from './polynomial.js';

/** (sinh(x) - x) / x³ for |x| <= 1, in x². Within 2^-31.6 and 2^-63.0 of sinh(x). */
const hyperbolicSine32 = [0.16666667, 0.0083333105, 0.00019842896, 2.7822132e-6];
const hyperbolicSine64 = [
  0.16666666666666666, 0.008333333333333573, 0.00019841269841061176, 2.755731931007554e-6,
  2.505208941815248e-8, 1.6061338247423635e-10, 7.503340755907629e-13, 6.47294515889727e-15,
];
/** (tanh(x) - x) / x³ for |x| <= 0.55, in x². Within 2^-29.7 and 2^-60.6 of tanh(x). */
const hyperbolicTangent32 = [-0.33333316, 0.13332544, -0.053847548, 0.021050714, -0.0062428485];
const hyperbolicTangent64 = [
  -0.333333333333333, 0.1333333333332658, -0.05396825396373654, 0.02186948838515086,
  -0.008863232589612509, 0.003592091908041872, -0.001455542038405239, 0.000588441083751919,
  -0.00023337269947560325, 8.33034380288975e-5, -1.9486468593058215e-5,
];

/**
 * From `x`: e^|x| / 2 as `rise` and `riseLow`, infinite only where the result is, and e^-|x| / 2 as
 * `fall`.
 */
const halfPower = (
  bound: string,
  reduce: string,
  power: string,
  scale: (exponent: string) => string,
): string => `
  const a = Math.abs(x);
  const c = Math.min(a, ${bound});${reduce}${power}
  const halfOfN = n >> 1;
  const scaleA = ${scale('halfOfN')};
  const scaleB = ${scale('n - halfOfN - 1')};
  const rise = power * scaleA * scaleB;
  const riseLow = powerLow * scaleA * scaleB;
  const fall = 0.25 / rise;`;
const scale32 = (exponent: string): string => `gpu.fromBits((${exponent} + 127) << 23)`;
const scale64 = (exponent: string): string => `gpu.fromBits(gpu.i64(${exponent} + 1023) << 52)`;
const halfPower32 = halfPower('90.0', reduce32, precisePower32, scale32);
const halfPower64 = halfPower('711.0', reduce64, precisePower64, scale64);

const coshOf = (half: string): string => `(x, gpu) => {${half}
  const sum = rise + fall;
  const lost = rise - sum + fall;
  return rise === Infinity ? rise : sum + (lost + riseLow);
}`;
const sinhOf = (half: string, coefficients: readonly number[]): string => `(x, gpu) => {${half}
  const square = a * a;
  const series = ${horner('square', coefficients)};
  const small = square * a * series + a;
  const difference = rise - fall;
  const lost = rise - difference - fall;
  const large = rise === Infinity ? rise : difference + (lost + riseLow);
  const result = a < 1.0 ? small : large;
  return gpu.copysign(result, x);
}`;
/** 1 - 2 / (e^2|x| + 1), which is 1 from the bound on. */
const tanhOf = (
  bound: string,
  reduce: string,
  power: string,
  scale: (exponent: string) => string,
  coefficients: readonly number[],
): string => `(x, gpu) => {
  const a = Math.abs(x);
  const c = Math.min(a + a, ${bound});${reduce}${power}
  const scale = ${scale('n')};
  const rise = power * scale;
  const under = rise + 1.0;
  const lost = rise - under + 1.0;
  const underLow = powerLow * scale + lost;
  const quotient = 2.0 / under;
  const left = 2.0 - quotient * under;
  const leftAll = left - quotient * underLow;
  const ahead = 1.0 - quotient;
  const large = ahead - quotient * 0.5 * leftAll;
  const square = a * a;
  const series = ${horner('square', coefficients)};
  const small = square * a * series + a;
  const result = a < 0.55 ? small : large;
  return gpu.copysign(result, x);
}`;

/** log1p(a + a² / (1 + sqrt(1 + a²))); log(2a) where 1 + a² rounds to a². */
const asinhOf = (bound: string, log1pFrom: (under: string) => string): string => `(x, gpu) => {
  const a = Math.abs(x);
  const large = a > ${bound};
  const extra = large ? gpu.i32(1) : 0;
  const square = a * a;
  const part = large ? a * 0.0 : square / (Math.sqrt(square + 1.0) + 1.0);
  const t = a + part;
  const rest = a - t + part;${log1pFrom('near')}
  const result = a < 1e-18 || a === Infinity ? a : sum;
  return gpu.copysign(result, x);
}`;
/** log1p(u + sqrt(u² + 2u)) of u = x - 1; log(2x) where x² - 1 rounds to x². */
const acoshOf = (bound: string, log1pFrom: (under: string) => string): string => `(x, gpu) => {
  const large = x > ${bound};
  const extra = large ? gpu.i32(1) : 0;
  const u = x - 1.0;
  const twice = u + u;
  const square = u * u + twice;
  const squareLow = u * u + (twice - square);
  const root = large ? u * 0.0 : Math.sqrt(square);
  const t = root + u;
  const share = large ? u : root + root;
  const left = square - root * root;
  const lost = root - t + u;
  const rest = large ? u * 0.0 : lost * share + (left + squareLow);${log1pFrom('(near * share)')}
  return x === 1.0 ? u : x > 1.0 && x < Infinity ? sum : x < 1.0 ? NaN : x;
}`;
/** log1p(2a / (1 - a)) / 2; with the remainder of the quotient, and the rounding error of 1 - a. */
const atanhOf = (log1pFrom: (under: string) => string): string => `(x, gpu) => {
  const a = Math.abs(x);
  const extra = gpu.i32(0);
  const below = 1.0 - a;
  const belowLow = 1.0 - below - a;
  const inverse = 1.0 / below;
  const twice = a + a;
  const t = twice * inverse;
  const left = twice - t * below;
  const leftAll = left - t * belowLow;
  const rest = leftAll * inverse;${log1pFrom('near')}
  const result = a < 1e-18 ? a : a < 1.0 ? sum * 0.5 : a === 1.0 ? Infinity : NaN * a;
  return gpu.copysign(result, x);
}`;

export const hyperbolicTexts = {
  sinh: { f32: sinhOf(halfPower32, hyperbolicSine32), f64: sinhOf(halfPower64, hyperbolicSine64) },
  cosh: { f32: coshOf(halfPower32), f64: coshOf(halfPower64) },
  tanh: {
    f32: tanhOf('20.0', reduce32, precisePower32, scale32, hyperbolicTangent32),
    f64: tanhOf('40.0', reduce64, precisePower64, scale64, hyperbolicTangent64),
  },
  asinh: { f32: asinhOf('1e9', log1pFrom32), f64: asinhOf('1e18', log1pFrom64) },
  acosh: { f32: acoshOf('1e9', log1pFrom32), f64: acoshOf('1e18', log1pFrom64) },
  atanh: { f32: atanhOf(log1pFrom32), f64: atanhOf(log1pFrom64) },
};
