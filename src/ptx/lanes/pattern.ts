// What the threads of a unit differ by, where that is known when the kernel is compiled: values as
// in `tid ^ 4`, `tid & 7` or `tid >> 3` are a part that all threads have in common and offsets that
// are literals. Bits that lie below the common part's lowest one do not mix with it, so that logic
// and shifts by literals keep the two apart.

import type { Arg, Inst } from '../analysis/program.js';

export interface Pattern {
  /** What each thread of the unit has above the common part. */
  offsets: readonly number[];
  /**
   * A power of two that divides the common part and is more than every offset; 0 where there is no
   * such thing.
   */
  modulus: number;
  /**
   * Names the common part: values of a thread that have the same name have the same one. '#n' is
   * the literal n.
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

/** All threads' values are known. */
export const isKnown = ({ origin, modulus }: Pattern): boolean =>
  origin === '#0' && modulus === WHOLE;

export const known = (offsets: readonly number[]): Pattern => ({
  offsets,
  modulus: WHOLE,
  origin: '#0',
});

/** What a thread has more than the first one. */
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

/** What holds of either. */
export function commonPattern(a: Pattern | undefined, b: Pattern | undefined): Pattern | undefined {
  if (a === b || !a || !b) return a && b;
  if (samePattern(a, b)) return a;
  // Literals that differ by what all threads share still step alike.
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

/** Both with the smaller modulus of the two. */
function alike(a: Pattern, b: Pattern): [Pattern, Pattern] | undefined {
  const modulus = Math.min(a.modulus, b.modulus);
  const [left, right] = [within(a, modulus), within(b, modulus)];
  return left && right && [left, right];
}

/** Offsets alone; none where they are too far from each other to be of use. */
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
  // The offsets go, and what is left is common.
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
  // Below 2^31 offsets change no sign.
  if (left.modulus > 2 ** 31) return undefined;
  if (left.origin !== undefined && left.origin === right.origin) {
    return known(left.offsets.map((offset, lane) => Number(holds(offset - right.offsets[lane]!))));
  }
  if (left.offsets.every((offset, lane) => offset === right.offsets[lane]))
    return { offsets: left.offsets.map(() => 0), modulus: 1, origin: undefined };
  return undefined;
}

/**
 * Special registers that are the same each time a thread reads them, and all threads' of a unit.
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

/** The pattern of what an instruction on integers of 32 or 64 bits, or on predicates, writes. */
export function resultPattern(
  inst: Inst,
  source: (index: number) => Pattern | undefined,
  bits: number,
  sourceBits: number,
  signed: boolean,
): Pattern | undefined {
  const { mnemonic, modifiers } = inst;
  const [a, b] = [source(0), source(1)];
  if (!a) return undefined;
  const literalOf = (arg: Arg | undefined): number | undefined =>
    arg?.kind === 'integer' && arg.value >= -(2n ** 31n) && arg.value < 2n ** 32n
      ? Number(arg.value)
      : undefined;
  /** The product of two operands, one of them a literal. */
  const product = (): Pattern | undefined => {
    const left = literalOf(inst.args[1]);
    const right = literalOf(inst.args[2]);
    const factor = right ?? left;
    const from = right === undefined ? b : a;
    if (factor === undefined || !from) return undefined;
    if (!modifiers.includes('wide')) return times(from, bits === 32 ? factor | 0 : factor, bits);
    const whole = widen(from, signed);
    return whole && times(whole, signed ? factor | 0 : factor >>> 0, 64);
  };
  if (bits === 1) {
    if (mnemonic === 'setp')
      return b && sourceBits === 32 && modifiers.length === 2
        ? compare(modifiers[0]!, signed, a, b)
        : undefined;
    if (!isKnown(a)) return undefined;
    if (a.offsets.some((offset) => offset > 1)) return undefined;
    if (mnemonic === 'mov') return a;
    if (mnemonic === 'not') return known(a.offsets.map((offset) => 1 - offset));
    if (!b || !isKnown(b)) return undefined;
    return mnemonic === 'and' || mnemonic === 'or' || mnemonic === 'xor'
      ? logic(mnemonic, a, b)
      : undefined;
  }
  switch (mnemonic) {
    case 'mov':
    case 'cvta':
    case 'copy':
    case 'cvt':
      if (bits === sourceBits) return a;
      if (bits === 64) return widen(a, signed);
      return loose(a.offsets);
    case 'add':
      return b && sum(a, b, 1, bits);
    case 'sub':
      return b && sum(a, b, -1, bits);
    case 'mul':
      return product();
    case 'mad': {
      const [first, addend] = [product(), source(2)];
      return first && addend && sum(first, addend, 1, bits);
    }
    case 'and':
    case 'or':
    case 'xor':
      return b && bits === 32 ? logic(mnemonic, a, b) : undefined;
    case 'shl': {
      const count = literalOf(inst.args[2]);
      return count === undefined || count < 0 || count > 31
        ? undefined
        : times(a, 2 ** count, bits);
    }
    case 'shr': {
      const count = literalOf(inst.args[2]);
      return count === undefined || bits !== 32 ? undefined : shiftRight(a, count, signed);
    }
    default:
      return undefined;
  }
}

/**
 * The same in 64 bits, where no value passes the end of 32 bits on the way from one thread to
 * another.
 */
function widen(pattern: Pattern, signed: boolean): Pattern | undefined {
  if (isKnown(pattern))
    return loose(pattern.offsets.map((offset) => (signed ? offset | 0 : offset)));
  return pattern.modulus && pattern.modulus <= 2 ** 31 ? loose(pattern.offsets) : undefined;
}
