/** DeviceOp: lazy device work as a value, and its graphs. */
import { inspect } from 'node:util';

import { CudaDisposedError, Stream } from '../core/index.js';
import type { CoreDevice, GraphNodeType, MemoryPool, WaitOptions } from '../core/index.js';
import { checkOptions, checkSignal, checkString, invalid } from '../ground/arguments.js';
import { checkCallback, ignore, isThenable, synchronous } from './callbacks.js';
import type { Plain, PlainOrOp } from './callbacks.js';
import { AndThen, Mapped } from './chain.js';
import { Choose, RepeatWhile, When } from './conditional.js';
import type { Decider } from './conditional.js';
import { Ready } from './collect.js';
import { used, watchUnused } from './development.js';
import { parts, valueAt } from './destructuring.js';
import { Labelled } from './labelled.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import { OnStream, checkStream } from './on-stream.js';
import { poolOf } from './pools.js';
import { Ensured, Recovered } from './recover.js';
import { RecordedGraph, recorded } from './recorded-graph.js';
import type { GraphScope, OpCaptureOptions } from './recorded-graph.js';
import { Run, checkNotNested } from './run.js';
import { Running } from './running.js';
import { Scheduled } from './scheduled.js';
import {
  checkPolicy,
  getDefaultDevice,
  chosenPolicy,
  nextOf,
  setDefaultDevice,
  SingleStream,
} from './scheduling.js';
import type { SchedulingPolicy } from './scheduling.js';
import { Part, Shared } from './run-once.js';
import type { Given, OrOp } from './given.js';
import type { OpContext } from './op-context.js';

/** The most choices of `choose`. */
const MOST_CHOICES = 128;

/**
 * Device work as a value: a description of it, which runs each time that it is awaited. Making one
 * queues nothing. What is chained, zipped or collected runs on one stream in the order in which it
 * is written, without a wait of the host. Callbacks are called while the work is queued, with
 * values that refer to memory the device has yet to write; only `read()`, `orElse` and `ensure`
 * make the host wait.
 *
 * @example
 * ```ts
 * const doubled = device.ones(f32, [3]).andThen((x) => mul(x, 2)); // nothing has run yet
 * const y = await doubled;
 * console.log((await y.read()).join(' ')); // 2 2 2
 * y.close();
 * ```
 */
export class DeviceOp<T> implements PromiseLike<T> {
  /** @internal */
  readonly node: Node<T>;
  private get part(): Node<T> {
    used(this.node);
    return this.node;
  }

  /** Runs of the operation by itself. */
  private runs = 0;

  /** @internal */
  constructor(node: Node<T>) {
    this.node = node;
    watchUnused(this);
  }

  /** The device that it runs on by default; undefined for operations without one: `value(1)`. */
  get device(): CoreDevice | undefined {
    return this.node.device;
  }

  /**
   * The operation that the callback makes from the value, after this one on the same stream. Each
   * run calls the callback while it queues the whole: later work on the device finds the value's
   * memory written, and the host cannot read it yet.
   *
   * The value is valid in the callback and in the operation that it returns. Memory that the run
   * has allocated and that the operation's value does not hold is closed in stream order once the
   * operation has been queued; where it has to wait, after that. A value holds tensors, buffers and
   * partitions, by themselves or in arrays, plain objects, Maps and Sets.
   *
   * @throws when run: CudaArgumentError where the callback returns no DeviceOp
   */
  andThen<U>(callback: (value: T) => DeviceOp<U>): DeviceOp<U> {
    checkCallback('andThen', callback);
    return new DeviceOp(new AndThen(this.part, callback, nodeOfResult));
  }

  /**
   * An operation whose value the host makes from this one's while the work is queued: the callback
   * must not need what the device will write.
   */
  map<U>(callback: (value: T) => Plain<U>): DeviceOp<U> {
    checkCallback('map', callback);
    return new DeviceOp(
      new Mapped<T, U>(this.part, (value) => plain('map', callback(value)) as U, 'map'),
    );
  }

