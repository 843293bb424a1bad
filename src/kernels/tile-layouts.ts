/**
 * How the tensors of a tile kernel's call are walked: broadcast to one shape, whose last axis is
 * the columns and whose other axes are the rows.
 */
import { invalid } from '../ground/arguments.js';
import { DTYPES } from '../core/index.js';
import type { RowAccess } from '../compiler/element/element-form.js';
import type { TensorForm } from '../compiler/tiles/tile-form.js';
import { broadcastAll, broadcastTo } from '../tensor/layouts.js';
import type { Layout, Shape } from '../tensor/index.js';
import { coalesceTogether } from '../tensor/coalescing.js';
import { layoutOf } from '../tensor/layout.js';
import { showShape } from '../tensor/shape.js';
import { rowAccessOf, runOf } from './row-access.js';
import type { GivenTensor, ShapedTensor } from './shaped-kernel.js';
import type { TileCuts } from './tile-cuts.js';
import { SIDE_BY_SIDE, WIDEST, cutAxis } from './tile-walk.js';
import type { TileWalk } from './tile-walk.js';

/**
 * Gives the shape that all tensors broadcast to.
 *
 * @throws CudaArgumentError where they do not, or there is none
 */
export function tiledShape(kernel: string, tensors: readonly ShapedTensor[]): Shape {
  const given = tensors.filter(({ layout }) => layout !== undefined);
  if (given.length === 0)
    throw invalid(
      `args.${tensors[0]!.name} of kernel '${kernel}'`,
      'a Tensor',
      undefined,
      'An output can be left out where another tensor determines its shape.',
    );
  let shape: Shape = [];
  for (const { name, layout } of given) {
    try {
      shape = broadcastAll([shape, layout!.shape]);
    } catch (error) {
      throw invalid(
        `args.${name} of kernel '${kernel}'`,
        `a Tensor whose shape goes with ${showShape(shape)}`,
        layout!.shape,
        (error as Error).message,
      );
    }
  }
  return shape;
}

/**
 * Gives the access of a tensor. Where the common shape has one row, a tensor of one element counts
 * as a column, and where it has one column, as a row: the sum of a single row is a column of row
 * sums.
 */
function tileAccessOf(rows: number, columns: number, down: number, right: number): RowAccess {
  const access = rowAccessOf([rows, columns], down, right);
  if (access !== 'one' || rows === columns) return access;
  return rows === 1 ? 'column' : columns === 1 ? 'row' : 'one';
}

/**
 * Gives the walk of all tensors.
 *
 * @throws CudaArgumentError where one stride does not walk the rows of a tensor
 */
export function broadcastWalk(
  kernel: string,
  cuts: TileCuts,
  shape: Shape,
  tensors: readonly GivenTensor[],
): TileWalk {
  const wide = tensors.map(({ layout }) => broadcastTo(layout, shape as never) as Layout);
  const outer = shape.slice(0, -1);
  const merged = coalesceTogether(
    wide.map(({ strides, offset }) => layoutOf([...outer], strides.slice(0, -1), offset)),
  );
  const rows = outer.reduce((product, extent) => product * extent, 1);
  const columns = shape.at(-1) ?? 1;
  if (merged[0]!.shape.length > 1) {
    throw invalid(
      `args of kernel '${kernel}'`,
      'tensors whose axes before the last are contiguous, as rows',
      tensors.map(({ layout }) => showShape(layout.shape)).join(', '),
      'Make views contiguous() first, and broadcast inputs by copies.',
    );
  }
  const forms = new Map<string, TensorForm>();
  const layouts = new Map<string, Layout>();
  tensors.forEach(({ name, written }, at) => {
    const { offset, strides } = wide[at]!;
    const down = rows === 1 ? 0 : merged[at]!.strides[0]!;
    const right = columns === 1 ? 0 : (strides.at(-1) ?? 0);
    const found = tileAccessOf(rows, columns, down, right);
    if (written && found === 'strided' && (down === 0 || right === 0) && rows > 1 && columns > 1) {
      throw invalid(
        `args.${name} of kernel '${kernel}'`,
        'a contiguous Tensor, as an output that is smaller than the others',
        tensors[at]!.layout.shape,
        'Make it contiguous() first.',
      );
    }
    forms.set(name, { access: found, outer: [], row: 0, column: 1, rank: 2 });
    layouts.set(
      name,
      found === 'strided'
        ? layoutOf([rows, columns], [down, right], offset)
        : runOf(found, [rows, columns], offset),
    );
  });
  const widest = Math.min(
    SIDE_BY_SIDE,
    WIDEST / Math.max(...tensors.map(({ dtype }) => DTYPES[dtype].bytes)),
  );
  const axes = [cutAxis(kernel, cuts, 0, rows, 1), cutAxis(kernel, cuts, 1, columns, widest)];
  for (const { name, written, layout } of tensors) {
    if (!written) continue;
    const { access } = forms.get(name)!;
    const single = [access === 'row' || access === 'one', access === 'column' || access === 'one'];
    const cut = axes.findIndex(
      ({ cut: how, extent, tile }, axis) => single[axis] && how === 'blocks' && extent > tile,
    );
    if (cut < 0) continue;
    throw invalid(
      `args.${name} of kernel '${kernel}'`,
      `a Tensor of ${axes[cut]!.extent} elements along axis ${cut - 2}, where it is cut into ` +
        `tiles of ${axes[cut]!.tile}`,
      layout.shape,
      "Every tile would write the same elements. Write null for the tile's extent there, so " +
        'that reductions are of all elements, or { walk }.',
    );
  }
  return { axes, tensors: Object.fromEntries(forms), layouts, strides: () => ({}) };
}
