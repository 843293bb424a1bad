/**
 * Tile kernels: the body says what happens to one tile of the tensors, and each block does it for its own. Loads and stores are
 * those of the block's tile, clipped at the edge: there is no index to get wrong, and no two blocks write one element.
 */
import { inspect } from 'node:util';

import { DTYPES } from '../core/index.js';
import { checkOptions, invalid } from '../core/arguments.js';
import { EXTENT_NAMES, TILE_NAMES, threadsFor } from '../kernel/tiles/tile-form.js';
import type { TileForm } from '../kernel/tiles/tile-form.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import type { Layout, Shape } from '../tensor/index.js';
import type { NoOthers } from './body-types.js';
import { captureStack } from './call-stack.js';
import { textOfFunction } from './device-function.js';
import type { ElementArguments, ElementCallResult, ElementParams } from './element-types.js';
import { Defined } from './kernel.js';
import type { CodeOptions, KernelTarget, OtherUses } from './kernel.js';
import { checkName } from './names.js';
import { describeEntry, parametersOf, signatureOf } from './parameters.js';
import type { Parameter } from './parameters.js';
import type { KernelReport } from './report.js';
import { ShapedKernel, checkShaped, checkUses, indexTypeOf } from './shaped-kernel.js';
import type { ShapedCallOptions, ShapedLaunch, ShapedTensor } from './shaped-kernel.js';
import type { SimulatedArguments } from './simulation.js';
import { tileWalkOf, tiledShape } from './tile-layouts.js';
import type { TileArguments, TileWith } from './tile-types.js';
import { otherUses, usedOf } from './uses.js';
import type { UsedByName, Uses } from './uses.js';
import { Variant } from './variant.js';
import type { Definition } from './variant.js';

/** Rows and columns of a tile. `null`: as many as there are, so that reductions are of whole rows or columns. */
export type TileSize = readonly [rows: number | null, columns: number | null];

/** What {@link tileKernel} takes beside the body. */
export interface TileKernelOptions<U extends Uses = Uses> {
  readonly tile: TileSize;
  /** Constants, lists of them and device functions, which the body finds in its second parameter. */
  readonly uses?: U;
}

/** A tile kernel. Made by {@link tileKernel}. */
export interface TileKernel<S extends ElementParams = ElementParams, U extends Uses = Uses> {
  /**
   * Its launch as an operation: arguments by name, each a value or an operation that gives it. All tensors are broadcast to one
   * shape, as in NumPy; its last axis are the columns, those before it the rows. An `output` that is left out is a new
   * tensor of that shape. One that has a single element along an axis takes results of reductions along it, and the tile has to
   * be whole there. cuLaunchKernel
   *
   * @throws CudaArgumentError, CudaDisposedError for values that the kernel does not take, and outputs that share elements
   * with another argument; when run, for what operations gave, and CudaCompileError where the body is not one
   */
  <A extends ElementArguments<S>>(args: A & NoOthers<S, A>, options?: ShapedCallOptions): DeviceOp<ElementCallResult<S, A>>;

  readonly name: string;
  /** The same kernel with other constants, or another tile. */
  with(changes: { readonly uses?: OtherUses<U>; readonly tile?: TileSize }): TileKernel<S, U>;
  /** The PTX for contiguous tensors of one shape, of these rows and columns. Rejects with CudaCompileError */
  ptx(target: KernelTarget, shape: readonly [rows: number, columns: number], options?: CodeOptions): Promise<string>;
  /** Registers, memory and occupancy for contiguous tensors of one shape, of these rows and columns. */
  report(device: AnyDevice, shape: readonly [rows: number, columns: number]): Promise<KernelReport>;
  /**
   * Runs it as JavaScript on typed arrays, in place, with the device's results to the bit. Arrays without a shape have one
   * axis. Gives what was passed. Rejects with CudaCompileError, CudaArgumentError, SimulationError
   */
  simulate<A extends SimulatedArguments<S>>(args: A & NoOthers<S, A>): Promise<A>;
}

