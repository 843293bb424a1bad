/**
 * Opens the embedded CPU device: a driver for machines without a GPU, which runs the PTX that a GPU would run.
 */
import { compilePtx } from '../../ptx/index.js';
import type { PolledDriver } from '../driver.js';
import { createCpuDriver } from './cpu-driver.js';
import type { CpuOptions } from './cpu-driver.js';

export type { CpuOptions } from './cpu-driver.js';

export function openCpu(options: CpuOptions = {}): PolledDriver {
  return createCpuDriver({ compile: compilePtx, ...options });
}
