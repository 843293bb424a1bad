/** Types of a tile kernel's body. */
import type { Access, DType, KernelDTypeName, PointerParam } from '../core/index.js';
import type { Gpu } from '../compiler/gpu.js';
import type { GpuWith } from './body-types.js';
import type { ArithmeticGpu, ElementParams, TensorShapes } from './element-types.js';
import type { StructDeclaration, StructFields } from '../core/struct-declaration.js';
import type { TileExtent, TileSize } from './tile-cuts.js';
import type { Uses } from './uses.js';

type Value<D extends KernelDTypeName> = D extends 'bool' ? boolean : number;

declare const axisOfStep: unique symbol;

/**
 * A tile of a loop over an axis. `load` and `store` take it to select the tile. It is no number.
 */
export interface TileStep<A extends string = string> {
  readonly [axisOfStep]: A;
}

/** A tensor whose tile is read. */
export interface LoadedTile<T, W extends string = never> {
  /**
   * The tile of this block, as a number to the type checker: arithmetic on it is done for each
   * element. Along axes that the block walks, the tile of `steps`.
   */
  load(...steps: readonly TileStep<W>[]): T;
}

/** A tensor whose tile is written. */
export interface StoredTile<T, W extends string = never> {
  /**
   * Writes the tile of this block, clipped at the edge; along axes that the block walks, the tile
   * of `steps`. A value that is the same along an axis is repeated along it.
   */
  store(value: T, ...steps: readonly TileStep<W>[]): void;
}

type TileOf<T, A extends Access, W extends string> = A extends 'input'
  ? LoadedTile<T, W>
  : A extends 'output'
    ? StoredTile<T, W>
    : LoadedTile<T, W> & StoredTile<T, W>;

type Fields<F extends StructFields> = { readonly [K in keyof F]: Value<F[K]['name']> };

type TileArgument<P, W extends string> =
  P extends PointerParam<infer D extends KernelDTypeName, infer A>
    ? TileOf<Value<D>, A, W>
    : P extends StructDeclaration<infer F>
      ? Fields<F>
      : P extends DType<infer D extends KernelDTypeName>
        ? Value<D>
        : never;

/** The first parameter of a body. */
export type TileArguments<S extends ElementParams, T extends TileSize = TileSize> = {
  readonly [K in keyof S]: TileArgument<S[K], WalkedAxis<T>>;
};

/** Names of the axes of which each block has all tiles. */
export type WalkedAxis<T extends TileSize> = T extends readonly [infer R, infer C]
  ? (R extends number ? never : 'rows') | (C extends number ? never : 'columns')
  : { [K in keyof T]: T[K] extends number ? never : K & string }[keyof T];

/**
 * Lengths of all axes by name; without names, rows and columns of all tensors, or the shape of
 * each.
 */
export type TileExtents<S extends ElementParams, T extends TileSize> = T extends readonly unknown[]
  ? readonly [rows: number, columns: number] | TensorShapes<S>
  : { readonly [K in keyof T]: number };

/** Another tile of the same axes. */
export type OtherTile<T extends TileSize> = T extends readonly unknown[]
  ? readonly [rows: TileExtent, columns: TileExtent]
  : { readonly [K in keyof T]: TileExtent };

/** Names of axes for each tensor, where the tile's axes have names. */
export type TileAxesOption<
  S extends ElementParams,
  T extends TileSize,
> = T extends readonly unknown[]
  ? { readonly axes?: undefined }
  : {
      readonly axes: {
        readonly [K in keyof S as S[K] extends PointerParam ? K : never]: readonly (
          (keyof T & string) | 1
        )[];
      };
    };

/** Options of `tile.dot`. */
export interface DotOptions {
  /**
   * `'exact'`: each term is rounded once, in the order of the summed axis, with the same bits on
   * every device. `'tensor'`: tensor cores add them, where the device has them for the dtypes; f32
   * is then rounded to tf32, towards zero. Default: `'exact'` for f32, else `'tensor'`. Products of
   * integers are exact by both.
   */
  readonly precision?: 'exact' | 'tensor';
  /**
   * What tensor cores sum in: `'f32'`, or `'f16'` for factors of f16 and f8; `'i32'` for those of
   * i8 and u8. Sums of f16 take half of the registers. Each instruction rounds them to f16, and
   * beyond 65504 they are infinite. A product that tensor cores do not compute has sums of f32
   * instead. Default: f32, and i32 for integers.
   */
  readonly accumulate?: 'f32' | 'f16' | 'i32';
}

