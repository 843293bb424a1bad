/**
 * Kernels of resizing where a pixel is a weighted sum of many: along rows first, into lines of f32,
 * then along columns. The pixels that a column or a row of the result reads (its window), and their
 * weights, are in tables, which a kernel with one thread for each entry writes first: a Lanczos
 * weight takes two sines, which would otherwise be computed for every pixel.
 *
 * A window is always inside the image. Weights of pixels beyond an edge are added to that of the
 * outermost pixel, so that the loops have no comparisons: the threads of a group on the CPU device
 * do not diverge, and a GPU's unrolled loads have constant offsets.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from '../library/kernel-family.js';

/**
 * Tables of both axes: entries for the result's columns, then for its rows. `starts` has the first
 * pixel of each window. `weights` has [tapsX][width] for columns and [height][tapsY] for rows,
 * which is the order in which threads read them.
 */
interface TableArgs {
  readonly starts: Output;
  readonly weights: Output;
  readonly width: number;
  readonly height: number;
  /** Sizes of the source. */
  readonly columns: number;
  readonly rows: number;
  /** Sizes of source and result, divided by their common divisor. */
  readonly fromX: number;
  readonly toX: number;
  readonly fromY: number;
  readonly toY: number;
  /** Pixels of a window. */
  readonly tapsX: number;
  readonly tapsY: number;
}

interface TableGpu extends Gpu {
  /** Writes one entry: its window's start at `entry`, weights from `base` on, `step` apart. */
  window(
    starts: Output,
    weights: Output,
    entry: number,
    base: number,
    step: number,
    index: number,
    extent: number,
    from: number,
    to: number,
    taps: number,
  ): void;
}

export const tables = new KernelFamily(
  'resize_weights',
  (
    {
      starts,
      weights,
      width,
      height,
      columns,
      rows,
      fromX,
      toX,
      fromY,
      toY,
      tapsX,
      tapsY,
    }: TableArgs,
    gpu: TableGpu,
  ) => {
    const entry = gpu.globalId.x;
    if (entry >= width + height) return;
    const down = entry >= width;
    const index = down ? entry - width : entry;
    const base = down ? tapsX * width + index * tapsY : index;
    gpu.window(
      starts,
      weights,
      entry,
      base,
      down ? 1 : width,
      index,
      down ? rows : columns,
      down ? fromY : fromX,
      down ? toY : toX,
      down ? tapsY : tapsX,
    );
  },
);

type Window<G> = (...args: [...Parameters<TableGpu['window']>, gpu: G]) => void;

/** Functions of {@link filtered}. */
interface FilterGpu extends Gpu {
  readonly TAPS: number;
  readonly NORMALISED: boolean;
  /** The weight of a tap at this distance. */
  weight(distance: number): number;
  distances(): KernelArray<number>;
}

/**
 * The window of cubic and Lanczos. Places are exact: (index + ½) · from / to - ½ is a whole number
 * and a fraction of two integers, which is rounded once, to f32.
 */
export const filtered: Window<FilterGpu> = (
  starts,
  weights,
  entry,
  base,
  step,
  index,
  extent,
  from,
  to,
  taps,
  gpu,
) => {
  const over = (2 * index + 1) * from - to;
  const whole = (over + 2 * to) / (2 * to) - 1;
  const fraction = gpu.f32(over - whole * 2 * to) / gpu.f32(2 * to);
  const first = whole - gpu.TAPS / 2 + 1;
  const start = Math.max(Math.min(first, extent - taps), 0);
  const each = gpu.distances();
  let all = gpu.f32(0);
  gpu.unroll(gpu.TAPS);
  for (let k = 0; k < gpu.TAPS; k++) {
    each[k] = gpu.weight(fraction - gpu.f32(k - gpu.TAPS / 2 + 1));
    all += each[k]!;
  }
  starts[entry] = start;
  for (let k = 0; k < taps; k++) {
    let weight = gpu.f32(0);
    gpu.unroll(gpu.TAPS);
    for (let j = 0; j < gpu.TAPS; j++)
      weight += Math.max(Math.min(first + j, extent - 1), 0) === start + k ? each[j]! : 0;
    weights[base + k * step] = gpu.NORMALISED ? weight / all : weight;
  }
};

/**
 * The window of `area`: an entry covers [index · from, (index + 1) · from) of a source whose pixels
 * are `to` long. Weights are lengths: whole numbers, and the result is divided by their sum at the
 * end. Pixels that the entry does not cover have the weight 0.
 */
export const covered: Window<Gpu> = (
  starts,
  weights,
  entry,
  base,
  step,
  index,
  extent,
  from,
  to,
  taps,
  gpu,
) => {
  const begin = index * from;
  const start = Math.max(Math.min(begin / to, extent - taps), 0);
  starts[entry] = start;
  for (let k = 0; k < taps; k++) {
    const at = start + k;
    weights[base + k * step] = gpu.f32(
      Math.max(Math.min((at + 1) * to, begin + from) - Math.max(at * to, begin), 0),
    );
  }
};

