// Tensor copies on a checked device: what they read and write, and what they order.

import { describe, expect, test } from 'vitest';
import type { CheckReport } from '../../../ground/check-report.js';
import { CheckedDevice } from '../testing/checked-device.js';

interface Shape {
  /** Rows of the tensor of 16 words each; its allocation has eight. */
  rows?: number;
  coordinates?: string;
  grid?: number;
  block?: number;
  cluster?: number;
  /** Whether the allocation is written before. */
  written?: boolean;
}

/**
 * `map` describes boxes of 8 rows of 16 words of the allocation %rd0; `s` and `t` are shared memory
 * of that size, and `m` is an mbarrier.
 */
function run(body: string, shape: Shape = {}): readonly CheckReport[] {
  const { rows = 8, grid = 1, block = 64, cluster = 1, written = true } = shape;
  const device = new CheckedDevice().load(`.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 p) ${
    cluster > 1 ? `.reqnctapercluster ${cluster}, 1, 1` : ''
  } {
.reg .u64 %rd<9>; .reg .u32 %r<20>; .reg .pred %p<4>; .reg .u16 %h<4>;
.shared .align 128 .b8 s[512]; .shared .align 128 .b8 t[512]; .shared .align 8 .b64 m;
mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd0, [p];
mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r2, t; mov.u32 %r3, m;
shl.b32 %r4, %r0, 2; add.u32 %r5, %r4, %r1; cvt.u64.u32 %rd2, %r4; add.u64 %rd2, %rd2, %rd0;
setp.ne.u32 %p0, %r0, 0;
@!%p0 mbarrier.init.shared.b64 [m], 1;
bar.sync 0;
${body}
ret;
}
`);
  const { cu } = device;
  const address = written
    ? device.words(...Array.from({ length: 128 }, (_, index) => index))
    : cu.cuMemAlloc(512);
  const map = cu.cuTensorMapEncodeTiled(
    ...([2, 2, address, [16, rows], [64], [16, 8], [1, 1], 0, 2, 0, 0] as const),
  );
  const params = new Int32Array(34);
  new Uint8Array(params.buffer).set(map);
  params[32] = address;
  cu.cuLaunchKernel(
    cu.cuModuleGetFunction(device.loaded, 'k'),
    ...([grid, 1, 1, block, 1, 1, 0, device.stream, params, 0, 136] as const),
  );
  return device.fails();
}

const kinds = (reports: readonly CheckReport[]): Set<string> =>
  new Set(reports.map(({ kind }) => kind));
const EXPECT = '@!%p0 mbarrier.arrive.expect_tx.shared.b64 %rd5, [m], 512;';
const load = (target: string, coordinates = '0, 0'): string =>
  `@!%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes ` +
  `[${target}], [%rd1, {${coordinates}}], [m];`;
const store = (source: string, reduction = ''): string =>
  `@!%p0 cp.${reduction ? 'reduce.' : ''}async.bulk.tensor.2d.global.shared::cta${reduction}.tile` +
  `.bulk_group [%rd1, {0, 0}], [${source}];`;
const WAIT = 'W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra W;';
const READ = 'ld.shared.u32 %r6, [%r5];';

