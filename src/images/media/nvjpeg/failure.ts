/** The errors for failures in nvJPEG's threads. */
import { CLASS_NAME, NamedError } from '../../../ground/named-error.js';
import { CudaError, CudaFormatError, CudaLibraryError } from '../../../core/index.js';
import type { CudaErrorCode } from '../../../core/index.js';
import type { Refusal } from './thread/messages.js';

interface Status {
  readonly name: string;
  readonly code?: CudaErrorCode;
  readonly text?: string;
}

/** nvjpegStatus_t, from 1 on. */
const STATUSES: readonly Status[] = [
  { name: 'NVJPEG_STATUS_NOT_INITIALIZED' },
  { name: 'NVJPEG_STATUS_INVALID_PARAMETER' },
  {
    name: 'NVJPEG_STATUS_BAD_JPEG',
    code: 'ERR_CUDA_FORMAT',
    text: 'the JPEG is damaged or cut short',
  },
  {
    name: 'NVJPEG_STATUS_JPEG_NOT_SUPPORTED',
    code: 'ERR_CUDA_UNSUPPORTED',
    text:
      'nvJPEG does not decode JPEGs of this kind. Leave out the engine, or write { engine: ' +
      "'sharp' }",
  },
  {
    name: 'NVJPEG_STATUS_ALLOCATOR_FAILURE',
    code: 'ERR_CUDA_OUT_OF_MEMORY',
    text: 'there was not enough memory',
  },
  { name: 'NVJPEG_STATUS_EXECUTION_FAILED' },
  {
    name: 'NVJPEG_STATUS_ARCH_MISMATCH',
    code: 'ERR_CUDA_UNSUPPORTED',
    text: 'this nvJPEG is not for GPUs of this kind. Install another version',
  },
  { name: 'NVJPEG_STATUS_INTERNAL_ERROR' },
  {
    name: 'NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED',
    code: 'ERR_CUDA_UNSUPPORTED',
    text:
      'nvJPEG does not decode JPEGs of this kind. Leave out the engine, or write { engine: ' +
      "'sharp' }",
  },
  {
    name: 'NVJPEG_STATUS_INCOMPLETE_BITSTREAM',
    code: 'ERR_CUDA_FORMAT',
    text: 'the JPEG is cut short',
  },
];

/** A failure in a thread. {@link shownError} adds the picture. */
export class NvjpegError extends NamedError {
  /** @internal */
  static override readonly [CLASS_NAME]: string = 'NvjpegError';

  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super('message' in refusal ? refusal.message : `${refusal.call} returned ${refusal.status}`);
    this.refusal = refusal;
  }
}

/** @param name the picture; undefined where no picture was decoded */
export function shownError(error: unknown, name: string | undefined): unknown {
  if (!(error instanceof NvjpegError)) return error;
  const { refusal } = error;
  const prefix = name === undefined ? '' : `image: ${name}: `;
  switch (refusal.reason) {
    case 'no-library':
      return new CudaError('ERR_CUDA_NO_LIBRARY', refusal.message);
    case 'unsupported':
      return new CudaError('ERR_CUDA_UNSUPPORTED', refusal.message);
    case 'format':
      return new CudaFormatError('image', `${name ?? 'source'}: ${refusal.message}`);
    case 'driver':
      return new CudaError(
        'ERR_CUDA_DRIVER',
        `${prefix}nvJPEG: ${refusal.call} returned ${refusal.status}`,
        { driverCode: refusal.status, operation: refusal.call },
      );
    case 'status': {
      const { library, call, status } = refusal;
      const {
        name: statusName,
        code,
        text = `${call} has failed`,
      } = STATUSES[status - 1] ?? { name: `nvjpegStatus_t ${status}` };
      return new CudaLibraryError(
        `${prefix}${library}: ${statusName} of ${call}: ${text}.`,
        { library, call, status, statusName },
        code,
      );
    }
    case 'internal':
      return new CudaError('ERR_CUDA_INTERNAL', `${prefix}nvJPEG: ${refusal.message}`);
  }
}
