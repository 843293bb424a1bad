/** An operation that runs once, whoever needs it. */
import { CudaError } from '../core/index.js';
import type { Stream } from '../core/index.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';

/** The one run. */
interface Ran<T> {
  readonly run: Run;
  readonly stream: Stream;
  readonly mark: number;
  outcome: { value: Submitted<T> } | { error: unknown };
  /** Its end. */
  over: Promise<void> | undefined;
}

export class Shared<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly inner: Node<T>;
  private ran: Ran<T> | undefined = undefined;
  private running = false;

  constructor(inner: Node<T>) {
    this.device = inner.device;
    this.inner = inner;
  }

  submit(run: Run): Submitted<T> {
    // What is recorded has not happened: it counts within its own graph only.
    const known = (run.remembered.get(this) as Ran<T> | undefined) ?? this.ran;
    const ran = known ?? this.runOnce(run);
    const { outcome } = ran;
    if (ran.run !== run) join(run, ran);
    if ('error' in outcome) throw outcome.error;
    const { value } = outcome;
    return value;
  }

  private runOnce(run: Run): Ran<T> {
    if (this.running) throw new CudaError('ERR_CUDA_INVALID_ARGUMENT', 'a shared operation needs its own result: there is a cycle.');
    this.running = true;
    let outcome: Ran<T>['outcome'];
    try {
      outcome = { value: this.inner.submit(run) };
    } catch (error) {
      outcome = { error };
    } finally {
      this.running = false;
    }
    const ran: Ran<T> = { run, stream: run.stream, mark: run.stream.mark, outcome, over: undefined };
    if (run.recording) run.remembered.set(this, ran);
    else this.ran = ran;
    if ('value' in outcome && outcome.value instanceof Later) settle(ran, outcome.value);
    return ran;
  }

  describe(depth: number): string {
    return `${this.inner.describe(depth)}.shared()`;
  }
}

/** Work of this run comes behind the one run, which it fails with. */
function join(run: Run, ran: Ran<unknown>): void {
  if (!run.recording && ran.stream !== run.stream && !ran.stream.isClosed) run.stream.waitFor(ran.stream, ran.mark);
  if (run.mode !== 'queue' || 'error' in ran.outcome) return;
  const { value } = ran.outcome;
  // Before the value is known not all of it has been queued.
  ran.over ??= value instanceof Later ? value.promise.then(() => ran.run.over()) : ran.run.over();
  run.dependOn(ran.over);
}

/** Once the value is known it is there at once, for a recording and a thread that blocks too. */
function settle<T>(ran: Ran<T>, { promise }: Later<T>): void {
  promise.then((value) => { ran.outcome = { value }; }, (error: unknown) => { ran.outcome = { error }; });
}

/** One value of an operation that gives several. */
export class Part<T> implements Node<T> {
  readonly device: Node<T>['device'];
  private readonly whole: Shared<readonly unknown[]>;
  private readonly index: number;

  constructor(whole: Shared<readonly unknown[]>, index: number) {
    this.device = whole.device;
    this.whole = whole;
    this.index = index;
  }

  submit(run: Run): Submitted<T> {
    const values = this.whole.submit(run);
    if (values instanceof Later) return new Later(values.promise.then((known) => this.of(known)), values.queued);
    return this.of(values);
  }

  private of(values: readonly unknown[]): T {
    if (!Array.isArray(values) || this.index >= values.length) {
      throw new CudaError('ERR_CUDA_INVALID_ARGUMENT', `unzip: there is no value ${this.index}; the operation gives ${Array.isArray(values) ? values.length : 'none, being no list'}.`);
    }
    return values[this.index] as T;
  }

  describe(depth: number): string {
    return `${this.whole.describe(depth)}.unzip()[${this.index}]`;
  }
}
