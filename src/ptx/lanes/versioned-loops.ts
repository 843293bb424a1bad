// Loop versioning for loops of one block that go through memory in even steps, such as `for (i =
// first; i < n; i += stride) sum += x[i]`: if the accesses of the next turn and of one some turns
// ahead are valid, and the loop continues after it, this holds for the turns between them, too.
// Those run without any checks.
//
// Registers to which the block adds the same number every time move from turn to turn; addresses
// and the comparison that decides whether the loop continues are linear in them. The numbers
// between the two ends are within them only if nothing wraps around: counters of 32 bits are
// checked to stay in their range, and steps are limited, so that an address of 64 bits cannot wrap
// around to the device's memory.

import type { Block } from '../analysis/blocks.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { checksFirst } from './check-hoisting-order.js';
import type { CodePlan } from './code-plan.js';
import { OPPOSITE, ORDERED } from './guards.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { meanings, ofMeaning } from './meanings.js';
import type { Transfer } from './meanings.js';
import { isPure, mentions, typesOf } from './spread.js';
import { checkRange, pushStart, testRange } from './unchecked-accesses.js';
import type { Range } from './unchecked-accesses.js';
import { opcodeNamed } from '../wasm/opcodes.js';

/** Longer blocks are not worth another copy: their checks are a small part. */
const LONGEST = 64;
/** The greatest step of a pointer from turn to turn: the range of a counter of 32 bits. */
const GREATEST_STEP = 2n ** 31n;
/**
 * The most bytes that an address may move by from turn to turn: in the 16 turns of the look-ahead
 * it stays far below 2^64.
 */
const FURTHEST = 2n ** 56n;
/** Elements have 16 bytes at most. */
const LARGEST_ELEMENT = 16;

/** A register to which the block adds a step. */
interface Moved {
  register: Register;
  step: Arg;
  /** The step's signed value, if it is a literal. */
  by: bigint | undefined;
  subtracts: boolean;
  /** The sign of the type as which it is compared or widened; a pointer's has no effect. */
  signed: boolean;
}

type MovedOf = (register: Register, signed: boolean) => Moved | undefined;

/** The condition of a loop's end: a counter, and the value with which it is compared. */
interface Comparison {
  inst: Inst;
  counter: Moved;
  bound: Arg;
  /** The loop continues while `counter operation bound` holds. */
  operation: 'lt' | 'le' | 'gt' | 'ge' | 'ne';
}

export interface SteadyLoop {
  /** The instructions that the addresses need come first. */
  block: Block;
  /** The index of the instruction after them. */
  from: number;
  ranges: readonly Range[];
  comparison: Comparison;
  /** The registers from which the addresses and the comparison are computed. */
  moved: readonly Moved[];
  /** The value changes from turn to turn, in the instructions before `from` and in ranges. */
  changes(register: Register): boolean;
}

/**
 * The course of a value from turn to turn: constant, a counter, or a sum of 64 bits that moves by a
 * multiple of `unit` each time, by at most `reach`.
 */
type Course =
  { kind: 'fixed' } | { kind: 'counter' } | { kind: 'linear'; unit: number; reach: bigint };

const MIRRORED = { lt: 'gt', gt: 'lt', le: 'ge', ge: 'le', ne: 'ne' } as const;

const lowestBit = (value: bigint): number =>
  value === 0n ? LARGEST_ELEMENT : Number(value & -value);

/** The register, if its only definition in the block adds the same number in every turn. */
function movedBy(
  e: LaneEmitter,
  definitions: readonly Inst[],
  register: Register,
  signed: boolean,
  isFixed: (arg: Arg) => boolean,
): Moved | undefined {
  const [inst, another] = definitions;
  if (!inst || another || e.stride({ kind: 'register', register } as Arg) === undefined)
    return undefined;
  const { meaning } = inst.traits;
  if (
    (meaning !== 'sum' && meaning !== 'difference') ||
    inst.modifiers.length !== 1 ||
    inst.args.length !== 3
  )
    return undefined;
  const type = scalarType(inst.modifiers[0]!);
  if (type.kind === 'float' || type.bits !== register.type.bits) return undefined;
  const [, a, b] = inst.args as [Arg, Arg, Arg];
  const subtracts = meaning === 'difference';
  const isSelf = (arg: Arg): boolean => arg.kind === 'register' && arg.register === register;
  const step = isSelf(a) && isFixed(b) ? b : !subtracts && isSelf(b) && isFixed(a) ? a : undefined;
  return (
    step && {
      register,
      step,
      by: step.kind === 'integer' ? BigInt.asIntN(register.type.bits, step.value) : undefined,
      subtracts,
      signed,
    }
  );
}

