/**
 * Tile kernels: the body computes one tile of the tensors, and each block does that for its own
 * tile. Loads and stores are those of the block's tile, clipped at the edge: the body has no index,
 * and no two blocks write one element.
 */
import { inspect } from 'node:util';

import { DTYPES } from '../core/index.js';
import { checkOptions, invalid, valueNamed } from '../ground/arguments.js';
import {
  TILE_NAMES,
  blockAxes,
  extentName,
  extraNames,
  sumsOf,
  threadsFor,
  threadsForAxes,
  tilesName,
} from '../compiler/tiles/tile-form.js';
import type { TileForm } from '../compiler/tiles/tile-form.js';
import { tensorEntry } from '../compiler/tiles/tensor-entry.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import { numel } from '../tensor/layouts.js';
import type { Shape } from '../tensor/index.js';
import type { NoOthers } from './body-types.js';
import { captureStack } from '../core/call-stack.js';
import type { ElementArguments, ElementCallResult, ElementParams } from './element-types.js';
import { Defined, capabilityOf, checkedCode, compileTarget } from './kernel.js';
import type { CodeOptions, KernelTarget, OtherUses } from './kernel.js';
import type { CompileTarget } from './compiler.js';
import { coreOf } from '../ops/scheduling.js';
import { LeastRecent } from './least-recent.js';
import { checkName } from '../ground/names.js';
import { describeEntry, parametersOf, signatureOf } from './parameters.js';
import type { Parameter } from './parameters.js';
import type { TileReport } from './report.js';
import {
  FORMS,
  ShapedKernel,
  checkShaped,
  checkUses,
  indexTypeOf,
  targetOfDevice,
} from './shaped-kernel.js';
import type {
  DeviceTarget,
  GivenTensor,
  ShapedCallOptions,
  ShapedLaunch,
  ShapedTarget,
  ShapedTensor,
  ShapesTogether,
} from './shaped-kernel.js';
import type { SimulatedArguments } from './simulation.js';
import { namedShapes, namedWalk } from './tile-axes.js';
import type { NamedShapes } from './tile-axes.js';
import { cutsOf } from './tile-cuts.js';
import type { TensorAxes, TileCuts, TileSize } from './tile-cuts.js';
import { checkBackend, checkTileIrCuts, tileIrLaunch } from './tile-ir-launch.js';
import type { TileBackend } from './tile-ir-launch.js';
import { broadcastWalk, tiledShape } from './tile-layouts.js';
import type {
  OtherTile,
  TileArguments,
  TileAxesOption,
  TileExtents,
  TileWith,
} from './tile-types.js';
import { fittingAxes, productForm, productIn } from './tile-products.js';
import type { FoundProduct, NamedCuts, ProductLaunch } from './tile-products.js';
import { chainForm, chainIn, fittingChain } from './tile-chains.js';
import type { FoundChain } from './tile-chains.js';
import type { TileWalk } from './tile-walk.js';
import { tune } from './tuning.js';
import type { ShapedTuneOptions, ShapedTuning, Tunable } from './tuning.js';
import { otherUses, usedOf } from './uses.js';
import type { UsedByName, Uses } from './uses.js';
import { Variant } from './variant.js';
import type { Definition } from './variant.js';
import { textOfFunction } from './function-text.js';

/** Options of {@link tileKernel}. */
export type TileKernelOptions<
  S extends ElementParams = ElementParams,
  U extends Uses = Uses,
  T extends TileSize = TileSize,
> = {
  /**
   * How each axis is cut. A number of elements: one tile for each block. `null`: one tile of all
   * elements. `{ walk }`: tiles that each block goes through in a loop. The extents are those of
   * rows and columns, or have the names of `axes`.
   */
  readonly tile: T;
  /**
   * Constants, lists of them and device functions, which the body finds in its second parameter.
   */
  readonly uses?: U;
  /**
   * What makes the GPU's code. `'ptx'` (default): the library's own compiler. `'tileir'`: NVIDIA's
   * Tile IR assembler, which has to be installed (`pip install nvidia-cuda-tileiras nvidia-nvvm
   * nvidia-cuda-nvcc`, or ASYNC_CUDA_TILEIRAS); compute capability 8.0. Its tiles are powers of
   * two, and sums are added in an order of its own. The CPU device and `simulate` use `'ptx'`.
   */
  readonly backend?: TileBackend;
} & TileAxesOption<S, T>;

