/**
 * Partitions of a tensor into tiles: each block of a kernel's grid gets one tile, and no two tiles
 * have an element in common. Tiles at the far edges are clipped to the tensor.
 *
 * Tiles are numbered in row-major order, from 0 to `count - 1`, by their position in the grid.
 */
import { checkInteger, invalid } from '../ground/arguments.js';
import { layoutOf } from './layout.js';
import type { Layout } from './layout.js';
import { overlapsItself } from './overlapping.js';
import { checkShape, numel, sameShape, showShape } from './shape.js';
import type { Checked, Dims, Known, Shape, Tiled } from './shape-types.js';

/** How a shape is cut into tiles. */
export interface Partition<S extends Shape = Shape, T extends Shape = Shape> {
  /** The shape that is cut. */
  readonly shape: Readonly<S>;
  /** The shape of a tile that is not clipped. */
  readonly tile: Readonly<T>;
  /** Tiles along each axis: extent divided by the tile's, rounded up. */
  readonly grid: Readonly<Known<Tiled<S, T>>>;
  /** Tiles in all. */
  readonly count: number;
}

/**
 * Cuts a shape into tiles of shape `tile`. The last tile of an axis is clipped where the axis'
 * extent is no multiple of the tile's.
 *
 * @throws CudaArgumentError where the ranks differ or a tile is empty
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([5, 4], [2, 2]);
 * console.log(tiles.grid, tiles.count); // [ 3, 2 ] 6
 * ```
 */
export function partition<const S extends Shape, const T extends Shape>(
  shape: S,
  tile: T & Checked<Tiled<S, T>>,
): Partition<Dims<S>, Dims<T>>;
export function partition(shape: Shape, tile: Shape): Partition {
  checkShape('shape', shape);
  checkShape('tile', tile);
  if (tile.length !== shape.length)
    throw invalid(
      'tile',
      `${shape.length} extents, one for each axis of ${showShape(shape)}`,
      tile,
    );
  [...tile].forEach((extent, axis) =>
    checkInteger(`tile[${axis}]`, extent, 1, Number.MAX_SAFE_INTEGER),
  );
  const grid = Object.freeze(shape.map((extent, axis) => Math.ceil(extent / tile[axis]!)));
  return Object.freeze({
    shape: Object.freeze([...shape]),
    tile: Object.freeze([...tile]),
    grid,
    count: numel(grid),
  });
}

/**
 * Gives the position in the grid of tile number `id`.
 *
 * @throws CudaArgumentError for a number that no tile has
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([5, 4], [2, 2]);
 * console.log(layouts.tilePosition(tiles, 5)); // [ 2, 1 ]
 * ```
 */
export function tilePosition({ grid, count }: Partition, id: number): number[] {
  checkTile(id, count);
  const position = new Array<number>(grid.length);
  let rest = id;
  for (let axis = grid.length - 1; axis >= 0; axis--) {
    position[axis] = rest % grid[axis]!;
    rest = Math.floor(rest / grid[axis]!);
  }
  return position;
}

/**
 * Gives the number of the tile at a position in the grid.
 *
 * @throws CudaArgumentError for a position outside the grid
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([5, 4], [2, 2]);
 * console.log(layouts.tileId(tiles, [2, 1])); // 5
 * ```
 */
export function tileId({ grid }: Partition, position: readonly number[]): number {
  if (!Array.isArray(position) || position.length !== grid.length)
    throw invalid(
      'position',
      `${grid.length} numbers, a position in the grid ${showShape(grid)}`,
      position,
    );
  return grid.reduce((id, tiles, axis) => {
    checkTile(position[axis], tiles, `position[${axis}]`);
    return id * tiles + position[axis];
  }, 0);
}

function checkTile(id: unknown, count: number, argument = 'tile'): asserts id is number {
  if (count === 0) throw invalid(argument, 'no tile, since there is nothing to cut', id);
  checkInteger(argument, id, 0, count - 1);
}

/**
 * Gives the part of a layout that is one tile, by its number or its position in the grid. It has
 * the tile's shape; at the far edges it is clipped.
 *
 * @throws CudaArgumentError where no tile has the number, or the layout has another shape than the
 *   partition
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([5, 4], [2, 2]);
 * const last = layouts.tileOf(tiles, layouts.contiguous([5, 4]), [2, 1]);
 * console.log(last.shape, last.offset); // [ 1, 2 ] 18
 * ```
 */
