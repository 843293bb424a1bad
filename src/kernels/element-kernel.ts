/**
 * Element kernels: the body gives one element of the output from the inputs' elements at its index.
 * The library chooses the thread, the addresses and what happens at the end, so the body has no
 * index.
 */
import { inspect } from 'node:util';

import { DTYPES } from '../core/index.js';
import { checkOptions } from '../ground/arguments.js';
import { ROW_NAMES, extentName } from '../compiler/element/element-form.js';
import type { ElementForm } from '../compiler/element/element-form.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import { numel } from '../tensor/layouts.js';
import type { Shape } from '../tensor/index.js';
import type { NoOthers } from './body-types.js';
import { captureStack } from '../core/call-stack.js';
import { outputShape, walkOf } from './element-layouts.js';
import type {
  BodyElements,
  ElementArguments,
  ElementCallResult,
  ElementGpuWith,
  ElementParams,
  ElementResult,
  TensorShapes,
} from './element-types.js';
import { Defined, checkedCode } from './kernel.js';
import type { CodeOptions, KernelTarget, OtherUses } from './kernel.js';
import { LeastRecent } from './least-recent.js';
import { checkName } from '../ground/names.js';
import { describeEntry, parametersOf, signatureOf } from './parameters.js';
import type { Parameter } from './parameters.js';
import type { KernelReport } from './report.js';
import { FORMS, ShapedKernel, checkShaped, checkUses, indexTypeOf } from './shaped-kernel.js';
import type {
  GivenTensor,
  ShapedCallOptions,
  ShapedLaunch,
  ShapedTarget,
  ShapedTensor,
  ShapesTogether,
} from './shaped-kernel.js';
import type { SimulatedArguments } from './simulation.js';
import { tune } from './tuning.js';
import type { ShapedTuneOptions, ShapedTuning, Tunable } from './tuning.js';
import { otherUses, usedOf } from './uses.js';
import type { UsedByName, Uses } from './uses.js';
import { Variant } from './variant.js';
import type { Definition } from './variant.js';
import { textOfFunction } from './function-text.js';

/** Options of {@link elementKernel}. */
export interface ElementKernelOptions<U extends Uses = Uses> {
  /**
   * Constants, lists of them and device functions, which the body finds in its second parameter.
   */
  readonly uses?: U;
}

/** Changes of {@link ElementKernel.with}. */
export interface ElementKernelChanges<U extends Uses = Uses> {
  readonly uses?: OtherUses<U>;
}

/** An element kernel. {@link elementKernel} makes it. */
export interface ElementKernel<S extends ElementParams = ElementParams, U extends Uses = Uses> {
  /**
   * Gives its launch as an operation. It takes arguments by name, each a value or an operation that
   * gives it. Inputs broadcast to the shape of the outputs, as in NumPy; any views may be passed.
   * An `output` that is left out is a new tensor, of the shape that the others broadcast to. The
   * result holds the arguments and the new tensors by the same names. cuLaunchKernel
   *
   * @throws CudaArgumentError, CudaDisposedError for values that the kernel does not take, and
   *   outputs that share elements with another argument. When it runs, it rejects with the same for
   *   values that operations gave, and with CudaCompileError where the body is no element kernel
   */
  <A extends ElementArguments<S>>(
    args: A & NoOthers<S, A>,
    options?: ShapedCallOptions,
  ): DeviceOp<ElementCallResult<S, A>>;

  readonly name: string;
  /** Gives the same kernel with other constants. */
  with(changes: ElementKernelChanges<U>): ElementKernel<S, U>;
  /**
   * Compiles and loads the code for contiguous tensors, so that the first launch need not. The
   * tensors have one shape, or these shapes by name. It rejects with CudaCompileError.
   */
  prepare(device: AnyDevice, shapes?: TensorShapes<S>): Promise<void>;
  /** Gives the PTX for contiguous tensors of one shape. It rejects with CudaCompileError. */
  ptx(target: KernelTarget, options?: CodeOptions): Promise<string>;
  /** Gives the machine code of that PTX, as {@link KernelFunction.sass} does. */
  sass(device: AnyDevice, options?: CodeOptions): Promise<string>;
  /** Gives registers, memory and occupancy of the code for contiguous tensors of one shape. */
  report(device: AnyDevice): Promise<KernelReport>;
  /**
   * Finds the fastest of several sets of constants, measured as {@link KernelFunction.tune} does
   * it. Outputs have to be passed.
   */
  tune<A extends ElementArguments<S>>(
    args: A & NoOthers<S, A>,
    options: ShapedTuneOptions<ElementKernelChanges<U>>,
  ): Promise<ShapedTuning<ElementKernel<S, U>, ElementKernelChanges<U>>>;
  /**
   * Runs the kernel as JavaScript on typed arrays, in place, with the device's results to the bit.
   * Arrays without a shape have one axis. It gives the arguments that were passed. It rejects with
   * CudaCompileError, CudaArgumentError or SimulationError.
   */
  simulate<A extends SimulatedArguments<S>>(args: A & NoOthers<S, A>): Promise<A>;
}

