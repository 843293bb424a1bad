/**
 * Kernels in TypeScript that are measured beside the same algorithms in CUDA C++ (`bench/peers/cuda/kernels.cu`): the same
 * work for each thread, in the same order.
 */
import type { Gpu } from 'async-cuda';

import { root } from '../library.js';

const { elementKernel, f32, i32, inout, input, kernel, output, struct, tileKernel, u32, u64, u8 } = root;

export const saxpy = kernel('saxpy', { y: inout(f32), x: input(f32), a: f32 }, ({ y, x, a }, gpu) => {
  const i = gpu.globalId.x;
  if (i < y.length) y[i] = a * x[i]! + y[i]!;
});

export const elementwise = kernel('elementwise', { y: output(f32), x: input(f32), z: input(f32) }, ({ y, x, z }, gpu) => {
  const i = gpu.globalId.x;
  if (i >= y.length) return;
  const v = x[i]!;
  const w = z[i]!;
  const gate = v / (1 + Math.exp(-v));
  y[i] = gate * w + Math.sqrt(Math.abs(w) + 1);
});

/** Of sides that are multiples of 64. */
export const transpose = kernel('transpose', { out: output(f32), x: input(f32), width: i32, height: i32 }, ({ out, x, width, height }, gpu) => {
  const tile = gpu.shared.f32(64, 65);
  const values = gpu.local.f32(16);
  const column = gpu.threadIdx.x % 16;
  const row = gpu.threadIdx.x / 16;
  const left = gpu.blockIdx.x * 64;
  const top = gpu.blockIdx.y * 64;
  for (let p = 0; p < 4; p++) {
    for (let k = 0; k < 4; k++) values[p * 4 + k] = x[((top + row + p * 16) * (width / 4) + left / 4 + column) * 4 + k]!;
  }
  for (let p = 0; p < 4; p++) {
    for (let k = 0; k < 4; k++) tile[row + p * 16]![column * 4 + k] = values[p * 4 + k]!;
  }
  gpu.block.sync();
  for (let p = 0; p < 4; p++) {
    for (let k = 0; k < 4; k++) out[((left + row + p * 16) * (height / 4) + top / 4 + column) * 4 + k] = tile[column * 4 + k]![row + p * 16]!;
  }
});

/** Of a multiple of 4096 elements: each thread reads four runs of four at a time, which nobody reads again. */
export const reduce = kernel('reduce', { out: inout(f32), x: input(f32) }, ({ out, x }, gpu) => {
  const values = gpu.local.f32(16);
  const sums = gpu.local.f32(4);
  for (let unit = gpu.blockIdx.x * 1024 + gpu.threadIdx.x; unit < x.length / 4; unit += gpu.gridDim.x * 1024) {
    for (let j = 0; j < 4; j++) {
      for (let k = 0; k < 4; k++) values[j * 4 + k] = gpu.streamingLoad(x, (unit + j * 256) * 4 + k);
    }
    for (let j = 0; j < 4; j++) {
      for (let k = 0; k < 4; k++) sums[k] = sums[k]! + values[j * 4 + k]!;
    }
  }
  const sum = gpu.block.sum((sums[0]! + sums[1]!) + (sums[2]! + sums[3]!));
  if (gpu.threadIdx.x === 0) gpu.atomicAdd(out, 0, sum);
});

export const softmax = kernel('softmax', { y: output(f32), x: input(f32), columns: i32 }, ({ y, x, columns }, gpu) => {
  const row = gpu.blockIdx.x * columns;
  let max = -Infinity;
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) max = Math.max(max, x[row + i]!);
  max = gpu.block.max(max);
  let sum = 0;
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) sum += Math.exp(x[row + i]! - max);
  const scale = 1 / gpu.block.sum(sum);
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) y[row + i] = Math.exp(x[row + i]! - max) * scale;
});

export const layerNorm = kernel('layer_norm', { y: output(f32), x: input(f32), w: input(f32), b: input(f32), columns: i32, eps: f32 }, ({ y, x, w, b, columns, eps }, gpu) => {
  const row = gpu.blockIdx.x * columns;
  let sum = 0;
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) sum += x[row + i]!;
  const mean = gpu.block.sum(sum) / columns;
  let square = 0;
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) {
    const d = x[row + i]! - mean;
    square += d * d;
  }
  const scale = 1 / Math.sqrt(gpu.block.sum(square) / columns + eps);
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) y[row + i] = (x[row + i]! - mean) * scale * w[i]! + b[i]!;
});

