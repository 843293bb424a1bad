/**
 * Kernels of statistics, for each image of a batch and each channel. Blocks have parts of an image,
 * whose results a last block combines in order, so that a sum has one order, which depends on sizes
 * alone.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from '../library/kernel-family.js';

/** Threads of a block. */
export const BLOCK = 256;

/** An image of `pixels` pixels, in rows of `width`. */
interface PartArgs {
  readonly x: Input;
  readonly width: number;
  readonly pixels: number;
  readonly xRow: number;
  readonly xImage: number;
  /** Pixels of a block. blockIdx.x is the block, blockIdx.y the image. */
  readonly part: number;
}

interface StatisticsGpu extends Gpu {
  readonly C: number;
  /** Whether rows have no gaps. */
  readonly FLAT: boolean;
}

interface SumGpu extends StatisticsGpu {
  /** An array with a zero for each channel: u32 for integers, f64 for floats. */
  sums(): KernelArray<number>;
  cast(value: number): number;
}

/** Sums of [image, part, channel]. A thread's sum fits in u32: it has at most 65536 pixels. */
export const sums = new KernelFamily(
  'image_sums',
  (
    { out, x, width, pixels, xRow, xImage, part }: PartArgs & { readonly out: Output },
    gpu: SumGpu,
  ) => {
    const mine = gpu.sums();
    const first = gpu.blockIdx.x * part;
    const last = Math.min(first + part, pixels);
    const image = gpu.blockIdx.y * xImage;
    gpu.unroll(4);
    for (let i = first + gpu.threadIdx.x; i < last; i += 256) {
      const at = image + (gpu.FLAT ? i * gpu.C : (i / width) * xRow + (i % width) * gpu.C);
      gpu.unroll(gpu.C);
      for (let c = 0; c < gpu.C; c++) mine[c] = mine[c]! + gpu.cast(x[at + c]!);
    }
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++) {
      const sum = gpu.block.sum(gpu.f64(mine[c]!));
      if (gpu.threadIdx.x === 0)
        out[(gpu.blockIdx.y * gpu.gridDim.x + gpu.blockIdx.x) * gpu.C + c] = sum;
    }
  },
);

/** Totals, by a block for each image and channel: parts in order, 256 at a time, then divided. */
export const totals = new KernelFamily(
  'image_totals',
  (
    {
      out,
      x,
      parts,
      channels,
      divisor,
    }: { out: Output; x: Input; parts: number; channels: number; divisor: number },
    gpu: Gpu,
  ) => {
    const image = gpu.blockIdx.x / channels;
    const channel = gpu.blockIdx.x % channels;
    let sum = gpu.f64(0);
    for (let i = gpu.threadIdx.x; i < parts; i += 256)
      sum += x[(image * parts + i) * channels + channel]!;
    const total = gpu.block.sum(sum);
    if (gpu.threadIdx.x === 0) out[gpu.blockIdx.x] = total / divisor;
  },
);

interface ExtremeGpu extends StatisticsGpu {
  /** Whether parts are combined, in place of pixels. */
  readonly PARTS: boolean;
  /** Shared memory of 2 × 8 numbers, two for each warp. */
  scratch(): KernelArray<KernelArray<number>>;
  beatsLeast(value: number, other: number): boolean;
  beatsMost(value: number, other: number): boolean;
}

interface ExtremeArgs extends PartArgs {
  readonly least: Output;
  readonly leastAt: Output;
  readonly most: Output;
  readonly mostAt: Output;
  /** The positions of parts' least and greatest elements. */
  readonly from: Input;
  readonly fromMost: Input;
}

// The position -1 means that there is none yet. The first of equal values counts. NaN, which
// differs from itself, is the most extreme, as in argmin.
/* eslint-disable no-self-compare */
const beatsLeast = (value: number, other: number): boolean =>
  value < other || (value !== value && other === other);
const beatsMost = (value: number, other: number): boolean =>
  value > other || (value !== value && other === other);