/**
 * Makes a kernel that computes each output element from the inputs' elements at the same index. The
 * body is called for one element: it takes each tensor's element as a plain number and scalars as
 * they are, and returns the output's element, or with several outputs an object of them. Inputs of
 * other shapes broadcast as in NumPy.
 *
 * The body has no store whose index could be wrong, and no other thread: `gpu` has arithmetic,
 * `gpu.index` and `gpu.coordinates`. Contiguous tensors are read and written 16 bytes at a time.
 *
 * @example
 * ```ts
 * const scaled = elementKernel(
 *   'scaled',
 *   { y: output(f32), a: f32, x: input(f32) },
 *   ({ a, x }) => a * x,
 * );
 * using x = await device.tensor(f32, [1, 2, 3]);
 * using y = (await scaled({ a: 2, x })).y;
 * console.log((await y.read()).join(' ')); // 2 4 6
 * ```
 *
 * @param name of the kernel in PTX, errors and traces
 * @param signature what each parameter is: a dtype or a struct for a scalar, a tensor that is read,
 *   written or both
 * @throws CudaArgumentError for what is no signature, and functions without a text
 */
export function elementKernel<const S extends ElementParams, U extends Uses = Record<never, never>>(
  name: string,
  signature: S,
  body: (elements: BodyElements<S>, gpu: ElementGpuWith<U>) => ElementResult<S>,
  options: ElementKernelOptions<U> = {},
): ElementKernel<S, U> {
  checkName('name', name, 'a kernel');
  const parameters = parametersOf(signature);
  checkShaped(signature, parameters);
  checkOptions('options', options, ['uses']);
  checkUses(options.uses ?? {}, ['index', 'coordinates']);
  const text = textOfFunction('body', body);
  return new DefinedElements(
    parameters,
    { name, text, signature: signatureOf(parameters), site: captureStack(elementKernel) },
    usedOf('options.uses', options.uses),
  ).callable() as unknown as ElementKernel<S, U>;
}

/** The widest access of one instruction, in bytes. */
const WIDEST = 16;
/** Threads of a block where a thread has a row and a column. */
const PLANE = [32, 8] as const;

interface OutputShape extends ShapesTogether {
  readonly shape: Shape;
}

