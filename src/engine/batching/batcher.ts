/**
 * Collects requests of one item each into batches. A batch starts by its size, or by the time that
 * its first request has waited.
 */
// setImmediate is imported at load, because a user's tests may replace the global one by a fake
// timer, and results come there, too. The delay uses the global timer, so that a test can drive it.
import { setImmediate } from 'node:timers';

import { CudaArgumentError, CudaDisposedError, CudaQueueFullError } from '../../core/index.js';
import { checkInteger, checkOptions, checkSignal, invalid, show } from '../../ground/arguments.js';

/** Options of {@link Batcher}. */
export interface BatcherOptions {
  /** Largest number of items in a batch. A batch that has as many starts at once. */
  readonly maxBatchSize: number;
  /**
   * How long a request waits for others to join it: milliseconds. The requests that have come by
   * then start, however few they are. 0 joins only the requests of one turn of the event loop, and
   * those that come while as many batches run as may. Default: 5.
   */
  readonly maxQueueDelay?: number;
  /**
   * Number of requests that may wait. A further one is refused with `ERR_CUDA_QUEUE_FULL`.
   * `Infinity` accepts all of them, for callers that limit themselves. Default: eight batches.
   */
  readonly maxQueueSize?: number;
  /**
   * Total weight of the requests that may wait. For {@link Batcher} each weighs 1, for
   * `EngineBatcher` the bytes of its tensors; a subclass overrides `weightOf`. A further request is
   * refused with `ERR_CUDA_QUEUE_FULL`, except one that comes while none waits. Default:
   * `Infinity`.
   */
  readonly maxQueueWeight?: number;
  /**
   * Number of batches that may run at once. Default: 2, so that one is assembled and copied while
   * another is computed.
   */
  readonly maxConcurrentBatches?: number;
  /**
   * Whether requests that come while no batch runs start one at once, together with the other
   * requests of the same turn of the event loop, instead of waiting. `maxQueueDelay` then applies
   * to requests that come while a batch runs: they are collected for the next one, so that the
   * batches are as large as the load makes them. Where requests have come lately at a rate that
   * fills a batch within the delay, they wait as without this option: many small batches cost more
   * than they save. Default: false.
   */
  readonly eager?: boolean;
}

/** Options of one request. */
export interface BatchRequestOptions {
  /**
   * Removes the request from the queue. If its batch has begun, the request settles without waiting
   * for the result.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Counts of a {@link Batcher}: what it has done so far, and its present requests and batches. */
export interface BatcherStatistics {
  /** Requests that wait for a batch. */
  readonly queued: number;
  /** Batches that run. */
  readonly running: number;
  /**
   * Requests that were accepted. Each is queued, or in a batch that runs or whose results are being
   * delivered, or counted by one of the next three.
   */
  readonly taken: number;
  readonly fulfilled: number;
  readonly failed: number;
  readonly aborted: number;
  /** Requests that the full queue has refused. */
  readonly refused: number;
  /** Batches that have begun, and the items in them. */
  readonly batches: number;
  readonly items: number;
}

/**
 * A value in the place of a result: this item has failed, and the others of its batch have not. The
 * promise of its caller rejects with the error.
 *
 * @example
 * ```ts
 * await using roots = new Batcher<number, number>(
 *   async (items) =>
 *     items.map((x) => (x < 0 ? new ItemFailure(new RangeError(`${x} < 0`)) : Math.sqrt(x))),
 *   { maxBatchSize: 8 },
 * );
 * const [four, wrong] = await Promise.allSettled([roots.run(16), roots.run(-1)]);
 * console.log(four.status, wrong.status); // fulfilled rejected
 * ```
 */
export class ItemFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** Runs one batch. It returns a result for each item, in their order, or an {@link ItemFailure}. */
export type RunBatch<Item, Result> = (
  items: readonly Item[],
) => PromiseLike<readonly (Result | ItemFailure)[]>;

interface Request<Item, Result> {
  readonly item: Item;
  /** Requests of one group may be in one batch. */
  readonly group: unknown;
  /** The value of {@link Batcher.weightOf}. */
  readonly weight: number;
  /** Increases from request to request. */
  readonly number: number;
  /** The time at which it was accepted: `performance.now()`. */
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
  readonly signal: AbortSignal | undefined;
  readonly onAbort: () => void;
  settled: boolean;
}

/** A request whose batch has ended, and its outcome. */
interface Ended<Item, Result> {
  readonly request: Request<Item, Result>;
  readonly outcome: Result | ItemFailure;
}

/**
 * How long results may be delivered in one turn of the event loop: milliseconds, including the code
 * that their callers run at once.
 */
const TURN_MS = 1;

/** Weight of the last batch in the running mean of the batches' durations. */
const NEWEST_SHARE = 0.2;

/** Largest number of groups whose arrivals are counted. */
const MOST_COUNTED = 64;

/** The recent rate of requests of each group, as a number in a time span. */
class Arrivals {
  /** Milliseconds. */
  private readonly span: number;
  /**
   * The requests that came until `last`. Each counts less the longer ago it came, so that evenly
   * arriving requests sum to the number in the span. The groups are in the order of `last`.
   */
  private readonly groups = new Map<unknown, { readonly count: number; readonly last: number }>();