/**
 * A kernel whose body computes one tile of the outputs. `x.load()` gives the tile of an input, on which arithmetic and Math are done
 * for each element; `tile.sum(v, 1)` and its like reduce it along an axis, and what has one element along an axis goes with
 * what has more; `y.store(v)` writes it. The body consists of constants and stores.
 *
 * ```ts
 * const softmax = tileKernel('softmax', { y: output(f32), x: input(f32) }, ({ y, x }, tile) => {
 *   const v = x.load();
 *   const e = Math.exp(v - tile.max(v, 1));
 *   y.store(e / tile.sum(e, 1));
 * }, { tile: [1, null] });
 * const { y } = await softmax({ x });
 * ```
 *
 * A tile lies in the registers of its block's threads, so it has some 100,000 elements at most.
 *
 * @param name of the kernel in PTX, errors and traces
 * @param signature what each parameter is: a dtype or a struct for a scalar, a tensor that is read, written or both
 * @throws CudaArgumentError for what is no signature or no tile, and functions without a text
 */
export function tileKernel<const S extends ElementParams, U extends Uses = Record<never, never>>(
  name: string, signature: S, body: (args: TileArguments<S>, tile: TileWith<U>) => void, options: TileKernelOptions<U>,
): TileKernel<S, U> {
  checkName('name', name, 'a kernel');
  const parameters = parametersOf(signature);
  checkShaped(signature, parameters);
  checkOptions('options', options, ['tile', 'uses']);
  checkTile('options.tile', options.tile);
  checkUses(options.uses ?? {}, TILE_NAMES);
  const text = textOfFunction('body', body);
  const definition = { name, text, signature: signatureOf(parameters), site: captureStack(tileKernel) };
  return new DefinedTiles(parameters, definition, usedOf('options.uses', options.uses), options.tile).callable() as unknown as TileKernel<S, U>;
}

function checkTile(argument: string, tile: unknown): asserts tile is TileSize {
  const isExtent = (extent: unknown): boolean => extent === null || (typeof extent === 'number' && Number.isInteger(extent) && extent >= 1);
  if (Array.isArray(tile) && tile.length === 2 && tile.every(isExtent)) return;
  throw invalid(argument, 'the rows and columns of a tile, each a whole number of at least 1 or null for all that there are', tile, 'Write { tile: [1, null] } for whole rows.');
}

/** Bytes that one instruction reads or writes at most, and elements that one thread has side by side. */
const WIDEST = 16;
const SIDE_BY_SIDE = 4;

/** A tile kernel behind the function that users call. */
class DefinedTiles extends ShapedKernel {
  private readonly definition: Definition;
  private readonly uses: UsedByName;
  private readonly tile: TileSize;
  private readonly forms = new Map<string, Defined>();
  private readonly width: number;

  constructor(parameters: readonly Parameter[], definition: Definition, uses: UsedByName, tile: TileSize) {
    super(parameters);
    this.definition = definition;
    this.uses = uses;
    this.tile = tile;
    const bytes = parameters.flatMap(({ entry }) => (entry.kind === 'tensor' && 'storage' in entry.element ? [DTYPES[entry.element.storage].bytes] : []));
    this.width = Math.min(SIDE_BY_SIDE, WIDEST / Math.max(...bytes));
  }

  get name(): string {
    return this.definition.name;
  }

  /** The kernel of a form. */
  private formed(form: TileForm, index: 'i32' | 'i64'): Defined {
    const key = JSON.stringify([index, form]);
    let found = this.forms.get(key);
    if (found === undefined) {
      const own = this.parameters.map((parameter) => (
        { ...parameter, entry: parameter.entry.kind === 'tensor' ? { ...parameter.entry, rank: form.access[parameter.name] === 'strided' ? 2 : 1 } : parameter.entry }
      ));
      const extents = EXTENT_NAMES.map((name): Parameter => ({ name, entry: { kind: 'scalar', storage: index }, declared: DTYPES[index] }));
      found = new Defined([...own, ...extents], new Variant({ ...this.definition, lowering: { to: 'tiles', form } }, this.uses), { index, block: form.across * form.down });
      this.forms.set(key, found);
    }
    return found;
  }

  protected shapeOf(tensors: readonly ShapedTensor[]): Shape {
    return tiledShape(this.name, tensors);
  }

