/**
 * Operands of a case: all values of 16 bits, otherwise edges and their neighbours, ties, random
 * bits of all exponents, and operands with tiny results.
 */
import type { Case } from './cases.js';
import { FORMATS, INTEGERS } from './reference.js';
import { Random } from '../fuzz/random.js';

const mask = (bits: number): bigint => (1n << BigInt(bits)) - 1n;
const widthOf = (type: string): number => (FORMATS[type] ?? INTEGERS[type])!.bits;

function randomBits(random: Random, bits: number): bigint {
  return ((BigInt(random.bits()) << 32n) | BigInt(random.bits())) & mask(bits);
}

/** Values at which a representation or a rounding changes. */
export function edges(type: string): bigint[] {
  const format = FORMATS[type];
  const found = new Set<bigint>();
  const bits = widthOf(type);
  const near = (value: bigint): void => {
    for (const step of [-2n, -1n, 0n, 1n, 2n]) found.add((value + step) & mask(bits));
  };
  if (!format) {
    for (let bit = 0; bit <= bits; bit++) near(1n << BigInt(bit));
    for (const middle of [10, 23, 24, 52, 53])
      for (let top = middle; top < bits; top++)
        near((1n << BigInt(top)) + (1n << BigInt(top - middle)));
    return [...found];
  }
  const { mantissa, bias } = format;
  const exponents = [
    0,
    1,
    2,
    bias - mantissa - 2,
    bias - 25,
    bias - 24,
    bias - 15,
    bias - 14,
    bias - 2,
    bias - 1,
    bias,
    bias + 1,
    bias + 7,
    bias + 8,
    bias + 15,
    bias + 16,
    bias + 23,
    bias + 24,
    bias + 30,
    bias + 31,
    bias + 32,
    bias + 52,
    bias + 62,
    bias + 63,
    bias + 64,
    bias + 127,
    bias + 128,
    bias - 126,
    bias - 127,
    bias - 149,
    bias - 150,
    2 * bias - 1,
    2 * bias,
    2 * bias + 1,
  ];
  for (const exponent of exponents) {
    if (exponent < 0 || exponent > 2 * bias + 1) continue;
    for (const fraction of [0n, 1n << BigInt(mantissa - 1), 1n, mask(mantissa)])
      near((BigInt(exponent) << BigInt(mantissa)) | fraction);
  }
  for (const value of [...found]) found.add(value ^ (1n << BigInt(bits - 1)));
  return [...found];
}

/**
 * Floats of all magnitudes, with long runs of zeros or ones at the end of many, where roundings are
 * decided.
 */
function randomFloat(random: Random, type: string): bigint {
  const { mantissa, bias, bits } = FORMATS[type]!;
  if (random.chance(4)) return randomBits(random, bits);
  const spread = random.chance(2) ? 8 : bias;
  const exponent = Math.max(0, Math.min(2 * bias + 1, bias + random.below(2 * spread) - spread));
  let fraction = randomBits(random, mantissa);
  if (random.chance(2)) {
    const zeros = BigInt(random.below(mantissa));
    fraction = (fraction >> zeros) << zeros;
    if (random.chance(3)) fraction ^= mask(Number(zeros));
  }
  return (
    (BigInt(random.below(2)) << BigInt(bits - 1)) |
    (BigInt(exponent) << BigInt(mantissa)) |
    fraction
  );
}

const randomValue = (random: Random, type: string): bigint =>
  FORMATS[type]
    ? randomFloat(random, type)
    : randomBits(random, widthOf(type)) >> BigInt(random.below(widthOf(type)));

/** Operands whose results are near the least normal number, where .ftz depends on the rounding. */
function tiny({ instruction, operands: [type] }: Case, random: Random): bigint[] {
  const format = FORMATS[type!];
  if (!format) return [];
  const { bits, mantissa, bias } = format;
  const top = 1n << BigInt(mantissa);
  const sign = (): bigint => BigInt(random.below(2)) << BigInt(bits - 1);
  const float = (significand: bigint, exponent: number): bigint =>
    sign() | ((BigInt(exponent) << BigInt(mantissa)) + (significand - top));
  const step = (): bigint => BigInt(random.below(4) - 2);
  const someSignificand = top | randomBits(random, mantissa);
  /** Two whose product is about 2^exponent. */
  const factors = (exponent: number): bigint[] => {
    const both = exponent + 2 * bias - 1;
    const one = 1 + random.below(both - 1);
    return [
      float(someSignificand, one),
      float((2n * top * top) / someSignificand + step(), both - one),
    ];
  };
  switch (instruction.split('.')[0]) {
    case 'mul':
      return factors(1 - bias);
    case 'fma':
      // The addend is zero, or near the least normal number, to which the product adds a little or
      // from which it subtracts a little.
      return random.chance(3)
        ? [...factors(1 - bias), sign()]
        : [
            ...factors(1 - bias - random.below(mantissa + 4)),
            float(top + BigInt(random.below(2)), 1),
          ];
    case 'div': {
      const exponent = 1 + random.below(bias);
      return [
        float(someSignificand + step(), exponent),
        float(someSignificand, exponent + bias - 1),
      ];
    }
    case 'rcp':
      return [float(top + BigInt(random.below(4)), 2 * bias - 1)];
    // The least normal f32, less some of the digits that only f64 has.
    case 'cvt':
      return type === 'f64'
        ? [float(2n * top - (1n << BigInt(26 + random.below(5))) + step(), bias - 127)]
        : [];
    default:
      return [];
  }
}

/** Operand by operand; all lists have the same length, `count` or a little more. */
export function inputsOf(one: Case, count: number, seed: number, exhaustive = true): bigint[][] {
  const columns = operandsOf(one, count, seed, exhaustive);
  const random = new Random(seed);
  for (let index = 0; index < 256; index++)
    tiny(one, random).forEach((bits, place) => columns[place]!.push(bits));
  return columns;
}

function operandsOf(
  { operands }: Case,
  count: number,
  seed: number,
  exhaustive: boolean,
): bigint[][] {
  const random = new Random(seed);
  const [first] = operands as [string];
  if (exhaustive && operands.length === 1 && widthOf(first) <= 16)
    return [Array.from({ length: 1 << widthOf(first) }, (_, value) => BigInt(value))];
  const corners = operands.map(edges);
  if (operands.length === 1)
    return [[...corners[0]!, ...Array.from({ length: count }, () => randomValue(random, first))]];
  const columns: bigint[][] = operands.map(() => []);
  for (let index = 0; index < count; index++) {
    const near = random.chance(3) ? randomValue(random, first) : undefined;
    operands.forEach((type, column) => {
      let value = random.chance(3) ? random.pick(corners[column]!) : randomValue(random, type);
      // Operands of similar magnitude cancel, and their difference is hard to round.
      if (near !== undefined && column > 0)
        value =
          near ^
          BigInt(random.below(16)) ^
          (random.chance(2) ? 1n << BigInt(widthOf(type) - 1) : 0n);
      columns[column]!.push(value);
    });
  }
  return columns;
}
