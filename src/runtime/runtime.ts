/**
 * One device as the JavaScript thread uses it: commands are queued, completions and failures come
 * back. There is one runtime per JavaScript thread and device, shared by every Device that is
 * opened on it.
 *
 * Commands of one stream run in the order in which they are queued; commands of different streams
 * in any order that events allow. No method blocks, except those whose comments state it.
 */
import { availableParallelism } from 'node:os';
import { clearTimeout, setTimeout } from 'node:timers';

import type { Driver } from '../driver/driver.js';
import type { CheckReport } from '../ground/check-report.js';
import { CudaError, CudaOutOfMemoryError } from '../ground/errors.js';
import type { LibraryFunction, LibraryStatuses } from '../native/library-call.js';
import { OP } from './commands.js';
import { Completion, CompletionSlot } from './completion.js';
import type { RoomStep } from './decoder/host.js';
import { expectOptimiser } from './exit.js';
import type { Failure } from './failure.js';
import { HandleAllocator } from './handles.js';
import type { HeldOperation } from './held-operation.js';
import { ProcedureCalls } from './js-thread/calls.js';
import { forgetCurrent } from './js-thread/current-context.js';
import type { RuntimeEvents } from './js-thread/events.js';
import { OperationFailures } from './js-thread/failures.js';
import type { Local } from './js-thread/local.js';
import { lostDeviceError, withOrigin } from './js-thread/lost-device.js';
import { OtherDevices } from './js-thread/other-devices.js';
import { releasePageLocks } from './js-thread/page-locks.js';
import { spareHostMemory } from './js-thread/spare-host-memory.js';
import { Visits } from './js-thread/visits.js';
import {
  CLOSED,
  HANDLE,
  MAX_SLOTS,
  SLOTS_BYTES,
  SLOT_CROSSED,
  SLOT_REACHED,
  SLOT_ROOM,
  SLOT_WORDS,
  WORD,
  isFault,
} from './layout.js';
import type { SharedState } from './layout.js';
import { noLibraries } from './library-calls.js';
import type { FromThread, OpenReply, ProviderConfig } from './messages.js';
import { OperationNames } from './operation-names.js';
import type { ProcedureArguments, ProcedureName, ProcedureResult } from './procedures.js';
import { RingWriter } from './ring-writer.js';
import type { ThreadWorker } from './workers.js';

/**
 * How long `terminate` waits for a worker: one that has not ended by then is inside a call of the
 * driver.
 */
const TERMINATE_MS = 1000;

/** One device of one JavaScript thread. */
export class Runtime {
  readonly config: ProviderConfig;
  readonly info: OpenReply;
  readonly shared: SharedState;
  readonly ring: RingWriter;
  readonly handles: HandleAllocator;
  readonly completion: Completion;
  /**
   * The owner of {@link Completion.loud}: its rejection may go unhandled; all others are handled.
   */
  loud: object | undefined = undefined;
  events: RuntimeEvents;
  /**
   * Host ranges that are page-locked and not yet released, without the runtime's own: the device
   * may write to them.
   */
  readonly pinned = new Map<number, SharedArrayBuffer>();
  /** Names of streams, by slot, and of kernels, by handle, for the error of a lost device. */
  readonly streamTitles = new Map<number, string>();
  readonly kernelNames = new Map<number, string>();
  private readonly thread: ThreadWorker | undefined;
  private readonly local: Local | undefined;
  private ownDriver: Driver | undefined = undefined;
  private readonly visits: Visits;
  private readonly calls: ProcedureCalls;
  private readonly failures: OperationFailures;
  private readonly devices: OtherDevices;
  private readonly operations = new OperationNames();
  private root = 0;
  /**
   * The operation of several parts to which every command that is queued now belongs, if there is
   * one. The first failure of a part ends it, and its other parts are not executed.
   */
  held: HeldOperation | undefined = undefined;
  private lostError: CudaError | undefined = undefined;
  /** Whether the workers were ended, and whether some of their work continues. */
  private ended = false;
  private abandoned = true;
  private readonly freeSlots: number[] = [];
  private readonly retiring: CompletionSlot[] = [];
  private slotsUsed = 0;
  private readonly holds = new Int32Array(MAX_SLOTS);

