// How a register's value differs between the threads of a unit: it is uniform, steps by a constant
// from one thread to the next, or varies. Steps survive address arithmetic, so that accesses of
// adjacent threads become one.

import type { Arg, Inst, Register, Symbol as ProgramSymbol } from '../analysis/program.js';
import { isScalarType, scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { ADDRESS_ARITHMETIC, meanings, ofMeaning } from './meanings.js';
import type { Transfer } from './meanings.js';
import {
  argPattern,
  commonPattern,
  evenStep,
  relative,
  resultPattern,
  samePattern,
} from './pattern.js';
import type { Pattern } from './pattern.js';

/** The difference of each thread's value from the one before; `undefined` if it is not constant. */
export interface Spread {
  stride: number | undefined;
  /**
   * With stride 1: the value of the unit's first thread is a multiple of the number of its threads.
   */
  aligned: boolean;
  /** What is known of integers and predicates in addition to an even step, or instead of one. */
  pattern?: Pattern;
  /** Without a step: the number of lowest bits in which the values differ, if not in all. */
  low?: number;
}

export const UNIFORM: Spread = { stride: 0, aligned: false };
export const VARYING: Spread = { stride: undefined, aligned: false };
const THREAD_INDEX: Spread = { stride: 1, aligned: true };

/** The instruction's result depends only on its operands, and it has no other effect. */
export const isPure = ({ traits, carry }: Inst): boolean => traits.effect === 'none' && !carry;

export type SpreadOf = (register: Register) => Spread | undefined;

/** The spread of an operand; absent while a register's is not known yet. */
export function argSpread(arg: Arg, of: SpreadOf): Spread | undefined {
  switch (arg.kind) {
    case 'register':
      return of(arg.register);
    case 'special':
      if (arg.name === 'tid.x' || arg.name === 'laneid') return THREAD_INDEX;
      return arg.name.startsWith('lanemask') ? VARYING : UNIFORM;
    case 'symbol':
      return symbolSpread(arg.symbol, of);
    case 'address': {
      if (arg.base) return of(arg.base);
      return arg.symbol ? symbolSpread(arg.symbol, of) : UNIFORM;
    }
    case 'vector':
      return all(arg.elements, of);
    case 'pair':
      return all([arg.first, arg.second], of);
    case 'not':
      return all([arg.operand], of);
    default:
      return UNIFORM;
  }
}

/** A call's parameter is a register, and a read gives what has been written to it. */
function symbolSpread(symbol: ProgramSymbol, of: SpreadOf): Spread | undefined {
  if (symbol.kind === 'paramRegister') return of(symbol.register);
  return symbol.kind === 'frame' || symbol.kind === 'incoming' ? VARYING : UNIFORM;
}

/** Uniform if all operands are, else varying. */
function all(args: readonly Arg[], of: SpreadOf): Spread | undefined {
  for (const arg of args) {
    const spread = argSpread(arg, of);
    if (!spread) return undefined;
    if (spread.stride !== 0) return VARYING;
  }
  return UNIFORM;
}

const literal = (arg: Arg | undefined): number | undefined =>
  arg?.kind === 'integer' && arg.value >= -(2n ** 31n) && arg.value < 2n ** 32n
    ? Number(arg.value)
    : undefined;

/** The words after a mnemonic that are types; other words may follow them. */
export const typesOf = (inst: Inst): ScalarType[] =>
  inst.modifiers.filter(isScalarType).map(scalarType);

/** An instruction and the spreads of its operands. */
interface Operands {
  inst: Inst;
  /** All but the first, which is the result. */
  sources: readonly Arg[];
  /** The threads of a unit. */
  width: number;
  of: SpreadOf;
}

const spreadOf = ({ sources, of }: Operands, index: number): Spread | undefined =>
  argSpread(sources[index]!, of);
const strideOf = (operands: Operands, index: number): number | undefined =>
  spreadOf(operands, index)?.stride;

/**
 * The spread of an instruction's result. `wraps(register)` means that everything but addresses uses
 * only the low 32 bits of a 64-bit register: then 32-bit steps may be widened.
 */
export function resultSpread(
  inst: Inst,
  of: SpreadOf,
  wraps: (register: Register) => boolean,
  width: number,
): Spread | undefined {
  const sources = inst.args.slice(1);
  // The first operand of a store is its address; for a call's parameter it is the result.
  const stores = inst.traits.operands.parameter === 'writes' && inst.defs.length === 0;
  const same = all(stores ? inst.args : sources, of);
  if (!same) return undefined;
  if (inst.predicate) {
    const predicate = of(inst.predicate.register);
    if (!predicate) return undefined;
    if (predicate.stride !== 0) return VARYING;
  }
  const { effect } = inst.traits;
  if (effect !== 'none') return same.stride === 0 && effect === 'repeatable' ? UNIFORM : VARYING;
  const operands: Operands = { inst, sources, width, of };
  return patterned(
    same.stride === 0
      ? UNIFORM
      : stepsEvenly(inst, wraps)
        ? ofMeaning(STEPS, inst)(operands)
        : VARYING,
    patternOf(operands),
  );
}

/** The spread from what is known of the step and of the pattern. */
function patterned(spread: Spread, pattern: Pattern | undefined): Spread {
  if (!pattern) return spread;
  const { stride = evenStep(pattern), aligned, low } = spread;
  const starts =
    stride === 1 && pattern.modulus >= pattern.offsets.length && pattern.offsets[0] === 0;
  return { stride, aligned: aligned || starts, pattern, ...(low ? { low } : {}) };
}

/** The pattern of a register whose spread is known. */
function registerPattern({ stride, aligned, pattern }: Spread, width: number): Pattern | undefined {
  if (aligned && stride === 1 && !pattern?.modulus)
    return {
      offsets: Array.from({ length: width }, (_, lane) => lane),
      modulus: width,
      origin: undefined,
    };
  if (pattern || stride === undefined) return pattern;
  return {
    offsets: Array.from({ length: width }, (_, lane) => lane * stride),
    modulus: stride ? 0 : 1,
    origin: undefined,
  };
}

function patternOf({ inst, sources, width, of }: Operands): Pattern | undefined {
  const target = inst.args[0];
  if (target?.kind !== 'register' || inst.defs.length !== 1 || inst.modifiers.some(isInexact))
    return undefined;
  const own = target.register.type;
  const types = typesOf(inst);
  const type = types.at(-1) ?? own;
  const integer = ({ kind, bits }: ScalarType): boolean =>
    kind !== 'float' && (bits === 32 || bits === 64);
  if (own.kind === 'predicate' ? type.kind === 'float' : !integer(own) || !types.every(integer))
    return undefined;
  // Registers of other widths than the instruction's are truncated or widened.
  const fits = sources.every(
    (arg) =>
      arg.kind !== 'register' ||
      arg.register.type.bits === type.bits ||
      (inst.traits.meaning === 'multiply-add' && arg === sources[2]),
  );
  const result = inst.modifiers.includes('wide')
    ? 64
    : types.length > 1
      ? types[0]!.bits
      : own.kind === 'predicate'
        ? 1
        : type.bits;
  if (!fits || result !== own.bits) return undefined;
  const source = (index: number): Pattern | undefined =>
    argPattern(sources[index], width, ({ register }) => {
      const spread = of(register);
      return spread && registerPattern(spread, width);
    });
  return resultPattern(inst, source, own.bits, type.bits, type.kind === 'signed');
}

/** Modifiers that change the low bits of results. */
const isInexact = (word: string): boolean => word === 'sat' || word === 'cc' || word === 'hi';

/** Whether a result of integers can step evenly if the operands do. */
function stepsEvenly(inst: Inst, wraps: (register: Register) => boolean): boolean {
  const target = inst.args[0];
  if (target?.kind !== 'register') return false;
  const { meaning } = inst.traits;
  if (meaning === 'comparison') return true;
  const { type: own } = target.register;
  if (own.kind === 'float' || own.kind === 'predicate' || own.bits < 32) return false;
  const types = typesOf(inst);
  if (types.some((type) => type.kind === 'float' || type.bits < 32 || type.bits > 64)) return false;
  if (inst.modifiers.some(isInexact)) return false;
  const wide = own.bits === 64;
  const source = inst.args[1];
  const widens =
    inst.modifiers.includes('wide') ||
    ((meaning === 'convert' || meaning === 'move' || meaning === 'convert address') &&
      wide &&
      source?.kind === 'register' &&
      source.register.type.bits < 64) ||
    (meaning === 'convert' && wide && types.at(-1)?.bits === 32);
  return !widens || wraps(target.register);
}

/** A spread with that step, if the step is small enough to be useful. */
const stepping = (value: number | undefined, aligned = false): Spread =>
  value === undefined || !Number.isSafeInteger(value) || Math.abs(value) >= 2 ** 26
    ? VARYING
    : { stride: value, aligned: aligned && value === 1 };

const plus = (a: number | undefined, b: number | undefined, sign = 1): number | undefined =>
  a === undefined || b === undefined ? undefined : a + sign * b;

/**
 * The step of the product of the first two operands: one factor is a literal, or both are uniform.
 */
function productStep(operands: Operands): number | undefined {
  if (strideOf(operands, 0) === 0 && strideOf(operands, 1) === 0) return 0;
  for (const [value, factor] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const constant = literal(operands.sources[factor]);
    const step = strideOf(operands, value);
    if (constant !== undefined && step !== undefined) return step * (constant | 0);
  }
  return undefined;
}

/** The step of a result from those of its operands, not all of which are uniform. */
const STEPS: Transfer<Operands, Spread> = {
  ...meanings(['move', 'convert', 'convert address'], (operands: Operands) =>
    stepping(strideOf(operands, 0), spreadOf(operands, 0)?.aligned),
  ),
  sum: (operands) => {
    const { sources, width } = operands;
    const kept = (a: number, b: number): boolean =>
      spreadOf(operands, a)?.aligned === true && (literal(sources[b]) ?? 1) % width === 0;
    return stepping(plus(strideOf(operands, 0), strideOf(operands, 1)), kept(0, 1) || kept(1, 0));
  },
  difference: (operands) => stepping(plus(strideOf(operands, 0), strideOf(operands, 1), -1)),
  product: (operands) => stepping(productStep(operands)),
  'multiply-add': (operands) => stepping(plus(productStep(operands), strideOf(operands, 2))),
  'shift left': (operands) => {
    const count = literal(operands.sources[1]);
    const step = strideOf(operands, 0);
    return count === undefined || step === undefined || count < 0 || count > 28
      ? VARYING
      : stepping(step * 2 ** count);
  },
  'shift right': (operands) => {
    const count = literal(operands.sources[1]);
    const low = count === undefined ? undefined : lowBits(spreadOf(operands, 0), operands.width);
    return low === undefined ? VARYING : inLowBits(low - count!);
  },
  and: (operands) => {
    const { sources, width } = operands;
    for (const [value, other] of [
      [0, 1],
      [1, 0],
    ] as const) {
      const mask = literal(sources[other]);
      const spread = spreadOf(operands, value);
      const low = lowBits(spread, width);
      if (low === undefined || mask === undefined) continue;
      if (spread!.aligned && (mask & (width - 1)) === width - 1) return stepping(1, true);
      return mask % 2 ** low === 0 ? UNIFORM : inLowBits(low);
    }
    return VARYING;
  },
  comparison: (operands) => (isSameSide(operands) ? UNIFORM : VARYING),
  ...meanings(['minimum', 'or', 'xor', 'not', 'load', 'opaque'], () => VARYING),
};

/** The number of lowest bits in which the values differ. */
const lowBits = (spread: Spread | undefined, width: number): number | undefined =>
  spread?.aligned ? Math.log2(width) : spread?.low;

const inLowBits = (low: number): Spread => (low > 0 ? { ...VARYING, low } : UNIFORM);

/** A comparison as in `tid > 31`: whole units are on one side of the literal. */
function isSameSide({ inst: { modifiers }, sources, of, width }: Operands): boolean {
  const [comparison, type, ...rest] = modifiers;
  const bound = literal(sources[1]);
  if (
    rest.length ||
    sources.length !== 2 ||
    (type !== 's32' && type !== 'u32') ||
    bound === undefined ||
    !argSpread(sources[0]!, of)?.aligned
  )
    return false;
  switch (comparison) {
    case 'lt':
    case 'ge':
    case 'lo':
    case 'hs':
      return bound % width === 0;
    case 'gt':
    case 'le':
    case 'hi':
    case 'ls':
      return (bound + 1) % width === 0;
    default:
      return false;
  }
}

/** The best description that covers both, without alignment. */
export function meet(a: Spread, b: Spread): Spread {
  if (a.stride !== b.stride) return VARYING;
  const pattern = commonPattern(a.pattern, b.pattern);
  const low = a.low === undefined || b.low === undefined ? undefined : Math.max(a.low, b.low);
  return {
    stride: a.stride,
    aligned: a.aligned && b.aligned,
    ...(pattern ? { pattern } : {}),
    ...(low ? { low } : {}),
  };
}

export const sameSpread = (a: Spread, b: Spread): boolean =>
  a.stride === b.stride &&
  a.aligned === b.aligned &&
  a.low === b.low &&
  samePattern(a.pattern, b.pattern);

/**
 * The difference of each thread's value in a unit from the first one's; absent if it may be
 * anything.
 */
export function steps({ stride, pattern }: Spread, width: number): readonly number[] | undefined {
  if (stride !== undefined) return Array.from({ length: width }, (_, lane) => lane * stride);
  return pattern && relative(pattern);
}

/** 64-bit registers whose values serve only as addresses, also through sums and moves. */
export function addressOnly(
  instructions: readonly Inst[],
  registers: readonly Register[],
): (register: Register) => boolean {
  const other = new Uint8Array(registers.length);
  for (let changed = true; changed;) {
    changed = false;
    const mark = ({ id }: Register): void => {
      if (other[id]) return;
      other[id] = 1;
      changed = true;
    };
    for (const inst of instructions) {
      const target = inst.args[0];
      const passes =
        ofMeaning(ADDRESS_ARITHMETIC, inst) === 'passes' &&
        !inst.modifiers.some(isInexact) &&
        target?.kind === 'register' &&
        (target.register.type.bits < 64
          ? typesOf(inst).every((type) => type.kind !== 'float')
          : !other[target.register.id]);
      const memory = inst.traits.operands.parameter !== undefined;
      inst.args.forEach((arg, index) => {
        if (arg.kind === 'address' && memory && arg.symbol?.kind !== 'paramRegister') return;
        if (index === 0 && inst.defs.length) return;
        if (passes && arg.kind === 'register') return;
        for (const register of inst.uses) if (mentions(arg, register)) mark(register);
      });
      if (inst.call) inst.uses.forEach(mark);
    }
  }
  return (register) => !other[register.id];
}

/** Whether the register is in the operand. */
function mentions(arg: Arg, register: Register): boolean {
  switch (arg.kind) {
    case 'register':
      return arg.register === register;
    case 'address':
      return (
        arg.base === register ||
        (arg.symbol?.kind === 'paramRegister' && arg.symbol.register === register) ||
        arg.extra.some((part) => mentions(part, register))
      );
    case 'vector':
      return arg.elements.some((part) => mentions(part, register));
    case 'pair':
      return mentions(arg.first, register) || mentions(arg.second, register);
    case 'not':
      return mentions(arg.operand, register);
    default:
      return false;
  }
}
