// Places of variables: alignment, and the static, dynamic and reserved parts of shared memory.

import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Launch } from '../run-grid.test-support.js';

const START = `.reg .b64 %o, %p; .reg .b32 %t, %u, %v, %w, %x; .reg .pred %q;
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 4, %o;`;

function run(
  before: string,
  body: string,
  launch: Launch,
  simd = false,
): { out: number[]; grid: Grid } {
  const grid = new Grid(kernelText('k', '.param .u64 out', `${START}\n${body}`, before), { simd });
  const { address, view } = grid.put(new Uint32Array(launch.block[0]));
  expect(grid.run('k', [{ i64: address }], launch).status).toBe(STATUS.done);
  return { out: [...view], grid };
}

describe('local variables', () => {
  const misaligned =
    '{ .reg .b64 %a; mov.u64 %a, wide; cvt.u32.u64 %v, %a; and.b32 %v, %v, 127; mov.u64 %a, ' +
    'half; cvt.u32.u64 %w, %a; and.b32 %w, %w, 63; or.b32 %v, %v, %w; }';
  it.each([false, true])('of a kernel keep their alignment; in lanes: %s', (simd) => {
    const { out } = run(
      '',
      `.local .align 1 .b8 odd[3]; .local .align 128 .b8 wide[4]; .local .align 64 .b8 half[20];
      st.local.u8 [odd+2], %t; st.local.u32 [wide], %t; st.local.u32 [half+16], %t; bar.sync 0;
      ${misaligned} ld.local.u32 %w, [wide]; ld.local.u32 %x, [half+16]; add.u32 %w, %w, %x;
        mad.lo.u32 %v, %v, 1000, %w; st.global.u32 [%p], %v; ret;`,
      { grid: [1], block: [96] },
      simd,
    );
    expect(out).toEqual(out.map((_, t) => 2 * t));
  });
  // Scratch memory begins at a multiple of 128: a larger alignment is computed when the block runs.
  it.each(
    [256, 1024, 65536].flatMap((align) => [
      { align, simd: false },
      { align, simd: true },
    ]),
  )('keep an alignment of $align; in lanes: $simd', ({ align, simd }) => {
    // %v has the bits of an address below the alignment; each thread's variables keep what it
    // wrote, also after a barrier.
    const { out } = run(
      '',
      `.local .align 1 .b8 odd[3]; .local .align ${align} .b8 wide[20];
      .local .align 4 .b8 last[4]; .reg .b64 %a, %b;
      mov.u64 %a, wide; cvta.local.u64 %b, %a; cvt.u32.u64 %v, %a; cvt.u32.u64 %w, %b;
      or.b32 %v, %v, %w; and.b32 %v, %v, ${align - 1};
      st.local.u8 [odd+2], %t; st.local.u32 [wide+16], %t; st.local.u32 [last], %t; bar.sync 0;
      ld.u32 %w, [%b+16]; ld.local.u32 %x, [last]; ld.local.u8 %u, [odd+2];
      add.u32 %w, %w, %x; add.u32 %w, %w, %u; mad.lo.u32 %v, %v, 1000, %w;
      st.global.u32 [%p], %v; ret;`,
      { grid: [3], block: [70] },
      simd,
    );
    expect(out).toEqual(out.map((_, t) => 3 * t));
  });
  it('of a function that calls itself keep an alignment of 4096', () => {
    // The result counts the calls; above the count are bits of addresses below the alignment, and
    // bits of %n that were lost.
    const before = `.func (.param .b32 r) deep(.param .b32 n)
{ .reg .b32 %v, %w, %n, %less, %r; .reg .b64 %a; .reg .pred %q; .local .align 1 .b8 odd[17];
.local .align 4096 .b8 wide[4];
      ld.param.u32 %n, [n]; mov.u64 %a, wide; cvt.u32.u64 %v, %a; and.b32 %v, %v, 4095;
      st.local.u32 [wide], %n; mov.u32 %r, 0; setp.eq.u32 %q, %n, 0; @%q bra end;
      sub.u32 %less, %n, 1;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %less; call.uni (b), deep, (a);
      ld.param.b32 %r, [b]; }
      end: ld.local.u32 %w, [wide]; xor.b32 %w, %w, %n; or.b32 %v, %v, %w; shl.b32 %v, %v, 8;
      add.u32 %r, %r, 1; add.u32 %r, %r, %v; st.param.b32 [r], %r; ret; }`;
    const { out } = run(
      before,
      '{ .param .b32 a; .param .b32 b; st.param.b32 [a], %t; call.uni (b), deep, (a); ' +
        'ld.param.b32 %v, [b]; } st.global.u32 [%p], %v; ret;',
      { grid: [1], block: [5] },
    );
    expect(out).toEqual([1, 2, 3, 4, 5]);
  });
  it('of a function that calls itself keep their alignment', () => {
    const before = `.func (.param .b32 r) deep(.param .b32 n)
{ .reg .b32 %v, %w, %n; .reg .pred %q; .local .align 1 .b8 odd[17];
.local .align 128 .b8 wide[4]; .local .align 64 .b8 half[20];
      ld.param.u32 %n, [n]; ${misaligned} st.local.u32 [wide], %n; setp.eq.u32 %q, %n, 0;
      @%q bra end; sub.u32 %n, %n, 1;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; call.uni (b), deep, (a);
      ld.param.b32 %w, [b]; } or.b32 %v, %v, %w;
      end: ld.local.u32 %w, [wide]; shl.b32 %w, %w, 8; or.b32 %v, %v, %w;
      st.param.b32 [r], %v; ret; }`;
    const { out } = run(
      before,
      '{ .param .b32 a; .param .b32 b; st.param.b32 [a], %t; call.uni (b), deep, (a); ' +
        'ld.param.b32 %v, [b]; } st.global.u32 [%p], %v; ret;',
      { grid: [1], block: [5] },
    );
    expect(out).toEqual([0, 0x100, 0x300, 0x300, 0x700]);
  });
});

