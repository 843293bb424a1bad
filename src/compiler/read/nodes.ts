/**
 * Makes nodes of the tree in a normal form: no conversion to the same type, constants in their
 * type.
 */
import type {
  BinaryOperator,
  CompareOperator,
  Expression,
  Span,
  UnaryOperator,
  ValueType,
} from '../tree.js';
import { roundToOdd } from '../round-to-odd.js';
import { constantOfType, isFloat } from './types.js';

export function constant(
  value: number | bigint | boolean,
  type: ValueType,
  span: Span,
): Expression {
  return { op: 'constant', type, value: constantOfType(value, type), span };
}

export function convert(operand: Expression, type: ValueType): Expression {
  if (operand.type === type) return operand;
  // An integer constant is the same number in every type that the source's rules convert it to.
  if (
    operand.op === 'constant' &&
    !isFloat(operand.type) &&
    operand.type !== 'bool' &&
    type !== 'bool'
  )
    return constant(operand.value, type, operand.span);
  return { op: 'convert', type, operand, span: operand.span };
}

/**
 * The value from which narrow floats of 8 and 16 bits are rounded: an f32, rounded to odd where an
 * earlier rounding could change the result.
 */
export function toOdd(operand: Expression): Expression {
  if (operand.type === 'f32' || operand.type === 'bool') return convert(operand, 'f32');
  if (operand.op === 'constant')
    return { ...operand, type: 'f32', value: roundToOdd(operand.value as number | bigint) };
  return { op: 'convert', type: 'f32', odd: true, operand, span: operand.span };
}

export function unary(
  operator: UnaryOperator,
  operand: Expression,
  span: Span,
  type: ValueType = operand.type,
): Expression {
  if (operator === 'neg' && operand.op === 'constant' && isFloat(type))
    return constant(-Number(operand.value), type, span);
  return { op: 'unary', operator, type, operand, span };
}

export function binary(
  operator: BinaryOperator,
  left: Expression,
  right: Expression,
  span: Span,
): Expression {
  return { op: 'binary', operator, type: left.type, left, right, span };
}

export function compare(
  operator: CompareOperator,
  left: Expression,
  right: Expression,
  span: Span,
): Expression {
  return { op: 'compare', operator, type: 'bool', left, right, span };
}

export function logical(
  operator: 'and' | 'or',
  left: Expression,
  right: Expression,
  span: Span,
): Expression {
  return { op: 'logical', operator, type: 'bool', left, right, span };
}

/**
 * `not`, without a double negation, and without one before (in)equality, which minifiers turn
 * around too.
 */
export function not(operand: Expression, span: Span): Expression {
  if (operand.op === 'unary' && operand.operator === 'not' && operand.type === 'bool')
    return operand.operand;
  if (operand.op === 'constant') return constant(!operand.value, 'bool', span);
  if (operand.op === 'compare' && (operand.operator === 'eq' || operand.operator === 'ne'))
    return { ...operand, operator: operand.operator === 'eq' ? 'ne' : 'eq' };
  return unary('not', operand, span);
}
