/**
 * One device as the JS thread sees it: commands go in, completions and failures come out. There is
 * one runtime per JS thread and device, shared by every Device that is opened on it.
 *
 * Ordering: commands of one stream run in the order in which they are enqueued; commands of
 * different streams in any order that events allow. Nothing here blocks.
 */
import { availableParallelism } from 'node:os';
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import { receiveMessageOnPort } from 'node:worker_threads';

import type { CheckMemory, CheckReport } from '../ground/check-report.js';
import type { SharedContext } from '../driver/driver.js';
import { CUresult } from '../ground/result.js';
import { Completion, CompletionSlot } from './completion.js';
import { FLAG_HOT, FLAG_SHORT, OP } from './commands.js';
import { Decoder } from './decoder.js';
import type { DecoderHost, RoomStep } from './decoder/host.js';
import {
  CudaArgumentError,
  CudaCheckError,
  CudaDeviceLostError,
  CudaError,
  CudaOutOfMemoryError,
} from '../ground/errors.js';
import { errorFromFailure } from './error-of-failure.js';
import { describeFailure } from './failure.js';
import type { Failure } from './failure.js';
import { expectOptimiser } from './exit.js';
import { HandleAllocator } from './handles.js';
import { allocateHost } from './host-allocation.js';
import { describeInFlight, inFlight } from './in-flight.js';
import {
  CLOSED,
  FOREIGN,
  HANDLE,
  ISSUED_STRIDE,
  ISSUED_UNMADE,
  MAX_HANDLES,
  MAX_SLOTS,
  PINNED_BYTES,
  PINNED_SLACK_BYTES,
  SHARED_BYTES,
  SLOTS_BYTES,
  SLOT_CROSSED,
  SLOT_REACHED,
  SLOT_ROOM,
  SLOT_WORDS,
  STATE,
  WORD,
  createShared,
  isFault,
  viewShared,
} from './layout.js';
import type { SharedState } from './layout.js';
import type { FromThread, OpenReply, ProviderConfig, ToThread } from './messages.js';
import type { LibraryFunction, LibraryStatuses } from '../native/library-call.js';
import type { PeerStart } from './peers.js';
import type { ProcedureArguments, ProcedureName, ProcedureResult } from './procedures.js';
import type { HeldOperation } from './held-operation.js';
import { OperationNames } from './operation-names.js';
import { noLibraries } from './library-calls.js';
import { NumberSet } from './number-set.js';
import { RingWriter } from './ring-writer.js';
import { largePages } from './large-pages.js';
import { nativeOutput } from './native-output.js';
import { peek } from './shared-words.js';
import type * as Inline from './thread/inline.js';
import { ThreadWorker } from './workers.js';

export interface RuntimeEvents {
  /** A failure of an operation that nobody awaits. */
  error(error: CudaError): void;
  /** Text that a kernel printed. */
  print(text: string): void;
  /** The checking device found something. */
  check(report: CheckReport): void;
  /**
   * What the allocation that operation `root` made is called, and where it was made; on a device
   * that is checked.
   */
  origin(memory: CheckMemory): { label: string; stack: string } | undefined;
  /** The device met a fault. */
  lost(error: CudaError): void;
  /** Labels of what is allocated, by handle; asked for when the device is lost. */
  labels(): ReadonlyMap<number, string>;
  /**
   * An allocation of a stream (its slot) found too little memory; it is tried again when the
   * promise settles.
   */
  short(step: RoomStep, stream: number): Promise<void>;
  /** The device has been idle for some time. */
  idle(): Promise<void>;
}

/** What works where there is no runtime thread. */
interface Local {
  decoder: Decoder;
  loop: Inline.ThreadLoop;
  runProcedure: typeof Inline.runProcedure;
}

interface Failed {
  failure: Failure;
  /** What the operation is called. */
  name: string | undefined;
  /** What it follows from. */
  cause: Failed | CudaError | undefined;
  /** Made anew where it is asked for and has not been kept. */
  error: CudaError | undefined;
  claimed: boolean;
  /** Claimed by somebody who waits and has not been told yet. */
  expected: boolean;
}

/**
 * A failed operation is remembered for whoever awaits it later, but not for ever: these take 12 MB.
 * Those that somebody waits for stay.
 */
const REMEMBERED_FAILURES = 16384;
/**
 * An error takes 2 to 4 KB, most of it its stack; what it is made of takes 0.8. Only those of the
 * latest failures are kept.
 */
const KEPT_ERRORS = 1024;
/** A graph whose launch takes the driver no longer than a kernel's, as its record says. */
const SHORT_GRAPH = OP.graphLaunch | (FLAG_SHORT << 8);
/**
 * What a turn of the event loop queues beyond this is a burst: the sleeping thread is woken for it.
 */
const INLINE_WORDS = 64;
/**
 * Commands of one turn that this thread carries out as they come, while the other sleeps: with more
 * it is a burst.
 */
const VISITS = 4;
/** The context that is current on this thread, as far as is known here; 0 where it is not. */
let currentContext = 0;
/**
 * After a pause of this length a driver call takes several times as long on this thread as on one
 * that has not slept.
 */
const COLD_MS = 0.6;

/**
 * Slots and staging of GPUs that were closed, in memory that the driver allocated: by the device's
 * number.
 */
const spareHostMemory = new Map<number, number[]>();
/** A worker that does not end within this time is inside a call of the driver. */
const TERMINATE_MS = 1000;

