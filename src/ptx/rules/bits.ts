// Bit operations: logic, shifts, counts, fields, permutations.

import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const B32 = scalarType('b32');
const U32 = scalarType('u32');
const PRED = scalarType('pred');

export const logic =
  (operation: 'and' | 'or' | 'xor') =>
  (e: Emitter): void => {
    const type = e.type();
    e.argCount(3);
    e.push(e.arg(1), type);
    e.push(e.arg(2), type);
    e.code.op(opcodeNamed(`${type.wasm}.${operation}`));
    e.popNarrow(e.arg(0), type);
  };

export function not(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  e.argCount(2);
  e.push(e.arg(1), type);
  if (type.kind === 'predicate') code.op('i32.eqz');
  else if (type.wasm === 'i64') code.i64(-1).op('i64.xor');
  else code.i32(-1).op('i32.xor');
  e.popNarrow(e.arg(0), type);
}

/** cnot: 1 if the operand is zero. */
export function logicalNot(e: Emitter): void {
  const type = e.type();
  e.push(e.arg(1), type);
  e.code.op(opcodeNamed(`${type.wasm}.eqz`));
  if (type.wasm === 'i64') e.code.op('i64.extend_i32_u');
  e.popNarrow(e.arg(0), type);
}

/** PTX clamps shift amounts to the width; WebAssembly takes them modulo the width. */
export const shift =
  (direction: 'shl' | 'shr') =>
  (e: Emitter): void => {
    const type = e.type();
    const { code } = e;
    const { wasm, bits } = type;
    e.argCount(3);
    const left = direction === 'shl';
    const signed = !left && type.kind === 'signed';
    const operation = opcodeNamed(`${wasm}.${left ? 'shl' : signed ? 'shr_s' : 'shr_u'}`);
    const amount = e.arg(2);
    const widen = (): void => {
      if (wasm === 'i64') code.op('i64.extend_i32_u');
    };
    if (amount.kind === 'integer') {
      const count = Number(BigInt.asUintN(32, amount.value));
      if (count >= bits && !signed) {
        if (wasm === 'i64') code.i64(0);
        else code.i32(0);
      } else {
        e.push(e.arg(1), type);
        if (wasm === 'i64') code.i64(Math.min(count, bits - 1));
        else code.i32(Math.min(count, bits - 1));
        code.op(operation);
      }
      e.popNarrow(e.arg(0), type);
      return;
    }
    const count = e.temp('i32');
    e.push(amount, U32);
    code.set(count);
    if (signed) {
      e.push(e.arg(1), type);
      code
        .get(count)
        .i32(bits - 1)
        .get(count)
        .i32(bits)
        .op('i32.lt_u')
        .op('select');
      widen();
      code.op(operation);
    } else {
      e.push(e.arg(1), type);
      code.get(count);
      widen();
      code.op(operation);
      if (wasm === 'i64') code.i64(0);
      else code.i32(0);
      code.get(count).i32(bits).op('i32.lt_u').op('select');
    }
    e.popNarrow(e.arg(0), type);
  };

/** shf: shifts the 64-bit value b:a and keeps its high (l) or low (r) half. */
export function funnelShift(e: Emitter): void {
  const { code } = e;
  e.argCount(4);
  const left = e.has('l');
  const amount = e.arg(3);
  const whole = (): void => {
    e.push(e.arg(2), B32);
    code.op('i64.extend_i32_u').i64(32).op('i64.shl');
    e.push(e.arg(1), B32);
    code.op('i64.extend_i32_u').op('i64.or');
  };
  const sameHalves =
    e.arg(1).kind === 'register' &&
    e.arg(2).kind === 'register' &&
    (e.arg(1) as { register: object }).register === (e.arg(2) as { register: object }).register;
  if (sameHalves && e.has('wrap')) {
    e.push(e.arg(1), B32);
    e.push(amount, B32);
    code.op(left ? 'i32.rotl' : 'i32.rotr');
    e.pop(e.arg(0), B32);
    return;
  }
  const count = e.temp('i32');
  e.push(amount, U32);
  if (e.has('wrap')) code.i32(31).op('i32.and').set(count);
  else code.tee(count).i32(32).get(count).i32(32).op('i32.lt_u').op('select').set(count);
  whole();
  code
    .get(count)
    .op('i64.extend_i32_u')
    .op(left ? 'i64.shl' : 'i64.shr_u');
  if (left) code.i64(32).op('i64.shr_u');
  code.op('i32.wrap_i64');
  e.pop(e.arg(0), B32);
}

