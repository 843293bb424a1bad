// The context block of a block of threads: what its code reads of the grid, its memory and its
// parameters.

import { CTX } from '../../../ptx/index.js';
import type { BlockSlot, SlotLayout } from './block-slots.js';

/** What is the same for all blocks of a grid. */
export interface GridContext {
  readonly grid: Int32Array;
  readonly block: Int32Array;
  readonly threads: number;
  readonly gridId: number;
  /** The words of the barrier of a cooperative launch's blocks. */
  readonly barrier: BlockSlot | undefined;
  readonly params: Int32Array;
  readonly func: { readonly paramWords: number };
}

/** Writes what does not change from block to block of a slot. */
export function writeBlockContext(
  words: Int32Array,
  address: number,
  layout: SlotLayout,
  { grid, block, threads, gridId, barrier, params, func }: GridContext,
  clusterWord: number,
  rank: number,
  stride: number,
): void {
  const at = address >>> 2;
  words[at + (CTX.gridDim >> 2)] = grid[0]!;
  words[at + (CTX.gridDim >> 2) + 1] = grid[1]!;
  words[at + (CTX.gridDim >> 2) + 2] = grid[2]!;
  words[at + (CTX.blockDim >> 2)] = block[0]!;
  words[at + (CTX.blockDim >> 2) + 1] = block[1]!;
  words[at + (CTX.blockDim >> 2) + 2] = block[2]!;
  words[at + (CTX.params >> 2)] = address + layout.params;
  words[at + (CTX.shared >> 2)] = address + layout.shared;
  words[at + (CTX.sharedBytes >> 2)] = layout.sharedBytes;
  words[at + (CTX.scratch >> 2)] = address + layout.scratch;
  words[at + (CTX.threads >> 2)] = threads;
  words[at + (CTX.gridId >> 2)] = gridId;
  words[at + (CTX.flags >> 2)] = 0;
  words[at + (CTX.workspace >> 2)] = barrier?.address ?? 0;
  words[at + (CTX.clockLo >> 2)] = words[at + (CTX.clockHi >> 2)] = 0;
  words[at + (CTX.cluster >> 2)] = clusterWord;
  words[at + (CTX.clusterRank >> 2)] = rank;
  words[at + (CTX.clusterStride >> 2)] = stride;
  const paramsAt = (address + layout.params) >>> 2;
  for (let i = 0; i < func.paramWords; i++) words[paramsAt + i] = params[i]!;
}
