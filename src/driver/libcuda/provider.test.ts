/**
 * Every call of the interface that has no test file of its own, against the stand-in driver: the
 * symbol that is called, its arguments, the result, and the text of an error. `*` stands for an
 * address in the provider's own memory.
 */
import { beforeEach, describe, expect, test } from 'vitest';

import { readFileSync, readdirSync } from 'node:fs';

import type { Driver } from '../driver.js';
import { DriverError } from '../error.js';
import { resultOf, typeAndName } from './call-row.js';
import type { Argument, CallRow, ResultType } from './call-row.js';
import { CALLS } from './calls.js';
import { openLibcuda } from './open.js';
import { StandIn, buildStandIn, whyNoStandIn } from './stand-in/stand-in.js';

const u32 = (...values: number[]): Uint32Array => Uint32Array.from(values);
const u64 = (...values: number[]): BigUint64Array => BigUint64Array.from(values.map(BigInt));
const text = (value: string): Uint8Array => Buffer.from(`${value}\0`);

/** A handle or address with bits in its upper half. */
const H1 = 0x7f1000000010,
  H2 = 0x7f2000000020,
  H3 = 0x7f3000000030,
  H4 = 0x7f4000000040;
const h1 = '7f1000000010',
  h2 = '7f2000000020',
  h3 = '7f3000000030',
  h4 = '7f4000000040';
const BIG = 0x300000007,
  big = '300000007';

/** The bytes of a tensor map. */
const TENSOR_MAP = Uint8Array.from({ length: 128 }, (_, i) => 255 - i);

interface Case {
  call: (d: Driver) => unknown;
  /** The recorded lines, one for each symbol called. */
  log: string;
  /** What the driver writes through an argument: symbol, argument, bytes. */
  writes?: [string, number, ArrayBufferView][];
  result?: unknown;
}

