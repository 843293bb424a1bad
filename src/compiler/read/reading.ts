/**
 * Reads nodes of the source by the rules of their types: as values, as conditions, and as
 * statements.
 */
import type { AnyNode } from 'acorn';
import type { Expression } from '../tree.js';
import { completesOne } from './flow.js';
import { logical, not } from './nodes.js';
import { checkCommonType, literal, truth } from './operands.js';
import type { Pass } from './pass.js';
import { assignSlot, originsOf, readTemporary, slotFor } from './slots.js';
import { join, settled } from './types.js';
import { unsupported } from './unsupported.js';
import { isCounter } from './unwrap-tools.js';
import { concrete, describe, typed, type NumberValue, type Slot, type Value } from './values.js';

/** Reads the value of an expression, and emits its statements. */
export function read(pass: Pass, node: AnyNode): Value {
  pass.count(node);
  const rule = pass.rules.expressions[node.type] as
    ((pass: Pass, node: AnyNode, wanted: boolean) => Value) | undefined;
  return rule === undefined ? unsupported(pass, node) : rule(pass, node, true);
}

/** The value as a number or boolean. */
export function readNumber(pass: Pass, node: AnyNode): NumberValue {
  return asNumber(pass, node, read(pass, node));
}

export function asNumber(pass: Pass, node: AnyNode, value: Value): NumberValue {
  if (value.kind === 'number') return value;
  const shown = pass.code(node);
  if (value.kind === 'tensor') {
    const param = pass.params[value.param]!;
    const left = param.kind === 'tensor' ? param.rank - value.indices.length : 1;
    return pass.fail(
      node,
      `${shown} is ${describe(value)}, where a number is needed`,
      `Name an element: ${shown}${'[i]'.repeat(left)}.`,
    );
  }
  if (value.kind === 'array')
    return pass.fail(
      node,
      `${shown} is an array, where a number is needed`,
      `Name an element: ${shown}${'[i]'.repeat(value.dims.length)}.`,
    );
  if (value.kind === 'function' || value.kind === 'device')
    return pass.fail(
      node,
      `${shown} is a function, where a number is needed`,
      `Call it: ${shown}(…).`,
    );
  if (value.kind === 'nothing')
    return pass.fail(
      node,
      `${shown} has no value, where a number is needed`,
      'Only functions that return something can be used as values.',
    );
  // The parameter after those that a call passes is the function's own gpu.
  const { name, caller } = pass.frame;
  if (value.kind === 'namespace' && value.path === '' && caller !== undefined) {
    return pass.fail(
      node,
      `${shown} is gpu in this call of ${name}, which gives no argument for it, where a ` +
        'number is needed',
      `Give ${name} one more argument.`,
    );
  }
  return pass.fail(
    node,
    `${shown} is ${describe(value)}, where a number is needed`,
    'Use one of its properties.',
  );
}

/** The value as a condition. */
export function readTest(pass: Pass, node: AnyNode): Expression {
  if (node.type === 'UnaryExpression' && node.operator === '!')
    return not(readTest(pass, node.argument), pass.span(node));
  if (node.type !== 'LogicalExpression' || node.operator === '??')
    return truth(readNumber(pass, node));
  pass.count(node);
  const and = node.operator === '&&';
  const left = readTest(pass, node.left);
  const known = knownTest(left);
  if (known !== undefined) return known === and ? readTest(pass, node.right) : left;
  let right: Expression | undefined;
  const statements = pass.collect(() => {
    right = readTest(pass, node.right);
  });
  const span = pass.span(node);
  if (statements.length === 0) return logical(and ? 'and' : 'or', left, right!, span);
  const emitRight = (): Value => {
    for (const statement of statements) pass.emit(statement);
    return typed(right!);
  };
  const decided = (): Value => literal(!and, span);
  return truth(
    asNumber(
      pass,
      node,
      either(pass, node, left, and ? [emitRight, decided] : [decided, emitRight]),
    ),
  );
}

/** The value of a condition that is a compile-time constant; else undefined. */
export function knownTest(test: Expression): boolean | undefined {
  return test.op === 'constant' ? Boolean(test.value) : undefined;
}

