// The two back ends against each other, bit for bit: random programs, block shapes that leave
// groups of four incomplete, threads that diverge and reconverge.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText, sample } from '../run-grid.test-support.js';
import type { Dimensions, Outcome } from '../run-grid.test-support.js';
import {
  F,
  R,
  SHAPES,
  differences,
  differing,
  floating,
  input,
  integer,
  kernel,
  program,
  run,
} from './random-programs.test-support.js';
import { someOf, scaled } from '../../../test/random-runs.js';

const RUNS = 150;
describe('lanes', () => {
  for (const relaxedFma of [true, false]) {
    it(
      `give the scalar back end's results ${relaxedFma ? 'with' : 'without'} fused relaxed_madd`,
      { tags: relaxedFma ? 'random' : 'thorough', timeout: 120_000 },
      () => {
        let inLanes = 0;
        fc.assert(
          fc.property(program, fc.constantFrom(...SHAPES), (made, block) => {
            const source = kernel(made as Parameters<typeof kernel>[0]);
            const scalar = run(source, block, { simd: false, relaxedFma });
            const lanes = run(source, block, { simd: true, relaxedFma });
            if (lanes.lanes > 1) inLanes++;
            expect(lanes.status).toBe(scalar.status);
            expect(differences(lanes.out, scalar.out), source).toEqual([]);
          }),
          { numRuns: RUNS },
        );
        // Some consist mostly of instructions without a vector form; most do not.
        expect(inLanes).toBeGreaterThan(scaled(RUNS) / 2);
      },
    );
  }

  it(
    'give them where values differ by literals from thread to thread',
    { tags: 'random', timeout: 120_000 },
    () => {
      fc.assert(
        fc.property(differing, fc.constantFrom(...SHAPES), (made, block) => {
          const source = kernel(made as Parameters<typeof kernel>[0]);
          const [scalar, lanes] = [false, true].map((simd) =>
            run(source, block, { simd, relaxedFma: true }),
          ) as [ReturnType<typeof run>, ReturnType<typeof run>];
          expect(lanes.status).toBe(scalar.status);
          expect(differences(lanes.out, scalar.out), source).toEqual([]);
        }),
        { numRuns: RUNS },
      );
    },
  );

  it(
    'give them where units mostly stay together: tiles between barriers, with guards at the ' +
      'edge',
    { tags: 'random', timeout: 120_000 },
    () => {
      const text = (nodes: readonly string[]): string => nodes.join('\n');
      const edge = fc.constantFrom(4, 8, 13, 16, 20, 32, 50, 64, 1000);
      const guarded = fc.tuple(
        fc.constantFrom('lt.s32', 'ge.s32', 'hi.u32'),
        fc.constantFrom('lt.u32', 'ne.s32', 'ge.s32'),
        fc.constantFrom('and', 'or', 'xor'),
        edge,
        edge,
      );
      const tile = fc.record({
        rounds: fc.constantFrom(1, 2, 5),
        steps: fc.constantFrom(2, 8),
        guards: fc.array(guarded, { minLength: 1, maxLength: 3 }),
        inside: fc.array(fc.oneof(integer, floating), { maxLength: 3 }),
        last: edge,
        leave: fc.option(edge, { nil: undefined }),
        inner: fc.boolean(),
      });
      let faults = 0;
      let inLanes = 0;
      fc.assert(
        fc.property(
          tile,
          fc.constantFrom<Dimensions>([16, 4], [32, 2], [8, 4], [64], [40], [16, 2, 2], [128]),
          fc.boolean(),
          fc.integer({ min: 1, max: 60 }),
          (made, block, far, fuel) => {
            // Only one load may be bad: of several, the first one of a unit is reported, and thread
            // by thread the first one of a thread.
            const guards = made.guards.slice(far ? -1 : 0).map(
              ([first, second, logic, a, b], index) => `
        setp.${first} %p, %k, ${a}; setp.${second} %q, %y, ${b}; ${logic}.pred %p, %p, %q;
          mov.f32 %f1, 0f3F800000; @%p bra G${index};
        ld.global.f32 %f1, [%src+${64 * index}]; G${index}: st.shared.f32 [%own], %f1;
          add.f32 %f2, %f2, %f1;`,
            );
            const source = kernelText(
              'k',
              '.param .u64 in, .param .u64 out',
              `
        .reg .pred %p, %q, %e, %q0, %q1, %first, %third, %all8;
        .reg .b32 %r<${R}>, %t, %x, %y, %k, %n, %own, %row, %col, %base, %j, %all, %z, %stop,
          %tx, %lane, %lane3, %high; .reg .f32 %f<${F}>, %a, %b, %acc;
            .reg .b64 %in, %out, %src, %o; .shared .align 4 .b8 cells[1024];
        ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %all, -1;
        mov.u32 %t, %tid.z; mov.u32 %x, %ntid.y; mov.u32 %y, %tid.y;
        mad.lo.u32 %t, %t, %x, %y; mov.u32 %x, %ntid.x; mov.u32 %k, %tid.x;
        mad.lo.u32 %t, %t, %x, %k;
        mov.u32 %base, cells; mad.lo.u32 %own, %t, 4, %base; mad.lo.u32 %row, %y, 16, %base;
        mad.lo.u32 %col, %k, 4, %base;
        mad.wide.u32 %src, %t, 4, %in; mov.f32 %acc, 0f00000000; mov.f32 %f2, 0f40000000;
        mov.f32 %f0, 0f3F000000; mov.f32 %f3, 0f40400000; mov.u32 %n, 0;
        setp.lt.u32 %q0, %t, 2; setp.gt.u32 %q1, %k, 500; setp.eq.u32 %first, %k, 0;
        setp.eq.u32 %third, %k, 2; setp.lt.u32 %all8, %k, 8; mov.u32 %z, 0; mov.u32 %stop, 9;
        mov.u32 %tx, %k; and.b32 %lane, %k, 31; and.b32 %lane3, %k, 3; shr.u32 %high, %k, 2;
        mov.u32 %r0, %t; mov.u32 %r1, 3; mov.u32 %r2, %k; mov.u32 %r3, %y; mov.u32 %r4, 77;
        mov.u32 %r5, %t;
        ${made.leave === undefined ? '' : `setp.ge.u32 %e, %t, ${made.leave}; @%e bra DONE;`}
      AGAIN:
        ${text(guards)}
        bar.sync 0;
        ${made.inner ? 'mov.u32 %j, 0; INNER:' : ''}
        ${text(
          Array.from(
            { length: made.steps },
            (_, step) =>
              `ld.shared.f32 %a,
          [%row+${4 * step}]; ld.shared.f32 %b,
            [%col+${16 * step}]; ` + 'fma.rn.f32 %acc, %a, %b, %acc;',
          ),
        )}
        ${made.inner ? 'add.u32 %j, %j, 1; setp.lt.u32 %e, %j, 3; @%e bra INNER;' : ''}
        ${text(made.inside)}
        bar.sync 0;
        add.u32 %k, %k, 16; add.s64 %src, %src, ${far && made.rounds === 5 ? 1 << 22 : 64};
          add.u32 %n, %n, 1; setp.lt.u32 %e, %n, ${made.rounds}; @%e bra AGAIN;
      DONE:
        setp.ge.u32 %p, %t, ${made.last}; @%p bra OUT;
        mad.wide.u32 %o, %t, 16, %out; setp.nan.f32 %e, %acc, %acc;
        selp.f32 %acc, 0f7FFFFFFF, %acc, %e; setp.nan.f32 %e, %f2, %f2;
        selp.f32 %f2, 0f7FFFFFFF, %f2, %e;
        st.global.v4.b32 [%o], {%acc, %f2, %r0, %r2};
      OUT: ret;`,
            );
            const scalar = run(source, block, { simd: false, relaxedFma: true });
            for (const each of [1 << 22, fuel]) {
              const lanes = run(source, block, { simd: true, relaxedFma: true }, each);
              if (lanes.lanes > 1) inLanes++;
              expect(lanes.status, source).toBe(scalar.status);
              expect(lanes.fault, source).toEqual(scalar.fault);
              if (scalar.fault) faults++;
              else expect(differences(lanes.out, scalar.out), source).toEqual([]);
            }
          },
        ),
        { numRuns: RUNS },
      );
      expect(faults).toBeGreaterThan(0);
      expect(inLanes).toBeGreaterThan(scaled(RUNS));
    },
  );

  it('do the same whatever the fuel', { tags: 'random', timeout: 120_000 }, () => {
    fc.assert(
      fc.property(
        program,
        fc.constantFrom(...SHAPES),
        fc.integer({ min: 1, max: 40 }),
        (made, block, fuel) => {
          const source = kernel(made as Parameters<typeof kernel>[0]);
          const plenty = run(source, block, { simd: true, relaxedFma: true });
          const little = run(source, block, { simd: true, relaxedFma: true }, fuel);
          expect(little.status).toBe(plenty.status);
          expect(differences(little.out, plenty.out), source).toEqual([]);
        },
      ),
      { numRuns: 40 },
    );
  });

  it(
    'blame the thread, the line and the address that the scalar back end blames',
    { tags: 'random', timeout: 120_000 },
    () => {
      const bad = fc.record({
        part: fc.nat(3),
        thread: fc.nat(40),
        address: fc.constantFrom('16', '0x7fffff000', '%in+2', '%base64+512', '%base64+4'),
        access: fc.constantFrom(
          'ld.global.u32 %r0, [%a];',
          'st.global.f32 [%a], %f0;',
          'ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%a];',
          'ld.u8 %r0, [%a];',
          'st.global.b64 [%a], %d0;',
          'cvt.u32.u64 %x, %a; ld.shared.u32 %r2, [%x];',
          'cvt.u32.u64 %x, %a; st.shared.u16 [%x], %r2;',
          'atom.global.add.u32 %r1, [%a], 1;',
        ),
      });
      let faults = 0;
      fc.assert(
        fc.property(
          program,
          fc.constantFrom(...SHAPES),
          bad,
          (made, block, { part, thread, address, access }) => {
            const { parts } = made as Parameters<typeof kernel>[0];
            const [from, plus = '0'] = address.split('+');
            const one =
              `setp.eq.u32 %m, %t, ${thread}; add.s64 %a, %mine16, 1024; ` +
              `${
                from!.startsWith('%')
                  ? `add.s64 %o, ${from}, ${plus};`
                  : `mov.u64 %o,
                ${from};`
              } ` +
              `selp.b64 %a, %o, %a, %m; @%m ${access.split('; ').join('; @%m ')}`;
            parts[part % parts.length]![0].push({ kind: 'text', text: one });
            const source = kernel(made as Parameters<typeof kernel>[0])
              .replace('%log, %sum', '%base64, %log, %sum')
              .replace(
                'mov.u32 %base, cells;',
                'mov.u32 %base, cells; cvt.u64.u32 %base64, %base;',
              );
            const [scalar, lanes] = [false, true].map((simd) =>
              run(source, block, { simd, relaxedFma: true }),
            ) as [ReturnType<typeof run>, ReturnType<typeof run>];
            expect(lanes.status, source).toBe(scalar.status);
            expect(lanes.fault, source).toEqual(scalar.fault);
            if (scalar.fault) faults++;
          },
        ),
        { numRuns: RUNS },
      );
      expect(faults).toBeGreaterThan(scaled(RUNS) / 10);
    },
  );

  it('directed rounding and powers of two equal those of single threads, at all edges', () => {
    const edges = [
      0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x00800001, 0x33800000,
      0x3effffff, 0x3f7fffff, 0x3f800000, 0x3f800001, 0xbf800000, 0xbf800001, 0x3f800fff,
      0x40490fdb, 0x4b000001, 0xcb000001, 0x42fe0000, 0xc2fe0000, 0xc3150000, 0x43000000,
      0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x1f800003, 0x9f800003,
      0x5f000001, 0x20000001,
    ];
    const texts = [
      'fma.rm.f32 %r, %a, %b, %c',
      'fma.rp.f32 %r, %a, %b, %c',
      'fma.rz.f32 %r, %a, %b, %c',
      'ex2.approx.f32 %r, %d',
      'ex2.approx.ftz.f32 %r, %d',
      'cvt.sat.f32.f32 %r, %d',
      'cvt.sat.ftz.f32.f32 %r, %d',
    ];
    // One operand is a sum of the bits of two edges, so that values between the edges occur, too.
    const source = kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `.reg .b64 %in, %out, %at; .reg .b32 %i, %x, %y; .reg .f32 %a, %b, %c, %d, %r; .reg .pred %p;
      ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %i, %ctaid.x;
      mad.lo.u32 %i, %i, 256, 0; mov.u32 %x, %tid.x; add.u32 %i, %i, %x;
      and.b32 %x, %i, 31; mad.wide.u32 %at, %x, 4, %in; ld.global.f32 %a, [%at];
      ld.global.u32 %y, [%at];
      shr.u32 %x, %i, 5; and.b32 %x, %x, 31; mad.wide.u32 %at, %x, 4, %in;
      ld.global.f32 %b, [%at]; ld.global.u32 %x, [%at]; add.u32 %y, %y, %x; shr.u32 %x, %i, 7;
      add.u32 %y, %y, %x; mov.b32 %d, %y;
      shr.u32 %x, %i, 10; mad.wide.u32 %at, %x, 4, %in; ld.global.f32 %c, [%at];
      mad.wide.u32 %at, %i, ${4 * texts.length}, %out;
      ${texts
        .map(
          (line, index) =>
            `${line}; setp.nan.f32 %p, %r, %r;
        selp.f32 %r, 0f7FFFFFFF, %r, %p;
        st.global.f32 ` + `[%at+${4 * index}], %r;`,
        )
        .join('\n')} ret;`,
    );
    const [threads, lanes] = [false, true].map((simd) => {
      const grid = new Grid(source, { simd });
      const out = grid.put(new Uint32Array(32 ** 3 * texts.length));
      expect(
        grid.run('k', [{ i64: grid.put(Uint32Array.from(edges)).address }, { i64: out.address }], {
          grid: [128],
          block: [256],
        }).status,
      ).toBe(STATUS.done);
      expect(grid.width('k', { grid: [128], block: [256] }) > 1).toBe(simd);
      return out.view;
    }) as [Uint32Array, Uint32Array];
    expect(differences(threads, lanes)).toEqual([]);
    expect(new Set(threads).size).toBeGreaterThan(10_000);
  });

  it("go on with what a loop has made of a shuffle's result", () => {
    const body = `.reg .b64 %o; .reg .b32 %r<9>; .reg .pred %p; ld.param.u64 %o, [out];
      mov.u32 %r0, %tid.x; mad.wide.u32 %o, %r0, 4, %o;
      mov.u32 %r2, 0; shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;
    again: add.u32 %r1, %r1, 3; add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 10000;
    @%p bra again; st.global.u32 [%o], %r1; ret;`;
    for (const simd of [false, true]) {
      const grid = new Grid(kernelText('k', '.param .u64 out', body), { simd });
      const out = grid.put(new Uint32Array(40));
      expect(
        grid.run('k', [{ i64: out.address }], { grid: [1], block: [40], fuel: 1000 }).status,
      ).toBe(STATUS.done);
      expect([...out.view]).toEqual(
        Array.from({ length: 40 }, (_, thread) => (thread ^ 1) + 30000),
      );
    }
  });

  it('report the first running thread whose access is bad', () => {
    const source = kernelText(
      'k',
      '.param .u64 out',
      `.reg .b64 %o, %p; .reg .b32 %t; .reg .pred %q; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      setp.lt.u32 %q, %t, 6; @%q bra done; mad.wide.u32 %p, %t, 4, %o; st.global.u32 [%p], %t;
      setp.lt.u32 %q, %t, 10; @%q bra done;
      cvt.u64.u32 %p, %t; ld.global.u32 %t, [%p]; done: ret;`,
    );
    for (const simd of [false, true]) {
      const grid = new Grid(source, { simd, pages: 16 });
      const out = grid.put(new Uint32Array(64));
      const { status, fault } = grid.run('k', [{ i64: out.address }], { grid: [1], block: [32] });
      expect(status).toBe(STATUS.fault);
      expect(fault?.kind).toBe(FAULT.outOfBounds);
      expect(fault?.thread).toBe(10);
      expect(fault?.address).toBe(10n);
    }
  });

  // Threads that waited at the loop's header were once lost if all others had skipped the loop's
  // last block.
  it.each([
    [3, 5],
    [3, 400],
    [63, 20],
    [255, 3],
  ])("wait for a header while nobody runs the loop's end: 1 of %i, %i times", (mask, times) => {
    const body = `.reg .b64 %rd<12>; .reg .b32 %r<30>; .reg .pred %p<4>;
      ld.param.u64 %rd0, [out]; mov.u32 %r22, %tid.x; mul.wide.u32 %rd10, %r22, 4;
      add.u64 %rd11, %rd0, %rd10;
      mov.u32 %r10, 0; mad.lo.u32 %r15, %r22, 7919, 12345;
    again:
      mad.lo.u32 %r15, %r15, 1664525, 1013904223; shr.u32 %r16, %r15, 8;
      and.b32 %r16, %r16, ${mask};
      setp.ne.u32 %p0, %r16, 0;
      @%p0 bra again;
      add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, ${times};
      @%p1 bra again;
      st.global.u32 [%rd11], %r15;
      ret;`;
    const [threads, lanes] = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 out', body), { simd });
      const out = grid.put(new Uint32Array(40));
      expect(
        grid.run('k', [{ i64: out.address }], {
          grid: [1],
          block: [40],
          fuel: 100_000,
          maxCalls: 100,
        }).status,
      ).toBe(STATUS.done);
      return [...out.view];
    });
    expect(lanes).toEqual(threads);
  });

  // What a loop writes before it reads it is live only after the loop, where some threads of a unit
  // are while the next unit has its turn.
  it.each([
    [64, 7],
    [64, 1],
    [40, 5],
    [256, 3],
  ])(
    'keep what threads have that have left a loop while others go round: %i threads, %i',
    (threads, factor) => {
      const body = `.reg .b64 %in, %out, %p, %o; .reg .b32 %t, %i, %n, %r<4>; .reg .pred %more;
      ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
      mul.lo.u32 %n, %t, ${factor}; and.b32 %n, %n, 31; add.u32 %n, %n, 3;
      mad.wide.u32 %p, %t, 4, %in; mov.u32 %i, 0; mov.u32 %r2, 0;
    again: ld.global.u32 %r1, [%p]; xor.b32 %r2, %r2, %r1; shr.u32 %r3, %r2, 1;
    add.s64 %p, %p, 1024; add.u32 %i, %i, 1; setp.lt.u32 %more, %i, %n;
      @%more bra again;
      mad.wide.u32 %o, %t, 16, %out; st.global.u32 [%o+8], %r3;
      bar.sync 0;
      st.global.u32 [%o], %r1; st.global.u32 [%o+4], %r2; ret;`;
      const [scalar, lanes] = [false, true].map((simd) => {
        const grid = new Grid(kernelText('k', '.param .u64 in, .param .u64 out', body), { simd });
        const from = grid.put(
          Uint32Array.from({ length: 36 * 256 }, (_, index) => Math.imul(index, 0x9e3779b1) >>> 0),
        );
        const out = grid.put(new Uint32Array(4 * threads));
        expect(
          grid.run('k', [{ i64: from.address }, { i64: out.address }], {
            grid: [1],
            block: [threads],
          }).status,
        ).toBe(STATUS.done);
        expect(grid.width('k', { grid: [1], block: [threads] }) > 1).toBe(simd);
        return [...out.view];
      });
      expect(lanes).toEqual(scalar);
      expect(scalar![4 * threads - 2]).not.toBe(0);
    },
  );

  it('keep what threads have that leave out a block before a loop with a barrier', () => {
    const body = `.reg .b64 %out, %at; .reg .b32 %tx, %odd, %n, %value; .reg .pred %even, %more;
      ld.param.u64 %out, [out]; mov.u32 %tx, %tid.x; and.b32 %odd, %tx, 1;
      setp.eq.u32 %even, %odd, 0; mov.u32 %value, 3; mad.wide.u32 %at, %tx, 4, %out; bar.sync 0;
      mov.u32 %n, 3; @%even bra again; add.u32 %value, %tx, 40;
    again: bar.sync 0; sub.u32 %n, %n, 1; setp.ne.u32 %more, %n, 0; @%more bra again;
      st.global.u32 [%at], %value; ret;`;
    const grid = new Grid(kernelText('k', '.param .u64 out', body), { simd: true });
    const out = grid.put(new Uint32Array(64));
    expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [64] }).status).toBe(
      STATUS.done,
    );
    expect(grid.width('k', { grid: [1], block: [64] })).toBeGreaterThan(1);
    expect([...out.view]).toEqual(
      Array.from({ length: 64 }, (_, thread) => (thread % 2 ? thread + 40 : 3)),
    );
  });

  // A branch around a few instructions: code for whole units runs them for the threads that do not
  // take it.
  it(
    'run short sides of branches for those threads only',
    { tags: 'random', timeout: 120_000 },
    () => {
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
    },
  );

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

  // Accesses of several blocks through one register are checked once, before the branches to them,
  // and for more blocks than those that run.
  someOf(
    3,
    it,
  )([
    [32, 32],
    [20, 32],
    [3, 32],
    [0, 32],
    [32, 9],
    [20, 31],
  ])(
    'reach rows of a tile behind branches of their own, up to the end of memory and past it: ' +
      '%i rows of %i',
    (rows, columns) => {
      const row = (at: number, access: string): string =>
        `add.u32 %r, %ty, ${8 * at}; setp.ge.u32 %p, %r, %n; or.pred %p, %p, %w; @%p bra ` +
        `${access.startsWith('ld.global') ? 'L' : 'S'}${at}; ${access}`;
      const body = `.reg .b64 %in, %out, %g, %o;
      .reg .b32 %tx, %ty, %n, %r, %x, %s, %q, %u, %v, %i, %t, %h; .reg .pred %p, %w;
      .shared .align 4 .b8 tile[4224];
      ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [rows];
      ld.param.u32 %h, [columns]; mov.u32 %tx, %tid.x; mov.u32 %ty, %tid.y; mov.u32 %t, tile;
      setp.ge.u32 %w, %tx, %h;
      mad.lo.u32 %i, %ty, 32, %tx; mad.wide.u32 %g, %i, 4, %in; mad.lo.u32 %u, %ty, 132, %t;
      mad.lo.u32 %s, %tx, 4, %u;
      ${[0, 1, 2, 3]
        .map(
          (at) =>
            `${row(
              at,
              `ld.global.u32 %x, [%g+${1024 * at}];
        st.shared.u32 [%s+${1056 * at}], %x;`,
            )} ` + `L${at}:`,
        )
        .join(' ')}
      bar.sync 0; mad.lo.u32 %v, %tx, 132, %t; mad.lo.u32 %q, %ty, 4, %v;
      mad.wide.u32 %o, %i, 4, %out;
      ${[0, 1, 2, 3]
        .map(
          (at) =>
            `${row(
              at,
              `ld.shared.u32 %x, [%q+${32 * at}];
        st.global.u32 [%o+${1024 * at}], %x;`,
            )} ` + `S${at}:`,
        )
        .join(' ')} ret;`;
      const launch = (
        simd: boolean,
        cut: number,
        side: 'in' | 'out',
      ): { status: number; fault: Outcome['fault']; out: number[] } => {
        const grid = new Grid(
          kernelText(
            'k',
            '.param .u64 in, .param .u64 out, .param .u32 rows, .param .u32 columns',
            body,
          ),
          { simd, pages: 4 },
        );
        const values = grid.put(Uint32Array.from({ length: 1024 }, (_, at) => at + 1));
        const out = grid.put(new Uint32Array(1024));
        // This many bytes of the tile are past the end of memory.
        const last = grid.memory.buffer.byteLength - 4096 + cut;
        const view = new Uint32Array(grid.memory.buffer, last, (4096 - cut) / 4);
        view.set(values.view.subarray(0, view.length));
        const { status, fault } = grid.run(
          'k',
          [
            { i64: side === 'in' ? last : values.address },
            { i64: side === 'out' ? last : out.address },
            { i32: rows },
            { i32: columns },
          ],
          { grid: [1], block: [32, 8] },
        );
        expect(grid.width('k', { grid: [1], block: [32, 8] })).toBe(simd ? 32 : 1);
        return {
          status,
          fault,
          out: status === STATUS.done ? [...(side === 'out' ? view : out.view)] : [],
        };
      };
      const statuses = [0, 4, 1024, 1540, 3072].flatMap((cut) =>
        (['in', 'out'] as const).map((side) => {
          const scalar = launch(false, cut, side);
          expect(launch(true, cut, side)).toEqual(scalar);
          return scalar.status;
        }),
      );
      expect(new Set(statuses).size).toBe(rows < 8 ? 1 : 2);
    },
  );

  // Loads through one base whose addresses differ freely share a check, until the base changes or a
  // comparison follows.
  it.each([
    ['u8', 1, [0, 3, 15, -6]],
    ['s8', 1, [1, 2, 0]],
    ['u16', 2, [2, -4, 1026]],
    ['s16', 2, [0, 2]],
    ['f32', 4, [-8, 0, 4]],
    ['b64', 8, [8, 0, 4096]],
    ['v2.u32', 8, [0, 16, 8]],
    ['v4.u8', 4, [4, 0]],
    ['u32', 4, [0, 5000, 4]],
  ] as const)('read neighbours of places that differ freely: %s', (type, size, offsets) => {
    const wide = size === 8;
    const target = (at: number): string =>
      type === 'v2.u32'
        ? `{%x${2 * at}, %x${2 * at + 1}}`
        : type === 'v4.u8'
          ? `{%x${4 * at}, %x${4 * at + 1}, %x${4 * at + 2}, %x${4 * at + 3}}`
          : type === 'b64'
            ? `%d${at}`
            : type === 'f32'
              ? `%f${at}`
              : `%x${at}`;
    const registers = type === 'v2.u32' ? 2 : type === 'v4.u8' ? 4 : 1;
    const loads = (from: number): string =>
      offsets
        .map((offset, at) => `ld.global.${type} ${target(from + at)}, [%p+${offset}];`)
        .join(' ');
    const total = 3 * offsets.length;
    const cells = Array.from({ length: total * registers }, (_, at) =>
      type === 'b64'
        ? `st.global.b64 [%o+${8 * at}], %d${at};`
        : type === 'f32'
          ? `st.global.f32 [%o+${8 * at}], %f${at};`
          : `st.global.u32 [%o+${8 * at}], %x${at};`,
    );
    const source = kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `.reg .b64 %in, %o, %p, %q, %d<${total}>; .reg .f32 %f<${total}>;
        .reg .b32 %t, %i, %x<${total * registers}>; .reg .pred %c;
      ld.param.u64 %in, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mad.wide.u32 %o, %t, ${8 * cells.length}, %o;
      mul.lo.u32 %i, %t, 2654435761; shr.u32 %i, %i, 22; mul.wide.u32 %q, %i, ${size};
        add.s64 %p, %in, %q; add.s64 %p, %p, 64;
      ${loads(0)} add.s64 %p, %p, ${2 * size};
        ${loads(offsets.length)} setp.lt.u32 %c, %i, 512; @%c bra low;
          add.s64 %p, %p, ${size}; low: ${loads(2 * offsets.length)} ${cells.join(' ')} ret;`,
    );
    const [one, lanes] = [false, true].map((simd) => {
      const grid = new Grid(source, { simd });
      const from = grid.put(
        Uint32Array.from(
          { length: 8192 },
          (_, at) => Math.imul(at + 1, 2654435761) >>> (type === 'f32' ? 2 : 0),
        ),
      );
      const out = grid.put(new Uint32Array(2 * 64 * cells.length));
      expect(
        grid.run('k', [{ i64: from.address }, { i64: out.address }], { grid: [1], block: [64] })
          .status,
      ).toBe(STATUS.done);
      expect(grid.width('k', { grid: [1], block: [64] }) > 1).toBe(simd);
      return [...out.view];
    });
    expect(lanes).toEqual(one);
    expect(new Set(lanes).size).toBeGreaterThan(wide ? 64 : 16);
  });

  it.each([
    ['%x', 2 ** 20],
    ['%y', 2 ** 20 - 4],
    ['%z', 2 ** 20 - 8],
    ['%x', 512],
    ['%x', 2 ** 32 + 70000],
    ['%x', 70001],
  ])('name the load of several with one check that fails: that of %s, at %i', (register, place) => {
    const source = kernelText(
      'k',
      '.param .u64 in, .param .u64 out',
      `.reg .b64 %in, %o, %p, %q; .reg .b32 %t, %i, %x, %y, %z; .reg .pred %c;
      ld.param.u64 %in, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mad.wide.u32 %o, %t, 4, %o;
      mul.lo.u32 %i, %t, 40503; and.b32 %i, %i, 252; cvt.u64.u32 %q, %i; add.s64 %p, %in, %q;
      setp.eq.u32 %c, %t, 37; selp.b64 %p, ${place}, %p, %c;
      ld.global.u32 %x, [%p];\nld.global.u32 %y, [%p+4];\nld.global.u32 %z,
      [%p+8];\nadd.u32 %x, %x, %y; add.u32 %x, %x, %z; st.global.u32 [%o], %x; ret;`,
    );
    const [one, lanes] = [false, true].map((simd) => {
      const grid = new Grid(source, { simd, pages: 16 });
      const from = grid.put(new Uint32Array(1024));
      const out = grid.put(new Uint32Array(64));
      const { status, fault } = grid.run('k', [{ i64: from.address }, { i64: out.address }], {
        grid: [1],
        block: [64],
      });
      return { status, fault };
    });
    expect(lanes).toEqual(one);
    expect(one!.status).toBe(STATUS.fault);
    expect(one!.fault?.thread).toBe(37);
    expect(source.split('\n')[one!.fault!.line - 1]!.trim()).toContain(
      `ld.global.u32 ${register},`,
    );
  });

  // An address that is computed from a byte, or from a masked value, is within its variable; others
  // are checked.
  it.each(
    ['', '@%p ', '@!%p '].flatMap((who) =>
      [
        'mul.wide.u16 %i, %h, 4;',
        'cvt.u32.u16 %i0, %h; and.b32 %i1, %i0, 63; shl.b32 %i, %i1, 2;',
        'cvt.u32.u16 %i0, %h; mul.lo.u32 %i, %i0, %four;',
      ].map((index) => [who, index] as const),
    ),
  )('count in shared memory alike: %s%s', (who, index) => {
    const operations = [
      'add.u32',
      'min.s32',
      'max.u32',
      'and.b32',
      'or.b32',
      'xor.b32',
      'exch.b32',
      'inc.u32',
      'dec.u32',
      'add.f32',
    ];
    const body = `.reg .b64 %in, %o, %a;
      .reg .b32 %r<${operations.length}>, %f, %t, %b, %c, %s, %n, %four, %i, %i0, %i1, %bins;
        .reg .b16 %h; .reg .pred %p, %q; .shared .align 4 .b8 bins[1024];
        .shared .align 4 .b8 own[${4 * 128 * operations.length}];
      ld.param.u64 %in, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
      mov.u32 %four, %ntid.y; shl.b32 %four, %four, 2;
      shl.b32 %c, %t, 2; mov.u32 %s, bins; add.s32 %c, %s, %c; st.shared.u32 [%c], 0;
      st.shared.u32 [%c+512], 0;
      shl.b32 %c, %t, 2; mov.u32 %s, own; add.s32 %c, %s, %c;
      ${operations
        .map(
          (_, at) => `mad.lo.u32 %f, %t, ${at + 3}, 1000;
        st.shared.u32 [%c+${512 * at}], %f;`,
        )
        .join(' ')} bar.sync 0;
      mov.u32 %n, 0; cvt.u64.u32 %a, %t; add.s64 %a, %in, %a; mov.u32 %bins, bins;
      again: ld.global.nc.u8 %h, [%a]; ${index} add.s32 %b, %bins, %i; and.b32 %f, %b, 32;
        setp.eq.u32 %p, %f, 0; ${who}red.shared.add.u32 [%b], 3;
      ${operations
        .map(
          (operation, at) => `${who}atom.shared.${operation} %r${at},
        [%c+${512 * at}], %b;`,
        )
        .join(' ')} ${who}atom.shared.cas.b32 %f, [%c], %r0, %t;
      add.s64 %a, %a, 7; add.u32 %n, %n, 1; setp.lt.u32 %q, %n, 40; @%q bra again; bar.sync 0;
      mad.wide.u32 %a, %t, 64, %o;
      ${operations
        .map(
          (_, at) =>
            `ld.shared.u32 %f, [%c+${512 * at}];
        add.u32 %r${at}, %r${at}, %f; st.global.u32 ` + `[%a+${4 * at}], %r${at};`,
        )
        .join(' ')}
      mad.lo.u32 %c, %t, 4, %bins; ld.shared.u32 %f, [%c]; st.global.u32 [%a+48], %f;
      ld.shared.u32 %f, [%c+512]; st.global.u32 [%a+52], %f; ret;`;
    const results = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 in, .param .u64 out', body), { simd });
      const [from, out] = [
        grid.put(Uint8Array.from({ length: 1024 }, (_, at) => Math.imul(at, 0x9e3779b1) >>> 24)),
        grid.put(new Uint32Array(16 * 128)),
      ];
      expect(
        grid.run('k', [{ i64: from.address }, { i64: out.address }], { grid: [1], block: [128] })
          .status,
      ).toBe(STATUS.done);
      expect(grid.width('k', { grid: [1], block: [128] })).toBe(simd ? 16 : 1);
      return [...out.view];
    });
    expect(results[1]).toEqual(results[0]);
    expect(
      results[0]!
        .filter((_, at) => at % 16 >= 12 && at % 16 < 14)
        .reduce((sum, count) => sum + count, 0),
    ).toBeGreaterThan(0);
  });

  it('find the fault of an atomic that may pass the end of its variable', () => {
    const body = `.reg .b64 %in; .reg .b32 %t, %b, %i, %s; .reg .b16 %h;
      .shared .align 4 .b8 bins[1024];
      ld.param.u64 %in, [in]; mov.u32 %t, %tid.x; ld.param.u64 %in, [in];
      mad.wide.u32 %in, %t, 1, %in; ld.global.u8 %h, [%in];
      mul.wide.u16 %i, %h, 4; mov.u32 %s, bins; add.s32 %b, %s, %i;
      red.shared.add.u32 [%b+4], 1; ret;`;
    const faults = [false, true].map((simd) => {
      const grid = new Grid(kernelText('k', '.param .u64 in', body), { simd });
      const from = grid.put(Uint8Array.from({ length: 64 }, (_, at) => 192 + at));
      const { status, fault } = grid.run('k', [{ i64: from.address }], { grid: [1], block: [64] });
      expect(status).toBe(STATUS.fault);
      expect(grid.width('k', { grid: [1], block: [64] })).toBe(simd ? 32 : 1);
      return fault;
    });
    expect(faults[0]?.thread).toBe(63);
    expect(faults[1]).toEqual(faults[0]);
  });

  // Whole blocks of several warps, which exchange values in registers and through shared memory,
  // with and without a partial one.
  someOf(
    2,
    it,
  )([
    [256, 1024],
    [256, 1000],
    [96, 77],
    [100, 200],
    [64, 4099],
  ])('normalise rows as single threads do: %i threads, %i columns', (threads, columns) => {
    const rows = 5;
    const [one, lanes] = [false, true].map((simd) => {
      const grid = new Grid(sample('k05_softmax'), { simd });
      const floats = (count: number, of: (index: number) => number): number =>
        grid.put(Float32Array.from({ length: count }, (_, index) => of(index))).address;
      const [x, w] = [
        floats(rows * columns, (index) => Math.sin(index * 0.7) * 3),
        floats(columns, (index) => 1 + index / 7),
      ];
      const [y, z] = [
        grid.put(new Float32Array(rows * columns)),
        grid.put(new Float32Array(rows * columns)),
      ];
      const launch = { grid: [rows], block: [threads], fuel: 3000 } as const;
      expect(
        grid.run(
          'rms_norm',
          [{ i64: x }, { i64: w }, { i64: y.address }, { i32: columns }, { f32: 1e-6 }],
          launch,
        ).status,
      ).toBe(STATUS.done);
      expect(
        grid.run('softmax', [{ i64: x }, { i64: z.address }, { i32: columns }], launch).status,
      ).toBe(STATUS.done);
      expect(grid.width('softmax', launch) > 1).toBe(simd);
      return [...y.view, ...z.view];
    });
    expect(lanes).toEqual(one);
    expect(new Set(lanes).size).toBeGreaterThan(columns);
  });

  someOf(
    2,
    it,
  )([
    [256, 5000],
    [96, 1000],
    [40, 333],
  ])('scan and add as single threads do: %i threads, %i values', (threads, count) => {
    const blocks = Math.ceil(count / threads);
    const [one, lanes] = [false, true].map((simd) => {
      const [scan, reduce] = [
        new Grid(sample('k07_scan'), { simd }),
        new Grid(sample('k03_reduce'), { simd }),
      ];
      const values = Int32Array.from(
        { length: count },
        (_, index) => Math.imul(index, 2654435761) >> 20,
      );
      const [out, sums] = [scan.put(new Int32Array(count)), scan.put(new Int32Array(blocks))];
      expect(
        scan.run(
          'scan_block',
          [
            { i64: scan.put(values).address },
            { i64: out.address },
            { i64: sums.address },
            { i32: count },
          ],
          { grid: [blocks], block: [threads], fuel: 500 },
        ).status,
      ).toBe(STATUS.done);
      const sum = reduce.put(new Float32Array(1));
      expect(
        reduce.run(
          'reduce_sum',
          [
            { i64: reduce.put(Float32Array.from(values)).address },
            { i64: sum.address },
            { i32: count },
          ],
          { grid: [3], block: [threads], fuel: 100 },
        ).status,
      ).toBe(STATUS.done);
      return [...out.view, ...sums.view, ...sum.view];
    });
    expect(lanes).toEqual(one);
    expect(lanes!.at(-1)).not.toBe(0);
  });

  it.each([0, 1, 5, 0x80000000, 0x00010000, 0xffffffff])(
    "leave the last thread's value where several store to one place: mask %i",
    (mask) => {
      const sizes = ['u8', 'u16', 'u32', 'u64', 'v2.u32', 'v4.u32', 'v2.u64'];
      const value = (type: string): string =>
        type === 'u64'
          ? '%d'
          : type === 'v2.u64'
            ? '{%d, %e}'
            : type === 'v2.u32'
              ? '{%x, %t}'
              : type === 'v4.u32'
                ? '{%x, %t, %t, %x}'
                : '%x';
      const source = kernelText(
        'k',
        '.param .u64 out',
        `.reg .b64 %o, %d, %e; .reg .b32 %t, %x, %m; .reg .pred %p; ld.param.u64 %o, [out];
          mov.u32 %t, %tid.x; mul.lo.u32 %x, %t, 2654435761;
      mul.wide.u32 %d, %x, %x; not.b64 %e, %d; mov.u32 %m, ${mask}; shr.u32 %m, %m, %t;
        and.b32 %m, %m, 1; setp.ne.u32 %p, %m, 0;
      ${sizes
        .map(
          (type, index) => `@%p st.global.${type} [%o+${16 * index}],
        ${value(type)};`,
        )
        .join(' ')} @!%p bra end;
          st.global.u32 [%o+${16 * sizes.length}], %t; end: ret;`,
      );
      const [one, lanes] = [false, true].map((simd) => {
        const grid = new Grid(source, { simd });
        const out = grid.put(new Uint32Array(64));
        expect(grid.run('k', [{ i64: out.address }], { grid: [1], block: [32] }).status).toBe(
          STATUS.done,
        );
        expect(grid.width('k', { grid: [1], block: [32] }) > 1).toBe(simd);
        return [...out.view];
      });
      expect(lanes).toEqual(one);
      expect(lanes!.some((word) => word !== 0)).toBe(mask !== 0);
    },
  );

  it('say why a kernel has none', () => {
    const lanes = (
      source: string,
      name: string,
      block: readonly [number, number, number] = [32, 1, 1],
    ): number | string => {
      const found = new Grid(source).kernel(name).inLanes(block);
      return typeof found === 'string' ? found : found.width;
    };
    expect(lanes(sample('k01_saxpy'), 'saxpy')).toBe(32);
    expect(lanes(sample('k01_saxpy'), 'saxpy', [3, 1, 1])).toBe(
      "the block's rows do not divide by four",
    );
    expect(lanes(sample('k04_sgemm'), 'sgemm_tiled', [16, 16, 1])).toBe(16);
    expect(lanes(sample('k10_mandel'), 'mandel', [12, 4, 1])).toBe(4);
    expect(lanes(sample('k17_calls'), 'recursion')).toBe('it calls functions');
    expect(lanes(sample('k20_switch_goto'), 'irrg')).toBe('its control flow is irreducible');
    // As in radix sorts: for each of many keys, a vote on each bit of its digit.
    const votes = (count: number, between = ''): string =>
      kernelText(
        'ranks',
        '.param .u64 out',
        `.reg .b64 %o; .reg .b32 %t, %v, %s; .reg .pred %p; ld.param.u64 %o, [out];
      mov.u32 %t, %tid.x; mov.u32 %s, 0; ${(
        `shr.u32 %v, %t, 1; and.b32 %v, %v, 1;
        setp.ne.u32 %p, %v, 0; ${between} ` + 'vote.sync.ballot.b32 %v, %p, -1; add.u32 %s, %s, %v;'
      ).repeat(count)}
      st.global.u32 [%o], %s; ret;`,
      );
    expect(lanes(votes(160), 'ranks')).toBe(32);
    expect(lanes(votes(500, 'xor.b32 %s, %s, 5; add.u32 %s, %s, %t;'.repeat(3)), 'ranks')).toBe(
      'its warps would be several units, and exchange values often',
    );
    expect(lanes(votes(250, 'xor.b32 %s, %s, 5; add.u32 %s, %s, %t;'.repeat(8)), 'ranks')).toBe(4);
  });
});
