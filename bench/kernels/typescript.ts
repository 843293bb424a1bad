/**
 * Kernels in TypeScript that are compared with the same algorithms in CUDA C++
 * (`bench/peers/cuda/kernels.cu`): the same work for each thread, in the same order.
 */
import type { Gpu } from 'async-cuda';

import { root } from '../library.js';

const { elementKernel, f32, i32, inout, input, kernel, output, struct, tileKernel, u32, u64, u8 } =
  root;

/** Four elements for each thread; the length is a multiple of four. */
export const saxpy = kernel(
  'saxpy',
  { y: inout(f32), x: input(f32), a: f32 },
  ({ y, x, a }, gpu) => {
    const first = gpu.globalId.x * 4;
    if (first >= y.length) return;
    for (let k = 0; k < 4; k++) y[first + k] = a * x[first + k]! + y[first + k]!;
  },
);

/** The same number of elements. */
export const elementwise = kernel(
  'elementwise',
  { y: output(f32), x: input(f32), z: input(f32) },
  ({ y, x, z }, gpu) => {
    const first = gpu.globalId.x * 4;
    if (first >= y.length) return;
    for (let k = 0; k < 4; k++) {
      const v = x[first + k]!;
      const w = z[first + k]!;
      const gate = v / (1 + Math.exp(-v));
      y[first + k] = gate * w + Math.sqrt(Math.abs(w) + 1);
    }
  },
);

/** For sides that are multiples of 64. */
export const transpose = kernel(
  'transpose',
  { out: output(f32), x: input(f32), width: i32, height: i32 },
  ({ out, x, width, height }, gpu) => {
    const tile = gpu.shared.f32(64, 65);
    const values = gpu.local.f32(16);
    const column = gpu.threadIdx.x % 16;
    const row = gpu.threadIdx.x / 16;
    const left = gpu.blockIdx.x * 64;
    const top = gpu.blockIdx.y * 64;
    for (let p = 0; p < 4; p++) {
      for (let k = 0; k < 4; k++)
        values[p * 4 + k] = x[((top + row + p * 16) * (width / 4) + left / 4 + column) * 4 + k]!;
    }
    for (let p = 0; p < 4; p++) {
      for (let k = 0; k < 4; k++) tile[row + p * 16]![column * 4 + k] = values[p * 4 + k]!;
    }
    gpu.block.sync();
    for (let p = 0; p < 4; p++) {
      for (let k = 0; k < 4; k++)
        out[((left + row + p * 16) * (height / 4) + top / 4 + column) * 4 + k] =
          tile[column * 4 + k]![row + p * 16]!;
    }
  },
);

/**
 * For a multiple of 4096 elements: each thread reads four runs of four at a time, each of them
 * once.
 */
export const reduce = kernel('reduce', { out: inout(f32), x: input(f32) }, ({ out, x }, gpu) => {
  const values = gpu.local.f32(16);
  const sums = gpu.local.f32(4);
  for (
    let unit = gpu.blockIdx.x * 1024 + gpu.threadIdx.x;
    unit < x.length / 4;
    unit += gpu.gridDim.x * 1024
  ) {
    for (let j = 0; j < 4; j++) {
      for (let k = 0; k < 4; k++)
        values[j * 4 + k] = gpu.streamingLoad(x, (unit + j * 256) * 4 + k);
    }
    for (let j = 0; j < 4; j++) {
      for (let k = 0; k < 4; k++) sums[k] = sums[k]! + values[j * 4 + k]!;
    }
  }
  const sum = gpu.block.sum(sums[0]! + sums[1]! + (sums[2]! + sums[3]!));
  if (gpu.threadIdx.x === 0) gpu.atomicAdd(out, 0, sum);
});

/** The row's elements of a thread of 512: two runs of four. */
const EACH = 8;

/** For rows of 4096. */
export const softmax = kernel(
  'softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, gpu) => {
    const v = gpu.local.f32(gpu.EACH);
    const first = gpu.blockIdx.x * 1024 + gpu.threadIdx.x;
    for (let i = 0; i < gpu.EACH; i++) v[i] = x[(first + (i >> 2) * 512) * 4 + (i % 4)]!;
    let max = v[0]!;
    for (let i = 1; i < gpu.EACH; i++) max = Math.max(max, v[i]!);
    max = gpu.block.max(max);
    let sum = 0;
    for (let i = 0; i < gpu.EACH; i++) {
      v[i] = Math.exp(v[i]! - max);
      sum += v[i]!;
    }
    const scale = 1 / gpu.block.sum(sum);
    for (let i = 0; i < gpu.EACH; i++) y[(first + (i >> 2) * 512) * 4 + (i % 4)] = v[i]! * scale;
  },
  { uses: { EACH }, block: 512 },
);

