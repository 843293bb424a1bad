/** Reads expressions of the source to values, with a rule for each type of node. */
import type {
  AnyNode,
  CallExpression,
  ConditionalExpression,
  Expression as SourceExpression,
  LogicalExpression,
  ObjectExpression,
  UnaryExpression,
} from 'acorn';
import { assignment, update } from './assignments.js';
import type { Call } from './calls.js';
import { callDevice } from './device-functions.js';
import { leftChain } from './left-chain.js';
import { member } from './members.js';
import { convert, logical } from './nodes.js';
import { operate, operateUnary } from './operators.js';
import type { Pass, Rules } from './pass.js';
import { copied, fieldOf, readSlot } from './slots.js';
import { isFloat, isWide, settled } from './types.js';
import { unsupported } from './unsupported.js';
import { concrete, describe, nothing, typed, type NumberValue, type Value } from './values.js';
import { literal, truth } from './operands.js';
import { freeNames } from './free-names.js';
import { failIfRecursive } from './recursion.js';
import { readTest, knownTest, read, either, readNumber, perform, asNumber } from './reading.js';

/** The limit of a chain of operators that becomes one tree. */
const LONGEST_CHAIN = 200;

function conditional(pass: Pass, node: ConditionalExpression): Value {
  const test = readTest(pass, node.test);
  const known = knownTest(test);
  if (known !== undefined) return read(pass, known ? node.consequent : node.alternate);
  // The test is read first, before the sides.
  if (test.op === 'unary' && test.operator === 'not' && test.type === 'bool') {
    return either(pass, node, test.operand, [
      () => read(pass, node.alternate),
      () => read(pass, node.consequent),
    ]);
  }
  return either(pass, node, test, [
    () => read(pass, node.consequent),
    () => read(pass, node.alternate),
  ]);
}

function logicalValue(pass: Pass, node: LogicalExpression): Value {
  if (node.operator === '??')
    return pass.fail(
      node,
      '?? has no use in a kernel: no value is null or undefined',
      'Leave it out, or compare.',
    );
  const and = node.operator === '&&';
  const left = readNumber(pass, node.left);
  const test = truth(left);
  const known = knownTest(test);
  if (known !== undefined) return known === and ? read(pass, node.right) : left;
  let right: NumberValue | undefined;
  const statements = pass.collect(() => {
    right = readNumber(pass, node.right);
  });
  const span = pass.span(node);
  if (
    statements.length === 0 &&
    settled(left.level) === 'bool' &&
    settled(right!.level) === 'bool'
  ) {
    return typed(logical(and ? 'and' : 'or', test, concrete(right!), span));
  }
  // As in JavaScript, the value is that of the side that decided.
  const once =
    left.content.is === 'expression' && settled(left.level) !== 'bool'
      ? typed(pass.reusable(left.content.expression, 'left'))
      : left;
  const emitRight = (): Value => {
    for (const statement of statements) pass.emit(statement);
    return right!;
  };
  return either(pass, node, truth(once), and ? [emitRight, () => once] : [() => once, emitRight]);
}

function isComplement(node: AnyNode): node is UnaryExpression {
  return node.type === 'UnaryExpression' && node.operator === '~';
}

function unaryValue(pass: Pass, node: UnaryExpression): Value {
  switch (node.operator) {
    case '-':
    case '+':
    case '!':
      return operateUnary(
        pass,
        node,
        node.operator,
        readNumber(pass, node.argument),
        node.argument,
      );
    case '~': {
      const { argument } = node;
      // In a chain of more than two, the two innermost make the integer.
      if (isComplement(argument) && !isComplement(argument.argument)) {
        const operand = readNumber(pass, argument.argument);
        const type = settled(operand.level);
        if ((isFloat(type) || isWide(type) || type === 'u32') && operand.content.is !== 'literal')
          return typed(convert(concrete(operand), 'i32'));
        return operateUnary(
          pass,
          node,
          '~',
          operateUnary(pass, argument, '~', operand, argument.argument),
          argument,
        );
      }
      return operateUnary(pass, node, '~', readNumber(pass, argument), argument);
    }
    case 'void':
      perform(pass, node.argument);
      return nothing;
    default:
      return pass.fail(
        node,
        `${node.operator} has no use in a kernel: types are known when it is compiled`,
        'Leave it out.',
      );
  }
}

