/**
 * An operation of many parts: whatever is queued while it is held, on whichever stream. Its first failure ends it, and
 * what is left of it is not carried out; who waits for its end learns of that failure.
 */
import type { HeldOperation } from '../runtime/held-operation.js';
import type { Runtime } from '../runtime/runtime.js';
import { Pending } from './pending.js';
import type { Stream } from './stream.js';

export class Operation {
  private readonly held: HeldOperation;
  private readonly runtime: Runtime;

  /** Begins on `stream`. Nothing is queued by that. */
  constructor(stream: Stream) {
    stream.check();
    stream.separate();
    this.runtime = stream.runtime;
    this.held = this.runtime.newOperation();
  }

  /** What `queue` queues is part of the operation. */
  hold<T>(queue: () => T): T {
    this.take();
    try {
      return queue();
    } finally {
      this.runtime.hold(undefined);
    }
  }

  /** In the middle of another operation's {@link hold}: what it queues from here on is part of this one. */
  take(): void {
    this.runtime.hold(this.held);
  }

  /** Says what it is called as a whole; the first name counts. */
  label(label: string): void {
    this.runtime.label(this.held, label);
  }

  /** Its end on a stream that it queued on, as far as it goes by now, and its failure. */
  pending(stream: Stream): Pending {
    return new Pending(stream, this.held.root, stream.mark);
  }

  /** Blocks this thread until it is over on a stream that it queued on. */
  block(stream: Stream): void {
    const { runtime, held: { root } } = this;
    runtime.expect(root);
    stream.block(stream.mark);
    const failure = runtime.failureOf(root);
    if (failure !== undefined) throw failure;
  }
}
