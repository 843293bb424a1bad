/**
 * Opens the embedded CPU device: a driver for machines without a GPU, which runs the PTX that a GPU would run.
 */
import { setFlagsFromString } from 'node:v8';
import { compilePtx } from '../../ptx/index.js';
import type { PolledDriver } from '../driver.js';
import { createCpuDriver } from './cpu-driver.js';
import type { CpuOptions } from './cpu-driver.js';

export type { CpuOptions } from './cpu-driver.js';

/** Node 20 has relaxed SIMD, which fuses multiply-add, but behind a flag that can be set while it runs. */
function enableRelaxedSimd(): void {
  if (Number(process.versions.node.split('.')[0]) < 21) setFlagsFromString('--experimental-wasm-relaxed-simd');
}

export function openCpu(options: CpuOptions = {}): PolledDriver {
  enableRelaxedSimd();
  return createCpuDriver({ compile: compilePtx, ...options });
}
