/** Test only: removes the parts of a tree that a failure does not need. */
import type { Expression, KernelTree, Statement, ValueType } from '../../../src/compiler/tree.js';
import { children, walk } from '../../../src/compiler/simulate/walk.js';

const ZEROS: Readonly<Record<ValueType, number | bigint | boolean>> = {
  bool: false,
  i32: 0,
  u32: 0,
  i64: 0n,
  u64: 0n,
  f32: 0,
  f64: 0,
};

/** The nth node of the tree, replaced by each of `variants`. */
interface Edit {
  at: number;
  variant: number;
}

/**
 * A copy with one thing left out; undefined where there is no such thing. `more`: another variant
 * of the same node follows.
 */
function edited(
  tree: KernelTree,
  edit: Edit,
): { tree: KernelTree; changed: boolean; nodes: number } {
  let count = -1;
  let changed = false;
  const counting = countedWith(tree);
  const expression = (node: Expression): Expression => {
    count++;
    if (count === edit.at) {
      const candidates: Expression[] = [
        ...(node.op === 'constant'
          ? []
          : [
              {
                op: 'constant',
                type: node.type,
                value: ZEROS[node.type],
                span: node.span,
              } as Expression,
            ]),
        ...children(node).filter((child) => child.type === node.type),
      ];
      const candidate = candidates[edit.variant];
      if (candidate !== undefined) {
        changed = true;
        return candidate;
      }
    }
    return mapped(node);
  };
  const mapped = (node: Expression): Expression => {
    const copy: Record<string, unknown> = { ...node };
    for (const [key, value] of Object.entries(node)) {
      if (typeof value === 'object' && value !== null && 'op' in value && 'type' in value)
        copy[key] = expression(value as Expression);
    }
    if ('place' in node) copy['place'] = { ...node.place, index: expression(node.place.index) };
    if (node.op === 'block') copy['statements'] = list(node.statements);
    if (node.op === 'approximate') copy['operands'] = node.operands.map(expression);
    return copy as unknown as Expression;
  };
  const list = (nodes: readonly Statement[]): Statement[] =>
    nodes.flatMap((node) => {
      // The counter of a loop stays as it is: a loop without end gives no result.
      if (node.kind === 'assign' && counting.has(node.local)) return [node];
      count++;
      if (count === edit.at) {
        const inside =
          node.kind === 'if'
            ? [[], node.then, node.otherwise]
            : node.kind === 'group' || node.kind === 'loop'
              ? [[], node.body]
              : [[]];
        const replaced = inside[edit.variant];
        if (replaced !== undefined) {
          changed = true;
          return [...replaced];
        }
      }
      return [statement(node)];
    });
  const statement = (node: Statement): Statement => {
    const copy: Record<string, unknown> = { ...node };
    for (const [key, value] of Object.entries(node)) {
      if (
        node.kind !== 'loop' &&
        typeof value === 'object' &&
        value !== null &&
        'op' in value &&
        'type' in value
      )
        copy[key] = expression(value as Expression);
    }
    if (node.kind === 'store')
      copy['place'] = { ...node.place, index: expression(node.place.index) };
    if (node.kind === 'if') {
      copy['then'] = list(node.then);
      copy['otherwise'] = list(node.otherwise);
    }
    // A loop's test and update stay, for the same reason.
    if (node.kind === 'loop' || node.kind === 'group') copy['body'] = list(node.body);
    return copy as unknown as Statement;
  };
  const body = list(tree.body);
  return { tree: { ...tree, body }, changed, nodes: count + 1 };
}

/** Variables that tests of loops read. */
function countedWith(tree: KernelTree): ReadonlySet<number> {
  const found = new Set<number>();
  const read = (node: Expression): void => {
    if (node.op === 'local') found.add(node.local);
    children(node).forEach(read);
  };
  walk(tree.body, {
    statement: (node) => {
      if (node.kind === 'loop' && node.test !== undefined) read(node.test);
    },
  });
  return found;
}

/**
 * Whether every jump is inside of what it leaves, and every variable that is read is assigned
 * somewhere before.
 */
function isWhole(tree: KernelTree): boolean {
  const assigned = new Set<number>();
  let whole = true;
  const around: number[] = [];
  const statements = (nodes: readonly Statement[]): void => {
    for (const node of nodes) {
      walkOne(node);
    }
  };
  const expression = (node: Expression): void => {
    if (node.op === 'block') statements(node.statements);
    children(node).forEach(expression);
    if (node.op === 'local' && !assigned.has(node.local)) whole = false;
  };
  const walkOne = (node: Statement): void => {
    if ((node.kind === 'break' || node.kind === 'continue') && !around.includes(node.id))
      whole = false;
    for (const value of Object.values(node) as unknown[]) {
      if (typeof value === 'object' && value !== null && 'op' in value && 'type' in value)
        expression(value as Expression);
    }
    if (node.kind === 'store') expression(node.place.index);
    if (node.kind === 'assign') assigned.add(node.local);
    if (node.kind === 'if') {
      // A variable that only one side assigns is undefined after it.
      const before = new Set(assigned);
      statements(node.then);
      const then = new Set(assigned);
      for (const local of then) if (!before.has(local)) assigned.delete(local);
      statements(node.otherwise);
      for (const local of assigned)
        if (!before.has(local) && !then.has(local)) assigned.delete(local);
    }
    if (node.kind === 'loop' || node.kind === 'group') {
      const before = new Set(assigned);
      around.push(node.id);
      statements(node.body);
      around.pop();
      for (const local of assigned) if (!before.has(local)) assigned.delete(local);
    }
  };
  statements(tree.body);
  return whole;
}

const size = (tree: KernelTree): number => {
  let nodes = 0;
  walk(tree.body, {
    expression: () => {
      nodes++;
    },
    statement: () => {
      nodes++;
    },
  });
  return nodes;
};

/** The smallest tree found that still `fails`. */
export function smallestTree(tree: KernelTree, fails: (tree: KernelTree) => boolean): KernelTree {
  let best = tree;
  for (let again = true; again;) {
    again = false;
    for (let at = 0; at < edited(best, { at: -1, variant: 0 }).nodes; at++) {
      for (let variant = 0; variant < 4; variant++) {
        const { tree: candidate, changed } = edited(best, { at, variant });
        if (!changed) break;
        if (size(candidate) >= size(best) || !isWhole(candidate) || !failsSafely(candidate, fails))
          continue;
        best = candidate;
        again = true;
        variant = -1;
      }
    }
  }
  return best;
}

function failsSafely(tree: KernelTree, fails: (tree: KernelTree) => boolean): boolean {
  try {
    return fails(tree);
  } catch {
    return false;
  }
}