/**
 * The second parameter of a body. Reductions cover the tile's elements that are in the tensor:
 * along axis 1 they give one result for each row, along axis 0 one for each column, without an axis
 * one for the tile. The results are the same on every device, to the bit.
 */
export interface Tile extends Omit<ArithmeticGpu, 'local' | 'unroll'> {
  /**
   * The product of two tiles, where the columns of `a` and the rows of `b` are one axis; it is
   * added to `sum` where that is given. It is computed in f32, term by term in the order of that
   * axis and rounded once for each: the same bits on every device. Where both tiles are integers of
   * at most 32 bits, or computed from such, it is computed in i32, modulo 2^32. It takes tiles of
   * tensors with named axes only, and elements of at most 32 bits.
   *
   * From compute capability 8.0 on, tensor cores compute a product that is the only statement of
   * its loop, of tiles of f16, bf16, i8 and u8, f8e4m3 and f8e5m2 (from 8.9 on), or of f32 with `{
   * precision: 'tensor' }`. Sums of f16 and bf16 are within `K · 2^-22` of the sum of the products'
   * magnitudes, those of f8 within `2^-10`, those of f32 within `2^-9`, and with `{ accumulate:
   * 'f16' }` within `(K / 16 + 2) · 2^-10`. wgmma.mma_async on compute capability 9.0, else
   * mma.sync
   *
   * On compute capability 9.0 they also compute two products of one loop where the tile of the
   * first, converted by `tile.f16` or `tile.bf16`, is the left factor of the second, as in
   * attention. The report says which products of a kernel they compute.
   *
   * @throws CudaCompileError when the kernel is first run, for tiles of f64, i64 and u64, with
   *   `'tensor'` for dtypes that tensor cores do not multiply, and with an `accumulate` in which no
   *   instruction sums products of the dtypes
   */
  dot(a: number, b: number, sum?: number, options?: DotOptions): number;
  /** The tile with rows and columns exchanged. It takes tiles of tensors with named axes only. */
  transpose(value: number): number;
  sum(value: number, axis?: 0 | 1): number;
  /** The maximum. A NaN among the elements gives NaN. */
  max(value: number, axis?: 0 | 1): number;
  /** The minimum. A NaN among the elements gives NaN. */
  min(value: number, axis?: 0 | 1): number;
  /**
   * The sum divided by the number of elements. The mean of integers is f32, and their sum is kept
   * in 64 bits.
   */
  mean(value: number, axis?: 0 | 1): number;
}

/** Loops of a body. `W`: the axes of which each block has all tiles. */
export interface TileLoops<W extends string = never> {
  /**
   * The tiles of an axis that is cut by `{ walk }`, or the one tile of `null`, to loop over: `for
   * (const part of tile.over('k')) … x.load(part)`.
   */
  over<A extends W>(axis: A, range?: TileRange): Iterable<TileStep<A>>;
}

/** Options of `tile.over`: the loop has the tiles with elements from `from` to before `to`. */
export interface TileRange {
  /**
   * The number of an element: an integer that is the same for the whole tile, as of `tile.start`,
   * an i32 scalar or a constant. Default: 0.
   */
  readonly from?: number;
  /** The same, of the one after the last. Default: the length of the axis. */
  readonly to?: number;
}

/** Places of the tile's elements. `A`: the axes. */
export interface TilePlaces<A extends string = never> {
  /**
   * The numbers of the tile's elements along an axis, of i32 (i64 for tensors of 2^31 elements):
   * with 0 one for each row, with 1 one for each column. An axis that is cut by `{ walk }` has them
   * within its loop.
   */
  index(axis: A, along: 0 | 1): number;
  /** The number of the tile's first element along an axis. */
  start(axis: A): number;
  /** The number after that of the tile's last element along an axis: at most its length. */
  end(axis: A): number;
}

/** Names of all axes. */
type NamedAxis<T extends TileSize> = T extends readonly unknown[]
  ? 'rows' | 'columns'
  : keyof T & string;

/** The second parameter of a body, with what it uses. */
export type TileWith<U extends Uses, T extends TileSize = TileSize> = Tile &
  TileLoops<WalkedAxis<T>> &
  TilePlaces<NamedAxis<T>> &
  Omit<GpuWith<U>, keyof Gpu>;
