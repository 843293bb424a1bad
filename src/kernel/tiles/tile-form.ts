/** How one launch of a tile kernel is laid out: its code is specialised for it. */
import type { RowAccess } from '../element/element-form.js';

export interface TileForm {
  /** Rows and columns of a tile. */
  readonly tile: readonly [rows: number, columns: number];
  /** Threads beside each other along a row: a power of two. */
  readonly across: number;
  /** Rows that are worked on at once. */
  readonly down: number;
  /** Columns that one thread has side by side. */
  readonly width: number;
  /** Rows and columns that one thread has. */
  readonly rows: number;
  readonly columns: number;
  /** No tile goes beyond the last row (column), and no thread beyond its tile's. */
  readonly exactRows: boolean;
  readonly exactColumns: boolean;
  /** A tile has all columns. */
  readonly wholeRows: boolean;
  readonly access: Readonly<Record<string, RowAccess>>;
}

/** Elements that a thread can have in registers. */
const MOST_ELEMENTS = 128;
const MOST_THREADS = 1024;
/** Columns that a thread has, where there are enough of them. */
const COLUMNS = 16;
/** Threads along a row, so that one access of a warp is of whole sectors. */
const SECTOR_THREADS = 8;

const atLeast = (count: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, count)));

/** Threads and elements for tiles of this size; undefined where registers do not hold one. */
export function threadsFor(tile: readonly [number, number], extents: readonly [number, number], widest: number): Omit<TileForm, 'access'> | undefined {
  const [tileRows, tileColumns] = tile;
  let width = widest;
  while (width > 1 && (tileColumns % width !== 0 || extents[1] % width !== 0)) width /= 2;
  const groups = Math.ceil(tileColumns / width);
  let across = Math.max(atLeast(Math.ceil(tileColumns / COLUMNS)), Math.min(SECTOR_THREADS, atLeast(groups)));
  across = Math.min(MOST_THREADS, across);
  let down = Math.max(1, Math.min(atLeast(tileRows), 256 / across));
  // Whole warps.
  if (across * down < 32) across = 32 / down;
  down = Math.floor(down);
  const rows = Math.ceil(tileRows / down);
  const columns = Math.ceil(groups / across) * width;
  if (rows * columns > MOST_ELEMENTS) return undefined;
  return {
    tile, across, down, width, rows, columns,
    exactRows: extents[0] % tileRows === 0 && rows * down === tileRows, exactColumns: extents[1] % tileColumns === 0 && columns * across === tileColumns, wholeRows: tileColumns >= extents[1],
  };
}

/** Parameters behind the user's: rows of all tiles, columns in units of the form's width, tiles beside each other. */
export const EXTENT_NAMES = ['rows$', 'groups$', 'tiles$'] as const;

/** What a body finds in its second parameter, beside arithmetic and what it uses. */
export const TILE_NAMES = ['sum', 'max', 'min', 'mean'] as const;
