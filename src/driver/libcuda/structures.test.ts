import { expect, test } from 'vitest';

import type { CUDA_RESOURCE_DESC } from '../driver.js';
import { loadKoffi } from '../../native/koffi.js';
import { NativeMemory } from '../../native/native-memory.js';
import {
  ARRAY3D_DESCRIPTOR,
  ARRAY_DESCRIPTOR,
  RESOURCE_DESC,
  TEXTURE_DESC,
  writeArray3DDescriptor,
  writeArrayDescriptor,
  writeResourceDesc,
  writeTextureDesc,
  CONDITIONAL_NODE_PARAMS,
  EXEC_UPDATE_RESULT_INFO,
  LAUNCH_ATTRIBUTE,
  writeConditionalNode,
  LAUNCH_CONFIG,
  MEMCPY2D,
  MEMCPY3D,
  MEMCPY3D_PEER,
  MEM_ACCESS_DESC,
  MEM_POOL_PROPS,
  memLocation,
  writeLaunchConfig,
  writeMemAccessDesc,
  writeMemPoolProps,
  writeMemcpy2D,
  writeMemcpy3D,
  writeMemcpy3DPeer,
} from './structures.js';

/**
 * offsetof and sizeof of each field, printed by a C program that gcc 12 compiled against cuda.h of
 * CUDA 13.0 on x86-64. A CUmemLocation is two words of 4 bytes, type and id.
 */
const LAYOUTS = {
  CUDA_MEMCPY2D: [
    MEMCPY2D,
    {
      size: 128,
      srcXInBytes: 0,
      srcY: 8,
      srcMemoryType: 16,
      srcHost: 24,
      srcDevice: 32,
      srcArray: 40,
      srcPitch: 48,
      dstXInBytes: 56,
      dstY: 64,
      dstMemoryType: 72,
      dstHost: 80,
      dstDevice: 88,
      dstArray: 96,
      dstPitch: 104,
      WidthInBytes: 112,
      Height: 120,
    },
  ],
  CUDA_MEMCPY3D: [
    MEMCPY3D,
    {
      size: 200,
      srcXInBytes: 0,
      srcY: 8,
      srcZ: 16,
      srcLOD: 24,
      srcMemoryType: 32,
      srcHost: 40,
      srcDevice: 48,
      srcArray: 56,
      reserved0: 64,
      srcPitch: 72,
      srcHeight: 80,
      dstXInBytes: 88,
      dstY: 96,
      dstZ: 104,
      dstLOD: 112,
      dstMemoryType: 120,
      dstHost: 128,
      dstDevice: 136,
      dstArray: 144,
      reserved1: 152,
      dstPitch: 160,
      dstHeight: 168,
      WidthInBytes: 176,
      Height: 184,
      Depth: 192,
    },
  ],
  CUDA_MEMCPY3D_PEER: [
    MEMCPY3D_PEER,
    {
      size: 200,
      srcXInBytes: 0,
      srcY: 8,
      srcZ: 16,
      srcLOD: 24,
      srcMemoryType: 32,
      srcHost: 40,
      srcDevice: 48,
      srcArray: 56,
      srcContext: 64,
      srcPitch: 72,
      srcHeight: 80,
      dstXInBytes: 88,
      dstY: 96,
      dstZ: 104,
      dstLOD: 112,
      dstMemoryType: 120,
      dstHost: 128,
      dstDevice: 136,
      dstArray: 144,
      dstContext: 152,
      dstPitch: 160,
      dstHeight: 168,
      WidthInBytes: 176,
      Height: 184,
      Depth: 192,
    },
  ],
  CUDA_ARRAY_DESCRIPTOR: [
    ARRAY_DESCRIPTOR,
    { size: 24, Width: 0, Height: 8, Format: 16, NumChannels: 20 },
  ],
  CUDA_ARRAY3D_DESCRIPTOR: [
    ARRAY3D_DESCRIPTOR,
    { size: 40, Width: 0, Height: 8, Depth: 16, Format: 24, NumChannels: 28, Flags: 32 },
  ],
  CUDA_RESOURCE_DESC: [
    RESOURCE_DESC,
    {
      size: 144,
      resType: 0,
      hArray: 8,
      devPtr: 8,
      format: 16,
      numChannels: 20,
      sizeInBytes: 24,
      width: 24,
      height: 32,
      pitchInBytes: 40,
      flags: 136,
    },
  ],
  CUDA_TEXTURE_DESC: [
    TEXTURE_DESC,
    {
      size: 104,
      addressMode: 0,
      filterMode: 12,
      flags: 16,
      maxAnisotropy: 20,
      mipmapFilterMode: 24,
      mipmapLevelBias: 28,
      minMipmapLevelClamp: 32,
      maxMipmapLevelClamp: 36,
      borderColor: 40,
    },
  ],
  CUmemPoolProps: [
    MEM_POOL_PROPS,
    {
      size: 88,
      allocType: 0,
      handleTypes: 4,
      locationType: 8,
      locationId: 12,
      win32SecurityAttributes: 16,
      maxSize: 24,
      usage: 32,
    },
  ],
  CUmemAccessDesc: [MEM_ACCESS_DESC, { size: 12, locationType: 0, locationId: 4, flags: 8 }],
  CUgraphExecUpdateResultInfo: [
    EXEC_UPDATE_RESULT_INFO,
    { size: 24, result: 0, errorNode: 8, errorFromNode: 16 },
  ],
  // 16 before the union; CUDA_CONDITIONAL_NODE_PARAMS: handle 0, type 8, size 12, phGraph_out 16,
  // ctx 24.
  CUgraphNodeParams: [
    CONDITIONAL_NODE_PARAMS,
    { size: 256, nodeType: 0, handle: 16, type: 24, bodies: 28, phGraph_out: 32, ctx: 40 },
  ],
  CUlaunchConfig: [
    LAUNCH_CONFIG,
    {
      size: 56,
      gridDimX: 0,
      gridDimY: 4,
      gridDimZ: 8,
      blockDimX: 12,
      blockDimY: 16,
      blockDimZ: 20,
      sharedMemBytes: 24,
      hStream: 32,
      attrs: 40,
      numAttrs: 48,
    },
  ],
  CUlaunchAttribute: [LAUNCH_ATTRIBUTE, { size: 72, id: 0, value: 8, valueSize: 64 }],
} as const;

