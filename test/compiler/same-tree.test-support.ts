/**
 * A tree in a form that does not depend on how its source was written: names are left out,
 * constants replace their names, and all forms in which minifiers write `if` become one. Two
 * sources that mean the same give the same lines.
 */
import { printTree } from '../../src/compiler/read/tree-text.test-support.js';
import { mapOperands } from '../../src/compiler/read/stable.js';
import type { Expression, KernelTree, Statement } from '../../src/compiler/tree.js';

export function sameTree(tree: KernelTree): string {
  const assignments = new Map<number, Expression[]>();
  collect(tree.body, assignments);
  const once = new Map(
    [...assignments]
      .filter(([, values]) => values.length === 1)
      .map(([local, [value]]) => [local, value!]),
  );
  const inline = (expression: Expression): Expression => {
    if (expression.op === 'local' && once.has(expression.local))
      return inline(once.get(expression.local)!);
    if (expression.op === 'atomic')
      return {
        ...expression,
        place: { ...expression.place, index: inline(expression.place.index) },
        operand: inline(expression.operand),
      };
    if (expression.op === 'shuffle') return { ...expression, value: inline(expression.value) };
    return constantsLast(mapOperands(expression, inline));
  };
  const effects = (expression: Expression): boolean =>
    expression.op === 'atomic' || expression.op === 'shuffle';
  const body = tail(
    normal(tree.body.slice(), {
      inline,
      drop: (local) => once.has(local) && !effects(once.get(local)!),
    }),
  );
  return printTree({
    ...tree,
    body,
    locals: tree.locals.map((local) => ({ ...local, name: 'v' })),
  });
}

const turned = { lt: 'gt', le: 'ge', gt: 'lt', ge: 'le', eq: 'eq', ne: 'ne' } as const;

/** Minifiers put constants first: 2 * x, 12 === v. The results are the same. */
function constantsLast(expression: Expression): Expression {
  // c ? 1 : 0 is +c.
  if (
    expression.op === 'conditional' &&
    isConstant(expression.then, 1) &&
    isConstant(expression.otherwise, 0)
  )
    return {
      op: 'convert',
      type: expression.type,
      operand: expression.test,
      span: expression.span,
    };
  if (expression.op === 'fma' && expression.a.op === 'constant')
    return { ...expression, a: expression.b, b: expression.a };
  if (expression.op !== 'binary' && expression.op !== 'compare') return expression;
  const { left, right } = expression;
  if (left.op !== 'constant' || right.op === 'constant') return expression;
  if (expression.op === 'compare')
    return { ...expression, operator: turned[expression.operator], left: right, right: left };
  return ['add', 'mul', 'and', 'or', 'xor'].includes(expression.operator)
    ? { ...expression, left: right, right: left }
    : expression;
}

const isConstant = (expression: Expression, value: number): boolean =>
  expression.op === 'constant' && expression.value === value;

/** The opposite, with `not` as far inside as it goes. */
function opposite(test: Expression): Expression {
  if (test.op === 'unary' && test.operator === 'not') return test.operand;
  if (test.op === 'compare' && (test.operator === 'eq' || test.operator === 'ne'))
    return { ...test, operator: test.operator === 'eq' ? 'ne' : 'eq' };
  if (test.op === 'logical')
    return {
      ...test,
      operator: test.operator === 'and' ? 'or' : 'and',
      left: opposite(test.left),
      right: opposite(test.right),
    };
  return { op: 'unary', operator: 'not', type: 'bool', operand: test, span: test.span };
}

function collect(statements: readonly Statement[], found: Map<number, Expression[]>): void {
  for (const statement of statements) {
    if (statement.kind === 'assign')
      found.set(statement.local, [...(found.get(statement.local) ?? []), statement.value]);
    else if (statement.kind === 'if')
      [statement.then, statement.otherwise].forEach((list) => collect(list, found));
    else if (statement.kind === 'loop')
      [statement.body, statement.update].forEach((list) => collect(list, found));
    else if (statement.kind === 'group') collect(statement.body, found);
  }
}

