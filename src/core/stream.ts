/**
 * Streams: queues of device work, each in order, all independent of one another.
 *
 * Work of one stream runs in the order of the calls. Work of different streams is ordered by events
 * only, and by the tracking of buffers: work that uses a buffer waits, on the device, for the work
 * on other streams that it conflicts with.
 */
import { ACCESS_WRITE, FLAG_BYPASS, OP } from '../runtime/commands.js';
import type { CompletionSlot } from '../runtime/completion.js';
import { CudaDisposedError, CudaError } from '../ground/errors.js';
import type { Runtime } from '../runtime/runtime.js';
import { checkOptions, checkSignal, invalid } from '../ground/arguments.js';
import type { CaptureScope, OutsideCapture } from './capture.js';
import {
  fenced,
  hasLaunchSubscribers,
  hasOperationSubscribers,
  publishOperation,
  publishWait,
} from './channels.js';
import { CopyCounts } from './counts.js';
import { CrossStreamWaits } from './cross-stream-waits.js';
import type { CoreDevice } from './device.js';
import { createDriverStream, destroyDriverStream } from './driver-streams.js';
import { Event, recordOn } from './event.js';
import { Graph } from './graph.js';
import type { CaptureOptions } from './graph.js';
import type { SharedDevice } from './open-devices.js';
import { abortable } from './pending.js';
import type { Pending, WaitOptions } from './pending.js';
import type { PrintWatch } from './print-watch.js';
import { countCopy, queuedOperation } from './queued-operation.js';
import type { Held } from './queued-operation.js';
import type { Resource } from './resource.js';
import { callInOrder } from './stream-call.js';
import { StreamEvents } from './stream-events.js';
import { checkedStreamOptions } from './stream-options.js';
import type { StreamOptions } from './stream-options.js';
import { streamValue } from './stream-values.js';
import type { Value, ValueBuffer, ValueCondition, ValueType } from './stream-values.js';
import { captureError } from './capture-error.js';

/**
 * After this many operations that were each awaited at once, the fence of the next launch is
 * written with the launch; and after one that was not awaited, this many operations go without.
 */
const AHEAD_AWAITS = 4;
const AHEAD_PAUSE = 1000;
/**
 * Stored in place of an operation's number before the first operation, so that one comparison
 * covers both cases.
 */
const NOTHING_QUEUED = -1;
const CU_STREAM_NON_BLOCKING = 1;

/**
 * A queue of device work, in order. Made by {@link CoreDevice.createStream}.
 *
 * @example
 * ```ts
 * using stream = device.createStream({ label: 'mine' });
 * using x = device.alloc(i32, 3, { stream });
 * x.fill(stream, 1);
 * x.slice(1).fill(stream, 2); // after the first fill
 * console.log(await x.read(stream)); // Int32Array(3) [ 1, 2, 2 ]
 * ```
 */
export class Stream implements Disposable {
  readonly device: CoreDevice;
  /** The requested priority. The driver limits it to {@link CoreDevice.streamPriorities}. */
  readonly priority: number;
  /** The label that errors show. */
  readonly label: string | undefined;
  /** CU_STREAM_NON_BLOCKING, or 0. @internal */
  readonly flags: number;
  /** @internal */
  readonly runtime: Runtime;
  /** The words in shared memory to which its progress is written. @internal */
  readonly slot: CompletionSlot;
  /** The number of the last queued operation. @internal */
  mark = 0;
  /** The number of launched graphs. @internal */
  graphLaunches = 0;
  /**
   * The number of operations that are not launches, and of launches that were only recorded.
   * @internal
   */
  others = 0;
  /** @internal */
  readonly copies = new CopyCounts();
  /** The number of the last operation that frees memory. @internal */
  lastFree = 0;
  /** The capture that this stream is part of, or that refuses its work. @internal */
  capturing: CaptureScope | OutsideCapture | undefined = undefined;
  /** @internal */
  readonly shared: SharedDevice;
  /** The events of its operations, while several streams are in use. @internal */
  readonly events: StreamEvents;
  private readonly waits: CrossStreamWaits;
  private transfers: CompletionSlot | undefined = undefined;
  private closed = false;
  /** The last operation that is known to have ended. {@link hasPassed} updates it. @internal */
  done = 0;
  private readonly fences: { seq: number; mark: number }[] = [];
  /**
   * Whether the next launch is expected to be awaited at once, as the operations before it were.
   * The fields after it hold the fence that was written with the last launch: its operation, 0
   * where there is none, or {@link NOTHING_QUEUED}.
   */
  private expectsAwait = false;
  private awaitedInRow = 0;
  private aheadMark = NOTHING_QUEUED;
  private aheadSeq = 0;
  /**
   * The operation whose end, with all work before it, a thread of the host announces by storing a
   * value to a word: see {@link setEarlyEnd}.
   */
  private hostMark = NOTHING_QUEUED;
  private hostWords: Int32Array | undefined = undefined;
  private hostAt = 0;
  private hostValue = 0;
  /** The wait for its kernels that print. @internal */
  prints: PrintWatch | undefined = undefined;

