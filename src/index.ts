/**
 * async-cuda: NVIDIA GPUs from Node, as operations that are composed and awaited.
 *
 * The root exports what a first program needs. Types of launches, tiles and tuning are in
 * `async-cuda/kernels`, scheduling policies in `async-cuda/ops`, layouts and files in
 * `async-cuda/tensor`, and the eager API in `async-cuda/core`.
 *
 * @packageDocumentation
 */
export * from './ground/dtypes.js';
export { Device } from './device/device.js';
export {
  DeviceOp,
  OpGraph,
  Running,
  SharedOp,
  allOf,
  empty,
  getDefaultDevice,
  keep,
  parallel,
  setDefaultDevice,
  setDevelopmentMode,
  value,
  zip,
} from './ops/index.js';
export { Tensor } from './tensor/index.js';
export {
  deviceFunction,
  elementKernel,
  inout,
  input,
  kernel,
  output,
  struct,
  tileKernel,
} from './kernels/index.js';
export {
  CudaArgumentError,
  CudaCompileError,
  CudaDeviceLostError,
  CudaDisposedError,
  CudaError,
  CudaOutOfMemoryError,
  DTYPES,
} from './core/index.js';
export type {
  CompiledKernel,
  CompiledModule,
  DeviceCompileOptions,
} from './device/compiled-module.js';
export type { OpKernel, OpModule } from './device/module.js';
export type { AnyTensor, RandOptions, Shape, TensorOptions } from './tensor/index.js';
export type { Gpu, KernelFunction } from './kernels/index.js';
export type {
  CudaErrorCode,
  DType,
  DTypeName,
  DeviceName,
  DeviceProperties,
  HostArray,
  LaunchOptions,
  OpenOptions,
  Scalar,
  WaitOptions,
} from './core/index.js';