interface Rules {
  readonly inline: (expression: Expression) => Expression;
  readonly drop: (local: number) => boolean;
}

const leavesHere = (statements: readonly Statement[]): boolean =>
  ['return', 'break', 'continue'].includes(statements.at(-1)?.kind ?? '');

function normal(statements: readonly Statement[], rules: Rules): Statement[] {
  const out: Statement[] = [];
  for (const [at, statement] of statements.entries()) {
    const { inline } = rules;
    switch (statement.kind) {
      case 'assign':
        if (!rules.drop(statement.local))
          out.push({ ...statement, value: inline(statement.value) });
        break;
      case 'store':
        out.push({
          ...statement,
          place: { ...statement.place, index: inline(statement.place.index) },
          value: inline(statement.value),
        });
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
        out.push({
          ...statement,
          ...(statement.test !== undefined && { test: inline(statement.test) }),
          body: tail(normal(statement.body, rules), statement.id),
          update: normal(statement.update, rules),
        });
        break;
      case 'group':
        out.push({ ...statement, body: normal(statement.body, rules) });
        break;
      case 'if': {
        // What follows an early exit belongs to the other branch.
        const rest = statements.slice(at + 1);
        const [then, otherwise] = [statement.then, statement.otherwise];
        if (rest.length > 0 && leavesHere(then))
          return [...out, ...branch({ ...statement, otherwise: [...otherwise, ...rest] }, rules)];
        if (rest.length > 0 && leavesHere(otherwise))
          return [...out, ...branch({ ...statement, then: [...then, ...rest] }, rules)];
        out.push(...branch(statement, rules));
        break;
      }
      default:
        out.push(statement);
    }
  }
  return out;
}

function branch(statement: Statement & { kind: 'if' }, rules: Rules): Statement[] {
  let test = rules.inline(statement.test);
  let [then, otherwise] = [normal(statement.then, rules), normal(statement.otherwise, rules)];
  if (
    then.length === 0 ||
    (test.op === 'compare' && test.operator === 'ne' && otherwise.length > 0)
  ) {
    test = opposite(test);
    [then, otherwise] = [otherwise, then];
  }
  const [a, b] = [then[0], otherwise[0]];
  if (then.length === 1 && otherwise.length === 1) {
    const both = (x: Expression, y: Expression): Expression => ({
      op: 'conditional',
      type: x.type,
      test,
      then: x,
      otherwise: y,
      span: test.span,
    });
    if (a?.kind === 'assign' && b?.kind === 'assign' && a.local === b.local)
      return [{ ...a, value: both(a.value, b.value) }];
    if (
      a?.kind === 'store' &&
      b?.kind === 'store' &&
      JSON.stringify(a.place.index, skipSpans) === JSON.stringify(b.place.index, skipSpans)
    )
      return [{ ...a, value: both(a.value, b.value) }];
  }
  if (then.length === 1 && otherwise.length === 0 && a?.kind === 'if' && a.otherwise.length === 0) {
    return [
      {
        ...a,
        test: {
          op: 'logical',
          operator: 'and',
          type: 'bool',
          left: test,
          right: a.test,
          span: test.span,
        },
      },
    ];
  }
  return [{ ...statement, test, then, otherwise }];
}

const skipSpans = (key: string, value: unknown): unknown => (key === 'span' ? undefined : value);

/**
 * Without exits at the end, which change nothing: `return` of the kernel, `continue` of the loop.
 */
function tail(statements: Statement[], loop?: number): Statement[] {
  const last = statements.at(-1);
  if (last?.kind === 'return' && loop === undefined) return statements.slice(0, -1);
  if (last?.kind === 'continue' && last.id === loop) return statements.slice(0, -1);
  if (last?.kind === 'if') {
    const [then, otherwise] = [tail([...last.then], loop), tail([...last.otherwise], loop)];
    const turnedAround =
      then.length === 0
        ? { ...last, test: opposite(last.test), then: otherwise, otherwise: [] }
        : { ...last, then, otherwise };
    return [...statements.slice(0, -1), turnedAround];
  }
  return statements;
}
