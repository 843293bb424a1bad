/** Engine: a model, ready to run on one GPU. */
import { types } from 'node:util';
import { CudaArgumentError, CudaDisposedError, DTYPES } from '../core/index.js';
import type { DTypeName, CoreDevice, Stream } from '../core/index.js';
import { checkInteger, invalid } from '../ground/arguments.js';
import type {
  Engine,
  EngineInputs,
  InferOptions,
  NamedTensors,
  TensorInfo,
} from '../engine/engine.js';
import { RecentOps } from '../engine/recent-ops.js';
import { checkInputNames } from '../engine/run-checks.js';
import type { DeviceOp } from '../ops/index.js';
import type { AnyTensor } from '../tensor/index.js';
import { dataTypeOf, dtypeNameOf } from './data-types.js';
import { engineOperation } from './engine-operation.js';
import type { ShapeRange } from './engine-options.js';
import { ExecutionContext } from './execution-context.js';
import type { Runtime } from './runtime.js';
import type { EngineDescription, EngineTensor } from './thread/descriptions.js';
import { collectErrors, onDevice } from './threads.js';

/** Weights of a refit: float32 elements, or bytes of a dtype. */
export type Weights = Float32Array | { readonly dtype: DTypeName; readonly bytes: Uint8Array };

/** Bytes of weights in the GPU's memory. */
export interface WeightStreaming {
  /** The weights that can stay in the host's memory. */
  readonly streamable: number;
  /** The current limit on the GPU. */
  readonly budget: number;
  /** The limit that TensorRT would choose. */
  readonly automatic: number;
}

/**
 * The shape of an output; where an extent of it is -1, which only the run gives, the most bytes
 * that it takes. @internal
 */
export interface OutputShape {
  readonly shape: readonly number[];
  readonly bytes: number;
}

const MOST_CONTEXTS = 64;

/**
 * A model that TensorRT runs on one GPU. {@link loadTensorRTEngine} and `runtime.deserialize(plan)`
 * make it. ICudaEngine
 *
 * @example
 * ```ts no-run
 * import { readFile } from 'node:fs/promises';
 * const model = await readFile('model.onnx');
 * await using engine: TensorRTEngine = await loadTensorRTEngine(device, model);
 * console.log(engine.kind, engine.profiles); // tensorrt 1
 * using x = await device.zeros(f32, [8, 3, 224, 224]);
 * const { y } = await engine.infer({ x });
 * y?.close();
 * ```
 */
export class TensorRTEngine implements Engine {
  readonly kind = 'tensorrt';
  readonly description: string;
  readonly device: CoreDevice;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  /** For each input, the ranges of its extents, by profile. @internal */
  readonly ranges: readonly (readonly ShapeRange[])[];
  /** The network's name. */
  readonly name: string;
  readonly layers: number;
  /** The number of optimization profiles that contexts choose from. */
  readonly profiles: number;
  readonly isRefittable: boolean;
  /** Bytes of the GPU's memory that each context takes. */
  readonly contextMemory: number;
  /** @internal */
  readonly described: EngineDescription;
  /** @internal */
  readonly runtime: Runtime;
  private readonly left: () => Promise<void>;
  private readonly limit: number;
  private readonly contexts = new Set<ExecutionContext>();
  private readonly own: Promise<ExecutionContext>[] = [];
  private readonly recent = new RecentOps();
  private readonly ready: ExecutionContext[] = [];
  private shapes: Promise<number> | undefined = undefined;
  private readonly inferred = new Map<string, readonly OutputShape[]>();
  private closing: Promise<void> | undefined = undefined;

