/** Types of an element kernel: its body, and the arguments of its call. */
import type { Access, DType, KernelDTypeName, PointerParam } from '../core/index.js';
import type { ARITHMETIC_NAMES } from '../compiler/element/gpu-of-elements.js';
import type { Gpu } from '../compiler/gpu.js';
import type { DeviceOp, Given } from '../ops/index.js';
import type { Shape, Tensor } from '../tensor/index.js';
import type { ClosingResults } from '../tensor/results.js';
import type { GpuWith } from './body-types.js';
import type {
  HostValue,
  StructDeclaration,
  StructFields,
  StructValue,
} from '../core/struct-declaration.js';
import type { Uses } from './uses.js';

/**
 * The declaration of an element kernel's parameter: a dtype or struct for a scalar, or a tensor of
 * a dtype.
 */
export type ElementParam =
  DType<KernelDTypeName> | PointerParam<KernelDTypeName> | StructDeclaration;

/** Parameters by name. */
export type ElementParams = Readonly<Record<string, ElementParam>>;

type Element<D extends KernelDTypeName> = D extends 'bool' ? boolean : number;

type NamesOf<S extends ElementParams, A extends Access> = {
  [K in keyof S]: S[K] extends PointerParam<KernelDTypeName, infer B>
    ? B extends A
      ? K
      : never
    : never;
}[keyof S];

/** Names of the tensors that are written. */
export type OutputNames<S extends ElementParams> = NamesOf<S, 'output' | 'inout'>;

type Fields<F extends StructFields> = { readonly [K in keyof F]: Element<F[K]['name']> };

type ElementOf<P> =
  P extends PointerParam<infer D extends KernelDTypeName>
    ? Element<D>
    : P extends StructDeclaration<infer F>
      ? Fields<F>
      : P extends DType<infer D extends KernelDTypeName>
        ? Element<D>
        : never;

/**
 * The first parameter of a body: each tensor's element, and scalars. A tensor that is only written
 * has none.
 */
export type BodyElements<S extends ElementParams> = {
  readonly [K in Exclude<keyof S, NamesOf<S, 'output'>>]: ElementOf<S[K]>;
};

/** A shape for each tensor. */
export type TensorShapes<S extends ElementParams> = {
  readonly [K in keyof S as S[K] extends PointerParam ? K : never]: readonly number[];
};

type IsOne<T, U = T> = [T] extends [never]
  ? false
  : T extends unknown
    ? [U] extends [T]
      ? true
      : false
    : never;

/** The value that a body returns: the output's element; with several outputs an object of them. */
export type ElementResult<S extends ElementParams> =
  IsOne<OutputNames<S>> extends true
    ? ElementOf<S[OutputNames<S>]>
    : { readonly [K in OutputNames<S>]: ElementOf<S[K]> };

/** The members of `gpu` in a body without threads. */
export type ArithmeticGpu = Pick<Gpu, (typeof ARITHMETIC_NAMES)[number]>;

/** The second parameter of a body. */
export interface ElementGpu extends ArithmeticGpu {
  /** Number of the element in row-major order of the outputs' shape. */
  readonly index: number;
  /**
   * Index along each axis of the outputs' shape. The axis has to be known when the kernel is
   * compiled.
   */
  readonly coordinates: readonly number[];
}

/** The second parameter of a body, with what it uses. */
export type ElementGpuWith<U extends Uses> = ElementGpu & Omit<GpuWith<U>, keyof Gpu>;

type CallArgument<P extends ElementParam> =
  P extends PointerParam<infer D extends KernelDTypeName>
    ? Tensor<D, Shape>
    : P extends StructDeclaration<infer F>
      ? Readonly<StructValue<F>>
      : P extends DType<infer D extends KernelDTypeName>
        ? HostValue<D>
        : never;

/**
 * The arguments of a call: each is a value, or an operation that gives it. An `output` may be left
 * out.
 */
export type ElementArguments<S extends ElementParams> = {
  readonly [K in Exclude<keyof S, NamesOf<S, 'output'>>]:
    CallArgument<S[K]> | DeviceOp<CallArgument<S[K]>>;
} & { readonly [K in NamesOf<S, 'output'>]?: CallArgument<S[K]> | DeviceOp<CallArgument<S[K]>> };

/**
 * The result of a call: the arguments, and new tensors for outputs that were left out. Closing it
 * closes the tensors that the call and its operations made.
 */
export type ElementCallResult<S extends ElementParams, A> = {
  -readonly [K in keyof A | NamesOf<S, 'output'>]: K extends keyof A
    ? Given<A[K]>
    : S[K & keyof S] extends PointerParam<infer D extends KernelDTypeName>
      ? Tensor<D, Shape>
      : never;
} & ClosingResults<keyof A | NamesOf<S, 'output'>>;
