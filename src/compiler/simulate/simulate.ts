/** Runs a kernel as JavaScript, thread by thread, with every check that a device does not make. */
import type { DeclaredArray, KernelTree, Span } from '../tree.js';
import { AsyncCopies } from './async-copies.js';
import { bindArguments } from './arguments.js';
import type { HostArguments } from './arguments.js';
import { Failure, SimulationError } from './failure.js';
import type { Index3, Locate, SourcePosition } from './failure.js';
import { writeJavaScript } from './javascript.js';
import type { KernelJavaScript } from './javascript.js';
import { placeInText } from './mapped-text.js';
import { BLOCK, GRID, TURN, WARP } from './meeting.js';
import type { Meeting } from './meeting.js';
import { storageBytes } from '../storage-types.js';
import { memoryOf } from './memory.js';
import type { Memory, Value } from './memory.js';
import { formatPrint } from './print-format.js';
import { RUNTIME } from './runtime.js';
import { Deadlock, ThreadFailure, runTogether } from './schedule.js';
import type { Block, Thread } from './schedule.js';

/** Blocks of a grid or threads of a block: one number, or one for each axis. */
export type Dimensions = number | readonly [x: number, y?: number, z?: number];

export interface SimulateOptions {
  readonly grid: Dimensions;
  readonly block: Dimensions;
  /**
   * Tensors as typed arrays, which the kernel works on in place; scalars and structures by name.
   * See {@link HostArray}.
   */
  readonly args: HostArguments;
  /** Bytes of the shared memory whose length the launch gives. */
  readonly sharedBytes?: number;
  /** Takes what the kernel prints. Without it whole lines go to console.log. */
  readonly print?: (text: string) => void;
  /**
   * Whether reading shared memory that no thread has written is an error. Default true; with false
   * it reads zeros.
   */
  readonly checkUninitialized?: boolean;
  /** Name of the generated script. */
  readonly sourceURL?: string;
  /** Where a span stands in the user's file, for errors and for breakpoints. */
  readonly locate?: Locate;
}

/** What a thread of the generated code sees: indices, other threads, and what can end it. */
interface ThreadView {
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
  readonly turn: () => Meeting;
  readonly local: (array: number) => Memory;
  readonly print: (format: string, values: readonly Value[]) => void;
  readonly assert: (test: boolean, message: string, site: number) => void;
  readonly trap: (site: number) => never;
}

interface Axes {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

type KernelFunction = (gpu: ThreadView, ...values: unknown[]) => unknown;

interface Compiled extends KernelJavaScript {
  readonly run: KernelFunction;
}

/** Limits of a block and of a grid, as the driver has them on every device. */
const MOST_THREADS = 1024;

const NAMES = ['x', 'y', 'z'] as const;

function axes(what: 'grid' | 'block', given: Dimensions): Index3 {
  const [x, y = 1, z = 1] = typeof given === 'number' ? [given] : given;
  [x, y, z].forEach((extent, axis) => {
    if (!Number.isInteger(extent) || extent < 1)
      throw new RangeError(
        `simulate: ${what}.${NAMES[axis]!} must be a whole number from 1, but is ` +
          `${typeof extent === 'string' ? `'${extent as string}'` : extent}. Pass the number ` +
          `of ${what === 'grid' ? 'blocks' : 'threads'} on that axis.`,
      );
  });
  return [x, y, z];
}

const named = ([x, y, z]: Index3): Axes => ({ x, y, z });

/** Indices from the first, x fastest. */
function* indices([width, height, depth]: Index3): Generator<Index3> {
  for (let z = 0; z < depth; z++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) yield [x, y, z];
    }
  }
}

/** Scripts are kept with their trees, so that breakpoints stay and nothing is compiled twice. */
const compiled = new WeakMap<
  KernelTree,
  Map<Locate | undefined, Map<string | undefined, Compiled>>
>();

function compile(tree: KernelTree, { locate, sourceURL }: SimulateOptions): Compiled {
  let byLocate = compiled.get(tree);
  if (byLocate === undefined)
    compiled.set(
      tree,
      (byLocate = new Map<Locate | undefined, Map<string | undefined, Compiled>>()),
    );
  let byUrl = byLocate.get(locate);
  if (byUrl === undefined) byLocate.set(locate, (byUrl = new Map<string | undefined, Compiled>()));
  let found = byUrl.get(sourceURL);
  if (found === undefined) {
    const javascript = writeJavaScript(tree, { locate, sourceURL });
    // Indirect: in the global scope, and with the lines that the source map counts.
    const make = (0, eval)(javascript.code) as (runtime: typeof RUNTIME) => KernelFunction;
    byUrl.set(sourceURL, (found = { ...javascript, run: make(RUNTIME) }));
  }
  return found;
}

