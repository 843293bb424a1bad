// Integer arithmetic: add, sub, mul, mad and their carry and wide forms, division, min, max, abs,
// neg.

import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const B32 = scalarType('b32');

/** True for the integer forms that this file covers. */
export const isInteger = (type: ScalarType): boolean =>
  type.kind !== 'float' && type.kind !== 'predicate';

/**
 * The carry flag is a register like others: it is kept if a thread is suspended in the middle of a
 * chain.
 */
const carry = (e: Emitter): number => e.registerLocal(e.inst.carry!);

/**
 * Pushes the sum of three 64-bit values, and leaves the carry out of `bits` in the flag if the
 * instruction has .cc.
 */
function addWithCarry(
  e: Emitter,
  type: ScalarType,
  setsCarry: boolean,
  usesCarry: boolean,
  pushA: () => void,
  pushB: () => void,
): void {
  const { code } = e;
  const flag = carry(e);
  if (type.bits === 32) {
    const sum = e.temp('i64');
    pushA();
    code.op('i64.extend_i32_u');
    pushB();
    code.op('i64.extend_i32_u').op('i64.add');
    if (usesCarry) code.get(flag).op('i64.extend_i32_u').op('i64.add');
    code.set(sum);
    if (setsCarry) code.get(sum).i64(32).op('i64.shr_u').op('i32.wrap_i64').set(flag);
    code.get(sum).op('i32.wrap_i64');
    return;
  }
  const a = e.temp('i64');
  const b = e.temp('i64');
  const sum = e.temp('i64');
  pushA();
  code.set(a);
  pushB();
  code.tee(b).get(a).op('i64.add').set(sum);
  const out = e.temp('i32');
  if (setsCarry) code.get(sum).get(a).op('i64.lt_u').set(out);
  if (usesCarry) {
    const total = e.temp('i64');
    code.get(sum).get(flag).op('i64.extend_i32_u').op('i64.add').set(total);
    if (setsCarry) code.get(out).get(total).get(sum).op('i64.lt_u').op('i32.or').set(flag);
    code.get(total);
  } else {
    if (setsCarry) code.get(out).set(flag);
    code.get(sum);
  }
}

/**
 * a - b - borrow is a + ~b + (1 - borrow). As in the machine, the flag is the carry of that sum:
 * set if there is no borrow. The ISA calls it a borrow, and chains of subtractions give the same
 * result; nvcc's division of 128-bit integers reads the flag with addc.
 */
function subtractWithBorrow(
  e: Emitter,
  type: ScalarType,
  setsCarry: boolean,
  usesCarry: boolean,
): void {
  const { code } = e;
  const flag = carry(e);
  const { wasm } = type;
  const a = e.temp(wasm);
  const b = e.temp(wasm);
  const difference = e.temp(wasm);
  const out = e.temp('i32');
  e.push(e.arg(1), type);
  code.set(a);
  e.push(e.arg(2), type);
  code.set(b).get(a).get(b).op(`${wasm}.sub`).set(difference);
  code
    .get(a)
    .get(b)
    .op(opcodeNamed(`${wasm}.lt_u`))
    .set(out);
  if (usesCarry) {
    const borrow = e.temp(wasm);
    code.get(flag).op('i32.eqz');
    if (wasm === 'i64') code.op('i64.extend_i32_u');
    code.set(borrow);
    code
      .get(out)
      .get(difference)
      .get(borrow)
      .op(opcodeNamed(`${wasm}.lt_u`))
      .op('i32.or')
      .set(out);
    code.get(difference).get(borrow).op(`${wasm}.sub`).set(difference);
  }
  if (setsCarry) code.get(out).op('i32.eqz').set(flag);
  code.get(difference);
  e.pop(e.arg(0), type);
}

