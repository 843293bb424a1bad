/**
 * Graphs of operations: an operation recorded once and launched again with one driver call.
 *
 * What the operation allocates while it is recorded is the graph's own and stays where it is: the
 * launches write there. Its callbacks are called while it is recorded, and again where a kernel had
 * to be loaded first. Each launch is ordered with other work on the memory that the graph reads or
 * writes.
 */
import { CudaDisposedError, CudaError, DeviceBuffer, Stream } from '../core/index.js';
import type { Device, Graph, GraphNodeType } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { Made } from './collect.js';
import { DeviceOp, nodeOf } from './device-op.js';
import { Later, NotLoaded } from './node.js';
import type { Node } from './node.js';
import { onOther } from './on-stream.js';
import { keepHeld } from './ownership.js';
import { poolOf } from './pools.js';
import { Run, checkNotNested } from './run.js';
import { policyOf } from './scheduling.js';
import type { Placed } from './turns.js';

/** What {@link OpGraph.scope} passes to its function. */
export interface GraphScope {
  readonly device: Device;
  /** The stream that is recorded. */
  readonly stream: Stream;
  /** Records an operation, behind those before it; returns what it gives. */
  record<T>(op: DeviceOp<T>): T;
}

/** What {@link DeviceOp.capture} and {@link OpGraph.scope} take. */
export interface OpCaptureOptions {
  /**
   * Where the operation's memory comes from. `graph`, the default: it is allocated once, before the
   * first launch, and the graph owns it. `nodes`: each launch allocates it, and what a step closes
   * on the way is freed by a node, whose memory later nodes get; what is left,
   * {@link OpGraph.output} for one, is there from the first launch on, and until the next one.
   * {@link OpGraph.reparam} is not possible then, and bodies of conditional nodes allocate as by
   * default. cuMemAllocAsync
   */
  allocate?: 'graph' | 'nodes';
}

/** A recorded operation. Made by {@link DeviceOp.capture} and {@link OpGraph.scope}. */
export class OpGraph<T> implements AsyncDisposable {
  /**
   * What the operation gives: memory that each launch writes. Nothing has been computed before the
   * first launch.
   */
  readonly output: T;
  /** The stream that it was recorded on, and that {@link update} queues on. */
  readonly stream: Stream;
  private readonly graph: Graph;
  private readonly owned: Disposable[];
  /** What a launch uses: it takes its turn on that. */
  private readonly uses: Use[];
  private closed = false;

  private constructor(stream: Stream, graph: Graph, output: T, owned: Disposable[], uses: Use[]) {
    this.stream = stream;
    this.graph = graph;
    this.output = output;
    this.owned = owned;
    this.uses = uses;
  }

  /** @internal */
  static capture<T>(
    node: Node<T>,
    stream: Stream,
    options: OpCaptureOptions = {},
  ): Promise<OpGraph<T>> {
    return OpGraph.record(stream, options, (run) => known<T>(run.endStep(node.submit(run), 0)));
  }

  /**
   * Records what `body` passes to `scope.record`, in order, on the stream. `body` is synchronous.
   * Rejects with what it threw; the stream is then as usable as before.
   */
  static scope<T>(
    stream: Stream,
    body: (scope: GraphScope) => T,
    options: OpCaptureOptions = {},
  ): Promise<OpGraph<T>> {
    if (!(stream instanceof Stream)) return Promise.reject(invalid('stream', 'a Stream', stream));
    if (typeof body !== 'function')
      return Promise.reject(invalid('body', 'a function that records operations', body));
    return OpGraph.record(stream, options, (run) =>
      body({
        device: run.device,
        stream,
        record: <U>(op: DeviceOp<U>): U => {
          if (!(op instanceof DeviceOp)) throw invalid('op', 'a DeviceOp', op);
          const { mark } = run;
          return known<U>(run.endStep(nodeOf(op).submit(run), mark));
        },
      }),
    );
  }

  private static async record<T>(
    stream: Stream,
    options: OpCaptureOptions,
    submit: (run: Run) => T,
  ): Promise<OpGraph<T>> {
    checkOptions('options', options, ['allocate']);
    const { allocate = 'graph' } = options;
    if (allocate !== 'graph' && allocate !== 'nodes')
      throw invalid('options.allocate', "'graph' or 'nodes'", allocate);
    for (;;) {
      try {
        return await OpGraph.recordOnce(stream, allocate === 'nodes', submit);
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw error;
        await error.ready;
      }
    }
  }

