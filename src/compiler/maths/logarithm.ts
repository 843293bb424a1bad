/**
 * log, log2, log10, log1p: x = 2^e·m with m within sqrt(1/2) to sqrt(2) or nearly so, then log(m)
 * from f = m - 1, which is exact, by a polynomial. Results that are no multiple of the logarithm
 * are e times a constant in two parts, and the rest.
 */
import { horner } from './polynomial.js';

/** (log(1 + f) - f + f²/2) / f³ for f within -0.2929 to 0.4143; within 2^-29.8. */
const cubic32 = [
  0.33333313, -0.25000012, 0.20002055, -0.16667801, 0.14220777, -0.12410245, 0.118832506,
  -0.11643014, 0.06717295,
];
/** The same for f within -1/4 to 1/2; within 2^-29.9. */
const wide32 = [
  0.3333334, -0.25000167, 0.19999565, -0.16655168, 0.14277181, -0.12731247, 0.11695552, -0.09085913,
  0.03738323,
];
/** (log(1 + f) / s - 2) / s² of s = f / (2 + f), in s², for the same f; within 2^-58.5. */
const ratio64 = [
  0.6666666666666734, 0.3999999999941655, 0.28571428742060195, 0.22222198600824183,
  0.1818356311315025, 0.1531407714953796, 0.1479571987238509,
];
/** The same for f within -1/4 to 1/2; within 2^-61.7. */
const wideRatio64 = [
  0.666666666666666, 0.4000000000005664, 0.28571428555841316, 0.22222224294728987,
  0.1818166598978656, 0.1539110801415643, 0.13173667744629902, 0.13842565402366117,
];

/**
 * From a variable above 0: `e` (a float) and `f`. Numbers below the normal range are multiplied by
 * a power of two first.
 */
export const split32 = (x: string): string => `
  const tiny = ${x} < 1.1754944e-38;
  const normal = tiny ? ${x} * 8388608.0 : ${x};
  const word = gpu.i32(gpu.bits(normal));
  const high = (word - 0x3f3504f3) & -8388608;
  const f = gpu.fromBits(word - high) - 1.0;
  const e = gpu.f32((high >> 23) - (tiny ? gpu.i32(23) : 0));`;
export const split64 = (x: string): string => `
  const tiny = ${x} < 2.2250738585072014e-308;
  const normal = tiny ? ${x} * 18014398509481984.0 : ${x};
  const word = gpu.i32(gpu.bits(normal) >>> 32);
  const high = (word - 0x3fe6a09e) & -1048576;
  const f = gpu.fromBits(gpu.i64(gpu.bits(normal)) - (gpu.i64(high) << 32)) - 1.0;
  const e = gpu.f64((high >> 20) - (tiny ? gpu.i32(54) : 0));`;

/** From `f`: `curve`, with log(1 + f) = f + curve. */
const curveOf = (cubic: readonly number[]): string => `
  const fSquare = f * f;
  const cubic = ${horner('f', cubic)};
  const curve = fSquare * (cubic * f - 0.5);`;
const curve32 = curveOf(cubic32);
const curve64Of = (ratio: readonly number[]): string => `
  const ratio = f / (f + 2.0);
  const ratioSquare = ratio * ratio;
  const halfSquare = f * f * 0.5;
  const series = ${horner('ratioSquare', ratio)};
  const curve = ratio * (ratioSquare * series + halfSquare) - halfSquare;`;
const curve64 = curve64Of(ratio64);

/** JavaScript's results where there is no logarithm. */
const special = (result: string): string => `
  return x > 0.0 && x < Infinity ? ${result} : x === 0.0 ? -Infinity : x < 0.0 ? NaN : x;
}`;

const log32 = `(x, gpu) => {${split32('x')}${curve32}
  const rest = f + curve;
  const sum = e * 0.6931472 + rest;${special('sum')}`;
const log64 = `(x, gpu) => {${split64('x')}${curve64}
  const low = e * 2.3190468138462996e-17 + curve;
  const rest = f + low;
  const sum = e * 0.6931471805599453 + rest;${special('sum')}`;

