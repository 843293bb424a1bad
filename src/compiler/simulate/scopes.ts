/**
 * The place where each variable of a kernel is declared in the generated JavaScript: the innermost
 * list of statements that holds all its mentions. That list is valid because every variable is
 * assigned before it is read on every path; and it keeps `const` and `let` where the user wrote
 * them.
 */
import type { Expression, KernelTree, Statement } from '../tree.js';
import { children, expressionsOf, listsOf, walk } from './walk.js';

type List = readonly Statement[];

interface Scope {
  readonly list: List;
  readonly parent: Scope | undefined;
  /** The index of the statement of the parent's list that this is in. */
  readonly index: number;
  readonly depth: number;
}

interface Mentions {
  scope: Scope;
  /** The scope of the first mention, and the index of its statement. */
  first: Scope;
  index: number;
  /** The last statement of `scope` that mentions it. */
  last: number;
}

export interface Declaration {
  /** The list, and the statement in it before which, or by which, the variable is declared. */
  readonly list: List;
  readonly index: number;
  /** Whether the statement is the variable's first assignment. */
  readonly byAssignment: boolean;
  /** The last statement of the list that mentions it. */
  readonly last: number;
  /** The lists that contain this one, itself included: they show whether two scopes overlap. */
  readonly within: ReadonlySet<List>;
}

export function declarationsOf(tree: KernelTree): readonly (Declaration | undefined)[] {
  const found: (Mentions | undefined)[] = tree.locals.map(() => undefined);

  const mention = (local: number, scope: Scope, index: number): void => {
    const known = found[local];
    if (known === undefined) {
      found[local] = { scope, first: scope, index, last: index };
      return;
    }
    let [a, b, indexB] = [known.scope, scope, index];
    let { last } = known;
    while (a !== b) {
      if (a.depth >= b.depth && a.depth > 0) {
        last = a.index;
        a = a.parent!;
      } else {
        indexB = b.index;
        b = b.parent!;
      }
    }
    known.scope = a;
    known.last = Math.max(last, indexB);
  };

  const expression = (node: Expression, scope: Scope, index: number): void => {
    if (node.op === 'local') mention(node.local, scope, index);
    if (node.op === 'block')
      node.statements.forEach((each) => {
        statement(each, scope, index);
      });
    children(node).forEach((child) => {
      expression(child, scope, index);
    });
  };
  const statement = (node: Statement, scope: Scope, index: number): void => {
    expressionsOf(node).forEach((each) => {
      expression(each, scope, index);
    });
    if (node.kind === 'assign') mention(node.local, scope, index);
    // A loop's update may be in its head, where nothing can be declared.
    if (node.kind === 'loop')
      node.update.forEach((each) => {
        statement(each, scope, index);
      });
    for (const nested of node.kind === 'loop' ? [node.body] : listsOf(node))
      list(nested, scope, index);
  };
  const list = (statements: List, parent: Scope | undefined, index: number): void => {
    const scope: Scope = {
      list: statements,
      parent,
      index,
      depth: parent === undefined ? 0 : parent.depth + 1,
    };
    statements.forEach((each, position) => {
      statement(each, scope, position);
    });
  };
  list(tree.body, undefined, 0);

  return found.map((mentions, local) => {
    if (mentions === undefined) return undefined;
    const { scope, last } = mentions;
    let { first, index } = mentions;
    while (first !== scope) {
      ({ index } = first);
      first = first.parent!;
    }
    const statement = scope.list[index]!;
    const within = new Set<List>();
    for (let each: Scope | undefined = scope; each !== undefined; each = each.parent)
      within.add(each.list);
    return {
      list: scope.list,
      index,
      byAssignment:
        statement.kind === 'assign' &&
        statement.local === local &&
        !isMentioned(statement.value, local),
      last,
      within,
    };
  });
}

function isMentioned(value: Expression, local: number): boolean {
  let found = false;
  walk([{ kind: 'evaluate', value, span: value.span }], {
    expression: (node) => {
      found ||= node.op === 'local' && node.local === local;
    },
    statement: (node) => {
      found ||= node.kind === 'assign' && node.local === local;
    },
  });
  return found;
}
