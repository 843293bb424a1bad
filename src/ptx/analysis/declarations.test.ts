// What declarations may contain, by ptxas.

import { describe, expect, it } from 'vitest';
import { Grid } from '../run-grid.test-support.js';
import { compilePtx } from '../index.js';

const HEAD = '.version 9.0\n.target sm_90\n.address_size 64\n';
const kernel = (body: string, parameters = '', directives = ''): string =>
  `.visible .entry k(${parameters}) ${directives} { .reg .b32 %r<9>; .reg .f32 %f<9>; .reg ` +
  `.b64 %l<9>; ${body} ret; }`;
const compiles =
  (text: string): (() => unknown) =>
  () => {
    const { failures } = compilePtx(text.startsWith('.version') ? text : HEAD + text);
    if (failures[0]) throw failures[0].error;
  };

describe('declarations', () => {
  it.each([
    ['.shared .u32 x = 5;', 'no initial values'],
    ['.global .u32 x[];', 'has no size'],
    ['.common .const .u32 x;', '.common variables'],
    ['.global .v4 .f64 x;', 'larger than 16 bytes'],
    ['.global .bf16 x;', 'a type of instructions'],
    ['.global .f32 x = 1;', 'an integer is not'],
    ['.global .u32 x = 1.5;', 'a float is not'],
    ['.global .u32 y; .global .b64 x = y;', 'addresses are of type'],
    ['.global .u32 y; .global .u8 x = 0xff0(y);', 'a mask is'],
    ['.func f() .maxntid 32 { ret; }', 'no directive of functions'],
    ['.func f(.param .u32 a); .func f(.param .u64 a) { ret; }', 'other parameters'],
    ['.extern .func f() { ret; }', 'has no body here'],
    ['.func (.param .u32 a, .param .u32 b) f() { ret; }', 'must be registers'],
    ['.func f(.param .u64 .ptr a) { ret; }', '.ptr'],
    ['.func f() { .reg .u32 x; .reg .u32 x; ret; }', 'declared twice'],
    ['.func f() { .reg .u32 x<2>; mov.u32 x2, 0; ret; }', "undefined symbol 'x2'"],
    ['.func f() { bra L; }', "undefined label 'L'"],
    [kernel('', '', '.maxntid 32 .reqntid 32'), 'not both'],
    [kernel('', '.param .u32 a, .param .u32 a'), 'declared twice'],
    [kernel('', '', '.noreturn'), 'no directive of kernels'],
    [
      kernel('.shared .b8 x[49153]; mov.u32 %r1, x; st.shared.u32 [%r1], %r1;'),
      '49152 are the most',
    ],
    [
      '.extern .global .u32 x; ' + kernel('ld.global.u32 %r1, [x];'),
      "'x' is defined in another module",
    ],
    ['.extern .global .u32 x; .global .u64 p = x;', "'x' is defined in another module"],
    [
      '.extern .func f(.param .u32 a); ' +
        kernel('{ .param .u32 p; st.param.u32 [p], 3; call f, (p); }'),
      "'f' is defined in another module, and modules are not linked: link them",
    ],
    [
      '.extern .func f(.param .u32 a); ' + kernel('mov.u64 %l1, f;'),
      "'f' is defined in another module",
    ],
    ['.version 9.0\n.target sm_81\n.entry k() { ret; }', 'no .target'],
    ['.version 7.0\n.target sm_90\n.entry k() { ret; }', 'needs .version 7.8'],
  ])('%s', (text, message) => {
    expect(compiles(text)).toThrow(message);
  });
  it.each([
    '.global .u32 y[4]; .global .u32 x = y+4;',
    '.global .f32 x = 1.0 + 2.0;',
    '.const .f32 x = .5;',
    '.func (.reg .u32 r) f() { mov.u32 r, 1; ret; } ' + kernel('call (_), f;'),
    kernel('T: .branchtargets N<2>; brx.idx %r1, T; N0: N1:'),
    '.version 9.0\n.target compute_80\n.entry k() { ret; }',
  ])('%s is taken', (text) => {
    expect(compiles(text)).not.toThrow();
  });
});