export function tileOf(cut: Partition, layout: Layout, tile: number | readonly number[]): Layout {
  if (!sameShape(cut.shape, layout.shape))
    throw invalid('layout', `the shape that was cut, ${showShape(cut.shape)}`, layout.shape);
  const position = tilePosition(cut, typeof tile === 'number' ? tile : tileId(cut, tile));
  let { offset } = layout;
  const shape = position.map((at, axis) => {
    const start = at * cut.tile[axis]!;
    offset += start * layout.strides[axis]!;
    return Math.min(cut.tile[axis]!, layout.shape[axis]! - start);
  });
  return layoutOf(shape, [...layout.strides], offset);
}

/**
 * Whether the tiles of the layout have no element in common, so that different blocks can write
 * them: whether the layout does not overlap itself.
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([4, 4], [2, 2]);
 * console.log(layouts.isDisjoint(tiles, layouts.contiguous([4, 4]))); // true
 * console.log(layouts.isDisjoint(tiles, layouts.strided([4, 4], [0, 1]))); // false
 * ```
 */
export function isDisjoint(cut: Partition, layout: Layout): boolean {
  if (!sameShape(cut.shape, layout.shape))
    throw invalid('layout', `the shape that was cut, ${showShape(cut.shape)}`, layout.shape);
  return cut.count <= 1 || !overlapsItself(layout);
}

/** A list of tiles of a partition. Launches over it do not touch the others. */
export interface TileList<P extends Partition = Partition> {
  readonly partition: P;
  /** Tiles in the list. */
  readonly count: number;
  /** Numbers of the tiles, in order; `undefined` where they are the first `count`. */
  readonly ids: readonly number[] | undefined;
}

/**
 * Gives a list of the first `count` tiles. A kernel over the list does not touch the others, and
 * its grid does not follow from the shape.
 *
 * @throws CudaArgumentError for a count above the number of tiles
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([4, 4], [2, 2]);
 * console.log(layouts.prefix(tiles, 3).count); // 3
 * ```
 */
export function prefix<P extends Partition>(cut: P, count: number): TileList<P> {
  checkInteger('count', count, 0, cut.count, 'tiles');
  return Object.freeze({ partition: cut, count, ids: undefined });
}

/**
 * Gives a list of the named tiles, in that order, for a persistent kernel, whose blocks each
 * process a part of the list.
 *
 * @throws CudaArgumentError for a number that no tile has, and for one that is named twice, since
 *   two blocks would write its tile
 *
 * @example
 * ```ts
 * const tiles = layouts.partition([4, 4], [2, 2]);
 * const corners = layouts.mapped(tiles, [3, 0]);
 * console.log(corners.count, corners.ids); // 2 [ 3, 0 ]
 * ```
 */
export function mapped<P extends Partition>(cut: P, ids: Iterable<number>): TileList<P> {
  const list = [...ids];
  const seen = new Set<number>();
  list.forEach((id, at) => {
    checkTile(id, cut.count, `ids[${at}]`);
    if (seen.has(id)) throw invalid(`ids[${at}]`, 'each tile once', id);
    seen.add(id);
  });
  return Object.freeze({ partition: cut, count: list.length, ids: Object.freeze(list) });
}

/**
 * Gives the number of the tile at place `at` of a list.
 *
 * @throws CudaArgumentError for a place outside the list
 *
 * @example
 * ```ts
 * const corners = layouts.mapped(layouts.partition([4, 4], [2, 2]), [3, 0]);
 * console.log(layouts.tileInList(corners, 0)); // 3
 * ```
 */
export function tileInList({ ids, count }: TileList, at: number): number {
  checkTile(at, count, 'at');
  return ids === undefined ? at : ids[at]!;
}

/**
 * Gives the tiles of a list that one of `blocks` blocks of a persistent kernel processes: every
 * `blocks`-th from `block` on. Adjacent blocks work on adjacent tiles, and the numbers of tiles of
 * two blocks differ by at most one.
 *
 * @throws CudaArgumentError for more blocks than tiles, or a block from `blocks` on
 *
 * @example
 * ```ts
 * const list = layouts.prefix(layouts.partition([100], [10]), 7);
 * console.log(layouts.shareOf(list, 0, 3)); // [ 0, 3, 6 ]
 * console.log(layouts.shareOf(list, 1, 3)); // [ 1, 4 ]
 * ```
 */
export function shareOf(tiles: TileList, block: number, blocks: number): number[] {
  checkInteger('blocks', blocks, 1, Math.max(tiles.count, 1));
  checkInteger('block', block, 0, blocks - 1);
  const share: number[] = [];
  for (let at = block; at < tiles.count; at += blocks)
    share.push(tiles.ids === undefined ? at : tiles.ids[at]!);
  return share;
}