/** A tile kernel. {@link tileKernel} makes it. */
export interface TileKernel<
  S extends ElementParams = ElementParams,
  U extends Uses = Uses,
  T extends TileSize = TileSize,
> {
  /**
   * Gives its launch as an operation. It takes arguments by name, each a value or an operation that
   * gives it. Without `axes` all tensors are broadcast to one shape, as in NumPy; its last axis is
   * the columns, the axes before it are the rows. An `output` that is left out is a new tensor of
   * that shape, or of the lengths of its axes. An output that has a single element along an axis
   * takes results of reductions along it, and the tile has to be whole there. cuLaunchKernel
   *
   * @throws CudaArgumentError, CudaDisposedError for values that the kernel does not take, and
   *   outputs that share elements with another argument. When it runs, it rejects with the same for
   *   values that operations gave, and with CudaCompileError where the body is no tile kernel
   */
  <A extends ElementArguments<S>>(
    args: A & NoOthers<S, A>,
    options?: ShapedCallOptions,
  ): DeviceOp<ElementCallResult<S, A>>;

  readonly name: string;
  /** Gives the same kernel with other constants, or another tile. */
  with(changes: TileKernelChanges<U, T>): TileKernel<S, U, T>;
  /**
   * Compiles and loads the code for contiguous tensors of these extents, so that the first launch
   * need not. It rejects with CudaCompileError.
   */
  prepare(device: AnyDevice, shape: TileExtents<S, T>): Promise<void>;
  /**
   * Gives the PTX for contiguous tensors of these extents. It rejects with CudaCompileError, and
   * with ERR_CUDA_UNSUPPORTED for a GPU where the back end is Tile IR, which makes none.
   */
  ptx(target: KernelTarget, shape: TileExtents<S, T>, options?: CodeOptions): Promise<string>;
  /** Gives the machine code of that PTX, as {@link KernelFunction.sass} does. */
  sass(device: AnyDevice, shape: TileExtents<S, T>, options?: CodeOptions): Promise<string>;
  /**
   * Writes the machine code for contiguous tensors of these extents to a file of the folder, and
   * gives its path; the back end has to be Tile IR, and the target may be another machine's GPU. A
   * machine that has no assembler uses the files in the folder that ASYNC_CUDA_TILEIR_CUBINS names:
   * they are found by the kernel's text, constants, tile, dtypes, and by what the code relies on:
   * lengths that are multiples of a tile, and rows that begin at multiples of 16 bytes.
   */
  exportCubin(folder: string, target: KernelTarget, shape: TileExtents<S, T>): Promise<string>;
  /**
   * Gives registers, memory and occupancy for contiguous tensors of these extents, and how products
   * are computed.
   */
  report(device: AnyDevice, shape: TileExtents<S, T>): Promise<TileReport>;
  /**
   * Finds the fastest of several sets of constants and tiles, measured as {@link
   * KernelFunction.tune} does it. Outputs have to be passed.
   */
  tune<A extends ElementArguments<S>>(
    args: A & NoOthers<S, A>,
    options: ShapedTuneOptions<TileKernelChanges<U, T>>,
  ): Promise<ShapedTuning<TileKernel<S, U, T>, TileKernelChanges<U, T>>>;
  /**
   * Runs the kernel as JavaScript on typed arrays, in place, with the device's results to the bit.
   * Arrays without a shape have one axis. It gives the arguments that were passed. It rejects with
   * CudaCompileError, CudaArgumentError or SimulationError.
   */
  simulate<A extends SimulatedArguments<S>>(args: A & NoOthers<S, A>): Promise<A>;
}

/** Changes of {@link TileKernel.with}. */
export interface TileKernelChanges<U extends Uses = Uses, T extends TileSize = TileSize> {
  readonly uses?: OtherUses<U>;
  /** Another tile of the same axes. */
  readonly tile?: OtherTile<T>;
}

