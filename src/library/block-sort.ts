/**
 * Sorting of short rows: a block sorts as many rows as fit in its shared memory, by a bitonic
 * network. Elements are compared by their keys, then by their positions, so that the order of equal
 * elements is kept.
 */
import { i32, i64, input, output } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import type { Work } from './operation.js';
import { LAST_KEY, keyOf, keyTypeOf } from './ordered-keys.js';
import { isWide } from './reduction-kernels.js';
import { wordOf, words } from './words.js';

/** Elements of a block, which limit the length of a row. */
export const LONGEST_SHORT_ROW = 2048;
const BLOCK = 256;

interface BlockSortGpu extends Gpu {
  /** Elements of a row in shared memory, a power of two. */
  readonly PADDED: number;
  /** Whether the elements are those at the positions in `from`. */
  readonly PICKED: boolean;
  readonly WORDS: boolean;
  readonly POSITIONS: boolean;
  key(word: number): number;
  last(): number;
  keys(): KernelArray<number>;
}

interface BlockSortArgs {
  readonly out: Output;
  readonly positions: Output;
  readonly x: Input;
  readonly from: Input;
  /**
   * The number of parts of all rows, and of one. A part has `part` elements, the last one of a row
   * may have fewer, and the first `keep` of them are written.
   */
  readonly parts: number;
  readonly chunks: number;
  readonly part: number;
  readonly keep: number;
  /** Elements of a row of x, and how many of them are sorted. */
  readonly count: number;
  readonly sorted: number;
}

const blockSorts = new KernelFamily(
  'block_sort',
  (
    { out, positions, x, from, parts, chunks, part, keep, count, sorted }: BlockSortArgs,
    gpu: BlockSortGpu,
  ) => {
    const keys = gpu.keys();
    const at = gpu.shared.i32(2048);
    const t = gpu.threadIdx.x;
    const firstPart = gpu.blockIdx.x * (2048 / gpu.PADDED);
    for (let i = t; i < 2048; i += 256) {
      const which = firstPart + i / gpu.PADDED;
      const row = which / chunks;
      const inRow = (which % chunks) * part + (i % gpu.PADDED);
      let key = gpu.last();
      let position = gpu.i32(0x7fffffff);
      if (which < parts && i % gpu.PADDED < part && inRow < sorted) {
        position = gpu.PICKED ? gpu.i32(from[row * sorted + inRow]!) : gpu.i32(inRow);
        key = gpu.key(x[row * count + position]!);
      }
      keys[i] = key;
      at[i] = position;
    }
    gpu.block.sync();
    for (let size = 2; size <= gpu.PADDED; size <<= 1) {
      for (let step = size >> 1; step > 0; step >>= 1) {
        for (let pair = t; pair < 1024; pair += 256) {
          const low = ((pair & ~(step - 1)) << 1) | (pair & (step - 1));
          const high = low | step;
          const keyLow = keys[low]!;
          const keyHigh = keys[high]!;
          const atLow = at[low]!;
          const atHigh = at[high]!;
          const after = keyLow > keyHigh || (keyLow === keyHigh && atLow > atHigh);
          // Rows lie at multiples of PADDED: in the last round all of them are sorted upwards.
          const upwards = size === gpu.PADDED || (low & size) === 0;
          if (after === upwards) {
            keys[low] = keyHigh;
            keys[high] = keyLow;
            at[low] = atHigh;
            at[high] = atLow;
          }
        }
        gpu.block.sync();
      }
    }
    for (let i = t; i < 2048; i += 256) {
      const which = firstPart + i / gpu.PADDED;
      const row = which / chunks;
      const inPart = i % gpu.PADDED;
      const to = (which % chunks) * keep + inPart;
      const written = Math.min(keep, part);
      // The last part of a row may have fewer elements than are kept of the others.
      if (which < parts && inPart < written && (which % chunks) * part + inPart < sorted) {
        const rowLength = (chunks - 1) * keep + Math.min(keep, sorted - (chunks - 1) * part);
        if (gpu.POSITIONS) positions[row * rowLength + to] = at[i]!;
        if (gpu.WORDS) out[row * rowLength + to] = x[row * count + at[i]!]!;
      }
    }
  },
);

const KEYS = {
  u32: (gpu: Gpu): KernelArray<number> => gpu.shared.u32(2048),
  u64: (gpu: Gpu): KernelArray<number> => gpu.shared.u64(2048),
} as const;

/** The elements of rows that are sorted, and the results. */
export interface BlockSort {
  readonly rows: number;
  /** Elements of a row of x. */
  readonly count: number;
  /**
   * Positions in rows of x of the sorted elements, `[rows][sorted]` of i32. Default: all elements.
   */
  readonly from?: KernelTensor;
  readonly sorted: number;
  /** Elements of a part of a row, which are sorted together: at most {@link LONGEST_SHORT_ROW}. */
  readonly part: number;
  /** The number of elements of each part, the first ones in order, that are written. */
  readonly keep: number;
  readonly descending: boolean;
  /** The elements, of x's dtype, and their positions, of i32: for each row, part after part. */
  readonly out?: KernelTensor;
  readonly positions?: KernelTensor;
}

export function addBlockSort(
  work: Work,
  x: KernelTensor,
  { rows, count, from, sorted, part, keep, descending, out, positions }: BlockSort,
): void {
  const chunks = Math.ceil(sorted / part);
  const PADDED = 2 ** Math.ceil(Math.log2(Math.max(2, Math.min(part, sorted))));
  const word: KernelDType = wordOf(x.dtype);
  const type = keyTypeOf(x.dtype);
  const wide = isWide(x);
  const [PICKED, WORDS, POSITIONS] = [
    from !== undefined,
    out !== undefined,
    positions !== undefined,
  ];
  const key =
    `${x.dtype.name}_${PADDED}${descending ? '_descending' : ''}${PICKED ? '_picked' : ''}` +
    `${WORDS ? '_words' : ''}${POSITIONS ? '_positions' : ''}${wide ? '_wide' : ''}`;
  const launch = blockSorts.member(key, () => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(word),
        positions: output(i32),
        x: input(word),
        from: input(i32),
        parts: whole,
        chunks: whole,
        part: whole,
        keep: whole,
        count: whole,
        sorted: whole,
      },
      uses: {
        PADDED,
        PICKED,
        WORDS,
        POSITIONS,
        key: keyOf(x.dtype, descending),
        last: LAST_KEY[type],
        keys: KEYS[type],
      },
      block: BLOCK,
    };
  });
  const none = (dtype: KernelDType): KernelTensor => work.temporary(dtype, [1]);
  work.add(
    launch(
      {
        out: out === undefined ? none(word) : words(out),
        positions: positions ?? none(i32),
        x: words(x),
        from: from ?? none(i32),
        parts: rows * chunks,
        chunks,
        part,
        keep,
        count,
        sorted,
      },
      {
        grid: Math.ceil((rows * chunks) / (LONGEST_SHORT_ROW / PADDED)),
        ...(wide ? { index: 'i64' } : {}),
      },
    ),
  );
}
