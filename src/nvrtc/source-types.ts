/**
 * Types of kernels from the text of CUDA C++, for the result of `device.compile(source)`.
 *
 * A type that is not fully understood is left untyped, never wrong: such a parameter takes
 * everything that a kernel takes, a whole list likewise. Where kernels may be hidden (in a header
 * of the program, or by a macro) every name is accepted.
 */
import type {
  DeviceBuffer,
  DeviceBuffer2D,
  DTypeName,
  KernelMemory,
  ManagedBuffer,
  Surface,
  Texture,
} from '../core/index.js';
import type { GraphCondition } from '../core/graph-condition.js';
import type { AnyTensor, LaunchArgument, Partitioned, Shape, Tensor } from '../tensor/index.js';
import type { DescriptionsOf } from './description-types.js';
import type { StructureType } from './parameter-types.js';

// Arguments
// ------------------------------------------------------------------------------------------------

/** Memory whose elements have a dtype, or the null pointer. */
export type Readable<D extends DTypeName> =
  | Tensor<D, Shape>
  | Partitioned<D, Shape>
  | DeviceBuffer<D>
  | DeviceBuffer2D<D>
  | ManagedBuffer<D>
  | null;
/**
 * Memory that a kernel may write. It is the same as {@link Readable} to the type checker; a launch
 * checks that it may be written.
 */
export type Writable<D extends DTypeName> =
  | Tensor<D, Shape>
  | Partitioned<D, Shape>
  | DeviceBuffer<D>
  | DeviceBuffer2D<D>
  | ManagedBuffer<D>
  | null;
/** Memory of any dtype, or an address. */
export type AnyMemory =
  KernelMemory | AnyTensor | Partitioned | GraphCondition | number | bigint | null;

/** The argument of a parameter whose type is not known. */
export type Untyped = LaunchArgument;
/** The arguments of a kernel whose parameters are not known. */
export type UntypedParameters = readonly Untyped[];

/**
 * A scalar: 64-bit integers may be bigint, and an unsigned one may be the handle of a texture,
 * surface or condition.
 */
export type ScalarArgument<D extends DTypeName> = D extends 'bool'
  ? boolean
  : D extends 'i64'
    ? number | bigint
    : D extends 'u64'
      ? number | bigint | Texture | Surface | GraphCondition
      : number;

/** A structure by value: an object of its fields, or its bytes. */
export type StructArgument<Fields> = FieldValues<Fields> | ArrayBuffer | ArrayBufferView;

/**
 * An object of a structure's fields; an array is a list of exactly its length, or a typed array.
 */
export type FieldValues<Fields> = { readonly [K in keyof Fields]: FieldValue<Fields[K]> };

type FieldValue<T> =
  T extends StructureType<infer F>
    ? FieldValues<F>
    : T extends readonly [infer E, number]
      ? ArrayLike<FieldValue<E>>
      : T extends 'bool'
        ? boolean
        : T extends 'i64' | 'u64'
          ? number | bigint
          : number;

/** The argument of a launch for a parameter of a description. */
export type ArgumentOf<T> = T extends `input ${infer D}`
  ? MemoryOf<D, 'input'>
  : T extends `inout ${infer D}`
    ? MemoryOf<D, 'inout'>
    : T extends DTypeName
      ? ScalarArgument<T>
      : T extends StructureType<infer F>
        ? StructArgument<F>
        : Untyped;

// char is signed on every platform of CUDA, and texts use it for bytes.
type MemoryOf<D extends string, A extends 'input' | 'inout'> = D extends 'char'
  ? A extends 'input'
    ? Readable<'i8' | 'u8'>
    : Writable<'i8' | 'u8'>
  : D extends DTypeName
    ? A extends 'input'
      ? Readable<D>
      : Writable<D>
    : AnyMemory;

type ArgumentsOf<P> = P extends readonly unknown[]
  ? { readonly [K in keyof P]: ArgumentOf<P[K]> }
  : UntypedParameters;

// Kernels
// ------------------------------------------------------------------------------------------------

/**
 * The kernels of a text of CUDA C++, each with the arguments of its launch: one property for each
 * `extern "C" __global__ void name(…)`, and {@link UntypedParameters} where its list is not
 * understood. For a text that is no literal, and for one that may have more kernels than were read,
 * there is a property for every name.
 *
 * `KernelsOf<'extern "C" __global__ void scale(float* y, const float* x, float k, int n) { … }'>`
 * is `{ readonly scale: readonly [Writable<'f32'>, Readable<'f32'>, number, number] }`.
 */
export type KernelsOf<Source extends string> = ArgumentsOfEach<DescriptionsOf<Source>>;

type ArgumentsOfEach<T> = { readonly [K in keyof T]: ArgumentsOf<T[K]> };
