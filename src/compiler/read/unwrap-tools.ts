/**
 * Removes what tools add to a function's text. It matches structures and not names, because names
 * differ between versions:
 *
 * - name wrappers, `__name(function, "name")` (esbuild's keepNames, tsx): a call of a free function
 *   with a function and a string;
 * - powers, `__pow(a, b)` (esbuild, for targets before ES2016): `a ** b`, by its name, which is its
 *   only mark;
 * - loops over iterators that are closed after them, `try { for (var it = list[Symbol.iterator](),
 *   step; …) { step.value } } …` (SWC's ES5): `for (const step of list) { step }`;
 * - coverage counters, `cov_1ab2().s[3]++` (istanbul), alone, in comma expressions and in branches.
 */
import type { AnyNode, Expression, Statement } from 'acorn';
import { leftChain } from './left-chain.js';

const counters = new Set(['s', 'f', 'b', 'bT']);

/**
 * Whether a node is a counter of statements, functions or branches: `NAME().s[3]`, `NAME.b[0][1]`.
 */
export function isCounter(node: AnyNode): boolean {
  if (node.type !== 'UpdateExpression' || node.operator !== '++') return false;
  let at: AnyNode = node.argument;
  let indices = 0;
  while (
    at.type === 'MemberExpression' &&
    at.computed &&
    at.property.type === 'Literal' &&
    typeof at.property.value === 'number'
  ) {
    at = at.object;
    indices++;
  }
  if (
    indices === 0 ||
    indices > 2 ||
    at.type !== 'MemberExpression' ||
    at.computed ||
    at.property.type !== 'Identifier' ||
    !counters.has(at.property.name)
  )
    return false;
  const root: AnyNode = at.object;
  return (
    root.type === 'CallExpression' &&
    root.arguments.length === 0 &&
    root.callee.type === 'Identifier'
  );
}

const isFunction = (node: AnyNode | undefined): boolean =>
  node?.type === 'ArrowFunctionExpression' ||
  node?.type === 'FunctionExpression' ||
  node?.type === 'ClassExpression';
const isText = (node: AnyNode | undefined): boolean =>
  node?.type === 'Literal' && typeof node.value === 'string';

/** Gives the node's replacement. */
function unwrapped(node: AnyNode): AnyNode {
  switch (node.type) {
    case 'CallExpression': {
      const [wrapped, name] = node.arguments;
      if (
        node.callee.type === 'Identifier' &&
        /^__pow\d*$/.test(node.callee.name) &&
        node.arguments.length === 2 &&
        node.arguments.every((each) => each.type !== 'SpreadElement')
      ) {
        return {
          type: 'BinaryExpression',
          operator: '**',
          left: wrapped as Expression,
          right: name as Expression,
          start: node.start,
          end: node.end,
        };
      }
      if (
        node.callee.type === 'Identifier' &&
        node.arguments.length === 2 &&
        isFunction(wrapped) &&
        isText(name)
      )
        return wrapped!;
      return node;
    }
    case 'TryStatement':
      return iteration(node.block.body) ?? node;
    case 'SequenceExpression': {
      const kept = node.expressions.filter((expression) => !isCounter(expression));
      if (kept.length === node.expressions.length || kept.length === 0) return node;
      return kept.length === 1 ? kept[0]! : { ...node, expressions: kept };
    }
    case 'ExpressionStatement': {
      const { expression } = node;
      const empty =
        isCounter(expression) ||
        (expression.type === 'SequenceExpression' && expression.expressions.every(isCounter)) ||
        isNaming(expression);
      return empty ? { type: 'EmptyStatement', start: node.start, end: node.end } : node;
    }
    default:
      return node;
  }
}

/** The loop in a `try` that closes its iterator. */
function iteration([loop, ...others]: readonly AnyNode[]): AnyNode | undefined {
  if (
    loop?.type !== 'ForStatement' ||
    others.length > 0 ||
    loop.init?.type !== 'VariableDeclaration'
  )
    return undefined;
  const [iterator, step, ...further] = [...loop.init.declarations].sort(
    (a, b) => Number(Boolean(b.init)) - Number(Boolean(a.init)),
  );
  const call = iterator?.init;
  if (
    step === undefined ||
    step.init ||
    step.id.type !== 'Identifier' ||
    further.length > 0 ||
    call?.type !== 'CallExpression' ||
    call.callee.type !== 'MemberExpression'
  )
    return undefined;
  const { object: list, property, computed } = call.callee;
  if (
    !computed ||
    list.type === 'Super' ||
    property.type !== 'MemberExpression' ||
    property.property.type !== 'Identifier' ||
    property.property.name !== 'iterator'
  )
    return undefined;
  const { start, end } = loop;
  return {
    type: 'ForOfStatement',
    await: false,
    right: list,
    body: withoutValue(loop.body, step.id.name) as Statement,
    start,
    end,
    left: {
      type: 'VariableDeclaration',
      kind: 'const',
      declarations: [step],
      start: step.start,
      end: step.end,
    },
  };
}

/** Replaces `NAME.value` by `NAME`. */
function withoutValue(node: AnyNode, name: string): AnyNode {
  if (
    node.type === 'MemberExpression' &&
    node.object.type === 'Identifier' &&
    node.object.name === name &&
    node.property.type === 'Identifier' &&
    node.property.name === 'value'
  )
    return node.object;
  return mapChildren(node, (child) => withoutValue(child, name));
}

/** `__name(declared, "declared");` after a function's declaration. */
function isNaming(node: Expression): boolean {
  const [named, name] =
    node.type === 'CallExpression' &&
    node.callee.type === 'Identifier' &&
    node.arguments.length === 2
      ? node.arguments
      : [];
  return named?.type === 'Identifier' && name?.type === 'Literal' && name.value === named.name;
}

/** Removes what tools added; it changes the nodes that it is given. */
export function unwrapTools(node: AnyNode): AnyNode {
  if (node.type !== 'BinaryExpression') return unwrapped(mapChildren(node, unwrapTools));
  const { first, rest } = leftChain(node);
  let left = unwrapTools(first);
  for (const each of rest) {
    each.left = left as Expression;
    each.right = unwrapTools(each.right) as Expression;
    left = unwrapped(each);
  }
  return left;
}

/** Gives the node with others as its children. */
function mapChildren(node: AnyNode, map: (child: AnyNode) => AnyNode): AnyNode {
  const fields = node as unknown as Record<string, unknown>;
  for (const [key, value] of Object.entries(fields)) {
    if (Array.isArray(value)) {
      fields[key] = value.map((child: unknown) => (isNode(child) ? map(child) : child));
    } else if (isNode(value)) {
      fields[key] = map(value);
    }
  }
  return node;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && typeof (value as AnyNode).type === 'string';
}
