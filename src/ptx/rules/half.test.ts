// f16 and bf16: every half as an operand with random and edge ones, against exact arithmetic on
// their values.

import { describe, expect, it } from 'vitest';
import { check, evaluate, everyHalf, seeds, u } from './evaluate.test-support.js';
import { scale } from '../../../test/random-runs.js';

interface Half {
  name: 'f16' | 'bf16';
  mantissa: number;
  bias: number;
  infinity: number;
  one: number;
}
const HALVES: readonly Half[] = [
  { name: 'f16', mantissa: 10, bias: 15, infinity: 0x7c00, one: 0x3c00 },
  { name: 'bf16', mantissa: 7, bias: 127, infinity: 0x7f80, one: 0x3f80 },
];

const isNegative = (x: number): boolean => x < 0 || Object.is(x, -0);

function valueOf(h: Half, bits: bigint): number {
  const code = Number(bits & 0x7fffn);
  const sign = bits & 0x8000n ? -1 : 1;
  if (code > h.infinity) return NaN;
  if (code === h.infinity) return sign * Infinity;
  const e = code >> h.mantissa;
  const m = code & (2 ** h.mantissa - 1);
  return (
    sign *
    (e === 0
      ? m * 2 ** (1 - h.bias - h.mantissa)
      : (2 ** h.mantissa + m) * 2 ** (e - h.bias - h.mantissa))
  );
}

/** An exact number as integer * 2^exponent. */
interface Exact {
  n: bigint;
  e: number;
}
function exact(x: number): Exact {
  let e = 0;
  if (x === 0) return { n: 0n, e };
  while (!Number.isInteger(x)) {
    x *= 2;
    e--;
  }
  return { n: BigInt(x), e };
}
const times = (a: Exact, b: Exact): Exact => ({ n: a.n * b.n, e: a.e + b.e });
function plus(a: Exact, b: Exact): Exact {
  const e = Math.min(a.e, b.e);
  return { n: (a.n << BigInt(a.e - e)) + (b.n << BigInt(b.e - e)), e };
}

/** Rounds to nearest even; the sign of zero is given. */
function round(h: Half, x: Exact, zeroSign: boolean): bigint {
  if (x.n === 0n) return zeroSign ? 0x8000n : 0n;
  const sign = x.n < 0n ? 0x8000n : 0n;
  const n = x.n < 0n ? -x.n : x.n;
  const top = n.toString(2).length - 1 + x.e;
  const last = Math.max(top, 1 - h.bias) - h.mantissa;
  let kept: bigint;
  if (x.e >= last) {
    kept = n << BigInt(x.e - last);
  } else {
    const cut = BigInt(last - x.e);
    kept = n >> cut;
    const rest = n & ((1n << cut) - 1n);
    const middle = 1n << (cut - 1n);
    if (rest > middle || (rest === middle && kept & 1n)) kept++;
  }
  const code = (BigInt(Math.max(top, 1 - h.bias) + h.bias - 1) << BigInt(h.mantissa)) + kept;
  return sign | (code > BigInt(h.infinity) ? BigInt(h.infinity) : code);
}

/** a*b + c on halves with one rounding; undefined for NaN. */
function fused(h: Half, a: number, b: number, c: number): bigint | undefined {
  const product = a * b;
  const sum = product + c;
  if (Number.isNaN(a) || Number.isNaN(b) || Number.isNaN(c) || Number.isNaN(product))
    return undefined;
  if (![a, b, c].every(Number.isFinite)) {
    if (Number.isNaN(sum)) return undefined;
    return BigInt(h.infinity) | (sum < 0 ? 0x8000n : 0n);
  }
  return round(h, plus(times(exact(a), exact(b)), exact(c)), isNegative(product) && isNegative(c));
}

const EDGES = [
  0n,
  0x8000n,
  1n,
  0x8001n,
  0x3ffn,
  0x400n,
  0x7fn,
  0x80n,
  0x3c00n,
  0xbc00n,
  0x3f80n,
  0x7bffn,
  0xfbffn,
  0x7c00n,
  0xfc00n,
  0x7f7fn,
  0x7f80n,
  0xff80n,
  0x7fffn,
  0x7e00n,
];
const some = (): bigint =>
  seeds() % 2n ? EDGES[Number(seeds() % BigInt(EDGES.length))]! : seeds() & 0xffffn;