describe('shared memory', () => {
  const sum = `.extern .shared .align 4 .b8 dyn[];
.func (.param .b32 r) sum(.param .b32 n)
{ .reg .b32 %n, %m, %a; .reg .pred %q; ld.param.u32 %n, [n]; ld.shared.u32 %a, [dyn];
setp.eq.u32 %q, %n, 0; @%q bra end; sub.u32 %n, %n, 1;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %n; call.uni (b), sum, (a);
      ld.param.b32 %m, [b]; } add.u32 %a, %a, %m;
      end: mov.u32 %m, %dynamic_smem_size; mad.lo.u32 %a, %m, 1000, %a; st.param.b32 [r], %a;
      ret; }`;
  it('is dynamic for functions where it is for the kernel that calls them', () => {
    const { out } = run(
      sum,
      `.shared .align 4 .b8 own[100]; mad.lo.u32 %w, %t, 4, 0; mov.u32 %x, own;
      add.u32 %x, %x, %w; st.shared.u32 [%x], %t;
      setp.eq.u32 %q, %t, 0; @%q st.shared.u32 [dyn], 5; bar.sync 0;
      { .param .b32 a; .param .b32 b; st.param.b32 [a], %t; call.uni (b), sum, (a);
      ld.param.b32 %v, [b]; }
      ld.shared.u32 %w, [%x]; shl.b32 %w, %w, 24; or.b32 %v, %v, %w; st.global.u32 [%p], %v; ret;`,
      { grid: [1], block: [8], dynamicShared: 64 },
    );
    expect(out).toEqual(out.map((_, t) => (t + 1) * 64005 + t * 2 ** 24));
  });
  it('counts what aligns its dynamic part among its static bytes', () => {
    const { out, grid } = run(
      '.extern .shared .align 512 .b8 dyn[];',
      `.shared .align 4 .b8 own[20]; st.shared.u32 [own+16], 1; mov.u32 %v, dyn;
      mad.lo.u32 %w, %t, 4, %v; st.shared.u32 [%w], %t;
      mov.u32 %x, own; sub.u32 %v, %v, %x; mov.u32 %x, %dynamic_smem_size; add.u32 %v, %v, %x;
      st.global.u32 [%p], %v; ret;`,
      { grid: [1], block: [32], dynamicShared: 128 },
    );
    expect(grid.kernel('k')).toMatchObject({ sharedBytes: 512, sharedAlign: 512 });
    expect(new Set(out)).toEqual(new Set([512 + 128]));
  });
  it('has a reserved part, which is not that of any variable', () => {
    const { out } = run(
      '',
      `.shared .align 4 .b8 own[128]; mad.lo.u32 %w, %t, 4, 0; mov.u32 %x, own;
      add.u32 %x, %x, %w; mov.u32 %u, %reserved_smem_offset_1; add.u32 %w, %u, %w;
      st.shared.u32 [%x], %t; st.shared.u32 [%w], 7; st.shared.u32 [%w+128], 7; bar.sync 0;
      ld.shared.u32 %v, [%x];
      mov.u32 %w, %reserved_smem_offset_end; sub.u32 %w, %w, %u; setp.lt.u32 %q, %w, 288;
      @%q mov.u32 %v, 999;
      mov.u32 %u, %reserved_smem_offset_begin; mov.u32 %w, %reserved_smem_offset_end;
      sub.u32 %w, %w, %u; mov.u32 %u, %reserved_smem_offset_cap; setp.ne.u32 %q, %w, %u;
      @%q mov.u32 %v, 998;
      st.global.u32 [%p], %v; ret;`,
      { grid: [1], block: [32] },
    );
    expect(out).toEqual(out.map((_, t) => t));
  });
  it('has room for external variables that have a size, as ptxas gives it; in lanes too', () => {
    const before =
      '.extern .shared .align 8 .b8 first[128]; .extern .shared .align 4 .u32 single; ' +
      '.extern .shared .align 16 .b8 dyn[];';
    const body = `mov.u32 %x, first; mad.lo.u32 %w, %t, 4, %x; st.shared.u32 [%w], %t;
      st.shared.u32 [single], 5; mov.u32 %u, dyn; mad.lo.u32 %u, %t, 4, %u; st.shared.u32 [%u], 7;
      bar.sync 0; ld.shared.u32 %v, [%w]; ld.shared.u32 %u, [single];
      mad.lo.u32 %v, %v, 1000, %u; st.global.u32 [%p], %v; ret;`;
    for (const simd of [false, true]) {
      const { out, grid } = run(before, body, { grid: [1], block: [32], dynamicShared: 128 }, simd);
      expect(out).toEqual(out.map((_, t) => 1000 * t + 5));
      expect(grid.kernel('k')).toMatchObject({ sharedBytes: 144 });
    }
  });
});

