/**
 * Level 3 of async-cuda: devices, streams, buffers, modules, kernels and graphs. Its methods are
 * eager and take the stream.
 *
 * @packageDocumentation
 */
export { CoreDevice } from './device.js';
export type { AllocOptions, PlainAllocOptions } from './stream-ordered-allocation.js';
export type { DeviceEvents } from './device-events.js';
export type { LimitName } from './device-limits.js';
export type { ComputeCapability } from './open-devices.js';
export type { DeviceName, OpenOptions } from './open-options.js';
export type { DeviceInfo } from './list-devices.js';
export type { DeviceProperties } from './properties.js';
export { explore } from './explore.js';
export type { ExploreOptions } from './explore.js';
export { Stream } from './stream.js';
export type { StreamOptions } from './stream-options.js';
export type { Value, ValueBuffer, ValueCondition, ValueType } from './stream-values.js';
export { Event } from './event.js';
export type { EventOptions } from './event.js';
export { Pending } from './pending.js';
export type { WaitOptions } from './pending.js';
export { DeviceBuffer } from './buffer.js';
export type { ChunkOptions, ReadBitsOptions, ReadOptions, WriteSource } from './buffer-options.js';
export { DeviceBuffer2D } from './buffer-2d.js';
export type { Size2D } from './buffer-2d.js';
export { DeviceBox } from './box.js';
export type { BoxArea, BoxLayout, BoxSize } from './box.js';
export { DeviceArray } from './array.js';
export type { ArraySize } from './array.js';
export { Surface, Texture } from './texture.js';
export type { AddressMode, TextureOptions, TextureSource } from './texture.js';
export { PinnedBuffer } from './pinned.js';
export { ManagedBuffer } from './managed.js';
export { MemoryPool } from './pool.js';
export type { PoolOptions, PoolReuse, PoolStatistics } from './pool.js';
export { Module } from './module.js';
export type { ModuleOptions } from './module-options.js';
export { Kernel } from './kernel.js';
export type { Dimensions, LaunchOptions } from './launch-shape.js';
export type { KernelArgument, KernelMemory } from './launch-arguments.js';
export type { KernelAttributes } from './kernel-attributes.js';
export type { DeviceStats } from './stats.js';
export type { CopyCount } from './counts.js';
export { labelled } from './label.js';
export { TraceRecording, recordTrace } from './recorder.js';
export type { TraceOptions } from './recorder.js';
export { Trace } from './trace.js';
export type { TraceEvent, TraceJson } from './trace.js';
export type {
  ChannelMessage,
  CopyDirection,
  FenceMessage,
  GraphMessage,
  MemoryKind,
  MemoryMessage,
  OperationKind,
  OperationMessage,
} from './channels.js';
export { Graph } from './graph.js';
export type { CaptureOptions, GraphNodeType } from './graph.js';
export { NativeLibrary } from './native-library.js';
export type {
  ArgumentType,
  FunctionRow,
  HostType,
  LibraryArgument,
  LibraryDeclaration,
  LibraryFile,
  LibraryMemory,
  LibraryRow,
  LibraryStatus,
  LibraryStatuses,
  MemoryPlace,
  MemoryUse,
  PointersType,
  ReturnedType,
  LibraryScalar,
  ScalarType,
  StructType,
} from './native-library.js';
export { NativeSteps } from './native-steps.js';
export type { LibraryStep, StepArgument, StepsDeclaration } from './native-steps.js';
export { graphCondition, graphIf, graphSwitch, graphWhile } from './conditional.js';
export type { ConditionName, ConditionSource, GraphBody } from './conditional.js';
export { prepareConditions } from './condition-setter.js';
export { GraphCondition } from './graph-condition.js';
export { inout, input, output } from './parameter-declarations.js';
export type {
  Access,
  ParamDeclaration,
  PointerParam,
  Rank,
  StructsParam,
  TensorParam,
} from './parameter-declarations.js';
export { struct } from './struct-declaration.js';
export type {
  BytesParam,
  HostValue,
  StructDeclaration,
  StructFields,
  StructValue,
} from './struct-declaration.js';
export * from '../ground/dtypes.js';
export { DTYPES } from '../ground/dtype.js';
export type {
  BitArray,
  Complex,
  ComplexName,
  DType,
  DTypeName,
  HostArray,
  KernelDType,
  KernelDTypeName,
  PartOf,
  Scalar,
} from '../ground/dtype.js';
export {
  CudaArgumentError,
  CudaCheckError,
  CudaCompileError,
  CudaDeviceLostError,
  CudaDisposedError,
  CudaError,
  CudaFormatError,
  CudaLibraryError,
  CudaOutOfMemoryError,
  CudaQueueFullError,
  CudaScheduleError,
} from '../ground/errors.js';
export type { CudaErrorCode, SourcePlace } from '../ground/errors.js';
export type {
  CheckKind,
  CheckMemory,
  CheckOptions,
  CheckPlace,
  CheckReport,
} from '../ground/check-report.js';
export type { InFlight } from '../ground/in-flight.js';
