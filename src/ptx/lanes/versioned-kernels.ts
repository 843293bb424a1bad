// Kernels without state whose threads all take the same path after guards such as `if (i >= n)
// return`, and go through memory in even steps: if the accesses of the first unit of a block and of
// the last are valid, and both take that path, this holds for the units between them, too. Those
// then run without any checks.
//
// Addresses and guards are linear in the thread's number, in the arithmetic of their registers,
// which may wrap around; where numbers of 32 bits are widened or compared, they are checked not to
// wrap from the first thread to the last. Steps are limited, so that an address cannot wrap around
// to valid memory.

import type { Block } from '../analysis/blocks.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { CodePlan } from './code-plan.js';
import { OPPOSITE, findGuard } from './guards.js';
import type { Guard } from './guards.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { meanings, ofMeaning } from './meanings.js';
import type { Transfer } from './meanings.js';
import type { LanePlan } from './plan.js';
import { isPure, mentions, typesOf } from './spread.js';
import { accessOf, checkRange, rangesOf, testRange } from './unchecked-accesses.js';
import type { FoundAccess, Range } from './unchecked-accesses.js';
import { opcodeNamed } from '../wasm/opcodes.js';

/** Longer kernels are not worth another copy: their checks are a small part. */
const LONGEST = 64;
/**
 * The greatest step of an address of 32 bits: times a block's 1024 threads, it cannot pass all of
 * them.
 */
const GREATEST_NARROW_STEP = 2 ** 20;
/** Special registers that are the same in all threads of a block that is one row. */
const FIXED = /^(?:(?:n?ctaid|ntid)\.[xyz]|tid\.[yz])$/;

/**
 * The step of an operand from thread to thread of the block; absent if it is not known to be
 * constant.
 */
type StrideOf = (arg: Arg | undefined) => number | undefined;

/** A branch after which the block's threads continue. */
interface Condition {
  /** A comparison of varying values, or a predicate that is uniform. */
  guard: Guard | undefined;
  predicate: Register;
  /** The result for which they continue. */
  wanted: boolean;
}

/** A number of 32 bits that may not wrap. */
interface Counter {
  value: Arg;
  signed: boolean;
  stride: number;
}

export interface SteadyUnits {
  /**
   * Instructions that run once: those of uniform values, and those that compute addresses and
   * guards.
   */
  first: readonly Inst[];
  /** The instructions of each unit. */
  work: readonly Inst[];
  conditions: readonly Condition[];
  counters: readonly Counter[];
  ranges: readonly { range: Range; stride: number }[];
  /** The path's last block, as a part of which they are written. */
  block: Block;
}

