/**
 * The gradient of queries as a sum that warp groups add up in memory: its order, which is that of
 * their registers, and the kernel that reads it.
 */
import { f32, i32 } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Launchable } from './kernel-family.js';
import type { BackwardForm, BackwardPlan } from './warp-group-attention-backward.js';

/** The most channels of a group that has the gradients of its own keys. */
const MOST_WHOLE_CHANNELS = 128;

/** Whether two warp groups share keys, and each has half of the channels. */
export const isHalved = (channels: number): boolean => channels > MOST_WHOLE_CHANNELS;

/** Channels of the part of a step's gradient of queries that a warp group computes. */
export const widthOf = ({ rows, keys }: BackwardPlan, channels: number): number => {
  if (isHalved(channels)) return channels / 2;
  return rows === 64 ? (channels * 64) / keys : channels;
};

/** Lines of 32 sums of the gradient of a step's queries. */
export const sumLinesOf = ({ rows }: BackwardPlan, channels: number): number =>
  (rows * channels) / 32;

interface AddedArgs {
  /** [matrix][query][channel], as one axis. */
  readonly dq: number[];
  /** [matrix][line][32], as one axis: a thread reads 16 bytes at a time. */
  readonly sums: readonly number[];
  readonly m: number;
  /** Tiles of ROWS queries of a matrix, and groups of four sums of all matrices. */
  readonly tiles: number;
  readonly scale: number;
}

interface AddedGpu extends Gpu {
  readonly ROWS: number;
  readonly CHANNELS: number;
  readonly WIDTH: number;
  /** Channels of the tensor. */
  readonly OWN: number;
}

/**
 * Scales and rounds the sums of the gradient of queries. A thread has four of them, which are those
 * of two rows and two columns. The threads of a warp write rows of up to 64 channels.
 */
const added = new KernelFamily(
  'attention_added_queries',
  ({ dq, sums, m, tiles, scale }: AddedArgs, gpu: AddedGpu) => {
    const { ROWS, CHANNELS, WIDTH, OWN } = gpu;
    // Blocks of 256 threads have 16 of the ROWS · CHANNELS / 1024 pieces of 32 threads.
    const piece = gpu.blockIdx.x * 8 + gpu.warpIdx;
    const tile = piece / ((ROWS * CHANNELS) / 128);
    const matrix = tile / tiles;
    const within = piece % ((ROWS * CHANNELS) / 128);
    // A group has 64 rows of WIDTH channels; 32 of its pieces have the same eight groups of eight.
    const part = within / (WIDTH / 2);
    const eights = ((within % (WIDTH / 2)) / 32) * 8 + ((gpu.lane >> 2) & 7);
    const rowOfPart = within % 32;
    const thread = rowOfPart * 4 + (gpu.lane & 3);
    const first = gpu.i64(tile) * (ROWS * CHANNELS) + part * WIDTH * 64 + eights * 512 + thread * 4;
    const column = (ROWS === 64 ? part * WIDTH : 0) + eights * 8 + (thread & 3) * 2;
    const row =
      (tile % tiles) * ROWS +
      (ROWS === 64 ? 0 : part * 64) +
      (thread >> 5) * 16 +
      ((thread >> 2) & 7);
    const four = gpu.local.f32(4);
    gpu.unroll();
    for (let i = 0; i < 4; i++) four[i] = sums[first + i]! * scale;
    if (column < OWN) {
      gpu.unroll();
      for (let r = 0; r < 2; r++) {
        const to = (gpu.i64(matrix) * m + row + 8 * r) * OWN + column;
        if (row + 8 * r < m) for (let e = 0; e < 2; e++) dq[to + e] = four[r * 2 + e]!;
      }
    }
  },
);

const ADDED_THREADS = 256;

/** Blocks of {@link addedQueries}, for so many tiles: a thread has four sums. */
export const addedGridOf = ({ plan, channels }: BackwardForm, tiles: number): number =>
  (tiles * plan.rows * channels) / (4 * ADDED_THREADS);

/** Gives the kernel that scales and rounds sums of a plan, of so many channels of the tensor. */
export function addedQueries({ plan, dtype, channels }: BackwardForm, own: number): Launchable {
  return added.member(`${dtype.name}_${channels}_${own}_${plan.rows}x${plan.keys}`, () => ({
    signature: {
      dq: output(dtype),
      sums: input(f32),
      m: i32,
      tiles: i32,
      scale: f32,
    },
    uses: { ROWS: plan.rows, CHANNELS: channels, WIDTH: widthOf(plan, channels), OWN: own },
    block: ADDED_THREADS,
  }));
}
