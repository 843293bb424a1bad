/**
 * ExecutionContext: the state of an engine's runs, with memory of its own. It runs once at a time.
 */
import { setTimeout as delay } from 'node:timers/promises';

import { CudaDisposedError, CudaError, NativeSteps, Pending } from '../core/index.js';
import type { DeviceBuffer, LibraryStep, Stream } from '../core/index.js';
import { u8 } from '../core/index.js';
import type {
  EngineContext,
  EngineInputs,
  InferOptions,
  NamedTensors,
  TensorInfo,
} from '../engine/engine.js';
import { LastRun } from '../engine/last-run.js';
import { RecentOps } from '../engine/recent-ops.js';
import type { DeviceOp } from '../ops/index.js';
import { engineOperation } from './engine-operation.js';
import { forget, onLayers } from './notifications.js';
import { generationOf } from './thread/generations.js';
import type { ContextDescription } from './thread/descriptions.js';
import type { TensorRTEngine } from './tensorrt-engine.js';
import { OUTPUT_WORDS } from './thread/output-words.js';
import type { ErrorCollection } from './threads.js';
import { listener, stopCollecting } from './threads.js';
import type { PlacedRun } from './placed-run.js';

/** The time, in milliseconds, until the fence of a finished run is seen. */
const GRACE_MS = 250;

/** A layer's time in one run. */
export interface LayerTime {
  readonly layer: string;
  readonly milliseconds: number;
}

/**
 * A context of an engine: the state and the memory of its runs. It runs once at a time; runs of
 * several contexts overlap. `engine.createContext()` makes it. IExecutionContext
 *
 * @example
 * ```ts no-run
 * import { readFile } from 'node:fs/promises';
 * await using engine = await loadTensorRTEngine(device, await readFile('model.onnx'));
 * await using context: ExecutionContext = await engine.createContext();
 * using x = await device.zeros(f32, [8, 3, 224, 224]);
 * const { layers } = await context.profileRun({ x });
 * const total = layers.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
 * process.stdout.write(`${layers.length} layers, ${total} ms\n`);
 * ```
 */
export class ExecutionContext implements EngineContext {
  readonly engine: TensorRTEngine;
  /** The number under which errors of its runs are collected. */
  private readonly collection: number;
  /** The optimization profile whose ranges its inputs have. */
  readonly profile: number;
  private readonly described: ContextDescription;
  private readonly steps: NativeSteps;
  /** For each dynamic input, the index of its shape in the steps' words. */
  private readonly shapes: readonly { readonly port: number; readonly word: number }[];
  /** The buffer that orders runs on different streams: each writes to it. */
  private readonly turn: DeviceBuffer<'u8'>;
  private readonly left: () => void;
  private readonly recent = new RecentOps();
  private last: LastRun | undefined = undefined;
  /**
   * The allocators of outputs whose shapes only a run gives, by number, and the words that they
   * share with this thread.
   */
  private readonly open = new Map<
    number,
    { readonly words: Float64Array; readonly ready: Promise<number> }
  >();
  /** The end of a run that has such outputs: their shapes have been read. Never rejects. */
  private openRun: Promise<void> | undefined = undefined;
  private closed: Promise<void> | undefined = undefined;