export const rmsNorm = kernel('rms_norm', { y: output(f32), x: input(f32), w: input(f32), columns: i32, eps: f32 }, ({ y, x, w, columns, eps }, gpu) => {
  const row = gpu.blockIdx.x * columns;
  let square = 0;
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) {
    const v = x[row + i]!;
    square += v * v;
  }
  const scale = 1 / Math.sqrt(gpu.block.sum(square) / columns + eps);
  for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x) y[row + i] = x[row + i]! * scale * w[i]!;
});

export const histogram = kernel('histogram', { out: inout(u32), data: input(u8) }, ({ out, data }, gpu) => {
  const counts = gpu.shared.u32(256);
  const t = gpu.threadIdx.x;
  counts[t] = 0;
  gpu.block.sync();
  for (let i = gpu.globalId.x; i < data.length; i += gpu.globalSize.x) gpu.atomicAdd(counts, data[i]!, 1);
  gpu.block.sync();
  gpu.atomicAdd(out, t, counts[t]!);
});

type Words = Record<number, number> & { readonly length: number };
const put = (state: Words, at: number, sum: number, gpu: Gpu): void => { gpu.volatileStore(state, at, gpu.u64(gpu.u32(sum)) | 0x100000000); };
const get = (state: Words, at: number, gpu: Gpu): number => {
  let word = gpu.volatileLoad(state, at);
  while (word < 0x100000000) word = gpu.volatileLoad(state, at);
  return gpu.i32(word);
};

/**
 * Of a multiple of 4096 elements, each read once: blocks take chunks in the order in which they begin, and what is before a chunk
 * from those before it: sums of its group of 32 chunks, of the 32 groups of its span, and what is up to the span before.
 */
export const scan = kernel('scan', { out: output(i32), state: inout(u64), x: input(i32), chunks: i32 }, ({ out, state, x, chunks }, gpu) => {
  const warps = gpu.shared.i32(8);
  const turn = gpu.shared.i32(2);
  const values = gpu.local.i32(16);
  const starts = gpu.local.i32(4);
  const { lane, warpIdx } = gpu;
  if (gpu.threadIdx.x === 0) turn[0] = gpu.i32(gpu.atomicAdd(state, 0, 1));
  gpu.block.sync();
  const chunk = turn[0]!;
  const first = chunk * 1024 + warpIdx * 128 + lane;
  for (let j = 0; j < 4; j++) {
    for (let k = 0; k < 4; k++) values[j * 4 + k] = x[(first + j * 32) * 4 + k]!;
  }
  let sum = 0;
  for (let j = 0; j < 4; j++) {
    for (let k = 1; k < 4; k++) values[j * 4 + k] = values[j * 4 + k - 1]! + values[j * 4 + k]!;
    let upTo = values[j * 4 + 3]!;
    for (let step = 1; step < 32; step <<= 1) {
      const below = gpu.warp.shuffleUp(upTo, step);
      if (lane >= step) upTo += below;
    }
    const below = gpu.warp.shuffleUp(upTo, 1);
    starts[j] = lane > 0 ? sum + below : sum;
    sum += gpu.warp.shuffle(upTo, 31);
  }
  if (lane === 0) warps[warpIdx] = sum;
  gpu.block.sync();
  let start = 0;
  let total = 0;
  for (let warp = 0; warp < 8; warp++) {
    if (warp < warpIdx) start += warps[warp]!;
    total += warps[warp]!;
  }
  if (warpIdx === 0) {
    const groups = chunks / 32;
    const group = chunk / 32;
    const span = group / 32;
    const last = chunk % 32 === 31;
    if (lane === 0) gpu.put(state, 1 + chunk, total);
    let found = 0;
    if (lane < chunk % 32) found = gpu.get(state, 1 + group * 32 + lane);
    const inGroup = gpu.warp.sum(found);
    if (last && lane === 0) gpu.put(state, 1 + chunks + group, inGroup + total);
    found = 0;
    if (lane < group % 32) found = gpu.get(state, 1 + chunks + span * 32 + lane);
    let before = 0;
    if (lane === 31 && span > 0) before = gpu.get(state, chunks + groups + span);
    const inSpan = gpu.warp.sum(found);
    before = gpu.warp.shuffle(before, 31);
    if (last && group % 32 === 31 && lane === 0) gpu.put(state, 1 + chunks + groups + span, before + inSpan + inGroup + total);
    if (lane === 0) turn[1] = before + inSpan + inGroup;
  }
  gpu.block.sync();
  start += turn[1]!;
  for (let j = 0; j < 4; j++) {
    for (let k = 0; k < 4; k++) out[(first + j * 32) * 4 + k] = start + starts[j]! + values[j * 4 + k]!;
  }
}, { uses: { put, get } });

