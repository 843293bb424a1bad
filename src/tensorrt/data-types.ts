/** DataType of TensorRT, and the dtypes of tensors. */
import { CudaError } from '../core/index.js';
import { DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type { DTypeName } from '../ground/dtype.js';

/** By DataType's number; what is not there has no dtype here. */
const NAMES: ReadonlyMap<number | null, DTypeName> = new Map(
  DTYPE_NAMES.filter((name) => dataTypeOf(name) !== undefined).map((name) => [
    DTYPE_FACTS[name].tensorrt,
    name,
  ]),
);
/** What has none, in TensorRT's words. */
const OTHERS: Readonly<Record<number, string>> = { 9: 'INT4', 10: 'FP4', 11: 'E8M0' };

/** @throws CudaError with code ERR_CUDA_UNSUPPORTED for what no tensor can hold */
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
