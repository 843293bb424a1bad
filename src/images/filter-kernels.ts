/**
 * Kernels of filters. A row of an image is a run of elements, in which the same channel of the next
 * pixel is C elements further; a thread has one column of elements. In the separable kernel a block
 * processes a strip from top to bottom: for each row, the threads copy a part of it to shared
 * memory and sum along it; each sum is added to all results that it is part of, which are in
 * registers. So a pixel is read once, except at the edges of strips, and sums are not rounded to
 * the dtype in between.
 */
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from '../library/kernel-family.js';

/** Threads of a block of the separable kernel, with one column each. */
export const COLUMNS = 128;
/** Columns and rows of a block of the other kernel. */
export const TILE = [32, 8] as const;

interface FilterArgs {
  readonly out: Output;
  readonly x: Input;
  readonly weights: Input;
  readonly width: number;
  readonly height: number;
  readonly xRow: number;
  readonly xImage: number;
  readonly oRow: number;
  readonly oImage: number;
  readonly pad0: number;
  readonly pad1: number;
  readonly pad2: number;
  readonly pad3: number;
}

interface FilterGpu extends Gpu {
  readonly C: number;
  /** Whether pixels beyond the edges are a colour. */
  readonly CONSTANT: boolean;
  /** The pixel that is read for one that may be beyond an edge. */
  index(index: number, extent: number): number;
  stored(value: number): number;
}

interface SeparableGpu extends FilterGpu {
  readonly RADIUS: number;
  /** Elements that a block reads of a row. */
  readonly SPAN: number;
  weightsOfTaps(): KernelArray<number>;
  sums(): KernelArray<number>;
  stretches(): KernelArray<KernelArray<number>>;
}

export const separable = new KernelFamily(
  'filter_separable',
  (
    {
      out,
      x,
      weights,
      width,
      height,
      xRow,
      xImage,
      oRow,
      oImage,
      pad0,
      pad1,
      pad2,
      pad3,
      strip,
    }: FilterArgs & { readonly strip: number },
    gpu: SeparableGpu,
  ) => {
    const t = gpu.threadIdx.x;
    const stretch = gpu.stretches();
    const w = gpu.weightsOfTaps();
    const sums = gpu.sums();
    gpu.unroll(gpu.RADIUS + 1);
    for (let k = 0; k <= gpu.RADIUS; k++) w[k] = weights[k]!;
    const elements = width * gpu.C;
    const mine = gpu.blockIdx.x * 128 + t;
    const first = gpu.blockIdx.x * 128 - gpu.RADIUS * gpu.C;
    const from = gpu.blockIdx.z * xImage;
    const to = gpu.blockIdx.z * oImage + mine;
    const top = gpu.blockIdx.y * strip;
    const bottom = Math.min(top + strip, height);
    let side = 0;
    gpu.unroll(1);
    for (let y = top - gpu.RADIUS; y < bottom + gpu.RADIUS; y++) {
      const line = from + gpu.index(y, height) * xRow;
      const beyond = gpu.CONSTANT && (y < 0 || y >= height);
      gpu.unroll(1);
      for (let s = t; s < gpu.SPAN; s += 128) {
        const e = first + s;
        if (e >= 0 && e < elements && !beyond) {
          stretch[side]![s] = gpu.f32(x[line + e]!);
        } else {
          // Division rounds towards 0, so that the dividend must not be negative.
          const pixel = (e + gpu.RADIUS * gpu.C) / gpu.C - gpu.RADIUS;
          const c = e - pixel * gpu.C;
          if (gpu.CONSTANT)
            stretch[side]![s] = c === 0 ? pad0 : c === 1 ? pad1 : c === 2 ? pad2 : pad3;
          else stretch[side]![s] = gpu.f32(x[line + gpu.index(pixel, width) * gpu.C + c]!);
        }
      }
      gpu.block.sync();
      let sum = w[0]! * stretch[side]![t + gpu.RADIUS * gpu.C]!;
      gpu.unroll(gpu.RADIUS + 1);
      for (let k = 1; k <= gpu.RADIUS; k++)
        sum =
          (stretch[side]![t + (gpu.RADIUS - k) * gpu.C]! +
            stretch[side]![t + (gpu.RADIUS + k) * gpu.C]!) *
            w[k]! +
          sum;
      const done = sum * w[gpu.RADIUS]! + sums[0]!;
      // sums[j] is the partial sum of the result of row y - radius + j; for the next row it moves
      // by one place.
      gpu.unroll(2 * gpu.RADIUS + 1);
      for (let j = 1; j <= 2 * gpu.RADIUS; j++)
        sums[j - 1] =
          sum * w[j < gpu.RADIUS ? gpu.RADIUS - j : j - gpu.RADIUS]! +
          (j === 2 * gpu.RADIUS ? 0 : sums[j]!);
      if (y - gpu.RADIUS >= top && mine < elements)
        out[to + (y - gpu.RADIUS) * oRow] = gpu.stored(done);
      side = 1 - side;
    }
  },
);

