/** From expressions of the source to values. A row for each kind of node. */
import type {
  AnyNode,
  CallExpression,
  ConditionalExpression,
  Expression as SourceExpression,
  LogicalExpression,
  ObjectExpression,
  UnaryExpression,
} from 'acorn';
import type { Expression } from '../tree.js';
import { assignment, update } from './assignments.js';
import type { Call } from './calls.js';
import { callDevice, failIfRecursive } from './device-functions.js';
import { leftChain } from './left-chain.js';
import { member } from './members.js';
import { convert, logical, not } from './nodes.js';
import { checkMeeting, literal, operate, operateUnary, truth } from './operators.js';
import type { Pass } from './pass.js';
import {
  assignSlot,
  copied,
  fieldOf,
  originsOf,
  readSlot,
  readTemporary,
  slotFor,
} from './slots.js';
import { isFloat, isWide, join, settled } from './types.js';
import { unsupported } from './unsupported.js';
import { isCounter } from './unwrap-tools.js';
import {
  concrete,
  describe,
  nothing,
  typed,
  type NumberValue,
  type Slot,
  type Value,
} from './values.js';

type Of<Type extends AnyNode['type']> = Extract<AnyNode, { type: Type }>;
type Rows = { readonly [Type in AnyNode['type']]?: (pass: Pass, node: Of<Type>) => Value };

/** Operators behind each other that become one tree. */
const LONGEST_CHAIN = 200;

/** Names that are there without being declared. */
export const freeNames: Readonly<Record<string, (pass: Pass, node: AnyNode) => Value>> = {
  undefined: () => nothing,
  NaN: (pass, node) => literal(NaN, pass.span(node)),
  Infinity: (pass, node) => literal(Infinity, pass.span(node)),
  Math: () => ({ kind: 'namespace', path: 'Math' }),
  console: () => ({ kind: 'namespace', path: 'console' }),
};

/** The value of an expression. What it does besides is emitted. */
export function read(pass: Pass, node: AnyNode): Value {
  pass.count(node);
  const row = rows[node.type] as ((pass: Pass, node: AnyNode) => Value) | undefined;
  return row === undefined ? unsupported(pass, node) : row(pass, node);
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
  // The parameter behind those that a call gives is the function's own gpu.
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

/** Whether a condition is known at compile time, and what it is. */
export function knownTest(test: Expression): boolean | undefined {
  return test.op === 'constant' ? Boolean(test.value) : undefined;
}

/** Reads for what it does; the value is dropped. */
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
      assignment(pass, node, false);
      return;
    case 'UpdateExpression':
      // Minifiers make counters of coverage into sides of expressions.
      if (!isCounter(node)) update(pass, node, false);
      return;
    default:
  }
  read(pass, node);
}

/** `if`, with what is known left out, and with no test that begins with `not`. */
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

/** A value that comes from one of two sides. */
function either(
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
  checkMeeting(pass, node, [then, otherwise], settled(level));
  return typed(concrete(value));
}

function conditional(pass: Pass, node: ConditionalExpression): Value {
  const test = readTest(pass, node.test);
  const known = knownTest(test);
  if (known !== undefined) return read(pass, known ? node.consequent : node.alternate);
  // The test comes first, whatever the sides do.
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
      // Of more than two in a row, the two innermost make the integer.
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
      'Optional calls have no use in a kernel: every function is there',
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
  // (0, gpu.f)(x): what tools write for a call without an object.
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

/** JavaScript's own names for what a kernel writes otherwise. */
const CONVERSIONS: Readonly<Record<string, string | undefined>> = {
  Number: 'Write gpu.f32(x), gpu.f64(x) or gpu.i32(x).',
  BigInt: 'Write gpu.i64(x) or gpu.u64(x).',
  Boolean: 'Compare: x !== 0.',
  parseInt: 'Write gpu.i32(x).',
  parseFloat: 'Write gpu.f32(x).',
  isNaN: 'Write x !== x.',
  isFinite: 'Write Math.abs(x) < Infinity.',
};

const rows: Rows = {
  Identifier: (pass, node) => {
    const declaration = pass.frame.parsed.names.get(node);
    if (declaration === undefined) {
      if (Object.hasOwn(freeNames, node.name)) return freeNames[node.name]!(pass, node);
      return pass.fail(
        node,
        `\`${node.name}\` is not known in a kernel: its text is compiled without what is around it`,
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
        'Templates with values are not known in a kernel',
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
      // What follows reads trees with calls of its own: a long chain becomes several. A product
      // stays where it may be rounded once with a sum.
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
  AssignmentExpression: (pass, node) => assignment(pass, node, true),
  UpdateExpression: (pass, node) => update(pass, node, true),
  SequenceExpression: (pass, node) => {
    for (const expression of node.expressions.slice(0, -1)) perform(pass, expression);
    return read(pass, node.expressions.at(-1)!);
  },
  ObjectExpression: objectValue,
  ParenthesizedExpression: (pass, node) => read(pass, node.expression),
};