export const add =
  (name: 'add' | 'sub', uses = false) =>
  (e: Emitter): void => {
    const type = e.type();
    e.argCount(3);
    const sets = e.has('cc');
    const subtracts = name === 'sub';
    const { code } = e;
    if (e.has('sat')) {
      if (type.name !== 's32') throw e.semantic("'.sat' needs .s32");
      e.push(e.arg(1), type);
      code.op('i64.extend_i32_s');
      e.push(e.arg(2), type);
      code.op('i64.extend_i32_s').op(subtracts ? 'i64.sub' : 'i64.add');
      e.call('saturate_s32');
      e.pop(e.arg(0), type);
      return;
    }
    if (uses && type.bits === 16) {
      const operation = subtracts ? 'i32.sub' : 'i32.add';
      e.push(e.arg(1), type);
      e.push(e.arg(2), type);
      code.op(operation).get(carry(e));
      if (subtracts) code.op('i32.eqz');
      code.op(operation);
      e.popNarrow(e.arg(0), type);
      return;
    }
    if (sets || uses) {
      if (subtracts) {
        subtractWithBorrow(e, type, sets, uses);
        return;
      }
      addWithCarry(
        e,
        type,
        sets,
        uses,
        () => e.push(e.arg(1), type),
        () => e.push(e.arg(2), type),
      );
      e.pop(e.arg(0), type);
      return;
    }
    if (type.name.endsWith('x2')) {
      packed(e, type, subtracts ? 'i32.sub' : 'i32.add');
      return;
    }
    e.push(e.arg(1), type);
    e.push(e.arg(2), type);
    code.op(`${type.wasm}.${subtracts ? 'sub' : 'add'}`);
    e.popNarrow(e.arg(0), type);
  };

/** Two 16-bit halves at once. */
function packed(
  e: Emitter,
  type: ScalarType,
  operation: string | ((half: ScalarType) => void),
): void {
  const { code } = e;
  const signed = type.kind === 'signed';
  const operands = e.inst.args.slice(1).map((arg) => {
    const local = e.temp('i32');
    e.push(arg, type);
    code.set(local);
    return local;
  });
  const half = scalarType(signed ? 's16' : 'u16');
  const low = (local: number): void => {
    code.get(local);
    if (signed) code.op('i32.extend16_s');
    else code.i32(0xffff).op('i32.and');
  };
  const high = (local: number): void => {
    code
      .get(local)
      .i32(16)
      .op(signed ? 'i32.shr_s' : 'i32.shr_u');
  };
  const apply = (): void => {
    if (typeof operation === 'string') code.op(opcodeNamed(operation));
    else operation(half);
  };
  operands.forEach(low);
  apply();
  code.i32(0xffff).op('i32.and');
  operands.forEach(high);
  apply();
  code.i32(16).op('i32.shl').op('i32.or');
  e.pop(e.arg(0), type);
}

/** Pushes the high half of a product of the two values on the stack. */
function multiplyHigh(e: Emitter, type: ScalarType): void {
  const { code } = e;
  const signed = type.kind === 'signed';
  if (type.bits === 64) {
    e.call(signed ? 'mul_hi_s64' : 'mul_hi_u64');
  } else if (type.bits === 32) {
    const extend = signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u';
    const b = e.temp('i32');
    code
      .set(b)
      .op(extend)
      .get(b)
      .op(extend)
      .op('i64.mul')
      .i64(32)
      .op('i64.shr_u')
      .op('i32.wrap_i64');
  } else {
    code
      .op('i32.mul')
      .i32(16)
      .op(signed ? 'i32.shr_s' : 'i32.shr_u');
  }
}

/** The type of a wide result: twice as wide, of the same sign. */
const widened = (type: ScalarType): ScalarType => scalarType(`${type.name[0]!}${type.bits * 2}`);

