// Test only: numbers to and from the bits of matrix elements, by the definitions of the formats.

const FLOATS: Readonly<Record<string, readonly [exponent: number, fraction: number]>> = {
  f16: [5, 10],
  bf16: [8, 7],
  e4m3: [4, 3],
  e5m2: [5, 2],
  e3m2: [3, 2],
  e2m3: [2, 3],
  e2m1: [2, 1],
};

/** The bits of a value that the type holds exactly. */
export function encode(type: string, value: number): bigint {
  if (type === 'f64') return new BigUint64Array(new Float64Array([value]).buffer)[0]!;
  if (type === 'f32' || type === 'tf32')
    return BigInt(new Uint32Array(new Float32Array([value]).buffer)[0]!);
  const format = FLOATS[type];
  if (!format) return BigInt.asUintN(Number(type.slice(1)), BigInt(value));
  const [exponents, fractions] = format;
  const bias = 2 ** (exponents - 1) - 1;
  const size = Math.abs(value);
  const exponent = size === 0 ? 0 : Math.max(Math.floor(Math.log2(size)) + bias, 0);
  const fraction =
    exponent === 0
      ? size * 2 ** (bias - 1 + fractions)
      : (size / 2 ** (exponent - bias) - 1) * 2 ** fractions;
  if (!Number.isInteger(fraction)) throw new RangeError(`${value} is not exact in ${type}`);
  const bits =
    (value < 0 ? 2 ** (exponents + fractions) : 0) + exponent * 2 ** fractions + fraction;
  // Four bits are in the middle of their byte.
  return BigInt(type === 'e2m1' ? bits << 2 : bits);
}

export function decode(type: string, bits: bigint): number {
  if (type === 'f64') return new Float64Array(new BigUint64Array([bits]).buffer)[0]!;
  if (type === 'f32') return new Float32Array(new Uint32Array([Number(bits)]).buffer)[0]!;
  if (type === 'f16') {
    const exponent = Number(bits >> 10n) & 31;
    const fraction = Number(bits & 1023n);
    const size = exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
    return bits >> 15n ? -size : size;
  }
  return Number(BigInt.asIntN(32, bits));
}
