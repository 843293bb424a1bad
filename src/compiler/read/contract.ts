/**
 * Contraction to multiply-adds: a * b + c, a + b * c, a * b - c and c - a * b of floats, written in
 * one expression, are rounded once, as with C's FP_CONTRACT ON. A product that another statement or
 * a function computed is not contracted.
 */
import type { Expression, Span } from '../tree.js';
import { unary } from './nodes.js';
import { isFloat } from './types.js';

const same = (a: Span, b: Span): boolean =>
  a.text === b.text && a.start === b.start && a.end === b.end;

/** A product that is in the source at this place, and was not put there by a name or a call. */
function product(
  operand: Expression,
  written: Span,
): (Expression & { readonly op: 'binary' }) | undefined {
  return operand.op === 'binary' && operand.operator === 'mul' && same(operand.span, written)
    ? operand
    : undefined;
}

/**
 * Contracts an expression. `left` and `right`: the operands' spans in the source. Of two products
 * the left one is fused.
 */
export function contract(whole: Expression, left: Span, right: Span): Expression {
  if (
    whole.op !== 'binary' ||
    !isFloat(whole.type) ||
    (whole.operator !== 'add' && whole.operator !== 'sub')
  )
    return whole;
  const { span, type } = whole;
  const negate = (operand: Expression) =>
    whole.operator === 'sub' ? unary('neg', operand, operand.span) : operand;
  const first = product(whole.left, left);
  if (first !== undefined)
    return { op: 'fma', type, a: first.left, b: first.right, c: negate(whole.right), span };
  const second = product(whole.right, right);
  if (second !== undefined)
    return { op: 'fma', type, a: negate(second.left), b: second.right, c: whole.left, span };
  return whole;
}
