/**
 * Compares forms of a scan: elements of a thread, threads of a block, how a block gets the sum
 * before its chunk.
 *
 *     npx tsx bench/kernels/scan-variants.ts [elements=67108864] [text in names]
 *
 * Runs the sources. Elements after the last whole chunk are left out. Every variant adds in a fixed
 * order, except those named 'any', which take the sums that are ready.
 */
import {
  Device,
  Tensor,
  deviceFunction,
  i32,
  inout,
  input,
  kernel,
  output,
  u64,
} from '../../src/index.js';
import type { Gpu } from '../../src/index.js';
import { hear, scanAhead, tell } from './typescript.js';
import { compare } from './variants.js';
import type { Variant } from './variants.js';

type Words = Record<number, number> & { readonly length: number };

const put = (state: Words, at: number, sum: number, gpu: Gpu): void => {
  gpu.volatileStore(state, at, gpu.u64(gpu.u32(sum)) | 0x100000000);
};
const get = (state: Words, at: number, gpu: Gpu): number => {
  let word = gpu.volatileLoad(state, at);
  while (word < 0x100000000) word = gpu.volatileLoad(state, at);
  return gpu.i32(word);
};
/** Waits while the word is not written yet. */
const settle = (state: Words, at: number, seen: number, gpu: Gpu): number => {
  let word = gpu.u64(seen);
  while (word < 0x100000000) word = gpu.volatileLoad(state, at);
  return gpu.i32(word);
};

/** The device functions above, as their callers see them. */
interface Telling extends Gpu {
  put(state: Words, at: number, sum: number): void;
  get(state: Words, at: number): number;
  settle(state: Words, at: number, seen: number): number;
}

type LookBack = (state: Words, chunk: number, chunks: number, total: number) => number;

/** Sums of chunks, then of groups, then of spans: one after another. */
const inSteps = (
  state: Words,
  chunk: number,
  chunks: number,
  total: number,
  gpu: Telling,
): number => {
  const { lane } = gpu;
  const groups = (chunks + 31) / 32;
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
  if (last && group % 32 === 31 && lane === 0)
    gpu.put(state, 1 + chunks + groups + span, before + inSpan + inGroup + total);
  return before + inSpan + inGroup;
};

/** The same order of sums, but all three words of a lane are read at once. */
const atOnce = (
  state: Words,
  chunk: number,
  chunks: number,
  total: number,
  gpu: Telling,
): number => {
  const { lane } = gpu;
  const groups = (chunks + 31) / 32;
  const group = chunk / 32;
  const span = group / 32;
  const last = chunk % 32 === 31;
  if (lane === 0) gpu.put(state, 1 + chunk, total);
  const ofChunk = lane < chunk % 32;
  const ofGroup = lane < group % 32;
  const chunkAt = 1 + group * 32 + lane;
  // The last lane, which has no group, takes the sum up to the span before.
  const ofSpan = lane === 31 && span > 0;
  const groupAt = ofSpan ? chunks + groups + span : 1 + chunks + span * 32 + lane;
  let first = gpu.u64(0x100000000);
  let second = gpu.u64(0x100000000);
  if (ofChunk) first = gpu.volatileLoad(state, chunkAt);
  if (ofGroup || ofSpan) second = gpu.volatileLoad(state, groupAt);
  const inGroup = gpu.warp.sum(gpu.settle(state, chunkAt, first));
  if (last && lane === 0) gpu.put(state, 1 + chunks + group, inGroup + total);
  const found = gpu.settle(state, groupAt, second);
  const inSpan = gpu.warp.sum(lane === 31 ? 0 : found);
  const before = gpu.warp.shuffle(found, 31);
  if (last && group % 32 === 31 && lane === 0)
    gpu.put(state, 1 + chunks + groups + span, before + inSpan + inGroup + total);
  return before + inSpan + inGroup;
};

/**
 * Merrill and Garland: the nearest prefix and all sums after it, 32 chunks at a time. The order
 * depends on which sums are ready first.
 */