export class Runtime {
  readonly config: ProviderConfig;
  readonly info: OpenReply;
  readonly shared: SharedState;
  readonly ring: RingWriter;
  readonly handles: HandleAllocator;
  readonly completion: Completion;
  /**
   * What stands on {@link Completion.loud}: its rejection may go unhandled, the others are quiet.
   */
  loud: object | undefined = undefined;
  events: RuntimeEvents;
  /**
   * Host ranges that are page-locked and not yet released, beside the runtime's own: the device may
   * write there.
   */
  readonly pinned = new Map<number, SharedArrayBuffer>();
  /**
   * What streams and kernels are called, for the error of a lost device: by slot, and by handle.
   */
  readonly streamTitles = new Map<number, string>();
  readonly kernelNames = new Map<number, string>();
  private readonly thread: ThreadWorker | undefined;
  private readonly local: Local | undefined;
  private calls: ThreadWorker | undefined = undefined;
  /** The JS thread's own decoder, for launches after idle. */
  private inline: Decoder | undefined = undefined;
  private ownDriver: Decoder['driver'] | undefined = undefined;
  private readonly operations = new OperationNames();
  private readonly failures = new Map<number, Failed>();
  /** Of failures that this thread met, or other devices. */
  private readonly errorsById = new Map<number, CudaError>();
  private readonly failedById = new Map<number, Failed>();
  /** The latest failures whose errors were made of them, in turn. */
  private readonly withErrors: Failed[] = [];
  private errorsMade = 0;
  /** Operations whose end somebody waits for. */
  private readonly expected = new NumberSet();
  private readonly replies = new Map<
    number,
    {
      resolve: (value: unknown) => void;
      reject: (reason: unknown) => void;
      name: string;
      worker: ThreadWorker;
    }
  >();
  private replyId = 0;
  private libraryFunctions = 0;
  private root = 0;
  /**
   * The operation that whatever is queued belongs to, if that is one of several parts: the first
   * failure of one of them ends it, and what is left of it is not carried out.
   */
  held: HeldOperation | undefined = undefined;
  private lostError: CudaError | undefined = undefined;
  /** Whether the workers were ended, and whether some of what they began goes on. */
  private ended = false;
  private abandoned = true;
  private readonly freeSlots: number[] = [];
  private readonly retiring: CompletionSlot[] = [];
  private slotsUsed = 0;
  private readonly holds = new Int32Array(MAX_SLOTS);
  private settleScheduled = false;
  /** Commands of this turn that have been carried out on this thread, or were to be. */
  private visits = 0;
  /** Behind the first of them, in the ring. */
  private visitedAt = 0;
  /** Whether the last turn of several commands was a burst: the next one may be. */
  private bursts = false;
  private cold = true;
  private lastVisit = 0;
  /** The runtimes of other devices, and what commands here call them by. */
  private readonly peerIndices = new Map<Runtime, number>();
  /** By that number; of one that has ended, what it ended with. */
  private readonly peers: (Runtime | CudaError | undefined)[] = [];
  /** Runtimes that know this one. */
  private readonly knownTo = new Set<Runtime>();
  private context: SharedContext | undefined = undefined;

