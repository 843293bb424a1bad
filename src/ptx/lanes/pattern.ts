// Differences between the threads of a unit that are known at compile time: values as in `tid ^ 4`,
// `tid & 7` or `tid >> 3` are a part that all threads have in common plus offsets that are
// literals. Bits below the common part's lowest one do not mix with it, so that logic and shifts by
// literals keep the two separate.

import type { Arg, Inst } from '../analysis/program.js';
import { meanings, ofMeaning } from './meanings.js';
import type { Transfer } from './meanings.js';

export interface Pattern {
  /** The offset of each thread of the unit from the common part. */
  offsets: readonly number[];
  /**
   * A power of two that divides the common part and is greater than every offset; 0 if there is
   * none.
   */
  modulus: number;
  /**
   * The name of the common part: values of a thread with the same name are equal. '#n' is the
   * literal n.
   */
  origin: string | undefined;
}

const WHOLE = 2 ** 32;
const MOST_STEP = 2 ** 26;
const LONGEST_NAME = 60;

const named = (name: string): string | undefined => (name.length > LONGEST_NAME ? undefined : name);
const joined = (
  a: string | undefined,
  operation: string,
  b: string | undefined,
): string | undefined =>
  a === undefined || b === undefined ? undefined : named(`(${a}${operation}${b})`);

/** The values of all threads are known. */
export const isKnown = ({ origin, modulus }: Pattern): boolean =>
  origin === '#0' && modulus === WHOLE;

export const known = (offsets: readonly number[]): Pattern => ({
  offsets,
  modulus: WHOLE,
  origin: '#0',
});

/** The difference of each thread's value from the first one's. */
export const relative = ({ offsets }: Pattern): number[] =>
  offsets.map((offset) => offset - offsets[0]!);

/** The step from each thread to the next, if it is always the same. */
export function evenStep({ offsets }: Pattern): number | undefined {
  const step = (offsets[1] ?? 0) - offsets[0]!;
  return offsets.every((offset, lane) => offset === offsets[0]! + lane * step) ? step : undefined;
}

export function samePattern(a: Pattern | undefined, b: Pattern | undefined): boolean {
  if (!a || !b) return a === b;
  return (
    a.modulus === b.modulus &&
    a.origin === b.origin &&
    a.offsets.every((offset, lane) => offset === b.offsets[lane])
  );
}

/** A pattern that describes both. */
export function commonPattern(a: Pattern | undefined, b: Pattern | undefined): Pattern | undefined {
  if (a === b || !a || !b) return a && b;
  if (samePattern(a, b)) return a;
  // Literals that differ by the same amount in all threads step alike.
  const [first, second] = [relative(a), relative(b)];
  if (!first.every((offset, lane) => offset === second[lane])) return undefined;
  const modulus = Math.min(a.modulus, b.modulus);
  const [left, right] = [within(a, modulus), within(b, modulus)];
  if (!left || !right || left.offsets[0] !== right.offsets[0])
    return {
      offsets: first,
      modulus: first.every((offset) => offset === 0) ? 1 : 0,
      origin: undefined,
    };
  return {
    offsets: left.offsets,
    modulus,
    origin: left.origin === right.origin ? left.origin : undefined,
  };
}

/** The same values with a smaller modulus, if what is above it is common to all threads. */
function within(pattern: Pattern, modulus: number): Pattern | undefined {
  if (modulus === 0 || pattern.modulus < modulus) return undefined;
  if (pattern.modulus === modulus) return pattern;
  const above = Math.floor(pattern.offsets[0]! / modulus);
  if (pattern.offsets.some((offset) => Math.floor(offset / modulus) !== above)) return undefined;
  const { origin } = pattern;
  const name = origin?.startsWith('#')
    ? `#${Number(origin.slice(1)) + above * modulus}`
    : above
      ? joined(origin, '+', `#${above * modulus}`)
      : origin;
  return { offsets: pattern.offsets.map((offset) => offset % modulus), modulus, origin: name };
}