test.each(Object.entries(LAYOUTS))(
  '%s has the layout of the C compiler',
  (_, [ours, compilers]) => {
    expect(ours).toEqual(compilers);
  },
);

const koffi = loadKoffi();
/** Memory full of ones, so that a field that an encoder leaves out is detected. */
function dirty(size: number): NativeMemory {
  const memory = new NativeMemory(koffi, size);
  memory.bytes.fill(0xff);
  return memory;
}

/** Distinct values with bits in the upper half. */
const copy2D = {
  srcXInBytes: 0x1_0000_0001,
  srcY: 0x1_0000_0002,
  srcMemoryType: 1,
  srcHost: 0x7f00_0000_0003,
  srcDevice: 0x7f00_0000_0004,
  srcPitch: 0x1_0000_0005,
  dstXInBytes: 0x1_0000_0006,
  dstY: 0x1_0000_0007,
  dstMemoryType: 2,
  dstHost: 0x7f00_0000_0008,
  dstDevice: 0x7f00_0000_0009,
  srcArray: 0x7f00_0000_0014,
  dstArray: 0x7f00_0000_0015,
  dstPitch: 0x1_0000_000a,
  WidthInBytes: 0x1_0000_000b,
  Height: 0x1_0000_000c,
};
const copy3D = {
  ...copy2D,
  srcZ: 0x1_0000_000d,
  srcHeight: 0x1_0000_000e,
  dstZ: 0x1_0000_000f,
  dstHeight: 0x1_0000_0010,
  Depth: 0x1_0000_0011,
};

