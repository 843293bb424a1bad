/**
 * Which dtypes texels can have, and what the driver calls them.
 */
import { invalid } from '../ground/arguments.js';
import type { DType, DTypeName } from '../ground/dtype.js';

/** CUarray_format */
const FORMATS: Partial<Record<DTypeName, number>> = {
  u8: 1,
  u16: 2,
  u32: 3,
  i8: 8,
  i16: 9,
  i32: 10,
  f16: 16,
  f32: 32,
};

/** A value of CUarray_format. */
export function texelFormat(argument: string, dtype: DType): number {
  const format = FORMATS[dtype.name];
  if (format === undefined)
    throw invalid(argument, `one of ${Object.keys(FORMATS).join(', ')}, as texels are`, dtype.name);
  return format;
}
