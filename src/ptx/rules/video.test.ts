// Video instructions against the ISA's description in BigInt.

import { describe, it } from 'vitest';
import { check, s, u } from './evaluate.test-support.js';
import { scaledRows } from '../../../test/random-runs.js';

type Sign = 'u' | 's';
const SIGNS: Sign[] = ['u', 's'];
/** The signs of a result and of its two operands. */
const SIGNS_OF_THREE = SIGNS.flatMap((to) =>
  SIGNS.flatMap((ta) => SIGNS.map((tb) => [to, ta, tb] as const)),
);
const clamp = (x: bigint, least: bigint, most: bigint): bigint =>
  x < least ? least : x > most ? most : x;
const range = (sign: Sign, bits: number): [bigint, bigint] =>
  sign === 's'
    ? [-(1n << BigInt(bits - 1)), (1n << BigInt(bits - 1)) - 1n]
    : [0n, (1n << BigInt(bits)) - 1n];
const extend = (sign: Sign, bits: number, x: bigint): bigint =>
  sign === 's' ? s(bits, x) : u(bits, x);

/** Those with an unsigned result. */
const SIGNS_OF_TWO = SIGNS_OF_THREE.filter(([to]) => to === 'u');

/** The part of a register for a selector. */
function part(x: bigint, selector: string, sign: Sign): bigint {
  if (!selector) return extend(sign, 32, x);
  const bits = selector.startsWith('b') ? 8 : 16;
  return extend(sign, bits, x >> BigInt(bits * Number(selector[1])));
}
function merge(x: bigint, selector: string, c: bigint): bigint {
  const bits = selector.startsWith('b') ? 8 : 16;
  const at = BigInt(bits * Number(selector[1]));
  const mask = ((1n << BigInt(bits)) - 1n) << at;
  return (c & ~mask) | ((x << at) & mask);
}
const dot = (selector: string): string => selector && `.${selector}`;

const OPERATIONS: Record<string, (a: bigint, b: bigint) => bigint> = {
  vadd: (a, b) => a + b,
  vsub: (a, b) => a - b,
  vabsdiff: (a, b) => (a > b ? a - b : b - a),
  vmin: (a, b) => (a < b ? a : b),
  vmax: (a, b) => (a > b ? a : b),
};
const COMPARE: Record<string, (a: bigint, b: bigint) => boolean> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};