/** Compares halves; all NaN are equal. */
function checkHalf(
  h: Half,
  instruction: string,
  count: number,
  reference: (...operands: bigint[]) => bigint | undefined,
): void {
  const sets = everyHalf(...Array.from({ length: count - 1 }, () => some));
  const results = evaluate(
    instruction,
    sets[0]!.map(() => 16),
    16,
    sets,
  );
  results.forEach((result, index) => {
    const wanted = reference(...sets[index]!);
    const same = wanted === undefined ? Number.isNaN(valueOf(h, result)) : result === wanted;
    if (!same)
      expect.fail(
        `${instruction} of ${sets[index]!.map((bits) => bits.toString(16)).join(', ')}: ` +
          `${result.toString(16)}, not ${wanted === undefined ? 'NaN' : wanted.toString(16)}`,
      );
  });
}

for (const h of HALVES) {
  const value = (bits: bigint): number => valueOf(h, bits);
  const least = h.name === 'f16' ? 0x400n : 0x80n;
  const flushed = (bits: bigint): bigint => ((bits & 0x7fffn) < least ? bits & 0x8000n : bits);
  const add = (a: bigint, b: bigint): bigint | undefined => fused(h, value(a), 1, value(b));
  const multiply = (a: bigint, b: bigint): bigint | undefined => {
    const [x, y] = [value(a), value(b)];
    return fused(h, x, y, isNegative(x * y) ? -0 : 0);
  };
  const relu = (bits: bigint | undefined): bigint | undefined =>
    bits !== undefined && bits & 0x8000n ? 0n : bits;
  const saturate = (bits: bigint | undefined): bigint =>
    bits === undefined || bits & 0x8000n ? 0n : bits > BigInt(h.one) ? BigInt(h.one) : bits;
  describe(h.name, () => {
    it('add, sub, mul, fma', () => {
      checkHalf(h, `add.${h.name} %r, %a, %b;`, 2, add);
      checkHalf(h, `sub.rn.${h.name} %r, %a, %b;`, 2, (a, b) => add(a, b ^ 0x8000n));
      checkHalf(h, `mul.${h.name} %r, %a, %b;`, 2, multiply);
      checkHalf(h, `fma.rn.${h.name} %r, %a, %b, %c;`, 3, (a, b, c) =>
        fused(h, value(a), value(b), value(c)),
      );
      checkHalf(h, `fma.rn.relu.${h.name} %r, %a, %b, %c;`, 3, (a, b, c) =>
        relu(fused(h, value(a), value(b), value(c))),
      );
      checkHalf(h, `fma.rn.oob.${h.name} %r, %a, %b, %c;`, 3, (a, b, c) =>
        a === 0xffffn || b === 0xffffn ? 0n : fused(h, value(a), value(b), value(c)),
      );
    });
    if (h.name === 'f16') {
      it('.ftz and .sat', () => {
        const flush = (bits: bigint | undefined): bigint | undefined =>
          bits === undefined ? undefined : flushed(bits);
        checkHalf(h, 'add.ftz.f16 %r, %a, %b;', 2, (a, b) => flush(add(flushed(a), flushed(b))));
        checkHalf(h, 'mul.ftz.sat.f16 %r, %a, %b;', 2, (a, b) => {
          // A result that 11 bits with any exponent would round to the least normal number is not
          // flushed.
          const exact = Math.abs(value(flushed(a)) * value(flushed(b)));
          return saturate(
            exact < 2 ** -14 * (1 - 2 ** -12)
              ? (a ^ b) & 0x8000n
              : multiply(flushed(a), flushed(b)),
          );
        });
        checkHalf(h, 'fma.rn.sat.f16 %r, %a, %b, %c;', 3, (a, b, c) =>
          saturate(fused(h, value(a), value(b), value(c))),
        );
        checkHalf(h, 'abs.ftz.f16 %r, %a;', 1, (a) =>
          Number.isNaN(value(a)) ? undefined : flushed(a) & 0x7fffn,
        );
      });
    }
    it('abs, neg, min, max', () => {
      checkHalf(h, `abs.${h.name} %r, %a;`, 1, (a) =>
        Number.isNaN(value(a)) ? undefined : a & 0x7fffn,
      );
      checkHalf(h, `neg.${h.name} %r, %a;`, 1, (a) =>
        Number.isNaN(value(a)) ? undefined : a ^ 0x8000n,
      );
      for (const name of ['min', 'max'] as const) {
        const pick = (a: bigint, b: bigint): bigint | undefined => {
          const [x, y] = [value(a), value(b)];
          if (Number.isNaN(x)) return Number.isNaN(y) ? undefined : b;
          if (Number.isNaN(y)) return a;
          return Object.is(Math[name](x, y), x) ? a : b;
        };
        const nan = (a: bigint, b: bigint): boolean =>
          Number.isNaN(value(a)) || Number.isNaN(value(b));
        checkHalf(h, `${name}.${h.name} %r, %a, %b;`, 2, pick);
        checkHalf(h, `${name}.NaN.${h.name} %r, %a, %b;`, 2, (a, b) =>
          nan(a, b) ? undefined : pick(a, b),
        );
        checkHalf(h, `${name}.NaN.xorsign.abs.${h.name} %r, %a, %b;`, 2, (a, b) =>
          nan(a, b) ? undefined : pick(a & 0x7fffn, b & 0x7fffn)! | ((a ^ b) & 0x8000n),
        );
      }
    });
    it('packed halves are two halves', { tags: 'random' }, () => {
      const both = (
        instruction: string,
        one: (a: bigint, b: bigint) => bigint | undefined,
      ): void => {
        const sets = everyHalf().map(([low]) => [low! | (some() << 16n), some() | (some() << 16n)]);
        evaluate(instruction, [32, 32], 32, sets).forEach((result, index) => {
          for (const shift of [0n, 16n]) {
            const [a, b] = sets[index]!.map((bits) => (bits >> shift) & 0xffffn);
            const wanted = one(a!, b!);
            const got = (result >> shift) & 0xffffn;
            if (wanted === undefined ? !Number.isNaN(value(got)) : got !== wanted)
              expect.fail(
                `${instruction} of ${a!.toString(16)}, ${b!.toString(16)}: ${got.toString(16)}`,
              );
          }
        });
      };
      both(`add.${h.name}x2 %r, %a, %b;`, add);
      both(`mul.rn.${h.name}x2 %r, %a, %b;`, multiply);
      both(`fma.rn.relu.${h.name}x2 %r, %a, %b, %b;`, (a, b) =>
        relu(fused(h, value(a), value(b), value(b))),
      );
    });
    it('ex2 and tanh are close', { tags: 'random' }, () => {
      for (const [text, reference] of [
        [h.name === 'f16' ? 'ex2.approx.f16' : 'ex2.approx.ftz.bf16', (x: number) => 2 ** x],
        [`tanh.approx.${h.name}`, Math.tanh],
      ] as const) {
        const sets = everyHalf();
        evaluate(`${text} %r, %a;`, [16], 16, sets).forEach((result, index) => {
          const wanted = reference(value(sets[index]![0]!));
          const got = value(result);
          if (Number.isNaN(wanted)) expect(got).toBeNaN();
          else if (Math.abs(wanted) > 65000 && h.name === 'f16')
            expect(got).toBeGreaterThanOrEqual(65000);
          else if (wanted === Infinity || wanted > 3.38e38) expect(got).toBeGreaterThan(3.3e38);
          // One unit in the last place of the format is allowed; subnormals may be flushed.
          else if (
            !(
              Math.abs(got - wanted) <=
              Math.max(Math.abs(wanted) * 2 ** -h.mantissa, 2 ** (1 - h.bias))
            )
          )
            expect.fail(`${text} of ${value(sets[index]![0]!)}: ${got}, not ${wanted}`);
        });
      }
    });
    it('comparisons: setp and set into every result type', { tags: 'random' }, () => {
      const nan = (a: number, b: number): boolean => Number.isNaN(a) || Number.isNaN(b);
      const tests: Record<string, (a: number, b: number) => boolean> = {
        eq: (a, b) => a === b,
        ne: (a, b) => a !== b && !nan(a, b),
        lt: (a, b) => a < b,
        le: (a, b) => a <= b,
        gt: (a, b) => a > b,
        ge: (a, b) => a >= b,
        equ: (a, b) => a === b || nan(a, b),
        neu: (a, b) => a !== b,
        ltu: (a, b) => !(a >= b),
        leu: (a, b) => !(a > b),
        gtu: (a, b) => !(a <= b),
        geu: (a, b) => !(a < b),
        num: (a, b) => !nan(a, b),
        nan,
      };
      const flush = (bits: bigint): number => value(flushed(bits));
      for (const [name, test] of Object.entries(tests)) {
        const sets = Array.from({ length: scale < 1 ? 512 : 2048 }, () => [
          some(),
          some(),
          seeds() & 1n,
        ]);
        check(
          `setp.${name}.${h.name} %pr, %a, %b; selp.u32 %r, 1, 0, %pr;`,
          [16, 16, 16],
          32,
          (a, b) => (test(value(a), value(b)) ? 1n : 0n),
          sets,
        );
        if (h.name === 'f16')
          check(
            `setp.${name}.ftz.f16 %pr, %a, %b; selp.u32 %r, 1, 0, %pr;`,
            [16, 16, 16],
            32,
            (a, b) => (test(flush(a), flush(b)) ? 1n : 0n),
            sets,
          );
        check(
          `set.${name}.u32.${h.name} %r, %a, %b;`,
          [16, 16, 16],
          32,
          (a, b) => (test(value(a), value(b)) ? 0xffffffffn : 0n),
          sets,
        );
        check(
          `set.${name}.s16.${h.name} %r, %a, %b;`,
          [16, 16, 16],
          16,
          (a, b) => (test(value(a), value(b)) ? 0xffffn : 0n),
          sets,
        );
        check(
          `setp.ne.b16 %pr, %c, 0; set.${name}.xor.${h.name}.${h.name} %r, %a, %b, %pr;`,
          [16, 16, 16],
          16,
          (a, b, c) => (test(value(a), value(b)) !== (c !== 0n) ? BigInt(h.one) : 0n),
          sets,
        );
      }
      const pairs = Array.from({ length: 2048 }, () => [
        some() | (some() << 16n),
        some() | (some() << 16n),
      ]);
      const each = (
        a: bigint,
        b: bigint,
        test: (x: number, y: number) => boolean,
        truth: bigint,
      ): bigint =>
        [0n, 16n].reduce(
          (sum, shift) =>
            sum |
            ((test(value((a >> shift) & 0xffffn), value((b >> shift) & 0xffffn)) ? truth : 0n) <<
              shift),
          0n,
        );
      check(
        `set.gtu.${h.name}x2.${h.name}x2 %r, %a, %b;`,
        [32, 32],
        32,
        (a, b) => each(a, b, tests['gtu']!, BigInt(h.one)),
        pairs,
      );
      check(
        `set.le.u32.${h.name}x2 %r, %a, %b;`,
        [32, 32],
        32,
        (a, b) => each(a, b, tests['le']!, 0xffffn),
        pairs,
      );
      check(
        `setp.lt.${h.name}x2 %pr|%pq, %a, %b; selp.u32 %r, 1, 0, %pr; @%pq or.b32 %r, %r, 65536;`,
        [32, 32],
        32,
        (a, b) => each(a, b, tests['lt']!, 1n),
        pairs,
      );
    });
    it('one operand a half, the result a single', { tags: 'random' }, () => {
      const f32 = (bits: bigint): number =>
        new Float32Array(new Uint32Array([Number(u(32, bits))]).buffer)[0]!;
      const same = (
        text: string,
        count: number,
        reference: (...operands: number[]) => number,
      ): void => {
        const sets = Array.from({ length: scale < 1 ? 1024 : 4096 }, () => [
          ...Array.from({ length: count }, some),
          u(32, seeds() % 3n ? seeds() & 0xbfffffffn : 0x3f800001n),
        ]);
        evaluate(text, [...Array.from({ length: count }, () => 16 as const), 32], 32, sets).forEach(
          (result, index) => {
            const operands = sets[index]!.map((bits, at) => (at < count ? value(bits) : f32(bits)));
            const wanted = reference(...operands);
            if (!Object.is(f32(result), wanted))
              expect.fail(`${text} of ${operands.join(', ')}: ${f32(result)}, not ${wanted}`);
          },
        );
      };
      const clamp = (x: number): number => (x > 0 ? Math.min(x, 1) : 0);
      // A sum of two singles in f64, rounded to single again, is the sum in singles.
      same(`add.f32.${h.name} %r, %a, %b;`, 1, (a, c) => Math.fround(a + c));
      same(`sub.rn.f32.${h.name} %r, %a, %b;`, 1, (a, c) => Math.fround(a - c));
      same(`add.sat.f32.${h.name} %r, %a, %b;`, 1, (a, c) => clamp(Math.fround(a + c)));
      // The product of two halves is a single, or at least a double; the sum is then as above where
      // the sum of doubles is exact.
      same(`fma.rn.f32.${h.name} %r, %a, %b, %c;`, 2, (a, b, c) => {
        const product = a * b;
        if (![product, c].every(Number.isFinite) || product + c === 0)
          return Math.fround(product + c);
        const total = plus(exact(product), exact(c));
        return roundSingle(total);
      });
    });
  });
}

/** An exact number rounded to single precision. */
function roundSingle(x: Exact): number {
  const single: Half = { name: 'bf16', mantissa: 23, bias: 127, infinity: 0x7f800000, one: 0 };
  const bits = round(single, { n: x.n < 0n ? -x.n : x.n, e: x.e }, false);
  const value = new Float32Array(new Uint32Array([Number(bits)]).buffer)[0]!;
  return x.n < 0n ? -value : value;
}
