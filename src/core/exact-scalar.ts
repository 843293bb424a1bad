/**
 * Checks that numbers fit the type of a scalar parameter. PTX's types of parameters have no sign.
 */
import { invalid } from '../ground/arguments.js';
import { DTYPES, INTEGER_LIMITS } from '../ground/dtype.js';
import type { DTypeName } from '../ground/dtype.js';
import type { ParamLayout } from './signature.js';

/**
 * Checks that the number is a value of the parameter's declared type. The writer of the arguments
 * checks that it is a number at all.
 *
 * @throws CudaArgumentError
 */
export function checkExact(
  param: ParamLayout,
  dtype: DTypeName,
  arg: number | bigint,
  kernel: string,
): void {
  const bounds = INTEGER_LIMITS[dtype];
  if (bounds === undefined) return;
  const [low, high] = bounds;
  const isWide = DTYPES[dtype].bytes === 8;
  // The writer refuses a bigint for fewer than 64 bits.
  if (typeof arg === 'bigint' && !isWide) return;
  const isWithin = arg >= low && arg <= high;
  const isExact =
    typeof arg === 'bigint' || (isWide ? Number.isSafeInteger(arg) : Number.isInteger(arg));
  if (isWithin && isExact) return;
  const isBool = dtype === 'bool';
  const what = isBool ? 'true, false, 0 or 1' : `a whole number from ${low} to ${high}`;
  const where = `parameter ${param.index} (${dtype}) of kernel '${kernel}'`;
  const isTooLong = isWithin && Number.isInteger(arg);
  const fix = isBool ? `Write ${arg !== 0}.` : isTooLong ? 'Beyond 2^53 pass a bigint.' : '';
  throw invalid(`args[${param.index}]`, `${what} for ${where}`, arg, fix);
}
