// Vector forms of arithmetic on 32- and 64-bit types, and of arithmetic on integers of 16 bits that
// is the same in lanes of 32. A form that is not here runs thread by thread; results are the same
// bit for bit.

import type { Arg } from '../analysis/program.js';
import { GREATEST_DIVISOR } from '../runtime/approximations.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import {
  fits,
  floatOperand,
  floatResult,
  halves,
  isFloat,
  laneType,
  only,
  operand,
  popResult,
  shapeOf,
} from './operands.js';
import { opcodeNamed } from '../wasm/opcodes.js';

/** `add r, r, x` where some threads have to keep their r: they add zero. */
function accumulates(e: LaneEmitter, type: ScalarType, operation: string): boolean {
  const [target, left, right] = e.inst.args;
  if (isFloat(type) || type.bits !== 32 || (operation !== 'add' && operation !== 'sub'))
    return false;
  if (target?.kind !== 'register' || left?.kind !== 'register' || left.register !== target.register)
    return false;
  const mask = e.mergeMask(target.register);
  if (mask === undefined) return false;
  e.pushLanes(left, type);
  e.pushLanes(right!, type);
  e.code.get(mask).op('v128.and').op(`i32x4.${operation}`).set(e.laneOf(target.register));
  return true;
}

export const binary =
  (integer: string | undefined, float: string | undefined): LaneRule =>
  (e) => {
    const type = laneType(e);
    if (!type || type.kind === 'predicate' || !fits(e, [type, type, type])) return false;
    const operation = isFloat(type) ? float : integer;
    if (!operation || !(isFloat(type) ? only(e, 'rn', 'ftz') : only(e, 'lo'))) return false;
    if (accumulates(e, type, operation)) return true;
    for (const half of halves(type)) {
      for (const index of [1, 2]) {
        if (isFloat(type)) floatOperand(e, e.inst.args[index]!, type, half);
        else operand(e, e.inst.args[index]!, type, half);
      }
      e.code.op(opcodeNamed(`${shapeOf(type)}.${operation}`));
      // Subnormal sums and differences are exact.
      floatResult(
        e,
        type,
        half,
        operation !== 'mul'
          ? undefined
          : () => {
              for (const index of [1, 2]) floatOperand(e, e.inst.args[index]!, type, half);
              e.code.v128([0, 0, 0, 0]);
            },
      );
    }
    return true;
  };

export const multiply: LaneRule = (e) => {
  if (e.has('wide') && e.type().bits === 16) return shortProduct(e);
  const type = laneType(e);
  if (!type || isFloat(type) || type.bits !== 32) return binary('mul', 'mul')(e);
  if (e.has('wide') || e.has('hi')) return only(e, 'wide', 'hi') && product(e, type, undefined);
  return binary('mul', 'mul')(e);
};

/** 16 by 16 to 32 bits: registers of 16 have zeros above. */
function shortProduct(e: LaneEmitter): boolean {
  const {
    code,
    inst: { args },
  } = e;
  const type = e.type();
  const result = scalarType(type.kind === 'signed' ? 's32' : 'u32');
  if (!only(e, 'wide') || !fits(e, [result, type, type])) return false;
  const [factor, other] = args[2]!.kind === 'integer' ? [args[2], args[1]!] : [args[1]!, args[2]!];
  const count = factor.kind === 'integer' ? Math.log2(Number(factor.value)) : NaN;
  if (Number.isInteger(count) && count < 16 && type.kind !== 'signed') {
    e.pushLanes(other, type);
    code.i32(count).op('i32x4.shl');
    e.popLanes(args[0]!);
    return true;
  }
  for (const index of [1, 2]) {
    e.pushLanes(args[index]!, type);
    if (type.kind === 'signed') code.i32(16).op('i32x4.shl').i32(16).op('i32x4.shr_s');
  }
  code.op('i32x4.mul');
  e.popLanes(args[0]!);
  return true;
}

/** 32 by 32 to 64 bits: both halves with .wide, their high words with .hi. */
function product(e: LaneEmitter, type: ScalarType, addend: Arg | undefined): boolean {
  const {
    code,
    inst: { args },
  } = e;
  const wide = e.has('wide');
  const result = wide ? scalarType(type.kind === 'signed' ? 's64' : 'u64') : type;
  if (!fits(e, addend ? [result, type, type, result] : [result, type, type])) return false;
  const a = e.temp('v128');
  const b = e.temp('v128');
  e.pushLanes(args[1]!, type);
  code.set(a);
  e.pushLanes(args[2]!, type);
  code.set(b);
  const multiplied = (half: number): void => {
    code
      .get(a)
      .get(b)
      .op(`i64x2.extmul_${half ? 'high' : 'low'}_i32x4_${type.kind === 'signed' ? 's' : 'u'}`);
  };
  if (wide) {
    for (const half of [0, 1]) {
      multiplied(half);
      if (addend) {
        e.pushHalf(addend, result, half);
        code.op('i64x2.add');
      }
      e.popLanes(args[0]!, half);
    }
    return true;
  }
  multiplied(0);
  multiplied(1);
  code.shuffle([1, 3, 5, 7]);
  if (addend) {
    e.pushLanes(addend, type);
    code.op('i32x4.add');
  }
  e.popLanes(args[0]!);
  return true;
}

