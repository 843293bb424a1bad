// Accesses other than plain loads and stores: asynchronous and bulk copies, matrices, textures and
// surfaces, and the frames of functions that are called.

import { describe, expect, test } from 'vitest';
import type { CheckReport } from '../../../ground/check-report.js';
import { CheckedDevice, kernelOf } from '../testing/checked-device.js';
import type { Shape } from '../testing/checked-device.js';

/** The reports of a kernel on 64 words. */
function run(body: string, shape: Shape = {}, before = ''): readonly CheckReport[] {
  const device = new CheckedDevice().load(kernelOf(1, body, before));
  device.launch('k', [[device.words(...new Array<number>(64).fill(0))]], shape);
  return device.fails();
}

const kinds = (reports: readonly CheckReport[]): string[] => reports.map(({ kind }) => kind);

/** Puts the address of this thread's word of `s` into %r1. */
const SHARED =
  '.shared .align 16 .u32 s[128];\nmov.u32 %r9, s;\nshl.b32 %r1, %r0, 2;\nadd.u32 %r1, %r1, %r9;\n';

describe('asynchronous copies', () => {
  const SMALL = `${SHARED}cp.async.ca.shared.global [%r1], [%rd0+256], 4`;

  test('read their source', () => {
    expect(run(`${SMALL};`)).toMatchObject([
      {
        kind: 'out-of-bounds',
        place: { action: 'read' },
        bytes: 4,
        memory: { space: 'global', offset: 256 },
      },
    ]);
  });

  test('do not read the bytes beyond their limit', () => {
    expect(run(`${SMALL}, 0;\ncp.async.wait_all;\nld.shared.u32 %r3, [%r1];`)).toEqual([]);
    expect(
      run(`${SMALL}, %p1;`.replace('mov.u32 %r9', 'setp.eq.u32 %p1, 0, 0;\nmov.u32 %r9')),
    ).toEqual([]);
  });

  test('keep the unwritten bytes of their source', () => {
    // The second byte of each word is padding.
    const before =
      'mul.wide.u32 %rd3, %r0, 4;\nadd.u64 %rd3, %rd3, %rd0;\nst.global.u8 [%rd3], ' +
      '%b0;\nst.global.u16 [%rd3+2], %h0;\nbar.sync 0;\n';
    const after = (read: string): string => `cp.async.wait_all;\nbar.sync 0;\n${read}`;
    const kernels: [string, string][] = [
      ['small', `${SHARED}${before}cp.async.ca.shared.global [%r1], [%rd3], 4;\n`],
      [
        'limited',
        `${SHARED}${before}mov.u32 %r5, 3;\ncp.async.ca.shared.global [%r1], [%rd3], 4, %r5;\n`,
      ],
      [
        'bulk',
        `.shared .align 8 .b64 m;\n${SHARED}${before}setp.ne.u32 %p0, %r0, 0;\n@%p0 bra ` +
          `A;\nmbarrier.init.shared.b64 [m], 1;\n` +
          'cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], ' +
          '128, [m];\nA:\n',
      ],
    ];
    for (const [what, kernel] of kernels) {
      const found = (read: string): readonly CheckReport[] => {
        const device = new CheckedDevice().load(kernelOf(1, kernel + after(read)));
        device.launch('k', [[device.cu.cuMemAlloc(128)]], { block: 32 });
        return device.fails();
      };
      expect(found('ld.shared.u8 %b1, [%r1];\nld.shared.u16 %h1, [%r1+2];'), what).toEqual([]);
      expect(found('ld.shared.u8 %b1, [%r1+1];'), what).toMatchObject([
        { kind: 'uninitialised', count: 32, memory: { label: 's', offset: 1 } },
      ]);
    }
  });

  const BULK = (bytes: number, wait: string): string => `${SHARED}.shared .align 8 .b64 m;
setp.ne.u32 %p0, %r0, 0;
@%p0 bra A;
mbarrier.init.shared.b64 [m], 1;
A: bar.sync 0;
@%p0 bra W;
mbarrier.arrive.expect_tx.shared.b64 %rd6, [m], ${bytes};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd0], ${bytes}, [m];
W: ${wait}
ld.shared.u32 %r3, [%r1];`;
  const WAIT = 'mbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra W;';

  test('of many bytes are ordered for a thread that waits for their mbarrier', () => {
    expect(run(BULK(256, WAIT), { block: 64 })).toEqual([]);
  });

  test('and race with a thread that does not', () => {
    expect(new Set(kinds(run(BULK(256, 'mov.u32 %r2, 0;'), { block: 64 })))).toEqual(
      new Set(['race']),
    );
  });

  test('of many bytes end where their source does', () => {
    expect(run(BULK(272, WAIT), { block: 64 })).toMatchObject([
      {
        kind: 'out-of-bounds',
        place: { action: 'read', thread: [0, 0, 0] },
        memory: { bytes: 256, offset: 256 },
      },
    ]);
  });

  test('race with the accesses of their own thread that does not wait for them', () => {
    const copied = (wait: string): readonly CheckReport[] =>
      run(
        `${SHARED}cp.async.ca.shared.global [%r1], [%rd0], 4;\ncp.async.commit_group;\n` +
          `cp.async.ca.shared.global [%r1+64], [%rd0+4], 4;\ncp.async.commit_group;\n` +
          `${wait}\nld.shared.u32 %r3, [%r1];`,
      );
    expect(copied('cp.async.wait_group 1;')).toEqual([]);
    expect(copied('cp.async.wait_all;')).toEqual([]);
    expect(copied('cp.async.wait_group 2;')).toMatchObject([
      {
        kind: 'race',
        message: expect.stringContaining('a thread and its own asynchronous operation') as string,
        place: { action: 'read' },
        other: { action: 'write' },
      },
    ]);
  });

  test('race with other threads that another one lets go on before it waits', () => {
    const copied = (before: string, after: string): readonly CheckReport[] =>
      run(
        `${SHARED}setp.ne.u32 %p0, %r0, 0;\n@%p0 bra A;\n` +
          'cp.async.ca.shared.global [%r1], [%rd0], 4;\ncp.async.commit_group;\n' +
          `${before}A: bar.sync 0;\n@%p0 ld.shared.u32 %r3, [s];\n${after}`,
        { block: 64 },
      );
    expect(copied('cp.async.wait_group 0;\n', '')).toEqual([]);
    expect(new Set(kinds(copied('', 'cp.async.wait_group 0;')))).toEqual(new Set(['race']));
  });

  test('in bulk to global memory read until they are waited for', () => {
    const stored = (wait: string): readonly CheckReport[] =>
      run(
        `${SHARED}st.shared.v4.u32 [s], {%r0, %r0, %r0, %r0};\n` +
          'cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 16;\n' +
          `cp.async.bulk.commit_group;\n${wait}\nst.shared.u32 [s+4], %r0;\n` +
          'cp.async.bulk.wait_group 0;\nld.global.u32 %r3, [%rd0];',
      );
    expect(stored('cp.async.bulk.wait_group.read 0;')).toEqual([]);
    expect(stored('')).toMatchObject([{ kind: 'race', other: { action: 'read' } }]);
  });

  test('under a mask write some of the bytes', () => {
    const copy =
      `${SHARED}st.shared.v4.u32 [s], {%r0, %r0, %r0, ` +
      `%r0};\ncp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0+OFFSET], [s], 16, %h0;`;
    const masked = (mask: string, offset: number): readonly CheckReport[] => {
      const device = new CheckedDevice().load(
        kernelOf(
          1,
          `mov.u16 %h0, ${mask};\n${copy.replace('OFFSET', String(offset))}\nld.global.u32 ` +
            '%r3, [%rd0+4];',
        ),
      );
      device.launch('k', [[device.cu.cuMemAlloc(64)]]);
      return device.fails();
    };
    expect(masked('0x00f0', 0)).toEqual([]);
    expect(masked('0x000f', 0)).toMatchObject([{ kind: 'uninitialised', memory: { offset: 4 } }]);
    expect(masked('0xffff', 64)).toMatchObject([
      { kind: 'out-of-bounds', bytes: 1, memory: { offset: 64 } },
    ]);
  });
});

