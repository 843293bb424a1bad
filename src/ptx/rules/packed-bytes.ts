// The packed video instructions on two halves or four bytes: vadd4, vabsdiff4, vset2 and their
// family.

import type { Arg } from '../analysis/program.js';
import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import { opcodeNamed } from '../wasm/opcodes.js';

const B32 = scalarType('b32');
const COMPARISONS = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const;

/** Emits one lane's result from two i32 locals. */
type LaneOperation = (e: Emitter, a: number, b: number) => void;

const pick =
  (comparison: 'lt_s' | 'gt_s'): LaneOperation =>
  (e, a, b) => {
    e.code.get(a).get(b).get(a).get(b).op(`i32.${comparison}`).op('select');
  };

export const OPERATIONS = {
  vadd: (e, a, b) => {
    e.code.get(a).get(b).op('i32.add');
  },
  vsub: (e, a, b) => {
    e.code.get(a).get(b).op('i32.sub');
  },
  vabsdiff: (e, a, b) => {
    e.code
      .get(a)
      .get(b)
      .op('i32.sub')
      .get(b)
      .get(a)
      .op('i32.sub')
      .get(a)
      .get(b)
      .op('i32.gt_s')
      .op('select');
  },
  vmin: pick('lt_s'),
  vmax: pick('gt_s'),
  // Averages round away from zero: (a + b + (sum >= 0)) >> 1
  vavrg: (e, a, b) => {
    const sum = e.temp('i32');
    e.code
      .get(a)
      .get(b)
      .op('i32.add')
      .tee(sum)
      .get(sum)
      .i32(0)
      .op('i32.ge_s')
      .op('i32.add')
      .i32(1)
      .op('i32.shr_s');
  },
  vset: (e, a, b) => {
    const comparison = e.oneOf(...COMPARISONS);
    if (!comparison) throw e.semantic("'vset' needs a comparison");
    e.code
      .get(a)
      .get(b)
      .op(
        opcodeNamed(`i32.${comparison}${comparison === 'eq' || comparison === 'ne' ? '' : '_s'}`),
      );
  },
} satisfies Record<string, LaneOperation>;

/** The lanes of a selector such as `b3210` or `h02`, lowest first. */
function lanesIn(
  e: Emitter,
  arg: Arg,
  letter: 'b' | 'h',
  standard: readonly number[],
  limit: number,
): readonly number[] {
  if (arg.kind !== 'selected') return standard;
  const digits = [...arg.selector.slice(1)].map(Number).reverse();
  if (
    !arg.selector.startsWith(letter) ||
    !digits.length ||
    !digits.every((digit) => digit < limit)
  ) {
    throw e.semantic(
      `'.${arg.selector}' selects no ${letter === 'b' ? 'bytes' : 'halves'}`,
      arg.at,
    );
  }
  return digits;
}

export const packed =
  (operation: LaneOperation, lanes: 2 | 4, compares = false) =>
  (e: Emitter): void => {
    const { code } = e;
    const [result, typeA, typeB = typeA] = compares ? [scalarType('u32'), ...e.types()] : e.types();
    if (!result || !typeA || !typeB) throw e.semantic(`'${e.inst.mnemonic}' needs types`);
    e.argCount(3, 4);
    const bits = 32 / lanes;
    const letter = lanes === 2 ? 'h' : 'b';
    const every = Array.from({ length: lanes }, (_, lane) => lane);
    const target = e.arg(0);
    const written = lanesIn(e, target, letter, every, lanes);
    // The lanes of b have the numbers after those of a, and either operand may take from both.
    const sources = [
      lanesIn(e, e.arg(1), letter, every, 2 * lanes),
      lanesIn(
        e,
        e.arg(2),
        letter,
        every.map((lane) => lane + lanes),
        2 * lanes,
      ),
    ];
    if (sources.some((list) => list.length !== lanes))
      throw e.semantic(`'${e.inst.mnemonic}' takes ${lanes} lanes of each operand`);
    const whole = (arg: Arg): Arg => (arg.kind === 'selected' ? arg.operand : arg);
    const wholes = [1, 2].map((index) => {
      const local = e.temp('i32');
      e.push(whole(e.arg(index)), B32);
      code.set(local);
      return local;
    });
    const [a, b] = [e.temp('i32'), e.temp('i32')];
    const accumulates = e.has('add');
    // Lanes that are not written come from c; sums begin with it.
    const mask = written.reduce((sum, lane) => sum | (((1 << bits) - 1) << (bits * lane)), 0);
    if (accumulates || (e.inst.args.length === 4 && mask !== -1)) {
      e.push(e.arg(3), B32);
      if (!accumulates) code.i32(~mask).op('i32.and');
    } else {
      code.i32(0);
    }
    for (const lane of every) {
      if (!written.includes(lane)) continue;
      [a, b].forEach((local, index) => {
        const signed = (index ? typeB : typeA).kind === 'signed';
        const from = sources[index]![lane]!;
        code
          .get(wholes[from < lanes ? 0 : 1]!)
          .i32(32 - bits * ((from % lanes) + 1))
          .op('i32.shl');
        code
          .i32(32 - bits)
          .op(signed ? 'i32.shr_s' : 'i32.shr_u')
          .set(local);
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
        code
          .set(value)
          .get(value)
          .i32(least)
          .get(value)
          .i32(least)
          .op('i32.gt_s')
          .op('select')
          .set(value);
        code.get(value).i32(most).get(value).i32(most).op('i32.lt_s').op('select');
      }
      code
        .i32(bits === 8 ? 0xff : 0xffff)
        .op('i32.and')
        .i32(bits * lane)
        .op('i32.shl')
        .op('i32.or');
    }
    e.pop(whole(target), B32);
  };