const CASES: Record<string, Case> = {
  cuInit: { call: (d) => d.cuInit(0), log: 'cuInit 0' },
  cuDriverGetVersion: {
    call: (d) => d.cuDriverGetVersion(),
    log: 'cuDriverGetVersion *',
    result: 13000,
  },
  cuDeviceGetCount: {
    call: (d) => d.cuDeviceGetCount(),
    log: 'cuDeviceGetCount *',
    writes: [['cuDeviceGetCount', 0, u32(4)]],
    result: 4,
  },
  cuDeviceGet: {
    call: (d) => d.cuDeviceGet(2),
    log: 'cuDeviceGet * 2',
    writes: [['cuDeviceGet', 0, u32(2)]],
    result: 2,
  },
  cuDeviceGetName: {
    call: (d) => d.cuDeviceGetName(1),
    log: 'cuDeviceGetName * 100 1',
    writes: [['cuDeviceGetName', 0, text('NVIDIA H200')]],
    result: 'NVIDIA H200',
  },
  cuDeviceGetUuid: {
    call: (d) => d.cuDeviceGetUuid(1),
    log: 'cuDeviceGetUuid_v2 * 1',
    writes: [['cuDeviceGetUuid_v2', 0, Uint8Array.from({ length: 16 }, (_, i) => i + 1)]],
    result: Uint8Array.from({ length: 16 }, (_, i) => i + 1),
  },
  cuDeviceGetPCIBusId: {
    call: (d) => d.cuDeviceGetPCIBusId(1),
    log: 'cuDeviceGetPCIBusId * 100 1',
    writes: [['cuDeviceGetPCIBusId', 0, text('0000:3B:00.0')]],
    result: '0000:3B:00.0',
  },
  cuDeviceTotalMem: {
    call: (d) => d.cuDeviceTotalMem(1),
    log: 'cuDeviceTotalMem_v2 * 1',
    writes: [['cuDeviceTotalMem_v2', 0, u64(150754820096)]],
    result: 150754820096,
  },
  cuDeviceGetAttribute: {
    call: (d) => d.cuDeviceGetAttribute(16, 1),
    log: 'cuDeviceGetAttribute * 10 1',
    writes: [['cuDeviceGetAttribute', 0, u32(132)]],
    result: 132,
  },
  cuDeviceCanAccessPeer: {
    call: (d) => d.cuDeviceCanAccessPeer(1, 2),
    log: 'cuDeviceCanAccessPeer * 1 2',
    writes: [['cuDeviceCanAccessPeer', 0, u32(1)]],
    result: true,
  },
  cuDeviceGetDefaultMemPool: {
    call: (d) => d.cuDeviceGetDefaultMemPool(1),
    log: 'cuDeviceGetDefaultMemPool * 1',
    writes: [['cuDeviceGetDefaultMemPool', 0, u64(H1)]],
    result: H1,
  },
  cuDeviceGetMemPool: {
    call: (d) => d.cuDeviceGetMemPool(1),
    log: 'cuDeviceGetMemPool * 1',
    writes: [['cuDeviceGetMemPool', 0, u64(H1)]],
    result: H1,
  },
  cuDeviceSetMemPool: {
    call: (d) => d.cuDeviceSetMemPool(1, H2),
    log: `cuDeviceSetMemPool 1 ${h2}`,
  },

  cuDevicePrimaryCtxRetain: {
    call: (d) => d.cuDevicePrimaryCtxRetain(1),
    log: 'cuDevicePrimaryCtxRetain * 1',
    writes: [['cuDevicePrimaryCtxRetain', 0, u64(H1)]],
    result: H1,
  },
  cuDevicePrimaryCtxRelease: {
    call: (d) => d.cuDevicePrimaryCtxRelease(1),
    log: 'cuDevicePrimaryCtxRelease_v2 1',
  },
  cuDevicePrimaryCtxReset: {
    call: (d) => d.cuDevicePrimaryCtxReset(1),
    log: 'cuDevicePrimaryCtxReset_v2 1',
  },
  cuDevicePrimaryCtxSetFlags: {
    call: (d) => d.cuDevicePrimaryCtxSetFlags(1, 4),
    log: 'cuDevicePrimaryCtxSetFlags_v2 1 4',
  },
  cuDevicePrimaryCtxGetState: {
    call: (d) => d.cuDevicePrimaryCtxGetState(1),
    log: 'cuDevicePrimaryCtxGetState 1 * *',
    writes: [
      ['cuDevicePrimaryCtxGetState', 1, u32(4)],
      ['cuDevicePrimaryCtxGetState', 2, u32(1)],
    ],
    result: { flags: 4, active: true },
  },
  cuCtxSetCurrent: { call: (d) => d.cuCtxSetCurrent(H1), log: `cuCtxSetCurrent ${h1}` },
  cuCtxGetCurrent: {
    call: (d) => d.cuCtxGetCurrent(),
    log: 'cuCtxGetCurrent *',
    writes: [['cuCtxGetCurrent', 0, u64(H1)]],
    result: H1,
  },
  cuCtxSynchronize: { call: (d) => d.cuCtxSynchronize(), log: 'cuCtxSynchronize' },
  cuCtxGetStreamPriorityRange: {
    call: (d) => d.cuCtxGetStreamPriorityRange(),
    log: 'cuCtxGetStreamPriorityRange * *',
    writes: [
      ['cuCtxGetStreamPriorityRange', 0, u32(0)],
      ['cuCtxGetStreamPriorityRange', 1, Int32Array.of(-5)],
    ],
    result: { leastPriority: 0, greatestPriority: -5 },
  },
  cuCtxGetLimit: {
    call: (d) => d.cuCtxGetLimit(2),
    log: 'cuCtxGetLimit * 2',
    writes: [['cuCtxGetLimit', 0, u64(BIG)]],
    result: BIG,
  },
  cuCtxSetLimit: { call: (d) => d.cuCtxSetLimit(2, BIG), log: `cuCtxSetLimit 2 ${big}` },
  cuCtxEnablePeerAccess: {
    call: (d) => d.cuCtxEnablePeerAccess(H1, 0),
    log: `cuCtxEnablePeerAccess ${h1} 0`,
  },
  cuCtxDisablePeerAccess: {
    call: (d) => d.cuCtxDisablePeerAccess(H1),
    log: `cuCtxDisablePeerAccess ${h1}`,
  },

  cuStreamCreateWithPriority: {
    call: (d) => d.cuStreamCreateWithPriority(1, -3),
    log: 'cuStreamCreateWithPriority * 1 fffffffd',
    writes: [['cuStreamCreateWithPriority', 0, u64(H1)]],
    result: H1,
  },
  cuStreamDestroy: { call: (d) => d.cuStreamDestroy(H1), log: `cuStreamDestroy_v2 ${h1}` },
  cuStreamSynchronize: {
    call: (d) => d.cuStreamSynchronize(H1),
    log: `cuStreamSynchronize ${h1}`,
  },
  cuStreamWaitEvent: {
    call: (d) => d.cuStreamWaitEvent(H1, H2, 0),
    log: `cuStreamWaitEvent ${h1} ${h2} 0`,
  },
  cuStreamGetPriority: {
    call: (d) => d.cuStreamGetPriority(H1),
    log: `cuStreamGetPriority ${h1} *`,
    writes: [['cuStreamGetPriority', 1, Int32Array.of(-3)]],
    result: -3,
  },
  cuStreamGetFlags: {
    call: (d) => d.cuStreamGetFlags(H1),
    log: `cuStreamGetFlags ${h1} *`,
    writes: [['cuStreamGetFlags', 1, u32(1)]],
    result: 1,
  },
  cuStreamWriteValue32: {
    call: (d) => d.cuStreamWriteValue32(H1, H2, -2, 0),
    log: `cuStreamWriteValue32_v2 ${h1} ${h2} fffffffe 0`,
  },
  cuStreamWaitValue32: {
    call: (d) => d.cuStreamWaitValue32(H1, H2, 7, 1),
    log: `cuStreamWaitValue32_v2 ${h1} ${h2} 7 1`,
  },
  cuStreamWriteValue64: {
    call: (d) => d.cuStreamWriteValue64(H1, H2, 0xfedcba9876543210n, 0),
    log: `cuStreamWriteValue64_v2 ${h1} ${h2} fedcba9876543210 0`,
  },
  cuStreamWaitValue64: {
    call: (d) => d.cuStreamWaitValue64(H1, H2, 0xffffffffffffffffn, 2),
    log: `cuStreamWaitValue64_v2 ${h1} ${h2} ffffffffffffffff 2`,
  },
  cuStreamBeginCapture: {
    call: (d) => d.cuStreamBeginCapture(H1, 2),
    log: `cuStreamBeginCapture_v2 ${h1} 2`,
  },
  cuStreamEndCapture: {
    call: (d) => d.cuStreamEndCapture(H1),
    log: `cuStreamEndCapture ${h1} *`,
    writes: [['cuStreamEndCapture', 1, u64(H2)]],
    result: H2,
  },
  cuStreamGetCaptureInfo: {
    call: (d) => d.cuStreamGetCaptureInfo(H1),
    log: `cuStreamGetCaptureInfo_v2 ${h1} * * * * *`,
    writes: [
      ['cuStreamGetCaptureInfo_v2', 1, u32(1)],
      ['cuStreamGetCaptureInfo_v2', 2, u64(77)],
      ['cuStreamGetCaptureInfo_v2', 3, u64(H2)],
    ],
    result: { status: 1, id: 77, graph: H2, dependencies: [] },
  },
  cuStreamBeginCaptureToGraph: {
    call: (d) => d.cuStreamBeginCaptureToGraph(H1, H2, [], 2),
    log: `cuStreamBeginCaptureToGraph ${h1} ${h2} 0 0 0 2`,
  },
  cuStreamUpdateCaptureDependencies: {
    call: (d) => d.cuStreamUpdateCaptureDependencies(H1, [H2, H3], 1),
    log: `cuStreamUpdateCaptureDependencies_v2 ${h1} * 0 2 1`,
  },

  cuEventCreate: {
    call: (d) => d.cuEventCreate(2),
    log: 'cuEventCreate * 2',
    writes: [['cuEventCreate', 0, u64(H1)]],
    result: H1,
  },
  cuEventRecord: { call: (d) => d.cuEventRecord(H1, H2), log: `cuEventRecord ${h1} ${h2}` },
  cuEventSynchronize: { call: (d) => d.cuEventSynchronize(H1), log: `cuEventSynchronize ${h1}` },
  cuEventDestroy: { call: (d) => d.cuEventDestroy(H1), log: `cuEventDestroy_v2 ${h1}` },
  cuEventElapsedTime: {
    call: (d) => d.cuEventElapsedTime(H1, H2),
    log: `cuEventElapsedTime_v2 * ${h1} ${h2}`,
    writes: [['cuEventElapsedTime_v2', 0, Float32Array.of(1.5)]],
    result: 1.5,
  },

  cuMemGetInfo: {
    call: (d) => d.cuMemGetInfo(),
    log: 'cuMemGetInfo_v2 * *',
    writes: [
      ['cuMemGetInfo_v2', 0, u64(BIG)],
      ['cuMemGetInfo_v2', 1, u64(2 * BIG)],
    ],
    result: { free: BIG, total: 2 * BIG },
  },
  cuMemAlloc: {
    call: (d) => d.cuMemAlloc(BIG),
    log: `cuMemAlloc_v2 * ${big}`,
    writes: [['cuMemAlloc_v2', 0, u64(H1)]],
    result: H1,
  },
  cuMemAllocPitch: {
    call: (d) => d.cuMemAllocPitch(1920, 1080, 4),
    log: 'cuMemAllocPitch_v2 * * 780 438 4',
    writes: [
      ['cuMemAllocPitch_v2', 0, u64(H1)],
      ['cuMemAllocPitch_v2', 1, u64(2048)],
    ],
    result: { dptr: H1, pitch: 2048 },
  },
  cuMemFree: { call: (d) => d.cuMemFree(H1), log: `cuMemFree_v2 ${h1}` },
  cuMemAllocAsync: {
    call: (d) => d.cuMemAllocAsync(BIG, H2),
    log: `cuMemAllocAsync * ${big} ${h2}`,
    writes: [['cuMemAllocAsync', 0, u64(H1)]],
    result: H1,
  },
  cuMemAllocFromPoolAsync: {
    call: (d) => d.cuMemAllocFromPoolAsync(BIG, H2, H3),
    log: `cuMemAllocFromPoolAsync * ${big} ${h2} ${h3}`,
    writes: [['cuMemAllocFromPoolAsync', 0, u64(H1)]],
    result: H1,
  },
  cuMemFreeAsync: { call: (d) => d.cuMemFreeAsync(H1, H2), log: `cuMemFreeAsync ${h1} ${h2}` },
  cuMemAllocManaged: {
    call: (d) => d.cuMemAllocManaged(BIG, 1),
    log: `cuMemAllocManaged * ${big} 1`,
    writes: [['cuMemAllocManaged', 0, u64(H1)]],
    result: H1,
  },
  cuMemHostAlloc: {
    call: (d) => d.cuMemHostAlloc(BIG, 3),
    log: `cuMemHostAlloc * ${big} 3`,
    writes: [['cuMemHostAlloc', 0, u64(H1)]],
    result: H1,
  },
  cuMemFreeHost: { call: (d) => d.cuMemFreeHost(H1), log: `cuMemFreeHost ${h1}` },
  cuMemHostGetDevicePointer: {
    call: (d) => d.cuMemHostGetDevicePointer(H1, 0),
    log: `cuMemHostGetDevicePointer_v2 * ${h1} 0`,
    writes: [['cuMemHostGetDevicePointer_v2', 0, u64(H2)]],
    result: H2,
  },
  cuMemPrefetchAsync: {
    call: (d) => d.cuMemPrefetchAsync(H1, BIG, 3, H2),
    log: `cuMemPrefetchAsync_v2 ${h1} ${big} 300000001 0 ${h2}`,
  },
  'cuMemPrefetchAsync to the host': {
    call: (d) => d.cuMemPrefetchAsync(H1, BIG, -1, H2),
    log: `cuMemPrefetchAsync_v2 ${h1} ${big} 2 0 ${h2}`,
  },
  cuMemAdvise: {
    call: (d) => d.cuMemAdvise(H1, BIG, 3, 2),
    log: `cuMemAdvise_v2 ${h1} ${big} 3 200000001`,
  },
  'cuPointerGetAttribute, 64 bits': {
    call: (d) => d.cuPointerGetAttribute(12, H1),
    log: `cuPointerGetAttribute * c ${h1}`,
    writes: [['cuPointerGetAttribute', 0, u64(BIG)]],
    result: BIG,
  },
  'cuPointerGetAttribute, 32 bits': {
    call: (d) => d.cuPointerGetAttribute(2, H1),
    log: `cuPointerGetAttribute * 2 ${h1}`,
    writes: [['cuPointerGetAttribute', 0, u32(2)]],
    result: 2,
  },
  'cuPointerGetAttribute of an ordinal, signed': {
    call: (d) => d.cuPointerGetAttribute(9, H1),
    log: `cuPointerGetAttribute * 9 ${h1}`,
    writes: [['cuPointerGetAttribute', 0, Int32Array.of(-2)]],
    result: -2,
  },

  cuMemPoolCreate: {
    call: (d) => d.cuMemPoolCreate({ location: 1 }),
    log: 'cuMemPoolCreate * *',
    writes: [['cuMemPoolCreate', 0, u64(H1)]],
    result: H1,
  },
  cuMemPoolDestroy: { call: (d) => d.cuMemPoolDestroy(H1), log: `cuMemPoolDestroy ${h1}` },
  cuMemPoolTrimTo: {
    call: (d) => d.cuMemPoolTrimTo(H1, BIG),
    log: `cuMemPoolTrimTo ${h1} ${big}`,
  },
  cuMemPoolGetAttribute: {
    call: (d) => d.cuMemPoolGetAttribute(H1, 5),
    log: `cuMemPoolGetAttribute ${h1} 5 *`,
    writes: [['cuMemPoolGetAttribute', 2, u64(BIG)]],
    result: BIG,
  },
  cuMemPoolSetAttribute: {
    call: (d) => d.cuMemPoolSetAttribute(H1, 4, BIG),
    log: `cuMemPoolSetAttribute ${h1} 4 *`,
  },
  cuMemPoolSetAccess: {
    call: (d) => d.cuMemPoolSetAccess(H1, 1, 'readwrite'),
    log: `cuMemPoolSetAccess ${h1} * 1`,
  },

  cuMemcpyHtoDAsync: {
    call: (d) => d.cuMemcpyHtoDAsync(H1, H2, BIG, H3),
    log: `cuMemcpyHtoDAsync_v2 ${h1} ${h2} ${big} ${h3}`,
  },
  cuMemcpyDtoHAsync: {
    call: (d) => d.cuMemcpyDtoHAsync(H1, H2, BIG, H3),
    log: `cuMemcpyDtoHAsync_v2 ${h1} ${h2} ${big} ${h3}`,
  },
  cuMemcpyDtoDAsync: {
    call: (d) => d.cuMemcpyDtoDAsync(H1, H2, BIG, H3),
    log: `cuMemcpyDtoDAsync_v2 ${h1} ${h2} ${big} ${h3}`,
  },
  cuMemcpyPeerAsync: {
    call: (d) => d.cuMemcpyPeerAsync(H1, H2, H3, H4, BIG, H1),
    log: `cuMemcpyPeerAsync ${h1} ${h2} ${h3} ${h4} ${big} ${h1}`,
  },
  'cuMemsetD8Async takes the low 8 bits': {
    call: (d) => d.cuMemsetD8Async(H1, -1, BIG, H2),
    log: `cuMemsetD8Async ${h1} ff ${big} ${h2}`,
  },
  'cuMemsetD16Async takes the low 16 bits': {
    call: (d) => d.cuMemsetD16Async(H1, -2, BIG, H2),
    log: `cuMemsetD16Async ${h1} fffe ${big} ${h2}`,
  },
  cuMemsetD32Async: {
    call: (d) => d.cuMemsetD32Async(H1, -3, BIG, H2),
    log: `cuMemsetD32Async ${h1} fffffffd ${big} ${h2}`,
  },
  cuMemsetD2D8Async: {
    call: (d) => d.cuMemsetD2D8Async(H1, BIG, 255, 5, 6, H2),
    log: `cuMemsetD2D8Async ${h1} ${big} ff 5 6 ${h2}`,
  },
  cuMemsetD2D16Async: {
    call: (d) => d.cuMemsetD2D16Async(H1, BIG, 9, 5, 6, H2),
    log: `cuMemsetD2D16Async ${h1} ${big} 9 5 6 ${h2}`,
  },
  cuMemsetD2D32Async: {
    call: (d) => d.cuMemsetD2D32Async(H1, BIG, -1, 5, 6, H2),
    log: `cuMemsetD2D32Async ${h1} ${big} ffffffff 5 6 ${h2}`,
  },

  cuArrayCreate: {
    call: (d) => d.cuArrayCreate({ Width: 4, Height: 3, Format: 32, NumChannels: 2 }),
    log: 'cuArrayCreate_v2 * *',
    writes: [['cuArrayCreate_v2', 0, u64(H1)]],
    result: H1,
  },
  cuArray3DCreate: {
    call: (d) =>
      d.cuArray3DCreate({ Width: 4, Height: 3, Depth: 2, Format: 32, NumChannels: 2, Flags: 0 }),
    log: 'cuArray3DCreate_v2 * *',
    writes: [['cuArray3DCreate_v2', 0, u64(H1)]],
    result: H1,
  },
  cuTensorMapEncodeTiled: {
    call: (d) => d.cuTensorMapEncodeTiled(6, 2, H1, [64, BIG], [128], [64, 8], [1, 2], 0, 3, 2, 1),
    log: `cuTensorMapEncodeTiled * 6 2 ${h1} * * * * 0 3 2 1`,
    writes: [['cuTensorMapEncodeTiled', 0, TENSOR_MAP]],
    result: TENSOR_MAP,
  },
  cuTensorMapEncodeIm2col: {
    call: (d) =>
      d.cuTensorMapEncodeIm2col(
        ...([9, 4, H2, [64, 9, 9, 2], [128, 1152, 10368], [-1, -1], [-1, -1], 64, 96] as const),
        ...([[1, 1, 1, 1], 0, 3, 1, 0] as const),
      ),
    log: `cuTensorMapEncodeIm2col * 9 4 ${h2} * * * * 40 60 * 0 3 1 0`,
    writes: [['cuTensorMapEncodeIm2col', 0, TENSOR_MAP]],
    result: TENSOR_MAP,
  },
  cuTensorMapEncodeIm2colWide: {
    call: (d) =>
      d.cuTensorMapEncodeIm2colWide(
        ...([6, 3, H3, [64, 9, 2], [128, 1152], 7, 8, 64, 96, [1, 1, 1], 0, 1, 3, 2, 1] as const),
      ),
    log: `cuTensorMapEncodeIm2colWide * 6 3 ${h3} * * 7 8 40 60 * 0 1 3 2 1`,
    writes: [['cuTensorMapEncodeIm2colWide', 0, TENSOR_MAP]],
    result: TENSOR_MAP,
  },
  cuTensorMapReplaceAddress: {
    call: (d) => {
      const map = new Uint8Array(128);
      d.cuTensorMapReplaceAddress(map, H4);
      return map;
    },
    log: `cuTensorMapReplaceAddress * ${h4}`,
    writes: [['cuTensorMapReplaceAddress', 0, TENSOR_MAP]],
    result: TENSOR_MAP,
  },
  cuTexObjectCreate: {
    call: (d) =>
      d.cuTexObjectCreate(
        { resType: 0, array: { hArray: H2 } },
        { addressMode: [1, 1, 1], filterMode: 0, flags: 0 },
      ),
    log: 'cuTexObjectCreate * * * 0',
    writes: [['cuTexObjectCreate', 0, u64(H1)]],
    result: H1,
  },
  cuSurfObjectCreate: {
    call: (d) => d.cuSurfObjectCreate({ resType: 0, array: { hArray: H2 } }),
    log: 'cuSurfObjectCreate * *',
    writes: [['cuSurfObjectCreate', 0, u64(H1)]],
    result: H1,
  },

  cuFuncGetAttribute: {
    call: (d) => d.cuFuncGetAttribute(4, H1),
    log: `cuFuncGetAttribute * 4 ${h1}`,
    writes: [['cuFuncGetAttribute', 0, u32(40)]],
    result: 40,
  },
  cuFuncSetAttribute: {
    call: (d) => d.cuFuncSetAttribute(H1, 8, 65536),
    log: `cuFuncSetAttribute ${h1} 8 10000`,
  },
  cuFuncSetCacheConfig: {
    call: (d) => d.cuFuncSetCacheConfig(H1, 2),
    log: `cuFuncSetCacheConfig ${h1} 2`,
  },
  cuFuncLoad: { call: (d) => d.cuFuncLoad(H1), log: `cuFuncLoad ${h1}` },
  cuOccupancyMaxActiveBlocksPerMultiprocessor: {
    call: (d) => d.cuOccupancyMaxActiveBlocksPerMultiprocessor(H1, 256, BIG),
    log: `cuOccupancyMaxActiveBlocksPerMultiprocessor * ${h1} 100 ${big}`,
    writes: [['cuOccupancyMaxActiveBlocksPerMultiprocessor', 0, u32(8)]],
    result: 8,
  },
  cuOccupancyMaxPotentialBlockSize: {
    call: (d) => d.cuOccupancyMaxPotentialBlockSize(H1, BIG, 512),
    log: `cuOccupancyMaxPotentialBlockSize * * ${h1} 0 ${big} 200`,
    writes: [
      ['cuOccupancyMaxPotentialBlockSize', 0, u32(264)],
      ['cuOccupancyMaxPotentialBlockSize', 1, u32(512)],
    ],
    result: { minGridSize: 264, blockSize: 512 },
  },
  cuOccupancyAvailableDynamicSMemPerBlock: {
    call: (d) => d.cuOccupancyAvailableDynamicSMemPerBlock(H1, 2, 256),
    log: `cuOccupancyAvailableDynamicSMemPerBlock * ${h1} 2 100`,
    writes: [['cuOccupancyAvailableDynamicSMemPerBlock', 0, u64(BIG)]],
    result: BIG,
  },

  cuGraphCreate: {
    call: (d) => d.cuGraphCreate(),
    log: 'cuGraphCreate * 0',
    writes: [['cuGraphCreate', 0, u64(H1)]],
    result: H1,
  },
  cuGraphDestroy: { call: (d) => d.cuGraphDestroy(H1), log: `cuGraphDestroy ${h1}` },
  cuGraphClone: {
    call: (d) => d.cuGraphClone(H1),
    log: `cuGraphClone * ${h1}`,
    writes: [['cuGraphClone', 0, u64(H2)]],
    result: H2,
  },
  cuGraphNodeGetType: {
    call: (d) => d.cuGraphNodeGetType(H1),
    log: `cuGraphNodeGetType ${h1} *`,
    writes: [['cuGraphNodeGetType', 1, u32(2)]],
    result: 2,
  },
  cuGraphConditionalHandleCreate: {
    call: (d) => d.cuGraphConditionalHandleCreate(H1, H2, 7, 1),
    log: `cuGraphConditionalHandleCreate * ${h1} ${h2} 7 1`,
    writes: [['cuGraphConditionalHandleCreate', 0, BigUint64Array.of(0xfedcba9876543210n)]],
    result: 0xfedcba9876543210n,
  },
  cuGraphInstantiate: {
    call: (d) => d.cuGraphInstantiate(H1, 9),
    log: `cuGraphInstantiateWithFlags * ${h1} 9`,
    writes: [['cuGraphInstantiateWithFlags', 0, u64(H2)]],
    result: H2,
  },
  cuGraphExecDestroy: { call: (d) => d.cuGraphExecDestroy(H1), log: `cuGraphExecDestroy ${h1}` },
  cuGraphUpload: { call: (d) => d.cuGraphUpload(H1, H2), log: `cuGraphUpload ${h1} ${h2}` },
  cuGraphLaunch: { call: (d) => d.cuGraphLaunch(H1, H2), log: `cuGraphLaunch ${h1} ${h2}` },
};