  /** @internal */
  constructor(
    engine: TensorRTEngine,
    described: ContextDescription,
    profile: number,
    errors: ErrorCollection,
    left: () => void,
  ) {
    this.engine = engine;
    this.collection = errors.id;
    this.profile = profile;
    this.described = described;
    this.left = left;
    this.turn = engine.device.alloc(u8, 16, { label: `turn of ${engine.toString()}` });
    const { self, functions, names } = described;
    const object = { constant: self };
    const steps: LibraryStep[] = [];
    const shapes: { port: number; step: number }[] = [];
    if (engine.profiles > 1) {
      steps.push({
        name: 'setOptimizationProfileAsync',
        address: functions.setOptimizationProfileAsync,
        args: [object, { constant: profile }, 'stream'],
        returns: 'true',
        kept: true,
        forgets: true,
      });
    }
    engine.inputs.forEach((port, i) => {
      if (!port.shape.includes(-1)) return;
      shapes.push({ port: i, step: steps.length });
      const bytes =
        4 + 8 * engine.described.extentBytes + (engine.described.extentBytes === 8 ? 4 : 0);
      steps.push({
        name: `setInputShape('${port.name}')`,
        address: functions.setInputShape,
        args: [object, { constant: names[port.name]! }, { host: bytes }],
        returns: 'true',
        kept: true,
      });
    });
    const address =
      (access: 'in' | 'out') =>
      (port: TensorInfo): LibraryStep => ({
        name: `setTensorAddress('${port.name}')`,
        address: functions.setTensorAddress,
        args: [object, { constant: names[port.name]! }, access],
        returns: 'true',
        kept: true,
      });
    steps.push(...engine.inputs.map(address('in')), ...engine.outputs.map(address('out')));
    steps.push({
      name: 'enqueueV3',
      address: functions.enqueueV3,
      args: [object, 'stream'],
      returns: 'true',
    });
    this.steps = new NativeSteps(engine.device, {
      name: `enqueue of ${engine.toString()}`,
      library: engine.description,
      steps,
      launches: engine.layers + 8,
      said: errors.said,
    });
    this.shapes = shapes.map(({ port, step }) => ({ port, word: this.steps.starts[step]![2]! }));
  }

  /**
   * Returns an operation that runs the engine: enqueueV3, after setInputShape and setTensorAddress
   * for everything that has changed since the context's last run.
   *
   * @throws CudaDisposedError where the context is closed, CudaArgumentError for a wrong input,
   * output or option. It rejects with code ERR_CUDA_BUSY where the context runs on another stream
   */
  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors> {
    this.check();
    return engineOperation(this.engine, inputs, options, this.profile, this.recent, this);
  }

  /** Returns this context, now or once it is free. @internal */
  contextFor(stream: Stream): this | Promise<this> {
    return this.ranOn(stream) || !this.isRunning ? this : this.freed();
  }

  /**
   * Waits for the end of the last run. Code that awaited that run may have waited on another
   * stream, and then the end has not been seen on this one yet.
   *
   * @throws CudaError with code ERR_CUDA_BUSY where it does run
   */
  private async freed(): Promise<this> {
    const over = new AbortController();
    const late = delay(GRACE_MS, 'late', { signal: over.signal }).catch(() => undefined);
    let [awaited, upTo]: [LastRun | undefined, number] = [undefined, 0];
    // Another run that waited as well may be the next to begin: its end is waited for, too.
    while (!this.isOver && (this.last !== awaited || awaited!.mark !== upTo)) {
      awaited = this.last!;
      upTo = awaited.mark;
      if ((await Promise.race([this.idle().catch(() => undefined), late])) === 'late') break;
    }
    over.abort();
    if (this.isOver) return this;
    throw new CudaError(
      'ERR_CUDA_BUSY',
      `A context of ${this.engine.toString()} is running on ${this.last!.stream.title}: it ` +
        'runs once at a time. Await that run, chain this one after it, or make another ' +
        'context: engine.createContext().',
    );
  }

  /** Whether its last run is known to be over. */
  private get isOver(): boolean {
    return this.last?.isOver !== false;
  }

  /** Whether a run of it is not over, and will not be within a few microseconds. */
  get isRunning(): boolean {
    // The end counts even before its waiters are notified: the context is free once the run is
    // over, also where the code that awaits it continues in the next turn.
    return !this.isOver && !this.last!.stream.passesSoon(this.last!.mark);
  }

  /** @internal */
  ranOn(stream: Stream): boolean {
    return this.last?.stream === stream;
  }

  /** Queues a run on tensors that have been checked. Returns the operation's number. @internal */
  queue(stream: Stream, { inputs, memory, whole }: PlacedRun): number {
    this.check();
    const { words } = this.steps;
    const wide = this.engine.described.extentBytes === 8;
    for (const { port, word } of this.shapes) {
      const shape = inputs[port]!.shape;
      words[word] = shape.length;
      // Dims: the number, and from byte 8 on (4 up to version 8) the extents.
      for (let axis = 0; axis < shape.length; axis++)
        words[word + (wide ? 2 + 2 * axis : 1 + axis)] = shape[axis]!;
    }
    const root = this.steps.queue(stream, memory, this.turn, whole);
    if (stream.captureScope === undefined)
      this.last = LastRun.latest(this.last, stream, stream.mark);
    return root;
  }

