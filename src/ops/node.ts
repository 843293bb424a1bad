/**
 * The parts of a DeviceOp. A node describes the work to queue and its value. It holds no state of a
 * run, so that the same node can run any number of times.
 */
import type { CoreDevice, DeviceBuffer } from '../core/index.js';
import type { Run } from './run.js';

/** Whether a value holds no device memory, or the memory is not known before the value is. */
export type Holding = 'nothing' | 'unknown';

/**
 * A value that is known only at the end of device work, for example one that was read back. Work
 * that needs it cannot be queued before.
 */
export class Later<T> {
  readonly promise: Promise<T>;
  /**
   * Whether all of its work has been queued. Later work can then be queued without waiting for the
   * value.
   */
  readonly queued: boolean;
  /** Whether the value may contain device memory that a step has received or made. */
  readonly holding: Holding;
  /**
   * Memory of the run that was made meanwhile and that the value holds. It is complete once the
   * promise has resolved; the code that uses the value adopts it.
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
    // The run awaits another promise, which is made from this one.
    promise.catch(ignore);
  }
}

const NONE: readonly DeviceBuffer[] = [];

export type Submitted<T> = T | Later<T>;

export interface Node<T> {
  /** The device that it belongs to, if any. */
  readonly device: CoreDevice | undefined;
  /** Whether all memory that it shares with other work is known before it is queued. */
  readonly alone?: boolean;
  /**
   * Queues the work. Its value may refer to memory that is still being written; work that is queued
   * later finds it written. Memory that it allocates stays on the run's list: see
   * {@link Run.endStep}.
   */
  submit(run: Run): Submitted<T>;
  /**
   * Queues the same work as the last run did, where it is known and nothing has to be loaded for
   * it. Returns whether it did: otherwise {@link submit} has to. There is no value.
   */
  again?(run: Run): boolean;
  /** The text for `util.inspect`, down to `depth` levels. */
  describe(depth: number): string;
}

/** `value`, after `done`. The value of `done` is dropped, with its memory. */
export function after<T>(run: Run, done: unknown, value: T): Submitted<T> {
  if (!(done instanceof Later)) return value;
  return run.goOn(done, () => value, { queued: done.queued });
}

/** Calls `next` with the value, now or once it is known. With `quiet` it queues nothing. */
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
  // The rejection is handled through another promise.
}

/**
 * Thrown while an operation is recorded that needs something which is still being loaded. The
 * operation is recorded again once it is loaded.
 */
export class NotLoaded extends Error {
  readonly ready: Promise<unknown>;

  constructor(ready: Promise<unknown>) {
    super('not loaded yet');
    this.ready = ready;
  }
}
