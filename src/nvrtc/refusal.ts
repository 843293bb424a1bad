/** Makes an error of the reason why there is no program. */
import { CudaArgumentError, CudaError, CudaOutOfMemoryError } from '../core/index.js';
import { LibraryNotFoundError } from '../native/library-not-found.js';
import type { Refusal } from './thread/messages.js';

/** The error for every reason except an error in the source. */
export function refusalError(
  what: string,
  refusal: Exclude<Refusal, { reason: 'source' }>,
): CudaError {
  switch (refusal.reason) {
    case 'no-library':
      return new CudaError('ERR_CUDA_NO_LIBRARY', `${what}: ${refusal.message}`, {
        cause: LibraryNotFoundError.from(refusal.message, refusal.tried),
      });
    case 'too-old':
    case 'unsupported':
      return new CudaError('ERR_CUDA_UNSUPPORTED', `${what}: ${refusal.message}.`);
    case 'option':
      return optionError(what, refusal.message);
    case 'memory':
      return new CudaOutOfMemoryError(`${what}: ${refusal.message}`);
    case 'library':
      return new CudaError('ERR_CUDA_INTERNAL', `${what}: ${refusal.message}`);
  }
}

/** Which of our options became the option that the library does not accept. */
const ARGUMENTS: readonly (readonly [pattern: RegExp, argument: string])[] = [
  [/-arch\b|--gpu-architecture/, 'options.architecture'],
  [/-std\b/, 'options.standard'],
];

function optionError(what: string, message: string): CudaArgumentError {
  const [, argument] = ARGUMENTS.find(([pattern]) => pattern.test(message)) ?? [
    undefined,
    'options.options',
  ];
  return new CudaArgumentError(argument, `${what}: ${argument}: ${message}.`);
}
