// A constant after a plus as part of an operand: `%r1+4` is the register's value plus 4 in every
// place where NVIDIA's assembler takes it, and an error elsewhere. Everything else that is written
// with an operand and has no meaning there is an error, too.

import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { formKernel } from '../rules/form-cases.test-support.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const DECLARED = `
  .reg .b64 %o, %i, %rd<6>; .reg .b32 %r<10>; .reg .b16 %h<4>; .reg .pred %p<3>;
  .reg .f32 %f<3>; .reg .b8 %c<2>;
  ld.param.u64 %o, [out]; mov.u32 %r9, %tid.x; mul.wide.u32 %i, %r9, 8; add.u64 %o, %o, %i;
  add.u32 %r1, %r9, 5; cvt.u64.u32 %rd1, %r1; cvt.u16.u32 %h1, %r1; setp.eq.u32 %p1, %r1, 5;`;

/**
 * The values of %rd2 in 32 threads; each thread starts with 5 and its number in %r1, %rd1 and %h1.
 */
function results(body: string, simd: boolean): bigint[] {
  const grid = new Grid(
    `${kernelText(
      'k',
      '.param .u64 out',
      `${DECLARED} ${body} st.global.u64 [%o], %rd2; ret;`,
    ).replace(
      /(\.visible|\.entry)/,
      `
    .func (.param .b32 twice) double(.param .b32 once) { .reg .b32 x; ld.param.b32 x, [once];
    add.u32 x, x, x; st.param.b32 [twice], x; ret; }
    $1`,
    )}`,
    { simd },
  );
  const out = grid.put(new BigUint64Array(32));
  expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [32] }).status).toBe(0);
  return [...out.view];
}

const OPERANDS: readonly (readonly [string, (n: bigint) => bigint])[] = [
  ['add.u32 %r2, %r1+3, 1; cvt.u64.u32 %rd2, %r2;', (n) => n + 4n],
  ['add.u32 %r2, 1, %r1+3; cvt.u64.u32 %rd2, %r2;', (n) => n + 4n],
  ['add.u32 %r1, %r1+3, %r1+4; cvt.u64.u32 %rd2, %r1;', (n) => 2n * n + 7n],
  ['mov.u32 %r2, %r1+(2*4); cvt.u64.u32 %rd2, %r2;', (n) => n + 8n],
  ['mov.u32 %r2, %r1+WARP_SZ; cvt.u64.u32 %rd2, %r2;', (n) => n + 32n],
  ['mov.b64 %rd2, %rd1+0x123456789abcdef1;', (n) => n + 0x123456789abcdef1n],
  ['add.u64 %rd2, %rd1+-5, 0;', (n) => n - 5n],
  ['mov.u32 %r2, %r1+5000000000; cvt.u64.u32 %rd2, %r2;', (n) => n + 705032704n],
  ['mov.u16 %h2, %h1+0xfffc; cvt.u64.u16 %rd2, %h2;', (n) => BigInt.asUintN(16, n - 4n)],
  ['cvt.u64.u16 %rd2, %h1+-3;', (n) => n - 3n],
  ['cvt.s64.s32 %rd2, %r1+-100;', (n) => BigInt.asUintN(64, n - 100n)],
  ['cvt.u64.u16 %rd2, %r1+-6;', (n) => BigInt.asUintN(16, n - 6n)],
  ['setp.eq.u32 %p2, %r1+1, 9; selp.u64 %rd2, 1, 0, %p2;', (n) => (n + 1n === 9n ? 1n : 0n)],
  ['selp.u64 %rd2, %rd1+2, %rd1+1, %p1;', (n) => n + (n === 5n ? 2n : 1n)],
  ['mov.u64 %rd2, 1; @%p1 mov.u64 %rd2, %rd1+2;', (n) => (n === 5n ? 7n : 1n)],
  ['mad.wide.u32 %rd2, %r1+1, %r1+2, %rd1+8;', (n) => (n + 1n) * (n + 2n) + n + 8n],
  ['shfl.sync.idx.b32 %r2, %r1+1, %r9+0, 31, -1; cvt.u64.u32 %rd2, %r2;', (n) => n + 1n],
  ['mov.u32 %r2, %laneid+3; cvt.u64.u32 %rd2, %r2;', (n) => n - 5n + 3n],
  ['st.global.u32 [%o], %r1+3; ld.global.u32 %rd2, [%o];', (n) => n + 3n],
  ['st.global.u8 [%o], %r1+254; ld.global.u8 %rd2, [%o];', (n) => BigInt.asUintN(8, n - 2n)],
  [
    'st.global.u32 [%o], %r1; ld.global.b8 %c1, [%o]; st.global.u8 [%o], %c1+254; ' +
      'ld.global.u8 %rd2, [%o];',
    (n) => BigInt.asUintN(8, n - 2n),
  ],
  [
    'st.global.u32 [%o], 1; atom.global.add.u32 %r2, [%o], %r1+3; ld.global.u32 %rd2, [%o];',
    (n) => n + 4n,
  ],
  [
    '{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1+1; call (r), double, (a); ' +
      'ld.param.b32 %r2, [r]; } cvt.u64.u32 %rd2, %r2;',
    (n) => 2n * n + 2n,
  ],
];

describe('a constant after a register is added to it', () => {
  for (const simd of [false, true]) {
    it.each(OPERANDS)(`${simd ? 'in lanes' : 'thread by thread'}: %s`, (body, reference) => {
      expect(results(body, simd)).toEqual(
        Array.from({ length: 32 }, (_, thread) => reference(BigInt(thread + 5))),
      );
    });
  }
});

function complaint(instruction: string): string | undefined {
  try {
    return compilePtx(formKernel(instruction, '9.0')).failures[0]?.error.message;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('text without a meaning next to an operand is rejected', () => {
  it.each([
    [
      'add.u32 %r1+3, %r2, 1;',
      "'%r1' is written: a result is a register, and nothing is added to it",
    ],
    ['add.u32 %r1+0, %r2, 1;', "'%r1' is written"],
    ['ld.global.u32 %r1+3, [%l1];', "'%r1' is written"],
    ['setp.eq.u32 %p1+1, %r1, 6;', "'%p1' is written"],
    ['setp.eq.u32 %p1|%p2+1, %r1, 6;', 'takes no constant here'],
    ['setp.eq.u32 %p1+1|%p2, %r1, 6;', 'expected'],
    ['setp.eq.and.u32 %p1, %r1, 6, %p2+1;', 'a constant is added to integers'],
    ['setp.eq.and.u32 %p1, %r1, 6, !%p2+1;', 'takes no constant here'],
    ['add.f32 %f1, %f2+3, %f2;', 'a constant is added to integers'],
    ['mov.b32 %r1, %f2+3;', 'a constant is added to integers'],
    ['mov.b128 %q1, %q2+3;', 'a constant is added to integers'],
    ['mov.u32 %r1, %tid.x+3;', "expected ';'"],
    ['mov.u32 %r1, %r2+1.5;', 'expected an integer'],
    ['mov.u32 %r1, %r2-1;', "write '+-'"],
    ['mov.b64 %l1, {%r1+3, %r2};', "'%r1' takes no constant here"],
    ['st.global.v2.u32 [%l1], {%r1+3, %r2};', "'%r1' takes no constant here"],
    ['vadd.u32.u32.u32 %r1, %r2.b0+3, %r3;', "expected ';'"],
    ['bra label+4;', 'expected a label'],
    ['call vprintf+4, (%l1, %l2);', 'expected a function'],
    ['ld.global.u32 %r1, [%l1, %r2];', "'ld' takes one address in brackets"],
    ['st.shared.u32 [%r1, 4], %r2;', "'st' takes one address in brackets"],
    ['st.global.u32 [%l1].unified, %r1;', "'.unified' is of global addresses in ld, ldu and atom"],
    ['ld.shared.u32 %r1, [%r2].unified;', "'.unified' is of global addresses in ld, ldu and atom"],
    ['ld.global.u32 %r1, [%l1].unified.unified;', "expected ';'"],
    ['mov.v2.u32 {%r1, %r2}, {%r3, %r4}, %r1;', "'mov' takes 2 operands"],
  ])('%s', (instruction, message) => {
    expect(complaint(instruction)).toContain(message);
  });

  it.each([
    'ld.global.u32 %r1, [%l1].unified;',
    'ld.u32 %r1, [%l1].unified;',
    'atom.global.add.u32 %r1, [%l1].unified, %r1;',
  ])('%s is taken', (instruction) => {
    expect(complaint(instruction)).toBeUndefined();
  });

  it('a constant after a function, whose address takes none', () => {
    const text =
      `.version 8.0\n.target sm_80\n.address_size 64\n.func f() { ret; }\n.visible .entry k() ` +
      '{ .reg .b64 %d; mov.u64 %d, f+8; ret; }';
    expect(() => compilePtx(text)).toThrow("nothing is added to 'f', which is a function");
  });
});