/** `checked`: accesses that other blocks have checked by then. */
export function findSteadyLoop(
  e: LaneEmitter,
  block: Block,
  checked?: ReadonlyMap<Inst, unknown>,
): SteadyLoop | undefined {
  const { ending, insts, index } = block;
  const last = insts.at(-1);
  if (ending.kind !== 'branch' || ending.yes === ending.no || !last || insts.length > LONGEST)
    return undefined;
  const definitions = new Map<Register, Inst[]>();
  for (const inst of insts)
    for (const register of inst.defs)
      definitions.set(register, [...(definitions.get(register) ?? []), inst]);
  const isFixed = (arg: Arg): boolean =>
    arg.kind === 'integer' ||
    (arg.kind === 'register' && e.stride(arg) === 0 && !definitions.has(arg.register));
  /** A value that is the same in each turn, though perhaps not in each thread. */
  const isSettled = (arg: Arg): boolean =>
    isFixed(arg) ||
    (arg.kind === 'register' &&
      !definitions.has(arg.register) &&
      !e.isVarying(arg.register) &&
      e.stride(arg) !== undefined);
  const work = insts.slice(0, -1);
  if (
    !work.every(
      (inst) =>
        !inst.predicate &&
        inst.defs.every(({ type }) => type.kind !== 'predicate') &&
        (isPure(inst) || inst.mnemonic === 'ld' || inst.mnemonic === 'st'),
    )
  )
    return undefined;

  const movedOf: MovedOf = (register, signed) =>
    e.isVarying(register)
      ? undefined
      : movedBy(e, definitions.get(register) ?? [], register, signed, isFixed);
  const comparison = comparisonOf(
    last,
    (ending.yes === index) !== ending.inst.predicate!.negated,
    movedOf,
    isFixed,
  );
  if (
    !comparison ||
    ending.inst.predicate!.register !== last.defs[0] ||
    last.defs.length !== 1 ||
    !e.isOwn(last.defs[0])
  )
    return undefined;

  const first = checksFirst(e, block, checked);
  const slice = first?.block.insts.slice(0, first.run.from) ?? [];
  const moved = new Map<Register, Moved>([[comparison.counter.register, comparison.counter]]);
  const courses = new Map<Register, Course>();
  const courseOf = (arg: Arg | undefined, signed: boolean): Course | undefined => {
    if (!arg || isSettled(arg)) return arg && { kind: 'fixed' };
    if (arg.kind !== 'register') return undefined;
    const { register } = arg;
    const known = courses.get(register);
    if (known) return known;
    const found = slice.some((inst) => inst.defs.includes(register))
      ? undefined
      : movedOf(register, signed);
    if (!found) return undefined;
    const before = moved.get(register);
    if (before && register.type.bits === 32 && before.signed !== signed) return undefined;
    moved.set(register, before ?? found);
    if (register.type.bits === 32) return { kind: 'counter' };
    // A step that is not a literal is tested at run time.
    if (found.by !== undefined && (found.by < -GREATEST_STEP || found.by >= GREATEST_STEP))
      return undefined;
    return register.type.bits === 64
      ? {
          kind: 'linear',
          unit: found.by === undefined ? LARGEST_ELEMENT : lowestBit(found.by),
          reach: GREATEST_STEP,
        }
      : undefined;
  };
  for (const inst of slice) {
    const course = resultOf(inst, courseOf);
    if (!course || inst.defs.length !== 1) return undefined;
    courses.set(inst.defs[0]!, course);
  }
  const ranges = first?.run.ranges ?? [];
  for (const { base, log2, wide } of ranges) {
    const course = courseOf({ kind: 'register', register: base } as Arg, true);
    if (
      !course ||
      course.kind === 'counter' ||
      (course.kind === 'linear' && (!wide || course.unit % 2 ** log2 !== 0))
    )
      return undefined;
  }
  const covered = new Set(ranges.flatMap(({ accesses }) => accesses.map(({ inst }) => inst)));
  if (
    !work.every(
      (inst) =>
        (inst.mnemonic !== 'ld' && inst.mnemonic !== 'st') ||
        covered.has(inst) ||
        checked?.has(inst) ||
        isPure(inst),
    )
  )
    return undefined;
  return {
    block: first?.block ?? block,
    from: slice.length,
    ranges,
    comparison,
    moved: [...moved.values()],
    changes: (register) => {
      const course = courses.get(register);
      return course ? course.kind !== 'fixed' : definitions.has(register);
    },
  };
}

