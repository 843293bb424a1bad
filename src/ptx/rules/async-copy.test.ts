// Copies to and from shared memory, and the mbarriers that count their bytes.

import { describe, expect, it } from 'vitest';
import { FAULT, STATUS } from '../index.js';
import { Grid, kernelText } from '../run-grid.test-support.js';

const REGISTERS = `.reg .b64 %i, %o, %l<4>; .reg .b32 %t, %s, %m, %r<8>; .reg .b16 %h<4>;
  .reg .pred %p, %q; .reg .f32 %f<4>;
  .shared .align 128 .b8 area[1024]; .shared .align 8 .b8 bar[8];
  ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mov.u32 %s, area;
  mov.u32 %m, bar;`;

function run(
  body: string,
  threads = 1,
  fill?: (bytes: Uint8Array) => void,
): { out: Uint32Array; input: Uint8Array; outcome: ReturnType<Grid['run']> } {
  const grid = new Grid(
    kernelText('k', '.param .u64 in, .param .u64 out', `${REGISTERS}\n${body}\nret;`),
  );
  const input = grid.put(Uint8Array.from({ length: 1024 }, (_, index) => (index * 7 + 1) & 255));
  fill?.(input.view);
  const out = grid.put(new Uint32Array(1024));
  const outcome = grid.run('k', [{ i64: input.address }, { i64: out.address }], {
    grid: [1],
    block: [threads],
    maxCalls: 50,
  });
  return { out: out.view, input: input.view, outcome };
}
const words = (bytes: Uint8Array): number[] => [...new Uint32Array(bytes.slice().buffer)];
/** Reads shared memory back to `out`, one word for each thread, or all by one. */
const dump = (count: number): string =>
  Array.from(
    { length: count },
    (_, index) => `ld.shared.u32 %r7, [%s+${4 * index}]; st.global.u32 [%o+${4 * index}], %r7;`,
  ).join(' ');

describe('cp.async', () => {
  it('copies 4, 8 and 16 bytes, by every cache operator and hint', () => {
    const { out, input } = run(`cp.async.ca.shared.global [%s], [%i], 4;
      cp.async.ca.shared::cta.global.L2::128B [%s+8], [%i+8], 8;
      cp.async.cg.shared.global [%s+16], [%i+16], 16;
      mov.b64 %l0, 0; cp.async.cg.shared.global.L2::cache_hint.L2::64B [%s+32], [%i+32], 16,
      %l0; cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all; ${dump(12)}`);
    const source = words(input);
    expect([...out.subarray(0, 12)]).toEqual([
      source[0],
      0,
      source[2],
      source[3],
      ...source.slice(4, 12),
    ]);
  });
  it('fills bytes beyond the source with zeros', () => {
    const prepare = 'mov.b32 %r0, -1; st.shared.v4.b32 [%s], {%r0, %r0, %r0, %r0};';
    for (const size of [0, 3, 4, 9, 16]) {
      const { out, input } = run(
        `${prepare} mov.u32 %r1, ${size}; cp.async.cg.shared.global [%s], [%i], 16, %r1; ` +
          `${dump(4)}`,
      );
      expect([...new Uint8Array(out.slice(0, 4).buffer)]).toEqual(
        [...input.subarray(0, 16)].map((byte, index) => (index < size ? byte : 0)),
      );
    }
    for (const ignore of [0, 1]) {
      const { out, input } = run(
        `${prepare} setp.ne.u32 %p, ${ignore}, 0; cp.async.ca.shared.global [%s], [%i], 8, ` +
          `%p; ${dump(4)}`,
      );
      expect([...out.subarray(0, 4)]).toEqual([
        ...(ignore ? [0, 0] : words(input).slice(0, 2)),
        0xffffffff,
        0xffffffff,
      ]);
    }
  });
  it('does not read from an invalid address for zero bytes of the source', () => {
    const { out, outcome } = run(
      'mov.b32 %r0, -1; st.shared.b32 [%s], %r0; mov.u32 %r1, 0; mov.b64 %l0, -13; ' +
        `cp.async.cg.shared.global [%s], [%l0], 16, %r1; ${dump(1)}`,
    );
    expect(outcome.status).toBe(STATUS.done);
    expect(out[0]).toBe(0);
    expect(
      run('mov.u32 %r1, 1; mov.b64 %l0, -13; cp.async.cg.shared.global [%s], [%l0], 16, %r1;')
        .outcome.status,
    ).not.toBe(STATUS.done);
  });
  it('arrives at an mbarrier once, with and without .noinc', () => {
    // Two arrivals: .noinc counts as one of them, the other form leaves the count unchanged.
    const body = (
      form: string,
    ): string => `mbarrier.init.shared.b64 [%m], 2; cp.async.ca.shared.global [%s], [%i], 4;
      cp.async.mbarrier.arrive${form}.shared.b64 [%m];
      mbarrier.arrive.shared.b64 %l0, [%m]; mbarrier.test_wait.parity.shared.b64 %p, [%m], 0;
      selp.u32 %r0, 1, 0, %p; st.global.u32 [%o], %r0;`;
    expect(run(body('.noinc')).out[0]).toBe(1);
    expect(run(body('')).out[0]).toBe(0);
  });
});

