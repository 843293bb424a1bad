// Float arithmetic on f32, f64 and the halves: one rule per mnemonic, with rounding, flushing and
// saturation as data.

import type { Inst } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { GREATEST_DIVISOR } from '../runtime/approximations.js';
import { ROUNDING } from '../runtime/floats.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { flush, flushRounded } from './flush.js';
import { isHalf } from './half.js';
import { widenHalf } from './half-values.js';
import { isInteger } from './integer.js';
import { canonicalNaN } from './nan.js';
import type { Rule } from './rule.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const F32 = scalarType('f32');

/** 0 nearest, 1 toward zero, 2 down, 3 up. */
export function rounding(e: Emitter): number {
  const mode = e.oneOf('rn', 'rz', 'rm', 'rp');
  return mode ? ROUNDING[mode] : 0;
}

/** Pushes operand `index`, flushed if the instruction has .ftz. */
function operand(e: Emitter, index: number, type: ScalarType): void {
  e.push(e.arg(index), type);
  if (e.has('ftz') && type.wasm === 'f32') flush(e);
}

/**
 * What .ftz does to a result of the least normal magnitude, for operations that round to it: see
 * `flushRounded`.
 */
type Decide = (e: Emitter, push: PushOperand) => void;

/** Flushes and saturates the result on the stack. */
function finish(e: Emitter, type: ScalarType, push?: PushOperand, decide?: Decide): void {
  if (e.has('ftz') && type.wasm === 'f32') {
    if (push && decide)
      flushRounded(e, () => {
        decide(e, push);
      });
    else flush(e);
  }
  // Saturation makes NaN zero.
  if (e.has('sat')) e.call(`saturate_${type.wasm}`);
  else canonicalNaN(e, type);
}

/** Flushes and saturates the result on the stack and writes it. */
function result(e: Emitter, type: ScalarType, push?: PushOperand, decide?: Decide): void {
  finish(e, type, push, decide);
  e.pop(e.arg(0), type);
}

/** Pushes an operand as a value of the type of the computation. */
type PushOperand = (index: number) => void;
/** Pushes the rounded result of the operands. */
type Compute = (e: Emitter, type: ScalarType, push: PushOperand) => void;

const arithmetic =
  (operation: 'add' | 'sub' | 'mul'): Compute =>
  (e, type, push) => {
    const { code } = e;
    const { wasm } = type;
    const mode = rounding(e);
    push(1);
    if (mode === 0) {
      push(2);
      code.op(`${wasm}.${operation}`);
      return;
    }
    // In the other rounding modes all three are one fused multiply-add.
    if (operation === 'mul') {
      push(2);
      const a = e.temp(wasm);
      const b = e.temp(wasm);
      code.set(b).set(a);
      if (wasm === 'f32') {
        code
          .get(a)
          .op('f64.promote_f32')
          .get(b)
          .op('f64.promote_f32')
          .op('f64.mul')
          .f64(0)
          .i32(mode);
        e.call('round_f32');
        return;
      }
      code.get(a).get(b);
      // The addend is a zero of the product's sign, so that it never changes the sign of a zero
      // result.
      code
        .f64(0)
        .f64(1)
        .get(a)
        .op('f64.copysign')
        .f64(1)
        .get(b)
        .op('f64.copysign')
        .op('f64.mul')
        .op('f64.copysign');
    } else {
      if (wasm === 'f32') code.f32(1);
      else code.f64(1);
      push(2);
      if (operation === 'sub') code.op(opcodeNamed(`${wasm}.neg`));
    }
    code.i32(mode);
    e.call(wasm === 'f32' ? 'fma_directed_f32' : 'fma_mode_f64');
  };

