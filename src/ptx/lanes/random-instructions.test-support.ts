// Random instructions of kernels: arithmetic, adjacent and scattered accesses, calls, and
// operations of whole warps and blocks.

import * as fc from '../../../test/fast-check.js';

export const R = 6;
export const F = 4;
export const D = 2;
export const PERMUTATIONS = [1, 2, 5, 8, 16];

export type Node =
  | { kind: 'text'; text: string }
  | { kind: 'if'; condition: string; then: Node[]; otherwise: Node[] }
  | { kind: 'loop'; count: number; bound: number; body: Node[] }
  | { kind: 'stride'; from: string; by: number; bound: string; comparison: string; body: Node[] };

const register = (prefix: string, count: number): fc.Arbitrary<string> =>
  fc.nat(count - 1).map((index) => `%${prefix}${index}`);
const r = register('r', R);
const f = register('f', F);
const d = register('d', D);
const number = fc.constantFrom(
  '0',
  '1',
  '-1',
  '3',
  '4',
  '7',
  '31',
  '32',
  '255',
  '0x7fffffff',
  '0x80000000',
  '12345',
);
const either = fc.oneof(
  { weight: 6, arbitrary: r },
  { weight: 2, arbitrary: number },
  { weight: 1, arbitrary: fc.constantFrom('%lane', '%lane3', '%high') },
);
const literal = fc.constantFrom(
  '0f3F800000',
  '0f00000000',
  '0f80000000',
  '0f40490FDB',
  '0f7F800000',
  '0f00000001',
  '0fBF000000',
  '0f4B800000',
);
const real = fc.oneof({ weight: 4, arbitrary: f }, { weight: 1, arbitrary: literal });
const guard = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('@%q0 ', '@!%q0 ', '@%q1 ', '@!%q1 ', '@%first ', '@!%third '),
  },
);
export const text = (arbitrary: fc.Arbitrary<string>): fc.Arbitrary<Node> =>
  fc.tuple(guard, arbitrary).map(([predicate, line]): Node => ({
    kind: 'text',
    text: line.indexOf(';') === line.length - 1 ? `${predicate}${line}` : line,
  }));