/** Reads an expression for its effects; the value is dropped. */
export function perform(pass: Pass, node: AnyNode): void {
  pass.count(node);
  switch (node.type) {
    case 'SequenceExpression':
      for (const expression of node.expressions) perform(pass, expression);
      return;
    case 'LogicalExpression': {
      if (node.operator === '??') break;
      const test = readTest(pass, node.left);
      branch(
        pass,
        node,
        node.operator === '&&' ? test : not(test, test.span),
        () => perform(pass, node.right),
        undefined,
      );
      return;
    }
    case 'ConditionalExpression':
      branch(
        pass,
        node,
        readTest(pass, node.test),
        () => perform(pass, node.consequent),
        () => perform(pass, node.alternate),
      );
      return;
    case 'UnaryExpression':
      if (node.operator === 'void' || node.operator === '!') {
        perform(pass, node.argument);
        return;
      }
      break;
    case 'AssignmentExpression':
      pass.rules.expressions.AssignmentExpression(pass, node, false);
      return;
    case 'UpdateExpression':
      // Minifiers move coverage counters into expressions.
      if (!isCounter(node)) pass.rules.expressions.UpdateExpression(pass, node, false);
      return;
    default:
  }
  read(pass, node);
}

/**
 * Emits `if`, without branches that a constant excludes, and without a test that begins with `not`.
 */
export function branch(
  pass: Pass,
  node: AnyNode,
  test: Expression,
  then: () => void,
  otherwise: (() => void) | undefined,
): void {
  const known = knownTest(test);
  if (known !== undefined) {
    if (known) then();
    else otherwise?.();
    return;
  }
  const span = pass.span(node);
  const statements = pass.collect(then);
  const others = otherwise === undefined ? [] : pass.collect(otherwise);
  if (statements.length === 0 && others.length === 0) return;
  if (test.op === 'unary' && test.operator === 'not' && test.type === 'bool')
    pass.emit({ kind: 'if', test: test.operand, then: others, otherwise: statements, span });
  else pass.emit({ kind: 'if', test, then: statements, otherwise: others, span });
}

/** A value from one of two sides. */
export function either(
  pass: Pass,
  node: AnyNode,
  test: Expression,
  sides: readonly [() => Value, () => Value],
): Value {
  let values: Value[] = [];
  const statements = sides.map((side) => pass.collect(() => values.push(side())));
  const [then, otherwise] = values as [Value, Value];
  const span = pass.span(node);
  if (
    statements.every(({ length }) => length === 0) &&
    then.kind === 'number' &&
    otherwise.kind === 'number'
  )
    return choose(pass, test, then, otherwise, node);
  let slot: Slot | undefined;
  const filled = sides.map((_, at) =>
    pass.collect(() => {
      for (const statement of statements[at]!) pass.emit(statement);
      const value = values[at]!;
      slot ??= slotFor(pass, node, value, pass.freshKey(node, 'either'), 'either', false);
      assignSlot(pass, slot, value, node, 'either');
    }),
  );
  values = [];
  pass.emit({ kind: 'if', test, then: filled[0]!, otherwise: filled[1]!, span });
  return readTemporary(pass, slot!, node, new Set([...originsOf(then), ...originsOf(otherwise)]));
}

const soft = (value: NumberValue): boolean =>
  value.content.is !== 'expression' && value.level !== 'bool';

function choose(
  pass: Pass,
  test: Expression,
  then: NumberValue,
  otherwise: NumberValue,
  node: AnyNode,
): NumberValue {
  const span = pass.span(node);
  const level = join(then.level, otherwise.level);
  const value: NumberValue = {
    kind: 'number',
    level,
    content: { is: 'choice', test, then, otherwise, span },
  };
  if (soft(then) && soft(otherwise)) return value;
  checkCommonType(pass, node, [then, otherwise], settled(level));
  return typed(concrete(value));
}

/** Reads a list of statements, up to one after which control does not continue. */
export function readStatements(pass: Pass, nodes: readonly AnyNode[]): void {
  const { unroll } = pass.frame;
  for (const node of nodes) {
    const before = pass.out.length;
    readStatement(pass, node);
    const last = pass.out.at(-1);
    if (last !== undefined && pass.out.length > before && !completesOne(last)) break;
  }
  const left = pass.frame.unroll;
  if (left !== undefined && left !== unroll)
    pass.fail(
      left.node,
      `No loop follows this: ${pass.code(left.node)}`,
      'Write it before the loop, in the same block.',
    );
}

export function readStatement(pass: Pass, node: AnyNode, labels: readonly string[] = []): void {
  pass.count(node);
  const rule = pass.rules.statements[node.type] as
    ((pass: Pass, node: AnyNode, labels: readonly string[]) => void) | undefined;
  if (rule === undefined) unsupported(pass, node);
  else rule(pass, node, labels);
}

/** Calls a function of the language's own texts. */
export function callText(
  pass: Pass,
  node: AnyNode,
  name: string,
  text: string,
  args: readonly Value[],
): Value {
  return pass.rules.call(
    pass,
    node,
    name,
    { text, uses: {} },
    args,
    [],
    pass.frame.shownAs ?? pass.span(node),
  );
}
