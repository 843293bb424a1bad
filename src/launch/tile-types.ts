/** What the type checker knows of a tile kernel's body. */
import type { Access, DType, DTypeName, PointerParam } from '../core/index.js';
import type { Gpu } from '../kernel/gpu.js';
import type { GpuWith } from './body-types.js';
import type { ArithmeticGpu, ElementParams } from './element-types.js';
import type { StructDeclaration, StructFields } from './struct-declaration.js';
import type { Uses } from './uses.js';

type Value<D extends DTypeName> = D extends 'bool' ? boolean : number;

/** A tensor whose tile is read. */
export interface LoadedTile<T> {
  /** The tile of this block, as a number to the type checker: arithmetic on it is done for each element. */
  load(): T;
}

/** A tensor whose tile is written. */
export interface StoredTile<T> {
  /** Writes the tile of this block, clipped at the edge. A value that is the same along an axis is repeated along it. */
  store(value: T): void;
}

type TileOf<T, A extends Access> = A extends 'input' ? LoadedTile<T> : A extends 'output' ? StoredTile<T> : LoadedTile<T> & StoredTile<T>;

type Fields<F extends StructFields> = { readonly [K in keyof F]: Value<F[K]['name']> };

type TileArgument<P> =
  P extends PointerParam<infer D, infer A> ? TileOf<Value<D>, A> : P extends StructDeclaration<infer F> ? Fields<F> : P extends DType<infer D> ? Value<D> : never;

/** The first parameter of a body. */
export type TileArguments<S extends ElementParams> = { readonly [K in keyof S]: TileArgument<S[K]> };

/**
 * The second parameter of a body. Reductions are of the tile's elements that are in the tensor: along axis 1 one result for
 * each row, along axis 0 one for each column, without an axis one in all. They are the same on every device, to the bit.
 */
export interface Tile extends Omit<ArithmeticGpu, 'local' | 'unroll'> {
  sum(value: number, axis?: 0 | 1): number;
  /** NaN wins. */
  max(value: number, axis?: 0 | 1): number;
  /** NaN wins. */
  min(value: number, axis?: 0 | 1): number;
  /** The sum divided by the number of elements. Of integers it is truncated. */
  mean(value: number, axis?: 0 | 1): number;
}

/** The second parameter of a body, with what it uses. */
export type TileWith<U extends Uses> = Tile & Omit<GpuWith<U>, keyof Gpu>;
