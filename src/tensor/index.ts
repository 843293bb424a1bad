/**
 * Tensors: where their elements lie, which views of them there are, how they are cut into tiles,
 * and how they come out of files and descriptors.
 *
 * @packageDocumentation
 */
export { permute, squeeze, transpose, unsqueeze } from './axes.js';
export { broadcastAll, broadcastShapes, broadcastTo } from './broadcasting.js';
export { coalesce, coalesceTogether } from './coalescing.js';
export { DLDataTypeCode, DLDeviceType, fromDLPack, toDLPack } from './dlpack.js';
export type { DLTensor, ForeignTensor } from './dlpack.js';
export type { TakeOverOptions } from './exchange.js';
export {
  contiguous,
  elementAt,
  elements,
  isContiguous,
  sameLayout,
  span,
  strided,
} from './layout.js';
export type { Layout, Span } from './layout.js';
export { readNpy, writeNpy } from './npy.js';
export type { NpyTensor, ReadNpyOptions } from './npy.js';
export { overlaps, overlapsItself } from './overlapping.js';
export {
  isDisjoint,
  mapped,
  partition,
  prefix,
  shareOf,
  tileId,
  tileInList,
  tileOf,
  tilePosition,
} from './partition.js';
export type { Partition, TileList } from './partition.js';
export { inBytes, reinterpret } from './reinterpreting.js';
export type { BytesOf } from '../ground/dtype.js';
export { reshape, resolveShape, tryReshape } from './reshaping.js';
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
export { contiguousStrides, numel, sameShape } from './shape.js';
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
export { slice } from './slicing.js';
export { loadNpy, loadSafetensors, saveNpy, saveSafetensors } from './files.js';
export { launch } from './launch.js';
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
  HostList,
  RandOptions,
  RandnOptions,
  RealName,
  TensorOptions,
} from './make.js';
export { Partitioned } from './partitioned.js';
export type { Closing } from './results.js';
export { Tensor } from './tensor.js';
export type { AnyTensor, KernelTensor, TensorJson } from './tensor.js';
export { packed, wordsOf } from './tensor-data.js';
export type { TensorData } from './tensor-data.js';
