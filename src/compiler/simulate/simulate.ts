/** Runs a kernel as JavaScript, thread by thread, with every check that a device does not make. */
import type { KernelTree } from '../tree.js';
import { bindArguments } from './arguments.js';
import type { HostArguments } from './arguments.js';
import { sharedOf } from './declared-memory.js';
import type { SharedMemoryOptions } from './declared-memory.js';
import { axes, indices, named } from './dimensions.js';
import type { Dimensions } from './dimensions.js';
import { Failure } from './failure.js';
import type { Index3, Locate, SimulationError } from './failure.js';
import { simulationError } from './positions.js';
import { Deadlock, ThreadFailure, runTogether } from './schedule.js';
import type { Block, Thread } from './schedule.js';
import { compile } from './script.js';
import { threadViews } from './thread-view.js';

export type { Dimensions } from './dimensions.js';

export interface SimulateOptions extends SharedMemoryOptions {
  readonly grid: Dimensions;
  readonly block: Dimensions;
  /**
   * Tensors as typed arrays, which the kernel reads and writes in place; scalars and structures.
   * All have their names. See {@link HostArray}.
   */
  readonly args: HostArguments;
  /** Receives what the kernel prints. Default: whole lines go to console.log. */
  readonly print?: (text: string) => void;
  /** Name of the generated script. */
  readonly sourceURL?: string;
  /** Gives the place of a span in the user's file, for errors and for breakpoints. */
  readonly locate?: Locate;
}

/** The limit of threads of a block on every device. */
const MOST_THREADS = 1024;

/** Prints the kernel's texts in whole lines. */
function linePrinter(): { print: (text: string) => void; finish: () => void } {
  let rest = '';
  return {
    print: (text) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      for (const line of lines) console.log(line);
    },
    finish: () => {
      if (rest !== '') console.log(rest);
    },
  };
}

/**
 * Runs every thread of the grid on this thread of Node, as JavaScript with a GPU's results, bit for
 * bit. Two exceptions: a NaN is always the one that PTX's arithmetic gives, and `gpu.fast` is
 * rounded once.
 *
 * Blocks run one after the other; those of a kernel with a barrier of the grid run in turns. Output
 * arrays are written in place. Indices are checked.
 *
 * @throws {@link SimulationError} with thread, block and source line; {@link UnfitArgument} for
 *   arguments that do not fit; RangeError for a grid or block beyond the limits of all devices
 */
export function simulateKernel(tree: KernelTree, options: SimulateOptions): void {
  const grid = axes('grid', options.grid);
  const block = axes('block', options.block);
  if (block[0] * block[1] * block[2] > MOST_THREADS)
    throw new RangeError(
      `simulate: a block has at most ${MOST_THREADS} threads, but block is ` +
        `${block.join(' × ')}. Pass a smaller block and a larger grid.`,
    );
  const { values, finish } = bindArguments(tree, options.args);
  const kernel = compile(tree, options);
  const printer = linePrinter();
  const fail = (failure: Failure, thread?: Index3, blockIndex?: Index3): SimulationError =>
    simulationError(tree, kernel.sites, options.locate, failure, thread, blockIndex);
  const view = threadViews(
    tree,
    grid,
    block,
    options.sharedBytes ?? 0,
    options.print ?? printer.print,
  );

  const threadsOf = (blockIndex: Index3): Block => {
    const blockIdx = named(blockIndex);
    const shared = sharedOf(tree, options);
    const threads: Thread[] = [];
    for (const index of indices(block)) {
      const run = kernel.run(
        view(index, threads.length, blockIndex, blockIdx),
        ...values,
        ...shared,
      ) as Thread['run'];
      threads.push({
        block: blockIndex,
        index,
        lane: threads.length & 31,
        run,
        waits: undefined,
        result: undefined,
        ended: false,
      });
    }
    return threads;
  };
  const runOneByOne = (blockIndex: Index3): void => {
    const blockIdx = named(blockIndex);
    const shared = sharedOf(tree, options);
    let linear = 0;
    for (const index of indices(block)) {
      try {
        kernel.run(view(index, linear++, blockIndex, blockIdx), ...values, ...shared);
      } catch (error) {
        throw error instanceof Failure ? fail(error, index, blockIndex) : error;
      }
    }
  };

  try {
    if (!kernel.generator) for (const blockIndex of indices(grid)) runOneByOne(blockIndex);
    else if (tree.cooperative) runTogether([...indices(grid)].map(threadsOf));
    else for (const blockIndex of indices(grid)) runTogether([threadsOf(blockIndex)]);
  } catch (error) {
    if (!(error instanceof ThreadFailure)) throw error;
    const { cause, thread } = error;
    if (!(cause instanceof Failure)) throw cause;
    throw cause instanceof Deadlock ? fail(cause) : fail(cause, thread.index, thread.block);
  } finally {
    printer.finish();
    finish();
  }
}
