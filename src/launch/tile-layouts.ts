/** How the tensors of a tile kernel's call are walked: broadcast to one shape, of which the last axis are columns and all others rows. */
import { invalid } from '../core/arguments.js';
import type { RowAccess } from '../kernel/element/element-form.js';
import { broadcastAll, broadcastTo } from '../tensor/index.js';
import type { Layout, Shape } from '../tensor/index.js';
import { coalesceTogether } from '../tensor/coalescing.js';
import { layoutOf } from '../tensor/layout.js';
import { showShape } from '../tensor/shape.js';
import { rowAccessOf, runOf } from './row-access.js';
import type { ShapedTensor } from './shaped-kernel.js';

/** Rows and columns of all tiles, and how each tensor lies in them. */
export interface TileWalk {
  readonly extents: readonly [rows: number, columns: number];
  readonly layouts: ReadonlyMap<string, Layout>;
  readonly access: Readonly<Record<string, RowAccess>>;
}

/** The shape that all tensors broadcast to. @throws CudaArgumentError where they do not, or there is none */
export function tiledShape(kernel: string, tensors: readonly ShapedTensor[]): Shape {
  const given = tensors.filter(({ layout }) => layout !== undefined);
  if (given.length === 0) throw invalid(`args.${tensors[0]!.name} of kernel '${kernel}'`, 'a Tensor', undefined, 'An output can be left out where another tensor tells its shape.');
  let shape: Shape = [];
  for (const { name, layout } of given) {
    try {
      shape = broadcastAll([shape, layout!.shape]);
    } catch (error) {
      throw invalid(`args.${name} of kernel '${kernel}'`, `a Tensor whose shape goes with ${showShape(shape)}`, layout!.shape, (error as Error).message);
    }
  }
  return shape;
}

/** @throws CudaArgumentError where the rows of a tensor cannot be walked by one stride */
export function tileWalkOf(kernel: string, shape: Shape, tensors: readonly (ShapedTensor & { readonly layout: Layout })[]): TileWalk {
  const wide = tensors.map(({ layout }) => broadcastTo(layout, shape as never) as Layout);
  const outer = shape.slice(0, -1);
  const merged = coalesceTogether(wide.map(({ strides, offset }) => layoutOf([...outer], strides.slice(0, -1), offset)));
  const rows = outer.reduce((product, extent) => product * extent, 1);
  const columns = shape.at(-1) ?? 1;
  if (merged[0]!.shape.length > 1) {
    throw invalid(`args of kernel '${kernel}'`, 'tensors whose axes before the last lie one behind the other, as rows', tensors.map(({ layout }) => showShape(layout.shape)).join(', '), 'Make views contiguous() first, and broadcast inputs by copies.');
  }
  const access: Record<string, RowAccess> = {};
  const layouts = new Map<string, Layout>();
  tensors.forEach(({ name, written }, at) => {
    const { offset, strides } = wide[at]!;
    const down = rows === 1 ? 0 : merged[at]!.strides[0]!;
    const right = columns === 1 ? 0 : (strides.at(-1) ?? 0);
    const found = rowAccessOf([rows, columns], down, right);
    if (written && found === 'strided' && (down === 0 || right === 0) && rows > 1 && columns > 1) {
      throw invalid(`args.${name} of kernel '${kernel}'`, 'a contiguous Tensor, as an output that is smaller than the others', tensors[at]!.layout.shape, 'Make it contiguous() first.');
    }
    access[name] = found;
    layouts.set(name, found === 'strided' ? layoutOf([rows, columns], [down, right], offset) : runOf(found, [rows, columns], offset));
  });
  return { extents: [rows, columns], layouts, access };
}
