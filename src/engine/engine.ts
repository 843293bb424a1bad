/**
 * What a model that is ready to run is, whichever library runs it: TensorRT (`async-cuda/tensorrt`)
 * or ONNX Runtime (`async-cuda/onnxruntime`). A program that takes an {@link Engine} runs on both,
 * with and without a GPU.
 */
import type { DTypeName, CoreDevice } from '../core/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { AnyTensor } from '../tensor/index.js';

/** A tensor that a model takes or gives. */
export interface TensorInfo {
  readonly name: string;
  readonly dtype: DTypeName;
  /** Extents; -1 where it is given with each input. */
  readonly shape: readonly number[];
  /**
   * The names of the extents that are -1 where the model names them, by axis: `['batch', undefined,
   * …]`. Two that are named alike are equal where the engine checks that: see
   * {@link Engine.strictShapes}.
   */
  readonly dimensions?: readonly (string | undefined)[];
}

/** Tensors by the names that the model gives them. */
export type NamedTensors = Readonly<Record<string, AnyTensor>>;
/**
 * Inputs by name: tensors, which the run does not close, or operations that make them, whose
 * tensors are closed behind the run.
 */
export type EngineInputs = Readonly<Record<string, OrOp<AnyTensor>>>;

/** What one run may be given besides its inputs. */
export interface InferOptions {
  /**
   * Outputs to write to, by name; their shapes are checked. The run makes the others, which the
   * caller owns.
   */
  readonly outputs?: NamedTensors;
  /**
   * Gives up: a run that has not begun does not begin, and one that is under way is ended where the
   * library can do that. What it would have written is undefined then, and the operation rejects
   * with the signal's reason.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * What runs of one kind share: one run at a time. Two operations of one context that would run at
 * once are an error of the second, with code `ERR_CUDA_BUSY`; an engine has as many contexts as are
 * made.
 */
export interface EngineContext extends AsyncDisposable {
  readonly engine: Engine;
  /**
   * The model on these inputs, as an operation: nothing happens until it is awaited or is part of
   * what is. Names, dtypes, ranks and extents are checked when it is made, and again when it runs
   * for what operations make.
   */
  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors>;
  /** Gives back its memory, behind its last run. */
  close(): Promise<void>;
}

/** A model, ready to run on one device. */
export interface Engine extends AsyncDisposable {
  /** What runs it. */
  readonly kind: 'tensorrt' | 'onnxruntime';
  /** The library and its version, e.g. `ONNX Runtime 1.30.0 (CPU)`. */
  readonly description: string;
  readonly device: CoreDevice;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  /**
   * Whether extents of one name have to be equal, and outputs have the shapes that the model
   * declares. Default: true. False of ONNX Runtime, to which both are hints, unless it was loaded
   * with `strictShapes`.
   */
  readonly strictShapes?: boolean;
  createContext(): Promise<EngineContext>;
  /**
   * The model on these inputs, in a context of the engine's own that is free, or a new one: as many
   * as run at once, up to the engine's limit, after which runs wait for one another.
   */
  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors>;
  /** Waits for the runs that are under way, then gives back all memory, contexts included. */
  close(): Promise<void>;
}
