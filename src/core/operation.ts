/**
 * An operation of many parts: whatever is queued while it is held, on whichever stream. Its first
 * failure ends it, and what is left of it is not carried out; who waits for its end learns of that
 * failure.
 */
import { HeldOperation } from '../runtime/held-operation.js';
import type { Runtime } from '../runtime/runtime.js';
import { Pending } from './pending.js';
import type { Stream } from './stream.js';

const DONE = Promise.resolve();

export class Operation extends HeldOperation {
  private readonly runtime: Runtime;

  /** Begins on `stream`. Nothing is queued by that. */
  constructor(stream: Stream) {
    super(begun(stream));
    this.runtime = stream.runtime;
  }

  /** What is queued from here on is part of the operation, and of no other, until {@link letGo}. */
  take(): void {
    this.runtime.held = this;
  }

  /** What is queued from here on is part of no operation of several parts. */
  letGo(): void {
    this.runtime.held = undefined;
  }

  /** Says what it is called as a whole; the first name counts. */
  name(label: string): void {
    this.runtime.label(this, label);
  }

  /**
   * Somebody waits for it, though not for all that it has queued yet: its failure is theirs. To be
   * followed by {@link told}.
   */
  expect(): void {
    this.runtime.expect(this.root);
  }

  /** Whoever was to be told has been. */
  told(): void {
    this.runtime.failureOf(this.root);
  }

  /**
   * Somebody has been told of the error. Where it is the operation's failure that needs no more
   * telling.
   */
  heard(error: unknown): void {
    const { runtime, root } = this;
    if (runtime.unclaimedFailureOf(root) === error) runtime.failureOf(root, true);
  }

  /** Its end on a stream that it queued on, as far as it goes by now, and its failure. */
  pending(stream: Stream): Pending {
    return new Pending(stream, this.root, stream.mark);
  }

  /**
   * What {@link pending} is where that ends within a few microseconds; undefined where it does not.
   */
  endsSoon(stream: Stream): Promise<void> | undefined {
    if (!stream.passesSoon(stream.mark)) return undefined;
    const failure = this.runtime.failureOf(this.root);
    return failure === undefined ? DONE : Promise.reject(failure);
  }

  /** Blocks this thread until it is over on a stream that it queued on. */
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
  stream.separate();
  return stream.runtime.newRoot();
}
