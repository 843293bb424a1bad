/** asin, acos, atan, atan2: polynomials on a part of the range, and identities for the rest. */
import { horner } from './polynomial.js';

/** (asin(v) - v) / v³ for |v| <= 1/2, in v². Within 2^-31.7 and 2^-55.9 of asin(v). */
const arcSine32 = [0.1666666, 0.07500522, 0.044513356, 0.031839464, 0.01431249, 0.037701566];
const arcSine64 = [
  0.16666666666665403, 0.0750000000033857, 0.04464285682696278, 0.030381959195947387,
  0.022371756582455538, 0.01735972760642125, 0.013885003605298341, 0.012170771397017189,
  0.00652107860760759, 0.01954752962419475, -0.016255068669550104, 0.03193377934742122,
];
/** (atan(q) - q) / q³ for |q| <= 1, in q². Within 2^-28.5 and 2^-57.6 of atan(q). */
const arcTangent32 = [
  -0.333333, 0.1999853, -0.14264041, 0.10951174, -0.084006354, 0.057911836, -0.03113452,
  0.010892455, -0.0017888934,
];
const arcTangent64 = [
  -0.3333333333333307, 0.1999999999995175, -0.14285714282587988, 0.1111111100733352,
  -0.0909090700755861, 0.07692279885168565, -0.06666404385776435, 0.058805295469574595,
  -0.0525352546541044, 0.047223434166662775, -0.04219229453509757, 0.0366428500923359,
  -0.029905222733109343, 0.021986393352022463, -0.013901895605854147, 0.007197375032815365,
  -0.00288533255260892, 0.0008314567934861446, -0.00015218782330982545, 1.3227562657957336e-5,
];

/** π and π/2 in two parts. */
interface Pi {
  readonly type: 'f32' | 'f64';
  readonly pi: string;
  readonly piLow: string;
  readonly half: string;
  readonly halfLow: string;
}
const pi32: Pi = {
  type: 'f32',
  pi: '3.1415927',
  piLow: '-8.742278e-8',
  half: '1.5707964',
  halfLow: '-4.371139e-8',
};
const pi64: Pi = {
  type: 'f64',
  pi: '3.141592653589793',
  piLow: '1.2246467991473532e-16',
  half: '1.5707963267948966',
  halfLow: '6.123233995736766e-17',
};

/**
 * Beyond 1/2 the argument is sqrt((1 - |x|) / 2), whose arc is half of acos(|x|): `v` and `bend`,
 * with asin(v) = v + bend. Beyond 1 it is NaN.
 */
const arc = (coefficients: readonly number[]): string => `
  const a = Math.abs(x);
  const large = a > 0.5;
  const square = large ? 0.5 - a * 0.5 : x * x;
  const root = Math.sqrt(square);
  const v = large ? root : a;
  const bend = v * square * ${horner('square', coefficients)};`;

const asinOf = (
  coefficients: readonly number[],
  { half, halfLow }: Pi,
): string => `(x, gpu) => {${arc(coefficients)}
  const twice = v + v;
  const near = ${half} - twice;
  const lost = ${half} - near - twice;
  const far = bend + bend - (lost + ${halfLow});
  const result = large ? near - far : v + bend;
  return gpu.copysign(result, x);
}`;
const acosOf = (
  coefficients: readonly number[],
  { type, pi, piLow, half, halfLow }: Pi,
): string => `(x, gpu) => {${arc(coefficients)}
  const negative = x < 0.0;
  const whole = v + bend;
  const doubled = whole + whole;
  const base = large ? gpu.${type}(${pi}) : ${half};
  const baseLow = large ? gpu.${type}(${piLow}) : ${halfLow};
  const part = large ? v + v : negative ? -v : v;
  const partBend = large ? bend + bend : negative ? -bend : bend;
  const near = base - part;
  const lost = base - near - part;
  const result = near - (partBend - (lost + baseLow));
  return large && !negative ? doubled : result;
}`;

/**
 * The quotient of the smaller by the larger, its arc, and the angle that the arc is added to: 0,
 * π/2 or π.
 */
const atan2Of = (
  coefficients: readonly number[],
  { pi, piLow, half, halfLow }: Pi,
  signedInteger: string,
): string => `(y, x, gpu) => {
  const a = Math.abs(y);
  const b = Math.abs(x);
  const largest = Math.max(a, b);
  const smallest = Math.min(a, b);
  const quotient = smallest === largest ? (largest === 0.0 ? largest : 1.0) : smallest / largest;
  const square = quotient * quotient;
  const bend = quotient * square * ${horner('square', coefficients)};
  const steep = a > b;
  const left = gpu.${signedInteger}(gpu.bits(x)) < 0;
  const backwards = steep !== left;
  const signedQuotient = backwards ? -quotient : quotient;
  const signedBend = backwards ? -bend : bend;
  const base = steep ? ${half} : left ? ${pi} : quotient * 0.0;
  const baseLow = steep ? ${halfLow} : left ? ${piLow} : quotient * 0.0;
  const near = base + signedQuotient;
  const lost = base - near + signedQuotient;
  const result = near + (signedBend + (lost + baseLow));
  return gpu.copysign(result, y);
}`;
const atanOf = (coefficients: readonly number[], { half, halfLow }: Pi): string => `(x, gpu) => {
  const a = Math.abs(x);
  const steep = a > 1.0;
  const quotient = steep ? 1.0 / a : a;
  const square = quotient * quotient;
  const bend = quotient * square * ${horner('square', coefficients)};
  const near = ${half} - quotient;
  const lost = ${half} - near - quotient;
  const turned = near - (bend - (lost + ${halfLow}));
  const result = steep ? turned : quotient + bend;
  return gpu.copysign(result, x);
}`;

export const inverseTrigonometricTexts = {
  asin: { f32: asinOf(arcSine32, pi32), f64: asinOf(arcSine64, pi64) },
  acos: { f32: acosOf(arcSine32, pi32), f64: acosOf(arcSine64, pi64) },
  atan: { f32: atanOf(arcTangent32, pi32), f64: atanOf(arcTangent64, pi64) },
  atan2: { f32: atan2Of(arcTangent32, pi32, 'i32'), f64: atan2Of(arcTangent64, pi64, 'i64') },
};
