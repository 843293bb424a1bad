/** Tiles of sequences of different lengths, whose positions are one axis. */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { Gpu, KernelArray } from './kernel-family.js';

/**
 * The most tiles of so many positions of packed sequences. They are numbered so that the first one
 * of sequence s is s more than its first position divided by a tile's positions: some are empty.
 */
export const packedTilesOf = (positions: number, sequences: number, rows: number): number =>
  Math.floor(positions / rows) + sequences;

/**
 * What a kernel knows of the sequence of a tile, by place: the first of the tile's queries, counted
 * within the sequence, and of queries and of keys the sequence's number and its first position.
 */
export const SEQUENCE = {
  TOP: 0,
  OWN_QUERIES: 1,
  QUERIES_FROM: 2,
  OWN_KEYS: 3,
  KEYS_FROM: 4,
} as const;
type SequenceConstants = typeof SEQUENCE;

type Offsets = readonly number[];

interface FindGpu extends Gpu, SequenceConstants {
  readonly ROWS: number;
}

/**
 * Finds the sequence of a tile. The tile is empty where its first query is below 0, or not below
 * the sequence's queries. Wrong offsets lead to wrong results, and not out of the tensors.
 */
const findSequence = (
  found: KernelArray<number>,
  tile: number,
  queryOffsets: Offsets,
  keyOffsets: Offsets,
  sequences: number,
  allQueries: number,
  allKeys: number,
  gpu: FindGpu,
): void => {
  const { ROWS, TOP, OWN_QUERIES, QUERIES_FROM, OWN_KEYS, KEYS_FROM } = gpu;
  let low = 0;
  let high = sequences - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (queryOffsets[middle]! / ROWS + middle <= tile) low = middle;
    else high = middle - 1;
  }
  const from = queryOffsets[low]!;
  const firstQuery = Math.min(Math.max(from, 0), allQueries);
  const firstKey = Math.min(Math.max(keyOffsets[low]!, 0), allKeys);
  found[TOP] = (tile - low - from / ROWS) * ROWS;
  found[OWN_QUERIES] = Math.min(queryOffsets[low + 1]!, allQueries) - firstQuery;
  found[QUERIES_FROM] = firstQuery;
  found[OWN_KEYS] = Math.max(0, Math.min(keyOffsets[low + 1]!, allKeys) - firstKey);
  found[KEYS_FROM] = firstKey;
};

/** What {@link sequenceUses} gives to a body. */
export interface SequenceGpu extends SequenceConstants {
  sequence(): KernelArray<number>;
  findSequence(
    found: KernelArray<number>,
    tile: number,
    queryOffsets: Offsets,
    keyOffsets: Offsets,
    sequences: number,
    allQueries: number,
    allKeys: number,
  ): void;
}

/** The functions and constants of {@link SequenceGpu}, for tiles of so many queries. */
export const sequenceUses = (ROWS: number, wide = false) => ({
  ...SEQUENCE,
  sequence: wide
    ? (gpu: Gpu): KernelArray<number> => gpu.local.i64(5)
    : (gpu: Gpu): KernelArray<number> => gpu.local.i32(5),
  findSequence: deviceFunction(findSequence as never, {
    uses: { ...SEQUENCE, ROWS },
  }) as DeviceFunction,
});