export const integer = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(
        'add.s32',
        'sub.u32',
        'mul.lo.s32',
        'mul.hi.u32',
        'mul.hi.s32',
        'and.b32',
        'or.b32',
        'xor.b32',
        'min.s32',
        'max.u32',
        'min.u32',
        'div.u32',
        'rem.s32',
        'shl.b32',
        'shr.u32',
        'shr.s32',
      ),
      r,
      either,
      either,
    )
    .map(([op, a, b, c]) => `${op} ${a}, ${b.startsWith('%') ? b : '%r0'}, ${c};`),
  fc
    .tuple(
      fc.constantFrom(
        'mad.lo.s32',
        'mad.hi.u32',
        'lop3.b32',
        'bfi.b32',
        'shf.l.wrap.b32',
        'shf.r.clamp.b32',
      ),
      r,
      r,
      r,
      either,
      fc.nat(255),
    )
    .map(([op, a, b, c, x, table]) =>
      op === 'lop3.b32'
        ? `${op} ${a}, ${b}, ${c}, ${a}, ${table};`
        : op === 'bfi.b32'
          ? `${op} ${a}, ${b}, ${c}, ${table % 40}, ${table % 9};`
          : `${op} ${a}, ${b}, ${c}, ${x};`,
    ),
  fc
    .tuple(
      fc.constantFrom(
        'neg.s32',
        'abs.s32',
        'not.b32',
        'popc.b32',
        'clz.b32',
        'brev.b32',
        'mov.u32',
        'cvt.s32.s8',
        'cvt.u32.u16',
      ),
      r,
      r,
    )
    .map(([op, a, b]) => `${op} ${a}, ${b};`),
  fc
    .tuple(
      r,
      fc.constantFrom(
        '%tid.x',
        '%tid.y',
        '%laneid',
        '%ntid.x',
        '%ctaid.x',
        '%warpid',
        '%lanemask_lt',
        '%lanemask_eq',
        '%lanemask_le',
        '%lanemask_ge',
        '%lanemask_gt',
      ),
    )
    .map(([a, b]) => `mov.u32 ${a}, ${b};`),
  fc
    .tuple(r, either, either, fc.constantFrom('%q0', '%q1', '%first', '%third', '%all8'))
    .map(([a, b, c, q]) => `selp.b32 ${a}, ${b}, ${c}, ${q};`),
);
export const floating = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(
        'add.f32',
        'sub.rn.f32',
        'mul.f32',
        'mul.ftz.f32',
        'div.rn.f32',
        'min.f32',
        'max.f32',
        'max.NaN.f32',
        'add.rz.f32',
      ),
      f,
      real,
      real,
    )
    .map(([op, a, b, c]) => `${op} ${a}, ${b}, ${c};`),
  fc
    .tuple(
      fc.constantFrom(
        'fma.rn.f32',
        'fma.rn.ftz.f32',
        'fma.rm.f32',
        'fma.rp.f32',
        'fma.rz.f32',
        'mad.rm.f32',
        'mad.rn.f32',
      ),
      f,
      real,
      real,
      real,
    )
    .map(([op, a, b, c, x]) => `${op} ${a}, ${b}, ${c}, ${x};`),
  fc
    .tuple(
      fc.constantFrom(
        'neg.f32',
        'abs.f32',
        'sqrt.rn.f32',
        'rcp.rn.f32',
        'ex2.approx.f32',
        'ex2.approx.ftz.f32',
        'cvt.sat.f32.f32',
        'cvt.sat.ftz.f32.f32',
        'rsqrt.approx.f32',
        'cvt.rmi.f32.f32',
        'mov.f32',
      ),
      f,
      f,
    )
    .map(([op, a, b]) => `${op} ${a}, ${b};`),
  fc
    .tuple(fc.constantFrom('cvt.rn.f32.s32', 'cvt.rn.f32.u32'), f, r)
    .map(([op, a, b]) => `${op} ${a}, ${b};`),
  fc
    .tuple(fc.constantFrom('cvt.rzi.s32.f32', 'cvt.rni.u32.f32'), r, f)
    .map(([op, a, b]) => `${op} ${a}, ${b};`),
);
/** Functions, and calls of them: the arguments differ from thread to thread as other values do. */
export const FUNCTIONS = `.func (.param .b32 back) mixed(.param .b32 a, .param .b64 b) {
.reg .b32 %x<3>; .reg .b64 %y; ld.param.u32 %x0, [a]; ld.param.u64 %y, [b];
cvt.u32.u64 %x1, %y; xor.b32 %x0, %x0, %x1; st.param.b32 [back], %x0; ret; }
.func (.param .b64 back) repeated(.param .b32 a) { .reg .b32 %x<2>; .reg .b64 %y;
.reg .pred %p; ld.param.u32 %x0, [a]; and.b32 %x1, %x0, 3; cvt.u64.u32 %y, %x0;
  again: shl.b64 %y, %y, 3; sub.s32 %x1, %x1, 1; setp.ge.s32 %p, %x1, 0; @%p bra again;
  st.param.b64 [back], %y; ret; }
`;
const calls = fc.oneof(
  fc
    .tuple(r, either, d)
    .map(
      ([a, b, c]) =>
        `{ .param .b32 first, result; .param .b64 second; st.param.b32 [first], ${b}; ` +
        `st.param.b64 [second], ${c}; call.uni (result), mixed, (first, second); ` +
        `ld.param.b32 ${a}, [result]; }`,
    ),
  fc
    .tuple(d, either)
    .map(
      ([a, b]) =>
        `{ .param .b32 first; .param .b64 result; st.param.b32 [first], ${b}; call.uni ` +
        `(result), repeated, (first); ld.param.b64 ${a}, [result]; }`,
    ),
);
const wide = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('add.s64', 'sub.s64', 'mul.lo.s64', 'and.b64', 'xor.b64', 'min.u64'),
      d,
      d,
      d,
    )
    .map(([op, a, b, c]) => `${op} ${a}, ${b}, ${c};`),
  fc
    .tuple(fc.constantFrom('mul.wide.s32', 'mul.wide.u32'), d, r, either)
    .map(([op, a, b, c]) => `${op} ${a}, ${b}, ${c};`),
  fc
    .tuple(fc.constantFrom('cvt.s64.s32', 'cvt.u64.u32'), d, r)
    .map(([op, a, b]) => `${op} ${a}, ${b};`),
  fc.tuple(r, d).map(([a, b]) => `cvt.u32.u64 ${a}, ${b};`),
  fc.tuple(d, d, fc.nat(70)).map(([a, b, count]) => `shr.s64 ${a}, ${b}, ${count};`),
);
const compare = fc.oneof(
  fc
    .tuple(
      fc.constantFrom('%q0', '%q1'),
      fc.constantFrom('eq.s32', 'lt.s32', 'ge.u32', 'gt.s32', 'lo.u32'),
      r,
      either,
    )
    .map(([q, op, a, b]) => `setp.${op} ${q}, ${a}, ${b};`),
  fc
    .tuple(
      fc.constantFrom('%q0', '%q1'),
      fc.constantFrom('lt.f32', 'neu.f32', 'geu.f32', 'equ.f32', 'nan.f32'),
      f,
      real,
    )
    .map(([q, op, a, b]) => `setp.${op} ${q}, ${a}, ${b};`),
  fc.tuple(fc.constantFrom('%q0', '%q1'), d, d).map(([q, a, b]) => `setp.lt.u64 ${q}, ${a}, ${b};`),
  fc.tuple(fc.constantFrom('and', 'or', 'xor')).map(([op]) => `${op}.pred %q0, %q0, %q1;`),
);
/** Reads the input: anywhere, or at the thread's own place. */
const read = fc.oneof(
  fc
    .tuple(r, r)
    .map(
      ([a, b]) => `and.b32 %x, ${b}, 255; mad.wide.u32 %a, %x, 4, %in; ld.global.u32 ${a}, [%a];`,
    ),
  fc.tuple(r, fc.nat(7)).map(([a, at]) => `ld.global.b32 ${a}, [%mine+${4 * at}];`),
  fc.tuple(f, fc.nat(7)).map(([a, at]) => `ld.global.f32 ${a}, [%mine+${1024 + 4 * at}];`),
  fc.tuple(d).map(([a]) => `ld.global.b64 ${a}, [%mine8];`),
  fc.tuple(r, fc.nat(9)).map(([a, at]) => `ld.global.u32 ${a}, [%in+${4 * at}];`),
  fc.tuple(r, fc.nat(9)).map(([a, at]) => `ld.global.u8 ${a}, [%mine+${at}];`),
  fc
    .tuple(fc.constantFrom('u8', 's8'), r, fc.nat(9))
    .map(([type, a, at]) => `ld.global.${type} ${a}, [%mine1+${at}];`),
  fc
    .tuple(fc.constantFrom('u16', 's16'), r, fc.nat(4))
    .map(([type, a, at]) => `ld.global.${type} ${a}, [%mine2+${2 * at}];`),
  fc
    .tuple(fc.constantFrom('u8', 's8', 'b16', 's16', 'u32'), r, r)
    .map(
      ([type, a, b]) =>
        `and.b32 %x, ${b}, 127; mad.wide.u32 %a, %x, 4, %in; ld.global.${type} ${a}, [%a];`,
    ),
  fc
    .tuple(fc.constantFrom('%mine8', '%mine16'), fc.nat(3))
    .map(([from, at]) => `ld.global.v2.u32 {%r1, %r4}, [${from}+${8 * at}];`),
  fc.nat(3).map((at) => `ld.global.v4.f32 {%f0, %f3, %f1, %f2}, [%mine16+${16 * at}];`),
  fc.constantFrom(
    'ld.global.v2.b64 {%d0, %d1}, [%mine16];',
    'ld.global.v2.u16 {%h0, %h1}, [%mine]; mov.b32 %r2, {%h0, %h1};',
    'ld.global.v4.u8 {%h0, %h1, %h2, %h3}, [%mine+8]; mov.b32 %r3, {%h1, %h3};',
    'ld.global.s8 %h0, [%mine1]; cvt.u32.u16 %r0, %h0;',
  ),
  fc
    .tuple(r, r)
    .map(
      ([a, b]) =>
        `and.b32 %x, ${b}, 31; mad.wide.u32 %a, %x, 16, %in; ld.global.v4.u32 {${a}, %y, %x, ` +
        '%y}, [%a];',
    ),
  // tid - 8 as an unsigned index: the threads before it access nothing.
  fc
    .tuple(r, fc.constantFrom(1, 8, 40))
    .map(
      ([a, by]) =>
        `setp.ge.u32 %m, %t, ${by}; add.s32 %x, %t, -${by}; mul.wide.u32 %a, %x, 4; add.s64 ` +
        `%a, %in, %a; @%m ld.global.u32 ${a}, [%a];`,
    ),
  fc
    .tuple(r, r)
    .map(
      ([a, b]) =>
        `and.b32 %x, ${b}, 60; mov.u32 %y, kept; add.u32 %x, %x, %y; ld.local.u32 ${a}, [%x];`,
    ),
);
const write = fc.oneof(
  fc.tuple(r, fc.nat(3)).map(([a, at]) => `st.global.u32 [%log+${4096 * at}], ${a};`),
  fc.tuple(r).map(([a]) => `red.global.add.u32 [%sum], ${a};`),
  fc.tuple(r).map(([a]) => `st.global.u8 [%mineOut+8192], ${a};`),
  fc.tuple(r).map(([a]) => `st.global.u16 [%mineOut2+10240], ${a};`),
  fc.tuple(r, f).map(([a, b]) => `st.global.v4.b32 [%mineOut16], {${a}, ${b}, 7, ${a}};`),
  fc
    .tuple(r, d)
    .map(
      ([a, b]) =>
        `st.global.v2.u32 [%mineOut16+12288], {${a}, %r0}; st.global.v2.b64 ` +
        `[%mineOut16+16384], {${b}, %d0};`,
    ),
  fc
    .tuple(r)
    .map(
      ([a]) =>
        `cvt.u16.u32 %h0, ${a}; mov.b32 {%h1, %h2}, ${a}; st.global.v2.b16 ` +
        '[%mineOut16+20480], {%h0, %h2}; st.global.v4.u8 [%mineOut16+20488], {%h0, %h1, %h2, ' +
        '%h0};',
    ),
  fc.tuple(r).map(([a]) => `atom.shared.add.u32 ${a}, [%cell], ${a};`),
  fc
    .tuple(r, r)
    .map(
      ([a, b]) =>
        `and.b32 %x, ${b}, 60; mov.u32 %y, kept; add.u32 %x, %x, %y; st.local.u32 [%x], ${a};`,
    ),
);
/**
 * Values that differ between threads by literals, comparisons of them and addresses: each in
 * registers of its own.
 */
