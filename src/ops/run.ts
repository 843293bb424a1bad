/**
 * One run of an operation: its stream, and the operation number of its commands.
 *
 * All commands of a run are one operation to the runtime thread: its first failure ends it, and
 * later parts of it do not run. While a run queues, no other run can begin on this thread: a
 * callback that ran another operation to its end could see, or overtake, its own work.
 */
import { CudaArgumentError, CudaDisposedError, CudaError } from '../core/index.js';
import type {
  DType,
  DTypeName,
  CoreDevice,
  DeviceBuffer,
  MemoryPool,
  Pending,
  Stream,
} from '../core/index.js';
import { Operation } from '../core/operation.js';
import { isDevelopment } from './development.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import { closeAll, giveOn, handOut } from './ownership.js';
import { policyOf } from './scheduling.js';
import type { SchedulingPolicy } from './scheduling.js';
import type { OpContext, RunMode } from './op-context.js';

/** The number of runs so far. */
let runs = 0;

/** The run that is queueing at this moment. */
let current: Run | undefined;

/** Throws where another operation is queueing: the caller would run inside of it. */
export function checkNotNested(what: string): void {
  if (current === undefined) return;
  throw new CudaError(
    'ERR_CUDA_NESTED',
    `${what} inside of a callback of another operation, which is being queued: its values ` +
      'are not computed yet, and the two runs could not be distinguished. ' +
      'Return the operation from andThen(…) instead, or run it before or after.',
  );
}

/** The number of the run that is queueing. Throws where its memory cannot be taken out of it. */
export function checkKeep(): number {
  current?.checkNotRecording(
    'keep(…)',
    'memory of a graph is closed with the graph. Keep what the operation gives before the ' +
      'capture, or read it after graph.replay()',
  );
  return current?.number ?? -1;
}

export class Run implements OpContext {
  readonly device: CoreDevice;
  /** The stream to queue on. It changes inside of a branch that runs in parallel. */
  stream: Stream;
  private readonly forks: SchedulingPolicy | undefined;
  readonly mode: RunMode;
  /** The pool that it allocates from; undefined for the device's own. */
  readonly pool: MemoryPool | undefined;
  // Most runs need none of these fields, and a run is made for each operation that is awaited.
  private ownedMade: Disposable[] | undefined = undefined;
  private rememberedMade: Map<object, unknown> | undefined = undefined;
  /** Other runs that have to end first, because this one uses their results. */
  private others: Promise<void>[] | undefined = undefined;
  /**
   * The memory that the steps that are being queued have received or made, in order: see
   * `ownership.ts`.
   */
  private list: DeviceBuffer[] | undefined = undefined;
  /** Memory of the value, which the caller owns unless the run fails. */
  private given: readonly DeviceBuffer[] | undefined = undefined;
  /** Memory that was made when no step could receive it. */
  private loose: DeviceBuffer[] | undefined = undefined;
  /** The number of steps that wait for the host. */
  private waiting = 0;
  /** Memory of steps that wait, and of values that are known later. */
  private lists: Set<DeviceBuffer[]> | undefined = undefined;
  /**
   * Whether the run has failed. Its memory is closed once no step waits: other branches may use it
   * until then.
   */
  private failed = false;
  /** The reason for which it is no longer awaited. */
  private abandoned: { readonly reason: unknown } | undefined = undefined;
  private separateStream: Stream | undefined = undefined;
  private operation: Operation | undefined = undefined;
  /** The mark of its stream when the operation began. */
  private start = 0;
  /** Whether all memory that it uses is known: see {@link Node.alone}. */
  alone = false;
  /** The number of the run; later runs have greater ones. */
  readonly number: number;
  /** The value, where it is known later. All of the run has been queued by then. */
  known: Promise<unknown> | undefined = undefined;
  /** How often it had to wait for something that was being loaded. */
  loads = 0;

  /** The run that it is part of where it queues aside; otherwise itself. */
  readonly whole: Run;
  /** Whether recorded work allocates by nodes of the graph. */
  readonly nodes: boolean;

  /**
   * @param forks the policy of the streams of branches that run in parallel. Default: the device's
   *   policy
   */
  constructor(
    device: CoreDevice,
    stream: Stream,
    forks: SchedulingPolicy | undefined,
    mode: RunMode,
    pool: MemoryPool | undefined,
    nodes = false,
    whole?: Run,
  ) {
    this.nodes = nodes;
    this.whole = whole ?? this;
    this.number = whole?.number ?? ++runs;
    this.device = device;
    this.stream = stream;
    this.forks = forks;
    this.mode = mode;
    this.pool = pool;
  }

