// The operands of vector rules: which types and operands they take, and how values come to the
// stack and results from it.

import type { Arg } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter } from './lane-emitter.js';

export const PRED = scalarType('pred');

/**
 * The instruction's only type, if lanes of 32 or 64 bits hold its values: an integer of 16 bits has
 * zeros above.
 */
export function laneType(e: LaneEmitter): ScalarType | undefined {
  const types = e.types();
  const [type] = types;
  if (types.length !== 1 || !type) return undefined;
  return isWhole(type) || isShort(type) ? type : undefined;
}

/** Registers of the type are whole lanes: 32 or 64 bits, or predicates. */
export const isWhole = (type: ScalarType): boolean =>
  (type.bits === 32 && !/x2$|^tf32$/.test(type.name)) ||
  type.bits === 64 ||
  type.kind === 'predicate';

const isShort = (type: ScalarType): boolean => type.bits === 16 && type.kind !== 'float';

export const halves = (type: ScalarType): readonly number[] => (type.bits === 64 ? [0, 1] : [0]);
const SHAPES = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' } as const;

export const shapeOf = (type: ScalarType): (typeof SHAPES)[ScalarType['wasm']] => SHAPES[type.wasm];
export const isFloat = (type: ScalarType): boolean => type.kind === 'float';

/** The instruction has only these modifiers besides types. */
export const only = (e: LaneEmitter, ...modifiers: string[]): boolean =>
  e.inst.modifiers.every(
    (word) => modifiers.includes(word) || e.types().some((type) => type.name === word),
  );

/** Registers of other widths are left to the scalar rules, which handle or reject them. */
export function fits(e: LaneEmitter, types: readonly ScalarType[]): boolean {
  return (
    e.inst.args.length === types.length &&
    e.inst.args.every((arg, index) => fitsOne(arg, types[index]!))
  );
}

export function fitsOne(arg: Arg, type: ScalarType): boolean {
  switch (arg.kind) {
    case 'register':
      if (type.kind === 'predicate' || arg.register.type.kind === 'predicate')
        return type.kind === arg.register.type.kind;
      return arg.register.type.bits === type.bits && !/x2$|^tf32$/.test(arg.register.type.name);
    case 'not':
      return type.kind === 'predicate' && fitsOne(arg.operand, type);
    case 'integer':
    case 'float':
    case 'special':
    case 'symbol':
      return true;
    default:
      return false;
  }
}

/**
 * Pushes a group's values, or those of half of it if they are wide; integers of 16 bits as integers
 * of 32.
 */
export function operand(e: LaneEmitter, arg: Arg, type: ScalarType, half: number): void {
  if (type.bits === 64) {
    e.pushHalf(arg, type, half);
    return;
  }
  e.pushLanes(arg, type);
  if (type.bits === 16 && arg.kind === 'register') extend(e, type, 16);
}

/** Extends the integers on the stack from this many bits to 32. */
export function extend(e: LaneEmitter, type: ScalarType, from: number): void {
  if (type.kind === 'signed')
    e.code
      .i32(32 - type.bits)
      .op('i32x4.shl')
      .i32(32 - type.bits)
      .op('i32x4.shr_s');
  else if (type.bits < from) cut(e, type.bits);
}

/** Keeps the low bits of the lanes on the stack. */
export function cut(e: LaneEmitter, bits: number): void {
  const mask = 2 ** bits - 1;
  e.code.v128([mask, mask, mask, mask]).op('v128.and');
}

/** Pops what {@link operand} pushes into the instruction's target. */
export function popResult(e: LaneEmitter, type: ScalarType, half: number): void {
  if (type.bits === 16) cut(e, 16);
  e.popLanes(e.inst.args[0]!, half);
}

/** Subnormal lanes of the f32x4 on the stack become zeros of their sign. */
function flush(e: LaneEmitter): void {
  const { code } = e;
  const value = e.temp('v128');
  code.tee(value).get(value).op('f32x4.abs').v128(LEAST).op('f32x4.lt');
  zeroed(e);
}

/** Takes a value and a mask: where the mask is set, only the value's sign is left. */
function zeroed(e: LaneEmitter): void {
  e.code.i32(1).op('i32x4.shr_u').op('v128.andnot');
}

/**
 * `flush` after rounding, as in rules/flush.ts. `exact` pushes the operands of the sum a*b+c that
 * was rounded.
 */
function flushRounded(e: LaneEmitter, exact: () => void): void {
  const { code } = e;
  const value = e.temp('v128');
  const magnitude = e.temp('v128');
  code.tee(value).get(value).op('f32x4.abs').tee(magnitude).v128(LEAST).op('f32x4.lt');
  zeroed(e);
  code.set(value).get(magnitude).v128(LEAST).op('i32x4.eq').op('v128.any_true');
  e.when(() => {
    code.get(value);
    exact();
    e.call('unless_tiny_sums');
    code.set(value);
  });
  code.get(value);
}

/** The least normal f32. */
const LEAST = [0x00800000, 0x00800000, 0x00800000, 0x00800000] as const;

export function floatOperand(e: LaneEmitter, arg: Arg, type: ScalarType, half: number): void {
  operand(e, arg, type, half);
  if (e.has('ftz') && type.wasm === 'f32') flush(e);
}

export function floatResult(
  e: LaneEmitter,
  type: ScalarType,
  half: number,
  exact?: () => void,
): void {
  if (e.has('ftz') && type.wasm === 'f32') {
    if (exact) flushRounded(e, exact);
    else flush(e);
  }
  popResult(e, type, half);
}
