/**
 * Runs that wait for what is still being loaded, a kernel on its first use: what was run after them
 * must not overtake them on the memory that they share. Whatever was loaded by then is queued when
 * it is run, and the device's tracking orders it; here is only what came too early for that.
 */
import { setImmediate } from 'node:timers';

import type { DeviceBuffer } from '../core/index.js';
import { Later } from './node.js';
import type { Submitted } from './node.js';
import type { Run } from './run.js';

interface Turn {
  readonly run: Run;
  /**
   * Resolves when it has been queued, with what its run queues behind it at once, or has failed.
   */
  readonly over: Promise<void>;
}

/** The turns that were taken on a memory and are not over. */
const turns = new WeakMap<object, Turn[]>();
/** Those of all memories: most of the time there are none. */
let outstanding = 0;

/** Whether some run has not been queued yet that others may have to wait for. */
export function isAnybodyAhead(): boolean {
  return outstanding !== 0;
}

/** What uses the same memory waits for what was given, where that has to wait itself. */
export function takeTurn(run: Run, values: readonly unknown[], given: unknown): void {
  if (given instanceof Later) take(run, memoriesOf(values), given.promise);
}

/**
 * Queues, behind earlier runs that use the memory of one of the values and could not be queued yet.
 * Where this one cannot be queued at once either, later ones wait for it.
 *
 * @param values tensors, what stands for one, and whatever else: it has no memory
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
  // A wait of its own: the memory that this step has is kept meanwhile.
  return run.goOn(new Later(queued, false), ({ given, owned }) => {
    for (const buffer of run.adopt(owned)) run.own(buffer);
    return given;
  });
}

interface Queued<T> {
  readonly given: Submitted<T>;
  /** Memory that it has made. */
  readonly owned: readonly DeviceBuffer[];
  /** What it waits for itself. */
  readonly loading: Promise<unknown> | undefined;
}

/** Those before it may have had something else to load. */
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

/** What of earlier runs is to come first. */
function earlier(run: Run, memories: readonly object[]): Promise<unknown> | undefined {
  const found: Promise<void>[] = [];
  for (const memory of [run.device.runtime, ...memories]) {
    // The last of them waits for those before it; what it missed is looked for again.
    const taken = turns.get(memory) ?? [];
    let last = taken.length - 1;
    while (last >= 0 && taken[last]!.run.number >= run.number) last--;
    if (last >= 0) found.push(taken[last]!.over);
  }
  return found.length === 0 ? undefined : Promise.all(found);
}

function take(run: Run, known: readonly object[], until: Promise<unknown>): void {
  // What else it will use is not known by now: everything on the device is behind it.
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
      // Nearly always the first.
      taken.splice(taken.indexOf(turn), 1);
      if (taken.length === 0) turns.delete(memory);
    }
  });
}

/**
 * Until what comes next in the same run has been queued as well: all of it, or what this turn of
 * the event loop comes to.
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

/** What has memory: a tensor, a buffer, or what stands for one. */
export interface Placed {
  readonly memory?: object;
  readonly buffer?: { readonly memory?: object };
  /** Of tiles. */
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