  /** @internal */
  constructor(device: CoreDevice, options: StreamOptions) {
    const { priority, blocking, label } = checkedStreamOptions(options);
    this.device = device;
    this.runtime = device.runtime;
    this.shared = device.shared;
    this.priority = priority;
    this.label = label;
    this.flags = blocking ? 0 : CU_STREAM_NON_BLOCKING;
    this.slot = this.runtime.takeSlot();
    this.events = new StreamEvents(this);
    this.waits = new CrossStreamWaits(this);
    this.runtime.streamTitles.set(this.slot.index, this.title);
    this.shared.capture?.keepOut(this);
    createDriverStream(this);
  }

  /**
   * Waits, without blocking, until all work queued so far has ended, with success or not. The wait
   * is a fence: cuStreamWriteValue32.
   *
   * @throws CudaError with code ERR_CUDA_CAPTURE while the stream is captured. Rejects where the
   *   device is lost or closed, or with the signal's reason
   */
  finished(options: WaitOptions = {}): Promise<void> {
    this.check();
    checkOptions('options', options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    if (this.captureScope !== undefined)
      throw captureError('stream.finished()', "await the graph's launch instead");
    const passed = this.passed(this.mark);
    return signal === undefined ? passed : abortable(passed, signal);
  }

  /**
   * Records an event, which is reached when all work queued so far has ended. cuEventRecord
   *
   * @returns the event, a new one where none is passed
   */
  record(event?: Event): Event {
    this.check();
    return recordOn(this, event);
  }

  /**
   * Makes later work of this stream wait for an event, or for all work queued so far on another
   * stream. The wait is on the device, cuStreamWaitEvent; JavaScript does not wait. The other
   * stream, or the event, may belong to another device. There is no wait for work of a device that
   * was lost or closed.
   *
   * @throws CudaError with code ERR_CUDA_CAPTURE for another device while either stream is
   *   captured, and in a capture for a stream or an event that is not part of it
   */
  wait(on: Event | Stream): void {
    this.check();
    if (on instanceof Stream) this.waits.forStream(on);
    else if (on instanceof Event) this.waits.forEvent(on);
    else throw invalid('on', 'an Event or a Stream', on);
  }

  /**
   * Writes a number to one element of a buffer, in stream order. With {@link waitValue} it orders
   * work where there is no event to wait for: kernels that signal while they run, page-locked
   * memory that JavaScript reads.
   *
   * Neither of the two is tracked: they do not wait for other work on the buffer, nor other work
   * for them. Only the buffer's memory is kept. cuStreamWriteValue32, cuStreamWriteValue64
   *
   * @param buffer a buffer of u32 (values are numbers) or u64 (bigints, or whole numbers) that
   *   {@link CoreDevice.allocPlain} or {@link CoreDevice.pinned} made, or a variable of a module.
   *   The driver refuses memory of pools, which {@link CoreDevice.alloc} makes, and managed memory
   * @throws CudaArgumentError for other memory, another dtype, an index outside of the buffer, a
   *   value that the dtype cannot hold; CudaError with code ERR_CUDA_CAPTURE while the stream is
   *   captured, ERR_CUDA_UNSUPPORTED where the platform has no stream memory operations
   */
  writeValue<D extends ValueType>(buffer: ValueBuffer<D>, index: number, value: Value<D>): Pending {
    return streamValue(this, buffer, index, value, undefined);
  }

  /**
   * Makes later work of this stream wait, on the device, until one element of a buffer meets a
   * condition. JavaScript and other streams do not wait. As with {@link writeValue}, nothing is
   * tracked: initialise the element, and wait for that, first. While a stream waits, no memory is
   * freed except that of {@link CoreDevice.alloc}; other frees come when the stream has gone on.
   * cuStreamWaitValue32, cuStreamWaitValue64
   *
   * @param buffer as for {@link writeValue}
   * @param condition `geq`, the default: element - value, as a signed number, is at least 0. `eq`:
   *   they are equal. `and`: some bit is set in both. `nor`: some bit is set in neither
   */
  waitValue<D extends ValueType>(
    buffer: ValueBuffer<D>,
    index: number,
    value: Value<D>,
    condition: ValueCondition = 'geq',
  ): Pending {
    return streamValue(this, buffer, index, value, condition);
  }

  /**
   * Runs a function of the host in stream order. It starts when all earlier work of the stream has
   * ended; later work waits until it has returned or its promise has settled. The Pending resolves
   * to the function's result, or rejects with its error; the stream goes on either way. Where the
   * device is lost or closed meanwhile, it rejects without waiting. The function must not wait for
   * this stream, which waits for the function.
   *
   * @throws CudaError with code ERR_CUDA_CAPTURE while the stream is captured
   */
  call<T>(callback: () => T | Promise<T>): Pending<T> {
    return callInOrder(this, callback);
  }

  /**
   * Resolves when all that was queued on any stream is in the ring of the runtime thread, which has
   * a fixed size. It is back-pressure for producers that do not await their work.
   */
  ready(): Promise<void> {
    this.check();
    return this.runtime.completion.until(() => this.runtime.ring.flush());
  }

  /**
   * Records the work that `body` queues on this stream as a graph, instead of running it. Another
   * stream joins when it waits, with {@link wait}, for a captured stream or for an event recorded
   * there. Queueing on a stream of the same device that has not joined is an error, unless
   * `options.unjoined` lets it run at once. `body` is synchronous and only queues.
   * cuStreamBeginCapture in relaxed mode, cuStreamEndCapture, cuGraphInstantiate
   *
   * Rejects with the error that `body` threw, or with code ERR_CUDA_CAPTURE where it did what
   * cannot be recorded: allocation, copies from and to plain arrays, {@link call}, waiting.
   */
  capture(body: (stream: Stream) => void, options: CaptureOptions = {}): Promise<Graph> {
    this.check();
    return Graph.capture(this, body, options);
  }

  /**
   * Queues the destruction of the stream, and never waits. Work that is queued ends first.
   * cuStreamDestroy
   */
  close(): void {
    if (this.closed) return;
    if (this === this.device.stream && !this.device.closing) {
      throw new CudaError(
        'ERR_CUDA_INVALID_ARGUMENT',
        'device.stream belongs to its device: close the device instead',
      );
    }
    if (this.captureScope !== undefined)
      throw captureError('stream.close()', 'close the stream after the capture');
    // Later users of memory that this stream wrote wait for its last event.
    if (this.runtime.lost === undefined && this.mark > 0) this.events.recordAll();
    this.closed = true;
    this.device.removeStream(this);
    if (this.runtime.lost === undefined) void this.retire();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.closed;
  }

  toString(): string {
    const { device, label, slot } = this;
    return (
      `Stream ${label === undefined ? slot.index : `'${label}'`} on ` +
      `${device.kind}:${device.ordinal} ${device.name}${this.closed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  // Used by the rest of core:

  /** The stream's name in errors. @internal */
  get title(): string {
    return this.label === undefined ? `stream ${this.slot.index}` : `stream '${this.label}'`;
  }

  /** The capture that this stream is part of. @internal */
  get captureScope(): CaptureScope | undefined {
    return this.capturing === undefined || this.capturing.outside ? undefined : this.capturing;
  }

  /** Refuses a call that cannot be recorded. @internal */
  checkNotCaptured(what: string, fix: string): void {
    this.checkInside();
    if (this.capturing !== undefined) throw captureError(what, fix);
  }

  /** Refuses work on a stream that has not joined a capture. @internal */
  checkInside(): void {
    if (this.capturing?.outside === true) throw this.capturing.refusal();
  }

  /** Throws where the stream or its device was closed, or the device is lost. @internal */
  check(): void {
    // Without a label it names no number: another stream may have the number by now.
    if (this.closed)
      throw new CudaDisposedError(
        `${this.label === undefined ? 'stream' : this.title}: used after it was closed. Make ` +
          'another with device.createStream().',
      );
    this.device.check();
  }

  /** Whether {@link check} throws. @internal */
  get isUnusable(): boolean {
    return this.closed || this.device.isUnusable;
  }

  /** Begins a command of this stream. Returns the place of its own words. @internal */
  begin(op: number, words: number, root: number, flags = 0): number {
    const event =
      this.shared.attentive && this.capturing === undefined && (flags & FLAG_BYPASS) === 0
        ? this.eventAfter(op)
        : 0;
    return this.runtime.ring.begin(op, flags, words, root, this.slot.index, event);
  }

  /** Ends the command; returns the number of the operation. @internal */
  commit(): number {
    this.others++;
    if (this.capturing === undefined) countCopy(this);
    return this.end();
  }

  /** {@link commit} of a kernel: programs await kernels and graphs one by one. @internal */
  commitLaunch(): number {
    if (this.expectsAwait && this.aheadMark === 0 && this.capturing === undefined)
      return this.commitWithFence();
    return hasLaunchSubscribers() ? this.endWithMessage(undefined) : this.endWithoutMessage();
  }

  /** {@link commit} of a graph. @internal */
  commitGraph(): number {
    this.graphLaunches++;
    return this.expectsAwait && this.aheadMark === 0 && this.capturing === undefined
      ? this.commitWithFence()
      : this.end();
  }

  private end(): number {
    return hasOperationSubscribers() ? this.endWithMessage(undefined) : this.endWithoutMessage();
  }

  private endWithoutMessage(): number {
    this.runtime.ring.commit();
    if (this.aheadMark !== 0) this.endUnexpected();
    return ++this.mark;
  }

  /**
   * Ends the first operation of the stream, or a launch that was expected to be awaited and was
   * not.
   */
  private endUnexpected(): void {
    if (this.aheadMark === NOTHING_QUEUED) this.shared.streamStarted();
    else {
      this.expectsAwait = false;
      this.awaitedInRow = -AHEAD_PAUSE;
    }
    this.aheadMark = 0;
  }

  /**
   * Ends the command and publishes its message. The message is made before the end, and published
   * after it: a subscriber may queue work itself.
   */
  private endWithMessage(held: Held | undefined): number {
    const message = queuedOperation(this, held);
    const mark = this.endWithoutMessage();
    // The recorder comes first: subscribers may write fences, which would not cover its command.
    this.shared.recorder?.operation(this, message, held);
    publishOperation(message);
    return mark;
  }

  /**
   * Where each operation is awaited at once, its fence is written directly after it, ahead of other
   * streams' commands.
   */
  private commitWithFence(): number {
    if (hasOperationSubscribers()) return this.endWithMessage(undefined);
    const mark = ++this.mark;
    this.aheadSeq = this.runtime.commitWithFence(this.slot);
    this.aheadMark = mark;
    return mark;
  }

  /**
   * Queues a wait on `other` for all work up to `mark`, where it is not known to have ended.
   * @internal
   */
  waitFor(other: Stream, mark: number): void {
    this.waits.waitFor(other, mark);
  }

  /** The number of operations that are not known to have ended. @internal */
  get outstanding(): number {
    return this.hasPassed(this.mark) ? 0 : this.mark - this.done;
  }

  /** Blocks until all work up to `mark` has ended. @internal */
  block(mark: number): void {
    if (this.hasPassed(mark)) return;
    this.runtime.completion.block(this.slot, this.fenceAt(mark, true), this.slot.index);
    this.hasPassed(mark);
  }

  /** Whether JavaScript has seen the end of all work up to `mark`. @internal */
  hasPassed(mark: number): boolean {
    if (mark <= this.done) return true;
    const { fences } = this;
    let passed = 0;
    while (
      passed < fences.length &&
      this.runtime.completion.passed(this.slot, fences[passed]!.seq)
    ) {
      this.done = fences[passed++]!.mark;
    }
    if (passed > 0) fences.splice(0, passed);
    return mark <= this.done;
  }

  /**
   * The number of launched kernels: all operations but the others, so that a launch need not count.
   * @internal
   */
  get launches(): number {
    return this.mark - this.others - this.graphLaunches;
  }

  /** The number of fences whose end was not seen. @internal */
  get fencesOutstanding(): number {
    this.hasPassed(this.mark);
    return this.fences.length;
  }

  /** Resolves when all work up to `mark` has ended. @internal */
  passed(mark: number): Promise<void> {
    if (this.hasPassed(mark)) return this.runtime.completion.end();
    if (this.capturing !== undefined && !this.capturing.outside) {
      return Promise.reject(
        captureError(
          'awaiting captured work',
          'it runs when the graph is launched: await graph.launch(stream)',
        ),
      );
    }
    return this.awaited(mark, true);
  }

  /**
   * Does the same as {@link passed}, for waits whose result may not be awaited: it does not poll
   * for the end at once. @internal
   */
  passedLater(mark: number): Promise<void> {
    if (this.hasPassed(mark)) return this.runtime.completion.end();
    return this.awaited(mark, false);
  }

  /** Waits, and publishes the wait. */
  private awaited(mark: number, spin: boolean): Promise<void> {
    const wait = this.waitAfter(mark, spin);
    if (fenced.hasSubscribers) publishWait(this, performance.now(), wait);
    return wait;
  }

  /** Waits for a fence after `mark`, without a message. @internal */
  waitAfter(mark: number, spin: boolean): Promise<void> {
    return this.runtime.wait(this.slot, this.fenceAt(mark, true), this.slot.index, spin);
  }

  /** Whether all work up to `mark` ends within a few microseconds. It writes a fence. @internal */
  passesSoon(mark: number): boolean {
    if (this.hasPassed(mark)) return this.runtime.completion.mayEndNow();
    if (this.capturing !== undefined || this.runtime.lost !== undefined) return false;
    return fenced.hasSubscribers ? this.seenWithMessage(mark) : this.seen(mark);
  }

  private seenWithMessage(mark: number): boolean {
    const begun = performance.now();
    const seen = this.seen(mark);
    // Otherwise the wait goes on, and its message is published then.
    if (seen) publishWait(this, begun, undefined);
    return seen;
  }

  /** {@link passesSoon} where the end was not seen before. */
  private seen(mark: number): boolean {
    if (this.fences.length === 0) {
      const last = this.mark;
      const seq =
        this.aheadMark === last
          ? this.aheadSeq
          : this.runtime.fence(this.slot, this.slot.index, 0, true);
      this.aheadMark = 0;
      if (this.hostMark === last) this.putEarlyEnd(seq);
      if (mark === last && this.runtime.completion.hot)
        this.expectsAwait = ++this.awaitedInRow >= AHEAD_AWAITS;
      if (this.runtime.passesSoon(this.slot, seq)) {
        this.done = last;
        return true;
      }
      this.fences.push({ seq, mark: last });
      return false;
    }
    return this.runtime.passesSoon(this.slot, this.fenceAt(mark, true)) && this.hasPassed(mark);
  }

  /** A wait for `mark` exists already: polls for its end for a few microseconds. @internal */
  pollFor(mark: number): void {
    if (this.hasPassed(mark) || this.capturing !== undefined || this.runtime.lost !== undefined)
      return;
    this.runtime.completion.spinFor(this.slot, this.fenceAt(mark, true));
  }

  /** The fence after operation `mark`; writes one where there is none yet. @internal */
  fenceAt(mark: number, waitedFor = false): number {
    const { fences } = this;
    let seq = 0;
    for (let i = fences.length - 1; i >= 0 && fences[i]!.mark >= mark; i--) seq = fences[i]!.seq;
    if (seq !== 0) return seq;
    seq = this.runtime.fence(this.slot, this.slot.index, 0, waitedFor);
    fences.push({ seq, mark: this.mark });
    if (this.hostMark === this.mark) this.putEarlyEnd(seq);
    return seq;
  }

  /**
   * All work queued so far has ended once the word has the value, which a thread of the host stores
   * at the end of its work. A wait then need not go through the device. @internal
   */
  setEarlyEnd(words: Int32Array, at: number, value: number): void {
    this.hostMark = this.mark;
    this.hostWords = words;
    this.hostAt = at;
    this.hostValue = value;
  }

  /** No word announces the end any more: the thread has failed. @internal */
  clearEarlyEnd(): void {
    this.hostMark = NOTHING_QUEUED;
    this.slot.earlyWords = undefined;
  }

  /** The word announces that fence `seq`, too, has passed. */
  private putEarlyEnd(seq: number): void {
    const { slot } = this;
    slot.earlyWords = this.hostWords;
    slot.earlyAt = this.hostAt;
    slot.earlyValue = this.hostValue;
    slot.earlySeq = seq;
  }

  /**
   * The slot of the stream's transfers and calls. One is enough: each begins when the stream has
   * reached its hold, so after the hold before it was released. @internal
   */
  get transferSlot(): CompletionSlot {
    this.transfers ??= this.runtime.takeSlot();
    return this.transfers;
  }

  /**
   * Holds later work until `slot` is released with `value`. Returns the number of an operation that
   * ends with the hold. `held` describes it; without it there is no message. @internal
   */
  hold(slot: CompletionSlot, value: number, held?: Held): number {
    if (held !== undefined) this.shared.recorder?.before(this, OP.hold);
    const body = this.runtime.ring.begin(OP.hold, 0, 6, 0, this.slot.index, 0);
    const { memory } = this.runtime.ring;
    memory[body] = slot.index;
    memory[body + 1] = value;
    this.others++;
    if (held?.direction !== undefined) this.copies.add(held.direction, held.bytes!, held.operation);
    const mark =
      held !== undefined && hasOperationSubscribers()
        ? this.endWithMessage(held)
        : this.endWithoutMessage();
    // The record comes after the hold, so a wait for its event waits for the transfer.
    return this.shared.multi ? this.events.recordAll() : mark;
  }

  /** The operation that a command belongs to: a new one, or the capture's. @internal */
  nextRoot(): number {
    return this.capturing === undefined ? this.runtime.nextRoot() : this.capturing.root;
  }

  /** Begins a command that goes past a hold. @internal */
  beginBypass(op: number, words: number, root: number): number {
    return this.runtime.ring.begin(op, FLAG_BYPASS, words, root, this.slot.index, 0);
  }

  /** Whether {@link order} has anything to do. In most programs it has not. */
  private mustOrder(resource: Resource, access: number): boolean {
    const { writer } = resource;
    return (
      this.capturing !== undefined ||
      resource.elsewhere ||
      (writer !== this && writer !== undefined) ||
      (resource.readerCount !== 0 && (access & ACCESS_WRITE) !== 0)
    );
  }

  /**
   * Orders one access to `resource`. The command, and {@link Resource.used}, must follow. @internal
   */
  order(resource: Resource, access: number): void {
    if (!this.mustOrder(resource, access)) return;
    if (this.capturing === undefined) resource.order(this, access);
    else this.capturing.order(this, resource, access);
  }

  /** Records one access to `resource` by operation `mark`. @internal */
  used(resource: Resource, access: number, mark: number): void {
    if (this.capturing === undefined) resource.used(this, access, mark);
    else this.capturing.used(this, resource, access);
  }

  /** Queues the free of a stream-ordered allocation. @internal */
  free(handle: number): void {
    const body = this.begin(OP.free, 5, 0);
    this.runtime.ring.memory[body] = handle;
    this.lastFree = this.commit();
    this.runtime.handles.give(handle);
  }

  /** Records the recorder's event before a command. Returns the event to record after it. */
  private eventAfter(op: number): number {
    this.shared.recorder?.before(this, op);
    // The parts of an operation share one event, which is recorded before the next operation. The
    // command of a graph, or of a library's calls, is most often the whole operation, so it has the
    // event.
    return this.shared.multi &&
      (this.runtime.held === undefined || op === OP.graphLaunch || op === OP.libraryCall)
      ? this.events.next(this.mark + 1)
      : 0;
  }

  /** Destroys the stream when its work has ended. */
  private async retire(): Promise<void> {
    const { runtime } = this;
    const last = this.mark;
    const fenced = last === 0 ? Promise.resolve() : this.passed(last);
    try {
      await fenced;
    } catch {
      return;
    }
    destroyDriverStream(this);
    this.done = this.mark;
    this.events.destroy();
    if (this.transfers !== undefined) runtime.returnSlot(this.transfers);
    runtime.returnSlot(this.slot);
  }
}
