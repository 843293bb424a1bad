/**
 * The result of an eager method: work that has been queued. Awaiting it writes a fence and waits
 * for that; not awaiting it costs nothing. A failure that is not awaited goes to
 * `device.on('error')`.
 */
import { setImmediate } from 'node:timers';

import { CudaError } from '../ground/errors.js';
import { checkOptions, checkSignal } from '../ground/arguments.js';
import { isError } from '../ground/other-realms.js';
import type { Stream } from './stream.js';

/** Options of every wait. */
export interface WaitOptions {
  /** Ends the wait, never the work. The wait then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

const DONE = Promise.resolve();

/** The state of a Pending that is awaited, or has a value. */
interface Wait<T> {
  /** Makes the value once the work has ended; undefined where there is no value. */
  readonly finish: (() => T | Promise<T>) | undefined;
  promise: Promise<T> | undefined;
  /** Number of waiters, without aborted ones. */
  claims: number;
  settled: boolean;
}

/**
 * Queued work on one stream, and its value.
 *
 * @example
 * ```ts
 * using x = device.alloc(f32, 4);
 * const filled = x.fill(device.stream, 1); // queued
 * await filled.finished({ signal: AbortSignal.timeout(60_000) }); // the device has done it
 * ```
 */
export class Pending<T = void> implements PromiseLike<T> {
  private readonly stream: Stream;
  /** Negative for work that a capture has recorded. */
  private readonly root: number;
  private readonly mark: number;
  /** Undefined until it is needed: every launch makes a Pending, and most are not awaited. */
  private lasting: Wait<T> | undefined;

  /** @internal */
  constructor(stream: Stream, root: number, mark: number, finish?: () => T | Promise<T>) {
    this.stream = stream;
    this.root = root;
    this.mark = mark;
    this.lasting =
      finish === undefined ? undefined : { finish, promise: undefined, claims: 0, settled: false };
  }

  private get waitState(): Wait<T> {
    return (this.lasting ??= { finish: undefined, promise: undefined, claims: 0, settled: false });
  }

  /**
   * Waits for the work, and for what its stream had queued before the call. The wait is a fence,
   * cuStreamWriteValue32. Rejects with the operation's error; an error of other work on the stream
   * does not reject it.
   */
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const wait = this.waitState;
    this.claim(wait);
    if (wait.promise === undefined) {
      if (wait.finish === undefined && this.root >= 0 && this.stream.passesSoon(this.mark)) {
        const failure = this.stream.runtime.failureOf(this.root);
        wait.promise = (failure === undefined ? DONE : Promise.reject(failure)) as Promise<T>;
      }
    } else if (this.root === 0 && this.mark !== 0) this.stream.pollFor(this.mark);
    return this.chain(wait, onFulfilled, onRejected);
  }

  /** Like {@link then}, where the end of the work has been checked already. @internal */
  thenUnpolled<A, B>(
    onFulfilled: (value: T) => A | PromiseLike<A>,
    onRejected: ((reason: unknown) => B | PromiseLike<B>) | null | undefined,
  ): Promise<A | B> {
    const wait = this.waitState;
    this.claim(wait);
    return this.chain(wait, onFulfilled, onRejected);
  }

  private chain<A, B>(
    wait: Wait<T>,
    onFulfilled: ((value: T) => A | PromiseLike<A>) | null | undefined,
    onRejected: ((reason: unknown) => B | PromiseLike<B>) | null | undefined,
  ): Promise<A | B> {
    wait.promise ??= this.settle(wait);
    if (typeof onRejected === 'function') return wait.promise.then(onFulfilled, onRejected);
    const chained: Promise<A | B> = wait.promise.then(onFulfilled, (error: unknown) => {
      if (this.isQuiet(error)) chained.catch(ignore);
      throw error;
    });
    return chained;
  }

