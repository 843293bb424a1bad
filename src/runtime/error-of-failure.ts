/** Makes the error that JavaScript gets for a failure of the runtime thread. */
import {
  CudaCompileError,
  CudaError,
  CudaLibraryError,
  CudaOutOfMemoryError,
} from '../ground/errors.js';
import type { CudaErrorOptions } from '../ground/errors.js';
import { CUresult as RESULT } from '../ground/result.js';
import type { Failure } from './failure.js';

const LIBRARY_CODES = {
  memory: 'ERR_CUDA_OUT_OF_MEMORY',
  unsupported: 'ERR_CUDA_UNSUPPORTED',
} as const;

const COMPILE_RESULTS: ReadonlySet<number> = new Set([
  RESULT.CUDA_ERROR_INVALID_IMAGE,
  RESULT.CUDA_ERROR_NO_BINARY_FOR_GPU,
  RESULT.CUDA_ERROR_INVALID_PTX,
  RESULT.CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
  RESULT.CUDA_ERROR_INVALID_SOURCE,
  RESULT.CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
]);

type FailureData = Omit<Failure, 'id' | 'root' | 'stream'>;

/**
 * Makes the error of a failure. `operation` names what the user called, `cause` is the error that
 * it follows from.
 */
export function errorFromFailure(
  failure: FailureData,
  operation: string | undefined,
  cause?: CudaError,
): CudaError {
  const what = operation ?? failure.call;
  const options: CudaErrorOptions = {
    driverName: failure.resultName === '' ? undefined : failure.resultName,
    driverCode: failure.result === 0 ? undefined : failure.result,
    operation: what,
    cause,
  };
  if (cause !== undefined && failure.unmade === true) {
    const message = `${what}: the stream that it was queued on could not be made: ${cause.message}`;
    const inherited = { ...options, driverName: cause.driverName, driverCode: cause.driverCode };
    return cause.code === 'ERR_CUDA_OUT_OF_MEMORY'
      ? new CudaOutOfMemoryError(message, inherited)
      : new CudaError(cause.code, message, inherited);
  }
  if (cause !== undefined && failure.result === 0) {
    return new CudaError(
      'ERR_CUDA_UNDEFINED_CONTENTS',
      `${what}: an operand was left undefined by an earlier failure: ${cause.message}`,
      { ...options, driverName: cause.driverName, driverCode: cause.driverCode },
    );
  }
  if (failure.library !== undefined) {
    const { name: library, status, statusName, means } = failure.library;
    const code = means === undefined ? 'ERR_CUDA_LIBRARY' : LIBRARY_CODES[means];
    const message =
      operation === undefined || failure.message.startsWith(`${what} `)
        ? failure.message
        : `${what}: ${failure.message}`;
    return new CudaLibraryError(
      message,
      { library, call: failure.call, status, statusName },
      code,
      options,
    );
  }
  if (failure.thrown === 'LibraryNotFoundError') {
    return new CudaError(
      failure.call === 'findFunctions' ? 'ERR_CUDA_NO_LIBRARY' : 'ERR_CUDA_NO_DRIVER',
      failure.message,
      options,
    );
  }
  if (failure.thrown === 'MissingSymbolError')
    return new CudaError('ERR_CUDA_UNSUPPORTED', failure.message, options);
  // V8 throws a RangeError where it has no memory for a buffer or for WebAssembly.
  if (failure.thrown === 'RangeError' && /allocat|array (buffer )?length/i.test(failure.message)) {
    return new CudaOutOfMemoryError(
      `${what}: the host has not enough memory: ${failure.message}`,
      options,
    );
  }
  if (failure.thrown !== undefined)
    return new CudaError('ERR_CUDA_INTERNAL', `${what}: ${failure.message}`, options);
  const message = failure.message.startsWith(`${what} `)
    ? failure.message
    : `${what}: ${failure.message}`;
  switch (failure.result) {
    case RESULT.CUDA_ERROR_OUT_OF_MEMORY:
      return new CudaOutOfMemoryError(message, options);
    case RESULT.CUDA_ERROR_NO_DEVICE:
    case RESULT.CUDA_ERROR_INVALID_DEVICE:
      return new CudaError('ERR_CUDA_NO_DEVICE', message, options);
    case RESULT.CUDA_ERROR_NOT_FOUND:
      return new CudaError('ERR_CUDA_NOT_FOUND', message, options);
    case RESULT.CUDA_ERROR_NOT_SUPPORTED:
      return new CudaError('ERR_CUDA_UNSUPPORTED', message, options);
    default:
  }
  if (COMPILE_RESULTS.has(failure.result)) {
    return new CudaCompileError(message, failure.errorLog ?? '', failure.infoLog ?? '', options);
  }
  if (failure.result >= 900 && failure.result < 910)
    return new CudaError('ERR_CUDA_CAPTURE', message, options);
  return new CudaError('ERR_CUDA_DRIVER', message, options);
}
