// .global and .const variables that are declared inside functions.

import { describe, expect, it } from 'vitest';
import { compilePtx } from '../index.js';
import { Grid } from '../run-grid.test-support.js';

const HEAD = '.version 8.4\n.target sm_90\n.address_size 64\n';
const kernel = (body: string): string => `.visible .entry k(.param .u64 out) {
  .reg .b64 %o, %d<4>; .reg .b32 %r<9>; ld.param.u64 %o, [out]; ${body} ret; }\n`;

function words(text: string, launches = 1): number[] {
  const grid = new Grid(HEAD + text);
  const out = grid.put(new Uint32Array(4));
  for (let launch = 0; launch < launches; launch++)
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [1] }).status).toBe(0);
  return [...out.view];
}

describe('a variable of a function', () => {
  it('has the initial value that it is declared with, in .global and in .const', () => {
    expect(
      words(
        kernel(`.global .u32 g[2] = {5, 6}; .const .u32 c = 7, d[2] = {8, 9};
      ld.global.u32 %r1, [g+4]; st.global.u32 [%o], %r1; ld.const.u32 %r1, [c];
      st.global.u32 [%o+4], %r1; ld.const.u32 %r1, d[1]; st.global.u32 [%o+8], %r1;`),
      ),
    ).toEqual([6, 7, 9, 0]);
  });
  it('keeps its value from launch to launch', () => {
    expect(
      words(
        kernel(
          '.global .u32 count = 5; ld.global.u32 %r1, [count]; add.u32 %r1, %r1, 1; ' +
            'st.global.u32 [count], %r1; st.global.u32 [%o], %r1;',
        ),
        3,
      )[0],
    ).toBe(8);
  });
  it('is one, however often its function is called and inlined', () => {
    expect(
      words(
        `.func (.reg .u32 n) next() { .global .u32 count = 5;
          atom.global.add.u32 n, [count], 1; ret; }\n${kernel(
            `call (%r1), next; st.global.u32 [%o], %r1;
            call (%r1), next; st.global.u32 [%o+4], %r1;`,
          )}`,
      ),
    ).toEqual([5, 6, 0, 0]);
  });
  it("hides the module's and those of outer blocks, in its own block only", () => {
    expect(
      words(
        `.global .u32 g = 1;\n${kernel(`{ .global .u32 g = 2; { .global .u32 g = 3;
          ld.global.u32 %r1, [g]; st.global.u32 [%o], %r1; } ld.global.u32 %r1, [g];
          st.global.u32 [%o+4], %r1; }
      ld.global.u32 %r1, [g]; st.global.u32 [%o+8], %r1; { .global .u32 g = 4;
      ld.global.u32 %r1, [g]; st.global.u32 [%o+12], %r1; }`)}`,
      ),
    ).toEqual([3, 2, 1, 4]);
  });
  it('initial values take addresses of outer variables; each kernel has its own variable', () => {
    expect(
      words(`.global .u32 a[4] = {1, 2, 3, 4};\n${kernel(`.global .u32 b[2] = {5, 6};
      .global .u64 p[2] = {a+8, generic(b)};
      ld.global.u64 %d1, [p]; ld.global.u32 %r1, [%d1]; st.global.u32 [%o], %r1;
      ld.global.u64 %d1, [p+8]; ld.u32 %r1, [%d1+4]; st.global.u32 [%o+4], %r1;`)}
      .visible .entry other() { .global .u32 b = 9; ret; }`),
    ).toEqual([3, 6, 0, 0]);
  });
  it('cannot be found by the host by its name', () => {
    expect(compilePtx(HEAD + kernel('.global .u32 g = 1;')).variables).toMatchObject([
      { name: 'k::g', visible: false },
    ]);
  });
  it.each([
    ['twice in a block', kernel('.global .u32 g; .const .u32 g;'), "variable 'g' is defined twice"],
    [
      'visible',
      kernel('.visible .global .u32 g;'),
      "'g' is inside a function, where nothing is .visible",
    ],
    [
      'named outside its block',
      kernel('{ .global .u32 g; } ld.global.u32 %r1, [g];'),
      "undefined symbol 'g'",
    ],
    [
      'named by a variable of the module',
      `${kernel('.global .u32 g;')}.global .u64 p = g;`,
      "undefined symbol 'g'",
    ],
    ['a texture', kernel('.global .texref t;'), 'textures are declared outside functions'],
  ])('%s: refused', (_, text, message) => {
    expect(() => compilePtx(HEAD + text)).toThrow(message);
  });
});