/** For rows of 4096. */
export const layerNorm = kernel(
  'layer_norm',
  { y: output(f32), x: input(f32), w: input(f32), b: input(f32), eps: f32 },
  ({ y, x, w, b, eps }, gpu) => {
    const v = gpu.local.f32(gpu.EACH);
    const first = gpu.blockIdx.x * 1024 + gpu.threadIdx.x;
    let sum = 0;
    for (let i = 0; i < gpu.EACH; i++) v[i] = x[(first + (i >> 2) * 512) * 4 + (i % 4)]!;
    for (let i = 0; i < gpu.EACH; i++) sum += v[i]!;
    const mean = gpu.block.sum(sum) / 4096;
    let square = 0;
    for (let i = 0; i < gpu.EACH; i++) {
      v[i] = v[i]! - mean;
      square += v[i]! * v[i]!;
    }
    const scale = 1 / Math.sqrt(gpu.block.sum(square) / 4096 + eps);
    for (let i = 0; i < gpu.EACH; i++) {
      const column = (gpu.threadIdx.x + (i >> 2) * 512) * 4 + (i % 4);
      v[i] = v[i]! * scale * w[column]! + b[column]!;
    }
    for (let i = 0; i < gpu.EACH; i++) y[(first + (i >> 2) * 512) * 4 + (i % 4)] = v[i]!;
  },
  { uses: { EACH }, block: 512 },
);

/** For rows of 4096. */
export const rmsNorm = kernel(
  'rms_norm',
  { y: output(f32), x: input(f32), w: input(f32), eps: f32 },
  ({ y, x, w, eps }, gpu) => {
    const v = gpu.local.f32(gpu.EACH);
    const first = gpu.blockIdx.x * 1024 + gpu.threadIdx.x;
    let square = 0;
    for (let i = 0; i < gpu.EACH; i++) v[i] = x[(first + (i >> 2) * 512) * 4 + (i % 4)]!;
    for (let i = 0; i < gpu.EACH; i++) square += v[i]! * v[i]!;
    const scale = 1 / Math.sqrt(gpu.block.sum(square) / 4096 + eps);
    for (let i = 0; i < gpu.EACH; i++)
      v[i] = v[i]! * scale * w[(gpu.threadIdx.x + (i >> 2) * 512) * 4 + (i % 4)]!;
    for (let i = 0; i < gpu.EACH; i++) y[(first + (i >> 2) * 512) * 4 + (i % 4)] = v[i]!;
  },
  { uses: { EACH }, block: 512 },
);

export const histogram = kernel(
  'histogram',
  { out: inout(u32), data: input(u8) },
  ({ out, data }, gpu) => {
    const counts = gpu.shared.u32(256);
    const t = gpu.threadIdx.x;
    counts[t] = 0;
    gpu.block.sync();
    for (let i = gpu.globalId.x; i < data.length; i += gpu.globalSize.x)
      gpu.atomicAdd(counts, data[i]!, 1);
    gpu.block.sync();
    gpu.atomicAdd(out, t, counts[t]!);
  },
);

type Words = Record<number, number> & { readonly length: number };

/**
 * A sum and the number of the launch that it belongs to, in one word: nothing has to be cleared
 * between launches.
 */
export const tell = (state: Words, at: number, sum: number, launch: number, gpu: Gpu): void => {
  gpu.volatileStore(state, at, (gpu.u64(launch) << 32) | gpu.u64(gpu.u32(sum)));
};
/**
 * The sum in a word of `state`. `seen` is the word that was read before other work, which hides the
 * latency of the first read.
 */
export const hear = (state: Words, at: number, seen: number, launch: number, gpu: Gpu): number => {
  let word = gpu.u64(seen);
  while (gpu.u32(word >> 32) !== launch) word = gpu.volatileLoad(state, at);
  return gpu.i32(word);
};

interface ScanArgs {
  readonly out: Words;
  readonly state: Words;
  readonly x: { readonly length: number; readonly [index: number]: number };
  readonly chunks: number;
}

/** The parameters of a form of the scan. */
interface ScanGpu extends Gpu {
  readonly BLOCK: number;
  /** Runs of four elements of a thread in a chunk. */
  readonly TIMES: number;
  readonly STAGES: number;
  /** Whether results bypass caches. */
  readonly STREAMING: boolean;
  tell(state: Words, at: number, sum: number, launch: number): void;
  hear(state: Words, at: number, seen: number, launch: number): number;
}

/**
 * One chunk after another, looking back with the whole block, one chunk later than the block
 * publishes its sum: by then the others have published theirs. Chunks lie in shared memory
 * meanwhile; with STAGES of them two are in use and the others are being copied. Each launch takes
 * as many tickets, from which it gets its own number.
 */
