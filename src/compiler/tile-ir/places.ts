/** Places of tiles: the tile that a block has along each axis, and which elements of it exist. */
import type { FunctionBuilder, Value } from '../../tileir/index.js';
import type { KernelTree } from '../tree.js';
import type { Varies } from '../tiles/tile-writer.js';
import { convert } from './arithmetic.js';
import type { MarkedOperation } from './marked-source.js';
import { TileMemory } from './memory.js';
import type { TileIrAxis, TileIrForm } from './tile-ir-form.js';
import { TileBuilder } from './tile-values.js';
import type { Extents, Tile } from './tile-values.js';

/** Rows of tiles whose blocks are adjacent, so that they read the same columns from a cache. */
const GROUP_ROWS = 8;

/** What the kernel is lowered from. */
export interface MarkedKernel {
  readonly tree: KernelTree;
  readonly form: TileIrForm;
  readonly operations: readonly MarkedOperation[];
}

export abstract class TilePlaces {
  protected readonly to: TileBuilder;
  protected readonly tree: KernelTree;
  protected readonly form: TileIrForm;
  protected readonly memory: TileMemory;
  protected readonly operations: readonly MarkedOperation[];
  /** The number of the present tile along each axis, as scalars of i32. */
  protected readonly places = new Map<number, Value>();
  private readonly counts = new Map<number, Value>();
  private zero: Value | undefined = undefined;

  constructor(to: FunctionBuilder, { tree, form, operations }: MarkedKernel) {
    this.to = new TileBuilder(to);
    this.tree = tree;
    this.form = form;
    this.operations = operations;
    this.memory = new TileMemory(this.to, tree.indexType);
  }

  /** Gives the block its tile along each axis that numbers the blocks. */
  protected openPlaces(): void {
    const scalar = this.to.tileType('i32', []);
    const { to } = this.to;
    this.zero = this.to.scalar(this.to.constant(0, 'i32'));
    for (const [axis, { cut }] of this.form.axes.entries()) {
      this.counts.set(axis, this.to.scalar(this.tilesAlong(axis)));
      if (cut === 'whole') this.places.set(axis, this.zero);
    }
    const [block] = to.write('getTileBlockId', { results: [scalar, scalar, scalar] });
    const axes = this.form.axes.flatMap(({ cut }, axis) => (cut === 'blocks' ? [axis] : []));
    let rest = this.to.ofScalar(block!, 'i32');
    const count = (axis: number): Tile => this.to.ofScalar(this.counts.get(axis)!, 'i32');
    const isProduct = this.operations.some(({ is }) => is === 'product');
    const grouped = isProduct ? axes.splice(-2) : [];
    const outer: number[] = grouped.length === 2 ? axes : [...axes, ...grouped];
    if (grouped.length === 2) {
      const [rows, columns] = grouped as [number, number];
      const plane = this.to.integer('muli', count(rows), count(columns));
      const within = outer.length === 0 ? rest : this.to.quotient('remi', rest, plane);
      this.placeGroup(within, [rows, columns], [count(rows), count(columns)]);
      if (outer.length > 0) rest = this.to.quotient('divi', rest, plane);
    }
    // The number of the last axis changes fastest.
    for (const [at, axis] of [...outer.entries()].reverse()) {
      this.places.set(
        axis,
        this.to.scalar(at === 0 ? rest : this.to.quotient('remi', rest, count(axis))),
      );
      rest = this.to.quotient('divi', rest, count(axis));
    }
  }

  /**
   * Blocks go through the columns of some rows of tiles before the next rows, so that both factors
   * of a product are read from the cache of the whole device.
   */
  private placeGroup(
    block: Tile,
    [rows, columns]: readonly [number, number],
    [down, across]: readonly [Tile, Tile],
  ): void {
    const { to } = this;
    const group = to.constant(GROUP_ROWS, 'i32');
    const size = to.integer('muli', group, across);
    const first = to.integer('muli', to.quotient('divi', block, size), group);
    const height = to.lesser(to.integer('subi', down, first), group);
    const within = to.quotient('remi', block, size);
    const row = to.integer('addi', first, to.quotient('remi', within, height));
    this.places.set(rows, to.scalar(row));
    this.places.set(columns, to.scalar(to.quotient('divi', within, height)));
  }

  private lengthOf(axis: number): Tile {
    const { indexType } = this.tree;
    const length = this.memory.lengths.get(axis);
    return length === undefined
      ? this.to.constant(this.form.axes[axis]!.tile, indexType)
      : this.to.ofScalar(length, indexType);
  }

  /** The number of tiles along an axis. */
  private tilesAlong(axis: number): Tile {
    const { tile } = this.form.axes[axis]!;
    const { indexType } = this.tree;
    const length = this.lengthOf(axis);
    const above = this.to.integer('addi', length, this.to.constant(tile - 1, indexType));
    const count = this.to.quotient('divi', above, this.to.constant(tile, indexType));
    return convert(this.to, count, 'i32');
  }

  protected countOf(axis: number): Value {
    return this.counts.get(axis)!;
  }

  protected readonly place = (axis: number | undefined): Value =>
    axis === undefined ? this.zero! : this.places.get(axis)!;

  /** The elements of the present tile along an axis that are in the tensors, of the index type. */
  protected insideOf(axis: number): Tile {
    const { tile } = this.form.axes[axis]!;
    const { indexType } = this.tree;
    const size = this.to.constant(tile, indexType);
    const place = convert(this.to, this.to.ofScalar(this.place(axis), 'i32'), indexType);
    const before = this.to.integer('muli', place, size);
    return this.to.lesser(this.to.integer('subi', this.lengthOf(axis), before), size);
  }

  /** Whether each element along an axis is in the tensors; undefined where all are. */
  protected maskOf(axis: number | undefined, as: 'rows' | 'columns'): Tile | undefined {
    if (axis === undefined || this.form.axes[axis]!.divides) return undefined;
    const { tile } = this.axis(axis);
    const extents: Extents = as === 'rows' ? [tile, 1] : [1, tile];
    const number = this.to.to.one('iota', this.to.tileType('i32', [tile]));
    const numbers = this.to.tile(this.to.reshaped(number, 'i32', extents), 'i32', extents);
    return this.to.compare('lessThan', numbers, convert(this.to, this.insideOf(axis), 'i32'));
  }

  private axis(axis: number): TileIrAxis {
    return this.form.axes[axis]!;
  }

  protected extentsOf({ rows, columns }: Varies): Extents {
    return [
      rows === undefined ? 1 : this.axis(rows).tile,
      columns === undefined ? 1 : this.axis(columns).tile,
    ];
  }
}
