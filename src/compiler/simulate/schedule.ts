/**
 * Runs the threads of blocks in turns: each runs until it waits for others, in the order of their
 * indices; then those whose threads have all arrived continue. The same kernel and arguments always
 * run in the same order.
 */
import { Failure } from './failure.js';
import { checkMask, resultsOf } from './synchronisation.js';
import type { SyncRequest, Waiting } from './synchronisation.js';
import type { Value } from './memory.js';
import type { Index3 } from './failure.js';

/** One thread and its state. */
export interface Thread {
  readonly block: Index3;
  readonly index: Index3;
  readonly lane: number;
  readonly run: Generator<SyncRequest, void, Value | undefined>;
  waits: SyncRequest | undefined;
  /** The result of the operation that it waited for. */
  result: Value | undefined;
  ended: boolean;
}

/** Threads of a block, in the order of their linear indices. */
export type Block = readonly Thread[];

/** The error of {@link runTogether}: the cause, and the thread. */
export class ThreadFailure extends Error {
  readonly thread: Thread;

  constructor(thread: Thread, cause: unknown) {
    super('a thread of a simulated kernel failed', { cause });
    this.thread = thread;
  }
}

/**
 * Rounds in which every thread only yields its turn, before the simulation reports that no thread
 * makes progress.
 */
const MOST_IDLE_ROUNDS = 1_000_000;
/** The number of threads that a message lists. */
const MOST_NAMED = 8;

/** Runs blocks that are on the device at the same time, until all of their threads have ended. */
export function runTogether(blocks: readonly Block[]): void {
  const threads = blocks.flat();
  let idle = 0;
  for (;;) {
    let moved = false;
    let turned = false;
    for (const thread of threads) {
      if (thread.ended || thread.waits !== undefined) continue;
      resume(thread);
      if (!thread.ended && thread.waits === undefined) turned = true;
      else moved = true;
    }
    for (const block of blocks) {
      if (releaseWarps(block)) moved = true;
      if (releaseBarrier(block, 'block')) moved = true;
    }
    if (releaseBarrier(threads, 'grid')) moved = true;
    if (moved) {
      idle = 0;
      continue;
    }
    if (turned) {
      if (++idle < MOST_IDLE_ROUNDS) continue;
      throw noProgress(
        threads,
        'every thread waits in a loop for memory that none of them changes',
      );
    }
    if (threads.every((thread) => thread.ended)) return;
    if (!blocks.some(releaseActive)) throw deadlock(threads);
  }
}

function resume(thread: Thread): void {
  const { result } = thread;
  thread.result = undefined;
  try {
    const step = thread.run.next(result);
    if (step.done === true) {
      thread.ended = true;
      return;
    }
    if (step.value.kind === 'turn') return;
    if (step.value.kind === 'warp') checkMask(thread.lane, step.value);
    thread.waits = step.value;
  } catch (cause) {
    throw new ThreadFailure(thread, cause);
  }
}

function release(threads: readonly Thread[]): void {
  const results = resultsIn(threads);
  threads.forEach((thread, index) => {
    thread.waits = undefined;
    thread.result = results[index];
  });
}

function resultsIn(threads: readonly Thread[]): ReturnType<typeof resultsOf> {
  try {
    return resultsOf(threads.map(({ lane, waits }): Waiting => ({ lane, request: waits! })));
  } catch (cause) {
    throw new ThreadFailure(threads[0]!, cause);
  }
}

/**
 * Releases lanes whose mask is complete. A mask does not wait for lanes that a block does not have.
 */
function releaseWarps(block: Block): boolean {
  let released = false;
  for (let first = 0; first < block.length; first += 32) {
    const warp = block.slice(first, first + 32);
    for (const thread of warp) {
      const { waits } = thread;
      if (waits?.kind !== 'warp') continue;
      const named = warp.filter((each) => (waits.mask >>> each.lane) & 1);
      const together = named.filter(
        (each) =>
          each.waits !== undefined &&
          each.waits.operation === waits.operation &&
          each.waits.mask === waits.mask,
      );
      if (together.length < named.length) continue;
      release(together);
      released = true;
    }
  }
  return released;
}