export const scanAhead = ({ out, state, x, chunks }: ScanArgs, gpu: ScanGpu): void => {
  // Turns of this chunk and of the next.
  const warps = gpu.shared.i32(2, gpu.BLOCK / 32);
  const found = gpu.shared.i32(gpu.BLOCK / 32 + 1);
  const turns = gpu.shared.i32(gpu.STAGES + 1);
  const staged = gpu.dynamicShared.i32();
  const values = gpu.local.i32(4 * gpu.TIMES);
  const starts = gpu.local.i32(gpu.TIMES);
  const { lane, warpIdx } = gpu;
  const t = gpu.threadIdx.x;
  const within = warpIdx * (32 * gpu.TIMES) + lane;
  const tickets = gpu.u64(chunks + gpu.gridDim.x * gpu.STAGES);
  const launch = gpu.shared.u32(1);
  // The number of tickets of the earlier launches.
  let spent = gpu.u64(0);
  if (t === 0) {
    const taken = gpu.atomicAdd(state as never, 0, 1) as number;
    const number = taken / tickets;
    spent = number * tickets;
    launch[0] = gpu.u32(number + 1);
    turns[0] = gpu.i32(taken - spent);
    for (let stage = 1; stage < gpu.STAGES; stage++)
      turns[stage] = gpu.i32(gpu.atomicAdd(state as never, 0, 1) - spent);
  }
  gpu.block.sync();
  const number = launch[0]!;
  for (let stage = 0; stage < gpu.STAGES; stage++) {
    const taken = turns[stage]!;
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      if (taken < chunks)
        gpu.async.copy(
          staged,
          (stage * (gpu.BLOCK * gpu.TIMES) + within + j * 32) * 4,
          x,
          (taken * (gpu.BLOCK * gpu.TIMES) + within + j * 32) * 4,
          4,
        );
    }
    gpu.async.commit();
  }
  let slot = 0;
  let stage = 0;
  let turn = 0;
  let chunk = turns[0]!;
  let total = 0;
  gpu.async.wait(gpu.STAGES - 1);
  if (chunk < chunks) {
    let own = 0;
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 0; k < 4; k++) own += staged[(within + j * 32) * 4 + k]!;
    }
    own = gpu.warp.sum(own);
    if (lane === 0) warps[0]![warpIdx] = own;
  }
  gpu.block.sync();
  gpu.unroll(gpu.BLOCK / 32);
  for (let warp = 0; warp < gpu.BLOCK / 32; warp++) total += warps[0]![warp]!;
  if (t === 0 && chunk < chunks) gpu.tell(state, 1 + chunk, total, number);
  while (chunk < chunks) {
    const nextSlot = slot === gpu.STAGES ? 0 : slot + 1;
    const nextStage = stage === gpu.STAGES - 1 ? 0 : stage + 1;
    const next = turns[nextSlot]!;
    let taken = 0;
    if (t === 0) taken = gpu.i32(gpu.atomicAdd(state as never, 0, 1) - spent);
    gpu.async.wait(gpu.STAGES - 2);
    if (next < chunks) {
      const from = (nextStage * (gpu.BLOCK * gpu.TIMES) + within) * 4;
      let own = 0;
      gpu.unroll(gpu.TIMES);
      for (let j = 0; j < gpu.TIMES; j++) {
        for (let k = 0; k < 4; k++) own += staged[from + j * 128 + k]!;
      }
      own = gpu.warp.sum(own);
      if (lane === 0) warps[1 - turn]![warpIdx] = own;
    }
    if (t === 0) turns[slot === 0 ? gpu.STAGES : slot - 1] = taken;
    gpu.block.sync();
    let nextTotal = 0;
    let start = 0;
    gpu.unroll(gpu.BLOCK / 32);
    for (let warp = 0; warp < gpu.BLOCK / 32; warp++) {
      nextTotal += warps[1 - turn]![warp]!;
      if (warp < warpIdx) start += warps[turn]![warp]!;
    }
    if (t === 0 && next < chunks) gpu.tell(state, 1 + next, nextTotal, number);
    const at = (stage * (gpu.BLOCK * gpu.TIMES) + within) * 4;
    const group = chunk / gpu.BLOCK;
    const place = chunk % gpu.BLOCK;
    const inGroup = 1 + group * gpu.BLOCK + t;
    // Read now; the words arrive while the chunk is added up.
    const nothing = gpu.u64(number) << 32;
    let own = nothing;
    let previous = nothing;
    let earlier = nothing;
    if (t < place) own = gpu.volatileLoad(state, inGroup);
    if (group > 0) previous = gpu.volatileLoad(state, inGroup - gpu.BLOCK);
    if (t === gpu.BLOCK - 1 && group > 1) earlier = gpu.volatileLoad(state, chunks + group - 1);
    let sum = 0;
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 0; k < 4; k++) values[j * 4 + k] = staged[at + j * 128 + k]!;
      for (let k = 1; k < 4; k++) values[j * 4 + k] = values[j * 4 + k - 1]! + values[j * 4 + k]!;
      let upTo = values[j * 4 + 3]!;
      gpu.unroll(5);
      for (let step = 1; step < 32; step <<= 1) {
        const below = gpu.warp.shuffleUp(upTo, step);
        if (lane >= step) upTo += below;
      }
      starts[j] = sum + upTo - values[j * 4 + 3]!;
      sum += gpu.warp.shuffle(upTo, 31);
    }
    const free = turns[slot === 0 ? gpu.STAGES : slot - 1]!;
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      if (free < chunks)
        gpu.async.copy(
          staged,
          at + j * 128,
          x,
          (free * (gpu.BLOCK * gpu.TIMES) + within + j * 32) * 4,
          4,
        );
    }
    gpu.async.commit();
    let word =
      gpu.hear(state, inGroup, own, number) +
      gpu.hear(state, inGroup - gpu.BLOCK, previous, number);
    if (t === gpu.BLOCK - 1)
      found[gpu.BLOCK / 32] = gpu.hear(state, chunks + group - 1, earlier, number);
    word = gpu.warp.sum(word);
    if (lane === 0) found[warpIdx] = word;
    gpu.block.sync();
    let before = found[gpu.BLOCK / 32]!;
    gpu.unroll(gpu.BLOCK / 32);
    for (let warp = 0; warp < gpu.BLOCK / 32; warp++) before += found[warp]!;
    if (t === 0 && place === gpu.BLOCK - 1)
      gpu.tell(state, 1 + chunks + group, before + total, number);
    start += before;
    const first = chunk * (gpu.BLOCK * gpu.TIMES) + within;
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      const from = start + starts[j]!;
      for (let k = 0; k < 4; k++) {
        if (gpu.STREAMING)
          gpu.streamingStore(out, (first + j * 32) * 4 + k, from + values[j * 4 + k]!);
        else out[(first + j * 32) * 4 + k] = from + values[j * 4 + k]!;
      }
    }
    total = nextTotal;
    chunk = next;
    slot = nextSlot;
    stage = nextStage;
    turn = 1 - turn;
  }
};