  /** @internal */
  constructor(
    runtime: Runtime,
    described: EngineDescription,
    contexts: number,
    left: () => Promise<void>,
  ) {
    checkInteger('options.contexts', contexts, 1, MOST_CONTEXTS);
    const info = ({ name, type, shape }: EngineTensor): TensorInfo => ({
      name,
      dtype: dtypeNameOf(type, name),
      shape,
    });
    this.runtime = runtime;
    this.device = runtime.device;
    this.description = runtime.description;
    this.described = described;
    this.name = described.name;
    this.layers = described.layers;
    this.profiles = described.profiles;
    this.isRefittable = described.refittable;
    this.contextMemory = described.deviceMemory;
    const inputs = described.tensors.filter((tensor) => tensor.input);
    const outputs = described.tensors.filter((tensor) => !tensor.input);
    this.inputs = inputs.map(info);
    this.outputs = outputs.map(info);
    this.ranges = inputs.map(({ profiles }) => profiles);
    this.limit = contexts;
    this.left = left;
    for (const { name, host, format } of [...inputs, ...outputs]) {
      if (host)
        throw new CudaArgumentError(
          name,
          `'${name}' of ${this.toString()} is a shape tensor, whose values are the host's: ` +
            'build the model with its shape as a constant.',
        );
      if (format !== '')
        throw new CudaArgumentError(
          name,
          `'${name}' of ${this.toString()} is laid out as ${format}: build without directIO.`,
        );
    }
  }

  /**
   * Returns the range of an input's extents in a profile.
   *
   * @throws CudaArgumentError for an unknown input or profile
   */
  profileShape(name: string, profile = 0): ShapeRange {
    checkInteger('profile', profile, 0, this.profiles - 1);
    const input = this.inputs.findIndex((each) => each.name === name);
    if (input === -1)
      throw invalid(
        'name',
        `one of ${this.inputs.map((each) => `'${each.name}'`).join(', ')}`,
        name,
      );
    return this.ranges[input]![profile]!;
  }

  /**
   * Creates a context. createExecutionContext
   *
   * @param options `profile`: the profile by whose ranges it checks its inputs; default 0
   */
  async createContext(options: { readonly profile?: number } = {}): Promise<ExecutionContext> {
    this.check();
    const { profile = 0 } = options;
    checkInteger('options.profile', profile, 0, Math.max(0, this.profiles - 1));
    const names = this.described.tensors.map(({ name }) => name);
    await onDevice(this.runtime.thread, this.device);
    const described = await this.runtime.thread.call(
      'createContext',
      this.described.engine,
      names,
      true,
    );
    const context: ExecutionContext = new ExecutionContext(
      this,
      described,
      profile,
      await collectErrors(),
      () => {
        this.contexts.delete(context);
      },
    );
    this.contexts.add(context);
    return context;
  }

  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors> {
    this.check();
    return engineOperation(this, inputs, options, 0, this.recent, this);
  }

  /**
   * Returns the context that ran last on this stream, which needs no wait; otherwise a free one,
   * otherwise a new one, otherwise the one that has waited longest. @internal
   */
  contextFor(stream: Stream): ExecutionContext | Promise<ExecutionContext> {
    const { ready, own } = this;
    const latest = ready.at(-1);
    if (latest?.ranOn(stream) === true) return latest;
    const same =
      ready.find((context) => context.ranOn(stream)) ?? ready.find((context) => !context.isRunning);
    if (same !== undefined) {
      ready.splice(ready.indexOf(same), 1);
      ready.push(same);
      return same;
    }
    if (own.length < this.limit) {
      const made = this.createContext();
      own.push(made);
      return made.then((context) => {
        ready.push(context);
        return context;
      });
    }
    const oldest = ready.shift();
    if (oldest === undefined) return own[0]!;
    ready.push(oldest);
    return oldest;
  }

  /** Returns the engine as a plan. serialize */
  serialize(): Promise<Uint8Array> {
    this.check();
    return this.runtime.thread.call('serializeEngine', this.described.engine);
  }

  /**
   * Describes the engine as JSON text. createEngineInspector
   *
   * @param layer the index of one of {@link layers}; default all
   */
  inspect(layer?: number): Promise<string> {
    this.check();
    if (layer !== undefined) checkInteger('layer', layer, 0, this.layers - 1);
    return this.runtime.thread.call('inspect', this.described.engine, undefined, layer);
  }

  /** Returns the bytes of streamed weights, from version 10.1 on. */
  weightStreaming(): Promise<WeightStreaming> {
    this.check();
    return this.runtime.thread.call('weightStreaming', this.described.engine);
  }

  /**
   * Sets the bytes of weights that may be on the GPU. Call it before the first context is created.
   * setWeightStreamingBudgetV2
   */
  async setWeightStreamingBudget(bytes: number): Promise<void> {
    this.check();
    checkInteger('bytes', bytes, 0, Number.MAX_SAFE_INTEGER);
    await onDevice(this.runtime.thread, this.device);
    await this.runtime.thread.call('setWeightStreamingBudget', this.described.engine, bytes);
  }

