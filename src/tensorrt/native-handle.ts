/** An object of TensorRT's, by its number on the thread that it lives on. */
import { CudaDisposedError } from '../core/index.js';
import type { Caller } from './threads.js';

export abstract class NativeHandle implements AsyncDisposable {
  /** @internal */
  readonly thread: Caller;
  private number: number;
  private readonly title: string;
  /** What it was made of, and may not outlive. */
  private readonly parent: NativeHandle | undefined;

  /** @internal */
  constructor(thread: Caller, number: number, title: string, parent?: NativeHandle) {
    this.thread = thread;
    this.number = number;
    this.title = title;
    this.parent = parent;
  }

  /** @internal @throws CudaDisposedError */
  get handle(): number {
    if (this.number === 0) throw new CudaDisposedError(`${this.title}: used after it was closed.`);
    if (this.parent?.isClosed === true)
      throw new CudaDisposedError(
        `${this.title}: used after ${this.parent.toString()} was closed.`,
      );
    return this.number;
  }

  get isClosed(): boolean {
    return this.number === 0 || this.parent?.isClosed === true;
  }

  /** Gives it back, with all that was made of it. */
  async close(): Promise<void> {
    const { number } = this;
    if (number === 0) return;
    this.number = 0;
    await this.thread.call('release', number);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  toString(): string {
    return this.title;
  }
}
