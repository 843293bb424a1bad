/** The form of one launch of a tile kernel: the code is specialised for it. */
import { FACTORS } from '../factors.js';
import type { Accumulator } from '../factors.js';
import type { StorageType } from '../tree.js';
import type { RowAccess } from '../element/element-form.js';

/** How one axis of the tiles is cut, and how the threads of a block share it. */
export interface AxisForm {
  readonly name: string;
  /** Elements of a tile along the axis. */
  readonly tile: number;
  /** Elements that a thread has side by side where the axis is columns. */
  readonly width: number;
  /**
   * `blocks`: each block has one tile along the axis; `walk`: each block goes through all of them;
   * `whole`: there is one.
   */
  readonly cut: 'blocks' | 'walk' | 'whole';
  /** Whether no tile goes beyond the end, and no thread beyond its tile's: as rows, as columns. */
  readonly exactRows: boolean;
  readonly exactColumns: boolean;
}

/** The form of a tensor's axes. `undefined`: one element, whatever the tile. */
export interface TensorForm {
  /**
   * `run`: it starts at one offset. Strides count groups of the last axis' width; along that axis
   * elements are contiguous.
   */
  readonly access: RowAccess | 'run';
  /**
   * Numbers of the axes before rows and columns: the tensor has one index of each for the block.
   */
  readonly outer: readonly (number | undefined)[];
  readonly row: number | undefined;
  readonly column: number | undefined;
  /** The number of axes that it is indexed by where it is strided. */
  readonly rank: number;
}

/**
 * Threads of a block: `across` beside each other along rows (a power of two), and `down` rows at a
 * time.
 */
export interface ThreadGrid {
  readonly across: number;
  readonly down: number;
}

/** A factor of a product: a tensor's tile, or its transpose. */
export interface FactorForm {
  readonly name: string;
  readonly turned: boolean;
}

/** A factor whose elements lie along `turned`'s axis as its instruction takes them. */
export interface ProductFactor extends FactorForm {
  readonly storage: StorageType;
}

/**
 * A product that tensor cores compute: `sum = tile.dot(left, right, sum)` in a loop over all tiles
 * of an axis. `across` and `down` are such that a thread's elements are those that the instruction
 * gives it: rows 8 apart, and two columns of every eight of its warp.
 */
interface TensorCoreProduct {
  readonly left: ProductFactor;
  readonly right: ProductFactor;
  /** Numbers of axes. */
  readonly rows: number;
  readonly columns: number;
  readonly summed: number;
  /** Whether tensor cores sum in f16; else in what {@link sumsOf} gives. */
  readonly halfSums?: true;
  /** Steps whose factors are in shared memory at a time. */
  readonly stages: number;
}

/**
 * A product that Hopper's warp groups compute. Its factors are copied by tensor maps, in steps of
 * lines of 128 bytes. Each of the block's warp groups has 64 rows, and one more begins the copies.
 */
export interface WarpGroupProduct extends TensorCoreProduct {
  readonly by: 'warp groups';
  /** The tensor whose tile tensor copies write, from shared memory. */
  readonly copied: CopiedForm | undefined;
}

/** A product that warps compute. Its factors are runs. */
export interface WarpProduct extends TensorCoreProduct {
  readonly by: 'warps';
  /** Elements of the summed axis in one step. */
  readonly depth: number;
  /** Rows of a warp, and warps beside each other, which have groups of eight columns in turn. */
  readonly warpRows: number;
  readonly warpsAcross: number;
}

/**
 * Two products that Hopper's warp groups compute in one loop over `summed`: `sums = tile.dot(f(
 * tile.dot(left, right)), values, sums)`. The first one's tile, `rows` by `summed`, stays in
 * registers and is the left factor of the second. The left factor of the first is copied once for
 * each tile of rows.
 */
export interface ChainedProducts {
  readonly by: 'chain';
  readonly left: ProductFactor;
  readonly right: ProductFactor;
  readonly values: ProductFactor;
  /** Numbers of axes: `inner` is the one that the first product sums over. */
  readonly rows: number;
  readonly columns: number;
  readonly summed: number;
  readonly inner: number;
  /** Steps whose factors are in shared memory at a time. */
  readonly stages: number;
  /** Matrices whose tiles are computed beside each other. */
  readonly section: number;
  /** The tensor whose tile tensor copies write, from shared memory. */
  readonly copied: CopiedForm | undefined;
}

export type ProductForm = WarpGroupProduct | WarpProduct | ChainedProducts;

/** A tensor of rows and columns of a product, which the body stores once. */
export interface CopiedForm {
  readonly name: string;
  readonly storage: 'f16' | 'bf16' | 'f32' | 'i32';
}

/** Bytes of a line in shared memory. */
export const LINE_BYTES = 128;
/** Lines of a tile that a warp group copies at once, and for how many such parts it has room. */
export const PART_LINES = 64;
export const PARTS = 2;

