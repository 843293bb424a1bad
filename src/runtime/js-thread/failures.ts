/**
 * Failures of operations on the JavaScript thread: which operation has failed and why, whether some
 * code awaits it, and the errors that are made of this.
 *
 * A failure that is not claimed within two turns of the event loop after it arrived is reported.
 */
import { setImmediate } from 'node:timers';

import { CudaDeviceLostError, CudaError } from '../../ground/errors.js';
import type { Completion, CompletionSlot } from '../completion.js';
import { errorFromFailure } from '../error-of-failure.js';
import type { Failure } from '../failure.js';
import { WORD, unmadeBy } from '../layout.js';
import type { SharedState } from '../layout.js';
import { NumberSet } from '../number-set.js';
import type { OperationNames } from '../operation-names.js';
import { peek } from '../shared-words.js';

/**
 * Number of failed operations that are kept for a later await: this many take 12 MB. Awaited ones
 * are kept in any case.
 */
const REMEMBERED_FAILURES = 16384;
/**
 * An error takes 2 to 4 KB, most of it its stack; the data that it is made of takes 0.8. Only the
 * errors of the latest failures are kept.
 */
const KEPT_ERRORS = 1024;

interface Failed {
  failure: Failure;
  /** The name of the operation. */
  name: string | undefined;
  /** The failure or error that it follows from. */
  cause: Failed | CudaError | undefined;
  /** The error is made again where it is needed and was not kept. */
  error: CudaError | undefined;
  claimed: boolean;
  /** Whether it is claimed by a wait that has not ended yet. */
  expected: boolean;
}

/** The interface of the runtime that the failures belong to. */
export interface FailuresHost {
  readonly shared: SharedState;
  readonly completion: Completion;
  readonly operations: OperationNames;
  /** Returns the position after the last record in the ring. */
  position(): number;
  /** Reads the messages that the runtime thread has posted. */
  drain(): void;
  /** The error of a lost or closed device. */
  lost(): CudaError | undefined;
  /** Is called with a failure that no code awaits. */
  unclaimed(error: CudaError): void;
}

export class OperationFailures {
  /**
   * The failures of other devices, by the numbers that commands use for the devices; for a device
   * that has ended, its last error.
   */
  readonly others: (OperationFailures | CudaError | undefined)[] = [];
  /** The failures of devices whose commands may name this one. */
  readonly knownTo = new Set<OperationFailures>();
  private readonly host: FailuresHost;
  private readonly completion: Completion;
  private readonly control: Int32Array;
  /** Failures by operation. */
  private readonly byRoot = new Map<number, Failed>();
  private readonly byId = new Map<number, Failed>();
  /** Errors of failures that this thread met itself, or that other devices report. */
  private readonly errorsById = new Map<number, CudaError>();
  /** The latest failures whose errors were made, in turn. */
  private readonly withErrors: Failed[] = [];
  private errorsMade = 0;
  /** Operations whose end is awaited. */
  private readonly expected = new NumberSet();

  constructor(host: FailuresHost) {
    this.host = host;
    this.completion = host.completion;
    this.control = host.shared.control;
  }

  /**
   * Returns why the stream of this slot could not be created, as far as messages have been read.
   */
  whyUnmade(slot: CompletionSlot, operation: string): CudaError | undefined {
    const id = unmadeBy(this.host.shared, slot.index);
    if (id === 0) return undefined;
    this.completion.catchUp();
    this.claimId(id);
    const failure = {
      result: 0 as const,
      resultName: '',
      call: operation,
      message: 'its stream could not be made',
      unmade: true as const,
    };
    return errorFromFailure(failure, operation, this.errorById(id));
  }