/**
 * Makes a kernel whose body computes one tile of the outputs. `x.load()` gives the tile of an
 * input; arithmetic and Math on it are done for each element. `tile.sum(v, 1)` and the other
 * reductions reduce it along an axis; a value with one element along an axis is repeated along it
 * where the other operand has more. `y.store(v)` writes a tile. The body consists of variables,
 * stores, and loops over the tiles of an axis.
 *
 * With `axes` each axis of a tensor has a name: axes of one name have one length, and only tiles of
 * the same axes go together. A tensor's last two axes are a tile's rows and columns; along those
 * before them a tile has one element.
 *
 * A tile lies in the registers of its block's threads, so it has some 100,000 elements at most.
 *
 * @example
 * ```ts
 * const centre = tileKernel(
 *   'centre',
 *   { y: output(f32), x: input(f32) },
 *   ({ y, x }, tile) => y.store(x.load() - tile.mean(x.load(), 1)),
 *   { tile: [1, null] },
 * );
 * using x = await device.tensor(f32, [1, 2, 3, 2, 4, 6], [2, 3]);
 * using y = (await centre({ x })).y;
 * console.log((await y.read()).join(' ')); // -1 0 1 -2 0 2
 * ```
 * @example
 * ```ts
 * const product = tileKernel(
 *   'product',
 *   { c: output(f32), a: input(f32), b: input(f32) },
 *   ({ c, a, b }, tile) => {
 *     let sum = 0;
 *     for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
 *     c.store(sum);
 *   },
 *   {
 *     axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
 *     tile: { m: 64, n: 64, k: { walk: 32 } },
 *   },
 * );
 * const factors = { a: device.ones(f32, [8, 40]), b: device.ones(f32, [40, 8]) };
 * const elements = await product(factors).andThen(({ c }) => c.read());
 * console.log(elements.length, elements[0]); // 64 40
 * ```
 *
 * @param name of the kernel in PTX, errors and traces
 * @param signature what each parameter is: a dtype or a struct for a scalar, a tensor that is read,
 *   written or both
 * @throws CudaArgumentError where the signature or the tile is none, and for a function without a
 *   text
 */
export function tileKernel<
  const S extends ElementParams,
  const T extends TileSize,
  U extends Uses = Record<never, never>,
>(
  name: string,
  signature: S,
  body: (args: TileArguments<S, T>, tile: TileWith<U, T>) => void,
  options: TileKernelOptions<S, U, T>,
): TileKernel<S, U, T> {
  checkName('name', name, 'a kernel');
  const parameters = parametersOf(signature);
  checkShaped(signature, parameters);
  checkOptions('options', options, ['tile', 'axes', 'uses', 'backend']);
  const { tile, axes } = options as { readonly tile: TileSize; readonly axes?: TensorAxes };
  const backend = checkBackend(options.backend);
  const cuts = cutsOf(parameters, 'options', tile, axes);
  if (backend === 'tileir') checkTileIrCuts('options', cuts);
  checkUses(options.uses ?? {}, TILE_NAMES);
  const text = textOfFunction('body', body);
  const definition = {
    name,
    text,
    signature: signatureOf(parameters),
    site: captureStack(tileKernel),
  };
  return new DefinedTiles(parameters, definition, usedOf('options.uses', options.uses), {
    tile,
    axes,
    cuts,
    backend,
  }).callable() as unknown as TileKernel<S, U, T>;
}

/** The tile and axes as the options gave them, the cuts that follow from them, the back end. */
interface Cutting {
  readonly tile: TileSize;
  readonly axes: TensorAxes | undefined;
  readonly cuts: TileCuts;
  readonly backend: TileBackend;
}

type Together = BroadcastShapes | (NamedShapes & { readonly named: true });

interface BroadcastShapes extends ShapesTogether {
  readonly named: false;
  readonly shape: Shape;
}

/** The products of a body that tensor cores may compute: one, or two of one loop. */
interface FoundProducts {
  readonly product: FoundProduct | undefined;
  readonly chain: FoundChain | undefined;
}

