/**
 * The dtypes that both ONNX and this library have, by ONNX's numbers (ONNXTensorElementDataType).
 */
import { DTYPES, DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type { DTypeFacts } from '../ground/dtype-row.js';
import type { DType, DTypeName } from '../ground/dtype.js';

const TYPES: ReadonlyMap<number, DTypeName> = new Map(
  // ONNX Runtime has no operators for complex numbers, and cannot make tensors of them.
  DTYPE_NAMES.flatMap((name) => {
    const { kind, onnx }: DTypeFacts = DTYPE_FACTS[name];
    return kind === 'complex' || onnx === null ? [] : [[onnx, name]];
  }),
);

/** ONNX's names of the types that this library lacks. */
const OTHERS: Readonly<Record<number, string>> = {
  8: 'string',
  14: 'complex64',
  15: 'complex128',
  18: 'float8e4m3fnuz',
  20: 'float8e5m2fnuz',
  21: 'uint4',
  22: 'int4',
  23: 'float4e2m1',
};

export function dtypeOf(type: number): DType | undefined {
  const name = TYPES.get(type);
  return name === undefined ? undefined : DTYPES[name];
}

/** ONNX's number of a type that one of its models has. */
export function typeNumber(dtype: DTypeName): number {
  const { onnx }: DTypeFacts = DTYPE_FACTS[dtype];
  if (onnx === null) throw new TypeError(`ONNX has no ${dtype}`);
  return onnx;
}

export function nameOfType(type: number): string {
  return TYPES.get(type) ?? OTHERS[type] ?? `type ${type}`;
}
