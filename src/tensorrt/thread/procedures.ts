/**
 * What TensorRT's threads are asked to do, as tables of procedures: each is a few calls of
 * TensorRT, made one after the other, with nothing in between. Objects go by numbers outside of
 * this thread.
 */
import { thisMachine } from '../../native/find.js';
import type { Koffi } from '../../native/koffi.js';
import { loadKoffi } from '../../native/koffi.js';
import { KNOWN_LIBRARIES } from '../../native/libraries.js';
import { NativeMemory } from '../../native/native-memory.js';
import { openLibrary } from '../../native/open-library.js';
import { LibraryLog } from '../../native/library-log.js';
import { TensorRTLibrary } from './library.js';
import type { Flavor, LibraryFiles, OpenedTensorRT } from './library.js';
import { Classes } from './native-class.js';
import type { NativeObject } from './native-class.js';
import type { ClassName } from './methods.js';
import { Refused } from './refused.js';
import type { ParserProblem } from './refused.js';

/** ErrorCode of the ONNX parser, in its order. */
const PARSER_CODES = [
  'SUCCESS',
  'INTERNAL_ERROR',
  'MEM_ALLOC_FAILED',
  'MODEL_DESERIALIZE_FAILED',
  'INVALID_VALUE',
  'INVALID_GRAPH',
  'INVALID_NODE',
  'UNSUPPORTED_GRAPH',
  'UNSUPPORTED_NODE',
  'UNSUPPORTED_NODE_ATTR',
  'UNSUPPORTED_NODE_INPUT',
  'UNSUPPORTED_NODE_DATATYPE',
  'UNSUPPORTED_NODE_DYNAMIC',
  'UNSUPPORTED_NODE_SHAPE',
  'REFIT_FAILED',
];
/** MemoryPoolType, in its order. */
export const MEMORY_POOLS = [
  'workspace',
  'dlaManagedSram',
  'dlaLocalDram',
  'dlaGlobalDram',
  'tacticDram',
  'tacticSharedMemory',
] as const;
export type MemoryPoolName = (typeof MEMORY_POOLS)[number];
/** OptProfileSelector, in its order. */
const SELECTORS = ['min', 'opt', 'max'] as const;
const INPUT = 1;
/** ExecutionContextAllocationStrategy::kUSER_MANAGED */
const NO_MEMORY = 2;

/**
 * "The builder retains ownership of the created optimization profile": it destroys them itself
 * (NvInfer.h, createOptimizationProfile).
 */
const OWNED: ClassName = 'OptimizationProfile';
/** What goes only with what it was made of: a network's weights may be its parser's. */
const WITH_PARENT: ReadonlySet<ClassName> = new Set([OWNED, 'Parser']);

export interface TensorDescription {
  readonly name: string;
  readonly type: number;
  readonly shape: readonly number[];
  readonly dimensions: readonly (string | undefined)[];
}

export interface EngineTensor extends TensorDescription {
  readonly input: boolean;
  /** Whether its values are of the host: a shape tensor. */
  readonly host: boolean;
  /** Of each optimization profile; for inputs only. */
  readonly profiles: readonly {
    readonly min: readonly number[];
    readonly opt: readonly number[];
    readonly max: readonly number[];
  }[];
  /** How its elements lie, in TensorRT's words; empty where plainly, row by row. */
  readonly format: string;
}

export interface EngineDescription {
  readonly engine: number;
  readonly name: string;
  readonly layers: number;
  readonly profiles: number;
  readonly refittable: boolean;
  readonly tensors: readonly EngineTensor[];
  readonly deviceMemory: number;
  readonly extentBytes: 4 | 8;
}

/** Where the functions of an execution context are, and what they are called with. */
export interface ContextDescription {
  readonly context: number;
  readonly self: number;
  readonly functions: Readonly<
    Record<
      'setInputShape' | 'setTensorAddress' | 'enqueueV3' | 'setOptimizationProfileAsync',
      number
    >
  >;
  /** Addresses of the tensors' names. */
  readonly names: Readonly<Record<string, number>>;
}