/** An operand of a plain call, and how the stand-in records it. */
function operand(argument: Argument, i: number): [value: unknown, recorded: string] {
  const hexadecimal = (value: number): [number, string] => [value, value.toString(16)];
  switch (typeAndName(argument)[0]) {
    case 'const char*':
      return [`name ${i}`, '*'];
    case 'int':
      return [-2 - i, (2 ** 32 - 2 - i).toString(16)];
    case 'uint32_t':
      return hexadecimal(0xfffffff0 + i);
    case 'uint64_t':
      return [0xfedcba9876543210n + BigInt(i), (0xfedcba9876543210n + BigInt(i)).toString(16)];
    case 'size_t':
    case 'uintptr_t':
      return hexadecimal(0x10000000001000 + i);
    default:
      throw new TypeError(`no operand of a plain call is a ${argument}`);
  }
}

/** What the driver writes as a result, and what the method then returns. */
const RESULTS: Record<ResultType, [ArrayBufferView, unknown]> = {
  int: [Int32Array.of(-3), -3],
  uint32_t: [u32(0xfffffffd), 0xfffffffd],
  uint64_t: [BigUint64Array.of(0xfedcba9876543210n), 0xfedcba9876543210n],
  uintptr_t: [u64(H1), H1],
  size_t: [u64(BIG), BIG],
  float: [Float32Array.of(1.5), 1.5],
};