/** For a kernel whose blocks of threads are one row. */
function findSteadyUnits(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
): SteadyUnits | undefined {
  const path = pathOf(e, plan, blocks);
  if (!path) return undefined;
  /** Registers that are linear, or uniform in the block. */
  const linear = new Set<Register>();
  const counters: Counter[] = [];
  const strideOf: StrideOf = (arg) => {
    switch (arg?.kind) {
      case 'integer':
      case 'float':
        return 0;
      case 'register':
        return linear.has(arg.register) ? e.stride(arg) : undefined;
      case 'special':
        return arg.name === 'tid.x' ? 1 : FIXED.test(arg.name) ? 0 : undefined;
      case 'symbol':
        return arg.symbol.kind !== 'paramRegister' && e.stride(arg) === 0 ? 0 : undefined;
      default:
        return undefined;
    }
  };
  const strideIn = (register: Register): number | undefined =>
    strideOf({ kind: 'register', register } as Arg);
  const isParameter = ({ traits, modifiers, args }: Inst): boolean =>
    traits.meaning === 'load' &&
    modifiers.includes('param') &&
    args.slice(1).every((arg) => arg.kind === 'address' && !arg.base && e.stride(arg) === 0);
  const isFixed = (inst: Inst): boolean =>
    isParameter(inst) ||
    (isPure(inst) &&
      inst.uses.every((register) => strideIn(register) === 0) &&
      inst.args.slice(1).every((arg) => arg.kind !== 'special' || strideOf(arg) === 0));
  const definitions = new Map<Register, number>();
  for (const register of path.insts.flatMap(({ defs }) => defs))
    definitions.set(register, (definitions.get(register) ?? 0) + 1);
  const known = new Set<Register>();
  const first: Inst[] = [];
  const rest: Inst[] = [];
  for (const inst of path.insts) {
    if (inst.predicate || !inst.uses.every((register) => known.has(register))) return undefined;
    for (const register of inst.defs) known.add(register);
    // What runs first runs before everything else: no other instruction may overwrite it.
    if (inst.defs.some((register) => definitions.get(register)! > 1)) {
      rest.push(inst);
      continue;
    }
    const strides = inst.defs.map((register) => e.stride({ kind: 'register', register } as Arg));
    if (
      isFixed(inst)
        ? strides.every((stride) => stride === 0)
        : isPure(inst) && isLinear(inst, strideOf, counters) && strides[0] !== undefined
    ) {
      for (const register of inst.defs) linear.add(register);
      first.push(inst);
    } else {
      rest.push(inst);
    }
  }
  for (const { guard, predicate } of path.conditions) {
    if (!guard) {
      if (strideIn(predicate) !== 0) return undefined;
      continue;
    }
    const [left, right] = guard.inst.args.slice(1) as [Arg, Arg];
    if (
      strideOf(guard.stepping) !== guard.stride ||
      strideOf(guard.stepping === left ? right : left) !== 0
    )
      return undefined;
    counters.push({ value: guard.stepping, signed: guard.signed, stride: guard.stride });
  }
  const accesses: FoundAccess[] = [];
  for (const [index, inst] of rest.entries()) {
    if (isPure(inst)) continue;
    const found = accessOf(e, inst);
    if (!found) return undefined;
    accesses.push({ index, inst, found });
  }
  const ranges = rangesOf(e, accesses).ranges.map((range) => ({
    range,
    stride: strideIn(range.base),
  }));
  if (
    !accesses.length ||
    ranges.some(
      ({ stride, range }) =>
        stride === undefined || (!range.wide && Math.abs(stride) > GREATEST_NARROW_STEP),
    )
  )
    return undefined;
  if (ranges.reduce((sum, { range }) => sum + range.accesses.length, 0) < accesses.length)
    return undefined;
  return {
    first,
    work: workOf(first, rest, accesses, strideIn),
    conditions: path.conditions,
    counters,
    ranges: ranges as { range: Range; stride: number }[],
    block: path.block,
  };
}

/** The blocks of the path on which threads do not leave at a branch, as one. */
function pathOf(
  e: LaneEmitter,
  plan: LanePlan,
  blocks: readonly Block[],
): { insts: readonly Inst[]; conditions: readonly Condition[]; block: Block } | undefined {
  const insts: Inst[] = [];
  const conditions: Condition[] = [];
  const seen = new Set<number>();
  for (let block = blocks[0]!; ;) {
    const { ending, index } = block;
    if (seen.has(index)) return undefined;
    seen.add(index);
    insts.push(...block.insts);
    if (insts.length > LONGEST) return undefined;
    switch (ending.kind) {
      case 'return':
      case 'exit':
        return { insts, conditions, block };
      case 'jump':
        block = blocks[ending.to]!;
        break;
      case 'branch': {
        const { register, negated } = ending.inst.predicate!;
        const taken = plan.leaves(ending.no);
        if (taken === plan.leaves(ending.yes)) return undefined;
        const guard = findGuard(e, block, e.isOwn(register));
        if (guard) insts.pop();
        conditions.push({ guard, predicate: register, wanted: taken !== negated });
        block = blocks[taken ? ending.yes : ending.no]!;
        break;
      }
      default:
        return undefined;
    }
  }
}

/** An instruction on integers of 32 or 64 bits whose operands may be linear. */
interface Operands {
  inst: Inst;
  /** The type of the operands. */
  type: ScalarType;
  /** The type of the result. */
  target: ScalarType;
  strideOf: StrideOf;
  /** Gets the numbers that may not wrap if the result is to be linear. */
  counters: Counter[];
}

const isInteger = ({ kind, bits }: ScalarType): boolean =>
  kind !== 'float' && kind !== 'predicate' && (bits === 32 || bits === 64);

/**
 * Whether the result is linear in the thread's number over the whole block, in the arithmetic of
 * its register, if the operands are. Its step is the one that the plan gives for a unit.
 */
function isLinear(inst: Inst, strideOf: StrideOf, counters: Counter[]): boolean {
  const target = inst.defs[0]?.type;
  const type = typesOf(inst).at(-1);
  return (
    inst.defs.length === 1 &&
    isInteger(target!) &&
    type !== undefined &&
    isInteger(type) &&
    ofMeaning(LINEAR, inst)({ inst, type, target: target!, strideOf, counters })
  );
}