  private constructor(
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
      () => this.onSleeping(),
      () => this.completion.kick(),
    );
    this.handles = new HandleAllocator(shared);
    this.completion = new Completion(shared, {
      crowded:
        config.provider === 'cpu' &&
        local === undefined &&
        (config.workers ?? Infinity) >= availableParallelism(),
      turn: local === undefined ? undefined : () => this.localTurn(),
      messages: () => this.thread?.drain(),
      flush: () => {
        if (this.ring.waiting === 0) return true;
        const all = this.ring.flush();
        this.wakeNow();
        return all;
      },
      wake: () => this.wake(),
      lost: () => this.lostError,
    });
  }

  static async open(
    provider: ProviderConfig,
    events: RuntimeEvents,
    inline: boolean,
  ): Promise<Runtime> {
    // Read once: threads that start later do without the same things.
    const hostMemory = spareHostMemory.get(provider.ordinal)?.pop();
    const config: ProviderConfig = {
      ...provider,
      without: (process.env['ASYNC_CUDA_WITHOUT'] ?? '').split(','),
      ...(hostMemory === undefined ? {} : { hostMemory }),
    };
    const buffers = allocateHost('Device.open', SHARED_BYTES, '', () =>
      createShared({
        buffer: new SharedArrayBuffer(PINNED_BYTES + PINNED_SLACK_BYTES),
        byteOffset: 0,
      }),
    );
    if (inline) {
      let runtime: Runtime | undefined;
      try {
        const { LibraryCaller, ThreadLoop, openDevice, openDriver, runProcedure } =
          await import('./thread/inline.js');
        const bare = openDriver(config, {
          print: (text) => runtime?.events.print(text),
          report: (report) => runtime?.onReport(report),
          askForLargePages: largePages(config.koffiPath),
          optimises: expectOptimiser,
        });
        const { driver, reply: info, buffers: own } = openDevice(bare, config, buffers);
        const shared = viewShared(own);
        const host: DecoderHost = {
          failed: (failure) => runtime?.onFailed(failure),
          lost: (failure) => runtime?.onLost(failure),
          call: () => undefined,
          output: () => nativeOutput(config.koffiPath),
          libraryCaller: () => new LibraryCaller(config.koffiPath),
          makeRoom: (step, stream, bytes) => {
            if (bytes > info.totalMemory) return false;
            // Not within the decoder's own turn: what is to be done goes through it.
            setImmediate(() => void runtime?.makeRoom(step, stream));
            return true;
          },
          idle: () => undefined,
        };
        const decoder = new Decoder(
          driver,
          shared,
          info.slotsAddress,
          config.provider === 'libcuda',
          host,
        );
        // Opening made its own context current.
        currentContext = 0;
        runtime = new Runtime(config, info, shared, events, undefined, {
          decoder,
          loop: new ThreadLoop(decoder),
          runProcedure,
        });
        return runtime;
      } catch (error) {
        throw errorFromFailure(describeFailure(error, 'open'), undefined);
      }
    }
    let opened: ((info: OpenReply) => void) | undefined;
    let failed: ((reason: unknown) => void) | undefined;
    let runtime: Runtime | undefined;
    const info = new Promise<OpenReply>((resolve, reject) => {
      opened = resolve;
      failed = reject;
    });
    const thread = new ThreadWorker(
      { role: 'runtime', config, buffers },
      (message) => {
        if (message.kind === 'opened') opened?.(message.reply);
        else if (message.kind === 'open-failed')
          failed?.(errorFromFailure(message.error, undefined));
        else runtime?.onMessage(message);
      },
      (reason) => {
        const error = new CudaError(
          'ERR_CUDA_INTERNAL',
          `the runtime thread ended: ${reason.message}`,
          { cause: reason },
        );
        failed?.(error);
        runtime?.die(error);
      },
    );
    thread.ref();
    try {
      // Read while the thread starts.
      const [reply, gpu] = await Promise.all([
        info,
        config.provider === 'libcuda' ? import('./thread/open-gpu-driver.js') : undefined,
      ]);
      const driver = gpu?.openGpuDriver(config);
      const pinned = reply.registered
        ? buffers.pinned
        : (reply.hostMemory ??
          driver!.hostView(reply.stagingAddress - SLOTS_BYTES, PINNED_BYTES).buffer);
      const shared = viewShared({ ...buffers, pinned, pinnedOffset: reply.pinnedOffset });
      runtime = new Runtime(config, reply, shared, events, thread, undefined);
      if (driver !== undefined) runtime.openInline(driver);
      return runtime;
    } catch (error) {
      void thread.end();
      throw error;
    } finally {
      thread.unref();
    }
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
   * The driver on this thread, where there is one: for views of memory that the driver allocated.
   */
  get driver(): Decoder['driver'] | undefined {
    return this.local?.decoder.driver ?? this.ownDriver;
  }

  /**
   * A number for a new operation; every command carries the number of the operation that it belongs
   * to.
   */
  nextRoot(): number {
    return this.held === undefined ? this.ownRoot() : this.held.root;
  }

  /**
   * A number for what others use too, which is made although the operation at hand has failed: a
   * stream, an event.
   */
  ownRoot(): number {
    this.root = (this.root + 1) & 0x7fffffff;
    return this.root;
  }

  /**
   * A number for a new operation that is no part of the one that is held, which ends being held.
   */
  newRoot(): number {
    this.held = undefined;
    return this.nextRoot();
  }

  /**
   * Says what an operation is called, for its error. Only for operations that are rarer than
   * launches.
   */
  name(root: number, subject: { toString(): string }, method?: string): void {
    const { held } = this;
    if (held?.root !== root) {
      this.operations.set(root, subject, method);
      return;
    }
    // Most have one part, and are called by that until there is more to say of them.
    if (held.isUnnamed) this.operations.set(root, subject, method);
    else this.remember(held);
    held.add(subject, method);
  }

  /** Says what an operation of several parts is called as a whole; the first name counts. */
  label(operation: HeldOperation, label: string): void {
    this.remember(operation);
    operation.label ??= label;
  }

  /**
   * Only what has a name is kept for its error: most operations are of launches, which have theirs.
   */
  private remember(operation: HeldOperation): void {
    if (operation.remembered) return;
    operation.remembered = true;
    this.operations.set(operation.root, operation);
  }

  /** What operation `root` is called, where it is the one that was named last. */
  latestName(root: number): string | undefined {
    return this.operations.latest(root);
  }

  // Slots

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

  /** The slot may be given out again once its last fence has passed. */
  returnSlot(slot: CompletionSlot): void {
    this.retiring.push(slot);
  }

  /**
   * Writes a fence on `stream` and returns its value. A fence that is waited for at once is seen to
   * by the wait.
   */
  fence(slot: CompletionSlot, stream: number, flags = 0, waitedFor = false): number {
    slot.issued = (slot.issued + 1) | 0;
    if (waitedFor && this.fenceHere(slot, stream)) return slot.issued;
    const body = this.ring.begin(
      OP.fence,
      waitedFor && this.completion.isOnlyOneHot ? flags | FLAG_HOT : flags,
      6,
      0,
      stream,
      0,
    );
    const { memory } = this.ring;
    memory[body] = slot.index;
    memory[body + 1] = slot.issued;
    if (waitedFor) this.ring.show();
    else this.ring.commit();
    return slot.issued;
  }

  /**
   * Ends the command at hand, of the slot's stream, and writes a fence behind it that will be
   * waited for at once. Returns its value.
   */
  commitWithFence(slot: CompletionSlot): number {
    const { ring, inline } = this;
    const { kind } = ring;
    if (
      inline === undefined ||
      (kind !== OP.launchLine && kind !== SHORT_GRAPH) ||
      !ring.isAlone ||
      !this.mayTakeOver(0)
    ) {
      return this.showWithFence(slot);
    }
    const op = kind & 0xff;
    this.cold = this.isCold();
    try {
      this.makeCurrent(inline.driver);
      if (inline.launches.runAlone(ring.place, op)) {
        ring.skip();
        slot.issued = (slot.issued + 1) | 0;
        inline.fences.now(slot.index, slot.index, slot.issued, !this.cold);
        inline.launches.recordBehind(ring.place);
        inline.launches.rehearse(ring.place, op);
        return slot.issued;
      }
    } finally {
      this.giveBack();
    }
    return this.showWithFence(slot);
  }

  /** {@link commitWithFence} by way of the ring. */
  private showWithFence(slot: CompletionSlot): number {
    const { ring, inline } = this;
    ring.show();
    if (inline === undefined || !inline.runsNext || !this.mayTakeOver(INLINE_WORDS)) {
      ring.announce();
      return this.fence(slot, slot.index, 0, true);
    }
    this.cold = this.isCold();
    let fenced = false;
    try {
      this.makeCurrent(inline.driver);
      inline.drain();
      fenced = ring.drained;
      if (fenced) {
        slot.issued = (slot.issued + 1) | 0;
        inline.fences.now(slot.index, slot.index, slot.issued, !this.cold);
      }
    } finally {
      this.giveBack();
    }
    return fenced ? slot.issued : this.fence(slot, slot.index, 0, true);
  }

  /**
   * Resolves when the device has passed fence `seq`. Runs what waits in the ring on this thread
   * where that is faster.
   */
  wait(slot: CompletionSlot, seq: number, stream: number, spin = true): Promise<void> {
    this.visits = 0;
    this.takeOver();
    return this.completion.wait(slot, seq, stream, spin);
  }

  /**
   * As {@link wait}, where the end is near: returns whether the fence has passed already. The
   * caller waits otherwise.
   */
  passesSoon(slot: CompletionSlot, seq: number): boolean {
    this.visits = 0;
    if (!this.ring.drained || this.local !== undefined) this.takeOver();
    const { completion } = this;
    if (!completion.isOnlyOneInTurn) return completion.spin(slot, seq) && completion.mayEndNow();
    // Beforehand, since this thread only waits until then.
    const may = completion.mayEndNow();
    return completion.spin(slot, seq) && may;
  }

  /**
   * The value of the slot's next hold. Counted here: the release of the one before may still be in
   * the ring.
   */
  nextHold(slot: CompletionSlot): number {
    const value = (this.holds[slot.index]! + 1) | 0;
    this.holds[slot.index] = value;
    return value;
  }

  /** Releases a hold: the commands behind it may go on. */
  release(slot: CompletionSlot, value: number): void {
    // Through the ring, not by a plain store: the commands that were sent past the hold come first.
    const body = this.ring.begin(OP.release, 0, 6, 0, -1, 0);
    const { memory } = this.ring;
    memory[body] = slot.index;
    memory[body + 1] = value;
    this.ring.commit();
    if (this.local !== undefined) this.completion.kick();
  }

  /**
   * Resolves when the stream has come to the hold `value`: what was queued before it has been
   * issued.
   */
  reached(slot: CompletionSlot, value: number): Promise<void> {
    const { slots } = this.shared;
    const at = slot.index * SLOT_WORDS + SLOT_REACHED;
    if (this.local !== undefined) this.completion.pump();
    return this.completion.until(() => ((Atomics.load(slots, at) - value) | 0) >= 0);
  }

  // Failures

  /** Why the stream of this slot could not be made, as far as is known by now. */
  whyUnmade(slot: CompletionSlot, operation: string): CudaError | undefined {
    const id = this.shared.issued[slot.index * ISSUED_STRIDE + ISSUED_UNMADE]!;
    if (id === 0) return undefined;
    this.completion.catchUp();
    const failed = this.failedById.get(id);
    if (failed !== undefined) failed.claimed = true;
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
   * The failure that left the memory of `handle` undefined, as that of an operation which uses it;
   * undefined where it is as it should be.
   */
  whyUndefined(handle: number, operation: string): CudaError | undefined {
    const id = this.shared.failure[handle]!;
    if (id === 0) return undefined;
    this.completion.catchUp();
    this.catchUpWith(id);
    const failed = this.failedById.get(id);
    if (failed !== undefined) failed.claimed = true;
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

  /**
   * Takes note of a failure that the JS thread met itself, for whoever uses what it left undefined.
   */
  rememberFailure(id: number, error: CudaError): void {
    this.errorsById.set(id, error);
    keepLatest(this.errorsById);
  }

  /**
   * Operation `root` has failed on this thread's word. Returns the failure's number, which what it
   * left undefined carries.
   */
  fail(root: number, error: CudaError): number {
    const id = Atomics.add(this.shared.control, WORD.failures, 1) + 1;
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
   * Somebody waits for operation `root`: its failure is theirs, however long the work takes.
   * {@link failureOf} ends that.
   */
  expect(root: number): void {
    this.expected.add(root);
    const failed = this.failures.size === 0 ? undefined : this.failures.get(root);
    if (failed !== undefined && !failed.claimed) this.reserve(failed);
  }

  /** The wait was given up before it ended: a failure is nobody's again. */
  unexpect(root: number): void {
    this.expected.delete(root);
    const failed = this.failures.get(root);
    if (failed?.expected !== true) return;
    failed.expected = false;
    failed.claimed = false;
    this.tellUnclaimed(failed);
  }

  /** As {@link failureOf}, where nobody learns of it. */
  unclaimedFailureOf(root: number): CudaError | undefined {
    // Failures are numbered before they are posted: some ask often, where nothing ever fails.
    if (Atomics.load(this.shared.control, WORD.failures) === 0) return undefined;
    this.completion.catchUp();
    const failed = this.failures.get(root);
    return failed === undefined ? undefined : this.errorOf(failed);
  }

  /** The error of operation `root`, if it failed; whoever asks is taken to have dealt with it. */
  failureOf(root: number, goingOn = false): CudaError | undefined {
    if (!goingOn && this.expected.size !== 0) this.expected.delete(root);
    // A failure is posted before the fence behind it is written; the message may not have been read
    // yet.
    this.completion.catchUp();
    if (this.failures.size === 0) return undefined;
    const failed = this.failures.get(root);
    if (failed === undefined) return undefined;
    this.claim(failed);
    return this.errorOf(failed);
  }

  /** Whoever learns of a failure learns of those that it follows from. */
  private claim(failed: Failed): void {
    failed.claimed = true;
    failed.expected = false;
    const { cause, causePeer } = failed.failure;
    const where = causePeer === undefined ? this : this.peers[causePeer];
    const first =
      cause === undefined || !(where instanceof Runtime) ? undefined : where.failedById.get(cause);
    if (first !== undefined) first.claimed = true;
  }

  /** What a failure follows from, which may be one of another device. */
  private causeOf({ cause, causePeer }: Failure): Failed | CudaError | undefined {
    if (cause === undefined) return undefined;
    if (causePeer === undefined) {
      this.catchUpWith(cause);
      const failed = this.failedById.get(cause);
      if (failed === undefined) return this.errorsById.get(cause);
      // What others follow from is asked for again.
      this.failedById.delete(cause);
      this.failedById.set(cause, failed);
      return failed;
    }
    const peer = this.peers[causePeer];
    if (peer instanceof CudaError) return peer;
    peer?.catchUpWith(cause);
    return (
      peer?.errorById(cause) ??
      peer?.lostError ??
      new CudaDeviceLostError('the other device was lost or closed')
    );
  }

  private knows(id: number): boolean {
    return this.failedById.has(id) || this.errorsById.has(id);
  }

  private errorById(id: number): CudaError | undefined {
    const failed = this.failedById.get(id);
    return failed === undefined ? this.errorsById.get(id) : this.errorOf(failed);
  }

  /**
   * The message of a failure that shows already may be unread: its thread's, or that of a device
   * which used memory here.
   */
  private catchUpWith(id: number): void {
    if (this.knows(id)) return;
    this.thread?.drain();
    for (const other of this.knownTo) if (!this.knows(id)) other.thread?.drain();
  }

  /** Somebody waits for the operation and will be told. */
  private reserve(failed: Failed): void {
    this.claim(failed);
    failed.expected = true;
  }

  /**
   * Whoever awaits it learns of it by then; two turns of the event loop, as for unhandled
   * rejections. What had been queued by the time it arrived may follow from it and be awaited: that
   * is decoded first, however long what stands before it takes.
   */
  private tellUnclaimed(failed: Failed): void {
    const { position } = this.ring;
    this.completion
      .until(() => ((peek(this.shared.control, WORD.tail) - position) | 0) >= 0)
      .then(
        () =>
          setImmediate(() =>
            setImmediate(() => {
              this.completion.catchUp();
              if (failed.claimed) return;
              // Once: a wait that was given up at once asks for this a second time.
              failed.claimed = true;
              this.events.error(this.errorOf(failed));
            }),
          ),
        ignore,
      ); // Where the device is lost meanwhile, that is what is told.
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

  private onFailed(failure: Failure): void {
    const failed: Failed = {
      failure,
      name: this.operations.get(failure.root),
      cause: this.causeOf(failure),
      error: undefined,
      claimed: false,
      expected: false,
    };
    const error = this.errorOf(failed);
    for (const { peer, id } of failure.elsewhere ?? []) {
      const where = this.peers[peer];
      if (where instanceof Runtime) where.rememberFailure(id, error);
    }
    this.note(failed);
  }

  private note(failed: Failed): void {
    const { failure } = failed;
    this.failedById.set(failure.id, failed);
    keepLatest(this.failedById);
    // Of an operation the first failure counts; what belongs to none is told each time.
    if (failure.root !== 0) {
      if (this.failures.has(failure.root)) return;
      this.failures.set(failure.root, failed);
      keepLatest(this.failures, ({ expected }) => expected);
    }
    if (this.expected.has(failure.root)) this.reserve(failed);
    this.tellUnclaimed(failed);
  }

  private onLost(failure: Failure): void {
    if (this.lostError !== undefined) return;
    const reports = failure.reports?.map((report) => this.withOrigin(report));
    const cause = errorFromFailure(
      reports === undefined ? failure : { ...failure, message: checkMessage(reports) },
      undefined,
    );
    const again =
      this.config.provider === 'cpu'
        ? 'Open the device again to go on.'
        : 'On a GPU the process cannot use the device again, nor any other GPU: restart it.';
    const labels = this.events.labels();
    const work = inFlight(this.shared, this.ring.position, {
      stream: (slot) => this.streamTitles.get(slot) ?? `stream ${slot}`,
      kernel: (handle) => this.kernelNames.get(handle),
      memory: (handle) => labels.get(handle),
      operation: this.operations.all(),
    });
    const options = {
      cause,
      driverName: cause.driverName,
      driverCode: cause.driverCode,
      operation: failure.call,
    };
    this.lostError =
      reports === undefined
        ? new CudaDeviceLostError(
            `${this.info.name} met a fault and is lost: ` +
              `${cause.message.replace(/\.?$/, '.')}${describeInFlight(work)} ${again}`,
            options,
            work,
          )
        : new CudaCheckError(
            `${checkMessage(reports)}\n${this.info.name} is lost.${describeInFlight(work)} ` +
              `${again}`,
            reports,
            options,
            work,
          );
    this.finish(this.lostError);
    this.events.lost(this.lostError);
  }

  private onReport(report: CheckReport): void {
    this.events.check(this.withOrigin(report));
  }

  /**
   * Says of the memory what only this thread knows: what it is called and where it was allocated.
   */
  private withOrigin(report: CheckReport): CheckReport {
    const { memory } = report;
    const origin = memory?.root === undefined ? undefined : this.events.origin(memory);
    if (memory === undefined || origin === undefined) return report;
    return {
      ...report,
      message: `${report.message}\n  that is ${origin.label}, made\n${origin.stack}`,
      memory: { ...memory, ...origin },
    };
  }

  /** Ends everything in flight with `error`. */
  private die(error: CudaError): void {
    if (this.lostError !== undefined) return;
    this.lostError = error;
    Atomics.compareExchange(this.shared.control, WORD.lost, 0, 999);
    this.finish(error);
    this.events.lost(error);
  }

  private finish(error: CudaError): void {
    this.completion.rejectAll(error);
    for (const reply of this.replies.values()) {
      reply.worker.unref();
      reply.reject(error);
    }
    this.replies.clear();
  }

  private onMessage(message: FromThread): void {
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
      case 'reply-failed': {
        const reply = this.replies.get(message.id);
        if (reply === undefined) return;
        this.replies.delete(message.id);
        reply.worker.unref();
        if (message.kind === 'reply') reply.resolve(message.value);
        else reply.reject(errorFromFailure(message.error, undefined));
        return;
      }
      default:
    }
  }

  private async makeRoom(step: RoomStep, stream: number): Promise<void> {
    try {
      await this.events.short(step, stream);
    } catch {
      // The allocation fails again, and its error is the one to tell.
    }
    Atomics.add(this.shared.slots, stream * SLOT_WORDS + SLOT_ROOM, 1);
    if (this.local !== undefined) this.completion.kick();
    else this.wakeNow();
  }

  // Calls that may wait

  /** Runs a procedure where waiting holds nothing up. */
  call<N extends ProcedureName>(
    name: N,
    ...args: ProcedureArguments<N>
  ): Promise<Awaited<ProcedureResult<N>>> {
    if (this.lostError !== undefined) return Promise.reject(this.lostError);
    if (this.local !== undefined) {
      try {
        return Promise.resolve(
          this.callHere(this.local, name, args) as Awaited<ProcedureResult<N>>,
        );
      } catch (error) {
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- one of the family
        return Promise.reject(error);
      }
    }
    return new Promise<unknown>((resolve, reject) => {
      this.send(name, args, resolve, reject);
    }) as Promise<Awaited<ProcedureResult<N>>>;
  }

  /** {@link call}, on a thread that stands still until it is done. */
  callBlocking<N extends ProcedureName>(
    name: N,
    ...args: ProcedureArguments<N>
  ): Awaited<ProcedureResult<N>> {
    if (this.lostError !== undefined) throw this.lostError;
    if (this.local !== undefined)
      return this.callHere(this.local, name, args) as Awaited<ProcedureResult<N>>;
    let outcome: { value: unknown } | { error: unknown } | undefined;
    const worker = this.send(
      name,
      args,
      (value) => {
        outcome = { value };
      },
      (error) => {
        outcome = { error };
      },
    );
    this.completion.blockUntil(() => {
      if (outcome === undefined) worker.drain();
      return outcome !== undefined;
    });
    if ('error' in outcome!) throw outcome.error;
    return outcome!.value as Awaited<ProcedureResult<N>>;
  }

  private callHere(local: Local, name: ProcedureName, args: readonly unknown[]): unknown {
    const { decoder, runProcedure } = local;
    this.makeCurrent(decoder.driver);
    decoder.drain();
    try {
      return runProcedure(decoder.driver, name, args);
    } catch (error) {
      throw errorFromFailure(describeFailure(error, name), undefined);
    }
  }

  /** Sends a procedure to the worker that runs it; returns that worker. */
  private send(
    name: ProcedureName,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
  ): ThreadWorker {
    const onRing = this.config.provider === 'cpu';
    const worker = onRing ? this.thread! : this.callsWorker();
    const id = ++this.replyId;
    this.replies.set(id, { resolve, reject, name, worker });
    worker.ref();
    try {
      worker.post({ kind: 'call', id, name, args });
    } catch (error) {
      // What cannot be posted would keep the process alive for ever.
      this.replies.delete(id);
      worker.unref();
      reject(
        new CudaArgumentError(
          name,
          `${name}: an argument cannot be sent to the device's thread: ${String(error)}`,
          { cause: error },
        ),
      );
      return worker;
    }
    if (onRing) {
      this.ring.begin(OP.call, 0, 4, 0, -1, 0);
      this.ring.commit();
      this.wakeNow();
    }
    return worker;
  }

  /** A {@link call} will come soon: the thread that carries it out is started by then. */
  expectCall(): void {
    if (this.lostError === undefined && this.local === undefined && this.config.provider !== 'cpu')
      this.callsWorker();
  }

  private callsWorker(): ThreadWorker {
    this.calls ??= new ThreadWorker(
      { role: 'calls', config: this.config, context: this.info.context },
      (message) => this.onMessage(message),
      (reason) =>
        this.die(
          new CudaError('ERR_CUDA_INTERNAL', `the second worker ended: ${reason.message}`, {
            cause: reason,
          }),
        ),
    );
    return this.calls;
  }

  /**
   * Makes functions of a library known to the runtime thread; returns the number that commands call
   * the first one by.
   */
  addLibrary(statuses: LibraryStatuses, functions: readonly LibraryFunction[]): number {
    const first = this.libraryFunctions;
    this.libraryFunctions += functions.length;
    this.tellDecoders({ kind: 'library', start: { first, statuses, functions } });
    return first;
  }

  /** No command from here on names the function. */
  dropLibrary(number: number): void {
    if (this.lostError === undefined) this.tellDecoders({ kind: 'library-gone', number });
  }

  // Other devices

  /** What commands of this runtime call `other`; makes it known here first. */
  peer(other: Runtime): number {
    const known = this.peerIndices.get(other);
    if (known !== undefined) return known;
    const index = this.peers.length;
    const { provider } = this.config;
    const same = provider === other.config.provider;
    const start: PeerStart = {
      index,
      control: other.shared.buffers.control,
      context: same ? other.sharedContext() : undefined,
      sharesEvents: same && provider === 'libcuda',
    };
    this.peers.push(other);
    this.peerIndices.set(other, index);
    other.knownTo.add(this);
    this.tellDecoders({ kind: 'peer', start });
    return index;
  }

  /**
   * A handle here for memory that is another device's: its address, and what poisons it, are looked
   * up there.
   */
  adoptForeign(other: Runtime, handle: number): number {
    const alias = this.handles.adopt(this.peer(other) * MAX_HANDLES + handle);
    this.shared.failure[alias] = FOREIGN;
    return alias;
  }

  /**
   * Whether the stream in `slot` has got past its wait number `value` for another device, or never
   * will need to.
   */
  hasCrossed(slot: CompletionSlot, value: number): boolean {
    return (
      this.lostError !== undefined ||
      ((Atomics.load(this.shared.slots, slot.index * SLOT_WORDS + SLOT_CROSSED) - value) | 0) >= 0
    );
  }

  /**
   * Where this runtime works on the calling thread: works until the event has been announced to
   * those of other devices who wait for it, which nobody else would see to. `over` says that they
   * need it no longer.
   */
  workUntilAnnounced(event: number, over: () => boolean): void {
    if (this.local === undefined) return;
    const wanted = this.config.provider === 'cpu' ? HANDLE.reached : HANDLE.announced;
    const { status } = this.shared;
    this.completion.until(() => Atomics.load(status, event) >= wanted || over()).catch(ignore);
  }

  private tellDecoders(
    message: Extract<ToThread, { kind: 'peer' | 'peer-gone' | 'library' | 'library-gone' }>,
  ): void {
    const decoders = [this.local?.decoder, this.inline];
    for (const decoder of decoders) {
      if (message.kind === 'peer') decoder?.peers.add(message.start);
      else if (message.kind === 'library') decoder?.libraries.add(message.start);
      else if (message.kind === 'library-gone') decoder?.libraries.drop(message.number);
      else decoder?.peers.drop(message.index);
    }
    if (this.thread === undefined) return;
    this.thread.post(message);
    this.ring.begin(OP.call, 0, 4, 0, -1, 0);
    this.ring.commit();
  }

  private sharedContext(): SharedContext {
    const { info } = this;
    if (this.config.provider === 'libcuda') return { context: info.context };
    if (this.local !== undefined) return this.local.decoder.driver.shareContext(info.context);
    this.context ??= (receiveMessageOnPort(info.sharing!) as { message: SharedContext } | undefined)
      ?.message;
    if (this.context === undefined)
      throw new CudaError('ERR_CUDA_INTERNAL', `${info.name} has not shared its memory`);
    return this.context;
  }

  private forgetPeer(other: Runtime, error: CudaError): void {
    const index = this.peerIndices.get(other);
    if (index === undefined) return;
    this.peerIndices.delete(other);
    this.peers[index] = error;
    if (this.lostError === undefined) this.tellDecoders({ kind: 'peer-gone', index });
  }

  // Waking, and working on this thread

  private wake(): void {
    const { control } = this.shared;
    if (
      Atomics.compareExchange(control, WORD.state, STATE.sleeping, STATE.running) === STATE.sleeping
    )
      this.ringBell();
  }

  private ringBell(): void {
    const { control } = this.shared;
    Atomics.add(control, WORD.doorbell, 1);
    // A thread that still dozes looks at the doorbell before it sleeps.
    if (Atomics.load(control, WORD.dozing) === 0) Atomics.notify(control, WORD.doorbell);
  }

  private wakeNow(): void {
    if (peek(this.shared.control, WORD.state) === STATE.sleeping) this.wake();
  }

  /**
   * A command was written while the thread sleeps. The first few of a turn are carried out here:
   * whoever awaits them waits the shorter for it, and the device has begun where this thread goes
   * on to compute. More are a burst, for which the bell is rung: whichever of the two comes first
   * carries them out, the thread once it is awake or this one when they are awaited.
   */
  private onSleeping(): void {
    const { inline, ring } = this;
    if (inline === undefined || ring.waiting !== 0 || ring.pendingWords > INLINE_WORDS) {
      this.wake();
      return;
    }
    const first = this.visits === 0;
    if (first) this.cold = this.isCold();
    // Waking a thread that only dozes takes no time: it does what comes in bursts, or is done
    // sooner there.
    if (peek(this.shared.control, WORD.dozing) === 1 && (!first || this.cold || !inline.runsNext)) {
      this.wake();
      return;
    }
    if (first) {
      this.visits = 1;
      this.visitedAt = ring.position;
      this.takeOver();
      if (ring.drained) return;
    } else if (this.visits < VISITS && !this.cold && !this.bursts && inline.runsNext) {
      this.visits++;
      this.takeOver();
    } else this.ringBell();
    if (this.settleScheduled) return;
    this.settleScheduled = true;
    // The first microtask runs before the one in which `await` asks for the fence, the second after
    // it.
    queueMicrotask(() =>
      queueMicrotask(() => {
        this.settleScheduled = false;
        this.bursts = ((ring.position - this.visitedAt) | 0) > INLINE_WORDS;
        this.visits = 0;
        if (!ring.drained) this.wakeNow();
      }),
    );
  }

  /**
   * Whether this thread has not worked for so long that its processor's caches have forgotten how.
   */
  private isCold(): boolean {
    if (this.completion.hot) return false;
    const now = performance.now();
    const cold = now - this.lastVisit > COLD_MS;
    this.lastVisit = now;
    return cold;
  }

  /**
   * Takes the decoder from the sleeping thread: waking it costs 30 to 40 µs, the calls themselves a
   * tenth of that.
   */
  private takeOver(): void {
    if (this.local !== undefined) {
      this.completion.pump();
      return;
    }
    const { control } = this.shared;
    if (peek(control, WORD.state) !== STATE.sleeping) return;
    const { inline } = this;
    if (inline === undefined || !this.mayTakeOver(INLINE_WORDS * 2)) {
      this.wake();
      return;
    }
    try {
      this.makeCurrent(inline.driver);
      inline.drain();
      inline.fences.settle(!this.cold);
    } finally {
      this.giveBack();
    }
    if (!this.ring.drained) this.wakeNow();
  }

  /**
   * Takes the decoder, where the thread sleeps, no stream is parked, and no more than `words` wait.
   */
  private mayTakeOver(words: number): boolean {
    const { control } = this.shared;
    return (
      this.ring.waiting === 0 &&
      this.ring.pendingWords <= words &&
      peek(control, WORD.parked) === 0 &&
      Atomics.compareExchange(control, WORD.state, STATE.sleeping, STATE.inline) === STATE.sleeping
    );
  }

  /**
   * Passes on at once what is queued, where the thread sleeps: more is to come, and the device can
   * begin.
   */
  hurry(): void {
    if (this.local === undefined) this.takeOver();
  }

  private giveBack(): void {
    const { control } = this.shared;
    Atomics.store(control, WORD.state, STATE.sleeping);
    if (peek(control, WORD.shutOut) === 1) Atomics.notify(control, WORD.state);
  }

  /**
   * A fence by way of the driver itself, where the thread sleeps and nothing is queued before it.
   */
  private fenceHere(slot: CompletionSlot, stream: number): boolean {
    const { inline } = this;
    if (inline === undefined || !this.mayTakeOver(0)) return false;
    try {
      this.makeCurrent(inline.driver);
      inline.fences.now(slot.index, stream, slot.issued, this.completion.hot || !this.cold);
    } finally {
      this.giveBack();
    }
    return true;
  }

  /**
   * Several GPUs are worked from this thread in turns; most calls go to the context that is current
   * on it.
   */
  private makeCurrent(driver: Decoder['driver']): void {
    const { context } = this.info;
    if (context === currentContext || this.config.provider !== 'libcuda') return;
    driver.cuCtxSetCurrent(context);
    currentContext = context;
  }

  private openInline(driver: Decoder['driver']): void {
    driver.cuInit(0);
    currentContext = 0;
    this.makeCurrent(driver);
    this.ownDriver = driver;
    // What is put off on the runtime thread cannot be continued here.
    if (this.info.mended) return;
    this.inline = new Decoder(
      driver,
      this.shared,
      this.info.slotsAddress,
      true,
      {
        failed: (failure) => this.onFailed(failure),
        lost: (failure) => this.onLost(failure),
        call: () => undefined,
        output: () => undefined,
        libraryCaller: noLibraries,
        makeRoom: () => false,
        idle: () => undefined,
      },
      true,
    );
  }

  private localTurn(): boolean {
    const { local } = this;
    if (local === undefined) return false;
    this.makeCurrent(local.decoder.driver);
    const busy = local.loop.turn();
    if (!busy) local.loop.look(performance.now());
    return busy;
  }

  // The end

  /** Asks the runtime thread to stop. For process exit only. */
  askToStop(): void {
    if (this.thread === undefined || this.ended) return;
    const { control } = this.shared;
    if (Atomics.compareExchange(control, WORD.stop, 0, 1) === 2) return;
    this.wakeNow();
    Atomics.add(control, WORD.doorbell, 1);
    Atomics.notify(control, WORD.doorbell);
  }

  /**
   * Waits for that, blocking, until `deadline` at most. False where it has not stopped, where the
   * second worker is inside a call, or where the device still works on something that was given up
   * on.
   */
  hasStopped(deadline: number): boolean {
    if (this.ended) return !this.abandoned;
    const { control } = this.shared;
    const called = (): boolean =>
      this.calls !== undefined &&
      [...this.replies.values()].some(({ worker }) => worker === this.calls);
    for (; called(); this.calls?.drain()) {
      if (performance.now() >= deadline) return false;
      // Nobody changes this word: a sleep of a millisecond.
      Atomics.wait(control, WORD.watch, Atomics.load(control, WORD.watch), 1);
    }
    if (this.thread === undefined) return true;
    Atomics.wait(control, WORD.stop, 1, Math.max(0, deadline - performance.now()));
    return Atomics.load(control, WORD.stop) === 2;
  }

  /**
   * Reads what the runtime thread has posted, text that kernels printed above all. For process exit
   * only.
   */
  hearOut(): void {
    this.thread?.drain();
  }

  /**
   * Ends the page locks, blocking: for a worker_thread that ends while the process goes on. Its
   * memory is unmapped with it, and neither may the device write there any more nor the driver keep
   * the range. Waits for the device at most `ms` milliseconds.
   */
  releasePinned(ms: number): void {
    const driver = this.ownDriver;
    if (driver === undefined || this.lostError !== undefined) return;
    this.makeCurrent(driver);
    const { streams } = this.shared;
    const until = performance.now() + ms;
    const busy = (): boolean =>
      streams.some((stream) => {
        try {
          return stream !== 0 && driver.cuStreamQuery(stream) === CUresult.CUDA_ERROR_NOT_READY;
        } catch {
          return false;
        }
      });
    while (busy()) if (performance.now() > until) return;
    const own = this.info.stagingAddress - SLOTS_BYTES;
    for (const address of [...this.pinned.keys(), own]) {
      try {
        if (address === own && !this.info.registered) driver.cuMemFreeHost(address);
        else driver.cuMemHostUnregister(address);
      } catch {
        // It was released already.
      }
    }
  }

  /**
   * Ends the workers. What is in flight rejects with `error`; `abandoned` says that there is work
   * in flight that will not end. Returns whether all of them have ended: one that is inside a call
   * of the driver does when that returns.
   */
  async terminate(error: CudaError, abandoned: boolean): Promise<boolean> {
    if (this.lostError === undefined) {
      this.lostError = error;
      this.finish(error);
    }
    const { control } = this.shared;
    // Streams of other devices that wait for this one see it and go on.
    Atomics.compareExchange(control, WORD.lost, 0, CLOSED);
    for (const other of this.knownTo) other.forgetPeer(this, this.lostError);
    for (const other of this.peerIndices.keys()) other.knownTo.delete(this);
    this.peerIndices.clear();
    this.info.sharing?.close();
    this.context = undefined;
    Atomics.store(control, WORD.stop, 1);
    Atomics.add(control, WORD.doorbell, 1);
    Atomics.notify(control, WORD.doorbell);
    Atomics.add(control, WORD.wake, 1);
    Atomics.notify(control, WORD.wake);
    this.ended = true;
    const workers = Promise.all([this.thread?.end(), this.calls?.end()]);
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
      const spare = spareHostMemory.get(config.ordinal) ?? [];
      spareHostMemory.set(config.ordinal, spare);
      spare.push(info.stagingAddress - SLOTS_BYTES);
    }
    return !this.abandoned;
  }
}

/**
 * Forgets the oldest where there are too many. Those that have to stay are passed over, a few at a
 * time.
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
  // Whoever waits learns of it from the device that was lost.
}

/** What an error says of several findings. */
function checkMessage(reports: readonly CheckReport[]): string {
  const more = reports.length > 1 ? `\n(and ${reports.length - 1} more: see \`reports\`)` : '';
  const seed = reports[0]?.seed === undefined ? '' : `\n(schedule: { seed: ${reports[0].seed} })`;
  return `${reports[0]?.message ?? ''}${more}${seed}`;
}