/** A strip of the result: rows [firstRow, firstRow + rows), and the lines that they read. */
interface StripArgs {
  readonly starts: Input;
  readonly weights: Input;
  /** Columns of the result, and elements of a row of it. */
  readonly width: number;
  readonly elements: number;
  /** Lines of an image. */
  readonly count: number;
  /** The source's row of the first line. */
  readonly firstLine: number;
  readonly firstRow: number;
  readonly tapsX: number;
  readonly tapsY: number;
}

export interface AcrossArgs extends StripArgs {
  readonly lines: Output;
  readonly x: Input;
  readonly inRow: number;
  readonly inImage: number;
}

interface StripGpu extends Gpu {
  readonly C: number;
  /** Lines or rows of one thread. */
  readonly ROWS: number;
  /** Pixels of a window, in kernels that are specialised for them; 0: the arguments have them. */
  readonly TAPS: number;
  /**
   * Whether there are lines for the windows of rows only, one window after the other; otherwise
   * lines are consecutive rows of the source.
   */
  readonly PICKED: boolean;
}

/**
 * The pass along rows: a thread has one element of a row and a few lines. Products are rounded
 * before they are added, as everywhere in resizing.
 */
export const across = new KernelFamily(
  'resize_across',
  (
    {
      lines,
      x,
      starts,
      weights,
      width,
      elements,
      count,
      firstLine,
      firstRow,
      tapsX,
      tapsY,
      inRow,
      inImage,
    }: AcrossArgs,
    gpu: StripGpu & { weightsOfColumn(): KernelArray<number> },
  ) => {
    const element = gpu.globalId.x;
    if (element >= elements) return;
    const z = gpu.blockIdx.z;
    const column = element / gpu.C;
    const from = z * inImage + (starts[column]! - column) * gpu.C + element;
    const kept = gpu.weightsOfColumn();
    for (let k = 0; k < gpu.TAPS; k++) kept[k] = weights[k * width + column]!;
    const top = gpu.blockIdx.y * gpu.ROWS;
    const end = Math.min(top + gpu.ROWS, count);
    for (let line = top; line < end; line++) {
      const row = gpu.PICKED
        ? starts[width + firstRow + line / tapsY]! + (line % tapsY)
        : firstLine + line;
      const at = from + row * inRow;
      let sum = (gpu.TAPS > 0 ? kept[0]! : weights[column]!) * gpu.f32(x[at]!);
      if (gpu.TAPS > 0) {
        gpu.unroll(gpu.TAPS);
        for (let k = 1; k < gpu.TAPS; k++) {
          const product = kept[k]! * gpu.f32(x[at + k * gpu.C]!);
          sum += product;
        }
      } else {
        for (let k = 1; k < tapsX; k++) {
          const product = weights[k * width + column]! * gpu.f32(x[at + k * gpu.C]!);
          sum += product;
        }
      }
      lines[(z * count + line) * elements + element] = sum;
    }
  },
);

export interface DownArgs extends StripArgs {
  readonly out: Output;
  readonly lines: Input;
  readonly outRow: number;
  readonly outImage: number;
  readonly rows: number;
  /** The divisor of sums of `area`. */
  readonly whole: number;
}

/**
 * The pass along columns: a thread has one element of a row and a few rows. Weights are uniform in
 * a block.
 */
export const down = new KernelFamily(
  'resize_down',
  (
    {
      out,
      lines,
      starts,
      weights,
      width,
      elements,
      count,
      firstLine,
      firstRow,
      rows,
      tapsX,
      tapsY,
      outRow,
      outImage,
      whole,
    }: DownArgs,
    gpu: StripGpu & { readonly DIVIDED: boolean; store(value: number): number },
  ) => {
    const element = gpu.globalId.x;
    if (element >= elements) return;
    const z = gpu.blockIdx.z;
    const taps = gpu.TAPS > 0 ? gpu.TAPS : tapsY;
    const top = gpu.blockIdx.y * gpu.ROWS;
    const end = Math.min(top + gpu.ROWS, rows);
    for (let r = top; r < end; r++) {
      const row = firstRow + r;
      const line = gpu.PICKED ? r * taps : starts[width + row]! - firstLine;
      const at = (z * count + line) * elements + element;
      const base = tapsX * width + row * taps;
      let sum = weights[base]! * lines[at]!;
      if (gpu.TAPS > 0) gpu.unroll(gpu.TAPS);
      for (let k = 1; k < taps; k++) {
        const product = weights[base + k]! * lines[at + k * elements]!;
        sum += product;
      }
      out[z * outImage + row * outRow + element] = gpu.store(gpu.DIVIDED ? sum / whole : sum);
    }
  },
);
