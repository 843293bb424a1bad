/** How functions of two numbers for each element of tensors that broadcast are declared. */
import type { KernelDType, KernelDTypeName } from '../core/index.js';
import type { PartnerOf, Promoted } from '../ground/promotion.js';
import type { Usable } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Broadcast, Known, Shape, Tensor } from '../tensor/index.js';
import { elementwise } from './elementwise.js';
import type { ByDType } from './elementwise.js';
import type { Group } from './element-types.js';
import { checkNoOptions } from './operation.js';

/** A number as an operand with a tensor of dtype `D`: a boolean for bool, else a number. */
export type Beside<D extends KernelDTypeName> = D extends 'bool'
  ? boolean
  : D extends 'i64' | 'u64'
    ? number | bigint
    : number;

/** The common dtype of two, among those that kernels compute with. */
export type Common<D extends KernelDTypeName, E extends KernelDTypeName> = Extract<
  Promoted<D, E>,
  KernelDTypeName
>;

/**
 * A function of two operands, element by element. It gives a new contiguous tensor of the shape
 * that both broadcast to, by NumPy's rules. Operands are any views, or operations that give them,
 * and one of them may be a number.
 *
 * Tensors of two dtypes of one kind are computed in their common dtype, the least that has all
 * values of both: i8 with u8 in i16, f16 with bf16 in f32. Dtypes of two kinds, and u64 with a
 * signed integer, have none. A number has the dtype of the tensor. f16, bf16 and f8 are computed in
 * f32, which is also the type of a number with them, and rounded once to nearest even. Integers
 * wrap.
 *
 * @throws CudaArgumentError for a dtype that the function does not take, dtypes without a common
 *   one, shapes that do not broadcast, a number that the dtype does not have; at the call, or when
 *   run where operations give the operands
 */
export interface Binary<N extends KernelDTypeName, R extends KernelDTypeName | 'same' = 'same'> {
  <D extends N, E extends N & PartnerOf<D>, S extends Shape, T extends Shape>(
    x: OrOp<Tensor<D, S>>,
    y: OrOp<Tensor<E, T>>,
  ): DeviceOp<Tensor<Result<Common<D, E>, R>, Known<Broadcast<S, T>>>>;
  <D extends N, S extends Shape>(
    x: OrOp<Tensor<D, S>>,
    y: Beside<D>,
  ): DeviceOp<Tensor<Result<D, R>, S>>;
  <D extends N, S extends Shape>(
    x: Beside<D>,
    y: OrOp<Tensor<D, S>>,
  ): DeviceOp<Tensor<Result<D, R>, S>>;
}

type Result<D extends KernelDTypeName, R> = R extends KernelDTypeName ? R : D;

/** Declares a function. */
export function binary<N extends KernelDTypeName, R extends KernelDTypeName | 'same' = 'same'>(
  name: string,
  group: Group,
  f: Usable | ByDType,
  gives?: KernelDType,
): Binary<N, R> {
  return ((x: unknown, y: unknown, more: unknown, further: unknown) => {
    checkNoOptions(name, more, further);
    return elementwise({ name, group, f, ...(gives === undefined ? {} : { gives }) }, [x, y]);
  }) as Binary<N, R>;
}