  /** Like {@link then}, for the failure only. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onRejected);
  }

  /** Like {@link then}, for the end either way. */
  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally);
  }

  /**
   * Like awaiting, with options.
   *
   * @throws the signal's reason when it aborts. The work goes on; its failure goes to the device's
   *   `error` event unless there is another waiter
   */
  finished(options: WaitOptions = {}): Promise<T> {
    checkOptions('options', options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    if (signal?.aborted === true) return Promise.reject(reasonOf(signal));
    const wait = this.waitState;
    this.claim(wait);
    wait.promise ??= this.settle(wait);
    return signal === undefined
      ? wait.promise
      : abortable(wait.promise, signal, () => this.abandon(wait));
  }

  /** Whether there is a value, which exists only at the end. @internal */
  get gives(): boolean {
    return this.lasting !== undefined;
  }

  /** Whether it is work of this stream. @internal */
  isOf(stream: Stream): boolean {
    return this.stream === stream;
  }

  /** @internal */
  follow(promise: Promise<T>, unclaimed: (error: unknown) => void): void {
    const wait = this.waitState;
    wait.promise = promise;
    promise.catch((error: unknown) => {
      setImmediate(() =>
        setImmediate(() => {
          if (wait.claims === 0) unclaimed(error);
        }),
      );
    });
  }

  /** Claims the failure for a waiter. */
  private claim(wait: Wait<T>): void {
    if (wait.claims++ > 0 || wait.promise === undefined || this.root <= 0) return;
    const { runtime } = this.stream;
    if (wait.settled) runtime.failureOf(this.root);
    else runtime.expect(this.root);
  }

  /** Drops the claim of an aborted wait. Where it was the only one, the failure is unclaimed. */
  private abandon(wait: Wait<T>): void {
    if (--wait.claims === 0 && this.root > 0) this.stream.runtime.unexpect(this.root);
  }

  private settle(wait: Wait<T>): Promise<T> {
    const { stream, root } = this;
    if (root < 0) return Promise.reject(recordedError('this work'));
    const { finish } = wait;
    const { runtime } = stream;
    runtime.expect(root);
    const passed = stream.passed(this.mark);
    const promise = passed.then(
      () => {
        wait.settled = true;
        const failure =
          wait.claims > 0 ? runtime.failureOf(root) : runtime.unclaimedFailureOf(root);
        if (failure !== undefined) throw failure;
        return finish === undefined ? (undefined as T) : finish();
      },
      (error: unknown) => {
        if (passed === runtime.completion.loud) runtime.loud ??= this;
        if (this.isQuiet(error)) promise.catch(ignore);
        throw error;
      },
    );
    return promise;
  }

  /** When a device is lost all its work rejects. One unhandled rejection reports it. */
  private isQuiet(error: unknown): boolean {
    const { runtime } = this.stream;
    return error === runtime.lost && runtime.loud !== this;
  }
}

/**
 * A Pending of work that runs to its end whether it is awaited or not. An error that is not claimed
 * within two turns of the event loop goes to the device.
 *
 * @internal
 */
export function pendingOf<T>(stream: Stream, promise: Promise<T>, mark = 0): Pending<T> {
  const pending = new Pending<T>(stream, 0, mark);
  pending.follow(promise, (error) => stream.device.unclaimed(error));
  return pending;
}

/**
 * Resolves or rejects with `promise`, or rejects with the signal's reason where that comes first;
 * `aborted` is called then. The promise itself is not affected.
 */
export function abortable<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  aborted?: () => void,
): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => undefined);
    return Promise.reject(reasonOf(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => {
      aborted?.();
      reject(reasonOf(signal));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        resolve(value);
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        reject(isError(error) ? error : new CudaError('ERR_CUDA_INTERNAL', String(error)));
      },
    );
  });
}

/** The error of a wait for work that was only recorded. */
export function recordedError(what: string): CudaError {
  return new CudaError(
    'ERR_CUDA_CAPTURE',
    `${what} was recorded in a capture, and has not run: it runs when the graph is launched. ` +
      'Await graph.launch(stream) instead.',
  );
}

function ignore(): void {
  // Another promise has rejected with the same error.
}

function reasonOf(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return isError(reason) ? reason : new DOMException(String(reason), 'AbortError');
}
