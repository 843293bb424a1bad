/**
 * Loops. They are rotated, so that they test at their bottom, with a guard before them. They are
 * unrolled completely where the number of iterations is a small constant, and by four where it is
 * not known but a counter shows that four more follow.
 */
import type { Expression, Statement } from '../tree.js';
import type { Builder } from './builder.js';
import { branchOn } from './choices.js';
import type { Block, Value } from './function.js';
import { rangeOf } from './ranges.js';
import { summaryOf } from './summary.js';
import type { Summary } from './summary.js';

type Loop = Extract<Statement, { kind: 'loop' }>;

/**
 * The limit of nodes of the tree for a loop that is unrolled completely; the limit is higher where
 * an array can be kept in registers by it.
 */
const MOST_NODES = 700;
const MOST_NODES_FOR_ARRAYS = 6000;
/** The limit of nodes of a body that is unrolled by four. */
const MOST_BODY_NODES = 160;
/** The factor of unrolling, where the source gives none. NVVM's factor is four, too. */
const FACTOR = 4;
/** The limit of nodes that unrolling adds to a kernel. */
const MOST_ADDED_NODES = 60_000;
const MOST_ITERATIONS = 1024;

interface Whole {
  readonly summary: Summary;
  readonly variables: readonly number[];
}

function wholeOf(b: Builder, node: Loop): Whole {
  const parts = [
    summaryOf(node.body),
    summaryOf(node.update),
    ...(node.test ? [summaryOf(node.test)] : []),
  ];
  const variables = new Set<number>();
  const summary: Summary = {
    size: 0,
    locals: variables,
    arrays: new Set(),
    loops: false,
    convergent: false,
    jumps: false,
    indexed: new Set(),
    fragments: new Set(),
    swizzled: new Set(),
    reads: new Set(),
  };
  for (const part of parts) {
    summary.size += part.size;
    summary.loops ||= part.loops;
    summary.convergent ||= part.convergent;
    summary.jumps ||= part.jumps;
    for (const local of part.locals) variables.add(local);
    for (const array of part.indexed) summary.indexed.add(array);
    for (const array of part.arrays) {
      summary.arrays.add(array);
      const first = b.registers.get(array);
      if (first !== undefined)
        for (let at = 0; at < b.variablesOf(array); at++) variables.add(first + at);
    }
  }
  return { summary, variables: [...variables] };
}

/**
 * The iterations of a loop whose counter starts at a constant and is compared with one; undefined
 * for other loops.
 */
function tripCount(b: Builder, node: Loop, whole: Whole): number | undefined {
  if (node.test === undefined || node.testAfter) return undefined;
  const counter = counterOf(node, whole);
  if (counter !== undefined) {
    const [from, to, step] = [
      b.read(counter.local),
      b.value(counter.limit),
      b.value(counter.step),
    ].map((value) => value.constant) as (number | undefined)[];
    if (from === undefined || to === undefined || step === undefined) return undefined;
    if (step > 0 && to + step <= 2 ** 31 - 1) return Math.max(Math.ceil((to - from) / step), 0);
  }
  const updated = summaryOf(node.update);
  const test = summaryOf(node.test);
  const body = summaryOf(node.body);
  // The condition must change in `update` alone, and neither may have another effect.
  if (
    test.locals.size > 0 ||
    test.convergent ||
    updated.convergent ||
    updated.loops ||
    test.loops ||
    updated.arrays.size > 0 ||
    test.size > 12 ||
    updated.size > 24
  )
    return undefined;
  for (const local of [...test.reads, ...updated.reads]) {
    if (whole.summary.locals.has(local) && (!updated.locals.has(local) || body.locals.has(local)))
      return undefined;
  }
  for (const local of test.reads)
    if (
      b.read(local).constant === undefined &&
      (updated.locals.has(local) || whole.summary.locals.has(local))
    )
      return undefined;
  if (
    !pureEnough(node.test) ||
    !node.update.every((statement) => statement.kind === 'assign' && pureEnough(statement.value))
  )
    return undefined;
  const saved = [...updated.locals].map((local) => [local, b.read(local)] as const);
  const { block } = b;
  const built = block.values.length;
  let iterations: number | undefined = 0;
  const most =
    node.unroll !== undefined
      ? MOST_ITERATIONS
      : Math.min(MOST_ITERATIONS, Math.ceil(MOST_NODES_FOR_ARRAYS / whole.summary.size));
  for (;;) {
    const { constant } = b.value(node.test);
    if (constant === undefined || iterations > most) {
      iterations = undefined;
      break;
    }
    if (constant === false) break;
    iterations++;
    b.statements(node.update);
  }
  for (const [local, value] of saved) b.write(local, value);
  b.truncate(built);
  return iterations;
}