/** The definition that the callable function refers to. */
class DefinedElements
  extends ShapedKernel<OutputShape>
  implements Tunable<{ readonly uses?: Uses }>
{
  private readonly definition: Definition;
  private readonly uses: UsedByName;
  private readonly forms = new LeastRecent<Defined>(FORMS);
  /**
   * Elements of one thread: those of the widest dtype fill one access, and there are at least four.
   */
  private readonly width: number;
  private readonly usesCoordinates: boolean;

  constructor(parameters: readonly Parameter[], definition: Definition, uses: UsedByName) {
    super(parameters);
    this.definition = definition;
    this.uses = uses;
    const bytes = parameters.flatMap(({ entry }) =>
      entry.kind === 'tensor' && 'storage' in entry.element
        ? [DTYPES[entry.element.storage].bytes]
        : [],
    );
    this.width = Math.max(4, WIDEST / Math.max(...bytes));
    this.usesCoordinates = /\bcoordinates\b/.test(definition.text);
  }

  get name(): string {
    return this.definition.name;
  }

  get sourceKey(): string {
    return new Variant(this.definition, this.uses).sourceKey;
  }

  /** Gives the kernel of a form. */
  private formed(form: ElementForm, index: 'i32' | 'i64'): Defined {
    const key = JSON.stringify([index, form]);
    let found = this.forms.get(key);
    if (found === undefined) {
      const own = this.parameters.map((parameter) => ({
        ...parameter,
        entry:
          parameter.entry.kind === 'tensor'
            ? { ...parameter.entry, rank: form.axes }
            : parameter.entry,
      }));
      const extents = Array.from({ length: form.coordinates }, (_, axis): Parameter => ({
        name: extentName(axis),
        entry: { kind: 'scalar', storage: index },
        declared: DTYPES[index],
      }));
      const rows =
        form.access === undefined
          ? []
          : ROW_NAMES.map((name): Parameter => ({
              name,
              entry: { kind: 'scalar', storage: index },
              declared: DTYPES[index],
            }));
      const block = form.access === undefined ? {} : { block: PLANE };
      found = new Defined(
        [...own, ...extents, ...rows],
        new Variant({ ...this.definition, lowering: { to: 'elements', form } }, this.uses),
        { index, ...block },
      );
      this.forms.set(key, found, 0);
    }
    return found;
  }

  /** The kernel for contiguous tensors of one shape. */
  private usual(): Defined {
    return this.formed(
      { width: this.width, axes: 1, single: [], coordinates: this.usesCoordinates ? 1 : 0 },
      'i32',
    );
  }

  protected together(tensors: readonly ShapedTensor[]): OutputShape {
    const shape = outputShape(this.name, tensors);
    return { shape, isEmpty: numel(shape) === 0, shapeOf: () => shape };
  }

  protected launchOf(
    { shape }: OutputShape,
    tensors: readonly GivenTensor[],
    { maxGrid }: ShapedTarget,
  ): ShapedLaunch {
    const { layouts, axes, single, rows } = walkOf(this.name, shape, tensors, this.width);
    const extents = !this.usesCoordinates ? [] : shape.length === 0 ? [1] : [...shape];
    const width = axes === 1 ? this.width : 1;
    const index = indexTypeOf(layouts, shape);
    const [walked] = layouts.values();
    const grid =
      rows !== undefined
        ? gridOver([rows.extents[0], rows.extents[1] / width], maxGrid)
        : axes === 1
          ? ([Math.ceil(numel(shape) / (256 * width)), 1, 1] as const)
          : gridOver(walked!.shape, maxGrid);
    return {
      defined: this.formed(
        {
          width,
          axes,
          single,
          coordinates: extents.length,
          ...(rows === undefined ? {} : { access: rows.access }),
        },
        index,
      ),
      options: { grid, index },
      layouts,
      extra: {
        ...Object.fromEntries(extents.map((extent, axis) => [extentName(axis), extent])),
        ...(rows === undefined
          ? {}
          : ({ rows$: rows.extents[0], groups$: rows.extents[1] / width } satisfies Record<
              (typeof ROW_NAMES)[number],
              number
            >)),
      },
    };
  }

  with(changes: { readonly uses?: Uses }): DefinedElements {
    checkOptions('changes', changes, ['uses']);
    return new DefinedElements(
      this.parameters,
      this.definition,
      otherUses(this.name, this.uses, changes.uses),
    );
  }

  callable(): ElementKernel {
    const call = (args: unknown, options?: ShapedCallOptions): DeviceOp<unknown> =>
      this.call(args, options);
    const methods = {
      name: this.name,
      with: (changes: { readonly uses?: Uses }) => this.with(changes).callable(),
      prepare: async (device: AnyDevice, shapes?: Readonly<Record<string, Shape>>) =>
        (shapes === undefined ? this.usual() : this.ofShapes(shapes, undefined).defined).prepare(
          device,
        ),
      tune: async (
        args: Readonly<Record<string, unknown>>,
        options: ShapedTuneOptions<{ readonly uses?: Uses }>,
      ) => tune(this, args, options),
      ptx: async (target: KernelTarget, options?: CodeOptions) =>
        this.usual().ptx(target, checkedCode(options)),
      sass: async (device: AnyDevice, options?: CodeOptions) =>
        this.usual().sass(device, checkedCode(options)),
      report: (device: AnyDevice) => this.usual().report(device),
      simulate: (args: Readonly<Record<string, unknown>>) => this.simulate(args),
      toString: () => this.toString(),
      [inspect.custom]: () => this.toString(),
    };
    for (const key of Reflect.ownKeys(methods))
      Object.defineProperty(call, key, {
        value: methods[key as keyof typeof methods],
        configurable: true,
      });
    return call as unknown as ElementKernel;
  }

  override toString(): string {
    const parameters = this.parameters.map(({ name, entry }) => `${name}: ${describeEntry(entry)}`);
    return `element kernel ${this.name}({ ` + `${parameters.join(', ')} })`;
  }
}

/** Gives blocks of 32 × 8 threads for the last two axes, within the device's limits. */
function gridOver(shape: Shape, maxGrid: readonly number[]): readonly [number, number, number] {
  const [columns = 1, rows = 1, ...outer] = [...shape].reverse();
  return [
    Math.ceil(columns / 32),
    Math.min(maxGrid[1]!, Math.ceil(rows / 8)),
    Math.min(
      maxGrid[2]!,
      outer.reduce((product, extent) => product * extent, 1),
    ),
  ];
}
