// Every instruction family against a reference in BigInt or doubles, on edge values and random
// ones.

import { describe, expect, it } from 'vitest';
import { as, check, evaluate, everyHalf, s, seeds, u, width } from './evaluate.test-support.js';
import type { Width } from './evaluate.test-support.js';

describe('integer arithmetic', () => {
  for (const type of ['u16', 's16', 'u32', 's32', 'u64', 's64']) {
    const w = width(type);
    const two = [w, w] as const;
    const three = [w, w, w] as const;
    it(`${type}: add sub mul mad min max`, { tags: 'random' }, () => {
      check(`add.${type} %r, %a, %b;`, two, w, (a, b) => a + b);
      check(`sub.${type} %r, %a, %b;`, two, w, (a, b) => a - b);
      check(`mul.lo.${type} %r, %a, %b;`, two, w, (a, b) => a * b);
      check(
        `mul.hi.${type} %r, %a, %b;`,
        two,
        w,
        (a, b) => (as(type, a) * as(type, b)) >> BigInt(w),
      );
      check(`mad.lo.${type} %r, %a, %b, %c;`, three, w, (a, b, c) => a * b + c);
      check(
        `mad.hi.${type} %r, %a, %b, %c;`,
        three,
        w,
        (a, b, c) => ((as(type, a) * as(type, b)) >> BigInt(w)) + c,
      );
      check(`min.${type} %r, %a, %b;`, two, w, (a, b) => (as(type, a) < as(type, b) ? a : b));
      check(`max.${type} %r, %a, %b;`, two, w, (a, b) => (as(type, a) > as(type, b) ? a : b));
      check(
        `sad.${type} %r, %a, %b, %c;`,
        three,
        w,
        (a, b, c) => c + (as(type, a) > as(type, b) ? a - b : b - a),
      );
    });
    it(`${type}: div rem never trap`, { tags: 'random' }, () => {
      const truncated = (a: bigint, b: bigint): bigint =>
        as(type, b) === 0n ? -1n : as(type, a) / as(type, b);
      check(`div.${type} %r, %a, %b;`, two, w, truncated);
      check(`rem.${type} %r, %a, %b;`, two, w, (a, b) =>
        as(type, b) === 0n ? a : as(type, a) % as(type, b),
      );
      check(`div.${type} %r, %a, 7;`, [w], w, (a) => as(type, a) / 7n);
    });
    it(`${type}: shifts clamp`, { tags: 'random' }, () => {
      check(`shl.b${w} %r, %a, %b;`, [w, 32], w, (a, b) => (b >= BigInt(w) ? 0n : a << b));
      check(`shr.${type} %r, %a, %b;`, [w, 32], w, (a, b) => as(type, a) >> (b > 64n ? 64n : b));
      check(`shr.${type} %r, %a, ${w + 3};`, [w], w, (a) => as(type, a) >> BigInt(w));
    });
    if (type[0] === 's') {
      it(`${type}: abs neg`, { tags: 'random' }, () => {
        check(`abs.${type} %r, %a;`, [w], w, (a) => (s(w, a) < 0n ? -a : a));
        check(`neg.${type} %r, %a;`, [w], w, (a) => -a);
      });
    }
    if (w < 64) {
      it(`${type}: wide`, { tags: 'random' }, () => {
        const double = (w * 2) as Width;
        check(`mul.wide.${type} %r, %a, %b;`, two, double, (a, b) => as(type, a) * as(type, b));
        check(
          `mad.wide.${type} %r, %a, %b, %c;`,
          [w, w, double],
          double,
          (a, b, c) => as(type, a) * as(type, b) + c,
        );
      });
    }
  }
  it('carry chains', { tags: 'random' }, () => {
    check(
      'add.cc.u32 %a, %a, %b; addc.u32 %r, %c, 0;',
      [32, 32, 32],
      32,
      (a, b, c) => c + (a + b > 0xffffffffn ? 1n : 0n),
    );
    check(
      'sub.cc.u32 %a, %a, %b; subc.u32 %r, %c, 5;',
      [32, 32, 32],
      32,
      (a, b, c) => c - 5n - (a < b ? 1n : 0n),
    );
    check(
      'add.cc.u32 %a, %a, %b; .reg .u16 %word; cvt.u16.u32 %word, %c; addc.u16 %word, %word, ' +
        '0xfff0; cvt.u32.u16 %r, %word;',
      [32, 32, 32],
      32,
      (a, b, c) => (c + 0xfff0n + ((a + b) >> 32n)) & 0xffffn,
    );
    check(
      'sub.cc.u32 %a, %a, %b; .reg .u16 %word; cvt.u16.u32 %word, %c; subc.u16 %word, %word, ' +
        '1; cvt.u32.u16 %r, %word;',
      [32, 32, 32],
      32,
      (a, b, c) => (c - 1n - (a < b ? 1n : 0n)) & 0xffffn,
    );
    check(
      'add.cc.u64 %a, %a, %b; addc.cc.u64 %c, %c, %d; addc.u64 %r, 0, 0;',
      [64, 64, 64, 64],
      64,
      (a, b, c, d) => (c + d + ((a + b) >> 64n)) >> 64n,
    );
    check(
      'mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %r, %a, %b, 7;',
      [32, 32, 32, 32],
      32,
      (a, b, c) => ((a * b) >> 32n) + 7n + ((u(32, a * b) + c) >> 32n),
    );
    check(
      'sub.cc.u32 %a, %a, %b; addc.u32 %r, %c, 0;',
      [32, 32, 32],
      32,
      (a, b, c) => c + (a < b ? 0n : 1n),
    );
    check(
      'add.cc.u32 %a, %a, %b; subc.u32 %r, %c, 0;',
      [32, 32, 32],
      32,
      (a, b, c) => c - (a + b > 0xffffffffn ? 0n : 1n),
    );
    check(
      'sub.cc.u64 %a, %a, %b; subc.cc.u64 %c, %c, %d; addc.u64 %r, 0, 0;',
      [64, 64, 64, 64],
      64,
      (a, b, c, d) => (c - d - (a < b ? 1n : 0n) < 0n ? 0n : 1n),
    );
    check(
      'sub.cc.u64 %a, %a, %b; subc.cc.u64 %c, %c, %d; subc.u64 %r, 0, 0;',
      [64, 64, 64, 64],
      64,
      (a, b, c, d) => -(c - d - (a < b ? 1n : 0n) < 0n ? 1n : 0n),
    );
  });
  it('24-bit products, saturation, dot products', { tags: 'random' }, () => {
    check('mul24.lo.s32 %r, %a, %b;', [32, 32], 32, (a, b) => s(24, a) * s(24, b));
    check('mul24.hi.u32 %r, %a, %b;', [32, 32], 32, (a, b) => (u(24, a) * u(24, b)) >> 16n);
    check('mad24.lo.u32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) => u(24, a) * u(24, b) + c);
    const clamp = (x: bigint): bigint =>
      x > 0x7fffffffn ? 0x7fffffffn : x < -0x80000000n ? -0x80000000n : x;
    check('add.sat.s32 %r, %a, %b;', [32, 32], 32, (a, b) => clamp(s(32, a) + s(32, b)));
    check('sub.sat.s32 %r, %a, %b;', [32, 32], 32, (a, b) => clamp(s(32, a) - s(32, b)));
    const bytes = (x: bigint): bigint[] => [0n, 8n, 16n, 24n].map((at) => (x >> at) & 255n);
    check('dp4a.s32.u32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) =>
      bytes(a).reduce((sum, x, i) => sum + s(8, x) * bytes(b)[i]!, c),
    );
    check(
      'dp2a.hi.s32.s32 %r, %a, %b, %c;',
      [32, 32, 32],
      32,
      (a, b, c) => c + s(16, a) * s(8, b >> 16n) + s(16, a >> 16n) * s(8, b >> 24n),
    );
    check('vabsdiff4.u32.u32.u32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b) =>
      bytes(a).reduce((sum, x, i) => {
        const difference = x - bytes(b)[i]!;
        return sum | ((difference < 0n ? -difference : difference) << BigInt(8 * i));
      }, 0n),
    );
  });
});

describe('bits', () => {
  for (const w of [16, 32, 64] as const) {
    it(`b${w}: logic`, { tags: 'random' }, () => {
      check(`and.b${w} %r, %a, %b;`, [w, w], w, (a, b) => a & b);
      check(`or.b${w} %r, %a, %b;`, [w, w], w, (a, b) => a | b);
      check(`xor.b${w} %r, %a, %b;`, [w, w], w, (a, b) => a ^ b);
      check(`not.b${w} %r, %a;`, [w], w, (a) => ~a);
      check(`cnot.b${w} %r, %a;`, [w], w, (a) => (a === 0n ? 1n : 0n));
    });
  }
  const bitsOf = (value: bigint, w: number): string => value.toString(2).padStart(w, '0');
  for (const w of [32, 64] as const) {
    it(`b${w}: counts and fields`, { tags: 'random' }, () => {
      check(`popc.b${w} %r, %a;`, [w], 32, (a) =>
        BigInt([...bitsOf(a, w)].filter((bit) => bit === '1').length),
      );
      check(`clz.b${w} %r, %a;`, [w], 32, (a) => BigInt(`${bitsOf(a, w)}1`.indexOf('1')));
      check(`brev.b${w} %r, %a;`, [w], w, (a) =>
        BigInt(`0b${[...bitsOf(a, w)].reverse().join('')}`),
      );
      const high = (a: bigint): bigint => BigInt(a.toString(2).length) - 1n;
      check(`bfind.u${w} %r, %a;`, [w], 32, (a) => (a === 0n ? -1n : high(a)));
      check(`bfind.s${w} %r, %a;`, [w], 32, (a) => {
        const v = s(w, a) < 0n ? ~s(w, a) : a;
        return v === 0n ? -1n : high(v);
      });
      check(`bfind.shiftamt.u${w} %r, %a;`, [w], 32, (a) =>
        a === 0n ? -1n : BigInt(w - 1) - high(a),
      );
      const bits = (count: bigint): bigint => (w === 32 ? count & 255n : count);
      for (const sign of ['u', 's']) {
        check(`bfe.${sign}${w} %r, %a, %b, %c;`, [w, 32, 32], w, (a, b, c) => {
          const [pos, len] = [bits(b), bits(c)];
          const msb = BigInt(w - 1);
          const at = pos + len - 1n < msb ? pos + len - 1n : msb;
          const fill = sign === 's' && len !== 0n ? (a >> at) & 1n : 0n;
          let d = 0n;
          for (let i = 0n; i <= msb; i++)
            d |= (i < len && pos + i <= msb ? (a >> (pos + i)) & 1n : fill) << i;
          return d;
        });
      }
      check(`bfi.b${w} %r, %a, %b, %c, %d;`, [w, w, 32, 32], w, (a, b, c, d) => {
        let f = b;
        for (let i = 0n; i < bits(d) && bits(c) + i < BigInt(w); i++) {
          const at = bits(c) + i;
          f = (f & ~(1n << at)) | (((a >> i) & 1n) << at);
        }
        return f;
      });
    });
  }
  it('funnel shifts, permutes, lop3, masks', { tags: 'random' }, () => {
    const pair = (a: bigint, b: bigint): bigint => (b << 32n) | a;
    const low = (c: bigint, mode: string): bigint =>
      mode === 'wrap' ? c & 31n : c > 32n ? 32n : c;
    for (const mode of ['wrap', 'clamp']) {
      check(
        `shf.l.${mode}.b32 %r, %a, %b, %c;`,
        [32, 32, 32],
        32,
        (a, b, c) => (pair(a, b) << low(c, mode)) >> 32n,
      );
      check(
        `shf.r.${mode}.b32 %r, %a, %b, %c;`,
        [32, 32, 32],
        32,
        (a, b, c) => pair(a, b) >> low(c, mode),
      );
    }
    check('shf.l.wrap.b32 %r, %a, %a, 7;', [32], 32, (a) => (pair(a, a) << 7n) >> 32n);
    const permute = (a: bigint, b: bigint, c: bigint): bigint =>
      [0n, 1n, 2n, 3n].reduce((sum, i) => {
        const selector = (c >> (4n * i)) & 15n;
        const byte = (pair(a, b) >> (8n * (selector & 7n))) & 255n;
        return sum | ((selector & 8n ? (byte & 128n ? 255n : 0n) : byte) << (8n * i));
      }, 0n);
    check('prmt.b32 %r, %a, %b, %c;', [32, 32, 32], 32, permute);
    for (const selector of [0x5410, 0x7632, 0x3210, 0x0123, 0x8c9d, 0x4440])
      check(`prmt.b32 %r, %a, %b, ${selector};`, [32, 32], 32, (a, b) =>
        permute(a, b, BigInt(selector)),
      );
    check(
      'prmt.b32.f4e %r, %a, %b, %c;',
      [32, 32, 32],
      32,
      (a, b, c) => pair(a, b) >> (8n * (c & 3n)),
    );
    check(
      'prmt.b32.rc16 %r, %a, %b, %c;',
      [32, 32, 32],
      32,
      (a, b, c) => ((a >> (16n * (c & 1n))) & 0xffffn) * 0x10001n,
    );
    for (const table of [0x96, 0xe8, 0xca, 0x00, 0xff, 0x1b]) {
      check(`lop3.b32 %r, %a, %b, %c, ${table};`, [32, 32, 32], 32, (a, b, c) => {
        let d = 0n;
        for (let i = 0n; i < 32n; i++) {
          const row = (((a >> i) & 1n) << 2n) | (((b >> i) & 1n) << 1n) | ((c >> i) & 1n);
          d |= ((BigInt(table) >> row) & 1n) << i;
        }
        return d;
      });
    }
    check('bmsk.clamp.b32 %r, %a, %b;', [32, 32], 32, (a, b) =>
      a >= 32n || b === 0n ? 0n : ((1n << (b > 32n ? 32n : b)) - 1n) << a,
    );
  });
});

describe('integer conversions', () => {
  const types = ['u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64'];
  for (const from of types) {
    it(`from ${from}`, { tags: 'random' }, () => {
      const source = Math.max(16, Number(from.slice(1))) as Width;
      for (const to of types) {
        const target = Math.max(16, Number(to.slice(1))) as Width;
        check(`cvt.${to}.${from} %r, %a;`, [source], target, (a) => as(to, as(from, a)));
        const bits = BigInt(to.slice(1));
        const [least, most] =
          to[0] === 's'
            ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
            : [0n, (1n << bits) - 1n];
        const [low, high] =
          from[0] === 's'
            ? [-(1n << (BigInt(from.slice(1)) - 1n)), (1n << (BigInt(from.slice(1)) - 1n)) - 1n]
            : [0n, (1n << BigInt(from.slice(1))) - 1n];
        // .sat is rejected if nothing can be clamped.
        if (low >= least && high <= most) continue;
        check(`cvt.sat.${to}.${from} %r, %a;`, [source], target, (a) => {
          const v = as(from, a);
          return v < least ? least : v > most ? most : v;
        });
      }
    });
  }
});

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

describe('bits and integers of newer targets', () => {
  it('szext and fns', { tags: 'random' }, () => {
    for (const mode of ['clamp', 'wrap']) {
      const amount = (b: bigint): bigint => (mode === 'wrap' ? b & 31n : b > 32n ? 32n : b);
      check(`szext.${mode}.u32 %r, %a, %b;`, [32, 32], 32, (a, b) => u(Number(amount(b)), a));
      check(`szext.${mode}.s32 %r, %a, %b;`, [32, 32], 32, (a, b) => s(Number(amount(b)), a));
    }
    const nth = (mask: bigint, base: bigint, offset: bigint): bigint => {
      const set = (at: bigint): boolean => at >= 0n && at < 32n && ((mask >> at) & 1n) === 1n;
      if (offset === 0n) return set(base) ? base : -1n;
      let count = offset < 0n ? -offset : offset;
      for (let at = base; at >= 0n && at < 32n; at += offset < 0n ? -1n : 1n)
        if (set(at) && --count === 0n) return at;
      return -1n;
    };
    const sets = Array.from({ length: 2048 }, () => [
      u(32, seeds() & seeds()),
      seeds() % 32n,
      u(32, (seeds() % 21n) - 10n),
    ]);
    check('fns.b32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) => nth(a, b, s(32, c)), sets);
  });
  it('lop3 with a predicate', { tags: 'random' }, () => {
    for (const [operation, combine] of [
      ['or', (x: boolean, y: boolean) => x || y],
      ['and', (x: boolean, y: boolean) => x && y],
    ] as const) {
      const sets = Array.from({ length: 512 }, (_, index) => [
        u(32, seeds()),
        index % 2 ? 0n : u(32, seeds()),
        BigInt(index % 4 < 2),
      ]);
      check(
        (
          `setp.ne.u32 %pr, %c, 0; lop3.${operation}.b32 %t1|%pq, %a, %b, %b, 0xc0, %pr; ` +
          'selp.u32 %r, 1, 0, %pq;'
        ).replace(/^/, '.reg .b32 %t1; '),
        [32, 32, 32],
        32,
        (a, b, c) => (combine((a & b) !== 0n, c !== 0n) ? 1n : 0n),
        sets,
      );
      check(
        `.reg .b32 %t1; setp.ne.u32 %pr, %c, 0; lop3.${operation}.b32 %r|%pq, %a, %b, %c, ` +
          '0x96, %pr;',
        [32, 32, 32],
        32,
        (a, b, c) => a ^ b ^ c,
        sets,
      );
    }
  });
  it('mad24 with saturation, min and max with .relu, packed halves', { tags: 'random' }, () => {
    const clamp = (x: bigint): bigint =>
      x > 0x7fffffffn ? 0x7fffffffn : x < -0x80000000n ? -0x80000000n : x;
    check('mad24.hi.sat.s32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) =>
      clamp(s(32, (s(24, a) * s(24, b)) >> 16n) + s(32, c)),
    );
    check(
      'mad24.hi.u32 %r, %a, %b, %c;',
      [32, 32, 32],
      32,
      (a, b, c) => ((u(24, a) * u(24, b)) >> 16n) + c,
    );
    check('mad.hi.sat.s32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) =>
      clamp(((s(32, a) * s(32, b)) >> 32n) + s(32, c)),
    );
    const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
    const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
    const halves = (
      a: bigint,
      b: bigint,
      sign: string,
      operation: (x: bigint, y: bigint) => bigint,
    ): bigint =>
      [0n, 16n].reduce(
        (sum, shift) =>
          sum |
          (u(16, operation(as(`${sign}16`, a >> shift), as(`${sign}16`, b >> shift))) << shift),
        0n,
      );
    check('max.relu.s32 %r, %a, %b;', [32, 32], 32, (a, b) =>
      larger(larger(s(32, a), s(32, b)), 0n),
    );
    check('min.relu.s32 %r, %a, %b;', [32, 32], 32, (a, b) =>
      larger(smaller(s(32, a), s(32, b)), 0n),
    );
    check('max.relu.s16x2 %r, %a, %b;', [32, 32], 32, (a, b) =>
      halves(a, b, 's', (x, y) => larger(larger(x, y), 0n)),
    );
    for (const sign of ['s', 'u']) {
      check(`add.${sign}16x2 %r, %a, %b;`, [32, 32], 32, (a, b) =>
        halves(a, b, sign, (x, y) => x + y),
      );
      check(`min.${sign}16x2 %r, %a, %b;`, [32, 32], 32, (a, b) => halves(a, b, sign, smaller));
      check(`max.${sign}16x2 %r, %a, %b;`, [32, 32], 32, (a, b) => halves(a, b, sign, larger));
    }
  });
  it('setp and set combine with a predicate, and set gives every type', { tags: 'random' }, () => {
    for (const [name, combine] of [
      ['and', (x: boolean, y: boolean) => x && y],
      ['or', (x: boolean, y: boolean) => x || y],
      ['xor', (x: boolean, y: boolean) => x !== y],
    ] as const) {
      check(
        `setp.ne.u32 %pq, %c, 0; setp.${name}.lt.s32 %pr, %a, %b, !%pq; selp.u32 %r, 1, 0, %pr;`,
        [32, 32, 32],
        32,
        (a, b, c) => (combine(s(32, a) < s(32, b), c === 0n) ? 1n : 0n),
      );
      check(
        `setp.ne.u32 %pq, %c, 0; setp.hs.${name}.u64 %pr|%pq, %d, %d, %pq; selp.u32 %r, 1, 0, %pq;`,
        [32, 32, 32, 64],
        32,
        (_, __, c) => (combine(false, c !== 0n) ? 1n : 0n),
      );
      check(
        `setp.ne.u32 %pq, %c, 0; set.ge.${name}.u32.s16 %r, %a, %b, %pq;`,
        [16, 16, 32],
        32,
        (a, b, c) => (combine(s(16, a) >= s(16, b), c !== 0n) ? -1n : 0n),
      );
    }
    for (const [type, truth] of [
      ['s32', -1n],
      ['f32', 0x3f800000n],
    ] as const)
      check(`set.lo.${type}.u64 %r, %a, %b;`, [64, 64], 32, (a, b) => (a < b ? truth : 0n));
    for (const [type, truth] of [
      ['f16', 0x3c00n],
      ['bf16', 0x3f80n],
    ] as const)
      check(`set.ne.${type}.b32 %r, %a, %b;`, [32, 32], 16, (a, b) => (a !== b ? truth : 0n));
  });
  it('slct by integers and floats, selp of every width', { tags: 'random' }, () => {
    check('slct.u64.s32 %r, %a, %b, %c;', [64, 64, 32], 64, (a, b, c) => (s(32, c) >= 0n ? a : b));
    check('slct.ftz.s16.f32 %r, %a, %b, %c;', [16, 16, 32], 16, (a, b, c) =>
      (u(32, c) & 0x7fffffffn) <= 0x7f800000n && (c >> 31n === 0n || (c & 0x7fffffffn) < 0x800000n)
        ? a
        : b,
    );
    check('setp.eq.u32 %pr, %c, 0; selp.b16 %r, %a, %b, %pr;', [16, 16, 32], 16, (a, b, c) =>
      c === 0n ? a : b,
    );
    check('setp.eq.u32 %pr, %c, 0; selp.f64 %r, %a, %b, %pr;', [64, 64, 32], 64, (a, b, c) =>
      c === 0n ? a : b,
    );
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