export interface ConfigSettings {
  readonly flags: readonly string[];
  readonly withoutFlags: readonly string[];
  readonly pools: Readonly<Partial<Record<MemoryPoolName, number>>>;
  readonly optimizationLevel: number | undefined;
  readonly hardwareCompatibility: number | undefined;
  readonly profilingVerbosity: number | undefined;
  readonly maxAuxStreams: number | undefined;
  readonly timingCache: Uint8Array | undefined;
}

/** Weights of a refit: TensorRT's number of their type, and their bytes. */
export interface RefitWeights {
  readonly type: number;
  readonly count: number;
  readonly bytes: Uint8Array;
}

interface Held {
  readonly object: NativeObject;
  readonly library: Session;
  /** Memory that it points to. */
  readonly kept: unknown[];
  /** What it was made of, and may not outlive. */
  readonly parent: number | undefined;
  /** What was made of it, in order. */
  readonly children: Set<number>;
}

/** A library that is open, and how its classes are called. */
interface Session {
  readonly library: TensorRTLibrary;
  readonly classes: Classes;
  readonly logger: number;
}

export class Procedures {
  private readonly koffi: Koffi;
  private readonly said: LibraryLog;
  private readonly sessions: Session[] = [];
  private readonly held = new Map<number, Held>();
  private next = 1;
  private setContext: ((context: number) => number) | undefined = undefined;

  constructor(koffiPath: string | undefined, said: SharedArrayBuffer) {
    this.koffi = loadKoffi(koffiPath);
    this.said = new LibraryLog(said);
  }

  // The library

  open(
    flavor: Flavor,
    files: LibraryFiles,
    env: NodeJS.ProcessEnv,
  ): OpenedTensorRT & { session: number } {
    const machine = { ...thisMachine(), env };
    const library = new TensorRTLibrary(this.koffi, flavor, files, machine);
    const { version, title, path, key } = library;
    this.sessions.push({
      library,
      classes: new Classes(this.koffi, title, key, library.minor),
      logger: 0,
    });
    return { flavor, version, title, path, key, session: this.sessions.length - 1 };
  }

  setLogger(session: number, logger: number): void {
    this.sessions[session] = { ...this.sessions[session]!, logger };
  }

  /** Makes a device's context that of this thread: TensorRT uses the current one. */
  useDevice(context: number): void {
    if (this.setContext === undefined) {
      const { library } = openLibrary(this.koffi, KNOWN_LIBRARIES.cuda);
      this.setContext = library.func('int cuCtxSetCurrent(uintptr_t context)');
    }
    const status = this.setContext(context);
    if (status !== 0) throw new Refused('internal', `cuCtxSetCurrent returned ${status}`);
  }

  /** A program needs it no more. */
  release(number: number): void {
    const kind = this.held.get(number)?.object.kind;
    if (kind !== undefined && !WITH_PARENT.has(kind)) this.destroy(number);
  }

  /** Destroys an object, and before it whatever was made of it. */
  private destroy(number: number): void {
    const held = this.held.get(number);
    if (held === undefined) return;
    for (const child of [...held.children].reverse()) this.destroy(child);
    this.held.delete(number);
    if (held.parent !== undefined) this.held.get(held.parent)?.children.delete(number);
    if (held.object.kind !== OWNED) held.library.classes.destroy(held.object);
  }

  /** For tests of the tables: the class that an object is of. */
  typeName(number: number): string | undefined {
    const { object, library } = this.of(number);
    return library.classes.typeName(object);
  }

  // Building

