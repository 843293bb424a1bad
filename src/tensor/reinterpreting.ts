/**
 * The same bytes as elements of another dtype, by the rule of PyTorch's `tensor.view(dtype)`: where
 * the sizes differ, the extent of the last axis changes.
 */
import { checkDType, invalid } from '../ground/arguments.js';
import type { DType, DTypeName } from '../core/index.js';
import type { BytesOf } from '../ground/dtype.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { showShape } from './shape.js';
import type { Checked, Known, Reinterpreted, Shape } from './shape-types.js';

/**
 * Gives the layout of the same bytes in elements of `to`. For a dtype of the same size it is the
 * layout itself. For a smaller one the last axis, whose stride has to be 1, becomes longer. For a
 * larger one its extent, the other strides and the offset have to be whole numbers of the new
 * elements.
 *
 * @throws CudaArgumentError where the bytes of a new element would not be adjacent, or not at a
 *   multiple of its size
 *
 * @example
 * ```ts
 * const layout = layouts.contiguous([2, 3]);
 * console.log(layouts.reinterpret(layout, f32, u8).shape); // [ 2, 12 ]
 * ```
 */
export function reinterpret<S extends Shape, D extends DTypeName, E extends DTypeName>(
  layout: Layout<S>,
  from: DType<D>,
  to: DType<E> & Checked<Reinterpreted<S, BytesOf<D>, BytesOf<E>>>,
): Layout<Known<Reinterpreted<S, BytesOf<D>, BytesOf<E>>>>;
export function reinterpret(layout: Layout, from: DType, to: DType): Layout {
  checkDType(from, 'from');
  checkDType(to, 'to');
  const { shape, strides, offset } = layout;
  if (from.bytes === to.bytes) return layout;
  const last = shape.length - 1;
  if (last < 0)
    throw invalid(
      'to',
      `a dtype of ${from.bytes} bytes, since a scalar has no axis to hold more or fewer elements`,
      to.name,
      'Reshape it to [1].',
    );
  // The stride of an axis of one element has no meaning.
  const dense = strides[last] === 1 || shape[last]! <= 1;
  const fix = 'Make a contiguous copy first.';
  if (!dense)
    throw invalid(
      'to',
      `a dtype of ${from.bytes} bytes, since the last axis of ${showShape(shape)} has stride ` +
        `${strides[last]!}, not 1`,
      to.name,
      fix,
    );
  if (from.bytes > to.bytes) {
    const more = from.bytes / to.bytes;
    return layoutOf(
      shape.map((extent, axis) => (axis === last ? extent * more : extent)),
      strides.map((stride, axis) => (axis === last ? 1 : stride * more)),
      offset * more,
    );
  }
  const fewer = to.bytes / from.bytes;
  if (shape[last]! % fewer !== 0)
    throw invalid(
      'to',
      `a dtype whose ${to.bytes} bytes divide the last axis of ${showShape(shape)}, of ` +
        `${shape[last]!} elements of ${from.bytes}`,
      to.name,
    );
  if (offset % fewer !== 0)
    throw invalid(
      'to',
      `a dtype that is aligned at element ${offset}, byte ${offset * from.bytes}, where the ` +
        'tensor begins',
      to.name,
      fix,
    );
  return layoutOf(
    shape.map((extent, axis) => (axis === last ? extent / fewer : extent)),
    strides.map((stride, axis) => {
      if (axis === last) return 1;
      if (shape[axis] === 1) return Math.trunc(stride / fewer);
      if (stride % fewer !== 0)
        throw invalid(
          'to',
          `a dtype that is aligned in every row: the stride of axis ${axis} is ${stride} ` +
            `elements of ${from.bytes} bytes`,
          to.name,
          fix,
        );
      return stride / fewer;
    }),
    offset / fewer,
  );
}

/**
 * Gives the layout in bytes, with one more axis for the bytes of an element. So layouts of
 * different dtypes over one buffer are compared: `overlaps(inBytes(a, f32), inBytes(b, u8))`.
 *
 * @example
 * ```ts
 * const { shape, strides } = layouts.inBytes(layouts.contiguous([2, 3]), f32);
 * console.log(shape, strides); // [ 2, 3, 4 ] [ 12, 4, 1 ]
 * ```
 */
export function inBytes(layout: Layout, dtype: DType): Layout {
  checkDType(dtype);
  const { bytes } = dtype;
  return layoutOf(
    [...layout.shape, bytes],
    [...layout.strides.map((stride) => stride * bytes), 1],
    layout.offset * bytes,
  );
}
