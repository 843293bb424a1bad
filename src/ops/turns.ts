/**
 * Runs that wait for something that is being loaded, such as a kernel on its first use. Later runs
 * must not overtake them on memory that they share. Once everything is loaded a run is queued at
 * once, and the device's tracking orders it; this file handles the runs before that.
 */
import { setImmediate } from 'node:timers';

import type { DeviceBuffer } from '../core/index.js';
import { Later } from './node.js';
import type { Submitted } from './node.js';
import type { Run } from './run.js';

interface Turn {
  readonly run: Run;
  /**
   * Resolves when the work, and what its run queues directly after it, has been queued or has
   * failed.
   */
  readonly over: Promise<void>;
}

/** The turns on a memory that have not ended. */
const turns = new WeakMap<object, Turn[]>();
/** The number of turns on all memories. Most of the time it is 0. */
let outstanding = 0;

/** Whether there is a run that has not been queued yet, and for which others may have to wait. */
export function isAnyAhead(): boolean {
  return outstanding !== 0;
}

/** Where the value is known later, makes later work on the same memory wait for it. */
export function takeTurn(run: Run, values: readonly unknown[], given: unknown): void {
  if (given instanceof Later) take(run, memoriesOf(values), given.promise);
}

/**
 * Queues after earlier runs that use the memory of one of the values and could not be queued yet.
 * Where this one cannot be queued at once either, later ones wait for it.
 *
 * @param values tensors, objects with memory like them, and other values, which have no memory
 */
export function inTurn<T>(
  run: Run,
  values: readonly unknown[],
  queue: () => Submitted<T>,
): Submitted<T> {
  const memories = outstanding === 0 || run.mode !== 'queue' ? [] : memoriesOf(values);
  const before = memories.length === 0 ? undefined : earlier(run, memories);
  if (before === undefined) {
    const { loads } = run;
    const given = queue();
    if (run.loads !== loads) takeTurn(run, values, given);
    return given;
  }
  const queued = before.then(() => onceFirst(run, memories, queue));
  take(
    run,
    memories,
    queued.then(({ loading }) => loading),
  );
  // This is a wait of its own, so the memory that this step has is kept meanwhile.
  return run.goOn(new Later(queued, false), ({ given, owned }) => {
    for (const buffer of run.adopt(owned)) run.own(buffer);
    return given;
  });
}

interface Queued<T> {
  readonly given: Submitted<T>;
  /** Memory that it has made. */
  readonly owned: readonly DeviceBuffer[];
  /** The load that it waits for itself. */
  readonly loading: Promise<unknown> | undefined;
}

/** Earlier runs may have had something else to load. */
function onceFirst<T>(
  run: Run,
  memories: readonly object[],
  queue: () => Submitted<T>,
): Queued<T> | Promise<Queued<T>> {
  const before = earlier(run, memories);
  if (before !== undefined) return before.then(() => onceFirst(run, memories, queue));
  const { loads } = run;
  const owned = run.newList();
  const given = run.resume(queue, [], owned);
  return {
    given,
    owned,
    loading: given instanceof Later && run.loads !== loads ? given.promise : undefined,
  };
}

/** The earlier runs that come first; undefined where there are none. */
function earlier(run: Run, memories: readonly object[]): Promise<unknown> | undefined {
  const found: Promise<void>[] = [];
  for (const memory of [run.device.runtime, ...memories]) {
    // The last of them waits for those before it. A run that it missed is found in the next search.
    const taken = turns.get(memory) ?? [];
    let last = taken.length - 1;
    while (last >= 0 && taken[last]!.run.number >= run.number) last--;
    if (last >= 0) found.push(taken[last]!.over);
  }
  return found.length === 0 ? undefined : Promise.all(found);
}

function take(run: Run, known: readonly object[], until: Promise<unknown>): void {
  // The other memory that it will use is not known yet: everything on the device comes after it.
  const memories = run.alone ? known : [...known, run.device.runtime];
  const next = (): Promise<void> | undefined => (run.alone ? undefined : settled(run));
  const over = until.then(next, next);
  const turn = { run, over };
  outstanding++;
  for (const memory of memories) {
    const taken = turns.get(memory);
    if (taken === undefined) turns.set(memory, [turn]);
    else taken.push(turn);
  }
  void over.then(() => {
    outstanding--;
    for (const memory of memories) {
      const taken = turns.get(memory)!;
      // The turn is nearly always the first.
      taken.splice(taken.indexOf(turn), 1);
      if (taken.length === 0) turns.delete(memory);
    }
  });
}

/**
 * Resolves when what comes next in the same run has been queued as well: all of it, or what this
 * turn of the event loop reaches.
 */
function settled({ whole }: Run): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
    whole.known?.then(
      () => {
        resolve();
      },
      () => {
        resolve();
      },
    );
  });
}

/** An object with memory: a tensor, a buffer, or one like them. */
export interface Placed {
  readonly memory?: object;
  readonly buffer?: { readonly memory?: object };
  /** The tensor of a partition. */
  readonly tensor?: Placed;
}

function memoriesOf(values: readonly unknown[]): object[] {
  const found = values.flatMap((value): object[] => {
    if (Array.isArray(value)) return memoriesOf(value);
    if (typeof value !== 'object' || value === null) return [];
    const { memory, buffer, tensor } = value as Placed;
    const place = memory ?? buffer?.memory ?? tensor?.buffer?.memory;
    return typeof place === 'object' ? [place] : [];
  });
  return [...new Set(found)];
}
