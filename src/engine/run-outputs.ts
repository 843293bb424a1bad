/**
 * The outputs of a run: the tensors that are made for it, and its result. They are the same for
 * every library.
 */
import { DTYPES } from '../core/index.js';
import type { DTypeName } from '../core/index.js';
import type { Run } from '../ops/run.js';
import { Tensor } from '../tensor/index.js';
import { contiguous, numel } from '../tensor/layouts.js';
import type { AnyTensor, Layout } from '../tensor/index.js';
import type { NamedTensors } from './engine.js';

/** Makes a tensor in the run's own memory, in the order of its stream. */
export function madeTensor(run: Run, dtype: DTypeName, shape: readonly number[]): AnyTensor {
  return new Tensor(run.alloc(DTYPES[dtype], numel(shape)), contiguous([...shape]), true);
}

/**
 * Makes a tensor as {@link madeTensor} does, of a contiguous layout. Its memory may be that of a
 * closed one, whose address is known already.
 */
export function recycledTensor(run: Run, dtype: DTypeName, layout: Layout): AnyTensor {
  const { recycled } = run.device;
  if (recycled === undefined || run.recording || run.pool !== undefined)
    return madeTensor(run, dtype, layout.shape);
  return new Tensor(
    run.own(recycled.alloc(DTYPES[dtype], numel(layout.shape), run.stream)),
    layout,
    true,
  );
}

/** Returns the tensors of a model's outputs by their names, in the same order. */
export function namedTensors(
  outputs: readonly { readonly name: string }[],
  tensors: readonly AnyTensor[],
): NamedTensors {
  return Object.fromEntries(outputs.map(({ name }, i) => [name, tensors[i]!]));
}