  /**
   * Returns the failure that made the memory of `handle` undefined, as the error of an operation
   * that uses it; undefined where the memory is defined.
   */
  whyUndefined(handle: number, operation: string): CudaError | undefined {
    const id = this.host.shared.failure[handle]!;
    if (id === 0) return undefined;
    this.completion.catchUp();
    this.catchUpWith(id);
    this.claimId(id);
    const failure = {
      result: 0 as const,
      resultName: '',
      call: operation,
      message: 'its memory was left undefined by an earlier failure',
    };
    return errorFromFailure(
      failure,
      operation,
      this.errorById(id) ?? new CudaError('ERR_CUDA_INTERNAL', 'an earlier operation failed'),
    );
  }

  /** Records a failure that this thread met itself, for operations that follow from it. */
  remember(id: number, error: CudaError): void {
    this.errorsById.set(id, error);
    keepLatest(this.errorsById);
  }

  /**
   * Declares operation `root` failed. Returns the failure's number, which marks the memory that it
   * made undefined.
   */
  fail(root: number, error: CudaError): number {
    const id = Atomics.add(this.control, WORD.failures, 1) + 1;
    const failure: Failure = {
      id,
      root,
      stream: -1,
      result: 0,
      resultName: '',
      call: '',
      message: error.message,
    };
    this.note({
      failure,
      name: undefined,
      cause: undefined,
      error,
      claimed: false,
      expected: false,
    });
    return id;
  }

  /**
   * Operation `root` is awaited: its failure belongs to that wait, however long the work takes.
   * {@link of} ends that.
   */
  expect(root: number): void {
    this.expected.add(root);
    const failed = this.byRoot.size === 0 ? undefined : this.byRoot.get(root);
    if (failed !== undefined && !failed.claimed) this.reserve(failed);
  }

  /** The wait was aborted before it ended: its failure is unclaimed again. */
  unexpect(root: number): void {
    this.expected.delete(root);
    const failed = this.byRoot.get(root);
    if (failed?.expected !== true) return;
    failed.expected = false;
    failed.claimed = false;
    this.reportUnclaimed(failed);
  }

  /** As {@link of}, without claiming the failure. */
  unclaimedOf(root: number): CudaError | undefined {
    // Failures are numbered before they are posted. Some callers call this often, and a failure is
    // rare.
    if (Atomics.load(this.control, WORD.failures) === 0) return undefined;
    this.completion.catchUp();
    const failed = this.byRoot.get(root);
    return failed === undefined ? undefined : this.errorOf(failed);
  }

  /**
   * Returns the error of operation `root`, if it failed, and claims it. `goingOn`: the wait
   * continues.
   */
  of(root: number, goingOn: boolean): CudaError | undefined {
    if (!goingOn && this.expected.size !== 0) this.expected.delete(root);
    // A failure is posted before the fence after it is written; its message may be unread.
    this.completion.catchUp();
    if (this.byRoot.size === 0) return undefined;
    const failed = this.byRoot.get(root);
    if (failed === undefined) return undefined;
    this.claim(failed);
    return this.errorOf(failed);
  }

  /** Is called when the runtime thread, or this thread's decoder, reports a failure. */
  onFailed(failure: Failure): void {
    const failed: Failed = {
      failure,
      name: this.host.operations.get(failure.root),
      cause: this.causeOf(failure),
      error: undefined,
      claimed: false,
      expected: false,
    };
    const error = this.errorOf(failed);
    for (const { peer, id } of failure.elsewhere ?? []) {
      const where = this.others[peer];
      if (where instanceof OperationFailures) where.remember(id, error);
    }
    this.note(failed);
  }

  private note(failed: Failed): void {
    const { failure } = failed;
    this.byId.set(failure.id, failed);
    keepLatest(this.byId);
    // The first failure of an operation counts; a failure that belongs to no operation is reported
    // each time.
    if (failure.root !== 0) {
      if (this.byRoot.has(failure.root)) return;
      this.byRoot.set(failure.root, failed);
      keepLatest(this.byRoot, ({ expected }) => expected);
    }
    if (this.expected.has(failure.root)) this.reserve(failed);
    this.reportUnclaimed(failed);
  }

