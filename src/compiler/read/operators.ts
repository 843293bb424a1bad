/** Types of operators: the conversions of operands, and the type of the result. */
import type { AnyNode, BinaryOperator as SourceOperator } from 'acorn';
import type { BinaryOperator, CompareOperator, Span, ValueType } from '../tree.js';
import { contract } from './contract.js';
import { foldBinary } from './literals.js';
import { callMath } from './math-table.js';
import { binary, compare, constant, convert, logical, not, unary } from './nodes.js';
import type { Pass } from './pass.js';
import {
  insteadOfNegative,
  isFloat,
  isInteger,
  isSigned,
  isUnsigned,
  isWide,
  join,
  settled,
  signed,
  unsigned,
} from './types.js';
import { concrete, constantOf, inType, isNegative, typed, type NumberValue } from './values.js';
import { commonType, failNegated, wholeOperand, literal, truth } from './operands.js';

interface Operands {
  readonly pass: Pass;
  readonly node: AnyNode;
  readonly operator: SourceOperator;
  readonly left: NumberValue;
  readonly right: NumberValue;
  /** The syntax of both sides, where both are in one expression. */
  readonly syntax: { readonly left: AnyNode; readonly right: AnyNode };
}

const spanOf = ({ pass, node }: Operands): Span => pass.span(node);

function arithmetic(operator: BinaryOperator) {
  return (operands: Operands): NumberValue => {
    const { left, right, syntax } = operands;
    const type = commonType(left, right);
    const span = spanOf(operands);
    checkFractions(operands, type);
    if (isFloat(type))
      for (const side of operator === 'mul' ? [left] : [left, right])
        failNegated(operands.pass, operands.node, side);
    const whole = binary(operator, inType(left, type), inType(right, type), span);
    return typed(
      contract(whole, operands.pass.span(syntax.left), operands.pass.span(syntax.right)),
    );
  };
}

function failZero(pass: Pass, node: AnyNode): never {
  return pass.fail(
    node,
    `This divides by zero: ${pass.code(node)}`,
    'Divide by something else; for infinity write Infinity.',
  );
}

/** The code of an operand for use within an expression. */
const operandCode = (pass: Pass, side: AnyNode): string =>
  /^(Binary|Logical|Conditional)/.test(side.type) ? `(${pass.code(side)})` : pass.code(side);

/**
 * Rejects a division of unsigned integers in which one side is negative: that side would silently
 * become a large number.
 */
function checkSigns(
  { pass, node, operator, left, right, syntax }: Operands,
  type: ValueType,
): void {
  if (!isUnsigned(type)) return;
  const by = isNegative(right);
  if (!by && !isNegative(left)) return;
  const [whole, negative] = [operandCode(pass, syntax.left), operandCode(pass, syntax.right)];
  const cast = `gpu.${signed[type]}`;
  const one = operator.startsWith('%') ? 'taken modulo' : 'divided by';
  pass.failUnlessTypesChange(
    node,
    (by
      ? `An unsigned number is ${one} a negative one`
      : `A negative number is ${one} an unsigned one`) +
      `, and ${type} holds no negative numbers: ${pass.code(node)}`,
    by
      ? `Write ${cast}(${whole}) ${operator} ${negative}.`
      : `Write ${whole} ${operator} ${cast}(${negative}).`,
  );
}

/**
 * Rejects a comparison of an unsigned number with a negative constant, which no unsigned number
 * equals, whatever its bits.
 */
