/** The error of an operation that is to run on another device than its own. */
import { CudaError } from '../core/index.js';
import type { CoreDevice, Stream } from '../core/index.js';

export function wrongDevice(name: string, device: CoreDevice, stream: Stream): CudaError {
  return new CudaError(
    'ERR_CUDA_INVALID_ARGUMENT',
    `${name} belongs to ${device.kind}:${device.ordinal}, and cannot run on ${stream.title} of ` +
      `${stream.device.kind}:${stream.device.ordinal}. An operation runs on the device of its ` +
      'tensors only: run the operations of each device separately, and copy tensors with ' +
      'tensor.to(device).',
  );
}