function callValue(pass: Pass, node: CallExpression): Value {
  if (node.optional)
    return pass.fail(
      node,
      'Optional calls have no use in a kernel: no function is null or undefined',
      'Write f(x) without ?.',
    );
  const { callee } = node;
  if (callee.type === 'Super') return unsupported(pass, callee);
  if (
    callee.type === 'Identifier' &&
    pass.frame.parsed.names.get(callee) === undefined &&
    !Object.hasOwn(freeNames, callee.name)
  )
    failIfRecursive(pass, callee, callee.name);
  // (0, gpu.f)(x) is the form in which tools write a call without an object.
  const fn = read(pass, callee.type === 'SequenceExpression' ? callee.expressions.at(-1)! : callee);
  if (fn.kind !== 'function' && fn.kind !== 'device')
    return pass.fail(
      callee,
      `${pass.code(callee)} is ${describe(fn)}, and cannot be called`,
      'Call functions of Math, of gpu, or device functions given through uses.',
    );
  const argNodes: SourceExpression[] = [];
  for (const argument of node.arguments) {
    if (argument.type === 'SpreadElement') return unsupported(pass, argument);
    argNodes.push(argument);
  }
  const readArguments = (): Value[] =>
    pass.inOrder(argNodes.map((argument) => () => read(pass, argument)));
  let args: Value[] = [];
  if (fn.kind === 'function' && fn.typesOnly === true)
    pass.collect(() => {
      args = readArguments();
    });
  else args = readArguments();
  if (fn.kind === 'device') return callDevice(pass, node, fn.name, fn.fn, args, argNodes);
  const call: Call = { pass, node, name: fn.name, args, argNodes };
  return fn.call(call);
}

function objectValue(pass: Pass, node: ObjectExpression): Value {
  const names: (string | undefined)[] = [];
  const reads: (() => Value)[] = [];
  for (const property of node.properties) {
    if (property.type !== 'Property') {
      names.push(undefined);
      reads.push(() => copied(pass, property.argument, read(pass, property.argument)));
      continue;
    }
    if (property.method || property.kind !== 'init')
      return pass.fail(
        property,
        'Structures in a kernel have no methods',
        'Give the function through uses and call gpu.name(…).',
      );
    const name =
      property.key.type === 'Identifier' && !property.computed
        ? property.key.name
        : property.key.type === 'Literal'
          ? String(property.key.value)
          : undefined;
    if (name === undefined)
      return pass.fail(
        property,
        'Names of fields have to be known when the kernel is compiled',
        'Write { x: … }.',
      );
    names.push(name);
    reads.push(() => {
      const value = read(pass, property.value);
      if (value.kind === 'struct' || value.kind === 'element')
        return fieldOf(pass, value, name, property);
      return value.kind === 'structParam' ? value : asNumber(pass, property.value, value);
    });
  }
  const values = pass.inOrder(reads);
  return {
    kind: 'struct',
    fields: new Map(
      names.flatMap((name, at) => {
        const value = values[at]!;
        return name !== undefined
          ? [[name, value]]
          : value.kind === 'struct'
            ? [...value.fields]
            : [];
      }),
    ),
  };
}

/** JavaScript's own names for operations that a kernel writes otherwise. */
const CONVERSIONS: Readonly<Record<string, string | undefined>> = {
  Number: 'Write gpu.f32(x), gpu.f64(x) or gpu.i32(x).',
  BigInt: 'Write gpu.i64(x) or gpu.u64(x).',
  Boolean: 'Compare: x !== 0.',
  parseInt: 'Write gpu.i32(x).',
  parseFloat: 'Write gpu.f32(x).',
  isNaN: 'Write x !== x.',
  isFinite: 'Write Math.abs(x) < Infinity.',
};