/* eslint-enable no-self-compare */
export const BEATS = { beatsLeast, beatsMost } as const;

/**
 * Positions of extremes, [image, part, channel], counted in pixels. Values are read again by their
 * positions, so that one kernel serves pixels and parts: positions of parts are in `from`.
 */
export const extremes = new KernelFamily(
  'image_extremes',
  (
    {
      leastAt,
      mostAt,
      x,
      from,
      fromMost,
      width,
      pixels,
      xRow,
      xImage,
      part,
    }: Omit<ExtremeArgs, 'least' | 'most'>,
    gpu: ExtremeGpu,
  ) => {
    const first = gpu.blockIdx.x * part;
    const last = Math.min(first + part, pixels);
    const image = gpu.blockIdx.y * xImage;
    const found = gpu.scratch();
    gpu.unroll(1);
    for (let c = 0; c < gpu.C; c++) {
      let least = gpu.i32(-1);
      let most = gpu.i32(-1);
      let leastValue = x[image + c]!;
      let mostValue = leastValue;
      gpu.unroll(1);
      for (let i = first + gpu.threadIdx.x; i < last; i += 256) {
        const a = gpu.PARTS ? from[(gpu.blockIdx.y * pixels + i) * gpu.C + c]! : gpu.i32(i);
        const b = gpu.PARTS ? fromMost[(gpu.blockIdx.y * pixels + i) * gpu.C + c]! : gpu.i32(i);
        const valueA =
          x[image + (gpu.FLAT ? a * gpu.C : (a / width) * xRow + (a % width) * gpu.C) + c]!;
        const valueB =
          x[image + (gpu.FLAT ? b * gpu.C : (b / width) * xRow + (b % width) * gpu.C) + c]!;
        // Positions grow, so that the first of equal values stays.
        if (least < 0 || gpu.beatsLeast(valueA, leastValue)) {
          least = a;
          leastValue = valueA;
        }
        if (most < 0 || gpu.beatsMost(valueB, mostValue)) {
          most = b;
          mostValue = valueB;
        }
      }
      for (let bits = 16; bits > 0; bits >>= 1) {
        const a = gpu.warp.shuffleXor(least, bits);
        const valueA = gpu.warp.shuffleXor(leastValue, bits);
        const b = gpu.warp.shuffleXor(most, bits);
        const valueB = gpu.warp.shuffleXor(mostValue, bits);
        if (
          a >= 0 &&
          (least < 0 ||
            gpu.beatsLeast(valueA, leastValue) ||
            (!gpu.beatsLeast(leastValue, valueA) && a < least))
        ) {
          least = a;
          leastValue = valueA;
        }
        if (
          b >= 0 &&
          (most < 0 ||
            gpu.beatsMost(valueB, mostValue) ||
            (!gpu.beatsMost(mostValue, valueB) && b < most))
        ) {
          most = b;
          mostValue = valueB;
        }
      }
      if (gpu.lane === 0) {
        found[0]![gpu.warpIdx] = least;
        found[1]![gpu.warpIdx] = most;
      }
      gpu.block.sync();
      if (gpu.threadIdx.x === 0) {
        gpu.unroll(1);
        for (let warp = 1; warp < 8; warp++) {
          const a = found[0]![warp]!;
          const b = found[1]![warp]!;
          if (a >= 0) {
            const valueA =
              x[image + (gpu.FLAT ? a * gpu.C : (a / width) * xRow + (a % width) * gpu.C) + c]!;
            if (
              gpu.beatsLeast(valueA, leastValue) ||
              (!gpu.beatsLeast(leastValue, valueA) && a < least)
            ) {
              least = a;
              leastValue = valueA;
            }
          }
          if (b >= 0) {
            const valueB =
              x[image + (gpu.FLAT ? b * gpu.C : (b / width) * xRow + (b % width) * gpu.C) + c]!;
            if (
              gpu.beatsMost(valueB, mostValue) ||
              (!gpu.beatsMost(mostValue, valueB) && b < most)
            ) {
              most = b;
              mostValue = valueB;
            }
          }
        }
        leastAt[(gpu.blockIdx.y * gpu.gridDim.x + gpu.blockIdx.x) * gpu.C + c] = least;
        mostAt[(gpu.blockIdx.y * gpu.gridDim.x + gpu.blockIdx.x) * gpu.C + c] = most;
      }
      gpu.block.sync();
    }
  },
);