/** Where a span is, in the user's file or else in the kernel's own text. */
function positionOf(
  tree: KernelTree,
  span: Span | undefined,
  locate: Locate | undefined,
): SourcePosition | undefined {
  if (span === undefined) return undefined;
  const text = tree.texts[span.text];
  const known = locate?.(span);
  if (known !== undefined || text === undefined) return known;
  return { file: `<kernel ${tree.name}>`, ...placeInText(text, span.start) };
}

/** Texts of the kernel's print, in whole lines. */
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

/** Shared arrays of one block, in the order of the tree's. All dynamic ones are the same memory. */
function sharedOf(
  tree: KernelTree,
  { sharedBytes = 0, checkUninitialized = true }: SimulateOptions,
): Memory[] {
  // Rounded up: an array of 8-byte elements ends where the bytes end.
  const dynamic = new ArrayBuffer(sharedBytes);
  const flags = checkUninitialized ? new Uint8Array(sharedBytes) : undefined;
  return tree.arrays
    .filter((array) => array.space !== 'local')
    .map((array) => {
      if (array.space === 'dynamic')
        return memoryOf(array.name, 'shared', array.storage, {
          buffer: dynamic,
          offset: 0,
          bytes: sharedBytes,
          ...(flags && { written: flags }),
        });
      const bytes = array.length * storageBytes[array.storage];
      return memoryOf(array.name, 'shared', array.storage, {
        buffer: new ArrayBuffer(bytes),
        offset: 0,
        bytes,
        ...(checkUninitialized && { written: new Uint8Array(bytes) }),
      });
    });
}

function localMemory({ name, storage, length }: DeclaredArray): Memory {
  const bytes = length * storageBytes[storage];
  return memoryOf(name, 'local', storage, { buffer: new ArrayBuffer(bytes), offset: 0, bytes });
}

/**
 * Runs every thread of the grid on this thread of Node, as JavaScript with the results that a GPU
 * gives, bit for bit; only a NaN is always the one that PTX's arithmetic gives, and `gpu.fast` is
 * rounded once.
 *
 * Blocks run one after the other, those of a kernel with a barrier of the grid in turns. Output
 * arrays are written in place. Indices are checked. Throws a {@link SimulationError} that names
 * thread, block and source line, an {@link UnfitArgument} for arguments that do not fit, and a
 * RangeError for a grid or block that no device takes.
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
  const print = options.print ?? printer.print;
  const started = performance.now();
  const fail = (
    failure: Failure,
    thread: Index3 | undefined,
    blockIndex: Index3 | undefined,
  ): SimulationError => {
    const { locate } = options;
    const span = kernel.sites[failure.site];
    let { what } = failure;
    if (failure instanceof Deadlock) {
      what += failure.waiting
        .map(({ operation, site, threads }) => {
          const position = positionOf(tree, kernel.sites[site], locate);
          return (
            `\n  ` +
            `${operation}${position === undefined ? '' : ` at ${position.file}:${position.line}:${position.column}`}: ` +
            `${threads}`
          );
        })
        .join('');
      what += failure.waiting.length > 0 ? '\n' : '';
    }
    return new SimulationError(
      tree.name,
      { kind: failure.kind, what, fix: failure.fix },
      {
        ...(thread && { thread }),
        ...(blockIndex && { block: blockIndex }),
        span,
        position: positionOf(tree, span, locate),
      },
    );
  };

  const blockDim = named(block);
  const gridDim = named(grid);
  const globalSize = { x: grid[0] * block[0], y: grid[1] * block[1], z: grid[2] * block[2] };
  const nanoseconds = (): bigint => BigInt(Math.round((performance.now() - started) * 1e6));
  const common = {
    blockDim,
    gridDim,
    globalSize,
    dynamicSharedBytes: options.sharedBytes ?? 0,
    block: BLOCK,
    warp: WARP,
    grid: GRID,
    clock: nanoseconds,
    globalTimer: nanoseconds,
    turn: (): Meeting => TURN,
    local: (array: number): Memory => localMemory(tree.arrays[array]!),
    print: (format: string, printed: readonly Value[]): void => {
      print(formatPrint(format, printed));
    },
    assert: (test: boolean, message: string, site: number): void => {
      if (!test)
        throw new Failure(
          'assert',
          `the assertion '${message}' failed`,
          'The kernel says that this cannot be.',
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
  const view = (index: Index3, linear: number, blockIndex: Index3, blockIdx: Axes): ThreadView => ({
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
    throw cause instanceof Deadlock
      ? fail(cause, undefined, undefined)
      : fail(cause, thread.index, thread.block);
  } finally {
    printer.finish();
    finish();
  }
}
