/** The children of the tree's nodes. */
import { operandExpressions } from '../tree.js';
import type { Expression, Statement } from '../tree.js';

type Part<K extends Expression['op']> = (
  node: Extract<Expression, { op: K }>,
) => readonly Expression[];

/**
 * Operands in the order in which they are evaluated. The statements of a `block` are not among
 * them.
 */
const CHILDREN: { readonly [K in Expression['op']]: Part<K> } = {
  constant: () => [],
  local: () => [],
  abi: () => [],
  special: () => [],
  unary: (node) => [node.operand],
  binary: (node) => [node.left, node.right],
  fma: (node) => [node.a, node.b, node.c],
  compare: (node) => [node.left, node.right],
  logical: (node) => [node.left, node.right],
  conditional: (node) => [node.test, node.then, node.otherwise],
  convert: (node) => [node.operand],
  narrow: (node) => [node.operand],
  bitcast: (node) => [node.operand],
  approximate: (node) => node.operands,
  load: (node) => [node.place.index],
  atomic: (node) =>
    node.compare === undefined
      ? [node.place.index, node.operand]
      : [node.place.index, node.compare, node.operand],
  shuffle: (node) => [node.value, node.lane, node.mask],
  vote: (node) => [node.predicate, node.mask],
  match: (node) => [node.value, node.mask],
  activemask: () => [],
  barrierReduce: (node) => [node.predicate],
  block: (node) => [node.value],
};

export function children(node: Expression): readonly Expression[] {
  return (CHILDREN[node.op] as (node: Expression) => readonly Expression[])(node);
}

/** Expressions of a statement itself, not of the statements inside of it. */
export function expressionsOf(node: Statement): readonly Expression[] {
  switch (node.kind) {
    case 'assign':
    case 'evaluate':
      return [node.value];
    case 'store':
      return [node.place.index, node.value];
    case 'if':
    case 'assert':
      return [node.test];
    case 'loop':
      return node.test === undefined ? [] : [node.test];
    case 'barrier':
      return node.of === 'warp' ? [node.mask] : [];
    case 'matrixProduct':
      return [node.sum.index, node.a.index, node.b.index];
    case 'loadMatrices':
      return [node.to.index, node.from.index];
    case 'copyAsync':
      return [node.to.index, node.from.index, ...(node.given === undefined ? [] : [node.given])];
    case 'instruction':
      return operandExpressions(node.operands);
    case 'print':
      return node.values;
    default:
      return [];
  }
}

/** Lists of statements inside of a statement. */
export function listsOf(node: Statement): readonly (readonly Statement[])[] {
  switch (node.kind) {
    case 'if':
      return [node.then, node.otherwise];
    case 'loop':
      return [node.body, node.update];
    case 'group':
      return [node.body];
    default:
      return [];
  }
}

export interface Visitor {
  expression?(node: Expression, inLoop: boolean): void;
  statement?(node: Statement, inLoop: boolean): void;
}

/** Visits every statement and expression, outer ones first. */
export function walk(statements: readonly Statement[], visitor: Visitor, inLoop = false): void {
  const expression = (node: Expression, looped: boolean): void => {
    visitor.expression?.(node, looped);
    if (node.op === 'block') walk(node.statements, visitor, looped);
    children(node).forEach((child) => {
      expression(child, looped);
    });
  };
  for (const node of statements) {
    visitor.statement?.(node, inLoop);
    const looped = inLoop || node.kind === 'loop';
    expressionsOf(node).forEach((each) => {
      expression(each, looped);
    });
    listsOf(node).forEach((list) => {
      walk(list, visitor, looped);
    });
  }
}
