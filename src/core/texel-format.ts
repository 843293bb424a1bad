/** The dtypes that texels can have, and the driver's numbers for them. */
import { invalid } from '../ground/arguments.js';
import { DTYPE_FACTS, namesWhere } from '../ground/dtype.js';
import type { DType } from '../ground/dtype.js';

/** The dtypes of texels, in the order of the driver's numbers. */
const TEXELS = namesWhere(({ texel }) => texel !== null).sort(
  (a, b) => DTYPE_FACTS[a].texel! - DTYPE_FACTS[b].texel!,
);

/** The CUarray_format of a dtype. */
export function texelFormat(argument: string, dtype: DType): number {
  const format = DTYPE_FACTS[dtype.name].texel;
  if (format === null)
    throw invalid(argument, `one of ${TEXELS.join(', ')}, the dtypes of texels`, dtype.name);
  return format;
}
