/** Whether tensors have bytes in common. */
import { bytesBetween } from '../core/memory.js';
import { coalesce } from './coalescing.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { overlaps } from './overlapping.js';
import { inBytes } from './reinterpreting.js';
import type { Elements } from './elements.js';

/**
 * Whether two tensors have bytes in common, also where one memory was adopted twice and so has two
 * allocations.
 */
export function shareElements(a: Elements, b: Elements): boolean {
  const between = bytesBetween(a.buffer.memory, b.buffer.memory);
  return (
    between !== undefined &&
    overlaps(
      coalesce(bytesOf(a, Math.max(0, -between))),
      coalesce(bytesOf(b, Math.max(0, between))),
    )
  );
}

/** The layout of the bytes, counted from `first` bytes before the memory's begin. */
function bytesOf({ buffer, layout }: Elements, first: number): Layout {
  const bytes = inBytes(layout, buffer.dtype);
  return layoutOf([...bytes.shape], [...bytes.strides], bytes.offset + buffer.byteOffset + first);
}
