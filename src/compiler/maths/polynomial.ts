/** Text of a polynomial after Horner, lowest coefficient first: each step is one multiply-add. */
export function horner(variable: string, coefficients: readonly number[]): string {
  return coefficients
    .map(literal)
    .reduceRight((sum, coefficient) => `(${sum} * ${variable} + ${coefficient})`);
}

/**
 * A number as a literal that stands for a float of any width: with a fraction, so that it is none
 * of the integers.
 */
export function literal(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