  createBuilder(session: number): number {
    const known = this.sessions[session]!;
    const builder = this.hold(
      known,
      undefined,
      'Builder',
      this.heard(() => known.library.createBuilder(known.logger)),
      'createInferBuilder',
    );
    this.selfCheck(
      'Builder::getMaxThreads',
      this.call(builder, 'Builder', 'getMaxThreads'),
      1,
      1 << 16,
    );
    return builder;
  }

  createNetwork(
    builder: number,
    stronglyTyped: boolean | undefined,
  ): { network: number; stronglyTyped: boolean } {
    const { library } = this.of(builder);
    const { stronglyTyped: bit, alwaysStronglyTyped, networkFlags } = library.classes.generation;
    if (stronglyTyped === true && bit === undefined)
      throw new Refused(
        'unsupported',
        `${library.library.title} has no strongly typed networks: they came with version 10. ` +
          'Leave stronglyTyped out.',
      );
    if (stronglyTyped === false && alwaysStronglyTyped)
      throw new Refused(
        'unsupported',
        `${library.library.title} has strongly typed networks only. Leave stronglyTyped out.`,
      );
    const typed = stronglyTyped === true || alwaysStronglyTyped;
    const flags = networkFlags | (typed ? 1 << bit! : 0);
    const network = this.hold(
      library,
      builder,
      'NetworkDefinition',
      this.heard(() => this.call(builder, 'Builder', 'createNetworkV2', flags)),
      'createNetworkV2',
    );
    this.selfCheck(
      'NetworkDefinition::getNbInputs',
      this.call(network, 'NetworkDefinition', 'getNbInputs'),
      0,
      0,
    );
    return { network, stronglyTyped: typed };
  }

  createProfile(builder: number): number {
    return this.hold(
      this.of(builder).library,
      builder,
      'OptimizationProfile',
      this.heard(() => this.call(builder, 'Builder', 'createOptimizationProfile')),
      'createOptimizationProfile',
    );
  }

  createConfig(builder: number, settings: ConfigSettings): number {
    const { library } = this.of(builder);
    const { generation } = library.classes;
    const title = library.library.title;
    const config = this.hold(
      library,
      builder,
      'BuilderConfig',
      this.heard(() => this.call(builder, 'Builder', 'createBuilderConfig')),
      'createBuilderConfig',
    );
    this.selfCheck(
      'BuilderConfig::getNbOptimizationProfiles',
      this.call(config, 'BuilderConfig', 'getNbOptimizationProfiles'),
      0,
      0,
    );
    const apply = (
      argument: string,
      change: () => void,
      given: () => unknown,
      wanted: unknown,
    ): void => {
      this.heard(change);
      if (given() !== wanted)
        throw new Refused('argument', `${argument}: ${title} did not take ${String(wanted)}`, {
          argument,
          said: this.said.text,
        });
    };
    const flagOf = (flag: string): number => {
      const number = generation.flags[flag];
      if (number !== undefined) return number;
      const why =
        generation.alwaysStronglyTyped && /^(fp|bf|int)\d/.test(flag)
          ? ' Its networks are strongly typed: the model says what is computed in which type.'
          : '';
      throw new Refused('unsupported', `flags: ${title} has no flag ${flag}.${why}`, {
        argument: 'flags',
      });
    };
    try {
      for (const flag of settings.flags) {
        const number = flagOf(flag);
        apply(
          `flags: ${flag}`,
          () => this.call(config, 'BuilderConfig', 'setFlag', number),
          () => this.call(config, 'BuilderConfig', 'getFlag', number),
          true,
        );
      }
      for (const [pool, bytes] of Object.entries(settings.pools)) {
        const number = MEMORY_POOLS.indexOf(pool as MemoryPoolName);
        apply(
          `memoryPoolLimits.${pool}`,
          () => this.call(config, 'BuilderConfig', 'setMemoryPoolLimit', number, bytes),
          () => this.call(config, 'BuilderConfig', 'getMemoryPoolLimit', number),
          bytes,
        );
      }
      const {
        optimizationLevel,
        hardwareCompatibility,
        profilingVerbosity,
        maxAuxStreams,
        timingCache,
      } = settings;
      if (optimizationLevel !== undefined) {
        apply(
          'optimizationLevel',
          () =>
            this.call(config, 'BuilderConfig', 'setBuilderOptimizationLevel', optimizationLevel),
          () => this.call(config, 'BuilderConfig', 'getBuilderOptimizationLevel'),
          optimizationLevel,
        );
      }
      if (hardwareCompatibility !== undefined) {
        apply(
          'hardwareCompatibility',
          () =>
            this.call(
              config,
              'BuilderConfig',
              'setHardwareCompatibilityLevel',
              hardwareCompatibility,
            ),
          () => this.call(config, 'BuilderConfig', 'getHardwareCompatibilityLevel'),
          hardwareCompatibility,
        );
      }
      if (profilingVerbosity !== undefined) {
        apply(
          'profilingVerbosity',
          () => this.call(config, 'BuilderConfig', 'setProfilingVerbosity', profilingVerbosity),
          () => this.call(config, 'BuilderConfig', 'getProfilingVerbosity'),
          profilingVerbosity,
        );
      }
      if (maxAuxStreams !== undefined) {
        apply(
          'maxAuxStreams',
          () => this.call(config, 'BuilderConfig', 'setMaxAuxStreams', maxAuxStreams),
          () => this.call(config, 'BuilderConfig', 'getMaxAuxStreams'),
          maxAuxStreams,
        );
      }
      if (timingCache !== undefined) this.setTimingCache(config, timingCache);
    } catch (error) {
      this.destroy(config);
      throw error;
    }
    return config;
  }

