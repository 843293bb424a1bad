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

const LANES: readonly (string | undefined)[] = ['many', 'all', 'none'] satisfies CpuOptions['lanes'][];

export function openCpu(options: CpuOptions = {}): PolledDriver {
  enableRelaxedSimd();
  const lanes = options.lanes ?? process.env['ASYNC_CUDA_CPU_LANES'];
  if (lanes !== undefined && lanes !== '' && !LANES.includes(lanes)) throw new RangeError(`lanes is '${lanes}'; it must be many, all or none`);
  return createCpuDriver({ compile: compilePtx, ...options, lanes: (lanes || 'many') as NonNullable<CpuOptions['lanes']> });
}