  protected launchOf(shape: Shape, tensors: readonly (ShapedTensor & { readonly layout: Layout })[], maxGrid: readonly number[]): ShapedLaunch {
    const { extents, layouts, access } = tileWalkOf(this.name, shape, tensors);
    const [rows, columns] = extents;
    const tile: [number, number] = [this.tile[0] ?? rounded(rows), this.tile[1] ?? rounded(columns)];
    for (const { name, written } of tensors) {
      if (!written) continue;
      const single = [access[name] === 'row' || access[name] === 'one', access[name] === 'column' || access[name] === 'one'];
      const cut = single.findIndex((each, axis) => each && extents[axis]! > tile[axis]!);
      if (cut < 0) continue;
      throw invalid(`args.${name} of kernel '${this.name}'`, `a Tensor of ${extents[cut]} elements along axis ${cut - 2}, where it is cut into tiles of ${tile[cut]}`, layouts.get(name)!.shape, 'Every tile would write the same elements. Write null for the tile\'s extent of that axis.');
    }
    const threads = threadsFor(tile, extents, this.width);
    if (threads === undefined) {
      throw invalid(`args of kernel '${this.name}'`, 'tensors whose tiles fit in the registers of a block', `tiles of ${tile.join(' × ')} elements`, 'Take smaller tiles, or write it with kernel(…).');
    }
    const across = Math.ceil(columns / tile[1]);
    const blocks = Math.ceil(rows / tile[0]) * across;
    if (blocks > maxGrid[0]!) throw invalid(`args of kernel '${this.name}'`, `tensors of at most ${maxGrid[0]} tiles`, `${blocks}`, 'Take larger tiles.');
    const index = indexTypeOf(layouts, [rows, columns]);
    return {
      defined: this.formed({ ...threads, access }, index), options: { grid: blocks, index }, layouts,
      extra: { rows$: rows, groups$: columns / threads.width, tiles$: across } satisfies Record<(typeof EXTENT_NAMES)[number], number>,
    };
  }

  /** For contiguous tensors of one shape. */
  private usual(shape: readonly [number, number]): Defined {
    if (!Array.isArray(shape) || shape.length !== 2) throw invalid('shape', 'rows and columns', shape, 'Write [rows, columns].');
    const [rows, columns] = shape;
    const tensors = this.parameters.flatMap(({ name, entry }) => (
      entry.kind === 'tensor' ? [{ name, written: entry.access !== 'input', layout: { shape: [rows, columns], strides: [columns, 1], offset: 0 } }] : []
    ));
    return this.launchOf(shape, tensors, [Infinity, 1, 1]).defined;
  }

  with(changes: { readonly uses?: Uses; readonly tile?: TileSize }): DefinedTiles {
    checkOptions('changes', changes, ['uses', 'tile']);
    const { tile = this.tile } = changes;
    checkTile('changes.tile', tile);
    return new DefinedTiles(this.parameters, this.definition, otherUses(this.name, this.uses, changes.uses), tile);
  }

  callable(): TileKernel {
    const call = (args: unknown, options?: ShapedCallOptions): DeviceOp<unknown> => this.call(args, options);
    const methods = {
      name: this.name,
      with: (changes: { readonly uses?: Uses; readonly tile?: TileSize }) => this.with(changes).callable(),
      ptx: async (target: KernelTarget, shape: readonly [number, number], options?: CodeOptions) => this.usual(shape).ptx(target, options),
      report: async (device: AnyDevice, shape: readonly [number, number]) => this.usual(shape).report(device),
      simulate: (args: Readonly<Record<string, unknown>>) => this.simulate(args),
      toString: () => this.toString(),
      [inspect.custom]: () => this.toString(),
    };
    for (const key of Reflect.ownKeys(methods)) Object.defineProperty(call, key, { value: methods[key as keyof typeof methods], configurable: true });
    return call as unknown as TileKernel;
  }

  override toString(): string {
    return `tile kernel ${this.name}({ ${this.parameters.map(({ name, entry }) => `${name}: ${describeEntry(entry)}`).join(', ')} }) of ${this.tile.map((extent) => extent ?? 'all').join(' × ')}`;
  }
}

/** An extent for all of an axis: lengths that are close have one, and so one code. At most an eighth is left over. */
function rounded(extent: number): number {
  const step = Math.max(1, 2 ** Math.ceil(Math.log2(extent)) / 8);
  return Math.ceil(extent / step) * step;
}