/** Elements of the summed axis in one instruction, and in one step: lines of 128 bytes. */
export const depthOf = ({ left }: ProductForm): number => FACTORS[left.storage]!.depth;
export const stepOf = (product: WarpGroupProduct): number => 4 * depthOf(product);
/** Storage of a product's sums in the body, and of those that are computed without tensor cores. */
export type SumStorage = 'f32' | 'i32';
export const sumsOf = (factor: StorageType): SumStorage =>
  INTEGERS.includes(factor) ? 'i32' : 'f32';
/** What tensor cores sum a product in. */
export const ownSums = ({ left, halfSums }: WarpGroupProduct | WarpProduct): Accumulator =>
  halfSums === true ? 'f16' : sumsOf(left.storage);
/** Whether each step has sums of its own, which are added to the others. */
export const addsSteps = ({ left, halfSums }: WarpGroupProduct | WarpProduct): boolean =>
  halfSums !== true && FACTORS[left.storage]!.addsSteps;
/** Storage of integers that products multiply exactly, modulo 2^32. */
export const INTEGERS: readonly StorageType[] = ['i8', 'u8', 'i16', 'u16', 'i32', 'u32'];
/** Rows from one of a thread's elements to the next, and threads of a warp along a row. */
export const PRODUCT_ROWS = 8;
export const PRODUCT_ACROSS = 4;
/** Columns of a thread side by side. */
export const PRODUCT_WIDTH = 2;

export interface TileForm extends ThreadGrid {
  readonly product?: ProductForm;
  readonly axes: readonly AxisForm[];
  readonly tensors: Readonly<Record<string, TensorForm>>;
  /** Whether all tensors are broadcast to rows and columns, which are then axes 0 and 1. */
  readonly broadcast: boolean;
}

/** An axis before its form is chosen: its length, its tiles' and the widest access along it. */
export interface CutAxis extends Pick<AxisForm, 'name' | 'tile' | 'cut'> {
  readonly extent: number;
  readonly widest: number;
}

/** The limit of elements that a thread has in registers. */
export const MOST_ELEMENTS = 128;
const MOST_THREADS = 1024;
/**
 * Columns of a thread, where there are enough of them: of 4, 8, 16 and 32 the fastest for rows of
 * 4096 floats on an H200.
 */
const COLUMNS = 8;
/** Threads along a row, so that one access of a warp covers whole sectors. */
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

/** The form of an axis that these threads share. */
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
 * Gives the threads for tiles of these rows and columns, whose elements go into tiles of the same
 * size; undefined where registers do not hold one.
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
  // A block has whole warps.
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
 * Gives the threads for tiles of several shapes, each with a row axis and a column axis; the first
 * are the largest output's. The same threads share every axis in the same way, so that a reduction
 * along one of two tiles fits the other.
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
 * Parameters after the user's: for each axis its length in units of its width, and its number of
 * tiles, where blocks are numbered by it.
 */
export const extentName = (axis: number): string => `extent$${axis}`;
export const tilesName = (axis: number): string => `tiles$${axis}`;
/** The parameter for the stride of a tensor that is a run, along one of its axes. */
export const strideName = (tensor: string, axis: number): string => `${tensor}$stride${axis}`;

/** The axes whose tiles number the blocks; all but the first need their number of tiles. */
export const blockAxes = ({
  axes,
}: {
  readonly axes: readonly Pick<AxisForm, 'cut'>[];
}): number[] => axes.flatMap(({ cut }, axis) => (cut === 'blocks' ? [axis] : []));

/** The parameters after the user's, in this order. */
export function extraNames(form: TileForm): string[] {
  return [
    ...form.axes.map((_, axis) => extentName(axis)),
    ...blockAxes(form)
      .slice(form.product === undefined ? 1 : 0)
      .map(tilesName),
    ...Object.entries(form.tensors).flatMap(([name, tensor]) =>
      tensor.access === 'run'
        ? axesOfTensor(tensor)
            .slice(0, -1)
            .map((_, axis) => strideName(name, axis))
        : [],
    ),
  ];
}

/** The numbers of a tensor's axes, in its order; its columns are the last. */
export const axesOfTensor = ({ outer, row, column, rank }: TensorForm): (number | undefined)[] =>
  rank === 1 ? [column] : [...outer, row, column];

/** Bytes of shared memory that a kernel can declare. */
export const SHARED_BYTES = 48 << 10;
/**
 * Bytes of an element in shared memory: buffers of products hold f32, and results of reductions
 * have as many bytes or twice as many.
 */
export const BYTES = 4;

/** Reductions of a tile. */
export const REDUCTIONS = ['sum', 'max', 'min', 'mean'] as const;

/** Names of functions whose threads exchange elements, and of loops. */
export const EXCHANGING_NAMES = [...REDUCTIONS, 'over', 'dot', 'transpose'] as const;
/** Names in a body's second parameter, beside arithmetic and `uses`. */
export const TILE_NAMES = [...EXCHANGING_NAMES, 'index', 'start', 'end'] as const;
