/**
 * Initialisation, devices and contexts.
 */
import type { Driver } from '../driver.js';
import type { Binding } from './binding.js';
import { STRUCTURE } from '../../native/native-memory.js';

type DeviceCalls = Pick<
  Driver,
  | 'cuInit'
  | 'cuDriverGetVersion'
  | 'cuDeviceGetCount'
  | 'cuDeviceGet'
  | 'cuDeviceGetName'
  | 'cuDeviceGetUuid'
  | 'cuDeviceGetPCIBusId'
  | 'cuDeviceTotalMem'
  | 'cuDeviceGetAttribute'
  | 'cuDeviceCanAccessPeer'
  | 'cuDeviceGetDefaultMemPool'
  | 'cuDeviceGetMemPool'
  | 'cuDeviceSetMemPool'
  | 'cuDevicePrimaryCtxRetain'
  | 'cuDevicePrimaryCtxRelease'
  | 'cuDevicePrimaryCtxReset'
  | 'cuDevicePrimaryCtxSetFlags'
  | 'cuDevicePrimaryCtxGetState'
  | 'cuCtxSetCurrent'
  | 'cuCtxGetCurrent'
  | 'cuCtxSynchronize'
  | 'cuCtxGetStreamPriorityRange'
  | 'cuCtxGetLimit'
  | 'cuCtxSetLimit'
  | 'cuCtxEnablePeerAccess'
  | 'cuCtxDisablePeerAccess'
  | 'shareContext'
  | 'adoptContext'
  | 'disownContext'
>;

/** Names and bus ids are cut off at this many bytes. */
const TEXT_LIMIT = 256;