  /** `thread` or `local` executes the commands: see `js-thread/open.ts`. */
  constructor(
    config: ProviderConfig,
    info: OpenReply,
    shared: SharedState,
    events: RuntimeEvents,
    thread: ThreadWorker | undefined,
    local: Local | undefined,
  ) {
    this.config = config;
    this.info = info;
    this.shared = shared;
    this.events = events;
    this.thread = thread;
    this.local = local;
    this.ring = new RingWriter(
      shared,
      () => this.visits.onSleeping(),
      () => this.completion.kick(),
    );
    this.handles = new HandleAllocator(shared);
    this.completion = new Completion(shared, {
      crowded:
        config.provider === 'cpu' &&
        local === undefined &&
        (config.workers ?? Infinity) >= availableParallelism(),
      turn: local === undefined ? undefined : () => this.visits.localTurn(),
      messages: () => this.thread?.drain(),
      flush: () => {
        if (this.ring.waiting === 0) return true;
        const all = this.ring.flush();
        this.visits.wakeNow();
        return all;
      },
      wake: () => this.visits.wake(),
      lost: () => this.lostError,
    });
    const lost = (): CudaError | undefined => this.lostError;
    this.failures = new OperationFailures({
      shared,
      completion: this.completion,
      operations: this.operations,
      position: () => this.ring.position,
      drain: () => this.thread?.drain(),
      lost,
      unclaimed: (error) => this.events.error(error),
    });
    const parts = {
      config,
      info,
      shared,
      thread,
      local,
      lost,
      ring: this.ring,
      handles: this.handles,
      completion: this.completion,
      failures: this.failures,
    };
    this.visits = new Visits(parts);
    this.devices = new OtherDevices({
      ...parts,
      decoders: () => [this.local?.decoder, this.visits.decoder],
    });
    this.calls = new ProcedureCalls({
      ...parts,
      wakeNow: () => this.visits.wakeNow(),
      makeCurrent: (driver) => this.visits.makeCurrent(driver),
      onMessage: (message) => this.onMessage(message),
      onDeath: (reason) => this.onDeath('the second worker', reason),
    });
  }

  /** Whether commands run on the calling thread only. */
  get isInline(): boolean {
    return this.local !== undefined;
  }

  /** The error of a lost or closed device. */
  get lost(): CudaError | undefined {
    return this.lostError;
  }

  /**
   * The driver on this thread, where there is one, for views of memory that the driver allocated.
   */
  get driver(): Driver | undefined {
    return this.local?.decoder.driver ?? this.ownDriver;
  }

  /**
   * Returns a number for a new operation. Every command has the number of the operation that it
   * belongs to.
   */
  nextRoot(): number {
    return this.held === undefined ? this.ownRoot() : this.held.root;
  }

  /**
   * Returns a number for a stream or an event, which other operations use, too: it is created
   * although the current operation has failed.
   */
  ownRoot(): number {
    this.root = (this.root + 1) & 0x7fffffff;
    return this.root;
  }

  /**
   * Returns a number for a new operation that is not part of the {@link held} one, and ends that.
   */
  newRoot(): number {
    this.held = undefined;
    return this.nextRoot();
  }

  /**
   * Names an operation, for its error. It is called only for operations that are rarer than
   * launches.
   */
  name(root: number, subject: { toString(): string }, method?: string): void {
    const { held } = this;
    if (held?.root !== root) {
      this.operations.set(root, subject, method);
      return;
    }
    // Most operations have one part, whose name is theirs until there is a second one.
    if (held.isUnnamed) this.operations.set(root, subject, method);
    else this.remember(held);
    held.add(subject, method);
  }

  /** Names an operation of several parts as a whole. The first name counts. */
  label(operation: HeldOperation, label: string): void {
    this.remember(operation);
    operation.label ??= label;
  }

  /**
   * Records an operation that has a name. Most operations consist of launches, whose kernels are
   * their names.
   */
  private remember(operation: HeldOperation): void {
    if (operation.remembered) return;
    operation.remembered = true;
    this.operations.set(operation.root, operation);
  }

  /** The name of operation `root`, if it is the one that was named last. */
  latestName(root: number): string | undefined {
    return this.operations.latest(root);
  }

  // Slots

