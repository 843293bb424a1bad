/**
 * Finds barriers of the block under conditions that differ between its threads for certain, and what a warp does with matrices
 * under conditions that differ between its lanes: conditions that are made of the thread's own index and of constants only.
 * What depends on arguments may be the same for all threads, and is left alone.
 */
import type { Expression, LocalVariable, SpecialName, Span, Statement } from '../tree.js';
import { expressionsOf, operandsOf } from './definite-assignment.js';

/** The largest value of each index, from the limits on a block's size. */
const largest: Partial<Record<SpecialName, number>> = { 'threadIdx.x': 1023, 'threadIdx.y': 1023, 'threadIdx.z': 63, lane: 31, warp: 31 };

type Scalar = number | boolean;

const arithmetic: Partial<Record<(Expression & { op: 'binary' })['operator'], (a: number, b: number) => number>> = {
  add: (a, b) => (a + b) | 0, sub: (a, b) => (a - b) | 0, mul: Math.imul, and: (a, b) => a & b, or: (a, b) => a | b, xor: (a, b) => a ^ b,
  shl: (a, b) => a << b, shr: (a, b) => a >> b, div: (a, b) => Math.trunc(a / b), rem: (a, b) => a % b, min: Math.min, max: Math.max,
};

const comparisons: Readonly<Record<(Expression & { op: 'compare' })['operator'], (a: Scalar, b: Scalar) => boolean>> = {
  lt: (a, b) => a < b, le: (a, b) => a <= b, gt: (a, b) => a > b, ge: (a, b) => a >= b, eq: (a, b) => a === b, ne: (a, b) => a !== b,
};

/** Who does not come there together. */
export type Parted = 'block' | 'warp';

/** Calls `report` with the first statement that not all threads of the block, or not all lanes of the warp, can come to. */
export function checkBarriers(body: readonly Statement[], locals: readonly LocalVariable[], report: (span: Span, parted: Parted) => never): void {
  const definitions = new Map<number, Expression>();
  const check = (statements: readonly Statement[], divergent: boolean, parted: boolean): void => {
    for (const statement of statements) {
      if (statement.kind === 'assign' && locals[statement.local]!.constant) definitions.set(statement.local, statement.value);
      if (divergent) {
        if (statement.kind === 'barrier' && statement.of !== 'warp') report(statement.span, 'block');
        if (expressionsOf(statement).some(hasBarrier)) report(statement.span, 'block');
      }
      if (parted && (statement.kind === 'matrixProduct' || statement.kind === 'loadMatrices')) report(statement.span, 'warp');
      if (statement.kind === 'if') {
        const differs = divergent || differsBetweenThreads(statement.test, definitions);
        const parts = parted || (differs && differsBetweenThreads(statement.test, definitions, inOneWarp));
        check(statement.then, differs, parts);
        check(statement.otherwise, differs, parts);
      } else if (statement.kind === 'loop') {
        check(statement.body, divergent, parted);
        check(statement.update, divergent, parted);
      } else if (statement.kind === 'group') {
        check(statement.body, divergent, parted);
      }
    }
  };
  check(body, false, false);
}

/** How many values in a row of an index lanes of one warp have: of `threadIdx.x` those that a row of 32 threads has. */
const inOneWarp: Partial<Record<SpecialName, number>> = { 'threadIdx.x': 32, lane: 32 };

function hasBarrier(expression: Expression): boolean {
  return expression.op === 'barrierReduce' || operandsOf(expression).some(hasBarrier);
}

/** Whether two values of one thread index, all else being equal, give the test different values. `near`: of so many values in a row. */
function differsBetweenThreads(test: Expression, definitions: ReadonlyMap<number, Expression>, near?: Partial<Record<SpecialName, number>>): boolean {
  const found = new Set<SpecialName>();
  if (!specialsOf(test, definitions, found)) return false;
  for (const name of found) {
    let first: Scalar | undefined;
    const group = near === undefined ? Infinity : near[name];
    if (group === undefined) continue;
    for (let value = 0; value <= largest[name]!; value++) {
      if (value % group === 0) first = undefined;
      const result = evaluate(test, definitions, new Map([...found].map((each) => [each, each === name ? value : 0])));
      if (result === undefined) return false;
      first ??= result;
      if (result !== first) return true;
    }
  }
  return false;
}

/** Collects the thread's indices; false where something else takes part. */
function specialsOf(expression: Expression, definitions: ReadonlyMap<number, Expression>, found: Set<SpecialName>): boolean {
  if (expression.op === 'special') {
    found.add(expression.name);
    return largest[expression.name] !== undefined;
  }
  if (expression.op === 'local') {
    const definition = definitions.get(expression.local);
    return definition !== undefined && specialsOf(definition, definitions, found);
  }
  if (expression.op === 'load' || expression.op === 'abi') return false;
  return operandsOf(expression).every((operand) => specialsOf(operand, definitions, found));
}

function evaluate(expression: Expression, definitions: ReadonlyMap<number, Expression>, indices: ReadonlyMap<SpecialName, number>): Scalar | undefined {
  const of = (operand: Expression) => evaluate(operand, definitions, indices);
  switch (expression.op) {
    case 'constant': return typeof expression.value === 'bigint' ? undefined : expression.value;
    case 'special': return indices.get(expression.name);
    case 'local': return of(definitions.get(expression.local)!);
    case 'unary': {
      const value = of(expression.operand);
      return expression.operator === 'not' && typeof value === 'boolean' ? !value : undefined;
    }
    case 'binary': {
      const rule = arithmetic[expression.operator];
      const [a, b] = [of(expression.left), of(expression.right)];
      return expression.type === 'i32' && rule !== undefined && typeof a === 'number' && typeof b === 'number' ? rule(a, b) : undefined;
    }
    case 'compare': {
      const [a, b] = [of(expression.left), of(expression.right)];
      return a === undefined || b === undefined ? undefined : comparisons[expression.operator](a, b);
    }
    case 'logical': {
      const left = of(expression.left);
      if (left === undefined) return undefined;
      return (expression.operator === 'and') === Boolean(left) ? of(expression.right) : left;
    }
    default: return undefined;
  }
}