function comparisonOf(
  inst: Inst,
  goesOn: boolean,
  movedOf: MovedOf,
  isFixed: (arg: Arg) => boolean,
): Comparison | undefined {
  if (
    inst.traits.meaning !== 'comparison' ||
    inst.predicate ||
    inst.modifiers.length !== 2 ||
    inst.args.length !== 3
  )
    return undefined;
  const [word, name] = inst.modifiers as [string, string];
  if (name !== 's32' && name !== 'u32' && name !== 'b32') return undefined;
  const row = ORDERED[word];
  const wanted = row
    ? goesOn
      ? row.op
      : OPPOSITE[row.op]!
    : word === (goesOn ? 'ne' : 'eq')
      ? 'ne'
      : undefined;
  if (wanted === undefined) return undefined;
  const operation = wanted as Comparison['operation'];
  const signed = name === 's32' && !row?.unsigned;
  const [, left, right] = inst.args as [Arg, Arg, Arg];
  for (const [arg, bound, of] of [
    [left, right, operation],
    [right, left, MIRRORED[operation]],
  ] as const) {
    if (arg.kind !== 'register' || !isFixed(bound)) continue;
    const counter = movedOf(arg.register, signed);
    // Whether a number is passed over depends on the counter's direction.
    if (counter && arg.register.type.bits === 32 && (of !== 'ne' || counter.by !== undefined))
      return { inst, counter, bound, operation: of };
  }
  return undefined;
}

/** An instruction of addresses, and the courses of its operands. */
interface Operands {
  inst: Inst;
  /** The type of the operands. */
  type: ScalarType;
  a: Course | undefined;
  b: Course | undefined;
  c: Course | undefined;
}

/** The course of the result of an instruction of addresses; undefined if it is not exact. */
function resultOf(
  inst: Inst,
  courseOf: (arg: Arg | undefined, signed: boolean) => Course | undefined,
): Course | undefined {
  const { args } = inst;
  const type = typesOf(inst).at(-1);
  const [a, b, c] = args.slice(1).map((arg) => courseOf(arg, type?.kind === 'signed'));
  if ([a, b, c].every((course, index) => args.length <= index + 1 || course?.kind === 'fixed'))
    return { kind: 'fixed' };
  return type && ofMeaning(COURSES, inst)({ inst, type, a, b, c });
}

const linear = (unit: number, reach: bigint): Course | undefined =>
  reach <= FURTHEST ? { kind: 'linear', unit, reach } : undefined;

function sum(inst: Inst, x: Course | undefined, y: Course | undefined): Course | undefined {
  if (!x || !y || x.kind === 'counter' || y.kind === 'counter' || inst.defs[0]?.type.bits !== 64)
    return undefined;
  const moving = [x, y].filter((course) => course.kind === 'linear');
  return linear(
    Math.min(...moving.map(({ unit }) => unit)),
    moving.reduce((all, { reach }) => all + reach, 0n),
  );
}

/**
 * The product of a literal and a counter, which is a number of 32 bits before and after each step.
 */
function product({ inst: { args, modifiers }, type, a }: Operands): Course | undefined {
  const by = args[2]?.kind === 'integer' ? args[2].value : undefined;
  if (a?.kind !== 'counter' || by === undefined || modifiers[0] !== 'wide' || type.bits !== 32)
    return undefined;
  const factor = type.kind === 'signed' ? BigInt.asIntN(32, by) : BigInt.asUintN(32, by);
  return linear(lowestBit(factor), (factor < 0n ? -factor : factor) << 32n);
}

/** Sums and differences: either moves at most as far as both operands together. */
const sumOrDifference = ({ inst, type, a, b }: Operands): Course | undefined =>
  inst.modifiers.length === 1 && type.kind !== 'float' ? sum(inst, a, b) : undefined;

