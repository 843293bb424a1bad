// Bit fields, permutes, shifts and video instructions at the edges of their operands, against the
// ISA's pseudo-code in exact integers: positions, lengths and counts far beyond the width, every
// selector, second operation and saturation.

import { describe, expect, it } from 'vitest';
import { PtxError, compilePtx } from '../index.js';
import { check, operandSets, s, seeds, u } from './evaluate.test-support.js';

const COUNTS = [
  0n,
  1n,
  7n,
  8n,
  15n,
  16n,
  30n,
  31n,
  32n,
  33n,
  63n,
  64n,
  65n,
  127n,
  128n,
  255n,
  256n,
  257n,
  288n,
  0x100n,
  0x1ffn,
  0x80000000n,
  0xffffffe0n,
  0xffffffffn,
];
const pick = <T>(list: readonly T[]): T => list[Number(seeds() % BigInt(list.length))]!;
/** Operands of which the last `counts` are positions, lengths or shift counts. */
const counted = (values: number, counts: number): bigint[][] =>
  operandSets(values, 500).map((set) => [
    ...set,
    ...Array.from({ length: counts }, () => pick(COUNTS)),
  ]);

describe('bit fields', () => {
  for (const w of [32, 64] as const) {
    // ptxas 13.5 compiles them for an H200 to instructions that take a byte for 32 bits, and to
    // shifts that take a register for 64.
    const taken =
      w === 32
        ? 'the low 8 bits of position and length count'
        : 'all bits of position and length count';
    const bits = (count: bigint): number => Number(w === 32 ? count & 0xffn : count);
    for (const signed of [false, true]) {
      it(
        `bfe.${signed ? 's' : 'u'}${w}: ${taken}, the sign fills what lies beyond the top`,
        { tags: 'random' },
        () => {
          check(
            `bfe.${signed ? 's' : 'u'}${w} %r, %a, %b, %c;`,
            [w, 32, 32],
            w,
            (a, b, c) => {
              const msb = w - 1;
              const [pos, len] = [bits(b), bits(c)];
              const bit = (index: number): bigint => (a >> BigInt(index)) & 1n;
              const sign = !signed || len === 0 ? 0n : bit(Math.min(pos + len - 1, msb));
              let d = 0n;
              for (let i = 0; i <= msb; i++)
                d |= (i < len && pos + i <= msb ? bit(pos + i) : sign) << BigInt(i);
              return d;
            },
            counted(1, 2),
          );
        },
      );
    }
    it(`bfi.b${w}: ${taken}`, { tags: 'random' }, () => {
      check(
        `bfi.b${w} %r, %a, %b, %c, %d;`,
        [w, w, 32, 32],
        w,
        (a, b, c, d) => {
          const [pos, len] = [bits(c), bits(d)];
          let f = b;
          for (let i = 0; i < len && pos + i <= w - 1; i++)
            f = (f & ~(1n << BigInt(pos + i))) | (((a >> BigInt(i)) & 1n) << BigInt(pos + i));
          return f;
        },
        counted(2, 2),
      );
    });
  }
  it('bmsk', { tags: 'random' }, () => {
    for (const mode of ['clamp', 'wrap']) {
      check(
        `bmsk.${mode}.b32 %r, %a, %b;`,
        [32, 32],
        32,
        (a, b) => {
          const start = mode === 'clamp' ? a : a & 31n;
          const length = mode === 'clamp' ? b : b & 31n;
          if (start >= 32n) return 0n;
          return u(32, ((1n << (length > 32n ? 32n : length)) - 1n) << start);
        },
        counted(0, 2),
      );
    }
  });
  it('szext', { tags: 'random' }, () => {
    for (const mode of ['clamp', 'wrap']) {
      for (const type of ['u32', 's32']) {
        check(
          `szext.${mode}.${type} %r, %a, %b;`,
          [32, 32],
          32,
          (a, b) => {
            const n = mode === 'wrap' ? b & 31n : b;
            if (n >= 32n) return a;
            return n === 0n ? 0n : type === 's32' ? s(Number(n), a) : u(Number(n), a);
          },
          counted(1, 1),
        );
      }
    }
  });
  it(
    'fns: the n-th set bit from a base, up, down, or the one at the base',
    { tags: 'random' },
    () => {
      const sets = operandSets(1, 500).map((set) => [
        ...set,
        seeds() & 31n,
        u(32, BigInt(Number(seeds() % 80n) - 40)),
      ]);
      check(
        'fns.b32 %r, %a, %b, %c;',
        [32, 32, 32],
        32,
        (mask, base, offset) => {
          const n = Number(s(32, offset));
          const start = Number(base);
          if (n === 0) return (mask >> base) & 1n ? base : 0xffffffffn;
          let count = Math.abs(n) - 1;
          for (let pos = start; pos >= 0 && pos < 32; pos += Math.sign(n)) {
            if ((mask >> BigInt(pos)) & 1n) {
              if (count === 0) return BigInt(pos);
              count--;
            }
          }
          return 0xffffffffn;
        },
        sets,
      );
    },
  );
});

