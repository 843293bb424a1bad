// Vector forms of instructions with integers of 8 and 16 bits besides wider values: conversions,
// and moves that pack and unpack values. Such an integer takes a lane of 32 bits; registers of 16
// have zeros above.

import type { Arg } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { pushRounded, pushWidened } from './halves.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import { cut, extend, fits, floatOperand, laneType, only, operand, popResult } from './operands.js';

const F32 = scalarType('f32');
const B16 = scalarType('b16');

/** Whether a register of one of these widths is a value of the type. */
function holds(
  arg: Arg | undefined,
  type: ScalarType,
  ...widths: number[]
): arg is Arg & { kind: 'register' } {
  if (arg?.kind !== 'register') return false;
  const own = arg.register.type;
  if (!widths.includes(own.bits) || own.kind === 'predicate') return false;
  return (
    own.kind === 'bits' ||
    type.kind === 'bits' ||
    (own.kind === 'float' ? own === type : type.kind !== 'float')
  );
}

/**
 * The operand's lanes: a register of 16 bits with zeros above, whatever its declared type; a
 * literal in the given type.
 */
function pushRaw(e: LaneEmitter, arg: Arg, type: ScalarType): void {
  const own = arg.kind === 'register' ? arg.register.type : type;
  e.pushLanes(arg, arg.kind === 'register' && own.bits === 16 && own.kind === 'signed' ? B16 : own);
}

/** The operand as integers of 32 bits. */
function pushExtended(e: LaneEmitter, arg: Arg, type: ScalarType): void {
  pushRaw(e, arg, type);
  if (arg.kind === 'register') extend(e, type, arg.register.type.bits);
}

export const highProduct: LaneRule = (e) => {
  const type = laneType(e);
  if (type?.bits !== 16 || !e.has('hi') || !only(e, 'hi') || !fits(e, [type, type, type]))
    return false;
  for (const index of [1, 2]) operand(e, e.inst.args[index]!, type, 0);
  e.code
    .op('i32x4.mul')
    .i32(16)
    .op(type.kind === 'signed' ? 'i32x4.shr_s' : 'i32x4.shr_u');
  popResult(e, type, 0);
  return true;
};

// Moves.

export const move: LaneRule = (e) => {
  const [type] = e.types();
  const [target, source] = e.inst.args;
  if (e.types().length !== 1 || !type || e.inst.args.length !== 2 || !only(e)) return false;
  if (source?.kind === 'vector')
    return target?.kind === 'register' && pack(e, target, source.elements, type);
  return (
    target?.kind === 'vector' &&
    source?.kind === 'register' &&
    unpack(e, target.elements, source, type)
  );
};

/** The part of a value of the type that each element has; undefined if there is no form for it. */
function partOf(elements: readonly Arg[], type: ScalarType): ScalarType | undefined {
  const bits = type.bits / elements.length;
  return type.bits <= 64 && (bits === 16 || bits === 32) ? scalarType(`b${bits}`) : undefined;
}

function pack(
  e: LaneEmitter,
  target: Arg & { kind: 'register' },
  elements: readonly Arg[],
  type: ScalarType,
): boolean {
  const { code } = e;
  const part = partOf(elements, type);
  if (
    !part ||
    !holds(target, type, type.bits) ||
    !elements.every((arg) => holds(arg, part, part.bits) || arg.kind === 'integer')
  )
    return false;
  const words = Array.from({ length: type.bits / 32 }, (_, word) => {
    const local = e.temp('v128');
    if (part.bits === 32) {
      pushRaw(e, elements[word]!, part);
    } else {
      pushRaw(e, elements[2 * word]!, part);
      pushRaw(e, elements[2 * word + 1]!, part);
      code.i32(16).op('i32x4.shl').op('v128.or');
    }
    code.set(local);
    return local;
  });
  const [low, high] = words;
  if (high === undefined) {
    code.get(low!);
    e.popLanes(target);
    return true;
  }
  for (const half of [0, 1]) {
    code
      .get(low!)
      .get(high)
      .shuffle(half ? [2, 6, 3, 7] : [0, 4, 1, 5]);
    e.popLanes(target, half);
  }
  return true;
}

function unpack(
  e: LaneEmitter,
  elements: readonly Arg[],
  source: Arg & { kind: 'register' },
  type: ScalarType,
): boolean {
  const { code } = e;
  const part = partOf(elements, type);
  if (
    !part ||
    !holds(source, type, type.bits) ||
    !elements.every((arg) => holds(arg, part, part.bits) || arg.kind === 'sink')
  )
    return false;
  const own = source.register.type;
  const pushWord = (word: number): void => {
    if (type.bits === 32) {
      e.pushLanes(source, own);
      return;
    }
    e.pushHalf(source, own, 0);
    e.pushHalf(source, own, 1);
    code.shuffle(word ? [1, 3, 5, 7] : [0, 2, 4, 6]);
  };
  elements.forEach((element, index) => {
    if (element.kind === 'sink') return;
    pushWord(part.bits === 32 ? index : index >> 1);
    if (part.bits === 16 && index % 2) code.i32(16).op('i32x4.shr_u');
    else if (part.bits === 16) cut(e, 16);
    e.popLanes(element);
  });
  return true;
}

// Conversions.

const isHalf = ({ name }: ScalarType): boolean => name === 'f16' || name === 'bf16';
const isInteger = ({ kind, bits }: ScalarType): boolean =>
  (kind === 'signed' || kind === 'unsigned') && bits <= 64;
const ROUNDING = { rni: 'nearest', rzi: 'trunc', rmi: 'floor', rpi: 'ceil' } as const;