/** A case for each plain row, made from the row. */
const PLAIN_CASES = Object.fromEntries(
  (Object.entries(CALLS) as [string, CallRow][])
    .filter(([, row]) => row.plain !== undefined)
    .map(([name, { symbols, args }]): [string, Case] => {
      const operands = args.flatMap((argument, i) =>
        resultOf(argument) === undefined ? [operand(argument, i)[0]] : [],
      );
      const words = args.map((argument, i) =>
        resultOf(argument) === undefined ? operand(argument, i)[1] : '*',
      );
      const results = args.flatMap((argument, i) => {
        const result = resultOf(argument);
        return result === undefined ? [] : [{ ...result, i }];
      });
      const returned = results.map((result) => [result.name, RESULTS[result.type][1]] as const);
      return [
        name,
        {
          call: (d) =>
            (d as unknown as Record<string, (...operands: unknown[]) => unknown>)[name]!(
              ...operands,
            ),
          log: [symbols[0], ...words].join(' '),
          writes: results.map(({ type, i }) => [symbols[0], i, RESULTS[type][0]]),
          result: returned.length > 1 ? Object.fromEntries(returned) : returned[0]?.[1],
        },
      ];
    }),
);

/** Compares a recorded line with an expected one, in which `*` is any address. */
function expectLines(actual: readonly string[], expected: readonly string[]): void {
  const masked = actual.map((line, n) => {
    const pattern = expected[n]?.split(' ') ?? [];
    return line
      .split(' ')
      .map((word, i) => (pattern[i] === '*' && word.length > 5 ? '*' : word))
      .join(' ');
  });
  expect(masked).toEqual(expected);
}