/** For a multiple of 8192 elements, each read once. */
export const scan = kernel(
  'scan',
  { out: output(i32), state: inout(u64), x: input(i32), chunks: i32 },
  scanAhead as never,
  {
    uses: { BLOCK: 256, TIMES: 8, STAGES: 2, STREAMING: false, tell, hear },
  } as never,
);

const body = struct({ x: f32, y: f32, z: f32, w: f32 });

export const nbody = kernel(
  'nbody',
  { v: inout(body), p: input(body), dt: f32, eps: f32 },
  ({ v, p, dt, eps }, gpu) => {
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
  },
);

export const mandelbrot = kernel(
  'mandelbrot',
  { out: output(i32), width: i32, height: i32, x0: f32, y0: f32, step: f32, most: i32 },
  ({ out, width, height, x0, y0, step, most }, gpu) => {
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
  },
);

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

export const saxpyOfElements = elementKernel(
  'saxpy',
  { y: inout(f32), a: f32, x: input(f32) },
  ({ y, a, x }) => a * x + y,
);

export const elementwiseOfElements = elementKernel(
  'elementwise',
  { y: output(f32), x: input(f32), z: input(f32) },
  ({ x, z }) => {
    const gate = x / (1 + Math.exp(-x));
    return gate * z + Math.sqrt(Math.abs(z) + 1);
  },
);

export const softmaxOfTiles = tileKernel(
  'softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => {
    const v = x.load();
    const e = Math.exp(v - tile.max(v, 1));
    y.store(e / tile.sum(e, 1));
  },
  { tile: [1, null] },
);

export const layerNormOfTiles = tileKernel(
  'layer_norm',
  { y: output(f32), x: input(f32), w: input(f32), b: input(f32), eps: f32 },
  ({ y, x, w, b, eps }, tile) => {
    const v = x.load();
    const d = v - tile.mean(v, 1);
    y.store((d / Math.sqrt(tile.mean(d * d, 1) + eps)) * w.load() + b.load());
  },
  { tile: [1, null] },
);

export const rmsNormOfTiles = tileKernel(
  'rms_norm',
  { y: output(f32), x: input(f32), w: input(f32), eps: f32 },
  ({ y, x, w, eps }, tile) => {
    const v = x.load();
    y.store((v / Math.sqrt(tile.mean(v * v, 1) + eps)) * w.load());
  },
  { tile: [1, null] },
);
