/**
 * Declarations of a kernel's parameters. One function each declares memory that is read, written or
 * both; a dtype declares a scalar, {@link struct} a structure.
 */
import { checkDType, invalid } from '../ground/arguments.js';
import type { DType, DTypeName, KernelDTypeName } from '../ground/dtype.js';
import { hasFields, withoutFields } from './struct-declaration.js';
import type { BytesParam, StructDeclaration, StructFields } from './struct-declaration.js';

/** What a kernel does with the memory of a pointer. */
export type Access = 'input' | 'output' | 'inout';

/** A pointer parameter: its element type and access. */
export interface PointerParam<D extends DTypeName = DTypeName, A extends Access = Access> {
  readonly pointer: true;
  readonly dtype: DType<D>;
  readonly access: A;
}

/** Numbers of axes by which the body of a kernel in TypeScript can index a tensor. */
export type Rank = 1 | 2 | 3 | 4;
const MOST_AXES = 4;

/** A tensor of a dtype. A kernel of a loaded module takes it for a pointer parameter. */
export interface TensorParam<
  D extends KernelDTypeName = KernelDTypeName,
  A extends Access = Access,
  R extends Rank = Rank,
> extends PointerParam<D, A> {
  readonly rank: R;
}

/** A tensor of structures. */
export interface StructsParam<F extends StructFields = StructFields, A extends Access = Access> {
  readonly pointer: true;
  readonly element: StructDeclaration<F>;
  readonly access: A;
  readonly rank: 1;
}

/** A tensor map: the kernel copies boxes of the tensor. */
export interface MapParam {
  readonly map: true;
  readonly access: Access;
}

/**
 * One parameter in the signature of a loaded module's kernel: a dtype for a scalar, {@link input},
 * {@link output}, {@link inout}, {@link struct}.
 */
export type ParamDeclaration =
  DType<KernelDTypeName> | PointerParam | StructsParam | BytesParam | MapParam;

interface Declare<A extends Access> {
  // There are two signatures: with one, a rank that is left out would be inferred from the context
  // of the declaration.
  /** A tensor as one run of elements, of any shape: `x[i]`. It has to be contiguous. */
  <D extends KernelDTypeName>(dtype: DType<D>): TensorParam<D, A, 1>;
  /** A tensor of `rank` axes: `x[row]![column]`. Any view with that many axes can be passed. */
  <D extends KernelDTypeName, const R extends Rank>(dtype: DType<D>, rank: R): TensorParam<D, A, R>;
  /** A tensor whose bytes are structures: of u8, or of the dtype that all fields have. */
  <F extends StructFields>(element: StructDeclaration<F>): StructsParam<F, A>;
  /** Memory of any dtype, complex ones included, for the kernel of a loaded module. */
  <D extends DTypeName>(dtype: DType<D>): PointerParam<D, A>;
}

function declare<A extends Access>(access: A): Declare<A> {
  return ((given: DType | StructDeclaration, rank: Rank = 1): TensorParam | StructsParam => {
    if (!Number.isInteger(rank) || rank < 1 || rank > MOST_AXES)
      throw invalid('rank', `a number of axes from 1 to ${MOST_AXES}`, rank);
    if (hasFields(given)) {
      if (rank !== 1)
        throw invalid(
          'rank',
          '1 for a tensor of structures',
          rank,
          'Index it by row · columns + column.',
        );
      return { pointer: true, element: given, access, rank };
    }
    if (typeof given === 'object' && (given as unknown) !== null && 'struct' in given)
      throw withoutFields('element');
    checkDType(given, 'dtype');
    return { pointer: true, dtype: given as DType<KernelDTypeName>, access, rank };
  }) as Declare<A>;
}

/**
 * Declares memory that the kernel only reads. Readers on several streams may overlap.
 *
 * @example
 * ```ts
 * const sum = kernel('sum', { x: input(f32), y: output(f32) }, ({ x, y }, gpu) => {
 *   const i = gpu.globalId.x;
 *   if (i < y.length) y[i] = x[i]! + x[i + 1]!;
 * });
 * const { y } = await sum({ x: device.arange(f32, 4), y: device.zeros(f32, [3]) });
 * console.log((await y.read()).join(' ')); // 1 3 5
 * y.close();
 * ```
 */
export const input = declare('input');
/**
 * Declares memory that the kernel writes. Kernels in TypeScript infer grid and block from their
 * outputs.
 *
 * @example
 * ```ts
 * const squares = kernel('squares', { y: output(i32) }, ({ y }, gpu) => {
 *   const i = gpu.globalId.x;
 *   if (i < y.length) y[i] = i * i;
 * });
 * const { y } = await squares({ y: device.uninitialized(i32, [4]) }); // a thread for each element
 * console.log((await y.read()).join(' ')); // 0 1 4 9
 * y.close();
 * ```
 */
export const output = declare('output');
/**
 * Declares memory that the kernel reads and writes.
 *
 * @example
 * ```ts
 * const double = kernel('double', { x: inout(f32) }, ({ x }, gpu) => {
 *   const i = gpu.globalId.x;
 *   if (i < x.length) x[i] = 2 * x[i]!;
 * });
 * const { x } = await double({ x: device.arange(f32, 3) });
 * console.log((await x.read()).join(' ')); // 0 2 4
 * x.close();
 * ```
 */
export const inout = declare('inout');