/** popc and clz give 32 bits for every type. */
export const count =
  (operation: string) =>
  (e: Emitter): void => {
    const type = e.type();
    e.argCount(2);
    e.push(e.arg(1), type);
    e.code.op(opcodeNamed(`${type.wasm}.${operation}`));
    if (type.wasm === 'i64') e.code.op('i32.wrap_i64');
    e.pop(e.arg(0), U32);
  };

export function reverse(e: Emitter): void {
  const type = e.type();
  e.argCount(2);
  e.push(e.arg(1), type);
  e.call(type.wasm === 'i64' ? 'brev64' : 'brev32');
  e.pop(e.arg(0), type);
}

/** bfind: the position of the highest bit that is not the sign; -1 if there is none. */
export function findBit(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const { wasm, bits } = type;
  e.argCount(2);
  const value = e.temp(wasm);
  e.push(e.arg(1), type);
  code.set(value).get(value);
  if (type.kind === 'signed') {
    code.get(value);
    if (wasm === 'i64') code.i64(63).op('i64.shr_s').op('i64.xor');
    else code.i32(31).op('i32.shr_s').op('i32.xor');
  }
  const leading = e.temp('i32');
  code.op(opcodeNamed(`${wasm}.clz`));
  if (wasm === 'i64') code.op('i32.wrap_i64');
  code.set(leading);
  if (e.has('shiftamt')) code.get(leading);
  else
    code
      .i32(bits - 1)
      .get(leading)
      .op('i32.sub');
  code.i32(-1).get(leading).i32(bits).op('i32.ne').op('select');
  e.pop(e.arg(0), U32);
}

export function permute(e: Emitter): void {
  const { code } = e;
  const mode = e.oneOf('f4e', 'b4e', 'rc8', 'ecl', 'ecr', 'rc16');
  e.argCount(4);
  if (mode) {
    e.push(e.arg(1), B32);
    e.push(e.arg(2), B32);
    const selector = e.temp('i32');
    e.push(e.arg(3), B32);
    code.i32(3).op('i32.and').set(selector);
    // The bytes chosen for selectors 0 to 3, one nibble for each byte of the result.
    const tables: Record<string, number[]> = {
      f4e: [0x3210, 0x4321, 0x5432, 0x6543],
      b4e: [0x5670, 0x6701, 0x7012, 0x0123],
      rc8: [0x0000, 0x1111, 0x2222, 0x3333],
      ecl: [0x3210, 0x3211, 0x3222, 0x3333],
      ecr: [0x0000, 0x1110, 0x2210, 0x3210],
      rc16: [0x1010, 0x3232, 0x1010, 0x3232],
    };
    const table = tables[mode]!;
    code.i32(table[0]!);
    for (let choice = 1; choice < 4; choice++)
      code.i32(table[choice]!).get(selector).i32(choice).op('i32.ne').op('select');
    e.call('prmt');
    e.pop(e.arg(0), B32);
    return;
  }
  const constant = e.arg(3);
  if (constant.kind === 'integer') {
    permuteConstant(e, Number(BigInt.asUintN(16, constant.value)));
    return;
  }
  e.push(e.arg(1), B32);
  e.push(e.arg(2), B32);
  e.push(constant, B32);
  e.call('prmt');
  e.pop(e.arg(0), B32);
}

function permuteConstant(e: Emitter, selector: number): void {
  const { code } = e;
  const parts = [0, 1, 2, 3].map((index) => (selector >> (4 * index)) & 15);
  parts.forEach((part, index) => {
    e.push(e.arg((part & 7) < 4 ? 1 : 2), B32);
    const from = (part & 3) * 8;
    if (part & 8) {
      code
        .i32(24 - from)
        .op('i32.shl')
        .i32(31)
        .op('i32.shr_s')
        .i32(0xff << (8 * index))
        .op('i32.and');
    } else {
      if (from > index * 8) code.i32(from - index * 8).op('i32.shr_u');
      else if (from < index * 8) code.i32(index * 8 - from).op('i32.shl');
      code.i32(0xff << (8 * index)).op('i32.and');
    }
    if (index) code.op('i32.or');
  });
  e.pop(e.arg(0), B32);
}