const body = struct({ x: f32, y: f32, z: f32, w: f32 });

export const nbody = kernel('nbody', { v: inout(body), p: input(body), dt: f32, eps: f32 }, ({ v, p, dt, eps }, gpu) => {
  const tile = gpu.shared.f32(256, 4);
  const i = gpu.globalId.x;
  const t = gpu.threadIdx.x;
  const me = p[i]!;
  let ax = 0;
  let ay = 0;
  let az = 0;
  for (let first = 0; first < p.length; first += 256) {
    const other = p[first + t]!;
    tile[t]![0] = other.x;
    tile[t]![1] = other.y;
    tile[t]![2] = other.z;
    tile[t]![3] = other.w;
    gpu.block.sync();
    for (let j = 0; j < 256; j++) {
      const dx = tile[j]![0]! - me.x;
      const dy = tile[j]![1]! - me.y;
      const dz = tile[j]![2]! - me.z;
      const r = gpu.fast.rsqrt(dx * dx + dy * dy + dz * dz + eps);
      const s = tile[j]![3]! * r * r * r;
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    gpu.block.sync();
  }
  v[i]!.x += ax * dt;
  v[i]!.y += ay * dt;
  v[i]!.z += az * dt;
});

export const mandelbrot = kernel('mandelbrot', { out: output(i32), width: i32, height: i32, x0: f32, y0: f32, step: f32, most: i32 }, ({ out, width, height, x0, y0, step, most }, gpu) => {
  const { x, y } = gpu.globalId;
  if (x >= width || y >= height) return;
  const cx = x0 + x * step;
  const cy = y0 + y * step;
  let zx = 0;
  let zy = 0;
  let i = 0;
  while (i < most && zx * zx + zy * zy < 4) {
    const t = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = t;
    i++;
  }
  out[y * width + x] = i;
});

const words = struct({ x: u32, y: u32, z: u32, w: u32 });

export const philox = kernel('philox', { out: output(words), seed: u32 }, ({ out, seed }, gpu) => {
  const i = gpu.globalId.x;
  if (i >= out.length) return;
  let a = gpu.u32(i);
  let b = gpu.u32(0);
  let c = gpu.u32(0);
  let d = gpu.u32(0);
  let k0 = seed;
  let k1 = gpu.u32(0);
  for (let round = 0; round < 10; round++) {
    const h0 = gpu.mulhi(0xd2511f53, a);
    const l0 = 0xd2511f53 * a;
    const h1 = gpu.mulhi(0xcd9e8d57, c);
    const l1 = 0xcd9e8d57 * c;
    a = h1 ^ b ^ k0;
    b = l1;
    c = h0 ^ d ^ k1;
    d = l0;
    k0 += 0x9e3779b9;
    k1 += 0xbb67ae85;
  }
  out[i] = { x: a, y: b, z: c, w: d };
});

// The same without indices.

export const saxpyOfElements = elementKernel('saxpy', { y: inout(f32), a: f32, x: input(f32) }, ({ y, a, x }) => a * x + y);

export const elementwiseOfElements = elementKernel('elementwise', { y: output(f32), x: input(f32), z: input(f32) }, ({ x, z }) => {
  const gate = x / (1 + Math.exp(-x));
  return gate * z + Math.sqrt(Math.abs(z) + 1);
});

export const softmaxOfTiles = tileKernel('softmax', { y: output(f32), x: input(f32) }, ({ y, x }, tile) => {
  const v = x.load();
  const e = Math.exp(v - tile.max(v, 1));
  y.store(e / tile.sum(e, 1));
}, { tile: [1, null] });

export const layerNormOfTiles = tileKernel('layer_norm', { y: output(f32), x: input(f32), w: input(f32), b: input(f32), eps: f32 }, ({ y, x, w, b, eps }, tile) => {
  const v = x.load();
  const d = v - tile.mean(v, 1);
  y.store(d / Math.sqrt(tile.mean(d * d, 1) + eps) * w.load() + b.load());
}, { tile: [1, null] });

export const rmsNormOfTiles = tileKernel('rms_norm', { y: output(f32), x: input(f32), w: input(f32), eps: f32 }, ({ y, x, w, eps }, tile) => {
  const v = x.load();
  y.store(v / Math.sqrt(tile.mean(v * v, 1) + eps) * w.load());
}, { tile: [1, null] });
