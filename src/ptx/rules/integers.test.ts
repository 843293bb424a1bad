/** Instructions on integers and bits, against references in BigInt. */
import { describe, it } from 'vitest';
import { as, check, s, seeds, u, width } from './evaluate.test-support.js';
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
