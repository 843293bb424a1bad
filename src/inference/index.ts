/**
 * Inference with one interface on both devices: TensorRT where it is installed and supports the
 * GPU, ONNX Runtime otherwise.
 *
 * @packageDocumentation
 */
export { loadEngine } from './load-engine.js';
export type { EngineKind, LoadEngineOptions } from './load-engine.js';
export type {
  InputShapes,
  ModelSource,
  OnnxRuntimeOptions,
  OptimisationLevel,
  ProviderName,
} from '../onnxruntime/index.js';
export type {
  Engine,
  EngineContext,
  EngineInputs,
  InferOptions,
  NamedTensors,
  TensorInfo,
} from '../engine/engine.js';
export { Batcher, EngineBatcher, ItemFailure } from '../engine/batching/index.js';
export type {
  BatchRequestOptions,
  BatcherOptions,
  BatcherStatistics,
  RunBatch,
} from '../engine/batching/index.js';
