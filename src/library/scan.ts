/**
 * Sums up to each element. A block sums up a chunk of a row: its threads each a few elements, warps their threads by shuffles. Of
 * rows that have several chunks the sums of chunks are scanned first, and each block begins with what is before it.
 */
import { DTYPES, i32, i64 } from '../core/index.js';
import type { DType, DTypeName } from '../core/index.js';
import { checkBoolean, checkOptions, invalid } from '../core/arguments.js';
import { deviceFunction, input, output } from '../launch/index.js';
import type { DeviceFunction, GpuWith } from '../launch/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { AnyTensor, Shape, Tensor } from '../tensor/index.js';
import { checkAxis } from '../tensor/shape.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import { CASTS, SCRATCH, isWide } from './reduction-kernels.js';
import type { Accumulator } from './reduction-kernels.js';
import { sumAccumulator, sumOf } from './reductions.js';
import type { SumName } from './reductions.js';

const BLOCK = 256;
/** Elements of a thread. */
const EACH = 8;
const CHUNK = BLOCK * EACH;

interface ScanGpu extends Gpu {
  readonly EACH: number;
  readonly EXCLUSIVE: boolean;
  /** Whether something is before a chunk. */
  readonly BEFORE: boolean;
  cast(value: number): number;
  scratch(): KernelArray<number>;
  values(): KernelArray<number>;
}

const chunkSums = new KernelFamily('chunk_sums', ({ out, x, chunks, count }: { out: Output; x: Input; chunks: number; count: number }, gpu: ScanGpu) => {
  const row = gpu.blockIdx.x / chunks;
  const first = (gpu.blockIdx.x % chunks) * gpu.blockDim.x * gpu.EACH + gpu.threadIdx.x;
  let sum = gpu.cast(0);
  for (let k = 0; k < gpu.EACH; k++) {
    const i = first + k * gpu.blockDim.x;
    if (i < count) sum += gpu.cast(x[row * count + i]!);
  }
  sum = gpu.block.sum(sum);
  if (gpu.threadIdx.x === 0) out[gpu.blockIdx.x] = sum;
});

const scans = new KernelFamily('scan', ({ out, x, before, chunks, count }: { out: Output; x: Input; before: Input; chunks: number; count: number }, gpu: ScanGpu) => {
  const row = gpu.blockIdx.x / chunks;
  const first = ((gpu.blockIdx.x % chunks) * gpu.blockDim.x + gpu.threadIdx.x) * gpu.EACH;
  const values = gpu.values();
  let sum = gpu.cast(0);
  gpu.unroll(gpu.EACH);
  for (let k = 0; k < gpu.EACH; k++) {
    const value = first + k < count ? gpu.cast(x[row * count + first + k]!) : gpu.cast(0);
    values[k] = gpu.EXCLUSIVE ? sum : sum + value;
    sum += value;
  }
  for (let step = 1; step < 32; step <<= 1) {
    const below = gpu.warp.shuffleUp(sum, step);
    if (gpu.lane >= step) sum += below;
  }
  const warps = gpu.scratch();
  if (gpu.lane === 31) warps[gpu.warpIdx] = sum;
  gpu.block.sync();
  let start = gpu.BEFORE ? before[gpu.blockIdx.x]! : gpu.cast(0);
  for (let warp = 0; warp < gpu.blockDim.x / 32; warp++) if (warp < gpu.warpIdx) start += warps[warp]!;
  const below = gpu.warp.shuffleUp(sum, 1);
  if (gpu.lane > 0) start += below;
  gpu.unroll(gpu.EACH);
  for (let k = 0; k < gpu.EACH; k++) if (first + k < count) out[row * count + first + k] = start + values[k]!;
});

const values = { EACH };
type ValuesGpu = GpuWith<typeof values>;
const VALUES = {
  f32: (gpu: ValuesGpu): KernelArray<number> => gpu.local.f32(gpu.EACH), f64: (gpu: ValuesGpu): KernelArray<number> => gpu.local.f64(gpu.EACH),
  i32: (gpu: ValuesGpu): KernelArray<number> => gpu.local.i32(gpu.EACH), u32: (gpu: ValuesGpu): KernelArray<number> => gpu.local.u32(gpu.EACH),
  i64: (gpu: ValuesGpu): KernelArray<number> => gpu.local.i64(gpu.EACH), u64: (gpu: ValuesGpu): KernelArray<number> => gpu.local.u64(gpu.EACH),
} as const;

