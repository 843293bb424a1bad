/**
 * Scans: sums up to each element, by kernels that read and write each element once. The threads of
 * a warp have adjacent units of four elements, and several such runs. Sums of threads are combined
 * by shuffles, those of warps through shared memory. In a row that is longer than a block's chunk,
 * a block gets the sum of the chunks before its own from other blocks (`preceding-chunks.ts`).
 */
import { i32, i64, u64 } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import { checkBoolean, checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, input, inout, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { checkAxis } from '../tensor/shape.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { precedingChunks, wordsOfChunks } from './preceding-chunks.js';
import { CASTS, SCRATCH, isWide } from './reduction-kernels.js';
import type { Accumulator } from './reduction-kernels.js';
import { sumAccumulator, sumOf } from './reductions.js';
import type { SumName } from './reductions.js';

const BLOCK = 256;
/** Adjacent elements of a thread, and the number of such units that it has at most. */
const WIDTH = 4;
const MOST_TIMES = 4;
/** Elements up to which a warp has a row. */
const WARP_ROW = 32 * WIDTH * MOST_TIMES;

interface ScanGpu extends Gpu {
  /** Threads of a row: 32, or those of the block. */
  readonly THREADS: number;
  readonly TIMES: number;
  readonly EXCLUSIVE: boolean;
  /** Whether rows have several chunks, which blocks take in order. */
  readonly MANY: boolean;
  /** Whether rows begin at multiples of four elements. */
  readonly ALIGNED: boolean;
  cast(value: number): number;
  scratch(): KernelArray<number>;
  values(): KernelArray<number>;
  starts(): KernelArray<number>;
  /** The sum of the chunks before this one, in each lane of a warp. */
  preceding(state: Output, row: number, chunk: number, chunks: number, total: number): number;
}

interface ScanArgs {
  readonly out: Output;
  readonly x: Input;
  /** For rows with several chunks: a counter of blocks, and the sums that blocks publish. */
  readonly state: Output;
  readonly rows: number;
  readonly chunks: number;
  /** Elements of a row, and the number of whole units of four in it. */
  readonly count: number;
  readonly units: number;
}

const scans = new KernelFamily(
  'scan',
  ({ out, x, state, rows, chunks, count, units }: ScanArgs, gpu: ScanGpu) => {
    const shared = gpu.scratch();
    const t = gpu.threadIdx.x % gpu.THREADS;
    let part = gpu.globalId.x / gpu.THREADS;
    if (gpu.MANY) {
      // A block waits only for blocks that began before it.
      const next = gpu.shared.u32(1);
      if (t === 0) next[0] = gpu.u32(gpu.atomicAdd(state, 0, 1));
      gpu.block.sync();
      part = gpu.i32(next[0]!);
    }
    const row = part / chunks;
    const chunk = part % chunks;
    const first = chunk * (gpu.THREADS * gpu.TIMES) + (t / 32) * (32 * gpu.TIMES) + gpu.lane;
    const whole = row < rows && (chunk + 1) * (gpu.THREADS * 4 * gpu.TIMES) <= count;
    const at = gpu.ALIGNED ? (row * units + first) * 4 : row * count + first * 4;
    /** Elements from the thread's first one on. */
    const left = row < rows ? count - first * 4 : 0;
    const values = gpu.values();
    const starts = gpu.starts();
    if (whole) {
      gpu.unroll(gpu.TIMES);
      for (let j = 0; j < gpu.TIMES; j++) {
        for (let k = 0; k < 4; k++) values[j * 4 + k] = gpu.cast(x[at + (j * 128 + k)]!);
      }
    } else {
      gpu.unroll(gpu.TIMES);
      for (let j = 0; j < gpu.TIMES; j++) {
        for (let k = 0; k < 4; k++)
          values[j * 4 + k] = j * 128 + k < left ? gpu.cast(x[at + (j * 128 + k)]!) : gpu.cast(0);
      }
    }
    let sum = gpu.cast(0);
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 1; k < 4; k++) values[j * 4 + k] = values[j * 4 + k - 1]! + values[j * 4 + k]!;
      let upTo = values[j * 4 + 3]!;
      gpu.unroll(5);
      for (let step = 1; step < 32; step <<= 1) {
        const below = gpu.warp.shuffleUp(upTo, step);
        if (gpu.lane >= step) upTo += below;
      }
      const below = gpu.warp.shuffleUp(upTo, 1);
      starts[j] = gpu.lane > 0 ? sum + below : sum;
      sum += gpu.warp.shuffle(upTo, 31);
    }
    let start = gpu.cast(0);
    if (gpu.THREADS > 32) {
      if (gpu.lane === 0) shared[gpu.warpIdx] = sum;
      gpu.block.sync();
      let total = gpu.cast(0);
      gpu.unroll(gpu.THREADS / 32);
      for (let warp = 0; warp < gpu.THREADS / 32; warp++) {
        if (warp < gpu.warpIdx) start += shared[warp]!;
        total += shared[warp]!;
      }
      if (gpu.MANY) {
        if (gpu.warpIdx === 0) {
          const before = gpu.preceding(state, row, chunk, chunks, total);
          if (gpu.lane === 0) shared[31] = before;
        }
        gpu.block.sync();
        start += shared[31]!;
      }
    }
    if (whole) {
      gpu.unroll(gpu.TIMES);
      for (let j = 0; j < gpu.TIMES; j++) {
        const before = start + starts[j]!;
        for (let k = 0; k < 4; k++)
          out[at + (j * 128 + k)] = gpu.EXCLUSIVE
            ? k === 0
              ? before
              : before + values[j * 4 + k - 1]!
            : before + values[j * 4 + k]!;
      }
    } else {
      gpu.unroll(gpu.TIMES);
      for (let j = 0; j < gpu.TIMES; j++) {
        const before = start + starts[j]!;
        for (let k = 0; k < 4; k++) {
          if (j * 128 + k < left)
            out[at + (j * 128 + k)] = gpu.EXCLUSIVE
              ? k === 0
                ? before
                : before + values[j * 4 + k - 1]!
              : before + values[j * 4 + k]!;
        }
      }
    }
  },
);

