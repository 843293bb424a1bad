// Comparisons and selections: setp, set, selp, slct, testp.

import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { flush } from './flush.js';
import { flushHalf, widenHalf } from './half-values.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const PRED = scalarType('pred');

/** Integer comparisons: WebAssembly's name for PTX's, and whether it ignores the type's sign. */
const INTEGER: Record<string, { op: string; unsigned?: true }> = {
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

/** Float comparisons; an unordered one is the negation of the opposite ordered one. */
const FLOAT: Record<string, { op: string; negated?: true }> = {
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

const COMPARISONS = [
  'eq',
  'ne',
  'lt',
  'le',
  'gt',
  'ge',
  'lo',
  'ls',
  'hi',
  'hs',
  'equ',
  'neu',
  'ltu',
  'leu',
  'gtu',
  'geu',
  'num',
  'nan',
] as const;

/** Pops two values of the type, and pushes the result of the comparison. */
function compareValues(e: Emitter, type: ScalarType, comparison: string): void {
  const { code } = e;
  const { wasm } = type;
  if (wasm === 'i32' || wasm === 'i64') {
    const row = INTEGER[comparison];
    if (!row) throw e.semantic(`'.${comparison}' does not compare integers`);
    const equality = row.op === 'eq' || row.op === 'ne';
    if (type.kind === 'bits' && !equality)
      throw e.semantic(`'.${comparison}' needs a signed or unsigned type`);
    code.op(
      opcodeNamed(
        equality
          ? `${wasm}.${row.op}`
          : `${wasm}.${row.op}_${type.kind === 'signed' && !row.unsigned ? 's' : 'u'}`,
      ),
    );
    return;
  }
  const row = FLOAT[comparison];
  if (row) {
    code.op(opcodeNamed(`${wasm}.${row.op}`));
    if (row.negated) code.op('i32.eqz');
    return;
  }
  // ne is ordered: false for NaN. equ, num and nan only test for NaN.
  const a = e.temp(wasm);
  const b = e.temp(wasm);
  code.set(b).set(a);
  const ordered = (): void => {
    code.get(a).get(a).op(`${wasm}.eq`).get(b).get(b).op(`${wasm}.eq`).op('i32.and');
  };
  switch (comparison) {
    case 'ne':
      code.get(a).get(b).op(`${wasm}.lt`).get(a).get(b).op(`${wasm}.gt`).op('i32.or');
      return;
    case 'equ':
      code.get(a).get(b).op(`${wasm}.eq`);
      ordered();
      code.op('i32.eqz').op('i32.or');
      return;
    case 'num':
      ordered();
      return;
    case 'nan':
      ordered();
      code.op('i32.eqz');
      return;
    default:
      throw e.semantic(`'.${comparison}' does not compare floats`);
  }
}

/** Converts the half on the stack to an f32, flushed if the instruction has .ftz. */
function widenComparable(e: Emitter, half: ScalarType): void {
  if (e.has('ftz')) flushHalf(e, half);
  widenHalf(e, half);
}

/** Pushes an operand for a comparison: halves become f32, .ftz flushes. */
export function pushComparable(e: Emitter, index: number, type: ScalarType): ScalarType {
  e.push(e.arg(index), type);
  if (type.kind === 'float' && type.bits === 16) {
    widenComparable(e, type);
    return scalarType('f32');
  }
  if (e.has('ftz') && type.wasm === 'f32') flush(e);
  return type;
}

function comparisonOf(e: Emitter): string {
  const found = e.oneOf(...COMPARISONS);
  if (!found) throw e.semantic(`'${e.inst.mnemonic}' needs a comparison`);
  return found;
}

/** Combines the i32 on the stack with predicate operand c by .and, .or or .xor. */
function combine(e: Emitter, index: number, negate: boolean): void {
  const operation = e.oneOf('and', 'or', 'xor');
  if (negate) e.code.op('i32.eqz');
  if (!operation) return;
  e.push(e.arg(index), PRED);
  e.code.op(`i32.${operation}`);
}

export function setPredicate(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const combined = e.oneOf('and', 'or', 'xor') !== undefined;
  e.argCount(combined ? 4 : 3);
  const comparison = comparisonOf(e);
  const target = e.arg(0);
  if (type.name.endsWith('x2')) {
    comparePacked(e, type, comparison);
    return;
  }
  pushComparable(e, 1, type);
  const compared = pushComparable(e, 2, type);
  compareValues(e, compared, comparison);
  if (target.kind !== 'pair') {
    combine(e, 3, false);
    e.pop(target, PRED);
    return;
  }
  const truth = e.temp('i32');
  code.set(truth).get(truth);
  combine(e, 3, false);
  const first = e.temp('i32');
  code.set(first).get(truth);
  combine(e, 3, true);
  e.pop(target.second, PRED);
  code.get(first);
  e.pop(target.first, PRED);
}

/** setp.f16x2: one predicate for each half. */
function comparePacked(e: Emitter, type: ScalarType, comparison: string): void {
  const { code } = e;
  const target = e.arg(0);
  if (target.kind !== 'pair') throw e.semantic('expected two predicates p|q', target.at);
  const half = scalarType(type.name.slice(0, -2));
  const results = [0, 16].map((shift) => {
    for (const index of [1, 2]) {
      e.push(e.arg(index), type);
      code.i32(shift).op('i32.shr_u').i32(0xffff).op('i32.and');
      widenComparable(e, half);
    }
    compareValues(e, scalarType('f32'), comparison);
    combine(e, 3, false);
    const result = e.temp('i32');
    code.set(result);
    return result;
  });
  code.get(results[0]!);
  e.pop(target.first, PRED);
  code.get(results[1]!);
  e.pop(target.second, PRED);
}

export function set(e: Emitter): void {
  const { code } = e;
  const [result, type] = e.types();
  if (!result || !type) throw e.semantic("'set' needs two types");
  const comparison = comparisonOf(e);
  if (type.name.endsWith('x2')) {
    const half = scalarType(type.name.slice(0, -2));
    [0, 16].forEach((shift) => {
      for (const index of [1, 2]) {
        e.push(e.arg(index), type);
        code.i32(shift).op('i32.shr_u').i32(0xffff).op('i32.and');
        widenComparable(e, half);
      }
      compareValues(e, scalarType('f32'), comparison);
      combine(e, 3, false);
      pushTruth(
        e,
        result.name.endsWith('x2') ? scalarType(result.name.slice(0, -2)) : scalarType('u16'),
      );
      if (shift) code.i32(16).op('i32.shl').op('i32.or');
    });
    e.pop(e.arg(0), result);
    return;
  }
  pushComparable(e, 1, type);
  const compared = pushComparable(e, 2, type);
  compareValues(e, compared, comparison);
  combine(e, 3, false);
  pushTruth(e, result);
  e.pop(e.arg(0), result);
}

/** True is all ones for integers, and 1.0 for floats. */
function pushTruth(e: Emitter, result: ScalarType): void {
  const { code } = e;
  if (result.wasm === 'f32') {
    code.op('f32.convert_i32_u');
    return;
  }
  const ones: Record<string, number> = { f16: 0x3c00, bf16: 0x3f80, u16: 0xffff };
  const truth = e.temp('i32');
  code
    .set(truth)
    .i32(ones[result.name] ?? -1)
    .i32(0)
    .get(truth)
    .op('select');
}

export function selectByPredicate(e: Emitter): void {
  const type = e.type();
  e.argCount(4);
  e.push(e.arg(1), type);
  e.push(e.arg(2), type);
  e.push(e.arg(3), PRED);
  e.code.op('select');
  e.popNarrow(e.arg(0), type);
}

/** slct: a if c >= 0, else b. -0.0 counts as >= 0, NaN does not. */
export function selectBySign(e: Emitter): void {
  const { code } = e;
  const [type, control] = e.types();
  if (!type || !control) throw e.semantic("'slct' needs two types");
  e.argCount(4);
  e.push(e.arg(1), type);
  e.push(e.arg(2), type);
  e.push(e.arg(3), control);
  if (control.wasm === 'f32') {
    if (e.has('ftz')) flush(e);
    code.f32(0).op('f32.ge');
  } else {
    code.i32(0).op('i32.ge_s');
  }
  code.op('select');
  e.popNarrow(e.arg(0), type);
}

/** testp: tests the kind of a number. */
export function testProperty(e: Emitter): void {
  const type = e.type();
  const { code } = e;
  const { wasm } = type;
  if (wasm !== 'f32' && wasm !== 'f64') throw e.semantic("'testp' needs .f32 or .f64");
  const property = e.oneOf('finite', 'infinite', 'number', 'notanumber', 'normal', 'subnormal');
  const value = e.temp(wasm);
  const push = (number: number): unknown => (wasm === 'f32' ? code.f32(number) : code.f64(number));
  const least = wasm === 'f32' ? 2 ** -126 : 2 ** -1022;
  e.push(e.arg(1), type);
  code.op(`${wasm}.abs`).set(value).get(value);
  switch (property) {
    case 'finite':
      push(Infinity);
      code.op(`${wasm}.lt`);
      break;
    case 'infinite':
      push(Infinity);
      code.op(`${wasm}.eq`);
      break;
    case 'number':
      code.get(value).op(`${wasm}.eq`);
      break;
    case 'notanumber':
      code.get(value).op(`${wasm}.ne`);
      break;
    case 'normal':
      // Zeros count as normal.
      push(least);
      code.op(`${wasm}.ge`).get(value);
      push(Infinity);
      code.op(`${wasm}.lt`).op('i32.and').get(value);
      push(0);
      code.op(`${wasm}.eq`).op('i32.or');
      break;
    case 'subnormal':
      push(least);
      code.op(`${wasm}.lt`).get(value);
      push(0);
      code.op(`${wasm}.gt`).op('i32.and');
      break;
    default:
      throw e.semantic("'testp' needs a property");
  }
  e.pop(e.arg(0), PRED);
}
