/**
 * What a DeviceOp consists of. A node says what to queue and what will be there once it is done; it
 * holds no state of a run, so that the same node can be run any number of times.
 */
import type { CoreDevice, DeviceBuffer } from '../core/index.js';
import type { Run } from './run.js';

/** A value that holds no device memory, or whose memory is not known before it is there. */
export type Holding = 'nothing' | 'unknown';

/**
 * A value that only the end of device work gives: what was read back, say. Nothing can be queued
 * that needs it before.
 */
export class Later<T> {
  readonly promise: Promise<T>;
  /**
   * Whether all of its work has been queued: what comes next need not wait for the value to be
   * queued behind it.
   */
  readonly queued: boolean;
  /** Whether device memory that a step has received or made may be part of the value. */
  readonly holding: Holding;
  /**
   * Memory of the run that was made meanwhile and that the value holds: complete once the promise
   * has resolved, and whoever goes on with the value takes it over.
   */
  readonly owned: readonly DeviceBuffer[];

  constructor(
    promise: Promise<T>,
    queued: boolean,
    holding: Holding = 'unknown',
    owned: readonly DeviceBuffer[] = NONE,
  ) {
    this.promise = promise;
    this.queued = queued;
    this.holding = holding;
    this.owned = owned;
    // What runs the operation awaits another promise, made of this one.
    promise.catch(ignore);
  }
}

const NONE: readonly DeviceBuffer[] = [];

export type Submitted<T> = T | Later<T>;

export interface Node<T> {
  /** The device that it belongs to, where it belongs to one. */
  readonly device: CoreDevice | undefined;
  /**
   * Whether all memory that it uses and others may have is known before its work is queued: nothing
   * in it is made on the way.
   */
  readonly alone?: boolean;
  /**
   * Queues the work. Its value may stand for memory that is still being written; what is queued
   * behind it finds it there. What it allocates stays on the run's list: see {@link Run.endStep}.
   */
  submit(run: Run): Submitted<T>;
  /** As `util.inspect` shows it, down to so many levels. */
  describe(depth: number): string;
}

/** `value` where `done` is over, or once it is. The value of `done` is dropped, with its memory. */
export function after<T>(run: Run, done: unknown, value: T): Submitted<T> {
  if (!(done instanceof Later)) return value;
  return run.goOn(done, () => value, { queued: done.queued });
}

/** `next` with the value, now or once it is there. `quiet`: it queues nothing. */
export function whenKnown<T, U>(
  run: Run,
  value: Submitted<T>,
  next: (value: T) => Submitted<U>,
  quiet = false,
): Submitted<U> {
  return value instanceof Later
    ? run.goOn(value, next, { queued: quiet && value.queued })
    : next(value);
}

function ignore(): void {
  // See above.
}

/**
 * Thrown while an operation is recorded that needs something which is on its way: it is recorded
 * anew once that is there.
 */
export class NotLoaded extends Error {
  readonly ready: Promise<unknown>;

  constructor(ready: Promise<unknown>) {
    super('not loaded yet');
    this.ready = ready;
  }
}