  constructor(span: number) {
    this.span = span;
  }

  add(group: unknown, now: number): void {
    const count = 1 + this.inSpan(group, now);
    this.groups.delete(group);
    this.groups.set(group, { count, last: now });
    if (this.groups.size > MOST_COUNTED) this.groups.delete(this.groups.keys().next().value);
  }

  inSpan(group: unknown, now: number): number {
    const own = this.groups.get(group);
    return own === undefined ? 0 : own.count * Math.exp((own.last - now) / this.span);
  }
}

/**
 * Collects requests of one item each into batches, and delivers to each caller the result of its
 * item. A batch starts when there are `maxBatchSize` requests or the first has waited for
 * `maxQueueDelay`, as soon as fewer than `maxConcurrentBatches` run. With `eager`, a batch also
 * starts where none runs and it would not be full before that.
 *
 * - Order: batches take requests in the order in which they came, those of one
 *   {@link groupOf | group} where there are several. Results come batch by batch, as the batches
 *   end. One turn of the event loop delivers only as many as their callers process in a
 *   millisecond, so that a large batch does not block the loop. The next batch does not wait for
 *   that.
 * - Every request settles exactly once: with its result; with its own error where `runBatch`
 *   returned an {@link ItemFailure}; with the error of its batch (the same one for all of its
 *   callers) where that rejected; with the reason of its signal; or with `ERR_CUDA_QUEUE_FULL` or
 *   `ERR_CUDA_DISPOSED` where it was not accepted.
 * - A request whose signal aborts while it waits leaves the queue and frees its place. In a batch
 *   that has begun it settles at once, and its result is passed to {@link discard}.
 *
 * No call blocks the event loop. There is one timer, for the request that has waited longest.
 *
 * @example
 * ```ts
 * await using batcher = new Batcher(
 *   async (items: readonly number[]) => items.map((x) => x * x),
 *   { maxBatchSize: 32, maxQueueDelay: 5 },
 * );
 * const squares = await Promise.all([batcher.run(3), batcher.run(4)]);
 * console.log(squares.join(' '), batcher.statistics.batches); // 9 16 1
 * ```
 */
export class Batcher<Item, Result> implements AsyncDisposable {
  readonly maxBatchSize: number;
  readonly maxQueueDelay: number;
  readonly maxQueueSize: number;
  readonly maxQueueWeight: number;
  readonly maxConcurrentBatches: number;
  readonly eager: boolean;