/** The definition that the callable function refers to. */
class DefinedTiles
  extends ShapedKernel<Together>
  implements Tunable<{ readonly uses?: Uses; readonly tile?: TileSize }>
{
  private readonly definition: Definition;
  private readonly uses: UsedByName;
  private readonly cutting: Cutting;
  private readonly forms = new LeastRecent<Defined>(FORMS);
  /** The products in the body's text, once they are looked for. */
  private knownProducts: FoundProducts | undefined = undefined;

  constructor(
    parameters: readonly Parameter[],
    definition: Definition,
    uses: UsedByName,
    cutting: Cutting,
  ) {
    super(parameters);
    this.definition = definition;
    this.uses = uses;
    this.cutting = cutting;
  }

  get name(): string {
    return this.definition.name;
  }

  private get found(): FoundProducts {
    const { tensors } = this.cutting.cuts;
    if (this.knownProducts === undefined) {
      const names = tensors && Object.keys(tensors);
      const product = names && productIn(this.definition.text, names);
      const chain =
        product === undefined && names ? chainIn(this.definition.text, names) : undefined;
      this.knownProducts = { product, chain };
    }
    return this.knownProducts;
  }

  /** The walk, with tiles for a product that tensor cores could compute, and do not. */
  private fitting(cuts: TileCuts, walk: TileWalk, tensors: readonly GivenTensor[]): TileWalk {
    const { product, chain } = this.found;
    if (!isNamed(cuts)) return walk;
    if (product !== undefined)
      return { ...walk, axes: fittingAxes(product, cuts, walk.axes, tensors) };
    return chain === undefined
      ? walk
      : { ...walk, axes: fittingChain(chain, cuts, walk.axes, tensors) };
  }

  get sourceKey(): string {
    return (
      `${new Variant(this.definition, this.uses).sourceKey} ` +
      `${JSON.stringify([this.cutting.tile, this.cutting.axes, this.cutting.backend])}`
    );
  }

  /** Gives the kernel of a form. */
  private formed(form: TileForm, index: 'i32' | 'i64', moreThreads: number): Defined {
    const key = JSON.stringify([index, form]);
    let found = this.forms.get(key);
    if (found === undefined) {
      const own = this.parameters.map((parameter) => ({
        ...parameter,
        entry:
          parameter.entry.kind === 'tensor'
            ? tensorEntry(parameter.entry, form.tensors[parameter.name]!)
            : parameter.entry,
      }));
      const extra = extraNames(form).map((name): Parameter => ({
        name,
        entry: { kind: 'scalar', storage: index },
        declared: DTYPES[index],
      }));
      found = new Defined(
        [...own, ...extra],
        new Variant({ ...this.definition, lowering: { to: 'tiles', form } }, this.uses),
        {
          index,
          block: form.across * form.down + moreThreads,
        },
      );
      this.forms.set(key, found, 0);
    }
    return found;
  }

  protected together(tensors: readonly ShapedTensor[]): Together {
    const { cuts } = this.cutting;
    if (isNamed(cuts)) return { named: true, ...namedShapes(this.name, cuts, tensors) };
    const shape = tiledShape(this.name, tensors);
    return { named: false, shape, isEmpty: numel(shape) === 0, shapeOf: () => shape };
  }

  protected launchOf(
    shapes: Together,
    tensors: readonly GivenTensor[],
    { maxGrid, device }: ShapedTarget,
  ): ShapedLaunch {
    const {
      name,
      cutting: { cuts },
    } = this;
    const asCut = shapes.named
      ? namedWalk(name, cuts as NamedCuts, shapes, tensors)
      : broadcastWalk(name, cuts, shapes.shape, tensors);
    const index = indexTypeOf(
      asCut.layouts,
      asCut.axes.some(({ extent, tile }) => extent + tile >= 2 ** 31)
        ? [2 ** 31]
        : shapes.named
          ? []
          : asCut.axes.map(({ extent }) => extent),
    );
    if (this.cutting.backend === 'tileir' && device?.emulated === false)
      return this.tileIrLaunchOf(asCut, tensors, maxGrid[0]!, index);
    const found = this.productOf(cuts, asCut, tensors, device, index);
    const product = typeof found === 'object' ? found : undefined;
    const walk = product === undefined ? this.fitting(cuts, asCut, tensors) : asCut;
    const threads =
      product !== undefined
        ? product.form
        : shapes.named
          ? threadsForAxes(walk.axes, this.tilesOf(walk, tensors))
          : threadsFor(walk.axes[0]!, walk.axes[1]!);
    if (threads === undefined) {
      throw invalid(
        `args of kernel '${name}'`,
        'tensors whose tiles fit in the registers of a block',
        `tiles of ${walk.axes.map(({ tile }) => tile).join(' × ')} elements`,
        'Take smaller tiles, or write it with kernel(…).',
      );
    }
    const form: TileForm = product?.form ?? {
      ...threads,
      ...{ tensors: walk.tensors, broadcast: !shapes.named },
    };
    const numbered = blockAxes(form);
    const { counts, blocks } = blocksOf(name, walk, numbered, maxGrid[0]!);
    const known: Record<string, number> = {
      ...Object.fromEntries(
        form.axes.map(({ width }, axis) => [extentName(axis), walk.axes[axis]!.extent / width]),
      ),
      ...Object.fromEntries(numbered.map((axis, at) => [tilesName(axis), counts[at]!])),
      ...walk.strides((axis) => (axis === undefined ? 1 : form.axes[axis]!.width)),
      ...product?.strides,
    };
    return {
      defined: this.formed(form, index, product?.moreThreads ?? 0),
      options: {
        grid: Math.min(blocks, product?.blocks ?? Infinity),
        index,
        ...(product === undefined ? {} : { sharedBytes: product.sharedBytes }),
      },
      layouts: product?.layouts ?? walk.layouts,
      products:
        found === undefined
          ? []
          : typeof found === 'string'
            ? [`${this.sumsOf(tensors)}: ${found}`]
            : found.instructions,
      extra: Object.fromEntries(extraNames(form).map((each) => [each, known[each]!])),
    };
  }

  /** The launch of code that Tile IR's assembler made, which has one thread for each block. */
  private tileIrLaunchOf(
    walk: TileWalk,
    tensors: readonly GivenTensor[],
    maxGrid: number,
    index: 'i32' | 'i64',
  ): ShapedLaunch {
    const { name, definition, cutting } = this;
    const { form, layouts } = tileIrLaunch(name, cutting.cuts, walk, tensors);
    const { blocks } = blocksOf(name, walk, blockAxes(form), maxGrid);
    const key = JSON.stringify(['tile-ir', index, form]);
    let defined = this.forms.get(key);
    if (defined === undefined) {
      const parameters = this.parameters.map((parameter) => ({
        ...parameter,
        entry:
          parameter.entry.kind === 'tensor'
            ? { ...parameter.entry, rank: form.tensors[parameter.name]!.axes.length }
            : parameter.entry,
      }));
      const variant = new Variant({ ...definition, lowering: { to: 'tile-ir', form } }, this.uses);
      defined = new Defined(parameters, variant, { index, block: 1 });
      this.forms.set(key, defined, 0);
    }
    const dots = definition.text.match(/\bdot\s*\(/g) ?? [];
    return {
      defined,
      options: { grid: blocks, index },
      layouts,
      backend: 'tileir',
      products: dots.map(() => 'mma of Tile IR'),
      extra: {},
    };
  }

  /** The launch with the body's product, or why no tensor cores compute it. */
  private productOf(
    cuts: TileCuts,
    walk: TileWalk,
    tensors: readonly GivenTensor[],
    device: DeviceTarget | undefined,
    index: 'i32' | 'i64',
  ): ProductLaunch | string | undefined {
    if (!/\bdot\s*\(/.test(this.definition.text)) return undefined;
    const { product, chain } = this.found;
    if (!isNamed(cuts) || (product === undefined && chain === undefined))
      return 'it is not all of its loop, a factor is used elsewhere, or the body reduces tiles';
    if (device === undefined) return 'the kernel is simulated';
    if (index === 'i64') return 'a tensor has 2^31 elements or more';
    return product !== undefined
      ? productForm(product, cuts, walk, tensors, device)
      : chainForm(chain!, cuts, walk, tensors, device);
  }

  /** What products are summed in without tensor cores, for reports. */
  private sumsOf(tensors: readonly GivenTensor[]): string {
    const { left, right } = this.found.product ?? {};
    const factors = tensors.filter(({ name, written }) =>
      left === undefined ? !written : name === left.name || name === right!.name,
    );
    const sums = new Set(factors.map(({ dtype }) => sumsOf(dtype)));
    return left !== undefined && sums.size > 1 ? 'f32' : [...sums].join(' or ');
  }

  /** Rows and columns of all tensors' tiles, those of the largest output first. */
  private tilesOf(
    { axes, tensors }: TileWalk,
    given: readonly GivenTensor[],
  ): (readonly [number | undefined, number | undefined])[] {
    const sizeOf = ({ name, written }: GivenTensor): number =>
      written
        ? [tensors[name]!.row, tensors[name]!.column].reduce<number>(
            (size, axis) => size * (axis === undefined ? 1 : axes[axis]!.tile),
            1,
          )
        : 0;
    return [...given]
      .sort((a, b) => sizeOf(b) - sizeOf(a))
      .map(({ name }) => [tensors[name]!.row, tensors[name]!.column] as const);
  }

  /** The kernel for contiguous tensors of these extents. */
  private usual(shape: unknown, device: DeviceTarget | undefined): ShapedLaunch {
    const { cuts } = this.cutting;
    if (!isNamed(cuts) && !Array.isArray(shape))
      return this.ofShapes(shape as Readonly<Record<string, Shape>>, device);
    const lengths = isNamed(cuts)
      ? cuts.names.map((name) =>
          typeof shape === 'object' && shape !== null ? valueNamed(shape, name) : undefined,
        )
      : (shape as unknown[]);
    const isExtent = (extent: unknown): boolean =>
      typeof extent === 'number' && Number.isInteger(extent) && extent >= 1;
    if (lengths.length !== cuts.names.length || !lengths.every(isExtent)) {
      throw invalid(
        'shape',
        isNamed(cuts) ? 'the length of each axis by name' : 'rows and columns',
        shape,
        isNamed(cuts)
          ? `Write { ${cuts.names.map((name) => `${name}: 1024`).join(', ')} }.`
          : 'Write [rows, columns].',
      );
    }
    const shapeOf = (name: string): number[] =>
      (isNamed(cuts) ? cuts.tensors[name]! : [0, 1]).map((axis) =>
        axis === undefined ? 1 : (lengths[axis] as number),
      );
    return this.ofShapes(
      Object.fromEntries(
        this.parameters.map(({ name, entry }) => [
          name,
          entry.kind === 'tensor' ? shapeOf(name) : [],
        ]),
      ),
      device,
    );
  }

  with(changes: { readonly uses?: Uses; readonly tile?: TileSize }): DefinedTiles {
    checkOptions('changes', changes, ['uses', 'tile']);
    const { tile, axes, backend } = {
      ...this.cutting,
      ...(changes.tile === undefined ? {} : { tile: changes.tile }),
    };
    const cuts = cutsOf(this.parameters, 'changes', tile, axes);
    if (backend === 'tileir') checkTileIrCuts('changes', cuts);
    return new DefinedTiles(
      this.parameters,
      this.definition,
      otherUses(this.name, this.uses, changes.uses),
      { tile, axes, cuts, backend },
    );
  }

  callable(): TileKernel {
    const call = (args: unknown, options?: ShapedCallOptions): DeviceOp<unknown> =>
      this.call(args, options);
    const methods = {
      name: this.name,
      with: (changes: { readonly uses?: Uses; readonly tile?: TileSize }) =>
        this.with(changes).callable(),
      prepare: async (device: AnyDevice, shape: unknown) =>
        this.usual(shape, deviceTarget(device)).defined.prepare(device),
      ptx: async (target: KernelTarget, shape: unknown, options?: CodeOptions) =>
        this.usual(shape, deviceTarget(target)).defined.ptx(target, checkedCode(options)),
      sass: async (device: AnyDevice, shape: unknown, options?: CodeOptions) =>
        this.usual(shape, deviceTarget(device)).defined.sass(device, checkedCode(options)),
      report: async (device: AnyDevice, shape: unknown): Promise<TileReport> => {
        const { defined, products = [], backend = 'ptx' } = this.usual(shape, deviceTarget(device));
        return { ...(await defined.report(device)), backend, products };
      },
      exportCubin: async (folder: string, target: KernelTarget, shape: unknown) => {
        if (this.cutting.backend !== 'tileir')
          throw invalid(
            'folder',
            "a kernel with { backend: 'tileir' }",
            folder,
            `Kernel '${this.name}' is compiled to PTX: kernel.ptx(target, shape) gives it.`,
          );
        if (typeof folder !== 'string') throw invalid('folder', 'the path of a folder', folder);
        return this.usual(shape, deviceTarget(target)).defined.exportCubin(folder, target);
      },
      tune: async (
        args: Readonly<Record<string, unknown>>,
        options: ShapedTuneOptions<{ readonly uses?: Uses; readonly tile?: TileSize }>,
      ) => tune(this, args, options),
      simulate: (args: Readonly<Record<string, unknown>>) => this.simulate(args),
      toString: () => this.toString(),
      [inspect.custom]: () => this.toString(),
    };
    for (const key of Reflect.ownKeys(methods))
      Object.defineProperty(call, key, {
        value: methods[key as keyof typeof methods],
        configurable: true,
      });
    return call as unknown as TileKernel;
  }

  override toString(): string {
    const parameters = this.parameters.map(({ name, entry }) => `${name}: ${describeEntry(entry)}`);
    const { names, cuts, tensors } = this.cutting.cuts;
    const extents = cuts.map((cut, axis) => {
      const name = tensors === undefined ? '' : `${names[axis]!} `;
      return name + (cut === null ? 'all' : typeof cut === 'number' ? cut : `${cut.walk} of all`);
    });
    return (
      `tile kernel ${this.name}({ ` + `${parameters.join(', ')} ` + `}) of ${extents.join(' × ')}`
    );
  }
}

/** KiB of shared memory of a block, by compute capability, of the CUDA programming guide. */
const SHARED: Readonly<Record<number, number>> = {
  75: 64,
  80: 163,
  86: 99,
  87: 163,
  89: 99,
  90: 227,
  100: 227,
  103: 227,
  110: 227,
};
/** That of all others. */
const LEAST_SHARED = 99;

/** The device of a target; one of compute capability 9.0 by its number is a whole H100. */
function deviceTarget(target: KernelTarget): DeviceTarget | undefined {
  if (typeof target !== 'object') return undefined;
  const capability = capabilityOf(target);
  if (capability === undefined) return targetOfDevice(coreOf(target));
  const [major, minor] = compileTarget(target as CompileTarget).capability;
  return {
    capability: major * 10 + minor,
    emulated: (target as CompileTarget).emulated === true,
    multiprocessors: 132,
    sharedBytes: (SHARED[major * 10 + minor] ?? LEAST_SHARED) * 1024,
  };
}

/** The number of tiles along each axis that numbers the blocks. */
function blocksOf(
  name: string,
  { axes }: TileWalk,
  numbered: readonly number[],
  most: number,
): { readonly counts: readonly number[]; readonly blocks: number } {
  const counts = numbered.map((axis) => Math.ceil(axes[axis]!.extent / axes[axis]!.tile));
  const blocks = counts.reduce((product, count) => product * count, 1);
  if (blocks <= most) return { counts, blocks };
  throw invalid(
    `args of kernel '${name}'`,
    `tensors of at most ${most} tiles`,
    `${blocks}`,
    'Take larger tiles.',
  );
}

const isNamed = (cuts: TileCuts): cuts is NamedCuts => cuts.tensors !== undefined;
