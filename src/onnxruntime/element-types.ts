/** Our dtypes as ONNX numbers them (ONNXTensorElementDataType); those that both have. */
import { DTYPES } from '../core/index.js';
import type { DType, DTypeName } from '../core/index.js';

const TYPES: Readonly<Record<number, DTypeName>> = {
  1: 'f32',
  2: 'u8',
  3: 'i8',
  4: 'u16',
  5: 'i16',
  6: 'i32',
  7: 'i64',
  9: 'bool',
  10: 'f16',
  11: 'f64',
  12: 'u32',
  13: 'u64',
  16: 'bf16',
  17: 'f8e4m3',
  19: 'f8e5m2',
};

/** What ONNX calls those that we have not. */
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

const NUMBERS = new Map(Object.entries(TYPES).map(([number, name]) => [name, Number(number)]));

export function dtypeOf(type: number): DType | undefined {
  const name = TYPES[type];
  return name === undefined ? undefined : DTYPES[name];
}

export function typeNumber(dtype: DTypeName): number {
  return NUMBERS.get(dtype)!;
}

export function nameOfType(type: number): string {
  return TYPES[type] ?? OTHERS[type] ?? `type ${type}`;
}