  /** @throws CudaOutOfMemoryError where all slots are in use */
  takeSlot(): CompletionSlot {
    for (let i = 0; i < this.retiring.length; i++) {
      const slot = this.retiring[i]!;
      if (this.completion.passed(slot, slot.issued)) {
        this.retiring.splice(i, 1);
        this.freeSlots.push(slot.index);
        i--;
      }
    }
    let index = this.freeSlots.pop();
    if (index === undefined) {
      if (this.slotsUsed >= MAX_SLOTS) {
        throw new CudaOutOfMemoryError(
          `more than ${MAX_SLOTS} streams and transfers are open on ${this.info.name}; close ` +
            'streams that are no longer needed',
        );
      }
      index = this.slotsUsed++;
      Atomics.store(this.shared.control, WORD.slotsUsed, this.slotsUsed);
    }
    return new CompletionSlot(index, Atomics.load(this.shared.slots, index * SLOT_WORDS));
  }

  /** The slot may be reused once its last fence has passed. */
  returnSlot(slot: CompletionSlot): void {
    this.retiring.push(slot);
  }

  /** @see Visits.fence */
  fence(slot: CompletionSlot, stream: number, flags = 0, waitedFor = false): number {
    return this.visits.fence(slot, stream, flags, waitedFor);
  }

  /** @see Visits.commitWithFence */
  commitWithFence(slot: CompletionSlot): number {
    return this.visits.commitWithFence(slot);
  }

  /**
   * Resolves when the device has passed fence `seq`, which `stream` writes. It executes the
   * commands in the ring on this thread where that is faster. `spin`: whether to spin for the fence
   * first.
   */
  wait(slot: CompletionSlot, seq: number, stream: number, spin = true): Promise<void> {
    this.visits.beforeWait();
    return this.completion.wait(slot, seq, stream, spin);
  }

  /** @see Visits.passesSoon */
  passesSoon(slot: CompletionSlot, seq: number): boolean {
    return this.visits.passesSoon(slot, seq);
  }

  /** @see Visits.hurry */
  hurry(): void {
    this.visits.hurry();
  }

  /**
   * Returns the value of the slot's next hold. It is counted here, because the release of the
   * previous hold may still be in the ring.
   */
  nextHold(slot: CompletionSlot): number {
    const value = (this.holds[slot.index]! + 1) | 0;
    this.holds[slot.index] = value;
    return value;
  }

  /** Releases a hold: the commands after it may continue. */
  release(slot: CompletionSlot, value: number): void {
    // The release goes through the ring instead of a plain store, so that the commands that were
    // sent past the hold come first.
    const body = this.ring.begin(OP.release, 0, 6, 0, -1, 0);
    const { memory } = this.ring;
    memory[body] = slot.index;
    memory[body + 1] = value;
    this.ring.commit();
    if (this.local !== undefined) this.completion.kick();
  }

  /**
   * Resolves when the stream has reached the hold `value`: everything queued before it has been
   * issued.
   */
  reached(slot: CompletionSlot, value: number): Promise<void> {
    const { slots } = this.shared;
    const at = slot.index * SLOT_WORDS + SLOT_REACHED;
    if (this.local !== undefined) this.completion.pump();
    return this.completion.until(() => ((Atomics.load(slots, at) - value) | 0) >= 0);
  }

  // Failures

  /** @see OperationFailures.whyUnmade */
  whyUnmade(slot: CompletionSlot, operation: string): CudaError | undefined {
    return this.failures.whyUnmade(slot, operation);
  }

  /** @see OperationFailures.whyUndefined */
  whyUndefined(handle: number, operation: string): CudaError | undefined {
    return this.failures.whyUndefined(handle, operation);
  }

  /** @see OperationFailures.remember */
  rememberFailure(id: number, error: CudaError): void {
    this.failures.remember(id, error);
  }

  /** @see OperationFailures.fail */
  fail(root: number, error: CudaError): number {
    return this.failures.fail(root, error);
  }

  /** @see OperationFailures.expect */
  expect(root: number): void {
    this.failures.expect(root);
  }

  /** @see OperationFailures.unexpect */
  unexpect(root: number): void {
    this.failures.unexpect(root);
  }

  /** @see OperationFailures.unclaimedOf */
  unclaimedFailureOf(root: number): CudaError | undefined {
    return this.failures.unclaimedOf(root);
  }

  /** @see OperationFailures.of */
  failureOf(root: number, goingOn = false): CudaError | undefined {
    return this.failures.of(root, goingOn);
  }

  /** Is called when a decoder of this device reports a failure. */
  onFailed(failure: Failure): void {
    this.failures.onFailed(failure);
  }

