// Test only: exact arithmetic. Reals are whole numbers, x for x / 2^1300: functions of them have
// more than 200 right binary digits of any f64 result.

const F = 1300n;
const ONE = 1n << F;

const multiply = (a: bigint, b: bigint): bigint => (a * b) >> F;
const divide = (a: bigint, b: bigint): bigint => (a << F) / b;
const magnitude = (a: bigint): bigint => (a < 0n ? -a : a);
const lengthOf = (a: bigint): number => {
  const text = a.toString(16);
  return text.length * 4 - Math.clz32(parseInt(text[0]!, 16)) + 28;
};

/** The real of a finite f64, exactly. */
export function realOf(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const field = (bits >> 52n) & 2047n;
  const mantissa = (bits & ((1n << 52n) - 1n)) | (field ? 1n << 52n : 0n);
  const real = mantissa << (F - 1075n + (field || 1n));
  return bits >> 63n ? -real : real;
}

/** value = whole · 2^exponent, exactly. */
function partsOf(value: number): readonly [bigint, number] {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const field = Number((bits >> 52n) & 2047n);
  const mantissa = (bits & ((1n << 52n) - 1n)) | (field ? 1n << 52n : 0n);
  return [bits >> 63n ? -mantissa : mantissa, Math.max(field, 1) - 1075];
}

/** a · b + c of finite numbers, in whole numbers and rounded once, ties to even. */
export function fusedExactly(a: number, b: number, c: number, type: 'f32' | 'f64'): number {
  const [digits, least, most] = type === 'f64' ? [53, -1074, 1024] : [24, -149, 128];
  const [[x, xe], [y, ye], [z, ze]] = [partsOf(a), partsOf(b), partsOf(c)];
  const exponent = Math.min(xe + ye, ze);
  const sum = ((x * y) << BigInt(xe + ye - exponent)) + (z << BigInt(ze - exponent));
  if (sum === 0n) return a * b + c;
  const size = magnitude(sum);
  const last = Math.max(exponent + lengthOf(size) - digits, least);
  const shift = BigInt(last - exponent);
  let kept = shift > 0n ? size >> shift : size << -shift;
  if (shift > 0n) {
    const lost = size - (kept << shift);
    const half = 1n << (shift - 1n);
    if (lost > half || (lost === half && kept & 1n)) kept++;
  }
  const result =
    kept >= 1n << BigInt(Math.max(most - last, 0)) ? Infinity : Number(kept) * 2 ** last;
  return sum < 0n ? -result : result;
}

/**
 * The distance of an f64 (f32) from the real, in units of the last place of that type at the real.
 * A result beyond the range may be infinite.
 */
export function unitsBetween(value: number, real: bigint, type: 'f32' | 'f64'): number {
  const [digits, least, most] = type === 'f64' ? [52, -1022, 1024] : [23, -126, 128];
  if (Number.isNaN(value)) return Infinity;
  const exponent = Math.max(real === 0n ? least : lengthOf(magnitude(real)) - 1 - Number(F), least);
  const unit = 1n << (F + BigInt(Math.min(exponent, most - 1) - digits));
  const limit = 1n << (F + BigInt(most));
  const capped = real > limit ? limit : real < -limit ? -limit : real;
  const found = Number.isFinite(value) ? realOf(value) : value > 0 ? limit : -limit;
  return Number((magnitude(found - capped) * 1000n) / unit) / 1000;
}

