/**
 * The demo's kernels in TypeScript: what the CUDA sources in `kernels/` do, to the last bit. Block
 * shapes are known to `pipeline.ts`, and here they are compiled in.
 */
import {
  Tensor,
  deviceFunction,
  f32,
  i32,
  inout,
  input,
  kernel,
  output,
  u32,
  u8,
} from 'async-cuda';
import type { DeviceOp } from 'async-cuda';
import type { Kernel } from 'async-cuda/core';
import { type CoreDevice, DeviceBuffer } from 'async-cuda/core';

import type { Kernels } from './kernels.js';

const nearest = deviceFunction((value: number, last: number) => Math.min(Math.max(value, 0), last));

/** BT.601's weights in 1/256ths: 77 + 150 + 29 = 256, so white stays 255. */
const grey = kernel(
  'grey',
  { rgb: input(u8), out: output(u8), count: u32 },
  ({ rgb, out, count }, gpu) => {
    const i = gpu.globalId.x;
    if (i >= count) return;
    out[i] = (77 * rgb[3 * i]! + 150 * rgb[3 * i + 1]! + 29 * rgb[3 * i + 2]! + 128) >> 8;
  },
  { block: 256 },
);

const blur = { RADIUS: 4, nearest } as const;

const blurRows = kernel(
  'blur_rows',
  { from: input(u8), out: output(f32), weights: input(f32), width: i32, height: i32 },
  ({ from, out, weights, width, height }, gpu) => {
    const { threadIdx, blockIdx, RADIUS } = gpu;
    const tile = gpu.shared.f32(4, 64 + 2 * RADIUS);
    const left = blockIdx.x * 64;
    const x = left + threadIdx.x;
    const y = blockIdx.y * 4 + threadIdx.y;
    const row = gpu.nearest(y, height - 1) * width;
    for (let i = threadIdx.x; i < 64 + 2 * RADIUS; i += 64)
      tile[threadIdx.y]![i] = from[row + gpu.nearest(left - RADIUS + i, width - 1)]!;
    gpu.block.sync();
    if (x >= width || y >= height) return;
    let sum = 0;
    for (let k = 0; k < 2 * RADIUS + 1; k++)
      sum = gpu.fma(weights[k]!, tile[threadIdx.y]![threadIdx.x + k]!, sum);
    out[y * width + x] = sum;
  },
  { uses: blur, block: [64, 4] },
);

const blurColumns = kernel(
  'blur_columns',
  { from: input(f32), out: output(u8), weights: input(f32), width: i32, height: i32 },
  ({ from, out, weights, width, height }, gpu) => {
    const { threadIdx, blockIdx, RADIUS } = gpu;
    const tile = gpu.shared.f32(32 + 2 * RADIUS, 32);
    const x = blockIdx.x * 32 + threadIdx.x;
    const top = blockIdx.y * 32;
    const column = gpu.nearest(x, width - 1);
    for (let i = threadIdx.y; i < 32 + 2 * RADIUS; i += 8)
      tile[i]![threadIdx.x] = from[column + gpu.nearest(top - RADIUS + i, height - 1) * width]!;
    gpu.block.sync();
    if (x >= width) return;
    for (let i = threadIdx.y; i < 32 && top + i < height; i += 8) {
      let sum = 0;
      for (let k = 0; k < 2 * RADIUS + 1; k++)
        sum = gpu.fma(weights[k]!, tile[i + k]![threadIdx.x]!, sum);
      // The weights' rounding errors may carry white a hair above 255.
      out[(top + i) * width + x] = gpu.i32(Math.min(gpu.rint(sum), 255));
    }
  },
  { uses: blur, block: [32, 8] },
);

const sobel = kernel(
  'sobel',
  { from: input(u8), out: output(u8), width: i32, height: i32 },
  ({ from, out, width, height }, gpu) => {
    const { threadIdx, blockIdx } = gpu;
    const tile = gpu.shared.u8(10, 34);
    const left = blockIdx.x * 32;
    const top = blockIdx.y * 8;
    for (let i = threadIdx.y * 32 + threadIdx.x; i < 34 * 10; i += 32 * 8) {
      const row = gpu.nearest(top - 1 + i / 34, height - 1) * width;
      tile[i / 34]![i % 34] = from[row + gpu.nearest(left - 1 + (i % 34), width - 1)]!;
    }
    gpu.block.sync();

    const x = left + threadIdx.x;
    const y = top + threadIdx.y;
    if (x >= width || y >= height) return;
    const above = tile[threadIdx.y]!;
    const here = tile[threadIdx.y + 1]!;
    const below = tile[threadIdx.y + 2]!;
    const l = threadIdx.x;
    const m = l + 1;
    const r = l + 2;
    const gx = above[r]! + 2 * here[r]! + below[r]! - above[l]! - 2 * here[l]! - below[l]!;
    const gy = below[l]! + 2 * below[m]! + below[r]! - above[l]! - 2 * above[m]! - above[r]!;
    // At most 2 · 1020², exact in f32; the root is rounded correctly.
    out[y * width + x] = gpu.i32(Math.min(gpu.rint(Math.sqrt(gpu.f32(gx * gx + gy * gy))), 255));
  },
  { uses: { nearest }, block: [32, 8] },
);

