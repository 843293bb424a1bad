/** BuilderConfig: the settings of a build. */
import { CudaArgumentError } from '../core/index.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { isBytes } from '../ground/other-realms.js';
import { NativeHandle } from './native-handle.js';
import { OptimizationProfile } from './optimization-profile.js';
import type { ConfigSettings, MemoryPoolName } from './thread/descriptions.js';

export type { MemoryPoolName } from './thread/descriptions.js';

/**
 * Flags, by BuilderFlag's names. A flag that the version lacks is refused. `fp16`, `bf16`, `int8`,
 * `fp8` and others of precision belong to weakly typed networks: up to version 10 and TensorRT for
 * RTX 1.4.
 */
export type BuilderFlag =
  | 'fp16'
  | 'bf16'
  | 'int8'
  | 'fp8'
  | 'int4'
  | 'fp4'
  | 'tf32'
  | 'debug'
  | 'gpuFallback'
  | 'refit'
  | 'disableTimingCache'
  | 'sparseWeights'
  | 'obeyPrecisionConstraints'
  | 'preferPrecisionConstraints'
  | 'directIO'
  | 'rejectEmptyAlgorithms'
  | 'versionCompatible'
  | 'excludeLeanRuntime'
  | 'errorOnTimingCacheMiss'
  | 'disableCompilationCache'
  | 'stripPlan'
  | 'refitIdentical'
  | 'weightStreaming'
  | 'refitIndividual'
  | 'strictNans'
  | 'monitorMemory'
  | 'editableTimingCache';

/** HardwareCompatibilityLevel, in its order. */
const HARDWARE = ['none', 'amperePlus', 'sameComputeCapability'] as const;
/** ProfilingVerbosity, in its order. */
const VERBOSITIES = ['layerNamesOnly', 'none', 'detailed'] as const;
const POOLS: readonly MemoryPoolName[] = [
  'workspace',
  'dlaManagedSram',
  'dlaLocalDram',
  'dlaGlobalDram',
  'tacticDram',
  'tacticSharedMemory',
];

export interface BuilderConfigOptions {
  readonly flags?: readonly BuilderFlag[];
  /** The limit of each pool, in bytes. */
  readonly memoryPoolLimits?: Readonly<Partial<Record<MemoryPoolName, number>>>;
  /** From 0 to 5. */
  readonly optimizationLevel?: number;
  /** GPUs besides this one that the engine is to run on. */
  readonly hardwareCompatibility?: (typeof HARDWARE)[number];
  /** How much the engine inspector reports. */
  readonly profilingVerbosity?: (typeof VERBOSITIES)[number];
  readonly maxAuxStreams?: number;
  /** The bytes of {@link BuilderConfig.serializeTimingCache}, or an empty array to begin with. */
  readonly timingCache?: Uint8Array;
}

/**
 * The settings of a build. `builder.createConfig(options)` makes it. IBuilderConfig
 *
 * @example
 * ```ts no-run
 * await using builder = await Builder.create();
 * await using config: BuilderConfig = await builder.createConfig({
 *   flags: ['refit'],
 *   memoryPoolLimits: { workspace: 2 ** 30 },
 * });
 * console.log(await config.memoryPoolLimit('workspace')); // 1073741824
 * ```
 */
export class BuilderConfig extends NativeHandle {
  /** @internal */
  constructor(builder: NativeHandle, number: number) {
    super(builder.thread, number, 'a builder configuration', builder);
  }

  /**
   * Adds a profile; returns its index, by which contexts choose it. addOptimizationProfile
   *
   * @throws CudaArgumentError where it is not complete or its extents contradict one another
   */
  addOptimizationProfile(profile: OptimizationProfile): Promise<number> {
    if (!(profile instanceof OptimizationProfile))
      throw invalid('profile', 'an OptimizationProfile', profile);
    return this.thread.call('addProfile', this.handle, profile.handle);
  }

  /** Returns the limit of a pool, in bytes. getMemoryPoolLimit */
  memoryPoolLimit(pool: MemoryPoolName): Promise<number> {
    if (!POOLS.includes(pool)) throw invalid('pool', `one of ${POOLS.join(', ')}`, pool);
    return this.thread.call('memoryPoolLimit', this.handle, pool);
  }

  /**
   * Returns the measurements of kernels' speeds, for the next build on this GPU; undefined where
   * there is no timing cache. ITimingCache::serialize
   */
  serializeTimingCache(): Promise<Uint8Array | undefined> {
    return this.thread.call('serializeTimingCache', this.handle);
  }
}

/**
 * Checks the options.
 *
 * @throws CudaArgumentError for an unknown option or a wrong value
 */
export function settingsOf(options: BuilderConfigOptions): ConfigSettings {
  checkOptions('options', options, [
    'flags',
    'memoryPoolLimits',
    'optimizationLevel',
    'hardwareCompatibility',
    'profilingVerbosity',
    'maxAuxStreams',
    'timingCache',
  ]);
  const {
    flags = [],
    memoryPoolLimits = {},
    optimizationLevel,
    hardwareCompatibility,
    profilingVerbosity,
    maxAuxStreams,
    timingCache,
  } = options;
  if (!Array.isArray(flags)) throw invalid('options.flags', 'a list of flags', flags);
  checkOptions('options.memoryPoolLimits', memoryPoolLimits, POOLS);
  for (const [pool, bytes] of Object.entries(memoryPoolLimits))
    checkInteger(`options.memoryPoolLimits.${pool}`, bytes, 0, Number.MAX_SAFE_INTEGER);
  if (optimizationLevel !== undefined)
    checkInteger('options.optimizationLevel', optimizationLevel, 0, 5);
  if (maxAuxStreams !== undefined) checkInteger('options.maxAuxStreams', maxAuxStreams, 0, 128);
  if (timingCache !== undefined && !isBytes(timingCache))
    throw new CudaArgumentError(
      'options.timingCache',
      'options.timingCache: expected a Uint8Array.',
    );
  return {
    flags: [...(flags as readonly string[])],
    withoutFlags: [],
    pools: memoryPoolLimits,
    optimizationLevel,
    maxAuxStreams,
    timingCache,
    hardwareCompatibility: choice('options.hardwareCompatibility', HARDWARE, hardwareCompatibility),
    profilingVerbosity: choice('options.profilingVerbosity', VERBOSITIES, profilingVerbosity),
  };
}

function choice(
  argument: string,
  names: readonly string[],
  name: string | undefined,
): number | undefined {
  if (name === undefined) return undefined;
  const number = names.indexOf(name);
  if (number === -1) throw invalid(argument, `one of ${names.join(', ')}`, name);
  return number;
}
