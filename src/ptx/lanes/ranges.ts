// The values of addresses of shared memory, where they follow from how the address is computed: a
// byte that was loaded, shifted and added to a variable's address is an address within the
// variable, if that is large enough. Such accesses need no check.

import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register, SharedVariable } from '../analysis/program.js';
import { isScalarType, scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { meanings, ofMeaning } from './meanings.js';
import type { Transfer } from './meanings.js';

/**
 * The values of a register: from 0 to `most`, in steps of a power of two, added to the address of a
 * variable if there is one.
 */
interface Range {
  base: SharedVariable | undefined;
  most: number;
  step: number;
}

export interface Ranges {
  /**
   * All bytes of an access of `size` bytes at the register's address plus the offset are within a
   * variable, and it is aligned.
   */
  within(register: Register, offset: number, size: number): boolean;
}

const WHOLE = 2 ** 32;
/** Rounds after which a value that still grows counts as unlimited. */
const ROUNDS = 4;

const largestStep = (value: number): number => (value === 0 ? WHOLE : (value & -value) >>> 0);

/** The ranges of registers of 16 and 32 bits; undefined is any value. */
export function findRanges(
  blocks: readonly Block[],
  order: readonly number[],
  liveness: Liveness,
): Ranges {
  const known = new Map<number, Range | undefined>();
  for (const { id } of liveness.liveIn(0)) known.set(id, undefined);
  for (let round = 0, changed = true; changed; round++) {
    changed = false;
    for (const index of order) {
      for (const inst of instructionsOf(blocks[index]!)) {
        const found = inst.defs.length === 1 && !inst.predicate ? rangeOf(inst, known) : undefined;
        for (const { id } of inst.defs) {
          const before = known.get(id);
          if (known.has(id) && !before) continue;
          const after = before ? cover(before, found) : found;
          if (known.has(id) && after?.most === before?.most && after?.step === before?.step)
            continue;
          known.set(id, round < ROUNDS ? after : undefined);
          changed = true;
        }
      }
    }
  }
  return {
    within: (register, offset, size) => {
      const range = known.get(register.id);
      if (!range?.base || range.base.dynamic || offset < 0) return false;
      return (
        range.most + offset + size <= range.base.size &&
        range.base.align % size === 0 &&
        range.step % size === 0 &&
        offset % size === 0
      );
    },
  };
}

function cover(a: Range, b: Range | undefined): Range | undefined {
  return b && a.base === b.base
    ? { base: a.base, most: Math.max(a.most, b.most), step: Math.min(a.step, b.step) }
    : undefined;
}

const upTo = (most: number, step = 1): Range | undefined =>
  most < WHOLE ? { base: undefined, most, step: Math.min(step, WHOLE) } : undefined;

/** An instruction on integers of 16 or 32 bits, and the ranges of its operands. */
interface Operands {
  inst: Inst;
  /** The instruction's types: the first, and the last, which is that of the operands. */
  to: ScalarType;
  type: ScalarType;
  /** The bits of the result's register. */
  bits: number;
  source: (index: number) => Range | undefined;
}

function rangeOf(inst: Inst, known: ReadonlyMap<number, Range | undefined>): Range | undefined {
  const target = inst.args[0];
  const { modifiers } = inst;
  if (
    target?.kind !== 'register' ||
    modifiers.some((word) => word === 'sat' || word === 'cc' || word === 'hi')
  )
    return undefined;
  const { bits, kind } = target.register.type;
  const types = modifiers.filter(isScalarType).map(scalarType);
  const type = types.at(-1);
  if (
    !type ||
    kind === 'float' ||
    kind === 'predicate' ||
    (bits !== 16 && bits !== 32) ||
    types.some((each) => each.kind === 'float' || each.kind === 'predicate')
  )
    return undefined;
  const source = (index: number): Range | undefined => argRange(inst.args[index + 1], known);
  return ofMeaning(RANGES, inst)({ inst, to: types[0]!, type, bits, source });
}

const literal = ({ inst }: Operands, index: number): number | undefined => {
  const arg = inst.args[index + 1];
  return arg?.kind === 'integer' && arg.value >= 0n && arg.value < 2n ** 31n
    ? Number(arg.value)
    : undefined;
};

/** A range of numbers, not of addresses. */
const plain = (range: Range | undefined): Range | undefined =>
  range && !range.base ? range : undefined;

/** The range, if the result's register holds all of it. */
const fitting = ({ bits }: Operands, range: Range | undefined): Range | undefined =>
  range && range.most < 2 ** bits ? range : undefined;

function product({ type, source }: Operands): Range | undefined {
  const [a, b] = [plain(source(0)), plain(source(1))];
  // A signed factor of 16 bits with its highest bit set is less than zero.
  if (
    !a ||
    !b ||
    (type.kind === 'signed' && (a.most >= 2 ** (type.bits - 1) || b.most >= 2 ** (type.bits - 1)))
  )
    return undefined;
  return upTo(a.most * b.most, a.step * b.step);
}

function sum(a: Range | undefined, b: Range | undefined): Range | undefined {
  if (!a || !b || (a.base && b.base)) return undefined;
  const most = a.most + b.most;
  return most < WHOLE
    ? { base: a.base ?? b.base, most, step: Math.min(a.step, b.step) }
    : undefined;
}

const unknown = (): undefined => undefined;

const RANGES: Transfer<Operands, Range | undefined> = {
  load: ({ type, inst: { modifiers } }) =>
    type.kind !== 'signed' && type.bits < 32 && !modifiers.some((word) => /^v[248]$/.test(word))
      ? upTo(2 ** type.bits - 1)
      : undefined,
  move: (operands) => fitting(operands, operands.source(0)),
  convert: ({ to, type, bits, source }) => {
    const from = plain(source(0));
    // A result with fewer bits than its register is truncated.
    const cut = type.kind === 'signed' ? undefined : 2 ** type.bits - 1;
    const inside =
      from && from.most < 2 ** (type.bits - (type.kind === 'signed' ? 1 : 0))
        ? from
        : cut === undefined
          ? undefined
          : upTo(cut);
    return inside && inside.most < 2 ** Math.min(to.bits, bits) / (to.kind === 'signed' ? 2 : 1)
      ? inside
      : undefined;
  },
  sum: (operands) => fitting(operands, sum(operands.source(0), operands.source(1))),
  product: (operands) => fitting(operands, product(operands)),
  'multiply-add': (operands) => fitting(operands, sum(product(operands), operands.source(2))),
  'shift left': (operands) => {
    const [a, count] = [plain(operands.source(0)), literal(operands, 1)];
    return a && count !== undefined && count < 32
      ? fitting(operands, upTo(a.most * 2 ** count, a.step * 2 ** count))
      : undefined;
  },
  'shift right': (operands) => {
    const { type, bits, source } = operands;
    const [a, count] = [plain(source(0)) ?? upTo(2 ** bits - 1), literal(operands, 1)];
    return a && count !== undefined && count < 32 && type.kind !== 'signed'
      ? upTo(Math.floor(a.most / 2 ** count), Math.max(1, a.step / 2 ** count))
      : undefined;
  },
  and: (operands) => {
    for (const [value, mask] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const bound = literal(operands, mask);
      const range = plain(operands.source(value));
      if (bound !== undefined)
        return upTo(
          Math.min(bound, range?.most ?? bound),
          Math.max(largestStep(bound), range?.step ?? 1),
        );
    }
    return undefined;
  },
  minimum: ({ type, bits, source }) => {
    const [a, b] = [plain(source(0)), plain(source(1))];
    const both = (): Range | undefined =>
      a && b && upTo(Math.min(a.most, b.most), Math.min(a.step, b.step));
    if (type.kind === 'signed')
      return a && b && a.most < 2 ** bits / 2 && b.most < 2 ** bits / 2 ? both() : undefined;
    return both() ?? (a ? upTo(a.most) : b && upTo(b.most));
  },
  ...meanings(
    ['convert address', 'difference', 'or', 'xor', 'not', 'comparison', 'opaque'],
    unknown,
  ),
};

function argRange(
  arg: Arg | undefined,
  known: ReadonlyMap<number, Range | undefined>,
): Range | undefined {
  switch (arg?.kind) {
    case 'register':
      return known.get(arg.register.id);
    case 'integer':
      return arg.value >= 0n && arg.value < 2n ** 31n
        ? { base: undefined, most: Number(arg.value), step: largestStep(Number(arg.value)) }
        : undefined;
    case 'symbol':
      return arg.symbol.kind === 'shared' && arg.offset >= 0
        ? { base: arg.symbol.variable, most: arg.offset, step: largestStep(arg.offset) }
        : undefined;
    default:
      return undefined;
  }
}
