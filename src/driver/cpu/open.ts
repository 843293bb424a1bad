/**
 * Opens the embedded CPU device: a driver for machines without a GPU, which runs the PTX that a GPU would run.
 */
import { setFlagsFromString } from 'node:v8';
import { compilePtx } from '../../ptx/index.js';
import type { PolledDriver } from '../driver.js';
import { createCpuDriver } from './cpu-driver.js';
import type { CpuOptions } from './cpu-driver.js';

export type { CpuOptions } from './cpu-driver.js';

const IS_NODE_20 = Number(process.versions.node.split('.')[0]) < 21;

/**
 * What later engines do by themselves, behind flags that can be set while Node 20 runs. It has relaxed SIMD, which fuses
 * multiply-add; and it gives functions of more than 8192 values to a register allocator that keeps hardly anything in
 * registers, with which a kernel of 55 barriers ran fifteen times slower than with the usual one.
 */
function bringUpToDate(): void {
  if (!IS_NODE_20) return;
  setFlagsFromString('--experimental-wasm-relaxed-simd');
  setFlagsFromString('--no-turbo-use-mid-tier-regalloc-for-huge-functions');
}

const LANES: readonly (string | undefined)[] = ['many', 'all', 'none'] satisfies CpuOptions['lanes'][];

export function openCpu(options: CpuOptions = {}): PolledDriver {
  bringUpToDate();
  const lanes = options.lanes ?? process.env['ASYNC_CUDA_CPU_LANES'];
  if (lanes !== undefined && lanes !== '' && !LANES.includes(lanes)) {
    throw new RangeError(`${options.lanes === undefined ? 'ASYNC_CUDA_CPU_LANES' : 'lanes'} is '${lanes}'; it must be many, all or none`);
  }
  return createCpuDriver({ compile: compilePtx, ...options, lanes: (lanes || 'many') as NonNullable<CpuOptions['lanes']> });
}
