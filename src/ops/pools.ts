/** The pool that operations of a device allocate from, where one has been set. */
import { CudaError, MemoryPool } from '../core/index.js';
import type { CoreDevice } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { coreOf } from './scheduling.js';
import type { AnyDevice } from './scheduling.js';

const pools = new WeakMap<CoreDevice, MemoryPool>();
/** Whether any pool was ever set. Most programs set none, and each run checks it. */
let anySet = false;

/**
 * The pool that {@link setPool} set, or undefined.
 *
 * @example
 * ```ts
 * console.log(poolOf(device)); // undefined
 * ```
 */
export function poolOf(device: AnyDevice): MemoryPool | undefined {
  const core = coreOf(device);
  return anySet ? pools.get(core) : undefined;
}

/**
 * Sets the pool that operations of the device allocate from; `undefined` restores the device's own.
 * An operation keeps the pool that was set when it was run, or scheduled.
 *
 * @example
 * ```ts
 * await using pool = await device.core.createPool();
 * setPool(device, pool);
 * (await device.ones(f32, [1024])).close(); // allocated from it
 * console.log((await pool.statistics()).usedHigh >= 4096); // true
 * setPool(device, undefined);
 * ```
 * @throws CudaError with code ERR_CUDA_INVALID_ARGUMENT where the pool belongs to another device
 */
export function setPool(given: AnyDevice, pool: MemoryPool | undefined): void {
  const device = coreOf(given);
  if (pool === undefined) {
    pools.delete(device);
    return;
  }
  if (!(pool instanceof MemoryPool)) throw invalid('pool', 'a MemoryPool, or undefined', pool);
  if (pool.device.runtime !== device.runtime) {
    const [of, on] = [pool.device, device].map(({ kind, ordinal }) => `${kind}:${ordinal}`);
    throw new CudaError(
      'ERR_CUDA_INVALID_ARGUMENT',
      `pool: it is a pool of ${of}, and the device is ${on}. Make one with device.createPool().`,
    );
  }
  anySet = true;
  pools.set(device, pool);
}