describe('copies to the other blocks of a cluster', () => {
  /** The first block copies to both, and each reads its copy. */
  const multicast = (wait: string): readonly CheckReport[] => {
    const text = kernelOf(
      1,
      `.shared .align 16 .b8 s[16];
.shared .align 8 .b64 m;
mov.u32 %r1, s;
mov.u32 %r2, m;
mov.u32 %r3, %cluster_ctarank;
mov.u16 %h0, 3;
mbarrier.init.shared.b64 [m], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared.b64 %rd5, [m], 16;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
setp.ne.u32 %p0, %r3, 0;
@%p0 bra W;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
  [%r1], [%rd0], 16, [%r2], %h0;
W: ${wait}
ld.shared.u32 %r5, [s+4];
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;`,
    );
    const device = new CheckedDevice().load(text.replace(') {', ') .reqnctapercluster 2, 1, 1 {'));
    device.launch('k', [[device.words(1, 2, 3, 4)]], { grid: 2 });
    return device.fails();
  };

  test('are ordered for a thread that waits for the mbarrier of its block', () => {
    expect(multicast('mbarrier.try_wait.parity.shared.b64 %p1, [m], 0;\n@!%p1 bra W;')).toEqual([]);
  });

  test('and race with a thread that does not', () => {
    expect(new Set(kinds(multicast('mov.u32 %r4, 0;')))).toContain('race');
  });
});

