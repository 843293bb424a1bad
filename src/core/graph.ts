/**
 * CUDA graphs: work recorded once and launched again with one driver call.
 *
 * Device addresses are part of a graph. Each launch counts as a use of every buffer in it: it
 * waits, on the device, for the work on other streams that it conflicts with, and later work waits
 * for it.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ACCESS_SHIFT, OP } from '../runtime/commands.js';
import { CudaDisposedError, CudaError } from '../ground/errors.js';
import { HANDLE, ISSUED_CAPTURING, ISSUED_STRIDE, WORD } from '../runtime/layout.js';
import { MAX_RECORD_WORDS } from '../runtime/ring-writer.js';
import type { Runtime } from '../runtime/runtime.js';
import { checkBoolean, checkOptions, invalid, isThenable } from '../ground/arguments.js';
import { CaptureScope } from './capture.js';
import type { GraphPart } from './capture.js';
import { publishGraph } from './channels.js';
import type { CoreDevice } from './device.js';
import { beginGraphLaunch } from './graph-launch.js';
import type { NodeMemory } from './node-memory.js';
import { Pending } from './pending.js';
import type { Resource } from './resource.js';
import { printed } from './print-watch.js';
import type { Stream } from './stream.js';
import { destroyEvent } from './driver-events.js';

/** A launch names every buffer in one record. */
const MAX_BUFFERS = MAX_RECORD_WORDS - 6;

/** CUgraphNodeType */
const NODE_TYPES = [
  'kernel',
  'memcpy',
  'memset',
  'host',
  'graph',
  'empty',
  'waitEvent',
  'eventRecord',
  'semaphoreSignal',
  'semaphoreWait',
  'memAlloc',
  'memFree',
  'batchMemOp',
  'conditional',
] as const;

/** CUgraphNodeType; `unknown` for types that a later CUDA has added. */
export type GraphNodeType = (typeof NODE_TYPES)[number] | 'unknown';

/** Options of {@link Stream.capture}. */
export interface CaptureOptions {
  /**
   * Decides about work that the function queues on a stream that has not joined the capture:
   * `refuse` (default) throws at the call, `run` runs it at once, apart from the capture.
   */
  unjoined?: 'refuse' | 'run';
  /**
   * Decides about {@link CoreDevice.alloc} on a stream of the capture: `refuse` (default) throws at
   * the call; with `nodes` each launch allocates the memory, by a node. A buffer that is closed
   * within the function is freed by a node. Other buffers are allocated by the first launch, and
   * freed by the next launch or at the graph's end. {@link Graph.update} is not possible then.
   * cuMemAllocAsync, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
   */
  allocate?: 'refuse' | 'nodes';
}

/** CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH */
const AUTO_FREE_ON_LAUNCH = 1;

/**
 * Memory that a graph uses, with the access. ACCESS_WHOLE where the graph begins by writing all of
 * it.
 */
interface GraphUse {
  readonly resource: Resource;
  readonly access: number;
}

/**
 * A recorded piece of work. Made by {@link Stream.capture}.
 *
 * @example
 * ```ts
 * using stream = device.createStream();
 * using x = device.alloc(i32, 2, { stream });
 * await using graph = await stream.capture(() => {
 *   x.fill(stream, 3);
 * });
 * await graph.launch(stream);
 * console.log(await x.read(stream)); // Int32Array(2) [ 3, 3 ]
 * ```
 */
export class Graph<T = unknown> implements AsyncDisposable {
  readonly device: CoreDevice;
  /** The result of the captured function. */
  readonly output: T;
  private readonly runtime: Runtime;
  private uses: readonly GraphUse[];
  /** Modules, textures and surfaces. */
  private parts: readonly GraphPart[];
  private readonly events: number[];
  private readonly nodeMemory: readonly NodeMemory[];
  /** Whether the graph has nodes that allocate. */
  private readonly allocates: boolean;
  private graph: number;
  private readonly exec: number;
  private readonly short: boolean;
  /** Whether one of its kernels prints. */
  private prints: boolean;
  private closed = false;
  private updating = false;
  private lastUse: { stream: Stream; mark: number } | undefined = undefined;

