/**
 * The consequences of a failed command: a failure with a number for the JavaScript thread, an
 * operation whose later commands are skipped, and memory whose contents are undefined.
 */
import {
  OP,
  RECORD_BODY,
  RECORD_ROOT,
  RECORD_STREAM,
  commandOf,
  writtenHandles,
} from '../commands.js';
import { PoisonedError, UnmadeStreamError, describeFailure, isSticky } from '../failure.js';
import type { Failure } from '../failure.js';
import {
  FOREIGN,
  ISSUED_LAUNCHES,
  ISSUED_STRIDE,
  ISSUED_UNMADE,
  WORD,
  isCapturing,
} from '../layout.js';
import type { SharedState } from '../layout.js';
import type { Peers } from '../peers.js';
import { MARKER_INTERVAL } from './launch-limit.js';
import type { DecoderHost } from './host.js';

/** Number of failed operations that are kept; the oldest is dropped first. */
const REMEMBERED = 4096;

export class Failures {
  /**
   * Operations in which a command failed, and the failure that makes the memory undefined that they
   * would have written.
   */
  readonly roots = new Map<number, number>();
  private readonly shared: SharedState;
  private readonly peers: Peers;
  private readonly host: DecoderHost;

  constructor(shared: SharedState, peers: Peers, host: DecoderHost) {
    this.shared = shared;
    this.peers = peers;
    this.host = host;
  }

  /** Handles the failure of the command whose record is at `at`. */
  fail(error: unknown, op: number, memory: Int32Array, at: number): void {
    const { shared } = this;
    const body = at + RECORD_BODY;
    const stream = memory[at + RECORD_STREAM]!;
    const root = memory[at + RECORD_ROOT]!;
    const failure = this.describe(error, op, stream, root);
    const { id } = failure;
    if (isSticky(failure.result)) {
      this.lose(failure);
      return;
    }
    const reason = failure.causePeer === undefined ? (failure.cause ?? id) : id;
    if (root !== 0) {
      this.roots.set(root, reason);
      if (this.roots.size > REMEMBERED) this.roots.delete(this.roots.keys().next().value as number);
    }
    if (op === OP.streamCreate) {
      const base = memory[body]! * ISSUED_STRIDE;
      shared.issued[base + ISSUED_UNMADE] = id;
      // The fast path of launches leaves a launch to `Decoder.dispatch` that would be the last of
      // its interval; with this count it leaves every launch of the stream.
      shared.issued[base + ISSUED_LAUNCHES] = MARKER_INTERVAL - 1;
    }
    const written = isCapturing(shared, stream) ? [] : writtenHandles(op, memory, body);
    const foreign = written.flatMap((handle) => {
      const elsewhere =
        shared.failure[handle] === FOREIGN
          ? this.peers.nextFailure(shared.values[handle]!)
          : undefined;
      return elsewhere === undefined ? [] : [{ handle, ...elsewhere }];
    });
    if (foreign.length > 0) failure.elsewhere = foreign.map(({ peer, id }) => ({ peer, id }));
    // The failure is posted before the poison is visible, so that each reader of the poison finds
    // the reason.
    this.host.failed(failure);
    // The memory that the command would have written is undefined from here on, for the first
    // reason in the chain.
    this.poison(written, reason);
    for (const { handle, id: theirs } of foreign) this.peers.poison(shared.values[handle]!, theirs);
  }

  /** Handles the failure of a command that writes no memory. */
  failWithout(error: unknown, op: number, stream: number, root = 0): void {
    const failure: Failure = {
      id: this.next(),
      root,
      stream,
      ...describeFailure(error, commandOf(op)?.call ?? ''),
    };
    if (isSticky(failure.result)) this.lose(failure);
    else this.host.failed(failure);
  }

  /** Marks the device lost: all queued commands are skipped from here on. */
  lose(failure: Failure): void {
    if (Atomics.compareExchange(this.shared.control, WORD.lost, 0, failure.result) === 0)
      this.host.lost(failure);
  }

  /** Returns the number of the next failure. */
  next(): number {
    return Atomics.add(this.shared.control, WORD.failures, 1) + 1;
  }

  /** Marks memory of this device undefined. */
  poison(written: readonly number[], id: number): void {
    const { failure } = this.shared;
    for (const handle of written) if (failure[handle] !== FOREIGN) failure[handle] = id;
  }

  private describe(error: unknown, op: number, stream: number, root: number): Failure {
    const id = this.next();
    const call = commandOf(op)?.call ?? '';
    if (!(error instanceof PoisonedError) && !(error instanceof UnmadeStreamError))
      return { id, root, stream, ...describeFailure(error, call) };
    return {
      id,
      root,
      stream,
      result: 0,
      resultName: '',
      call,
      message: error.message,
      cause: error.failure,
      ...(error instanceof UnmadeStreamError
        ? { unmade: true }
        : error.peer === undefined
          ? {}
          : { causePeer: error.peer }),
    };
  }
}