describe('shifts and permutes', () => {
  for (const direction of ['l', 'r']) {
    for (const mode of ['clamp', 'wrap']) {
      it(`shf.${direction}.${mode}`, { tags: 'random' }, () => {
        check(
          `shf.${direction}.${mode}.b32 %r, %a, %b, %c;`,
          [32, 32, 32],
          32,
          (a, b, c) => {
            const n = mode === 'wrap' ? c & 31n : c > 32n ? 32n : c;
            const whole = (b << 32n) | a;
            return direction === 'l' ? u(32, (whole << n) >> 32n) : u(32, whole >> n);
          },
          counted(2, 1),
        );
      });
    }
  }
  it('prmt: every mode and selector', { tags: 'random' }, () => {
    const byte = (a: bigint, b: bigint, index: number): bigint =>
      (((b << 32n) | a) >> BigInt(8 * index)) & 0xffn;
    const rows: Record<string, (n: number) => number[]> = {
      f4e: (n) => [n, n + 1, n + 2, n + 3].map((i) => i & 7),
      b4e: (n) => [n, n - 1, n - 2, n - 3].map((i) => i & 7),
      rc8: (n) => [n, n, n, n],
      rc16: (n) => [0, 1, 0, 1].map((i) => i + 2 * (n & 1)),
      ecl: (n) => [0, 1, 2, 3].map((i) => Math.max(i, n)),
      ecr: (n) => [0, 1, 2, 3].map((i) => Math.min(i, n)),
    };
    for (const [mode, row] of Object.entries(rows)) {
      check(`prmt.b32.${mode} %r, %a, %b, %c;`, [32, 32, 32], 32, (a, b, c) =>
        row(Number(c & 3n)).reduce(
          (sum, index, place) => sum | (byte(a, b, index) << BigInt(8 * place)),
          0n,
        ),
      );
    }
    check('prmt.b32 %r, %a, %b, %c;', [32, 32, 32], 32, (a, b, c) =>
      [0, 1, 2, 3].reduce((sum, place) => {
        const selector = Number((c >> BigInt(4 * place)) & 15n);
        const value = byte(a, b, selector & 7);
        return sum | ((selector & 8 ? (value & 0x80n ? 0xffn : 0n) : value) << BigInt(8 * place));
      }, 0n),
    );
  });
  it('shl and shr clamp', { tags: 'random' }, () => {
    for (const w of [16, 32, 64] as const) {
      const far = (b: bigint): bigint => (b > BigInt(w) ? BigInt(w) : b);
      check(`shl.b${w} %r, %a, %b;`, [w, 32], w, (a, b) => a << far(b), counted(1, 1));
      check(`shr.u${w} %r, %a, %b;`, [w, 32], w, (a, b) => a >> far(b), counted(1, 1));
      check(`shr.s${w} %r, %a, %b;`, [w, 32], w, (a, b) => s(w, a) >> far(b), counted(1, 1));
    }
  });
});

