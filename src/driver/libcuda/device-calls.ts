/**
 * Initialisation, devices and contexts.
 */
import { STRUCTURE } from '../../native/native-memory.js';
import type { CUcontext, CUdevice, CUmemoryPool } from '../handles.js';
import type { AdoptedContext, SharedContext } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { plainCalls } from './plain-calls.js';

/** Initialisation, devices and contexts. */
export interface DeviceCalls {
  cuInit(flags: number): void;
  /** The driver's CUDA version, e.g. 13000 for CUDA 13.0. */
  cuDriverGetVersion(): number;
  cuDeviceGetCount(): number;
  cuDeviceGet(ordinal: number): CUdevice;
  cuDeviceGetName(dev: CUdevice): string;
  /** Returns 16 bytes. */
  cuDeviceGetUuid(dev: CUdevice): Uint8Array;
  cuDeviceGetPCIBusId(dev: CUdevice): string;
  /** Returns bytes. */
  cuDeviceTotalMem(dev: CUdevice): number;
  /** `attrib` is a value of `CUdevice_attribute`. */
  cuDeviceGetAttribute(attrib: number, dev: CUdevice): number;
  cuDeviceCanAccessPeer(dev: CUdevice, peerDev: CUdevice): boolean;
  cuDeviceGetDefaultMemPool(dev: CUdevice): CUmemoryPool;
  cuDeviceGetMemPool(dev: CUdevice): CUmemoryPool;
  cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool): void;
  cuDevicePrimaryCtxRetain(dev: CUdevice): CUcontext;
  cuDevicePrimaryCtxRelease(dev: CUdevice): void;
  cuDevicePrimaryCtxReset(dev: CUdevice): void;
  cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: number): void;
  cuDevicePrimaryCtxGetState(dev: CUdevice): { flags: number; active: boolean };
  cuCtxSetCurrent(ctx: CUcontext): void;
  cuCtxGetCurrent(): CUcontext;
  /** Waits for the device. The runtime thread never calls it. */
  cuCtxSynchronize(): void;
  cuCtxGetStreamPriorityRange(): { leastPriority: number; greatestPriority: number };
  /** `limit` is a value of `CUlimit`; the result is in bytes or a count, as NVIDIA defines it. */
  cuCtxGetLimit(limit: number): number;
  cuCtxSetLimit(limit: number, value: number): void;
  cuCtxEnablePeerAccess(peerContext: CUcontext, flags: number): void;
  cuCtxDisablePeerAccess(peerContext: CUcontext): void;
  /** Returns the data that another thread's provider needs to copy from and to this context. */
  shareContext(ctx: CUcontext): SharedContext;
  /** Returns the context that another thread's provider shared, for copies between the two. */
  adoptContext(shared: SharedContext): AdoptedContext;
  /** Ends what {@link adoptContext} began. Copies that are queued still run. */
  disownContext(adopted: AdoptedContext): void;
}