const literals = fc.constantFrom(
  1,
  2,
  3,
  4,
  5,
  7,
  8,
  12,
  16,
  17,
  31,
  32,
  48,
  64,
  255,
  0x80000000,
  0xffffffe0,
  -1,
  0xfffffff8,
);
const bits = fc
  .tuple(
    fc.constantFrom(
      'xor.b32',
      'and.b32',
      'or.b32',
      'add.s32',
      'sub.s32',
      'shl.b32',
      'shr.u32',
      'shr.s32',
      'mul.lo.s32',
      'mad.lo.u32',
    ),
    literals,
    fc.boolean(),
  )
  .map(
    ([op, by, twice]) =>
      (from: string, to: string): string =>
        op.startsWith('sh')
          ? `${op} ${to}, ${from}, ${by & 7};`
          : op.startsWith('mad')
            ? `mad.lo.u32 ${to}, ${from}, ${by}, %u0_#;`
            : `${op} ${to}, ${from}, ${twice ? '%u0_#' : by};`,
  );
const patterned = fc
  .tuple(
    fc.constantFrom('%tid.x', '%laneid', '%tid.y', '%ctaid.x'),
    bits,
    bits,
    bits,
    fc.constantFrom('lt.u32', 'le.s32', 'eq.s32', 'ne.u32', 'gt.s32', 'hs.u32'),
    fc.constantFrom('%u0_#', '%u1_#', '%u2_#', '0', '4', '16'),
    fc.constantFrom('%u1_#', '%u2_#', '%u3_#'),
  )
  .map(([from, first, second, third, comparison, other, value]) => ({
    before:
      `mov.u32 %u0_#, ${from}; ${first('%u0_#', '%u1_#')} ${second('%u1_#', '%u2_#')} ` +
      `${third('%u2_#', '%u3_#')} setp.${comparison} %v_#, ${value}, ${other};`,
    value,
  }));