describe('mbarrier', () => {
  const state = (after: string): number[] => {
    const { out, outcome } = run(`mbarrier.init.shared.b64 [%m], 3;
        ${after} mbarrier.test_wait.parity.shared.b64 %p, [%m], 0; selp.u32 %r0, 1, 0, %p;
          st.global.u32 [%o], %r0;
      ld.shared.b64 %l0, [%m]; mbarrier.pending_count.b64 %r1, %l0; st.global.u32 [%o+4], %r1;`);
    expect(outcome.status).toBe(STATUS.done);
    return [...out.subarray(0, 2)];
  };
  it('a phase ends with its last arrival, and the next one begins', () => {
    expect(state('')).toEqual([0, 3]);
    expect(state('mbarrier.arrive.shared.b64 %l0, [%m];')).toEqual([0, 2]);
    expect(state('mbarrier.arrive.shared.b64 %l0, [%m], 2;')).toEqual([0, 1]);
    expect(state('mbarrier.arrive.shared::cta.b64 _, [%m], 3;')).toEqual([1, 3]);
    expect(
      state(
        'mbarrier.arrive.noComplete.shared.b64 %l0, [%m], 1; ' +
          'mbarrier.arrive.release.cta.shared.b64 %l0, [%m], 2;',
      ),
    ).toEqual([1, 3]);
    // Two phases: the test is for parity 0, which the third phase has again.
    expect(
      state('mbarrier.arrive.shared.b64 %l0, [%m], 3; mbarrier.arrive.shared.b64 %l0, [%m], 3;'),
    ).toEqual([0, 3]);
  });
  it('arrive_drop expects one arrival fewer from then on', () => {
    expect(state('mbarrier.arrive_drop.shared.b64 %l0, [%m];')).toEqual([0, 2]);
    expect(
      state('mbarrier.arrive_drop.shared.b64 %l0, [%m]; mbarrier.arrive.shared.b64 %l0, [%m], 2;'),
    ).toEqual([1, 2]);
  });
  it('announced bytes hold the phase back until they have come, in any order', () => {
    expect(
      state(
        'mbarrier.expect_tx.relaxed.cta.shared.b64 [%m], 64; mbarrier.arrive.shared.b64 %l0, ' +
          '[%m], 3;',
      ),
    ).toEqual([0, 0]);
    expect(
      state(
        'mbarrier.expect_tx.shared.b64 [%m], 64; mbarrier.arrive.shared.b64 %l0, [%m], 3; ' +
          'mbarrier.complete_tx.shared.b64 [%m], 60;',
      ),
    ).toEqual([0, 0]);
    expect(
      state(
        'mbarrier.arrive.expect_tx.shared.b64 %l0, [%m], 64; mbarrier.arrive.shared.b64 %l0, ' +
          '[%m], 2; mbarrier.complete_tx.shared.b64 [%m], 64;',
      ),
    ).toEqual([1, 3]);
    expect(
      state(
        'mbarrier.complete_tx.shared.b64 [%m], 64; mbarrier.arrive.shared.b64 %l0, [%m], 2; ' +
          'mbarrier.arrive.expect_tx.shared.b64 %l0, [%m], 64;',
      ),
    ).toEqual([1, 3]);
  });
  it('a state token contains its phase and the pending count', () => {
    const { out } =
      run(`mbarrier.init.shared.b64 [%m], 300; mbarrier.arrive.shared.b64 %l0, [%m], 40;
      mbarrier.pending_count.b64 %r0, %l0; st.global.u32 [%o], %r0;
      mbarrier.test_wait.shared.b64 %p, [%m], %l0; selp.u32 %r0, 1, 0, %p;
      st.global.u32 [%o+4], %r0; mbarrier.arrive.shared.b64 %l1, [%m], 260;
      mbarrier.pending_count.b64 %r0, %l1; st.global.u32 [%o+8], %r0;
      mbarrier.try_wait.shared.b64 %p, [%m], %l0, 1000; selp.u32 %r0, 1, 0, %p;
      st.global.u32 [%o+12], %r0; mbarrier.inval.shared.b64 [%m];`);
    expect([...out.subarray(0, 4)]).toEqual([300, 0, 260, 1]);
  });
  it('threads that wait yield to those that will arrive', () => {
    const { out, outcome } = run(
      `setp.ne.u32 %p, %t, 0; @!%p mbarrier.init.shared.b64 [%m], 64; bar.sync 0;
      shl.b32 %r0, %t, 2; add.u32 %r1, %s, %r0; st.shared.u32 [%r1], %t;
      mbarrier.arrive.release.cta.shared::cta.b64 %l0, [%m];
      again: mbarrier.try_wait.acquire.cta.shared::cta.b64 %q, [%m], %l0; @!%q bra again;
      xor.b32 %r0, %r0, 252; add.u32 %r1, %s, %r0; ld.shared.u32 %r2, [%r1];
      mul.wide.u32 %l1, %t, 4; add.u64 %l1, %l1, %o; st.global.u32 [%l1], %r2;`,
      64,
    );
    expect(outcome.status).toBe(STATUS.done);
    expect([...out.subarray(0, 64)]).toEqual(
      Array.from({ length: 64 }, (_, thread) => thread ^ 63),
    );
  });
});

