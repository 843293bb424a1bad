/** The `gpu` of the generated code of one thread: indices and operations. */
import type { KernelTree } from '../tree.js';
import { AsyncCopies } from './async-copies.js';
import { localMemory } from './declared-memory.js';
import { named } from './dimensions.js';
import type { Axes } from './dimensions.js';
import { Failure } from './failure.js';
import type { Index3 } from './failure.js';
import { BLOCK, GRID, TURN, WARP } from './synchronisation.js';
import type { SyncRequest } from './synchronisation.js';
import type { Memory, Value } from './memory.js';
import { formatPrint } from './print-format.js';

/** Indices, other threads, and operations that can end a thread. */
export interface ThreadView {
  readonly threadIdx: Axes;
  readonly blockIdx: Axes;
  readonly blockDim: Axes;
  readonly gridDim: Axes;
  readonly globalId: Axes;
  readonly globalSize: Axes;
  readonly dynamicSharedBytes: number;
  readonly lane: number;
  readonly warpIdx: number;
  readonly block: typeof BLOCK;
  readonly warp: typeof WARP;
  readonly grid: typeof GRID;
  readonly async: AsyncCopies;
  readonly clock: () => bigint;
  readonly globalTimer: () => bigint;
  readonly turn: () => SyncRequest;
  readonly local: (array: number) => Memory;
  readonly print: (format: string, values: readonly Value[]) => void;
  readonly assert: (test: boolean, message: string, site: number) => void;
  readonly trap: (site: number) => never;
}

/**
 * Gives the view of a thread: `index` is its index in its block, `linear` its number there.
 * `blockIdx`: `block` by names.
 */
export type ViewOf = (index: Index3, linear: number, block: Index3, blockIdx: Axes) => ThreadView;

/** Views of the threads of one launch. */
export function threadViews(
  tree: KernelTree,
  grid: Index3,
  block: Index3,
  sharedBytes: number,
  print: (text: string) => void,
): ViewOf {
  const started = performance.now();
  const nanoseconds = (): bigint => BigInt(Math.round((performance.now() - started) * 1e6));
  const common = {
    blockDim: named(block),
    gridDim: named(grid),
    globalSize: { x: grid[0] * block[0], y: grid[1] * block[1], z: grid[2] * block[2] },
    dynamicSharedBytes: sharedBytes,
    block: BLOCK,
    warp: WARP,
    grid: GRID,
    clock: nanoseconds,
    globalTimer: nanoseconds,
    turn: (): SyncRequest => TURN,
    local: (array: number): Memory => localMemory(tree.arrays[array]!),
    print: (format: string, printed: readonly Value[]): void => {
      print(formatPrint(format, printed));
    },
    assert: (test: boolean, message: string, site: number): void => {
      if (!test)
        throw new Failure(
          'assert',
          `the assertion '${message}' failed`,
          'Change the kernel or its arguments, so that the condition holds.',
          site,
        );
    },
    trap: (site: number): never => {
      throw new Failure(
        'trap',
        'the kernel called gpu.trap()',
        'It ends the grid with a failure.',
        site,
      );
    },
  };
  return (index, linear, blockIndex, blockIdx) => ({
    ...common,
    async: new AsyncCopies(),
    blockIdx,
    threadIdx: named(index),
    lane: linear & 31,
    warpIdx: linear >> 5,
    globalId: {
      x: blockIndex[0] * block[0] + index[0],
      y: blockIndex[1] * block[1] + index[1],
      z: blockIndex[2] * block[2] + index[2],
    },
  });
}