  private claimId(id: number): void {
    const failed = this.byId.get(id);
    if (failed !== undefined) failed.claimed = true;
  }

  /** Claims a failure, and the failure that it follows from. */
  private claim(failed: Failed): void {
    failed.claimed = true;
    failed.expected = false;
    const { cause, causePeer } = failed.failure;
    const where = causePeer === undefined ? this : this.others[causePeer];
    if (cause !== undefined && where instanceof OperationFailures) where.claimId(cause);
  }

  /** Claims a failure for a wait that continues and will report it. */
  private reserve(failed: Failed): void {
    this.claim(failed);
    failed.expected = true;
  }

  /** Returns what a failure follows from, which may be a failure of another device. */
  private causeOf({ cause, causePeer }: Failure): Failed | CudaError | undefined {
    if (cause === undefined) return undefined;
    if (causePeer === undefined) {
      this.catchUpWith(cause);
      const failed = this.byId.get(cause);
      if (failed === undefined) return this.errorsById.get(cause);
      // A failure that others follow from is kept longer, since it is needed again.
      this.byId.delete(cause);
      this.byId.set(cause, failed);
      return failed;
    }
    const other = this.others[causePeer];
    if (other instanceof CudaError) return other;
    other?.catchUpWith(cause);
    return (
      other?.errorById(cause) ??
      other?.host.lost() ??
      new CudaDeviceLostError('the other device was lost or closed')
    );
  }

  private knows(id: number): boolean {
    return this.byId.has(id) || this.errorsById.has(id);
  }

  private errorById(id: number): CudaError | undefined {
    const failed = this.byId.get(id);
    return failed === undefined ? this.errorsById.get(id) : this.errorOf(failed);
  }

  /**
   * Reads the message of a failure whose number is in the tables already. It comes from the thread
   * of this device, or from that of a device which used memory here.
   */
  private catchUpWith(id: number): void {
    if (this.knows(id)) return;
    this.host.drain();
    for (const other of this.knownTo) if (!this.knows(id)) other.host.drain();
  }

  /**
   * Reports the failure unless it is claimed within two turns of the event loop, as Node does with
   * unhandled rejections. Commands that had been queued when it arrived may follow from it and be
   * awaited: they are decoded first, however long the commands before them take.
   */
  private reportUnclaimed(failed: Failed): void {
    const position = this.host.position();
    this.completion
      .until(() => ((peek(this.control, WORD.tail) - position) | 0) >= 0)
      .then(
        () =>
          setImmediate(() =>
            setImmediate(() => {
              this.completion.catchUp();
              if (failed.claimed) return;
              // It is reported once: a wait that was aborted at once requests this a second time.
              failed.claimed = true;
              this.host.unclaimed(this.errorOf(failed));
            }),
          ),
        ignore,
      );
  }

  private errorOf(failed: Failed): CudaError {
    if (failed.error !== undefined) return failed.error;
    const { failure, name, cause } = failed;
    const error = errorFromFailure(
      failure,
      name,
      cause === undefined || cause instanceof CudaError ? cause : this.errorOf(cause),
    );
    const at = this.errorsMade++ % KEPT_ERRORS;
    const before = this.withErrors[at];
    if (before !== undefined) before.error = undefined;
    this.withErrors[at] = failed;
    failed.error = error;
    return error;
  }
}

/**
 * Removes the oldest entry where there are too many. Entries that have to stay are skipped, a few
 * at a time.
 */
function keepLatest<T>(remembered: Map<number, T>, stays?: (value: T) => boolean): void {
  if (remembered.size <= REMEMBERED_FAILURES) return;
  let passed = 0;
  for (const [number, value] of remembered) {
    remembered.delete(number);
    if (stays?.(value) !== true) return;
    remembered.set(number, value);
    if (++passed === 16) return;
  }
}

function ignore(): void {
  // The device was lost meanwhile, and that error is reported.
}