/** Whether an expression is arithmetic only: building it adds nothing but values. */
function pureEnough(node: Expression): boolean {
  switch (node.op) {
    case 'constant':
    case 'local':
    case 'abi':
      return true;
    case 'unary':
    case 'convert':
    case 'bitcast':
      return pureEnough(node.operand);
    case 'binary':
    case 'compare':
      return pureEnough(node.left) && pureEnough(node.right);
    default:
      return false;
  }
}

export function buildLoop(b: Builder, node: Loop): void {
  const whole = wholeOf(b, node);
  if (b.options.optimise) {
    const iterations = tripCount(b, node, whole);
    if (iterations !== undefined && mayUnroll(b, node, whole, iterations)) {
      unrollWhole(b, node, iterations, whole);
      return;
    }
    if (iterations !== undefined && buildByDivisor(b, node, whole, iterations)) return;
    if (buildByFour(b, node, whole)) return;
  }
  buildRolled(b, node, whole, node.unroll === 1);
}

function mayUnroll(b: Builder, node: Loop, whole: Whole, iterations: number): boolean {
  if (node.unroll === 1) return iterations <= 1;
  const nodes = iterations * whole.summary.size;
  if (iterations > 1 && b.unrolled + nodes > MOST_ADDED_NODES) return false;
  if (node.unroll !== undefined) return node.unroll <= 0 || node.unroll >= iterations;
  const forArrays = [...whole.summary.indexed].some((array) => b.registers.has(array));
  return iterations <= 1 || nodes <= (forArrays ? MOST_NODES_FOR_ARRAYS : MOST_NODES);
}

function unrollWhole(b: Builder, node: Loop, iterations: number, whole: Whole): void {
  // Inner loops are counted themselves, once for each iteration of this one.
  if (!whole.summary.loops) b.unrolled += iterations * whole.summary.size;
  const leave = b.newBlock();
  for (let iteration = 0; iteration < iterations && b.reachable; iteration++)
    buildIteration(b, node, leave);
  b.jump(leave);
  b.enterIfReached(leave);
}

/** Builds the body and the update once. */
function buildIteration(b: Builder, node: Loop, leave: Block): void {
  const again = b.newBlock();
  b.exits.set(node.id, { leave, again });
  b.statements(node.body);
  if (b.reachable && again.before.length === 0) {
    // There is no `continue`, so no block for it.
  } else {
    b.jump(again);
    b.enterIfReached(again);
  }
  b.statements(node.update);
}

/** Opens the loop's first block, with a phi for each variable that the loop assigns. */
function openHead(
  b: Builder,
  variables: readonly number[],
): { head: Block; phis: readonly (readonly [number, Value])[] } {
  const entry = b.block;
  const head = b.newBlock();
  const before = variables.map((variable) => [variable, b.readAt(variable, entry)] as const);
  b.jump(head);
  return { head, phis: enterHead(b, head, before) };
}

function enterHead(
  b: Builder,
  head: Block,
  before: readonly (readonly [number, Value])[],
): readonly (readonly [number, Value])[] {
  b.heads.add(head);
  b.enter(head);
  const phis: [number, Value][] = [];
  for (const [variable, value] of before) {
    if (value.op === 'undefined') continue;
    const phi = b.phi(head, value.type);
    phi.args = [value];
    b.write(variable, phi);
    phis.push([variable, phi]);
  }
  return phis;
}