describe('a load', () => {
  test('is ordered for threads that wait for its mbarrier', () => {
    expect(run(`${EXPECT}\n${load('s')}\n${WAIT}\n${READ}`)).toEqual([]);
  });
  test('races with threads that do not wait', () => {
    expect(kinds(run(`${EXPECT}\n${load('s')}\n${READ}`))).toEqual(new Set(['race']));
  });
  test('reads no further than the allocation', () => {
    expect(run(`${EXPECT}\n${load('s', '0, 1')}`, { rows: 9 })).toMatchObject([
      {
        kind: 'out-of-bounds',
        place: { action: 'read', thread: [0, 0, 0] },
        memory: { space: 'global', offset: 512 },
      },
    ]);
    // Beyond the tensor are zeros, which are not read.
    expect(run(`${EXPECT}\n${load('s', '4, 1')}\n${WAIT}\n${READ}`)).toEqual([]);
    expect(run(`${EXPECT}\n${load('s', '-8, -3')}\n${WAIT}\n${READ}`)).toEqual([]);
  });
  test('writes no further than the variable', () => {
    expect(run(`${EXPECT}\n${load('s+128')}`)).toMatchObject([
      { kind: 'out-of-bounds', place: { action: 'write' }, memory: { space: 'shared' } },
    ]);
  });
  test('keeps what was not written unwritten', () => {
    const before = 'st.global.u32 [%rd0], %r0;';
    const after = `${EXPECT}\n${load('s')}\n${WAIT}\n`;
    const one = { written: false, block: 1 };
    expect(run(`${before}\n${after}${READ}`, one)).toEqual([]);
    expect(run(`${before}\n${after}ld.shared.u32 %r6, [s+4];`, one)).toMatchObject([
      { kind: 'uninitialised', memory: { space: 'shared', offset: 4 } },
    ]);
  });
});

describe('a store', () => {
  const FILL = 'st.shared.u32 [%r5], %r0;\nst.shared.u32 [%r5+256], %r0;\n';
  const DONE = 'cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;';
  test('is ordered for threads that met before it and after its wait', () => {
    const stored = (wait: string): ReturnType<typeof run> =>
      run(`${FILL}bar.sync 0;\n${store('s')}\n${wait}\nbar.sync 0;\nld.global.u32 %r6, [%rd2];`);
    expect(stored(DONE)).toEqual([]);
    expect(kinds(stored(''))).toEqual(new Set(['race']));
  });
  test('races with threads that have not met', () => {
    expect(kinds(run(`${FILL}${store('s')}`))).toEqual(new Set(['race']));
    expect(kinds(run(`${FILL}bar.sync 0;\n${store('s')}\nld.global.u32 %r6, [%rd2];`))).toEqual(
      new Set(['race']),
    );
  });
  test('writes no further than the allocation', () => {
    expect(
      run(`${FILL}bar.sync 0;\n${store('s').replace('0, 0', '0, 1')}`, { rows: 9 }),
    ).toMatchObject([
      { kind: 'out-of-bounds', place: { action: 'write' }, memory: { space: 'global' } },
    ]);
  });
  test('of two blocks to the same box races, and reductions do not', () => {
    const both = (copy: string): Set<string> =>
      kinds(run(`${FILL}bar.sync 0;\n${copy}`, { grid: 2 }));
    expect(both(store('s'))).toEqual(new Set(['race']));
    expect(both(store('s', '.add'))).toEqual(new Set());
  });
});

describe('a load to the blocks of a cluster', () => {
  const multicast = (wait: string): readonly CheckReport[] =>
    run(
      `${EXPECT}
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mov.u32 %r7, %cluster_ctarank;
mov.u16 %h0, 3;
setp.ne.u32 %p2, %r7, 0;
@%p2 bra V;
@!%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
  .multicast::cluster [%r1], [%rd1, {0, 0}], [%r3], %h0;
V: ${wait}
${READ}
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;`,
      { grid: 2, cluster: 2 },
    );
  test('is ordered for threads that wait for the mbarrier of their block', () => {
    expect(multicast(WAIT)).toEqual([]);
  });
  test('races with threads that do not', () => {
    expect(kinds(multicast(''))).toContain('race');
  });
});

describe('tensormap', () => {
  const REPLACE = 'tensormap.replace.tile.rank.shared::cta.b1024.b32 [s], 1;';
  test('reads and writes the whole map', () => {
    const race =
      '@!%p0 ld.shared.u32 %r6, [s+64];\nsetp.ne.u32 %p1, %r0, 32;\n' +
      `@%p1 bra D;\n${REPLACE}\nD:`;
    const filled = (then: string): readonly CheckReport[] =>
      run(
        '@!%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%rd1], 128, ' +
          `[m];\nbar.sync 0;\n${then}`,
      );
    expect(filled('ld.shared.u32 %r6, [s+64];')).toEqual([]);
    expect(kinds(filled(race))).toContain('race');
  });
});
