/**
 * CUDA graphs: work recorded once and launched again with one driver call.
 *
 * Device addresses are part of the graph. Each launch counts as a use of every buffer in it: it waits, on the device,
 * for the work on other streams that it conflicts with, and later work waits for it.
 */
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { OP } from '../runtime/commands.js';
import { CudaDisposedError, CudaError } from '../runtime/errors.js';
import { HANDLE } from '../runtime/layout.js';
import type { Runtime } from '../runtime/runtime.js';
import { invalid } from './arguments.js';
import { CaptureScope } from './capture.js';
import type { Device } from './device.js';
import { Pending } from './pending.js';
import type { Resource } from './resource.js';
import { Stream, destroyEvent } from './stream.js';

/** CUgraphNodeType */
const NODE_TYPES = [
  'kernel', 'memcpy', 'memset', 'host', 'graph', 'empty', 'waitEvent', 'eventRecord', 'semaphoreSignal', 'semaphoreWait',
  'memAlloc', 'memFree', 'batchMemOp', 'conditional',
] as const;

/** CUgraphNodeType; `unknown` for what a later CUDA has added. */
export type GraphNodeType = (typeof NODE_TYPES)[number] | 'unknown';

/** A recorded piece of work. Made by {@link Stream.capture}. */
export class Graph<T = unknown> implements AsyncDisposable {
  readonly device: Device;
  /** What the captured function returned. */
  readonly output: T;
  private readonly runtime: Runtime;
  private uses: ReadonlyMap<Resource, number>;
  private readonly events: number[];
  private graph: number;
  private readonly exec: number;
  /** Whether one of its kernels prints. */
  private prints: boolean;
  private closed = false;
  private lastUse: { stream: Stream; mark: number } | undefined;

  private constructor(device: Device, output: T, scope: CaptureScope, graph: number, exec: number) {
    this.device = device;
    this.runtime = device.runtime;
    this.output = output;
    this.uses = scope.uses;
    this.events = scope.events;
    this.prints = scope.prints;
    this.graph = graph;
    this.exec = this.runtime.handles.adopt(exec);
    device.own(this);
  }

  /** @internal */
  static async capture<T>(stream: Stream, body: (stream: Stream) => T): Promise<Graph<T>> {
    const { runtime, device } = stream;
    if (typeof body !== 'function') throw invalid('body', 'a function that queues work on the stream', body);
    if (stream.capturing !== undefined) throw new CudaError('ERR_CUDA_CAPTURE', 'the stream is being captured already: captures do not nest');
    const root = runtime.nextRoot();
    runtime.name(root, 'capture');
    const scope = new CaptureScope(stream, root);
    const handle = runtime.handles.take();
    let output: T;
    let thrown: { error: unknown } | undefined;
    try {
      stream.begin(OP.captureBegin, 4, root);
      stream.commit();
      output = body(stream);
      if (isThenable(output)) {
        (output as unknown as Promise<unknown>).then(undefined, () => undefined);
        throw invalid('body', 'a function that returns without waiting', output, 'Remove async and await: captured work is only recorded.');
      }
    } catch (error) {
      thrown = { error };
    }
    try {
      scope.end();
      const end = stream.begin(OP.captureEnd, 5, root);
      runtime.ring.memory[end] = handle;
      stream.commit();
    } finally {
      scope.release();
    }
    try {
      return await Graph.finish(device, scope, handle, output!, thrown);
    } finally {
      scope.settle();
    }
  }

  /** Waits for the captured graph and makes it executable. */
  private static async finish<T>(
    device: Device, scope: CaptureScope, handle: number, output: T, thrown: { error: unknown } | undefined,
  ): Promise<Graph<T>> {
    const { runtime } = device;
    const { status, values } = runtime.shared;
    await runtime.completion.until(() => Atomics.load(status, handle) !== HANDLE.pending);
    const failed = Atomics.load(status, handle) === HANDLE.failed;
    const graph = values[handle]!;
    runtime.handles.drop(handle);
    if (thrown !== undefined || failed) {
      for (const event of scope.events) destroyEvent(runtime, event);
      if (!failed) await runtime.call('destroyGraph', graph, 0);
      const failure = runtime.failureOf(scope.root);
      if (thrown !== undefined) throw thrown.error;
      throw failure ?? new CudaError('ERR_CUDA_CAPTURE', 'the capture was invalidated');
    }
    const exec = await runtime.call('instantiate', graph);
    return new Graph<T>(device, output, scope, graph, exec);
  }