/** Both patterns with the smaller modulus of the two. */
function alike(a: Pattern, b: Pattern): [Pattern, Pattern] | undefined {
  const modulus = Math.min(a.modulus, b.modulus);
  const [left, right] = [within(a, modulus), within(b, modulus)];
  return left && right && [left, right];
}

/** Offsets without a common part; undefined if they are too far apart to be useful. */
function loose(offsets: readonly number[]): Pattern | undefined {
  const reach = offsets.map((offset) => Math.abs(offset - offsets[0]!));
  return reach.every((step) => Number.isSafeInteger(step) && step < MOST_STEP * offsets.length)
    ? { offsets, modulus: 0, origin: undefined }
    : undefined;
}

function logic(operation: 'and' | 'or' | 'xor', a: Pattern, b: Pattern): Pattern | undefined {
  const pair = alike(a, b);
  if (!pair) return undefined;
  const [left, right] = pair;
  const { modulus } = left;
  const apply = (x: number, y: number): number =>
    (operation === 'and' ? x & y : operation === 'or' ? x | y : x ^ y) >>> 0;
  const offsets = left.offsets.map((offset, lane) => apply(offset, right.offsets[lane]!));
  const literals = [left, right].map(({ origin }) =>
    origin?.startsWith('#') ? Number(origin.slice(1)) : undefined,
  );
  for (const [index, literal] of literals.entries()) {
    if (literal === undefined) continue;
    const other = literals[1 - index];
    if (other !== undefined) return known(offsets.map((offset) => offset + apply(literal, other)));
    if (operation === 'and' && literal === 0) return known(offsets);
    const same = operation === 'and' ? WHOLE - modulus : 0;
    if (literal === same) return { offsets, modulus, origin: pair[1 - index]!.origin };
  }
  return { offsets, modulus, origin: joined(left.origin, operation, right.origin) };
}

function sum(a: Pattern, b: Pattern, sign: 1 | -1, bits: number): Pattern | undefined {
  if (isKnown(a) && isKnown(b) && bits === 32)
    return known(a.offsets.map((offset, lane) => (offset + sign * b.offsets[lane]!) >>> 0));
  const pair = bits === 32 ? alike(a, b) : undefined;
  if (pair) {
    const [left, right] = pair;
    const offsets = left.offsets.map((offset, lane) => offset + sign * right.offsets[lane]!);
    if (offsets.every((offset) => offset >= 0 && offset < left.modulus)) {
      if (right.origin === '#0') return { offsets, modulus: left.modulus, origin: left.origin };
      return {
        offsets,
        modulus: left.modulus,
        origin: joined(left.origin, sign > 0 ? '+' : '-', right.origin),
      };
    }
  }
  return loose(a.offsets.map((offset, lane) => offset + sign * b.offsets[lane]!));
}

function times(pattern: Pattern, factor: number, bits: number): Pattern | undefined {
  if (isKnown(pattern) && bits === 32)
    return known(pattern.offsets.map((offset) => Math.imul(offset, factor) >>> 0));
  const offsets = pattern.offsets.map((offset) => offset * factor);
  const modulus = pattern.modulus * factor;
  if (
    bits === 32 &&
    factor > 0 &&
    Number.isInteger(Math.log2(factor)) &&
    pattern.modulus &&
    modulus <= WHOLE
  ) {
    return {
      offsets,
      modulus,
      origin: factor === 1 ? pattern.origin : joined(pattern.origin, '*', `${factor}`),
    };
  }
  return loose(offsets);
}

function shiftRight(pattern: Pattern, count: number, signed: boolean): Pattern | undefined {
  if (!pattern.modulus || count < 0 || count > 31) return undefined;
  if (isKnown(pattern))
    return known(
      pattern.offsets.map((offset) => (signed ? offset >> count : offset >>> count) >>> 0),
    );
  const by = 2 ** count;
  const origin = joined(pattern.origin, signed ? '>>' : '>>>', `${count}`);
  // The offsets vanish, and the rest is common.
  if (by >= pattern.modulus) return { offsets: pattern.offsets.map(() => 0), modulus: 1, origin };
  return {
    offsets: pattern.offsets.map((offset) => Math.floor(offset / by)),
    modulus: pattern.modulus / by,
    origin,
  };
}

