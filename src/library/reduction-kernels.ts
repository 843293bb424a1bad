/**
 * Kernels of reductions, which combine elements in an order that follows from sizes alone: results
 * are the same in each run and on each device. Long axes are cut into chunks, which are reduced
 * first; then their results are reduced.
 *
 * There are two kernels. In one the threads of a warp or a block share a row, and combine their
 * values by a butterfly of shuffles and through shared memory: it is for elements that are adjacent
 * along the axis. In the other each thread has a column: it is for elements that are adjacent
 * across the axis.
 */
import { DTYPES, i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, ReadElements, Usable } from '../kernels/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import type { Work } from './operation.js';

export type Input3 = ReadElements<ReadElements<Input>> & {
  readonly shape: readonly [number, number, number];
};

/** The type in which sums are accumulated. */
export type Accumulator = 'f32' | 'f64' | 'i32' | 'u32' | 'i64' | 'u64';

/** How elements are combined to one. */
export interface Reduction {
  readonly name: string;
  readonly accumulator: Accumulator;
  /** The value of no elements: a constant. */
  readonly start: number | bigint;
  /**
   * Converts an element that is no bool for combining; it leaves its own results as they are.
   * Default: the element.
   */
  readonly load?: Usable;
  readonly combine: Usable;
  /** Gives the result of the combined value and the number of elements. Default: the value. */
  readonly finish?: Usable;
}

export const BLOCK = 256;
/** Sizes from which on indices after the end do not fit in 32 bits. */
const WIDE_FROM = 2 ** 31 - 2 ** 16;
/** Blocks of a row kernel that fill a large GPU, eight for each of its multiprocessors. */
const BLOCKS = 1056;
/** Threads of a column kernel that fill a large GPU. */
const COLUMNS = 2 ** 18;

interface ReduceGpu extends Gpu {
  /** Threads of a row: 32, or those of the block. */
  readonly THREADS: number;
  start(): number;
  load(value: number): number;
  combine(a: number, b: number): number;
  finish(value: number, count: number): number;
  scratch(): KernelArray<number>;
}

interface ReduceArgs {
  readonly out: Output;
  readonly x: Input3;
  /** Chunks of the axis, and elements of one. */
  readonly chunks: number;
  readonly chunk: number;
  readonly count: number;
}

const rows = new KernelFamily(
  'reduce_rows',
  ({ out, x, chunks, chunk, count }: ReduceArgs, gpu: ReduceGpu) => {
    const t = gpu.threadIdx.x % gpu.THREADS;
    const part = gpu.blockIdx.x * (gpu.blockDim.x / gpu.THREADS) + gpu.threadIdx.x / gpu.THREADS;
    const row = part / chunks;
    const outer = row / x.shape[2];
    const inner = row % x.shape[2];
    const first = (part % chunks) * chunk;
    // All threads reach the barrier, also those after the last row.
    const last = part < out.length ? Math.min(first + chunk, x.shape[1]) : first;
    let value = gpu.start();
    for (let i = first + t; i < last; i += gpu.THREADS)
      value = gpu.combine(value, gpu.load(x[outer]![i]![inner]!));
    for (let bits = 16; bits > 0; bits >>= 1)
      value = gpu.combine(value, gpu.warp.shuffleXor(value, bits));
    if (gpu.THREADS > 32) {
      const parts = gpu.scratch();
      if (gpu.lane === 0) parts[gpu.warpIdx] = value;
      gpu.block.sync();
      value = parts[0]!;
      for (let warp = 1; warp < gpu.THREADS / 32; warp++) value = gpu.combine(value, parts[warp]!);
    }
    if (t === 0 && part < out.length)
      out[(outer * chunks + (part % chunks)) * x.shape[2] + inner] = gpu.finish(value, count);
  },
);

const columns = new KernelFamily(
  'reduce_columns',
  ({ out, x, chunks, chunk, count }: ReduceArgs, gpu: ReduceGpu) => {
    const part = gpu.globalId.x;
    if (part >= out.length) return;
    const inner = part % x.shape[2];
    const rest = part / x.shape[2];
    const outer = rest / chunks;
    const first = (rest % chunks) * chunk;
    const last = Math.min(first + chunk, x.shape[1]);
    let value = gpu.start();
    for (let i = first; i < last; i++) value = gpu.combine(value, gpu.load(x[outer]![i]![inner]!));
    out[part] = gpu.finish(value, count);
  },
);

/** Casts to the accumulators' types. */
export const CASTS = {
  f32: (value: number, gpu: Gpu): number => gpu.f32(value),
  f64: (value: number, gpu: Gpu): number => gpu.f64(value),
  i32: (value: number, gpu: Gpu): number => gpu.i32(value),
  u32: (value: number, gpu: Gpu): number => gpu.u32(value),
  i64: (value: number, gpu: Gpu): number => gpu.i64(value),
  u64: (value: number, gpu: Gpu): number => gpu.u64(value),
} satisfies Record<Accumulator, Usable>;