/**
 * Constants of a base: `factor` is 1 / log(base), `unit` is log(2) / log(base), each in two parts.
 */
const based = (
  split: string,
  curve: string,
  [factor, factorLow]: readonly string[],
  [unit, unitLow]: readonly string[],
): string => `(x, gpu) => {${split}${curve}
  const main = f * ${factor};
  const lost = f * ${factor} - main;
  const correction = f * ${factorLow} + lost;
  const low = e * ${unitLow} + correction;
  const rest = curve * ${factor} + low;
  const whole = e * ${unit};
  const sum = whole + main;
  const missing = whole - sum + main;
  const result = sum + (missing + rest);${special('result')}`;
const log232 = based(split32('x'), curve32, ['1.442695', '1.925963e-8'], ['1.0', '0.0']);
const log264 = based(
  split64('x'),
  curve64,
  ['1.4426950408889634', '2.0355273740931033e-17'],
  ['1.0', '0.0'],
);
const log1032 = based(
  split32('x'),
  curve32,
  ['0.4342945', '-1.010305e-8'],
  ['0.30102539', '4.6050390e-6'],
);
const log1064 = based(
  split64('x'),
  curve64,
  ['0.4342944819032518', '1.098319650216765e-17'],
  ['0.3010299956640665', '-8.532344317057107e-14'],
);

/**
 * log(1 + x + rest), where `rest` is small beside `x`. 1 + x is rounded to find e only: f = x·2^-e
 * + (2^-e - 1) is rounded once. A quarter of x and four times the power keep the power within the
 * normal range.
 */
const log1pBody32 = (x: string, extra: string): string => `
  const near = ${x} + 1.0;
  const high = (gpu.i32(gpu.bits(near)) - 0x3f400000) & -8388608;
  const power = gpu.fromBits(0x40800000 - high);
  const base = power * 0.25 - 1.0;
  const f = ${x} * 0.25 * power + base;
  const e = gpu.f32(${extra}(high >> 23));${curveOf(wide32)}`;
const log1pBody64 = (x: string, extra: string): string => `
  const near = ${x} + 1.0;
  const high = (gpu.i32(gpu.bits(near) >>> 32) - 0x3fe80000) & -1048576;
  const power = gpu.fromBits((gpu.i64(0x40100000 - high)) << 32);
  const base = power * 0.25 - 1.0;
  const f = ${x} * 0.25 * power + base;
  const e = gpu.f64(${extra}(high >> 20));${curve64Of(wideRatio64)}`;
const log1pSum32 = `
  const sum = e * 0.6931472 + (f + curve);`;
const log1pSum64 = `
  const low = e * 2.3190468138462996e-17 + curve;
  const sum = e * 0.6931471805599453 + (f + low);`;
/**
 * From variables `t`, `rest` and `extra` (i32): `sum`, log(1 + t + rest) + extra·log(2), where
 * `under` is `near`, the variable of 1 + t; with more in `under`, `rest` is divided by that too.
 */
export const log1pFrom32 = (under: string): string => `${log1pBody32('t', 'extra + ')}
  const bent = curve + rest / ${under};
  const sum = e * 0.6931472 + (f + bent);`;
export const log1pFrom64 = (under: string): string => `${log1pBody64('t', 'extra + ')}
  const bent = curve + rest / ${under};
  const low = e * 2.3190468138462996e-17 + bent;
  const sum = e * 0.6931471805599453 + (f + low);`;
const log1pEnd = (tiny: string): string => `
  return Math.abs(x) < ${tiny} ? x : x > -1.0 && x < Infinity ? sum :
    x === -1.0 ? -Infinity : x < -1.0 ? NaN : x;
}`;
const log1p32 = `(x, gpu) => {${log1pBody32('x', '')}${log1pSum32}${log1pEnd('1e-30')}`;
const log1p64 = `(x, gpu) => {${log1pBody64('x', '')}${log1pSum64}${log1pEnd('1e-290')}`;

export const logarithmTexts = {
  log: { f32: log32, f64: log64 },
  log2: { f32: log232, f64: log264 },
  log10: { f32: log1032, f64: log1064 },
  log1p: { f32: log1p32, f64: log1p64 },
};