  /**
   * Returns what a run with these outputs, whose shapes only the run gives, has to wait for:
   * another such run, whose shapes would be overwritten, or allocators that are still being made.
   * @internal
   */
  readyFor(outputs: readonly number[]): Promise<unknown> | undefined {
    if (this.openRun !== undefined) return this.openRun;
    const missing = outputs.filter((i) => !this.open.has(i));
    return missing.length === 0 ? undefined : Promise.all(missing.map((i) => this.openOutput(i)));
  }

  /**
   * Does the same as {@link queue}; resolves with the shapes of these outputs, for which the memory
   * has `room` bytes. @internal
   */
  async queueOpen(
    stream: Stream,
    placed: PlacedRun,
    room: ReadonlyMap<number, number>,
  ): Promise<ReadonlyMap<number, readonly number[]>> {
    for (const [i, bytes] of room) this.open.get(i)!.words.set([bytes, -1]);
    const root = this.queue(stream, placed);
    const shapes = new Pending(stream, root, stream.mark).then(
      () =>
        new Map(
          [...room.keys()].map((i): [number, readonly number[]] => {
            const { words } = this.open.get(i)!;
            if (words[1]! < 0)
              throw new CudaError(
                'ERR_CUDA_INTERNAL',
                `${this.engine.description} has not given the shape of ` +
                  `'${this.engine.outputs[i]!.name}'.`,
              );
            return [i, Array.from(words.subarray(2, 2 + words[1]!))];
          }),
        ),
    );
    const over = shapes.then(
      () => undefined,
      () => undefined,
    );
    this.openRun = over;
    void over.then(() => {
      this.openRun = undefined;
    });
    return shapes;
  }

  /** Makes the allocator of an output. setOutputAllocator */
  private async openOutput(i: number): Promise<void> {
    const shared = new SharedArrayBuffer(8 * OUTPUT_WORDS);
    const { callbacks, extentBytes } = generationOf(this.engine.runtime.library.key);
    const ready = listener().call('output', shared, callbacks, extentBytes);
    await this.engine.runtime.thread.call(
      'setOutputAllocator',
      this.described.context,
      this.engine.outputs[i]!.name,
      await ready,
    );
    this.open.set(i, { words: new Float64Array(shared), ready });
  }

  /**
   * Runs the engine once, and returns the times of its layers. The profiler waits for each layer's
   * end, and so the run is slower. IProfiler
   */
  async profileRun(
    inputs: EngineInputs,
  ): Promise<{ readonly outputs: NamedTensors; readonly layers: readonly LayerTime[] }> {
    this.check();
    const { thread } = this.engine.runtime;
    const layers: LayerTime[] = [];
    const id = onLayers((layer, milliseconds) => layers.push({ layer, milliseconds }));
    let profiler = 0;
    try {
      await this.idle();
      profiler = await listener().call(
        'profiler',
        id,
        generationOf(this.engine.runtime.library.key).callbacks,
      );
      await thread.call('setProfiler', this.described.context, profiler);
      const outputs = await this.infer(inputs);
      await thread.call('reportToProfiler', this.described.context);
      // The listener's message about the last layer comes before its answer to this call.
      await listener().call('answer');
      return { outputs, layers };
    } finally {
      await thread.call('setProfiler', this.described.context, 0);
      if (profiler !== 0) void listener().call('release', profiler);
      forget(id);
    }
  }

  /** Resolves when its last run is over. @internal */
  async idle(): Promise<void> {
    const { last } = this;
    if (last !== undefined && !last.stream.isClosed) await last.stream.passed(last.mark);
  }

  async close(): Promise<void> {
    this.closed ??= this.end();
    await this.closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  private async end(): Promise<void> {
    await this.idle();
    this.turn.close();
    this.steps.close();
    stopCollecting(this.collection);
    await this.engine.runtime.thread.call('release', this.described.context);
    for (const { ready } of this.open.values()) void listener().call('release', await ready);
    this.left();
  }

  private check(): void {
    if (this.closed !== undefined)
      throw new CudaDisposedError(
        `a context of ${this.engine.toString()}: used after it was closed.`,
      );
    this.engine.check();
  }
}
