/** How element kernels read tensors by row and column: some tensors need no strides. */
import type { RowAccess } from '../compiler/element/element-form.js';
import type { Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';

/**
 * Gives the access of a tensor. `down`, `right`: strides. The stride of an axis of one element has
 * no meaning, and is 0.
 */
export function rowAccessOf(
  [rows, columns]: readonly [number, number],
  down: number,
  right: number,
): RowAccess {
  if ((columns === 1 || right === 1) && (rows === 1 || down === columns)) return 'dense';
  if (down === 0 && right === 1) return 'row';
  if (right === 0 && down === 1) return 'column';
  return down === 0 && right === 0 ? 'one' : 'strided';
}

/** The elements of a tensor as one contiguous run. */
export function runOf(
  access: Exclude<RowAccess, 'strided'>,
  [rows, columns]: readonly [number, number],
  offset: number,
): Layout {
  const lengths = { dense: rows * columns, row: columns, column: rows, one: 1 };
  return layoutOf([lengths[access]], [1], offset);
}
