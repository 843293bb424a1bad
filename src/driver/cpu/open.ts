/**
 * Opens the embedded CPU device: a driver for machines without a GPU, which runs the PTX that a GPU would run.
 */
import { setFlagsFromString } from 'node:v8';
import { compilePtx } from '../../ptx/index.js';
import type { PolledDriver } from '../driver.js';
import { createCpuDriver } from './cpu-driver.js';
import type { CpuOptions } from './cpu-driver.js';
import type { Compile } from './kernels/compile.js';

export type { CpuOptions } from './cpu-driver.js';

const IS_NODE_20 = Number(process.versions.node.split('.')[0]) < 21;

/** Node 20 has relaxed SIMD, which fuses multiply-add, but behind a flag that can be set while it runs. */
function enableRelaxedSimd(): void {
  if (IS_NODE_20) setFlagsFromString('--experimental-wasm-relaxed-simd');
}

/** A kernel of 55 barriers ran four times slower in lanes than without on Node 20, and five times faster on Node 26. */
const MOST_ENTRIES = 32;
const compile: Compile = IS_NODE_20 ? (source, options) => compilePtx(source, { ...options, mostEntries: MOST_ENTRIES }) : compilePtx;

const LANES: readonly (string | undefined)[] = ['many', 'all', 'none'] satisfies CpuOptions['lanes'][];

export function openCpu(options: CpuOptions = {}): PolledDriver {
  enableRelaxedSimd();
  const lanes = options.lanes ?? process.env['ASYNC_CUDA_CPU_LANES'];
  if (lanes !== undefined && lanes !== '' && !LANES.includes(lanes)) {
    throw new RangeError(`${options.lanes === undefined ? 'ASYNC_CUDA_CPU_LANES' : 'lanes'} is '${lanes}'; it must be many, all or none`);
  }
  return createCpuDriver({ compile, ...options, lanes: (lanes || 'many') as NonNullable<CpuOptions['lanes']> });
}
