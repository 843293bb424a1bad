/** The check of the number of elements that memory is allocated for. */
import { checkInteger } from '../ground/arguments.js';
import type { DType } from '../ground/dtype.js';
import { CudaOutOfMemoryError } from '../ground/errors.js';

/** Checks a number of elements. A number of bytes that is not exact is more than any device has. */
export function checkLength(what: string, dtype: DType, length: unknown): asserts length is number {
  checkInteger('length', length, 0, Number.MAX_VALUE, 'elements');
  const bytes = length * dtype.bytes;
  if (bytes > Number.MAX_SAFE_INTEGER)
    throw new CudaOutOfMemoryError(
      `${what}: ${length} elements of ${dtype.name}, ${bytes} bytes, are more than any device has`,
    );
}
