/**
 * The axes of a tile kernel's options: their names, how each is cut, and which of them each tensor
 * has.
 */
import { invalid, valueNamed } from '../ground/arguments.js';
import { unknownName } from '../ground/names.js';
import type { Parameter } from './parameters.js';

/**
 * How one axis is cut. A number: into tiles of so many elements, one for each block. `null`: not at
 * all, so that a tile has all elements. `{ walk }`: into tiles of so many elements; each block goes
 * through all of them in a loop.
 */
export type TileExtent = number | null | { readonly walk: number };

/** Rows and columns of a tile, or the extent of each axis by name. */
export type TileSize =
  readonly [rows: TileExtent, columns: TileExtent] | Readonly<Record<string, TileExtent>>;

/** Axes of each tensor, in order. 1: an axis of one element. */
export type TensorAxes = Readonly<Record<string, readonly (string | 1)[]>>;

/** The options after the checks. */
export interface TileCuts {
  readonly names: readonly string[];
  readonly cuts: readonly TileExtent[];
  /**
   * Numbers of each tensor's axes; undefined where all tensors are broadcast to rows and columns.
   */
  readonly tensors: Readonly<Record<string, readonly (number | undefined)[]>> | undefined;
}

const BROADCAST = ['rows', 'columns'];
const MOST_AXES = 4;
const EXAMPLE =
  "Write { axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] }, tile: { m: 64, n: 64, k: { " +
  'walk: 32 } } }.';

/** @throws CudaArgumentError */
export function cutsOf(
  parameters: readonly Parameter[],
  argument: string,
  tile: unknown,
  axes: unknown,
): TileCuts {
  if (axes === undefined) {
    if (!Array.isArray(tile) || tile.length !== 2) {
      throw invalid(
        `${argument}.tile`,
        'the rows and columns of a tile',
        tile,
        'Write { tile: [1, null] } for whole rows; tiles of named axes need axes for each tensor.',
      );
    }
    const cuts = tile.map((extent, axis) => extentOf(`${argument}.tile[${axis}]`, extent));
    return { names: BROADCAST, cuts, tensors: undefined };
  }
  if (typeof tile !== 'object' || tile === null || Array.isArray(tile))
    throw invalid(
      `${argument}.tile`,
      'the extent of a tile along each axis, by name',
      tile,
      EXAMPLE,
    );
  if (typeof axes !== 'object' || axes === null)
    throw invalid(`${argument}.axes`, 'names of axes for each tensor', axes, EXAMPLE);
  const names = Object.keys(tile);
  const cuts = Object.entries(tile as Record<string, unknown>).map(([name, extent]) =>
    extentOf(`${argument}.tile.${name}`, extent),
  );
  const own = parameters.filter(({ entry }) => entry.kind === 'tensor').map(({ name }) => name);
  for (const name of Object.keys(axes))
    if (!own.includes(name))
      throw unknownName(`${argument}.axes.${name}`, 'the signature has no tensor', name, own);
  const tensors = Object.fromEntries(
    own.map((name) => [
      name,
      axesOf(`${argument}.axes.${name}`, valueNamed(axes, name), names, cuts),
    ]),
  );
  checkRaces(parameters, argument, { names, cuts, tensors });
  return { names, cuts, tensors };
}

function extentOf(argument: string, extent: unknown): TileExtent {
  const isWhole = (count: unknown): boolean =>
    typeof count === 'number' && Number.isInteger(count) && count >= 1;
  if (extent === null || isWhole(extent)) return extent as number | null;
  if (
    typeof extent === 'object' &&
    Object.keys(extent).join() === 'walk' &&
    isWhole((extent as { walk: unknown }).walk)
  )
    return extent as { walk: number };
  throw invalid(
    argument,
    'a whole number of at least 1, null for all that there are, or { walk } for tiles that ' +
      'each block goes through',
    extent,
    'Write { tile: [1, null] } for whole rows.',
  );
}

function axesOf(
  argument: string,
  given: unknown,
  names: readonly string[],
  cuts: readonly TileExtent[],
): (number | undefined)[] {
  if (!Array.isArray(given) || given.length < 1 || given.length > MOST_AXES)
    throw invalid(argument, `one to ${MOST_AXES} names of axes`, given, EXAMPLE);
  const axes = given.map((name: unknown, at) => {
    if (name === 1) return undefined;
    if (typeof name !== 'string' || !names.includes(name))
      throw unknownName(`${argument}[${at}]`, 'the tile has no axis', String(name), names);
    if (given.indexOf(name) !== at)
      throw invalid(argument, 'each axis once', given, 'A diagonal is read by kernel(…).');
    return names.indexOf(name);
  });
  for (const [at, axis] of axes.slice(0, -2).entries()) {
    if (axis === undefined) continue;
    const cut = cuts[axis]!;
    if (cut === 1 || (typeof cut === 'object' && cut?.walk === 1)) continue;
    throw invalid(
      `${argument}[${at}]`,
      'an axis whose tiles have one element: only the last two axes of a tensor are rows and ' +
        'columns',
      names[axis],
      `Write { tile: { ${names[axis]!}: 1 } }.`,
    );
  }
  return axes;
}

/**
 * Two blocks have tiles at different places along an axis that numbers them: their outputs have to
 * differ along it.
 */
function checkRaces(
  parameters: readonly Parameter[],
  argument: string,
  { names, cuts, tensors }: TileCuts,
): void {
  for (const { name, entry } of parameters) {
    if (entry.kind !== 'tensor' || entry.access === 'input') continue;
    const missing = cuts.findIndex(
      (cut, axis) => typeof cut === 'number' && !tensors![name]!.includes(axis),
    );
    if (missing < 0) continue;
    const axis = names[missing]!;
    throw invalid(
      `${argument}.tile.${axis}`,
      `{ walk: ${cuts[missing] as number} } or null, since output ${name} has no axis ${axis}`,
      cuts[missing],
      `Blocks with different tiles along ${axis} would write the same elements of ${name}. ` +
        'Its axes are ' +
        `${tensors![name]!.map((each) => (each === undefined ? '1' : names[each]!)).join(', ')}.`,
    );
  }
}
