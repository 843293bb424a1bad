/** The form of one launch of a tile kernel whose back end is Tile IR. */
import type { TileForm } from '../tiles/tile-form.js';

/** How one axis of the tiles is cut. */
export interface TileIrAxis {
  readonly name: string;
  /** Elements of a tile along the axis, a power of two. */
  readonly tile: number;
  readonly cut: 'blocks' | 'walk' | 'whole';
  /** Whether no tile goes beyond the end. */
  readonly divides: boolean;
}

/** The fact about a stride that the code relies on: 1, a multiple of 16 bytes, or none. */
export type StrideFact = 'one' | 'sixteen' | 'any';

/** A tensor: its axes in order, and a fact about the stride of each. */
export interface TileIrTensor {
  /** Numbers of axes; undefined for an axis of one element. */
  readonly axes: readonly (number | undefined)[];
  readonly strides: readonly StrideFact[];
}

export interface TileIrForm {
  readonly axes: readonly TileIrAxis[];
  readonly tensors: Readonly<Record<string, TileIrTensor>>;
  /** Whether all tensors are broadcast to rows and columns, which are then axes 0 and 1. */
  readonly broadcast: boolean;
}

/** The form of the text that marks operations on tiles: each tile is one value of one thread. */
export const markedForm = ({ axes, tensors, broadcast }: TileIrForm): TileForm => ({
  across: 1,
  down: 1,
  axes: axes.map(({ name, tile, cut, divides }) => ({
    ...{ name, tile, cut },
    width: 1,
    exactRows: divides,
    exactColumns: divides,
  })),
  tensors: Object.fromEntries(
    Object.entries(tensors).map(([name, { axes: own }]) => [
      name,
      {
        access: 'run',
        outer: own.slice(0, -2),
        row: own.at(-2),
        column: own.at(-1),
        rank: own.length,
      },
    ]),
  ),
  broadcast,
});
