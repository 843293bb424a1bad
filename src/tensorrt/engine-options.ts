/** The options of making an engine from a model. */

/** Extents of an input between which an engine works, and those that it is tuned for. */
export interface ShapeRange {
  readonly min: readonly number[];
  readonly opt: readonly number[];
  readonly max: readonly number[];
}

/**
 * One of NVIDIA's libraries: TensorRT, its lean runtime (which does not build), or TensorRT for
 * RTX.
 */
export type TensorRTFlavor = 'tensorrt' | 'lean' | 'rtx';

export interface BuildProgress {
  /**
   * TensorRT's name of the phase, after the names of the phases that contain it: `Building
   * Engine/Tactic selection`.
   */
  readonly phase: string;
  readonly step: number;
  readonly steps: number;
}

/** Options of {@link loadTensorRTEngine} and `buildEngine`. */
export interface LoadTensorRTEngineOptions {
  /**
   * Ranges of the inputs that have dynamic extents, by name. An input that is not listed has fixed
   * extents, or only a dynamic first one: a batch, from 1 to 32 and tuned for 8, or the batch of
   * the ranges that are given for other inputs.
   */
  readonly shapes?: Readonly<Record<string, ShapeRange>>;
  /**
   * The types in which float32 layers may be computed, where the library has flags for them: up to
   * version 10. From 11 on, and in TensorRT for RTX, networks are strongly typed: the model's types
   * are used.
   */
  readonly precision?: readonly ('fp16' | 'bf16' | 'int8' | 'fp8')[];
  /**
   * Whether each layer computes in the types of the model. Default: true where the version demands
   * it, otherwise false.
   */
  readonly stronglyTyped?: boolean;
  /** The most bytes of a layer's workspace. Default: TensorRT's, all of the device's memory. */
  readonly workspace?: number;
  /** Time spent on the search for fast kernels, from 0 to 5. Default: TensorRT's, 3. */
  readonly optimizationLevel?: number;
  /** The library. Default: the first of TensorRT and TensorRT for RTX that is installed. */
  readonly flavor?: TensorRTFlavor;
  /** Runs at once of `engine.infer`, each with a context's memory. Default 2. */
  readonly contexts?: number;
  /**
   * The folder in which built engines are cached; `false` caches none. Default: the cache's folder,
   * beside compiled kernels. A folder that other users may write to is not used: plans are run as
   * code.
   */
  readonly cache?: string | false;
  /** Called as the build proceeds. */
  readonly progress?: (progress: BuildProgress) => void;
  /** Ends the build at its next step. */
  readonly signal?: AbortSignal;
}

/** Whether TensorRT can be used. */
export interface TensorRTInfo {
  readonly available: boolean;
  readonly flavor?: TensorRTFlavor;
  /** The version, as `10.16.0`. */
  readonly version?: string;
  /** Why it is not available, and what to do. */
  readonly reason?: string;
}
