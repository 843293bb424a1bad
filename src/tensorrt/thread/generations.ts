/**
 * The differences between TensorRT's versions besides the order of methods: structures, numbers of
 * flags, interfaces.
 */
import { SLOTS } from './slots.js';

/** A row of {@link SLOTS}. */
export type SlotKey = keyof typeof SLOTS;

export interface Generation {
  /** Bytes of an extent in Dims. */
  readonly extentBytes: 4 | 8;
  /**
   * Slots of the functions that TensorRT calls. In ILogger and IProfiler it is the first own one,
   * which since version 11 comes after those of IVersionedInterface (language, interface,
   * destructor). In IOutputAllocator they are the functions that return memory, which are called
   * with the same arguments (and a stream after them), and the one that receives a shape; `version`
   * is getInterfaceVersion where the interface has that.
   */
  readonly callbacks: {
    readonly log: number;
    readonly profiler: number;
    readonly output: {
      readonly version?: number;
      readonly reallocate: readonly number[];
      readonly notifyShape: number;
    };
  };
  /** BuilderFlag */
  readonly flags: Readonly<Record<string, number>>;
  /**
   * The bit of createNetworkV2's flags that makes a network strongly typed; undefined where there
   * is none.
   */
  readonly stronglyTyped: number | undefined;
  /** Whether networks are always strongly typed. */
  readonly alwaysStronglyTyped: boolean;
  /** Bits that every network is created with. */
  readonly networkFlags: number;
}

const FLAGS_8 = {
  fp16: 0,
  int8: 1,
  debug: 2,
  gpuFallback: 3,
  refit: 5,
  disableTimingCache: 6,
  tf32: 7,
  sparseWeights: 8,
  obeyPrecisionConstraints: 10,
  preferPrecisionConstraints: 11,
  directIO: 12,
  rejectEmptyAlgorithms: 13,
  versionCompatible: 15,
  excludeLeanRuntime: 16,
  fp8: 17,
};
const FLAGS_10 = {
  fp16: 0,
  int8: 1,
  debug: 2,
  gpuFallback: 3,
  refit: 4,
  disableTimingCache: 5,
  tf32: 6,
  sparseWeights: 7,
  obeyPrecisionConstraints: 9,
  preferPrecisionConstraints: 10,
  directIO: 11,
  rejectEmptyAlgorithms: 12,
  versionCompatible: 13,
  excludeLeanRuntime: 14,
  fp8: 15,
  errorOnTimingCacheMiss: 16,
  bf16: 17,
  disableCompilationCache: 18,
  stripPlan: 19,
  refitIdentical: 20,
  weightStreaming: 21,
  int4: 22,
  refitIndividual: 23,
  strictNans: 24,
  monitorMemory: 25,
  fp4: 26,
  editableTimingCache: 27,
};
const FLAGS_11 = {
  debug: 2,
  gpuFallback: 3,
  refit: 4,
  disableTimingCache: 5,
  tf32: 6,
  sparseWeights: 7,
  directIO: 11,
  versionCompatible: 12,
  excludeLeanRuntime: 13,
  errorOnTimingCacheMiss: 15,
  disableCompilationCache: 17,
  stripPlan: 18,
  refitIdentical: 19,
  weightStreaming: 20,
  refitIndividual: 22,
  strictNans: 23,
  monitorMemory: 24,
  editableTimingCache: 26,
};

const GENERATION_8: Generation = {
  extentBytes: 4,
  callbacks: { log: 0, profiler: 0, output: { version: 0, reallocate: [1], notifyShape: 2 } },
  flags: FLAGS_8,
  stronglyTyped: undefined,
  alwaysStronglyTyped: false,
  networkFlags: 1,
};
const GENERATION_10: Generation = {
  // reallocateOutput, and reallocateOutputAsync, which replaces it.
  extentBytes: 8,
  callbacks: { log: 0, profiler: 0, output: { reallocate: [4, 5], notifyShape: 6 } },
  flags: FLAGS_10,
  stronglyTyped: 1,
  alwaysStronglyTyped: false,
  networkFlags: 0,
};
const GENERATION_11: Generation = {
  extentBytes: 8,
  callbacks: { log: 4, profiler: 4, output: { reallocate: [4], notifyShape: 5 } },
  flags: FLAGS_11,
  stronglyTyped: 0,
  alwaysStronglyTyped: true,
  networkFlags: 0,
};

const GENERATIONS: Readonly<Record<SlotKey, Generation>> = {
  '8': GENERATION_8,
  '10': GENERATION_10,
  '11': GENERATION_11,
  'rtx-1.3': GENERATION_10,
  'rtx-1.4': GENERATION_10,
  'rtx-1.5': GENERATION_11,
  'rtx-1.6': GENERATION_11,
  'rtx-1.7': GENERATION_11,
};

export function generationOf(key: SlotKey): Generation {
  return GENERATIONS[key];
}

/**
 * Decodes a version of getInferLibVersion: 8601 is 8.6.1, from 10 on 101600 is 10.16.0; for
 * TensorRT for RTX 10701 is 1.7.1.
 */
export function versionOf(number: number): { major: number; minor: number; patch: number } {
  // Up to version 9 the factors are a thousand, a hundred and one; RTX began with the newer way.
  const [first, second] = number < 10_000 ? [1000, 100] : [10_000, 100];
  return {
    major: Math.floor(number / first),
    minor: Math.floor((number % first) / second),
    patch: number % second,
  };
}

/**
 * Returns the key of a version's tables; undefined where there are none. A major version of
 * TensorRT only adds methods, at the ends; TensorRT for RTX removes some in minor ones.
 */
export function slotKeyOf(
  rtx: boolean,
  { major, minor }: { major: number; minor: number },
): SlotKey | undefined {
  const key = rtx ? `rtx-${major}.${minor}` : major === 8 && minor !== 6 ? '' : String(major);
  return key in SLOTS ? (key as SlotKey) : undefined;
}