export const DEVICE_CALLS = {
  cuInit: { since: '2.0', symbols: ['cuInit'], args: ['uint32_t Flags'], plain: true },
  cuDriverGetVersion: {
    since: '2.2',
    symbols: ['cuDriverGetVersion'],
    args: ['int* driverVersion'],
    plain: true,
  },
  cuDeviceGetCount: {
    since: '2.0',
    symbols: ['cuDeviceGetCount'],
    args: ['int* count'],
    plain: true,
  },
  cuDeviceGet: {
    since: '2.0',
    symbols: ['cuDeviceGet'],
    args: ['int* device', 'int ordinal'],
    plain: (ordinal) => `ordinal ${ordinal}`,
  },
  cuDeviceGetName: {
    since: '2.0',
    symbols: ['cuDeviceGetName'],
    args: ['uintptr_t name', 'int len', 'int dev'],
  },
  cuDeviceGetUuid: {
    since: '9.2',
    symbols: ['cuDeviceGetUuid_v2', 'cuDeviceGetUuid'],
    args: ['uintptr_t uuid', 'int dev'],
  },
  cuDeviceGetPCIBusId: {
    since: '4.1',
    symbols: ['cuDeviceGetPCIBusId'],
    args: ['uintptr_t pciBusId', 'int len', 'int dev'],
  },
  cuDeviceTotalMem: {
    since: '3.2',
    symbols: ['cuDeviceTotalMem_v2'],
    args: ['size_t* bytes', 'int dev'],
    plain: (dev) => `device ${dev}`,
  },
  cuDeviceGetAttribute: {
    since: '2.0',
    symbols: ['cuDeviceGetAttribute'],
    args: ['int* pi', 'int attrib', 'int dev'],
    plain: (attrib, dev) => `attribute ${attrib} of device ${dev}`,
  },
  cuDeviceCanAccessPeer: {
    since: '4.0',
    symbols: ['cuDeviceCanAccessPeer'],
    args: ['uintptr_t canAccessPeer', 'int dev', 'int peerDev'],
  },
  cuDeviceGetDefaultMemPool: {
    since: '11.2',
    symbols: ['cuDeviceGetDefaultMemPool'],
    args: ['uintptr_t* pool_out', 'int dev'],
    plain: (dev) => `device ${dev}`,
  },
  cuDeviceGetMemPool: {
    since: '11.2',
    symbols: ['cuDeviceGetMemPool'],
    args: ['uintptr_t* pool', 'int dev'],
    plain: (dev) => `device ${dev}`,
  },
  cuDeviceSetMemPool: {
    since: '11.2',
    symbols: ['cuDeviceSetMemPool'],
    args: ['int dev', 'uintptr_t pool'],
    plain: (dev) => `device ${dev}`,
  },
  cuDevicePrimaryCtxRetain: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxRetain'],
    args: ['uintptr_t* pctx', 'int dev'],
    plain: (dev) => `device ${dev}`,
  },
  cuDevicePrimaryCtxRelease: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxRelease_v2', 'cuDevicePrimaryCtxRelease'],
    args: ['int dev'],
    plain: (dev) => `device ${dev}`,
  },
  cuDevicePrimaryCtxReset: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxReset_v2', 'cuDevicePrimaryCtxReset'],
    args: ['int dev'],
    plain: (dev) => `device ${dev}`,
  },
  cuDevicePrimaryCtxSetFlags: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxSetFlags_v2', 'cuDevicePrimaryCtxSetFlags'],
    args: ['int dev', 'uint32_t flags'],
    plain: (dev, flags) => `flags ${flags} for device ${dev}`,
  },
  cuDevicePrimaryCtxGetState: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxGetState'],
    args: ['int dev', 'uintptr_t flags', 'uintptr_t active'],
  },
  cuCtxSetCurrent: {
    since: '4.0',
    symbols: ['cuCtxSetCurrent'],
    args: ['uintptr_t ctx'],
  },
  cuCtxGetCurrent: {
    since: '4.0',
    symbols: ['cuCtxGetCurrent'],
    args: ['uintptr_t* pctx'],
    plain: true,
  },
  // cuCtxSynchronize_v2 (13.0) takes a context: not needed, the current one is meant.
  cuCtxSynchronize: { since: '2.0', symbols: ['cuCtxSynchronize'], args: [], plain: true },
  cuCtxGetStreamPriorityRange: {
    since: '5.5',
    symbols: ['cuCtxGetStreamPriorityRange'],
    args: ['int* leastPriority', 'int* greatestPriority'],
    plain: true,
  },
  cuCtxGetLimit: {
    since: '3.1',
    symbols: ['cuCtxGetLimit'],
    args: ['size_t* pvalue', 'int limit'],
    plain: (limit) => `limit ${limit}`,
  },
  cuCtxSetLimit: {
    since: '3.1',
    symbols: ['cuCtxSetLimit'],
    args: ['int limit', 'size_t value'],
    plain: (limit, value) => `limit ${limit} to ${value}`,
  },
  cuCtxEnablePeerAccess: {
    since: '4.0',
    symbols: ['cuCtxEnablePeerAccess'],
    args: ['uintptr_t peerContext', 'uint32_t Flags'],
    plain: true,
  },
  cuCtxDisablePeerAccess: {
    since: '4.0',
    symbols: ['cuCtxDisablePeerAccess'],
    args: ['uintptr_t peerContext'],
    plain: true,
  },
} as const satisfies RowsOf<DeviceCalls>;

/** Names and bus ids are cut off at this many bytes. */
const TEXT_LIMIT = 256;

export function deviceCalls(binding: Binding): DeviceCalls {
  const { calls, scratch } = binding;
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const text = out0 + STRUCTURE;
  const {
    cuCtxSetCurrent,
    cuDeviceGetName,
    cuDeviceGetUuid,
    cuDeviceGetPCIBusId,
    cuDeviceCanAccessPeer,
    cuDevicePrimaryCtxGetState,
  } = calls;

  return {
    ...plainCalls(binding, DEVICE_CALLS),
    cuCtxSetCurrent(ctx) {
      const r = cuCtxSetCurrent.run(ctx);
      if (r !== 0) throw cuCtxSetCurrent.failure(r);
    },
    cuDeviceGetName(dev) {
      const r = cuDeviceGetName.run(text, TEXT_LIMIT, dev);
      if (r !== 0) throw cuDeviceGetName.failure(r, `device ${dev}`);
      return scratch.text(STRUCTURE, TEXT_LIMIT);
    },
    cuDeviceGetUuid(dev) {
      const r = cuDeviceGetUuid.run(text, dev);
      if (r !== 0) throw cuDeviceGetUuid.failure(r, `device ${dev}`);
      return scratch.bytes.slice(STRUCTURE, STRUCTURE + 16);
    },
    cuDeviceGetPCIBusId(dev) {
      const r = cuDeviceGetPCIBusId.run(text, TEXT_LIMIT, dev);
      if (r !== 0) throw cuDeviceGetPCIBusId.failure(r, `device ${dev}`);
      return scratch.text(STRUCTURE, TEXT_LIMIT);
    },
    cuDeviceCanAccessPeer(dev, peerDev) {
      const r = cuDeviceCanAccessPeer.run(out0, dev, peerDev);
      if (r !== 0) throw cuDeviceCanAccessPeer.failure(r, `devices ${dev} and ${peerDev}`);
      return scratch.i32[0] !== 0;
    },

    cuDevicePrimaryCtxGetState(dev) {
      const r = cuDevicePrimaryCtxGetState.run(dev, out0, out1);
      if (r !== 0) throw cuDevicePrimaryCtxGetState.failure(r, `device ${dev}`);
      return { flags: scratch.u32[0]!, active: scratch.i32[2] !== 0 };
    },
    // Contexts, events and addresses are the process's: nothing has to be made known.
    shareContext: (context) => ({ context }),
    adoptContext: ({ context }) => {
      if (context === undefined) throw new TypeError('the context is not one of libcuda');
      return { context, addressOffset: 0 };
    },
    disownContext: () => undefined,
  };
}