  /** Calls the callback with the value while the work is queued, and passes the value on. */
  tap<U>(callback: (value: T) => Plain<U>): DeviceOp<T> {
    checkCallback('tap', callback);
    return new DeviceOp(
      new Mapped<T, T>(
        this.part,
        (value) => {
          plain('tap', callback(value));
          return value;
        },
        'tap',
      ),
    );
  }

  /**
   * Does the same as {@link andThen}. The callback receives the context as well, and may queue work
   * of level 3 on its stream.
   */
  withContext<U>(callback: (context: OpContext, value: T) => DeviceOp<U>): DeviceOp<U> {
    checkCallback('withContext', callback);
    return new DeviceOp(
      new AndThen<T, U, DeviceOp<U>>(
        this.part,
        (value, run) => callback(run, value),
        nodeOfContext,
      ),
    );
  }

  /** The first of the values of an operation with several. */
  first<A>(this: DeviceOp<readonly [A, ...unknown[]]>): DeviceOp<A> {
    return new DeviceOp(
      new Mapped<readonly [A, ...unknown[]], A>(
        this.part,
        (values) => valueAt(values, 0, 'first') as A,
        'first',
      ),
    );
  }

  /** The last of the values of an operation with several. */
  last<A>(this: DeviceOp<readonly [...unknown[], A]>): DeviceOp<A> {
    return new DeviceOp(
      new Mapped<readonly [...unknown[], A], A>(
        this.part,
        (values) => valueAt(values, -1, 'last') as A,
        'last',
      ),
    );
  }

  /**
   * One operation for each of several values, in order. The operation that produces them runs once;
   * its parts share it as by {@link shared}. The memory of a part belongs to the first run that
   * takes it.
   */
  unzip<A extends readonly unknown[]>(
    this: DeviceOp<A>,
    ...count: number extends A['length'] ? [count: number] : [count?: A['length']]
  ): { -readonly [K in keyof A]: DeviceOp<A[K]> } {
    const shared = new Shared(this.part);
    const [given] = count;
    if (given !== undefined && (!Number.isInteger(given) || given < 0))
      throw invalid('count', 'a whole number of values', given);
    const taken = new Set<number>();
    const part = (index: number): DeviceOp<unknown> => new DeviceOp(new Part(shared, index, taken));
    if (given !== undefined)
      return Array.from({ length: given }, (_, index) => part(index)) as never;
    // Only the type has the number of parts: there are as many as are taken.
    return parts(part) as never;
  }

  /**
   * An operation that runs once. Its first run, in whichever operation it is part of, is the only
   * one; every other run gets the same value, or fails with the same error. Other streams wait for
   * it on the device. Its memory is outside of every run: {@link SharedOp.close} closes it, or the
   * garbage collector, without a warning, once neither the operation nor its tensors can be
   * reached.
   */
  shared(): SharedOp<T> {
    return this instanceof SharedOp ? (this as SharedOp<T>) : new SharedOp(new Shared(this.part));
  }

  /**
   * Where this operation fails, the callback's result replaces it: an operation, or a value. The
   * host waits for the device at this point; then the rest goes on, on the same stream. This
   * operation is separate: other work of the run does not fail with it, and it runs whether that
   * work fails or not. The callback is not called where work before it has failed.
   */
  orElse<U>(callback: (error: unknown) => PlainOrOp<U>): DeviceOp<T | Given<U>> {
    checkCallback('orElse', callback);
    return new DeviceOp(
      new Recovered<T, Given<U>>(this.part, callback, (result) =>
        nodeOfPlain('orElse(callback)', result),
      ),
    );
  }

  /**
   * Runs the callback's operation after this one, whether it failed or not, on the same stream; the
   * result is this operation's. As with {@link orElse} the host waits for the device at this point.
   * An error of the callback's operation replaces the first one, which becomes its cause.
   */
  ensure(callback: () => DeviceOp<unknown> | undefined | void): DeviceOp<T> {
    checkCallback('ensure', callback);
    return new DeviceOp(
      new Ensured<T>(this.part, callback, (result) => nodeOfPlain('ensure(callback)', result)),
    );
  }

