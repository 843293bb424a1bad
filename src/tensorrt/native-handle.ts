/** An object of TensorRT, by its number on the thread that it belongs to. */
import { CudaDisposedError } from '../core/index.js';
import type { Caller } from './threads.js';

export abstract class NativeHandle implements AsyncDisposable {
  /** @internal */
  readonly thread: Caller;
  private number: number;
  private readonly title: string;
  /** The object that it was made from, and may not outlive. */
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

  /** Destroys it, with everything that was made from it. */
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
