/** Conditions, as a branch or as a `select` of values that are cheap to compute in any case. */
import type { Expression } from '../tree.js';
import type { Builder } from './builder.js';
import type { RegisterType, Value } from './function.js';
import { pureOperations } from './operations.js';

/** The cost of computing a node speculatively; undefined where it must not be computed so. */
function speculationCost(node: Expression): number | undefined {
  const sum = (...nodes: readonly Expression[]): number | undefined => {
    let total = 0;
    for (const one of nodes) {
      const cost = speculationCost(one);
      if (cost === undefined) return undefined;
      total += cost;
    }
    return total;
  };
  const plus = (cost: number, ...nodes: readonly Expression[]): number | undefined => {
    const inner = sum(...nodes);
    return inner === undefined ? undefined : inner + cost;
  };
  switch (node.op) {
    case 'constant':
    case 'local':
    case 'abi':
      return 0;
    case 'special':
      return node.name === 'clock' || node.name === 'globaltimer' ? undefined : 1;
    case 'unary':
      return plus(pureOperations[node.operator]!.cost, node.operand);
    case 'binary':
      return plus(pureOperations[node.operator]!.cost, node.left, node.right);
    case 'fma':
      return plus(1, node.a, node.b, node.c);
    case 'compare':
    case 'logical':
      return plus(1, node.left, node.right);
    case 'conditional':
      return plus(1, node.test, node.then, node.otherwise);
    case 'convert':
      return plus(1, node.operand);
    case 'bitcast':
      return plus(1, node.operand);
    default:
      return undefined;
  }
}

/**
 * Whether computing the node always is cheaper than a branch: it has few operations, and none reads
 * memory.
 */
export function isCheap(node: Expression): boolean {
  const cost = speculationCost(node);
  return cost !== undefined && cost <= 6;
}

/** Branches to one block where the value is true, to the other where it is false. */
export function branchOn(
  b: Builder,
  test: Expression,
  then: ReturnType<Builder['newBlock']>,
  otherwise: ReturnType<Builder['newBlock']>,
): void {
  if (test.op === 'unary' && test.operator === 'not') {
    branchOn(b, test.operand, otherwise, then);
    return;
  }
  if (test.op === 'logical' && !isCheap(test.right)) {
    const further = b.newBlock();
    if (test.operator === 'and') branchOn(b, test.left, further, otherwise);
    else branchOn(b, test.left, then, further);
    b.enterIfReached(further);
    if (b.reachable) branchOn(b, test.right, then, otherwise);
    return;
  }
  b.branch(b.value(test), then, otherwise);
}

export function buildChoice(
  b: Builder,
  type: RegisterType,
  test: Expression,
  then: () => Value,
  otherwise: () => Value,
): Value {
  const [first, second, join] = [b.newBlock(), b.newBlock(), b.newBlock()];
  branchOn(b, test, first, second);
  const values: Value[] = [];
  for (const [block, side] of [
    [first, then],
    [second, otherwise],
  ] as const) {
    b.enterIfReached(block);
    if (!b.reachable) continue;
    const value = side();
    const before = join.before.length;
    b.jump(join);
    if (join.before.length > before) values.push(value);
  }
  b.enterIfReached(join);
  if (!b.reachable || values.length === 0) return b.f.undefinedOf(type);
  if (values.length === 1 || values[0] === values[1]) return values[0]!;
  const phi = b.phi(join, type);
  phi.args = values;
  return phi;
}