  /**
   * Where the element that `condition` returns is not zero, runs the operation that `then` makes
   * from the value, else that of `otherwise`. The value is this operation's. In a graph this is a
   * conditional node, which the device decides at each launch (cuGraphAddNode); otherwise the host
   * reads the element, and waits for the device at this point. Memory that the callbacks'
   * operations make is closed after them. Each callback is called where its operation is queued, in
   * a graph while it is recorded.
   *
   * @param condition returns one element of whole numbers or bool, or an operation that produces
   *   one
   * @throws when run: CudaArgumentError for another condition; when captured: CudaError with code
   *   ERR_CUDA_UNSUPPORTED where the driver has no conditional nodes (before CUDA 12.4)
   */
  when(
    condition: (value: T) => OrOp<Decider>,
    then: (value: T) => DeviceOp<unknown>,
    otherwise?: (value: T) => DeviceOp<unknown>,
  ): DeviceOp<T> {
    checkCallback('when', condition, 'condition');
    checkCallback('when', then, 'then');
    if (otherwise !== undefined) checkCallback('when', otherwise, 'otherwise');
    const choices = (otherwise === undefined ? [then] : [then, otherwise]).map(
      (choice) => (value: T) => nodeOfResult(choice(value), 'when'),
    );
    return new DeviceOp(
      new When<T>(
        this.part,
        'when',
        (value) => nodeOfPlain('when(condition)', condition(value)),
        choices,
      ),
    );
  }

  /**
   * Runs the operation that `body` makes from the value repeatedly, while the element that
   * `condition` returns is not zero. The value is this operation's. As with {@link when}, it is a
   * node of a graph (while); otherwise the host reads the element before each turn.
   */
  repeatWhile(
    condition: (value: T) => OrOp<Decider>,
    body: (value: T) => DeviceOp<unknown>,
  ): DeviceOp<T> {
    checkCallback('repeatWhile', condition, 'condition');
    checkCallback('repeatWhile', body, 'body');
    return new DeviceOp(
      new RepeatWhile<T>(
        this.part,
        (value) => nodeOfPlain('repeatWhile(condition)', condition(value)),
        (value) => nodeOfResult(body(value), 'repeatWhile'),
      ),
    );
  }

  /**
   * Runs the operation that one of the `choices` (at most 128) makes from the value: the choice
   * whose number is the element that `index` returns, and none where there is no such choice. The
   * value is this operation's. As with {@link when}, it is a node of a graph (switch).
   */
  choose(
    index: (value: T) => OrOp<Decider>,
    choices: readonly ((value: T) => DeviceOp<unknown>)[],
  ): DeviceOp<T> {
    checkCallback('choose', index, 'index');
    if (
      !(Array.isArray as (value: unknown) => boolean)(choices) ||
      choices.length < 1 ||
      choices.length > MOST_CHOICES
    )
      throw invalid('choices', `a list of 1 to ${MOST_CHOICES} functions`, choices);
    for (const choice of choices) checkCallback('choose', choice, 'choices');
    return new DeviceOp(
      new Choose<T>(
        this.part,
        'choose',
        (value) => nodeOfPlain('choose(index)', index(value)),
        choices.map((choice) => (value: T) => nodeOfResult(choice(value), 'choose')),
      ),
    );
  }

  /** Labels the operation, for errors and traces. */
  label(label: string): DeviceOp<T> {
    checkString('label', label);
    return new DeviceOp(new Labelled(this.part, label));
  }