  /**
   * Queues the graph on a stream of the same device. A launch waits for the launch before it. cuGraphLaunch
   *
   * @throws CudaDisposedError where a buffer of the graph has been disposed of
   */
  launch(stream: Stream): Pending {
    this.check();
    if (!(stream instanceof Stream) || stream.runtime !== this.device.runtime) throw invalid('stream', `a stream of ${this.device.name}`, stream);
    stream.check();
    for (const [resource, access] of this.uses) {
      if (resource.disposed) throw new CudaDisposedError('graph: one of its buffers has been disposed of; capture it again with live buffers');
      stream.order(resource, access);
    }
    if (this.lastUse !== undefined && this.lastUse.stream !== stream) stream.waitFor(this.lastUse.stream, this.lastUse.mark);
    const root = stream.nextRoot();
    const body = stream.begin(OP.graphLaunch, 5, root);
    this.runtime.ring.memory[body] = this.exec;
    const mark = stream.commit();
    for (const [resource, access] of this.uses) stream.used(resource, access, mark);
    this.lastUse = { stream, mark };
    if (this.prints) stream.printed();
    return new Pending(stream, root, mark);
  }

  /**
   * Takes over the parameters of another graph of the same shape, for launches from here on. cuGraphExecUpdate
   *
   * @throws CudaError where the two differ in more than parameters; this graph is then as it was
   */
  async update(other: Graph): Promise<void> {
    this.check();
    other.check();
    const exec = this.runtime.shared.values[this.exec]!;
    const { result } = await this.runtime.call('updateGraph', exec, other.graph);
    if (result !== 0) {
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        `graph.update: the other graph differs in more than parameters (CU_GRAPH_EXEC_UPDATE result ${result}); use it itself`,
        { operation: 'cuGraphExecUpdate' },
      );
    }
    const merged = new Map(this.uses);
    for (const [resource, access] of other.uses) merged.set(resource, (merged.get(resource) ?? 0) | access);
    this.uses = merged;
    this.prints ||= other.prints;
  }

  /** Prepares the first launch on `stream`, which is then as fast as the later ones. cuGraphUpload */
  async upload(stream: Stream): Promise<void> {
    this.check();
    stream.check();
    await this.runtime.completion.until(() => this.runtime.ring.drained);
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

  /** The graph in Graphviz's language. cuGraphDebugDotPrint */
  async dot(options: { verbose?: boolean } = {}): Promise<string> {
    this.check();
    const path = join(tmpdir(), `async-cuda-graph-${process.pid}-${Math.random().toString(36).slice(2)}.dot`);
    try {
      await this.runtime.call('graphDot', this.graph, path, options.verbose === true ? 1 : 0);
      return await readFile(path, 'utf8');
    } finally {
      await rm(path, { force: true });
    }
  }

  /** Frees the graph once its launches are over. cuGraphExecDestroy, cuGraphDestroy */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.device.disown(this);
    if (this.runtime.lost !== undefined) return;
    const { values } = this.runtime.shared;
    const exec = values[this.exec]!;
    if (this.lastUse !== undefined) await this.lastUse.stream.passed(this.lastUse.mark);
    for (const event of this.events) destroyEvent(this.runtime, event);
    const { graph } = this;
    this.graph = 0;
    this.runtime.handles.drop(this.exec);
    await this.runtime.call('destroyGraph', graph, exec);
  }

  /** {@link close}, for `await using`. */
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
    if (this.closed) throw new CudaDisposedError('graph: used after it was closed. Capture it again.');
    this.device.check();
  }
}

function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function' && !(value instanceof Pending);
}
