// What addresses of shared memory can be, where that follows from how they are made: a byte that
// was loaded, shifted and added to a variable's address lies within the variable, if that is large
// enough. Such accesses need no check.

import type { Block } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Arg, Inst, Register, SharedVariable } from '../analysis/program.js';
import { isScalarType, scalarType } from '../scalar-types.js';

/**
 * Every value of a register: from 0 to `most`, in steps of a power of two, past the address of a
 * variable if there is one.
 */
interface Range {
  base: SharedVariable | undefined;
  most: number;
  step: number;
}

export interface Ranges {
  /**
   * All that an access of `size` bytes at the register's address plus the offset touches is within
   * a variable, and aligned.
   */
  within(register: Register, offset: number, size: number): boolean;
}

const WHOLE = 2 ** 32;
/** Rounds after which what still grows is taken to have no limit. */
const ROUNDS = 4;

const largestStep = (value: number): number => (value === 0 ? WHOLE : (value & -value) >>> 0);

/** Of registers of 16 and 32 bits; undefined stands for any value. */
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

function rangeOf(inst: Inst, known: ReadonlyMap<number, Range | undefined>): Range | undefined {
  const target = inst.args[0];
  const { mnemonic, modifiers } = inst;
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
  const limit = 2 ** bits;
  const source = (index: number): Range | undefined => argRange(inst.args[index + 1], known);
  const fitting = (range: Range | undefined): Range | undefined =>
    range && range.most < limit ? range : undefined;
  const literal = (index: number): number | undefined => {
    const arg = inst.args[index + 1];
    return arg?.kind === 'integer' && arg.value >= 0n && arg.value < 2n ** 31n
      ? Number(arg.value)
      : undefined;
  };
  const plain = (range: Range | undefined): Range | undefined =>
    range && !range.base ? range : undefined;
  const product = (): Range | undefined => {
    const [a, b] = [plain(source(0)), plain(source(1))];
    // A signed factor of 16 bits that has its highest bit set is less than zero.
    if (
      !a ||
      !b ||
      (type.kind === 'signed' && (a.most >= 2 ** (type.bits - 1) || b.most >= 2 ** (type.bits - 1)))
    )
      return undefined;
    return upTo(a.most * b.most, a.step * b.step);
  };
  const sum = (a: Range | undefined, b: Range | undefined): Range | undefined => {
    if (!a || !b || (a.base && b.base)) return undefined;
    const most = a.most + b.most;
    return most < WHOLE
      ? { base: a.base ?? b.base, most, step: Math.min(a.step, b.step) }
      : undefined;
  };
  switch (mnemonic) {
    case 'ld':
    case 'ldu':
      return type.kind !== 'signed' &&
        type.bits < 32 &&
        !modifiers.some((word) => /^v[248]$/.test(word))
        ? upTo(2 ** type.bits - 1)
        : undefined;
    case 'mov':
      return fitting(source(0));
    case 'cvt': {
      const from = plain(source(0));
      // From fewer bits than a register's the rest is cut off.
      const cut = type.kind === 'signed' ? undefined : 2 ** type.bits - 1;
      const inside =
        from && from.most < 2 ** (type.bits - (type.kind === 'signed' ? 1 : 0))
          ? from
          : cut === undefined
            ? undefined
            : upTo(cut);
      return inside &&
        inside.most < 2 ** Math.min(types[0]!.bits, bits) / (types[0]!.kind === 'signed' ? 2 : 1)
        ? inside
        : undefined;
    }
    case 'add':
      return fitting(sum(source(0), source(1)));
    case 'mul':
      return fitting(product());
    case 'mad':
      return fitting(sum(product(), source(2)));
    case 'shl': {
      const [a, count] = [plain(source(0)), literal(1)];
      return a && count !== undefined && count < 32
        ? fitting(upTo(a.most * 2 ** count, a.step * 2 ** count))
        : undefined;
    }
    case 'shr': {
      const [a, count] = [plain(source(0)) ?? upTo(limit - 1), literal(1)];
      return a && count !== undefined && count < 32 && type.kind !== 'signed'
        ? upTo(Math.floor(a.most / 2 ** count), Math.max(1, a.step / 2 ** count))
        : undefined;
    }
    case 'and': {
      for (const [value, mask] of [
        [0, 1],
        [1, 0],
      ] as const) {
        const bound = literal(mask);
        if (bound !== undefined)
          return upTo(
            Math.min(bound, plain(source(value))?.most ?? bound),
            Math.max(largestStep(bound), plain(source(value))?.step ?? 1),
          );
      }
      return undefined;
    }
    case 'min': {
      const [a, b] = [plain(source(0)), plain(source(1))];
      if (type.kind === 'signed')
        return a && b && a.most < limit / 2 && b.most < limit / 2
          ? upTo(Math.min(a.most, b.most), Math.min(a.step, b.step))
          : undefined;
      return a && b
        ? upTo(Math.min(a.most, b.most), Math.min(a.step, b.step))
        : a
          ? upTo(a.most)
          : b && upTo(b.most);
    }
    default:
      return undefined;
  }
}

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
