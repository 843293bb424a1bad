// Tensor maps of the CPU device: what the driver's calls refuse, and what a launch that uses a
// wrong one ends with. `test/core/tensor-maps.test.ts` has their copies, on both devices.

import { beforeEach, describe, expect, test } from 'vitest';
import type { Driver } from '../driver.js';
import { isTensorMap } from '../../ptx/tensor-map.js';
import { openCpu } from './open.js';
import { messageOf, packParams, resultOf } from './testing/open-fake.js';

let cu: Driver;
let at: number;
beforeEach(() => {
  cu = openCpu({ memoryBytes: 64 * 2 ** 20, multiprocessors: 2 });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  at = cu.cuMemAlloc(2 ** 20);
});

interface Tiled {
  type: number;
  rank: number;
  address: number;
  dims: number[];
  strides: number[];
  box: number[];
  steps: number[];
  interleave: number;
  swizzle: number;
  promotion: number;
  fill: number;
}
/** Boxes of 8 × 8 halves. */
const tiled = (change: Partial<Tiled> = {}): Uint8Array => {
  const given: Tiled = {
    type: 6,
    rank: 3,
    address: at,
    dims: [64, 32, 16],
    strides: [128, 4096],
    box: [8, 8, 1],
    steps: [1, 1, 1],
    interleave: 0,
    swizzle: 0,
    promotion: 0,
    fill: 0,
    ...change,
  };
  return cu.cuTensorMapEncodeTiled(
    given.type,
    given.rank,
    given.address,
    given.dims,
    given.strides,
    given.box,
    given.steps,
    given.interleave,
    given.swizzle,
    given.promotion,
    given.fill,
  );
};

interface Im2col extends Omit<Tiled, 'box'> {
  lower: number[];
  upper: number[];
  channels: number;
  pixels: number;
}
const im2col = (change: Partial<Im2col> = {}): Uint8Array => {
  const given: Im2col = {
    type: 6,
    rank: 4,
    address: at,
    dims: [64, 9, 9, 2],
    strides: [128, 1152, 10368],
    steps: [1, 1, 1, 1],
    interleave: 0,
    swizzle: 0,
    promotion: 0,
    fill: 0,
    lower: [-1, -1],
    upper: [-1, -1],
    channels: 32,
    pixels: 64,
    ...change,
  };
  return cu.cuTensorMapEncodeIm2col(
    given.type,
    given.rank,
    given.address,
    given.dims,
    given.strides,
    given.lower,
    given.upper,
    given.channels,
    given.pixels,
    given.steps,
    given.interleave,
    given.swizzle,
    given.promotion,
    given.fill,
  );
};