describe('the provider', () => {
  if (whyNoStandIn !== undefined) {
    test.skip(whyNoStandIn, () => {});
    return;
  }
  const standIn = new StandIn(buildStandIn(13000));
  const driver = openLibcuda({ path: standIn.path });
  beforeEach(() => standIn.reset());

  describe.each([
    ['a case of this file', CASES],
    ['its row', PLAIN_CASES],
  ])('as in %s', (_, cases) => {
    test.each(Object.entries(cases))('%s', (_, { call, log, writes = [], result }) => {
      for (const [symbol, arg, bytes] of writes) standIn.writes(symbol, arg, bytes);
      expect(call(driver)).toEqual(result);
      expectLines(standIn.takeLog(), [log]);
    });

    test.each(Object.entries(cases))(
      '%s throws what the driver returned',
      (title, { call, log }) => {
        standIn.returns(log.split(' ')[0]!, 719);
        const name = title.split(/[ ,]/)[0]!;
        expect(() => call(driver)).toThrow(DriverError);
        expect(() => call(driver)).toThrow(`${name} returned CUDA_ERROR_LAUNCH_FAILED (719)`);
      },
    );
  });

  test('every call of the interface is made by a test of this folder', () => {
    const folder = new URL('./', import.meta.url);
    const tests = readdirSync(folder)
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => readFileSync(new URL(file, folder), 'utf8'))
      .join('\n');
    const calls = Object.keys(driver).filter((name) => name.startsWith('cu'));
    const isMade = (name: string): boolean =>
      name in PLAIN_CASES || tests.includes(`.${name}(`) || tests.includes(`'${name}'`);
    expect(calls.filter((name) => !isMade(name))).toEqual([]);
  });

  test.each(['cuStreamQuery', 'cuEventQuery'] as const)(
    '%s returns its result, whatever it is',
    (name) => {
      expect(driver[name](H1)).toBe(0);
      standIn.returns(name, 600, 1);
      standIn.returns(name, 700, 1);
      expect(driver[name](H1)).toBe(600);
      expect(driver[name](H1)).toBe(700);
      expect(standIn.takeLog()).toEqual(Array(3).fill(`${name} ${h1}`));
    },
  );

  test('an error has the call, the result, its name and the arguments', () => {
    standIn.returns('cuMemAllocAsync', 2);
    expect(() => driver.cuMemAllocAsync(1e12, H1)).toThrow(
      expect.objectContaining({
        call: 'cuMemAllocAsync',
        result: 2,
        resultName: 'CUDA_ERROR_OUT_OF_MEMORY',
        message: 'cuMemAllocAsync returned CUDA_ERROR_OUT_OF_MEMORY (2): 1000000000000 bytes',
      }),
    );
  });
});
