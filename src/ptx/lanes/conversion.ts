// Vector forms of moves and conversions on 32- and 64-bit types.

import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import {
  fits,
  floatOperand,
  halves,
  isFloat,
  isWhole,
  laneType,
  only,
  operand,
  popResult,
} from './operands.js';
import { opcodeNamed } from '../wasm/opcodes.js';

/**
 * mov of a mask of lanes: a unit's threads are adjacent in one warp, which consists of whole units,
 * so that the masks differ by how far the first bit of a literal is shifted.
 */
function moveLaneMask(e: LaneEmitter, name: string): boolean {
  const { code } = e;
  const bits = [0, 1, 2, 3].map((lane) => 1 << (4 * e.group + lane)) as [
    number,
    number,
    number,
    number,
  ];
  code.v128(bits).get(e.base).i32(31).op('i32.and').op('i32x4.shl');
  const ones = (): void => {
    code.v128([-1, -1, -1, -1]).op('i32x4.add');
  };
  // Twice the last bit is 0, and 0 - 1 has all bits set.
  const twice = (): void => {
    code.i32(1).op('i32x4.shl');
  };
  switch (name) {
    case 'lanemask_eq':
      break;
    case 'lanemask_lt':
      ones();
      break;
    case 'lanemask_le':
      twice();
      ones();
      break;
    case 'lanemask_ge':
      ones();
      code.op('v128.not');
      break;
    default:
      twice();
      ones();
      code.op('v128.not');
  }
  e.popLanes(e.inst.args[0]!);
  return true;
}

export const move: LaneRule = (e) => {
  const type = laneType(e);
  const source = e.inst.args[1];
  if (
    type?.bits === 32 &&
    !isFloat(type) &&
    source?.kind === 'special' &&
    source.name.startsWith('lanemask_') &&
    only(e) &&
    fits(e, [type, type])
  )
    return moveLaneMask(e, source.name);
  if (!type || !only(e) || !fits(e, [type, type]) || source?.kind !== 'register') return false;
  for (const half of halves(type)) {
    operand(e, source, type, half);
    popResult(e, type, half);
  }
  return true;
};

export const convert: LaneRule = (e) => {
  const [to, from] = e.types();
  const {
    code,
    inst: { args },
  } = e;
  if (
    !to ||
    !from ||
    e.types().length !== 2 ||
    to.bits < 32 ||
    from.bits < 32 ||
    !isWhole(to) ||
    !isWhole(from) ||
    !fits(e, [to, from])
  )
    return false;
  const target = args[0]!;
  const suffix = from.kind === 'signed' ? 's' : 'u';
  const name = `${to.wasm} ${from.wasm}`;
  switch (name) {
    case 'i32 i32':
    case 'i64 i64':
      return only(e) && moveAs(e, to, from);
    case 'i32 i64':
      if (!only(e)) return false;
      e.pushHalf(args[1]!, from, 0);
      e.pushHalf(args[1]!, from, 1);
      code.shuffle([0, 2, 4, 6]);
      e.popLanes(target);
      return true;
    case 'i64 i32': {
      if (!only(e)) return false;
      const value = e.temp('v128');
      e.pushLanes(args[1]!, from);
      code.set(value);
      for (const half of [0, 1]) {
        code.get(value).op(`i64x2.extend_${half ? 'high' : 'low'}_i32x4_${suffix}`);
        e.popLanes(target, half);
      }
      return true;
    }
    case 'f32 i32':
      if (!only(e, 'rn')) return false;
      e.pushLanes(args[1]!, from);
      code.op(`f32x4.convert_i32x4_${suffix}`);
      e.popLanes(target);
      return true;
    case 'f64 i32': {
      if (!only(e, 'rn')) return false;
      const value = e.temp('v128');
      e.pushLanes(args[1]!, from);
      code.set(value);
      for (const half of [0, 1]) {
        code.get(value);
        if (half) code.get(value).shuffle([2, 3, 2, 3]);
        code.op(`f64x2.convert_low_i32x4_${suffix}`);
        e.popLanes(target, half);
      }
      return true;
    }
    case 'i32 f32': {
      const rounding = e.oneOf('rni', 'rzi', 'rmi', 'rpi');
      if (!rounding || !only(e, rounding, 'ftz')) return false;
      floatOperand(e, args[1]!, from, 0);
      if (rounding !== 'rzi')
        code.op(opcodeNamed(`f32x4.${{ rni: 'nearest', rmi: 'floor', rpi: 'ceil' }[rounding]}`));
      code.op(`i32x4.trunc_sat_f32x4_${to.kind === 'signed' ? 's' : 'u'}`);
      e.popLanes(target);
      return true;
    }
    case 'f32 f32': {
      if (e.has('sat') && only(e, 'sat', 'ftz')) {
        saturate(e, from);
        return true;
      }
      const rounding = e.oneOf('rni', 'rzi', 'rmi', 'rpi');
      if (!rounding || !only(e, rounding, 'ftz')) return false;
      floatOperand(e, args[1]!, from, 0);
      code.op(
        opcodeNamed(
          `f32x4.${{ rni: 'nearest', rzi: 'trunc', rmi: 'floor', rpi: 'ceil' }[rounding]}`,
        ),
      );
      e.popLanes(target);
      return true;
    }
    case 'f64 f32': {
      if (!only(e, 'ftz')) return false;
      const value = e.temp('v128');
      floatOperand(e, args[1]!, from, 0);
      code.set(value);
      for (const half of [0, 1]) {
        code.get(value);
        if (half) code.get(value).shuffle([2, 3, 2, 3]);
        code.op('f64x2.promote_low_f32x4');
        e.popLanes(target, half);
      }
      return true;
    }
    case 'f32 f64':
      if (!only(e, 'rn')) return false;
      for (const half of [0, 1]) {
        e.pushHalf(args[1]!, from, half);
        code.op('f32x4.demote_f64x2_zero');
      }
      code.shuffle([0, 1, 4, 5]);
      e.popLanes(target);
      return true;
    default:
      return false;
  }
};

/** `cvt.sat` of f32: NaN and numbers up to zero become zero. */
function saturate(e: LaneEmitter, type: ScalarType): void {
  const { args } = e.inst;
  const value = e.temp('v128');
  floatOperand(e, args[1]!, type, 0);
  e.code
    .set(value)
    .f32(1)
    .op('f32x4.splat')
    .f32(0)
    .op('f32x4.splat')
    .get(value)
    .op('f32x4.pmax')
    .op('f32x4.pmin');
  e.popLanes(args[0]!);
}

function moveAs(e: LaneEmitter, to: ScalarType, from: ScalarType): boolean {
  for (const half of halves(to)) {
    operand(e, e.inst.args[1]!, from, half);
    e.popLanes(e.inst.args[0]!, half);
  }
  return true;
}