const fusedMultiplyAdd: Compute = (e, type, push) => {
  const { code } = e;
  const mode = rounding(e);
  if (mode !== 0) {
    for (const index of [1, 2, 3]) push(index);
    code.i32(mode);
    e.call(type.wasm === 'f32' ? 'fma_directed_f32' : 'fma_mode_f64');
    return;
  }
  if (e.around.relaxedFma) {
    for (const index of [1, 2, 3]) {
      push(index);
      code.op(type.wasm === 'f32' ? 'f32x4.splat' : 'f64x2.splat');
    }
    code.op(type.wasm === 'f32' ? 'f32x4.relaxed_madd' : 'f64x2.relaxed_madd');
    code.lane(type.wasm === 'f32' ? 'f32x4.extract_lane' : 'f64x2.extract_lane', 0);
    return;
  }
  if (type.wasm === 'f64') {
    for (const index of [1, 2, 3]) push(index);
    e.call('fma_f64');
    return;
  }
  // The product is exact in f64. Rounding twice is wrong only if the sum is half-way between two
  // f32 (29 low bits 1 0…0), or where f32 has fewer bits than usual.
  const locals = [1, 2, 3].map((index) => {
    const local = e.temp('f32');
    push(index);
    code.set(local);
    return local;
  }) as [number, number, number];
  const [a, b, c] = locals;
  const sum = e.temp('f64');
  const rounded = e.temp('f32');
  code
    .get(a)
    .op('f64.promote_f32')
    .get(b)
    .op('f64.promote_f32')
    .op('f64.mul')
    .get(c)
    .op('f64.promote_f32')
    .op('f64.add')
    .tee(sum);
  code.op('f32.demote_f64').set(rounded);
  code
    .get(sum)
    .op('i64.reinterpret_f64')
    .op('i32.wrap_i64')
    .i32(3)
    .op('i32.shl')
    .i32(0x80000000)
    .op('i32.eq');
  code
    .get(sum)
    .op('f64.abs')
    .f64(2 ** -125)
    .op('f64.lt')
    .op('i32.or');
  e.when(() => {
    code.get(a).get(b).get(c);
    e.call('fma_f32');
    code.set(rounded);
  });
  code.get(rounded);
};

interface Operation {
  compute: Compute;
  decide?: Decide;
}

/** A product is a sum with zero. */
const unlessTinySum =
  (count: 2 | 3): Decide =>
  (e, push) => {
    push(1);
    push(2);
    if (count === 3) push(3);
    else e.code.f32(0);
    e.code.i32(rounding(e));
    e.call('unless_tiny_sum');
  };

// Subnormal sums are exact.
/** The operations that are computed and rounded in one way for all widths. */
export const SUM: Operation = { compute: arithmetic('add') };
export const DIFFERENCE: Operation = { compute: arithmetic('sub') };
export const PRODUCT: Operation = { compute: arithmetic('mul'), decide: unlessTinySum(2) };
export const FUSED: Operation = { compute: fusedMultiplyAdd, decide: unlessTinySum(3) };

const computed =
  ({ compute, decide }: Operation): Rule =>
  (e) => {
    const type = e.type();
    const push = (index: number): void => {
      operand(e, index, type);
    };
    compute(e, type, push);
    result(e, type, push, decide);
  };

/** Two singles in one 64-bit register, each computed separately. */
const inPairs =
  ({ compute, decide }: Operation): Rule =>
  (e) => {
    const { code } = e;
    const type = e.type();
    const wholes = e.inst.args.map((arg, index) => {
      const local = e.temp('i64');
      if (index > 0) {
        e.push(arg, type);
        code.set(local);
      }
      return local;
    });
    [0, 32].forEach((shift) => {
      const push = (index: number): void => {
        code
          .get(wholes[index]!)
          .i64(shift)
          .op('i64.shr_u')
          .op('i32.wrap_i64')
          .op('f32.reinterpret_i32');
        if (e.has('ftz')) flush(e);
      };
      compute(e, F32, push);
      finish(e, F32, push, decide);
      code.op('i32.reinterpret_f32').op('i64.extend_i32_u');
      if (shift) code.i64(shift).op('i64.shl').op('i64.or');
    });
    e.pop(e.arg(0), type);
  };

/**
 * `add.f32.f16 d, a, c` and similar: all operands but the last are halves, and the result is
 * rounded once.
 */