const COURSES: Transfer<Operands, Course | undefined> = {
  move: ({ inst: { modifiers }, a }) =>
    modifiers.length === 1 && a?.kind === 'linear' ? a : undefined,
  convert: ({ inst: { modifiers }, type, a }) =>
    modifiers.length === 2 &&
    a?.kind === 'counter' &&
    type.bits === 32 &&
    scalarType(modifiers[0]!).bits === 64 &&
    type.kind !== 'float' &&
    scalarType(modifiers[0]!).kind !== 'float'
      ? linear(1, 2n ** 32n)
      : undefined,
  sum: sumOrDifference,
  difference: sumOrDifference,
  product,
  'multiply-add': (operands) => sum(operands.inst, product(operands), operands.c),
  'shift left': ({ inst: { args, modifiers }, a }) => {
    const by = args[2]?.kind === 'integer' ? args[2].value : undefined;
    return modifiers.length === 1 &&
      a?.kind === 'linear' &&
      by !== undefined &&
      by >= 0n &&
      by <= 32n
      ? linear(a.unit * 2 ** Number(by), a.reach << by)
      : undefined;
  },
  ...meanings(
    [
      'convert address',
      'minimum',
      'shift right',
      'and',
      'or',
      'xor',
      'not',
      'comparison',
      'load',
      'opaque',
    ],
    () => undefined,
  ),
};

/**
 * Where a range begins in a turn, as locals: its place, and its step from turn to turn, if it
 * moves.
 */
export interface SteadyPlace {
  range: Range;
  local: number;
  delta: number | undefined;
}

/**
 * Calls `test` with each condition on the stack under which the next `turns` (a local) of the loop,
 * and the one after them, run without a check. `emit` writes an instruction. The registers are
 * unchanged afterwards. Returns the places of the first turn.
 */