  /**
   * Runs the operation: queues all of it now, on a stream of the device's policy, and resolves when
   * the device has ended it. `await` calls this.
   */
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    // A Running would be one more object for the garbage collector, and no code would use it.
    let run: Run;
    let value: Submitted<T>;
    try {
      run = this.newRun(undefined, 'queue');
      value = run.submit(this.node);
      if (value instanceof Later) run.underway(value);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as thrown
      return Promise.reject<T>(error).then(onFulfilled, onRejected);
    }
    return run.whenEnded(value, onFulfilled, onRejected);
  }

  /** Waits as {@link then} does, for the failure only. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.started().catch(onRejected);
  }

  /** Waits as {@link then} does, for the end either way. */
  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.started().finally(onFinally);
  }

  /**
   * Runs the operation as awaiting does, with options.
   *
   * @throws the signal's reason. Where it has aborted already nothing is queued. Where it aborts
   *   later the wait ends: queued work goes on, later steps do not begin, and the memory is closed
   */
  run(options: WaitOptions = {}): Promise<T> {
    checkOptions('options', options, ['signal']);
    const { signal } = options;
    checkSignal(signal);
    if (signal === undefined) return this.started();
    try {
      if (signal.aborted) throw signal.reason;
      return this.begin(undefined, 'queue').finished(options);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as thrown
      return Promise.reject(error);
    }
  }

  /**
   * Chooses the stream now, that of `policy` or of the device's own. The operation runs there when
   * the result is awaited, once.
   */
  schedule(policy?: SchedulingPolicy): Scheduled<T> {
    if (policy !== undefined) checkPolicy(policy);
    const chosen = this.policyFor(policy);
    const stream = nextOf(chosen);
    const pool = poolOf(stream.device);
    return new Scheduled<T>(stream, () =>
      this.begin(new SingleStream(stream), 'queue', chosen, { pool }),
    );
  }

  /** Queues the operation on the stream now. The result has the value, and can be awaited. */
  runOn(stream: Stream): Running<T> {
    checkStream(stream);
    return this.beginOn(stream, 'queue');
  }

  /**
   * Runs the operation and blocks this thread until the device has ended it: no other code of the
   * program runs meanwhile. It is for scripts and tests; a server awaits.
   */
  sync(): T {
    return this.begin(undefined, 'block').result();
  }

  /** Does the same as {@link sync}, on a stream of the caller's choice. */
  syncOn(stream: Stream): T {
    checkStream(stream);
    return this.beginOn(stream, 'block').result();
  }

  /**
   * Records the operation as a graph, which can be launched repeatedly with one driver call. The
   * operation must not need a value of the host. The graph owns its memory, which is allocated now,
   * or with `{ allocate: 'nodes' }` by each launch. cuStreamBeginCapture, cuStreamEndCapture,
   * cuGraphInstantiate
   *
   * Rejects with code ERR_CUDA_CAPTURE, and a message that names the call, where something cannot
   * be recorded.
   *
   * @param stream the stream to record on. Default: the next of the device's policy
   */
  async capture(stream?: Stream, options?: OpCaptureOptions): Promise<OpGraph<T>> {
    if (stream !== undefined) checkStream(stream);
    const on = stream ?? nextOf(this.policyFor(undefined));
    return new OpGraph(await RecordedGraph.capture(this.part, on, options));
  }

  /**
   * The same operation on a stream of its own, in whichever operation it is part of. Work around it
   * waits for it on the device, and it waits for earlier work.
   */
  on(stream: Stream): DeviceOp<T> {
    checkStream(stream);
    return new DeviceOp(new OnStream(this.part, stream));
  }

  /** Starts a run, and returns its end. */
  private started(): Promise<T> {
    try {
      return this.begin(undefined, 'queue').finished();
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as thrown
      return Promise.reject(error);
    }
  }

  /** The policy that chooses the stream. */
  private policyFor(policy: SchedulingPolicy | undefined): SchedulingPolicy {
    checkNotNested('An operation was run');
    return chosenPolicy(policy, this.node.device);
  }

  /** `forks`: the policy of the streams of branches that run in parallel. */
  private newRun(
    policy: SchedulingPolicy | undefined,
    mode: 'queue' | 'block',
    forks?: SchedulingPolicy,
    frozen?: { pool: MemoryPool | undefined },
  ): Run {
    const chosen = this.policyFor(policy);
    const stream = nextOf(chosen);
    return this.newRunOn(
      stream,
      mode,
      forks ?? chosen,
      frozen === undefined ? poolOf(stream.device) : frozen.pool,
    );
  }

  private newRunOn(
    stream: Stream,
    mode: 'queue' | 'block',
    forks: SchedulingPolicy | undefined,
    pool: MemoryPool | undefined,
  ): Run {
    if (getDefaultDevice() === undefined) setDefaultDevice(stream.device);
    if (stream.device.closing)
      throw new CudaDisposedError(
        `${stream.device.name}: used after it was closed. Open it again with Device.open().`,
      );
    this.runs++;
    used(this.node);
    const run = new Run(stream.device, stream, forks, mode, pool);
    run.alone = this.node.alone === true;
    return run;
  }

  private begin(
    policy: SchedulingPolicy | undefined,
    mode: 'queue' | 'block',
    forks?: SchedulingPolicy,
    frozen?: { pool: MemoryPool | undefined },
  ): Running<T> {
    return this.submitted(this.newRun(policy, mode, forks, frozen));
  }

  private beginOn(stream: Stream, mode: 'queue' | 'block'): Running<T> {
    checkNotNested('An operation was run');
    return this.submitted(this.newRunOn(stream, mode, undefined, poolOf(stream.device)));
  }

  private submitted(run: Run): Running<T> {
    const value = run.submit(this.node);
    if (value instanceof Later) run.underway(value);
    return new Running(run, value);
  }

  toString(): string {
    return `DeviceOp ${this.node.describe(2)}`;
  }

  /** Kind, parts, device, and the number of runs by itself. */
  [inspect.custom](): string {
    const device = this.node.device;
    const ran =
      this.runs === 0 ? 'not run yet' : `run ${this.runs === 1 ? 'once' : `${this.runs} times`}`;
    return (
      `${this.toString()}${device === undefined ? '' : ` on ${device.kind}:${device.ordinal}`}, ` +
      `${ran}`
    );
  }
}