describe('products and sums', () => {
  const as = (type: string, value: bigint): bigint =>
    type[0] === 's' ? s(32, value) : u(32, value);
  it('mul24, mad24', { tags: 'random' }, () => {
    for (const type of ['u32', 's32'] as const) {
      const low = (value: bigint): bigint => (type === 's32' ? s(24, value) : u(24, value));
      for (const part of ['lo', 'hi'] as const) {
        const product = (a: bigint, b: bigint): bigint =>
          part === 'lo' ? low(a) * low(b) : (low(a) * low(b)) >> 16n;
        check(`mul24.${part}.${type} %r, %a, %b;`, [32, 32], 32, product);
        check(
          `mad24.${part}.${type} %r, %a, %b, %c;`,
          [32, 32, 32],
          32,
          (a, b, c) => product(a, b) + c,
        );
      }
    }
  });
  it('dp4a, dp2a of every signedness', { tags: 'random' }, () => {
    const part = (type: string, value: bigint, bits: number, index: number): bigint => {
      const field = value >> BigInt(bits * index);
      return type[0] === 's' ? s(bits, field) : u(bits, field);
    };
    for (const ta of ['u32', 's32']) {
      for (const tb of ['u32', 's32']) {
        check(`dp4a.${ta}.${tb} %r, %a, %b, %c;`, [32, 32, 32], 32, (a, b, c) =>
          [0, 1, 2, 3].reduce((sum, i) => sum + part(ta, a, 8, i) * part(tb, b, 8, i), c),
        );
        for (const half of ['lo', 'hi']) {
          check(`dp2a.${half}.${ta}.${tb} %r, %a, %b, %c;`, [32, 32, 32], 32, (a, b, c) =>
            [0, 1].reduce(
              (sum, i) => sum + part(ta, a, 16, i) * part(tb, b, 8, i + (half === 'hi' ? 2 : 0)),
              c,
            ),
          );
        }
      }
    }
  });
  it('chains of carries in any order', { tags: 'random' }, () => {
    // As in the machine, a subtraction adds the complement, and the flag is that sum's carry.
    check(
      'add.cc.u32 %r, %a, %b; subc.cc.u32 %r, %r, %c; addc.u32 %r, %r, 0;',
      [32, 32, 32],
      32,
      (a, b, c) => {
        const carry = (a + b) >> 32n;
        const sum = u(32, a + b);
        const difference = sum + u(32, ~c) + carry;
        return u(32, difference) + (difference >> 32n);
      },
    );
    check(
      'sub.cc.u32 %r, %a, %b; madc.hi.cc.u32 %r, %a, %b, %c; addc.u32 %r, %r, %a;',
      [32, 32, 32],
      32,
      (a, b, c) => {
        const sum = ((a * b) >> 32n) + c + (a < b ? 0n : 1n);
        return u(32, sum) + a + (sum >> 32n);
      },
    );
    check(
      'add.cc.u64 %r, %a, %b; addc.cc.u64 %r, %c, %a; addc.u64 %r, %r, 0;',
      [64, 64, 64],
      64,
      (a, b, c) => {
        const sum = c + a + ((a + b) >> 64n);
        return u(64, sum) + (sum >> 64n);
      },
    );
    // Without .cc the carry is unchanged.
    check(
      'add.cc.u32 %r, %a, %b; addc.u32 %r, %c, 0; add.u32 %r, %r, %a; addc.u32 %r, %r, 0;',
      [32, 32, 32],
      32,
      (a, b, c) => {
        const carry = (a + b) >> 32n;
        return c + carry + a + carry;
      },
    );
  });
  it('division by a literal that is -1 or 0 as the type reads it', { tags: 'random' }, () => {
    for (const [type, minusOne, zero] of [
      ['s16', '0xffff', '0x10000'],
      ['s32', '0xffffffff', '0x100000000'],
      ['s32', '0xffffffffffffffff', '0'],
      ['s64', '0xffffffffffffffff', '0'],
      ['u32', '0xffffffff', '0x100000000'],
      ['u16', '0xffff', '0x10000'],
    ] as const) {
      const w = Number(type.slice(1)) as 16 | 32 | 64;
      const typed = (value: bigint): bigint => (type[0] === 's' ? s(w, value) : u(w, value));
      check(`div.${type} %r, %a, ${minusOne};`, [w], w, (a) => typed(a) / typed(BigInt(minusOne)));
      check(`rem.${type} %r, %a, ${minusOne};`, [w], w, (a) => typed(a) % typed(BigInt(minusOne)));
      check(`div.${type} %r, %a, ${zero};`, [w], w, () => -1n);
      check(`rem.${type} %r, %a, ${zero};`, [w], w, (a) => a);
    }
  });
  it(
    'min and max of singles: NaN, signs, subnormal numbers, two operands and three',
    { tags: 'random' },
    () => {
      const EDGES = [
        0n,
        1n,
        0x7fffffn,
        0x800000n,
        0x3f800000n,
        0x40000000n,
        0x7f7fffffn,
        0x7f800000n,
        0x7fc00000n,
        0x7f800001n,
      ].flatMap((bits) => [bits, bits | 0x80000000n]);
      const isNaN = (bits: bigint): boolean => (bits & 0x7fffffffn) > 0x7f800000n;
      /** Integers in the order of the numbers, -0 before +0. */
      const key = (bits: bigint): bigint => (bits >> 31n ? -(bits & 0x7fffffffn) - 1n : bits);
      for (const name of ['min', 'max'] as const) {
        for (const nan of [false, true]) {
          for (const [words, count] of [
            ['', 2],
            ['.xorsign.abs', 2],
            ['', 3],
            ['.abs', 3],
          ] as const) {
            for (const ftz of [false, true]) {
              const reference = (...given: bigint[]): bigint => {
                const operands = given
                  .slice(0, count)
                  .map((bits) => (ftz && (bits & 0x7f800000n) === 0n ? bits & 0x80000000n : bits));
                const sign =
                  words === '.xorsign.abs'
                    ? operands.reduce((x, y) => (x ^ y) & 0x80000000n)
                    : undefined;
                const values = words === '' ? operands : operands.map((bits) => bits & 0x7fffffffn);
                const numbers = values.filter((bits) => !isNaN(bits));
                if (numbers.length === 0 || (nan && numbers.length < count)) return 0x7fffffffn;
                const chosen = numbers.reduce((x, y) =>
                  key(x) < key(y) === (name === 'min') ? x : y,
                );
                return sign === undefined ? chosen : (chosen & 0x7fffffffn) | (sign & 0x80000000n);
              };
              const instruction =
                `${name}${ftz ? '.ftz' : ''}${nan ? '.NaN' : ''}${words}.f32 %r, ` +
                `${['%a', '%b', '%c'].slice(0, count).join(', ')};`;
              // The payload of a NaN is the machine's.
              check(
                `${instruction} setp.nan.f32 %pr, %r, %r; selp.b32 %r, 0x7fffffff, %r, %pr;`,
                [32, 32, 32],
                32,
                reference,
                Array.from({ length: 512 }, () =>
                  [0, 1, 2].map(() => (seeds() % 4n === 0n ? u(32, seeds()) : pick(EDGES))),
                ),
              );
            }
          }
        }
      }
    },
  );
  it('sad', { tags: 'random' }, () => {
    for (const type of ['u16', 's16', 'u32', 's32', 'u64', 's64']) {
      const w = Number(type.slice(1)) as 16 | 32 | 64;
      const typed = (value: bigint): bigint => (type[0] === 's' ? s(w, value) : u(w, value));
      check(`sad.${type} %r, %a, %b, %c;`, [w, w, w], w, (a, b, c) => {
        const difference = typed(a) - typed(b);
        return c + (difference < 0n ? -difference : difference);
      });
    }
  });

  describe('scalar video instructions', () => {
    const select = (type: string, value: bigint, selector: string): bigint => {
      if (selector === '') return as(type, value);
      const bits = selector[1] === 'b' ? 8 : 16;
      const field = value >> BigInt(bits * Number(selector[2]));
      return type[0] === 's' ? s(bits, field) : u(bits, field);
    };
    const saturate = (value: bigint, type: string, bits: number): bigint => {
      const least = type[0] === 's' ? -(1n << BigInt(bits - 1)) : 0n;
      const most = type[0] === 's' ? (1n << BigInt(bits - 1)) - 1n : (1n << BigInt(bits)) - 1n;
      return value < least ? least : value > most ? most : value;
    };
    const operations: Record<string, (a: bigint, b: bigint) => bigint> = {
      vadd: (a, b) => a + b,
      vsub: (a, b) => a - b,
      vabsdiff: (a, b) => (a > b ? a - b : b - a),
      vmin: (a, b) => (a < b ? a : b),
      vmax: (a, b) => (a > b ? a : b),
    };
    const SELECTORS = ['', '.b0', '.b1', '.b2', '.b3', '.h0', '.h1'];
    for (const [name, operation] of Object.entries(operations)) {
      it(name, { tags: 'random' }, () => {
        for (const dt of ['u32', 's32']) {
          for (const at of ['u32', 's32']) {
            for (const bt of ['u32', 's32']) {
              for (const sat of ['', '.sat']) {
                const sa = pick(SELECTORS);
                const sb = pick(SELECTORS);
                const first = (a: bigint, b: bigint, bits: number): bigint => {
                  const value = operation(select(at, a, sa), select(bt, b, sb));
                  return sat ? saturate(value, dt, bits) : value;
                };
                const second = pick(['add', 'min', 'max']);
                check(
                  `${name}.${dt}.${at}.${bt}${sat}.${second} %r, %a${sa}, %b${sb}, %c;`,
                  [32, 32, 32],
                  32,
                  (a, b, c) => {
                    const value = as(dt, first(a, b, 32));
                    const other = as(dt, c);
                    return second === 'add'
                      ? value + other
                      : second === 'min'
                        ? value < other
                          ? value
                          : other
                        : value > other
                          ? value
                          : other;
                  },
                  operandSets(3, 100),
                );
                const sd = pick(SELECTORS.slice(1));
                const bits = sd[1] === 'b' ? 8 : 16;
                check(
                  `${name}.${dt}.${at}.${bt}${sat} %r${sd}, %a${sa}, %b${sb}, %c;`,
                  [32, 32, 32],
                  32,
                  (a, b, c) => {
                    const mask = (1n << BigInt(bits)) - 1n;
                    const shift = BigInt(bits * Number(sd[2]));
                    return (c & ~(mask << shift)) | ((first(a, b, bits) & mask) << shift);
                  },
                  operandSets(3, 100),
                );
              }
            }
          }
        }
      });
    }
  });
});