/** Sets the phis' operands of the back edge. */
function closeHead(b: Builder, head: Block, phis: readonly (readonly [number, Value])[]): void {
  for (const from of head.before.slice(1))
    for (const [variable, phi] of phis) phi.args.push(b.readAt(variable, from));
}

/**
 * Builds a loop whose number of iterations is a large constant: it is unrolled by a divisor of that
 * number.
 */
function buildByDivisor(b: Builder, node: Loop, whole: Whole, iterations: number): boolean {
  const { summary } = whole;
  if (
    node.unroll === 1 ||
    summary.loops ||
    (node.unroll === undefined && summary.size > 2 * MOST_BODY_NODES)
  )
    return false;
  const by =
    node.unroll !== undefined
      ? iterations % node.unroll === 0
        ? node.unroll
        : undefined
      : [8, 4, 2].find(
          (count) => iterations % count === 0 && count * summary.size <= 24 * MOST_BODY_NODES,
        );
  if (by === undefined || by > 32 || b.unrolled + by * summary.size > MOST_ADDED_NODES)
    return false;
  b.unrolled += by * summary.size;
  const leave = b.newBlock();
  b.depth++;
  const { head, phis } = openHead(b, whole.variables);
  head.keepRolled = true;
  boundCounter(b, node, whole, phis);
  for (let iteration = 0; iteration < by && b.reachable; iteration++)
    buildIteration(b, node, leave);
  if (b.reachable) branchOn(b, node.test!, head, leave);
  closeHead(b, head, phis);
  b.depth--;
  b.enterIfReached(leave);
  return true;
}

/**
 * Whether an expression has the same value before the loop and in it: the loop assigns none of its
 * operands.
 */
function isInvariant(node: Expression, whole: Whole): boolean {
  if (!pureEnough(node))
    return node.op === 'special' && node.name !== 'clock' && node.name !== 'globaltimer';
  for (const local of summaryOf(node).reads) if (whole.summary.locals.has(local)) return false;
  return true;
}

interface Counter {
  readonly local: number;
  readonly limit: Expression;
  readonly step: Expression;
}

/**
 * The counter of `local < limit; local += step`, where both are invariant and the local is assigned
 * nowhere else; i32.
 */
function counterOf(node: Loop, whole: Whole): Counter | undefined {
  const { test, update } = node;
  if (
    test?.op !== 'compare' ||
    test.operator !== 'lt' ||
    test.left.op !== 'local' ||
    test.left.type !== 'i32' ||
    node.testAfter
  )
    return undefined;
  const { local } = test.left;
  const [only] = update;
  if (
    update.length !== 1 ||
    only?.kind !== 'assign' ||
    only.local !== local ||
    summaryOf(node.body).locals.has(local)
  )
    return undefined;
  const { value } = only;
  if (value.op !== 'binary' || value.operator !== 'add') return undefined;
  const step =
    value.left.op === 'local' && value.left.local === local
      ? value.right
      : value.right.op === 'local' && value.right.local === local
        ? value.left
        : undefined;
  if (step === undefined || !isInvariant(step, whole) || !isInvariant(test.right, whole))
    return undefined;
  return { local, limit: test.right, step };
}

/**
 * Bounds the counter of a rotated loop: it is at least its first value, and less than the limit,
 * unless a step can overflow i32.
 */
function boundCounter(
  b: Builder,
  node: Loop,
  whole: Whole,
  phis: readonly (readonly [number, Value])[],
): void {
  const counter = counterOf(node, whole);
  const phi = counter && phis.find(([variable]) => variable === counter.local)?.[1];
  if (counter === undefined || phi === undefined) return;
  const step = b.value(counter.step).constant as number | undefined;
  const [, highest] = rangeOf(b.value(counter.limit));
  if (step === undefined || step <= 0 || highest - 1 + step > 2 ** 31 - 1) return;
  phi.range = [Math.min(rangeOf(phi.args[0]!)[0], highest - 1), highest - 1];
}