describe('matrices', () => {
  const LOAD =
    '.reg .f32 %f<8>;\nwmma.load.c.sync.aligned.row.m16n16k16.f32 ' +
    '{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, [%rd0], 16;';
  const matrix = (words: number, body: string): readonly CheckReport[] => {
    const device = new CheckedDevice().load(kernelOf(1, body));
    device.launch('k', [[device.words(...new Array<number>(words).fill(0))]], { block: 32 });
    return device.fails();
  };

  test('wmma.load ends with its matrix', () => {
    expect(matrix(256, LOAD)).toEqual([]);
    expect(matrix(255, LOAD)).toMatchObject([
      {
        kind: 'out-of-bounds',
        place: { action: 'read', thread: [31, 0, 0] },
        memory: { bytes: 1020, offset: 1020 },
      },
    ]);
  });

  test('wmma.store writes', () => {
    const store =
      `${LOAD}\nwmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd0], ` +
      '{%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, 16;';
    expect(matrix(256, store)).toEqual([]);
    // One lane reads what all have written, and nothing orders their writes before that.
    expect(
      new Set(
        kinds(matrix(256, `${store}\nsetp.eq.u32 %p0, %r0, 31;\n@%p0 ld.global.u32 %r1, [%rd0];`)),
      ),
    ).toEqual(new Set(['race']));
    expect(
      matrix(
        256,
        `${store}\nbar.warp.sync -1;\nsetp.eq.u32 %p0, %r0, 31;\n@%p0 ld.global.u32 %r1, [%rd0];`,
      ),
    ).toEqual([]);
  });

  test('ldmatrix reads rows that other lanes wrote', () => {
    const rows = (sync: string): string =>
      `${SHARED}st.shared.u32 [%r1], %r0;\n${sync}\nand.b32 %r4, %r0, 7;\nshl.b32 %r4, %r4, ` +
      `4;\nadd.u32 %r4, %r4, %r9;\n` +
      'ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r4];';
    expect(run(rows('bar.warp.sync -1;'), { block: 32 })).toEqual([]);
    expect(kinds(run(rows(''), { block: 32 }))).toContain('race');
  });
});