export function checkSteady(
  e: LaneEmitter,
  loop: SteadyLoop,
  turns: number,
  emit: (inst: Inst) => void,
  test: () => void,
): SteadyPlace[] {
  const { code } = e;
  const { comparison, ranges, moved } = loop;
  const steps = moved.map((each) => {
    const { register, step, by, subtracts, signed } = each;
    const wide = register.type.bits === 64;
    const local = e.newLocal('i64');
    e.push(step, scalarType(wide ? 's64' : 's32'));
    if (!wide) code.op('i64.extend_i32_s');
    code.set(local);
    if (wide && by === undefined) {
      code
        .get(local)
        .i64(GREATEST_STEP)
        .op('i64.add')
        .i64(2n * GREATEST_STEP)
        .op('i64.lt_u');
      test();
      code
        .get(local)
        .i64(LARGEST_ELEMENT - 1)
        .op('i64.and')
        .op('i64.eqz');
      test();
    }
    if (wide) return local;
    const end = e.newLocal('i64');
    code.get(e.registerLocal(register)).op(signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
    code
      .get(turns)
      .op('i64.extend_i32_u')
      .get(local)
      .op('i64.mul')
      .op(subtracts ? 'i64.sub' : 'i64.add')
      .set(end);
    checkCounter(e, each, end, each === comparison.counter ? comparison : undefined, test);
    return local;
  });
  const addresses = loop.block.insts.slice(0, loop.from);
  for (const inst of addresses) emit(inst);
  const starts = ranges.map((range) => checkRange(e, range, test));
  // The places of the next turn give their steps.
  const before = moved.map(({ register, subtracts }, index) => {
    const { wasm } = register.type;
    const local = e.newLocal(wasm);
    code.get(e.registerLocal(register)).tee(local).get(steps[index]!);
    if (wasm === 'i32') code.op('i32.wrap_i64');
    code.op(`${wasm}.${subtracts ? 'sub' : 'add'}`).set(e.registerLocal(register));
    return local;
  });
  for (const inst of addresses)
    if (inst.defs.some((register) => loop.changes(register))) emit(inst);
  const deltas = ranges.map((range, index) => {
    if (!loop.changes(range.base)) return undefined;
    const delta = e.newLocal('i64');
    pushStart(e, range);
    code.get(starts[index]!.whole).op('i64.sub').set(delta);
    return delta;
  });
  moved.forEach(({ register }, index) => {
    code.get(before[index]!).set(e.registerLocal(register));
  });
  return ranges.map((range, index) => {
    const { whole, local } = starts[index]!;
    const delta = deltas[index];
    if (delta === undefined) return { range, local, delta };
    code.get(whole).get(turns).op('i64.extend_i32_u').get(delta).op('i64.mul').op('i64.add');
    testRange(e, range, test);
    const step = e.newLocal('i32');
    code.get(delta).op('i32.wrap_i64').set(step);
    return { range, local, delta: step };
  });
}

/**
 * The instructions of a turn without its comparison, and without those that only compute checked
 * addresses.
 */
export function workOf(
  e: LaneEmitter,
  { block: { insts }, from, comparison, ranges }: SteadyLoop,
): Inst[] {
  const accesses = new Set(ranges.flatMap((range) => range.accesses.map(({ inst }) => inst)));
  const read = new Set<Register>();
  const work = insts.slice(from).filter((inst) => inst !== comparison.inst);
  for (const inst of work)
    for (const register of inst.uses)
      if (
        !accesses.has(inst) ||
        inst.args.some((arg) => arg.kind !== 'address' && mentions(arg, register))
      )
        read.add(register);
  const needed: Inst[] = [];
  for (const inst of insts.slice(0, from).reverse()) {
    if (!inst.defs.some((register) => read.has(register) || !e.isOwn(register))) continue;
    needed.unshift(inst);
    for (const register of inst.uses) read.add(register);
  }
  return [...needed, ...work];
}

/**
 * Tests that a counter of the unit's threads keeps within its range until the end, and that the
 * loop continues by it.
 */
function checkCounter(
  e: LaneEmitter,
  { register, by, subtracts, signed }: Moved,
  end: number,
  comparison: Comparison | undefined,
  test: () => void,
): void {
  const { code } = e;
  const span = e.stride({ kind: 'register', register } as Arg)! * (e.width - 1);
  const [below, above] = [Math.min(0, span), Math.max(0, span)];
  const least = signed ? -(2n ** 31n) : 0n;
  const extend = signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u';
  const up = by === undefined ? undefined : by >= 0n !== subtracts;
  const pushFirst = (): void => {
    code.get(e.registerLocal(register)).op(extend);
  };
  const pushEnd = (): void => {
    code.get(end);
  };
  const notBelow = (push: () => void): void => {
    push();
    code.i64(least - BigInt(below)).op('i64.ge_s');
    test();
  };
  const notAbove = (push: () => void): void => {
    push();
    code.i64(least + 2n ** 32n - 1n - BigInt(above)).op('i64.le_s');
    test();
  };
  const onItsWay = (push: () => void, word: string, extreme: number): void => {
    push();
    if (extreme) code.i64(extreme).op('i64.add');
    e.push(comparison!.bound, scalarType(signed ? 's32' : 'u32'));
    code.op(extend).op(opcodeNamed(`i64.${word}_s`));
    test();
  };
  const { operation } = comparison ?? {};
  // A bound of `ne` has to be ahead of all of them.
  const word = operation === 'ne' ? (up ? 'lt' : 'gt') : operation;
  const bounded =
    word === 'lt' || word === 'le' ? 'above' : word === undefined ? undefined : 'below';
  // The first thread's value is in range; a counter that goes towards one end of the range comes
  // from the other.
  if (below < 0 && bounded !== 'below') notBelow(pushFirst);
  if (above > 0 && bounded !== 'above') notAbove(pushFirst);
  if (up !== true && bounded !== 'below') notBelow(pushEnd);
  if (up !== false && bounded !== 'above') notAbove(pushEnd);
  if (word === undefined) return;
  const extreme = bounded === 'above' ? above : below;
  if (up !== (bounded === 'above')) onItsWay(pushFirst, word, extreme);
  onItsWay(pushEnd, word, extreme);
}

/** A pass: loops of whole units of which some turns at a time run without checks. */
export function versionLoops({ whole, hoisted }: CodePlan, k: LaneKernelEmitter): void {
  if (!whole) return;
  k.inVersion(true, () => {
    for (const [header, loop] of whole.loops)
      if (loop.region.members.size === 1 && k.frames.live.includes(header))
        loop.versioned = findSteadyLoop(k, k.kernel.blocks[header]!, hoisted?.of);
  });
}
