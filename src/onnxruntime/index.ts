/**
 * Inference by ONNX Runtime, off the JavaScript thread, on both devices. The library is found where
 * `onnxruntime-node` is installed (its JavaScript is not used, since its `run()` blocks the event
 * loop), or the Python packages `onnxruntime` and `onnxruntime-gpu`.
 *
 * @packageDocumentation
 */
export { OnnxEngine, findOnnxRuntime, loadOnnxEngine } from './engine.js';
export type {
  ConvolutionSearch,
  InputShapes,
  ModelSource,
  OnnxRuntimeOptions,
  OptimisationLevel,
} from './options.js';
export type { OnnxContext } from './context.js';
export type { LibraryInfo, ProviderName } from './thread/messages.js';
export type {
  Engine,
  EngineContext,
  EngineInputs,
  InferOptions,
  NamedTensors,
  TensorInfo,
} from '../engine/engine.js';