describe('cuTensorMapEncodeTiled', () => {
  test.each<[string, Partial<Tiled>]>([
    ['every rank', { rank: 1, dims: [64], strides: [], box: [8], steps: [1] }],
    [
      'the largest numbers',
      { dims: [2 ** 32, 1, 1], strides: [2 ** 40 - 16, 0], box: [8, 228, 64] },
    ],
    ['the largest steps', { steps: [8, 8, 8], box: [256, 256, 8] }],
    ['NaN outside of floats', { fill: 1 }],
    ['rows as long as the swizzle', { swizzle: 3, box: [64, 8, 1] }],
    ['slices of 32 bytes in every swizzle', { interleave: 2, swizzle: 3, box: [256, 8, 1] }],
    ['every promotion', { promotion: 3 }],
  ])('takes %s', (_, change) => {
    expect(isTensorMap(tiled(change))).toBe(true);
  });
  test.each<[string, Partial<Tiled>, string]>([
    ['an unknown type', { type: 16 }, 'tensorDataType is 16'],
    ['a type of four bits', { type: 13 }, 'tensorDataType is 13'],
    ['no dimensions', { rank: 0 }, 'tensorRank is 0; it must be 1 to 5'],
    ['six dimensions', { rank: 6 }, 'tensorRank is 6; it must be 1 to 5'],
    ['slices of two dimensions', { rank: 2, interleave: 1 }, 'tensorRank is 2; it must be 3 to 5'],
    [
      'an address between 16 bytes',
      { address: 65544 },
      'globalAddress 0x10008 is not a multiple of 16',
    ],
    [
      'an address between slices',
      { address: 65552, interleave: 2, swizzle: 1 },
      'globalAddress 0x10010 is not a multiple of 32',
    ],
    ['an empty tensor', { dims: [64, 0, 16] }, 'globalDim[1] is 0; it must be 1 to 4294967296'],
    ['too large a tensor', { dims: [64, 2 ** 32 + 1, 16] }, 'globalDim[1] is 4294967297'],
    ['too few dimensions', { dims: [64, 32] }, 'globalDim[2] is undefined'],
    [
      'a stride between 16 bytes',
      { strides: [136, 4096] },
      'globalStrides[0] is 136; it must be a multiple of 16',
    ],
    [
      'a stride between slices',
      { strides: [144, 4096], interleave: 2, swizzle: 1 },
      'globalStrides[0] is 144; it must be a multiple of 32',
    ],
    ['too large a stride', { strides: [128, 2 ** 40] }, 'globalStrides[1] is 1099511627776'],
    ['an empty box', { box: [8, 0, 1] }, 'boxDim[1] is 0; it must be 1 to 256'],
    ['too large a box', { box: [8, 257, 1] }, 'boxDim[1] is 257; it must be 1 to 256'],
    [
      'too many bytes',
      { box: [8, 229, 64] },
      'the box has 234496 bytes; it must have at most 233472',
    ],
    ['rows between 16 bytes', { box: [12, 8, 1] }, 'boxDim[0] times the bytes of an element is 24'],
    ['no step', { steps: [1, 0, 1] }, 'elementStrides[1] is 0; it must be 1 to 8'],
    ['too large a step', { steps: [1, 9, 1] }, 'elementStrides[1] is 9; it must be 1 to 8'],
    ['an unknown interleave', { interleave: 3 }, 'interleave is 3; it must be 0 to 2'],
    ['an unknown swizzle', { swizzle: 7 }, 'swizzle is 7; it must be 0 to 6'],
    ['an unknown promotion', { promotion: 4 }, 'l2Promotion is 4; it must be 0 to 3'],
    ['an unknown fill', { fill: 2 }, 'oobFill is 2; it must be 0 to 1'],
    [
      'NaN outside of integers',
      { type: 2, box: [8, 8, 1], fill: 1 },
      'oobFill is NaN, and the elements are u32',
    ],
    [
      'rows longer than 32 bytes',
      { swizzle: 1, box: [24, 8, 1] },
      'rows of 48 bytes are longer than the 32',
    ],
    [
      'rows longer than 64 bytes',
      { swizzle: 2, box: [40, 8, 1] },
      'rows of 80 bytes are longer than the 64',
    ],
    [
      'rows longer than 128 bytes',
      { swizzle: 3, box: [72, 8, 1] },
      'rows of 144 bytes are longer than the 128',
    ],
    ['slices between 16 bytes', { interleave: 1, box: [12, 8, 1] }, 'is 24; it must be a multiple'],
  ])('refuses %s', (_, change, message) => {
    expect(resultOf(() => tiled(change))).toBe('CUDA_ERROR_INVALID_VALUE');
    expect(messageOf(() => tiled(change))).toContain(message);
  });
  test('needs a context', () => {
    cu.cuCtxSetCurrent(0);
    expect(resultOf(() => tiled())).toBe('CUDA_ERROR_INVALID_CONTEXT');
  });
});

describe('cuTensorMapEncodeIm2col', () => {
  test.each<[string, Partial<Im2col>]>([
    ['what fits', {}],
    ['the farthest corners', { lower: [-128, -128], upper: [127, 127] }],
    ['the most pixels', { channels: 64, pixels: 1024 }],
    ['the most channels', { channels: 256, pixels: 456 }],
  ])('takes %s', (_, change) => {
    expect(isTensorMap(im2col(change))).toBe(true);
  });
  test.each<[string, Partial<Im2col>, string]>([
    ['two dimensions', { rank: 2 }, 'tensorRank is 2; it must be 3 to 5'],
    ['no channels', { channels: 0 }, 'channelsPerPixel is 0; it must be 1 to 256'],
    ['too many channels', { channels: 257 }, 'channelsPerPixel is 257; it must be 1 to 256'],
    ['no pixels', { pixels: 0 }, 'pixelsPerColumn is 0; it must be 1 to 1024'],
    ['too many pixels', { pixels: 1025 }, 'pixelsPerColumn is 1025; it must be 1 to 1024'],
    [
      'a corner too far',
      { lower: [-129, 0] },
      'pixelBoxLowerCorner[0] is -129; it must be -128 to 127',
    ],
    ['the other corner too far', { upper: [0, 128] }, 'pixelBoxUpperCorner[1] is 128'],
    ['an empty box', { lower: [5, 0], upper: [-4, 0] }, 'is empty along dimension 1'],
    ['an empty box of slices', { interleave: 1, upper: [-66, 0] }, 'is empty along dimension 0'],
    ['too many bytes', { channels: 256, pixels: 457 }, 'the box has 233984 bytes'],
    [
      'channels between 16 bytes',
      { channels: 12 },
      'channelsPerPixel times the bytes of an element is 24',
    ],
    ['channels longer than the swizzle', { swizzle: 1 }, 'rows of 64 bytes are longer than the 32'],
  ])('refuses %s', (_, change, message) => {
    expect(resultOf(() => im2col(change))).toBe('CUDA_ERROR_INVALID_VALUE');
    expect(messageOf(() => im2col(change))).toContain(message);
  });
});