  /** Returns the names of the weights that {@link refit} can replace. */
  refittableWeights(): Promise<string[]> {
    this.check();
    return this.runtime.thread.call('refittableWeights', this.described.engine);
  }

  /**
   * Replaces weights, after all runs so far. createInferRefitter, setNamedWeights, refitCudaEngine
   */
  async refit(weights: Readonly<Record<string, Weights>>): Promise<void> {
    this.check();
    const given = Object.entries(weights).map(([name, value]) => {
      const { dtype, bytes } = types.isFloat32Array(value)
        ? {
            dtype: 'f32' as const,
            bytes: new Uint8Array(value.buffer, value.byteOffset, value.byteLength),
          }
        : value;
      const type = dataTypeOf(dtype);
      if (type === undefined)
        throw invalid(`weights.${name}.dtype`, 'a dtype that TensorRT has', dtype);
      return [name, { type, count: bytes.length / DTYPES[dtype].bytes, bytes }] as const;
    });
    await this.idle();
    await onDevice(this.runtime.thread, this.device);
    await this.runtime.thread.call('refit', this.described.engine, Object.fromEntries(given));
  }

  /** Takes the weights of another model of the same graph. IParserRefitter */
  async refitFromOnnx(model: Uint8Array): Promise<void> {
    this.check();
    await this.idle();
    await onDevice(this.runtime.thread, this.device);
    await this.runtime.thread.call('refitFromModel', this.described.engine, model);
  }

  async close(): Promise<void> {
    this.closing ??= this.end();
    await this.closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  toString(): string {
    return `engine '${this.name}' of ${this.description}`;
  }

  private async end(): Promise<void> {
    await Promise.allSettled(this.own);
    for (const context of [...this.contexts]) await context.close();
    const { thread } = this.runtime;
    if (this.shapes !== undefined) await thread.call('release', await this.shapes);
    await onDevice(thread, this.device);
    await thread.call('release', this.described.engine);
    await this.left();
  }

  private async idle(): Promise<void> {
    for (const context of this.contexts) await context.idle();
  }

  /** @internal */
  check(): void {
    if (this.closing !== undefined)
      throw new CudaDisposedError(`${this.toString()}: used after it was closed.`);
  }

  /** Returns the shapes of the outputs, now or once TensorRT has returned them. @internal */
  outputShapes(
    inputs: readonly AnyTensor[],
    profile: number,
  ): readonly OutputShape[] | Promise<unknown> {
    if (this.outputs.every(({ shape }) => !shape.includes(-1)))
      return this.outputs.map(({ shape }) => ({ shape, bytes: 0 }));
    const key = `${profile}:${inputs.map(({ shape }) => shape.join('x')).join(';')}`;
    return (
      this.inferred.get(key) ??
      this.queueRun(
        key,
        Object.fromEntries(
          this.inputs.map(({ name }, i) => [name, [...inputs[i]!.shape] as number[]]),
        ),
        profile,
      )
    );
  }

  /**
   * Returns the shapes of the outputs for these shapes of the inputs, with -1 where an extent
   * depends on the inputs' values: setInputShape, inferShapes, getTensorShape.
   */
  async inferShapes(
    inputs: Readonly<Record<string, readonly number[]>>,
    profile = 0,
  ): Promise<Readonly<Record<string, readonly number[]>>> {
    this.check();
    checkInputNames(this.inputs, inputs);
    const shapes = await this.queueRun(undefined, inputs, profile);
    return Object.fromEntries(this.outputs.map(({ name }, i) => [name, shapes[i]!.shape]));
  }

  private async queueRun(
    key: string | undefined,
    inputs: Readonly<Record<string, readonly number[]>>,
    profile: number,
  ): Promise<readonly OutputShape[]> {
    const { thread } = this.runtime;
    await onDevice(thread, this.device);
    this.shapes ??= thread
      .call('createContext', this.described.engine, [], false)
      .then(({ context }) => context);
    const shapes = await thread.call(
      'inferShapes',
      await this.shapes,
      profile,
      inputs,
      this.outputs.map(({ name }) => name),
    );
    if (key !== undefined) {
      if (this.inferred.size >= 1024) this.inferred.clear();
      this.inferred.set(key, shapes);
    }
    return shapes;
  }
}
