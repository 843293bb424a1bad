// Vector forms of operations on bits and bytes of 32-bit integers, and of their quotients.

import { scalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import { fits, laneType, only } from './operands.js';

const B32 = scalarType('b32');
const U32 = scalarType('u32');

/** An operation with one operand of 32 bits. */
const ofOne =
  (body: (e: LaneEmitter) => void, ...types: string[]): LaneRule =>
  (e) => {
    const type = laneType(e);
    if (!type || !types.includes(type.name) || !only(e) || !fits(e, [U32, type])) return false;
    e.pushLanes(e.inst.args[1]!, type);
    body(e);
    e.popLanes(e.inst.args[0]!);
    return true;
  };

export const countOnes = ofOne(({ code }) => {
  code.op('i8x16.popcnt').op('i16x8.extadd_pairwise_i8x16_u').op('i32x4.extadd_pairwise_i16x8_u');
}, 'b32');

/**
 * Pushes the exponent of the integer on the stack, from its f32. Before that, of each run of ones
 * all but the highest are cleared, so that nothing is rounded up to the next power. 0 for 0.
 */
function pushExponent(e: LaneEmitter): void {
  const { code } = e;
  const value = e.temp('v128');
  code
    .tee(value)
    .get(value)
    .i32(1)
    .op('i32x4.shr_u')
    .op('v128.andnot')
    .op('f32x4.convert_i32x4_u')
    .i32(23)
    .op('i32x4.shr_u');
}

export const leadingZeros = ofOne((e) => {
  const exponent = e.temp('v128');
  pushExponent(e);
  e.code
    .set(exponent)
    .v128([158, 158, 158, 158])
    .get(exponent)
    .op('i32x4.sub')
    .v128([32, 32, 32, 32])
    .op('i32x4.min_u');
}, 'b32');

export const findBit: LaneRule = (e) => {
  const { code } = e;
  return ofOne(
    () => {
      if (e.has('s32')) {
        const value = e.temp('v128');
        code.tee(value).get(value).i32(31).op('i32x4.shr_s').op('v128.xor');
      }
      pushExponent(e);
      code.v128([127, 127, 127, 127]).op('i32x4.sub').v128([-1, -1, -1, -1]).op('i32x4.max_s');
    },
    'u32',
    's32',
  )(e);
};

const reversed = (nibble: number): number =>
  ((nibble & 1) << 3) | ((nibble & 2) << 1) | ((nibble & 4) >> 1) | ((nibble & 8) >> 3);
const table = (of: (nibble: number) => number): [number, number, number, number] =>
  [0, 4, 8, 12].map((first) =>
    [0, 1, 2, 3].reduce((word, byte) => word | (of(first + byte) << (8 * byte)), 0),
  ) as [number, number, number, number];

export const reverse = ofOne((e) => {
  const { code } = e;
  const value = e.temp('v128');
  code.set(value);
  code
    .v128(table((nibble) => reversed(nibble) << 4))
    .get(value)
    .v128([0x0f0f0f0f, 0x0f0f0f0f, 0x0f0f0f0f, 0x0f0f0f0f])
    .op('v128.and')
    .op('i8x16.swizzle');
  code
    .v128(table(reversed))
    .get(value)
    .i32(4)
    .op('i8x16.shr_u')
    .op('i8x16.swizzle')
    .op('v128.or')
    .set(value);
  code.get(value).get(value).shuffleBytes([3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]);
}, 'b32');

/** prmt with a literal selector that takes bytes without their signs. */
export const permute: LaneRule = (e) => {
  const {
    code,
    inst: { args },
  } = e;
  if (laneType(e) !== B32 || !only(e) || !fits(e, [B32, B32, B32, B32])) return false;
  const selector = e.literal(args[3]!);
  if (selector === undefined) return false;
  const parts = [0, 1, 2, 3].map((index) => (selector >> (4 * index)) & 15);
  if (parts.some((part) => part & 8)) return false;
  e.pushLanes(args[1]!, B32);
  e.pushLanes(args[2]!, B32);
  code.shuffleBytes(
    [0, 1, 2, 3].flatMap((lane) =>
      parts.map((part) => 4 * lane + (part & 3) + (part & 4 ? 16 : 0)),
    ),
  );
  e.popLanes(args[0]!);
  return true;
};

/** A literal's low byte, which bit-field instructions use. */
function byteOf(e: LaneEmitter, index: number): number | undefined {
  const value = e.literal(e.inst.args[index]!);
  return value === undefined ? undefined : value & 255;
}

export const extractField: LaneRule = (e) => {
  const type = laneType(e);
  const {
    code,
    inst: { args },
  } = e;
  if (!type || !['u32', 's32'].includes(type.name) || !only(e) || !fits(e, [type, type, U32, U32]))
    return false;
  const [start, length] = [byteOf(e, 2), byteOf(e, 3)];
  if (start === undefined || length === undefined) return false;
  const last = Math.min(start + length - 1, 31);
  if (length === 0 || (start > 31 && type.kind === 'unsigned')) {
    code.v128([0, 0, 0, 0]);
  } else {
    e.pushLanes(args[1]!, type);
    if (last < 31) code.i32(31 - last).op('i32x4.shl');
    code
      .i32(Math.min(31, 31 - last + start))
      .op(type.kind === 'signed' ? 'i32x4.shr_s' : 'i32x4.shr_u');
  }
  e.popLanes(args[0]!);
  return true;
};

export const insertField: LaneRule = (e) => {
  const {
    code,
    inst: { args },
  } = e;
  if (laneType(e) !== B32 || !only(e) || !fits(e, [B32, B32, B32, U32, U32])) return false;
  const [start, length] = [byteOf(e, 3), byteOf(e, 4)];
  if (start === undefined || length === undefined) return false;
  if (start > 31 || length === 0) {
    e.pushLanes(args[2]!, B32);
  } else {
    const mask = Number(BigInt.asIntN(32, ((1n << BigInt(length)) - 1n) << BigInt(start)));
    e.pushLanes(args[1]!, B32);
    code.i32(start).op('i32x4.shl');
    e.pushLanes(args[2]!, B32);
    code.v128([mask, mask, mask, mask]).op('v128.bitselect');
  }
  e.popLanes(args[0]!);
  return true;
};

/**
 * Shifts by amounts that differ: lane by lane, without the memory through which code for each
 * thread goes.
 */
export const shift =
  (direction: 'shl' | 'shr'): LaneRule =>
  (e) => {
    const type = laneType(e);
    const {
      code,
      inst: { args },
    } = e;
    if (type?.bits !== 32 || type.kind === 'float' || !only(e) || !fits(e, [type, type, U32]))
      return false;
    const signed = direction === 'shr' && type.kind === 'signed';
    const [value, amount, result] = e.temps(3) as [number, number, number];
    e.pushLanes(args[1]!, type);
    code.set(value);
    e.pushLanes(args[2]!, U32);
    if (signed) code.v128([31, 31, 31, 31]).op('i32x4.min_u');
    code.set(amount);
    for (let lane = 0; lane < 4; lane++) {
      if (lane) code.get(result);
      code
        .get(value)
        .lane('i32x4.extract_lane', lane)
        .get(amount)
        .lane('i32x4.extract_lane', lane)
        .op(direction === 'shl' ? 'i32.shl' : signed ? 'i32.shr_s' : 'i32.shr_u');
      if (lane) code.lane('i32x4.replace_lane', lane);
      else code.op('i32x4.splat');
      code.set(result);
    }
    code.get(result);
    if (!signed) code.get(amount).v128([32, 32, 32, 32]).op('i32x4.lt_u').op('v128.and');
    e.popLanes(args[0]!);
    return true;
  };

/**
 * In f64, in which the quotient of two integers of 32 bits is less than the next integer only if it
 * is so exactly.
 */
export const divide =
  (result: 'div' | 'rem'): LaneRule =>
  (e) => {
    const type = laneType(e);
    const {
      code,
      inst: { args },
    } = e;
    if (!type || !['u32', 's32'].includes(type.name) || !only(e) || !fits(e, [type, type, type]))
      return false;
    const signed = type.kind === 'signed';
    const [a, b, quotient, none] = e.temps(4) as [number, number, number, number];
    e.pushLanes(args[1]!, type);
    code.set(a);
    e.pushLanes(args[2]!, type);
    code.set(b);
    for (const half of [0, 1]) {
      for (const local of [a, b]) {
        code.get(local);
        if (half) code.get(local).shuffle([2, 3, 2, 3]);
        code.op(`f64x2.convert_low_i32x4_${signed ? 's' : 'u'}`);
      }
      code.op('f64x2.div').op(`i32x4.trunc_sat_f64x2_${signed ? 's' : 'u'}_zero`);
    }
    code.shuffle([0, 1, 4, 5]);
    // Division by zero gives -1, as it does thread by thread.
    code.get(b).v128([0, 0, 0, 0]).op('i32x4.eq').tee(none).op('v128.or').set(quotient);
    if (signed)
      code
        .get(a)
        .op('i32x4.neg')
        .get(quotient)
        .get(b)
        .v128([-1, -1, -1, -1])
        .op('i32x4.eq')
        .op('v128.bitselect')
        .set(quotient);
    if (result === 'rem') code.get(a).get(quotient).get(b).op('i32x4.mul').op('i32x4.sub');
    else code.get(quotient);
    e.popLanes(args[0]!);
    return true;
  };

/** Four products of bytes and an integer: of even and of odd bytes, extended to 16 bits. */
export const dotProduct: LaneRule = (e) => {
  const types = e.types();
  const {
    code,
    inst: { args },
  } = e;
  const [ofA, ofB = ofA] = types;
  if (
    !ofA ||
    !ofB ||
    types.length > 2 ||
    ![ofA, ofB].every(({ name }) => name === 'u32' || name === 's32') ||
    !only(e)
  )
    return false;
  const sum = scalarType(ofA.kind === 'signed' || ofB.kind === 'signed' ? 's32' : 'u32');
  if (!fits(e, [sum, B32, B32, sum])) return false;
  for (const odd of [false, true]) {
    for (const [index, type] of [
      [1, ofA],
      [2, ofB],
    ] as const) {
      e.pushLanes(args[index]!, type);
      if (type.kind === 'unsigned') {
        if (odd) code.i32(8).op('i16x8.shr_u');
        else code.v128([0x00ff00ff, 0x00ff00ff, 0x00ff00ff, 0x00ff00ff]).op('v128.and');
      } else {
        if (!odd) code.i32(8).op('i16x8.shl');
        code.i32(8).op('i16x8.shr_s');
      }
    }
    code.op('i32x4.dot_i16x8_s');
  }
  code.op('i32x4.add');
  e.pushLanes(args[3]!, sum);
  code.op('i32x4.add');
  e.popLanes(args[0]!);
  return true;
};
