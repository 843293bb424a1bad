/**
 * Which dtypes texels can have, and what the driver calls them.
 */
import { CUarray_format } from '../driver/flags.js';
import { invalid } from './arguments.js';
import type { DType, DTypeName } from './dtype.js';

const FORMATS: Partial<Record<DTypeName, number>> = {
  u8: CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8,
  u16: CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16,
  u32: CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32,
  i8: CUarray_format.CU_AD_FORMAT_SIGNED_INT8,
  i16: CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
  i32: CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
  f16: CUarray_format.CU_AD_FORMAT_HALF,
  f32: CUarray_format.CU_AD_FORMAT_FLOAT,
};

/** A value of CUarray_format. */
export function texelFormat(argument: string, dtype: DType): number {
  const format = FORMATS[dtype.name];
  if (format === undefined) throw invalid(argument, `one of ${Object.keys(FORMATS).join(', ')}, as texels are`, dtype.name);
  return format;
}
