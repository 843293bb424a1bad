/**
 * Nodes that act on the failure of an operation. A failure on the device is known when the device
 * has reached it, long after the callbacks of the operation have run, so the host waits here. Work
 * that may fail without failing the rest is queued by a run aside.
 */
import type { DeviceBuffer } from '../core/index.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import { isTooDeep } from './run.js';
import type { Run } from './run.js';
import { isError } from '../ground/other-realms.js';

type Outcome<T> = { value: T } | { error: unknown };

type Queue<T> = (run: Run) => Submitted<T>;

/**
 * Queues on the run, and waits for the end. `owned` receives the memory of a value that is known
 * later.
 */
function endOf<T>(run: Run, queue: Queue<T>, owned: DeviceBuffer[] = []): Promise<T> {
  let value: Submitted<T>;
  try {
    value = queue(run);
  } catch (error) {
    // A promise that is made at the end of the stack cannot be followed.
    if (isTooDeep(error)) throw error;
    // Work that was queued before the error is part of the failed operation. By stream order it
    // ends before the rest goes on.
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as thrown
    value = new Later<T>(Promise.reject(error), true);
  }
  const queued = value;
  return run.reached(queued).then((known) => {
    if (queued instanceof Later) owned.push(...run.adopt(queued.owned));
    return known;
  });
}

/** {@link endOf}, with the thread blocked until the end. */
function blockedEndOf<T>(run: Run, queue: Queue<T>): Outcome<T> {
  try {
    const value = queue(run);
    run.block();
    return { value: value as T };
  } catch (error) {
    if (isTooDeep(error)) throw error;
    return { error };
  }
}

function checkNotRecording(run: Run, what: string): void {
  run.checkNotRecording(
    `${what}()`,
    'failures are known when the graph is launched. Put it around graph.replay()',
  );
}

export class Recovered<T, U> implements Node<T | U> {
  readonly device: Node<T>['device'];
  private readonly inner: Node<T>;
  private readonly callback: (error: unknown) => unknown;
  private readonly nodeOf: (result: unknown) => Node<unknown>;

  constructor(
    inner: Node<T>,
    callback: (error: unknown) => unknown,
    nodeOf: (result: unknown) => Node<unknown>,
  ) {
    this.device = inner.device;
    this.inner = inner;
    this.callback = callback;
    this.nodeOf = nodeOf;
  }

  submit(run: Run): Submitted<T | U> {
    const { inner } = this;
    const queue = (aside: Run): Submitted<T> => aside.endStep(inner.submit(aside), 0);
    checkNotRecording(run, 'orElse');
    if (run.mode === 'block') {
      const outcome = run.aside((aside) => {
        const ended = blockedEndOf(aside, queue);
        if ('error' in ended) aside.closeMade();
        else run.takeOver(aside);
        return ended;
      });
      if (!('error' in outcome)) return outcome.value;
      // The callback does not handle failures of earlier work.
      run.block();
      return this.instead(outcome.error, run);
    }
    const before = run.over();
    before.catch(ignore);
    const owned = run.newList();
    const ended = run.aside((aside) =>
      endOf(aside, queue, owned).then(
        (value) => {
          run.takeOver(aside, owned);
          return value;
        },
        (error: unknown) => {
          aside.closeMade();
          throw error;
        },
      ),
    );
    const either: Promise<T | U> = ended.catch((error: unknown) => {
      const instead = run.goOn(new Later(before, true), () => this.instead(error, run));
      return instead.promise.then((value) => {
        owned.push(...run.adopt(instead.owned));
        return value;
      });
    });
    return run.goOn(new Later(either, false, 'unknown', owned), (value) => value);
  }

  private instead(error: unknown, run: Run): Submitted<U> {
    const { callback } = this;
    return (this.nodeOf(callback(error)) as Node<U>).submit(run);
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
    const { inner, callback, nodeOf } = this;
    const queue = (): Submitted<T> => inner.submit(run);
    const last = (aside: Run): Submitted<unknown> => nodeOf(callback()).submit(aside);
    checkNotRecording(run, 'ensure');
    if (run.mode === 'block') {
      const outcome = blockedEndOf(run, queue);
      const end = run.aside((aside) => {
        const ended = blockedEndOf(aside, last);
        aside.closeMade();
        return ended;
      });
      if ('error' in end) throw causedBy(end.error, outcome);
      return known(outcome);
    }
    const owned = run.newList();
    const ended = endOf(run, queue, owned)
      .then(
        (value): Outcome<T> => ({ value }),
        (error: unknown): Outcome<T> => ({ error }),
      )
      .then((outcome) =>
        run
          .resume(() =>
            run.aside((aside) => {
              const made = aside.newList();
              return endOf(aside, last, made).finally(() => {
                aside.closeMade();
              });
            }),
          )
          .then(
            () => known(outcome),
            (error: unknown) => {
              throw causedBy(error, outcome);
            },
          ),
      );
    return run.goOn(new Later(ended, false, 'unknown', owned), (value) => value);
  }

  describe(depth: number): string {
    return `${this.inner.describe(depth)}.ensure(…)`;
  }
}

function known<T>(outcome: Outcome<T>): T {
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}

/** The error of the last step, with an earlier error as its cause. */
function causedBy(error: unknown, before: Outcome<unknown>): unknown {
  if (
    !('error' in before) ||
    !isError(error) ||
    error.cause !== undefined ||
    !Object.isExtensible(error)
  )
    return error;
  Object.defineProperty(error, 'cause', {
    value: before.error,
    configurable: true,
    writable: true,
    enumerable: false,
  });
  return error;
}

function ignore(): void {
  // It is the run's failure, which the run's end reports.
}