  private setTimingCache(config: number, bytes: Uint8Array): void {
    const held = this.of(config);
    const cache = this.hold(
      held.library,
      config,
      'TimingCache',
      this.heard(() =>
        this.call(
          config,
          'BuilderConfig',
          'createTimingCache',
          bytes.length === 0 ? null : bytes,
          bytes.length,
        ),
      ),
      'createTimingCache',
      { argument: 'timingCache' },
    );
    this.succeed(
      'setTimingCache',
      this.heard(() =>
        this.call(config, 'BuilderConfig', 'setTimingCache', this.of(cache).object, false),
      ),
      { argument: 'timingCache' },
    );
  }

  memoryPoolLimit(config: number, pool: MemoryPoolName): number {
    return this.call(
      config,
      'BuilderConfig',
      'getMemoryPoolLimit',
      MEMORY_POOLS.indexOf(pool),
    ) as number;
  }

  serializeTimingCache(config: number): Uint8Array | undefined {
    const { library } = this.of(config);
    const cache = library.classes.object(
      'TimingCache',
      this.call(config, 'BuilderConfig', 'getTimingCache'),
    );
    return cache === undefined
      ? undefined
      : this.takeBytes(
          library,
          library.classes.call(cache, 'TimingCache', 'serialize'),
          'ITimingCache::serialize',
        );
  }

  setProfileShape(
    profile: number,
    name: string,
    shapes: Readonly<Record<'min' | 'opt' | 'max', readonly number[]>>,
  ): void {
    SELECTORS.forEach((selector, i) => {
      this.succeed(
        'setDimensions',
        this.heard(() =>
          this.call(profile, 'OptimizationProfile', 'setDimensions', name, i, shapes[selector]),
        ),
        { argument: `${name}.${selector}` },
      );
    });
  }

  profileShape(profile: number, name: string): Record<'min' | 'opt' | 'max', number[] | undefined> {
    const [min, opt, max] = SELECTORS.map(
      (_, i) =>
        this.call(profile, 'OptimizationProfile', 'getDimensions', name, i) as number[] | undefined,
    );
    return { min, opt, max };
  }

