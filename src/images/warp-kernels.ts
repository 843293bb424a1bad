/**
 * Kernels of warps: pixels are sampled at places of maps, or of a matrix. A thread has one pixel of
 * the result. Columns and rows of the source are counted from the middle of the first pixel.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from '../library/kernel-family.js';
import type { ImageArgs } from './image-args.js';

/** Arguments of all warps; blockIdx.z is the image. */
export interface WarpArgs extends ImageArgs {
  /** The colour outside the source. */
  readonly f0: number;
  readonly f1: number;
  readonly f2: number;
  readonly f3: number;
}

export interface RemapArgs extends WarpArgs {
  readonly mapX: Input;
  readonly mapY: Input;
  readonly rowX: number;
  readonly rowY: number;
  readonly imageX: number;
  readonly imageY: number;
}

/** The matrix from the result to the source, by rows. */
export interface ProjectArgs extends WarpArgs {
  readonly m0: number;
  readonly m1: number;
  readonly m2: number;
  readonly m3: number;
  readonly m4: number;
  readonly m5: number;
  readonly m6: number;
  readonly m7: number;
  readonly m8: number;
}

export interface WarpGpu extends Gpu {
  readonly C: number;
  readonly TAPS: number;
  /** Taps before the middle one. */
  readonly BEFORE: number;
  readonly NORMALISED: boolean;
  readonly CONSTANT: boolean;
  readonly AFFINE: boolean;
  at(index: number, extent: number): number;
  /** Maps a place (u or v) that may be far away, infinite or NaN to one near the image. */
  place(place: number, extent: number): number;
  weight(distance: number): number;
  store(value: number): number;
  weights(): KernelArray<number>;
  places(): KernelArray<number>;
  /** Samples the image that begins at `from` at (u, v), and writes the pixel at `to`. */
  sample(
    out: Output,
    to: number,
    x: Input,
    from: number,
    u: number,
    v: number,
    columns: number,
    rows: number,
    inRow: number,
    f0: number,
    f1: number,
    f2: number,
    f3: number,
  ): void;
}

export const sample = (
  out: Output,
  to: number,
  x: Input,
  from: number,
  u: number,
  v: number,
  columns: number,
  rows: number,
  inRow: number,
  f0: number,
  f1: number,
  f2: number,
  f3: number,
  gpu: WarpGpu,
): void => {
  const px = gpu.place(u, columns);
  const py = gpu.place(v, rows);
  const floorX = Math.floor(px);
  const floorY = Math.floor(py);
  // The sum of 0.5 and the f32 below it is rounded to 1; differences from the floor are exact.
  const wholeX = gpu.TAPS === 1 && px - floorX >= 0.5 ? floorX + 1 : floorX;
  const wholeY = gpu.TAPS === 1 && py - floorY >= 0.5 ? floorY + 1 : floorY;
  const firstX = gpu.i32(wholeX) - gpu.BEFORE;
  const firstY = gpu.i32(wholeY) - gpu.BEFORE;
  const wx = gpu.weights();
  const wy = gpu.weights();
  const places = gpu.places();
  let allX = gpu.f32(0);
  let allY = gpu.f32(0);
  gpu.unroll(gpu.TAPS);
  for (let k = 0; k < gpu.TAPS; k++) {
    wx[k] = gpu.weight(px - wholeX - gpu.f32(k - gpu.BEFORE));
    wy[k] = gpu.weight(py - wholeY - gpu.f32(k - gpu.BEFORE));
    places[k] = gpu.at(firstX + k, columns) * gpu.C;
    allX += wx[k]!;
    allY += wy[k]!;
  }
  const scale = gpu.NORMALISED ? 1 / (allX * allY) : gpu.f32(1);
  gpu.unroll(gpu.C);
  for (let c = 0; c < gpu.C; c++) {
    const color = c === 0 ? f0 : c === 1 ? f1 : c === 2 ? f2 : f3;
    let sum = gpu.f32(0);
    gpu.unroll(gpu.TAPS);
    for (let j = 0; j < gpu.TAPS; j++) {
      const row = firstY + j;
      const line = from + gpu.at(row, rows) * inRow + c;
      let part = gpu.f32(0);
      gpu.unroll(gpu.TAPS);
      for (let i = 0; i < gpu.TAPS; i++) {
        const value = gpu.f32(x[line + places[i]!]!);
        const outside =
          gpu.CONSTANT && (row < 0 || row >= rows || firstX + i < 0 || firstX + i >= columns);
        const product = wx[i]! * (outside ? color : value);
        part += product;
      }
      const product = wy[j]! * part;
      sum += product;
    }
    out[to + c] = gpu.store(gpu.NORMALISED ? sum * scale : sum);
  }
};

export const remaps = new KernelFamily(
  'remap',
  (
    {
      out,
      x,
      mapX,
      mapY,
      width,
      outRow,
      outImage,
      columns,
      rows,
      inRow,
      inImage,
      rowX,
      rowY,
      imageX,
      imageY,
      f0,
      f1,
      f2,
      f3,
    }: RemapArgs,
    gpu: WarpGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const row = gpu.blockIdx.y;
    const n = gpu.blockIdx.z;
    const u = mapX[n * imageX + row * rowX + column]!;
    const v = mapY[n * imageY + row * rowY + column]!;
    gpu.sample(
      out,
      n * outImage + row * outRow + column * gpu.C,
      x,
      n * inImage,
      u,
      v,
      columns,
      rows,
      inRow,
      f0,
      f1,
      f2,
      f3,
    );
  },
);

export const projections = new KernelFamily(
  'warp',
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
      m0,
      m1,
      m2,
      m3,
      m4,
      m5,
      m6,
      m7,
      m8,
      f0,
      f1,
      f2,
      f3,
    }: ProjectArgs,
    gpu: WarpGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const row = gpu.blockIdx.y;
    const n = gpu.blockIdx.z;
    const px = gpu.f32(column);
    const py = gpu.f32(row);
    const a = m0 * px + (m1 * py + m2);
    const b = m3 * px + (m4 * py + m5);
    const w = m6 * px + (m7 * py + m8);
    const u = gpu.AFFINE ? a : a / w;
    const v = gpu.AFFINE ? b : b / w;
    gpu.sample(
      out,
      n * outImage + row * outRow + column * gpu.C,
      x,
      n * inImage,
      u,
      v,
      columns,
      rows,
      inRow,
      f0,
      f1,
      f2,
      f3,
    );
  },
);