const ARRAYS: Readonly<Record<Accumulator, (LENGTH: number) => DeviceFunction>> = {
  f32: (LENGTH) =>
    deviceFunction((gpu: GpuWith<{ LENGTH: number }>) => gpu.local.f32(gpu.LENGTH), {
      uses: { LENGTH },
    }) as DeviceFunction,
  f64: (LENGTH) =>
    deviceFunction((gpu: GpuWith<{ LENGTH: number }>) => gpu.local.f64(gpu.LENGTH), {
      uses: { LENGTH },
    }) as DeviceFunction,
  i32: (LENGTH) =>
    deviceFunction((gpu: GpuWith<{ LENGTH: number }>) => gpu.local.i32(gpu.LENGTH), {
      uses: { LENGTH },
    }) as DeviceFunction,
  u32: (LENGTH) =>
    deviceFunction((gpu: GpuWith<{ LENGTH: number }>) => gpu.local.u32(gpu.LENGTH), {
      uses: { LENGTH },
    }) as DeviceFunction,
  i64: (LENGTH) =>
    deviceFunction((gpu: GpuWith<{ LENGTH: number }>) => gpu.local.i64(gpu.LENGTH), {
      uses: { LENGTH },
    }) as DeviceFunction,
  u64: (LENGTH) =>
    deviceFunction((gpu: GpuWith<{ LENGTH: number }>) => gpu.local.u64(gpu.LENGTH), {
      uses: { LENGTH },
    }) as DeviceFunction,
};

/** Options of {@link cumsum}. */
export interface ScanOptions {
  /**
   * The last axis, as -1 or by its number. Default: all elements in row-major order, and the result
   * has one axis.
   */
  readonly axis?: number;
  /** Whether an element's sum excludes the element, so that the first is 0. Default: false. */
  readonly exclusive?: boolean;
}

