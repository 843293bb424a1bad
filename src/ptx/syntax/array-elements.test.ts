// `a[2]` and `a[%r1+1]`: elements in ld and st, their addresses in mov and cvta.

import { describe, expect, it } from 'vitest';
import { STATUS, compilePtx } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const BEFORE = `.global .align 4 .u32 a[8] = {10, 11, 12, 13, 14, 15, 16, 17};
.global .align 2 .u16 grid[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
.global .align 16 .v4 .f32 four[2] = {{1.0, 2.0, 3.0, 4.0}, {5.0, 6.0, 7.0, 8.0}};
.const .align 8 .u64 wide[3] = {100, 200, 300};`;
const HEAD = `.reg .b64 %o, %p, %rd<4>; .reg .b32 %t, %v, %w, %i<4>; .reg .s16 %h;
  .reg .b16 %b; .reg .f32 %f<4>; .reg .pred %q;
  .shared .align 4 .u32 sh[64]; .local .align 4 .s32 lo[4];
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 4, %o;`;

/** The values of %v in eight threads, in both back ends. */
function values(body: string): number[] {
  const [scalar, lanes] = [false, true].map((simd) => {
    const grid = new Grid(
      kernelText('k', '.param .u64 out', `${HEAD}\n${body}\nst.global.u32 [%p], %v; ret;`, BEFORE),
      { simd },
    );
    expect(grid.module.failures).toEqual([]);
    const out = grid.put(new Uint32Array(8));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [8] }).status).toBe(
      STATUS.done,
    );
    return [...out.view];
  });
  expect(lanes).toEqual(scalar);
  return scalar!;
}

const each = (value: (t: number) => number): number[] =>
  Array.from({ length: 8 }, (_, t) => value(t));

describe('an element of an array', () => {
  it.each([
    ['ld.global.u32 %v, a[3];', each(() => 13)],
    ['ld.global.u32 %v, a[%t];', each((t) => 10 + t)],
    ['xor.b32 %i0, %t, 7; @%q bra next; next: ld.global.u32 %v, a[%i0];', each((t) => 17 - t)],
    ['sub.u32 %i0, %t, 1; ld.global.u32 %v, a[%i0+1];', each((t) => 10 + t)],
    ['cvt.u64.u32 %rd0, %t; ld.global.u32 %v, a[%rd0];', each((t) => 10 + t)],
    ['cvt.u16.u32 %h, %t; ld.global.u32 %v, a[%h];', each((t) => 10 + t)],
    ['mov.u64 %rd0, a[2+1]; ld.global.u32 %v, [%rd0+4];', each(() => 14)],
    ['mov.u64 %rd0, a[%t]; ld.global.u32 %v, [%rd0];', each((t) => 10 + t)],
    ['cvta.global.u64 %rd0, a[5]; ld.u32 %v, [%rd0];', each(() => 15)],
    // There is one index, whatever the dimensions: it counts the elements in order.
    ['ld.global.u16 %b, grid[6]; cvt.u32.u16 %v, %b;', each(() => 7)],
    ['ld.global.v4.f32 {%f0, %f1, %f2, %f3}, four[1]; cvt.rzi.u32.f32 %v, %f2;', each(() => 7)],
    [
      'and.b32 %i0, %t, 1; ld.const.u64 %rd0, wide[%i0+1]; cvt.u32.u64 %v, %rd0;',
      each((t) => ((t & 1) === 1 ? 300 : 200)),
    ],
    [
      'st.shared.u32 sh[%t], %t; bar.sync 0; xor.b32 %i0, %t, 1; ld.shared.u32 %v, sh[%i0];',
      each((t) => t ^ 1),
    ],
    ['mov.u32 %i0, sh[2]; mov.u32 %i1, sh; sub.u32 %v, %i0, %i1;', each(() => 8)],
    ['mov.u32 %i0, sh[%t]; mov.u32 %i1, sh; sub.u32 %v, %i0, %i1;', each((t) => 4 * t)],
    ['and.b32 %i0, %t, 3; st.local.u32 lo[%i0], %t; ld.local.s32 %v, lo[%i0];', each((t) => t)],
    [
      'mov.u32 %v, 1; setp.eq.u32 %q, %t, 2; @%q ld.global.u32 %v, a[%t];',
      each((t) => (t === 2 ? 12 : 1)),
    ],
    [
      '{ .reg .b32 %inner<2>; .shared .align 8 .u64 other[8]; mov.u32 %inner1, %t; mov.u64 ' +
        '%rd0, 40; st.shared.u64 other[%inner1], %rd0; ld.shared.u64 %rd1, other[%inner1]; ' +
        'cvt.u32.u64 %v, %rd1; }',
      each(() => 40),
    ],
  ])('%s', (body, expected) => {
    expect(values(body)).toEqual(expected);
  });

  it.each([
    ['ld.global.u32 %v, %o[1];', "'%o' is no array"],
    ['ld.param.u64 %o, out[0];', "'out' is no array"],
    ['ld.global.u32 %v, nowhere[1];', "'nowhere' is no array"],
    [
      'ld.global.u32 %v, a[%f0];',
      "'%f0' is no index: an integer, or a register of 16, 32 or 64 bits",
    ],
    ['ld.global.u32 %v, a[%unknown];', "'%unknown' is no index"],
    ['ld.global.u32 %v, a[1.5];', 'expected an index'],
    ['ld.global.u32 %v, a[%t-1];', "write '+-' for '-'"],
    ['ld.global.u32 %v, [a[1]];', "expected ']'"],
    ['ld.global.u32 %v, a[1][2];', "';' after 'ld'"],
    [
      'add.u32 %v, a[1], 2;',
      "'add' takes no element of an array: write its address into a register with mov.u64, and " +
        'use [%rd1]',
    ],
    ['atom.global.add.u32 %v, a[1], 2;', "'atom' takes no element of an array"],
    ['mov.b64 %rd0, {%v, a[1]};', 'an element of an array cannot be a part of an operand'],
  ])('%s is refused', (body, message) => {
    expect(() =>
      compilePtx(kernelText('k', '.param .u64 out', `${HEAD}\n${body}\nret;`, BEFORE)),
    ).toThrow(message);
  });
});
