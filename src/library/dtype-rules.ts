/** What dtypes are: their limits, their kinds, and the rules of promotion. */
import { DTYPES } from '../core/index.js';
import type { DType, DTypeName } from '../core/index.js';
import { checkDType, invalid, isList } from '../ground/arguments.js';
import { DTYPE_FACTS, FLOAT_LIMITS, INTEGER_LIMITS, isWide } from '../ground/dtype.js';
import type { ComplexName, FloatName, IntegerName } from '../ground/dtype.js';
import { canPromote } from '../ground/promotion.js';
import type { PartnerOf, Promoted } from '../ground/promotion.js';
import { Tensor } from '../tensor/index.js';
import { commonDType } from './common-dtype.js';

/** A dtype, or a tensor of it. */
export type DTypeOrTensor<D extends DTypeName> = DType<D> | Tensor<D>;

function dtypeOf(argument: string, given: unknown): DType {
  const dtype: unknown = given instanceof Tensor ? given.dtype : given;
  checkDType(dtype, argument);
  return dtype;
}

/**
 * The common dtype of dtypes and tensors: the dtype of the result of an operation on all of them.
 *
 * @throws CudaArgumentError for none, and for dtypes without a common one
 *
 * @example
 * ```ts
 * console.log(resultType(i8, u8).name, resultType(f16, f32).name); // i16 f32
 * ```
 */
export function resultType<A extends DTypeName>(a: DTypeOrTensor<A>): DType<A>;
export function resultType<A extends DTypeName, B extends PartnerOf<A>>(
  a: DTypeOrTensor<A>,
  b: DTypeOrTensor<B>,
): DType<Promoted<A, B>>;
export function resultType(...given: readonly DTypeOrTensor<DTypeName>[]): DType;
export function resultType(...given: readonly unknown[]): DType {
  if (given.length === 0) throw invalid('a', 'a dtype or a Tensor, for resultType(…)', undefined);
  return commonDType(
    'resultType',
    given.map((each, index) => {
      const argument = `argument ${index + 1}`;
      return [argument, dtypeOf(argument, each)] as const;
    }),
  )!;
}

/**
 * Whether promotion converts a dtype to another: whether both are of one kind, and the other has
 * all of its values.
 *
 * @example
 * ```ts
 * console.log(canCast(i8, i32), canCast(i32, i8), canCast(i32, f64)); // true false false
 * ```
 */
export function canCast(from: DTypeOrTensor<DTypeName>, to: DType): boolean {
  const source = dtypeOf('from', from);
  checkDType(to, 'to');
  return canPromote(source.name, to.name);
}

/** A kind of dtypes, by the array API standard's names. */
export type DTypeKind =
  | 'bool'
  | 'signed integer'
  | 'unsigned integer'
  | 'integral'
  | 'real floating'
  | 'complex floating'
  | 'numeric';

const KINDS: Readonly<Record<DTypeKind, readonly DType['kind'][]>> = {
  bool: ['bool'],
  'signed integer': ['signed'],
  'unsigned integer': ['unsigned'],
  integral: ['signed', 'unsigned'],
  'real floating': ['float'],
  'complex floating': ['complex'],
  numeric: ['signed', 'unsigned', 'float', 'complex'],
};

/**
 * Whether a dtype is the other one, of the kind, or one of a list of dtypes and kinds.
 *
 * @throws CudaArgumentError for what is neither a dtype nor a kind
 *
 * @example
 * ```ts
 * console.log(isdtype(i8, 'integral'), isdtype(f32, [f16, f32])); // true true
 * ```
 */
export function isdtype(
  dtype: DType,
  kind: DType | DTypeKind | readonly (DType | DTypeKind)[],
): boolean {
  checkDType(dtype);
  const kinds: readonly unknown[] = isList(kind) ? kind : [kind];
  return kinds.some((each) => {
    if (typeof each !== 'string') {
      checkDType(each, 'kind');
      return each.name === dtype.name;
    }
    if (!Object.hasOwn(KINDS, each))
      throw invalid('kind', `a dtype, or one of ${Object.keys(KINDS).join(', ')}`, each);
    return KINDS[each as DTypeKind].includes(dtype.kind);
  });
}

/** The limits of a float dtype; of a complex one those of its parts. */
export interface FloatInfo {
  readonly dtype: DType<FloatName>;
  readonly bits: number;
  /** The difference of 1 and the next greater number. */
  readonly eps: number;
  readonly max: number;
  readonly min: number;
  /** The least positive number with full precision. */
  readonly smallestNormal: number;
}

/**
 * The limits of a float dtype, or of the parts of a complex one.
 *
 * @throws CudaArgumentError for another dtype
 *
 * @example
 * ```ts
 * console.log(finfo(f16).max, finfo(f32).eps === 2 ** -23); // 65504 true
 * ```
 */
export function finfo(dtype: DTypeOrTensor<FloatName | ComplexName>): FloatInfo {
  const { name } = dtypeOf('dtype', dtype);
  const part = DTYPE_FACTS[name].part ?? name;
  const limits = FLOAT_LIMITS[part];
  if (limits === undefined)
    throw invalid('dtype', 'a float or complex dtype, for finfo(…)', name, 'Write iinfo(dtype).');
  const { max, epsilon, smallestNormal } = limits;
  const row = DTYPES[part] as DType<FloatName>;
  return { dtype: row, bits: row.bytes * 8, eps: epsilon, max, min: -max, smallestNormal };
}

/** The limits of an integer dtype. Those of i64 and u64 are bigints. */
export interface IntegerInfo<V extends number | bigint = number | bigint> {
  readonly dtype: DType<IntegerName>;
  readonly bits: number;
  readonly max: V;
  readonly min: V;
}

/**
 * The limits of an integer dtype: bigints for i64 and u64, else numbers.
 *
 * @throws CudaArgumentError for another dtype
 *
 * @example
 * ```ts
 * console.log(iinfo(i8).min, iinfo(u64).max); // -128 18446744073709551615n
 * ```
 */
export function iinfo<D extends IntegerName>(
  dtype: DTypeOrTensor<D>,
): IntegerInfo<D extends 'i64' | 'u64' ? bigint : number>;
export function iinfo(dtype: unknown): IntegerInfo {
  const row = dtypeOf('dtype', dtype);
  const limits = row.kind === 'bool' ? undefined : INTEGER_LIMITS[row.name];
  if (limits === undefined)
    throw invalid('dtype', 'an integer dtype, for iinfo(…)', row.name, 'Write finfo(dtype).');
  const shown = (value: bigint): number | bigint => (isWide(row.name) ? value : Number(value));
  return {
    dtype: row as DType<IntegerName>,
    bits: row.bytes * 8,
    max: shown(limits[1]),
    min: shown(limits[0]),
  };
}
