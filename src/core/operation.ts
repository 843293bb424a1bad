/**
 * An operation of several parts: all work that is queued while it is held, on any stream. Its first
 * failure ends it, and its remaining parts do not run; a wait for its end rejects with that
 * failure.
 */
import { HeldOperation } from '../runtime/held-operation.js';
import type { Runtime } from '../runtime/runtime.js';
import { Pending } from './pending.js';
import type { Stream } from './stream.js';

const DONE = Promise.resolve();

export class Operation extends HeldOperation {
  private readonly runtime: Runtime;

  /** Begins an operation on `stream`. This queues nothing. */
  constructor(stream: Stream) {
    super(begun(stream));
    this.runtime = stream.runtime;
  }

  /**
   * Makes work that is queued from here on part of this operation, and of no other, until
   * {@link letGo}.
   */
  take(): void {
    this.runtime.held = this;
  }

  /** Makes work that is queued from here on part of no operation of several parts. */
  letGo(): void {
    this.runtime.held = undefined;
  }

  /** Names the operation as a whole. The first name counts. */
  name(label: string): void {
    this.runtime.label(this, label);
  }

  /**
   * Claims the operation's failure for a waiter that waits before all of it is queued.
   * {@link reported} ends the claim.
   */
  expect(): void {
    this.runtime.expect(this.root);
  }

  /** Ends the claim: the failure has been reported. */
  reported(): void {
    this.runtime.failureOf(this.root);
  }

  /** An error was reported. If it is the operation's failure, it needs no further report. */
  markReported(error: unknown): void {
    const { runtime, root } = this;
    if (runtime.unclaimedFailureOf(root) === error) runtime.failureOf(root, true);
  }

  /**
   * A Pending of what the operation has queued on a stream so far, with the operation's failure.
   */
  pending(stream: Stream): Pending {
    return new Pending(stream, this.root, stream.mark);
  }

  /**
   * The result of {@link pending} where that ends within a few microseconds; undefined where it
   * does not.
   */
  endsSoon(stream: Stream): Promise<void> | undefined {
    if (!stream.passesSoon(stream.mark)) return undefined;
    const failure = this.runtime.failureOf(this.root);
    return failure === undefined ? DONE : Promise.reject(failure);
  }

  /** Blocks this thread until the operation has ended on a stream that it queued on. */
  block(stream: Stream): void {
    const { runtime, root } = this;
    runtime.expect(root);
    stream.block(stream.mark);
    const failure = runtime.failureOf(root);
    if (failure !== undefined) throw failure;
  }
}

/** The number of a new operation that begins on the stream. */
function begun(stream: Stream): number {
  stream.check();
  stream.events.separate();
  return stream.runtime.newRoot();
}