  private readonly runBatch: RunBatch<Item, Result>;
  /**
   * Requests by group, in the order in which they came. They are Sets, so that a request leaves
   * from the middle in constant time. None is empty.
   */
  private readonly groups = new Map<unknown, Set<Request<Item, Result>>>();
  private queued = 0;
  private queuedWeight = 0;
  private readonly arrivals: Arrivals;
  private numbers = 0;
  private running = 0;
  private readonly counts = {
    taken: 0,
    fulfilled: 0,
    failed: 0,
    aborted: 0,
    refused: 0,
    batches: 0,
    items: 0,
  };
  private timer: NodeJS.Timeout | undefined = undefined;
  /**
   * The time that the timer is set for, and the latest of these times at which it has fired: a
   * timer may fire slightly before the clock reaches its time.
   */
  private timerFor = -Infinity;
  private reached = -Infinity;
  private flushing = false;
  /** Results that are still to be delivered. Callbacks of the event loop are pending for them. */
  private readonly ended: Ended<Item, Result>[] = [];
  /** Mean duration of a batch: milliseconds; undefined before the first has ended. */
  private meanDuration: number | undefined = undefined;
  private closing: { readonly ended: Promise<void>; readonly end: () => void } | undefined =
    undefined;

  /**
   * @param runBatch runs one batch: it is called with 1 to `maxBatchSize` items and returns as many
   *   results, in their order
   * @throws CudaArgumentError where an argument is wrong
   */
  constructor(runBatch: RunBatch<Item, Result>, options: BatcherOptions) {
    if (typeof runBatch !== 'function')
      throw invalid(
        'runBatch',
        'a function that takes items and gives a promise of as many results',
        runBatch,
      );
    if (options === undefined) throw invalid('options', 'an object with maxBatchSize', options);
    checkOptions('options', options, BATCHER_OPTIONS);
    const { maxBatchSize } = options;
    // maxBatchSize is checked first, because the default size of the queue is computed from it.
    checkInteger('options.maxBatchSize', maxBatchSize, 1, Number.MAX_SAFE_INTEGER, 'items');
    const {
      maxQueueDelay = 5,
      maxQueueSize = 8 * maxBatchSize,
      maxQueueWeight = Infinity,
      maxConcurrentBatches = 2,
      eager = false,
    } = options;
    checkInteger(
      'options.maxConcurrentBatches',
      maxConcurrentBatches,
      1,
      Number.MAX_SAFE_INTEGER,
      'batches',
    );
    if (maxQueueSize !== Infinity)
      checkInteger('options.maxQueueSize', maxQueueSize, 1, Number.MAX_SAFE_INTEGER, 'requests');
    if (typeof maxQueueWeight !== 'number' || !(maxQueueWeight > 0))
      throw invalid('options.maxQueueWeight', 'a number above 0', maxQueueWeight);
    if (
      typeof maxQueueDelay !== 'number' ||
      !(maxQueueDelay >= 0 && maxQueueDelay <= LONGEST_DELAY)
    ) {
      throw invalid(
        'options.maxQueueDelay',
        `milliseconds, from 0 to ${LONGEST_DELAY}`,
        maxQueueDelay,
      );
    }
    if (typeof (eager as unknown) !== 'boolean')
      throw invalid('options.eager', 'true or false', eager);
    this.runBatch = runBatch;
    this.maxBatchSize = maxBatchSize;
    this.maxQueueDelay = maxQueueDelay;
    this.maxQueueSize = maxQueueSize;
    this.maxQueueWeight = maxQueueWeight;
    this.maxConcurrentBatches = maxConcurrentBatches;
    this.eager = eager;
    this.arrivals = new Arrivals(maxQueueDelay);
  }

  /** Requests and batches since the batcher was made, and those that wait or run now. */
  get statistics(): BatcherStatistics {
    return { queued: this.queued, running: this.running, ...this.counts };
  }

  /** Whether {@link close} was called. A closed batcher accepts no requests. */
  get isClosed(): boolean {
    return this.closing !== undefined;
  }