  setProfileValues(
    profile: number,
    name: string,
    values: Readonly<Record<'min' | 'opt' | 'max', readonly number[]>>,
  ): void {
    const wide = this.of(profile).library.classes.has('OptimizationProfile', 'setShapeValuesV2');
    SELECTORS.forEach((selector, i) => {
      const given = values[selector];
      const bytes = wide
        ? new Uint8Array(BigInt64Array.from(given, BigInt).buffer)
        : new Uint8Array(Int32Array.from(given).buffer);
      this.succeed(
        'setShapeValues',
        this.heard(() =>
          this.call(
            profile,
            'OptimizationProfile',
            wide ? 'setShapeValuesV2' : 'setShapeValues',
            name,
            i,
            bytes,
            given.length,
          ),
        ),
        { argument: `${name}.${selector}` },
      );
    });
  }

  setExtraMemoryTarget(profile: number, target: number): void {
    this.succeed(
      'setExtraMemoryTarget',
      this.heard(() => this.call(profile, 'OptimizationProfile', 'setExtraMemoryTarget', target)),
    );
  }

  extraMemoryTarget(profile: number): number {
    return this.call(profile, 'OptimizationProfile', 'getExtraMemoryTarget') as number;
  }

  profileIsValid(profile: number): boolean {
    return this.call(profile, 'OptimizationProfile', 'isValid') as boolean;
  }

  addProfile(config: number, profile: number): number {
    const index = this.heard(() =>
      this.call(
        config,
        'BuilderConfig',
        'addOptimizationProfile',
        this.made(profile, this.of(config).parent, 'OptimizationProfile'),
      ),
    ) as number;
    this.succeed('addOptimizationProfile', index >= 0, { argument: 'profile' });
    return index;
  }

  networkTensors(network: number): {
    inputs: TensorDescription[];
    outputs: TensorDescription[];
    layers: number;
    name: string;
  } {
    const list = (
      count: 'getNbInputs' | 'getNbOutputs',
      at: 'getInput' | 'getOutput',
    ): TensorDescription[] =>
      Array.from({ length: this.call(network, 'NetworkDefinition', count) as number }, (_, i) =>
        this.tensorDescription(network, at, i),
      );
    return {
      inputs: list('getNbInputs', 'getInput'),
      outputs: list('getNbOutputs', 'getOutput'),
      layers: this.call(network, 'NetworkDefinition', 'getNbLayers') as number,
      name: String(this.call(network, 'NetworkDefinition', 'getName')),
    };
  }

  private tensorDescription(
    network: number,
    at: 'getInput' | 'getOutput',
    index: number,
  ): TensorDescription {
    const { classes } = this.of(network).library;
    const tensor = classes.object('Tensor', this.call(network, 'NetworkDefinition', at, index))!;
    const shape = classes.call(tensor, 'Tensor', 'getDimensions') as number[];
    const dimensions = shape.map((_, axis) =>
      at === 'getInput' && classes.has('Tensor', 'getDimensionName')
        ? ((classes.call(tensor, 'Tensor', 'getDimensionName', axis) as string | null) ?? undefined)
        : undefined,
    );
    return {
      name: String(classes.call(tensor, 'Tensor', 'getName')),
      type: classes.call(tensor, 'Tensor', 'getType') as number,
      shape,
      dimensions,
    };
  }

  renameTensor(network: number, kind: 'input' | 'output', index: number, name: string): void {
    const { classes } = this.of(network).library;
    classes.call(
      classes.object(
        'Tensor',
        this.call(network, 'NetworkDefinition', kind === 'input' ? 'getInput' : 'getOutput', index),
      )!,
      'Tensor',
      'setName',
      name,
    );
  }

  createParser(network: number): number {
    const { library, object } = this.of(network, 'NetworkDefinition');
    return this.hold(
      library,
      network,
      'Parser',
      this.heard(() => library.library.createParser(object.address, library.logger)),
      'createNvOnnxParser',
    );
  }