/** Pushes a*b in the form of .lo, .hi or .wide; returns the type of the value on the stack. */
function product(e: Emitter, type: ScalarType): ScalarType {
  const { code } = e;
  const mode = e.oneOf('wide', 'hi', 'lo') ?? 'lo';
  if (mode === 'wide') {
    if (type.bits === 64) throw e.unsupported('128-bit results are');
    const wide = widened(type);
    for (const index of [1, 2]) {
      e.push(e.arg(index), type);
      if (wide.wasm === 'i64')
        code.op(type.kind === 'signed' ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
    }
    code.op(`${wide.wasm}.mul`);
    return wide;
  }
  e.push(e.arg(1), type);
  e.push(e.arg(2), type);
  if (mode === 'hi') multiplyHigh(e, type);
  else code.op(`${type.wasm}.mul`);
  return type;
}

export function multiply(e: Emitter): void {
  e.argCount(3);
  const type = e.type();
  const result = product(e, type);
  e.popNarrow(e.arg(0), result);
}

export const multiplyAdd =
  (uses = false) =>
  (e: Emitter): void => {
    e.argCount(4);
    const { code } = e;
    const type = e.type();
    if (e.has('sat')) {
      if (type.name !== 's32' || !e.has('hi')) throw e.semantic("'.sat' needs .hi.s32");
      product(e, type);
      code.op('i64.extend_i32_s');
      e.push(e.arg(3), type);
      code.op('i64.extend_i32_s').op('i64.add');
      e.call('saturate_s32');
      e.pop(e.arg(0), type);
      return;
    }
    if (e.has('cc') || uses) {
      const value = e.temp(type.wasm);
      product(e, type);
      code.set(value);
      addWithCarry(
        e,
        type,
        e.has('cc'),
        uses,
        () => {
          code.get(value);
        },
        () => e.push(e.arg(3), type),
      );
      e.pop(e.arg(0), type);
      return;
    }
    const result = product(e, type);
    e.push(e.arg(3), result);
    code.op(`${result.wasm}.add`);
    e.popNarrow(e.arg(0), result);
  };

/** 24-bit products: the low 24 bits of each operand, sign- or zero-extended. */
function product24(e: Emitter, type: ScalarType): void {
  const { code } = e;
  for (const index of [1, 2]) {
    e.push(e.arg(index), type);
    code
      .i32(8)
      .op('i32.shl')
      .i32(8)
      .op(type.kind === 'signed' ? 'i32.shr_s' : 'i32.shr_u');
    code.op(type.kind === 'signed' ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
  }
  code.op('i64.mul');
  if (e.has('hi')) code.i64(16).op('i64.shr_s');
  code.op('i32.wrap_i64');
}

export function multiply24(e: Emitter): void {
  const type = e.type();
  product24(e, type);
  e.pop(e.arg(0), type);
}

export function multiplyAdd24(e: Emitter): void {
  const { code } = e;
  const type = e.type();
  product24(e, type);
  if (e.has('sat')) {
    code.op('i64.extend_i32_s');
    e.push(e.arg(3), type);
    code.op('i64.extend_i32_s').op('i64.add');
    e.call('saturate_s32');
  } else {
    e.push(e.arg(3), type);
    code.op('i32.add');
  }
  e.pop(e.arg(0), type);
}

/**
 * Division by zero does not trap in PTX; its result is unspecified, and GPUs give all ones (rem:
 * the dividend). INT_MIN / -1 wraps; WebAssembly traps.
 */
export const divide =
  (result: 'div' | 'rem') =>
  (e: Emitter): void => {
    e.argCount(3);
    const { code } = e;
    const type = e.type();
    const remainder = result === 'rem';
    const { wasm } = type;
    const signed = type.kind === 'signed';
    const constant = e.arg(2);
    // As the type reads it: 0xffffffff is -1, and 0x100000000 has no bits left.
    const divisor = constant.kind === 'integer' ? BigInt.asIntN(type.bits, constant.value) : 0n;
    const safe = divisor !== 0n && divisor !== -1n;
    const operation = opcodeNamed(`${wasm}.${remainder ? 'rem' : 'div'}_${signed ? 's' : 'u'}`);
    e.push(e.arg(1), type);
    e.push(constant, type);
    if (safe) code.op(operation);
    else e.call(`${remainder ? 'rem' : 'div'}_${signed ? 's' : 'u'}${wasm === 'i64' ? 64 : 32}`);
    e.popNarrow(e.arg(0), type);
  };

export const minMax =
  (name: 'min' | 'max') =>
  (e: Emitter): void => {
    const type = e.type();
    const { code } = e;
    const pick = (of: ScalarType): void => {
      const b = e.temp(of.wasm);
      const a = e.temp(of.wasm);
      code.set(b).tee(a).get(b).get(a).get(b);
      code
        .op(
          opcodeNamed(
            `${of.wasm}.${name === 'min' ? 'lt' : 'gt'}_${of.kind === 'signed' ? 's' : 'u'}`,
          ),
        )
        .op('select');
      if (e.has('relu')) code.tee(a).i32(0).get(a).i32(0).op('i32.gt_s').op('select');
    };
    e.argCount(3);
    if (type.name.endsWith('x2')) {
      packed(e, type, pick);
      return;
    }
    e.push(e.arg(1), type);
    e.push(e.arg(2), type);
    pick(type);
    e.popNarrow(e.arg(0), type);
  };

export function absolute(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const value = e.temp(type.wasm);
  const zero = (): unknown => (type.wasm === 'i64' ? code.i64(0) : code.i32(0));
  e.push(e.arg(1), type);
  code.set(value);
  zero();
  code.get(value).op(`${type.wasm}.sub`).get(value).get(value);
  zero();
  code.op(opcodeNamed(`${type.wasm}.lt_s`)).op('select');
  e.popNarrow(e.arg(0), type);
}

export function negate(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  if (type.wasm === 'i64') code.i64(0);
  else code.i32(0);
  e.push(e.arg(1), type);
  code.op(`${type.wasm}.sub`);
  e.popNarrow(e.arg(0), type);
}

/** sad: c + |a - b|. */
export function sumOfDifferences(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const { wasm } = type;
  const a = e.temp(wasm);
  const b = e.temp(wasm);
  e.push(e.arg(1), type);
  code.set(a);
  e.push(e.arg(2), type);
  code.set(b);
  code.get(a).get(b).op(`${wasm}.sub`).get(b).get(a).op(`${wasm}.sub`).get(a).get(b);
  code.op(opcodeNamed(`${wasm}.gt_${type.kind === 'signed' ? 's' : 'u'}`)).op('select');
  e.push(e.arg(3), type);
  code.op(`${wasm}.add`);
  e.popNarrow(e.arg(0), type);
}

/** dp4a, dp2a: dot products of bytes, and of 16-bit halves with bytes. */
export const dotProduct =
  (products: 2 | 4) =>
  (e: Emitter): void => {
    const { code } = e;
    const [typeA, typeB] = e.types();
    if (!typeA || !typeB) throw e.semantic(`'${e.inst.mnemonic}' needs two types`);
    e.argCount(4);
    const two = products === 2;
    const a = e.temp('i32');
    const b = e.temp('i32');
    e.push(e.arg(1), B32);
    code.set(a);
    e.push(e.arg(2), B32);
    code.set(b);
    e.push(e.arg(3), B32);
    const part = (local: number, index: number, bits: number, signed: boolean): void => {
      code
        .get(local)
        .i32(32 - bits * (index + 1))
        .op('i32.shl')
        .i32(32 - bits)
        .op(signed ? 'i32.shr_s' : 'i32.shr_u');
    };
    for (let index = 0; index < (two ? 2 : 4); index++) {
      part(a, index, two ? 16 : 8, typeA.kind === 'signed');
      part(b, two && e.has('hi') ? index + 2 : index, 8, typeB.kind === 'signed');
      code.op('i32.mul').op('i32.add');
    }
    e.pop(e.arg(0), B32);
  };
