/** Reads statements of the source to those of the tree, with a rule for each type of node. */
import type {
  AnyNode,
  BreakStatement,
  ContinueStatement,
  ReturnStatement,
  Statement as SourceStatement,
} from 'acorn';
import { bindPattern } from './bindings.js';
import { leaves, withoutLast } from './flow.js';
import { readLoop } from './loops.js';
import type { Pass, Rules } from './pass.js';
import { assignSlot, originsOf, slotFor } from './slots.js';
import { readSwitch } from './switches.js';
import { isPresent } from './present.js';
import { branch, perform, read, readTest, readStatements, readStatement } from './reading.js';

function leave(kind: 'break' | 'continue') {
  return (pass: Pass, node: BreakStatement | ContinueStatement): void => {
    const label = node.label?.name;
    const { targets } = pass.frame;
    const target = [...targets]
      .reverse()
      .find(({ labels, kind: of }) =>
        label !== undefined
          ? labels.includes(label)
          : of === 'loop' || (kind === 'break' && of === 'switch'),
      );
    if (target === undefined)
      return pass.fail(node, `There is nothing that this ${kind} leaves`, 'Put it into a loop.');
    pass.emit({ kind, id: target.id, span: pass.span(node) });
  };
}

function readReturn(pass: Pass, node: ReturnStatement): void {
  const span = pass.span(node);
  const { result } = pass.frame;
  if (result === undefined) {
    if (isPresent(node.argument)) performLast(pass, node.argument);
    pass.emit({ kind: 'return', span });
    return;
  }
  const value = !isPresent(node.argument) ? undefined : read(pass, node.argument);
  if (value === undefined || value.kind === 'nothing') {
    result.returnsNothing = true;
  } else {
    result.slot ??= slotFor(
      pass,
      node,
      value,
      `${pass.frame.key}#result`,
      `${pass.frame.name.replace(/^.*\./, '')}_result`,
      false,
    );
    for (const origin of originsOf(value)) result.origins.add(origin);
    result.slots.add(value.kind === 'struct' ? value.slot : undefined);
    assignSlot(pass, result.slot, value, node, `the result of ${pass.frame.name}`);
  }
  pass.emit({ kind: 'break', id: result.group, span });
}

/** Rejects a kernel's return value; `return void f()` and `=> y[i] = v` are statements. */
export function performLast(pass: Pass, node: AnyNode): void {
  if (hasNoEffect(node))
    pass.fail(
      node,
      `A kernel gives no value back: ${pass.code(node)}`,
      'Write it to a tensor: y[i] = ….',
    );
  perform(pass, node);
}

function hasNoEffect(node: AnyNode): boolean {
  switch (node.type) {
    case 'Literal':
    case 'BinaryExpression':
    case 'MemberExpression':
    case 'ObjectExpression':
      return true;
    case 'Identifier':
      return node.name !== 'undefined';
    case 'UnaryExpression':
      return node.operator !== 'void' && node.operator !== '!';
    default:
      return false;
  }
}

/**
 * Binds names to their first values. `const [h, w] = [x.shape[0], x.shape[1]]` declares each: the
 * names are new, so that no value can be another of them. Names of `var` may exist already.
 */
function declare(pass: Pass, id: AnyNode, init: AnyNode, kind: 'const' | 'let' | 'var'): void {
  if (
    id.type !== 'ArrayPattern' ||
    init.type !== 'ArrayExpression' ||
    kind === 'var' ||
    id.elements.length !== init.elements.length
  )
    return bindPattern(pass, id, read(pass, init));
  for (const [at, part] of id.elements.entries()) {
    const value = init.elements[at];
    if (!isPresent(part) || !isPresent(value) || value.type === 'SpreadElement')
      return bindPattern(pass, id, read(pass, init));
    declare(pass, part, value, kind);
  }
}

export const statementRules: Rules['statements'] = {
  EmptyStatement: () => {},
  DebuggerStatement: () => {},
  ExpressionStatement: (pass, node) => {
    if (node.directive === undefined) perform(pass, node.expression);
  },
  BlockStatement: (pass, node) => readStatements(pass, node.body),
  VariableDeclaration: (pass, node) => {
    if (node.kind !== 'var' && node.kind !== 'let' && node.kind !== 'const')
      return pass.fail(
        node,
        `${node.kind} is not supported in a kernel: there is nothing to dispose of`,
        'Write const.',
      );
    for (const { id, init } of node.declarations)
      if (isPresent(init)) declare(pass, id, init, node.kind);
  },
  ReturnStatement: readReturn,
  IfStatement: (pass, node) => {
    const { alternate } = node;
    branch(
      pass,
      node,
      readTest(pass, node.test),
      () => readStatement(pass, node.consequent),
      !isPresent(alternate) ? undefined : () => readStatement(pass, alternate),
    );
  },
  ForStatement: (pass, node, labels) => {
    if (isPresent(node.init)) {
      if (node.init.type === 'VariableDeclaration') readStatement(pass, node.init);
      else perform(pass, node.init);
    }
    readLoop(
      pass,
      node,
      {
        test: node.test ?? undefined,
        update: node.update ?? undefined,
        body: node.body,
        testAfter: false,
      },
      labels,
    );
  },
  WhileStatement: (pass, node, labels) =>
    readLoop(pass, node, { test: node.test, body: node.body, testAfter: false }, labels),
  DoWhileStatement: (pass, node, labels) =>
    readLoop(pass, node, { test: node.test, body: node.body, testAfter: true }, labels),
  SwitchStatement: (pass, node, labels) => readSwitch(pass, node, labels),
  LabeledStatement: (pass, node, labels) => {
    const all = [...labels, node.label.name];
    if (takesLabels(node.body)) {
      readStatement(pass, node.body, all);
      return;
    }
    const id = pass.newGroup();
    pass.frame.targets.push({ labels: all, id, kind: 'block' });
    const statements = withoutLast(
      pass.collect(() => readStatement(pass, node.body)),
      id,
    );
    pass.frame.targets.pop();
    if (leaves(statements, id))
      pass.emit({ kind: 'group', id, body: statements, span: pass.span(node) });
    else for (const statement of statements) pass.emit(statement);
  },
  BreakStatement: leave('break'),
  ContinueStatement: leave('continue'),
};

function takesLabels(node: SourceStatement): boolean {
  return (
    node.type === 'ForStatement' ||
    node.type === 'WhileStatement' ||
    node.type === 'DoWhileStatement' ||
    node.type === 'SwitchStatement' ||
    node.type === 'LabeledStatement'
  );
}