  parse(parser: number, model: Uint8Array, path: string | undefined): void {
    const ok = this.heard(() =>
      this.call(parser, 'Parser', 'parse', model, model.length, path ?? null),
    );
    this.checkParsed(parser, 'Parser', 'IParser::parse', ok === true);
  }

  parseFile(parser: number, path: string): void {
    const ok = this.heard(() => this.call(parser, 'Parser', 'parseFromFile', path, 2));
    this.checkParsed(parser, 'Parser', 'IParser::parseFromFile', ok === true);
  }

  supportsOperator(parser: number, name: string): boolean {
    return this.call(parser, 'Parser', 'supportsOperator', name) as boolean;
  }

  private checkParsed(
    parser: number,
    kind: 'Parser' | 'ParserRefitter',
    call: string,
    ok: boolean,
  ): void {
    if (ok) return;
    const { said } = this;
    const { classes, library } = this.of(parser).library;
    const count = this.call(parser, kind, 'getNbErrors') as number;
    const problems = Array.from({ length: count }, (_, i): ParserProblem => {
      const problem = classes.object('ParserError', this.call(parser, kind, 'getError', i))!;
      const code = classes.call(problem, 'ParserError', 'code') as number;
      const named = (method: 'nodeName' | 'nodeOperator'): string | undefined =>
        (classes.has('ParserError', method)
          ? ((classes.call(problem, 'ParserError', method) as string | null) ?? '')
          : '') || undefined;
      const [nodeName, operator] = [named('nodeName'), named('nodeOperator')];
      return {
        code: PARSER_CODES[code] ?? String(code),
        message: String(classes.call(problem, 'ParserError', 'desc')),
        node: classes.call(problem, 'ParserError', 'node') as number,
        ...(nodeName === undefined ? {} : { nodeName }),
        ...(operator === undefined ? {} : { operator }),
        at: `${String(classes.call(problem, 'ParserError', 'func'))} (${String(
          classes.call(problem, 'ParserError', 'file'),
        )
          .split('/')
          .at(-1)!}:${String(classes.call(problem, 'ParserError', 'line'))})`,
      };
    });
    this.call(parser, kind, 'clearErrors');
    const lines = problems.map(
      ({ message, node, nodeName, operator }) =>
        `${node < 0 ? '' : `node ${node}${nodeName === undefined ? '' : ` '${nodeName}'`}${operator === undefined ? '' : ` (${operator})`}: `}${message}`,
    );
    throw new Refused(
      'parse',
      `The ONNX parser of ${library.title} does not take the model: ` +
        `${lines.length === 0 ? said.text || 'it gives no reason' : lines.join('; ')}`,
      { call, said: said.text, problems },
    );
  }

  build(builder: number, network: number, config: number, monitor: number | undefined): Uint8Array {
    const { library } = this.of(builder);
    const monitored =
      monitor !== undefined && library.classes.has('BuilderConfig', 'setProgressMonitor');
    if (monitored) this.call(config, 'BuilderConfig', 'setProgressMonitor', monitor);
    const plan = this.heard(() =>
      this.call(
        builder,
        'Builder',
        'buildSerializedNetwork',
        this.made(network, builder, 'NetworkDefinition'),
        this.made(config, builder, 'BuilderConfig'),
      ),
    );
    const { text } = this.said;
    if (monitored) this.call(config, 'BuilderConfig', 'setProgressMonitor', 0);
    if (plan === 0) throw this.failed('buildSerializedNetwork', library, text);
    return this.takeBytes(library, plan, 'buildSerializedNetwork');
  }

  isSupported(builder: number, network: number, config: number): boolean {
    return this.heard(() =>
      this.call(
        builder,
        'Builder',
        'isNetworkSupported',
        this.made(network, builder, 'NetworkDefinition'),
        this.made(config, builder, 'BuilderConfig'),
      ),
    ) as boolean;
  }

  // Running

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

  // What they have in common