test('cuTensorMapEncodeIm2colWide is not supported', () => {
  expect(
    resultOf(() =>
      cu.cuTensorMapEncodeIm2colWide(
        ...([6, 3, at, [64, 9, 2], [128, 1152], 0, 0, 64, 64, [1, 1, 1], 0, 0, 3, 0, 0] as const),
      ),
    ),
  ).toBe('CUDA_ERROR_NOT_SUPPORTED');
});

describe('cuTensorMapReplaceAddress', () => {
  test('gives the map of the other address', () => {
    const map = tiled();
    cu.cuTensorMapReplaceAddress(map, at + 256);
    expect(map).toEqual(tiled({ address: at + 256 }));
  });
  test('refuses other bytes, and the addresses that encoding refuses', () => {
    expect(resultOf(() => cu.cuTensorMapReplaceAddress(new Uint8Array(128), at))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
    expect(resultOf(() => cu.cuTensorMapReplaceAddress(new Uint8Array(4), at))).toBe(
      'CUDA_ERROR_INVALID_VALUE',
    );
    for (const address of [0, at + 8])
      expect(messageOf(() => cu.cuTensorMapReplaceAddress(tiled(), address))).toContain(
        'is not a multiple of 16',
      );
    const slices = tiled({ interleave: 2, swizzle: 1 });
    cu.cuTensorMapReplaceAddress(slices, at + 16);
    expect(isTensorMap(slices)).toBe(true);
  });
});

const HEAD = '.version 8.6\n.target sm_90a\n.address_size 64\n';

describe('a launch that uses a wrong map ends with', () => {
  const KERNEL = `${HEAD}.visible .entry k(.param .align 64 .b8 map[128], .param .u32 at) {
    .reg .b64 %map; .reg .b32 %s, %a; .shared .align 128 .b8 box[1024]; .shared .align 8 .b64 m;
    mov.b64 %map, map; cvta.param.u64 %map, %map; ld.param.u32 %a, [at]; mov.u32 %s, box;
    add.u32 %s, %s, %a; mbarrier.init.shared.b64 [m], 1;
    cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%s],
    [%map, {0, 0, 0}], [m]; ret; }`;
  const launch = (map: Uint8Array, offset = 0): string => {
    const params = new Int32Array(33);
    new Uint8Array(params.buffer).set(map);
    params[32] = offset;
    cu.cuLaunchKernel(
      cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(KERNEL, {}), 'k'),
      ...([1, 1, 1, 1, 1, 1, 0, 0, params, 0, 132] as const),
    );
    return messageOf(() => {
      cu.cuCtxSynchronize();
    });
  };
  test('an illegal instruction for bytes that are no tensor map', () => {
    const message = launch(new Uint8Array(128));
    expect(message).toContain('CUDA_ERROR_ILLEGAL_INSTRUCTION');
    expect(message).toMatch(/the bytes at 0x\w+ are no tensor map, .*PTX line 8/);
  });
  test('a misaligned address for a box between 128 bytes', () => {
    expect(launch(tiled(), 64)).toContain('CUDA_ERROR_MISALIGNED_ADDRESS');
  });
  test('an illegal address for a tensor outside of memory', () => {
    expect(launch(tiled({ address: 2 ** 40 }))).toContain('CUDA_ERROR_ILLEGAL_ADDRESS');
  });
});

describe('shared memory begins at a multiple of 1024', () => {
  /** Each block writes the low bits of its shared memory's address. */
  const KERNEL = `${HEAD}.visible .entry k(.param .u64 out, .param .u64 more) {
    .reg .b64 %o, %l; .reg .b32 %s, %b; .shared .align 16 .b8 first[48];
    ld.param.u64 %o, [out]; mov.u32 %b, %ctaid.x; mul.wide.u32 %l, %b, 4; add.u64 %o, %o, %l;
    mov.u32 %s, first; st.shared.u32 [first], %b; and.b32 %s, %s, 1023; st.global.u32 [%o], %s;
    ret; }`;
  test.each([1, 2, 4])('of each block of clusters of %i', (cluster) => {
    const [blocks, bytes] = [16, 64];
    const out = cu.cuMemAllocManaged(bytes, 1);
    const { buffer, byteOffset } = cu.hostView(out, bytes);
    const words = new Int32Array(buffer, byteOffset, blocks).fill(-1);
    cu.cuLaunchKernelEx(
      {
        ...{
          gridDimX: blocks,
          gridDimY: 1,
          gridDimZ: 1,
          blockDimX: 32,
          blockDimY: 1,
          blockDimZ: 1,
        },
        sharedMemBytes: 100,
        hStream: 0,
        attrs: cluster > 1 ? { clusterDim: [cluster, 1, 1] } : {},
      },
      cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(KERNEL, {}), 'k'),
      ...([packParams([[out], [0]]), 0, 16] as const),
    );
    cu.cuCtxSynchronize();
    expect(new Set(words)).toEqual(new Set([0]));
  });
});