  /** The policy of the streams of branches that run in parallel. */
  get policy(): SchedulingPolicy {
    return this.forks ?? policyOf(this.device);
  }

  get recording(): boolean {
    return this.mode === 'record';
  }

  /** Memory that was allocated while it was recorded. The graph owns it. */
  get owned(): Disposable[] {
    return (this.ownedMade ??= []);
  }

  /** Results of operations that run once, in a run that is recorded. */
  get remembered(): Map<object, unknown> {
    return (this.rememberedMade ??= new Map());
  }

  /**
   * Records work that a launch may leave out: results in {@link remembered} that it adds are not
   * available to later work.
   */
  apart<T>(queue: () => T): T {
    const before = this.rememberedMade;
    this.rememberedMade = new Map(before);
    try {
      return queue();
    } finally {
      this.rememberedMade = before;
    }
  }

  alloc<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options: { label?: string } = {},
  ): DeviceBuffer<D> {
    if (current !== this)
      throw new CudaError(
        'ERR_CUDA_INVALID_ARGUMENT',
        'context.alloc: called after the callback that received the context had returned. ' +
          'Allocate in the callback; device.alloc of async-cuda/core allocates memory that the ' +
          'caller owns.',
      );
    // The bodies of conditional nodes cannot allocate.
    if (this.recording && !(this.nodes && this.stream.captureScope?.isBody === false))
      return this.allocBeside(dtype, length, options);
    const { device, pool, stream } = this;
    return this.own(
      device.allocScoped(
        dtype,
        length,
        pool === undefined ? { ...options, stream } : { ...options, stream, pool },
      ),
    );
  }

  /**
   * Puts memory of {@link CoreDevice.allocScoped} on the list of the step that is being queued.
   * @internal
   */
  own<D extends DTypeName>(buffer: DeviceBuffer<D>): DeviceBuffer<D> {
    (this.list ??= []).push(buffer);
    return buffer;
  }

  /**
   * Allocates memory apart from the recorded work, before the first launch. The graph owns it.
   * @internal
   */
  allocBeside<D extends DTypeName>(
    dtype: DType<D>,
    length: number,
    options: { label?: string } = {},
  ): DeviceBuffer<D> {
    const { device, pool } = this;
    const stream = this.beside();
    const buffer = device.alloc(
      dtype,
      length,
      pool === undefined ? { ...options, stream } : { ...options, stream, pool },
    );
    buffer.memory.keptByGraph = true;
    this.owned.push(buffer);
    if (isDevelopment() && this.recording) {
      // The graph keeps the memory, so its use by a later step would work here. Elsewhere that step
      // would fail.
      buffer.memory.scoped = true;
      this.own(buffer);
    }
    return buffer;
  }

  /** A stream that is not recorded. */
  beside(): Stream {
    if (this.device.stream.captureScope === undefined) return this.device.stream;
    if (this.separateStream === undefined) {
      this.separateStream = this.device.createStream();
      this.owned.push(this.separateStream);
    }
    return this.separateStream;
  }

  /** Resolves when the work that was queued apart from the recording has ended. */
  prepared(): Promise<void> {
    return Promise.all(this.others ?? []).then(ignore);
  }

  /** Queues the work of the operation. */
  submit<T>(node: Node<T>): Submitted<T> {
    this.enter();
    try {
      return this.handedOut(node.submit(this));
    } catch (error) {
      this.failNow();
      throw isTooDeep(error) ? tooDeep(error) : error;
    } finally {
      this.leave();
    }
  }

  /**
   * Queues work, as a step of this run.
   *
   * @param received memory that the step has, besides the memory it makes
   * @param into receives the memory that its value holds
   */
  resume<T>(queue: () => T, received?: readonly DeviceBuffer[], into?: DeviceBuffer[]): T {
    this.enter();
    const outer = this.list;
    this.list = received === undefined || received.length === 0 ? undefined : [...received];
    try {
      // The graph owns recorded memory: values of a scope may be used after it.
      const value = this.recording ? queue() : (this.endStep(queue(), 0) as T);
      const list = this.list;
      if (list !== undefined && list.length > 0) (into ?? (this.loose ??= [])).push(...list);
      return value;
    } catch (error) {
      // The run fails with the error, which closes this memory.
      this.newList(this.takeFrom(0));
      throw isTooDeep(error) ? tooDeep(error) : error;
    } finally {
      this.list = outer;
      this.leave();
    }
  }

  // Ownership

  /**
   * The length of the list of memory that steps have received or made. A step records it at its
   * beginning for {@link endStep}.
   */
  get mark(): number {
    const { list } = this;
    return list === undefined ? 0 : list.length;
  }

  /**
   * Ends a step that began at `mark`. Memory that it has received or made, and that its value does
   * not hold, is closed in stream order; where the value is known later and may hold it, once it is
   * known. Returns the value.
   */
  endStep<T>(value: Submitted<T>, mark: number): Submitted<T> {
    const { list } = this;
    if (list === undefined || list.length === mark) return value;
    if (!(value instanceof Later)) {
      giveOn(list, mark, value);
      return value;
    }
    if (value.queued && value.holding === 'nothing') {
      giveOn(list, mark, undefined);
      return value;
    }
    return this.goOn(value, (known) => known, {
      queued: value.queued,
      received: list.splice(mark),
    });
  }

  /** Removes the memory that a step has made since `mark` from the list, for another owner. */
  takeFrom(mark: number): DeviceBuffer[] {
    return this.list?.splice(mark) ?? [];
  }

  /**
   * Calls `next` with a value once it is known, as a step of this run.
   *
   * @param options.queued whether `next` queues nothing, and all work before it has been queued
   * @param options.received memory that the step has, besides that of the value
   */
  goOn<T, U>(
    value: Later<T>,
    next: (known: T) => Submitted<U>,
    {
      queued = false,
      received = [],
    }: { queued?: boolean; received?: readonly DeviceBuffer[] } = {},
  ): Later<U> {
    const owned = this.newList();
    const carried = received.length === 0 ? received : this.newList(received);
    this.waiting++;
    const promise = value.promise.then(
      (known): U | Promise<U> => {
        let given: Submitted<U>;
        try {
          given = this.resume(
            () => next(known),
            [...this.adopt(carried), ...this.adopt(value.owned)],
            owned,
          );
        } catch (error) {
          this.resumed();
          throw error;
        }
        if (!(given instanceof Later)) {
          this.resumed(owned);
          return given;
        }
        const later = given;
        return later.promise.then(
          (result) => {
            owned.push(...this.adopt(later.owned));
            this.resumed(owned);
            return result;
          },
          (error: unknown) => {
            this.resumed();
            throw error;
          },
        );
      },
      (error: unknown) => {
        this.resumed();
        throw this.device.isOver && error instanceof CudaDisposedError
          ? closedUnderway(this.device, error)
          : error;
      },
    );
    return new Later(promise, queued, 'unknown', owned);
  }

  /** Throws the reason for which the run is no longer awaited, if there is one. */
  checkAwaited(): void {
    if (this.abandoned !== undefined) throw this.abandoned.reason;
  }

  /** Whether the error is the reason for which the run is no longer awaited. */
  isAbandonedFor(error: unknown): boolean {
    return this.abandoned !== undefined && this.abandoned.reason === error;
  }

  /** A list of memory of this run, which its failure closes. */
  newList(owners: readonly DeviceBuffer[] = []): DeviceBuffer[] {
    const list = [...owners];
    (this.lists ??= new Set()).add(list);
    return list;
  }

  /** Takes over the memory on a list. */
  adopt(list: readonly DeviceBuffer[]): readonly DeviceBuffer[] {
    this.lists?.delete(list as DeviceBuffer[]);
    return list;
  }

  /**
   * A step that has waited goes on. A loop has many of them: `given` is dropped where it is empty.
   */
  private resumed(given?: DeviceBuffer[]): void {
    this.waiting--;
    if (given?.length === 0) this.lists?.delete(given);
    if (this.failed) this.closeLists();
  }

  private failNow(): void {
    this.failed = true;
    this.newList(this.takeFrom(0));
    this.closeLists();
  }

  private closeLists(): void {
    if (this.waiting > 0) return;
    for (const list of this.lists ?? []) closeAll(list.splice(0));
    this.lists = undefined;
  }

  /** Ends the step that is the whole run: the caller owns the memory that its value holds. */
  private handedOut<T>(value: Submitted<T>): Submitted<T> {
    const ended = this.endStep(value, 0);
    if (!(ended instanceof Later)) {
      if (this.list !== undefined && this.list.length > 0) this.give(this.takeFrom(0));
      return ended;
    }
    if (ended.holding === 'nothing') return ended;
    return new Later(
      ended.promise.then((known) => {
        const owned = [...this.adopt(ended.owned), ...(this.loose ?? [])];
        this.loose = undefined;
        giveOn(owned, 0, known);
        this.give(owned);
        return known;
      }),
      ended.queued,
    );
  }

  private give(owned: readonly DeviceBuffer[]): void {
    if (owned.length === 0) return;
    this.given = owned;
    handOut(owned);
  }

  /** The caller has the value: not even the run's failure closes its memory. */
  keepGiven(): void {
    this.given = undefined;
  }

  /**
   * The value is no longer awaited: steps that have not been queued do not begin, and the memory
   * that was made is closed.
   */
  abandon(value: Submitted<unknown>, reason: unknown): void {
    this.abandoned = { reason };
    if (value instanceof Later)
      value.promise.then(() => {
        this.closeMade();
      }, ignore);
    else this.closeMade();
  }

  /** The value is known later. */
  underway({ promise, queued }: Later<unknown>): void {
    this.known = promise;
    if (!queued) this.device.underway(promise);
  }

  private enter(): void {
    checkNotNested('An operation was run');
    if (this.waiting > 0 && this.device.isOver) throw closedUnderway(this.device);
    // Recorded work belongs to the capture.
    if (!this.recording && this.operation === undefined) this.renew();
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- the run that is queueing
    current = this;
    this.operation?.take();
  }

  private leave(): void {
    this.operation?.letGo();
    current = undefined;
  }

  /**
   * Queues a separate operation on the stream, while this run is queueing. This run fails with it
   * only where its waiter passes the failure on. It goes on as a run of its own, so that work that
   * it queues later is separate as well.
   */
  aside<T>(queue: (aside: Run) => T): T {
    const { device, stream, forks, mode, pool, operation } = this;
    const aside = new Run(device, stream, forks, mode, pool, false, this.whole);
    aside.renew().take();
    current = aside;
    // Parts of a labelled operation have its label.
    if (operation?.label !== undefined) aside.label(operation.label);
    try {
      return queue(aside);
    } finally {
      // eslint-disable-next-line @typescript-eslint/no-this-alias -- this run goes on queueing
      current = this;
      operation?.take();
    }
  }

  /** Takes over the memory of a run aside that was queued without failing. */
  takeOver(aside: Run, into: DeviceBuffer[] = (this.list ??= [])): void {
    into.push(...aside.takeFrom(0), ...(aside.loose?.splice(0) ?? []));
  }

  private renew(): Operation {
    this.operation = new Operation(this.stream);
    this.start = this.stream.mark;
    return this.operation;
  }

  /** Labels the work that is being queued, for errors. */
  label(label: string): void {
    this.operation?.name(label);
  }

  /**
   * Adds a promise of other work: a result that this run uses, or work that was queued apart from a
   * recording. This run fails where the promise rejects.
   */
  dependOn(other: Promise<void>): void {
    other.catch(ignore);
    (this.others ??= []).push(other);
  }

  /** Closes the memory that the run has made: it has failed, or its value is passed to no step. */
  closeMade(): void {
    const left = [...(this.given ?? []), ...(this.loose?.splice(0) ?? [])];
    this.given = undefined;
    for (const owner of left) if (!owner.memory.disposed) owner.memory.scoped = true;
    closeAll(left);
    this.failNow();
  }

  /** The value, once all work that this run has queued has ended. */
  ended<T>(value: Submitted<T>, claim?: (pending: Pending) => Promise<void>): Promise<T> {
    if (value instanceof Later || this.given !== undefined) {
      const ended = this.reached(value, claim);
      // The memory is closed after later work has been queued.
      ended.catch(() => {
        this.closeMade();
      });
      return ended;
    }
    const pending = claim === undefined && this.others === undefined ? this.pending : undefined;
    // The usual case has no promise in between: each costs a turn of the microtask queue.
    return pending === undefined ? this.over(claim).then(() => value) : pending.then(() => value);
  }

  /** {@link ended}, without closing the memory of a failed run. */
  reached<T>(value: Submitted<T>, claim?: (pending: Pending) => Promise<void>): Promise<T> {
    return value instanceof Later
      ? this.endedLater(value, claim)
      : this.over(claim).then(() => value);
  }

  private endedLater<T>(
    { promise }: Later<T>,
    claim?: (pending: Pending) => Promise<void>,
  ): Promise<T> {
    const { operation } = this;
    // Until the value is known, no code waits for the work that was queued before it. Its failure
    // is reported through the value.
    operation?.expect();
    const ended = promise.then(
      (known) => this.over(claim).then(() => known),
      (error: unknown) => {
        this.over(claim).catch(ignore);
        throw error;
      },
    );
    if (operation !== undefined) {
      const report = (): void => {
        operation.reported();
      };
      ended.then(report, report);
    }
    return ended;
  }

  /**
   * {@link ended} and its `then`, as one promise in the usual case, and without an object for the
   * end where it is near. It is for callers that wait once.
   */
  whenEnded<T, A, B>(
    value: Submitted<T>,
    onFulfilled: ((value: T) => A | PromiseLike<A>) | null | undefined,
    onRejected: ((reason: unknown) => B | PromiseLike<B>) | null | undefined,
  ): Promise<A | B> {
    const { operation, stream } = this;
    const closes = this.given !== undefined;
    if (
      value instanceof Later ||
      this.others !== undefined ||
      typeof onFulfilled !== 'function' ||
      operation === undefined ||
      stream.mark === this.start ||
      (closes && typeof onRejected !== 'function')
    ) {
      return this.ended(value).then(onFulfilled, onRejected);
    }
    const onFailure = !closes
      ? onRejected
      : (reason: unknown): B | PromiseLike<B> => {
          this.closeMade();
          return onRejected!(reason);
        };
    const soon = operation.endsSoon(stream);
    if (soon !== undefined) return soon.then(() => onFulfilled(value), onFailure);
    return operation.pending(stream).thenUnpolled(() => onFulfilled(value), onFailure);
  }

  /** A Pending of what it has queued so far; undefined where that is nothing. */
  private get pending(): Pending | undefined {
    const { operation, stream } = this;
    return operation === undefined || stream.mark === this.start
      ? undefined
      : operation.pending(stream);
  }

  /** Resolves when all work that this run has queued so far has ended; rejects with its failure. */
  over(claim: (pending: Pending) => Promise<void> = (pending) => pending.then()): Promise<void> {
    const { operation, others, pending } = this;
    const over = pending === undefined ? DONE : claim(pending);
    if (others === undefined) return over;
    return Promise.all([over, ...others]).then(ignore, (error: unknown) => {
      // The stream can reach the end before work that it did not wait for has failed.
      operation?.markReported(error);
      throw error;
    });
  }

  /** Blocks this thread until all queued work has ended. */
  block(): void {
    const { operation, stream } = this;
    if (operation !== undefined && stream.mark !== this.start) operation.block(stream);
  }

  /** A value that is known now or later, as a promise. */
  settled<T>(value: Submitted<T>): T | Promise<T> {
    return value instanceof Later ? value.promise : value;
  }

  /** Refuses a call that a recorded run cannot have. */
  checkNotRecording(what: string, fix: string): void {
    if (this.recording)
      throw new CudaError('ERR_CUDA_CAPTURE', `${what} cannot be recorded in a graph: ${fix}.`);
  }
}

/**
 * Whether the stack has overflowed. That is not a failure of a part of the operation, and no code
 * at that place can handle it.
 */
export function isTooDeep(error: unknown): boolean {
  return error instanceof RangeError && error.message === 'Maximum call stack size exceeded';
}

function tooDeep(cause: unknown): CudaArgumentError {
  return new CudaArgumentError(
    'operation',
    'operation: expected operations within operations (zip, all, parallel, label, orElse, ' +
      'ensure, and what callbacks return) about a' +
      ' thousand levels deep at most, and callbacks whose recursion ends, but the stack is ' +
      'full. Write a long series as a chain, op.andThen(…).andThen(…), or as one list, ' +
      'all([…]): they have' +
      ' no limit.',
    { cause },
  );
}

/** The error of a run that waited when its device was closed. */
function closedUnderway({ name }: CoreDevice, cause?: unknown): CudaError {
  return new CudaError('ERR_CUDA_DEVICE_CLOSED', `${name} was closed while work was in flight.`, {
    cause,
  });
}

const DONE: Promise<void> = Promise.resolve();

function ignore(): void {
  // The failure is reported through the promise that waits for all of them.
}