/** Shared memory with a place for each warp of a block. */
export const SCRATCH = {
  f32: (gpu: Gpu): KernelArray<number> => gpu.shared.f32(32),
  f64: (gpu: Gpu): KernelArray<number> => gpu.shared.f64(32),
  i32: (gpu: Gpu): KernelArray<number> => gpu.shared.i32(32),
  u32: (gpu: Gpu): KernelArray<number> => gpu.shared.u32(32),
  i64: (gpu: Gpu): KernelArray<number> => gpu.shared.i64(32),
  u64: (gpu: Gpu): KernelArray<number> => gpu.shared.u64(32),
} satisfies Record<Accumulator, Usable>;

/** A device function that gives a constant of the accumulator's type. */
export function constantOf(accumulator: Accumulator, value: number | bigint): DeviceFunction {
  const uses = { cast: CASTS[accumulator], VALUE: value };
  return deviceFunction(({ cast, VALUE }: GpuWith<typeof uses>) => cast(VALUE), {
    uses,
  }) as DeviceFunction;
}

/** A function that converts an element to the accumulator's type. */
function loadOf({ accumulator, load }: Reduction, dtype: KernelDType): Usable {
  if (load === undefined || dtype.name === 'bool') return CASTS[accumulator];
  const uses = { cast: CASTS[accumulator], load: load as (value: number) => number };
  return deviceFunction((value: number, gpu: GpuWith<typeof uses>) => gpu.cast(gpu.load(value)), {
    uses,
  }) as DeviceFunction;
}

/** Gives the combined value as it is. */
const asItIs = (value: number, _count: number): number => value;

/** How an axis is cut. */
export interface Cut {
  /** Whether the threads of a warp or block share a row. */
  readonly shared: boolean;
  /** Threads that share a row. */
  readonly threads: number;
  readonly chunks: number;
  /** Elements of a chunk; the last one may have fewer. */
  readonly chunk: number;
  readonly grid: number;
}

/**
 * Cuts `[outer][count][inner]` into chunks. The result follows from sizes and strides alone, so
 * that the order of a sum is fixed.
 */
export function cutOf({
  shape,
  strides,
}: {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}): Cut {
  const [outer, count, inner] = shape as readonly [number, number, number];
  const results = outer * inner;
  const shared = inner === 1 || Math.abs(strides[1]!) <= Math.abs(strides[2]!);
  const least = shared ? 4096 : 32;
  const wanted =
    count <= 2 * least
      ? 1
      : Math.min(Math.ceil(count / least), Math.ceil((shared ? BLOCKS : COLUMNS) / results));
  const threads = count <= BLOCK ? 32 : BLOCK;
  const chunk = wanted === 1 ? Math.max(1, count) : Math.ceil(count / wanted / threads) * threads;
  const chunks = Math.max(1, Math.ceil(count / chunk));
  return {
    shared,
    threads,
    chunks,
    chunk,
    grid: shared
      ? Math.ceil((results * chunks * threads) / BLOCK)
      : Math.ceil((results * chunks) / BLOCK),
  };
}

/**
 * Adds the launches that reduce `[outer][count][inner]` along its middle axis into `out`, which has
 * as many elements as the others.
 */
export function addReduction(
  work: Work,
  reduction: Reduction,
  x: KernelTensor,
  out: KernelTensor,
  total = x.shape[1]!,
): void {
  const { name, accumulator, start, combine, finish = asItIs } = reduction;
  const { dtype } = x;
  const [outer, , inner] = x.shape as readonly [number, number, number];
  const { chunks, chunk, threads, shared, grid } = cutOf(x);
  const last = chunks === 1;
  const wide = isWide(x);
  // The number of elements is that of the first pass: from 2^31 on it takes 64 bits in later
  // passes, too.
  const counted = wide || total >= 2 ** 31 ? i64 : i32;
  const into = last
    ? out
    : (work.temporary(DTYPES[accumulator], [outer, chunks, inner]) as unknown as KernelTensor);
  const key =
    `${name}_${accumulator}_${dtype.name}_${into.dtype.name}${last ? '' : '_part'}` +
    `${shared ? `_${threads}` : ''}${wide ? '_wide' : counted === i64 ? '_many' : ''}`;
  const launch = (shared ? rows : columns).member(key, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(into.dtype),
        x: input(dtype, 3),
        chunks: whole,
        chunk: whole,
        count: counted,
      },
      uses: {
        start: constantOf(accumulator, start),
        load: loadOf(reduction, dtype),
        combine,
        finish: last ? finish : asItIs,
        ...(shared ? { THREADS: threads, scratch: SCRATCH[accumulator] } : {}),
      },
      block: BLOCK,
    };
  });
  work.add(
    launch(
      { out: into.reshape([into.size] as never), x, chunks, chunk, count: total },
      { grid, ...(wide ? { index: 'i64' } : {}) },
    ),
  );
  if (!last) addReduction(work, reduction, into, out, total);
}

/** Whether indices, or those after the end, do not fit in 32 bits. */
export function isWide({ size }: KernelTensor): boolean {
  return size >= WIDE_FROM;
}
