/** How functions of one number for each element of a tensor are declared. */
import type { KernelDType, KernelDTypeName } from '../core/index.js';
import type { Usable } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { Shape, Tensor } from '../tensor/index.js';
import { ByDType, elementwise } from './elementwise.js';
import type { Group } from './element-types.js';
import { checkNoOptions } from './operation.js';

/**
 * A function of each element. It gives a new contiguous tensor of the operand's shape and dtype.
 * The operand is any view, or an operation that gives one. f16, bf16 and f8 are computed in f32 and
 * rounded once to nearest even; integers wrap.
 *
 * @throws CudaArgumentError for another dtype, CudaDisposedError for a closed tensor: at the call,
 *   or when run where an operation gives the operand
 */
export type Unary<N extends KernelDTypeName> = <D extends N, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
) => DeviceOp<Tensor<D, S>>;

/** The same with a result of a dtype of its own. */
export type UnaryTo<N extends KernelDTypeName, R extends KernelDTypeName> = <
  D extends N,
  S extends Shape,
>(
  x: OrOp<Tensor<D, S>>,
) => DeviceOp<Tensor<R, S>>;

/** Declares a function. */
export function unary<N extends KernelDTypeName>(
  name: string,
  group: Group,
  f: Usable | ByDType,
): Unary<N> {
  return declared(name, group, f) as Unary<N>;
}

/** Declares a function whose results are of another dtype. */
export function unaryTo<N extends KernelDTypeName, R extends KernelDTypeName>(
  gives: KernelDType & { readonly name: R },
  name: string,
  group: Group,
  f: Usable | ByDType,
): UnaryTo<N, R> {
  return declared(name, group, f, gives) as UnaryTo<N, R>;
}

function declared(name: string, group: Group, f: Usable | ByDType, gives?: KernelDType): unknown {
  const definition = {
    name,
    group,
    f,
    ...(gives === undefined ? {} : { gives }),
  };
  return (x: unknown, more: unknown, further: unknown) => {
    checkNoOptions(name, more, further);
    return elementwise(definition, [x]);
  };
}

/** Gives the integer itself. */
export const itself = (x: number): number => x;

/** A function of floats, and another of integers. */
export function ofFloatsAndIntegers(f: Usable, whole: Usable): ByDType {
  return new ByDType(({ kind }) =>
    kind === 'float' ? { key: 'float', f } : { key: 'whole', f: whole },
  );
}
