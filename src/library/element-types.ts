/**
 * Groups of dtypes that operations take, and the type that arithmetic on elements of each happens
 * in.
 */
import { DTYPES } from '../core/index.js';
import type { DType, DTypeName } from '../core/index.js';
import { invalid } from '../ground/arguments.js';

/** dtypes of floats. f16, bf16 and f8 are computed with in f32 and rounded once. */
export type FloatName = 'f16' | 'bf16' | 'f32' | 'f64' | 'f8e4m3' | 'f8e5m2';
/** dtypes of integers. */
export type IntegerName = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64';
/** dtypes of numbers: all but bool. */
export type NumberName = FloatName | IntegerName;

/** What arithmetic happens in. */
export type Arithmetic = 'f32' | 'f64' | 'i32' | 'u32' | 'i64' | 'u64' | 'bool';

const ARITHMETIC: Readonly<Record<DTypeName, Arithmetic>> = {
  bool: 'bool',
  i8: 'i32',
  u8: 'i32',
  i16: 'i32',
  u16: 'i32',
  i32: 'i32',
  u32: 'u32',
  i64: 'i64',
  u64: 'u64',
  f16: 'f32',
  bf16: 'f32',
  f8e4m3: 'f32',
  f8e5m2: 'f32',
  f32: 'f32',
  f64: 'f64',
};

/** The type that an element is read as in a kernel. */
export function arithmeticOf({ name }: DType): Arithmetic {
  return ARITHMETIC[name];
}

/** Which elements an operation takes. */
export type Group = 'floats' | 'integers' | 'numbers' | 'bool' | 'any';

const GROUPS: Readonly<Record<Group, readonly DTypeName[]>> = {
  floats: ['f16', 'bf16', 'f32', 'f64', 'f8e4m3', 'f8e5m2'],
  integers: ['i8', 'u8', 'i16', 'u16', 'i32', 'u32', 'i64', 'u64'],
  numbers: [
    'i8',
    'u8',
    'i16',
    'u16',
    'i32',
    'u32',
    'i64',
    'u64',
    'f16',
    'bf16',
    'f32',
    'f64',
    'f8e4m3',
    'f8e5m2',
  ],
  bool: ['bool'],
  any: Object.keys(DTYPES) as DTypeName[],
};

const FIXES: Readonly<Record<Group, string>> = {
  floats: 'Convert it with convert(f32).',
  integers: 'Convert it with convert(i32).',
  numbers: 'Convert it with convert(i32).',
  bool: 'Compare it: notEqual(x, 0).',
  any: '',
};

/** @throws CudaArgumentError where the operation has no meaning for elements of the dtype */
export function checkGroup(
  name: string,
  argument: string,
  { dtype }: { dtype: DType },
  group: Group,
): void {
  if (GROUPS[group].includes(dtype.name)) return;
  throw invalid(
    argument,
    `a Tensor of ${GROUPS[group].join(', ')}, for ${name}(…)`,
    dtype.name,
    FIXES[group],
  );
}