/**
 * Pushes the start of a field, or its length: the low byte of 32 bits, and the whole register of
 * 64, as ptxas does; all fields that begin past the value's end give the same result.
 */
function pushFieldBits(e: Emitter, index: number, { bits }: ScalarType): void {
  const { code } = e;
  e.push(e.arg(index), U32);
  if (bits === 32) {
    code.i32(255).op('i32.and');
    return;
  }
  const count = e.temp('i32');
  code.set(count).get(count).i32(64).get(count).i32(64).op('i32.lt_u').op('select');
}

export function extractField(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const { wasm } = type;
  e.argCount(4);
  const signed = type.kind === 'signed';
  e.push(e.arg(1), type);
  if (wasm === 'i32') code.op('i64.extend_i32_u');
  for (const index of [2, 3]) pushFieldBits(e, index, type);
  if (signed) code.i32(type.bits);
  e.call(signed ? 'bfe_s' : 'bfe_u64');
  if (wasm === 'i32') code.op('i32.wrap_i64');
  e.pop(e.arg(0), type);
}

export function insertField(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  e.argCount(5);
  for (const index of [1, 2]) {
    e.push(e.arg(index), type);
    if (type.wasm === 'i32') code.op('i64.extend_i32_u');
  }
  for (const index of [3, 4]) pushFieldBits(e, index, type);
  code.i32(type.bits);
  e.call('bfi');
  if (type.wasm === 'i32') code.op('i32.wrap_i64');
  e.pop(e.arg(0), type);
}

export function bitMask(e: Emitter): void {
  const { code } = e;
  e.argCount(3);
  for (const index of [1, 2]) {
    e.push(e.arg(index), U32);
    if (e.has('wrap')) code.i32(31).op('i32.and');
  }
  e.call('bmsk');
  e.pop(e.arg(0), B32);
}

/** szext: the low `b` bits, extended by zeros or by their sign. */
export function extend(e: Emitter): void {
  const { code } = e;
  e.argCount(3);
  const type = e.type();
  e.push(e.arg(1), B32);
  e.push(e.arg(2), U32);
  if (e.has('wrap')) code.i32(31).op('i32.and');
  e.call(type.kind === 'signed' ? 'sign_extend' : 'zero_extend');
  e.pop(e.arg(0), B32);
}

/** fns: the n-th set bit above or below a position. */
export function findSet(e: Emitter): void {
  e.argCount(4);
  for (const index of [1, 2, 3]) e.push(e.arg(index), B32);
  e.call('fns');
  e.pop(e.arg(0), B32);
}

/**
 * Any function of three bits, as the sum of the products in its truth table. With .and or .or the
 * result is also compared with zero and combined with a predicate.
 */
export function logic3(e: Emitter): void {
  const { code } = e;
  const combination = e.oneOf('and', 'or');
  e.argCount(combination ? 6 : 5);
  const target = e.arg(0);
  const table = e.arg(4);
  if (table.kind !== 'integer') throw e.semantic("'lop3' needs a constant truth table", table.at);
  const bits = Number(BigInt.asUintN(8, table.value));
  const locals = [1, 2, 3].map((index) => {
    const local = e.temp('i32');
    e.push(e.arg(index), B32);
    code.set(local);
    return local;
  });
  code.i32(0);
  for (let row = 0; row < 8; row++) {
    if (!(bits & (1 << row))) continue;
    // In the row of the table, bit 2 is a, bit 1 b, bit 0 c.
    locals.forEach((local, index) => {
      code.get(local);
      if (!(row & (4 >> index))) code.i32(-1).op('i32.xor');
      if (index) code.op('i32.and');
    });
    code.op('i32.or');
  }
  if (!combination) {
    e.pop(target, B32);
    return;
  }
  if (target.kind !== 'pair') throw e.semantic('expected a result and a predicate d|p', target.at);
  const result = e.temp('i32');
  code.tee(result).i32(0).op('i32.ne');
  e.push(e.arg(5), PRED);
  code.op(`i32.${combination}`);
  e.pop(target.second, PRED);
  code.get(result);
  e.pop(target.first, B32);
}