export const expressionRules: Rules['expressions'] = {
  Identifier: (pass, node) => {
    const declaration = pass.frame.parsed.names.get(node);
    if (declaration === undefined) {
      if (Object.hasOwn(freeNames, node.name)) return freeNames[node.name]!(pass, node);
      return pass.fail(
        node,
        `\`${node.name}\` is not defined in a kernel: its text is compiled without its ` +
          'surroundings',
        CONVERSIONS[node.name] ??
          `Give it through uses: { ${node.name} } and write gpu.${node.name}.`,
      );
    }
    const bound = pass.frame.bindings.get(declaration);
    if (bound === undefined)
      return pass.fail(
        node,
        `\`${node.name}\` is read before it has a value`,
        'Assign to it first, on every path.',
      );
    if (bound.kind === 'scalar' || bound.kind === 'fields') return readSlot(pass, bound, node);
    return bound.kind === 'number' && bound.content.is === 'literal'
      ? literal(bound.content.value, pass.span(node))
      : bound;
  },
  Literal: (pass, node) => {
    const { value } = node;
    if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') {
      if (typeof value === 'bigint' && value >= 2n ** 64n)
        return pass.fail(
          node,
          `${pass.code(node)} does not fit in 64 bits`,
          'Use a number below 2n ** 64n.',
        );
      return literal(value, pass.span(node));
    }
    if (typeof value === 'string') return { kind: 'string', value };
    return unsupported(pass, node);
  },
  TemplateLiteral: (pass, node) => {
    if (node.expressions.length > 0)
      return pass.fail(
        node,
        'Templates with values are not supported in a kernel',
        "Give console.log the parts: console.log('x', x).",
      );
    return { kind: 'string', value: node.quasis[0]?.value.cooked ?? '' };
  },
  MemberExpression: (pass, node) => member(pass, node),
  CallExpression: callValue,
  BinaryExpression: (pass, whole) => {
    const { first, rest } = leftChain(whole);
    let value: Value | undefined;
    for (const [i, node] of rest.entries()) {
      if (node.operator === 'in' || node.operator === 'instanceof')
        return pass.fail(
          node,
          `${node.operator} has no use in a kernel: types are known when it is compiled`,
          'Compare numbers.',
        );
      if (node !== whole) pass.count(node);
      const { left: leftNode, right: rightNode } = node;
      const known = value;
      const [a, b] = pass.inOrder([
        () => known ?? read(pass, first),
        () => read(pass, rightNode),
      ] as const);
      if (a.kind === 'string' || b.kind === 'string')
        return pass.fail(
          node,
          'Strings exist in console.log and console.assert only',
          "Write console.log('x', x).",
        );
      const result = operate({
        pass,
        node,
        operator: node.operator,
        left: asNumber(pass, leftNode, a),
        right: asNumber(pass, rightNode, b),
        syntax: { left: leftNode, right: rightNode },
      });
      // Later code recurses along trees: a long chain becomes several trees. A product stays where
      // it may be contracted with a sum.
      const mayEnd =
        (i + 1) % LONGEST_CHAIN === 0 &&
        node.operator !== '*' &&
        result.content.is === 'expression';
      value = mayEnd ? typed(pass.reusable(result.content.expression, 'part')) : result;
    }
    return value!;
  },
  LogicalExpression: logicalValue,
  ConditionalExpression: conditional,
  UnaryExpression: unaryValue,
  AssignmentExpression: assignment,
  UpdateExpression: update,
  SequenceExpression: (pass, node) => {
    for (const expression of node.expressions.slice(0, -1)) perform(pass, expression);
    return read(pass, node.expressions.at(-1)!);
  },
  ObjectExpression: objectValue,
  ParenthesizedExpression: (pass, node) => read(pass, node.expression),
};
