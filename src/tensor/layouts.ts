/**
 * Pure functions of layouts and shapes, without a device. A layout is a shape, strides and an
 * offset, all in elements, which gives the place of each element of a tensor in its buffer.
 */
export { permute, squeeze, transpose, unsqueeze } from './axes.js';
export { broadcastAll, broadcastShapes, broadcastTo } from './broadcasting.js';
export { coalesce, coalesceTogether } from './coalescing.js';
export {
  contiguous,
  elementAt,
  elements,
  isContiguous,
  sameLayout,
  span,
  strided,
} from './layout.js';
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
export { inBytes, reinterpret } from './reinterpreting.js';
export { reshape, resolveShape, tryReshape } from './reshaping.js';
export { contiguousStrides, numel, sameShape } from './shape.js';
export { slice } from './slicing.js';
