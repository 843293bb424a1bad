/**
 * Opens the embedded CPU device: a driver for machines without a GPU, which runs the PTX that a GPU
 * would run.
 */
import { compilePtx } from '../../ptx/index.js';
import type { PolledDriver } from '../driver.js';
import { createCpuDriver } from './cpu-driver.js';
import type { CpuOptions } from './cpu-driver.js';
import { bringUpToDate } from './engine-flags.js';

export type { CpuOptions } from './cpu-driver.js';

const LANES: readonly (string | undefined)[] = [
  'many',
  'all',
  'none',
] satisfies CpuOptions['lanes'][];

export function openCpu(options: CpuOptions = {}): PolledDriver {
  bringUpToDate();
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