function squareRoot(a: bigint): bigint {
  if (a <= 0n) return 0n;
  const wanted = a << F;
  let root = 1n << BigInt((lengthOf(wanted) + 1) >> 1);
  for (;;) {
    const next = (root + wanted / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}

/** x - x³/3 + x⁵/5 … with `sign` -1, all plus with 1. For |x| well below 1. */
function oddSeries(x: bigint, sign: -1n | 1n): bigint {
  const square = multiply(x, x) * sign;
  let sum = 0n;
  let power = x;
  for (let n = 1n; power !== 0n && power !== -1n; n += 2n) {
    sum += power / n;
    power = multiply(power, square);
  }
  return sum;
}

const PI = (oddSeries(ONE / 5n, -1n) << 4n) - (oddSeries(ONE / 239n, -1n) << 2n);
const LN2 = oddSeries(ONE / 3n, 1n) << 1n;
const LN10 = LN2 * 3n + (oddSeries(ONE / 9n, 1n) << 1n);

const roundedQuotient = (a: bigint, b: bigint): bigint => {
  const shifted = 2n * a + b;
  const q = shifted / (2n * b);
  return shifted < 0n && shifted % (2n * b) !== 0n ? q - 1n : q;
};

function exp(x: bigint): bigint {
  const n = roundedQuotient(x, LN2);
  // The size does not matter beyond every f64.
  if (n > 1100n) return ONE << 1100n;
  if (n < -1400n) return 0n;
  const r = x - n * LN2;
  let sum = ONE;
  let term = ONE;
  for (let k = 1n; term !== 0n && term !== -1n; k++) {
    term = multiply(term, r) / k;
    sum += term;
  }
  return n >= 0n ? sum << n : sum >> -n;
}

function log(x: bigint): bigint {
  const shift = BigInt(lengthOf(x)) - F;
  const m = shift > 0n ? x >> shift : x << -shift;
  return (oddSeries(divide(m - ONE, m + ONE), 1n) << 1n) + shift * LN2;
}

/** Sine and cosine. */
function circle(x: bigint): readonly [bigint, bigint] {
  const k = roundedQuotient(x, PI / 2n);
  // k may have 1024 bits: x - k·π/2 needs that many more bits of π than the fraction has.
  const r = x - (k * PI) / 2n;
  const square = multiply(r, r);
  let sine = 0n;
  let cosine = 0n;
  for (let term = ONE, n = 0n; term !== 0n && term !== -1n; n += 2n) {
    cosine += term;
    const odd = multiply(term, r) / (n + 1n);
    sine += odd;
    term = -(multiply(term, square) / ((n + 1n) * (n + 2n)));
  }
  const quadrant = ((k % 4n) + 4n) % 4n;
  return (
    [
      [sine, cosine],
      [cosine, -sine],
      [-sine, -cosine],
      [-cosine, sine],
    ] as const
  )[Number(quadrant)]!;
}

function arcTangent(x: bigint): bigint {
  if (magnitude(x) > ONE) return (x > 0n ? PI / 2n : -PI / 2n) - arcTangent(divide(ONE, x));
  let part = x;
  for (let halvings = 0; halvings < 3; halvings++)
    part = divide(part, ONE + squareRoot(ONE + multiply(part, part)));
  return oddSeries(part, -1n) << 3n;
}

const arcSine = (x: bigint): bigint =>
  magnitude(x) === ONE
    ? x > 0n
      ? PI / 2n
      : -PI / 2n
    : arcTangent(divide(x, squareRoot(ONE - multiply(x, x))));

function errorFunction(x: bigint): bigint {
  // 1 - erf(7) is below 2^-74.
  if (magnitude(x) > 7n * ONE) return x > 0n ? ONE : -ONE;
  const square = multiply(x, x);
  let sum = 0n;
  for (let power = x, n = 0n; power !== 0n && power !== -1n; n++) {
    sum += power / (2n * n + 1n);
    power = -(multiply(power, square) / (n + 1n));
  }
  return divide(2n * sum, squareRoot(PI));
}

const cubeRoot = (x: bigint): bigint =>
  x === 0n ? 0n : x < 0n ? -exp(log(-x) / 3n) : exp(log(x) / 3n);

/** Functions of reals whose result is neither infinite nor a zero with a sign. */
export const realFunctions: Readonly<Record<string, (x: bigint, y: bigint) => bigint>> = {
  exp,
  log,
  sin: (x) => circle(x)[0],
  cos: (x) => circle(x)[1],
  tan: (x) => {
    const [sine, cosine] = circle(x);
    return divide(sine, cosine);
  },
  expm1: (x) => exp(x) - ONE,
  log2: (x) => divide(log(x), LN2),
  log10: (x) => divide(log(x), LN10),
  log1p: (x) => log(ONE + x),
  asin: arcSine,
  acos: (x) => PI / 2n - arcSine(x),
  atan: arcTangent,
  atan2: (y, x) =>
    x === 0n
      ? y > 0n
        ? PI / 2n
        : -PI / 2n
      : arcTangent(divide(y, x)) + (x > 0n ? 0n : y >= 0n ? PI : -PI),
  sinh: (x) => (exp(x) - exp(-x)) / 2n,
  cosh: (x) => (exp(x) + exp(-x)) / 2n,
  tanh: (x) =>
    magnitude(x) > 400n * ONE ? (x > 0n ? ONE : -ONE) : divide(exp(x) - exp(-x), exp(x) + exp(-x)),
  asinh: (x) => {
    const a = magnitude(x);
    const result = log(a + squareRoot(multiply(a, a) + ONE));
    return x < 0n ? -result : result;
  },
  acosh: (x) => log(x + squareRoot(multiply(x, x) - ONE)),
  atanh: (x) => log(divide(ONE + x, ONE - x)) / 2n,
  pow: (x, y) => (y === 0n ? ONE : exp(multiply(y, log(x)))),
  cbrt: cubeRoot,
  hypot: (x, y) => squareRoot(multiply(x << F, x << F) + multiply(y << F, y << F)) >> F,
  rsqrt: (x) => divide(ONE, squareRoot(x)),
  erf: errorFunction,
};