  /** Is called when a decoder of this device reports that the device met a fault. */
  onLost(failure: Failure): void {
    if (this.lostError !== undefined) return;
    const { events, info, config, shared } = this;
    const { reports } = failure;
    const labels = events.labels();
    const error = lostDeviceError(
      reports === undefined
        ? failure
        : { ...failure, reports: reports.map((report) => withOrigin(report, events)) },
      {
        title: info.name,
        provider: config.provider,
        shared,
        position: this.ring.position,
        names: {
          stream: (slot) => this.streamTitles.get(slot) ?? `stream ${slot}`,
          kernel: (handle) => this.kernelNames.get(handle),
          memory: (handle) => labels.get(handle),
          operation: this.operations.all(),
        },
      },
    );
    this.lostError = error;
    this.finish(error);
    events.lost(error);
  }

  /** Is called with a report of the checking device. */
  onReport(report: CheckReport): void {
    this.events.check(withOrigin(report, this.events));
  }

  /** Is called when a worker has ended unexpectedly. Rejects everything in flight. */
  onDeath(worker: string, reason: Error): void {
    if (this.lostError !== undefined) return;
    const error = new CudaError('ERR_CUDA_INTERNAL', `${worker} ended: ${reason.message}`, {
      cause: reason,
    });
    this.lostError = error;
    Atomics.compareExchange(this.shared.control, WORD.lost, 0, 999);
    this.finish(error);
    this.events.lost(error);
  }

  private finish(error: CudaError): void {
    this.completion.rejectAll(error);
    this.calls.rejectAll(error);
  }

  /** Is called with each message of a worker of this device. */
  onMessage(message: FromThread): void {
    switch (message.kind) {
      case 'failed':
        this.onFailed(message.failure);
        return;
      case 'lost':
        this.onLost(message.failure);
        return;
      case 'short':
        void this.makeRoom(message.step, message.stream);
        return;
      case 'idle':
        this.events.idle().catch(() => undefined);
        return;
      case 'check':
        this.onReport(message.report);
        return;
      case 'print':
        this.events.print(message.text);
        return;
      case 'optimises':
        expectOptimiser(message.ms);
        return;
      case 'reply':
      case 'reply-failed':
        this.calls.onReply(message);
        return;
      default:
    }
  }

  /** Makes room for an allocation that found too little memory, then lets it be tried again. */
  async makeRoom(step: RoomStep, stream: number): Promise<void> {
    try {
      await this.events.short(step, stream);
    } catch {
      // The allocation fails again, and its error is the one that counts.
    }
    Atomics.add(this.shared.slots, stream * SLOT_WORDS + SLOT_ROOM, 1);
    if (this.local !== undefined) this.completion.kick();
    else this.visits.wakeNow();
  }

  // Calls that may wait

  /** @see ProcedureCalls.call */
  call<N extends ProcedureName>(
    name: N,
    ...args: ProcedureArguments<N>
  ): Promise<Awaited<ProcedureResult<N>>> {
    return this.calls.call(name, args);
  }

  /** @see ProcedureCalls.callBlocking */
  callBlocking<N extends ProcedureName>(
    name: N,
    ...args: ProcedureArguments<N>
  ): Awaited<ProcedureResult<N>> {
    return this.calls.callBlocking(name, args);
  }

  /** @see ProcedureCalls.expect */
  expectCall(): void {
    this.calls.expect();
  }

  // Other devices, and libraries

  /** @see OtherDevices.addLibrary */
  addLibrary(statuses: LibraryStatuses, functions: readonly LibraryFunction[]): number {
    return this.devices.addLibrary(statuses, functions);
  }

  /** @see OtherDevices.dropLibrary */
  dropLibrary(number: number): void {
    this.devices.dropLibrary(number);
  }

  /** @see OtherDevices.indexOf */
  peer(other: Runtime): number {
    return this.devices.indexOf(other.devices);
  }

  /** @see OtherDevices.adopt */
  adoptForeign(other: Runtime, handle: number): number {
    return this.devices.adopt(other.devices, handle);
  }

  /**
   * Whether the stream in `slot` has passed its wait number `value` for another device, or will
   * never need to.
   */
  hasCrossed(slot: CompletionSlot, value: number): boolean {
    return (
      this.lostError !== undefined ||
      ((Atomics.load(this.shared.slots, slot.index * SLOT_WORDS + SLOT_CROSSED) - value) | 0) >= 0
    );
  }

  /**
   * Executes commands, in inline mode, until the event has been announced to the devices that wait
   * for it; no other thread would do so. `over` returns true once they need it no longer.
   */
  workUntilAnnounced(event: number, over: () => boolean): void {
    if (this.local === undefined) return;
    const wanted = this.config.provider === 'cpu' ? HANDLE.reached : HANDLE.announced;
    const { status } = this.shared;
    this.completion.until(() => Atomics.load(status, event) >= wanted || over()).catch(ignore);
  }

