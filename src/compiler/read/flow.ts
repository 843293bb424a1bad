/** Control flow: whether statements complete, and which jumps leave which group. */
import type { Statement } from '../tree.js';

type Leaving = 'break' | 'continue';

/** Whether a `break` (or `continue`) of this id is among the statements, at any depth. */
export function leaves(
  statements: readonly Statement[],
  id: number,
  kind: Leaving = 'break',
): boolean {
  return statements.some((statement) => {
    switch (statement.kind) {
      case 'break':
      case 'continue':
        return statement.kind === kind && statement.id === id;
      case 'if':
        return leaves(statement.then, id, kind) || leaves(statement.otherwise, id, kind);
      case 'loop':
        return leaves(statement.body, id, kind) || leaves(statement.update, id, kind);
      case 'group':
        return leaves(statement.body, id, kind);
      default:
        return false;
    }
  });
}

/** Whether control reaches the place after the statements. */
export function completes(statements: readonly Statement[]): boolean {
  return statements.every(completesOne);
}

export function completesOne(statement: Statement): boolean {
  switch (statement.kind) {
    case 'return':
    case 'break':
    case 'continue':
    case 'trap':
      return false;
    case 'if':
      return completes(statement.then) || completes(statement.otherwise);
    case 'group':
      return completes(statement.body) || leaves(statement.body, statement.id);
    case 'loop':
      if (leaves(statement.body, statement.id)) return true;
      if (statement.test === undefined) return false;
      return (
        !statement.testAfter ||
        completes(statement.body) ||
        leaves(statement.body, statement.id, 'continue')
      );
    default:
      return true;
  }
}

/**
 * The statements without a `break` of this id (or `continue`) at their end, where it has no effect.
 */
export function withoutLast(
  statements: readonly Statement[],
  id: number,
  kind: Leaving = 'break',
): Statement[] {
  const last = statements.at(-1);
  if (last?.kind === kind && last.id === id) return statements.slice(0, -1);
  if (last?.kind === 'if') {
    const then = withoutLast(last.then, id, kind);
    const otherwise = withoutLast(last.otherwise, id, kind);
    if (then.length < last.then.length || otherwise.length < last.otherwise.length)
      return [...statements.slice(0, -1), { ...last, then, otherwise }];
  }
  return [...statements];
}
