// Launches of clusters: what the driver refuses and answers, clusters that hang or fault, and
// clusters under the checker.

import { describe, expect, test } from 'vitest';
import { CUfunction_attribute as F } from '../attributes.js';
import type { CheckReport } from '../../ground/check-report.js';
import type { LaunchAttributes, PolledDriver } from '../driver.js';
import { openCpu } from './open.js';
import { CheckedDevice, kernelOf } from './testing/checked-device.js';
import { messageOf, packParams, resultOf } from './testing/open-fake.js';

const withDirectives = (directives: string, text: string): string =>
  text.replace(/(\.entry k\([^)]*\))/, `$1 ${directives}`);
const PAIRS = '.explicitcluster .reqnctapercluster 2, 1, 1';

interface Opened {
  cu: PolledDriver;
  func: number;
  launch(
    grid: readonly [number, number, number],
    attrs?: LaunchAttributes,
    params?: Int32Array,
  ): void;
}

function open(
  directives: string,
  body: string,
  options: Parameters<typeof openCpu>[0] = {},
): Opened {
  const cu = openCpu({ memoryBytes: 64 * 2 ** 20, multiprocessors: 2, ...options });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const func = cu.cuModuleGetFunction(
    cu.cuModuleLoadDataEx(withDirectives(directives, kernelOf(1, body)), {}),
    'k',
  );
  return {
    cu,
    func,
    launch([x, y, z], attrs = {}, params = packParams([[0]])) {
      cu.cuLaunchKernelEx(
        {
          gridDimX: x,
          gridDimY: y,
          gridDimZ: z,
          blockDimX: 32,
          blockDimY: 1,
          blockDimZ: 1,
          sharedMemBytes: 0,
          hStream: 0,
          attrs,
        },
        func,
        params,
        0,
        8,
      );
    },
  };
}

