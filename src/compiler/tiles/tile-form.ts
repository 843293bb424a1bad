/** How one launch of a tile kernel is laid out: its code is specialised for it. */
import type { RowAccess } from '../element/element-form.js';

/** How one axis of the tiles is cut, and how the threads of a block share it. */
export interface AxisForm {
  readonly name: string;
  /** Elements of a tile along it. */
  readonly tile: number;
  /** Elements that a thread has side by side where they are columns. */
  readonly width: number;
  /**
   * `blocks`: each block has one tile along it; `walk`: each block goes through all of them;
   * `whole`: there is one.
   */
  readonly cut: 'blocks' | 'walk' | 'whole';
  /** No tile goes beyond the end, and no thread beyond its tile's: as rows, as columns. */
  readonly exactRows: boolean;
  readonly exactColumns: boolean;
}

/** Of a tensor's axes. `undefined`: one element, whatever the tile. */
export interface TensorForm {
  /**
   * `run`: from one offset on, by strides that count groups of the last axis' width, but along that
   * axis one behind the other.
   */
  readonly access: RowAccess | 'run';
  /**
   * Numbers of the axes before rows and columns: of each the tensor has one index for the block.
   */
  readonly outer: readonly (number | undefined)[];
  readonly row: number | undefined;
  readonly column: number | undefined;
  /** Axes that it is indexed by where it is strided. */
  readonly rank: number;
}

/**
 * Threads of a block, beside each other along rows (a power of two), and rows that are worked on at
 * once.
 */
export interface ThreadGrid {
  readonly across: number;
  readonly down: number;
}

export interface TileForm extends ThreadGrid {
  readonly axes: readonly AxisForm[];
  readonly tensors: Readonly<Record<string, TensorForm>>;
  /** Whether all tensors are broadcast to rows and columns, which are then axes 0 and 1. */
  readonly broadcast: boolean;
}

/** An axis as it is asked for: its length, its tiles' and the widest access along it. */
export interface CutAxis extends Pick<AxisForm, 'name' | 'tile' | 'cut'> {
  readonly extent: number;
  readonly widest: number;
}

/** Elements that a thread can have in registers. */
export const MOST_ELEMENTS = 128;
const MOST_THREADS = 1024;
/**
 * Columns that a thread has, where there are enough of them: of 4, 8, 16 and 32 the fastest for
 * rows of 4096 floats on an H200.
 */
const COLUMNS = 8;
/** Threads along a row, so that one access of a warp is of whole sectors. */
const SECTOR_THREADS = 8;

const atLeast = (count: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, count)));

/** Rows that one thread has of an axis. */
export const rowSlots = ({ tile }: Pick<AxisForm, 'tile'>, { down }: ThreadGrid): number =>
  Math.ceil(tile / down);

/** Columns that one thread has of an axis. */
export const columnSlots = (
  { tile, width }: Pick<AxisForm, 'tile' | 'width'>,
  { across }: ThreadGrid,
): number => Math.ceil(Math.ceil(tile / width) / across) * width;

/** The axis, shared by these threads. */
function shared(
  { name, tile, cut, extent }: CutAxis,
  width: number,
  threads: ThreadGrid,
): AxisForm {
  const divides = extent % tile === 0;
  return {
    name,
    tile,
    width,
    cut,
    exactRows: divides && rowSlots({ tile }, threads) * threads.down === tile,
    exactColumns: divides && columnSlots({ tile, width }, threads) * threads.across === tile,
  };
}

function widthOf(
  { tile, extent, widest }: CutAxis,
  fits: (width: number) => boolean = () => true,
): number {
  let width = widest;
  while (width > 1 && (tile % width !== 0 || extent % width !== 0 || !fits(width))) width /= 2;
  return width;
}

/**
 * Threads for tiles of these rows and columns, of which elements go into tiles of the same size;
 * undefined where registers do not hold one.
 */
