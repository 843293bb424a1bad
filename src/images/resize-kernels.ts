/**
 * Kernels of resizing. A thread has one column of the result and a few rows: the source column and
 * its weights are computed once. Places are exact: with sizes divided by their common divisor, the
 * source column (column + ½) · from / to - ½ is a whole number and a fraction of two integers,
 * which is rounded once, to f32. Numbers that depend on rows are uniform in a block.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, Output } from '../library/kernel-family.js';
import type { ImageArgs } from './image-args.js';
import type { Proportions } from './proportions.js';
import type { Sources } from './several-sources.js';

/** The source's pitches, and the ratio of its size to the result's. */
export interface ResizeArgs extends ImageArgs, Proportions {}

/** The arguments for one of several sources. */
type Source = Pick<ResizeArgs, 'columns' | 'rows' | 'inRow' | 'fromX' | 'toX' | 'fromY' | 'toY'>;

/** Functions and constants of {@link resizes} and {@link severals}. */
export interface ResizeGpu extends Gpu {
  /** Rows of one thread. */
  readonly ROWS: number;
  /**
   * Writes the pixels of one column, from row `top` on, of images that begin at `to` and `from`.
   */
  pixels(
    out: Output,
    to: number,
    x: Input,
    from: number,
    column: number,
    top: number,
    outRow: number,
    columns: number,
    rows: number,
    inRow: number,
    fromX: number,
    toX: number,
    fromY: number,
    toY: number,
  ): void;
}

/** Functions and constants of the filters. */
export interface FilterGpu extends Gpu {
  readonly C: number;
  readonly ROWS: number;
  store(value: number): number;
}

/** The kernel for an image or a batch: blockIdx.z is the image. */
export const resizes = new KernelFamily(
  'resize',
  (
    {
      out,
      x,
      width,
      outRow,
      outImage,
      columns,
      rows,
      inRow,
      inImage,
      fromX,
      toX,
      fromY,
      toY,
    }: ResizeArgs,
    gpu: ResizeGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const z = gpu.blockIdx.z;
    gpu.pixels(
      out,
      z * outImage,
      x,
      z * inImage,
      column,
      gpu.blockIdx.y * gpu.ROWS,
      outRow,
      columns,
      rows,
      inRow,
      fromX,
      toX,
      fromY,
      toY,
    );
  },
);

/** The kernel for images of several sizes into one batch: blocks of one z have one source. */
export const severals = new KernelFamily(
  'resize_batch',
  (
    {
      out,
      width,
      outRow,
      outImage,
      x0,
      x1,
      x2,
      x3,
      x4,
      x5,
      x6,
      x7,
      s0,
      s1,
      s2,
      s3,
      s4,
      s5,
      s6,
      s7,
    }: Sources<Source> & Pick<ResizeArgs, 'out' | 'width' | 'outRow' | 'outImage'>,
    gpu: ResizeGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const z = gpu.blockIdx.z;
    const to = z * outImage;
    const top = gpu.blockIdx.y * gpu.ROWS;
    if (z === 0)
      gpu.pixels(
        out,
        to,
        x0,
        0,
        column,
        top,
        outRow,
        s0.columns,
        s0.rows,
        s0.inRow,
        s0.fromX,
        s0.toX,
        s0.fromY,
        s0.toY,
      );
    else if (z === 1)
      gpu.pixels(
        out,
        to,
        x1,
        0,
        column,
        top,
        outRow,
        s1.columns,
        s1.rows,
        s1.inRow,
        s1.fromX,
        s1.toX,
        s1.fromY,
        s1.toY,
      );
    else if (z === 2)
      gpu.pixels(
        out,
        to,
        x2,
        0,
        column,
        top,
        outRow,
        s2.columns,
        s2.rows,
        s2.inRow,
        s2.fromX,
        s2.toX,
        s2.fromY,
        s2.toY,
      );
    else if (z === 3)
      gpu.pixels(
        out,
        to,
        x3,
        0,
        column,
        top,
        outRow,
        s3.columns,
        s3.rows,
        s3.inRow,
        s3.fromX,
        s3.toX,
        s3.fromY,
        s3.toY,
      );
    else if (z === 4)
      gpu.pixels(
        out,
        to,
        x4,
        0,
        column,
        top,
        outRow,
        s4.columns,
        s4.rows,
        s4.inRow,
        s4.fromX,
        s4.toX,
        s4.fromY,
        s4.toY,
      );
    else if (z === 5)
      gpu.pixels(
        out,
        to,
        x5,
        0,
        column,
        top,
        outRow,
        s5.columns,
        s5.rows,
        s5.inRow,
        s5.fromX,
        s5.toX,
        s5.fromY,
        s5.toY,
      );
    else if (z === 6)
      gpu.pixels(
        out,
        to,
        x6,
        0,
        column,
        top,
        outRow,
        s6.columns,
        s6.rows,
        s6.inRow,
        s6.fromX,
        s6.toX,
        s6.fromY,
        s6.toY,
      );
    else
      gpu.pixels(
        out,
        to,
        x7,
        0,
        column,
        top,
        outRow,
        s7.columns,
        s7.rows,
        s7.inRow,
        s7.fromX,
        s7.toX,
        s7.fromY,
        s7.toY,
      );
  },
);

// The filters. Products are rounded before they are added: the CPU device has no fused multiply-add
// instruction, and takes twice as long to compute one.

type Pixels<G> = (...args: [...Parameters<ResizeGpu['pixels']>, gpu: G]) => void;

export const nearest: Pixels<FilterGpu> = (
  out,
  to,
  x,
  from,
  column,
  top,
  outRow,
  columns,
  rows,
  inRow,
  fromX,
  toX,
  fromY,
  toY,
  gpu,
) => {
  const first = from + (((2 * column + 1) * fromX) / (2 * toX)) * gpu.C;
  const begin = to + column * gpu.C;
  gpu.unroll(gpu.ROWS);
  for (let r = 0; r < gpu.ROWS; r++) {
    const row = ((2 * (top + r) + 1) * fromY) / (2 * toY);
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++)
      out[begin + (top + r) * outRow + c] = x[first + row * inRow + c]!;
  }
};

export const linear: Pixels<FilterGpu> = (
  out,
  to,
  x,
  from,
  column,
  top,
  outRow,
  columns,
  rows,
  inRow,
  fromX,
  toX,
  fromY,
  toY,
  gpu,
) => {
  const overX = (2 * column + 1) * fromX - toX;
  const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
  const fx = gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
  const left = from + Math.max(wholeX, 0) * gpu.C;
  const right = from + Math.min(wholeX + 1, columns - 1) * gpu.C;
  const begin = to + column * gpu.C;
  gpu.unroll(gpu.ROWS);
  for (let r = 0; r < gpu.ROWS; r++) {
    const overY = (2 * (top + r) + 1) * fromY - toY;
    const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
    const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
    const above = Math.max(wholeY, 0) * inRow;
    const below = Math.min(wholeY + 1, rows - 1) * inRow;
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++) {
      const a = gpu.f32(x[above + left + c]!);
      const b = gpu.f32(x[above + right + c]!);
      const d = gpu.f32(x[below + left + c]!);
      const e = gpu.f32(x[below + right + c]!);
      const upper = a + Math.fround(fx * (b - a));
      const lower = d + Math.fround(fx * (e - d));
      out[begin + (top + r) * outRow + c] = gpu.store(upper + Math.fround(fy * (lower - upper)));
    }
  }
};
