/**
 * Tensors: where their elements lie, which views of them there are, how they are cut into tiles, and how they come out of
 * files and descriptors.
 *
 * @packageDocumentation
 */
export { permute, squeeze, transpose, unsqueeze } from './axes.js';
export { broadcastAll, broadcastShapes, broadcastTo } from './broadcasting.js';
export { coalesce, coalesceTogether } from './coalescing.js';
export { contiguous, elementAt, elements, isContiguous, sameLayout, span, strided } from './layout.js';
export type { Layout, Span } from './layout.js';
export { overlaps, overlapsItself } from './overlapping.js';
export { isDisjoint, mapped, partition, prefix, shareOf, tileId, tileInList, tileOf, tilePosition } from './partition.js';
export type { Partition, TileList } from './partition.js';
export { inBytes, reinterpret } from './reinterpreting.js';
export type { BytesOf } from './reinterpreting.js';
export { reshape, resolveShape, tryReshape } from './reshaping.js';
export { contiguousStrides, numel, sameShape } from './shape.js';
export type {
  Broadcast, BroadcastTo, Checked, Dims, Index, Known, Numel, Permuted, Range, Reinterpreted, Reshaped, Shape, ShapeError, Sliced, Squeezed, Tiled,
  Transposed, Unsqueezed,
} from './shape-types.js';
export { slice } from './slicing.js';