/**
 * An operation that runs once. Made by {@link DeviceOp.shared}.
 *
 * @example
 * ```ts
 * using table = device.arange(f32, 3).shared(); // runs once
 * const [a, b] = await Promise.all([table, table]);
 * console.log(a === b); // true
 * ```
 */
export class SharedOp<T> extends DeviceOp<T> implements Disposable {
  /**
   * Closes the memory that its run has made, after all work that uses it. Later runs of the
   * operation are refused.
   */
  close(): void {
    used(this.node);
    (this.node as Shared<T>).close();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * A recorded operation. Made by {@link DeviceOp.capture} and {@link OpGraph.scope}.
 *
 * @example
 * ```ts
 * using x = await device.zeros(f32, [2]);
 * await using graph = await add(x, 10).capture();
 * const y = await graph.update(x.write(Float32Array.of(1, 2))).andThen(() => graph.replay());
 * console.log((await y.read()).join(' ')); // 11 12
 * ```
 */
export class OpGraph<T> implements AsyncDisposable {
  private readonly recorded: RecordedGraph<T>;

  /** @internal */
  constructor(recorded: RecordedGraph<T>) {
    this.recorded = recorded;
  }

  /**
   * Records the operations that `body` passes to `scope.record`, in order, on the stream. `body` is
   * synchronous. Rejects with the error that it threw; the stream can be used afterwards.
   */
  static async scope<T>(
    stream: Stream,
    body: (scope: GraphScope) => T,
    options: OpCaptureOptions = {},
  ): Promise<OpGraph<T>> {
    if (!(stream instanceof Stream)) throw invalid('stream', 'a Stream', stream);
    if (typeof body !== 'function')
      throw invalid('body', 'a function that records operations', body);
    return new OpGraph(
      await RecordedGraph.record(stream, options, (run) =>
        body({
          device: run.device,
          stream,
          record: <U>(op: DeviceOp<U>): U => recorded(run, nodeOfOp(op)),
        }),
      ),
    );
  }

  /**
   * The operation's value: memory that each launch writes. Its contents are undefined before the
   * first launch.
   */
  get output(): T {
    return this.recorded.output;
  }

  /** The stream that it was recorded on, and that {@link update} queues on. */
  get stream(): Stream {
    return this.recorded.stream;
  }

  /** The device of the stream that it was recorded on. */
  get device(): CoreDevice {
    return this.stream.device;
  }

  /**
   * An operation that launches the graph; its value is {@link output}. It may run on any stream;
   * launches of one graph are in order. cuGraphLaunch
   */
  replay(): DeviceOp<T> {
    return new DeviceOp(this.recorded.launch());
  }

  /** The operation on the graph's own stream, to write new inputs before the next launch. */
  update<U>(op: DeviceOp<U>): DeviceOp<U> {
    return new DeviceOp(this.recorded.update(nodeOfOp(op)));
  }

  /**
   * Records another operation of the same shape and takes over its parameters: sizes of launches,
   * scalars, memory. The value of the graph stays {@link output}, so `op` has to write there: for a
   * result of its own, capture one that writes to memory of the program, `out.copyFrom(op)`.
   * cuGraphExecUpdate
   *
   * Rejects with code ERR_CUDA_CAPTURE where the two differ in more than parameters, and where the
   * output is the graph's own memory, which `op` does not write. The graph is then unchanged.
   */
  async reparam(op: DeviceOp<unknown>): Promise<void> {
    this.recorded.check();
    await this.recorded.reparam(nodeOfOp(op));
  }

  /** The number of nodes. cuGraphGetNodes */
  nodeCount(): Promise<number> {
    return this.recorded.graph.nodeCount();
  }

  /** The kinds of the nodes. cuGraphNodeGetType */
  nodeTypes(): Promise<GraphNodeType[]> {
    return this.recorded.graph.nodeTypes();
  }

  /** The graph in the DOT language of Graphviz. cuGraphDebugDotPrint */
  dot(options: { verbose?: boolean } = {}): Promise<string> {
    return this.recorded.graph.dot(options);
  }

  /** Frees the graph and its memory, {@link output} too, after its launches. cuGraphExecDestroy */
  close(): Promise<void> {
    return this.recorded.close();
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return (
      `OpGraph of ${this.stream.title} on ` +
      `${this.device.kind}:${this.device.ordinal}${this.recorded.isClosed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

function nodeOfOp<T>(op: DeviceOp<T>): Node<T> {
  if (!(op instanceof DeviceOp)) throw invalid('op', 'a DeviceOp', op);
  return nodeOf(op);
}

/** The node of a value or an operation. */
export function nodeOf<T>(value: OrOp<T>): Node<T> {
  if (!(value instanceof DeviceOp)) return new Ready(value);
  used(value.node);
  return value.node;
}

/** The node of an operation that a method's callback returned. */
export function nodeOfResult<U>(result: DeviceOp<U>, method = 'andThen'): Node<U> {
  if (result instanceof DeviceOp) {
    used(result.node);
    return result.node;
  }
  const fix = isThenable(result)
    ? 'The callback is called while the work is being queued, and a Promise is not awaited: make ' +
      'it a synchronous function that returns a DeviceOp.'
    : 'To return a value use map(…), or wrap it in value(…).';
  if (isThenable(result)) (result as PromiseLike<unknown>).then(undefined, ignore);
  throw invalid(`${method}(callback)`, 'a callback that returns a DeviceOp', result, fix);
}

const nodeOfContext = <U>(result: DeviceOp<U>): Node<U> => nodeOfResult(result, 'withContext');

/** The node of a callback's result, which may be a value or an operation. */
const nodeOfPlain = (argument: string, result: unknown): Node<unknown> =>
  nodeOf(
    result instanceof DeviceOp
      ? (result as DeviceOp<unknown>)
      : synchronous(argument, 'a value or a DeviceOp', result),
  );

function plain<U>(method: string, result: U): U {
  if (result instanceof DeviceOp)
    throw invalid(
      `${method}(callback)`,
      'a callback that returns a value',
      result,
      'To go on with an operation use andThen(…).',
    );
  return synchronous(`${method}(callback)`, 'a value', result);
}
