/**
 * erf: x + x·P(x²) up to 1; beyond, 1 - e^-Q(|x|), where Q is fitted to -log(erfc) with weights by
 * the effect of its error on the result.
 */
import { power32, power64, reduce32, reduce64 } from './exponential.js';
import { horner } from './polynomial.js';

/** erf(x) / x - 1 for |x| <= 1, in x². Within 2^-29.4 and 2^-56.3 of erf(x). */
const near32 = [
  0.12837917, -0.37612626, 0.11283579, -0.026853347, 0.005187162, -0.0007997853, 7.806903e-5,
];
const near64 = [
  0.1283791670955126, -0.376126389031841, 0.11283791670971098, -0.026866170648030912,
  0.0052239776526875085, -0.0008548328535340103, 0.00012055386170535488, -1.4926880771440298e-5,
  1.6481045533005585e-6, -1.6556965622009703e-7, 1.6011981799200016e-8, -1.645939948769299e-9,
  1.4333684826430887e-10,
];
/** -log(erfc(x)) for 1 <= x <= 3.93 and 5.95. Within 2^-29.8 and 2^-61.5 of erf(x). */
const far32 = [
  0.00033959912, 1.1270967, 0.63813305, 0.10311642, -0.021842396, 0.0029486585, -0.00018647163,
];
const far64 = [
  2.7308639190583248e-8, 1.1283789207277695, 0.6366207104263354, 0.10277088579872921,
  -0.01912818875516575, -0.00020208562360776697, 0.0016747092124656793, -0.0005521252898316955,
  -2.218096334324998e-5, 0.00011088578484194787, -6.480973367123253e-5, 2.4298896363615474e-5,
  -6.789879269851406e-6, 1.4711067691580876e-6, -2.484075223658904e-7, 3.2234114853501896e-8,
  -3.11245156346985e-9, 2.108483814159828e-10, -8.94388441440942e-12, 1.7871672183655104e-13,
];

/** From the bound on the result is 1. */
const erfOf = (
  bound: string,
  near: readonly number[],
  far: readonly number[],
  reduce: string,
  power: string,
  scale: string,
): string => `(x, gpu) => {
  const a = Math.abs(x);
  const square = a * a;
  const small = ${horner('square', near)} * a + a;
  const bounded = Math.min(a, ${bound});
  const exponent = ${horner('bounded', far)};
  const c = -exponent;${reduce}${power}
  const large = 1.0 - power * ${scale};
  const result = a < 1.0 ? small : large;
  return gpu.copysign(result, x);
}`;

export const errorFunctionTexts = {
  erf: {
    f32: erfOf('3.93', near32, far32, reduce32, power32, 'gpu.fromBits((n + 127) << 23)'),
    f64: erfOf('5.95', near64, far64, reduce64, power64, 'gpu.fromBits(gpu.i64(n + 1023) << 52)'),
  },
};
