/**
 * DeviceOp: device work as a value. Making one queues nothing; it runs when it is awaited, and
 * again whenever it is awaited again.
 *
 * What is chained, zipped or collected runs on one stream in the order in which it is written, with
 * no event and no look at the host in between; callbacks are called while it is queued, with values
 * that stand for memory the device has yet to write. Only what has to be known on the host ends
 * such a segment: what `read()` gives, and what `orElse` and `ensure` look at.
 */
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

/** Operations to choose from. */
const MOST_CHOICES = 128;

/**
 * Device work as a value: a description of it, which runs when it is awaited, and again each time
 * that it is awaited. Making one queues nothing. Operations are made by the functions of a device,
 * `kernel`, the library and the methods of this class.
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
  /** The node, as a part of another operation. */
  private get part(): Node<T> {
    used(this.node);
    return this.node;
  }

  /** Times that it has been run by itself. */
  private runs = 0;

  /** @internal */
  constructor(node: Node<T>) {
    this.node = node;
    watchUnused(this);
  }

  /**
   * The device that it will run on unless told otherwise; undefined where it belongs to none, such
   * as `value(1)`.
   */
  get device(): CoreDevice | undefined {
    return this.node.device;
  }

  // Composition

  /**
   * Then the operation that the callback makes of the value, behind it on the same stream. The
   * callback is called while the whole is being queued: the value's memory is written by then as
   * far as the device is concerned, not as far as the host is. It is called again by every run.
   *
   * The value is valid in the callback and in the operation that it returns. Memory that the run
   * has allocated and that the operation does not give on is closed in stream order once the
   * operation has been queued; where it has to wait, after that. A value gives on the tensors,
   * buffers and partitions that it holds itself, or in arrays, plain objects, Maps and Sets.
   *
   * @example
   * ```ts
   * const total = await device.ones(f32, [1000]).andThen((x) => mul(x, 2)).andThen((y) => sum(y)).andThen((s) => s.item());
   * ```
   * @throws when run: CudaArgumentError where the callback returns no DeviceOp
   */
  andThen<U>(callback: (value: T) => DeviceOp<U>): DeviceOp<U> {
    checkCallback('andThen', callback);
    return new DeviceOp(new AndThen(this.part, callback, nodeOfResult));
  }

  /**
   * Another value made of this one on the host, while the work is being queued: it must not need
   * what the device will write.
   */
  map<U>(callback: (value: T) => Plain<U>): DeviceOp<U> {
    checkCallback('map', callback);
    return new DeviceOp(
      new Mapped<T, U>(this.part, (value) => plain('map', callback(value)) as U, 'map'),
    );
  }

  /** Looks at the value while the work is being queued, and passes it on. */
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
   * As {@link andThen}; the callback is given the stream as well, and may queue work of level 3 on
   * it.
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

  /** The first of the values of an operation that gives several. */
  first<A>(this: DeviceOp<readonly [A, ...unknown[]]>): DeviceOp<A> {
    return new DeviceOp(
      new Mapped<readonly [A, ...unknown[]], A>(
        this.part,
        (values) => valueAt(values, 0, 'first') as A,
        'first',
      ),
    );
  }

  /** The last of the values of an operation that gives several. */
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
   * One operation for each of so many values, in order. What gives them runs once, whichever of the
   * operations runs first: they share it as by {@link shared}. Each part is given once: its memory
   * belongs to the first run that takes it.
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
    // How many there are is known to the type checker only: as many as are taken.
    return parts(part) as never;
  }

  /**
   * An operation that runs once: the first run, of whichever operation it is part of, is that one
   * run, and every other gets the same value, or fails with the same error. Other streams wait for
   * it on the device.
   *
   * Its memory is outside of every run, which does not close it: {@link SharedOp.close} does, or
   * the garbage collector, without a warning, once neither the operation nor its tensors can be
   * reached.
   */
  shared(): SharedOp<T> {
    return this instanceof SharedOp ? (this as SharedOp<T>) : new SharedOp(new Shared(this.part));
  }

  /**
   * Where this fails, what the callback makes of the error takes its place: an operation, or a
   * value. To know whether it fails the host waits for the device at this point; then the rest goes
   * on, on the same stream. This is an operation to itself: what stands before it in the same run,
   * or beside it in `parallel`, does not fail with it, and it is carried out whether that fails or
   * not. The callback is not called where what stands before it has failed.
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
   * When this is over, whether it failed or not, runs what the callback makes, on the same stream;
   * then gives the value or fails as it did. As in {@link orElse} the host waits for the device at
   * this point. An error of the callback's own operation takes the place of the first one, which
   * becomes its cause.
   */
  ensure(callback: () => DeviceOp<unknown> | undefined | void): DeviceOp<T> {
    checkCallback('ensure', callback);
    return new DeviceOp(
      new Ensured<T>(this.part, callback, (result) => nodeOfPlain('ensure(callback)', result)),
    );
  }

  /**
   * Where the element that `condition` gives is not zero, runs what `then` makes of the value, else
   * what `otherwise` makes; gives the value itself on. In a graph this is a conditional node,
   * decided on the device at each launch (cuGraphAddNode); elsewhere the host reads the element,
   * and waits for the device at this point.
   *
   * What the callbacks' operations make is closed behind them: they work on the memory of the
   * value. Each callback is called where its operation is queued, in a graph while it is recorded.
   *
   * @param condition gives a tensor of one element, of whole numbers or bool, or an operation that
   *   gives one
   * @throws when run: CudaArgumentError for another condition; when captured: CudaError with code
   *   ERR_CUDA_UNSUPPORTED, and a message that names the version, where the driver has no
   *   conditional nodes (before CUDA 12.4)
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
   * Runs what `body` makes of the value again and again while the element that `condition` gives is
   * not zero; gives the value itself on. As {@link when}: a while node in a graph, where the host
   * has no part in it; elsewhere the host reads the element before each turn.
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
   * Runs what one of the `choices` makes of the value: the one whose number the element that
   * `index` gives is; none where there is no such. Gives the value itself on. As {@link when}: a
   * switch node in a graph.
   *
   * @param choices at most 128
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

  /** Names it, for errors and traces. */
  label(label: string): DeviceOp<T> {
    checkString('label', label);
    return new DeviceOp(new Labelled(this.part, label));
  }

  // Running

  /**
   * Runs it: queues all of it now, on the stream that the device's policy gives, and resolves when
   * the device is done. This is what `await` calls.
   */
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    // A Running would be one object more for the garbage collector: nobody else will ask for the
    // end.
    let run: Run;
    let value: Submitted<T>;
    try {
      run = this.newRun(undefined, 'queue');
      value = run.submit(this.node);
      if (value instanceof Later) run.underway(value);
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
      return Promise.reject<T>(error).then(onFulfilled, onRejected);
    }
    return run.whenEnded(value, onFulfilled, onRejected);
  }

  /** As {@link then}, for the failure only. */
  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.started().catch(onRejected);
  }

  /** As {@link then}, for the end either way. */
  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.started().finally(onFinally);
  }

  /**
   * Runs it, as awaiting does, with options.
   *
   * @throws the signal's reason: where it has aborted already nothing is queued; where it aborts
   *   later the wait ends, what has been queued goes on, later steps are not begun, and what was
   *   made is closed behind it
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
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown, which may be the signal's reason
      return Promise.reject(error);
    }
  }

  /**
   * Chooses the stream now, and runs it there when that is awaited, once.
   *
   * @param policy default: the device's own
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

  /**
   * Queues it on the stream now; what it returns is awaited for the end, and has the value before
   * that.
   */
  runOn(stream: Stream): Running<T> {
    checkStream(stream);
    return this.beginOn(stream, 'queue');
  }

  /**
   * Runs it and blocks this thread until the device is done: nothing else happens in the program
   * meanwhile. For scripts and tests; a server awaits.
   */
  sync(): T {
    return this.begin(undefined, 'block').result();
  }

  /** As {@link sync}, on a stream of the caller's choice. */
  syncOn(stream: Stream): T {
    checkStream(stream);
    return this.beginOn(stream, 'block').result();
  }

  /**
   * Records it as a graph, which can be launched again and again with one driver call. The
   * operation must need no value of the host on its way. Its memory is allocated now, and is the
   * graph's. cuStreamBeginCapture, cuStreamEndCapture, cuGraphInstantiate
   *
   * @param stream to record on. Default: the next of the device's policy
   * @param options `{ allocate: 'nodes' }`: each launch allocates what the operation allocates,
   *   instead of the graph owning it Rejects with code ERR_CUDA_CAPTURE, and a message that names
   *   the call, where something cannot be recorded
   */
  async capture(stream?: Stream, options?: OpCaptureOptions): Promise<OpGraph<T>> {
    if (stream !== undefined) checkStream(stream);
    const on = stream ?? nextOf(this.policyFor(undefined));
    return new OpGraph(await RecordedGraph.capture(this.part, on, options));
  }

  /**
   * The same operation on a stream of its own choice, wherever it is used. What is around it waits
   * for it on the device, and it for that.
   */
  on(stream: Stream): DeviceOp<T> {
    checkStream(stream);
    return new DeviceOp(new OnStream(this.part, stream));
  }

  /** A run and its end. */
  private started(): Promise<T> {
    try {
      return this.begin(undefined, 'queue').finished();
    } catch (error) {
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as it was thrown
      return Promise.reject(error);
    }
  }

  /** What chooses its stream. */
  private policyFor(policy: SchedulingPolicy | undefined): SchedulingPolicy {
    checkNotNested('An operation was run');
    return chosenPolicy(policy, this.node.device);
  }

  /** `forks`: where branches that run in parallel take their streams from. */
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

  /** Kind, what it is made of, device, and how often it ran by itself. */
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
   * Closes the memory that its run has made, behind what uses it. Later runs of the operation are
   * refused.
   */
  close(): void {
    used(this.node);
    (this.node as Shared<T>).close();
  }

  /** {@link close}, for `using`. */
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
   * Records what `body` passes to `scope.record`, in order, on the stream. `body` is synchronous.
   * Rejects with what it threw; the stream is then as usable as before.
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
   * What the operation gives: memory that each launch writes. Nothing has been computed before the
   * first launch.
   */
  get output(): T {
    return this.recorded.output;
  }

  /** The stream that it was recorded on, and that {@link update} queues on. */
  get stream(): Stream {
    return this.recorded.stream;
  }

  get device(): CoreDevice {
    return this.stream.device;
  }

  /**
   * An operation that launches the graph and gives {@link output}. It runs on whichever stream it
   * is run on; launches of one graph are in order. cuGraphLaunch
   */
  replay(): DeviceOp<T> {
    return new DeviceOp(this.recorded.launch());
  }

  /** The operation, on the graph's own stream: to write new inputs before the next launch. */
  update<U>(op: DeviceOp<U>): DeviceOp<U> {
    return new DeviceOp(this.recorded.update(nodeOfOp(op)));
  }

  /**
   * Records another operation of the same shape and takes over its parameters: sizes of launches,
   * scalars, memory. What the graph gives stays {@link output}, so `op` has to write there: of an
   * operation that makes its result capture one that writes it to memory of yours,
   * `out.copyFrom(op)`. cuGraphExecUpdate
   *
   * Rejects with code ERR_CUDA_CAPTURE where the two differ in more than parameters, and where the
   * output is the graph's own memory, which `op` does not write; the graph is then as it was.
   */
  async reparam(op: DeviceOp<unknown>): Promise<void> {
    this.recorded.check();
    await this.recorded.reparam(nodeOfOp(op));
  }

  /** Number of nodes. cuGraphGetNodes */
  nodeCount(): Promise<number> {
    return this.recorded.graph.nodeCount();
  }

  /** Kinds of the nodes. cuGraphNodeGetType */
  nodeTypes(): Promise<GraphNodeType[]> {
    return this.recorded.graph.nodeTypes();
  }

  /** The graph in Graphviz's language. cuGraphDebugDotPrint */
  dot(options: { verbose?: boolean } = {}): Promise<string> {
    return this.recorded.graph.dot(options);
  }

  /**
   * Frees the graph and the memory that was allocated for it, {@link output} with it, behind its
   * launches. cuGraphExecDestroy
   */
  close(): Promise<void> {
    return this.recorded.close();
  }

  /** {@link close}, for `await using`. */
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

/** The node of what a callback of a method returned. */
export function nodeOfResult<U>(result: DeviceOp<U>, method = 'andThen'): Node<U> {
  if (result instanceof DeviceOp) {
    used(result.node);
    return result.node;
  }
  const fix = isThenable(result)
    ? 'The callback is called while the work is being queued, and nothing is waited for: make ' +
      'it a synchronous function that returns a DeviceOp.'
    : 'To return a value use map(…), or wrap it in value(…).';
  if (isThenable(result)) (result as PromiseLike<unknown>).then(undefined, ignore);
  throw invalid(`${method}(callback)`, 'a callback that returns a DeviceOp', result, fix);
}

const nodeOfContext = <U>(result: DeviceOp<U>): Node<U> => nodeOfResult(result, 'withContext');

/** The node of what a callback returned that may give a value or an operation. */
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
