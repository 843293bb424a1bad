/** TensorRT's DataType, and the dtypes of tensors. */
import { CudaError } from '../core/index.js';
import { DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type { DTypeName } from '../ground/dtype.js';

/** The dtypes by DataType's number; other types have no dtype here. */
const NAMES: ReadonlyMap<number | null, DTypeName> = new Map(
  DTYPE_NAMES.filter((name) => dataTypeOf(name) !== undefined).map((name) => [
    DTYPE_FACTS[name].tensorrt,
    name,
  ]),
);
/** TensorRT's names of the types without a dtype. */
const OTHERS: Readonly<Record<number, string>> = { 9: 'INT4', 10: 'FP4', 11: 'E8M0' };

/**
 * Returns the dtype of a type.
 *
 * @throws CudaError with code ERR_CUDA_UNSUPPORTED for a type that no tensor can hold
 */
export function dtypeNameOf(type: number, tensor: string): DTypeName {
  const name = NAMES.get(type);
  if (name !== undefined) return name;
  throw new CudaError(
    'ERR_CUDA_UNSUPPORTED',
    `Tensor '${tensor}' is of type ${OTHERS[type] ?? `number ${type}`}, which no tensor here ` +
      'can hold: cast it in the model.',
  );
}

export function dataTypeOf(name: DTypeName): number | undefined {
  return DTYPE_FACTS[name].tensorrt ?? undefined;
}