/** Releases all threads once all wait at the same kind of barrier. */
function releaseBarrier(threads: readonly Thread[], kind: 'block' | 'grid'): boolean {
  const first = threads[0]?.waits;
  if (
    first?.kind !== kind ||
    !threads.every((each) => each.waits?.kind === kind && each.waits.operation === first.operation)
  )
    return false;
  release(threads);
  return true;
}

/** Releases the lanes of a warp that call activeMask at one place, when no other lane can run. */
function releaseActive(block: Block): boolean {
  let released = false;
  for (let first = 0; first < block.length; first += 32) {
    const waitingLanes = block
      .slice(first, first + 32)
      .filter((each) => each.waits?.kind === 'activeMask');
    for (const site of new Set(waitingLanes.map((each) => each.waits!.site))) {
      // Lanes at sites before this one are released already.
      release(waitingLanes.filter((each) => each.waits?.site === site));
      released = true;
    }
  }
  return released;
}

const names = (threads: readonly Thread[], several: boolean): string => {
  const all = threads.map(
    ({ index, block }) =>
      `(${index.join(', ')})${several ? ` of block (${block.join(', ')})` : ''}`,
  );
  const rest = all.length - MOST_NAMED;
  return `${all.slice(0, MOST_NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
};

/** A failure of many threads, reported where the first of them waits. */
export class Deadlock extends Failure {
  /** Groups of threads that wait for one operation at one place. */
  readonly waiting: readonly {
    readonly operation: string;
    readonly site: number;
    readonly threads: string;
  }[];

  constructor(what: string, fix: string, threads: readonly Thread[]) {
    const several = new Set(threads.map(({ block }) => block.join())).size > 1;
    const groups = new Map<string, Thread[]>();
    for (const thread of threads) {
      if (thread.waits === undefined) continue;
      const key = `${thread.waits.operation} ${thread.waits.site}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [thread]);
      else group.push(thread);
    }
    const waiting = [...groups.values()].map((group) => ({
      operation: group[0]!.waits!.operation,
      site: group[0]!.waits!.site,
      threads: names(group, several),
    }));
    super('deadlock', what, fix, waiting[0]?.site ?? -1);
    this.waiting = waiting;
  }
}

function noProgress(threads: readonly Thread[], what: string): ThreadFailure {
  const first = threads.find((thread) => !thread.ended)!;
  return new ThreadFailure(
    first,
    new Deadlock(
      what,
      'Threads of a later block do not run before those of an earlier one have ended, unless ' +
        'the kernel uses gpu.grid.sync().',
      threads,
    ),
  );
}

/** The failure where no thread can run: what is missing where the first one waits. */
function deadlock(threads: readonly Thread[]): ThreadFailure {
  const first = threads.find((thread) => thread.waits !== undefined)!;
  const request = first.waits!;
  const sameBlock = threads.filter(({ block }) => block === first.block);
  const start = sameBlock.findIndex((each) => each === first);
  const around =
    request.kind === 'grid'
      ? threads
      : request.kind === 'warp'
        ? sameBlock
            .slice(start - (start % 32), start - (start % 32) + 32)
            .filter((each) => (request.mask >>> each.lane) & 1)
        : sameBlock;
  const ended = around.filter((each) => each.ended);
  const elsewhere = around.filter(
    (each) => !each.ended && each.waits?.operation !== request.operation,
  );
  const several = request.kind === 'grid';
  const why =
    ended.length > 0
      ? `while ${ended.length === 1 ? 'thread' : 'threads'} ${names(ended, several)} ` +
        `${ended.length === 1 ? 'has' : 'have'} ended`
      : elsewhere.length > 0
        ? `while others wait for ${elsewhere[0]!.waits!.operation}`
        : 'with masks that differ';
  const all =
    request.kind === 'warp'
      ? 'every lane that the mask names'
      : `every thread of the ${request.kind}`;
  const fix =
    ended.length > 0
      ? `Let ${all} reach this: put an if around the work instead of returning before.`
      : `Let ${all} reach the same one: take it out of the branch.`;
  return new ThreadFailure(
    first,
    new Deadlock(`threads wait for ${request.operation} ${why}`, fix, threads),
  );
}
