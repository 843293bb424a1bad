/**
 * NVIDIA's TensorRT: engines built from ONNX models, run in stream order.
 *
 * @packageDocumentation
 */
export { isTensorRTAvailable, loadTensorRTEngine } from './load-engine.js';
export { Builder } from './builder.js';
export type { BuildOptions, BuilderOptions } from './builder.js';
export { BuilderConfig } from './builder-config.js';
export type { BuilderConfigOptions, BuilderFlag, MemoryPoolName } from './builder-config.js';
export { NetworkDefinition } from './network-definition.js';
export type { NetworkTensors } from './network-definition.js';
export { OnnxParser } from './onnx-parser.js';
export { OptimizationProfile } from './optimization-profile.js';
export { Runtime } from './runtime.js';
export type { DeserializeOptions, RuntimeOptions } from './runtime.js';
export { TensorRTEngine } from './tensorrt-engine.js';
export type { WeightStreaming, Weights } from './tensorrt-engine.js';
export { ExecutionContext } from './execution-context.js';
export type { LayerTime } from './execution-context.js';
export { OnnxParserError } from './errors.js';
export type { ParserProblem } from './errors.js';
export type { OpenTensorRTOptions } from './library.js';
export type { TensorRTLogMessage } from './notifications.js';
export type {
  BuildProgress,
  LoadTensorRTEngineOptions,
  ShapeRange,
  TensorRTFlavor,
  TensorRTInfo,
} from './engine-options.js';
export type {
  Engine,
  EngineContext,
  EngineInputs,
  InferOptions,
  NamedTensors,
  TensorInfo,
} from '../engine/engine.js';
