/** Numbers that a scalar parameter of a known type can be. PTX's own types of parameters have no sign. */
import { invalid } from './arguments.js';
import { DTYPES } from './dtype.js';
import type { DTypeName } from './dtype.js';
import type { ParamLayout } from './signature.js';

/** The least and the greatest integer of a dtype; of bool 0 and 1. Undefined of floats. */
export function integerBounds(name: DTypeName): readonly [bigint, bigint] | undefined {
  const { kind, bytes } = DTYPES[name];
  if (kind === 'float') return undefined;
  if (kind === 'bool') return [0n, 1n];
  const bits = BigInt(bytes * 8);
  return kind === 'signed' ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n];
}

/**
 * Whether a number or bigint is one that the parameter's declared type has is checked here; that it is a number at all where it is written.
 *
 * @throws CudaArgumentError
 */
export function checkExact(param: ParamLayout, dtype: DTypeName, arg: number | bigint, kernel: string): void {
  const bounds = integerBounds(dtype);
  if (bounds === undefined) return;
  const [low, high] = bounds;
  const isWide = DTYPES[dtype].bytes === 8;
  if (typeof arg === 'bigint' ? !isWide || (arg >= low && arg <= high) : (isWide ? Number.isSafeInteger(arg) : Number.isInteger(arg)) && arg >= low && arg <= high) return;
  const what = dtype === 'bool' ? 'true, false, 0 or 1' : `a whole number from ${low} to ${high}`;
  const fix = dtype === 'bool' ? `Write ${arg !== 0}.` : isWide && Number.isInteger(arg) && arg >= low && arg <= high ? 'Beyond 2^53 pass a bigint.' : '';
  throw invalid(`args[${param.index}]`, `${what} for parameter ${param.index} (${dtype}) of kernel '${kernel}'`, arg, fix);
}