/** The width in which an operand is read. */
const bitsOf = ({ type }: Operands, arg: Arg | undefined): number | undefined =>
  arg?.kind === 'register'
    ? arg.register.type.bits
    : arg?.kind === 'special'
      ? 32
      : arg?.kind === 'integer'
        ? type.bits
        : undefined;

const factorOf = ({ type }: Operands, arg: Arg | undefined): number | undefined =>
  arg?.kind === 'integer' ? Number(BigInt.asIntN(type.bits, arg.value)) : undefined;

/** Records that an operand of 32 bits is widened. */
function widen({ counters, type, strideOf }: Operands, arg: Arg): void {
  const stride = strideOf(arg);
  if (stride) counters.push({ value: arg, signed: type.kind === 'signed', stride });
}

/** A sum or a difference. */
function isLinearSum(operands: Operands): boolean {
  const { inst, type, target, strideOf } = operands;
  const [, x, y] = inst.args;
  return (
    inst.modifiers.length === 1 &&
    type.bits === target.bits &&
    bitsOf(operands, x) === type.bits &&
    bitsOf(operands, y) === type.bits &&
    strideOf(x) !== undefined &&
    strideOf(y) !== undefined
  );
}

/** A product of uniform operands, or of a stepping one and a literal. */
function isLinearProduct(operands: Operands): boolean {
  const { inst, type, target, strideOf } = operands;
  const { modifiers } = inst;
  const [, x, y] = inst.args;
  if (
    modifiers.length !== 2 ||
    bitsOf(operands, x) !== type.bits ||
    bitsOf(operands, y) !== type.bits
  )
    return false;
  const wide = modifiers[0] === 'wide';
  if (
    wide
      ? type.bits !== 32 || target.bits !== 64
      : modifiers[0] !== 'lo' || type.bits !== target.bits
  )
    return false;
  const [a, b] = [strideOf(x), strideOf(y)];
  if (a === undefined || b === undefined) return false;
  if (a === 0 && b === 0) return true;
  return (a === 0 || b === 0) && factorOf(operands, a === 0 ? x : y) !== undefined;
}

/** The conditions of a linear product for its factors. */
function widenFactors(operands: Operands): boolean {
  const { inst, type, strideOf } = operands;
  const factors = inst.args.slice(1, 3);
  if (inst.modifiers[0] !== 'wide') return true;
  const steps = factors.some((arg) => arg.kind !== 'integer' && strideOf(arg) !== 0);
  // An unsigned literal of 2^31 or more is not a step, which could be taken for a negative one.
  if (
    steps &&
    type.kind !== 'signed' &&
    factors.some((arg) => arg.kind === 'integer' && factorOf(operands, arg)! < 0)
  )
    return false;
  for (const arg of factors) widen(operands, arg);
  return true;
}

const LINEAR: Transfer<Operands, boolean> = {
  move: (operands) => {
    const { inst, target, strideOf } = operands;
    const [, x] = inst.args;
    return (
      inst.modifiers.length === 1 &&
      bitsOf(operands, x) === target.bits &&
      strideOf(x) !== undefined
    );
  },
  'convert address': ({ inst: { args }, target, strideOf }) =>
    args[1]?.kind === 'register' &&
    args[1].register.type.bits === target.bits &&
    strideOf(args[1]) !== undefined,
  convert: (operands) => {
    const { inst, type, target, strideOf } = operands;
    const [, x] = inst.args;
    const to = inst.modifiers.length === 2 ? scalarType(inst.modifiers[0]!) : undefined;
    if (
      !to ||
      strideOf(x) === undefined ||
      !isInteger(to) ||
      to.bits !== target.bits ||
      bitsOf(operands, x) !== type.bits
    )
      return false;
    if (to.bits > type.bits) widen(operands, x!);
    return true;
  },
  sum: isLinearSum,
  difference: isLinearSum,
  product: (operands) => isLinearProduct(operands) && widenFactors(operands),
  'multiply-add': (operands) => {
    const { inst, type, target, strideOf } = operands;
    const z = inst.args[3];
    return (
      isLinearProduct(operands) &&
      strideOf(z) !== undefined &&
      bitsOf(operands, z) === (z?.kind === 'integer' ? type.bits : target.bits) &&
      widenFactors(operands)
    );
  },
  'shift left': (operands) => {
    const { inst, type, target, strideOf } = operands;
    const [, x, y] = inst.args;
    const by = factorOf(operands, y);
    return (
      inst.modifiers.length === 1 &&
      type.bits === target.bits &&
      bitsOf(operands, x) === type.bits &&
      strideOf(x) !== undefined &&
      by !== undefined &&
      by >= 0 &&
      by <= 28
    );
  },
  ...meanings(
    ['minimum', 'shift right', 'and', 'or', 'xor', 'not', 'comparison', 'load', 'opaque'],
    () => false,
  ),
};

