/**
 * Histograms: the number of elements in each of equal bins. Blocks count in shared memory, and then
 * add to the result.
 */
import { f32, f64, u32 } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { inout, input } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Tensor } from '../tensor/index.js';
import { arithmeticOf, checkGroup } from './element-types.js';
import type { NumberName } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import { CASTS, isWide } from './reduction-kernels.js';

const BLOCK = 256;
const BLOCKS = 1056;
/** Bins that a block counts in its shared memory. */
const MOST_SHARED = 4096;

interface HistogramGpu extends Gpu {
  readonly SHARED: boolean;
  /** Whether numbers are halved, so that the width of the range is finite. */
  readonly HALVED: boolean;
  cast(value: number): number;
}

const histograms = new KernelFamily(
  'histogram',
  (
    { out, x, from, to, scale }: { out: Output; x: Input; from: number; to: number; scale: number },
    gpu: HistogramGpu,
  ) => {
    const counts = gpu.shared.u32(4096);
    if (gpu.SHARED) {
      for (let bin = gpu.threadIdx.x; bin < out.length; bin += gpu.blockDim.x) counts[bin] = 0;
      gpu.block.sync();
    }
    for (let i = gpu.globalId.x; i < x.length; i += gpu.globalSize.x) {
      const value = gpu.cast(x[i]!);
      if (value >= from && value <= to) {
        const distance = gpu.HALVED ? value * 0.5 - from * 0.5 : value - from;
        const bin = Math.min(gpu.i32(distance * scale), gpu.i32(out.length) - 1);
        if (gpu.SHARED) gpu.atomicAdd(counts, bin, 1);
        else gpu.atomicAdd(out, bin, 1);
      }
    }
    if (gpu.SHARED) {
      gpu.block.sync();
      for (let bin = gpu.threadIdx.x; bin < out.length; bin += gpu.blockDim.x)
        if (counts[bin]! > 0) gpu.atomicAdd(out, bin, counts[bin]!);
    }
  },
);

/** Bounds of the products in f32. */
const MOST_FLOAT = 2 ** 127;
const LEAST_FLOAT = 2 ** -126;
/** The number of bins up to which f32 has the number of each. */
const MOST_FLOAT_BINS = 2 ** 23;

/** Whether f32 is exact enough for the range, its width and the scale. */
function fitsFloat(from: number, to: number, bins: number, scale: number): boolean {
  const widest = Math.max(Math.abs(from), Math.abs(to), to - from);
  return (
    bins <= MOST_FLOAT_BINS &&
    widest <= MOST_FLOAT &&
    scale <= MOST_FLOAT &&
    scale >= LEAST_FLOAT &&
    Math.fround(to) > Math.fround(from)
  );
}

/** The range that the bins cover. */
export interface HistogramOptions {
  /** Where the first bin begins. */
  readonly from: number;
  /** Where the last bin ends; an element that equals it is in that bin. */
  readonly to: number;
}

/**
 * Counts the elements in each of `bins` equal parts of a range. It gives a new tensor of u32.
 * Elements outside the range, and NaN, are not counted. The bin of x is (x - from) · (bins / (to -
 * from)) without its fraction, in f32. It is computed in f64 for f64, for integers of 32 and 64
 * bits, and where f32 does not have the range, its width or that many bins.
 *
 * @throws CudaArgumentError for another dtype, an empty range, a range that is too narrow for so
 *   many bins, no bins; at the call, or when run where an operation gives the operand
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [0.1, 0.2, 0.9, 2]);
 * using counts = await histogram(x, 2, { from: 0, to: 1 });
 * console.log((await counts.read()).join(' ')); // 2 1
 * ```
 */
export function histogram<D extends NumberName, const B extends number>(
  x: OrOp<Tensor<D>>,
  bins: B,
  options: HistogramOptions,
): DeviceOp<Tensor<'u32', [B]>> {
  checkInteger('bins', bins, 1, 2 ** 30, 'bins');
  checkOptions('options', options, ['from', 'to']);
  const { from, to } = options ?? ({} as Partial<HistogramOptions>);
  if (typeof from !== 'number' || !Number.isFinite(from))
    throw invalid('options.from', 'a number that is finite', from);
  if (typeof to !== 'number' || !Number.isFinite(to) || to <= from)
    throw invalid('options.to', `a number above options.from, ${from}`, to);
  const halved = to - from === Infinity;
  const scale = bins / (halved ? to * 0.5 - from * 0.5 : to - from);
  if (scale === Infinity)
    throw invalid(
      'options.to',
      `further above options.from, ${from}: ${bins} bins have no width that a number holds`,
      to,
      'Take fewer bins, or a wider range.',
    );
  return operation('histogram', [x], ([given]) => {
    checkTensor('histogram', 'x', given);
    checkGroup('histogram', 'x', given, 'numbers');
    if (given.size >= 2 ** 32)
      throw invalid(
        'x',
        'fewer than 2^32 elements, whose counts u32 has, for histogram(…)',
        given,
        'Count it in parts, and add them as i64.',
      );
    return (work) => {
      const out = work.result(u32, [bins]) as unknown as KernelTensor;
      work.add(out.fill(0));
      if (given.size === 0) return out;
      const arithmetic = arithmeticOf(given.dtype);
      const inside =
        (arithmetic === 'f32' || given.dtype.bytes < 4) && fitsFloat(from, to, bins, scale)
          ? f32
          : f64;
      const shared = bins <= MOST_SHARED;
      const wide = isWide(given);
      const launch = histograms.member(
        `${given.dtype.name}_${inside.name}${halved ? '_halved' : ''}` +
          `${shared ? '' : '_global'}${wide ? '_wide' : ''}`,
        () => ({
          signature: {
            out: inout(u32),
            x: input(given.dtype),
            from: inside,
            to: inside,
            scale: inside,
          },
          uses: { SHARED: shared, HALVED: halved, cast: CASTS[inside.name] },
          block: BLOCK,
        }),
      );
      work.add(
        launch(
          { out, x: work.dense(given), from, to, scale },
          {
            grid: Math.min(BLOCKS, Math.ceil(given.size / (4 * BLOCK))),
            ...(wide ? { index: 'i64' } : {}),
          },
        ),
      );
      return out;
    };
  }) as never;
}