/** Widths of the registers that a value of the type may be in. */
const widths = (type: ScalarType): number[] =>
  isInteger(type) && type.bits < 32 ? [16, 32] : [type.bits];

/** Conversions from or to types narrower than 32 bits. */
export const convert: LaneRule = (e) => {
  const [to, from] = e.types();
  if (!to || !from || e.types().length !== 2) return false;
  if (to.name === 'f16x2' || to.name === 'bf16x2') return convertPair(e, to, from);
  const {
    code,
    inst: { args },
  } = e;
  const [target, source] = args;
  const known = (type: ScalarType): boolean => isInteger(type) || isHalf(type) || type === F32;
  if ((to.bits >= 32 && from.bits >= 32) || !known(to) || !known(from) || args.length !== 2)
    return false;
  if (!holds(target, to, ...widths(to)) || !holds(source, from, ...widths(from))) return false;
  const pushFloat = (): void => {
    if (from === F32) {
      floatOperand(e, source, F32, 0);
    } else {
      pushRaw(e, source, from);
      pushWidened(e, from);
    }
  };
  const rounding = e.oneOf('rni', 'rzi', 'rmi', 'rpi');
  if (isInteger(from)) {
    if (isInteger(to)) return only(e) && fromInteger(e, target, to, source, from);
    if (to === F32) {
      if (from.bits > 16 || !only(e, 'rn', 'rz', 'rm', 'rp')) return false;
      pushExtended(e, source, from);
      code.op('f32x4.convert_i32x4_s');
      e.popLanes(target);
      return true;
    }
    // A value too large for f32 is infinite as f16.
    if (from.bits > (to.name === 'f16' ? 32 : 16) || !e.has('rn') || !only(e, 'rn')) return false;
    pushExtended(e, source, from);
    code.op(`f32x4.convert_i32x4_${from.kind === 'signed' ? 's' : 'u'}`);
    pushRounded(e, to);
    e.popLanes(target);
    return true;
  }
  if (isInteger(to)) {
    if (to.bits > 32 || !rounding || !only(e, rounding, ...(from === F32 ? ['ftz'] : [])))
      return false;
    pushFloat();
    if (rounding !== 'rzi') code.op(`f32x4.${ROUNDING[rounding]}`);
    if (to.bits === 32) {
      code.op(`i32x4.trunc_sat_f32x4_${to.kind === 'signed' ? 's' : 'u'}`);
    } else {
      const [least, most] =
        to.kind === 'signed'
          ? [-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1]
          : [0, 2 ** to.bits - 1];
      code
        .op('i32x4.trunc_sat_f32x4_s')
        .i32(least)
        .op('i32x4.splat')
        .op('i32x4.max_s')
        .i32(most)
        .op('i32x4.splat')
        .op('i32x4.min_s');
      if (target.register.type.bits === 16 && to.kind === 'signed') cut(e, 16);
    }
    e.popLanes(target);
    return true;
  }
  if (to === F32) {
    if (!only(e)) return false;
    pushFloat();
    e.popLanes(target);
    return true;
  }
  // The ISA flushes every f32 that is read; in conversions to f16 a GPU does not.
  if (
    from === F32
      ? !e.has('rn') || !only(e, 'rn', ...(to.name === 'f16' ? ['ftz'] : []))
      : to !== from || !rounding || !only(e, rounding)
  )
    return false;
  if (from === F32) {
    e.pushLanes(source, source.register.type);
  } else {
    pushFloat();
    code.op(`f32x4.${ROUNDING[rounding!]}`);
  }
  pushRounded(e, to);
  e.popLanes(target);
  return true;
};

function fromInteger(
  e: LaneEmitter,
  target: Arg & { kind: 'register' },
  to: ScalarType,
  source: Arg & { kind: 'register' },
  from: ScalarType,
): boolean {
  const { code } = e;
  if (to.bits === 64) {
    const value = e.temp('v128');
    pushExtended(e, source, from);
    code.set(value);
    for (const half of [0, 1]) {
      code
        .get(value)
        .op(`i64x2.extend_${half ? 'high' : 'low'}_i32x4_${from.kind === 'signed' ? 's' : 'u'}`);
      e.popLanes(target, half);
    }
    return true;
  }
  if (from.bits === 64) {
    e.pushHalf(source, source.register.type, 0);
    e.pushHalf(source, source.register.type, 1);
    code.shuffle([0, 2, 4, 6]);
  } else if (from.bits < to.bits) {
    pushExtended(e, source, from);
  } else {
    pushRaw(e, source, from);
  }
  // In a wider register the result is extended by its own sign.
  if (to.bits < from.bits || (to.bits === from.bits && to.bits < 32)) extend(e, to, 32);
  if (
    to.bits < 32 &&
    target.register.type.bits === 16 &&
    (to.kind === 'signed' || from.kind === 'signed')
  )
    cut(e, 16);
  e.popLanes(target);
  return true;
}

/** cvt.rn.f16x2.f32 d, a, b: a becomes the high half. */
function convertPair(e: LaneEmitter, to: ScalarType, from: ScalarType): boolean {
  const {
    code,
    inst: { args },
  } = e;
  const [target, ...sources] = args;
  if (
    from !== F32 ||
    !e.has('rn') ||
    !only(e, 'rn') ||
    sources.length !== 2 ||
    !holds(target, to, 32)
  )
    return false;
  if (!sources.every((arg) => holds(arg, F32, 32) || arg.kind === 'float')) return false;
  const half = scalarType(to.name.replace('x2', ''));
  for (const [index, arg] of sources.entries()) {
    pushRaw(e, arg, F32);
    pushRounded(e, half);
    if (index === 0) code.i32(16).op('i32x4.shl');
  }
  code.op('v128.or');
  e.popLanes(target);
  return true;
}