export const multiplyAdd: LaneRule = (e) => {
  const type = laneType(e);
  if (!type) return false;
  if (isFloat(type)) return fused(e);
  if (!only(e, 'lo', 'wide', 'hi')) return false;
  const { args } = e.inst;
  if (e.has('wide') || e.has('hi')) return type.bits === 32 && product(e, type, args[3]);
  if (!fits(e, [type, type, type, type])) return false;
  for (const half of halves(type)) {
    operand(e, args[1]!, type, half);
    operand(e, args[2]!, type, half);
    e.code.op(`${shapeOf(type)}.mul`);
    operand(e, args[3]!, type, half);
    e.code.op(`${shapeOf(type)}.add`);
    popResult(e, type, half);
  }
  return true;
};

export const fused: LaneRule = (e) => {
  const type = laneType(e);
  if (!type || !isFloat(type) || !only(e, 'rn', 'ftz') || !fits(e, [type, type, type, type]))
    return false;
  const { args } = e.inst;
  if (!e.around.relaxedFma) return type.bits === 32 && exactFused(e, type);
  for (const half of halves(type)) {
    for (const index of [1, 2, 3]) floatOperand(e, args[index]!, type, half);
    e.code.op(opcodeNamed(`${shapeOf(type)}.relaxed_madd`));
    floatResult(e, type, half, () => {
      for (const index of [1, 2, 3]) floatOperand(e, args[index]!, type, half);
    });
  }
  return true;
};

/**
 * The product is exact in f64. Rounding twice is wrong only if the sum is half-way between two f32,
 * or where f32 has fewer bits than usual: such groups, which are rare, are computed thread by
 * thread.
 */
function exactFused(e: LaneEmitter, type: ScalarType): boolean {
  const {
    code,
    inst: { args },
  } = e;
  const locals = [1, 2, 3].map((index) => {
    const local = e.temp('v128');
    floatOperand(e, args[index]!, type, 0);
    code.set(local);
    return local;
  });
  const sums = [0, 1].map((half) => {
    const sum = e.temp('v128');
    locals.forEach((local, index) => {
      code.get(local);
      if (half) code.get(local).shuffle([2, 3, 2, 3]);
      code.op('f64x2.promote_low_f32x4');
      if (index === 1) code.op('f64x2.mul');
      if (index === 2) code.op('f64x2.add');
    });
    code.set(sum);
    return sum;
  });
  const result = e.temp('v128');
  code
    .get(sums[0]!)
    .op('f32x4.demote_f64x2_zero')
    .get(sums[1]!)
    .op('f32x4.demote_f64x2_zero')
    .shuffle([0, 1, 4, 5])
    .set(result);
  sums.forEach((sum, index) => {
    code.get(sum).i32(35).op('i64x2.shl').v128([0, 0x80000000, 0, 0x80000000]).op('i64x2.eq');
    // 2^-125
    code.get(sum).op('f64x2.abs').v128([0, 0x38200000, 0, 0x38200000]).op('f64x2.lt').op('v128.or');
    if (index) code.op('v128.or');
  });
  code.op('v128.any_true');
  e.when(() => {
    for (let lane = 0; lane < 4; lane++) {
      code.get(result);
      for (const local of locals) code.get(local).lane('f32x4.extract_lane', lane);
      e.call('fma_f32');
      code.lane('f32x4.replace_lane', lane).set(result);
    }
  });
  code.get(result);
  floatResult(e, type, 0, () => {
    for (const local of locals) code.get(local);
  });
  return true;
}

export const unary =
  (integer: string | undefined, float: string | undefined): LaneRule =>
  (e) => {
    const type = laneType(e);
    if (!type || type.kind === 'predicate' || !fits(e, [type, type])) return false;
    const operation = isFloat(type) ? float : integer;
    if (!operation || !only(e, 'rn', 'approx', 'ftz') || (e.has('approx') && type.bits === 64))
      return false;
    // abs and neg flush only their operands: a zero stays zero.
    for (const half of halves(type)) {
      if (isFloat(type)) floatOperand(e, e.inst.args[1]!, type, half);
      else operand(e, e.inst.args[1]!, type, half);
      e.code.op(opcodeNamed(`${shapeOf(type)}.${operation}`));
      floatResult(e, type, half);
    }
    return true;
  };

