/**
 * The requests to TensorRT's threads, as tables of procedures: each is a few calls of TensorRT,
 * made one after the other, with nothing in between. Objects go by numbers outside of this thread.
 */
import { NativeMemory } from '../../native/native-memory.js';
import { BuilderProcedures, SELECTORS } from './builder-procedures.js';
import type {
  ContextDescription,
  EngineDescription,
  EngineTensor,
  RefitWeights,
} from './descriptions.js';
import { Refused } from './refused.js';

const INPUT = 1;
/** ExecutionContextAllocationStrategy::kUSER_MANAGED */
const NO_MEMORY = 2;

export class Procedures extends BuilderProcedures {
  createRuntime(session: number): number {
    const known = this.sessions[session]!;
    const runtime = this.hold(
      known,
      undefined,
      'Runtime',
      this.heard(() => known.library.createRuntime(known.logger)),
      'createInferRuntime',
    );
    this.selfCheck(
      'Runtime::getMaxThreads',
      this.call(runtime, 'Runtime', 'getMaxThreads'),
      1,
      1 << 16,
    );
    return runtime;
  }

  deserialize(runtime: number, plan: Uint8Array, hostCode: boolean): EngineDescription {
    const { library } = this.of(runtime);
    const { classes } = library;
    if (hostCode) this.call(runtime, 'Runtime', 'setEngineHostCodeAllowed', true);
    const engine = this.hold(
      library,
      runtime,
      'CudaEngine',
      this.heard(() =>
        this.call(runtime, 'Runtime', 'deserializeCudaEngine', plan, plan.length, 0),
      ),
      'deserializeCudaEngine',
    );
    try {
      const count = this.call(engine, 'CudaEngine', 'getNbIOTensors') as number;
      this.selfCheck('CudaEngine::getNbIOTensors', count, 1, 1 << 16);
      const profiles = this.call(engine, 'CudaEngine', 'getNbOptimizationProfiles') as number;
      const tensors = Array.from({ length: count }, (_, i) =>
        this.engineTensor(
          engine,
          String(this.call(engine, 'CudaEngine', 'getIOTensorName', i)),
          profiles,
        ),
      );
      return {
        engine,
        profiles,
        tensors,
        name: (this.call(engine, 'CudaEngine', 'getName') as string | null) ?? '',
        layers: this.call(engine, 'CudaEngine', 'getNbLayers') as number,
        refittable: this.call(engine, 'CudaEngine', 'isRefittable') as boolean,
        extentBytes: classes.generation.extentBytes,
        deviceMemory: this.call(
          engine,
          'CudaEngine',
          classes.has('CudaEngine', 'getDeviceMemorySizeV2')
            ? 'getDeviceMemorySizeV2'
            : 'getDeviceMemorySize',
        ) as number,
      };
    } catch (error) {
      this.destroy(engine);
      throw error;
    }
  }

  private engineTensor(engine: number, name: string, profiles: number): EngineTensor {
    const shape = this.call(engine, 'CudaEngine', 'getTensorShape', name) as number[];
    const input = this.call(engine, 'CudaEngine', 'getTensorIOMode', name) === INPUT;
    const vectorized = this.call(engine, 'CudaEngine', 'getTensorVectorizedDim', name) as number;
    return {
      name,
      shape,
      input,
      dimensions: [],
      type: this.call(engine, 'CudaEngine', 'getTensorDataType', name) as number,
      host: this.call(engine, 'CudaEngine', 'getTensorLocation', name) === 1,
      format:
        vectorized === -1
          ? ''
          : String(this.call(engine, 'CudaEngine', 'getTensorFormatDesc', name)),
      profiles: !input
        ? []
        : Array.from({ length: profiles }, (_, profile) => {
            const [min, opt, max] = SELECTORS.map(
              (__, i) =>
                (this.call(engine, 'CudaEngine', 'getProfileShape', name, profile, i) as
                  number[] | undefined) ?? shape,
            );
            return { min: min!, opt: opt!, max: max! };
          }),
    };
  }

  serializeEngine(engine: number): Uint8Array {
    return this.takeBytes(
      this.of(engine).library,
      this.heard(() => this.call(engine, 'CudaEngine', 'serialize')),
      'ICudaEngine::serialize',
    );
  }