describe('textures and surfaces', () => {
  const POINT = { addressMode: [1, 1, 1], filterMode: 0, flags: 0 } as const;
  const FLOAT = 32;
  const FETCH = kernelOf(
    1,
    '.reg .f32 %f<4>;\ntex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd0, {%r0}];',
  );

  test('a texel that was never written', () => {
    const device = new CheckedDevice().load(FETCH);
    const { cu } = device;
    const address = cu.cuMemAlloc(256);
    cu.cuMemsetD8Async(address, 0, 128, device.stream);
    const texture = cu.cuTexObjectCreate(
      { resType: 2, linear: { devPtr: address, format: FLOAT, numChannels: 1, sizeInBytes: 256 } },
      { ...POINT, addressMode: [1, 1, 1] },
    );
    device.launch('k', [[texture]], { block: 32 });
    // A texture is zero beyond its end.
    device.launch('k', [[texture]], { block: 1 });
    expect(device.fails()).toEqual([]);
    device.launch('k', [[texture]], { block: 64 });
    expect(device.fails()).toMatchObject([
      {
        kind: 'uninitialised',
        place: { thread: [32, 0, 0] },
        memory: { address, offset: 128 },
        count: 32,
      },
    ]);
  });

  test('texels of memory that was freed, and a texture that was destroyed', () => {
    for (const isDestroyed of [false, true]) {
      const device = new CheckedDevice().load(FETCH);
      const { cu } = device;
      const address = device.words(1, 2, 3, 4);
      const texture = cu.cuTexObjectCreate(
        { resType: 2, linear: { devPtr: address, format: FLOAT, numChannels: 1, sizeInBytes: 16 } },
        { ...POINT, addressMode: [1, 1, 1] },
      );
      if (isDestroyed) cu.cuTexObjectDestroy(texture);
      else cu.cuMemFree(address);
      device.launch('k', [[texture]]);
      expect(device.fails()).toMatchObject([
        { kind: 'use-after-free', address: isDestroyed ? texture : address },
      ]);
    }
  });

  test('blocks race in a surface, and a pointer into a description is out of bounds', () => {
    const device = new CheckedDevice().load(kernelOf(1, 'sust.b.1d.b32.trap [%rd0, {0}], %r0;'));
    const { cu } = device;
    const array = cu.cuArray3DCreate({
      Width: 8,
      Height: 0,
      Depth: 0,
      Format: FLOAT,
      NumChannels: 1,
      Flags: 2,
    });
    const surface = cu.cuSurfObjectCreate({ resType: 0, array: { hArray: array } });
    device.launch('k', [[surface]]);
    expect(device.fails()).toEqual([]);
    device.launch('k', [[surface]], { grid: 2 });
    expect(device.fails()).toMatchObject([
      { kind: 'race', place: { block: [1, 0, 0] }, memory: { label: 'an array', offset: 0 } },
    ]);
    const other = new CheckedDevice().load(kernelOf(1, 'st.global.u32 [%rd0], %r0;'));
    const data = other.words(1);
    const texture = other.cu.cuTexObjectCreate(
      { resType: 2, linear: { devPtr: data, format: FLOAT, numChannels: 1, sizeInBytes: 4 } },
      { ...POINT, addressMode: [1, 1, 1] },
    );
    other.launch('k', [[texture]]);
    expect(other.fails()).toMatchObject([{ kind: 'out-of-bounds', address: texture }]);
  });
});

describe('functions that call themselves', () => {
  /** Nests five calls, each with 16 bytes of its own. */
  const recursive = (
    first: string,
    last: string,
  ): string => `.func (.reg .u32 out) f (.reg .u32 n) {
.reg .pred %p<2>; .reg .u32 %r<5>; .reg .u64 %rd<3>; .local .align 4 .b8 l[16];
mov.u32 out, 0;
mov.u64 %rd1, l;
${first}
setp.eq.u32 %p0, n, 5;
@%p0 ret;
add.u32 %r1, n, 1;
call (%r2), f, (%r1);
${last}
ret; }`;

  test('have a frame for each call', () => {
    expect(
      run('call (%r5), f, (%r0);', {}, recursive('st.local.u32 [l], n;', 'ld.local.u32 %r3, [l];')),
    ).toEqual([]);
  });

  test('have frames that begin unwritten, also in memory of earlier frames', () => {
    const reports = run(
      'call (%r5), f, (%r0);\ncall (%r5), f, (%r0);',
      {},
      recursive('', 'ld.local.u32 %r3, [l+8];\nadd.u32 %r3, %r3, n;\nst.local.u32 [l+8], %r3;'),
    );
    expect(reports).toMatchObject([
      {
        kind: 'uninitialised',
        memory: { space: 'local', label: 'l of f', bytes: 16, offset: 8 },
        count: 10,
      },
    ]);
  });

  test('have frames with an end', () => {
    expect(
      run('call (%r5), f, (%r0);', {}, recursive('', 'st.local.u32 [%rd1+16], n;')),
    ).toMatchObject([{ kind: 'out-of-bounds', memory: { label: 'l of f', offset: 16 } }]);
  });
});

test('a kernel that loops for ever on unwritten memory is ended, with the reason', () => {
  const reports = run(
    '.shared .u32 s;\nL: ld.shared.u32 %r1, [s];\nsetp.eq.u32 %p0, %r1, %r1;\n@%p0 bra L;',
  );
  expect(reports).toMatchObject([{ kind: 'uninitialised', place: { kernel: 'k' } }]);
});

test('where a read comes too early the race is reported first', () => {
  const early =
    `${SHARED}st.shared.u32 [%r1], %r0;\nxor.b32 %r2, %r0, 32;\nshl.b32 %r2, %r2, 2;\nadd.u32 ` +
    `%r2, %r2, %r9;\nld.shared.u32 %r3, [%r2];`;
  expect(kinds(run(early, { block: 64 }))).toEqual(['race', 'race', 'uninitialised']);
  expect(run(early.replace('xor.b32', 'bar.sync 0;\nxor.b32'), { block: 64 })).toEqual([]);
});
