/**
 * Kernels in TypeScript to PTX, each compiled anew with another constant, so that no cache has it.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { root } from '../library.js';
import { median } from '../statistics.js';

const { f32, i32, inout, input, kernel, output, u32 } = root;

const TARGET = { capability: [9, 0] } as const;
const SAMPLES = 15;
const uses = { C: 0.5, TILE: 16 };

/** Typical kernels, from one line to a product of tiles. */
const KERNELS = [
  kernel(
    'saxpy',
    { y: inout(f32), a: f32, x: input(f32) },
    ({ y, a, x }, gpu) => {
      const i = gpu.globalId.x;
      if (i < y.length) y[i] = a * x[i]! + y[i]! + gpu.C;
    },
    { uses },
  ),
  kernel(
    'softmax',
    { y: output(f32, 2), x: input(f32, 2) },
    ({ y, x }, gpu) => {
      const row = gpu.blockIdx.x;
      const columns = x.shape[1];
      let most = -Infinity;
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        most = Math.max(most, x[row]![i]!);
      most = gpu.block.max(most);
      let sum = 0;
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        sum += Math.exp(x[row]![i]! - most);
      const scale = gpu.C / gpu.block.sum(sum);
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        y[row]![i] = Math.exp(x[row]![i]! - most) * scale;
    },
    { uses },
  ),
  kernel(
    'rms_norm',
    { y: output(f32, 2), x: input(f32, 2), w: input(f32), eps: f32 },
    ({ y, x, w, eps }, gpu) => {
      const row = gpu.blockIdx.x;
      const columns = x.shape[1];
      let sum = 0;
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        sum += x[row]![i]! * x[row]![i]!;
      const scale = gpu.rsqrt(gpu.block.sum(sum) / gpu.f32(columns) + eps) + gpu.C;
      for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
        y[row]![i] = x[row]![i]! * scale * w[i]!;
    },
    { uses },
  ),
  kernel(
    'transpose',
    { y: output(f32, 2), x: input(f32, 2) },
    ({ y, x }, gpu) => {
      const tile = gpu.shared.f32(32, 33);
      const { x: column, y: row } = gpu.threadIdx;
      const left = gpu.blockIdx.x * 32;
      const top = gpu.blockIdx.y * 32;
      for (let j = 0; j < 32; j += 8) tile[row + j]![column] = x[top + row + j]![left + column]!;
      gpu.block.sync();
      for (let j = 0; j < 32; j += 8)
        y[left + row + j]![top + column] = tile[column]![row + j]! + gpu.C;
    },
    { uses },
  ),
  kernel(
    'histogram',
    { counts: inout(u32), x: input(f32) },
    ({ counts, x }, gpu) => {
      const part = gpu.shared.u32(256);
      part[gpu.threadIdx.x] = 0;
      gpu.block.sync();
      for (let i = gpu.globalId.x; i < x.length; i += gpu.globalSize.x)
        gpu.atomicAdd(part, gpu.i32(x[i]! * 255 + gpu.C) & 255, 1);
      gpu.block.sync();
      gpu.atomicAdd(counts, gpu.threadIdx.x, part[gpu.threadIdx.x]!);
    },
    { uses },
  ),
  kernel(
    'mandelbrot',
    { y: output(i32, 2) },
    ({ y }, gpu) => {
      const { x: column, y: row } = gpu.globalId;
      const cx = gpu.f32(column) / 500 - 2;
      const cy = gpu.f32(row) / 500 - 1;
      let a = gpu.f32(0);
      let b = gpu.f32(0);
      let k = 0;
      while (k < 200 && a * a + b * b < 4 + gpu.C) {
        const next = a * a - b * b + cx;
        b = 2 * a * b + cy;
        a = next;
        k++;
      }
      if (row < y.shape[0] && column < y.shape[1]) y[row]![column] = k;
    },
    { uses },
  ),
  kernel(
    'product',
    { c: output(f32, 2), a: input(f32, 2), b: input(f32, 2) },
    ({ c, a, b }, gpu) => {
      const { TILE, threadIdx } = gpu;
      const rows = gpu.shared.f32(TILE, TILE);
      const columns = gpu.shared.f32(TILE, TILE);
      const { x, y } = gpu.globalId;
      let sum = gpu.C;
      for (let first = 0; first < a.shape[1]; first += TILE) {
        rows[threadIdx.y]![threadIdx.x] =
          y < a.shape[0] && first + threadIdx.x < a.shape[1] ? a[y]![first + threadIdx.x]! : 0;
        columns[threadIdx.y]![threadIdx.x] =
          first + threadIdx.y < b.shape[0] && x < b.shape[1] ? b[first + threadIdx.y]![x]! : 0;
        gpu.block.sync();
        for (let k = 0; k < TILE; k++) sum += rows[threadIdx.y]![k]! * columns[k]![threadIdx.x]!;
        gpu.block.sync();
      }
      if (y < c.shape[0] && x < c.shape[1]) c[y]![x] = sum;
    },
    { uses, block: [16, 16] },
  ),
];

let compiled = 0;

export const typescriptCompileTimes: readonly Benchmark[] = [
  {
    area: 'cpu-device',
    name: 'TypeScript to PTX, the median kernel',
    unit: 'ms',
    statistic: 'median',
    bar: '<= 5',
    peers: [],
    start({ count }) {
      // The results are not written to disk either.
      process.env['ASYNC_CUDA_CACHE_DISABLE'] = '1';
      return Promise.resolve({
        async round() {
          const samples: number[] = [];
          for (let k = 0; k < count(SAMPLES); k++) {
            const times: number[] = [];
            for (const each of KERNELS) {
              const another = each.with({ uses: { C: ++compiled + 0.25 } });
              const start = performance.now();
              const ptx = await another.ptx(TARGET);
              times.push(performance.now() - start);
              if (!ptx.includes(`.entry ${each.name}`))
                throw new Error(`the text of ${each.name} is not its own`);
            }
            samples.push(median(times));
          }
          return { samples, notes: { kernels: KERNELS.length } };
        },
        close() {
          delete process.env['ASYNC_CUDA_CACHE_DISABLE'];
          return Promise.resolve();
        },
      });
    },
  },
];
