/**
 * Kernels that make images of another size. A thread has one column of the result and a few rows: where its column comes from, and
 * the column's weights, are worked out once. Positions are exact: with sizes reduced by their common divisor, the source column
 * (column + ½) · from / to - ½ is a whole number and a fraction of two integers, which is rounded once, to f32. What depends on rows is
 * the same for all threads of a block.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from '../library/kernel-family.js';

/** One image of each, of blockIdx.z. */
export interface ResizeArgs {
  readonly out: Output;
  readonly x: Input;
  /** Columns of the result. */
  readonly width: number;
  readonly outRow: number;
  readonly outImage: number;
  /** Sizes of the source. */
  readonly columns: number;
  readonly rows: number;
  readonly inRow: number;
  readonly inImage: number;
  /** Sizes of source and result without their common divisor. */
  readonly fromX: number;
  readonly toX: number;
  readonly fromY: number;
  readonly toY: number;
  /** Turns of the loops of `area`: most pixels that one of the result covers, along each axis. */
  readonly mostX: number;
  readonly mostY: number;
}

export interface ResizeGpu extends Gpu {
  readonly C: number;
  /** Rows of one thread. */
  readonly ROWS: number;
  readonly TAPS: number;
  readonly NORMALISED: boolean;
  /** Of a tap at this distance. */
  weight(distance: number): number;
  store(value: number): number;
  weightsOfColumns(): KernelArray<number>;
  weightsOfRows(): KernelArray<number>;
  sums(): KernelArray<number>;
}

// Products are rounded by themselves: the CPU device has no fused multiply-add, and takes twice as long for one that it makes.

export const nearest = new KernelFamily('resize_nearest', ({ out, x, width, outRow, outImage, inRow, inImage, fromX, toX, fromY, toY }: ResizeArgs, gpu: ResizeGpu) => {
  const column = gpu.globalId.x;
  if (column >= width) return;
  const top = gpu.blockIdx.y * gpu.ROWS;
  const from = gpu.blockIdx.z * inImage + (2 * column + 1) * fromX / (2 * toX) * gpu.C;
  const to = gpu.blockIdx.z * outImage + column * gpu.C;
  gpu.unroll(gpu.ROWS);
  for (let r = 0; r < gpu.ROWS; r++) {
    const row = (2 * (top + r) + 1) * fromY / (2 * toY);
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++) out[to + (top + r) * outRow + c] = x[from + row * inRow + c]!;
  }
});

export const linear = new KernelFamily('resize_linear', ({ out, x, width, outRow, outImage, columns, rows, inRow, inImage, fromX, toX, fromY, toY }: ResizeArgs, gpu: ResizeGpu) => {
  const column = gpu.globalId.x;
  if (column >= width) return;
  const top = gpu.blockIdx.y * gpu.ROWS;
  const overX = (2 * column + 1) * fromX - toX;
  const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
  const fx = gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
  const left = gpu.blockIdx.z * inImage + Math.max(wholeX, 0) * gpu.C;
  const right = gpu.blockIdx.z * inImage + Math.min(wholeX + 1, columns - 1) * gpu.C;
  const to = gpu.blockIdx.z * outImage + column * gpu.C;
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
      out[to + (top + r) * outRow + c] = gpu.store(upper + Math.fround(fy * (lower - upper)));
    }
  }
});

/** Cubic and Lanczos: sums over rows of sums over columns. */
export const taps = new KernelFamily('resize_taps', ({ out, x, width, outRow, outImage, columns, rows, inRow, inImage, fromX, toX, fromY, toY }: ResizeArgs, gpu: ResizeGpu) => {
  const column = gpu.globalId.x;
  if (column >= width) return;
  const row = gpu.blockIdx.y;
  const overX = (2 * column + 1) * fromX - toX;
  const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
  const fx = gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
  const overY = (2 * row + 1) * fromY - toY;
  const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
  const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
  const wx = gpu.weightsOfColumns();
  const wy = gpu.weightsOfRows();
  let allX = gpu.f32(0);
  let allY = gpu.f32(0);
  gpu.unroll(gpu.TAPS);
  for (let k = 0; k < gpu.TAPS; k++) {
    wx[k] = gpu.weight(fx - gpu.f32(k - gpu.TAPS / 2 + 1));
    wy[k] = gpu.weight(fy - gpu.f32(k - gpu.TAPS / 2 + 1));
    allX += wx[k]!;
    allY += wy[k]!;
  }
  const scale = gpu.NORMALISED ? 1 / (allX * allY) : gpu.f32(1);
  const image = gpu.blockIdx.z * inImage;
  const to = gpu.blockIdx.z * outImage + row * outRow + column * gpu.C;
  gpu.unroll(gpu.C);
  for (let c = 0; c < gpu.C; c++) {
    let sum = gpu.f32(0);
    gpu.unroll(gpu.TAPS);
    for (let j = 0; j < gpu.TAPS; j++) {
      const line = image + Math.min(Math.max(wholeY + j - gpu.TAPS / 2 + 1, 0), rows - 1) * inRow + c;
      let part = gpu.f32(0);
      gpu.unroll(gpu.TAPS);
      for (let i = 0; i < gpu.TAPS; i++) {
        const product = wx[i]! * gpu.f32(x[line + Math.min(Math.max(wholeX + i - gpu.TAPS / 2 + 1, 0), columns - 1) * gpu.C]!);
        part += product;
      }
      const product = wy[j]! * part;
      sum += product;
    }
    out[to + c] = gpu.store(gpu.NORMALISED ? sum * scale : sum);
  }
});

/**
 * A pixel of the result covers [column · from, (column + 1) · from) of a source whose pixels are `to` long. Every thread goes round as
 * often as the one that covers most; pixels that it does not cover weigh nothing.
 */
export const area = new KernelFamily('resize_area', ({ out, x, width, outRow, outImage, columns, rows, inRow, inImage, fromX, toX, fromY, toY, mostX, mostY }: ResizeArgs, gpu: ResizeGpu) => {
  const column = gpu.globalId.x;
  if (column >= width) return;
  const row = gpu.blockIdx.y;
  const beginX = column * fromX;
  const beginY = row * fromY;
  const left = beginX / toX;
  const top = beginY / toY;
  const image = gpu.blockIdx.z * inImage;
  const sums = gpu.sums();
  for (let j = 0; j < mostY; j++) {
    const y = top + j;
    const high = gpu.f32(Math.max(Math.min((y + 1) * toY, beginY + fromY) - Math.max(y * toY, beginY), 0));
    const line = image + Math.min(y, rows - 1) * inRow;
    for (let i = 0; i < mostX; i++) {
      const at = left + i;
      const long = gpu.f32(Math.max(Math.min((at + 1) * toX, beginX + fromX) - Math.max(at * toX, beginX), 0));
      const weight = high * long;
      gpu.unroll(gpu.C);
      for (let c = 0; c < gpu.C; c++) {
        const product = weight * gpu.f32(x[line + Math.min(at, columns - 1) * gpu.C + c]!);
        sums[c] = sums[c]! + product;
      }
    }
  }
  const whole = gpu.f32(fromX) * gpu.f32(fromY);
  const to = gpu.blockIdx.z * outImage + row * outRow + column * gpu.C;
  gpu.unroll(gpu.C);
  for (let c = 0; c < gpu.C; c++) out[to + c] = gpu.store(sums[c]! / whole);
});