  private of(number: number, kind?: ClassName): Held {
    const held = this.held.get(number);
    if (held === undefined)
      throw new Refused('closed', 'used after it was closed, or what it was made of was');
    if (kind !== undefined && held.object.kind !== kind)
      throw new Refused('argument', `expected a ${kind}, got a ${held.object.kind}`, {
        argument: kind,
      });
    return held;
  }

  /** An object that a builder made, and which is passed to it or to another of its own. */
  private made(number: number, builder: number | undefined, kind: ClassName): NativeObject {
    const { object, parent } = this.of(number, kind);
    if (parent !== builder)
      throw new Refused('argument', `expected a ${kind} of the same builder: another's`, {
        argument: kind,
      });
    return object;
  }

  private call(number: number, kind: ClassName, method: string, ...args: unknown[]): unknown {
    const { object, library } = this.of(number, kind);
    return library.classes.call(object, kind, method as never, ...(args as never[]));
  }

  /** What TensorRT says while it is called is what an error tells. */
  private heard<T>(call: () => T): T {
    this.said.open();
    try {
      return call();
    } finally {
      this.said.close();
    }
  }

  private hold(
    library: Session,
    parent: number | undefined,
    kind: ClassName,
    pointer: unknown,
    call: string,
    details: { argument?: string } = {},
  ): number {
    const object = library.classes.object(kind, pointer);
    if (object === undefined) throw this.failed(call, library, this.said.text, details);
    const number = this.next++;
    this.held.set(number, { object, library, kept: [], parent, children: new Set() });
    if (parent !== undefined) this.of(parent).children.add(number);
    return number;
  }

  private succeed(call: string, ok: unknown, details: { argument?: string } = {}): void {
    if (ok === true) return;
    throw new Refused(
      details.argument === undefined ? kindOf(this.said.text) : 'argument',
      `${details.argument === undefined ? '' : `${details.argument}: `}${call} ` +
        `failed${this.said.text === '' ? '' : `: ${this.said.text}`}`,
      { call, said: this.said.text, ...details },
    );
  }

  private failed(
    call: string,
    { library }: Session,
    said: string,
    details: { argument?: string } = {},
  ): Refused {
    return new Refused(
      kindOf(said),
      `${call} of ${library.title} failed: ${said === '' ? 'it gives no reason' : said}`,
      { call, said, ...details },
    );
  }

  /**
   * A getter that can do no harm gave what it must give: otherwise the tables are another
   * version's.
   */
  private selfCheck(what: string, value: unknown, low: number, high: number): void {
    if (typeof value === 'number' && value >= low && value <= high) return;
    throw new Refused(
      'unsupported',
      `${what} gave ${String(value)}, and should give ` +
        `${low === high ? low : `a number from ${low} to ${high}`}: this build of TensorRT is ` +
        'not one whose tables are known.',
    );
  }

  private takeBytes({ classes, library }: Session, pointer: unknown, call: string): Uint8Array {
    const memory = classes.object('HostMemory', pointer);
    if (memory === undefined)
      throw new Refused('library', `${call} of ${library.title} failed: ${this.said.text}`, {
        call,
        said: this.said.text,
      });
    const bytes = classes.bytes(
      Number(classes.call(memory, 'HostMemory', 'data')),
      Number(classes.call(memory, 'HostMemory', 'size')),
    );
    classes.destroy(memory);
    return bytes;
  }
}

/**
 * TensorRT's own words for too little memory, and for a GPU that TensorRT for RTX has no code for.
 */
function kindOf(said: string): 'memory' | 'unsupported' | 'library' {
  if (
    /out of memory|OutOfMemory|insufficient memory|cudaErrorMemoryAllocation|bad_alloc/i.test(said)
  )
    return 'memory';
  return /cannot run on this GPU, which has compute capability|does not support this compute capability/i.test(
    said,
  )
    ? 'unsupported'
    : 'library';
}
