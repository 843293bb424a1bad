/** Functions of the math library that JavaScript does not have, to about 1e-14. */

export function erf(x: number): number {
  if (x < 0) return -erf(-x);
  if (x > 2.5) return 1 - erfc(x);
  let [sum, term] = [x, x];
  for (let n = 1; n < 100; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

export function erfc(x: number): number {
  if (x <= 2.5) return 1 - erf(x);
  // The continued fraction of Laplace, from its end.
  let fraction = x;
  for (let n = 80; n > 0; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / fraction / Math.sqrt(Math.PI);
}

/** Lanczos' approximation for positive numbers. */
export function gamma(x: number): number {
  if (x < 0.5) return Math.PI / (Math.sin(Math.PI * x) * gamma(1 - x));
  const c = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
    1.5056327351493116e-7,
  ];
  const z = x - 1;
  const sum = c.reduce((total, value, i) => (i === 0 ? value : total + value / (z + i)), 0);
  return Math.sqrt(2 * Math.PI) * (z + 7.5) ** (z + 0.5) * Math.exp(-(z + 7.5)) * sum;
}

export function besselJ0(x: number): number {
  let [sum, term] = [1, 1];
  for (let n = 1; n < 40; n++) {
    term *= (-x * x) / (4 * n * n);
    sum += term;
  }
  return sum;
}

/** The normal distribution up to x. */
export function normalCdf(x: number): number {
  return 0.5 * (1 + erf(x / Math.SQRT2));
}

/** rint: to the nearest whole number, ties to even. */
export function nearestEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest === 0 || !Number.isFinite(x)) return x;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}