/**
 * Cumulative sums: for each element the sum of all elements up to it, which it is part of unless
 * `exclusive` is set. It gives a new contiguous tensor. Integers and bool are summed as i64 or u64,
 * which is the result's dtype; f16, bf16 and f8 are summed in f32, and each sum is rounded once.
 * The order of additions follows from the shape alone, so that results have the same bits in each
 * run and on each device.
 *
 * @throws CudaArgumentError for an axis that is not the last; at the call, or when run where an
 *   operation gives the operand
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4]);
 * using sums = await cumsum(x);
 * using before = await cumsum(x, { exclusive: true });
 * console.log((await sums.read()).join(' ')); // 1 3 6 10
 * console.log((await before.read()).join(' ')); // 0 1 3 6
 * ```
 */
export function cumsum<D extends KernelDTypeName>(
  x: OrOp<Tensor<D>>,
  options?: { readonly axis?: undefined; readonly exclusive?: boolean },
): DeviceOp<Tensor<SumName<D>, [number]>>;
export function cumsum<D extends KernelDTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  options: ScanOptions,
): DeviceOp<Tensor<SumName<D>, S>>;
export function cumsum(
  given: unknown,
  options: { readonly axis?: number | undefined; readonly exclusive?: boolean | undefined } = {},
): unknown {
  checkOptions('options', options, ['axis', 'exclusive']);
  const { axis, exclusive = false } = options;
  checkBoolean('options.exclusive', exclusive);
  return operation('cumsum', [given], ([x]) => {
    checkTensor('cumsum', 'x', x);
    if (axis !== undefined && checkAxis('options.axis', axis, x.rank) !== x.rank - 1) {
      throw invalid(
        'options.axis',
        `-1: the last axis, for cumsum(…)`,
        axis,
        'Sum up x.transpose(axis, -1).',
      );
    }
    const count = axis === undefined ? x.size : x.shape.at(-1)!;
    return (work) => {
      const out = work.result(
        sumOf(x.dtype),
        axis === undefined ? [x.size] : [...x.shape],
      ) as unknown as KernelTensor;
      if (out.size > 0)
        addScan(
          work,
          work.dense(x),
          out,
          x.size / count,
          count,
          exclusive,
          sumAccumulator(x.dtype),
        );
      return out;
    };
  });
}

/** Adds the launch that scans rows of `count` elements. @internal */
export function addScan(
  work: Work,
  x: KernelTensor,
  out: KernelTensor,
  rows: number,
  count: number,
  EXCLUSIVE: boolean,
  accumulator: Accumulator,
): void {
  const THREADS = count <= WARP_ROW ? 32 : BLOCK;
  const TIMES = count <= 32 * WIDTH ? 1 : MOST_TIMES;
  const chunks = Math.ceil(count / (THREADS * WIDTH * TIMES));
  const MANY = chunks > 1;
  const ALIGNED = rows === 1 || count % WIDTH === 0;
  const wide = isWide(x);
  const key =
    `${accumulator}_${x.dtype.name}_${out.dtype.name}_${THREADS}x${TIMES}` +
    `${EXCLUSIVE ? '_exclusive' : ''}${MANY ? '_many' : ''}${ALIGNED ? '' : '_unaligned'}` +
    `${wide ? '_wide' : ''}`;
  const launch = scans.member(key, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(out.dtype),
        x: input(x.dtype),
        state: inout(u64),
        rows: whole,
        chunks: whole,
        count: whole,
        units: whole,
      },
      uses: {
        THREADS,
        TIMES,
        EXCLUSIVE,
        MANY,
        ALIGNED,
        cast: CASTS[accumulator],
        scratch: SCRATCH[accumulator],
        values: ARRAYS[accumulator](WIDTH * TIMES),
        starts: ARRAYS[accumulator](TIMES),
        preceding: precedingChunks(accumulator),
      },
      block: BLOCK,
    };
  });
  const state = work.temporary(u64, [MANY ? wordsOfChunks(rows, chunks, accumulator) : 1]);
  if (MANY) work.add(state.fill(0n));
  work.add(
    launch(
      { out, x, state, rows, chunks, count, units: Math.floor(count / WIDTH) },
      { grid: Math.ceil((rows * chunks * THREADS) / BLOCK), ...(wide ? { index: 'i64' } : {}) },
    ),
  );
}
