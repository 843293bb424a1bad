// Loads and stores of every width, the state spaces, and memory that a thread allocates on its own
// stack.

import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

function run(
  body: string,
  options: { before?: string; threads?: number } = {},
): { out: Uint32Array; outcome: ReturnType<Grid['run']> } {
  const grid = new Grid(
    kernelText(
      'k',
      '.param .u64 in, .param .u64 out, .param .u32 number',
      `.reg .b64 %i, %o, %l<6>; .reg .b32 %r<12>, %t; .reg .b16 %h<4>; .reg .pred %p;
        .reg .b128 %q<3>; .reg .f32 %f<9>;
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; ${body} ret;`,
      options.before,
    ),
  );
  const input = grid.put(
    Uint32Array.from({ length: 64 }, (_, index) => 0x80000000 + index * 0x01010101),
  );
  const out = grid.put(new Uint32Array(256));
  const outcome = grid.run('k', [{ i64: input.address }, { i64: out.address }, { i32: 42 }], {
    grid: [1],
    block: [options.threads ?? 1],
  });
  return { out: out.view, outcome };
}
const source = Array.from({ length: 64 }, (_, index) => (0x80000000 + index * 0x01010101) >>> 0);

describe('wide accesses', () => {
  it('128 bits: load, store, move, from and to parts', () => {
    const { out } =
      run(`ld.global.b128 %q0, [%i+16]; st.global.b128 [%o], %q0; mov.b128 {%l0, %l1}, %q0;
      mov.b128 %q1, {%l1, %l0}; mov.b128 %q2, %q1; st.global.b128 [%o+16], %q2;
      mov.b64 {%r0, %r1}, %l1; st.global.u32 [%o+32], %r1;`);
    expect([...out.subarray(0, 9)]).toEqual(
      [4, 5, 6, 7, 6, 7, 4, 5, 7].map((index) => source[index]),
    );
  });
  it('ldu loads words, and vectors of them, as ld does', () => {
    const { out } = run(`ldu.global.u32 %r0, [%i+4]; ldu.global.v2.u64 {%l0, %l1}, [%i+16];
      ldu.global.s16 %r1, [%i+2]; st.global.v2.u64 [%o], {%l1, %l0};
      st.global.v2.u32 [%o+16], {%r0, %r1};`);
    const expected = [6, 7, 4, 5, 1].map((index) => source[index]);
    expect([...out.subarray(0, 6)]).toEqual([...expected, 0xffff8000]);
  });
  it('128 bits survive a barrier, and a predicate that is false', () => {
    const { out } = run(
      'ld.global.relaxed.gpu.b128 %q0, [%i]; bar.sync 0; setp.ne.u32 %p, %t, 0; @%p ' +
        'ld.global.b128 %q0, [%i+16]; mul.wide.u32 %l0, %t, 16; add.u64 %l0, %l0, %o; ' +
        'st.global.b128 [%l0], %q0;',
      { threads: 2 },
    );
    expect([...out.subarray(0, 8)]).toEqual(source.slice(0, 8));
  });
  it('256 bits, as eight words or four double words', () => {
    const { out } =
      run(`ld.global.nc.L1::no_allocate.L2::evict_last.v8.b32 {%r0, %r1, _, %r3, %r4, %r5,
      %r6, %r7}, [%i+32]; mov.b32 %r2, 0;
      st.global.L2::evict_first.v8.f32 [%o], {%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0};
      ld.global.v4.b64 {%l0, %l1, %l2, %l3}, [%i];
      st.global.v4.u64 [%o+32], {%l3, %l2, %l1, %l0};`);
    expect([...out.subarray(0, 8)]).toEqual(
      [15, 14, 13, 12, 11, undefined, 9, 8].map((index) =>
        index === undefined ? 0 : source[index],
      ),
    );
    expect([...out.subarray(8, 16)]).toEqual(
      [6, 7, 4, 5, 2, 3, 0, 1].map((index) => source[index]),
    );
  });
  it('a misaligned address of 256 bits is a fault', () => {
    expect(
      run('ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%i+16];').outcome.fault
        ?.kind,
    ).toBe(FAULT.misaligned);
    expect(run('ld.global.b128 %q0, [%i+8];').outcome.fault?.kind).toBe(FAULT.misaligned);
  });
  it('narrow values are extended into wider registers, for every order and operator', () => {
    for (const form of [
      '',
      '.weak',
      '.volatile',
      '.relaxed.sys',
      '.acquire.gpu',
      '.relaxed.cluster',
      '.ca',
      '.cg',
      '.cv',
      '.global.nc',
      '.L1::evict_last.L2::256B',
      '.mmio.relaxed.sys',
    ]) {
      const { out } = run(
        `ld${form}.s8 %r0, [%i+7]; st.u32 [%o], %r0; ld${form}.u8 %r0, [%i+7]; st.u32 ` +
          `[%o+4], %r0; ld${form}.s16 %r0, [%i+6]; st.u32 [%o+8], %r0; ld${form}.s8 %l0, ` +
          '[%i+7]; st.u64 [%o+16], %l0;',
      );
      expect([...out.subarray(0, 6)], form).toEqual([
        0xffffff81, 0x81, 0xffff8101, 0, 0xffffff81, 0xffffffff,
      ]);
    }
    for (const form of [
      '',
      '.volatile',
      '.relaxed.cta',
      '.release.sys',
      '.wt',
      '.L1::no_allocate',
      '.mmio.relaxed.sys',
    ]) {
      const { out } = run(
        `mov.b32 %r0, 0x12345678; st${form}.u8 [%o], %r0; st${form}.b16 [%o+2], %r0; ` +
          `st${form}.u32 [%o+4], %r0;`,
      );
      expect([...out.subarray(0, 2)], form).toEqual([0x56780078, 0x12345678]);
    }
  });
});

