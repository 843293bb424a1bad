/** Elements of one dtype seen as elements of another, without a copy. */
import type { DType } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { DTYPES, DTYPE_FACTS } from '../ground/dtype.js';
import type { Elements } from './elements.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { reinterpret } from './reinterpreting.js';

/** The same bytes as elements of `dtype`. @throws CudaArgumentError as {@link reinterpret} */
export function reinterpreted({ buffer, layout }: Elements, dtype: DType): Elements {
  // The overload's types are checked by the caller's.
  const change = reinterpret as (layout: Layout, from: DType, to: DType) => Layout;
  const changed = change(layout, buffer.dtype, dtype);
  // Whole elements of the new dtype only.
  const bytes = buffer.byteLength - (buffer.byteLength % dtype.bytes);
  return {
    buffer: buffer.slice(0, bytes / buffer.dtype.bytes).reinterpret(dtype),
    layout: changed,
  };
}

/**
 * The real parts of complex numbers (`at` 0), or the imaginary parts (1): every second float of the
 * memory.
 *
 * @param method the caller's name, for errors
 * @throws CudaArgumentError for a dtype that is not complex
 */
export function complexParts({ buffer, layout }: Elements, at: 0 | 1, method: string): Elements {
  const { name } = buffer.dtype;
  const { part } = DTYPE_FACTS[name];
  if (part === null) throw invalid('tensor', `a complex dtype, for ${method}()`, name);
  const { shape, strides, offset } = layout;
  return {
    buffer: buffer.reinterpret(DTYPES[part]),
    layout: layoutOf(
      shape,
      strides.map((stride) => stride * 2),
      offset * 2 + at,
    ),
  };
}
