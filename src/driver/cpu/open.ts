/**
 * Opens the embedded CPU device: a driver for machines without a GPU, which runs the PTX that a GPU
 * would run.
 */
import { compilePtx } from '../../ptx/index.js';
import type { PolledDriver } from '../driver.js';
import { createCpuDriver } from './cpu-driver.js';
import type { CpuOptions } from './cpu-driver.js';
import { setEngineFlags } from './engine-flags.js';

export type { CpuOptions } from './cpu-driver.js';

const LANES: readonly (string | undefined)[] = [
  'many',
  'all',
  'none',
] satisfies CpuOptions['lanes'][];

/**
 * Opens a driver of embedded CPU devices. Each call returns a driver with devices and memory of its
 * own. It works on the calling thread: call `poll` while there is no other work, or one of the
 * calls that wait.
 *
 * @throws RangeError where an option is out of range
 *
 * @example
 * ```ts
 * const driver = openCpu({ memoryBytes: 2 ** 20 });
 * driver.cuInit(0);
 * driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(0)));
 * const memory = driver.cuMemAlloc(1024);
 * driver.cuMemsetD32Async(memory, 7, 256, 0);
 * driver.cuCtxSynchronize();
 * console.log(driver.cuDeviceGetName(0)); // async-cuda CPU device
 * ```
 */
export function openCpu(options: CpuOptions = {}): PolledDriver {
  setEngineFlags();
  const lanes = options.lanes ?? process.env['ASYNC_CUDA_CPU_LANES'];
  if (lanes !== undefined && lanes !== '' && !LANES.includes(lanes)) {
    throw new RangeError(
      `${options.lanes === undefined ? 'ASYNC_CUDA_CPU_LANES' : 'lanes'} is '${lanes}'; it ` +
        'must be many, all or none',
    );
  }
  return createCpuDriver({
    compile: compilePtx,
    ...options,
    lanes: (lanes || 'many') as NonNullable<CpuOptions['lanes']>,
  });
}
