/**
 * What a DeviceOp consists of. A node says what to queue and what will be there once it is done; it holds no state of a
 * run, so that the same node can be run any number of times.
 */
import type { Device } from '../core/index.js';
import type { Run } from './run.js';

/** A value that only the end of device work gives: what was read back, say. Nothing can be queued that needs it before. */
export class Later<T> {
  readonly promise: Promise<T>;
  /** Whether all of its work has been queued: what comes next need not wait for the value to be queued behind it. */
  readonly queued: boolean;

  constructor(promise: Promise<T>, queued: boolean) {
    this.promise = promise;
    this.queued = queued;
    // Whoever runs the operation awaits another promise, made of this one.
    promise.catch(ignore);
  }
}

export type Submitted<T> = T | Later<T>;

export interface Node<T> {
  /** The device that it belongs to, where it belongs to one. */
  readonly device: Device | undefined;
  /** Whether all memory that it uses and others may have is known before its work is queued: nothing in it is made on the way. */
  readonly alone?: boolean;
  /** Whether a value of a run was made for it and is nobody else's: who takes it as an operand closes it behind its own work. */
  isNew?(value: unknown): boolean;
  /** Queues the work. Its value may stand for memory that is still being written; what is queued behind it finds it there. */
  submit(run: Run): Submitted<T>;
  /** As `util.inspect` shows it, down to so many levels. */
  describe(depth: number): string;
}

/** `value` where `done` is over, or once it is. */
export function after<T>(done: unknown, value: T): Submitted<T> {
  return done instanceof Later ? new Later(done.promise.then(() => value), done.queued) : value;
}

/** `next` with the value, now or once it is there. `quiet`: it queues nothing. */
export function whenKnown<T, U>(run: Run, value: Submitted<T>, next: (value: T) => Submitted<U>, quiet = false): Submitted<U> {
  if (!(value instanceof Later)) return next(value);
  return new Later(value.promise.then((known) => run.settled(run.resume(() => next(known)))), quiet && value.queued);
}

function ignore(): void {
  // See above.
}

/** Thrown while an operation is recorded that needs something which is on its way: it is recorded anew once that is there. */
export class NotLoaded extends Error {
  readonly ready: Promise<unknown>;

  constructor(ready: Promise<unknown>) {
    super('not loaded yet');
    this.ready = ready;
  }
}
