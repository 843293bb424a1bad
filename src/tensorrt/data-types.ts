/** DataType of TensorRT, and the dtypes of tensors. */
import { CudaError } from '../core/index.js';
import type { DTypeName } from '../core/index.js';

/** By DataType's number; what is not there has no dtype here. */
const NAMES: readonly (DTypeName | undefined)[] = [
  'f32',
  'f16',
  'i8',
  'i32',
  'bool',
  'u8',
  'f8e4m3',
  'bf16',
  'i64',
];
/** What has none, in TensorRT's words. */
const OTHERS: Readonly<Record<number, string>> = { 9: 'INT4', 10: 'FP4', 11: 'E8M0' };

/** @throws CudaError with code ERR_CUDA_UNSUPPORTED for what no tensor can hold */
export function dtypeNameOf(type: number, tensor: string): DTypeName {
  const name = NAMES[type];
  if (name !== undefined) return name;
  throw new CudaError(
    'ERR_CUDA_UNSUPPORTED',
    `Tensor '${tensor}' is of type ${OTHERS[type] ?? `number ${type}`}, which no tensor here ` +
      'can hold: cast it in the model.',
  );
}

export function dataTypeOf(name: DTypeName): number | undefined {
  const number = NAMES.indexOf(name);
  return number === -1 ? undefined : number;
}