test.each([
  ['CUDA_MEMCPY2D', writeMemcpy2D, copy2D, MEMCPY2D],
  ['CUDA_MEMCPY3D', writeMemcpy3D, copy3D, MEMCPY3D],
  [
    'CUDA_MEMCPY3D_PEER',
    writeMemcpy3DPeer,
    { ...copy3D, srcContext: 0x7f00_0000_0012, dstContext: 0x7f00_0000_0013 },
    MEMCPY3D_PEER,
  ],
] as const)(
  '%s: every field lands at its offset, the others are zero',
  (_, write, copy, layout) => {
    const at = 64;
    const memory = dirty(512);
    (write as (memory: NativeMemory, at: number, copy: object) => void)(memory, at, copy);
    const { size, ...offsets } = layout;
    for (const [field, offset] of Object.entries(offsets)) {
      const expected = (copy as Record<string, number>)[field] ?? 0;
      expect(memory.u64(at + offset), field).toBe(expected);
    }
    expect(memory.bytes[at - 1]).toBe(0xff);
    expect(memory.bytes[at + size]).toBe(0xff);
  },
);

test('descriptions of arrays', () => {
  const memory = dirty(256);
  writeArrayDescriptor(memory, 0, { Width: 0x1_0000_0001, Height: 2, Format: 32, NumChannels: 4 });
  expect([...memory.u32.subarray(0, 7)]).toEqual([1, 1, 2, 0, 32, 4, 0xffffffff]);
  writeArray3DDescriptor(memory, 64, {
    Width: 1,
    Height: 0x1_0000_0002,
    Depth: 3,
    Format: 16,
    NumChannels: 2,
    Flags: 5,
  });
  expect([...memory.u32.subarray(16, 27)]).toEqual([1, 0, 2, 1, 3, 0, 16, 2, 5, 0, 0xffffffff]);
});

test('CUDA_RESOURCE_DESC holds the part that its type names, zero elsewhere', () => {
  const words = (desc: CUDA_RESOURCE_DESC): number[] => {
    const memory = dirty(256);
    writeResourceDesc(memory, 0, desc);
    expect(memory.u32[36]).toBe(0xffffffff);
    expect([...memory.u32.subarray(12, 36)]).toEqual(Array<number>(24).fill(0));
    return [...memory.u32.subarray(0, 12)];
  };
  expect(words({ resType: 0, array: { hArray: 0x7f00_0000_0001 } })).toEqual([
    0, 0, 1, 0x7f00, 0, 0, 0, 0, 0, 0, 0, 0,
  ]);
  expect(
    words({
      resType: 2,
      linear: { devPtr: 0x7f00_0000_0002, format: 32, numChannels: 4, sizeInBytes: 0x1_0000_0003 },
    }),
  ).toEqual([2, 0, 2, 0x7f00, 32, 4, 3, 1, 0, 0, 0, 0]);
  expect(
    words({
      resType: 3,
      pitch2D: { devPtr: 1, format: 8, numChannels: 2, width: 7, height: 8, pitchInBytes: 512 },
    }),
  ).toEqual([3, 0, 1, 0, 8, 2, 7, 0, 8, 0, 512, 0]);
});

test('CUDA_TEXTURE_DESC: modes, filter, flags and the border', () => {
  const memory = dirty(256);
  writeTextureDesc(memory, 0, {
    addressMode: [1, 2, 3],
    filterMode: 1,
    flags: 0x12,
    maxAnisotropy: 4,
    mipmapFilterMode: 1,
    mipmapLevelBias: 0.5,
    minMipmapLevelClamp: 1,
    maxMipmapLevelClamp: 2,
    borderColor: [0.25, 0.5, 0.75, 1],
  });
  expect([...memory.u32.subarray(0, 7)]).toEqual([1, 2, 3, 1, 0x12, 4, 1]);
  expect([...memory.f32.subarray(7, 14)]).toEqual([0.5, 1, 2, 0.25, 0.5, 0.75, 1]);
  expect([...memory.u32.subarray(14, 27)]).toEqual([...Array<number>(12).fill(0), 0xffffffff]);
});

test('CUmemPoolProps requests pinned memory on one device', () => {
  const memory = dirty(256);
  writeMemPoolProps(memory, 0, { location: 3, maxSize: 0x2_0000_0001 });
  expect([...memory.u32.subarray(0, 22)]).toEqual([
    1,
    0,
    1,
    3,
    0,
    0,
    1,
    2,
    ...Array<number>(14).fill(0),
  ]);
  expect(memory.bytes[88]).toBe(0xff);
});

