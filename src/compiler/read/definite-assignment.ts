/** Checks that every variable has a value on every path to where it is read. */
import { operandExpressions } from '../tree.js';
import type { Expression, Span, Statement } from '../tree.js';

/** Locals that have a value; undefined where control never reaches. */
type State = Set<number> | undefined;

const meet = (a: State, b: State): State => {
  if (a === undefined) return b;
  if (b === undefined || a === b) return a;
  return new Set([...a].filter((local) => b.has(local)));
};

/** Calls `report` with the first read of a local that may have no value. */
export function checkAssigned(
  statements: readonly Statement[],
  report: (local: number, span: Span) => never,
): void {
  new Checker(report).run(statements, new Set());
}

class Checker {
  readonly #report: (local: number, span: Span) => never;
  /** The state where each group or loop is left, and where its iterations end. */
  readonly #breaks = new Map<number, State>();
  readonly #continues = new Map<number, State>();

  constructor(report: (local: number, span: Span) => never) {
    this.#report = report;
  }

  /** Checks a list of statements; it adds to a set of its own. */
  run(statements: readonly Statement[], from: State): State {
    let state = from === undefined ? undefined : new Set(from);
    for (const statement of statements) {
      if (state === undefined) return undefined;
      state = this.#one(statement, state);
    }
    return state;
  }

  #one(statement: Statement, state: Set<number>): State {
    switch (statement.kind) {
      case 'assign':
        this.#reads(statement.value, state);
        return state.add(statement.local);
      case 'if': {
        this.#reads(statement.test, state);
        return meet(this.run(statement.then, state), this.run(statement.otherwise, state));
      }
      case 'group': {
        const end = this.run(statement.body, state);
        return meet(end, this.#breaks.get(statement.id));
      }
      case 'loop': {
        if (!statement.testAfter && statement.test !== undefined)
          this.#reads(statement.test, state);
        const end = meet(this.run(statement.body, state), this.#continues.get(statement.id));
        const updated = this.run(statement.update, end);
        const broken = this.#breaks.get(statement.id);
        if (statement.test === undefined) return broken;
        if (!statement.testAfter) return meet(state, broken);
        if (updated !== undefined) this.#reads(statement.test, updated);
        return meet(updated, broken);
      }
      case 'break':
        this.#breaks.set(
          statement.id,
          this.#breaks.has(statement.id) ? meet(this.#breaks.get(statement.id), state) : state,
        );
        return undefined;
      case 'continue':
        this.#continues.set(
          statement.id,
          this.#continues.has(statement.id)
            ? meet(this.#continues.get(statement.id), state)
            : state,
        );
        return undefined;
      case 'return':
      case 'trap':
        return undefined;
      default:
        for (const expression of expressionsOf(statement)) this.#reads(expression, state);
        return state;
    }
  }

  #reads(expression: Expression, state: ReadonlySet<number>): void {
    if (expression.op === 'local' && !state.has(expression.local))
      this.#report(expression.local, expression.span);
    for (const operand of operandsOf(expression)) this.#reads(operand, state);
  }
}

/** Expressions of a statement that holds no other statements. */
export function expressionsOf(statement: Statement): readonly Expression[] {
  switch (statement.kind) {
    case 'assign':
    case 'evaluate':
      return [statement.value];
    case 'store':
      return [statement.place.index, statement.value];
    case 'barrier':
      return statement.of === 'warp' ? [statement.mask] : [];
    case 'matrixProduct':
      return [statement.sum.index, statement.a.index, statement.b.index];
    case 'loadMatrices':
      return [statement.to.index, statement.from.index];
    case 'copyAsync':
      return [
        statement.to.index,
        statement.from.index,
        ...(statement.given === undefined ? [] : [statement.given]),
      ];
    case 'instruction':
      return operandExpressions(statement.operands);
    case 'print':
      return statement.values;
    case 'assert':
    case 'if':
      return [statement.test];
    case 'loop':
      return statement.test === undefined ? [] : [statement.test];
    default:
      return [];
  }
}

/** Expressions directly within an expression, in the order in which they are evaluated. */
export function operandsOf(expression: Expression): readonly Expression[] {
  switch (expression.op) {
    case 'constant':
    case 'local':
    case 'abi':
    case 'special':
    case 'activemask':
      return [];
    case 'unary':
    case 'convert':
    case 'narrow':
    case 'bitcast':
      return [expression.operand];
    case 'binary':
    case 'compare':
    case 'logical':
      return [expression.left, expression.right];
    case 'fma':
      return [expression.a, expression.b, expression.c];
    case 'conditional':
      return [expression.test, expression.then, expression.otherwise];
    case 'approximate':
      return expression.operands;
    case 'load':
      return [expression.place.index];
    case 'atomic':
      return [
        expression.place.index,
        ...(expression.compare === undefined ? [] : [expression.compare]),
        expression.operand,
      ];
    case 'shuffle':
      return [expression.value, expression.lane, expression.mask];
    case 'vote':
      return [expression.predicate, expression.mask];
    case 'match':
      return [expression.value, expression.mask];
    case 'barrierReduce':
      return [expression.predicate];
    case 'block':
      return [expression.value];
  }
}
