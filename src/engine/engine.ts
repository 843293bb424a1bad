/**
 * The interface of a model that is ready to run, whichever library runs it: TensorRT
 * (`async-cuda/tensorrt`) or ONNX Runtime (`async-cuda/onnxruntime`). A program that takes an
 * {@link Engine} runs on both, with and without a GPU.
 */
import type { DTypeName, CoreDevice } from '../core/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { AnyTensor } from '../tensor/index.js';

/** An input or an output of a model. */
export interface TensorInfo {
  readonly name: string;
  readonly dtype: DTypeName;
  /** Extents; -1 where each run's input determines it. */
  readonly shape: readonly number[];
  /**
   * The names of the extents that are -1, by axis, where the model names them:
   * `['batch', undefined, …]`. Two extents of one name are equal where the engine checks that: see
   * {@link Engine.strictShapes}.
   */
  readonly dimensions?: readonly (string | undefined)[];
}

/** Tensors by the names that the model gives them. */
export type NamedTensors = Readonly<Record<string, AnyTensor>>;
/**
 * Inputs by name: tensors, which the run does not close, or operations that make them, whose
 * tensors are closed after the run.
 */
export type EngineInputs = Readonly<Record<string, OrOp<AnyTensor>>>;

/** Options of one run. */
export interface InferOptions {
  /**
   * Outputs to write to, by name. Their shapes are checked. The run makes the others, which the
   * caller owns.
   */
  readonly outputs?: NamedTensors;
  /**
   * Cancels: a run that has not begun does not begin, and one that is under way is ended where the
   * library can do that. The outputs are undefined then, and the operation rejects with the
   * signal's reason.
   */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A context runs one run at a time. Of two operations of one context that would run at once, the
 * second fails with code `ERR_CUDA_BUSY`. An engine has as many contexts as are created.
 */
export interface EngineContext extends AsyncDisposable {
  readonly engine: Engine;
  /**
   * Returns the model's run on these inputs, as an operation: it begins when the operation is
   * awaited, alone or as part of another one. Names, dtypes, ranks and extents are checked when it
   * is made, and those of inputs that operations make when it runs.
   */
  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors>;
  /** Frees the context's memory after its last run. */
  close(): Promise<void>;
}

/** A model, ready to run on one device. */
export interface Engine extends AsyncDisposable {
  /** The library that runs the model. */
  readonly kind: 'tensorrt' | 'onnxruntime';
  /** The library and its version, e.g. `ONNX Runtime 1.30.0 (CPU)`. */
  readonly description: string;
  readonly device: CoreDevice;
  readonly inputs: readonly TensorInfo[];
  readonly outputs: readonly TensorInfo[];
  /**
   * Whether extents of one name have to be equal, and outputs have the shapes that the model
   * declares. Default: true. It is false for ONNX Runtime, which takes both as hints, unless the
   * engine was loaded with `strictShapes`.
   */
  readonly strictShapes?: boolean;
  /** Creates a context, which the caller closes. */
  createContext(): Promise<EngineContext>;
  /**
   * Returns the model's run on these inputs, in a free context of the engine's own, or in a new
   * one: as many as run at once, up to the engine's limit, after which runs wait for one another.
   */
  infer(inputs: EngineInputs, options?: InferOptions): DeviceOp<NamedTensors>;
  /** Waits for the runs that are under way, then frees all memory, contexts included. */
  close(): Promise<void>;
}