test('CUmemAccessDesc names device and flags', () => {
  const memory = dirty(64);
  writeMemAccessDesc(memory, 0, 5, 3);
  expect([...memory.u32.subarray(0, 4)]).toEqual([1, 5, 3, 0xffffffff]);
});

test(
  'CUgraphNodeParams of a conditional node: its kind, all 64 bits of the handle, and zero ' +
    'elsewhere',
  () => {
    const memory = dirty(320);
    writeConditionalNode(memory, 8, {
      handle: 0xfedcba9876543210n,
      type: 2,
      size: 5,
      ctx: 0x7f00_0000_0012,
    });
    const words = Array<number>(64).fill(0);
    words.splice(0, 1, 13);
    words.splice(4, 4, 0x76543210, 0xfedcba98, 2, 5);
    words.splice(10, 2, 0x12, 0x7f00);
    expect([...memory.u32.subarray(2, 66)]).toEqual(words);
    expect([memory.u32[1], memory.u32[66]]).toEqual([0xffffffff, 0xffffffff]);
  },
);

test('CUlaunchConfig without attributes has a null list', () => {
  const memory = dirty(512);
  writeLaunchConfig(memory, 0, 64, {
    gridDimX: 1,
    gridDimY: 2,
    gridDimZ: 3,
    blockDimX: 4,
    blockDimY: 5,
    blockDimZ: 6,
    sharedMemBytes: 7,
    hStream: 0x7f00_0000_0008,
    attrs: {},
  });
  expect([...memory.u32.subarray(0, 7)]).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(memory.u64(32)).toBe(0x7f00_0000_0008);
  expect(memory.u64(40)).toBe(0);
  expect(memory.u32[12]).toBe(0);
});

test('each launch attribute is 72 bytes: its id, then its value', () => {
  const memory = dirty(1024);
  writeLaunchConfig(memory, 0, 64, {
    gridDimX: 1,
    gridDimY: 1,
    gridDimZ: 1,
    blockDimX: 1,
    blockDimY: 1,
    blockDimZ: 1,
    sharedMemBytes: 0,
    hStream: 0,
    attrs: {
      cooperative: true,
      clusterDim: [2, 3, 4],
      clusterSchedulingPolicyPreference: 2,
      programmaticStreamSerialization: true,
      priority: -5,
    },
  });
  expect(memory.u64(40)).toBe(memory.address + 64);
  expect(memory.u32[12]).toBe(5);
  const attribute = (i: number): number[] => [
    ...memory.i32.subarray((64 + 72 * i) >> 2, (64 + 72 * (i + 1)) >> 2),
  ];
  const value = (id: number, ...words: number[]): number[] => [
    id,
    0,
    ...words,
    ...Array<number>(16 - words.length).fill(0),
  ];
  expect(attribute(0)).toEqual(value(2, 1));
  expect(attribute(1)).toEqual(value(4, 2, 3, 4));
  expect(attribute(2)).toEqual(value(5, 2));
  expect(attribute(3)).toEqual(value(6, 1));
  expect(attribute(4)).toEqual(value(8, -5));
});

test('a CUmemLocation by value is type and id in one 64-bit integer', () => {
  expect(memLocation(0)).toBe(1);
  expect(memLocation(3)).toBe(1 + 3 * 2 ** 32);
  expect(memLocation(-1)).toBe(2);
});

test('native memory: numbers up to 2^53 are exact, and above 2^64 all bits are set', () => {
  const memory = new NativeMemory(koffi, 64);
  expect(memory.address % 64).toBe(0);
  for (const value of [0, 1, 2 ** 32 - 1, 2 ** 32, 0x7fff_ffff_ffff, Number.MAX_SAFE_INTEGER]) {
    memory.setU64(8, value);
    expect(memory.u64(8)).toBe(value);
  }
  memory.setU64(8, Infinity);
  expect([memory.u32[2], memory.u32[3]]).toEqual([0xffffffff, 0xffffffff]);
});