describe('registers wider than an instruction needs', () => {
  const whole = (instruction: string): string =>
    `.reg .b128 %wide, %wide2; .reg .b64 %x, %y; ${instruction} mov.b128 {%x, %y}, %wide; ` +
    'shl.b64 %y, %y, 1; xor.b64 %r, %x, %y;';
  /** Both halves in one number. */
  const both = (value: bigint): bigint => u(64, value) ^ u(64, (value >> 64n) << 1n);
  it(
    '128 bits: results are extended to all of them, of operands the low bits count',
    { tags: 'random' },
    () => {
      check(whole('cvt.s64.s32 %wide, %a;'), [32], 64, (a) => both(s(32, a)));
      check(whole('cvt.u64.u32 %wide, %a;'), [32], 64, (a) => both(a));
      check(whole('cvt.s8.s64 %wide, %a;'), [64], 64, (a) => both(s(8, a)));
      check(whole('mov.b128 %wide2, {%a, %b}; cvt.s64.s16 %wide, %wide2;'), [64, 64], 64, (a) =>
        both(s(16, a)),
      );
      check(
        whole(
          '.shared .align 16 .b8 at[16384]; mov.u32 %i, at; mov.u32 %n, %tid.x; mad.lo.u32 %i, ' +
            '%n, 16, %i; mov.b128 %wide2, {%a, %b}; st.shared.b16 [%i], %wide2; ld.shared.s16 ' +
            '%wide, [%i];',
        ),
        [64, 64],
        64,
        (a) => both(s(16, a)),
      );
      check(
        whole(
          '.shared .align 16 .b8 at[16384]; mov.u32 %i, at; mov.u32 %n, %tid.x; mad.lo.u32 %i, ' +
            '%n, 16, %i; mov.b128 %wide2, {%a, %b}; st.shared.v2.b32 [%i], {%wide2, %wide2}; ' +
            'ld.shared.v2.u32 {%wide2, %wide}, [%i];',
        ),
        [64, 64],
        64,
        (a) => both(u(32, a)),
      );
    },
  );
  it('mov.b128 of four words, of a number', { tags: 'random' }, () => {
    check(
      whole(
        '.reg .b32 %w<4>; mov.b64 {%w0, %w1}, %a; mov.b64 {%w2, %w3}, %b; mov.b128 %wide, ' +
          '{%w1, %w3, %w0, %w2};',
      ),
      [64, 64],
      64,
      (a, b) => both((a >> 32n) | ((b >> 32n) << 32n) | (u(32, a) << 64n) | (u(32, b) << 96n)),
    );
    check(
      '.reg .b128 %wide; .reg .b32 %w<4>; mov.b128 %wide, {%a, %b}; mov.b128 {%w0, _, %w2, ' +
        '%w3}, %wide; xor.b32 %w0, %w0, %w3; mov.b64 %r, {%w0, %w2};',
      [64, 64],
      64,
      (a, b) => (u(32, a) ^ (b >> 32n)) | (u(32, b) << 32n),
    );
    check(whole('mov.b128 %wide, 5; xor.b64 %a, %a, %a;'), [64], 64, () => 5n);
    check(whole('mov.b128 %wide, -1; xor.b64 %a, %a, %a;'), [64], 64, () => -1n);
  });
  it('cvt.pack and pairs of halves in 64 bits', { tags: 'random' }, () => {
    const clamp = (a: bigint): bigint => (a < 0n ? 0n : a > 0xffffn ? 0xffffn : a);
    check(
      'cvt.pack.sat.u16.s32 %r, %a, %b;',
      [64, 32],
      64,
      (a, b) => (clamp(s(32, a)) << 16n) | clamp(s(32, b)),
    );
    check(
      '.reg .f32 %f; cvt.rn.f32.u32 %f, 1; cvt.rn.f16x2.f32 %r, %a, %f;',
      [64],
      64,
      () => 0x3c003c00n,
      [[0x3f800000n], [0xabcd3f800000n]],
    );
  });
});

