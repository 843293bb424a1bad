/** The error of a call that a capture does not allow. */
import { CudaError } from '../ground/errors.js';

export function captureError(what: string, fix: string): CudaError {
  return new CudaError(
    'ERR_CUDA_CAPTURE',
    `${what} is not possible while the stream is being captured: ${fix}.`,
  );
}
