// The values of constant expressions, by the ISA's chapter "Constant Expression Evaluation" and,
// where it leaves something open, by ptxas. An integer has 64 bits. It is signed unless it has the
// suffix U or does not fit otherwise. Comparisons, quotients and shifts depend on which of the two
// it is.

import type { SourceText } from '../error.js';

export type IntegerConstant = { kind: 'integer'; value: bigint; isUnsigned: boolean; at: number };
export type FloatConstant = { kind: 'float'; width: 32 | 64; bits: bigint; at: number };
export type Constant = IntegerConstant | FloatConstant;

const LARGEST_SIGNED = (1n << 63n) - 1n;
const LARGEST_UNSIGNED = (1n << 64n) - 1n;

const float64Bits = (value: number): bigint =>
  new BigUint64Array(new Float64Array([value]).buffer)[0]!;

export const float64 = (value: number, at: number): FloatConstant => ({
  kind: 'float',
  width: 64,
  bits: float64Bits(value),
  at,
});

/** The number of a literal. */
const floatValue = ({ width, bits }: { width: 32 | 64; bits: bigint }): number =>
  width === 64
    ? new Float64Array(new BigUint64Array([bits]).buffer)[0]!
    : new Float32Array(new Uint32Array([Number(bits)]).buffer)[0]!;

/** An integer of which 64 bits are kept. */
export const integer = (value: bigint, isUnsigned: boolean, at: number): IntegerConstant => ({
  kind: 'integer',
  value: isUnsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value),
  isUnsigned,
  at,
});

/** Reads an integer: hexadecimal, binary, octal or decimal, with the suffix or without it. */
export function integerLiteral(text: string, at: number, source: SourceText): IntegerConstant {
  const hasSuffix = text.endsWith('U');
  const digits = hasSuffix ? text.slice(0, -1) : text;
  const value = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
  if (value > LARGEST_UNSIGNED)
    throw source.error('semantic', `the number '${text}' needs more than 64 bits`, at);
  return { kind: 'integer', value, isUnsigned: hasSuffix || value > LARGEST_SIGNED, at };
}

const UNARY: Readonly<Record<string, (operand: IntegerConstant, at: number) => IntegerConstant>> = {
  '-': ({ value, isUnsigned }, at) => integer(-value, isUnsigned, at),
  '+': (operand) => operand,
  '~': ({ value }, at) => integer(~value, true, at),
  '!': ({ value }, at) => integer(value === 0n ? 1n : 0n, false, at),
  '(.s64)': ({ value }, at) => integer(value, false, at),
  '(.u64)': ({ value }, at) => integer(value, true, at),
};

/** Evaluates `-` and the like, or a cast in its parentheses. */
export function unaryConstant(
  operator: string,
  operand: Constant,
  at: number,
  source: SourceText,
): Constant {
  if (operand.kind === 'float') {
    if (operator === '+') return operand;
    if (operator !== '-') throw source.error('syntax', 'expected an integer', at);
    return { ...operand, bits: operand.bits ^ (1n << BigInt(operand.width - 1)), at };
  }
  const apply = UNARY[operator];
  if (apply === undefined)
    throw source.error(
      'syntax',
      `'${operator}' is no cast of constants: write (.s64) or (.u64)`,
      at,
    );
  return apply(operand, at);
}

// If one operand of these is unsigned, both are, and so is the result.
const ARITHMETIC: Readonly<Record<string, (x: bigint, y: bigint) => bigint>> = {
  '+': (x, y) => x + y,
  '-': (x, y) => x - y,
  '*': (x, y) => x * y,
  '/': (x, y) => x / y,
  '&': (x, y) => x & y,
  '|': (x, y) => x | y,
  '^': (x, y) => x ^ y,
  '%': (x, y) => x % y,
};
// The result is signed.
const COMPARISONS: Readonly<Record<string, <T extends bigint | number>(x: T, y: T) => boolean>> = {
  '==': (x, y) => x === y,
  '!=': (x, y) => x !== y,
  '<': (x, y) => x < y,
  '>': (x, y) => x > y,
  '<=': (x, y) => x <= y,
  '>=': (x, y) => x >= y,
};
const LOGIC: Readonly<Record<string, (x: bigint, y: bigint) => boolean>> = {
  '&&': (x, y) => x !== 0n && y !== 0n,
  '||': (x, y) => x !== 0n || y !== 0n,
};
// The result has the first operand's sign property. An amount beyond 63 begins again at 0, as in
// ptxas.
const SHIFTS: Readonly<Record<string, (x: bigint, amount: bigint) => bigint>> = {
  '<<': (x, amount) => x << amount,
  '>>': (x, amount) => x >> amount,
};
// Computed in 64 bits.
const FLOATS: Readonly<Record<string, (x: number, y: number) => number>> = {
  '+': (x, y) => x + y,
  '-': (x, y) => x - y,
  '*': (x, y) => x * y,
  '/': (x, y) => x / y,
};

const truth = (value: boolean, at: number): IntegerConstant => integer(value ? 1n : 0n, false, at);

export function binaryConstant(
  operator: string,
  a: Constant,
  b: Constant,
  source: SourceText,
): Constant {
  const { at } = a;
  if (a.kind === 'float' && b.kind === 'float') return binaryFloat(operator, a, b, source);
  if (a.kind !== 'integer' || b.kind !== 'integer')
    throw source.error('syntax', `'${operator}' needs integers`, at);
  if ((operator === '/' || operator === '%') && b.value === 0n)
    throw source.error('semantic', 'division by zero', at);
  const shift = SHIFTS[operator];
  if (shift !== undefined)
    return integer(shift(a.value, BigInt.asUintN(6, b.value)), a.isUnsigned, at);
  const logic = LOGIC[operator];
  if (logic !== undefined) return truth(logic(a.value, b.value), at);
  // A remainder is computed with unsigned numbers, whatever the operands are.
  const isUnsigned = operator === '%' || a.isUnsigned || b.isUnsigned;
  const x = isUnsigned ? BigInt.asUintN(64, a.value) : a.value;
  const y = isUnsigned ? BigInt.asUintN(64, b.value) : b.value;
  const compare = COMPARISONS[operator];
  if (compare !== undefined) return truth(compare(x, y), at);
  return integer(ARITHMETIC[operator]!(x, y), isUnsigned, at);
}

function binaryFloat(
  operator: string,
  a: FloatConstant,
  b: FloatConstant,
  source: SourceText,
): Constant {
  const x = floatValue(a);
  const y = floatValue(b);
  const compare = COMPARISONS[operator];
  if (compare !== undefined) return truth(compare(x, y), a.at);
  const compute = FLOATS[operator];
  if (compute === undefined) throw source.error('syntax', `'${operator}' needs integers`, a.at);
  return float64(compute(x, y), a.at);
}
