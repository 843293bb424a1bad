// Clusters of several blocks: places, addresses, the barrier, and accesses to another block's
// shared memory, thread by thread and in lanes.

import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';
import type { Dimensions, Outcome } from '../run-grid.test-support.js';

interface Run {
  out: number[];
  /** Threads that run at once. */
  width: number;
  outcome: Outcome;
}

interface Shape {
  cluster: Dimensions;
  grid?: Dimensions;
  threads?: number;
  simd?: boolean;
  fuel?: number;
}

/**
 * `%t` is the thread, `%c` the rank, `%s` the address of `s`, and `out` has 64 words for each
 * block.
 */
function run(
  body: string,
  { cluster, grid = cluster, threads = 32, simd = false, fuel = 100_000 }: Shape,
): Run {
  const text = kernelText(
    'k',
    '.param .u64 out',
    `.reg .b64 %o, %l<6>; .reg .b32 %r<12>, %t, %c, %s; .reg .b16 %h<2>; .reg .pred %p, %q;
    .shared .align 16 .b32 s[256]; .shared .align 8 .b64 bar;
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %cluster_ctarank; mov.u32 %s, s;
    mov.u32 %r10, %ctaid.x; mov.u32 %r11, %nctaid.x; mov.u32 %r9, %ctaid.y;
    mad.lo.u32 %r10, %r9, %r11, %r10; mov.u32 %r9, %ctaid.z;
    mov.u32 %r8, %nctaid.y; mul.lo.u32 %r11, %r11, %r8; mad.lo.u32 %r10, %r9, %r11, %r10;
    mul.wide.u32 %l0, %r10, 256; add.u64 %o, %o, %l0;
    ${body} ret;`,
  );
  const machine = new Grid(text, { simd });
  const [x, y = 1, z = 1] = grid;
  const out = machine.put(new Uint32Array(64 * x * y * z));
  const outcome = machine.run('k', [{ i64: out.address }], {
    grid,
    block: [threads],
    cluster,
    fuel,
    maxCalls: 10_000,
  });
  return { out: [...out.view], outcome, width: machine.width('k', { grid, block: [threads] }) };
}

const MEET = 'barrier.cluster.arrive; barrier.cluster.wait;';
/** Writes %r0 to the thread's word. */
const STORE = 'mul.wide.u32 %l5, %t, 4; add.u64 %l5, %l5, %o; st.global.u32 [%l5], %r0;';
/** Makes %r2 the address of this thread's word of `s` in the next block. */
const NEXT =
  'mov.u32 %r1, %cluster_nctarank; add.u32 %r3, %c, 1; rem.u32 %r3, %r3, %r1; shl.b32 %r4, ' +
  '%t, 2; add.u32 %r5, %s, %r4; mapa.shared::cluster.u32 %r2, %r5, %r3;';