const COMPARISONS: Record<string, (order: number) => boolean> = {
  eq: (order) => order === 0,
  ne: (order) => order !== 0,
  lt: (order) => order < 0,
  le: (order) => order <= 0,
  gt: (order) => order > 0,
  ge: (order) => order >= 0,
  lo: (order) => order < 0,
  ls: (order) => order <= 0,
  hi: (order) => order > 0,
  hs: (order) => order >= 0,
};

const UNSIGNED = new Set(['lo', 'ls', 'hi', 'hs']);

function compare(comparison: string, signed: boolean, a: Pattern, b: Pattern): Pattern | undefined {
  const holds = COMPARISONS[comparison];
  if (!holds) return undefined;
  if (isKnown(a) && isKnown(b)) {
    const read = (value: number): number =>
      signed && !UNSIGNED.has(comparison) ? value | 0 : value;
    return known(
      a.offsets.map((offset, lane) => Number(holds(read(offset) - read(b.offsets[lane]!)))),
    );
  }
  const pair = alike(a, b);
  if (!pair) return undefined;
  const [left, right] = pair;
  // Offsets below 2^31 change no sign.
  if (left.modulus > 2 ** 31) return undefined;
  if (left.origin !== undefined && left.origin === right.origin) {
    return known(left.offsets.map((offset, lane) => Number(holds(offset - right.offsets[lane]!))));
  }
  if (left.offsets.every((offset, lane) => offset === right.offsets[lane]))
    return { offsets: left.offsets.map(() => 0), modulus: 1, origin: undefined };
  return undefined;
}

/**
 * Special registers that are the same each time a thread reads them, and the same in all threads of
 * a unit.
 */
const CONSTANT = /^(tid\.[yz]|n?ctaid\.[xyz]|ntid\.[xyz])$/;

/** The pattern of an operand. `ofRegister` gives a register's. */
export function argPattern(
  arg: Arg | undefined,
  width: number,
  ofRegister: (arg: Arg & { kind: 'register' }) => Pattern | undefined,
): Pattern | undefined {
  const all = (value: number): number[] => new Array<number>(width).fill(value);
  switch (arg?.kind) {
    case 'register':
      return ofRegister(arg);
    case 'integer':
      return known(all(Number(BigInt.asUintN(32, arg.value))));
    case 'special':
      if (arg.name === 'laneid' && width === 32) return known(all(0).map((_, lane) => lane));
      if (arg.name === 'tid.x' || arg.name === 'laneid')
        return { offsets: all(0).map((_, lane) => lane), modulus: width, origin: arg.name };
      return arg.name.startsWith('lanemask')
        ? undefined
        : { offsets: all(0), modulus: 1, origin: CONSTANT.test(arg.name) ? arg.name : undefined };
    case 'symbol':
      return arg.symbol.kind === 'frame' || arg.symbol.kind === 'incoming'
        ? undefined
        : { offsets: all(0), modulus: 1, origin: undefined };
    default:
      return undefined;
  }
}

/**
 * An instruction on integers of 32 or 64 bits, or on predicates, and the patterns that it reads.
 */
interface Operands {
  inst: Inst;
  /** The pattern of the first operand. */
  a: Pattern;
  source: (index: number) => Pattern | undefined;
  /** The bits of the result. */
  bits: number;
  /** The bits of the operands. */
  sourceBits: number;
  signed: boolean;
}

/** The pattern of an instruction's result. */
export function resultPattern(
  inst: Inst,
  source: (index: number) => Pattern | undefined,
  bits: number,
  sourceBits: number,
  signed: boolean,
): Pattern | undefined {
  const a = source(0);
  return (
    a &&
    ofMeaning(
      bits === 1 ? PREDICATES : INTEGERS,
      inst,
    )({ inst, a, source, bits, sourceBits, signed })
  );
}

const literalOf = (arg: Arg | undefined): number | undefined =>
  arg?.kind === 'integer' && arg.value >= -(2n ** 31n) && arg.value < 2n ** 32n
    ? Number(arg.value)
    : undefined;

