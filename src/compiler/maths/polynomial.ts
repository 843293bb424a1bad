/**
 * Text of a polynomial by Horner's method, lowest coefficient first: each step is one multiply-add.
 */
export function horner(variable: string, coefficients: readonly number[]): string {
  return coefficients
    .map(literal)
    .reduceRight((sum, coefficient) => `(${sum} * ${variable} + ${coefficient})`);
}

/** A number as a literal for a float of any width: it has a fraction, so that it is no integer. */
export function literal(value: number): string {
  const text = String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
