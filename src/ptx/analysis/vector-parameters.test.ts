// Registers that are vectors: their families, and functions that take and return them: inlined,
// called directly, and called through a pointer.

import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { Grid } from '../run-grid.test-support.js';

const HEAD = '.version 8.4\n.target sm_90\n.address_size 64\n';
const kernel = (body: string): string => `.visible .entry k(.param .u64 out) {
  .reg .b64 %o, %i; .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .v2 .u32 v; .reg .v4 .f32 w;
  ld.param.u64 %o, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %i, %r0, 16; add.u64 %o, %o, %i;
  ${body} ret; }\n`;

/** The 16 bytes that each of 32 threads leaves; thread t reads the words 4t to 4t + 3. */
function results(text: string, simd: boolean): number[][] {
  const grid = new Grid(HEAD + text, { simd });
  const out = grid.put(Uint32Array.from({ length: 128 }, (_, index) => index));
  expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [32] }).status).toBe(0);
  return Array.from({ length: 32 }, (_, thread) => [
    ...out.view.subarray(4 * thread, 4 * thread + 4),
  ]);
}

const SWAP =
  '.func (.reg .v2 .u32 r) swap(.reg .v2 .u32 a) { mov.u32 r.x, a.y; mov.u32 r.y, a.x; ret; }\n';
const CASES: readonly (readonly [string, string, (words: readonly number[]) => number[]])[] = [
  [
    'a vector as parameter and result',
    SWAP + kernel('ld.global.v2.u32 v, [%o]; call (v), swap, (v); st.global.v2.u32 [%o], v;'),
    ([a, b, c, d]) => [b!, a!, c!, d!],
  ],
  [
    'a result that is not wanted',
    SWAP + kernel('ld.global.v2.u32 v, [%o]; call (_), swap, (v); st.global.v2.u32 [%o], v;'),
    (words) => [...words],
  ],
  [
    'a vector of another type of the same width',
    SWAP +
      kernel(
        '.reg .v2 .f32 q; ld.global.v2.f32 q, [%o]; call (q), swap, (q); st.global.v2.f32 [%o], q;',
      ),
    ([a, b, c, d]) => [b!, a!, c!, d!],
  ],
  [
    'a result of another type, where the call is passed over by some',
    SWAP +
      kernel(`.reg .v2 .f32 q; .reg .pred p; ld.global.v2.f32 q, [%o]; setp.lt.u32 p, %r0, 9;
        @p call (q), swap, (q);
    st.global.v2.f32 [%o], q;`),
    ([a, b, c, d]) => (a! < 36 ? [b!, a!, c!, d!] : [a!, b!, c!, d!]),
  ],
  [
    'a scalar result of another type',
    '.func (.reg .b32 r) f(.reg .b32 a) { add.u32 r, a, 1; ret; ' +
      `}\n${kernel(`.reg .f32 q; ld.global.f32 q, [%o]; call (q), f, (q);
        st.global.f32 [%o], q;`)}`,
    ([a, ...rest]) => [a! + 1, ...rest],
  ],
  [
    'vectors beside scalars, and several results',
    `.func (.reg .v2 .u32 r, .reg .u32 s) f(.reg .u32 a, .reg .v2 .u32 b) {
      add.u32 r.x, b.x, a; mov.u32 r.y, b.y; sub.u32 s, b.y, a; ret; }
    ${kernel(`ld.global.v2.u32 v, [%o]; mov.u32 %r1, 7; call (v, %r2), f, (%r1, v);
      st.global.v2.u32 [%o], v; st.global.u32 [%o+8], %r2;`)}`,
    ([a, b, , d]) => [a! + 7, b!, (b! - 7) >>> 0, d!],
  ],
  [
    'elements of 16 bits',
    `.func (.reg .v2 .u16 r) f(.reg .v2 .u16 a) { add.u16 r.x, a.y, 1; mov.u16 r.y, a.x; ret; }
    ${kernel(`.reg .v2 .u16 q; ld.global.v2.u16 q, [%o]; call (q), f, (q);
      st.global.v2.u16 [%o], q;`)}`,
    ([a, ...rest]) => [(a! << 16) + 1, ...rest],
  ],
  [
    'four floats',
    `.func (.reg .v4 .f32 r) f(.reg .v4 .f32 a) { mov.f32 r.x, a.w; mov.f32 r.y, a.z;
      mov.f32 r.z, a.y; mov.f32 r.w, a.x; ret; }
    ${kernel('ld.global.v4.f32 w, [%o]; call (w), f, (w); st.global.v4.f32 [%o], w;')}`,
    (words) => [...words].reverse(),
  ],
  [
    'a function that is called really',
    `.func (.reg .v2 .u32 r) f(.reg .v2 .u32 a);
    .func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) { .reg .pred p; .reg .v2 .u32 b;
    setp.eq.u32 p, a.x, 0; @p bra D; sub.u32 b.x, a.x, 1; add.u32 b.y, a.y, a.x;
    call (r), f, (b); ret; D: mov.v2.u32 r, a; ret; }
    ${kernel('ld.global.v2.u32 v, [%o]; call (v), f, (v); st.global.v2.u32 [%o], v;')}`,
    ([a, b, c, d]) => [0, b! + (a! * (a! + 1)) / 2, c!, d!],
  ],
  [
    'a function that a pointer names',
    SWAP +
      kernel(`.reg .u64 f; mov.u64 f, swap;
        proto: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _);
    ld.global.v2.u32 v, [%o]; call (v), f, (v), proto; st.global.v2.u32 [%o], v;`),
    ([a, b, c, d]) => [b!, a!, c!, d!],
  ],
  [
    'a family of vectors',
    kernel(
      '.reg .v2 .b16 x<4>; ld.global.v2.b16 x1, [%o]; mov.b16 x3.y, x1.x; mov.b16 x3.x, 9; ' +
        'st.global.v2.b16 [%o], x3;',
    ),
    ([a, ...rest]) => [(a! << 16) + 9, ...rest],
  ],
  [
    'a family whose name ends in a digit',
    kernel('.reg .v2 .u32 x1<3>; mov.v2.u32 x12, {3, 4}; st.global.v2.u32 [%o], x12;'),
    ([, , c, d]) => [3, 4, c!, d!],
  ],
  [
    'vectors moved as another type',
    kernel('ld.global.v2.u32 v, [%o]; mov.v2.f32 v, {1.0, 0f40000000}; st.global.v2.u32 [%o], v;'),
    ([, , c, d]) => [0x3f800000, 0x40000000, c!, d!],
  ],
];