interface PlaneGpu extends FilterGpu {
  /** Columns and rows of the weights. */
  readonly KW: number;
  readonly KH: number;
  /** Columns left of the middle, and rows above it. */
  readonly REACH: number;
  readonly RISE: number;
  readonly SPAN: number;
  readonly DEPTH: number;
  tile(): KernelArray<KernelArray<number>>;
  weightsOfTaps(): KernelArray<number>;
}

export const plane = new KernelFamily(
  'filter_plane',
  (
    {
      out,
      x,
      weights,
      width,
      height,
      xRow,
      xImage,
      oRow,
      oImage,
      pad0,
      pad1,
      pad2,
      pad3,
    }: FilterArgs,
    gpu: PlaneGpu,
  ) => {
    const { x: tx, y: ty } = gpu.threadIdx;
    const tile = gpu.tile();
    const w = gpu.weightsOfTaps();
    for (let k = ty * 32 + tx; k < gpu.KW * gpu.KH; k += 256) w[k] = weights[k]!;
    const elements = width * gpu.C;
    const first = gpu.blockIdx.x * 32 - gpu.REACH * gpu.C;
    const top = gpu.blockIdx.y * 8;
    const from = gpu.blockIdx.z * xImage;
    gpu.unroll(1);
    for (let j = ty; j < gpu.DEPTH; j += 8) {
      const y = top + j - gpu.RISE;
      const line = from + gpu.index(y, height) * xRow;
      const beyond = gpu.CONSTANT && (y < 0 || y >= height);
      gpu.unroll(1);
      for (let s = tx; s < gpu.SPAN; s += 32) {
        const e = first + s;
        if (e >= 0 && e < elements && !beyond) {
          tile[j]![s] = gpu.f32(x[line + e]!);
        } else {
          const pixel = (e + gpu.REACH * gpu.C) / gpu.C - gpu.REACH;
          const c = e - pixel * gpu.C;
          if (gpu.CONSTANT) tile[j]![s] = c === 0 ? pad0 : c === 1 ? pad1 : c === 2 ? pad2 : pad3;
          else tile[j]![s] = gpu.f32(x[line + gpu.index(pixel, width) * gpu.C + c]!);
        }
      }
    }
    gpu.block.sync();
    const mine = gpu.blockIdx.x * 32 + tx;
    if (mine >= elements || top + ty >= height) return;
    let sum = gpu.f32(0);
    gpu.unroll(1);
    for (let j = 0; j < gpu.KH; j++) {
      gpu.unroll(gpu.KW);
      for (let i = 0; i < gpu.KW; i++)
        sum = tile[ty + j]![tx + i * gpu.C]! * w[j * gpu.KW + i]! + sum;
    }
    out[gpu.blockIdx.z * oImage + (top + ty) * oRow + mine] = gpu.stored(sum);
  },
);
