/**
 * What an eager method returns: work that has been queued. Awaiting it makes a fence and waits for that; not awaiting
 * it costs nothing. A failure that nobody awaits goes to `device.on('error')`.
 */
import { setImmediate } from 'node:timers';

import { CudaError } from '../runtime/errors.js';
import { checkOptions, checkSignal } from './arguments.js';
import type { Stream } from './stream.js';

export interface WaitOptions {
  /** Stops the wait, never the work. The wait then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

const DONE = Promise.resolve();

/** Queued work on one stream, and what it will give. */
export class Pending<T = void> implements PromiseLike<T> {
  private readonly stream: Stream;
  private readonly root: number;
  private readonly mark: number;
  /** What the value is made of once the work is done; undefined where it gives nothing. */
  private readonly finish: (() => T | Promise<T>) | undefined;
  private promise: Promise<T> | undefined;
  private claimed = false;

  /** @internal */
  constructor(stream: Stream, root: number, mark: number, finish?: () => T | Promise<T>) {
    this.stream = stream;
    this.root = root;
    this.mark = mark;
    this.finish = finish;
  }

  /** Waits for the work: a fence on its stream, cuStreamWriteValue32. */
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.claimed = true;
    if (this.promise === undefined && this.finish === undefined && this.stream.passesSoon(this.mark)) {
      const failure = this.stream.runtime.failureOf(this.root);
      this.promise = (failure === undefined ? DONE : Promise.reject(failure)) as Promise<T>;
    }
    this.promise ??= this.settle();
    return this.promise.then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally);
  }

  /**
   * As awaiting, with options.
   *
   * @throws the signal's reason when it aborts; the work goes on all the same
   */
  wait(options: WaitOptions = {}): Promise<T> {
    checkOptions('options', options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    this.claimed = true;
    this.promise ??= this.settle();
    return signal === undefined ? this.promise : abortable(this.promise, signal);
  }

  /** @internal */
  follow(promise: Promise<T>, unclaimed: (error: unknown) => void): void {
    this.promise = promise;
    promise.catch((error: unknown) => {
      setImmediate(() => setImmediate(() => {
        if (!this.claimed) unclaimed(error);
      }));
    });
  }

  private settle(): Promise<T> {
    const { stream, root, finish } = this;
    stream.runtime.expect(root);
    return stream.passed(this.mark).then(() => {
      const failure = stream.runtime.failureOf(root);
      if (failure !== undefined) throw failure;
      return finish === undefined ? (undefined as T) : finish();
    });
  }
}

/**
 * A Pending of work that runs to its end whether it is awaited or not. An error that nobody claims within two turns of
 * the event loop goes to the device.
 *
 * @internal
 */
export function pendingOf<T>(stream: Stream, promise: Promise<T>): Pending<T> {
  const pending = new Pending<T>(stream, 0, 0);
  pending.follow(promise, (error) => stream.device.unclaimed(error));
  return pending;
}

/** `promise`, or the signal's reason where that comes first. The promise itself is not affected. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => undefined);
    return Promise.reject(reasonOf(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => {
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
        reject(error instanceof Error ? error : new CudaError('ERR_CUDA_INTERNAL', String(error)));
      },
    );
  });
}

function reasonOf(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new DOMException(String(reason), 'AbortError');
}