const anyFound = (
  state: Words,
  chunk: number,
  _chunks: number,
  total: number,
  gpu: Gpu,
): number => {
  const { lane } = gpu;
  if (lane === 0)
    gpu.volatileStore(
      state,
      1 + chunk,
      gpu.u64(gpu.u32(total)) | (chunk === 0 ? 0x200000000 : 0x100000000),
    );
  let sum = 0;
  let at = chunk - 1;
  while (at >= 0) {
    const own = at - lane;
    let word = gpu.u64(0x200000000);
    if (own >= 0) {
      do word = gpu.volatileLoad(state, 1 + own);
      while (word < 0x100000000);
    }
    const prefixes = gpu.warp.ballot(word >= 0x200000000);
    // Lanes up to the nearest prefix count.
    const nearest = gpu.i32(gpu.popcount((prefixes & (0 - prefixes)) - 1));
    sum += gpu.warp.sum(lane <= nearest ? gpu.i32(word) : 0);
    at = prefixes !== 0 ? -1 : at - 32;
  }
  if (lane === 0 && chunk > 0)
    gpu.volatileStore(state, 1 + chunk, gpu.u64(gpu.u32(sum + total)) | 0x200000000);
  return sum;
};

/** Not a scan: the cost of everything but the look-back. */
const nothing = (state: Words, chunk: number, _chunks: number, total: number, gpu: Gpu): number => {
  if (gpu.lane === 0) gpu.volatileStore(state, 1 + chunk, gpu.u64(gpu.u32(total)) | 0x100000000);
  return 0;
};

const LOOK_BACKS = {
  steps: deviceFunction(inSteps as never, { uses: { put, get } as never }),
  once: deviceFunction(atOnce as never, { uses: { put, settle } as never }),
  any: anyFound,
  none: nothing,
} as const;

interface Plan {
  readonly block: number;
  /** Runs of four elements of a thread. */
  readonly times: number;
  readonly look: keyof typeof LOOK_BACKS | 'block';
  /**
   * Whether blocks take numbers as they begin, or are assumed to begin in the order of their index.
   */
  readonly ticket: boolean;
  readonly streaming?: boolean;
  /**
   * Blocks of each multiprocessor, which take one chunk after another; then the next is read while
   * this one looks back.
   */
  readonly persistent?: number;
  /** Chunks that are copied to shared memory ahead. */
  readonly stages?: number;
}

interface Constants {
  readonly BLOCK: number;
  readonly TIMES: number;
  readonly TICKET: boolean;
  readonly STREAMING: boolean;
  readonly STAGES: number;
  readonly look: LookBack;
}

interface Args {
  readonly out: Words;
  readonly state: Words;
  readonly x: { readonly length: number; readonly [index: number]: number };
  readonly chunks: number;
}

type ScanGpu = Gpu & Constants;

/** One chunk for each block. */
const oneChunk = ({ out, state, x, chunks }: Args, gpu: ScanGpu): void => {
  const warps = gpu.shared.i32(gpu.BLOCK / 32);
  const turn = gpu.shared.i32(2);
  const values = gpu.local.i32(4 * gpu.TIMES);
  const starts = gpu.local.i32(gpu.TIMES);
  const { lane, warpIdx } = gpu;
  let chunk = gpu.blockIdx.x;
  if (gpu.TICKET) {
    if (gpu.threadIdx.x === 0) turn[0] = gpu.i32(gpu.atomicAdd(state as never, 0, 1));
    gpu.block.sync();
    chunk = turn[0]!;
  }
  const first = chunk * (gpu.BLOCK * gpu.TIMES) + warpIdx * (32 * gpu.TIMES) + lane;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    for (let k = 0; k < 4; k++)
      values[j * 4 + k] = gpu.STREAMING
        ? gpu.streamingLoad(x, (first + j * 32) * 4 + k)
        : x[(first + j * 32) * 4 + k]!;
  }
  let sum = 0;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
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
  if (lane === 0) warps[warpIdx] = sum;
  gpu.block.sync();
  let start = 0;
  let total = 0;
  gpu.unroll(gpu.BLOCK / 32);
  for (let warp = 0; warp < gpu.BLOCK / 32; warp++) {
    if (warp < warpIdx) start += warps[warp]!;
    total += warps[warp]!;
  }
  if (warpIdx === 0) {
    const before = gpu.look(state, chunk, chunks, total);
    if (lane === 0) turn[1] = before;
  }
  gpu.block.sync();
  start += turn[1]!;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    const from = start + starts[j]!;
    for (let k = 0; k < 4; k++) {
      if (gpu.STREAMING)
        gpu.streamingStore(out, (first + j * 32) * 4 + k, from + values[j * 4 + k]!);
      else out[(first + j * 32) * 4 + k] = from + values[j * 4 + k]!;
    }
  }
};