export function threadsFor(
  rows: CutAxis,
  columns: CutAxis,
): Pick<TileForm, 'across' | 'down' | 'axes'> | undefined {
  const width = widthOf(columns);
  const groups = Math.ceil(columns.tile / width);
  let across = Math.max(
    atLeast(Math.ceil(columns.tile / COLUMNS)),
    Math.min(SECTOR_THREADS, atLeast(groups)),
  );
  across = Math.min(MOST_THREADS, across);
  let down = Math.max(1, Math.min(atLeast(rows.tile), 256 / across));
  // Whole warps.
  if (across * down < 32) across = 32 / down;
  down = Math.floor(down);
  const axes = [shared(rows, 1, { across, down }), shared(columns, width, { across, down })];
  if (
    rowSlots(axes[0]!, { across, down }) * columnSlots(axes[1]!, { across, down }) >
    MOST_ELEMENTS
  )
    return undefined;
  return { across, down, axes };
}

/**
 * Elements of a thread, where there are enough: accumulators of a product live in registers through
 * its loop.
 */
const EACH = 32;
const MOST_EACH = 64;
const USUAL_THREADS = 256;

/**
 * Threads for tiles of several shapes, each of a row axis and a column axis, of which the first are
 * the largest output's. The same threads share every axis in the same way, so that what was reduced
 * along one of two tiles goes with the other.
 */
export function threadsForAxes(
  axes: readonly CutAxis[],
  tiles: readonly (readonly [row: number | undefined, column: number | undefined])[],
): Pick<TileForm, 'across' | 'down' | 'axes'> | undefined {
  const extentOf = (axis: number | undefined): number =>
    axis === undefined ? 1 : axes[axis]!.tile;
  const [row, column] = tiles[0]!;
  const [rows, columns] = [extentOf(row), extentOf(column)];
  let threads = Math.min(USUAL_THREADS, Math.max(32, atLeast((rows * columns) / EACH)));
  while (threads < MOST_THREADS && rows * columns > threads * MOST_EACH) threads *= 2;
  for (; threads <= MOST_THREADS; threads *= 2) {
    let across = Math.min(threads, atLeast(Math.sqrt((threads * columns) / rows)));
    if (threads / across > atLeast(rows)) across = threads / atLeast(rows);
    const grid = { across, down: threads / across };
    const cut = axes.map((axis) =>
      shared(
        axis,
        widthOf(axis, (width) => axis.tile / width >= across),
        grid,
      ),
    );
    const slots = tiles.map(
      ([of, by]) =>
        (of === undefined ? 1 : rowSlots(cut[of]!, grid)) *
        (by === undefined ? 1 : columnSlots(cut[by]!, grid)),
    );
    if (Math.max(...slots) <= MOST_ELEMENTS) return { ...grid, axes: cut };
  }
  return undefined;
}

/**
 * Parameters behind the user's: of each axis its length in units of its width; tiles along it,
 * where blocks are numbered by it.
 */
export const extentName = (axis: number): string => `extent$${axis}`;
export const tilesName = (axis: number): string => `tiles$${axis}`;
/** Of a tensor that is a run: its stride along one of its axes. */
export const strideName = (tensor: string, axis: number): string => `${tensor}$stride${axis}`;

/** Axes whose tiles number the blocks, all but the first of which need their number of tiles. */
export const blockAxes = ({ axes }: Pick<TileForm, 'axes'>): number[] =>
  axes.flatMap(({ cut }, axis) => (cut === 'blocks' ? [axis] : []));

/** What the kernel takes behind the user's parameters, in this order. */
export function extraNames(form: TileForm): string[] {
  return [
    ...form.axes.map((_, axis) => extentName(axis)),
    ...blockAxes(form).slice(1).map(tilesName),
    ...Object.entries(form.tensors).flatMap(([name, tensor]) =>
      tensor.access === 'run'
        ? axesOfTensor(tensor)
            .slice(0, -1)
            .map((_, axis) => strideName(name, axis))
        : [],
    ),
  ];
}

/** Numbers of a tensor's axes, in its order; its columns are the last. */
export const axesOfTensor = ({ outer, row, column, rank }: TensorForm): (number | undefined)[] =>
  rank === 1 ? [column] : [...outer, row, column];

/** What reduces a tile. */
export const REDUCTIONS = ['sum', 'max', 'min', 'mean'] as const;

/** What a body finds in its second parameter, beside arithmetic and what it uses. */
export const TILE_NAMES = [...REDUCTIONS, 'over', 'dot', 'transpose'] as const;
