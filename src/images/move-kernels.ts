/**
 * Kernels that move pixels unchanged: into a border, mirrored, turned by quarters; and a kernel
 * that fills with a colour.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, Output } from '../library/kernel-family.js';
import type { ImageArgs } from './image-args.js';

export interface MoveGpu extends Gpu {
  readonly C: number;
  readonly CONSTANT: boolean;
  at(index: number, extent: number): number;
  /** Converts a number of a colour to the type of elements. */
  color(value: number): number;
}

export interface BorderArgs extends ImageArgs {
  readonly left: number;
  readonly top: number;
  readonly f0: number;
  readonly f1: number;
  readonly f2: number;
  readonly f3: number;
}

export const borders = new KernelFamily(
  'border',
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
      left,
      top,
      f0,
      f1,
      f2,
      f3,
    }: BorderArgs,
    gpu: MoveGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const fromX = column - left;
    const fromY = gpu.blockIdx.y - top;
    const from =
      gpu.blockIdx.z * inImage + gpu.at(fromY, rows) * inRow + gpu.at(fromX, columns) * gpu.C;
    const to = gpu.blockIdx.z * outImage + gpu.blockIdx.y * outRow + column * gpu.C;
    const outside = gpu.CONSTANT && (fromX < 0 || fromX >= columns || fromY < 0 || fromY >= rows);
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++) {
      const value = x[from + c]!;
      out[to + c] = outside ? gpu.color(c === 0 ? f0 : c === 1 ? f1 : c === 2 ? f2 : f3) : value;
    }
  },
);

/** Fills a region with a colour. */
export const paints = new KernelFamily(
  'paint',
  ({ out, width, outRow, outImage, f0, f1, f2, f3 }: Omit<BorderArgs, 'x'>, gpu: MoveGpu) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const to = gpu.blockIdx.z * outImage + gpu.blockIdx.y * outRow + column * gpu.C;
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++)
      out[to + c] = gpu.color(c === 0 ? f0 : c === 1 ? f1 : c === 2 ? f2 : f3);
  },
);

/** The source of a pixel is at first + row · stepRow + column · stepColumn of its image. */
interface TurnArgs {
  readonly out: Output;
  readonly x: Input;
  readonly width: number;
  readonly height: number;
  readonly outRow: number;
  readonly outImage: number;
  readonly inImage: number;
  readonly first: number;
  readonly stepRow: number;
  readonly stepColumn: number;
}

export const turns = new KernelFamily(
  'turn',
  (
    { out, x, width, height, outRow, outImage, inImage, first, stepRow, stepColumn }: TurnArgs,
    gpu: MoveGpu,
  ) => {
    const { x: column, y: row } = gpu.globalId;
    if (column >= width || row >= height) return;
    const from = gpu.blockIdx.z * inImage + first + row * stepRow + column * stepColumn;
    const to = gpu.blockIdx.z * outImage + row * outRow + column * gpu.C;
    gpu.unroll(gpu.C);
    for (let c = 0; c < gpu.C; c++) out[to + c] = x[from + c]!;
  },
);