  /** Opens the driver on this thread, for a GPU. */
  openInline(driver: Driver): void {
    driver.cuInit(0);
    forgetCurrent();
    this.visits.makeCurrent(driver);
    this.ownDriver = driver;
    // What the runtime thread's driver postpones cannot be continued here.
    if (this.info.patched) return;
    this.visits.open(driver, {
      failed: (failure) => this.onFailed(failure),
      lost: (failure) => this.onLost(failure),
      call: () => undefined,
      output: () => undefined,
      libraryCaller: noLibraries,
      makeRoom: () => false,
      idle: () => undefined,
    });
  }

  // The end

  /** Requests that the runtime thread stop. It is called at process exit only. */
  requestStop(): void {
    if (this.thread === undefined || this.ended) return;
    const { control } = this.shared;
    if (Atomics.compareExchange(control, WORD.stop, 0, 1) === 2) return;
    this.visits.wakeNow();
    Atomics.add(control, WORD.doorbell, 1);
    Atomics.notify(control, WORD.doorbell);
  }

  /**
   * Waits for that, blocking, until `deadline` at most. Returns false if the thread has not
   * stopped, if the second worker is inside a call, or if the device is still doing work that
   * `close` has abandoned.
   */
  hasStopped(deadline: number): boolean {
    if (this.ended) return !this.abandoned;
    const { control } = this.shared;
    while (this.calls.isCalling()) {
      if (performance.now() >= deadline) return false;
      // No thread changes this word: the wait sleeps for a millisecond.
      Atomics.wait(control, WORD.watch, Atomics.load(control, WORD.watch), 1);
      this.calls.drain();
    }
    if (this.thread === undefined) return true;
    Atomics.wait(control, WORD.stop, 1, Math.max(0, deadline - performance.now()));
    return Atomics.load(control, WORD.stop) === 2;
  }

  /**
   * Reads the messages that the runtime thread has posted, above all text that kernels printed. It
   * is called at process exit only.
   */
  readMessages(): void {
    this.thread?.drain();
  }

  /**
   * Ends the page locks, blocking, when the device has ended its work; it waits for that `ms`
   * milliseconds at most. See `js-thread/page-locks.ts`.
   */
  releasePinned(ms: number): void {
    const driver = this.ownDriver;
    if (driver === undefined || this.lostError !== undefined) return;
    this.visits.makeCurrent(driver);
    const { info, pinned } = this;
    const own = info.stagingAddress - SLOTS_BYTES;
    const locks = [...pinned.keys(), ...(info.registered ? [own] : [])];
    releasePageLocks(driver, this.shared.streams, locks, info.registered ? undefined : own, ms);
  }

  /**
   * Ends the workers. Everything in flight rejects with `error`; `abandoned` means that there is
   * work in flight that will not end. Returns whether all workers have ended: one that is inside a
   * call of the driver ends when the call returns.
   */
  async terminate(error: CudaError, abandoned: boolean): Promise<boolean> {
    if (this.lostError === undefined) {
      this.lostError = error;
      this.finish(error);
    }
    const { control } = this.shared;
    // Streams of other devices that wait for this one read the word and continue.
    Atomics.compareExchange(control, WORD.lost, 0, CLOSED);
    this.devices.end(this.lostError);
    Atomics.store(control, WORD.stop, 1);
    Atomics.add(control, WORD.doorbell, 1);
    Atomics.notify(control, WORD.doorbell);
    Atomics.add(control, WORD.wake, 1);
    Atomics.notify(control, WORD.wake);
    this.ended = true;
    const workers = Promise.all([this.thread?.end(), this.calls.end()]);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), TERMINATE_MS);
    });
    const all = await Promise.race([workers.then(() => true), late]);
    clearTimeout(timer);
    this.abandoned = abandoned || !all;
    const { info, config } = this;
    if (
      !this.abandoned &&
      !info.registered &&
      config.provider === 'libcuda' &&
      !isFault(Atomics.load(control, WORD.lost))
    ) {
      spareHostMemory.keep(config.ordinal, info.stagingAddress - SLOTS_BYTES);
    }
    return !this.abandoned;
  }
}

function ignore(): void {
  // The device was lost, and its error is reported to those that wait.
}
