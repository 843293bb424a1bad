// The descriptions of engines and settings in messages between TensorRT's threads and the rest of
// the package.

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
