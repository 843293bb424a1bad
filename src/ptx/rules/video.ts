// The scalar video instructions: vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vset, vmad. Operands
// are bytes, halves or words of registers. The result is computed exactly, clamped if the
// instruction has .sat, and then either merged into a part of c or combined with c by a second
// operation.

import type { Arg } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import type { Rule } from './rule.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const B32 = scalarType('b32');
const COMPARISONS = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const;

/** A part of a register: its first bit and its width. */
interface Part {
  shift: number;
  bits: 8 | 16 | 32;
}

function partOf(e: Emitter, arg: Arg): Part {
  if (arg.kind !== 'selected') return { shift: 0, bits: 32 };
  const match = /^(?:b([0-3])|h([01]))$/.exec(arg.selector);
  if (!match) throw e.semantic(`'.${arg.selector}' selects no byte or half`, arg.at);
  return match[1] === undefined
    ? { shift: 16 * Number(match[2]), bits: 16 }
    : { shift: 8 * Number(match[1]), bits: 8 };
}

const registerIn = (arg: Arg): Arg => (arg.kind === 'selected' ? arg.operand : arg);

/** Pushes a part of an operand as an i64, extended by its type. */
function pushPart(e: Emitter, arg: Arg, type: ScalarType): void {
  const { code } = e;
  const { shift, bits } = partOf(e, arg);
  const signed = type.kind === 'signed';
  e.push(registerIn(arg), B32);
  code
    .i32(32 - bits - shift)
    .op('i32.shl')
    .i32(32 - bits)
    .op(signed ? 'i32.shr_s' : 'i32.shr_u');
  code.op(signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
}

/** Takes two i64 values from the stack and leaves the exact result, which fits 64 bits. */
type Operation = (e: Emitter) => void;

const pick =
  (comparison: 'lt_s' | 'gt_s'): Operation =>
  (e) => {
    const [a, b] = pair(e);
    e.code.get(a).get(b).get(a).get(b).op(`i64.${comparison}`).op('select');
  };

function pair(e: Emitter): [number, number] {
  const a = e.temp('i64');
  const b = e.temp('i64');
  e.code.set(b).set(a);
  return [a, b];
}

/** Amounts are clamped to 32 or taken modulo 32. */
const shift =
  (operation: 'shl' | 'shr_s'): Operation =>
  (e) => {
    const { code } = e;
    const amount = e.temp('i64');
    if (e.has('wrap')) code.i64(31).op('i64.and');
    else code.set(amount).get(amount).i64(32).get(amount).i64(32).op('i64.lt_u').op('select');
    if (operation !== 'shl' || !e.has('sat')) {
      code.op(`i64.${operation}`);
      return;
    }
    // A word shifted by 32 may reach the sign: a value that was not negative must not be clamped as
    // a negative one.
    const [value, count] = pair(e);
    code
      .i64((1n << 63n) - 1n)
      .get(value)
      .get(count)
      .op('i64.shl')
      .tee(count);
    code
      .get(count)
      .i64(0)
      .op('i64.lt_s')
      .get(value)
      .i64(0)
      .op('i64.ge_s')
      .op('i32.and')
      .op('select');
  };

export const OPERATIONS = {
  vadd: (e) => {
    e.code.op('i64.add');
  },
  vsub: (e) => {
    e.code.op('i64.sub');
  },
  vabsdiff: (e) => {
    const [a, b] = pair(e);
    e.code
      .get(a)
      .get(b)
      .op('i64.sub')
      .get(b)
      .get(a)
      .op('i64.sub')
      .get(a)
      .get(b)
      .op('i64.gt_s')
      .op('select');
  },
  vmin: pick('lt_s'),
  vmax: pick('gt_s'),
  vshl: shift('shl'),
  vshr: shift('shr_s'),
  vset: (e) => {
    const comparison = e.oneOf(...COMPARISONS)!;
    e.code
      .op(opcodeNamed(`i64.${comparison}${comparison === 'eq' || comparison === 'ne' ? '' : '_s'}`))
      .op('i64.extend_i32_u');
  },
} satisfies Record<string, Operation>;

/** Clamps the i64 on the stack to the range of a part of a type. */
function saturate(e: Emitter, signed: boolean, bits: number): void {
  const { code } = e;
  const value = e.temp('i64');
  const least = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const most = signed ? 2n ** BigInt(bits - 1) - 1n : 2n ** BigInt(bits) - 1n;
  code
    .set(value)
    .get(value)
    .i64(least)
    .get(value)
    .i64(least)
    .op('i64.gt_s')
    .op('select')
    .set(value);
  code.get(value).i64(most).get(value).i64(most).op('i64.lt_s').op('select');
}

export const scalar =
  (operation: Operation, compares = false): Rule =>
  (e) => {
    const { code } = e;
    const types = e.types();
    const [result, typeA, typeB] = compares ? [scalarType('u32'), ...types] : types;
    if (!result || !typeA || !typeB) throw e.semantic(`'${e.inst.mnemonic}' needs types`);
    e.argCount(3, 4);
    const target = e.arg(0);
    const merged = partOf(e, target);
    pushPart(e, e.arg(1), typeA);
    pushPart(e, e.arg(2), typeB);
    operation(e);
    const signed = result.kind === 'signed';
    if (e.has('sat')) saturate(e, signed, merged.bits);
    code.op('i32.wrap_i64');
    const second = e.oneOf('add', 'min', 'max');
    if (second && target.kind === 'selected')
      throw e.semantic(
        `a part of a register is no result of '${e.inst.mnemonic}.${second}'`,
        target.at,
      );
    if (second === 'add') {
      e.push(e.arg(3), B32);
      code.op('i32.add');
    } else if (second) {
      const value = e.temp('i32');
      const c = e.temp('i32');
      code.set(value);
      e.push(e.arg(3), B32);
      code
        .set(c)
        .get(value)
        .get(c)
        .get(value)
        .get(c)
        .op(`i32.${second === 'min' ? 'lt' : 'gt'}_${signed ? 's' : 'u'}`)
        .op('select');
    } else if (target.kind === 'selected') {
      const mask = (2 ** merged.bits - 1) * 2 ** merged.shift;
      code
        .i32(merged.shift)
        .op('i32.shl')
        .i32(mask | 0)
        .op('i32.and');
      e.push(e.arg(3), B32);
      code.i32(~mask).op('i32.and').op('i32.or');
    }
    e.pop(registerIn(target), B32);
  };

/**
 * vmad: a*b + c in 128 bits, with one of the terms negated or one added, then scaled down and
 * clamped.
 */
export function multiplyAdd(e: Emitter): void {
  const { code } = e;
  const [, typeA, typeB] = e.types();
  if (!typeA || !typeB) throw e.semantic("'vmad' needs three types");
  e.argCount(4);
  const negated = (index: number): boolean => e.arg(index).kind === 'negated';
  const term = (index: number): Arg => {
    const arg = e.arg(index);
    return arg.kind === 'negated' ? arg.operand : arg;
  };
  const negatesProduct = negated(1) !== negated(2);
  const signed = typeA.kind === 'signed' || typeB.kind === 'signed' || negatesProduct || negated(3);
  pushPart(e, term(1), typeA);
  pushPart(e, term(2), typeB);
  code.i32(negatesProduct ? 1 : 0);
  e.push(term(3), B32);
  if (negated(3)) code.i32(-1).op('i32.xor');
  code.op(signed ? 'i64.extend_i32_s' : 'i64.extend_i32_u');
  code.i64(e.has('po') || negatesProduct || negated(3) ? 1 : 0);
  code.i64(e.has('shr15') ? 15 : e.has('shr7') ? 7 : 0);
  e.call('vmad');
  if (e.has('sat')) {
    if (signed) {
      saturate(e, true, 32);
    } else {
      const value = e.temp('i64');
      code
        .set(value)
        .get(value)
        .i64(0xffffffffn)
        .get(value)
        .i64(0xffffffffn)
        .op('i64.lt_u')
        .op('select');
    }
  }
  code.op('i32.wrap_i64');
  e.pop(e.arg(0), B32);
}

export const VIDEO_FUNCTIONS = `
(func $vmad (param $a $b i64) (param $negate i32) (param $c $one $shift i64) (result i64)
  (local $low $high $sum i64)
  (local.set $low (i64.mul $a $b))
  ;; Two unsigned words fill 64 bits; if one is signed the product is a signed 64-bit number.
  (if (i64.lt_s (i64.or $a $b) 0L) (then (local.set $high (i64.shr_s $low 63L))))
  (if $negate (then
    (local.set $low (i64.xor $low -1L))
    (local.set $high (i64.xor $high -1L))))
  (local.set $sum (i64.add $low $c))
  (local.set $high (i64.add (i64.add $high (i64.shr_s $c 63L))
      (i64.extend_i32_u (i64.lt_u $sum $low))))
  (local.set $low (i64.add $sum $one))
  (local.set $high (i64.add $high (i64.extend_i32_u (i64.lt_u $low $sum))))
  (if (i64.eqz $shift) (then (return $low)))
  (i64.or (i64.shr_u $low $shift) (i64.shl $high (i64.sub 64L $shift))))
`;