const histogram = kernel(
  'histogram',
  { from: input(u8), bins: inout(u32), count: u32 },
  ({ from, bins, count }, gpu) => {
    const local = gpu.shared.u32(256);
    const t = gpu.threadIdx.x;
    local[t] = 0;
    gpu.block.sync();
    for (let i = gpu.globalId.x; i < count; i += gpu.globalSize.x)
      gpu.atomicAdd(local, from[i]!, 1);
    gpu.block.sync();
    if (local[t] !== 0) gpu.atomicAdd(bins, t, local[t]);
  },
  { block: 256 },
);

/**
 * An inclusive scan (Hillis and Steele) makes the cumulative distribution, and the table spreads it
 * over 0 to 255.
 */
const equaliseTable = kernel(
  'equalise_table',
  { bins: input(u32), table: output(u8), count: u32 },
  ({ bins, table, count }, gpu) => {
    const scan = gpu.shared.u32(2, 256);
    const darkest = gpu.shared.u32(1);
    const level = gpu.threadIdx.x;
    if (level === 0) darkest[0] = count;
    scan[0]![level] = bins[level]!;
    gpu.block.sync();

    let from = 0;
    for (let step = 1; step < 256; step *= 2) {
      const below = level >= step ? scan[from]![level - step]! : 0;
      scan[1 - from]![level] = scan[from]![level]! + below;
      from = 1 - from;
      gpu.block.sync();
    }

    const cumulative = scan[from]![level]!;
    if (cumulative !== 0) gpu.atomicMin(darkest, 0, cumulative);
    gpu.block.sync();

    // 64 bits: 255 · count passes 2³² at 17 megapixels. An image of one single level is left as it
    // is.
    const range = count - darkest[0]!;
    const above = cumulative > darkest[0]! ? cumulative - darkest[0]! : 0;
    table[level] = range === 0 ? level : gpu.i32((255 * gpu.u64(above) + range / 2) / range);
  },
  { block: 256 },
);

const equalise = kernel(
  'equalise',
  { from: input(u8), table: input(u8), out: output(u8), count: u32 },
  ({ from, table, out, count }, gpu) => {
    const i = gpu.globalId.x;
    if (i < count) out[i] = table[from[i]!]!;
  },
  { block: 256 },
);

const KERNELS = { grey, blurRows, blurColumns, sobel, histogram, equaliseTable, equalise };
/** Arguments in the order in which the pipeline passes them. */
const ORDER: Readonly<Record<keyof Kernels, readonly string[]>> = {
  grey: ['rgb', 'out', 'count'],
  blurRows: ['from', 'out', 'weights', 'width', 'height'],
  blurColumns: ['from', 'out', 'weights', 'width', 'height'],
  sobel: ['from', 'out', 'width', 'height'],
  histogram: ['from', 'bins', 'count'],
  equaliseTable: ['bins', 'table', 'count'],
  equalise: ['from', 'table', 'out', 'count'],
};

/** The kernels for the device, launched as those that `kernels.ts` loads. */
export async function loadTypeScriptKernels(device: CoreDevice): Promise<Kernels> {
  await Promise.all(Object.values(KERNELS).map(async (each) => each.prepare(device)));
  return Object.fromEntries(
    Object.entries(ORDER).map(([name, order]) => {
      const call = KERNELS[name as keyof Kernels] as (
        args: never,
        options: never,
      ) => DeviceOp<unknown>;
      const launch: Kernel['launch'] = (stream, { grid }, ...args) => {
        const named = order.map((argument, index) => [
          argument,
          args[index] instanceof DeviceBuffer
            ? Tensor.of(args[index], [args[index].length])
            : args[index],
        ]);
        return call(Object.fromEntries(named) as never, { grid } as never).runOn(stream) as never;
      };
      return [name, { launch }];
    }),
  ) as unknown as Kernels;
}
