/** Instructions on floats, against references in doubles. */
import { describe, expect, it } from 'vitest';
import { as, check, evaluate, everyHalf, s, seeds, u, width } from './evaluate.test-support.js';
import type { Width } from './evaluate.test-support.js';

const f64 = (bits: bigint): number => new Float64Array(new BigUint64Array([bits]).buffer)[0]!;
const f32 = (bits: bigint): number =>
  new Float32Array(new Uint32Array([Number(bits & 0xffffffffn)]).buffer)[0]!;
const bits64 = (value: number): bigint => new BigUint64Array(new Float64Array([value]).buffer)[0]!;
const bits32 = (value: number): bigint =>
  BigInt(new Uint32Array(new Float32Array([value]).buffer)[0]!);

const FLOAT_EDGES = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  3.7,
  1e-45,
  -1e-45,
  1.17549435e-38,
  1e-40,
  3.4028234663852886e38,
  -3.4028234663852886e38,
  Infinity,
  -Infinity,
  NaN,
  2147483648,
  -2147483649,
  4294967295,
  4294967296,
  1e20,
  -1e20,
  65504,
  65520,
  1e-8,
  127.5,
  128.5,
  0.1,
  1 / 3,
];

function floatSets(count: number, double: boolean, howMany = 500): bigint[][] {
  return Array.from({ length: howMany }, () =>
    Array.from({ length: count }, () => {
      const kind = seeds() % 4n;
      if (kind < 2n)
        return double
          ? bits64(FLOAT_EDGES[Number(seeds() % BigInt(FLOAT_EDGES.length))]!)
          : bits32(FLOAT_EDGES[Number(seeds() % BigInt(FLOAT_EDGES.length))]!);
      if (kind === 2n) return double ? seeds() : seeds() & 0xffffffffn;
      const near = (Number(seeds() % 2000000n) - 1000000) / 1024;
      return double ? bits64(near) : bits32(near);
    }),
  );
}

function checkFloat(
  instruction: string,
  types: readonly ('f32' | 'f64' | 'b32')[],
  to: 'f32' | 'f64' | 'u32' | 'u64' | 'u16',
  reference: (...operands: number[]) => number | bigint,
): void {
  const double = types.includes('f64');
  const sets = floatSets(types.length, double);
  const results = evaluate(
    instruction,
    types.map((type) => (type === 'f64' ? 64 : 32)),
    Number(to.slice(1)) as Width,
    sets,
  );
  results.forEach((result, index) => {
    const operands = sets[index]!.map((value) => (double ? f64(value) : f32(value)));
    const wanted = reference(...operands);
    const same =
      typeof wanted === 'bigint'
        ? result === u(Number(to.slice(1)), wanted)
        : Object.is(
            to === 'f64' ? f64(result) : f32(result),
            to === 'f64' ? wanted : Math.fround(wanted),
          );
    if (!same)
      expect.fail(
        `${instruction} of ${operands.join(', ')}: ` +
          `${to === 'f64' ? f64(result) : to === 'f32' ? f32(result) : result}, not ` +
          `${String(wanted)}`,
      );
  });
}