describe('registers that are vectors', () => {
  for (const simd of [false, true]) {
    it.each(CASES)(`${simd ? 'in lanes' : 'thread by thread'}: %s`, (_, text, reference) => {
      expect(results(text, simd)).toEqual(
        Array.from({ length: 32 }, (__, thread) =>
          reference([0, 1, 2, 3].map((word) => 4 * thread + word)),
        ),
      );
    });
  }

  it.each([
    [
      'more elements than the parameter has',
      `${SWAP}${kernel('call (v), swap, (w);')}`,
      "parameter 'a' takes a register of 2 elements",
    ],
    [
      'two vectors for one of as many elements',
      `.func f(.reg .v4 .u32 a) { ret; }\n${kernel('call f, (v, v);')}`,
      "'f' takes 1 parameters and returns 0, the call has 2 and 0",
    ],
    [
      'elements of another width',
      `.func f(.reg .v2 .b16 a) { ret; }\n${kernel('call f, (v);')}`,
      "parameter 'a' does not take this argument",
    ],
    [
      'a declaration with another vector',
      `.func f(.reg .v2 .u32 a);\n.func f(.reg .v4 .u32 a) { ret; }\n${kernel('')}`,
      'declared with other parameters',
    ],
    [
      'vectors in call-parameter space',
      `.func f(.param .v2 .u32 a) { ret; }\n${kernel('')}`,
      "the parameter 'a' may not be .v2 .u32",
    ],
    ['vectors of predicates', kernel('.reg .v2 .pred q;'), 'there are no vectors of predicates'],
    [
      'a member that the family does not have',
      kernel('.reg .v2 .u32 x<2>; st.global.v2.u32 [%o], x2;'),
      "undefined symbol 'x2'",
    ],
  ])('%s: refused', (_, text, message) => {
    expect(() => compilePtx(HEAD + text)).toThrow(message);
  });
});
