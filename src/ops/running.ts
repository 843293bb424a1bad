/** A run whose work has been queued. */
import { setImmediate } from 'node:timers';

import { CudaError } from '../core/index.js';
import type { Pending, WaitOptions } from '../core/index.js';
import { Later } from './node.js';
import type { Submitted } from './node.js';
import type { Run } from './run.js';

/**
 * A run of an operation, made by {@link DeviceOp.runOn}. Awaiting it waits for the device. It runs
 * once, however often it is awaited.
 *
 * @example
 * ```ts
 * using stream = device.createStream();
 * const running = device.ones(f32, [4]).runOn(stream); // queued
 * console.log(running.value.size); // 4
 * using x = await running; // the device has written it
 * console.log((await x.read()).join(' ')); // 1 1 1 1
 * ```
 */
export class Running<T> implements PromiseLike<T> {
  private readonly run: Run;
  private readonly outcome: Submitted<T>;
  private promise: Promise<T> | undefined = undefined;
  /** The number of waiters, without those whose wait was aborted. */
  private claims = 0;

  /** @internal */
  constructor(run: Run, outcome: Submitted<T>) {
    this.run = run;
    this.outcome = outcome;
    // A later value has a waiter already, so the device must report its failure where this object
    // is not awaited.
    if (outcome instanceof Later)
      this.end().catch((error: unknown) => {
        this.reportUnclaimed(error);
      });
  }

  private reportUnclaimed(error: unknown): void {
    if (this.run.isAbandonedFor(error)) return;
    setImmediate(() =>
      setImmediate(() => {
        if (this.claims === 0) this.run.device.unclaimed(error);
      }),
    );
  }

  /**
   * The value of the queued work: memory that the device may still be writing.
   *
   * @throws CudaError where the value is one of the host, which is known only at the end
   */
  get value(): T {
    if (this.outcome instanceof Later) {
      throw new CudaError(
        'ERR_CUDA_INVALID_ARGUMENT',
        'the value is read back from the device and not known yet: await the operation.',
      );
    }
    // The caller has the value now: neither a failure nor an abort closes its memory.
    this.run.keepGiven();
    return this.outcome;
  }

  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.finished().then(onFulfilled, onRejected);
  }

  /** As the method of a promise. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.finished().catch(onRejected);
  }

  /** As the method of a promise. */
  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.finished().finally(onFinally);
  }

  /**
   * Waits as an await does, with options. Where the signal aborts, the wait ends and the work goes
   * on. Its failure goes to the device where there is no other waiter.
   */
  finished(options: WaitOptions = {}): Promise<T> {
    const { signal } = options;
    this.claims++;
    if (signal === undefined) return this.end();
    return abortable(this.run, this.outcome, options, () => {
      this.claims--;
      if (this.claims === 0) this.run.abandon(this.outcome, signal.reason);
    });
  }

  /** The value at the end of a run that blocks. @internal */
  result(): T {
    try {
      this.run.block();
    } catch (error) {
      this.run.closeMade();
      throw error;
    }
    return this.value;
  }

  /** The promise of its end, the same for each call. @internal */
  end(): Promise<T> {
    return (this.promise ??= this.run.ended(this.outcome));
  }
}

function abortable<T>(
  run: Run,
  outcome: Submitted<T>,
  options: WaitOptions,
  abandon: () => void,
): Promise<T> {
  const signal = options.signal!;
  if (!(outcome instanceof Later)) {
    const reached = run.reached(outcome, (pending: Pending) => pending.finished(options));
    reached.catch((error: unknown) => {
      if (signal.aborted && error === signal.reason) abandon();
      else run.closeMade();
    });
    return reached;
  }
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => {
      abandon();
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as given
      reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    run
      .ended(outcome)
      .then(resolve, reject)
      .finally(() => {
        signal.removeEventListener('abort', abort);
      });
  });
}
