/** Half precision, as far as the chain needs it for the expected result. */

/** `value`, rounded to the nearest f16, ties to even; normal numbers only. */
export function roundToF16(value: number): number {
  const unit = 2 ** (Math.floor(Math.log2(value)) - 10);
  const units = value / unit;
  const below = Math.floor(units);
  const up = units - below > 0.5 || (units - below === 0.5 && below % 2 === 1);
  return (below + (up ? 1 : 0)) * unit;
}

/** The raw word of a normal f16. */
export function bitsOfF16(value: number): number {
  const exponent = Math.floor(Math.log2(value));
  return ((exponent + 15) << 10) | ((value / 2 ** exponent - 1) * 1024);
}
