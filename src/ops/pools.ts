/** The pool that operations of a device allocate from, where one has been set. */
import { CudaError, Device, MemoryPool } from '../core/index.js';
import { invalid } from '../core/arguments.js';

const pools = new WeakMap<Device, MemoryPool>();

/** What {@link setPool} set, if it did. */
export function poolOf(device: Device): MemoryPool | undefined {
  return pools.get(device);
}

/**
 * Sets the pool that operations of the device allocate from; `undefined` brings back the device's own. An operation keeps
 * the pool that was set when it was run, or scheduled.
 *
 * @throws CudaError with code ERR_CUDA_INVALID_ARGUMENT where the pool is another device's
 */
export function setPool(device: Device, pool: MemoryPool | undefined): void {
  if (!(device instanceof Device)) throw invalid('device', 'a Device', device);
  if (pool === undefined) {
    pools.delete(device);
    return;
  }
  if (!(pool instanceof MemoryPool)) throw invalid('pool', 'a MemoryPool, or undefined', pool);
  if (pool.device.runtime !== device.runtime) {
    const [of, on] = [pool.device, device].map(({ kind, ordinal }) => `${kind}:${ordinal}`);
    throw new CudaError('ERR_CUDA_INVALID_ARGUMENT', `pool: it is a pool of ${of}, and the device is ${on}. Make one with device.createPool().`);
  }
  pools.set(device, pool);
}