describe('a launch', () => {
  test('must agree with the declaration of the kernel', () => {
    const { launch } = open(PAIRS, '');
    expect(resultOf(() => launch([4, 1, 1], { clusterDim: [4, 1, 1] }))).toBe(
      'CUDA_ERROR_INVALID_CLUSTER_SIZE',
    );
    expect(resultOf(() => launch([3, 1, 1]))).toBe('CUDA_ERROR_INVALID_VALUE');
    launch([4, 1, 1], { clusterDim: [2, 1, 1] });
    launch([4, 1, 1]);
  });

  test('must set the size of clusters where the kernel requires it', () => {
    const { launch, cu, func } = open('.explicitcluster', '');
    expect(cu.cuFuncGetAttribute(F.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, func)).toBe(1);
    expect(resultOf(() => launch([4, 1, 1]))).toBe('CUDA_ERROR_INVALID_CLUSTER_SIZE');
    launch([4, 1, 1], { clusterDim: [4, 1, 1] });
  });

  test('has clusters of 8 blocks, of 16 where the kernel allows them, within its bound', () => {
    const { launch, cu, func } = open('', '');
    launch([8, 2, 1], { clusterDim: [4, 2, 1] });
    expect(resultOf(() => launch([9, 1, 1], { clusterDim: [9, 1, 1] }))).toBe(
      'CUDA_ERROR_INVALID_CLUSTER_SIZE',
    );
    cu.cuFuncSetAttribute(func, F.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    launch([16, 1, 1], { clusterDim: [16, 1, 1] });
    expect(resultOf(() => launch([17, 1, 1], { clusterDim: [17, 1, 1] }))).toBe(
      'CUDA_ERROR_INVALID_CLUSTER_SIZE',
    );
    const few = open('.maxclusterrank 3', '');
    expect(resultOf(() => few.launch([4, 1, 1], { clusterDim: [4, 1, 1] }))).toBe(
      'CUDA_ERROR_INVALID_CLUSTER_SIZE',
    );
  });

  test('has the clusters of the attributes, which those of the code overrule', () => {
    const { launch, cu, func } = open(
      '',
      'mov.u32 %r1, %cluster_nctarank; st.global.u32 [%rd0], %r1;',
    );
    const out = cu.cuMemAllocManaged(4, 1);
    const sizes = [
      F.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
      F.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
      F.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    ];
    for (const size of sizes) cu.cuFuncSetAttribute(func, size, size === sizes[0] ? 3 : 1);
    launch([3, 1, 1], {}, packParams([[out]]));
    cu.cuCtxSynchronize();
    const { buffer, byteOffset } = cu.hostView(out, 4);
    expect(new Int32Array(buffer, byteOffset, 1)[0]).toBe(3);
    const fixed = open(PAIRS, '');
    expect(sizes.map((size) => fixed.cu.cuFuncGetAttribute(size, fixed.func))).toEqual([2, 1, 1]);
    expect(resultOf(() => fixed.cu.cuFuncSetAttribute(fixed.func, sizes[0]!, 4))).toBe(
      'CUDA_ERROR_NOT_PERMITTED',
    );
  });

  test('counts clusters where blocks are clusters', () => {
    const { launch, cu } = open(
      '.reqntid 32, 1, 1 .reqnctapercluster 2, 1, 1 .blocksareclusters',
      'mov.u32 %r1, %nctaid.x; st.global.u32 [%rd0], %r1;',
    );
    const out = cu.cuMemAllocManaged(4, 1);
    launch([5, 1, 1], {}, packParams([[out]]));
    cu.cuCtxSynchronize();
    const { buffer, byteOffset } = cu.hostView(out, 4);
    expect(new Int32Array(buffer, byteOffset, 1)[0]).toBe(10);
  });

  test('occupancy counts clusters', () => {
    const { cu, func } = open('', '');
    const config = {
      gridDimX: 8,
      gridDimY: 1,
      gridDimZ: 1,
      blockDimX: 1024,
      blockDimY: 1,
      blockDimZ: 1,
      sharedMemBytes: 0,
      hStream: 0,
    };
    expect(cu.cuOccupancyMaxActiveClusters(func, { ...config, attrs: {} })).toBe(4);
    expect(
      cu.cuOccupancyMaxActiveClusters(func, { ...config, attrs: { clusterDim: [2, 1, 1] } }),
    ).toBe(2);
  });
});

const MEET = 'barrier.cluster.arrive; barrier.cluster.wait;';
const REMOTE =
  '.shared .align 8 .b32 s[32]; mov.u32 %r1, s; shl.b32 %r3, %r0, 2; add.u32 %r1, %r1, %r3; ' +
  'mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1; mapa.shared::cluster.u32 %r4, %r1, ' +
  '%r2;\n';

describe('clusters that go wrong', () => {
  test('a fault names the block', () => {
    const { cu, launch } = open(
      PAIRS,
      `mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r1, 5; ${MEET} @%p0 bra E; trap; E: ${MEET}`,
    );
    launch([8, 1, 1]);
    expect(
      messageOf(() => {
        cu.cuCtxSynchronize();
      }),
    ).toContain('block (5,0,0)');
  });

  test('the error of blocks in a deadlock lists them one by one', () => {
    const { cu, launch } = open(
      PAIRS,
      `.shared .align 8 .b64 m; mbarrier.init.shared.b64 [m], 99; mov.u32 %r1, %cluster_ctarank;
      setp.eq.u32 %p0, %r1, 0; @%p0 bra W;
W: mbarrier.try_wait.parity.shared.b64 %p1, [m], 0; @!%p1 bra W; ${MEET}`,
      { stallLimit: 300 },
    );
    launch([2, 1, 1]);
    const message = messageOf(() => {
      cu.cuCtxSynchronize();
    });
    expect(message).toContain('block (0,0,0)');
    expect(message).toContain('block (1,0,0)');
  });

  test('a grid of 2000 clusters uses one slot after the other', () => {
    const { cu, launch } = open(
      PAIRS,
      `mov.u32 %r1, %ctaid.x; atom.global.add.u32 %r2, [%rd0], %r1; ${MEET}`,
    );
    const out = cu.cuMemAllocManaged(4, 1);
    const { buffer, byteOffset } = cu.hostView(out, 4);
    const cell = new Int32Array(buffer, byteOffset, 1);
    launch([4000, 1, 1], {}, packParams([[out]]));
    cu.cuCtxSynchronize();
    expect(cell[0]).toBe((32 * 4000 * 3999) / 2);
  });
});

describe('clusters under the checker', () => {
  const run = (body: string): readonly CheckReport[] => {
    const device = new CheckedDevice().load(withDirectives(PAIRS, kernelOf(1, REMOTE + body)));
    device.launch('k', [[device.words(0)]], { grid: 4, block: 32 });
    return device.fails();
  };

  test("the cluster's barrier orders accesses of its blocks", () => {
    expect(
      run(
        `st.shared.u32 [%r1], %r0; ${MEET} ld.shared::cluster.u32 %r5, [%r4]; ${MEET} ` +
          'st.shared.u32 [%r1], %r5;',
      ),
    ).toEqual([]);
  });

  test('accesses that the barrier does not order are a race', () => {
    const reports = run(
      `st.shared.u32 [%r1], %r0; ${MEET} ld.shared::cluster.u32 %r5, [%r4]; st.shared.u32 ` +
        `[%r1], %r5; ${MEET}`,
    );
    expect(new Set(reports.map(({ kind }) => kind))).toEqual(new Set(['race']));
  });

  test("an access past another block's variable is out of bounds, and named", () => {
    expect(run(`${MEET} st.shared::cluster.u32 [%r4+4], %r0; ${MEET}`)).toMatchObject([
      {
        kind: 'out-of-bounds',
        place: { thread: [31, 0, 0] },
        memory: { space: 'shared', label: 's', bytes: 128, offset: 128 },
      },
    ]);
  });

  test('memory that another block has not written is uninitialised', () => {
    expect(run(`${MEET} ld.shared::cluster.u32 %r5, [%r4]; ${MEET}`)).toMatchObject([
      { kind: 'uninitialised' },
    ]);
  });
});
