// Vector forms of logic and shifts on 32- and 64-bit types, and of those on integers of 16 bits
// that are the same in lanes of 32.

import { scalarType } from '../scalar-types.js';
import type { LaneRule } from './lane-emitter.js';
import { fits, halves, isFloat, laneType, only, operand, popResult, shapeOf } from './operands.js';
import { opcodeNamed } from '../wasm/opcodes.js';

export const logic =
  (operation: string): LaneRule =>
  (e) => {
    const type = laneType(e);
    if (!type || !only(e) || !fits(e, [type, type, type])) return false;
    for (const half of halves(type)) {
      operand(e, e.inst.args[1]!, type, half);
      operand(e, e.inst.args[2]!, type, half);
      e.code.op(opcodeNamed(`v128.${operation}`));
      popResult(e, type, half);
    }
    return true;
  };

export const not: LaneRule = (e) => {
  const type = laneType(e);
  if (!type || !only(e) || !fits(e, [type, type])) return false;
  for (const half of halves(type)) {
    operand(e, e.inst.args[1]!, type, half);
    e.code.op('v128.not');
    popResult(e, type, half);
  }
  return true;
};

/** lop3: the sum of the products in the truth table, or the inverted sum of the others. */
export const logic3: LaneRule = (e) => {
  const type = laneType(e);
  const {
    code,
    inst: { args },
  } = e;
  const table = args[4];
  if (
    type?.bits !== 32 ||
    !only(e) ||
    table?.kind !== 'integer' ||
    !fits(e, [type, type, type, type, type])
  )
    return false;
  const bits = Number(BigInt.asUintN(8, table.value));
  const locals = [1, 2, 3].map((index) => {
    const local = e.temp('v128');
    e.pushLanes(args[index]!, type);
    code.set(local);
    return local;
  });
  const rows = [0, 1, 2, 3, 4, 5, 6, 7].filter((row) => bits & (1 << row));
  const inverted = rows.length > 4;
  const used = inverted ? [0, 1, 2, 3, 4, 5, 6, 7].filter((row) => !rows.includes(row)) : rows;
  code.v128([0, 0, 0, 0]);
  for (const row of used) {
    locals.forEach((local, index) => {
      code.get(local);
      if (!(row & (4 >> index))) code.op('v128.not');
      if (index) code.op('v128.and');
    });
    code.op('v128.or');
  }
  if (inverted) code.op('v128.not');
  e.popLanes(args[0]!);
  return true;
};

/** Shifts by the same amount in all threads. */
export const shift =
  (direction: 'shl' | 'shr'): LaneRule =>
  (e) => {
    const type = laneType(e);
    const {
      code,
      inst: { args },
    } = e;
    const amount = args[2];
    if (
      !type ||
      isFloat(type) ||
      type.kind === 'predicate' ||
      !only(e) ||
      !amount ||
      e.stride(amount) !== 0
    )
      return false;
    if (!fits(e, [type, type, scalarType('u32')])) return false;
    const signed = direction === 'shr' && type.kind === 'signed';
    const operation = opcodeNamed(
      `${shapeOf(type)}.${direction === 'shl' ? 'shl' : signed ? 'shr_s' : 'shr_u'}`,
    );
    const { bits } = type;
    if (amount.kind === 'integer') {
      const count = Number(BigInt.asUintN(32, amount.value));
      for (const half of halves(type)) {
        if (count >= bits && !signed) {
          code.v128([0, 0, 0, 0]);
        } else {
          operand(e, args[1]!, type, half);
          code.i32(Math.min(count, bits - 1)).op(operation);
        }
        popResult(e, type, half);
      }
      return true;
    }
    const count = e.temp('i32');
    e.push(amount, scalarType('u32'));
    code.set(count);
    for (const half of halves(type)) {
      operand(e, args[1]!, type, half);
      if (signed) {
        code
          .get(count)
          .i32(bits - 1)
          .get(count)
          .i32(bits)
          .op('i32.lt_u')
          .op('select')
          .op(operation);
      } else {
        code.get(count).op(operation);
        code
          .get(count)
          .i32(bits)
          .op('i32.lt_u')
          .i32(-1)
          .op('i32.mul')
          .op('i32x4.splat')
          .op('v128.and');
      }
      popResult(e, type, half);
    }
    return true;
  };

/** shf by the same amount in all threads: two shifts and an or. */
export const funnelShift: LaneRule = (e) => {
  const {
    code,
    inst: { args },
  } = e;
  const amount = args[3];
  const type = scalarType('b32');
  if (
    !only(e, 'l', 'r', 'wrap', 'clamp') ||
    !amount ||
    e.stride(amount) !== 0 ||
    !fits(e, [type, type, type, type])
  )
    return false;
  const given = e.literal(amount);
  const [low, high] = [args[1]!, args[2]!];
  const isLeft = e.has('l');
  const [kept, other] = isLeft ? [high, low] : [low, high];
  if (given === undefined) {
    if (!e.has('wrap')) return false;
    const count = e.temp('i32');
    e.push(amount, type);
    code.i32(31).op('i32.and').set(count);
    e.pushLanes(kept, type);
    code.get(count).op(isLeft ? 'i32x4.shl' : 'i32x4.shr_u');
    e.pushLanes(other, type);
    // By 32 minus the amount, which may be 32: in two steps.
    code
      .i32(1)
      .op(isLeft ? 'i32x4.shr_u' : 'i32x4.shl')
      .i32(31)
      .get(count)
      .op('i32.sub')
      .op(isLeft ? 'i32x4.shr_u' : 'i32x4.shl')
      .op('v128.or');
    e.popLanes(args[0]!);
    return true;
  }
  const count = e.has('wrap') ? given & 31 : Math.min(given, 32);
  if (count === 0 || count === 32) {
    e.pushLanes(count ? other : kept, type);
  } else {
    e.pushLanes(kept, type);
    code.i32(count).op(isLeft ? 'i32x4.shl' : 'i32x4.shr_u');
    e.pushLanes(other, type);
    code
      .i32(32 - count)
      .op(isLeft ? 'i32x4.shr_u' : 'i32x4.shl')
      .op('v128.or');
  }
  e.popLanes(args[0]!);
  return true;
};