describe('state spaces', () => {
  const before =
    '.global .align 4 .u32 g = 1; .const .align 4 .u32 c = 2; .global .align 4 .u32 g2 = 3;';
  const SPACES = ['global', 'shared', 'local', 'const', 'param'];
  const kinds: [string, string, string][] = [
    ['a variable in global memory', 'mov.u64 %l0, g; cvta.global.u64 %l0, %l0;', 'global'],
    ['another after a constant', 'mov.u64 %l0, g2; cvta.global.u64 %l0, %l0;', 'global'],
    ['an allocation', 'mov.u64 %l0, %i;', 'global'],
    ['a constant', 'mov.u64 %l0, c; cvta.const.u64 %l0, %l0;', 'const'],
    [
      'shared memory',
      '.shared .align 4 .b8 s[16]; mov.u64 %l0, s; cvta.shared.u64 %l0, %l0;',
      'shared',
    ],
    [
      'local memory',
      '.local .align 4 .b8 x[16]; mov.u64 %l0, x; cvta.local.u64 %l0, %l0;',
      'local',
    ],
    ['a parameter', 'mov.b64 %l0, number; cvta.param.u64 %l0, %l0;', 'param'],
    ['null', 'mov.u64 %l0, 0;', ''],
  ];
  it.each(kinds)('isspacep of %s', (_, prepare, space) => {
    const { out, outcome } = run(
      `${prepare} ${SPACES.map(
        (name, index) =>
          `isspacep.${name} %p, %l0;
        selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+${4 * index}], ` + '%r0;',
      ).join(' ')}
      isspacep.shared::cluster %p, %l0; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+20], %r0;
      isspacep.shared::cta %p, %l0; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+24], %r0;`,
      { before },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 7)]).toEqual([
      ...SPACES.map((name) => (name === space ? 1 : 0)),
      space === 'shared' ? 1 : 0,
      space === 'shared' ? 1 : 0,
    ]);
  });
  it('cvta there and back reads the same cell', () => {
    const { out } = run(
      `cvta.to.global.u64 %l0, %o; mov.u64 %l1, c; cvta.const.u64 %l2, %l1;
      cvta.to.const.u64 %l3, %l2; ld.const.u32 %r0, [%l3]; ld.u32 %r1, [%l2];
      st.global.v2.u32 [%l0], {%r0, %r1};
      mov.b64 %l1, number; cvta.param.u64 %l2, %l1; ld.u32 %r0, [%l2];
      ld.param::entry.u32 %r1, [number]; st.global.v2.u32 [%l0+8], {%r0, %r1};`,
      { before },
    );
    expect([...out.subarray(0, 4)]).toEqual([2, 2, 42, 42]);
  });
  it('a block is alone in its cluster', () => {
    const { out } = run(`.shared .align 4 .b8 s[16]; mov.u32 %r0, s; mov.u32 %r1, 0;
      mapa.shared::cluster.u32 %r2, %r0, %r1; mov.b32 %r3, 9;
      st.shared::cluster.u32 [%r2], %r3; ld.shared.u32 %r4, [%r0];
      getctarank.shared::cluster.u32 %r5, %r2; mov.u32 %r6, %cluster_nctarank;
      mov.u32 %r7, %cluster_ctarank; st.global.v4.u32 [%o], {%r4, %r5, %r6, %r7};`);
    expect([...out.subarray(0, 4)]).toEqual([9, 0, 1, 0]);
  });
});

