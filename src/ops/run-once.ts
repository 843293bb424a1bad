/** An operation that runs once, in whichever operations it is part of. */
import { CudaDisposedError, CudaError } from '../core/index.js';
import type { DeviceBuffer, Stream } from '../core/index.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import { giveOnly, handOut } from './ownership.js';
import type { Run } from './run.js';

/** The only run. */
interface Ran<T> {
  readonly run: Run;
  readonly stream: Stream;
  readonly mark: number;
  outcome: { value: Submitted<T> } | { error: unknown };
  /** Resolves at its end. */
  over: Promise<void> | undefined;
}

export class Shared<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly inner: Node<T>;
  private ran: Ran<T> | undefined = undefined;
  private running = false;
  /** The memory that the run has made, and its value holds. It is outside of every run. */
  private owned: DeviceBuffer[] = [];
  private closed = false;

  constructor(inner: Node<T>) {
    this.device = inner.device;
    this.inner = inner;
  }

  submit(run: Run): Submitted<T> {
    if (this.closed)
      throw new CudaDisposedError(
        'shared operation: run after it was closed. Make it anew with shared().',
      );
    // A recorded operation has not run: the value counts within its own graph only.
    const known = (run.remembered.get(this) as Ran<T> | undefined) ?? this.ran;
    const ran = known ?? this.runOnce(run);
    const { outcome } = ran;
    if (ran.run !== run) join(run, ran);
    if ('error' in outcome) throw outcome.error;
    const { value } = outcome;
    // Its memory belongs to no run that uses the value.
    return value instanceof Later ? new Later(value.promise, value.queued, value.holding) : value;
  }

  /** Closes the memory that the run has made, after all work that uses it. */
  close(): void {
    this.closed = true;
    this.closeOwned();
  }

  /**
   * The memory that the value of a part holds, without memory that parts which have not been given
   * hold, too.
   */
  give(part: unknown, others: readonly unknown[]): DeviceBuffer[] {
    const held = [...this.owned];
    giveOnly(held, part, others);
    this.owned = this.owned.filter((owner) => !held.includes(owner));
    return held;
  }

  private closeOwned(): void {
    for (const owner of this.owned.splice(0)) owner.closeMemory();
  }

  private own(made: readonly DeviceBuffer[]): void {
    const own = made.filter((owner) => owner.memory.scoped && !owner.memory.disposed);
    if (own.length === 0) return;
    for (const owner of own) owner.memory.collectable = true;
    handOut(own);
    this.owned.push(...own);
    // It was closed before the value was known.
    if (this.closed) this.closeOwned();
  }

  private runOnce(run: Run): Ran<T> {
    if (this.running)
      throw new CudaError(
        'ERR_CUDA_INVALID_ARGUMENT',
        'a shared operation needs its own result: there is a cycle.',
      );
    this.running = true;
    try {
      if (!run.recording) return run.aside((aside) => this.runAside(aside));
      const { mark } = run;
      const ran: Ran<T> = {
        run,
        stream: run.stream,
        mark: run.stream.mark,
        outcome: outcomeOf(() => run.endStep(this.inner.submit(run), mark)),
        over: undefined,
      };
      // The memory stays until the graph is closed.
      run.takeFrom(mark);
      run.remembered.set(this, ran);
      return ran;
    } finally {
      this.running = false;
    }
  }

  /**
   * Queues it as a separate operation: it does not fail with the run that needed it first, and its
   * memory is not that run's.
   */
  private runAside(aside: Run): Ran<T> {
    const outcome = outcomeOf(() => aside.endStep(this.inner.submit(aside), 0));
    const ran: Ran<T> = {
      run: aside,
      stream: aside.stream,
      mark: aside.stream.mark,
      outcome,
      over: undefined,
    };
    this.ran = ran;
    const fail = (error: unknown): void => {
      ran.outcome = { error };
      aside.closeMade();
      this.closeOwned();
    };
    if ('error' in outcome) {
      fail(outcome.error);
      return ran;
    }
    const { value } = outcome;
    this.own(aside.takeFrom(0));
    if (aside.mode === 'block') {
      try {
        aside.block();
      } catch (error) {
        fail(error);
      }
      return ran;
    }
    if (value instanceof Later) {
      value.promise.then(() => {
        this.own(aside.adopt(value.owned));
      }, ignore);
      settle(ran, value);
    }
    // Before the value is known not all of it has been queued.
    ran.over = value instanceof Later ? value.promise.then(() => aside.over()) : aside.over();
    ran.over.catch(fail);
    return ran;
  }

  describe(depth: number): string {
    return `${this.inner.describe(depth)}.shared()`;
  }
}

/** Orders the run after the only run, and makes it fail with that. */
function join(run: Run, ran: Ran<unknown>): void {
  if (!run.recording && ran.stream !== run.stream && !ran.stream.isClosed)
    run.stream.waitFor(ran.stream, ran.mark);
  if (run.mode === 'queue' && ran.over !== undefined && !('error' in ran.outcome))
    run.dependOn(ran.over);
}

function outcomeOf<T>(queue: () => Submitted<T>): Ran<T>['outcome'] {
  try {
    return { value: queue() };
  } catch (error) {
    return { error };
  }
}

function ignore(): void {
  // Its runs fail with it.
}

/** Stores the value once it is known, so that a recording and a blocking thread have it at once. */
function settle<T>(ran: Ran<T>, { promise }: Later<T>): void {
  promise.then(
    (value) => {
      ran.outcome = { value };
    },
    (error: unknown) => {
      ran.outcome = { error };
    },
  );
}

/** One value of an operation with several. */
export class Part<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly whole: Shared<readonly unknown[]>;
  private readonly index: number;
  /** The indices of parts that have been given. */
  private readonly given: Set<number>;
  /** The memory that it was given with. */
  private memory: readonly DeviceBuffer[] = [];

  constructor(whole: Shared<readonly unknown[]>, index: number, given: Set<number>) {
    this.device = whole.device;
    this.whole = whole;
    this.index = index;
    this.given = given;
  }

  submit(run: Run): Submitted<T> {
    const values = this.whole.submit(run);
    if (values instanceof Later)
      return run.goOn(values, (known) => this.givenTo(run, known), { queued: values.queued });
    return this.givenTo(run, values);
  }

  /**
   * The first run that takes a part owns its memory; other runs may use the memory until that run
   * has closed it.
   */
  private givenTo(run: Run, values: readonly unknown[]): T {
    const value = this.of(values);
    if (run.recording) return value;
    const { given, index } = this;
    if (this.memory.some((owner) => owner.isClosed)) {
      throw new CudaDisposedError(
        `unzip: part ${index} was given to an earlier run, which has closed it: each part is ` +
          'given once. Share the operation instead: op.shared(), and take parts with map(…).',
      );
    }
    if (given.has(index)) return value;
    given.add(index);
    this.memory = this.whole.give(
      value,
      values.filter((_, other) => !given.has(other)),
    );
    for (const owner of this.memory) {
      owner.scope();
      run.own(owner);
    }
    return value;
  }

  private of(values: readonly unknown[]): T {
    if (!Array.isArray(values) || this.index >= values.length) {
      throw new CudaError(
        'ERR_CUDA_INVALID_ARGUMENT',
        `unzip: there is no value ${this.index}; the operation's value is ` +
          `${Array.isArray(values) ? `a list of ${values.length}` : 'not a list'}.`,
      );
    }
    return values[this.index] as T;
  }

  describe(depth: number): string {
    return `${this.whole.describe(depth)}.unzip()[${this.index}]`;
  }
}