/**
 * One chunk for each block, which looks back with all its threads at once: one for each earlier
 * chunk of the group, the last for the sum up to the end of the group before. A group has as many
 * chunks as a block has threads: only the ends of groups wait for one another in a row.
 */
const byBlock = ({ out, state, x, chunks }: Args, gpu: ScanGpu & Telling): void => {
  const warps = gpu.shared.i32(gpu.BLOCK / 32);
  const found = gpu.shared.i32(gpu.BLOCK / 32 + 1);
  const turn = gpu.shared.i32(1);
  const values = gpu.local.i32(4 * gpu.TIMES);
  const starts = gpu.local.i32(gpu.TIMES);
  const { lane, warpIdx } = gpu;
  const t = gpu.threadIdx.x;
  let chunk = gpu.blockIdx.x;
  if (gpu.TICKET) {
    if (t === 0) turn[0] = gpu.i32(gpu.atomicAdd(state as never, 0, 1));
    gpu.block.sync();
    chunk = turn[0]!;
  }
  const first = chunk * (gpu.BLOCK * gpu.TIMES) + warpIdx * (32 * gpu.TIMES) + lane;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    for (let k = 0; k < 4; k++)
      values[j * 4 + k] = gpu.STREAMING
        ? gpu.streamingLoad(x, (first + j * 32) * 4 + k)
        : x[(first + j * 32) * 4 + k]!;
  }
  let sum = 0;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
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
  if (lane === 0) warps[warpIdx] = sum;
  gpu.block.sync();
  let start = 0;
  let total = 0;
  gpu.unroll(gpu.BLOCK / 32);
  for (let warp = 0; warp < gpu.BLOCK / 32; warp++) {
    if (warp < warpIdx) start += warps[warp]!;
    total += warps[warp]!;
  }
  const group = chunk / gpu.BLOCK;
  const within = chunk % gpu.BLOCK;
  if (t === 0) gpu.put(state, 1 + chunk, total);
  let word = 0;
  if (t < within) word = gpu.get(state, 1 + group * gpu.BLOCK + t);
  if (t === gpu.BLOCK - 1) {
    let upTo = 0;
    if (group > 0) upTo = gpu.get(state, chunks + group);
    found[gpu.BLOCK / 32] = upTo;
  }
  word = gpu.warp.sum(word);
  if (lane === 0) found[warpIdx] = word;
  gpu.block.sync();
  let before = found[gpu.BLOCK / 32]!;
  gpu.unroll(gpu.BLOCK / 32);
  for (let warp = 0; warp < gpu.BLOCK / 32; warp++) before += found[warp]!;
  if (t === 0 && within === gpu.BLOCK - 1) gpu.put(state, 1 + chunks + group, before + total);
  start += before;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    const from = start + starts[j]!;
    for (let k = 0; k < 4; k++) {
      if (gpu.STREAMING)
        gpu.streamingStore(out, (first + j * 32) * 4 + k, from + values[j * 4 + k]!);
      else out[(first + j * 32) * 4 + k] = from + values[j * 4 + k]!;
    }
  }
};

const signature = { out: output(i32), state: inout(u64), x: input(i32), chunks: i32 } as const;

function nameOf({ block, times, look, ticket, streaming, persistent, stages }: Plan): string {
  const walk =
    persistent === undefined
      ? ticket
        ? 'a ticket for each block'
        : 'blocks by index'
      : `${persistent} blocks per SM, ${stages} ahead in shared memory`;
  return `${block} x ${times * 4}, ${look}, ${walk}${streaming === true ? ', streaming' : ''}`;
}

const plans: Plan[] = [];
// Measured first on an H200: the best variants that look back by a warp, and the possible gain.
for (const look of ['once', 'any', 'none', 'steps'] as const)
  plans.push(
    { block: 256, times: 4, look, ticket: true },
    { block: 256, times: 8, look, ticket: true, streaming: true },
  );
