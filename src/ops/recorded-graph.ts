/**
 * Graphs of operations: an operation recorded once and launched again with one driver call.
 *
 * The graph owns the memory that the operation allocates while it is recorded, and every launch
 * writes there. The callbacks are called while it is recorded, and again where a kernel had to be
 * loaded first. Each launch is ordered with other work on the memory that the graph reads or
 * writes.
 */
import { CudaDisposedError, CudaError, DeviceBuffer } from '../core/index.js';
import type { CoreDevice, Graph, Stream } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { Made } from './collect.js';
import { Later, NotLoaded } from './node.js';
import type { Node } from './node.js';
import { onOther } from './on-stream.js';
import { keepHeld } from './ownership.js';
import { poolOf } from './pools.js';
import { Run, checkNotNested } from './run.js';
import { policyOf } from './scheduling.js';
import type { Placed } from './turns.js';
import type { DeviceOp } from './device-op.js';

/** Options of {@link DeviceOp.capture} and {@link OpGraph.scope}. */
export interface OpCaptureOptions {
  /**
   * The source of the operation's memory. With `graph`, the default, it is allocated once, before
   * the first launch, and the graph owns it. With `nodes` each launch allocates it. Memory that a
   * step closes is then freed by a node, and later nodes may get it. Other memory, such as
   * {@link OpGraph.output}, is allocated from the first launch on, and until the next one.
   * {@link OpGraph.reparam} is not possible then, and bodies of conditional nodes allocate as by
   * default. cuMemAllocAsync
   */
  allocate?: 'graph' | 'nodes';
}

/** A recorded operation in terms of nodes; {@link OpGraph} is its public form. */
export class RecordedGraph<T> {
  readonly output: T;
  readonly stream: Stream;
  readonly graph: Graph;
  private readonly owned: Disposable[];
  /** The memory that a launch uses, which orders it with waiting runs. */
  private readonly uses: Use[];
  private closed = false;

  private constructor(stream: Stream, graph: Graph, output: T, owned: Disposable[], uses: Use[]) {
    this.stream = stream;
    this.graph = graph;
    this.output = output;
    this.owned = owned;
    this.uses = uses;
  }

  /** Records one operation. */
  static capture<T>(
    node: Node<T>,
    stream: Stream,
    options: OpCaptureOptions = {},
  ): Promise<RecordedGraph<T>> {
    return RecordedGraph.record(stream, options, (run) => recorded(run, node, 0));
  }

  /** Records the nodes that `submit` submits to the run, in order. */
  static async record<T>(
    stream: Stream,
    options: OpCaptureOptions,
    submit: (run: Run) => T,
  ): Promise<RecordedGraph<T>> {
    checkOptions('options', options, ['allocate']);
    const { allocate = 'graph' } = options;
    if (allocate !== 'graph' && allocate !== 'nodes')
      throw invalid('options.allocate', "'graph' or 'nodes'", allocate);
    for (;;) {
      try {
        return await RecordedGraph.recordOnce(stream, allocate === 'nodes', submit);
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
  ): Promise<RecordedGraph<T>> {
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
      // A stream of the policy that is not part of the capture may be used by other code meanwhile;
      // memory is allocated apart from the captured stream.
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
    return new RecordedGraph(stream, graph, output!, run.owned, uses!);
  }

  get device(): CoreDevice {
    return this.stream.device;
  }

  /** Launches the graph; the value is {@link output}. */
  launch(): Node<T> {
    return new Made<T>(
      this.device,
      'graph.replay()',
      (run) => {
        this.check();
        run.checkNotRecording('graph.replay()', 'record the operation itself');
        this.graph.launch(run.stream);
        return this.output;
      },
      this.uses,
    );
  }

  /** Runs the node on the graph's own stream. */
  update<U>(node: Node<U>): Node<U> {
    return new Made<U>(this.device, 'graph.update(…)', (run) => {
      this.check();
      return onOther(run, this.stream, () => node.submit(run));
    });
  }

  /** Records another operation of the same shape, and takes over its parameters. */
  async reparam(node: Node<unknown>): Promise<void> {
    const other = await RecordedGraph.capture(node, this.stream);
    try {
      this.checkWritten(other.uses);
      await this.graph.update(other.graph);
      this.uses.splice(0, this.uses.length, ...other.uses);
      // Its memory is part of this graph from now on. Of the memory before, only the output is
      // still used.
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

  /** Frees the graph and the memory that was allocated for it, after its launches. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.graph.close();
    close(this.owned);
  }

  get isClosed(): boolean {
    return this.closed;
  }

  /** @throws CudaDisposedError once it is closed */
  check(): void {
    if (this.closed)
      throw new CudaDisposedError('graph: used after it was closed. Capture the operation again.');
  }

  /**
   * @throws CudaError unless work with these uses writes the memory of this graph's that its value
   *   holds
   */
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
        'the value of each launch. Capture an operation that writes to a tensor of yours, ' +
        'out.copyFrom(op), and pass one that writes there too; or capture op as another graph.',
    );
  }
}

/** Memory that a graph uses. */
interface Use extends Placed {
  readonly isWritten: boolean;
}

/**
 * Records the work of the node, after what was recorded before. `mark` is the beginning of its
 * step.
 */
export function recorded<T>(run: Run, node: Node<T>, mark = run.mark): T {
  const value = run.endStep(node.submit(run), mark);
  if (value instanceof Later)
    throw new CudaError(
      'ERR_CUDA_CAPTURE',
      'a value of the host cannot be recorded in a graph: read it after graph.replay().',
    );
  return value;
}

function close(owned: readonly Disposable[]): void {
  for (const each of owned) {
    if (each instanceof DeviceBuffer) each.closeMemory();
    else each[Symbol.dispose]();
  }
}

/** The argument of the function of {@link OpGraph.scope}. */
export interface GraphScope {
  readonly device: CoreDevice;
  /** The stream that is recorded. */
  readonly stream: Stream;
  /** Records an operation, after those before it; returns its value. */
  record<T>(op: DeviceOp<T>): T;
}