  /**
   * Returns the result of one item, from the batch that it becomes part of.
   *
   * @throws CudaArgumentError where an argument is wrong. The promise rejects with
   *   `ERR_CUDA_QUEUE_FULL` where `maxQueueSize` requests or requests of `maxQueueWeight` wait,
   *   with `ERR_CUDA_DISPOSED` after {@link close}, with the signal's reason where it aborts, else
   *   with the error of the batch
   */
  run(item: Item, options: BatchRequestOptions = {}): Promise<Result> {
    checkOptions('options', options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    if (this.closing !== undefined)
      return Promise.reject(
        new CudaDisposedError('The batcher was closed: it takes no more requests.'),
      );
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    const weight = this.checkedWeight(item);
    if (
      this.queued >= this.maxQueueSize ||
      (this.queued > 0 && this.queuedWeight + weight > this.maxQueueWeight)
    ) {
      this.counts.refused++;
      return Promise.reject(this.fullError());
    }
    const group = this.groupOf(item);
    const since = performance.now();
    if (this.eager && this.maxQueueDelay > 0) this.arrivals.add(group, since);
    return new Promise<Result>((resolve, reject) => {
      const request: Request<Item, Result> = {
        item,
        group,
        weight,
        number: this.numbers++,
        since,
        resolve,
        reject,
        signal,
        onAbort: () => this.abort(request),
        settled: false,
      };
      signal?.addEventListener('abort', request.onAbort, { once: true });
      this.counts.taken++;
      let requests = this.groups.get(group);
      if (requests === undefined) this.groups.set(group, (requests = new Set()));
      requests.add(request);
      this.queued++;
      this.queuedWeight += weight;
      this.schedule(group, requests);
    });
  }

  /**
   * Accepts no further requests, starts those that wait without further delay, and resolves when
   * every accepted request has settled and every batch has ended. It never rejects.
   */
  close(): Promise<void> {
    if (this.closing === undefined) {
      let end!: () => void;
      const ended = new Promise<void>((resolve) => (end = resolve));
      this.closing = { ended, end };
      this.start();
      this.endIfIdle();
    }
    return this.closing.ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Returns the key of the group that an item belongs to, compared as `Map` compares. Requests of
   * one group may be in one batch. By default all items are one group; a subclass may override
   * this. A group's batch starts when it is full or its oldest request has waited for the delay;
   * where several could start, the one with the oldest request does.
   */
  protected groupOf(item: Item): unknown {
    void item;
    return undefined;
  }

  /**
   * Returns the weight of an item, in the unit of `maxQueueWeight` (bytes, for example): a finite
   * number, 0 or more. By default it is 1; a subclass may override this.
   */
  protected weightOf(item: Item): number {
    void item;
    return 1;
  }

  private checkedWeight(item: Item): number {
    const weight = this.weightOf(item);
    if (typeof weight === 'number' && weight >= 0 && weight < Infinity) return weight;
    throw invalid('weightOf', 'a finite number, 0 or more', weight);
  }

  /**
   * Is called with the result of a request that was aborted after its batch had begun. It does
   * nothing by default. A subclass whose results hold memory frees it here.
   */
  protected discard(result: Result): void {
    void result;
  }

  /**
   * Starts the batches that may start, and sets the timer for the rest. It is called after each
   * request, with the requests of its group.
   */
  private schedule(group: unknown, { size }: Set<Request<Item, Result>>): void {
    // With no delay, a batch is the requests of one turn: it starts once the callers' own code has
    // run.
    if (size < this.maxBatchSize && (this.maxQueueDelay === 0 || this.startsAtOnce(group))) {
      if (this.flushing) return;
      this.flushing = true;
      const flush = (): void => {
        this.flushing = false;
        this.start();
      };
      // Requests of several sockets come in one turn of the event loop, but not in one call.
      if (this.maxQueueDelay === 0) queueMicrotask(flush);
      else setImmediate(flush);
      return;
    }
    this.start();
  }

  /**
   * False where requests come at a rate that fills a batch before the delay is over: smaller
   * batches would cost more, and would delay all later requests.
   */
  private startsAtOnce(group: unknown): boolean {
    return (
      this.eager &&
      this.running === 0 &&
      this.arrivals.inSpan(group, performance.now()) < this.maxBatchSize
    );
  }

  private start(): void {
    while (this.running < this.maxConcurrentBatches) {
      const requests = this.due();
      if (requests === undefined) break;
      this.startBatch(requests);
    }
    this.setTimer();
  }

  /** Returns the requests of the group whose batch is to start. */
  private due(): Set<Request<Item, Result>> | undefined {
    const now = Math.max(performance.now(), this.reached);
    return this.oldestGroup(
      (requests, oldest) =>
        requests.size >= this.maxBatchSize ||
        this.closing !== undefined ||
        this.startsAtOnce(oldest.group) ||
        oldest.since + this.maxQueueDelay <= now,
    );
  }

  /** Returns, of the groups that `counts` accepts, the one with the oldest request. */
  private oldestGroup(
    counts: (requests: Set<Request<Item, Result>>, oldest: Request<Item, Result>) => boolean,
  ): Set<Request<Item, Result>> | undefined {
    let found: Set<Request<Item, Result>> | undefined;
    let least = Infinity;
    for (const requests of this.groups.values()) {
      const oldest = first(requests);
      if (oldest.number >= least || !counts(requests, oldest)) continue;
      found = requests;
      least = oldest.number;
    }
    return found;
  }

  /** Sets the timer for the request that has waited longest, while a batch may start. */
  private setTimer(): void {
    const requests =
      this.running < this.maxConcurrentBatches ? this.oldestGroup(() => true) : undefined;
    if (requests === undefined) {
      clearTimeout(this.timer);
      this.timer = undefined;
      return;
    }
    const due = first(requests).since + this.maxQueueDelay;
    if (this.timer !== undefined && this.timerFor === due) return;
    clearTimeout(this.timer);
    this.timerFor = due;
    this.timer = setTimeout(
      () => {
        this.timer = undefined;
        this.reached = due;
        this.start();
      },
      Math.max(0, due - performance.now()),
    );
  }

  private startBatch(group: Set<Request<Item, Result>>): void {
    const requests: Request<Item, Result>[] = [];
    for (const request of group) {
      if (requests.length === this.maxBatchSize) break;
      requests.push(request);
    }
    for (const request of requests) this.leave(request);
    this.running++;
    this.counts.batches++;
    this.counts.items += requests.length;
    void this.runAll(requests);
  }

  /** Removes the request from the queue. Returns whether it was there. */
  private leave(request: Request<Item, Result>): boolean {
    const requests = this.groups.get(request.group);
    if (requests?.delete(request) !== true) return false;
    if (requests.size === 0) this.groups.delete(request.group);
    this.queued--;
    // Sums of fractions leave a remainder, which would accumulate.
    this.queuedWeight = this.queued === 0 ? 0 : this.queuedWeight - request.weight;
    return true;
  }

  private async runAll(requests: readonly Request<Item, Result>[]): Promise<void> {
    const begun = performance.now();
    let outcomes: readonly (Result | ItemFailure)[];
    try {
      outcomes = await this.runBatch(requests.map(({ item }) => item));
      checkResults(outcomes, requests.length);
    } catch (error) {
      const failure = new ItemFailure(error);
      outcomes = requests.map(() => failure);
    }
    const isFirst = this.ended.length === 0;
    for (const [i, request] of requests.entries())
      this.ended.push({ request, outcome: outcomes[i]! });
    const duration = performance.now() - begun;
    this.meanDuration =
      this.meanDuration === undefined
        ? duration
        : this.meanDuration + NEWEST_SHARE * (duration - this.meanDuration);
    this.running--;
    // The device gets its next batch before callers get their results.
    this.start();
    if (isFirst) this.deliverNext();
    this.deliverLater(requests.length - (isFirst ? 1 : 0));
  }

  /**
   * Delivers `count` results in the next turn of the event loop, as far as there is time. Each
   * result has a callback of its own: the code that its caller runs at once ends before the next
   * callback, so that the clock includes it. (Other work in the turn is not counted: a busy server
   * would deliver less the more it had to do.)
   */
  private deliverLater(count: number): void {
    let begun: number | undefined;
    let given = 0;
    let passed = 0;
    const next = (): void => {
      const now = performance.now();
      begun ??= now;
      if (now - begun < TURN_MS) {
        given++;
        this.deliverNext();
      }
      if (++passed === count && given < count) this.deliverLater(count - given);
    };
    for (let i = 0; i < count; i++) setImmediate(next);
  }

  private deliverNext(): void {
    const { request, outcome } = this.ended.shift()!;
    if (outcome instanceof ItemFailure) this.fail(request, outcome.error);
    else this.fulfil(request, outcome);
    this.endIfIdle();
  }

  private fulfil(request: Request<Item, Result>, result: Result): void {
    if (this.settle(request, 'fulfilled')) {
      request.resolve(result);
      return;
    }
    try {
      this.discard(result);
    } catch (error) {
      // The error is the subclass's own: it becomes an uncaught exception, and the others get their
      // results all the same.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  private fail(request: Request<Item, Result>, error: unknown): void {
    if (this.settle(request, 'failed')) request.reject(error);
  }

  private abort(request: Request<Item, Result>): void {
    if (!this.settle(request, 'aborted')) return;
    request.reject(request.signal!.reason);
    // The request may have been the one that the timer is set for.
    if (this.leave(request)) this.setTimer();
  }

  /** Settles the request and counts its end. Returns false if it had settled before. */
  private settle(request: Request<Item, Result>, end: 'fulfilled' | 'failed' | 'aborted'): boolean {
    if (request.settled) return false;
    request.settled = true;
    request.signal?.removeEventListener('abort', request.onAbort);
    this.counts[end]++;
    return true;
  }

  private endIfIdle(): void {
    if (
      this.closing !== undefined &&
      this.queued === 0 &&
      this.running === 0 &&
      this.ended.length === 0
    )
      this.closing.end();
  }

  private fullError(): CudaQueueFullError {
    const batches = [...this.groups.values()].reduce(
      (sum, { size }) => sum + Math.ceil(size / this.maxBatchSize),
      0,
    );
    const retryAfter = Math.max(
      1,
      Math.ceil((batches * (this.meanDuration ?? this.maxQueueDelay)) / this.maxConcurrentBatches),
    );
    const limit =
      this.queued >= this.maxQueueSize
        ? 'as many as its maxQueueSize allows'
        : `with a weight of ${this.queuedWeight}, and its maxQueueWeight is ${this.maxQueueWeight}`;
    return new CudaQueueFullError(
      `The batcher's queue is full: ${this.queued} ` +
        `request${this.queued === 1 ? ' waits' : 's wait'}, ${limit}. Send this one again in ` +
        `${retryAfter} ms, or fewer at a time.`,
      this.maxQueueSize,
      retryAfter,
    );
  }
}

/** The names of {@link BatcherOptions}. */
export const BATCHER_OPTIONS = [
  'maxBatchSize',
  'maxQueueDelay',
  'maxQueueSize',
  'maxQueueWeight',
  'maxConcurrentBatches',
  'eager',
] as const satisfies (keyof BatcherOptions)[];

function first<T>(set: ReadonlySet<T>): T {
  const [value] = set;
  return value!;
}

/** The longest delay that a timer of Node accepts: a longer one would fire at once. */
const LONGEST_DELAY = 2 ** 31 - 1;

function checkResults(results: unknown, count: number): asserts results is readonly unknown[] {
  const fix = 'runBatch gives a result for each of its items, in their order.';
  if (!Array.isArray(results))
    throw new CudaArgumentError(
      'runBatch',
      `runBatch: expected an array of ${count} results, got ${show(results)}. ${fix}`,
    );
  if (results.length !== count)
    throw new CudaArgumentError(
      'runBatch',
      `runBatch: expected ${count} results, got ${results.length}. ${fix}`,
    );
}
