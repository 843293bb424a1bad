/** What a program says of an engine that it wants made of a model. */

/** Extents of an input between which an engine works, and those that it is tuned for. */
export interface ShapeRange {
  readonly min: readonly number[];
  readonly opt: readonly number[];
  readonly max: readonly number[];
}

/**
 * Which of NVIDIA's libraries: TensorRT, its lean runtime (which builds nothing), or TensorRT for
 * RTX.
 */
export type TensorRTFlavor = 'tensorrt' | 'lean' | 'rtx';

export interface BuildProgress {
  /**
   * TensorRT's name of what it does, the name of what that is part of before it: `Building
   * Engine/Tactic selection`.
   */
  readonly phase: string;
  readonly step: number;
  readonly steps: number;
}

/** What {@link loadTensorRTEngine} and `buildEngine` take. */
export interface LoadTensorRTEngineOptions {
  /**
   * Ranges of the inputs that have dynamic extents, by name. An input without one has fixed
   * extents, or a dynamic first one alone: a batch, from 1 to 32 and tuned for 8, or as in the
   * ranges that are given for other inputs.
   */
  readonly shapes?: Readonly<Record<string, ShapeRange>>;
  /**
   * What float32 layers may be computed in, where the library takes it as a flag: up to version 10.
   * From 11 on, and in TensorRT for RTX, networks are strongly typed: what the model says is what
   * is computed.
   */
  readonly precision?: readonly ('fp16' | 'bf16' | 'int8' | 'fp8')[];
  /**
   * Whether each layer computes in the types that the model gives. Default: as the version demands,
   * else false.
   */
  readonly stronglyTyped?: boolean;
  /** Bytes that a layer may use for its work. Default: TensorRT's, all of the device's memory. */
  readonly workspace?: number;
  /** Time spent on looking for fast kernels, from 0 to 5. Default: TensorRT's, 3. */
  readonly optimizationLevel?: number;
  /** Which library. Default: the first of TensorRT and TensorRT for RTX that is there. */
  readonly flavor?: TensorRTFlavor;
  /** Runs at once of `engine.run`, each with a context's memory. Default 2. */
  readonly contexts?: number;
  /**
   * Where built engines are kept; `false` keeps none. Default: the cache's folder, beside compiled
   * kernels. A folder that other users may write to is not used: plans are run as code.
   */
  readonly cache?: string | false;
  /** Called as the build goes on. */
  readonly progress?: (progress: BuildProgress) => void;
  /** Ends the build at its next step. */
  readonly signal?: AbortSignal;
}

/** Whether TensorRT can be used. */
export interface TensorRTInfo {
  readonly available: boolean;
  readonly flavor?: TensorRTFlavor;
  /** e.g. `10.16.0`. */
  readonly version?: string;
  /** Where it is not available: why, and what to do. */
  readonly reason?: string;
}