function checkCompared({ pass, node, left, right }: Operands): void {
  for (const [value, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const type = settled(other.level);
    if (
      value.content.is !== 'literal' ||
      other.content.is === 'literal' ||
      !isUnsigned(type) ||
      !isNegative(value)
    )
      continue;
    pass.failUnlessTypesChange(
      node,
      `A number of ${type} is compared with ${String(value.content.value)}, and is never ` +
        `negative: ${pass.code(node)}`,
      insteadOfNegative(type),
    );
  }
}

/**
 * Rejects an integer that is written as a fraction: in C it makes a computation one with floats.
 */
function checkFractions(
  { pass, node, operator, left, right, syntax }: Operands,
  type: ValueType,
): void {
  if (isFloat(type)) return;
  for (const [side, value] of [
    [syntax.left, right],
    [syntax.right, left],
  ] as const) {
    if (
      side.type !== 'Literal' ||
      value.content.is === 'literal' ||
      side.raw?.includes('.') !== true
    )
      continue;
    const number = String(side.value);
    const [fraction, whole] =
      side === syntax.right
        ? [
            `gpu.f32(${pass.code(syntax.left)}) ${operator} ${number}`,
            `${operandCode(pass, syntax.left)} ${operator} ${number}`,
          ]
        : [
            `${number} ${operator} gpu.f32(${pass.code(syntax.right)})`,
            `${number} ${operator} ${operandCode(pass, syntax.right)}`,
          ];
    pass.failUnlessTypesChange(
      node,
      `${side.raw} is a whole number, and this ` +
        `${operator === '/' || operator === '%' ? 'divides' : 'computes with'} whole numbers: ` +
        `${pass.code(node)}`,
      `Write ${fraction} for a result with a fraction, and ${whole} for a whole one.`,
    );
  }
}

/**
 * Whether an expression is `1 / 0`, `-1 / 0` or `0 / 0`, which minifiers write for Infinity and
 * NaN.
 */
function isInfinity({ left, right }: Operands['syntax']): boolean {
  const numerator = left.type === 'UnaryExpression' && left.operator === '-' ? left.argument : left;
  return (
    numerator.type === 'Literal' &&
    (numerator.value === 1 || numerator.value === 0) &&
    right.type === 'Literal' &&
    right.value === 0
  );
}

/** Division by any number but zero. */
function division(operator: 'div' | 'rem') {
  return (operands: Operands): NumberValue => {
    const { pass, node, left, right } = operands;
    const divisor = constantOf(right);
    if (divisor !== undefined && Number(divisor) === 0) failZero(pass, node);
    const type = commonType(left, right);
    checkFractions(operands, type);
    checkSigns(operands, type);
    failNegated(pass, node, left);
    return typed(binary(operator, inType(left, type), inType(right, type), spanOf(operands)));
  };
}

const isZero = (written: AnyNode): boolean => written.type === 'Literal' && written.value === 0;

function bits(operator: 'and' | 'or' | 'xor') {
  return (operands: Operands): NumberValue => {
    const { pass, left, right, syntax } = operands;
    // JavaScript writes x | 0 for an integer of 32 bits, and minifiers exchange the sides. A
    // constant of `uses` may be 0 by chance.
    if (operator === 'or') {
      for (const [value, other, written] of [
        [left, right, syntax.right],
        [right, left, syntax.left],
      ] as const) {
        if (constantOf(other) !== 0) continue;
        const type = settled(value.level);
        if (isFloat(type) || ((isWide(type) || type === 'u32') && isZero(written)))
          return typed(convert(concrete(value), 'i32'));
      }
    }
    wholeOperand(pass, syntax.left, left, `The left side of ${operands.operator}`);
    wholeOperand(pass, syntax.right, right, `The right side of ${operands.operator}`);
    // 0x9e3779b9 with an i32 stands for its bits, as in JavaScript.
    const level = join(left.level, right.level);
    const other = left.level === 'int32u' ? right.level : left.level;
    const type =
      level === 'int32u' && (other === 'i32' || other === 'bool') ? 'i32' : commonType(left, right);
    return typed(binary(operator, inType(left, type), inType(right, type), spanOf(operands)));
  };
}

function shift(operator: 'shl' | 'shr' | 'shru') {
  return (operands: Operands): NumberValue => {
    const { pass, left, right, syntax } = operands;
    const span = spanOf(operands);
    if (operator === 'shru' && constantOf(right) === 0) {
      const type = settled(left.level);
      if (isFloat(type) || (isWide(type) && isZero(syntax.right)))
        return typed(convert(concrete(left), 'u32'));
    }
    wholeOperand(pass, syntax.left, left, `The left side of ${operands.operator}`);
    wholeOperand(pass, syntax.right, right, `The right side of ${operands.operator}`);
    if (operator === 'shr' && settled(left.level) === 'u32' && isZero(syntax.right))
      return typed(convert(concrete(left), 'i32'));
    const type = left.level === 'int32u' ? 'u32' : commonType(left);
    const shifted = inType(left, operator === 'shru' && isInteger(type) ? unsigned[type] : type);
    const count = inType(right, 'u32');
    if (operator === 'shru' && constantOf(right) === 0) return typed(shifted);
    return typed(binary(operator === 'shl' ? 'shl' : 'shr', shifted, count, span));
  };
}

const mirrored: Readonly<Record<CompareOperator, CompareOperator>> = {
  lt: 'gt',
  le: 'ge',
  gt: 'lt',
  ge: 'le',
  eq: 'eq',
  ne: 'ne',
};

/**
 * The result of a comparison with a negative number on the left and an unsigned one on the right.
 */
const negativeOnLeft: Readonly<Record<CompareOperator, boolean>> = {
  lt: true,
  le: true,
  gt: false,
  ge: false,
  eq: false,
  ne: true,
};

/** Compares numbers by value, whatever their types. */
function comparison(operator: CompareOperator) {
  return (operands: Operands): NumberValue => {
    const { pass, left, right } = operands;
    const span = spanOf(operands);
    const lowest = commonType(left, right);
    checkCompared(operands);
    for (const side of [left, right]) failNegated(pass, operands.node, side);
    if (isFloat(lowest))
      return typed(compare(operator, inType(left, lowest), inType(right, lowest), span));
    const [a, b] = [ownType(left, lowest), ownType(right, lowest)];
    if (isSigned(a) === isSigned(b))
      return typed(compare(operator, inType(left, lowest), inType(right, lowest), span));
    if (lowest !== 'u64')
      return typed(compare(operator, inType(left, 'i64'), inType(right, 'i64'), span));
    // No type holds both: a negative number is less than every unsigned one.
    const flipped = !isSigned(a);
    const by = flipped ? mirrored[operator] : operator;
    const signedSide = pass.reusable(inType(flipped ? right : left, 'i64'));
    const other = inType(flipped ? left : right, 'u64');
    const inRange = compare(by, convert(signedSide, 'u64'), other, span);
    const zero = constant(0, 'i64', span);
    return typed(
      negativeOnLeft[by]
        ? logical('or', compare('lt', signedSide, zero, span), inRange, span)
        : logical('and', compare('ge', signedSide, zero, span), inRange, span),
    );
  };
}

/** The type of one side of a comparison: a literal has the other side's where that holds it. */
function ownType(value: NumberValue, common: ValueType): ValueType {
  const known = value.content.is === 'literal' ? value.content.value : undefined;
  if (known === undefined) return commonType(value);
  if (Number(known) < 0) return isWide(common) ? 'i64' : 'i32';
  return common;
}

function power(operands: Operands): NumberValue {
  const { pass, node, left, right } = operands;
  return callMath(pass, node, 'pow', [left, right]);
}

const rules: Partial<Record<SourceOperator, (operands: Operands) => NumberValue>> = {
  '+': arithmetic('add'),
  '-': arithmetic('sub'),
  '*': arithmetic('mul'),
  '/': division('div'),
  '%': division('rem'),
  '**': power,
  '&': bits('and'),
  '|': bits('or'),
  '^': bits('xor'),
  '<<': shift('shl'),
  '>>': shift('shr'),
  '>>>': shift('shru'),
  '<': comparison('lt'),
  '<=': comparison('le'),
  '>': comparison('gt'),
  '>=': comparison('ge'),
  '==': comparison('eq'),
  '===': comparison('eq'),
  '!=': comparison('ne'),
  '!==': comparison('ne'),
};

/** One binary operator on two numbers. */
export function operate(operands: Operands): NumberValue {
  const { pass, node, operator, left, right } = operands;
  const rule = rules[operator];
  if (rule === undefined)
    return pass.fail(
      node,
      `The operator ${operator} is not supported in a kernel`,
      'Kernels have arithmetic, bitwise and comparison operators.',
    );
  if (
    (operator === '/' || operator === '%') &&
    left.content.is === 'literal' &&
    right.content.is === 'literal' &&
    Number(right.content.value) === 0
  ) {
    if (operator === '%' || !isInfinity(operands.syntax)) return failZero(pass, node);
  }
  const known = foldBinary(
    operator,
    left.content.is === 'literal' ? left.content.value : undefined,
    right.content.is === 'literal' ? right.content.value : undefined,
  );
  return known === undefined ? rule(operands) : literal(known, spanOf(operands));
}

export function operateUnary(
  pass: Pass,
  node: AnyNode,
  operator: '-' | '+' | '!' | '~',
  operand: NumberValue,
  syntax: AnyNode,
): NumberValue {
  const span = pass.span(node);
  const { content } = operand;
  if (content.is === 'literal') {
    const { value } = content;
    if (operator === '!') return literal(!value, span);
    if (operator === '+') return literal(typeof value === 'bigint' ? value : Number(value), span);
    if (operator === '-') return literal(typeof value === 'bigint' ? -value : -Number(value), span);
    return literal(typeof value === 'bigint' ? ~value : ~Number(value), span);
  }
  if (operator === '!') return typed(not(truth(operand), span));
  if (operator === '-' && content.is === 'choice') {
    return {
      ...operand,
      content: {
        ...content,
        then: operateUnary(pass, node, '-', content.then, syntax),
        otherwise: operateUnary(pass, node, '-', content.otherwise, syntax),
      },
    };
  }
  const expression = inType(operand, commonType(operand));
  if (operator === '+') return typed(expression);
  if (operator === '-') return typed(unary('neg', expression, span));
  wholeOperand(pass, syntax, operand, 'The operand of ~');
  return typed(unary('not', expression, span));
}
