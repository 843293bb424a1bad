/**
 * Groups of dtypes that operations take, and the type that arithmetic on elements of each happens
 * in.
 */
import { DTYPE_FACTS, insteadOfComplex, namesWhere } from '../ground/dtype.js';
import type { ComputeType } from '../ground/dtype-row.js';
import type { DTypeName, KernelDType, FloatName, IntegerName } from '../ground/dtype.js';
import { invalid } from '../ground/arguments.js';

// f16, bf16 and f8 are computed with in f32 and rounded once.
export type { FloatName, IntegerName } from '../ground/dtype.js';
/** dtypes of numbers: all but bool. */
export type NumberName = FloatName | IntegerName;

/** What arithmetic happens in. */
export type Arithmetic = ComputeType;

/** The type that an element is read as in a kernel. */
export function arithmeticOf({ name }: KernelDType): Arithmetic {
  return DTYPE_FACTS[name].compute;
}

/** Which elements an operation takes. */
export type Group = 'floats' | 'integers' | 'numbers' | 'bool' | 'any';

const floats = namesWhere(({ kind }) => kind === 'float');
const integers = namesWhere(({ kind }) => kind === 'signed' || kind === 'unsigned');

const GROUPS: Readonly<Record<Group, readonly DTypeName[]>> = {
  floats,
  integers,
  numbers: [...integers, ...floats],
  bool: namesWhere(({ kind }) => kind === 'bool'),
  any: namesWhere(({ compute }) => compute !== null),
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
  { dtype }: { dtype: KernelDType },
  group: Group,
): void {
  if (GROUPS[group].includes(dtype.name)) return;
  throw invalid(
    argument,
    `a Tensor of ${GROUPS[group].join(', ')}, for ${name}(…)`,
    dtype.name,
    dtype.kind === 'complex' ? insteadOfComplex(dtype) : FIXES[group],
  );
}
