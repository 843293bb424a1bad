/**
 * Finds convergent operations under divergent conditions: barriers of the block that its threads
 * certainly reach under different conditions, or after a divergent exit of a loop; barriers of the
 * grid likewise; and operations of a whole warp where its lanes diverge. Only conditions of the
 * thread's own index, the block's, and constants are considered. A condition that depends on
 * arguments may be the same for all threads, and is accepted.
 */
import { instructionRow } from '../instructions.js';
import type { Expression, LocalVariable, SpecialName, Span, Statement } from '../tree.js';
import { expressionsOf, operandsOf } from './definite-assignment.js';

/** The largest value of each index, from the limits on a block's size. */
const largest: Partial<Record<SpecialName, number>> = {
  'threadIdx.x': 1023,
  'threadIdx.y': 1023,
  'threadIdx.z': 63,
  lane: 31,
  warp: 31,
};

type Scalar = number | boolean;

const arithmetic: Partial<
  Record<(Expression & { op: 'binary' })['operator'], (a: number, b: number) => number>
> = {
  add: (a, b) => (a + b) | 0,
  sub: (a, b) => (a - b) | 0,
  mul: Math.imul,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  shl: (a, b) => a << b,
  shr: (a, b) => a >> b,
  div: (a, b) => Math.trunc(a / b),
  rem: (a, b) => a % b,
  min: Math.min,
  max: Math.max,
};

const comparisons: Readonly<
  Record<(Expression & { op: 'compare' })['operator'], (a: Scalar, b: Scalar) => boolean>
> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
};

/** The level at which threads diverge. */
export type DivergenceLevel = 'grid' | 'block' | 'warp';

/** The levels at which threads have diverged. */
interface Divergence {
  readonly grid: boolean;
  readonly block: boolean;
  readonly warp: boolean;
}

/** The exit of a loop or group, or of an iteration of a loop. */
type Exit = `${'break' | 'continue'} ${number}`;

const CONVERGED: Divergence = { grid: false, block: false, warp: false };

/**
 * Calls `report` with the first statement that not all blocks of the grid, not all threads of the
 * block, or not all lanes of the warp can reach. A barrier does not wait for threads that have
 * ended; it does for those that have left a loop.
 */
export function checkBarriers(
  body: readonly Statement[],
  locals: readonly LocalVariable[],
  cooperative: boolean,
  report: (span: Span, level: DivergenceLevel) => never,
): void {
  const definitions = new Map<number, Expression>();
  /** Returns the divergence of each exit of a loop or group, or of an iteration. */
  const check = (
    statements: readonly Statement[],
    given: Divergence,
  ): ReadonlyMap<Exit, Divergence> => {
    const exits = new Map<Exit, Divergence>();
    let diverged = given;
    /** Code after an exit runs without the threads that took it. */
    const leave = (exit: Exit, by: Divergence): void => {
      exits.set(exit, joined(exits.get(exit) ?? CONVERGED, by));
      diverged = joined(diverged, by);
    };
    for (const statement of statements) {
      if (statement.kind === 'assign' && locals[statement.local]!.constant)
        definitions.set(statement.local, statement.value);
      if (statement.kind === 'barrier') {
        if (diverged.block && statement.of !== 'warp') report(statement.span, 'block');
        if (diverged.grid && statement.of === 'grid') report(statement.span, 'grid');
      }
      if (diverged.block && expressionsOf(statement).some(hasBarrier))
        report(statement.span, 'block');
      if (diverged.warp && needsWholeWarp(statement)) report(statement.span, 'warp');
      if (statement.kind === 'break' || statement.kind === 'continue')
        leave(`${statement.kind} ${statement.id}`, CONVERGED);
      if (statement.kind === 'if') {
        const { test } = statement;
        const block = differsBetweenThreads(test, definitions);
        const by = {
          grid:
            block || (cooperative && differsBetweenThreads(test, definitions, undefined, inGrid)),
          block,
          warp: block && differsBetweenThreads(test, definitions, inOneWarp),
        };
        const sides = [statement.then, statement.otherwise].map((side) =>
          check(side, joined(diverged, by)),
        );
        for (const side of sides)
          for (const [exit, others] of side) leave(exit, joined(others, by));
      } else if (statement.kind === 'loop' || statement.kind === 'group') {
        const [left, next] = [`break ${statement.id}`, `continue ${statement.id}`] as const;
        const parts =
          statement.kind === 'loop' ? [statement.body, statement.update] : [statement.body];
        const found = parts.flatMap((part) => [...check(part, diverged)]);
        // The next iteration runs without the threads that have left the loop.
        const gone = found
          .filter(([exit]) => exit === left)
          .reduce((sum, [, by]) => joined(sum, by), CONVERGED);
        if (statement.kind === 'loop' && gone !== CONVERGED)
          for (const part of parts) check(part, joined(diverged, gone));
        for (const [exit, by] of found) if (exit !== left && exit !== next) leave(exit, by);
      }
    }
    return exits;
  };
  check(body, CONVERGED);
}

