/**
 * One run of an operation: on which stream it queues, and which of the library's operation numbers its commands carry.
 *
 * Everything that a run queues is one operation to the runtime thread: its first failure ends it, and later parts of it
 * are not carried out. While a run queues, no other can begin on this thread: a callback that ran another operation to its
 * end could see, or overtake, work of its own.
 */
import { CudaArgumentError, CudaError } from '../core/index.js';
import type { DType, DTypeName, Device, DeviceBuffer, MemoryPool, Pending, Stream } from '../core/index.js';
import { Operation } from '../core/operation.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import { policyOf } from './scheduling.js';
import type { SchedulingPolicy } from './scheduling.js';

/**
 * `queue`: values arrive when the device has come to them. `block`: the thread waits for them. `record`: the work is
 * recorded as a graph, so that nothing arrives.
 */
export type RunMode = 'queue' | 'block' | 'record';

/** What callbacks are given that queue work themselves. */
export interface OpContext {
  readonly device: Device;
  /** The stream that the operation runs on. What is queued on it in the callback is part of the operation. */
  readonly stream: Stream;
  /** The pool that the operation allocates from; undefined for the device's own. */
  readonly pool: MemoryPool | undefined;
  /** Whether the work is recorded as a graph instead of running. */
  readonly recording: boolean;
  /**
   * Allocates in the order of the stream, from the pool of the operation; beside it where the work is recorded, and then the
   * memory is the graph's, which closes it, or by a node of the graph where it was captured so. Uninitialised. cuMemAllocAsync
   */
  alloc<D extends DTypeName>(dtype: DType<D>, length: number, options?: { label?: string }): DeviceBuffer<D>;
}

/** How many there were. */
let runs = 0;

/** The run that is queueing at this moment. */
let current: Run | undefined;

/** Throws where another operation is queueing: the caller would run inside of it. */
export function checkNotNested(what: string): void {
  if (current === undefined) return;
  throw new CudaError(
    'ERR_CUDA_NESTED',
    `${what} inside of a callback of another operation, which is being queued: its values are not there yet, and the two could not be told apart. ` +
      'Return the operation from andThen(…) instead, or run it before or after.',
  );
}

export class Run implements OpContext {
  readonly device: Device;
  /** Another one inside of a branch that runs beside others. */
  stream: Stream;
  private readonly forks: SchedulingPolicy | undefined;
  readonly mode: RunMode;
  /** Where it allocates from, if not from the device's own pool. */
  readonly pool: MemoryPool | undefined;
  // Most runs need none of these, and a run is made for each operation that is awaited.
  private ownedMade: Disposable[] | undefined = undefined;
  private rememberedMade: Map<object, unknown> | undefined = undefined;
  /** What else has to be over: other runs that this one builds on. */
  private others: Promise<void>[] | undefined = undefined;
  private unwanted: Disposable[] | undefined = undefined;
  private besides: Stream | undefined = undefined;
  private operation: Operation | undefined = undefined;
  /** How far its stream was when the operation began. */
  private start = 0;
  /** Whether what it uses is known: see {@link Node.alone}. */
  alone = false;
  /** Later runs have greater ones. */
  readonly number: number;
  /** What it gives, where that is not known at once: by then all of it has been queued. */
  known: Promise<unknown> | undefined = undefined;
  /** How often it had to wait for what was still being loaded. */
  loads = 0;

  /** What it is a part of, where it queues aside; else itself. */
  readonly whole: Run;
  /** Whether what is recorded allocates by nodes of the graph. */
  readonly nodes: boolean;

  /** @param forks where branches that run in parallel take their streams from. Default: the device's policy */
  constructor(device: Device, stream: Stream, forks: SchedulingPolicy | undefined, mode: RunMode, pool: MemoryPool | undefined, nodes = false, whole?: Run) {
    this.nodes = nodes;
    this.whole = whole ?? this;
    this.number = whole?.number ?? ++runs;
    this.device = device;
    this.stream = stream;
    this.forks = forks;
    this.mode = mode;
    this.pool = pool;
  }

  /** Where branches that run in parallel take their streams from. */
  get policy(): SchedulingPolicy {
    return this.forks ?? policyOf(this.device);
  }

  get recording(): boolean {
    return this.mode === 'record';
  }

  /** What was allocated while it was recorded: the graph's own. */
  get owned(): Disposable[] {
    return (this.ownedMade ??= []);
  }

  /** Results of operations that are run once, in a run that is recorded. */
  get remembered(): Map<object, unknown> {
    return (this.rememberedMade ??= new Map());
  }

