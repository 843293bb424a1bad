/** The error of an operation that is to run on another device than its own. */
import { CudaError } from '../core/index.js';
import type { CoreDevice, Stream } from '../core/index.js';

export function elsewhere(name: string, device: CoreDevice, stream: Stream): CudaError {
  return new CudaError(
    'ERR_CUDA_INVALID_ARGUMENT',
    `${name} is of ${device.kind}:${device.ordinal}, and was to run on ${stream.title} of ` +
      `${stream.device.kind}:${stream.device.ordinal}. An operation will not run on another ` +
      'device than its tensors: ' +
      'run those of each device by themselves, and copy what the other needs with ' +
      'tensor.to(device).',
  );
}
