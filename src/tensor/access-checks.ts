/** Checks before a tensor is read or written, and their errors. */
import { CudaArgumentError, CudaDisposedError } from '../core/index.js';
import { AFTER_ITS_STEP } from '../core/holder.js';
import { overlapsItself } from './overlapping.js';
import { claimOf } from './partitioned.js';
import { showShape } from './shape.js';
import type { AnyTensor } from './tensor.js';

/** The error for a tensor that is closed, or whose step has ended. */
export function closedError(tensor: AnyTensor): CudaDisposedError {
  return new CudaDisposedError(
    `${tensor.toString()}: used after it was closed. ${
      tensor.buffer.memory.endedByStep
        ? AFTER_ITS_STEP
        : 'Make another; where `using` closed it, await what uses it in that block: return ' +
          'await … of an operation.'
    }`,
  );
}

/** @throws CudaArgumentError for an open tensor that must not be written */
export function checkWritable(tensor: AnyTensor, what: string): void {
  if (tensor.buffer.memory.isReadOnly) {
    throw new CudaArgumentError(
      'tensor',
      `${what}: ${tensor.toString()} must not be written: its owner made it read-only. Copy it ` +
        'with dup() first.',
    );
  }
  if (overlapsItself(tensor.layout)) {
    throw new CudaArgumentError(
      'tensor',
      `${what}: elements of ${tensor.toString()} lie in the same place, as in a broadcast ` +
        'view. Write to the tensor that it is a view of.',
    );
  }
  const claim = claimOf(tensor);
  if (claim !== undefined)
    throw new CudaArgumentError(
      'tensor',
      `${what}: ${tensor.toString()} is being written by tiles: ${claim.toString()}. Call ` +
        'its unpartition() first.',
    );
}

/** @throws CudaArgumentError for a tensor that is not contiguous */
export function checkContiguous(tensor: AnyTensor, what: string): void {
  if (tensor.isContiguous) return;
  throw new CudaArgumentError(
    'tensor',
    `${what}: expected a contiguous tensor, got strides ${showShape(tensor.strides)}. Make ` +
      'it contiguous() first.',
  );
}
