/**
 * Plans of kernels that keep rows of a matrix in registers, so that memory is read once: the number
 * of threads for a row, and of elements for each thread, in accesses that are as wide as the row's
 * length allows.
 */
import type { KernelDType } from '../core/index.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import type { Gpu, KernelArray } from './kernel-family.js';
import { CASTS } from './reduction-kernels.js';

/** The type in which rows are computed. */
export type RowAccumulator = 'f32' | 'f64';

/** The second parameter of a body over rows. */
export interface RowGpu extends Gpu {
  /** Threads of a row: 32, or those of the block. */
  readonly THREADS: number;
  /** Elements that a thread reads in one access. */
  readonly WIDTH: number;
  /** The number of such accesses of a thread. */
  readonly TIMES: number;
  /** An array of WIDTH · TIMES zeros. */
  values(): KernelArray<number>;
  cast(value: number): number;
  /** The sum, and the maximum, over the row's threads. Each thread gets the same value. */
  total(value: number): number;
  greatest(value: number): number;
}

/** The shape of a launch, and constants of its body. */
export interface RowPlan {
  readonly key: string;
  readonly block: number;
  readonly uses: Readonly<Record<string, Usable>>;
  readonly grid: number;
  /** Accesses that a row takes. */
  readonly units: number;
}

/** Words of a thread: half of its registers, which are 64 in a block of 1024 threads. */
const MOST_WORDS = 32;
/** Threads of a block with several rows, a warp for each. */
const WARPS = 128;
/** Elements up to which a warp has a row. */
const WARP_ROW = 1024;
const BLOCKS = [256, 1024] as const;

/** Elements of the longest row that registers hold. */
export function longestRow(accumulator: RowAccumulator): number {
  return BLOCKS[1] * (accumulator === 'f64' ? MOST_WORDS / 2 : MOST_WORDS);
}

const warpTotal = (value: number, gpu: Gpu): number => gpu.warp.sum(value);
const warpGreatest = (value: number, gpu: Gpu): number => gpu.warp.max(value);
const blockTotal = (value: number, gpu: Gpu): number => gpu.block.sum(value);
const blockGreatest = (value: number, gpu: Gpu): number => gpu.block.max(value);

const ARRAYS = {
  f32: (LENGTH: number): DeviceFunction => {
    const uses = { LENGTH };
    return deviceFunction((gpu: GpuWith<typeof uses>) => gpu.local.f32(gpu.LENGTH), {
      uses,
    }) as DeviceFunction;
  },
  f64: (LENGTH: number): DeviceFunction => {
    const uses = { LENGTH };
    return deviceFunction((gpu: GpuWith<typeof uses>) => gpu.local.f64(gpu.LENGTH), {
      uses,
    }) as DeviceFunction;
  },
} as const;

/**
 * Plans the kernel for rows of `count` elements.
 *
 * @param bytes the size of the widest element that is read or written
 */
export function rowPlan(
  rows: number,
  count: number,
  bytes: number,
  accumulator: RowAccumulator,
): RowPlan {
  const warps = count <= WARP_ROW;
  const threads = warps ? 32 : count <= BLOCKS[0] * 16 ? BLOCKS[0] : BLOCKS[1];
  const widest = Math.min(4, 16 / bytes);
  // Where the length of rows is a multiple of the access, so are their begins. Short rows take
  // narrow accesses, so that all threads have work.
  const width =
    [4, 2].find((each) => each <= widest && count % each === 0 && count >= (each * threads) / 2) ??
    1;
  const times = powerOfTwo(Math.ceil(count / (threads * width)));
  const block = warps ? WARPS : threads;
  return {
    key: `${threads}x${width}x${times}`,
    block,
    grid: Math.ceil((rows * threads) / block),
    units: count / width,
    uses: {
      THREADS: threads,
      WIDTH: width,
      TIMES: times,
      values: ARRAYS[accumulator](width * times),
      cast: CASTS[accumulator],
      total: warps ? warpTotal : blockTotal,
      greatest: warps ? warpGreatest : blockGreatest,
    },
  };
}

function powerOfTwo(least: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, least)));
}

/** Plans for rows that do not fit in registers: a block for each, and one element in an access. */
export function longRowPlan(rows: number, count: number, accumulator: RowAccumulator): RowPlan {
  const [, block] = BLOCKS;
  return {
    key: 'long',
    block,
    grid: rows,
    units: count,
    uses: { THREADS: block, cast: CASTS[accumulator], total: blockTotal, greatest: blockGreatest },
  };
}

export function accumulatorOf({ name }: KernelDType): RowAccumulator {
  return name === 'f64' ? 'f64' : 'f32';
}
