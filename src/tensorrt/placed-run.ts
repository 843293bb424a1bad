/** The memory of a run, in the order of the engine's tensors. */
import type { DeviceBuffer } from '../core/index.js';
import { type AnyTensor } from '../tensor/index.js';
import { numel } from '../tensor/layouts.js';
import { isContiguous } from '../tensor/layout.js';

/** The memory of a run, in the order of the engine's tensors. @internal */
export interface PlacedRun {
  readonly inputs: readonly AnyTensor[];
  readonly memory: readonly DeviceBuffer[];
  /** For each piece of memory, whether the run writes all of it. */
  readonly whole: readonly boolean[];
}

/** @internal */
export function placedRun(inputs: readonly AnyTensor[], outputs: readonly AnyTensor[]): PlacedRun {
  return {
    inputs,
    memory: [...inputs, ...outputs].map(({ buffer }) => buffer),
    whole: [
      ...inputs.map(() => false),
      ...outputs.map(({ buffer, shape }) => numel(shape) === buffer.length),
    ],
  };
}

/**
 * Whether TensorRT can use a tensor in place: it has no gaps and begins at its memory's first
 * element. @internal
 */
export function isDense(tensor: AnyTensor): boolean {
  return isContiguous(tensor.layout) && tensor.layout.offset === 0;
}
