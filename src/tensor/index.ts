/**
 * Tensors: device memory with a dtype and a shape; views, partitions into tiles, files and DLPack
 * descriptors of them. `layouts` has the pure functions on shapes and strides.
 *
 * @packageDocumentation
 */
export { DLDataTypeCode, DLDeviceType, fromDLPack, toDLPack } from './dlpack.js';
export type { DLTensor, ForeignTensor } from './dlpack.js';
export * as layouts from './layouts.js';
export type { TakeOverOptions } from './exchange.js';
export type { Layout, Span } from './layout.js';
export { readNpy, writeNpy } from './npy.js';
export type { NpyTensor, ReadNpyOptions } from './npy.js';
export type { Partition, TileList } from './partition.js';
export type { BytesOf } from '../ground/dtype.js';
export {
  readSafetensors,
  readSafetensorsHeader,
  safetensorsHeaderBytes,
  writeSafetensors,
} from './safetensors.js';
export type {
  Safetensors,
  SafetensorsEntry,
  SafetensorsHeader,
  SafetensorsOther,
  WriteSafetensorsOptions,
} from './safetensors.js';
export type {
  Broadcast,
  BroadcastTo,
  Checked,
  Dims,
  Index,
  Known,
  Numel,
  Permuted,
  Range,
  Reinterpreted,
  Reshaped,
  Shape,
  ShapeError,
  Sliced,
  Squeezed,
  Tiled,
  Transposed,
  Unsqueezed,
} from './shape-types.js';
export { loadNpy, loadSafetensors, saveNpy, saveSafetensors } from './files.js';
export { callKernel } from './launch.js';
export type { LaunchArgument, OpLaunchOptions } from './launch.js';
export {
  arange,
  eye,
  full,
  linspace,
  ones,
  prepare,
  rand,
  randn,
  tensor,
  uninitialized,
  zeros,
} from './make.js';
export type {
  ArangeOptions,
  EyeOptions,
  RandOptions,
  RandnOptions,
  RealName,
  TensorOptions,
} from './make.js';
export type { HostList } from './host-source.js';
export { Partitioned } from './partitioned.js';
export type { Closing } from './results.js';
export { Tensor } from './tensor.js';
export type { AnyTensor, KernelTensor } from './tensor.js';
export { packed, wordsOf } from './tensor-data.js';
export type { TensorData } from './tensor-data.js';
export type { TensorJson } from './tensor-text.js';