const nothing = (): undefined => undefined;

/** A value of 0 or 1 in each thread. */
const isTruth = (pattern: Pattern | undefined): pattern is Pattern =>
  pattern !== undefined && isKnown(pattern) && pattern.offsets.every((offset) => offset <= 1);

const logicOfTruths =
  (operation: 'and' | 'or' | 'xor') =>
  ({ a, source }: Operands): Pattern | undefined => {
    const b = source(1);
    return isTruth(a) && b && isKnown(b) ? logic(operation, a, b) : undefined;
  };

const PREDICATES: Transfer<Operands, Pattern | undefined> = {
  comparison: ({ inst: { modifiers }, a, source, sourceBits, signed }) => {
    const b = source(1);
    return b && sourceBits === 32 && modifiers.length === 2
      ? compare(modifiers[0]!, signed, a, b)
      : undefined;
  },
  move: ({ a }) => (isTruth(a) ? a : undefined),
  not: ({ a }) => (isTruth(a) ? known(a.offsets.map((offset) => 1 - offset)) : undefined),
  and: logicOfTruths('and'),
  or: logicOfTruths('or'),
  xor: logicOfTruths('xor'),
  ...meanings(
    [
      'convert',
      'convert address',
      'sum',
      'difference',
      'product',
      'multiply-add',
      'minimum',
      'shift left',
      'shift right',
      'load',
      'opaque',
    ],
    nothing,
  ),
};

/** The product of the first two operands, one of which is a literal. */
function product({ inst, a, source, bits, signed }: Operands): Pattern | undefined {
  const left = literalOf(inst.args[1]);
  const right = literalOf(inst.args[2]);
  const factor = right ?? left;
  const from = right === undefined ? source(1) : a;
  if (factor === undefined || !from) return undefined;
  if (!inst.modifiers.includes('wide')) return times(from, bits === 32 ? factor | 0 : factor, bits);
  const whole = widen(from, signed);
  return whole && times(whole, signed ? factor | 0 : factor >>> 0, 64);
}

function moved({ a, bits, sourceBits, signed }: Operands): Pattern | undefined {
  if (bits === sourceBits) return a;
  return bits === 64 ? widen(a, signed) : loose(a.offsets);
}

const added =
  (sign: 1 | -1) =>
  ({ a, source, bits }: Operands): Pattern | undefined => {
    const b = source(1);
    return b && sum(a, b, sign, bits);
  };

const combined =
  (operation: 'and' | 'or' | 'xor') =>
  ({ a, source, bits }: Operands): Pattern | undefined => {
    const b = source(1);
    return b && bits === 32 ? logic(operation, a, b) : undefined;
  };

const INTEGERS: Transfer<Operands, Pattern | undefined> = {
  ...meanings(['move', 'convert', 'convert address'], moved),
  sum: added(1),
  difference: added(-1),
  product,
  'multiply-add': (operands) => {
    const [first, addend] = [product(operands), operands.source(2)];
    return first && addend && sum(first, addend, 1, operands.bits);
  },
  and: combined('and'),
  or: combined('or'),
  xor: combined('xor'),
  'shift left': ({ inst, a, bits }) => {
    const count = literalOf(inst.args[2]);
    return count === undefined || count < 0 || count > 31 ? undefined : times(a, 2 ** count, bits);
  },
  'shift right': ({ inst, a, bits, signed }) => {
    const count = literalOf(inst.args[2]);
    return count === undefined || bits !== 32 ? undefined : shiftRight(a, count, signed);
  },
  ...meanings(['minimum', 'not', 'comparison', 'load', 'opaque'], nothing),
};

/** The same in 64 bits, if no value passes the end of 32 bits between one thread and another. */
function widen(pattern: Pattern, signed: boolean): Pattern | undefined {
  if (isKnown(pattern))
    return loose(pattern.offsets.map((offset) => (signed ? offset | 0 : offset)));
  return pattern.modulus && pattern.modulus <= 2 ** 31 ? loose(pattern.offsets) : undefined;
}