function joined(a: Divergence, b: Divergence): Divergence {
  if (a === CONVERGED) return b;
  return { grid: a.grid || b.grid, block: a.block || b.block, warp: a.warp || b.warp };
}

/** The number of values of each block index that are compared. */
const inGrid: Partial<Record<SpecialName, number>> = {
  ...largest,
  'blockIdx.x': 1023,
  'blockIdx.y': 1023,
  'blockIdx.z': 1023,
};

/**
 * The number of consecutive values that an index has in one warp: for `threadIdx.x` those of a row
 * of 32 threads.
 */
const inOneWarp: Partial<Record<SpecialName, number>> = { 'threadIdx.x': 32, lane: 32 };

function needsWholeWarp(statement: Statement): boolean {
  if (statement.kind === 'matrixProduct' || statement.kind === 'loadMatrices') return true;
  if (statement.kind === 'instruction')
    return instructionRow(statement.name).threads.startsWith('warp');
  return (
    (statement.kind === 'barrier' && statement.of === 'warp' && isWholeWarp(statement.mask)) ||
    expressionsOf(statement).some(readsWholeWarp)
  );
}

function readsWholeWarp(expression: Expression): boolean {
  const { op } = expression;
  return (
    ((op === 'shuffle' || op === 'vote' || op === 'match') && isWholeWarp(expression.mask)) ||
    operandsOf(expression).some(readsWholeWarp)
  );
}

function isWholeWarp(mask: Expression): boolean {
  return mask.op === 'constant' && mask.value === 0xffffffff;
}

function hasBarrier(expression: Expression): boolean {
  return expression.op === 'barrierReduce' || operandsOf(expression).some(hasBarrier);
}

/**
 * Whether two values of one thread index, with all else equal, give the test different values.
 * `near`: the number of consecutive values that are compared.
 */
function differsBetweenThreads(
  test: Expression,
  definitions: ReadonlyMap<number, Expression>,
  near?: Partial<Record<SpecialName, number>>,
  most: Partial<Record<SpecialName, number>> = largest,
): boolean {
  const found = new Set<SpecialName>();
  if (!specialsOf(test, definitions, most, found)) return false;
  for (const name of found) {
    let first: Scalar | undefined;
    const group = near === undefined ? Infinity : near[name];
    if (group === undefined) continue;
    for (let value = 0; value <= most[name]!; value++) {
      if (value % group === 0) first = undefined;
      const result = evaluate(
        test,
        definitions,
        new Map([...found].map((each) => [each, each === name ? value : 0])),
      );
      if (result === undefined) return false;
      first ??= result;
      if (result !== first) return true;
    }
  }
  return false;
}

/** Collects the thread's indices; false where other values take part. */
function specialsOf(
  expression: Expression,
  definitions: ReadonlyMap<number, Expression>,
  most: Partial<Record<SpecialName, number>>,
  found: Set<SpecialName>,
): boolean {
  if (expression.op === 'special') {
    found.add(expression.name);
    return most[expression.name] !== undefined;
  }
  if (expression.op === 'local') {
    const definition = definitions.get(expression.local);
    return definition !== undefined && specialsOf(definition, definitions, most, found);
  }
  if (expression.op === 'load' || expression.op === 'abi') return false;
  return operandsOf(expression).every((operand) => specialsOf(operand, definitions, most, found));
}

function evaluate(
  expression: Expression,
  definitions: ReadonlyMap<number, Expression>,
  indices: ReadonlyMap<SpecialName, number>,
): Scalar | undefined {
  const of = (operand: Expression) => evaluate(operand, definitions, indices);
  switch (expression.op) {
    case 'constant':
      return typeof expression.value === 'bigint' ? undefined : expression.value;
    case 'special':
      return indices.get(expression.name);
    case 'local':
      return of(definitions.get(expression.local)!);
    case 'unary': {
      const value = of(expression.operand);
      return expression.operator === 'not' && typeof value === 'boolean' ? !value : undefined;
    }
    case 'binary': {
      const rule = arithmetic[expression.operator];
      const [a, b] = [of(expression.left), of(expression.right)];
      return expression.type === 'i32' &&
        rule !== undefined &&
        typeof a === 'number' &&
        typeof b === 'number'
        ? rule(a, b)
        : undefined;
    }
    case 'compare': {
      const [a, b] = [of(expression.left), of(expression.right)];
      return a === undefined || b === undefined
        ? undefined
        : comparisons[expression.operator](a, b);
    }
    case 'logical': {
      const left = of(expression.left);
      if (left === undefined) return undefined;
      return (expression.operator === 'and') === Boolean(left) ? of(expression.right) : left;
    }
    default:
      return undefined;
  }
}
