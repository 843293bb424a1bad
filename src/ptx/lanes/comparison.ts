// Vector forms of comparisons and selections.

import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import {
  PRED,
  fits,
  floatOperand,
  halves,
  isFloat,
  laneType,
  only,
  operand,
  popResult,
  shapeOf,
} from './operands.js';
import { opcodeNamed } from '../wasm/opcodes.js';

export const INTEGER_COMPARISONS: Record<string, Comparison> = {
  eq: { op: 'eq' },
  ne: { op: 'ne' },
  lt: { op: 'lt' },
  le: { op: 'le' },
  gt: { op: 'gt' },
  ge: { op: 'ge' },
  lo: { op: 'lt', unsigned: true },
  ls: { op: 'le', unsigned: true },
  hi: { op: 'gt', unsigned: true },
  hs: { op: 'ge', unsigned: true },
};

export const FLOAT_COMPARISONS: Record<string, Comparison> = {
  eq: { op: 'eq' },
  lt: { op: 'lt' },
  le: { op: 'le' },
  gt: { op: 'gt' },
  ge: { op: 'ge' },
  neu: { op: 'ne' },
  ltu: { op: 'ge', negated: true },
  leu: { op: 'gt', negated: true },
  gtu: { op: 'le', negated: true },
  geu: { op: 'lt', negated: true },
};

export interface Comparison {
  op: string;
  unsigned?: true;
  negated?: true;
}

export const setPredicate: LaneRule = (e) => {
  const type = laneType(e);
  const {
    code,
    inst: { args, modifiers },
  } = e;
  if (!type || type.kind === 'predicate' || !setsPredicate(e, type, 'ftz')) return false;
  const row = (isFloat(type) ? FLOAT_COMPARISONS : INTEGER_COMPARISONS)[modifiers[0]!];
  if (!row) return false;
  const equality = row.op === 'eq' || row.op === 'ne';
  const unsigned = row.unsigned ?? type.kind === 'unsigned';
  if (!isFloat(type) && !equality && type.kind === 'bits') return false;
  // There are no unsigned comparisons of i64x2: 2^63 is added to both sides.
  const biased = type.wasm === 'i64' && !equality && unsigned;
  const suffix = isFloat(type) || equality ? '' : unsigned && !biased ? '_u' : '_s';
  for (const half of halves(type)) {
    for (const index of [1, 2]) {
      if (isFloat(type)) floatOperand(e, args[index]!, type, half);
      else operand(e, args[index]!, type, half);
      if (biased) code.v128([0, 0x80000000, 0, 0x80000000]).op('v128.xor');
    }
    code.op(opcodeNamed(`${shapeOf(type)}.${row.op}${suffix}`));
  }
  if (type.bits === 64) code.shuffle([0, 2, 4, 6]);
  popTruth(e, row);
  return true;
};

/**
 * Whether the instruction makes one predicate of two values of the type, and of another predicate
 * if it combines them.
 */
export function setsPredicate(e: LaneEmitter, type: ScalarType, ...modifiers: string[]): boolean {
  const {
    args,
    modifiers: [comparison],
  } = e.inst;
  return (
    args[0]?.kind === 'register' &&
    only(e, comparison!, 'and', 'or', 'xor', ...modifiers) &&
    fits(e, e.oneOf('and', 'or', 'xor') ? [PRED, type, type, PRED] : [PRED, type, type])
  );
}

/**
 * Pops the mask of a comparison into the instruction's target, combined with the last operand if
 * the instruction does so.
 */
export function popTruth(e: LaneEmitter, { negated }: Comparison): void {
  const {
    code,
    inst: { args },
  } = e;
  const combination = e.oneOf('and', 'or', 'xor');
  if (negated) code.op('v128.not');
  if (combination) {
    e.pushLanes(args[3]!, PRED);
    code.op(`v128.${combination}`);
  }
  e.popLanes(args[0]!);
}

export const selectByPredicate: LaneRule = (e) => {
  const type = laneType(e);
  const {
    code,
    inst: { args },
  } = e;
  if (!type || type.kind === 'predicate' || !only(e) || !fits(e, [type, type, type, PRED]))
    return false;
  const known = e.knownTruth(args[3]!);
  if (known !== undefined) {
    for (const half of halves(type)) {
      operand(e, args[known ? 1 : 2]!, type, half);
      popResult(e, type, half);
    }
    return true;
  }
  const condition = e.temp('v128');
  e.pushLanes(args[3]!, PRED);
  code.set(condition);
  for (const half of halves(type)) {
    operand(e, args[1]!, type, half);
    operand(e, args[2]!, type, half);
    e.pushMaskHalf(condition, type.bits === 64 ? half : -1);
    code.op('v128.bitselect');
    popResult(e, type, half);
  }
  return true;
};
