// Branches around a few instructions: code for whole units runs these for the threads that do not
// take the branch.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Dimensions } from '../run-grid.test-support.js';
import { differences, input, run } from './random-programs.test-support.js';

const RUNS = 150;

describe('lanes', () => {
  it('run short sides of branches for those threads only', { tags: 'random' }, () => {
    const guard = fc.constantFrom(
      // The predicate is known at compile time, the same within a few threads, or neither.
      'setp.ne.u32 %p, %lane, 0;',
      'setp.eq.u32 %p, %lane, 5;',
      'setp.gt.u32 %p, %lane, 29;',
      'setp.ge.s32 %p, %t, 7;',
      'setp.lt.u32 %p, %t, %n;',
      'setp.hi.u32 %p, %t, 41;',
      'setp.gt.u32 %p, %r0, 0x70000000;',
      'setp.eq.u32 %p, %odd, 1;',
      'setp.lt.u32 %p, %t, 0;',
      'setp.ge.u32 %p, %t, 0;',
    );
    const inside = fc.constantFrom(
      // Places that several threads write have a number each, in place of W.
      'st.shared.u32 [%own], %r1;',
      'st.shared.u32 [%warp+W], %r0;',
      'st.shared.u32 [cells+3328+W], %r0;',
      'st.shared.f32 [%warp+W], %f0;',
      'st.shared.u8 [%warp+W], %r1;',
      'st.global.v2.u32 [%mine], {%r0, %r1};',
      'st.global.u64 [%mine+2048], %d;',
      'ld.shared.u32 %r1, [%own];',
      'ld.shared.u32 %r1, [cells+3072];',
      'ld.global.u32 %r0, [%mine+4];',
      'ld.global.f32 %f0, [%mine];',
      'ld.global.u32 %r3, [%in+8];',
      'add.u32 %x, %r0, 77; xor.b32 %x, %x, %r1; st.shared.u32 [%own+1024], %x;',
      'add.u32 %r1, %r1, %r0;',
      'mov.u32 %r1, 9;',
      'mul.f32 %f0, %f0, 0f3F000000;',
      'mov.u32 %r3, %ntid.x;',
      'add.u32 %r2, %t, 3;',
      'add.u32 %y, %own, 1024; ld.shared.u32 %x, [%y]; add.u32 %r0, %r0, %x;',
      'mov.pred %q, %third;',
      'cvt.u64.u32 %d, %r1;',
      '@%q add.u32 %r1, %r1, 5;',
      'atom.shared.add.u32 %r0, [%own], 3;',
    );
    const side = fc.record({
      guard,
      inside: fc.array(inside, { minLength: 1, maxLength: 4 }),
      negated: fc.boolean(),
      waits: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(side, { minLength: 1, maxLength: 5 }),
        fc.constantFrom<Dimensions>([64], [32], [40], [256], [16, 4]),
        fc.boolean(),
        (sides, block, loops) => {
          const text = sides
            .map(({ guard, inside, negated, waits }, index) => {
              const lines = inside.map((line, at) =>
                line.replace('W', String(16 * index + 4 * at)),
              );
              return (
                `${guard} @${negated ? '!' : ''}%p bra S${index}; ${lines.join(' ')} ` +
                `S${index}: ${waits ? 'bar.sync 0;' : ''}`
              );
            })
            .join('\n');
          const source = kernelText(
            'k',
            '.param .u64 in, .param .u64 out',
            `.reg .b64 %in, %out, %mine, %o, %d, %from;
                .reg .b32 %t, %x, %y, %lane, %odd, %n, %own, %own2, %own4, %base, %tx, %row,
                %row128, %warp, %r<5>, %i; .reg .f32 %f0; .reg .pred %p, %q, %third, %more;
                .shared .align 16 .b8 cells[3456];
        ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %y, %tid.y;
        mov.u32 %x, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %t, %y, %x, %t;
        mov.u32 %tx, %tid.x; and.b32 %lane, %tx, 31; and.b32 %odd, %t, 1; mov.u32 %n, %ntid.x;
        shr.u32 %n, %n, 2; setp.eq.u32 %third, %odd, 0; setp.gt.u32 %q, %t, 3;
        mov.u32 %own2, cells; mad.lo.u32 %own4, %t, 4, %own2; add.u32 %own, %own4, 1024;
        shr.u32 %row, %tx, 5; shl.b32 %row128, %row, 7; mov.u32 %base, cells;
        add.u32 %warp, %row128, %base;
        mad.wide.u32 %mine, %t, 8, %out; add.s64 %mine, %mine, 16384;
        mad.wide.u32 %from, %t, 4, %in;
        ld.global.u32 %r0, [%from]; mul.lo.u32 %r0, %r0, 2654435761; mov.u32 %r1, %t;
        mov.u32 %r2, 1; mov.u32 %r3, 2; mov.u32 %r4, 3; cvt.rn.f32.u32 %f0, %t;
        cvt.u64.u32 %d, %t; st.shared.u32 [%own], %r0; st.shared.u32 [%own+1024], %r1; bar.sync 0;
        ${loops ? 'mov.u32 %i, 3; @%third bra R; add.u32 %r4, %t, 40; R:' : ''} ${text}
        ${loops ? 'bar.sync 0; sub.u32 %i, %i, 1; setp.ne.u32 %more, %i, 0; @%more bra R;' : ''}
        bar.sync 0; ld.shared.u32 %x, [%own]; ld.shared.u32 %y, [%own+1024];
        mad.wide.u32 %o, %t, 48, %out;
        st.global.u32 [%o], %r0; st.global.u32 [%o+4], %r1; st.global.u32 [%o+8], %r2;
        st.global.u32 [%o+12], %r3; st.global.f32 [%o+16], %f0; st.global.u64 [%o+24], %d;
        st.global.u32 [%o+32], %x; st.global.u32 [%o+36], %y; selp.u32 %x, 1, 2, %q;
        add.u32 %x, %x, %r4; st.global.u32 [%o+20], %x;
        mad.lo.u32 %x, %t, 4, 0; mov.u32 %y, cells; add.u32 %y, %y, %x;
        ld.shared.u32 %x, [%y]; st.global.u32 [%o+40], %x; and.b32 %x, %t, 31;
        mov.u32 %y, cells; mad.lo.u32 %y, %x, 4, %y; ld.shared.u32 %x, [%y+3328];
        st.global.u32 [%o+44], %x; ret;`,
          );
          const [scalar, lanes] = [false, true].map((simd) =>
            run(source, block, { simd, relaxedFma: true }),
          ) as [ReturnType<typeof run>, ReturnType<typeof run>];
          expect(lanes.status, source).toBe(scalar.status);
          expect(differences(lanes.out, scalar.out), source).toEqual([]);
        },
      ),
      { numRuns: RUNS },
    );
  });

  // A warp's sum is stored to a place of its warp.
  it.each([
    'ne.u32 %p, %lane, 0',
    'eq.u32 %p, %lane, 0',
    'gt.u32 %p, %lane, 6',
    'lt.u32 %p, %lane, 30',
    'ge.u32 %p, %tx, 5',
  ])('store the last value of those that do not take the branch: %s', (guard) => {
    const body = `.reg .b64 %out, %at;
      .reg .b32 %tx, %lane, %warp, %place, %to, %base, %value, %from, %found; .reg .f32 %f;
      .reg .pred %p; .shared .align 16 .b8 cells[512];
      ld.param.u64 %out, [out]; mov.u32 %tx, %tid.x; and.b32 %lane, %tx, 31;
      mul.lo.u32 %value, %tx, 7919; cvt.rn.f32.u32 %f, %value; mad.wide.u32 %at, %tx, 4, %out;
      mov.u32 %base, cells; mad.lo.u32 %from, %tx, 4, %base; st.shared.u32 [%from], 1; bar.sync 0;
      setp.${guard}; @%p bra past; shr.u32 %warp, %tx, 3; and.b32 %place, %warp, 536870908;
      add.u32 %to, %base, %place; st.shared.u32 [%to], %value; st.shared.f32 [%to+128], %f; past:
      bar.sync 0; ld.shared.u32 %found, [%from]; st.global.u32 [%at], %found; ret;`;
    const [scalar, lanes] = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 out', body), { simd });
      const out = grid.put(new Uint32Array(64));
      expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [64] }).status).toBe(
        STATUS.done,
      );
      return [...out.view];
    });
    expect(lanes).toEqual(scalar);
    expect(scalar!.filter((value) => value !== 1).length).toBeGreaterThan(1);
  });

  it.each([
    ['setp.ne.u32 %p, %lane, 9;', 'ld.global.u32 %r0, [%bad];'],
    ['setp.ne.u32 %p, %lane, 9;', 'ld.global.u32 %r0, [%same];'],
    ['setp.ne.u32 %p, %lane, 9;', 'st.global.u32 [%same], 5;'],
    ['setp.lt.u32 %p, %t, 41;', 'st.global.u32 [%bad], %r0;'],
    ['setp.lt.u32 %p, %t, 41;', 'ld.global.u32 %r0, [%same];'],
    ['setp.lt.u32 %p, %t, 41;', 'st.global.u32 [%same], %n;'],
    ['setp.ge.u32 %p, %r0, 5;', 'ld.global.v2.u32 {%r0, %r1}, [%bad];'],
  ])(
    'blame the first thread that runs a short side, and nobody where none does: %s %s',
    (guard, access) => {
      // `far` is added for threads with a bit of `who` set.
      const body = `.reg .b64 %in, %out, %at, %bad, %same, %far;
      .reg .b32 %t, %n, %lane, %r<2>, %who, %x; .reg .pred %p, %q;
      ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u64 %same, [far];
      ld.param.u32 %who, [who]; mov.u32 %t, %tid.x; and.b32 %lane, %t, 31;
      mov.u32 %n, %ntid.x; xor.b32 %r0, %t, 9; mov.u32 %r1, 4;
      shr.u32 %x, %who, %lane; and.b32 %x, %x, 1; setp.ne.u32 %q, %x, 0;
      mad.wide.u32 %at, %t, 8, %in; selp.b64 %bad, %same, %at, %q;
      bar.sync 0; ${guard} @%p bra S; ${access} S: bar.sync 0; add.u32 %r0, %r0, %r1;
        mad.wide.u32 %at, %t, 4, %out; st.global.u32 [%at], %r0; ret;`;
      const outcomes = [(1 << 9) | (1 << 20), 1 << 20, 1 << 3].map((who) =>
        [16, 0].map((far) =>
          [false, true].map((simd) => {
            const grid = new Grid(
              kernelText(
                'k',
                '.param .u64 in, .param .u64 out, .param .u64 far, .param .u32 who',
                body,
              ),
              { simd },
            );
            const from = grid.put(input);
            const out = grid.put(new Uint32Array(64));
            const { status, fault } = grid.run(
              'k',
              [
                { i64: from.address },
                { i64: out.address },
                { i64: far || from.address },
                { i32: who },
              ],
              { grid: [1], block: [64] },
            );
            return { status, fault, out: status === STATUS.done ? [...out.view] : [] };
          }),
        ),
      );
      for (const [scalar, lanes] of outcomes.flat()) expect(lanes).toEqual(scalar);
      expect(new Set(outcomes.flat().map(([scalar]) => scalar!.status)).size).toBe(2);
    },
  );
});