describe('scalar video instructions', () => {
  const each = (body: (to: Sign, ta: Sign, tb: Sign) => void): void => {
    for (const [to, ta, tb] of scaledRows(SIGNS_OF_THREE, 3)) body(to, ta, tb);
  };
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    it(`${name}: selectors, saturation, a second operation, merging`, { tags: 'random' }, () => {
      each((to, ta, tb) => {
        const types = `${to}32.${ta}32.${tb}32`;
        for (const [asel, bsel] of [
          ['', ''],
          ['b0', 'b3'],
          ['h1', 'b1'],
          ['b2', 'h0'],
        ] as const) {
          const value = (a: bigint, b: bigint): bigint =>
            operation(part(a, asel, ta), part(b, bsel, tb));
          const operands = `%a${dot(asel)}, %b${dot(bsel)}`;
          check(`${name}.${types} %r, ${operands};`, [32, 32], 32, value);
          check(`${name}.${types}.sat %r, ${operands};`, [32, 32], 32, (a, b) =>
            clamp(value(a, b), ...range(to, 32)),
          );
          check(
            `${name}.${types}.sat.add %r, ${operands}, %c;`,
            [32, 32, 32],
            32,
            (a, b, c) => clamp(value(a, b), ...range(to, 32)) + c,
          );
          check(`${name}.${types}.sat.min %r, ${operands}, %c;`, [32, 32, 32], 32, (a, b, c) => {
            const [x, y] = [clamp(value(a, b), ...range(to, 32)), extend(to, 32, c)];
            return x < y ? x : y;
          });
          check(`${name}.${types}.max %r, ${operands}, %c;`, [32, 32, 32], 32, (a, b, c) => {
            const [x, y] = [extend(to, 32, value(a, b)), extend(to, 32, c)];
            return x > y ? x : y;
          });
          for (const dsel of ['b1', 'h1']) {
            check(`${name}.${types} %r.${dsel}, ${operands}, %c;`, [32, 32, 32], 32, (a, b, c) =>
              merge(value(a, b), dsel, c),
            );
            check(
              `${name}.${types}.sat %r.${dsel}, ${operands}, %c;`,
              [32, 32, 32],
              32,
              (a, b, c) =>
                merge(clamp(value(a, b), ...range(to, dsel.startsWith('b') ? 8 : 16)), dsel, c),
            );
          }
        }
      });
    });
  }
  it('vshl and vshr clamp or wrap the amount', { tags: 'random' }, () => {
    for (const to of SIGNS) {
      for (const ta of SIGNS) {
        for (const mode of ['clamp', 'wrap']) {
          const amount = (b: bigint): bigint => (mode === 'wrap' ? b & 31n : b > 32n ? 32n : b);
          const left = (a: bigint, b: bigint): bigint => extend(ta, 32, a) << amount(b);
          const right = (a: bigint, b: bigint): bigint => extend(ta, 32, a) >> amount(b);
          check(`vshl.${to}32.${ta}32.u32.${mode} %r, %a, %b;`, [32, 32], 32, left);
          check(`vshr.${to}32.${ta}32.u32.${mode} %r, %a, %b;`, [32, 32], 32, right);
          check(`vshl.${to}32.${ta}32.u32.sat.${mode} %r, %a, %b;`, [32, 32], 32, (a, b) =>
            clamp(left(a, b), ...range(to, 32)),
          );
          check(
            `vshr.${to}32.${ta}32.u32.sat.${mode}.add %r, %a.h1, %b.b0, %c;`,
            [32, 32, 32],
            32,
            (a, b, c) => clamp(part(a, 'h1', ta) >> amount(b & 255n), ...range(to, 32)) + c,
          );
        }
      }
    }
  });
  it('vset', { tags: 'random' }, () => {
    for (const ta of SIGNS) {
      for (const tb of SIGNS) {
        for (const [name, test] of Object.entries(COMPARE)) {
          const truth = (a: bigint, b: bigint): bigint =>
            test(part(a, 'b1', ta), part(b, '', tb)) ? 1n : 0n;
          check(`vset.${ta}32.${tb}32.${name} %r, %a.b1, %b;`, [32, 32], 32, truth);
          check(
            `vset.${ta}32.${tb}32.${name}.add %r, %a.b1, %b, %c;`,
            [32, 32, 32],
            32,
            (a, b, c) => truth(a, b) + c,
          );
          check(
            `vset.${ta}32.${tb}32.${name}.max %r, %a.b1, %b, %c;`,
            [32, 32, 32],
            32,
            (a, b, c) => (truth(a, b) > c ? truth(a, b) : c),
          );
          check(`vset.${ta}32.${tb}32.${name} %r.b2, %a.b1, %b, %c;`, [32, 32, 32], 32, (a, b, c) =>
            merge(truth(a, b), 'b2', c),
          );
        }
      }
    }
  });
  it('vmad: negation, plus one, scaling, saturation', { tags: 'random' }, () => {
    each((to, ta, tb) => {
      for (const [minusA, minusB, minusC, plus] of [
        ['', '', '', ''],
        ['-', '', '', ''],
        ['', '-', '', ''],
        ['', '', '-', ''],
        ['', '', '', '.po'],
      ] as const) {
        for (const scale of ['', '.shr7', '.shr15']) {
          for (const sat of ['', '.sat']) {
            for (const [asel, bsel] of [
              ['', ''],
              ['h1', 'b2'],
            ] as const) {
              check(
                `vmad.${to}32.${ta}32.${tb}32${plus}${sat}${scale} %r, ` +
                  `${minusA}%a${dot(asel)}, ${minusB}%b${dot(bsel)}, ${minusC}%c;`,
                [32, 32, 32],
                32,
                (a, b, c) => {
                  const negates = minusA !== minusB;
                  const signed = ta === 's' || tb === 's' || negates || minusC !== '';
                  let sum = part(a, asel, ta) * part(b, bsel, tb);
                  let added = c;
                  if (plus) sum += 1n;
                  else if (negates) sum = -sum;
                  else if (minusC) added = u(32, ~c);
                  sum += signed ? s(32, added) : added;
                  if (!plus && !negates && minusC) sum += 1n;
                  let result = u(64, sum >> BigInt(scale.slice(4) || 0));
                  if (sat)
                    result = signed
                      ? clamp(s(64, result), ...range('s', 32))
                      : clamp(result, ...range('u', 32));
                  return result;
                },
              );
            }
          }
        }
      }
    });
  });
});

