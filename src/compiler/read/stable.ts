/**
 * Keeps the order of evaluation where statements compute an operand: earlier operands that these
 * statements could change are put into temporaries first. Only the parts that can change are, so
 * that the rest of an expression is still one expression, and its multiply-adds still fuse.
 */
import type { Expression, Statement } from '../tree.js';
import type { NumberValue, StructValue, Value } from './values.js';

/** The changes that statements can make. */
export interface Effects {
  readonly locals: ReadonlySet<number>;
  readonly memory: boolean;
}

export function effectsOf(statements: readonly Statement[]): Effects {
  const locals = new Set<number>();
  let memory = false;
  const visitExpression = (expression: Expression): void => {
    if (expression.op === 'atomic' || expression.op === 'barrierReduce') memory = true;
  };
  const visit = (statement: Statement): void => {
    switch (statement.kind) {
      case 'assign':
        locals.add(statement.local);
        visitExpression(statement.value);
        return;
      case 'evaluate':
        visitExpression(statement.value);
        return;
      case 'store':
      case 'clear':
      case 'barrier':
      case 'fence':
      case 'matrixProduct':
      case 'loadMatrices':
      case 'copyAsync':
      case 'copyWait':
      case 'instruction':
        memory = true;
        return;

      case 'if':
        statement.then.forEach(visit);
        statement.otherwise.forEach(visit);
        return;
      case 'loop':
        statement.body.forEach(visit);
        statement.update.forEach(visit);
        return;
      case 'group':
        statement.body.forEach(visit);
        return;
      default:
    }
  };
  statements.forEach(visit);
  return { locals, memory };
}

/** Applies a function to every expression directly within this one. */
export function mapOperands(
  expression: Expression,
  change: (operand: Expression) => Expression,
): Expression {
  switch (expression.op) {
    case 'constant':
    case 'local':
    case 'abi':
    case 'special':
    case 'activemask':
      return expression;
    case 'unary':
    case 'convert':
    case 'narrow':
    case 'bitcast':
      return { ...expression, operand: change(expression.operand) };
    case 'binary':
    case 'compare':
    case 'logical':
      return { ...expression, left: change(expression.left), right: change(expression.right) };
    case 'fma':
      return {
        ...expression,
        a: change(expression.a),
        b: change(expression.b),
        c: change(expression.c),
      };
    case 'conditional':
      return {
        ...expression,
        test: change(expression.test),
        then: change(expression.then),
        otherwise: change(expression.otherwise),
      };
    case 'approximate':
      return { ...expression, operands: expression.operands.map(change) };
    case 'load':
      return {
        ...expression,
        place: { ...expression.place, index: change(expression.place.index) },
      };
    // The others have effects, and are statements of their own.
    default:
      return expression;
  }
}

/** Replaces everything that the effects could change in the expression by `save`. */
export function stabilise(
  expression: Expression,
  effects: Effects,
  save: (expression: Expression) => Expression,
): Expression {
  if (expression.op === 'local')
    return effects.locals.has(expression.local) ? save(expression) : expression;
  if (expression.op === 'load')
    return effects.memory || changes(expression.place.index, effects)
      ? save(expression)
      : expression;
  // A side that is evaluated conditionally cannot be moved out.
  if (
    (expression.op === 'conditional' || expression.op === 'logical') &&
    changes(expression, effects)
  )
    return save(expression);
  return mapOperands(expression, (operand) => stabilise(operand, effects, save));
}

function changes(expression: Expression, effects: Effects): boolean {
  let found = false;
  stabilise(
    expression.op === 'conditional' || expression.op === 'logical'
      ? asOperands(expression)
      : expression,
    effects,
    (part) => {
      found = true;
      return part;
    },
  );
  return found;
}

/** The parts of an expression that evaluates only some of them, as operands: only for searching. */
function asOperands(expression: Expression): Expression {
  if (expression.op === 'conditional')
    return {
      op: 'fma',
      type: 'f32',
      a: expression.test,
      b: expression.then,
      c: expression.otherwise,
      span: expression.span,
    };
  if (expression.op === 'logical')
    return {
      op: 'binary',
      operator: 'and',
      type: 'bool',
      left: expression.left,
      right: expression.right,
      span: expression.span,
    };
  return expression;
}

/** Applies a function to every expression of the value. */
export function mapValue(value: Value, change: (expression: Expression) => Expression): Value {
  switch (value.kind) {
    case 'number':
      return mapNumber(value, change);
    case 'struct':
      return mapStruct(value, change);
    case 'tensor':
      return { ...value, indices: value.indices.map(change) };
    case 'element':
      return { ...value, index: change(value.index) };
    case 'array':
      return value.index === undefined ? value : { ...value, index: change(value.index) };
    default:
      return value;
  }
}

function mapNumber(
  value: NumberValue,
  change: (expression: Expression) => Expression,
): NumberValue {
  const { content } = value;
  switch (content.is) {
    case 'literal':
      return value;
    case 'expression':
      return { ...value, content: { is: 'expression', expression: change(content.expression) } };
    case 'choice':
      return {
        ...value,
        content: {
          ...content,
          test: change(content.test),
          then: mapNumber(content.then, change),
          otherwise: mapNumber(content.otherwise, change),
        },
      };
  }
}

function mapStruct(
  value: StructValue,
  change: (expression: Expression) => Expression,
): StructValue {
  // A structure that can be assigned is a reference: it is read at its use.
  if (value.slot !== undefined) return value;
  return {
    ...value,
    fields: new Map([...value.fields].map(([name, field]) => [name, mapValue(field, change)])),
  };
}