  private static async recordOnce<T>(
    stream: Stream,
    nodes: boolean,
    submit: (run: Run) => T,
  ): Promise<OpGraph<T>> {
    checkNotNested('capture()');
    stream.check();
    const run = new Run(
      stream.device,
      stream,
      policyOf(stream.device),
      'record',
      poolOf(stream.device),
      nodes,
    );
    let output: T;
    let graph: Graph;
    let uses: Use[];
    try {
      // A stream of the policy's that is not part of it may be used by others meanwhile; memory is
      // allocated beside it.
      graph = await stream.capture(
        () => {
          output = run.resume(() => submit(run));
          const scope = stream.captureScope!;
          uses = Array.from(scope.uses.keys(), (memory) => ({
            memory,
            isWritten: scope.writes(memory),
          }));
        },
        nodes ? { allocate: 'nodes' } : {},
      );
      await run.prepared();
    } catch (error) {
      close(run.owned);
      throw error;
    }
    return new OpGraph(stream, graph, output!, run.owned, uses!);
  }

  get device(): Device {
    return this.stream.device;
  }

  /**
   * An operation that launches the graph and gives {@link output}. It runs on whichever stream it
   * is run on; launches of one graph are in order. cuGraphLaunch
   */
  launch(): DeviceOp<T> {
    return new DeviceOp(
      new Made<T>(
        this.device,
        'graph.launch()',
        (run) => {
          this.check();
          run.checkNotRecording('graph.launch()', 'record the operation itself');
          this.graph.launch(run.stream);
          return this.output;
        },
        this.uses,
      ),
    );
  }

  /** The operation, on the graph's own stream: to write new inputs before the next launch. */
  update<U>(op: DeviceOp<U>): DeviceOp<U> {
    if (!(op instanceof DeviceOp)) throw invalid('op', 'a DeviceOp', op);
    const node = nodeOf(op);
    return new DeviceOp(
      new Made<U>(this.device, 'graph.update(…)', (run) => {
        this.check();
        return onOther(run, this.stream, () => node.submit(run));
      }),
    );
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
    this.check();
    if (!(op instanceof DeviceOp)) throw invalid('op', 'a DeviceOp', op);
    const other = await OpGraph.capture(nodeOf(op), this.stream);
    try {
      this.checkWritten(other.uses);
      await this.graph.update(other.graph);
      this.uses.splice(0, this.uses.length, ...other.uses);
      // Its memory is part of this graph from now on; of the memory before, only the output is used
      // any more.
      const before = this.owned.splice(0, this.owned.length, ...other.owned.splice(0));
      const kept = before.filter((each): each is DeviceBuffer => each instanceof DeviceBuffer);
      keepHeld(kept, this.output);
      for (const each of before) {
        if (each instanceof DeviceBuffer && !kept.includes(each as DeviceBuffer))
          each.closeMemory();
        else this.owned.push(each);
      }
    } finally {
      await other.close();
    }
  }

  /** Number of nodes. cuGraphGetNodes */
  nodeCount(): Promise<number> {
    return this.graph.nodeCount();
  }

  /** Kinds of the nodes. cuGraphNodeGetType */
  nodeTypes(): Promise<GraphNodeType[]> {
    return this.graph.nodeTypes();
  }

  /** The graph in Graphviz's language. cuGraphDebugDotPrint */
  dot(options: { verbose?: boolean } = {}): Promise<string> {
    return this.graph.dot(options);
  }

  /**
   * Frees the graph and the memory that was allocated for it, {@link output} with it, behind its
   * launches. cuGraphExecDestroy
   */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.graph.close();
    close(this.owned);
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return (
      `OpGraph of ${this.stream.title} on ` +
      `${this.device.kind}:${this.device.ordinal}${this.closed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @throws CudaError unless memory of this graph's that it gives is written by what uses these */
  private checkWritten(uses: readonly Use[]): void {
    const outputs = this.owned.filter((each): each is DeviceBuffer => each instanceof DeviceBuffer);
    keepHeld(outputs, this.output);
    if (
      outputs.every((output) =>
        uses.some(({ memory, isWritten }) => isWritten && memory === output.memory),
      )
    )
      return;
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      'graph.reparam: op makes a result of its own, and does not write to graph.output, ' +
        'which launches give. Capture an operation that writes to a tensor of yours, ' +
        'out.copyFrom(op), and pass one that writes there too; or capture op as another graph.',
    );
  }

  private check(): void {
    if (this.closed)
      throw new CudaDisposedError('graph: used after it was closed. Capture the operation again.');
  }
}

/** Memory that a graph uses. */
interface Use extends Placed {
  readonly isWritten: boolean;
}

function known<T>(value: T | Later<T>): T {
  if (value instanceof Later)
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      'a value of the host cannot be recorded in a graph: read it after graph.launch().',
    );
  return value;
}

function close(owned: readonly Disposable[]): void {
  for (const each of owned) {
    if (each instanceof DeviceBuffer) each.closeMemory();
    else each[Symbol.dispose]();
  }
}
