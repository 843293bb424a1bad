/**
 * Memory that runs out: what the engine says of host memory in a RangeError, and what the driver
 * says of sizes that no device has, as one error that names the bytes.
 */
import { DriverError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { CudaOutOfMemoryError } from '../ground/errors.js';

/**
 * Makes host memory of `bytes` bytes. Where the engine refuses, the error says what wanted how
 * much; `fix` what to do.
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

/** No device has as much: drivers may call such a size an invalid value. */
const ABSURD = 2 ** 42;

/**
 * What an allocation of `bytes` bytes threw, as running out of memory where that is what it comes
 * to.
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