describe('bulk copies', () => {
  const wait =
    'mbarrier.arrive.expect_tx.shared.b64 %l0, [%m], %r0; again: ' +
    'mbarrier.try_wait.shared.b64 %p, [%m], %l0; @!%p bra again;';
  it('global to shared, counted by an mbarrier', () => {
    for (const space of ['shared::cta', 'shared::cluster']) {
      const { out, input, outcome } = run(
        'mbarrier.init.shared.b64 [%m], 1; mov.u32 %r0, 64; ' +
          `cp.async.bulk.${space}.global.mbarrier::complete_tx::bytes [%s], [%i+16], %r0, ` +
          `[%m]; ${wait} ${dump(17)}`,
      );
      expect(outcome.status).toBe(STATUS.done);
      expect([...out.subarray(0, 17)]).toEqual([...words(input).slice(4, 20), 0]);
    }
  });
  it('to the blocks in a mask: only rank 0 exists', () => {
    for (const mask of [1, 2, 3]) {
      const { out, input } = run(
        `mbarrier.init.shared.b64 [%m], 1; mov.u32 %r0, 16; mov.b16 %h0, ${mask}; ` +
          'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster ' +
          `[%s], [%i], %r0, [%m], %h0; ${dump(4)}`,
      );
      expect([...out.subarray(0, 4)]).toEqual(mask & 1 ? words(input).slice(0, 4) : [0, 0, 0, 0]);
    }
  });
  it('within shared memory, and back to global memory, whole or by a mask of bytes', () => {
    const { out, input } =
      run(`mbarrier.init.shared.b64 [%m], 1; mov.u32 %r0, 32; mov.b16 %h0, 0x8005; mov.b64 %l1, 0;
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%i], %r0, [%m];
      cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%s+64], [%s],
      %r0, [%m];
      cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%o], [%s+64], %r0, %l1;
      cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%o+64], [%s], %r0, %h0;
      cp.async.bulk.prefetch.L2.global [%i], %r0; cp.async.bulk.commit_group;
      cp.async.bulk.wait_group 0; cp.async.bulk.wait_group.read 0;
      mbarrier.arrive.expect_tx.shared.b64 %l0, [%m], 64;
      mbarrier.test_wait.shared.b64 %p, [%m], %l0; selp.u32 %r1, 1, 0, %p;
      st.global.u32 [%o+128], %r1;`);
    expect([...out.subarray(0, 8)]).toEqual(words(input).slice(0, 8));
    const bytes = new Uint8Array(out.slice(16, 24).buffer);
    expect([...bytes]).toEqual(
      [...input.subarray(0, 32)].map((byte, index) => ((0x8005 >> (index % 16)) & 1 ? byte : 0)),
    );
    expect(out[32]).toBe(1);
  });
  it('a range that leaves memory, or is misaligned, is a fault', () => {
    const outside = run(
      'mov.u32 %r0, 2048; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes ' +
        '[%s], [%i], %r0, [%m];',
    ).outcome;
    expect([outside.status, outside.fault?.kind]).toEqual([STATUS.fault, FAULT.outOfBounds]);
    const huge = run(
      'mov.u32 %r0, -16; cp.async.bulk.global.shared::cta.bulk_group [%i], [%s], %r0;',
    ).outcome;
    expect(huge.fault?.kind).toBe(FAULT.outOfBounds);
    const crooked = run(
      'mov.u32 %r0, 16; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], ' +
        '[%i+4], %r0, [%m];',
    ).outcome;
    expect(crooked.fault?.kind).toBe(FAULT.misaligned);
  });
  it('reductions, element by element', () => {
    const cases: [string, number, (old: number, value: number) => number][] = [
      ['add.u32', 32, (old, value) => (old + value) >>> 0],
      ['min.s32', 32, (old, value) => Math.min(old | 0, value | 0) >>> 0],
      ['max.u32', 32, (old, value) => Math.max(old, value)],
      ['and.b32', 32, (old, value) => (old & value) >>> 0],
      ['or.b32', 32, (old, value) => (old | value) >>> 0],
      ['xor.b32', 32, (old, value) => (old ^ value) >>> 0],
      ['inc.u32', 32, (old, value) => (old >= value ? 0 : old + 1)],
      ['dec.u32', 32, (old, value) => (old === 0 || old > value ? value : old - 1)],
    ];
    for (const [operation, , apply] of cases) {
      const prepare =
        'mov.u32 %r0, 64; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], ' +
        '[%i], %r0, [%m]; cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes ' +
        '[%s+64], [%i+80], %r0, [%m];';
      const global = run(
        `mbarrier.init.shared.b64 [%m], 1; ${prepare} ` +
          'cp.async.bulk.global.shared::cta.bulk_group [%o], [%s+64], %r0; ' +
          `cp.reduce.async.bulk.global.shared::cta.bulk_group.${operation} [%o], [%s], %r0;`,
      );
      const source = words(global.input);
      const wanted = Array.from({ length: 16 }, (_, index) =>
        apply(source[20 + index]!, source[index]!),
      );
      expect([...global.out.subarray(0, 17)], operation).toEqual([...wanted, 0]);
      const shared = run(`mbarrier.init.shared.b64 [%m], 1; ${prepare}
        cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.${operation}
          [%s+64], [%s], %r0, [%m];
        cp.async.bulk.global.shared::cta.bulk_group [%o], [%s+64], %r0;`);
      expect([...shared.out.subarray(0, 16)], operation).toEqual(wanted);
    }
    const halves = run(`mov.u32 %r0, 16; mov.b32 %r1, 0x3c004000;
      st.shared.v4.b32 [%s], {%r1, %r1, %r1, %r1}; st.global.v4.b32 [%o], {%r1, %r1, %r1, %r1};
      cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16 [%o], [%s], %r0;`);
    expect([...halves.out.subarray(0, 4)]).toEqual([
      0x40004400, 0x40004400, 0x40004400, 0x40004400,
    ]);
  });
});

