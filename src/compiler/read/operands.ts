/** Numbers as operands: their common type, and operands that are rejected. */
import type { AnyNode } from 'acorn';
import type { Expression, Span, ValueType } from '../tree.js';
import { compare, constant, unary } from './nodes.js';
import type { Pass } from './pass.js';
import {
  insteadOfNegative,
  isFloat,
  isUnsigned,
  join,
  literalLevel,
  settled,
  signed,
} from './types.js';
import { concrete, constantOf, isNegative, type Constant, type NumberValue } from './values.js';

/** A number that takes the type of the other operand. */
export function literal(value: Constant, span: Span): NumberValue {
  return { kind: 'number', level: literalLevel(value), content: { is: 'literal', value, span } };
}

/** Whether a number is not zero; NaN counts as zero, as in JavaScript. */
export function truth(value: NumberValue): Expression {
  const known = value.content.is === 'literal' ? value.content.value : undefined;
  if (known !== undefined)
    return constant(Boolean(known), 'bool', (value.content as { span: Span }).span);
  const expression = concrete(value);
  const { type, span } = expression;
  if (type === 'bool') return expression;
  if (isFloat(type))
    return compare('gt', unary('abs', expression, span), constant(0, type, span), span);
  return compare('ne', expression, constant(0, type, span), span);
}

/** The common type of two operands. Booleans count as i32. */
export function commonType(...values: readonly NumberValue[]): ValueType {
  const type = settled(values.map(({ level }) => level).reduce(join));
  return type === 'bool' ? 'i32' : type;
}

/**
 * Checks that the common type holds a constant: a negative constant among unsigned numbers would be
 * a large one.
 */
export function checkCommonType(
  pass: Pass,
  node: AnyNode,
  values: readonly NumberValue[],
  type: ValueType,
): void {
  if (!isUnsigned(type) || !values.some(isNegative)) return;
  pass.failUnlessTypesChange(
    node,
    `A negative number and numbers of ${type} become one value here, and ${type} holds no ` +
      `negative ones: ${pass.code(node)}`,
    insteadOfNegative(type),
  );
}

/** The negated unsigned integer that a number is, or the first factor of it. */
function negatedIn(expression: Expression): { readonly type: 'u32' | 'u64' } | undefined {
  switch (expression.op) {
    case 'unary':
      return expression.operator === 'neg' && isUnsigned(expression.type)
        ? { type: expression.type }
        : undefined;
    // In a signed type of at most as many bits the value is that of -u.
    case 'convert': {
      const negated = negatedIn(expression.operand);
      return expression.type === 'i32' || (expression.type === 'i64' && negated?.type === 'u64')
        ? undefined
        : negated;
    }
    case 'binary':
      return expression.operator === 'mul' ? negatedIn(expression.left) : undefined;
    default:
      return undefined;
  }
}

/**
 * Rejects a negated unsigned number that is divided or converted to a float: it is 2 ** 32 - u, and
 * differs from -u there. Minifiers write -u / 16 for -(u / 16).
 */
export function failNegated(pass: Pass, node: AnyNode, value: NumberValue): void {
  const negated =
    value.content.is === 'expression' ? negatedIn(value.content.expression) : undefined;
  if (negated === undefined) return;
  pass.failUnlessTypesChange(
    node,
    `A negated ${negated.type} has no sign, it is 2 ** ${negated.type.slice(1)} - u, and ` +
      `this computes with that: ${pass.code(node)}`,
    `Make it signed before it is negated: -gpu.${signed[negated.type]}(u).`,
  );
}

/** Rejects floats, with the way to make an integer of them. */
export function wholeOperand(pass: Pass, node: AnyNode, value: NumberValue, what: string): void {
  if (!isFloat(settled(value.level))) return;
  pass.fail(node, ...notWhole(pass, node, value, what));
}

/** The message for a float where an integer is required, and what to write. */
export function notWhole(
  pass: Pass,
  node: AnyNode,
  value: NumberValue,
  what: string,
): readonly [what: string, fix: string] {
  const code = pass.code(node);
  const known = constantOf(value);
  if (node.type === 'AssignmentExpression' && node.operator !== '=') {
    const [to, by] = [pass.code(node.left), pass.code(node.right)];
    return [
      `${what} is ${settled(value.level)}, and has to be an integer: ${code}`,
      `Write ${to} = gpu.i32(${to} ${node.operator.slice(0, -1)} ${by}).`,
    ];
  }
  if (known !== undefined && !Number.isFinite(Number(known))) {
    return [
      `${what} is ${String(known)}, and integers hold no infinity or NaN: ${code}`,
      `Write an integer; gpu.i32(${code}) is the one that a float of this value is cast to.`,
    ];
  }
  return [
    `${what} is ${settled(value.level)}, and has to be an integer: ${code}`,
    `Write gpu.i32(${code}).`,
  ];
}
