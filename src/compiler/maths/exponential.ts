/**
 * exp and expm1: x = n·ln(2) + r with |r| at most half of ln(2), a polynomial for e^r, then 2^n by
 * adding to exponents. The coefficients are minimax for the relative error, each rounded to the
 * type before the next are fitted.
 */
import { horner } from './polynomial.js';

/** (e^r - 1 - r) / r² for |r| <= ln(2) / 2. f32: within 2^-28.2; f64: within 2^-63.5. */
const squared32 = [0.49999994, 0.16666517, 0.041668102, 0.008369169, 0.0013838105];
const squared64 = [
  0.5, 0.16666666666666688, 0.041666666666666824, 0.0083333333333139, 0.0013888888888778283,
  0.0001984126990333546, 2.4801587557371638e-5, 2.7557228726797047e-6, 2.755707055668024e-7,
  2.5113917341522115e-8, 2.0976533285439787e-9,
];
/** The same for |r| <= 1/2, relative to e^r - 1. f32: within 2^-30.5; f64: within 2^-60.3. */
const wide32 = [
  0.5, 0.16666667, 0.041666582, 0.0083331745, 0.001389711, 0.00019965917, 2.3001718e-5,
];
const wide64 = [
  0.5, 0.16666666666666669, 0.041666666666667164, 0.008333333333332128, 0.0013888888888659813,
  0.0001984126984363227, 2.480158766882527e-5, 2.7557317306300958e-6, 2.755705241831638e-7,
  2.5052754443253745e-8, 2.096681576186622e-9, 1.6004362796757633e-10,
];

/**
 * From `c`: `n` (i32) and `r`. Adding 1.5·2^23 (1.5·2^52) rounds to an integer, which then lies in
 * the low bits. ln(2) is in two parts; the products are exact within multiply-adds.
 */
export const reduce32 = `
  const shifted = c * 1.442695 + 12582912.0;
  const n = gpu.i32(gpu.bits(shifted)) - 0x4b400000;
  const k = shifted - 12582912.0;
  const near = k * -0.6931472 + c;
  const r = k * 1.9046542e-9 + near;`;
export const reduce64 = `
  const shifted = c * 1.4426950408889634 + 6755399441055744.0;
  const n = gpu.i32(gpu.bits(shifted));
  const k = shifted - 6755399441055744.0;
  const near = k * -0.6931471805599453 + c;
  const r = k * -2.3190468138462996e-17 + near;`;
/** From `c`, a binary exponent: `n` and `k`, the nearest integer. */
export const reduceTwo32 = `
  const shifted = c + 12582912.0;
  const n = gpu.i32(gpu.bits(shifted)) - 0x4b400000;
  const k = shifted - 12582912.0;`;
export const reduceTwo64 = `
  const shifted = c + 6755399441055744.0;
  const n = gpu.i32(gpu.bits(shifted));
  const k = shifted - 6755399441055744.0;`;

/** From `r`: `power`, e^r. */
export const power32 = `
  const power = ${horner('r', [1, 1, ...squared32])};`;
export const power64 = `
  const power = ${horner('r', [1, 1, ...squared64])};`;

/** From `r`: `power` and `powerLow`, e^r in two parts. */
const precise = (squared: readonly number[]): string => `
  const slope = ${horner('r', [1, ...squared])};
  const power = slope * r + 1.0;
  const powerLow = slope * r + (1.0 - power);`;
export const precisePower32 = precise(squared32);
export const precisePower64 = precise(squared64);

/**
 * 2^n as a float, in two factors: the first product is exact, so that a result below the normal
 * range is rounded once.
 */
export const scale32 = `
  const half = n >> 1;
  const scaleA = gpu.fromBits((half + 127) << 23);
  const scaleB = gpu.fromBits((n - half + 127) << 23);`;
export const scale64 = `
  const half = n >> 1;
  const scaleA = gpu.fromBits(gpu.i64(half + 1023) << 52);
  const scaleB = gpu.fromBits(gpu.i64(n - half + 1023) << 52);`;

/**
 * The same with a second factor that is one of two constants, so that only the first is computed
 * where the compiler sees the sign: of x less the largest x, as softmax has it, or of -x². The
 * shift does not change n: the low nine bits of 0x4b400000 are zero.
 */
const signedScale32 = `
  const positive = c > 0.0;
  const scaleA = gpu.fromBits((gpu.i32(gpu.bits(shifted)) << 23) +
    (positive ? gpu.i32(${(127 - 32) << 23}) : ${(127 + 32) << 23}));
  const scaleB = positive ? 4294967296.0 : gpu.f32(2.3283064365386963e-10);`;

/** Beyond the bounds the result is 0 or infinite in any case. NaN passes through min and max. */
const exp32 = `(x, gpu) => {
  const c = Math.max(Math.min(x, 89.0), -104.0);${reduce32}${power32}${signedScale32}
  return power * scaleA * scaleB;
}`;
const exp64 = `(x, gpu) => {
  const c = Math.max(Math.min(x, 710.0), -746.0);${reduce64}${power64}${scale64}
  return power * scaleA * scaleB;
}`;

/**
 * e^x - 1 = 2^n·(e^r - 1) + (2^n - 1). Where |x| < 1/2, n is 0: no bits are lost there. Half of 2^n
 * is used, so that it does not overflow before the result does.
 */
const expm1Of = (
  low: string,
  high: string,
  reduce: string,
  wide: readonly number[],
  scale: string,
): string => `(x, gpu) => {
  const c = Math.max(Math.min(x, ${high}), ${low});${reduce}
  const small = Math.abs(c) < 0.5;
  const q = small ? c : r;
  const square = q * q;
  const tail = ${horner('q', wide)};
  const linear = square * tail + q;
  const scale = ${scale};
  const large = n > 20;
  const whole = scale - 0.5;
  const first = linear * scale + (large ? -0.5 : whole);
  const sum = first + (large ? scale : 0.0);
  return small ? (Math.abs(x) < 1e-30 ? x : linear) : sum + sum;
}`;
const expm132 = expm1Of('-20.0', '89.0', reduce32, wide32, 'gpu.fromBits((n + 126) << 23)');
const expm164 = expm1Of(
  '-40.0',
  '710.0',
  reduce64,
  wide64,
  'gpu.fromBits(gpu.i64(n + 1022) << 52)',
);

export const exponentialTexts = {
  exp: { f32: exp32, f64: exp64 },
  expm1: { f32: expm132, f64: expm164 },
};