/** copysign d, a, b: the sign of a, the magnitude of b */
export const copySign: LaneRule = (e) => {
  const type = laneType(e);
  if (!type || !isFloat(type) || !only(e) || !fits(e, [type, type, type])) return false;
  for (const half of halves(type)) {
    operand(e, e.inst.args[1]!, type, half);
    operand(e, e.inst.args[2]!, type, half);
    e.code
      .v128(
        type.bits === 64
          ? [0, 0x80000000, 0, 0x80000000]
          : [0x80000000, 0x80000000, 0x80000000, 0x80000000],
      )
      .op('v128.bitselect');
    popResult(e, type, half);
  }
  return true;
};

export const divide: LaneRule = (e) => {
  const type = laneType(e);
  if (
    !type ||
    !isFloat(type) ||
    !only(e, 'rn', 'approx', 'full', 'ftz') ||
    !fits(e, [type, type, type])
  )
    return false;
  for (const half of halves(type)) {
    for (const index of [1, 2]) floatOperand(e, e.inst.args[index]!, type, half);
    if (type.bits === 32 && e.has('approx')) divisorOfProduct(e);
    e.code.op(opcodeNamed(`${shapeOf(type)}.div`));
    floatResult(e, type, half);
  }
  return true;
};

/**
 * As in rules/float.ts: a divisor whose reciprocal would be subnormal becomes an infinity of its
 * sign.
 */
function divisorOfProduct(e: LaneEmitter): void {
  const { code } = e;
  const divisor = e.temp('v128');
  code
    .set(divisor)
    .f32(Infinity)
    .op('f32x4.splat')
    .get(divisor)
    .v128([0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff])
    .op('v128.bitselect');
  code
    .get(divisor)
    .get(divisor)
    .op('f32x4.abs')
    .f32(GREATEST_DIVISOR)
    .op('f32x4.splat')
    .op('f32x4.gt')
    .op('v128.bitselect');
}

export const reciprocal: LaneRule = (e) => {
  const type = laneType(e);
  if (!type || !isFloat(type) || !only(e, 'rn', 'approx', 'ftz') || !fits(e, [type, type]))
    return false;
  if (type.bits === 64 && e.has('approx')) return false;
  for (const half of halves(type)) {
    if (type.bits === 64) e.code.f64(1);
    else e.code.f32(1);
    e.splat(type);
    floatOperand(e, e.inst.args[1]!, type, half);
    e.code.op(opcodeNamed(`${shapeOf(type)}.div`));
    floatResult(e, type, half);
  }
  return true;
};

/** rsqrt.approx.f32 is computed in f64 and rounded once. */
export const reciprocalRoot: LaneRule = (e) => {
  const type = laneType(e);
  if (type?.name !== 'f32' || !only(e, 'approx', 'ftz') || !fits(e, [type, type])) return false;
  const { code } = e;
  const value = e.temp('v128');
  floatOperand(e, e.inst.args[1]!, type, 0);
  code.set(value);
  for (const half of [0, 1]) {
    code.f64(1).op('f64x2.splat').get(value);
    if (half) code.get(value).shuffle([2, 3, 2, 3]);
    code
      .op('f64x2.promote_low_f32x4')
      .op('f64x2.sqrt')
      .op('f64x2.div')
      .op('f32x4.demote_f64x2_zero');
  }
  code.shuffle([0, 1, 4, 5]);
  floatResult(e, type, 0);
  return true;
};

/** min and max: of a number and a NaN the result is the number; -0 is less than +0. */
export const extreme =
  (name: 'min' | 'max'): LaneRule =>
  (e) => {
    const type = laneType(e);
    const {
      code,
      inst: { args },
    } = e;
    if (!type || type.kind === 'predicate' || !fits(e, [type, type, type])) return false;
    if (!isFloat(type))
      return (
        type.bits <= 32 &&
        only(e) &&
        binary(`${name}_${type.kind === 'signed' ? 's' : 'u'}`, undefined)(e)
      );
    if (!only(e, 'ftz', 'NaN')) return false;
    for (const half of halves(type)) {
      const [a, b] = [1, 2].map((index) => {
        const local = e.temp('v128');
        floatOperand(e, args[index]!, type, half);
        code.set(local);
        return local;
      }) as [number, number];
      const shape = shapeOf(type);
      if (e.has('NaN')) {
        code
          .get(a)
          .get(b)
          .op(opcodeNamed(`${shape}.${name}`));
      } else {
        const both = e.temp('v128');
        code
          .get(a)
          .get(b)
          .op(opcodeNamed(`${shape}.${name}`))
          .set(both);
        code.get(both).get(b).get(a).get(a).op(`${shape}.eq`).op('v128.bitselect').set(both);
        // If b is NaN the result is a.
        code.get(a).get(both).get(b).get(b).op(`${shape}.ne`).op('v128.bitselect');
      }
      floatResult(e, type, half);
    }
    return true;
  };
