/** How the tensors of a tile kernel's call are passed to code that Tile IR's assembler made. */
import { DTYPES } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import type { StrideFact, TileIrForm } from '../compiler/tile-ir/tile-ir-form.js';
import type { Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import type { GivenTensor } from './shaped-kernel.js';
import type { TileCuts } from './tile-cuts.js';
import type { TileWalk } from './tile-walk.js';

/** Back ends of tile kernels: the library's own, which writes PTX, and NVIDIA's Tile IR. */
export type TileBackend = 'ptx' | 'tileir';
const BACKENDS: readonly TileBackend[] = ['ptx', 'tileir'];

/** @throws CudaArgumentError */
export function checkBackend(backend: unknown): TileBackend {
  const found = BACKENDS.find((each) => each === (backend ?? 'ptx'));
  if (found !== undefined) return found;
  throw invalid(
    'options.backend',
    "'ptx' or 'tileir'",
    backend,
    "Leave it out for the library's own back end.",
  );
}

const isPower = (extent: number): boolean => 2 ** Math.round(Math.log2(extent)) === extent;

/** @throws CudaArgumentError for tiles whose extents are no powers of two */
export function checkTileIrCuts(argument: string, { names, cuts, tensors }: TileCuts): void {
  for (const [axis, cut] of cuts.entries()) {
    const extent = typeof cut === 'number' ? cut : cut?.walk;
    if (extent === undefined || isPower(extent)) continue;
    const below = 2 ** Math.floor(Math.log2(extent));
    throw invalid(
      tensors === undefined ? `${argument}.tile[${axis}]` : `${argument}.tile.${names[axis]!}`,
      "a power of two, as tiles of backend 'tileir' have",
      cut,
      `Write ${typeof cut === 'number' ? below : `{ walk: ${below} }`}, or ${2 * below}.`,
    );
  }
}

/** Bytes that a stride has to be a multiple of, so that a copy engine reads rows. */
const ROW_BYTES = 16;

/** The facts about strides that the code relies on. One axis at most has elements side by side. */
function factsOf({ dtype, layout: { shape, strides } }: GivenTensor): StrideFact[] {
  const { bytes } = DTYPES[dtype];
  const last = strides.length - 1;
  const side =
    strides[last] === 1 || shape[last] === 1
      ? last
      : strides.findIndex((stride, at) => stride === 1 && shape[at]! > 1);
  return strides.map((stride, at) =>
    at === side ? 'one' : stride > 0 && (stride * bytes) % ROW_BYTES === 0 ? 'sixteen' : 'any',
  );
}

export interface TileIrLaunch {
  readonly form: TileIrForm;
  readonly layouts: ReadonlyMap<string, Layout>;
}

/**
 * Gives the form of the code, and the layout in which each tensor is passed. `walk`: that of the
 * other back end, whose checks have been made.
 *
 * @throws CudaArgumentError for views that go backwards
 */
export function tileIrLaunch(
  kernel: string,
  cuts: TileCuts,
  walk: TileWalk,
  tensors: readonly GivenTensor[],
): TileIrLaunch {
  const named = cuts.tensors;
  const passed = tensors.map(
    (tensor): GivenTensor & { readonly axes: readonly (number | undefined)[] } => {
      const { name, layout } = tensor;
      if (layout.strides.some((stride) => stride < 0))
        throw invalid(
          `args.${name} of kernel '${kernel}'`,
          "a Tensor whose strides are not negative, as backend 'tileir' takes them",
          layout.strides,
          'Make it contiguous() first.',
        );
      if (named !== undefined) return { ...tensor, axes: named[name]! };
      return { ...tensor, ...rowsAndColumns(walk, name) };
    },
  );
  const axes = walk.axes.map(({ name, tile, cut, extent }) => {
    const whole = cut === 'whole' ? 2 ** Math.ceil(Math.log2(Math.max(1, extent))) : tile;
    return { name, tile: whole, cut, divides: extent % whole === 0 };
  });
  return {
    form: {
      axes,
      broadcast: named === undefined,
      tensors: Object.fromEntries(
        passed.map((tensor) => [tensor.name, { axes: tensor.axes, strides: factsOf(tensor) }]),
      ),
    },
    layouts: new Map(passed.map(({ name, layout }) => [name, layout])),
  };
}

/** A tensor that is broadcast to rows and columns, as two axes of its own. */
function rowsAndColumns(
  { axes, tensors, layouts }: TileWalk,
  name: string,
): { readonly layout: Layout; readonly axes: readonly (number | undefined)[] } {
  const [rows, columns] = [axes[0]!.extent, axes[1]!.extent];
  const layout = layouts.get(name)!;
  const of = (extents: readonly [number, number], strides: readonly [number, number]): Layout =>
    layoutOf([...extents], [...strides], layout.offset);
  switch (tensors[name]!.access) {
    case 'row':
      return { layout: of([1, columns], [columns, 1]), axes: [undefined, 1] };
    case 'column':
      return { layout: of([rows, 1], [1, 1]), axes: [0, undefined] };
    case 'one':
      return { layout: of([1, 1], [1, 1]), axes: [undefined, undefined] };
    case 'dense':
      return { layout: of([rows, columns], [columns, 1]), axes: [0, 1] };
    default:
      return { layout, axes: [0, 1] };
  }
}
