// The packed video instructions on two halves or four bytes: vadd4, vabsdiff4, vset2 and their family.

import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { RuleRow } from './rule.js';

const B32 = scalarType('b32');
const COMPARISONS = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const;

/** Emits one lane's result from two i32 locals. */
type LaneOperation = (e: Emitter, a: number, b: number) => void;

const pick = (comparison: 'lt_s' | 'gt_s'): LaneOperation => (e, a, b) => {
  e.code.get(a).get(b).get(a).get(b).op(`i32.${comparison}`).op('select');
};

const OPERATIONS: Record<string, LaneOperation> = {
  vadd: (e, a, b) => { e.code.get(a).get(b).op('i32.add'); },
  vsub: (e, a, b) => { e.code.get(a).get(b).op('i32.sub'); },
  vabsdiff: (e, a, b) => {
    e.code.get(a).get(b).op('i32.sub').get(b).get(a).op('i32.sub').get(a).get(b).op('i32.gt_s').op('select');
  },
  vmin: pick('lt_s'),
  vmax: pick('gt_s'),
  // Averages round away from zero: (a + b + (sum >= 0)) >> 1
  vavrg: (e, a, b) => {
    const sum = e.temp('i32');
    e.code.get(a).get(b).op('i32.add').tee(sum).get(sum).i32(0).op('i32.ge_s').op('i32.add').i32(1).op('i32.shr_s');
  },
  vset: (e, a, b) => {
    const comparison = e.oneOf(...COMPARISONS);
    if (!comparison) throw e.semantic("'vset' needs a comparison");
    e.code.get(a).get(b).op(`i32.${comparison}${comparison === 'eq' || comparison === 'ne' ? '' : '_s'}`);
  },
};

const packed = (operation: LaneOperation, lanes: 2 | 4) => (e: Emitter): void => {
  const { code } = e;
  e.allow('sat', 'add', ...COMPARISONS);
  const [result, typeA, typeB = typeA] = e.inst.mnemonic.startsWith('vset') ? [scalarType('u32'), ...e.types()] : e.types();
  if (!result || !typeA || !typeB) throw e.semantic(`'${e.inst.mnemonic}' needs types`);
  e.argCount(3, 4);
  const bits = 32 / lanes;
  const wholes = [1, 2].map(index => {
    const local = e.temp('i32');
    e.push(e.arg(index), B32);
    code.set(local);
    return local;
  });
  const [a, b] = [e.temp('i32'), e.temp('i32')];
  const accumulates = e.has('add');
  if (e.inst.args[3] && accumulates) e.push(e.arg(3), B32);
  else code.i32(0);
  for (let lane = 0; lane < lanes; lane++) {
    [a, b].forEach((local, index) => {
      const signed = (index ? typeB : typeA).kind === 'signed';
      code.get(wholes[index]!).i32(32 - bits * (lane + 1)).op('i32.shl').i32(32 - bits).op(signed ? 'i32.shr_s' : 'i32.shr_u').set(local);
    });
    operation(e, a, b);
    if (accumulates) {
      code.op('i32.add');
      continue;
    }
    if (e.has('sat')) {
      const signed = result.kind === 'signed';
      const least = signed ? -(2 ** (bits - 1)) : 0;
      const most = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
      const value = e.temp('i32');
      code.set(value).get(value).i32(least).get(value).i32(least).op('i32.gt_s').op('select').set(value);
      code.get(value).i32(most).get(value).i32(most).op('i32.lt_s').op('select');
    }
    code.i32(bits === 8 ? 0xff : 0xffff).op('i32.and').i32(bits * lane).op('i32.shl').op('i32.or');
  }
  e.pop(e.arg(0), B32);
};

export const PACKED_RULES: readonly RuleRow[] = Object.entries(OPERATIONS).flatMap(([name, operation]): RuleRow[] =>
  [[`${name}2`, packed(operation, 2)], [`${name}4`, packed(operation, 4)]]);
