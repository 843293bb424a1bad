/**
 * Kernels written in TypeScript: their declarations, compilation, caches and launches.
 *
 * @packageDocumentation
 */
export type {
  BodyArguments,
  BodyTensor,
  CallArguments,
  CallResult,
  GpuWith,
  ReadElements,
  WrittenElements,
} from './body-types.js';
export type { CompileTarget } from './compiler.js';
export { DeviceFunction } from './device-function.js';
export { deviceFunction } from './define-device-function.js';
export type { DeviceSignature } from './device-function.js';
export { elementKernel } from './element-kernel.js';
export type {
  ElementKernel,
  ElementKernelChanges,
  ElementKernelOptions,
} from './element-kernel.js';
export type {
  ArithmeticGpu,
  BodyElements,
  ElementArguments,
  ElementCallResult,
  ElementGpu,
  ElementGpuWith,
  ElementParam,
  ElementParams,
  ElementResult,
  TensorShapes,
} from './element-types.js';
export { kernel } from './kernel.js';
export type {
  CallOptions,
  CodeOptions,
  KernelChanges,
  KernelCodeOptions,
  KernelFunction,
  KernelOptions,
  KernelTarget,
  LaunchDefaults,
  OtherUses,
} from './kernel.js';
export { inout, input, output, struct } from '../core/index.js';
export type {
  HostValue,
  Rank,
  StructDeclaration,
  StructFields,
  StructValue,
  StructsParam,
  TensorParam,
} from '../core/index.js';
export type { KernelParam, KernelParams } from './parameters.js';
export type { KernelReport, TileReport } from './report.js';
export type { TileBackend } from './tile-ir-launch.js';
export type {
  Candidate,
  Comparison,
  ShapedTuneOptions,
  ShapedTuning,
  TuneOptions,
  TuneSettings,
  TunedCandidate,
  Tuning,
} from './tuning.js';
export type { SimulatedArguments, SimulatedTensor, SimulationOptions } from './simulation.js';
export { SimulationError } from '../compiler/simulate/failure.js';
export type { FailureKind, Index3, SourcePosition } from '../compiler/simulate/failure.js';
export type { ShapedCallOptions } from './shaped-kernel.js';
export { tileKernel } from './tile-kernel.js';
export type { TensorAxes, TileExtent, TileSize } from './tile-cuts.js';
export type { TileKernel, TileKernelChanges, TileKernelOptions } from './tile-kernel.js';
export type {
  LoadedTile,
  OtherTile,
  StoredTile,
  Tile,
  TileArguments,
  TileAxesOption,
  DotOptions,
  TileExtents,
  TileLoops,
  TilePlaces,
  TileRange,
  TileStep,
  TileWith,
  WalkedAxis,
} from './tile-types.js';
export type { Usable, Uses } from './uses.js';
export type {
  ArrayMethod,
  ArrayMethods,
  AsyncCopies,
  Barriers,
  Cluster,
  TensorCopies,
  WarpGroup,
  AtomicTarget,
  Block,
  Dim3,
  DynamicArrayMethod,
  Fast,
  Fences,
  Gpu,
  Grid,
  KernelArray,
  Warp,
} from '../compiler/gpu.js';
