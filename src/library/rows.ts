/**
 * How the threads of a block share the rows of a matrix where each row is kept in registers, so
 * that memory is read once: so many threads for a row, so many elements of it for each thread, in
 * accesses that are as wide as the row's length allows.
 */
import type { KernelDType } from '../core/index.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import type { Gpu, KernelArray } from './kernel-family.js';
import { CASTS } from './reduction-kernels.js';

/** What is computed with in rows. */
export type RowAccumulator = 'f32' | 'f64';

/** The second parameter of a body over rows. */
export interface RowGpu extends Gpu {
  /** Threads of a row: 32, or those of the block. */
  readonly THREADS: number;
  /** Elements that a thread reads in one access. */
  readonly WIDTH: number;
  /** Such accesses of a thread. */
  readonly TIMES: number;
  /** Zeros, WIDTH · TIMES of them. */
  values(): KernelArray<number>;
  cast(value: number): number;
  /** Over the row's threads, the same in each. */
  total(value: number): number;
  greatest(value: number): number;
}

/** The shape of a launch, and constants of its body. */
export interface RowPlan {
  readonly key: string;
  readonly block: number;
  readonly uses: Readonly<Record<string, Usable>>;
  readonly grid: number;
  /** Accesses that make a row. */
  readonly units: number;
}

/** Words of a thread: of its registers, which are 64 in a block of 1024 threads, half. */
const MOST_WORDS = 32;
/** Threads of a block with several rows, a warp for each. */
const WARPS = 128;
/** Elements up to which a row is a warp's. */
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
 * How rows of `count` elements are shared. @param bytes of the widest element that is read or
 * written
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
  // A row begins at a multiple of the access where its length is one; short rows spread over all
  // threads.
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

/** How rows that registers do not hold are shared: a block for each, an element in each access. */
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
