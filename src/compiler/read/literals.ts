/**
 * Operators on literals, computed as JavaScript computes them: minifiers do the same, and their
 * output has to have the same meaning.
 */
import type { BinaryOperator } from 'acorn';
import type { Constant } from './values.js';

type OnNumbers = (a: number, b: number) => number | boolean;
type OnBigInts = (a: bigint, b: bigint) => bigint | boolean | undefined;

const whole = (b: bigint, value: () => bigint): bigint | undefined =>
  b === 0n ? undefined : value();

const operators: Partial<Record<BinaryOperator, readonly [OnNumbers, OnBigInts]>> = {
  '+': [(a, b) => a + b, (a, b) => a + b],
  '-': [(a, b) => a - b, (a, b) => a - b],
  '*': [(a, b) => a * b, (a, b) => a * b],
  '/': [(a, b) => a / b, (a, b) => whole(b, () => a / b)],
  '%': [(a, b) => a % b, (a, b) => whole(b, () => a % b)],
  // As in `maths/power.ts`, a power of 1 is 1 where JavaScript gives NaN.
  '**': [
    (a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b),
    (a, b) => (b >= 0n && b < 65n ? a ** b : undefined),
  ],
  '&': [(a, b) => a & b, (a, b) => a & b],
  '|': [(a, b) => a | b, (a, b) => a | b],
  '^': [(a, b) => a ^ b, (a, b) => a ^ b],
  '<<': [(a, b) => a << b, (a, b) => (b >= 0n && b < 64n ? a << b : undefined)],
  '>>': [(a, b) => a >> b, (a, b) => (b >= 0n ? a >> b : undefined)],
  '>>>': [(a, b) => a >>> b, () => undefined],
  '<': [(a, b) => a < b, (a, b) => a < b],
  '<=': [(a, b) => a <= b, (a, b) => a <= b],
  '>': [(a, b) => a > b, (a, b) => a > b],
  '>=': [(a, b) => a >= b, (a, b) => a >= b],
  '==': [(a, b) => a === b, (a, b) => a === b],
  '===': [(a, b) => a === b, (a, b) => a === b],
  '!=': [(a, b) => a !== b, (a, b) => a !== b],
  '!==': [(a, b) => a !== b, (a, b) => a !== b],
};

/** The result, where both are literals and it is known. */
export function foldBinary(
  operator: BinaryOperator,
  a: Constant | undefined,
  b: Constant | undefined,
): Constant | undefined {
  const row = operators[operator];
  if (row === undefined || a === undefined || b === undefined) return undefined;
  if (typeof a !== 'bigint' && typeof b !== 'bigint') return row[0](Number(a), Number(b));
  if (!isWhole(a) || !isWhole(b)) return undefined;
  const result = row[1](BigInt(a), BigInt(b));
  return typeof result === 'bigint' && (result >= 2n ** 64n || result < -(2n ** 63n))
    ? undefined
    : result;
}

const isWhole = (value: Constant): boolean => typeof value !== 'number' || Number.isInteger(value);