describe('floats', () => {
  it('arithmetic rounds to nearest', () => {
    for (const [t, list] of [
      ['f32', ['f32', 'f32']],
      ['f64', ['f64', 'f64']],
    ] as const) {
      checkFloat(`add.${t} %r, %a, %b;`, list, t, (a, b) => a! + b!);
      checkFloat(`sub.${t} %r, %a, %b;`, list, t, (a, b) => a! - b!);
      checkFloat(`mul.rn.${t} %r, %a, %b;`, list, t, (a, b) => a! * b!);
      checkFloat(`div.rn.${t} %r, %a, %b;`, list, t, (a, b) => a! / b!);
      checkFloat(`rcp.rn.${t} %r, %a;`, [t], t, (a) => 1 / a!);
      checkFloat(`sqrt.rn.${t} %r, %a;`, [t], t, (a) => Math.sqrt(a!));
      checkFloat(`neg.${t} %r, %a;`, [t], t, (a) => -a!);
      checkFloat(`abs.${t} %r, %a;`, [t], t, (a) => Math.abs(a!));
      // In bits: a number of JavaScript does not contain the sign of a NaN.
      const sign = t === 'f64' ? 1n << 63n : 1n << 31n;
      check(
        `copysign.${t} %r, %a, %b;`,
        [width(t), width(t)],
        width(t),
        (a, b) => (a & sign) | (b & ~sign),
        floatSets(2, t === 'f64'),
      );
      checkFloat(`min.${t} %r, %a, %b;`, list, t, (a, b) =>
        Number.isNaN(a!) ? b! : Number.isNaN(b!) ? a! : Math.min(a!, b!),
      );
      checkFloat(`max.${t} %r, %a, %b;`, list, t, (a, b) =>
        Number.isNaN(a!) ? b! : Number.isNaN(b!) ? a! : Math.max(a!, b!),
      );
    }
    checkFloat('max.NaN.f32 %r, %a, %b;', ['f32', 'f32'], 'f32', (a, b) => Math.max(a!, b!));
  });
  it('testp finds the kind of a number from its bits; zeros are normal', { tags: 'random' }, () => {
    for (const [t, exponentBits, fractionBits] of [
      ['f32', 8, 23],
      ['f64', 11, 52],
    ] as const) {
      const greatest = (1n << BigInt(exponentBits)) - 1n;
      const kinds: Record<string, (exponent: bigint, fraction: bigint) => boolean> = {
        finite: (exponent) => exponent < greatest,
        infinite: (exponent, fraction) => exponent === greatest && fraction === 0n,
        number: (exponent, fraction) => exponent < greatest || fraction === 0n,
        notanumber: (exponent, fraction) => exponent === greatest && fraction > 0n,
        normal: (exponent, fraction) => exponent < greatest && (exponent > 0n || fraction === 0n),
        subnormal: (exponent, fraction) => exponent === 0n && fraction > 0n,
      };
      for (const [kind, is] of Object.entries(kinds))
        check(
          `testp.${kind}.${t} %pr, %a; selp.u32 %r, 1, 0, %pr;`,
          [width(t)],
          32,
          (a) => {
            const exponent = (a >> BigInt(fractionBits)) & greatest;
            return is(exponent, u(fractionBits, a)) ? 1n : 0n;
          },
          floatSets(1, t === 'f64'),
        );
    }
  });
  const tiny = (x: number): number =>
    Math.abs(x) < 2 ** -126 ? (Object.is(x, -0) || x < 0 ? -0 : 0) : x;
  it('.ftz flushes operands and results, .sat clamps', () => {
    checkFloat('add.ftz.f32 %r, %a, %b;', ['f32', 'f32'], 'f32', (a, b) =>
      tiny(Math.fround(tiny(a!) + tiny(b!))),
    );
    // A result that 24 bits with any exponent would round to the least normal number is not
    // flushed.
    checkFloat('mul.ftz.f32 %r, %a, %b;', ['f32', 'f32'], 'f32', (a, b) => {
      const exact = tiny(a!) * tiny(b!);
      return Math.abs(exact) < 2 ** -126 * (1 - 2 ** -25) ? tiny(exact) : Math.fround(exact);
    });
    checkFloat('add.sat.f32 %r, %a, %b;', ['f32', 'f32'], 'f32', (a, b) => {
      const x = Math.fround(a! + b!);
      return x > 0 ? Math.min(x, 1) : 0;
    });
    checkFloat('cvt.sat.f32.f32 %r, %a;', ['f32'], 'f32', (a) => (a! > 0 ? Math.min(a!, 1) : 0));
  });
  it('approximations are correctly rounded or close', { tags: 'random' }, () => {
    // The reciprocal of a greater divisor is flushed to zero.
    checkFloat(
      'div.approx.f32 %r, %a, %b;',
      ['f32', 'f32'],
      'f32',
      (a, b) => a! / (Math.abs(b!) > 2 ** 126 ? b! * Infinity : b!),
    );
    check('rsqrt.approx.ftz.f64 %r, %a; and.b64 %r, %r, 0xffffffff;', [64], 64, () => 0n);
    checkFloat('rsqrt.approx.f32 %r, %a;', ['f32'], 'f32', (a) => 1 / Math.sqrt(a!));
    const close = (
      instruction: string,
      reference: (x: number) => number,
      absolute: number,
    ): void => {
      const sets = Array.from({ length: 500 }, (_, index) => [bits32((index - 250) / 20 + 0.01)]);
      evaluate(instruction, [32], 32, sets).forEach((result, index) => {
        const wanted = reference(f32(sets[index]![0]!));
        if (Number.isNaN(wanted)) expect(f32(result)).toBeNaN();
        else
          expect(Math.abs(f32(result) - wanted)).toBeLessThanOrEqual(
            Math.max(absolute, Math.abs(wanted) * 2 ** -23),
          );
      });
    };
    close('ex2.approx.f32 %r, %a;', (x) => 2 ** x, 0);
    close('lg2.approx.f32 %r, %a;', Math.log2, 2 ** -24);
    close('sin.approx.f32 %r, %a;', Math.sin, 2 ** -24);
    close('cos.approx.f32 %r, %a;', Math.cos, 2 ** -24);
    close('tanh.approx.f32 %r, %a;', Math.tanh, 2 ** -24);
  });
  it('converts to integers with clamping', () => {
    const even = (x: number): number => {
      const r = Math.round(x);
      return r - x === 0.5 && r % 2 !== 0 ? r - 1 : r;
    };
    const modes: [string, (x: number) => number][] = [
      ['rzi', Math.trunc],
      ['rmi', Math.floor],
      ['rpi', Math.ceil],
      ['rni', even],
    ];
    const clamp = (x: number, least: bigint, most: bigint, nan: bigint): bigint =>
      Number.isNaN(x) ? nan : x <= Number(least) ? least : x >= Number(most) ? most : BigInt(x);
    for (const [mode, round] of modes) {
      checkFloat(`cvt.${mode}.s32.f32 %r, %a;`, ['f32'], 'u32', (a) =>
        clamp(round(a!), -0x80000000n, 0x7fffffffn, 0n),
      );
      checkFloat(`cvt.${mode}.u32.f32 %r, %a;`, ['f32'], 'u32', (a) =>
        clamp(round(a!), 0n, 0xffffffffn, 0n),
      );
      checkFloat(`cvt.${mode}.s64.f32 %r, %a;`, ['f32'], 'u64', (a) =>
        clamp(round(a!), -(1n << 63n), (1n << 63n) - 1n, 1n << 63n),
      );
      checkFloat(`cvt.${mode}.s32.f64 %r, %a;`, ['f64'], 'u32', (a) =>
        clamp(round(a!), -0x80000000n, 0x7fffffffn, 0x80000000n),
      );
      checkFloat(`cvt.${mode}.u64.f64 %r, %a;`, ['f64'], 'u64', (a) =>
        clamp(round(a!), 0n, (1n << 64n) - 1n, 1n << 63n),
      );
      checkFloat(`cvt.${mode}.f32.f32 %r, %a;`, ['f32'], 'f32', round);
    }
    checkFloat('cvt.rzi.s16.f32 %r, %a;', ['f32'], 'u16', (a) =>
      clamp(Math.trunc(a!), -32768n, 32767n, 0n),
    );
    checkFloat('cvt.rn.f32.f64 %r, %a;', ['f64'], 'f32', (a) => a!);
    checkFloat('cvt.f64.f32 %r, %a;', ['f32'], 'f64', (a) => a!);
  });
  it('compares, ordered and unordered', () => {
    const ordered: Record<string, (a: number, b: number) => boolean> = {
      eq: (a, b) => a === b,
      ne: (a, b) => a < b || a > b,
      lt: (a, b) => a < b,
      le: (a, b) => a <= b,
      gt: (a, b) => a > b,
      ge: (a, b) => a >= b,
    };
    const nan = (a: number, b: number): boolean => Number.isNaN(a) || Number.isNaN(b);
    for (const [name, test] of Object.entries(ordered)) {
      checkFloat(
        `setp.${name}.f32 %pr, %a, %b; selp.u32 %r, 1, 0, %pr;`,
        ['f32', 'f32'],
        'u32',
        (a, b) => (test(a!, b!) ? 1n : 0n),
      );
      checkFloat(
        `setp.${name}u.f64 %pr, %a, %b; selp.u32 %r, 1, 0, %pr;`,
        ['f64', 'f64'],
        'u32',
        (a, b) => (test(a!, b!) || nan(a!, b!) ? 1n : 0n),
      );
      checkFloat(`set.${name}.u32.f32 %r, %a, %b;`, ['f32', 'f32'], 'u32', (a, b) =>
        test(a!, b!) ? 0xffffffffn : 0n,
      );
    }
    checkFloat(
      'setp.nan.f32 %pr, %a, %b; selp.u32 %r, 1, 0, %pr;',
      ['f32', 'f32'],
      'u32',
      (a, b) => (nan(a!, b!) ? 1n : 0n),
    );
    checkFloat(
      'setp.num.f32 %pr, %a, %b; selp.u32 %r, 1, 0, %pr;',
      ['f32', 'f32'],
      'u32',
      (a, b) => (nan(a!, b!) ? 0n : 1n),
    );
    checkFloat(
      'setp.lt.f32 %pq, %b, %a; setp.lt.and.f32 %pr|%pq, %a, %b, %pq; selp.u32 %r, 1, 0, %pq;',
      ['f32', 'f32'],
      'u32',
      (a, b) => (!(a! < b!) && b! < a! ? 1n : 0n),
    );
  });
  it('integer comparisons', { tags: 'random' }, () => {
    for (const type of ['u16', 's16', 'u32', 's32', 'u64', 's64']) {
      const w = width(type);
      const tests: Record<string, (a: bigint, b: bigint) => boolean> = {
        eq: (a, b) => a === b,
        ne: (a, b) => a !== b,
        lt: (a, b) => a < b,
        le: (a, b) => a <= b,
        gt: (a, b) => a > b,
        ge: (a, b) => a >= b,
      };
      for (const [name, test] of Object.entries(tests)) {
        check(`setp.${name}.${type} %pr, %a, %b; selp.u32 %r, 1, 0, %pr;`, [w, w], 32, (a, b) =>
          test(as(type, a), as(type, b)) ? 1n : 0n,
        );
      }
    }
    check('slct.b32.s32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) => (s(32, c) >= 0n ? a : b));
  });
});

describe('pairs of singles', () => {
  const halves = (bits: bigint): [number, number] => [f32(bits), f32(bits >> 32n)];
  const packed = (low: number, high: number): bigint => bits32(low) | (bits32(high) << 32n);
  const finite = (): bigint =>
    packed(
      (Number(seeds() % 2000001n) - 1000000) / 1024,
      (Number(seeds() % 2000001n) - 1000000) * 2 ** -140,
    );
  const setsOfThree = (): bigint[][] =>
    Array.from({ length: 1024 }, () => [finite(), finite(), finite()]);
  const tiny = (x: number): number =>
    Math.abs(x) < 2 ** -126 ? (x < 0 || Object.is(x, -0) ? -0 : 0) : x;
  it('add, sub, mul and fma, with .ftz', { tags: 'random' }, () => {
    const sets = setsOfThree();
    const both =
      (operation: (...operands: number[]) => number) =>
      (...operands: bigint[]): bigint => {
        const parts = operands.map(halves);
        return packed(
          operation(...parts.map(([low]) => low)),
          operation(...parts.map(([, high]) => high)),
        );
      };
    check(
      'add.rn.f32x2 %r, %a, %b;',
      [64, 64, 64],
      64,
      both((a, b) => a! + b!),
      sets,
    );
    check(
      'sub.f32x2 %r, %a, %b;',
      [64, 64, 64],
      64,
      both((a, b) => a! - b!),
      sets,
    );
    check(
      'mul.f32x2 %r, %a, %b;',
      [64, 64, 64],
      64,
      both((a, b) => a! * b!),
      sets,
    );
    check(
      'add.ftz.f32x2 %r, %a, %b;',
      [64, 64, 64],
      64,
      both((a, b) => tiny(Math.fround(tiny(a!) + tiny(b!)))),
      sets,
    );
    // Products of 20-bit numbers and such a sum are exact in double precision.
    check(
      'fma.rn.f32x2 %r, %a, %b, %c;',
      [64, 64, 64],
      64,
      both((a, b, c) => a! * b! + c!),
      sets.map((list) => list.map((bits) => packed(halves(bits)[0], halves(bits)[0] / 8))),
    );
  });
  it(
    'rounds in every direction, each half as the single instruction does',
    { tags: 'random' },
    () => {
      // Products slightly less than the least normal number, by differences up to the precision of
      // a single.
      const least = (): number[] => {
        const off = Number(seeds() % 4096n) * 2 ** -23;
        return [
          2 ** -63 * (1 + off),
          2 ** -63 * (1 - off) * (seeds() % 2n ? 1 : -1),
          seeds() % 2n ? 0 : 2 ** -126,
        ];
      };
      const tinySets = Array.from({ length: 1024 }, () => [least(), least()] as const).map(
        ([low, high]) => low.map((x, index) => packed(x, high[index]!)),
      );
      for (const mode of ['rz', 'rm', 'rp', 'rn.ftz', 'rm.ftz', 'rp.ftz']) {
        for (const [name, operands] of [
          ['add', '%a, %b'],
          ['mul', '%a, %b'],
          ['fma', '%a, %b, %c'],
        ] as const) {
          const all = [...setsOfThree(), ...tinySets];
          const pairs = evaluate(`${name}.${mode}.f32x2 %r, ${operands};`, [64, 64, 64], 64, all);
          for (const shift of [0n, 32n]) {
            const singles = evaluate(
              `${name}.${mode}.f32 %r, ${operands};`,
              [32, 32, 32],
              32,
              all.map((list) => list.map((bits) => u(32, bits >> shift))),
            );
            expect(pairs.map((bits) => u(32, bits >> shift))).toEqual(singles);
          }
        }
      }
    },
  );
});

describe('conversions of halves and integers', () => {
  const f16Value = (bits: bigint): number => {
    const e = Number((bits >> 10n) & 31n);
    const m = Number(bits & 1023n);
    const magnitude =
      e === 31 ? (m ? NaN : Infinity) : e === 0 ? m * 2 ** -24 : (1024 + m) * 2 ** (e - 25);
    return bits & 0x8000n ? -magnitude : magnitude;
  };
  const value = (type: string, bits: bigint): number =>
    type === 'f16' ? f16Value(bits) : f32(bits << 16n);
  const even = (x: number): number => {
    const r = Math.round(x);
    return r - x === 0.5 && r % 2 !== 0 ? r - 1 : r;
  };
  const modes: [string, (x: number) => number][] = [
    ['rni', even],
    ['rzi', Math.trunc],
    ['rmi', Math.floor],
    ['rpi', Math.ceil],
  ];
  for (const from of ['f16', 'bf16']) {
    it(`every ${from} to integers, singles and doubles`, { tags: 'random' }, () => {
      for (const [mode, round] of modes) {
        for (const to of from === 'f16'
          ? ['u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64']
          : ['u16', 's16', 'u32', 's32', 'u64', 's64']) {
          const bits = BigInt(to.slice(1));
          const [least, most] = to.startsWith('s')
            ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
            : [0n, (1n << bits) - 1n];
          const target = Math.max(16, Number(bits)) as Width;
          check(
            `cvt.${mode}.${to}.${from} %r, %a;`,
            [16],
            target,
            (a) => {
              const x = round(value(from, a));
              if (Number.isNaN(x)) return bits === 64n ? 1n << 63n : 0n;
              return x <= Number(least) ? least : x >= Number(most) ? most : BigInt(x);
            },
            everyHalf(),
          );
        }
      }
      const sets = everyHalf();
      const wrong = (
        results: bigint[],
        number: (bits: bigint) => number,
        reference: (x: number) => number,
      ): number =>
        results.findIndex(
          (bits, index) => !Object.is(number(bits), reference(value(from, sets[index]![0]!))),
        );
      expect(wrong(evaluate(`cvt.f32.${from} %r, %a;`, [16], 32, sets), f32, (x) => x)).toBe(-1);
      expect(wrong(evaluate(`cvt.f64.${from} %r, %a;`, [16], 64, sets), f64, (x) => x)).toBe(-1);
      if (from === 'bf16') {
        expect(
          wrong(evaluate('cvt.ftz.f32.bf16 %r, %a;', [16], 32, sets), f32, (x) =>
            Math.abs(x) < 2 ** -126 ? (Object.is(x, -0) || x < 0 ? -0 : 0) : x,
          ),
        ).toBe(-1);
      } else {
        check(
          'cvt.sat.f16.f16 %r, %a;',
          [16],
          16,
          (a) => {
            const x = value(from, a);
            return x > 0 ? (x >= 1 ? 0x3c00n : a) : 0n;
          },
          everyHalf(),
        );
      }
    });
  }
  it('16-bit integers to halves, in every direction', { tags: 'random' }, () => {
    for (const to of ['f16', 'bf16']) {
      const finite = Array.from({ length: to === 'f16' ? 0x7c00 : 0x7f80 }, (_, code) =>
        value(to, BigInt(code)),
      );
      const below = (x: number): number => {
        let [low, high] = [0, finite.length];
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          if (finite[middle]! <= x) low = middle;
          else high = middle;
        }
        return low;
      };
      for (const from of ['u16', 's16']) {
        for (const mode of ['rn', 'rz', 'rm', 'rp']) {
          check(
            `cvt.${mode}.${to}.${from} %r, %a;`,
            [16],
            16,
            (a) => {
              const x = Number(as(from, a));
              const magnitude = Math.abs(x);
              const code = below(magnitude);
              const rest = magnitude - finite[code]!;
              const step =
                (finite[code + 1] ?? 2 * finite[code]! - finite[code - 1]!) - finite[code]!;
              const away =
                mode === 'rn'
                  ? 2 * rest > step || (2 * rest === step && code % 2 === 1)
                  : rest > 0 && (mode === 'rp' ? x > 0 : mode === 'rm' && x < 0);
              return BigInt(code + (away ? 1 : 0)) | (x < 0 ? 0x8000n : 0n);
            },
            everyHalf(),
          );
        }
      }
    }
  });
});