  /**
   * `memory`: whether it is one that runs, with memory of its own, or one that only infers shapes.
   */
  createContext(engine: number, names: readonly string[], memory: boolean): ContextDescription {
    const { library } = this.of(engine);
    const { classes } = library;
    const made = this.heard(() =>
      memory || !classes.has('CudaEngine', 'createExecutionContextWithoutDeviceMemory')
        ? this.call(engine, 'CudaEngine', 'createExecutionContext', memory ? 0 : NO_MEMORY)
        : this.call(engine, 'CudaEngine', 'createExecutionContextWithoutDeviceMemory'),
    );
    const context = this.hold(library, engine, 'ExecutionContext', made, 'createExecutionContext');
    const { object, kept } = this.of(context);
    const address = (
      method: 'setInputShape' | 'setTensorAddress' | 'enqueueV3' | 'setOptimizationProfileAsync',
    ): number => classes.address(object, 'ExecutionContext', method);
    const addresses = names.map((name): [string, number] => {
      const bytes = Buffer.from(`${name}\0`);
      const text = new NativeMemory(this.koffi, bytes.length);
      text.bytes.set(bytes);
      kept.push(text);
      return [name, text.address];
    });
    return {
      context,
      self: object.self,
      names: Object.fromEntries(addresses),
      functions: {
        setInputShape: address('setInputShape'),
        setTensorAddress: address('setTensorAddress'),
        enqueueV3: address('enqueueV3'),
        setOptimizationProfileAsync: address('setOptimizationProfileAsync'),
      },
    };
  }

  /**
   * The shapes of outputs where inputs have these, by a context that runs nothing. An extent of -1
   * is known only by running; `bytes` then is the most that it takes.
   */
  inferShapes(
    context: number,
    profile: number,
    inputs: Readonly<Record<string, readonly number[]>>,
    outputs: readonly string[],
  ): { shape: number[]; bytes: number }[] {
    if (this.call(context, 'ExecutionContext', 'getOptimizationProfile') !== profile) {
      this.succeed(
        'setOptimizationProfileAsync',
        this.heard(() =>
          this.call(context, 'ExecutionContext', 'setOptimizationProfileAsync', profile, 0),
        ),
        { argument: 'profile' },
      );
    }
    for (const [name, shape] of Object.entries(inputs)) {
      this.succeed(
        'setInputShape',
        this.heard(() => this.call(context, 'ExecutionContext', 'setInputShape', name, shape)),
        { argument: name },
      );
    }
    const missing = this.heard(() =>
      this.call(context, 'ExecutionContext', 'inferShapes', 0, null),
    ) as number;
    this.succeed('inferShapes', missing >= 0);
    return outputs.map((name) => {
      const shape = this.call(context, 'ExecutionContext', 'getTensorShape', name) as number[];
      return {
        shape,
        bytes: shape.includes(-1)
          ? (this.call(context, 'ExecutionContext', 'getMaxOutputSize', name) as number)
          : 0,
      };
    });
  }

  /** `allocator`: IOutputAllocator, or 0 for none. */
  setOutputAllocator(context: number, output: string, allocator: number): void {
    this.succeed(
      'setOutputAllocator',
      this.heard(() =>
        this.call(context, 'ExecutionContext', 'setOutputAllocator', output, allocator),
      ),
      { argument: output },
    );
  }

  setProfiler(context: number, profiler: number): void {
    this.call(context, 'ExecutionContext', 'setProfiler', profiler);
    // With it the run would wait for its end.
    this.call(context, 'ExecutionContext', 'setEnqueueEmitsProfile', false);
  }

  reportToProfiler(context: number): void {
    this.succeed(
      'reportToProfiler',
      this.heard(() => this.call(context, 'ExecutionContext', 'reportToProfiler')),
    );
  }

  inspect(engine: number, context: number | undefined, layer: number | undefined): string {
    const { library } = this.of(engine);
    const inspector = this.hold(
      library,
      engine,
      'EngineInspector',
      this.heard(() => this.call(engine, 'CudaEngine', 'createEngineInspector')),
      'createEngineInspector',
    );
    try {
      if (context !== undefined)
        this.succeed(
          'setExecutionContext',
          this.heard(() =>
            this.call(inspector, 'EngineInspector', 'setExecutionContext', this.of(context).object),
          ),
        );
      const text = this.heard(() =>
        layer === undefined
          ? this.call(inspector, 'EngineInspector', 'getEngineInformation', 1)
          : this.call(inspector, 'EngineInspector', 'getLayerInformation', layer, 1),
      );
      return (text as string | null) ?? '';
    } finally {
      this.destroy(inspector);
    }
  }