describe('texts of before PTX 3.0', () => {
  const old = (version: string, target: string, body: string): string => `.version ${version}
    .target ${target}
    .reg .u32 %ra<3>; .reg .f32 sum; .local .align 4 .b8 kept[8];
    .func more { add.f32 sum, sum, 0f3F800000; st.local.u32 [kept+4], %ra1; ret; }
    .entry k(.param .u64 out) { .reg .u64 %o, %l; .reg .u32 %v; .reg .f64 %d;
    ld.param.u64 %o, [out]; ${body} exit; }`;
  it('registers and .local variables outside functions are per thread, in all functions', () => {
    const grid = new Grid(
      old(
        '1.4',
        'sm_10, map_f64_to_f32',
        `cvt.u32.u16 %ra1, %tid.x; mov.f32 sum, 0f40000000; call more; call more;
          mul.wide.u32 %l, %ra1, 8; add.u64 %o, %o, %l;
      ld.local.u32 %v, [kept+4]; st.global.f32 [%o], sum; st.global.u32 [%o+4], %v;`,
      ),
    );
    const out = grid.put(new Float32Array(8));
    grid.run('k', [{ i64: out.address }], { grid: [1], block: [4] });
    expect([...out.view].filter((_, index) => index % 2 === 0)).toEqual([4, 4, 4, 4]);
    expect(
      [1, 3, 5, 7].map((index) => new Uint32Array(out.view.buffer, out.view.byteOffset, 8)[index]),
    ).toEqual([0, 1, 2, 3]);
  });
  it('not in later ones, as in ptxas', () => {
    expect(compiles(old('3.0', 'sm_20', ''))).toThrow(
      'registers outside functions are of PTX before 3.0',
    );
    expect(compiles(HEAD + '.local .b8 x[4];' + kernel(''))).toThrow(
      '.local variables outside functions are of PTX before 3.0',
    );
  });
  it('nor for functions that recursion keeps from being inlined', () => {
    expect(compiles(old('2.3', 'sm_20', 'call more;').replace('ret;', 'call more; ret;'))).toThrow(
      'outside functions: not covered',
    );
  });
  it(
    'mad.f32 without a rounding is fma.rn.ftz before sm_20, fma.rn in PTX before 4.1, and ' +
      'refused later',
    () => {
      const product = (version: string, target: string): number => {
        // 1.5 × 2^-127 + 0
        const grid = new Grid(`.version ${version} .target ${target} .entry k(.param .u64 out) {
            .reg .u64 %o; .reg .f32 %f; ld.param.u64 %o, [out];
        mov.f32 %f, 0f00C00000; mad.f32 %f, %f, 0f3F000000, 0f00000000;
        st.global.f32 [%o], %f; exit; }`);
        const out = grid.put(new Uint32Array(1));
        grid.run('k', [{ i64: out.address }], { grid: [1], block: [1] });
        return out.view[0]!;
      };
      expect(product('1.4', 'sm_13')).toBe(0);
      expect(product('3.1', 'sm_20')).toBe(0x00600000);
      expect(() => product('4.1', 'sm_20')).toThrow("'mad.f32'");
    },
  );
  it('map_f64_to_f32 is an option of targets without f64, and f64 with it is refused', () => {
    expect(
      compiles(old('1.4', 'sm_10, map_f64_to_f32', 'mov.f64 %d, 0d3FF0000000000000;')),
    ).toThrow('f64 under map_f64_to_f32');
    expect(compiles(old('2.3', 'sm_20, map_f64_to_f32', ''))).toThrow(
      'map_f64_to_f32 is for .target sm_10 to sm_12, not sm_20',
    );
  });
});

describe('arguments of calls', () => {
  const functions = '.func f(.param .align 8 .b8 a[16]) { ret; } .func g(.param .f32 a) { ret; }';
  it.each([
    '.param .align 8 .b8 q[12]; call f, (q);',
    '.param .b32 q[4]; .param .align 8 .b8 s[20]; call f, (s);',
    '.param .u64 q; call g, (q);',
    '.param .u32 q; call g, (q);',
  ])('%s', (body) => {
    expect(compiles(functions + kernel(`{ ${body} }`))).toThrow('does not take this argument');
  });
});

