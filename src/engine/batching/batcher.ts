/**
 * Requests of one item each, put together into batches: by size, or by the time that the first of
 * them has waited.
 */
// Taken at load: results come where a user's tests have fake timers, too. The delay is theirs to
// drive.
import { setImmediate } from 'node:timers';

import { CudaArgumentError, CudaDisposedError, CudaQueueFullError } from '../../core/index.js';
import { checkInteger, checkOptions, checkSignal, invalid, show } from '../../ground/arguments.js';

/** What a {@link Batcher} is told. */
export interface BatcherOptions {
  /** Items in a batch, at most: a batch that has as many starts at once. */
  readonly maxBatchSize: number;
  /**
   * How long a request waits for others to join it: milliseconds. What is there then starts,
   * however little it is. 0 joins only what is asked for in one turn of the event loop, and what
   * comes while all batches that may run are running. Default: 5.
   */
  readonly maxQueueDelay?: number;
  /**
   * Requests that may wait; a further one is refused with `ERR_CUDA_QUEUE_FULL`. `Infinity` takes
   * all of them, for callers that limit themselves. Default: eight batches.
   */
  readonly maxQueueSize?: number;
  /**
   * Weight of the requests that may wait, all together: for {@link Batcher} each weighs 1, for
   * `EngineBatcher` as many bytes as its tensors have, a subclass says otherwise with `weightOf`. A
   * further request is refused with `ERR_CUDA_QUEUE_FULL`, but for one that comes while none waits.
   * Default: `Infinity`.
   */
  readonly maxQueueWeight?: number;
  /**
   * Batches that may run at once. Default: 2, so that one is put together and copied while another
   * one is computed.
   */
  readonly maxConcurrentBatches?: number;
  /**
   * Whether requests that come while no batch runs start one at once, with what is asked for in the
   * same turn of the event loop, instead of waiting for others: `maxQueueDelay` is then for those
   * that come beside a batch. What would have joined finds more beside it in the next one, so that
   * batches are as large as the load makes them. Where as many have come of late that one is full
   * within the delay they wait for that, as without it: many small batches cost more than they
   * save. Default false.
   */
  readonly eager?: boolean;
}

/** What one request may be given besides its item. */
export interface BatchRequestOptions {
  /**
   * Takes the request out of the queue; of one whose batch has begun the result is not waited for.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What a {@link Batcher} has done so far, and holds now. */
export interface BatcherStatistics {
  /** Requests that wait for a batch. */
  readonly queued: number;
  /** Batches that run. */
  readonly running: number;
  /**
   * Requests that were taken. Each is queued, in a batch that runs or whose results are being given
   * out, or counted by one of the next three.
   */
  readonly taken: number;
  readonly fulfilled: number;
  readonly failed: number;
  readonly aborted: number;
  /** Requests that the full queue has refused. */
  readonly refused: number;
  /** Batches that were begun, and the items in them. */
  readonly batches: number;
  readonly items: number;
}

/**
 * In the place of a result: this item has failed, and the others of its batch have not. Its
 * caller's promise rejects with the error.
 */
export class ItemFailure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** Runs one batch: a result for each item, in their order, or an {@link ItemFailure}. */
export type RunBatch<Item, Result> = (
  items: readonly Item[],
) => PromiseLike<readonly (Result | ItemFailure)[]>;

interface Request<Item, Result> {
  readonly item: Item;
  /** Those of one group may be in one batch. */
  readonly group: unknown;
  /** Of {@link Batcher.weightOf}. */
  readonly weight: number;
  /** Later ones have greater ones. */
  readonly number: number;
  /** When it was taken: `performance.now()`. */
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
  readonly signal: AbortSignal | undefined;
  readonly onAbort: () => void;
  settled: boolean;
}

/** A request whose batch has ended, and what became of it. */
interface Ended<Item, Result> {
  readonly request: Request<Item, Result>;
  readonly outcome: Result | ItemFailure;
}

/**
 * How long results may be given out in one turn of the event loop, milliseconds, with what their
 * callers do at once.
 */
const TURN_MS = 1;

/** Share of the last batch in the mean of how long batches take. */
const NEWEST_SHARE = 0.2;

/** Groups whose arrivals are counted, at most. */
const MOST_COUNTED = 64;

/** How many requests of each group come in a certain time, of late. */
class Arrivals {
  /** Milliseconds. */
  private readonly span: number;
  /**
   * Those that came until `last`, each of which counts the less the longer ago it came: as many as
   * come in the span, where they come evenly. In the order of `last`.
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
 * Puts requests of one item each together into batches, and gives each caller the result of its
 * own. A batch starts when there are `maxBatchSize` requests, or the first has waited for
 * `maxQueueDelay`, as soon as fewer than `maxConcurrentBatches` run; with `eager`, also where none
 * runs and not as many come that it would be full before that.
 *
 * - Order: batches take requests in the order in which they came, those of one
 *   {@link groupOf | group} where there are several. Results come batch by batch, as those end; in
 *   one turn of the event loop only as many as their callers need a millisecond for, so that a
 *   large batch does not hold it up. The next batch does not wait for that.
 * - Every request settles exactly once: with its result, with its own error where `runBatch` gave
 *   an {@link ItemFailure}, with the error of its batch (the same one for all of its callers) where
 *   that rejected, with the reason of its signal, or with `ERR_CUDA_QUEUE_FULL` or
 *   `ERR_CUDA_DISPOSED` where it was not taken.
 * - A request whose signal aborts while it waits leaves the queue, and its place is free. In a
 *   batch that has begun it settles at once and its result goes to {@link discard}.
 *
 * Nothing of it blocks the event loop, and there is one timer, for the request that has waited
 * longest.
 *
 * ```ts
 * const batcher = new Batcher((texts: readonly string[]) => embed(texts), { maxBatchSize: 32, maxQueueDelay: 5 });
 * const vector = await batcher.run('one text', { signal });
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
   * By group, in the order in which they came; Sets, so that one leaves from the middle in constant
   * time. None is empty.
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
   * What the timer is set for, and the latest for which it has come: a timer may come a little
   * before the clock says so.
   */
  private timerFor = -Infinity;
  private reached = -Infinity;
  private flushing = false;
  /** What is still to be given out: callbacks of the event loop are on their way for it. */
  private readonly ended: Ended<Item, Result>[] = [];
  /** Of a batch, milliseconds; undefined before the first has ended. */
  private meanDuration: number | undefined = undefined;
  private closing: { readonly ended: Promise<void>; readonly end: () => void } | undefined =
    undefined;

