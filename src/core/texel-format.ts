/**
 * Which dtypes texels can have, and what the driver calls them.
 */
import { invalid } from '../ground/arguments.js';
import { DTYPE_FACTS, namesWhere } from '../ground/dtype.js';
import type { DType } from '../ground/dtype.js';

/** Those that texels can have, by the driver's numbers. */
const TEXELS = namesWhere(({ texel }) => texel !== null).sort(
  (a, b) => DTYPE_FACTS[a].texel! - DTYPE_FACTS[b].texel!,
);

/** A value of CUarray_format. */
export function texelFormat(argument: string, dtype: DType): number {
  const format = DTYPE_FACTS[dtype.name].texel;
  if (format === null)
    throw invalid(argument, `one of ${TEXELS.join(', ')}, as texels are`, dtype.name);
  return format;
}
