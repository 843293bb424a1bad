// The two back ends against each other, bit for bit: random programs, block shapes that leave
// groups of four incomplete, threads that diverge and reconverge.

import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { STATUS } from '../index.js';
import { Grid, kernelText, sample } from '../run-grid.test-support.js';
import type { Dimensions } from '../run-grid.test-support.js';
import {
  F,
  R,
  SHAPES,
  differences,
  differing,
  floating,
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

  it('give them where values differ by literals from thread to thread', { tags: 'random' }, () => {
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
  });

  it(
    'give them where units mostly stay together: tiles between barriers, with guards at the ' +
      'edge',
    { tags: 'random' },
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

  it('do the same whatever the fuel', { tags: 'random' }, () => {
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
