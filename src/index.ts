/**
 * async-cuda: NVIDIA GPUs from Node, as operations that are composed and awaited.
 *
 * @packageDocumentation
 */
export { Device } from './device/device.js';
export { Kernel, Module } from './device/module.js';
export type { CompiledKernel, CompiledModule, DeviceCompileOptions } from './device/compiled-module.js';
export {
  DeviceOp, LeastLoaded, NextIdle, OpGraph, RoundRobin, Running, Scheduled, SharedOp, SingleStream, all, byPriority, empty, getDefaultDevice, keep, parallel, setDefaultDevice,
  setDevelopmentMode, value, zip,
} from './ops/index.js';
export type { Given, GivenAll, GraphScope, OpContext, OrOp, PriorityName, SchedulingPolicy } from './ops/index.js';
export { Partitioned, Tensor } from './tensor/index.js';
export type {
  AnyTensor, ArangeOptions, Closing, Dims, EyeOptions, HostList, Index, LaunchArgument, Layout, OpLaunchOptions, RandOptions, RandnOptions, RealName, Shape, TensorOptions,
} from './tensor/index.js';
export { DeviceFunction, SimulationError, deviceFunction, elementKernel, inout, input, kernel, output, struct, tileKernel } from './kernels/index.js';
export type {
  BodyArguments, BodyTensor, CallArguments, CallOptions, CallResult, CodeOptions, Comparison, CompileTarget, DeviceSignature, ArithmeticGpu, BodyElements, ElementArguments,
  ShapedCallOptions, ElementCallResult, ElementGpu, ElementGpuWith, ElementKernel, ElementKernelOptions, ElementParam, ElementParams, ElementResult, Gpu, GpuWith, HostValue, KernelArray, KernelChanges, KernelCodeOptions, KernelFunction,
  KernelOptions, KernelParam, KernelParams, KernelReport, KernelTarget, LaunchDefaults, OtherUses, Rank, ReadElements, SimulatedArguments, SimulatedTensor, SimulationOptions, StructDeclaration, StructFields, StructValue, StructsParam,
  TensorParam, Candidate, ElementKernelChanges, LoadedTile, OtherTile, ShapedTuneOptions, ShapedTuning, StoredTile, TensorAxes, TensorShapes, Tile, TileArguments, TileAxesOption, TileExtent, TileExtents, TileKernel, TileKernelChanges,
  TileKernelOptions, TileLoops, TileSize, TileStep, TileWith, TuneOptions, TuneSettings, TunedCandidate, Tuning, WalkedAxis, Usable, Uses, WrittenElements,
} from './kernels/index.js';
export {
  CudaArgumentError, CudaCheckError, CudaCompileError, CudaDeviceLostError, CudaDisposedError, CudaError, CudaLibraryError, CudaOutOfMemoryError, CudaQueueFullError, CudaScheduleError, DTYPES, PinnedBuffer,
  Stream, bf16, bool, f16, f32, f64, f8e4m3, f8e5m2, i16, i32, i64, i8, u16, u32, u64, u8,
} from './core/index.js';
export type {
  CudaErrorCode, DType, DTypeName, DeviceEvents, DeviceInfo, DeviceName, DeviceProperties, Dimensions, GraphNodeType, HostArray, LaunchOptions, ModuleOptions, OpenOptions,
  ParamDeclaration, Scalar, SourcePlace, StreamOptions, WaitOptions,
} from './core/index.js';