plans.push(
  { block: 512, times: 8, look: 'once', ticket: false },
  { block: 512, times: 8, look: 'once', ticket: false, streaming: true },
);
for (const [block, times] of [
  [256, 4],
  [256, 6],
  [256, 8],
  [512, 4],
  [512, 6],
  [512, 8],
  [1024, 4],
  [1024, 2],
  [128, 8],
] as const) {
  for (const ticket of [true, false]) {
    for (const streaming of [true, false])
      plans.push({ block, times, look: 'block', ticket, streaming });
  }
}
for (const [block, times, persistent, stages] of [
  [256, 4, 3, 4],
  [256, 4, 4, 3],
  [256, 4, 6, 2],
  [256, 2, 6, 4],
  [256, 2, 7, 3],
  [256, 8, 2, 3],
  [256, 8, 3, 2],
  [512, 4, 2, 3],
  [512, 4, 1, 6],
  [512, 4, 3, 2],
  [512, 2, 3, 4],
  [512, 2, 4, 3],
  [1024, 2, 2, 3],
  [1024, 4, 1, 3],
  [256, 6, 4, 2],
  [256, 5, 5, 2],
  [128, 8, 6, 2],
  [192, 8, 4, 2],
  [384, 8, 2, 2],
  [256, 6, 3, 3],
  [384, 6, 2, 3],
  [512, 6, 2, 2],
  [256, 10, 2, 2],
  [128, 8, 4, 3],
] as const) {
  for (const streaming of [true, false])
    plans.push({ block, times, look: 'block', ticket: true, streaming, persistent, stages });
}

const N = Number(process.argv[2] ?? 64 * 2 ** 20);
await using device = await Device.open();
const { core } = device;
const { stream } = core;
const multiprocessors = device.kind === 'cuda' ? device.properties.multiprocessorCount : 2;
const [x, out, state] = [
  core.alloc(i32, N),
  core.alloc(i32, N),
  core.alloc(u64, 4 + Math.ceil(N / 512) * 2),
];
await x.write(
  stream,
  new Int32Array(N).map((_, i) => (i % 10) - ((i * 7) % 3)),
);
const host = await x.read(stream);
const expected = new Int32Array(N);
for (let i = 0, sum = 0; i < N; i++) expected[i] = sum = (sum + host[i]!) | 0;

const tensors = {
  out: Tensor.of(out, [N]),
  state: Tensor.of(state, [state.length]),
  x: Tensor.of(x, [N]),
};

const variants = plans.map((plan): Variant => {
  const { block, times, look, ticket, streaming = false, persistent, stages = 0 } = plan;
  const chunks = Math.floor(N / (block * times * 4));
  const alone = look === 'block' && persistent !== undefined;
  const uses = {
    BLOCK: block,
    TIMES: times,
    TICKET: ticket,
    STREAMING: streaming,
    STAGES: stages,
    ...(alone ? { tell, hear } : look === 'block' ? { put, get } : { look: LOOK_BACKS[look] }),
  };
  const body = look === 'block' ? (alone ? scanAhead : byBlock) : oneChunk;
  const name = nameOf(plan);
  const made = kernel(
    `scan_${block}_${times}`,
    signature,
    body as never,
    { uses } as never,
  ) as unknown as (
    args: unknown,
    options: unknown,
  ) => { runOn(on: typeof stream): PromiseLike<unknown> };
  const grid = Math.min(chunks, persistent === undefined ? chunks : persistent * multiprocessors);
  const op = made(
    { ...tensors, chunks },
    { grid, block, ...(stages > 0 ? { sharedBytes: stages * block * times * 16 } : {}) },
  );
  return {
    name,
    launch: () => op.runOn(stream),
    ...(alone ? { first: () => state.fill(stream, 0n) } : { before: () => state.fill(stream, 0n) }),
    ...(look === 'none'
      ? {}
      : {
          async prove() {
            const result = await out.read(stream);
            for (let i = 0; i < chunks * block * times * 4; i++)
              if (result[i] !== expected[i])
                throw new Error(`out[${i}] is ${result[i]}, not ${expected[i]}`);
            await out.fill(stream, 0);
          },
        }),
  };
});
const wanted = process.argv[3] ?? '';
await compare(
  device,
  `scan of ${N} i32`,
  8 * N,
  variants.filter(({ name }) => name.includes(wanted)),
);
for (const each of [x, out, state]) each.close();