/** Gives the values at positions, and these as [row, column], for [image, channel]. */
export const valuesAt = new KernelFamily(
  'image_looked',
  (
    {
      least,
      most,
      leastAt,
      mostAt,
      x,
      from,
      fromMost,
      width,
      xRow,
      xImage,
      channels,
    }: Pick<
      ExtremeArgs,
      | 'least'
      | 'most'
      | 'leastAt'
      | 'mostAt'
      | 'x'
      | 'from'
      | 'fromMost'
      | 'width'
      | 'xRow'
      | 'xImage'
    > & { readonly channels: number },
    gpu: Gpu,
  ) => {
    const i = gpu.globalId.x;
    if (i >= least.length) return;
    const image = (i / channels) * xImage + (i % channels);
    const a = from[i]!;
    const b = fromMost[i]!;
    least[i] = x[image + (a / width) * xRow + (a % width) * channels]!;
    most[i] = x[image + (b / width) * xRow + (b % width) * channels]!;
    leastAt[2 * i] = a / width;
    leastAt[2 * i + 1] = a % width;
    mostAt[2 * i] = b / width;
    mostAt[2 * i + 1] = b % width;
  },
);

interface HistogramGpu extends StatisticsGpu {
  /** Bins of a channel. */
  readonly BINS: number;
  /** Whether an element is the number of its bin. */
  readonly BYTES: boolean;
  counts(): KernelArray<number>;
}

/**
 * Counts of [image, channel, bin]. A block counts in shared memory: counts are whole numbers, whose
 * sum is the same in any order.
 */
export const histograms = new KernelFamily(
  'image_histogram',
  (
    {
      out,
      x,
      width,
      pixels,
      xRow,
      xImage,
      part,
      low,
      high,
      scale,
    }: PartArgs & {
      readonly out: Output;
      readonly low: number;
      readonly high: number;
      readonly scale: number;
    },
    gpu: HistogramGpu,
  ) => {
    const counts = gpu.counts();
    gpu.unroll(1);
    for (let i = gpu.threadIdx.x; i < gpu.BINS * gpu.C; i += 256) counts[i] = 0;
    gpu.block.sync();
    const first = gpu.blockIdx.x * part;
    const last = Math.min(first + part, pixels);
    const image = gpu.blockIdx.y * xImage;
    gpu.unroll(1);
    for (let i = first + gpu.threadIdx.x; i < last; i += 256) {
      const at = image + (gpu.FLAT ? i * gpu.C : (i / width) * xRow + (i % width) * gpu.C);
      gpu.unroll(gpu.C);
      for (let c = 0; c < gpu.C; c++) {
        if (gpu.BYTES) {
          gpu.atomicAdd(counts, c * gpu.BINS + gpu.i32(x[at + c]!), 1);
        } else {
          const value = gpu.f32(x[at + c]!);
          if (value >= low && value <= high)
            gpu.atomicAdd(
              counts,
              c * gpu.BINS + Math.min(gpu.i32((value - low) * scale), gpu.BINS - 1),
              1,
            );
        }
      }
    }
    gpu.block.sync();
    gpu.unroll(1);
    for (let i = gpu.threadIdx.x; i < gpu.BINS * gpu.C; i += 256)
      if (counts[i]! > 0) gpu.atomicAdd(out, gpu.blockIdx.y * gpu.BINS * gpu.C + i, counts[i]!);
  },
);
