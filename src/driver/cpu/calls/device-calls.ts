/**
 * Initialisation, devices and contexts.
 */
import type { DeviceCalls } from '../../driver.js';
import { CUresult } from '../../../ground/result.js';
import { deviceAttribute } from '../device-attributes.js';
import { DEVICE_NAME } from '../device.js';
import { checkSize, fail, invalidHandle, invalidValue } from '../failure.js';
import { forbidDuringCaptures } from '../streams/capture.js';
import type { Machine } from '../machine.js';
import { PEER_BASE, PEER_STRIDE, PeerMemory } from '../memory/peer-memory.js';
import { GREATEST_PRIORITY } from '../streams/stream.js';

/** The interface is that of CUDA 13.0. */
const VERSION = 13000;

export function deviceCalls(machine: Machine): DeviceCalls {
  let adopted = 0;
  return {
    cuInit(flags) {
      if (flags !== 0) invalidValue('cuInit', `flags is ${flags}; it must be 0`);
      machine.initialised = true;
    },
    cuDriverGetVersion: () => VERSION,
    cuDeviceGetCount() {
      machine.checkInitialised('cuDeviceGetCount');
      return machine.devices.length;
    },
    cuDeviceGet: (ordinal) => machine.device('cuDeviceGet', ordinal).ordinal,
    cuDeviceGetName(dev) {
      machine.device('cuDeviceGetName', dev);
      return DEVICE_NAME;
    },
    cuDeviceGetUuid: (dev) => machine.device('cuDeviceGetUuid', dev).uuid,
    cuDeviceGetPCIBusId: (dev) => machine.device('cuDeviceGetPCIBusId', dev).busId,
    cuDeviceTotalMem: (dev) => machine.device('cuDeviceTotalMem', dev).memoryBytes,
    cuDeviceGetAttribute(attrib, dev) {
      const device = machine.device('cuDeviceGetAttribute', dev);
      return (
        deviceAttribute(device, attrib) ??
        invalidValue('cuDeviceGetAttribute', `${attrib} is not an attribute of a device`)
      );
    },
    /** Copies between devices work; kernels reach the memory of their own device only. */
    cuDeviceCanAccessPeer(dev, peerDev) {
      machine.device('cuDeviceCanAccessPeer', dev);
      machine.device('cuDeviceCanAccessPeer', peerDev);
      return false;
    },
    cuDeviceGetDefaultMemPool: (dev) =>
      machine.device('cuDeviceGetDefaultMemPool', dev).defaultPool.handle,
    cuDeviceGetMemPool: (dev) => machine.device('cuDeviceGetMemPool', dev).pool.handle,
    cuDeviceSetMemPool(dev, pool) {
      const device = machine.device('cuDeviceSetMemPool', dev);
      const found =
        machine.pools.get(pool) ?? invalidHandle('cuDeviceSetMemPool', 'memory pool', pool);
      if (found.device !== device)
        invalidValue(
          'cuDeviceSetMemPool',
          `the pool is on device ${found.device.ordinal}, not ${dev}`,
        );
      device.pool = found;
    },

    cuDevicePrimaryCtxRetain: (dev) =>
      machine.device('cuDevicePrimaryCtxRetain', dev).retain('cuDevicePrimaryCtxRetain').handle,
    cuDevicePrimaryCtxRelease(dev) {
      machine.device('cuDevicePrimaryCtxRelease', dev).release('cuDevicePrimaryCtxRelease');
    },
    cuDevicePrimaryCtxReset(dev) {
      machine.device('cuDevicePrimaryCtxReset', dev).reset();
    },
    cuDevicePrimaryCtxSetFlags(dev, flags) {
      checkSize('cuDevicePrimaryCtxSetFlags', 'flags', flags);
      machine.device('cuDevicePrimaryCtxSetFlags', dev).flags = flags;
    },
    cuDevicePrimaryCtxGetState(dev) {
      const device = machine.device('cuDevicePrimaryCtxGetState', dev);
      return { flags: device.flags, active: device.context !== undefined };
    },
    cuCtxSetCurrent(ctx) {
      machine.checkInitialised('cuCtxSetCurrent');
      machine.current =
        ctx === 0
          ? undefined
          : (machine.contexts.get(ctx) ??
            fail(
              'cuCtxSetCurrent',
              CUresult.CUDA_ERROR_INVALID_CONTEXT,
              `${ctx} is not a live context`,
            ));
    },
    cuCtxGetCurrent() {
      machine.checkInitialised('cuCtxGetCurrent');
      return machine.current?.handle ?? 0;
    },
    cuCtxSynchronize() {
      const context = machine.context('cuCtxSynchronize');
      forbidDuringCaptures('cuCtxSynchronize', context);
      machine.waitUntil(() => {
        for (const stream of context.streams) if (!stream.idle) return false;
        return true;
      });
      for (const stream of context.streams)
        context.checker?.order.observed(stream, stream.completed);
      context.checkFault('cuCtxSynchronize');
    },
    cuCtxGetStreamPriorityRange() {
      machine.context('cuCtxGetStreamPriorityRange');
      return { leastPriority: 0, greatestPriority: GREATEST_PRIORITY };
    },
    cuCtxGetLimit(limit) {
      const value = machine.context('cuCtxGetLimit').limits.get(limit);
      return (
        value ??
        fail(
          'cuCtxGetLimit',
          CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT,
          `the device has no limit ${limit}`,
        )
      );
    },
    cuCtxSetLimit(limit, value) {
      const { limits } = machine.context('cuCtxSetLimit');
      if (!limits.has(limit))
        fail(
          'cuCtxSetLimit',
          CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT,
          `the device has no limit ${limit}`,
        );
      checkSize('cuCtxSetLimit', 'value', value);
      limits.set(limit, value);
    },
    cuCtxEnablePeerAccess(peerContext) {
      const context = machine.context('cuCtxEnablePeerAccess');
      const peer =
        machine.contexts.get(peerContext) ??
        fail(
          'cuCtxEnablePeerAccess',
          CUresult.CUDA_ERROR_INVALID_CONTEXT,
          `${peerContext} is not a live context`,
        );
      if (peer === context)
        fail(
          'cuCtxEnablePeerAccess',
          CUresult.CUDA_ERROR_INVALID_DEVICE,
          'a device is no peer of itself',
        );
      fail(
        'cuCtxEnablePeerAccess',
        CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
        'kernels of a CPU device reach its own memory only; cuMemcpyPeerAsync copies between ' +
          'devices',
      );
    },
    cuCtxDisablePeerAccess(peerContext) {
      machine.context('cuCtxDisablePeerAccess');
      if (!machine.contexts.has(peerContext)) {
        fail(
          'cuCtxDisablePeerAccess',
          CUresult.CUDA_ERROR_INVALID_CONTEXT,
          `${peerContext} is not a live context`,
        );
      }
      fail('cuCtxDisablePeerAccess', CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    },
    shareContext(ctx) {
      const context =
        machine.contexts.get(ctx) ??
        fail('shareContext', CUresult.CUDA_ERROR_INVALID_CONTEXT, `${ctx} is not a live context`);
      return { memory: context.memory.memory };
    },
    adoptContext({ memory }) {
      machine.checkInitialised('adoptContext');
      if (!(memory instanceof WebAssembly.Memory))
        invalidValue('adoptContext', 'what was shared is no memory of a CPU device');
      const peer = new PeerMemory(machine.newHandle(), PEER_BASE + adopted++ * PEER_STRIDE, memory);
      machine.peers.set(peer.handle, peer);
      return { context: peer.handle, addressOffset: peer.origin };
    },
    disownContext({ context }) {
      machine.peers.delete(context);
    },
  };
}