export function deviceCalls({ calls, scratch }: Binding): DeviceCalls {
  const out0 = scratch.address;
  const out1 = out0 + 8;
  const text = out0 + STRUCTURE;
  const {
    cuInit,
    cuDriverGetVersion,
    cuDeviceGetCount,
    cuDeviceGet,
    cuDeviceGetName,
    cuDeviceGetUuid,
    cuDeviceGetPCIBusId,
    cuDeviceTotalMem,
    cuDeviceGetAttribute,
    cuDeviceCanAccessPeer,
    cuDeviceGetDefaultMemPool,
    cuDeviceGetMemPool,
    cuDeviceSetMemPool,
    cuDevicePrimaryCtxRetain,
    cuDevicePrimaryCtxRelease,
    cuDevicePrimaryCtxReset,
    cuDevicePrimaryCtxSetFlags,
    cuDevicePrimaryCtxGetState,
    cuCtxSetCurrent,
    cuCtxGetCurrent,
    cuCtxSynchronize,
    cuCtxGetStreamPriorityRange,
    cuCtxGetLimit,
    cuCtxSetLimit,
    cuCtxEnablePeerAccess,
    cuCtxDisablePeerAccess,
  } = calls;

  return {
    cuInit(flags) {
      const r = cuInit.run(flags);
      if (r !== 0) throw cuInit.failure(r);
    },
    cuDriverGetVersion() {
      const r = cuDriverGetVersion.run(out0);
      if (r !== 0) throw cuDriverGetVersion.failure(r);
      return scratch.i32[0]!;
    },
    cuDeviceGetCount() {
      const r = cuDeviceGetCount.run(out0);
      if (r !== 0) throw cuDeviceGetCount.failure(r);
      return scratch.i32[0]!;
    },
    cuDeviceGet(ordinal) {
      const r = cuDeviceGet.run(out0, ordinal);
      if (r !== 0) throw cuDeviceGet.failure(r, `ordinal ${ordinal}`);
      return scratch.i32[0]!;
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
    cuDeviceTotalMem(dev) {
      const r = cuDeviceTotalMem.run(out0, dev);
      if (r !== 0) throw cuDeviceTotalMem.failure(r, `device ${dev}`);
      return scratch.u64(0);
    },
    cuDeviceGetAttribute(attrib, dev) {
      const r = cuDeviceGetAttribute.run(out0, attrib, dev);
      if (r !== 0) throw cuDeviceGetAttribute.failure(r, `attribute ${attrib} of device ${dev}`);
      return scratch.i32[0]!;
    },
    cuDeviceCanAccessPeer(dev, peerDev) {
      const r = cuDeviceCanAccessPeer.run(out0, dev, peerDev);
      if (r !== 0) throw cuDeviceCanAccessPeer.failure(r, `devices ${dev} and ${peerDev}`);
      return scratch.i32[0] !== 0;
    },
    cuDeviceGetDefaultMemPool(dev) {
      const r = cuDeviceGetDefaultMemPool.run(out0, dev);
      if (r !== 0) throw cuDeviceGetDefaultMemPool.failure(r, `device ${dev}`);
      return scratch.u64(0);
    },
    cuDeviceGetMemPool(dev) {
      const r = cuDeviceGetMemPool.run(out0, dev);
      if (r !== 0) throw cuDeviceGetMemPool.failure(r, `device ${dev}`);
      return scratch.u64(0);
    },
    cuDeviceSetMemPool(dev, pool) {
      const r = cuDeviceSetMemPool.run(dev, pool);
      if (r !== 0) throw cuDeviceSetMemPool.failure(r, `device ${dev}`);
    },

    cuDevicePrimaryCtxRetain(dev) {
      const r = cuDevicePrimaryCtxRetain.run(out0, dev);
      if (r !== 0) throw cuDevicePrimaryCtxRetain.failure(r, `device ${dev}`);
      return scratch.u64(0);
    },
    cuDevicePrimaryCtxRelease(dev) {
      const r = cuDevicePrimaryCtxRelease.run(dev);
      if (r !== 0) throw cuDevicePrimaryCtxRelease.failure(r, `device ${dev}`);
    },
    cuDevicePrimaryCtxReset(dev) {
      const r = cuDevicePrimaryCtxReset.run(dev);
      if (r !== 0) throw cuDevicePrimaryCtxReset.failure(r, `device ${dev}`);
    },
    cuDevicePrimaryCtxSetFlags(dev, flags) {
      const r = cuDevicePrimaryCtxSetFlags.run(dev, flags);
      if (r !== 0) throw cuDevicePrimaryCtxSetFlags.failure(r, `flags ${flags} for device ${dev}`);
    },
    cuDevicePrimaryCtxGetState(dev) {
      const r = cuDevicePrimaryCtxGetState.run(dev, out0, out1);
      if (r !== 0) throw cuDevicePrimaryCtxGetState.failure(r, `device ${dev}`);
      return { flags: scratch.u32[0]!, active: scratch.i32[2] !== 0 };
    },
    cuCtxSetCurrent(ctx) {
      const r = cuCtxSetCurrent.run(ctx);
      if (r !== 0) throw cuCtxSetCurrent.failure(r);
    },
    cuCtxGetCurrent() {
      const r = cuCtxGetCurrent.run(out0);
      if (r !== 0) throw cuCtxGetCurrent.failure(r);
      return scratch.u64(0);
    },
    cuCtxSynchronize() {
      const r = cuCtxSynchronize.run();
      if (r !== 0) throw cuCtxSynchronize.failure(r);
    },
    cuCtxGetStreamPriorityRange() {
      const r = cuCtxGetStreamPriorityRange.run(out0, out1);
      if (r !== 0) throw cuCtxGetStreamPriorityRange.failure(r);
      return { leastPriority: scratch.i32[0]!, greatestPriority: scratch.i32[2]! };
    },
    cuCtxGetLimit(limit) {
      const r = cuCtxGetLimit.run(out0, limit);
      if (r !== 0) throw cuCtxGetLimit.failure(r, `limit ${limit}`);
      return scratch.u64(0);
    },
    cuCtxSetLimit(limit, value) {
      const r = cuCtxSetLimit.run(limit, value);
      if (r !== 0) throw cuCtxSetLimit.failure(r, `limit ${limit} to ${value}`);
    },
    cuCtxEnablePeerAccess(peerContext, flags) {
      const r = cuCtxEnablePeerAccess.run(peerContext, flags);
      if (r !== 0) throw cuCtxEnablePeerAccess.failure(r);
    },
    cuCtxDisablePeerAccess(peerContext) {
      const r = cuCtxDisablePeerAccess.run(peerContext);
      if (r !== 0) throw cuCtxDisablePeerAccess.failure(r);
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