describe('shared memory in which no variable is', () => {
  const launch: Launch = { grid: [1], block: [64], dynamicShared: 512 };
  it.each([false, true])('begins at address 0; in lanes: %s', (simd) => {
    const { out } = run(
      '',
      `.reg .b64 %a; mul.wide.u32 %a, %t, 4; st.shared.u32 [%a], %t;
      mad.lo.u32 %w, %t, 4, 256; st.shared::cta.u32 [%w], 7; bar.sync 0;
      xor.b32 %w, %w, 4; ld.shared.u32 %v, [%w+-256]; mov.u32 %u, 0;
      ld.shared.u32 %u, [%u+12]; ld.shared.u32 %w, [%w]; mad.lo.u32 %v, %v, 100, %u;
      mad.lo.u32 %v, %v, 10, %w; st.global.u32 [%p], %v; ret;`,
      launch,
      simd,
    );
    expect(out).toEqual(out.map((_, t) => ((t ^ 1) * 100 + 3) * 10 + 7));
  });
  it.each([false, true])('takes atomics, copies and generic addresses; in lanes: %s', (simd) => {
    const { out } = run(
      '',
      `.reg .b64 %a, %b; mul.wide.u32 %a, %t, 4; cvta.shared.u64 %b, %a; st.u32 [%b], %t;
      cvta.to.shared.u64 %b, %b; bar.sync 0;
      setp.eq.u64 %q, %a, %b; selp.u32 %v, 1000, 0, %q; @%q cvta.shared.u64 %b, %b;
      @%q cvta.to.shared.u64 %b, %b; atom.shared.add.u32 %u, [%b], 1; mov.u32 %x, 256;
      red.shared.add.u32 [%x], 1; bar.sync 0;
      ld.shared.u32 %w, [%a]; add.u32 %v, %v, %w; st.global.u32 [%p], %v;
      cp.async.ca.shared.global [%a], [%p], 4; cp.async.wait_all; bar.sync 0;
      ld.shared.u32 %w, [%a]; ld.shared.u32 %u, [%x]; mad.lo.u32 %w, %u, 10000, %w;
      st.global.u32 [%p], %w; ret;`,
      launch,
      simd,
    );
    expect(out).toEqual(out.map((_, t) => 640000 + 1001 + t));
  });
  it('ends at the size that the launch gives', () => {
    const grid = new Grid(
      kernelText(
        'k',
        '.param .u64 out',
        `${START} mad.lo.u32 %w, %t, 4, 508; st.shared.u32 [%w], %t; ret;`,
      ),
    );
    expect(grid.run('k', [{ i64: 0 }], launch).fault?.thread).toBe(1);
  });
  it('is the same for functions that stay functions', () => {
    const before = `.func put(.param .b64 at, .param .b32 n)
{ .reg .b32 %n, %m; .reg .b64 %a; .reg .pred %q; ld.param.u64 %a, [at]; ld.param.u32 %n, [n];
st.shared.u32 [%a], %n; setp.lt.u32 %q, %n, 1000; @%q bra end; sub.u32 %n, %n, 1000;
      { .param .b64 a; .param .b32 b; st.param.b64 [a], %a; st.param.b32 [b], %n;
      call.uni put, (a, b); } end: ret; }`;
    const { out } = run(
      before,
      `.reg .b64 %a; mul.wide.u32 %a, %t, 4; add.u32 %v, %t, 3000; { .param .b64 a;
      .param .b32 b; st.param.b64 [a], %a; st.param.b32 [b], %v; call.uni put, (a, b); }
      ld.shared.u32 %v, [%a]; st.global.u32 [%p], %v; ret;`,
      launch,
    );
    expect(out).toEqual(out.map((_, t) => t));
  });
});

