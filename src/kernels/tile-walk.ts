/**
 * How the tensors of one call are walked in tiles. A tile kernel's code and launch follow from it.
 */
import { invalid } from '../ground/arguments.js';
import type { CutAxis, TensorForm } from '../compiler/tiles/tile-form.js';
import type { Layout } from '../tensor/index.js';
import type { TileCuts } from './tile-cuts.js';

export interface TileWalk {
  readonly axes: readonly CutAxis[];
  readonly tensors: Readonly<Record<string, TensorForm>>;
  /** The layout in which the kernel is passed each tensor. */
  readonly layouts: ReadonlyMap<string, Layout>;
  /**
   * Strides of tensors that are contiguous runs, by the names of the parameters, in units of the
   * width of their last axis, which `width` gives.
   */
  strides(width: (axis: number | undefined) => number): Readonly<Record<string, number>>;
}

/**
 * Bytes that one instruction reads or writes at most, and elements that one thread has side by
 * side.
 */
export const WIDEST = 16;
export const SIDE_BY_SIDE = 4;

/** Cuts an axis of so many elements. */
export function cutAxis(
  kernel: string,
  cuts: TileCuts,
  axis: number,
  extent: number,
  widest: number,
): CutAxis {
  const cut = cuts.cuts[axis]!;
  const name = cuts.names[axis]!;
  if (cut === null) {
    if (extent === 0)
      throw invalid(
        `args of kernel '${kernel}'`,
        `tensors with elements along ${name}, of which a tile has all`,
        'none',
        `Cut ${name} by { walk: 64 }: a loop over no tiles is done no time.`,
      );
    return { name, tile: rounded(extent), cut: 'whole', extent, widest };
  }
  return typeof cut === 'number'
    ? { name, tile: cut, cut: 'blocks', extent, widest }
    : { name, tile: cut.walk, cut: 'walk', extent, widest };
}

/**
 * Rounds an extent for all of an axis: lengths that are close share one extent, and so one code. At
 * most an eighth is left over.
 */
function rounded(extent: number): number {
  const step = Math.max(1, 2 ** Math.ceil(Math.log2(extent)) / 8);
  return Math.ceil(extent / step) * step;
}