describe('operands that an instruction does not take', () => {
  const registers =
    '.reg .b32 %r<4>; .reg .b64 %l<4>; .reg .f32 %f; .reg .pred %p; .shared .align 16 .b8 sh[64];';
  const complaint = (instruction: string): string | undefined => {
    try {
      const text =
        `.version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k() ` +
        `{\n${registers}\n${instruction}\nret; }`;
      return compilePtx(text).failures[0]?.error.message;
    } catch (error) {
      return error instanceof PtxError ? error.message : String(error);
    }
  };
  it.each([
    ['bar.sync @;', ['0', '15', '0x10000000f'], ['16', '-1', 'WARP_SZ']],
    ['barrier.sync 1, @;', ['0', '32', '4128'], ['1', '33']],
    ['bar.arrive 1, @;', ['32'], ['0', '48']],
    ['bar.red.popc.u32 %r1, @, 32, %p;', ['15'], ['16']],
    ['bar.warp.sync @;', ['-1', '0'], []],
    ['bfe.u32 %r1, %r2, @, 8;', ['255', '%r1'], ['256', '-1']],
    ['bfi.b64 %l1, %l2, %l3, 8, @;', ['255'], ['256']],
    ['discard.global.L2 [%l1], @;', ['128', '64+64'], ['64']],
    [
      'createpolicy.fractional.L2::evict_last.b64 %l1, @;',
      ['1.0', '0f00000001', '%f'],
      ['0.0', '1.5', '0f7fc00000', '-1.0'],
    ],
    [
      'createpolicy.range.L2::evict_last.b64 %l1, [%l2], 100, @;',
      ['100', '-1', '%r1'],
      ['99', '0x100000000'],
    ],
    ['cp.async.ca.shared.global [%r1], [%l1], @;', ['4', '8', '16'], ['0', '2', '32']],
    ['cp.async.cg.shared.global [%r1], [%l1], 16, @;', ['0', '16', '%r2'], ['17', '-1']],
    ['cp.async.bulk.prefetch.L2.global [%l1], @;', ['0', '1048560'], ['8', '1048576', '-16']],
    ['st.bulk.shared::cta [%r1], @, 0;', ['0', '16777216'], ['12', '-8', '16777224']],
    ['setmaxnreg.inc.sync.aligned.u32 @;', ['24', '256'], ['16', '100', '264']],
    ['pmevent @;', ['15'], ['16']],
    ['pmevent.mask @;', ['0xffff'], ['0x10000']],
    ['mbarrier.init.shared.b64 [%r1], @;', ['1', '1048575'], ['0', '1048576', '-1']],
    ['mbarrier.arrive.shared.b64 %l1, [%r1], @;', ['1', '0x80000000'], ['0', '-1']],
    ['mbarrier.arrive.expect_tx.shared.b64 %l1, [%r1], @;', ['0', '-1'], []],
    ['mbarrier.test_wait.parity.shared.b64 %p, [%r1], @;', ['0', '1'], ['2', '-1']],
    ['vadd2.u32.u32.u32 %r1, %r2, @, %r3;', ['%r1'], ['5']],
    ...['vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax'].flatMap(
      (name): [string, string[], string[]][] => [
        [`${name}.s32.s32.s32 %r1, @, %r3;`, ['%r2', '%r2.b1'], ['-%r2', '-%r2.b1']],
        [`${name}.s32.s32.s32 %r1, %r2, @;`, ['%r2', '%r2.h1'], ['-%r2', '-%r2.h1']],
        [`${name}.s32.s32.s32.add %r1, %r2, %r3, @;`, ['%r2'], ['-%r2']],
        [`${name}.s32.s32.s32 %r1.b2, %r2, %r3, @;`, ['%r2'], ['-%r2']],
        [`${name}2.s32.s32.s32 %r1, %r2, %r3, @;`, ['%r2'], ['-%r2']],
      ],
    ),
    ...['vshl', 'vshr'].flatMap((name): [string, string[], string[]][] => [
      [`${name}.s32.s32.u32.clamp %r1, @, %r3;`, ['%r2', '%r2.b1'], ['-%r2', '-%r2.b1']],
      [`${name}.s32.s32.u32.clamp %r1, %r2, @;`, ['%r2', '%r2.b1'], ['-%r2', '-%r2.b1']],
    ]),
    ['vset.s32.s32.lt %r1, @, %r3;', ['%r2', '%r2.b1'], ['-%r2', '-%r2.b1']],
    ['vset.s32.s32.lt %r1, %r2, @;', ['%r2', '%r2.b1'], ['-%r2', '-%r2.b1']],
    ['vmad.s32.s32.s32 %r1, @, %r2, %r3;', ['%r1', '-%r1', '-%r1.b1'], []],
    ['vmad.s32.s32.s32 %r1, %r2, @, %r3;', ['%r1', '-%r1', '-%r1.b1'], []],
    ['vmad.s32.s32.s32 %r1, %r2, %r3, @;', ['%r1', '-%r1'], ['%r1.b1', '-%r1.b1']],
    ['vmad.s32.s32.s32.po %r1, @, %r2, %r3;', ['%r1', '%r1.b1'], ['-%r1', '-%r1.b1']],
    ['vmad.s32.s32.s32.po %r1, %r2, @, %r3;', ['%r1', '%r1.b1'], ['-%r1', '-%r1.b1']],
    ['vmad.s32.s32.s32.po %r1, %r2, %r3, @;', ['%r1'], ['-%r1']],
    ['nanosleep.u32 @;', ['%r1', '5'], ['-%r1']],
    ['stackrestore.u64 @;', ['%l1'], ['64']],
    ['lop3.b32 %r1, %r2, %r3, %r1, @;', ['0', '256', '-1'], []],
    ['ld.local.u32 %r1, @;', ['[0]', '[-4]', '[%r2]', '[%l1+-4]'], ['[%l1-4]', '[%f]']],
    ['ld.shared.u32 %r1, @;', ['[%r2]', '[%l1]', '[sh+4+4]'], ['[0]', '[64]']],
    ['ld.global.u32 %r1, @;', ['[%l1]'], ['[0]', '[%r2]']],
    ['atom.add.u32 %r1, @, 1;', ['[%l1]'], ['[64]', '[%r2]']],
    ['prefetch.global.L1 @;', ['[%l1]'], ['[0]', '[%r1]', '[%f]']],
    ['cp.async.ca.shared.global [%r1], @, 4;', ['[%l1]', '[%r2]'], ['[16]']],
    ['cvt.f32.bf16 %f, @;', [], ['%l1', '%r1']],
  ])('%s', (instruction, taken, refused) => {
    for (const literal of taken)
      expect([literal, complaint(instruction.replace('@', literal))]).toEqual([literal, undefined]);
    for (const literal of refused)
      expect([literal, complaint(instruction.replace('@', literal))]).toEqual([
        literal,
        expect.stringMatching(/^ptx:6:\d+: error: /),
      ]);
  });
  it('give the place, the instruction, and the expected operand', () => {
    expect(complaint('bfe.u32 %r1, %r2, 256, 8;')).toBe(
      "ptx:6:19: error: 'bfe.u32' takes a number from 0 to 255 as operand 3\n  bfe.u32 %r1, " +
        '%r2, 256, 8;',
    );
  });
});