const mixed =
  ({ compute }: Operation): Rule =>
  (e) => {
    const half = e.type();
    const last = e.inst.args.length - 1;
    compute(e, F32, (index) => {
      if (index === last) {
        e.push(e.arg(index), F32);
      } else {
        e.push(e.arg(index), half);
        widenHalf(e, half);
      }
    });
    result(e, F32);
  };

export function divide(e: Emitter): void {
  const type = e.type();
  e.argCount(3);
  quotient(e, type, (index) => {
    operand(e, index, type);
    if (index === 2 && type.wasm === 'f32' && e.has('approx')) divisorOfProduct(e);
  });
}

/**
 * div.approx.f32 multiplies by the divisor's reciprocal, which is zero where it would be subnormal:
 * then a quotient is zero, or NaN for an infinite dividend. An infinite divisor gives the same.
 * div.full divides those correctly.
 */
function divisorOfProduct(e: Emitter): void {
  const { code } = e;
  const divisor = e.temp('f32');
  code.set(divisor).f32(Infinity).get(divisor).op('f32.copysign').get(divisor);
  code.get(divisor).op('f32.abs').f32(GREATEST_DIVISOR).op('f32.gt').op('select');
}

/** Writes the quotient of `push(1)` and `push(2)`. */
function quotient(e: Emitter, type: ScalarType, push: PushOperand): void {
  const { wasm } = type;
  const mode = rounding(e);
  push(1);
  push(2);
  if (mode === 0) {
    // No quotient is so close to the least normal number that it rounds up to it.
    e.code.op(opcodeNamed(`${wasm}.div`));
    result(e, type);
    return;
  }
  e.code.i32(mode);
  e.call(`div_directed_${wasm}`);
  result(e, type, push, () => {
    push(1);
    push(2);
    e.call('unless_tiny_quotient');
  });
}

export function reciprocal(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const { wasm } = type;
  e.argCount(2);
  if (wasm === 'f64' && e.has('approx')) {
    approximateReciprocal(e);
    return;
  }
  quotient(e, type, (index) => {
    if (index === 2) operand(e, 1, type);
    else if (wasm === 'f32') code.f32(1);
    else code.f64(1);
  });
}

/** Pushes an f64 operand with its low word cleared and subnormals flushed. */
function pushHighWord(e: Emitter): void {
  e.push(e.arg(1), scalarType('f64'));
  if (e.has('ftz')) e.call('flush_f64');
  e.code.op('i64.reinterpret_f64').i64(0xffffffff00000000n).op('i64.and').op('f64.reinterpret_i64');
}

/** rcp.approx.ftz.f64 uses only the high word, and gives only a high word. */
function approximateReciprocal(e: Emitter): void {
  const { code } = e;
  code.f64(1);
  pushHighWord(e);
  code
    .op('f64.div')
    .op('i64.reinterpret_f64')
    .i64(0xffffffff00000000n)
    .op('i64.and')
    .op('f64.reinterpret_i64');
  if (e.has('ftz')) e.call('flush_f64');
  e.pop(e.arg(0), scalarType('f64'));
}

export function squareRoot(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  e.argCount(2);
  operand(e, 1, type);
  const mode = rounding(e);
  if (mode === 0) {
    code.op(opcodeNamed(`${type.wasm}.sqrt`));
  } else {
    code.i32(mode);
    e.call(`sqrt_directed_${type.wasm}`);
  }
  result(e, type);
}

export function reciprocalSquareRoot(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  e.argCount(2);
  if (type.wasm === 'f64') {
    code.f64(1);
    if (e.has('ftz')) pushHighWord(e);
    else operand(e, 1, type);
    code.op('f64.sqrt').op('f64.div');
    // With .ftz the result is only a high word, too.
    if (e.has('ftz'))
      code
        .op('i64.reinterpret_f64')
        .i64(0xffffffff00000000n)
        .op('i64.and')
        .op('f64.reinterpret_i64');
    result(e, type);
    return;
  }
  code.f64(1);
  operand(e, 1, type);
  code.op('f64.promote_f32').op('f64.sqrt').op('f64.div').op('f32.demote_f64');
  result(e, type);
}