describe('operands', () => {
  it.each([
    'add.f32 %f1, %f2, 1;',
    'add.u32 %r1, %r2, 1.5;',
    'mov.b32 %r1, 0d3ff0000000000000;',
    'and.b32 %r1, %r2, {%r3};',
    'prefetch.global.L1 %l1;',
    'popc.b32 _, %r1;',
    'membar.gl 5;',
    'ld.global.u32 %f1, [%l1];',
    'ld.global.u32 %r1, [%f1];',
    'mov.u64 %l1, %laneid;',
    'mov.u32 %r1, %is_explicit_cluster;',
    '.shared .u32 s; ld.global.u32 %r1, [s];',
    '.shared .u32 s; add.u32 %r1, %r2, s;',
    'abs.s32 %r1, %r2, %r3;',
  ])('%s is refused', (body) => {
    expect(compiles(kernel(body))).toThrow();
  });
  it.each([
    'add.f32 %f1, %f2, 1.5;',
    'mov.b32 %r1, 0f3f800000;',
    'mov.b64 %l1, 1.5;',
    'cvt.u64.u32 %l1, %clock64;',
    'mov.u16 %h, %tid.x;',
    'mov.u32 %r1, %gridid;',
    '.reg .v4 .f32 v; ld.global.v4.f32 v, [%l1]; st.global.v4.f32 [%l1], v;',
    'atom.global.add.v2.f32 _, [%l1], {%f1, %f2};',
  ])('%s is taken', (body) => {
    expect(compiles(kernel(`.reg .b16 %h; ${body}`))).not.toThrow();
  });
});

it('bytes of addresses, addresses of 32 bits and computed floats have their values', () => {
  const bytes = Array.from(
    { length: 8 },
    (_, byte) => `0x${(0xffn << BigInt(8 * byte)).toString(16)}(y+2)`,
  ).join(', ');
  const grid = new Grid(`${HEAD}.global .align 8 .b8 pad[24]; .global .align 8 .b8 y[8];
      .global .align 8 .u8 parts[8] = {${bytes}}; .global .u32 low = y+3; .global .u64 whole = y;
    .global .f64 x = (1.5 + 2.0) * 4.0 / 2.0;
    .visible .entry k(.param .u64 out) { .reg .b64 %l<6>; .reg .b32 %r;
    ld.param.u64 %l0, [out]; ld.global.u64 %l1, [parts]; st.global.u64 [%l0], %l1;
    ld.global.u32 %r, [low]; cvt.u64.u32 %l2, %r; st.global.u64 [%l0+8], %l2;
    ld.global.u64 %l3, [whole]; st.global.u64 [%l0+16], %l3; ld.global.b64 %l4, [x];
    st.global.b64 [%l0+24], %l4; ret; }`);
  const out = grid.put(new BigUint64Array(4));
  expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [1] }).status).toBe(0);
  const address = out.view[2]!;
  expect(address % 8n).toBe(0n);
  expect([...out.view]).toEqual([
    address + 2n,
    address + 3n,
    address,
    new BigUint64Array(new Float64Array([7]).buffer)[0]!,
  ]);
});

it('vectors move as a whole, even if they overlap, and special registers are vectors, too', () => {
  const grid = new Grid(`${HEAD}.visible .entry k(.param .u64 out) { .reg .b64 %l; .reg .v2 .b32 w;
    .reg .b32 %r<4>; ld.param.u64 %l, [out];
    mov.u32 w.x, 5; mov.u32 w.y, 7; mov.v2.u32 {w.y, w.x}, w; st.global.v2.u32 [%l], w;
    mov.v4.u32 {%r0, %r1, %r2, %r3}, %ntid; st.global.v4.u32 [%l+16], {%r0, %r1, %r2, %r3};
    ret; }`);
  const out = grid.put(new Uint32Array(8));
  expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [3, 2, 1] }).status).toBe(0);
  expect([...out.view]).toEqual([7, 5, 0, 0, 3, 2, 1, 0]);
});