export const pattern = fc.oneof(
  fc
    .tuple(patterned, r, r)
    .map(
      ([{ before, value }, a, b]) =>
        `${before} selp.b32 ${a}, ${value}, ${b}, %v_#; xor.b32 ${b}, ${b}, %u3_#;`,
    ),
  fc
    .tuple(patterned, r, r)
    .map(
      ([{ before, value }, a, b]) =>
        `${before} @%v_# add.s32 ${a}, ${b}, ${value}; not.pred %w_#, %v_#; @%w_# xor.b32 ` +
        `${b}, ${b}, 1;`,
    ),
  fc
    .tuple(patterned, r)
    .map(
      ([{ before, value }, a]) =>
        `${before} popc.b32 ${a}, ${value}; and.pred %q1, %q0, %v_#; brev.b32 %x, ${value}; ` +
        `@%v_# bfind.u32 ${a}, ${value};`,
    ),
  fc
    .tuple(patterned, d)
    .map(
      ([{ before, value }, a]) =>
        `${before} cvt.s64.s32 ${a}, ${value}; mul.wide.u32 %a, ${value}, 12; @!%v_# xor.b64 ` +
        `${a}, ${a}, %a;`,
    ),
  fc
    .tuple(patterned, r, fc.constantFrom(4, 8, 16), fc.constantFrom('u32', 'u8', 's16', 'v2.u32'))
    .map(
      ([{ before, value }, a, scale, type]) =>
        `${before} and.b32 %u4_#, ${value}, 63; mad.wide.u32 %a, %u4_#, ` +
        `${type.startsWith('v') ? 8 : scale}, %in; @!%v_# ld.global.${type} ` +
        `${type.startsWith('v') ? `{${a}, %y}` : a}, [%a];`,
    ),
  // Adjacent, or in another order, or scattered: the cells of threads for which the predicate does
  // not hold are unchanged. Every cell belongs to one thread.
  fc
    .tuple(
      patterned,
      r,
      fc.constantFrom(...PERMUTATIONS),
      fc.constantFrom('', '@%v_# ', '@!%v_# ', '@%q0 '),
      fc.boolean(),
    )
    .map(
      ([{ before }, a, by, who, branches]) =>
        `${before} mov.u32 %u4_#, %tid.x; xor.b32 %u4_#b, %u4_#, ${by};
          shl.b32 %u4_#c, %u4_#b, 2; add.s32 %u4_#e, %perm, %u4_#c; ${
            branches
              ? `${who === '' ? '@%q1 ' : who}bra AROUND; st.shared.u32 ` +
                `[%u4_#e+${8192 * PERMUTATIONS.indexOf(by)}], ${a}; AROUND:`
              : `${who}st.shared.u32 [%u4_#e+${8192 * PERMUTATIONS.indexOf(by)}], ${a};`
          } ld.shared.u32 ${a}, [%u4_#e+${8192 * PERMUTATIONS.indexOf(by)}];`,
    ),
);
export const one = fc.oneof(
  { weight: 6, arbitrary: text(integer) },
  { weight: 5, arbitrary: text(floating) },
  { weight: 2, arbitrary: text(wide) },
  { weight: 3, arbitrary: text(compare) },
  { weight: 1, arbitrary: text(write) },
  { weight: 2, arbitrary: pattern.map((line): Node => ({ kind: 'text', text: line })) },
  { weight: 1, arbitrary: calls.map((line): Node => ({ kind: 'text', text: line })) },
  { weight: 3, arbitrary: read.map((line): Node => ({ kind: 'text', text: line })) },
);
/**
 * Instructions that all threads reach: barriers around an exchange through shared memory, and warp
 * operations.
 */
export const meeting = fc
  .oneof(
    fc
      .tuple(r, r)
      .map(
        ([a, b]) =>
          `st.shared.u32 [%cell], ${a}; bar.sync 0; and.b32 %x, ${b}, 127; mad.lo.u32 %x, ` +
          `%x, 4, %base; ld.shared.u32 ${b}, [%x]; bar.sync 0;`,
      ),
    fc
      .tuple(r, r, fc.constantFrom('bfly', 'down', 'up', 'idx'), fc.nat(9))
      .map(
        ([a, b, mode, by]) =>
          `shfl.sync.${mode}.b32 ${a}, ${b}, ${by}, ${mode === 'up' ? 0 : 31}, -1;`,
      ),
    fc
      .tuple(f, f, fc.nat(16))
      .map(([a, b, by]) => `shfl.sync.bfly.b32 ${a}|%q1, ${b}, ${by}, 31, -1;`),
    fc.constantFrom(
      'vote.sync.ballot.b32 %r0, %q0, -1;',
      'vote.sync.any.pred %q1, %q0, -1;',
      'redux.sync.add.s32 %r1, %r2, -1;',
      'vote.sync.all.pred %q1, !%q0, -1;',
      'vote.sync.uni.pred %q0, %q1, %all;',
      'vote.sync.ballot.b32 %r4, !%q1, %all;',
      'activemask.b32 %r3;',
      'bar.warp.sync -1;',
      'match.any.sync.b32 %r1, %r4, -1;',
      'bar.red.popc.u32 %r2, 0, %q0;',
      'bar.red.or.pred %q1, 0, %q0;',
      'elect.sync %r3|%q0, -1;',
    ),
    fc
      .tuple(
        fc.constantFrom(
          'add.u32',
          'min.s32',
          'max.s32',
          'min.u32',
          'max.u32',
          'and.b32',
          'or.b32',
          'xor.b32',
        ),
        r,
        r,
      )
      .map(([op, a, b]) => `redux.sync.${op} ${a}, ${b}, %all;`),
    // A distance or a lane that is known only at run time; segments; a predicate.
    fc
      .tuple(
        r,
        r,
        r,
        fc.constantFrom('bfly', 'down', 'idx'),
        fc.constantFrom('31', '%last', '0x181f', '0x101f', '0x1c1f', '15'),
        fc.boolean(),
      )
      .map(
        ([a, b, by, mode, clamp, whether]) =>
          `and.b32 %x, ${by}, 31; shfl.sync.${mode}.b32 ${a}${whether ? '|%q0' : ''}, ${b}, ` +
          `%x, ${clamp}, %all;`,
      ),
    fc
      .tuple(r, r, fc.nat(31), fc.constantFrom('0', '0x1800', '0x1000', '0x1c00'))
      .map(([a, b, by, clamp]) => `shfl.sync.up.b32 ${a}|%q1, ${b}, ${by}, ${clamp}, -1;`),
    fc
      .tuple(
        r,
        r,
        fc.constantFrom('bfly', 'down', 'idx'),
        fc.nat(31),
        fc.constantFrom('%last', '0x181f', '0x101f', '0x1c1f', '15'),
      )
      .map(([a, b, mode, by, clamp]) => `shfl.sync.${mode}.b32 ${a}, ${b}, ${by}, ${clamp}, %all;`),
    // Only threads for which the predicate holds.
    fc
      .tuple(r, r)
      .map(
        ([a, b]) =>
          `vote.sync.ballot.b32 %y, %q0, -1; @!%q0 bra AROUND; shfl.sync.bfly.b32 ${a}, ` +
          `${b}, 1, 31, %y; vote.sync.any.pred %q1, %q1, %y; AROUND:`,
      ),
  )
  .map((line): Node => ({ kind: 'text', text: line }));

/** A comparison of a stepping value, which only decides its branch. */
export const steps = fc
  .tuple(
    fc.constantFrom('lt.s32', 'ge.s32', 'gt.u32', 'le.u32', 'lo.u32', 'hs.u32'),
    fc.constantFrom('%t', '%t8', '%down'),
    fc.constantFrom('0', '7', '16', '31', '64', '-3', '0x7ffffffe'),
    fc.boolean(),
  )
  .map(
    ([op, value, bound, swapped]) =>
      `setp.${op} %g#, ${swapped ? `${bound}, ${value}` : `${value}, ${bound}`};`,
  );

/** Reads or writes at the place of a loop's index. */
export const streaming = fc
  .oneof(
    fc
      .tuple(f, f)
      .map(
        ([a, b]) =>
          `and.b32 %z, %step, 1023; mad.wide.u32 %a, %z, 4, %in; ld.global.f32 ${b}, [%a]; ` +
          `add.f32 ${a}, ${a}, ${b};`,
      ),
    fc
      .tuple(r, r)
      .map(
        ([a, b]) =>
          `max.s32 %z, %step, 0; mad.wide.s32 %a, %z, 4, %in; ld.global.u32 ${b}, [%a]; ` +
          `add.u32 ${a}, ${a}, ${b};`,
      ),
    fc
      .tuple(r, r)
      .map(
        ([a, b]) =>
          `mul.wide.s32 %a, %step, 4; add.s64 %a, %a, %in; ld.global.u32 ${b}, [%a+32]; ` +
          `add.u32 ${a}, ${a}, ${b};`,
      ),
    // The written value is computed from the place, since several threads may write it.
    fc.constant(
      'mul.wide.s32 %a, %step, 4; add.s64 %a, %a, %out; st.global.u32 [%a+98304], %step;',
    ),
    r.map(
      (a) =>
        'mul.wide.s32 %a, %step, 4; add.s64 %o, %a, %in; add.s64 %a, %a, %out; ld.global.u32 ' +
        `${a}, [%o+32]; xor.b32 %z, ${a}, %step; st.global.u32 [%a+102400], %z;`,
    ),
  )
  .map((line): Node => ({ kind: 'text', text: line }));
