/** The elements of a tensor: memory, and where in it they lie. */
import type { DTypeName, DeviceBuffer } from '../core/index.js';
import type { Layout } from './layout.js';
import { numel } from './shape.js';

/** A buffer and a layout over it: what copies need of a tensor. */
export interface Elements<D extends DTypeName = DTypeName> {
  readonly buffer: DeviceBuffer<D>;
  readonly layout: Layout;
}

/** Contiguous elements as a buffer. */
export function denseBuffer<D extends DTypeName>({ buffer, layout }: Elements<D>): DeviceBuffer<D> {
  const size = numel(layout.shape);
  // The offset of an empty layout may be beyond the end of the buffer.
  return size === 0 ? buffer.slice(0, 0) : buffer.slice(layout.offset, layout.offset + size);
}