describe('isspacep', () => {
  it("finds the kernel's parameters in a function that it calls", () => {
    const before = `.func (.param .b32 r) count(.param .b64 at, .param .b32 n)
{ .reg .b32 %n, %m, %v; .reg .b64 %a; .reg .pred %p, %g, %q; ld.param.u64 %a, [at];
ld.param.u32 %n, [n]; isspacep.param %p, %a; isspacep.global %g, %a; selp.u32 %v, 1, 0, %p;
selp.u32 %m, 16, 0, %g; add.u32 %v, %v, %m;
      setp.eq.u32 %q, %n, 0; @%q bra end; sub.u32 %n, %n, 1; { .param .b64 a;
      .param .b32 b, c; st.param.b64 [a], %a; st.param.b32 [b], %n;
      call.uni (c), count, (a, b); ld.param.b32 %m, [c]; } add.u32 %v, %v, %m;
      end: st.param.b32 [r], %v; ret; }`;
    const ask = (place: string): string =>
      `{ .param .b64 a; .param .b32 b, c; st.param.b64 [a], ${place}; st.param.b32 [b], %t; ` +
      'call.uni (c), count, (a, b); ld.param.b32 %w, [c]; }';
    const { out } = run(
      before,
      `.reg .b64 %a; mov.b64 %a, out; cvta.param.u64 %a, %a; ${ask('%a')} mov.u32 %v, %w;
        ${ask('%o')} mad.lo.u32 %v, %w, 256, %v;
      st.global.u32 [%p], %v; ret;`,
      { grid: [1], block: [4] },
    );
    expect(out).toEqual([0x1001, 0x2002, 0x3003, 0x4004]);
  });
});