describe('packed video instructions', () => {
  const sets: Record<2 | 4, { mask: string; a: string; b: string }[]> = {
    2: [
      { mask: '', a: '', b: '' },
      { mask: 'h1', a: 'h02', b: 'h31' },
      { mask: 'h0', a: 'h33', b: 'h10' },
      { mask: 'h10', a: 'h21', b: 'h00' },
    ],
    4: [
      { mask: '', a: '', b: '' },
      { mask: 'b210', a: 'b7250', b: 'b0123' },
      { mask: 'b3', a: 'b4567', b: 'b3333' },
      { mask: 'b31', a: 'b1111', b: 'b7654' },
    ],
  };
  for (const lanes of [2, 4] as const) {
    const bits = 32 / lanes;
    const lane = (
      a: bigint,
      b: bigint,
      selector: string,
      fallback: number,
      index: number,
    ): bigint => {
      const from = selector ? Number(selector.slice(1)[lanes - 1 - index]) : fallback + index;
      return u(bits, ((b << 32n) | a) >> BigInt(bits * from));
    };
    const written = (mask: string, index: number): boolean =>
      mask === '' || mask.slice(1).includes(String(index));
    const all: Record<string, (a: bigint, b: bigint) => bigint> = {
      ...OPERATIONS,
      vavrg: (a, b) => (a + b + (a + b >= 0n ? 1n : 0n)) >> 1n,
      ...Object.fromEntries(
        Object.entries(COMPARE).map(([name, test]) => [
          `vset.${name}`,
          (a: bigint, b: bigint) => (test(a, b) ? 1n : 0n),
        ]),
      ),
    };
    for (const [full, operation] of Object.entries(all)) {
      it(`${full}, ${lanes} lanes`, { tags: 'random' }, () => {
        const [name, comparison] = full.split('.');
        for (const [to, ta, tb] of scaledRows(comparison ? SIGNS_OF_TWO : SIGNS_OF_THREE, 3)) {
          for (const { mask, a: asel, b: bsel } of scaledRows(sets[lanes], 2)) {
            const head = comparison
              ? `${name}${lanes}.${ta}32.${tb}32.${comparison}`
              : `${name}${lanes}.${to}32.${ta}32.${tb}32`;
            const operands = `%r${dot(mask)}, %a${dot(asel)}, %b${dot(bsel)}, %c;`;
            const value = (a: bigint, b: bigint, index: number): bigint =>
              operation(
                extend(ta, bits, lane(a, b, asel, 0, index)),
                extend(tb, bits, lane(a, b, bsel, lanes, index)),
              );
            const each = (a: bigint, b: bigint, c: bigint, saturates: boolean): bigint => {
              let d = 0n;
              for (let index = 0; index < lanes; index++) {
                const x = value(a, b, index);
                const kept = written(mask, index)
                  ? u(bits, saturates ? clamp(x, ...range(to, bits)) : x)
                  : u(bits, c >> BigInt(bits * index));
                d |= kept << BigInt(bits * index);
              }
              return d;
            };
            check(`${head} ${operands}`, [32, 32, 32], 32, (a, b, c) => each(a, b, c, false));
            if (!comparison)
              check(`${head}.sat ${operands}`, [32, 32, 32], 32, (a, b, c) => each(a, b, c, true));
            check(`${head}.add ${operands}`, [32, 32, 32], 32, (a, b, c) => {
              for (let index = 0; index < lanes; index++)
                if (written(mask, index)) c += value(a, b, index);
              return c;
            });
          }
        }
      });
    }
  }
});