  /** Records what a launch may leave out: what it shares, by {@link remembered}, is not there for what comes behind it. */
  apart<T>(queue: () => T): T {
    const before = this.rememberedMade;
    this.rememberedMade = new Map(before);
    try {
      return queue();
    } finally {
      this.rememberedMade = before;
    }
  }

  alloc<D extends DTypeName>(dtype: DType<D>, length: number, options: { label?: string } = {}): DeviceBuffer<D> {
    // The bodies of conditional nodes cannot allocate.
    if (this.recording && !(this.nodes && this.stream.captureScope?.isBody === false)) return this.allocBeside(dtype, length, options);
    const { device, pool, stream } = this;
    return device.alloc(dtype, length, pool === undefined ? { ...options, stream } : { ...options, stream, pool });
  }

  /** Memory beside what is recorded, there before the first launch; the graph owns it. @internal */
  allocBeside<D extends DTypeName>(dtype: DType<D>, length: number, options: { label?: string } = {}): DeviceBuffer<D> {
    const { device, pool } = this;
    const stream = this.beside();
    const buffer = device.alloc(dtype, length, pool === undefined ? { ...options, stream } : { ...options, stream, pool });
    this.owned.push(buffer);
    return buffer;
  }

  /** A stream that is not recorded. */
  beside(): Stream {
    if (this.device.stream.captureScope === undefined) return this.device.stream;
    if (this.besides === undefined) {
      this.besides = this.device.createStream();
      this.owned.push(this.besides);
    }
    return this.besides;
  }

  /** Resolves when what was queued beside what is recorded is over. */
  prepared(): Promise<void> {
    return Promise.all(this.others ?? []).then(ignore);
  }

  /** Queues what the operation consists of. */
  submit<T>(node: Node<T>): Submitted<T> {
    this.enter();
    try {
      return node.submit(this);
    } catch (error) {
      throw isTooDeep(error) ? tooDeep(error) : error;
    } finally {
      this.leave();
    }
  }

  /** Queues something, as a part of this run. */
  resume<T>(queue: () => T): T {
    this.enter();
    try {
      return queue();
    } catch (error) {
      throw isTooDeep(error) ? tooDeep(error) : error;
    } finally {
      this.leave();
    }
  }

  private enter(): void {
    checkNotNested('An operation was run');
    // What is recorded belongs to the capture.
    if (!this.recording && this.operation === undefined) this.renew();
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- it says who is queueing
    current = this;
    this.operation?.take();
  }

  private leave(): void {
    this.operation?.letGo();
    current = undefined;
  }

  /**
   * Queues what is an operation to itself on the stream, while this run is queueing: this one fails where whoever waits for the
   * other says so. It goes on as a run of its own, so that what it knows only later is its own as well.
   */
  aside<T>(queue: (aside: Run) => T): T {
    const { device, stream, forks, mode, pool, operation } = this;
    const aside = new Run(device, stream, forks, mode, pool, false, this.whole);
    aside.renew().take();
    current = aside;
    // Parts of what has a name are called so.
    if (operation?.label !== undefined) aside.label(operation.label);
    try {
      return queue(aside);
    } finally {
      // eslint-disable-next-line @typescript-eslint/no-this-alias -- it goes on queueing
      current = this;
      operation?.take();
    }
  }

  /** What a run aside made is part of what this one gives: see {@link closeOnFailure}. */
  takeOver(aside: Run): void {
    for (const each of aside.unwanted?.splice(0) ?? []) this.closeOnFailure(each);
  }

  private renew(): Operation {
    this.operation = new Operation(this.stream);
    this.start = this.stream.mark;
    return this.operation;
  }

  /** Names what is being queued, for errors. */
  label(label: string): void {
    this.operation?.name(label);
  }

  /** What this run builds on, or what was queued beside it where it is recorded: it fails where the promise rejects. */
  dependOn(other: Promise<void>): void {
    other.catch(ignore);
    (this.others ??= []).push(other);
  }

  /** What is closed where the run fails, since nobody is given it then. */
  closeOnFailure(made: Disposable): void {
    (this.unwanted ??= []).push(made);
  }

  /**
   * As {@link closeOnFailure}, for results of runs that build on what may well fail: files, models. Where only a device or a kernel
   * can, which is seldom, a list for each run would cost more than it gives back, and results are left to the garbage collector.
   */
  closeWhereOthersFail(made: Disposable): void {
    if ((this.others !== undefined || this.unwanted !== undefined) && !this.recording) this.closeOnFailure(made);
  }

