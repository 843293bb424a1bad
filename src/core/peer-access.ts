/**
 * Peer access: kernels of one device use memory of another where it is. It is a property of the two
 * contexts, so it holds for all Devices that are open on them.
 *
 * Enabling it for a context covers plain allocations only. Memory from pools, which `device.alloc`
 * returns, is accessible to the devices that its pool names.
 */
import { CudaArgumentError, CudaError } from '../ground/errors.js';
import type { SharedDevice } from './open-devices.js';

export async function canAccessPeer(from: SharedDevice, to: SharedDevice): Promise<boolean> {
  // Kernels of a CPU device reach its own memory only.
  if (from.runtime.config.provider !== 'libcuda' || to.runtime.config.provider !== 'libcuda')
    return false;
  if (from.runtime.info.device === to.runtime.info.device) return false;
  return from.runtime.call('canAccessPeer', from.runtime.info.device, to.runtime.info.device);
}

export async function enablePeerAccess(from: SharedDevice, to: SharedDevice): Promise<void> {
  if (from.runtime === to.runtime) {
    throw new CudaArgumentError(
      'other',
      `other: expected another device than ${from.name}, whose kernels use its own memory anyway.`,
    );
  }
  if (!(await canAccessPeer(from, to))) {
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${from.name} cannot access the memory of ${to.name}. Copy between them: ` +
        'buffer.copyFrom(stream, other).',
    );
  }
  await from.runtime.call('enablePeerAccess', to.runtime.info.context);
  to.accessors.add(from.runtime.info.device);
  await setAccess(to, await poolsOf(to), from.runtime.info.device, 'readwrite');
  from.reaches.add(to.runtime);
}

export async function disablePeerAccess(from: SharedDevice, to: SharedDevice): Promise<void> {
  // From now on kernels are refused such memory. The kernels that were queued before end first.
  if (!from.reaches.delete(to.runtime)) return;
  await Promise.all([...from.devices].map((device) => device.finished()));
  to.accessors.delete(from.runtime.info.device);
  await setAccess(to, await poolsOf(to), from.runtime.info.device, 'none');
  await from.runtime.call('disablePeerAccess', to.runtime.info.context);
}

/** Makes a new pool of the device accessible to the devices that have access to the device. */
export async function grantPeers(to: SharedDevice, pool: number): Promise<void> {
  for (const device of to.accessors) await setAccess(to, [pool], device, 'readwrite');
}

async function poolsOf(shared: SharedDevice): Promise<number[]> {
  const made = [...shared.devices].flatMap((device) => device.objects.poolHandles());
  // Without pools all memory is plain.
  if (!shared.pools) return made;
  return [await shared.runtime.call('defaultPool', shared.runtime.info.device), ...made];
}

async function setAccess(
  to: SharedDevice,
  pools: readonly number[],
  device: number,
  access: 'none' | 'readwrite',
): Promise<void> {
  if (pools.length > 0) await to.runtime.call('setPoolAccess', pools, device, access);
}