/** A function of singles. */
const approximate =
  (push: (e: Emitter) => void): Rule =>
  (e) => {
    const type = e.type();
    e.argCount(2);
    if (type.wasm !== 'f32') throw e.unsupported();
    operand(e, 1, F32);
    push(e);
    result(e, F32);
  };

/** A function in f64, rounded once. */
const inDoubles = (push: (e: Emitter) => void): Rule =>
  approximate((e) => {
    e.code.op('f64.promote_f32');
    push(e);
    e.code.op('f32.demote_f64');
  });

export const minMax =
  (name: 'min' | 'max') =>
  (e: Emitter): void => {
    const type = e.type();
    const { code } = e;
    const { wasm } = type;
    e.argCount(3, 4);
    const count = e.inst.args.length - 1;
    // Bits, since NaN has a sign, too.
    const sign = e.has('xorsign') ? e.temp('i32') : -1;
    for (let index = 1; index <= count; index++) {
      operand(e, index, type);
      if (sign >= 0) {
        const value = e.temp('f32');
        code.tee(value).get(value).op('i32.reinterpret_f32');
        if (index > 1) code.get(sign).op('i32.xor');
        code.set(sign);
      }
      if (e.has('abs')) code.op(opcodeNamed(`${wasm}.abs`));
      if (index === 1) continue;
      if (e.has('NaN')) code.op(opcodeNamed(`${wasm}.${name}`));
      else e.call(`${name}_${wasm}`);
    }
    if (sign >= 0) code.get(sign).op('f32.reinterpret_i32').op('f32.copysign');
    result(e, type);
  };

export const unary =
  (operation: 'abs' | 'neg'): Rule =>
  (e) => {
    const type = e.type();
    e.argCount(2);
    operand(e, 1, type);
    e.code.op(opcodeNamed(`${type.wasm}.${operation}`));
    e.pop(e.arg(0), type);
  };

/** copysign d, a, b: the sign of a, the magnitude of b. */
export function copySign(e: Emitter): void {
  const type = e.type();
  e.argCount(3);
  e.push(e.arg(2), type);
  e.push(e.arg(1), type);
  e.code.op(opcodeNamed(`${type.wasm}.copysign`));
  e.pop(e.arg(0), type);
}

export const exponential: Rule = approximate((e) => {
  e.call('exp2_single');
});
export const logarithm: Rule = inDoubles((e) => {
  e.call('log2');
});
export const sine: Rule = inDoubles((e) => {
  e.code.i32(0);
  e.call('sine');
});
export const cosine: Rule = inDoubles((e) => {
  e.code.i32(1);
  e.call('sine');
});
export const hyperbolicTangent: Rule = inDoubles((e) => {
  e.call('tanh');
});

/**
 * The rules of a mnemonic with forms for several kinds of types; an absent rule is a kind that it
 * does not have.
 */
interface RulesByType {
  readonly integer?: (e: Emitter) => void;
  /** For f32, f64, f32x2, and halves with a sum in f32. */
  readonly operation?: Operation;
  /** For f32 and f64, if it is no such operation. */
  readonly float?: Rule;
  readonly half?: Rule;
}

/** The rule that the instruction's type selects. */
export function byType({ integer, operation, half, ...other }: RulesByType): Rule {
  const float = operation ? computed(operation) : other.float;
  const pair = operation && inPairs(operation);
  const mix = operation && mixed(operation);
  return (e: Emitter, inst: Inst) => {
    const type = e.type();
    const rule = isInteger(type)
      ? integer
      : isHalf(type)
        ? e.types().length === 2
          ? mix
          : half
        : type.name === 'f32x2'
          ? pair
          : type.name === 'f32' || type.name === 'f64'
            ? float
            : undefined;
    if (!rule) throw e.unsupported();
    rule(e, inst);
  };
}
