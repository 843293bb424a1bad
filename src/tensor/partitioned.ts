/**
 * A tensor that is cut into tiles, which the blocks of a launch write; the tiles are disjoint.
 * While the partition is open, its elements are written by way of it only.
 */
import { CudaArgumentError } from '../core/index.js';
import type { DTypeName, DeviceBuffer } from '../core/index.js';
import { PARTS } from '../core/holder.js';
import { overlaps, overlapsItself } from './overlapping.js';
import { mapped, partition, prefix, tileOf } from './partition.js';
import type { Partition, TileList } from './partition.js';
import { showShape } from './shape.js';
import type { Shape } from './shape-types.js';
import type { AnyTensor, Tensor } from './tensor.js';

/** Open partitions, by the memory that they write. */
const claims = new WeakMap<object, Set<Partitioned<DTypeName, Shape>>>();

/** The open partition that has elements in common with the tensor. */
export function claimOf({
  buffer,
  layout,
}: Pick<AnyTensor, 'buffer' | 'layout'>): Partitioned<DTypeName, Shape> | undefined {
  for (const claim of claims.get(buffer.memory) ?? [])
    if (mayShare(claim.tensor, { buffer, layout })) return claim;
  return undefined;
}

function mayShare(a: AnyTensor, b: { buffer: DeviceBuffer; layout: AnyTensor['layout'] }): boolean {
  // Layouts of different dtypes or buffers are not comparable: any two of them count as shared.
  if (a.buffer.dtype.bytes !== b.buffer.dtype.bytes || a.buffer.byteOffset !== b.buffer.byteOffset)
    return true;
  return overlaps(a.layout, b.layout);
}

/**
 * A tensor cut into tiles, made by {@link Tensor.partition}. As a kernel argument it gives the
 * launch its grid: one block for each tile. While it is open, the tensor is not written in another
 * way.
 *
 * @example
 * ```ts
 * using x = await device.zeros(f32, [5, 4]);
 * using tiles = x.partition([2, 2]);
 * console.log(tiles.grid, tiles.count); // [ 3, 2 ] 6
 * console.log(tiles.tile([2, 1]).shape); // [ 1, 2 ]
 * ```
 */
export class Partitioned<
  D extends DTypeName = DTypeName,
  S extends Shape = Shape,
> implements Disposable {
  readonly tensor: Tensor<D, S>;
  /** The tiles: their extents, and how many along each axis. */
  readonly tiles: Partition;
  /** The tiles that a launch writes; `undefined` for all of them. */
  readonly list: TileList | undefined;
  private readonly whole: Partitioned<D, S> | undefined;
  private open = true;

  /** @internal */
  constructor(
    tensor: Tensor<D, S>,
    tile: Shape | Partition,
    list?: TileList,
    whole?: Partitioned<D, S>,
  ) {
    this.tensor = tensor;
    this.tiles = Array.isArray(tile)
      ? partition(tensor.shape as Shape, tile as never)
      : (tile as Partition);
    this.list = list;
    this.whole = whole;
    if (whole !== undefined) return;
    const any = tensor as unknown as AnyTensor;
    if (overlapsItself(tensor.layout)) {
      throw new CudaArgumentError(
        'tensor',
        `partition: elements of ${tensor.toString()} lie in the same place, as in a ` +
          'broadcast view: tiles would not be disjoint. Partition the tensor that it is a view ' +
          'of.',
      );
    }
    const other = claimOf(any);
    if (other !== undefined)
      throw new CudaArgumentError(
        'tensor',
        `partition: ${tensor.toString()} is in a partition already: ${other.toString()}. ` +
          'Call its unpartition() first, or write tryPartition(…).',
      );
    let claimed = claims.get(tensor.buffer.memory);
    if (claimed === undefined) claims.set(tensor.buffer.memory, (claimed = new Set()));
    claimed.add(this);
  }

  /** The number of tiles along each axis. Tiles at the far edges are clipped. */
  get grid(): readonly number[] {
    return this.tiles.grid;
  }

  /** The number of tiles that a launch writes. */
  get count(): number {
    return this.list?.count ?? this.tiles.count;
  }

  /** Whether the partition can be used: `unpartition()` was not called. */
  get isOpen(): boolean {
    return this.whole?.isOpen ?? this.open;
  }

  /**
   * Gives the view of one tile, by its number in row-major order or its position. It is clipped at
   * the far edges.
   *
   * @throws CudaArgumentError where no tile has the number, or the partition has ended
   */
  tile(tile: number | readonly number[]): Tensor<D, Shape> {
    this.check();
    return this.tensor.view(tileOf(this.tiles, this.tensor.layout, tile));
  }

  /** Gives the partition of the first `count` tiles. It ends with this one. */
  prefix(count: number): Partitioned<D, S> {
    this.check();
    return new Partitioned(this.tensor, this.tiles, prefix(this.tiles, count), this.whole ?? this);
  }

  /**
   * Gives the partition of a list of tiles, which persistent blocks share; the grid of a launch is
   * the number of blocks. It ends with this one.
   */
  map(ids: Iterable<number>): Partitioned<D, S> {
    this.check();
    return new Partitioned(this.tensor, this.tiles, mapped(this.tiles, ids), this.whole ?? this);
  }

  /** Ends the partition. The tensor can be written in any way again. */
  unpartition(): Tensor<D, S> {
    const whole = this.whole ?? this;
    whole.open = false;
    claims.get(this.tensor.buffer.memory)?.delete(whole);
    return this.tensor;
  }

  /** A step that gives a partition also gives its tensor. @internal */
  get [PARTS](): Iterable<unknown> {
    return [this.tensor];
  }

  /** {@link unpartition}, for `using`. */
  [Symbol.dispose](): void {
    this.unpartition();
  }

  /** @internal */
  check(): void {
    if (!this.isOpen)
      throw new CudaArgumentError(
        'partition',
        `${this.toString()}: used after unpartition(). Partition the tensor again.`,
      );
    this.tensor.checkAlive();
  }

  toString(): string {
    const some = this.list === undefined ? '' : `, ${this.list.count} of them`;
    return (
      `Partitioned ${showShape(this.tensor.shape)} in tiles of ${showShape(this.tiles.tile)}, ` +
      `${this.tiles.grid.join(' × ')}${some}${this.isOpen ? '' : ', ended'}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}
