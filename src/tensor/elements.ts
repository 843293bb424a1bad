/** The elements of a tensor: memory, and where in it they lie. */
import { DeviceBuffer } from '../core/index.js';
import type { DTypeName } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { contiguous, span, strided } from './layout.js';
import type { Layout } from './layout.js';
import { numel } from './shape.js';
import type { Dims, Shape } from './shape-types.js';

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

/**
 * A layout over a buffer, given by a shape for contiguous elements or by a layout.
 *
 * @throws CudaArgumentError for an invalid buffer, shape or layout, and for elements beyond the
 *   buffer
 */
export function layoutIn<S extends Shape>(
  buffer: DeviceBuffer,
  shape: S | Layout<S>,
): Layout<Dims<S>> {
  if (!(buffer instanceof DeviceBuffer)) throw invalid('buffer', 'a DeviceBuffer', buffer);
  if (typeof (shape as unknown) !== 'object' || shape === null)
    throw invalid('shape', 'a list of extents, or a layout of shape, strides and offset', shape);
  const given = shape as Layout<S>;
  const layout = Array.isArray(shape)
    ? contiguous(shape as S)
    : strided(given.shape as S, given.strides, given.offset);
  const { end } = span(layout);
  if (end > buffer.length)
    throw invalid('shape', `at most the ${buffer.length} elements of the buffer`, layout.shape);
  return layout;
}