describe('st.async, red.async and st.bulk', () => {
  it('write and count their bytes', () => {
    const { out } =
      run(`mbarrier.init.shared.b64 [%m], 1; mov.b32 %r0, 5; mov.b32 %r1, 6; mov.b64 %l0, 7;
      st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%s], %l0, [%m];
      st.async.weak.mbarrier::complete_tx::bytes.v2.b32 [%s+8], {%r0, %r1}, [%m];
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%s+8],
      %r1, [%m];
      mbarrier.arrive.expect_tx.shared.b64 %l1, [%m], 20;
      mbarrier.test_wait.shared.b64 %p, [%m], %l1; ${dump(4)} selp.u32 %r2, 1, 0, %p;
      st.global.u32 [%o+16], %r2;
      st.async.release.gpu.global.u32 [%o+20], %r1;
      red.async.release.gpu.global.add.u32 [%o+20], %r0;`);
    expect([...out.subarray(0, 6)]).toEqual([7, 0, 11, 6, 1, 11]);
  });
  it('st.bulk clears the given number of bytes', () => {
    const { out } = run(
      'mov.b32 %r0, -1; st.shared.v4.b32 [%s], {%r0, %r0, %r0, %r0}; mov.b64 %l0, 8; ' +
        'st.bulk.weak.shared::cta [%s], %l0, 0; ' +
        dump(4),
    );
    expect([...out.subarray(0, 4)]).toEqual([0, 0, 0xffffffff, 0xffffffff]);
    expect(run('mov.b64 %l0, 4096; st.bulk.shared::cta [%s], %l0, 0;').outcome.fault?.kind).toBe(
      FAULT.outOfBounds,
    );
  });
});
