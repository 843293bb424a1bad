/** A run that has a stream already and begins when it is awaited. */
import { CudaError } from '../core/index.js';
import type { Stream } from '../core/index.js';
import type { Running } from './running.js';

/**
 * An operation with a stream. Made by {@link DeviceOp.schedule}. Nothing is queued before it is
 * awaited; it runs once.
 *
 * @example
 * ```ts
 * const scheduled = device.ones(f32, [2]).schedule(); // it has a stream, and has not begun
 * console.log(scheduled.stream.device === device.core); // true
 * using x = await scheduled;
 * console.log((await x.read()).join(' ')); // 1 1
 * ```
 */
export class Scheduled<T> implements PromiseLike<T> {
  /** The stream that was chosen when it was scheduled. */
  readonly stream: Stream;
  private begin: (() => Running<T>) | undefined;

  /** @internal */
  constructor(stream: Stream, begin: () => Running<T>) {
    this.stream = stream;
    this.begin = begin;
  }

  /**
   * Runs the operation.
   *
   * Rejects with code ERR_CUDA_DISPOSED where it has run before.
   */
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.run().then(onFulfilled, onRejected);
  }

  private run(): Promise<T> {
    const { begin } = this;
    this.begin = undefined;
    if (begin === undefined) {
      return Promise.reject(
        new CudaError(
          'ERR_CUDA_DISPOSED',
          'a scheduled operation was awaited twice: it runs once. Await the operation ' +
            'itself, which runs it again, or keep the promise of the first run.',
        ),
      );
    }
    try {
      return begin().finished();
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as thrown
      return Promise.reject(error);
    }
  }

  toString(): string {
    return `Scheduled on ${this.stream.title}, ${this.begin === undefined ? 'run' : 'not run yet'}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}