/**
 * The instructions of each unit: all others, and those of values that differ from unit to unit,
 * except the addresses of accesses.
 */
function workOf(
  first: readonly Inst[],
  rest: readonly Inst[],
  accesses: readonly FoundAccess[],
  strideIn: (register: Register) => number | undefined,
): Inst[] {
  const through = new Map(accesses.map(({ inst, found }) => [inst, found.address.base!]));
  const read = new Set<Register>();
  for (const inst of rest) {
    const base = through.get(inst);
    for (const register of inst.uses)
      if (
        register !== base ||
        inst.args.some((arg) => arg.kind !== 'address' && mentions(arg, register))
      )
        read.add(register);
  }
  const again: Inst[] = [];
  for (const inst of [...first].reverse()) {
    if (!inst.defs.some((register) => read.has(register) && strideIn(register) !== 0)) continue;
    again.unshift(inst);
    for (const register of inst.uses) read.add(register);
  }
  return [...again, ...rest];
}

/**
 * Calls `test` with each condition on the stack under which this many threads (a local, a multiple
 * of the unit's) from `e.base` on run without a check. Writes the instructions that run once.
 * Returns the places of the first unit, and how far they move from unit to unit.
 */
export function checkSteadyUnits(
  e: LaneEmitter,
  units: SteadyUnits,
  threads: number,
  test: () => void,
): { range: Range; local: number; step: number }[] {
  const { code } = e;
  const { conditions, counters, ranges } = units;
  const last = e.newLocal('i64');
  code.get(threads).i32(1).op('i32.sub').op('i64.extend_i32_u').set(last);
  const pushEnd = (value: Arg, signed: boolean, stride: number): void => {
    pushWide(e, value, signed);
    code.get(last).i64(stride).op('i64.mul').op('i64.add');
  };
  const seen = new Set<string>();
  for (const { value, signed, stride } of counters) {
    const source =
      value.kind === 'register'
        ? `r${value.register.id}`
        : value.kind === 'special'
          ? value.name
          : '';
    const name = `${source} ${signed}`;
    // A thread's own number does not wrap.
    if (seen.has(name) || value.kind === 'special') continue;
    seen.add(name);
    pushEnd(value, signed, stride);
    code
      .i64(signed ? 2n ** 31n : 0n)
      .op('i64.add')
      .i64(2n ** 32n)
      .op('i64.lt_u');
    test();
  }
  for (const { guard, predicate, wanted } of conditions) {
    if (!guard) {
      code.get(e.registerLocal(predicate));
      if (!wanted) code.op('i32.eqz');
      test();
      continue;
    }
    const { inst, stepping, stride, signed, operation } = guard;
    const word = wanted ? operation : OPPOSITE[operation]!;
    const [left, right] = inst.args.slice(1) as [Arg, Arg];
    // The value that is nearest to the bound decides.
    const greatest = (word === 'lt' || word === 'le') === (stepping === left);
    for (const arg of [left, right]) {
      if (arg === stepping && greatest === stride > 0) pushEnd(arg, signed, stride);
      else pushWide(e, arg, signed);
    }
    code.op(opcodeNamed(`i64.${word}_s`));
    test();
  }
  return ranges.map(({ range, stride }) => {
    const { whole, local } = checkRange(e, range, test);
    if (!stride) return { range, local, step: 0 };
    code.get(whole).get(threads).i32(e.width).op('i32.sub');
    if (range.wide) code.op('i64.extend_i32_u').i64(stride).op('i64.mul').op('i64.add');
    else code.i32(stride).op('i32.mul').op('i32.add');
    testRange(e, range, test);
    return { range, local, step: stride * e.width };
  });
}

/** Pushes an operand of 32 bits as a number of 64. */
function pushWide(e: LaneEmitter, value: Arg, signed: boolean): void {
  e.push(value, scalarType(signed ? 's32' : 'u32'));
  e.code.op(signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
}

/** A pass: units of a kernel without state, in blocks of one row, that run without checks. */
export function versionUnits(code: CodePlan, k: LaneKernelEmitter): void {
  if (!k.kernel.layout.stateful && k.oneRow)
    code.units = findSteadyUnits(k, k.plan, k.kernel.blocks);
}
