/**
 * Sorting of long rows by digits of 8 bits of their keys, the lowest digit first. Each pass keeps
 * the order of equal digits. A pass counts the digits of each tile; a scan of the counts gives the
 * places of each tile's elements of each digit, and the elements are moved there.
 */
import { i32, i64, inout, input, output, u32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import type { Work } from './operation.js';
import { keyOf, keyTypeOf } from './ordered-keys.js';
import { isWide } from './reduction-kernels.js';
import { addScan } from './scan.js';
import { wordOf, words } from './words.js';

/** Threads of a block: one for each digit. */
const BLOCK = 256;
const EACH = 16;
const TILE = BLOCK * EACH;

interface RadixGpu extends Gpu {
  /** Whether positions are moved too, and whether these are the elements' places (first pass). */
  readonly POSITIONS: boolean;
  readonly FIRST: boolean;
  /** Whether elements are written. */
  readonly WORDS: boolean;
  key(word: number): number;
  wordsOfThread(): KernelArray<number>;
  wordsOfTile(): KernelArray<number>;
}

const counts = new KernelFamily(
  'radix_counts',
  (
    {
      out,
      x,
      tiles,
      count,
      shift,
    }: { out: Output; x: Input; tiles: number; count: number; shift: number },
    gpu: RadixGpu,
  ) => {
    const own = gpu.wordsOfThread();
    const counted = gpu.shared.u32(256);
    const t = gpu.threadIdx.x;
    const row = gpu.blockIdx.x / tiles;
    const tile = gpu.blockIdx.x % tiles;
    counted[t] = 0;
    gpu.block.sync();
    const first = tile * 4096 + t;
    gpu.unroll(16);
    for (let j = 0; j < 16; j++) own[j] = x[row * count + Math.min(first + j * 256, count - 1)]!;
    gpu.unroll(16);
    for (let j = 0; j < 16; j++) {
      if (first + j * 256 < count)
        gpu.atomicAdd(counted, gpu.i32((gpu.key(own[j]!) >>> shift) & 255), 1);
    }
    gpu.block.sync();
    out[(row * 256 + t) * tiles + tile] = counted[t]!;
  },
);

interface MoveArgs {
  readonly out: Output;
  readonly positionsOut: Output;
  readonly x: Input;
  readonly positions: Input;
  /**
   * The number of elements with lower digits, or with the same in tiles before, by digit and tile.
   */
  readonly before: Input;
  readonly tiles: number;
  readonly count: number;
  /** Bits below the digit. */
  readonly shift: number;
}

const moves = new KernelFamily(
  'radix_moves',
  ({ out, positionsOut, x, positions, before, tiles, count, shift }: MoveArgs, gpu: RadixGpu) => {
    const ofWarps = gpu.shared.u32(8, 256);
    const starts = gpu.shared.u32(256);
    const shifts = gpu.shared.u32(256);
    const sums = gpu.shared.u32(8);
    const sorted = gpu.wordsOfTile();
    const own = gpu.wordsOfThread();
    const ranks = gpu.local.i32(16);
    const t = gpu.threadIdx.x;
    const { lane, warpIdx } = gpu;
    const row = gpu.blockIdx.x / tiles;
    const tile = gpu.blockIdx.x % tiles;
    const within = gpu.i32(Math.min(4096, count - tile * 4096));
    for (let warp = 0; warp < 8; warp++) ofWarps[warp]![t] = 0;
    // A warp has 512 adjacent elements, and reads 32 at a time: their order is turn, then lane.
    const first = warpIdx * 512 + lane;
    const from = row * count + tile * 4096 + first;
    gpu.unroll(16);
    for (let j = 0; j < 16; j++) own[j] = first + j * 32 < within ? x[from + j * 32]! : 0;
    gpu.block.sync();
    const below = (gpu.u32(1) << lane) - 1;
    gpu.unroll(16);
    for (let j = 0; j < 16; j++) {
      const digit = gpu.i32((gpu.key(own[j]!) >>> shift) & 255);
      const here = first + j * 32 < within;
      // The lanes that have the same digit.
      let alike = gpu.warp.ballot(here);
      gpu.unroll(8);
      for (let bit = 0; bit < 8; bit++) {
        const set = ((digit >> bit) & 1) !== 0;
        const those = gpu.warp.ballot(set);
        alike &= set ? those : ~those;
      }
      const earlier = gpu.popcount(alike & below);
      const sofar = here ? gpu.i32(ofWarps[warpIdx]![digit]!) : 0;
      gpu.warp.sync();
      if (here && earlier === 0) ofWarps[warpIdx]![digit] = gpu.u32(sofar + gpu.popcount(alike));
      gpu.warp.sync();
      ranks[j] = sofar + earlier;
    }
    gpu.block.sync();
    // Each thread has one digit: it computes where the digit begins in the tile and in each warp.
    let total = gpu.u32(0);
    for (let warp = 0; warp < 8; warp++) {
      const counted = ofWarps[warp]![t]!;
      ofWarps[warp]![t] = total;
      total += counted;
    }
    let upTo = total;
    for (let step = 1; step < 32; step <<= 1) {
      const other = gpu.warp.shuffleUp(upTo, step);
      if (lane >= step) upTo += other;
    }
    if (lane === 31) sums[warpIdx] = upTo;
    gpu.block.sync();
    for (let warp = 0; warp < 7; warp++) if (warp < warpIdx) upTo += sums[warp]!;
    starts[t] = upTo - total;
    shifts[t] = gpu.u32(before[(row * 256 + t) * tiles + tile]!) - (upTo - total);
    gpu.block.sync();
    gpu.unroll(16);
    for (let j = 0; j < 16; j++) {
      const digit = gpu.i32((gpu.key(own[j]!) >>> shift) & 255);
      ranks[j] = ranks[j]! + gpu.i32(starts[digit]! + ofWarps[warpIdx]![digit]!);
      if (first + j * 32 < within) sorted[ranks[j]!] = own[j]!;
    }
    gpu.block.sync();
    // Adjacent elements of the sorted tile go to adjacent places, except where a digit ends.
    const to = gpu.local.i32(16);
    gpu.unroll(16);
    for (let j = 0; j < 16; j++) {
      const i = t + j * 256;
      if (i < within) {
        const word = sorted[i]!;
        to[j] = gpu.i32(shifts[gpu.i32((gpu.key(word) >>> shift) & 255)]! + gpu.u32(i));
        if (gpu.WORDS) out[row * count + to[j]!] = word;
      }
    }
    if (gpu.POSITIONS) {
      // Positions use the same memory: with words of 64 bits there is no room for both.
      gpu.block.sync();
      gpu.unroll(16);
      for (let j = 0; j < 16; j++) {
        if (first + j * 32 < within)
          sorted[ranks[j]!] = gpu.FIRST
            ? gpu.i32(tile * 4096 + first + j * 32)
            : positions[from + j * 32]!;
      }
      gpu.block.sync();
      gpu.unroll(16);
      for (let j = 0; j < 16; j++)
        if (t + j * 256 < within)
          positionsOut[row * count + to[j]!] = gpu.i32(sorted[t + j * 256]!);
    }
  },
);

const OF_THREAD = {
  u32: (gpu: Gpu): KernelArray<number> => gpu.local.u32(16),
  u64: (gpu: Gpu): KernelArray<number> => gpu.local.u64(16),
} as const;
const OF_TILE = {
  u32: (gpu: Gpu): KernelArray<number> => gpu.shared.u32(4096),
  u64: (gpu: Gpu): KernelArray<number> => gpu.shared.u64(4096),
} as const;

/**
 * Adds the launches that sort rows of `count` elements: elements into `out`, and their positions,
 * of i32, into `positions`.
 */
export function addRadixSort(
  work: Work,
  x: KernelTensor,
  rows: number,
  count: number,
  descending: boolean,
  out: KernelTensor | undefined,
  positions: KernelTensor | undefined,
): void {
  const { dtype } = x;
  const word: KernelDType = wordOf(dtype);
  const type = keyTypeOf(dtype);
  const passes = dtype.bytes;
  const tiles = Math.ceil(count / TILE);
  const wide = isWide(x);
  const index = wide ? { index: 'i64' as const } : {};
  const whole = wide ? i64 : i32;
  const name = `${dtype.name}${descending ? '_descending' : ''}`;
  const none = (of: KernelDType): KernelTensor => work.temporary(of, [1]);
  const space = (of: KernelDType): KernelTensor => work.temporary(of, [x.size]);
  const counted = work.temporary(u32, [rows * 256 * tiles]) as unknown as KernelTensor;
  const before = work.temporary(u32, [rows * 256 * tiles]) as unknown as KernelTensor;
  // Passes write to two buffers in turn, of which the result is one, and the last pass to the
  // result. For positions alone the last pass does not write elements.
  const turnsOf = (
    result: KernelTensor | undefined,
    of: KernelDType,
  ): readonly [KernelTensor, KernelTensor] => [
    result ?? (passes > 2 ? space(of) : none(of)),
    passes > 1 ? space(of) : none(of),
  ];
  const elements = turnsOf(out === undefined ? undefined : words(out), word);
  const places =
    positions === undefined
      ? ([none(i32), none(i32)] as const)
      : turnsOf(positions.reshape([x.size] as never), i32);
  let [from, at]: [KernelTensor, KernelTensor] = [words(x), none(i32)];
  for (let pass = 0; pass < passes; pass++) {
    const turn = (passes - 1 - pass) % 2;
    const [shift, POSITIONS, FIRST, WORDS] = [
      pass * 8,
      positions !== undefined,
      positions !== undefined && pass === 0,
      out !== undefined || pass < passes - 1,
    ];
    const uses = {
      POSITIONS,
      FIRST,
      WORDS,
      key: keyOf(dtype, descending),
      wordsOfThread: OF_THREAD[type],
      wordsOfTile: OF_TILE[type],
    };
    const counting = counts.member(`${name}${wide ? '_wide' : ''}`, () => ({
      signature: { out: output(u32), x: input(word), tiles: whole, count: whole, shift: i32 },
      uses,
      block: BLOCK,
    }));
    work.add(
      counting({ out: counted, x: from, tiles, count, shift }, { grid: rows * tiles, ...index }),
    );
    addScan(work, counted, before, rows, 256 * tiles, true, 'u32');
    const move = moves.member(
      `${name}${FIRST ? '_first' : ''}${POSITIONS ? '_positions' : ''}${WORDS ? '' : '_only'}` +
        `${wide ? '_wide' : ''}`,
      () => ({
        signature: {
          out: inout(word),
          positionsOut: inout(i32),
          x: input(word),
          positions: input(i32),
          before: input(u32),
          tiles: whole,
          count: whole,
          shift: i32,
        },
        uses,
        block: BLOCK,
      }),
    );
    work.add(
      move(
        {
          out: elements[turn]!,
          positionsOut: places[turn]!,
          x: from,
          positions: at,
          before,
          tiles,
          count,
          shift,
        },
        { grid: rows * tiles, ...index },
      ),
    );
    from = elements[turn]!;
    at = POSITIONS ? places[turn]! : at;
  }
}