  private failed(): void {
    for (const each of this.unwanted?.splice(0) ?? []) each[Symbol.dispose]();
  }

  /** The value, once whatever this run has queued is over. */
  ended<T>(value: Submitted<T>, claim?: (pending: Pending) => Promise<void>): Promise<T> {
    if (value instanceof Later || this.unwanted !== undefined) {
      const ended = value instanceof Later ? this.endedLater(value, claim) : this.over(claim).then(() => value);
      // Not before what came behind it has been queued.
      ended.catch(() => { this.failed(); });
      return ended;
    }
    const pending = claim === undefined && this.others === undefined ? this.pending : undefined;
    // The usual case has no promise in between: each is a turn of the queue of microtasks.
    return pending === undefined ? this.over(claim).then(() => value) : pending.then(() => value);
  }

  private endedLater<T>({ promise }: Later<T>, claim?: (pending: Pending) => Promise<void>): Promise<T> {
    const { operation } = this;
    // Until the value is there nobody waits for what was queued before it, and the failure of that is for whoever waits for the value.
    operation?.expect();
    const ended = promise.then((known) => this.over(claim).then(() => known), (error: unknown) => {
      this.over(claim).catch(ignore);
      throw error;
    });
    if (operation !== undefined) {
      const told = (): void => { operation.told(); };
      ended.then(told, told);
    }
    return ended;
  }

  /**
   * {@link ended} and its `then`, as one promise in the usual case, and without an object for the end where it is near. For
   * whoever asks but once.
   */
  whenEnded<T, A, B>(value: Submitted<T>, onFulfilled: ((value: T) => A | PromiseLike<A>) | null | undefined, onRejected: ((reason: unknown) => B | PromiseLike<B>) | null | undefined): Promise<A | B> {
    const { operation, stream, unwanted } = this;
    if (value instanceof Later || this.others !== undefined || typeof onFulfilled !== 'function' || operation === undefined || stream.mark === this.start
      || (unwanted !== undefined && typeof onRejected !== 'function')) {
      return this.ended(value).then(onFulfilled, onRejected);
    }
    const onFailure = unwanted === undefined ? onRejected : (reason: unknown): B | PromiseLike<B> => {
      this.failed();
      return onRejected!(reason);
    };
    const soon = operation.endsSoon(stream);
    if (soon !== undefined) return soon.then(() => onFulfilled(value), onFailure);
    return operation.pending(stream).thenUnlooked(() => onFulfilled(value), onFailure);
  }

  /** What it has queued so far; undefined where that is nothing. */
  private get pending(): Pending | undefined {
    const { operation, stream } = this;
    return operation === undefined || stream.mark === this.start ? undefined : operation.pending(stream);
  }

  /** Resolves when whatever this run has queued so far is over; rejects with its failure. */
  over(claim: (pending: Pending) => Promise<void> = (pending) => pending.then()): Promise<void> {
    const { operation, others, pending } = this;
    const over = pending === undefined ? DONE : claim(pending);
    if (others === undefined) return over;
    return Promise.all([over, ...others]).then(ignore, (error: unknown) => {
      // The stream can have come to the end before what it did not wait for has failed.
      operation?.heard(error);
      throw error;
    });
  }

  /** Waits on this thread until whatever was queued is over. */
  block(): void {
    const { operation, stream } = this;
    if (operation !== undefined && stream.mark !== this.start) operation.block(stream);
  }

  /** What is known or will be, as a promise. */
  settled<T>(value: Submitted<T>): T | Promise<T> {
    return value instanceof Later ? value.promise : value;
  }

  /** Refuses what a recorded run cannot have. */
  checkNotRecording(what: string, fix: string): void {
    if (this.recording) throw new CudaError('ERR_CUDA_CAPTURE', `${what} cannot be recorded in a graph: ${fix}.`);
  }
}

/** Whether the stack has come to its end: no failure of a part of the operation, and nothing can be done about it where it shows. */
export function isTooDeep(error: unknown): boolean {
  return error instanceof RangeError && error.message === 'Maximum call stack size exceeded';
}

function tooDeep(cause: unknown): CudaArgumentError {
  return new CudaArgumentError('operation', 'operation: expected operations within operations (zip, all, parallel, label, orElse, ensure, and what callbacks return) about a'
    + ' thousand levels deep at most, and callbacks whose recursion ends, but the stack is full. Write a long series as a chain, op.andThen(…).andThen(…), or as one list, all([…]): they have'
    + ' no limit.', { cause });
}

const DONE: Promise<void> = Promise.resolve();

function ignore(): void {
  // Told through the promise that waits for all of them.
}