/** What {@link cumsum} takes. */
export interface ScanOptions {
  /** The last axis, as -1 or by its number. Default: all elements in row-major order, and the result has one axis. */
  readonly axis?: number;
  /** Whether an element itself is left out of its sum, so that the first is 0. Default: false. */
  readonly exclusive?: boolean;
}

/**
 * The sum of all elements up to each one, itself included unless `exclusive`: a new contiguous tensor. Integers and bool are
 * summed up as i64 or u64, whose dtype the result has; f16, bf16 and f8 in f32, each sum being rounded once. The order follows from
 * the shape alone: the same bits in each run and on each device.
 *
 * @throws CudaArgumentError for an axis that is not the last; at the call, or when it is run where an operation gives the operand
 */
export function cumsum<D extends DTypeName>(x: OrOp<Tensor<D>>, options?: { readonly axis?: undefined; readonly exclusive?: boolean }): DeviceOp<Tensor<SumName<D>, [number]>>;
export function cumsum<D extends DTypeName, S extends Shape>(x: OrOp<Tensor<D, S>>, options: ScanOptions): DeviceOp<Tensor<SumName<D>, S>>;
export function cumsum(given: unknown, options: { readonly axis?: number | undefined; readonly exclusive?: boolean | undefined } = {}): unknown {
  checkOptions('options', options, ['axis', 'exclusive']);
  const { axis, exclusive = false } = options;
  checkBoolean('options.exclusive', exclusive);
  return operation('cumsum', [given], ([x]) => {
    checkTensor('cumsum', 'x', x);
    if (axis !== undefined && checkAxis('options.axis', axis, x.rank) !== x.rank - 1) {
      throw invalid('options.axis', `-1: the last axis, for cumsum(…)`, axis, 'Sum up x.transpose(axis, -1).');
    }
    const count = axis === undefined ? x.size : x.shape.at(-1)!;
    return (work) => {
      const out = work.result(sumOf(x.dtype), axis === undefined ? [x.size] : [...x.shape]) as unknown as AnyTensor;
      if (out.size > 0) addScan(work, work.dense(x), out, x.size / count, count, exclusive, sumAccumulator(x.dtype));
      return out;
    };
  });
}

/** Adds the launches that scan each of so many rows. @internal */
export function addScan(work: Work, x: AnyTensor, out: AnyTensor, rows: number, count: number, EXCLUSIVE: boolean, accumulator: Accumulator): void {
  const chunks = Math.ceil(count / CHUNK);
  const wide = isWide(x);
  const whole = wide ? i64 : i32;
  const dtype: DType = DTYPES[accumulator];
  const index = wide ? { index: 'i64' as const } : {};
  const uses = { EACH, cast: CASTS[accumulator] };
  const suffix = `${accumulator}_${x.dtype.name}${wide ? '_wide' : ''}`;
  let before: AnyTensor | undefined;
  if (chunks > 1) {
    const sums = work.temporary(dtype, [rows, chunks]) as unknown as AnyTensor;
    before = work.temporary(dtype, [rows, chunks]);
    const launch = chunkSums.member(suffix, () => ({ signature: { out: output(dtype), x: input(x.dtype), chunks: whole, count: whole }, uses, block: BLOCK }));
    work.add(launch({ out: sums, x, chunks, count }, { grid: rows * chunks, ...index }));
    addScan(work, sums, before, rows, chunks, true, accumulator);
  }
  const launch = scans.member(`${suffix}_${out.dtype.name}${EXCLUSIVE ? '_exclusive' : ''}${before === undefined ? '' : '_after'}`, () => ({
    signature: { out: output(out.dtype), x: input(x.dtype), before: input(dtype), chunks: whole, count: whole },
    uses: { ...uses, EXCLUSIVE, BEFORE: before !== undefined, scratch: SCRATCH[accumulator], values: deviceFunction(VALUES[accumulator], { uses: values }) as DeviceFunction }, block: BLOCK,
  }));
  work.add(launch({ out, x, before: before ?? work.temporary(dtype, [1]), chunks, count }, { grid: rows * chunks, ...index }));
}
