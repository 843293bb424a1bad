/** Makes errors of the refusals of ONNX Runtime's threads. */
import { CudaError, CudaLibraryError } from '../core/index.js';
import type { CudaErrorCode } from '../core/index.js';
import type { Refusal } from './thread/messages.js';

/**
 * The meaning of a status, by its name, and by its message where one status has several meanings.
 * The first row that matches counts.
 */
const MEANINGS: readonly {
  readonly status?: string;
  readonly pattern?: RegExp;
  readonly code: CudaErrorCode;
  readonly fix?: string;
}[] = [
  {
    pattern: /failed to allocate memory|bad_alloc|out of memory|Available memory of/i,
    code: 'ERR_CUDA_OUT_OF_MEMORY',
  },
  {
    pattern:
      /is not a registered function\/op|no op registered for|could not find an implementation/i,
    code: 'ERR_CUDA_UNSUPPORTED',
    fix: 'Install a later ONNX Runtime, or export the model without that operator.',
  },
  {
    pattern:
      /opset \d+ is under development|unsupported model IR version|maximum supported IR version/i,
    code: 'ERR_CUDA_UNSUPPORTED',
    fix: 'Export the model for an older opset, or install a later ONNX Runtime.',
  },
  { status: 'ORT_NOT_IMPLEMENTED', code: 'ERR_CUDA_UNSUPPORTED' },
  { status: 'ORT_NO_SUCHFILE', code: 'ERR_CUDA_NOT_FOUND' },
  {
    status: 'ORT_INVALID_PROTOBUF',
    code: 'ERR_CUDA_FORMAT',
    fix: 'The file is cut short, or is no ONNX model.',
  },
  {
    status: 'ORT_NO_MODEL',
    code: 'ERR_CUDA_FORMAT',
    fix: 'The file is cut short, or is no ONNX model.',
  },
  { status: 'ORT_INVALID_GRAPH', code: 'ERR_CUDA_FORMAT' },
];

export function errorOf(refusal: Refusal): CudaError {
  switch (refusal.reason) {
    case 'no-library':
      return new CudaError('ERR_CUDA_NO_LIBRARY', refusal.message);
    case 'unsupported':
      return new CudaError('ERR_CUDA_UNSUPPORTED', refusal.message);
    case 'internal':
      return new CudaError('ERR_CUDA_INTERNAL', `ONNX Runtime: ${refusal.message}`);
    case 'status': {
      const { library, call, status, statusName, message } = refusal;
      const { code, fix } = MEANINGS.find(
        (each) =>
          (each.status === undefined || each.status === statusName) &&
          each.pattern?.test(message) !== false,
      ) ?? { code: 'ERR_CUDA_LIBRARY' as const, fix: undefined };
      return new CudaLibraryError(
        `${library}: ${statusName}: ${message.trim()}${fix === undefined ? '' : ` ${fix}`}`,
        { library, call, status, statusName },
        code,
      );
    }
  }
}