  weightStreaming(engine: number): { streamable: number; budget: number; automatic: number } {
    const ask = (
      method:
        | 'getStreamableWeightsSize'
        | 'getWeightStreamingBudgetV2'
        | 'getWeightStreamingAutomaticBudget',
    ): number => this.call(engine, 'CudaEngine', method) as number;
    return {
      streamable: ask('getStreamableWeightsSize'),
      budget: ask('getWeightStreamingBudgetV2'),
      automatic: ask('getWeightStreamingAutomaticBudget'),
    };
  }

  setWeightStreamingBudget(engine: number, bytes: number): void {
    this.succeed(
      'setWeightStreamingBudgetV2',
      this.heard(() => this.call(engine, 'CudaEngine', 'setWeightStreamingBudgetV2', bytes)),
      { argument: 'bytes' },
    );
  }

  /** Names of the weights that can be given anew. */
  refittableWeights(engine: number): string[] {
    return this.withRefitter(engine, (refitter) => this.weightNames(refitter, 'getAllWeights'));
  }

  refit(engine: number, weights: Readonly<Record<string, RefitWeights>>): void {
    this.withRefitter(engine, (refitter) => {
      const kept = Object.entries(weights).map(([name, { type, count, bytes }]) => {
        const memory = new NativeMemory(this.koffi, Math.max(1, bytes.length));
        memory.bytes.set(bytes);
        this.succeed(
          'setNamedWeights',
          this.heard(() =>
            this.call(refitter, 'Refitter', 'setNamedWeights', name, {
              type,
              values: memory.address,
              count,
            }),
          ),
          { argument: name },
        );
        return memory;
      });
      const missing = this.weightNames(refitter, 'getMissingWeights');
      if (missing.length > 0)
        throw new Refused(
          'argument',
          `weights: ${missing.map((name) => `'${name}'`).join(', ')} ` +
            `${missing.length === 1 ? 'belongs' : 'belong'} to what is given anew, and must be ` +
            'given as well',
          { argument: 'weights' },
        );
      this.succeed(
        'refitCudaEngine',
        this.heard(() => this.call(refitter, 'Refitter', 'refitCudaEngine')),
      );
      return kept.length;
    });
  }

  refitFromModel(engine: number, model: Uint8Array): void {
    this.withRefitter(engine, (refitter) => {
      const { library, object } = this.of(refitter);
      const parser = this.hold(
        library,
        refitter,
        'ParserRefitter',
        this.heard(() => library.library.createParserRefitter(object.address, library.logger)),
        'createNvOnnxParserRefitter',
      );
      try {
        this.checkParsed(
          parser,
          'ParserRefitter',
          'IParserRefitter::refitFromBytes',
          this.heard(() =>
            this.call(parser, 'ParserRefitter', 'refitFromBytes', model, model.length, null),
          ) === true,
        );
        this.succeed(
          'refitCudaEngine',
          this.heard(() => this.call(refitter, 'Refitter', 'refitCudaEngine')),
        );
      } finally {
        this.destroy(parser);
      }
    });
  }

  private withRefitter<T>(engine: number, use: (refitter: number) => T): T {
    const { library, object } = this.of(engine);
    const refitter = this.hold(
      library,
      engine,
      'Refitter',
      this.heard(() => library.library.createRefitter(object.address, library.logger)),
      'createInferRefitter',
    );
    try {
      return use(refitter);
    } finally {
      this.destroy(refitter);
    }
  }

  private weightNames(refitter: number, method: 'getAllWeights' | 'getMissingWeights'): string[] {
    const { classes } = this.of(refitter).library;
    const count = this.call(refitter, 'Refitter', method, 0, null) as number;
    if (count === 0) return [];
    const names = new BigUint64Array(count);
    this.call(refitter, 'Refitter', method, count, new Uint8Array(names.buffer));
    return Array.from(names, (address) => classes.text(Number(address)));
  }
}