/**
 * Builds a loop whose number of iterations is not known: four at once while four are left, then the
 * rest one by one.
 */
function buildByFour(b: Builder, node: Loop, whole: Whole): boolean {
  const by = node.unroll ?? FACTOR;
  const counter = counterOf(node, whole);
  const { summary } = whole;
  if (counter === undefined || by <= 1 || by > 32) return false;
  if (summary.loops || summary.convergent || summary.jumps) return false;
  if (node.unroll === undefined && summary.size > MOST_BODY_NODES) return false;
  if (b.unrolled + by * summary.size > MOST_ADDED_NODES) return false;
  b.unrolled += by * summary.size;
  const step = b.value(counter.step);
  const limit = b.value(counter.limit);
  // The last of the four is at counter + 3 · step. It is computed in 64 bits, so that nothing
  // wraps, then clamped to i32; as signed numbers, none is below the least.
  const wide = (value: Value): Value => b.make('extend', 'b64', [value], '', 's32');
  const ahead = b.make('mul', 'b64', [wide(step), b.constant('b64', by - 1)]);
  const least = b.make(
    'max',
    'b64',
    [b.make('sub', 'b64', [wide(limit), ahead]), b.constant('b64', -(2n ** 31n))],
    '',
    's64',
  );
  const forward = b.make('compare', 'pred', [step, b.constant('b32', 0)], 'gt', 's32');
  const small =
    rangeOf(limit)[0] >= 0 &&
    step.constant !== undefined &&
    (step.constant as number) > 0 &&
    (step.constant as number) < 2 ** 20;
  const bound = small
    ? b.make('sub', 'b32', [limit, b.make('mul', 'b32', [step, b.constant('b32', by - 1)])])
    : b.make('truncate', 'b32', [least]);
  const counted = (): Value =>
    b.make('compare', 'pred', [b.read(counter.local), bound], 'lt', 's32');
  const leave = b.newBlock();
  const four = b.newBlock();
  const rest = b.newBlock();
  const before = whole.variables.map((variable) => [variable, b.read(variable)] as const);
  b.branch(b.make('and', 'pred', [forward, counted()]), four, rest);
  if (four.before.length > 0) {
    b.depth++;
    const phis = enterHead(b, four, before);
    four.keepRolled = true;
    boundCounter(b, node, whole, phis);
    for (let iteration = 0; iteration < by; iteration++) buildIteration(b, node, leave);
    b.branch(counted(), four, rest);
    closeHead(b, four, phis);
    b.depth--;
  }
  b.enterIfReached(rest);
  if (b.reachable) buildRolled(b, node, whole, true);
  b.jump(leave);
  b.enterIfReached(leave);
  return true;
}

function buildRolled(b: Builder, node: Loop, whole: Whole, keepRolled: boolean): void {
  const { test } = node;
  const leave = b.newBlock();
  // Rotation duplicates the test; a long test, or one with a convergent operation, is not
  // duplicated.
  const turned =
    test !== undefined &&
    (node.testAfter ||
      (!summaryOf(test).convergent && !summaryOf(test).loops && summaryOf(test).size <= 40));
  if (turned && !node.testAfter) {
    const guarded = b.newBlock();
    branchOn(b, test, guarded, leave);
    b.enterIfReached(guarded);
    if (!b.reachable) {
      b.enterIfReached(leave);
      return;
    }
  }
  b.depth++;
  const { head, phis } = openHead(b, whole.variables);
  head.keepRolled = keepRolled;
  if (turned && b.options.optimise) boundCounter(b, node, whole, phis);
  if (test !== undefined && !turned) {
    const inside = b.newBlock();
    branchOn(b, test, inside, leave);
    b.enterIfReached(inside);
  }
  buildIteration(b, node, leave);
  if (b.reachable) {
    if (turned) branchOn(b, test, head, leave);
    else b.jump(head);
  }
  closeHead(b, head, phis);
  b.depth--;
  b.enterIfReached(leave);
}