describe('clusters', () => {
  it('special registers have the place of each block', () => {
    const names = ['clusterid', 'nclusterid', 'cluster_ctaid', 'cluster_nctaid'].flatMap((name) =>
      ['x', 'y', 'z'].map((axis) => `${name}.${axis}`),
    );
    const reads = [...names, 'cluster_ctarank', 'cluster_nctarank']
      .map((name, i) => `mov.u32 %r0, %${name}; st.global.u32 [%o+${4 * i}], %r0;`)
      .join('');
    const { out } = run(
      `${reads} mov.pred %p, %is_explicit_cluster; selp.u32 %r0, 1, 0, %p; st.global.u32 ` +
        '[%o+56], %r0;',
      { cluster: [2, 1, 3], grid: [4, 2, 3], threads: 1 },
    );
    for (let block = 0; block < 24; block++) {
      const [x, y, z] = [block % 4, Math.floor(block / 4) % 2, Math.floor(block / 8)];
      expect(out.slice(64 * block, 64 * block + 15)).toEqual([
        x >> 1,
        y,
        0,
        2,
        2,
        1,
        x & 1,
        0,
        z,
        2,
        1,
        3,
        (x & 1) + 2 * z,
        6,
        1,
      ]);
    }
  });

  for (const simd of [false, true]) {
    describe(simd ? 'in lanes' : 'thread by thread', () => {
      it(
        'what was stored before the barrier is read from another block after it, however ' +
          'little fuel there is',
        () => {
          for (const fuel of [1, 7, 100_000]) {
            const { out, outcome } = run(
              `${NEXT} mad.lo.u32 %r0, %c, 1000, %t; st.shared.u32 [%r5], %r0; ${MEET} ` +
                `ld.shared::cluster.u32 %r0, [%r2]; ${MEET} ${STORE}`,
              { cluster: [4], grid: [8], simd, fuel },
            );
            expect(outcome.status).toBe(STATUS.done);
            for (let block = 0; block < 8; block++)
              expect(out.slice(64 * block, 64 * block + 32)).toEqual(
                Array.from({ length: 32 }, (_, t) => ((block + 1) % 4) * 1000 + t),
              );
          }
        },
      );
      it('in a loop, with work between arriving and waiting', () => {
        const { out, outcome } = run(
          `${NEXT} mov.u32 %r6, 0; st.shared.u32 [%r5], %t; ${MEET}
          again: ld.shared::cluster.u32 %r0, [%r2]; barrier.cluster.arrive.release;
          add.u32 %r0, %r0, %c; barrier.cluster.wait.acquire; st.shared.u32 [%r5], %r0; ${MEET}
          add.u32 %r6, %r6, 1; setp.lt.u32 %p, %r6, 6; @%p bra again; ${STORE}`,
          { cluster: [3], simd },
        );
        expect(outcome.status).toBe(STATUS.done);
        let cells = [0, 0, 0];
        for (let round = 0; round < 6; round++)
          cells = cells.map((_, c) => cells[(c + 1) % 3]! + c);
        for (let block = 0; block < 3; block++)
          expect(out.slice(64 * block, 64 * block + 32)).toEqual(
            Array.from({ length: 32 }, (_, t) => cells[block]! + t),
          );
      });
      it('the barrier does not wait for threads and blocks that have ended', () => {
        const { out, outcome } = run(
          'setp.eq.u32 %p, %c, 1; @%p exit; setp.ge.u32 %p, %t, 20; @%p ' +
            `barrier.cluster.arrive; @%p exit; ${MEET} mov.u32 %r0, 9; ${STORE}`,
          { cluster: [3], simd },
        );
        expect(outcome.status).toBe(STATUS.done);
        for (let block = 0; block < 3; block++)
          expect(out.slice(64 * block, 64 * block + 32)).toEqual(
            Array.from({ length: 32 }, (_, t) => (block !== 1 && t < 20 ? 9 : 0)),
          );
      });
      it('threads of a warp arrive and wait apart', () => {
        const { out, outcome, width } = run(
          `${NEXT} st.shared.u32 [%r5], %t; and.b32 %r6, %t, 3; setp.eq.u32 %p, %r6, 1;
            @%p bra odd; ${MEET} ld.shared::cluster.u32 %r0, [%r2]; bra join;
          odd: mov.u32 %r7, 0; more: add.u32 %r7, %r7, 1; setp.lt.u32 %q, %r7, %t;
          @%q bra more; ${MEET} ld.shared::cluster.u32 %r0, [%r2]; add.u32 %r0, %r0, %r7;
          join: ${MEET} bar.sync 0; ${STORE}`,
          { cluster: [2], threads: 64, simd },
        );
        expect([outcome.status, width]).toEqual([STATUS.done, simd ? 32 : 1]);
        for (let block = 0; block < 2; block++)
          expect(out.slice(64 * block, 64 * block + 64)).toEqual(
            Array.from({ length: 64 }, (_, t) => (t % 4 === 1 ? t + Math.max(t, 1) : t)),
          );
      });
      it('atomics from all blocks on one cell', () => {
        const { out } = run(
          `setp.ne.u32 %q, %t, 0; mov.u32 %r0, 5; @!%q st.shared.u32 [s], %r0;
            ${MEET} mapa.shared::cluster.u32 %r2, %s, 0; cvt.u64.u32 %l1, %r2;
          red.shared::cluster.add.u32 [%r2], %t; atom.add.u32 %r1, [%l1], 1;
          ${MEET} ld.shared.u32 %r0, [s]; ${STORE}`,
          { cluster: [4], simd },
        );
        expect([out[0], out[64], out[192 + 31]]).toEqual([5 + 4 * (496 + 32), 5, 5]);
      });
    });
  }

  it('mapa, getctarank and isspacep agree', () => {
    const { out } = run(
      `mov.u64 %l1, s; cvta.shared.u64 %l1, %l1; mapa.u64 %l2, %l1, 2;
      getctarank.u64 %r0, %l2; st.global.u32 [%o], %r0; mapa.u64 %l3, %l2, %c;
      sub.u64 %l3, %l3, %l1; st.global.u64 [%o+8], %l3;
      isspacep.shared::cta %p, %l2; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+16], %r0;
      isspacep.shared::cluster %p, %l2; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+20], %r0;
      isspacep.global %p, %l2; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+24], %r0;
      isspacep.shared::cluster %p, %o; selp.u32 %r0, 1, 0, %p; st.global.u32 [%o+28], %r0;`,
      { cluster: [3], threads: 1 },
    );
    for (let block = 0; block < 3; block++)
      expect(out.slice(64 * block, 64 * block + 8)).toEqual([
        2,
        0,
        0,
        0,
        block === 2 ? 1 : 0,
        1,
        0,
        0,
      ]);
  });

  it(
    "an address outside of all blocks' shared memory, or of a block that is not there, is a " +
      'fault',
    () => {
      for (const [rank, offset] of [
        [1, 1032],
        [1, -4],
        [2, 0],
        [7, 64],
      ]) {
        const { outcome } = run(
          `${MEET} mapa.shared::cluster.u32 %r2, %s, ${rank}; ld.shared::cluster.u32 %r0, ` +
            `[%r2+${offset}];`,
          { cluster: [2] },
        );
        expect([outcome.status, outcome.fault?.kind]).toEqual([STATUS.fault, FAULT.outOfBounds]);
      }
    },
  );

  it('a copy to many blocks counts at mbarriers in shared memory only', () => {
    const { outcome } = run(
      'mov.u32 %r1, 16; mov.b16 %h0, 3; ' +
        'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster ' +
        '[%s], [%o], %r1, [%o], %h0;',
      { cluster: [2] },
    );
    expect([outcome.status, outcome.fault?.kind]).toEqual([STATUS.fault, FAULT.outOfBounds]);
  });

  it("a deadlock between the block's barrier and the cluster's is reported", () => {
    const { outcome } = run(
      `setp.lt.u32 %p, %t, 8; @%p bra there; ${MEET} there: bar.sync 1, 32; ${MEET}`,
      { cluster: [2] },
    );
    expect([outcome.status, outcome.fault?.kind]).toEqual([STATUS.fault, FAULT.divergentBarrier]);
  });

  it('copies to many blocks, each of whose mbarriers counts', () => {
    const { out, outcome } = run(
      `setp.ne.u32 %p, %t, 0; @%p bra ready; mbarrier.init.shared.b64 [bar], 1;
      and.b32 %r0, %c, 1; shl.b32 %r0, %r0, 4; mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r0;
      ready: ${MEET} setp.ne.u32 %q, %c, 2; or.pred %q, %q, %p; @%q bra sent;
      st.global.v2.u32 [%o+240], {%c, %t}; mov.u32 %r1, 16; mov.b16 %h0, 0xfffa; mov.u32 %r2, bar;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [%s], [%o+240], %r1, [%r2], %h0;
      sent: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0;
      @!%p bra sent; ld.shared.u32 %r0, [s]; ${STORE}`,
      { cluster: [4], simd: false },
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([out[64], out[192]]).toEqual([2, 2]);
    expect([out[0], out[128]]).toEqual([0, 0]);
  });
});
