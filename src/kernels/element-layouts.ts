/**
 * How the tensors of an element kernel's call are walked together: broadcast to one shape, with as
 * few axes as that takes.
 */
import { invalid } from '../ground/arguments.js';
import type { ElementForm } from '../compiler/element/element-form.js';
import { broadcastAll, broadcastTo } from '../tensor/layouts.js';
import type { Layout, Shape } from '../tensor/index.js';
import { coalesceTogether } from '../tensor/coalescing.js';
import { layoutOf } from '../tensor/layout.js';
import { sameShape, showShape } from '../tensor/shape.js';
import { rowAccessOf, runOf } from './row-access.js';
import type { ShapedTensor } from './shaped-kernel.js';

/** Layouts by name, of one shape, and the form of the code that walks them. */
export interface Walk {
  readonly layouts: ReadonlyMap<string, Layout>;
  readonly axes: number;
  readonly single: readonly string[];
  /** Set for two axes without strides: rows and columns, and how each tensor lies in them. */
  readonly rows?: {
    readonly extents: readonly [rows: number, columns: number];
    readonly access: NonNullable<ElementForm['access']>;
  };
}

const MOST_AXES = 4;

/**
 * Gives the shape of the outputs: that of those that are passed, else the one that all tensors
 * broadcast to.
 *
 * @throws CudaArgumentError where a shape does not fit
 */
export function outputShape(kernel: string, tensors: readonly ShapedTensor[]): Shape {
  const argument = (name: string): string => `args.${name} of kernel '${kernel}'`;
  const given = tensors.filter(({ layout }) => layout !== undefined);
  const first = given.find(({ written }) => written);
  if (first === undefined) {
    const [one] = given;
    if (one === undefined) {
      const { name } = tensors.find(({ written }) => written)!;
      throw invalid(
        argument(name),
        'a Tensor to write to',
        undefined,
        'It can be left out where another tensor determines its shape.',
      );
    }
    return broadcastAll(given.map(({ layout }) => layout!.shape));
  }
  const { shape } = first.layout!;
  for (const { name, written, layout } of given) {
    if (written && !sameShape(layout!.shape, shape))
      throw invalid(
        argument(name),
        `a Tensor of shape ${showShape(shape)}, that of ${first.name}: outputs have one shape`,
        layout!.shape,
      );
  }
  return shape;
}

/**
 * Gives the walk of all tensors. `width`: elements that one thread may have side by side.
 *
 * @throws CudaArgumentError where a tensor does not broadcast to the shape, or there are too many
 *   axes
 */
export function walkOf(
  kernel: string,
  shape: Shape,
  tensors: readonly { readonly name: string; readonly layout: Layout }[],
  width: number,
): Walk {
  const names = tensors.map(({ name }) => name);
  const merged = coalesceTogether(
    tensors.map(({ name, layout }) => stretched(kernel, name, layout, shape)),
  );
  const [first] = merged;
  const axes = first!.shape.length;
  if (axes > MOST_AXES) {
    throw invalid(
      `args of kernel '${kernel}'`,
      `tensors that are walked by at most ${MOST_AXES} axes together`,
      `${axes} that cannot be merged`,
      'Make views contiguous() first.',
    );
  }
  if (axes <= 1 && merged.every(({ strides: [stride = 0] }) => stride === 1 || stride === 0)) {
    const isSingle = ({ strides: [stride = 0] }: Layout): boolean => stride === 0;
    const single =
      axes === 0 || first!.shape[0] === 1 ? [] : names.filter((_, at) => isSingle(merged[at]!));
    const run = (layout: Layout, name: string): Layout =>
      layoutOf([single.includes(name) ? 1 : (layout.shape[0] ?? 1)], [1], layout.offset);
    return {
      layouts: new Map(names.map((name, at) => [name, run(merged[at]!, name)])),
      axes: 1,
      single,
    };
  }
  if (axes === 2) {
    const extents = first!.shape as unknown as readonly [number, number];
    const access = Object.fromEntries(
      names.map((name, at) => [
        name,
        rowAccessOf(extents, merged[at]!.strides[0]!, merged[at]!.strides[1]!),
      ]),
    );
    if (extents[1] % width === 0 && !Object.values(access).includes('strided')) {
      const known = access as NonNullable<ElementForm['access']>;
      return {
        layouts: new Map(
          names.map((name, at) => [name, runOf(known[name]!, extents, merged[at]!.offset)]),
        ),
        axes: 1,
        single: [],
        rows: { extents, access: known },
      };
    }
  }
  const layouts = merged.map((layout) =>
    axes > 1 ? layout : layoutOf([1, layout.shape[0]!], [0, layout.strides[0]!], layout.offset),
  );
  return {
    layouts: new Map(names.map((name, at) => [name, layouts[at]!])),
    axes: Math.max(2, axes),
    single: [],
  };
}

function stretched(kernel: string, name: string, layout: Layout, shape: Shape): Layout {
  try {
    return broadcastTo(layout, shape as never);
  } catch (error) {
    throw invalid(
      `args.${name} of kernel '${kernel}'`,
      `a Tensor that broadcasts to ${showShape(shape)}, the shape of the outputs`,
      layout.shape,
      (error as Error).message,
    );
  }
}
