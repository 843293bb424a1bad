/**
 * Makes one error, which names the bytes, of the two forms of running out of memory: V8's
 * RangeError for host memory, and the driver's error for a size that no device has.
 */
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { CudaOutOfMemoryError } from '../ground/errors.js';

/**
 * Allocates host memory of `bytes` bytes. Where V8 refuses, the error names `what` and the size,
 * and recommends `fix`.
 */
export function allocateHost<T>(what: string, bytes: number, fix: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new CudaOutOfMemoryError(
      `${what}: the host has no ${bytes} bytes (${error.message}).${fix === '' ? '' : ` ${fix}`}`,
      { cause: error, operation: what },
    );
  }
}

/** No device has as much memory: drivers may return an invalid value for such a size. */
const ABSURD = 2 ** 42;

/**
 * Returns the error that an allocation of `bytes` bytes threw, as an error of running out of memory
 * where it means that.
 */
export function asOutOfMemory(error: unknown, bytes: number): unknown {
  if (
    !(error instanceof DriverError) ||
    error.result !== CUresult.CUDA_ERROR_INVALID_VALUE ||
    bytes < ABSURD
  )
    return error;
  return new DriverError(error.call, CUresult.CUDA_ERROR_OUT_OF_MEMORY, {
    detail: `${bytes} bytes, which the driver calls an invalid value`,
  });
}