  /**
   * @param runBatch runs one batch: called with 1 to `maxBatchSize` items, gives as many results in
   *   their order
   * @throws CudaArgumentError
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
    // First: the size of the queue follows from it.
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

  get statistics(): BatcherStatistics {
    return { queued: this.queued, running: this.running, ...this.counts };
  }

  /** Whether {@link close} was called: nothing more is taken. */
  get isClosed(): boolean {
    return this.closing !== undefined;
  }

  /**
   * The result of one item, of the batch that it will be part of.
   *
   * @throws CudaArgumentError where an argument is wrong. Rejects with `ERR_CUDA_QUEUE_FULL` where
   *   `maxQueueSize` requests wait, or requests of `maxQueueWeight`, `ERR_CUDA_DISPOSED` behind
   *   {@link close}, the signal's reason where it aborts, else with what the batch failed with
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
   * Takes nothing more, starts what waits without further delay, and resolves when every request
   * that was taken has settled and every batch has ended. Never rejects.
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
   * Which requests may be in one batch: those whose items give the same, as `Map` compares. All,
   * unless a subclass says otherwise. A group's batch starts when it is full or its oldest request
   * has waited; where several could, that of the oldest request.
   */
  protected groupOf(item: Item): unknown {
    void item;
    return undefined;
  }

  /**
   * What an item weighs, in the unit of `maxQueueWeight`: a finite number, 0 or more. Bytes, say.
   * 1, unless a subclass says otherwise.
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
   * Called with the result of a request that was aborted after its batch had begun. Does nothing; a
   * subclass whose results hold memory gives it back here.
   */
  protected discard(result: Result): void {
    void result;
  }

  /**
   * Called after each request that came, with those of its group: starts what may start, and sets
   * the timer for the rest.
   */
  private schedule(group: unknown, { size }: Set<Request<Item, Result>>): void {
    // With no delay a batch is what was asked for in this turn: it starts once the callers' own
    // code has run.
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
   * Not where as many come that a batch is full before the delay is over: smaller ones would cost
   * more, and all who come later with them.
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

  /** The group whose batch is to start. */
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

  /** The group of the oldest request, of those that are asked for. */
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

  /** For the request that has waited longest, while a batch may start. */
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

  /** Whether the request was in the queue: it is no more. */
  private leave(request: Request<Item, Result>): boolean {
    const requests = this.groups.get(request.group);
    if (requests?.delete(request) !== true) return false;
    if (requests.size === 0) this.groups.delete(request.group);
    this.queued--;
    // Sums of fractions leave a rest, which would add up.
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
    if (isFirst) this.giveOutNext();
    this.giveOutLater(requests.length - (isFirst ? 1 : 0));
  }

  /**
   * Gives out so many results in the next turn of the event loop, as far as there is time. One
   * callback for each: what its caller does at once is done before the next one, so that the clock
   * says what it took. (What else is done in a turn says nothing: a server that is busy would give
   * out less the more there is.)
   */
  private giveOutLater(count: number): void {
    let begun: number | undefined;
    let given = 0;
    let passed = 0;
    const next = (): void => {
      const now = performance.now();
      begun ??= now;
      if (now - begun < TURN_MS) {
        given++;
        this.giveOutNext();
      }
      if (++passed === count && given < count) this.giveOutLater(count - given);
    };
    for (let i = 0; i < count; i++) setImmediate(next);
  }

  private giveOutNext(): void {
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
      // Whose own mistake it is: the others get their results all the same.
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
    // One that waited may have been the one that the timer is set for.
    if (this.leave(request)) this.setTimer();
  }

  /** Whether the request had not settled before: its end is counted once. */
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

/** What a timer of Node takes: a larger number would come at once. */
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
