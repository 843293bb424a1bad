/** Types of a kernel's body, and of the arguments of its call. */
import type { Access, DType, KernelDTypeName, PointerParam } from '../core/index.js';
import type { Gpu } from '../compiler/gpu.js';
import type { DeviceOp, Given } from '../ops/index.js';
import type { AnyTensor, Partitioned, Shape, Tensor } from '../tensor/index.js';
import type { ClosingResults } from '../tensor/results.js';
import type { DeviceFunction, DeviceSignature } from './device-function.js';
import type { Rank, StructsParam, TensorParam } from '../core/index.js';
import type { KernelParam, KernelParams } from './parameters.js';
import type {
  HostValue,
  StructDeclaration,
  StructFields,
  StructValue,
} from '../core/struct-declaration.js';
import type { Uses } from './uses.js';

/** An element in a body: every dtype but bool is a number to the type checker. */
type Element<D extends KernelDTypeName> = D extends 'bool' ? boolean : number;

/** A structure in a body. */
type Fields<F extends StructFields> = { -readonly [K in keyof F]: Element<F[K]['name']> };

/** Elements that are only read. */
export interface ReadElements<T> {
  readonly length: number;
  readonly [index: number]: T;
}

/** Elements that are written. */
export interface WrittenElements<T> {
  readonly length: number;
  [index: number]: T;
}

interface Shapes {
  1: readonly [number];
  2: readonly [number, number];
  3: readonly [number, number, number];
  4: readonly [number, number, number, number];
}

/** Rows of rows of elements. Only the innermost elements are written. */
type Rows<T, A extends Access, R extends Rank> = R extends 4
  ? ReadElements<Rows<T, A, 3>>
  : R extends 3
    ? ReadElements<Rows<T, A, 2>>
    : R extends 2
      ? ReadElements<Rows<T, A, 1>>
      : A extends 'input'
        ? ReadElements<T>
        : WrittenElements<T>;

/** A tensor in a body. */
export type BodyTensor<T, A extends Access, R extends Rank> = Rows<T, A, R> & {
  readonly shape: Shapes[R];
};

type BodyArgument<P> =
  P extends StructsParam<infer F, infer A>
    ? BodyTensor<A extends 'input' ? Readonly<Fields<F>> : Fields<F>, A, 1>
    : P extends TensorParam<infer D extends KernelDTypeName, infer A, infer R>
      ? BodyTensor<Element<D>, A, R>
      : P extends PointerParam<infer D extends KernelDTypeName, infer A>
        ? BodyTensor<Element<D>, A, 1>
        : P extends StructDeclaration<infer F>
          ? Readonly<Fields<F>>
          : P extends DType<infer D extends KernelDTypeName>
            ? Element<D>
            : never;

/** The first parameter of a body. */
export type BodyArguments<S extends KernelParams> = { readonly [K in keyof S]: BodyArgument<S[K]> };

type UsedValue<V> =
  V extends DeviceFunction<infer F>
    ? DeviceSignature<F>
    : V extends (...args: never[]) => unknown
      ? DeviceSignature<V>
      : V extends boolean
        ? boolean
        : V extends number | bigint
          ? number
          : V extends readonly boolean[]
            ? readonly boolean[]
            : V extends ArrayLike<unknown>
              ? readonly number[]
              : never;

/** The second parameter of a body, with what it uses. */
export type GpuWith<U extends Uses> = Gpu & { readonly [K in keyof U]: UsedValue<U[K]> };

type CallArgument<P extends KernelParam> = P extends StructsParam
  ? AnyTensor | Partitioned
  : P extends PointerParam<infer D extends KernelDTypeName>
    ? Tensor<D, Shape> | Partitioned<D, Shape>
    : P extends StructDeclaration<infer F>
      ? Readonly<StructValue<F>>
      : P extends DType<infer D extends KernelDTypeName>
        ? HostValue<D>
        : never;

/** The arguments of a call: each is a value, or an operation that gives it. */
export type CallArguments<S extends KernelParams> = {
  readonly [K in keyof S]: CallArgument<S[K]> | DeviceOp<CallArgument<S[K]>>;
};

/**
 * The result of a call: the arguments by the same names; for an operation, the value that it gave.
 * Closing the result closes the tensors that operations gave.
 */
export type CallResult<A> = { -readonly [K in keyof A]: Given<A[K]> } & ClosingResults<keyof A>;

/** Names that are not in the signature. */
export type NoOthers<S, A> = Readonly<Record<Exclude<keyof A, keyof S>, never>>;
