/**
 * Tile kernels whose tensors have named axes: lengths of the axes from the tensors of a call, and
 * how each tensor is walked by them.
 */
import { DTYPES } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { strideName } from '../compiler/tiles/tile-form.js';
import type { TensorForm } from '../compiler/tiles/tile-form.js';
import type { Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import type { GivenTensor, ShapedTensor, ShapesTogether } from './shaped-kernel.js';
import type { TileCuts } from './tile-cuts.js';
import { SIDE_BY_SIDE, WIDEST, cutAxis } from './tile-walk.js';
import type { TileWalk } from './tile-walk.js';

type NamedCuts = TileCuts & { readonly tensors: NonNullable<TileCuts['tensors']> };

export interface NamedShapes extends ShapesTogether {
  /** The length of each axis, in the order of their names. */
  readonly extents: readonly (number | undefined)[];
}

/** @throws CudaArgumentError where two tensors have different lengths along one axis */
export function namedShapes(
  kernel: string,
  { names, tensors: axesOf }: NamedCuts,
  tensors: readonly ShapedTensor[],
): NamedShapes {
  const extents = names.map((): number | undefined => undefined);
  const from: string[] = [];
  for (const { name, layout } of tensors) {
    if (layout === undefined) continue;
    const axes = axesOf[name]!;
    const argument = `args.${name} of kernel '${kernel}'`;
    const described = axes.map((axis) => (axis === undefined ? '1' : names[axis]!)).join(' × ');
    if (layout.shape.length !== axes.length)
      throw invalid(
        argument,
        `a Tensor of ${axes.length} axes, ${described}`,
        layout.shape,
        'Give it these axes with reshape([…]) or unsqueeze(axis).',
      );
    axes.forEach((axis, at) => {
      const extent = layout.shape[at]!;
      if (axis === undefined) {
        if (extent !== 1)
          throw invalid(
            argument,
            `a Tensor with one element along axis ${at}, ${described}`,
            layout.shape,
          );
        return;
      }
      const known = extents[axis];
      if (known !== undefined && known !== extent)
        throw invalid(
          argument,
          `a Tensor of ${known} elements along ${names[axis]!}, as ${from[axis]!} has ` +
            `(${described})`,
          layout.shape,
        );
      extents[axis] = extent;
      from[axis] ??= `args.${name}`;
    });
  }
  return {
    extents,
    isEmpty: tensors.every(
      ({ name, written }) =>
        !written || axesOf[name]!.some((axis) => axis !== undefined && extents[axis] === 0),
    ),
    shapeOf: (output) =>
      axesOf[output]!.map((axis) => {
        if (axis === undefined) return 1;
        const extent = extents[axis];
        if (extent === undefined)
          throw invalid(
            `args.${output} of kernel '${kernel}'`,
            `a Tensor, since no other argument determines its length along ${names[axis]!}`,
            undefined,
          );
        return extent;
      }),
  };
}

/** @throws CudaArgumentError where an axis that is one tile has no elements */
export function namedWalk(
  kernel: string,
  cuts: NamedCuts,
  { extents }: NamedShapes,
  tensors: readonly GivenTensor[],
): TileWalk {
  const isRun = ({ name, layout: { strides, shape } }: GivenTensor): boolean =>
    cuts.tensors[name]!.at(-1) === undefined || strides.at(-1) === 1 || shape.at(-1) === 1;
  const forms = new Map<string, TensorForm>();
  const layouts = new Map<string, Layout>();
  const widest = extents.map(() => SIDE_BY_SIDE);
  const asColumns = new Set<number>();
  for (const tensor of tensors) {
    const { name, layout, dtype } = tensor;
    const axes = cuts.tensors[name]!;
    const column = axes.at(-1);
    const row = axes.at(-2);
    const { shape, strides, offset } = layout;
    const run = isRun(tensor) && strides.every((stride) => stride >= 0);
    if (column !== undefined) {
      asColumns.add(column);
      widest[column] = Math.min(widest[column]!, WIDEST / DTYPES[dtype].bytes);
      // Every row has to begin at a multiple of the width, too.
      if (run)
        for (const [at, stride] of strides.slice(0, -1).entries())
          while (shape[at]! > 1 && stride % widest[column] !== 0) widest[column] /= 2;
    }
    forms.set(name, {
      access: run ? 'run' : 'strided',
      outer: axes.slice(0, -2),
      row,
      column,
      rank: run ? axes.length : Math.max(2, axes.length),
    });
    if (run) {
      const empty = shape.includes(0);
      layouts.set(
        name,
        layoutOf(
          [empty ? 0 : shape.reduce((sum, extent, at) => sum + (extent - 1) * strides[at]!, 1)],
          [1],
          offset,
        ),
      );
    } else {
      layouts.set(
        name,
        axes.length > 1 ? layout : layoutOf([1, ...shape], [0, ...strides], offset),
      );
    }
  }
  return {
    axes: extents.map((extent, axis) =>
      cutAxis(kernel, cuts, axis, extent ?? 0, asColumns.has(axis) ? widest[axis]! : 1),
    ),
    tensors: Object.fromEntries(forms),
    layouts,
    strides: (width) =>
      Object.fromEntries(
        tensors.flatMap(({ name, layout: { strides, shape } }) => {
          const { access, column, rank } = forms.get(name)!;
          if (access !== 'run') return [];
          // An axis of one element is not walked.
          return Array.from({ length: rank - 1 }, (_, at) => [
            strideName(name, at),
            shape[at]! > 1 ? strides[at]! / width(column) : 0,
          ]);
        }),
      ),
  };
}
