// Procedures that build engines: networks, parsers, configurations and profiles.
import { MEMORY_POOLS } from './descriptions.js';
import type { ConfigSettings, MemoryPoolName, TensorDescription } from './descriptions.js';
import { HeldObjects } from './held-objects.js';
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
/** OptProfileSelector, in its order. */
export const SELECTORS = ['min', 'opt', 'max'] as const;

export class BuilderProcedures extends HeldObjects {
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

  protected checkParsed(
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
    const lines = problems.map(({ message, node, nodeName, operator }) => {
      if (node < 0) return message;
      const name = nodeName === undefined ? '' : ` '${nodeName}'`;
      return `node ${node}${name}${operator === undefined ? '' : ` (${operator})`}: ${message}`;
    });
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
}
