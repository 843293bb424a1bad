/**
 * What looks at whether an operation failed. A failure on the device shows when the device has come to it, long after the
 * callbacks of the operation have run: so the host waits here, and what comes next is an operation to itself.
 */
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';

type Outcome<T> = { value: T } | { error: unknown };

/** Runs `inner` to its end, by itself, and then what `next` queues for its outcome. */
function afterwards<T, U>(inner: Node<T>, run: Run, what: string, next: (outcome: Outcome<T>) => Submitted<U>): Submitted<U> {
  run.checkNotRecording(`${what}()`, 'whether something fails shows when the graph is launched. Put it around graph.launch()');
  if (run.mode === 'block') {
    let outcome: Outcome<T>;
    try {
      const value = inner.submit(run);
      run.block();
      outcome = { value: value as T };
    } catch (error) {
      outcome = { error };
    }
    return run.restart(() => next(outcome));
  }
  let ended: Promise<T>;
  try {
    ended = run.ended(inner.submit(run));
  } catch (error) {
    // Nothing that was queued before the error is anybody's any more; it is over before the rest goes on, by stream order.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
    ended = Promise.reject(error);
  }
  return new Later(ended.then((value): Outcome<T> => ({ value }), (error: unknown): Outcome<T> => ({ error }))
    .then((outcome) => run.settled(run.restart(() => next(outcome)))), false);
}

export class Recovered<T, U> implements Node<T | U> {
  readonly device: Node<T>['device'];
  private readonly inner: Node<T>;
  private readonly callback: (error: unknown) => unknown;
  private readonly nodeOf: (result: unknown) => Node<unknown>;

  constructor(inner: Node<T>, callback: (error: unknown) => unknown, nodeOf: (result: unknown) => Node<unknown>) {
    this.device = inner.device;
    this.inner = inner;
    this.callback = callback;
    this.nodeOf = nodeOf;
  }

  submit(run: Run): Submitted<T | U> {
    const { callback } = this;
    return afterwards<T, T | U>(this.inner, run, 'orElse', (outcome) => ('error' in outcome ? (this.nodeOf(callback(outcome.error)) as Node<U>).submit(run) : outcome.value));
  }

  describe(depth: number): string {
    return `${this.inner.describe(depth)}.orElse(…)`;
  }
}

export class Ensured<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly inner: Node<T>;
  private readonly callback: () => unknown;
  private readonly nodeOf: (result: unknown) => Node<unknown>;

  constructor(inner: Node<T>, callback: () => unknown, nodeOf: (result: unknown) => Node<unknown>) {
    this.device = inner.device;
    this.inner = inner;
    this.callback = callback;
    this.nodeOf = nodeOf;
  }

  submit(run: Run): Submitted<T> {
    const { callback } = this;
    return afterwards<T, T>(this.inner, run, 'ensure', (outcome) => {
      let last: Submitted<unknown>;
      try {
        last = this.nodeOf(callback()).submit(run);
      } catch (error) {
        throw 'error' in outcome ? causedBy(error, outcome.error) : error;
      }
      const end = (): T => {
        if ('error' in outcome) throw outcome.error;
        return outcome.value;
      };
      if (last instanceof Later) return new Later(last.promise.then(end, (error: unknown) => { throw 'error' in outcome ? causedBy(error, outcome.error) : error; }), false);
      // The callback's operation is waited for in any case, and with a failure before it nobody else would.
      if (!('error' in outcome)) return outcome.value;
      if (run.mode === 'block') {
        run.block();
        return end();
      }
      return new Later(run.over().then(end, (error: unknown) => { throw causedBy(error, outcome.error); }), true);
    });
  }

  describe(depth: number): string {
    return `${this.inner.describe(depth)}.ensure(…)`;
  }
}

/** An error of the last step, which hides one before it. */
function causedBy(error: unknown, first: unknown): unknown {
  if (!(error instanceof Error) || error.cause !== undefined || !Object.isExtensible(error)) return error;
  Object.defineProperty(error, 'cause', { value: first, configurable: true, writable: true, enumerable: false });
  return error;
}
