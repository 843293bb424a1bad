/**
 * A tree in a form that does not depend on how its source was put: names are left out, constants stand where they are
 * used, and the ways in which minifiers write `if` are one. Two sources that mean the same give the same lines.
 */
import { printTree } from '../../src/kernel/read/tree-text.test-support.js';
import { mapOperands } from '../../src/kernel/read/stable.js';
import type { Expression, KernelTree, Statement } from '../../src/kernel/tree.js';

export function sameTree(tree: KernelTree): string {
  const assignments = new Map<number, Expression[]>();
  collect(tree.body, assignments);
  const once = new Map([...assignments].filter(([, values]) => values.length === 1).map(([local, [value]]) => [local, value!]));
  const inline = (expression: Expression): Expression => {
    if (expression.op === 'local' && once.has(expression.local)) return inline(once.get(expression.local)!);
    if (expression.op === 'atomic') return { ...expression, place: { ...expression.place, index: inline(expression.place.index) }, operand: inline(expression.operand) };
    if (expression.op === 'shuffle') return { ...expression, value: inline(expression.value) };
    return mapOperands(expression, inline);
  };
  const effects = (expression: Expression): boolean => expression.op === 'atomic' || expression.op === 'shuffle';
  const body = tail(normal(tree.body.slice(), { inline, drop: (local) => once.has(local) && !effects(once.get(local)!) }));
  return printTree({ ...tree, body, locals: tree.locals.map((local) => ({ ...local, name: 'v' })) });
}

function collect(statements: readonly Statement[], found: Map<number, Expression[]>): void {
  for (const statement of statements) {
    if (statement.kind === 'assign') found.set(statement.local, [...(found.get(statement.local) ?? []), statement.value]);
    else if (statement.kind === 'if') [statement.then, statement.otherwise].forEach((list) => collect(list, found));
    else if (statement.kind === 'loop') [statement.body, statement.update].forEach((list) => collect(list, found));
    else if (statement.kind === 'group') collect(statement.body, found);
  }
}

interface Rules {
  readonly inline: (expression: Expression) => Expression;
  readonly drop: (local: number) => boolean;
}

const leavesHere = (statements: readonly Statement[]): boolean => ['return', 'break', 'continue'].includes(statements.at(-1)?.kind ?? '');

function normal(statements: readonly Statement[], rules: Rules): Statement[] {
  const out: Statement[] = [];
  for (const [at, statement] of statements.entries()) {
    const { inline } = rules;
    switch (statement.kind) {
      case 'assign':
        if (!rules.drop(statement.local)) out.push({ ...statement, value: inline(statement.value) });
        break;
      case 'store':
        out.push({ ...statement, place: { ...statement.place, index: inline(statement.place.index) }, value: inline(statement.value) });
        break;
      case 'evaluate':
        out.push({ ...statement, value: inline(statement.value) });
        break;
      case 'print':
        out.push({ ...statement, values: statement.values.map(inline) });
        break;
      case 'assert':
        out.push({ ...statement, test: inline(statement.test) });
        break;
      case 'loop':
        out.push({ ...statement, ...(statement.test !== undefined && { test: inline(statement.test) }), body: tail(normal(statement.body, rules), statement.id), update: normal(statement.update, rules) });
        break;
      case 'group':
        out.push({ ...statement, body: normal(statement.body, rules) });
        break;
      case 'if': {
        // What follows an early exit belongs to the other branch.
        const rest = statements.slice(at + 1);
        const [then, otherwise] = [statement.then, statement.otherwise];
        if (rest.length > 0 && leavesHere(then)) return [...out, ...branch({ ...statement, otherwise: [...otherwise, ...rest] }, rules)];
        if (rest.length > 0 && leavesHere(otherwise)) return [...out, ...branch({ ...statement, then: [...then, ...rest] }, rules)];
        out.push(...branch(statement, rules));
        break;
      }
      default: out.push(statement);
    }
  }
  return out;
}

function branch(statement: Statement & { kind: 'if' }, rules: Rules): Statement[] {
  let test = rules.inline(statement.test);
  let [then, otherwise] = [normal(statement.then, rules), normal(statement.otherwise, rules)];
  if (test.op === 'compare' && test.operator === 'ne' && otherwise.length > 0) {
    test = { ...test, operator: 'eq' };
    [then, otherwise] = [otherwise, then];
  }
  const [a, b] = [then[0], otherwise[0]];
  if (then.length === 1 && otherwise.length === 1) {
    const both = (x: Expression, y: Expression): Expression => ({ op: 'conditional', type: x.type, test, then: x, otherwise: y, span: test.span });
    if (a?.kind === 'assign' && b?.kind === 'assign' && a.local === b.local) return [{ ...a, value: both(a.value, b.value) }];
    if (a?.kind === 'store' && b?.kind === 'store' && JSON.stringify(a.place.index, skipSpans) === JSON.stringify(b.place.index, skipSpans)) return [{ ...a, value: both(a.value, b.value) }];
  }
  if (then.length === 1 && otherwise.length === 0 && a?.kind === 'if' && a.otherwise.length === 0) {
    return [{ ...a, test: { op: 'logical', operator: 'and', type: 'bool', left: test, right: a.test, span: test.span } }];
  }
  return [{ ...statement, test, then, otherwise }];
}

const skipSpans = (key: string, value: unknown): unknown => (key === 'span' ? undefined : value);

/** Without exits at the end, which change nothing: `return` of the kernel, `continue` of the loop. */
function tail(statements: Statement[], loop?: number): Statement[] {
  const last = statements.at(-1);
  if (last?.kind === 'return' && loop === undefined) return statements.slice(0, -1);
  if (last?.kind === 'continue' && last.id === loop) return statements.slice(0, -1);
  if (last?.kind === 'if') {
    const [then, otherwise] = [tail([...last.then], loop), tail([...last.otherwise], loop)];
    let { test } = last;
    if (then.length === 0 && test.op === 'compare' && test.operator === 'eq') test = { ...test, operator: 'ne' };
    else return [...statements.slice(0, -1), { ...last, then, otherwise }];
    return [...statements.slice(0, -1), { ...last, test, then: otherwise, otherwise: [] }];
  }
  return statements;
}
