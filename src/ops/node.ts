/**
 * What a DeviceOp consists of. A node says what to queue and what will be there once it is done; it holds no state of a
 * run, so that the same node can be run any number of times.
 */
import type { Device } from '../core/index.js';
import type { Run } from './run.js';

/** A value that only the end of device work gives: what was read back, say. Nothing can be queued that needs it before. */
export class Later<T> {
  readonly promise: Promise<T>;

  constructor(promise: Promise<T>) {
    this.promise = promise;
    // Whoever runs the operation awaits another promise, made of this one.
    promise.catch(ignore);
  }
}

export type Submitted<T> = T | Later<T>;

export interface Node<T> {
  /** The device that it belongs to, where it belongs to one. */
  readonly device: Device | undefined;
  /** Queues the work. Its value may stand for memory that is still being written; what is queued behind it finds it there. */
  submit(run: Run): Submitted<T>;
  /** As `util.inspect` shows it, down to so many levels. */
  describe(depth: number): string;
}

/** `next` with the value, now or once it is there. */
export function whenKnown<T, U>(run: Run, value: Submitted<T>, next: (value: T) => Submitted<U>): Submitted<U> {
  if (!(value instanceof Later)) return next(value);
  return new Later(value.promise.then((known) => run.settled(run.resume(() => next(known)))));
}

function ignore(): void {
  // See above.
}