describe('bits that are narrower than a float', () => {
  it.each([false, true])(
    'are read into it, zeros above them, and written from it; in lanes: %s',
    (simd) => {
      const grid = new Grid(
        kernelText(
          'k',
          '.param .u64 in, .param .u64 out',
          `.reg .b64 %i, %o, %x; .reg .b32 %t, %r; .reg .f32 %f<2>; .reg .f64 %d<2>;
      ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mul.wide.u32 %x, %t, 8; add.u64 %i, %i, %x; add.u64 %o, %o, %x; add.u64 %o, %o, %x;
      ld.global.b16 %f0, [%i+2]; ld.global.b8 %f1, [%i]; ld.global.b32 %d0, [%i+4];
      ld.global.b8 %d1, [%i+1];
      st.global.b16 [%o], %f0; st.global.b8 [%o+2], %f1; st.global.b8 [%o+3], %d1;
      st.global.b32 [%o+4], %d0; mov.b32 %r, %f0; st.global.b32 [%o+8], %r; mov.b32 %r, %f1;
      st.global.b32 [%o+12], %r; ret;`,
        ),
        { simd },
      );
      const input = grid.put(
        Uint8Array.from({ length: 8 * 64 }, (_, index) => (index * 37 + 200) & 255),
      );
      const output = grid.put(new Uint8Array(16 * 64));
      expect(
        grid.run('k', [{ i64: input.address }, { i64: output.address }], { grid: [1], block: [64] })
          .status,
      ).toBe(STATUS.done);
      expect(grid.width('k', { grid: [1], block: [64] })).toBe(simd ? 32 : 1);
      const expected = Array.from({ length: 64 }, (_, thread) => {
        const [a, b, c, d, ...rest] = input.view.slice(8 * thread, 8 * thread + 8);
        return [c, d, a, b, ...rest, c, d, 0, 0, a, 0, 0, 0];
      }).flat();
      expect([...output.view]).toEqual(expected);
    },
  );
});

describe('alloca', () => {
  it('aligns memory of any size', () => {
    for (const align of [1, 32, 256, 1024]) {
      const { out } = run(
        `mov.b64 %l0, 20; alloca.u64 %l1, %l0; alloca.u64 %l2, %l0, ${align}; and.b64 %l3, ` +
          `%l2, ${align - 1}; st.global.u64 [%o], %l3; sub.u64 %l3, %l2, %l1; setp.lt.u64 %p, ` +
          '%l3, 20; selp.u64 %l3, 1, 0, %p; st.global.u64 [%o+8], %l3; st.local.u32 [%l2+16], ' +
          '7; ld.local.u32 %r0, [%l2+16]; st.global.u32 [%o+16], %r0;',
      );
      expect([...out.subarray(0, 5)]).toEqual([0, 0, 0, 0, 7]);
    }
    expect(
      run(
        'mov.b64 %l0, 8; alloca.u64 %l1, %l0; alloca.u64 %l2, %l0, 8388608; st.local.u32 [%l2], 1;',
      ).outcome.fault?.kind,
    ).toBe(FAULT.stackOverflow);
  });
  it('allocates aligned memory, and frees it', () => {
    const { out, outcome } = run(`mov.b64 %l0, 12; alloca.u64 %l1, %l0; alloca.u64 %l2, %l0, 16;
      and.b64 %l3, %l2, 15; st.global.u64 [%o], %l3; stacksave.u64 %l3; alloca.u64 %l4, %l0;
      stackrestore.u64 %l3; alloca.u64 %l5, %l0;
      setp.eq.u64 %p, %l4, %l5; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+8], %r0;
      st.local.u32 [%l1+8], %t; st.local.u32 [%l2], 77; ld.local.u32 %r1, [%l1+8];
      cvta.local.u64 %l3, %l2; ld.u32 %r2, [%l3]; st.global.v2.u32 [%o+16], {%r1, %r2};
      isspacep.local %p, %l1; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+12], %r0;`);
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 6)]).toEqual([0, 0, 1, 1, 0, 77]);
  });
  it("is a thread's own, across a barrier", () => {
    const { out } = run(
      'mov.u32 %r0, 8; alloca.u32 %r1, %r0; st.local.u32 [%r1], %t; bar.sync 0; ld.local.u32 ' +
        '%r2, [%r1]; mul.wide.u32 %l0, %t, 4; add.u64 %l0, %l0, %o; st.global.u32 [%l0], %r2;',
      { threads: 48 },
    );
    expect([...out.subarray(0, 48)]).toEqual(Array.from({ length: 48 }, (_, thread) => thread));
  });
  it('more than the stack has is a stack overflow', () => {
    expect(run('mov.b64 %l0, 5000; alloca.u64 %l1, %l0;').outcome.fault?.kind).toBe(
      FAULT.stackOverflow,
    );
    expect(run('mov.b64 %l0, 0x100000010; alloca.u64 %l1, %l0;').outcome.fault?.kind).toBe(
      FAULT.stackOverflow,
    );
    expect(run('mov.b64 %l0, 16; again: alloca.u64 %l1, %l0; bra again;').outcome.fault?.kind).toBe(
      FAULT.stackOverflow,
    );
  });
});
