/** Groups of dtypes that operations take, and the types in which their elements are computed. */
import { DTYPE_FACTS, insteadOfComplex, namesWhere } from '../ground/dtype.js';
import type { ComputeType, DTypeFacts } from '../ground/dtype-row.js';
import type { DTypeName, KernelDType, FloatName, IntegerName } from '../ground/dtype.js';
import { invalid } from '../ground/arguments.js';

// f16, bf16 and f8 are computed in f32 and rounded once.
export type { FloatName, IntegerName } from '../ground/dtype.js';
/** dtypes of numbers: all but bool. */
export type NumberName = FloatName | IntegerName;

/** A type in which kernels compute. */
export type Arithmetic = ComputeType;

/** Gives the type in which elements of a dtype are computed. */
export function arithmeticOf({ name }: KernelDType): Arithmetic {
  return DTYPE_FACTS[name].compute;
}

/** A group of dtypes that an operation takes. */
export type Group = 'floats' | 'wide floats' | 'integers' | 'bits' | 'numbers' | 'bool' | 'any';

const any = namesWhere(({ compute }) => compute !== null);
const ofKind = (...kinds: readonly DTypeFacts['kind'][]): readonly DTypeName[] =>
  any.filter((name) => kinds.includes(DTYPE_FACTS[name].kind));
const floats = ofKind('float');
const integers = ofKind('signed', 'unsigned');

const GROUPS: Readonly<Record<Group, readonly DTypeName[]>> = {
  floats,
  'wide floats': floats.filter((name) => DTYPE_FACTS[name].bytes >= 4),
  integers,
  bits: [...integers, ...ofKind('bool')],
  numbers: [...integers, ...floats],
  bool: ofKind('bool'),
  any,
};

const FIXES: Readonly<Record<Group, string>> = {
  floats: 'Convert it with convert(f32).',
  'wide floats': 'Convert it with convert(f32).',
  bits: 'Convert it with convert(i32).',
  integers: 'Convert it with convert(i32).',
  numbers: 'Convert it with convert(i32).',
  bool: 'Compare it: notEqual(x, 0).',
  any: '',
};

/** @throws CudaArgumentError where the dtype is not in the group that the operation takes */
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