  private constructor(
    device: CoreDevice,
    output: T,
    scope: CaptureScope,
    graph: number,
    { exec, short }: { exec: number; short: boolean },
  ) {
    this.device = device;
    this.runtime = device.runtime;
    this.output = output;
    this.uses = [...scope.uses].map(([resource, access]) => ({ resource, access }));
    this.parts = [...scope.parts];
    for (const { resource } of this.uses) resource.keepForGraph();
    this.events = scope.events;
    this.allocates = scope.allocates;
    this.nodeMemory = [...scope.nodeMemory];
    this.prints = scope.prints;
    this.graph = graph;
    this.short = short;
    this.exec = this.runtime.handles.adopt(exec);
    device.objects.own(this);
  }

  /** @internal */
  static async capture<T>(
    stream: Stream,
    body: (stream: Stream) => T,
    options: CaptureOptions,
  ): Promise<Graph<T>> {
    const { runtime, device } = stream;
    if (typeof body !== 'function')
      throw invalid('body', 'a function that queues work on the stream', body);
    checkOptions('options', options, ['unjoined', 'allocate']);
    const { unjoined = 'refuse', allocate = 'refuse' } = options;
    if (unjoined !== 'refuse' && unjoined !== 'run')
      throw invalid('options.unjoined', "'refuse' or 'run'", unjoined);
    if (allocate !== 'refuse' && allocate !== 'nodes')
      throw invalid('options.allocate', "'refuse' or 'nodes'", allocate);
    if (allocate === 'nodes' && !runtime.info.pools) {
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        `capture: nodes that allocate need stream-ordered memory pools, which ${device.name} ` +
          'does not have. Allocate before the capture.',
      );
    }
    if (stream.captureScope !== undefined)
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'the stream is being captured already: captures do not nest',
      );
    const begun = performance.now();
    const root = captureRoot(runtime);
    runtime.name(root, 'capture');
    runtime.expect(root);
    const scope = new CaptureScope(stream, root, unjoined === 'refuse', allocate === 'nodes');
    const handle = runtime.handles.take();
    let output: T;
    let thrown: { error: unknown } | undefined;
    try {
      stream.begin(OP.captureBegin, 4, root);
      stream.commit();
      output = body(stream);
      if (isThenable(output) && !(output instanceof Pending)) {
        (output as unknown as Promise<unknown>).then(undefined, () => undefined);
        throw invalid(
          'body',
          'a function that returns without waiting',
          output,
          'Remove async and await: captured work is only recorded.',
        );
      }
    } catch (error) {
      thrown = { error };
    }
    try {
      scope.end();
      if (scope.uses.size > MAX_BUFFERS) {
        throw new CudaError(
          'ERR_CUDA_CAPTURE',
          `capture: the graph uses ${scope.uses.size} buffers; at most ${MAX_BUFFERS} are ` +
            'possible. Make several graphs.',
        );
      }
    } catch (error) {
      thrown ??= { error };
    }
    const end = stream.begin(OP.captureEnd, 6, root);
    runtime.ring.memory[end] = handle;
    runtime.ring.memory[end + 1] = scope.number;
    stream.commit();
    scope.release();
    for (const condition of scope.conditions) {
      const release = stream.begin(OP.conditionForget, 5, 0);
      runtime.ring.memory[release] = condition;
      stream.commit();
      runtime.handles.give(condition);
    }
    // The caller may have closed the memory by now. It is not freed before the graph keeps it.
    const kept = [...scope.uses.keys()];
    for (const resource of kept) resource.keepForGraph();
    try {
      return await Graph.finish(device, scope, handle, output!, thrown, begun);
    } finally {
      for (const resource of kept) resource.releaseFromGraph();
      scope.settle();
    }
  }

  /** Waits for the captured graph and makes it executable. */
  private static async finish<T>(
    device: CoreDevice,
    scope: CaptureScope,
    handle: number,
    output: T,
    thrown: { error: unknown } | undefined,
    begun: number,
  ): Promise<Graph<T>> {
    const { runtime } = device;
    const { status, values } = runtime.shared;
    await runtime.completion.until(() => Atomics.load(status, handle) !== HANDLE.pending);
    const failed = Atomics.load(status, handle) === HANDLE.failed;
    const graph = values[handle]!;
    runtime.handles.drop(handle);
    const failure = runtime.failureOf(scope.root);
    // A command that the driver refused is missing from the graph. The driver may still make the
    // graph executable.
    if (thrown !== undefined || failed || failure !== undefined) {
      for (const event of scope.events) destroyEvent(runtime, event);
      for (const memory of scope.nodeMemory) memory.release();
      if (!failed) await runtime.call('destroyGraph', graph, 0);
      if (thrown !== undefined) throw thrown.error;
      throw failure ?? new CudaError('ERR_CUDA_CAPTURE', 'the capture was invalidated');
    }
    publishGraph(scope.origin, 'capture', begun);
    const captured = performance.now();
    const exec = await runtime.call(
      'instantiate',
      graph,
      scope.allocates ? AUTO_FREE_ON_LAUNCH : 0,
    );
    publishGraph(scope.origin, 'instantiate', captured);
    return new Graph<T>(device, output, scope, graph, exec);
  }

  /**
   * Queues the graph on a stream of the same device. A launch waits for the launch before it.
   * cuGraphLaunch
   *
   * @throws CudaDisposedError where a buffer, module, texture or surface of the graph has been
   *   closed. Rejects with ERR_CUDA_UNDEFINED_CONTENTS where an earlier failure left a buffer
   *   undefined that the graph does not begin by writing whole. Where the launch fails, the memory
   *   that the graph writes is undefined
   */
  launch(stream: Stream): Pending {
    this.check();
    this.device.checkStream('stream', stream);
    // A GPU's driver returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
    stream.checkNotCaptured(
      'launching a graph',
      'capture the work that it consists of, or launch one graph after the other',
    );
    if (this.updating)
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'graph: an update of it is under way. Await graph.update() first.',
      );
    const { uses, parts, nodeMemory } = this;
    for (const part of parts) if (part.isClosed) throw disposed(part.toString());
    if (nodeMemory.length !== 0) {
      if (uses.some(({ resource }) => resource.disposed)) throw disposed();
      for (const memory of nodeMemory) memory.launched();
    }
    for (const { resource, access } of uses) {
      if (resource.disposed) throw disposed();
      stream.order(resource, access);
    }
    if (this.lastUse !== undefined && this.lastUse.stream !== stream)
      stream.waitFor(this.lastUse.stream, this.lastUse.mark);
    const root = stream.nextRoot();
    let at = beginGraphLaunch(stream, root, this.exec, this.short, uses.length);
    const { memory } = this.runtime.ring;
    for (const { resource, access } of uses)
      memory[at++] = resource.handle | (access << ACCESS_SHIFT);
    const mark = stream.commitGraph();
    for (const { resource, access } of uses) stream.used(resource, access, mark);
    for (const part of parts) part.launched?.(stream, mark);
    this.lastUse = { stream, mark };
    if (this.prints) printed(stream);
    return new Pending(stream, root, mark);
  }

  /**
   * Copies the parameters of another graph of the same shape. They hold for launches after it
   * resolves. Waits until the earlier launches have been passed to the driver; until it resolves,
   * {@link launch} is refused. cuGraphExecUpdate
   *
   * @throws CudaError where the two differ in more than parameters; this graph is then unchanged
   */
  async update(other: Graph): Promise<void> {
    this.check();
    if (!(other instanceof Graph) || other.runtime !== this.runtime)
      throw invalid('other', `a graph of ${this.device.title}`, other);
    other.check();
    if (this.allocates || other.allocates) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'graph.update: graphs that allocate by nodes cannot be updated (cuGraphExecUpdate); ' +
          "use the other one itself, or capture both without { allocate: 'nodes' }",
        { operation: 'cuGraphExecUpdate' },
      );
    }
    this.updating = true;
    try {
      await this.issued();
      await this.replaceParameters(other);
    } finally {
      this.updating = false;
    }
  }

  /**
   * Resolves when every launch so far has been passed to the driver. The update would change
   * launches that a held stream has not passed yet.
   */
  private async issued(): Promise<void> {
    const { lastUse, runtime } = this;
    if (lastUse === undefined) return;
    lastUse.stream.passed(lastUse.mark).catch(() => undefined);
    const { control } = runtime.shared;
    await runtime.completion.until(
      () =>
        lastUse.stream.hasPassed(lastUse.mark) ||
        (runtime.ring.drained && Atomics.load(control, WORD.parked) === 0),
    );
  }

  private async replaceParameters(other: Graph): Promise<void> {
    const exec = this.runtime.shared.values[this.exec]!;
    const { result } = await this.runtime.call('updateGraph', exec, other.graph);
    if (result !== 0) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        'graph.update: the other graph differs in more than parameters (CU_GRAPH_EXEC_UPDATE ' +
          `result ${result}); use it itself`,
        { operation: 'cuGraphExecUpdate' },
      );
    }
    const before = this.uses;
    this.uses = other.uses;
    this.parts = other.parts;
    this.prints = other.prints;
    for (const { resource } of this.uses) resource.keepForGraph();
    for (const { resource } of before) resource.releaseFromGraph();
  }

  /**
   * Prepares the first launch on `stream`, which is then as fast as the later ones. cuGraphUpload
   */
  async upload(stream: Stream): Promise<void> {
    this.check();
    this.device.checkStream('stream', stream);
    await this.whenNotCaptured(stream);
    const unmade = this.runtime.whyUnmade(stream.slot, 'graph.upload');
    if (unmade !== undefined) throw unmade;
    const { values, streams } = this.runtime.shared;
    await this.runtime.call('uploadGraph', values[this.exec]!, streams[stream.slot.index]!);
  }

  /** Kinds of the graph's nodes. cuGraphGetNodes, cuGraphNodeGetType */
  async nodeTypes(): Promise<GraphNodeType[]> {
    this.check();
    const types = await this.runtime.call('graphNodeTypes', this.graph);
    return types.map((type) => NODE_TYPES[type] ?? 'unknown');
  }

  /** Number of the graph's nodes. cuGraphGetNodes */
  async nodeCount(): Promise<number> {
    return (await this.nodeTypes()).length;
  }

  /** The graph in the DOT language of Graphviz. cuGraphDebugDotPrint */
  async dot(options: { verbose?: boolean } = {}): Promise<string> {
    this.check();
    checkOptions('options', options, ['verbose']);
    checkBoolean('options.verbose', options.verbose);
    // The folder is accessible to this user only: the driver would follow a link that another user
    // had put there.
    const folder = await mkdtemp(join(tmpdir(), 'async-cuda-graph-'));
    const path = join(folder, 'graph.dot');
    try {
      await this.runtime.call('graphDot', this.graph, path, options.verbose === true ? 1 : 0);
      return await readFile(path, 'utf8');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Frees the graph once its launches have ended. cuGraphExecDestroy, cuGraphDestroy */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.device.objects.disown(this);
    if (this.runtime.lost !== undefined) return;
    const { values } = this.runtime.shared;
    const exec = values[this.exec]!;
    if (this.lastUse !== undefined) await this.lastUse.stream.passed(this.lastUse.mark);
    await this.freeNodeMemory();
    for (const event of this.events) destroyEvent(this.runtime, event);
    const { graph } = this;
    this.graph = 0;
    for (const { resource } of this.uses) resource.releaseFromGraph();
    this.runtime.handles.drop(this.exec);
    await this.runtime.call('destroyGraph', graph, exec);
  }

  /** Frees the memory that the last launch has left allocated, once no work uses it. */
  private async freeNodeMemory(): Promise<void> {
    const { nodeMemory, runtime } = this;
    if (nodeMemory.length === 0) return;
    for (const memory of nodeMemory) memory.disposed = true;
    await Promise.all(nodeMemory.map((memory) => memory.settled()));
    await this.whenNotCaptured(this.device.stream);
    const { streams } = runtime.shared;
    const left = nodeMemory.map((memory) => memory.left).filter((address) => address !== 0);
    await runtime.call('freeNodeMemory', left, streams[this.device.stream.slot.index]!);
    for (const memory of nodeMemory) memory.release();
  }

  /**
   * Waits until no capture of the stream is under way on the runtime thread: a call that names the
   * stream would invalidate the capture.
   */
  private async whenNotCaptured({ slot }: Stream): Promise<void> {
    const {
      ring,
      completion,
      shared: { issued },
    } = this.runtime;
    await completion.until(
      () =>
        ring.drained && Atomics.load(issued, slot.index * ISSUED_STRIDE + ISSUED_CAPTURING) !== 1,
    );
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  toString(): string {
    return `Graph on ${this.device.name}${this.closed ? ', closed' : ''}`;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  private check(): void {
    if (this.closed)
      throw new CudaDisposedError('graph: used after it was closed. Capture it again.');
    this.device.check();
  }
}

/**
 * The number of a capture's operation. It is negative, because a capture does not run by itself.
 */
function captureRoot(runtime: Runtime): number {
  return -runtime.ownRoot();
}

function disposed(part?: string): CudaDisposedError {
  return new CudaDisposedError(
    part === undefined
      ? 'graph: one of its buffers was closed; capture it again with open buffers'
      : `graph: it was captured with ${part}: capture it again with one that is open`,
  );
}
