/**
 * Element kernels: the body gives one element of the output from the inputs' elements at its index. Which thread does it, where
 * it is read and written, and what happens at the end are the library's: there is no index to get wrong.
 */
import { inspect } from 'node:util';

import { CudaArgumentError, DTYPES } from '../core/index.js';
import type { Device } from '../core/index.js';
import { checkOptions, invalid } from '../core/arguments.js';
import { elementSource, extentName } from '../kernel/element/element-source.js';
import type { ElementDefinition, ElementForm } from '../kernel/element/element-source.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import type { AnyDevice } from '../ops/index.js';
import { Later, after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { coreOf } from '../ops/scheduling.js';
import { Tensor, contiguous, numel } from '../tensor/index.js';
import type { AnyTensor, Layout, Shape } from '../tensor/index.js';
import { argumentsInOrder, checkTogether, deviceAmong, passed } from './call-arguments.js';
import { captureStack } from './call-stack.js';
import type { StackFrame } from './call-stack.js';
import { textOfFunction } from './device-function.js';
import { keyOfElementForm, outputShape, walkOf } from './element-layouts.js';
import type { Walk } from './element-layouts.js';
import type { BodyElements, ElementArguments, ElementCallResult, ElementGpuWith, ElementParams, ElementResult } from './element-types.js';
import type { NoOthers } from './body-types.js';
import { Defined } from './kernel.js';
import type { CodeOptions, KernelTarget, OtherUses } from './kernel.js';
import type { PassedTensor, PassedValue } from './loaded-kernel.js';
import { checkName, unknownName } from './names.js';
import { describeEntry, parametersOf, signatureOf } from './parameters.js';
import type { Parameter } from './parameters.js';
import type { KernelReport } from './report.js';
import type { SimulatedArguments, SimulatedTensor } from './simulation.js';
import { usedOf } from './uses.js';
import type { Usable, UsedByName, Uses } from './uses.js';
import { Variant } from './variant.js';

/** What {@link elementKernel} takes beside the body. */
export interface ElementKernelOptions<U extends Uses = Uses> {
  /** Constants, lists of them and device functions, which the body finds in its second parameter. */
  readonly uses?: U;
}

/** How one call differs. */
export interface ElementCallOptions {
  /** Where it runs, if no argument says it. */
  readonly device?: AnyDevice;
}

/** An element kernel. Made by {@link elementKernel}. */
export interface ElementKernel<S extends ElementParams = ElementParams, U extends Uses = Uses> {
  /**
   * Its launch as an operation: arguments by name, each a value or an operation that gives it. Inputs broadcast to the shape of
   * the outputs, as in NumPy; any views may be passed. An `output` that is left out is a new tensor, of the shape that the
   * others broadcast to. It gives what was passed and what is new, by the same names. cuLaunchKernel
   *
   * @throws CudaArgumentError, CudaDisposedError for values that the kernel does not take, and outputs that share elements
   * with another argument; when run, for what operations gave, and CudaCompileError where the body is not one
   */
  <A extends ElementArguments<S>>(args: A & NoOthers<S, A>, options?: ElementCallOptions): DeviceOp<ElementCallResult<S, A>>;

  readonly name: string;
  /** The same kernel with other constants. */
  with(changes: { readonly uses: OtherUses<U> }): ElementKernel<S, U>;
  /** Compiles and loads the form for contiguous tensors of one shape. Rejects with CudaCompileError */
  prepare(device: AnyDevice): Promise<void>;
  /** The PTX for contiguous tensors of one shape. Rejects with CudaCompileError */
  ptx(target: KernelTarget, options?: CodeOptions): Promise<string>;
  /** Registers, memory and occupancy of the form for contiguous tensors of one shape. */
  report(device: AnyDevice): Promise<KernelReport>;
  /**
   * Runs it as JavaScript on typed arrays, in place, with the device's results to the bit. Arrays without a shape have one
   * axis. Gives what was passed. Rejects with CudaCompileError, CudaArgumentError, SimulationError
   */
  simulate<A extends SimulatedArguments<S>>(args: A & NoOthers<S, A>): Promise<A>;
}

/**
 * A kernel that computes each output element from the inputs' elements at the same index. The body is called for one element:
 * it finds each tensor's element as a plain number and scalars as they are, and gives the output's element, or with
 * several outputs an object of them. Inputs of other shapes broadcast as in NumPy.
 *
 * ```ts
 * const saxpy = elementKernel('saxpy', { y: inout(f32), a: f32, x: input(f32) }, ({ y, a, x }) => a * x + y);
 * await saxpy({ y, a: 2, x });
 * ```
 *
 * There is no store whose index could be wrong, and no other thread: `gpu` has arithmetic, `gpu.index` and
 * `gpu.coordinates`. Contiguous tensors are read and written 16 bytes at a time.
 *
 * @param name of the kernel in PTX, errors and traces
 * @param signature what each parameter is: a dtype or a struct for a scalar, a tensor that is read, written or both
 * @throws CudaArgumentError for what is no signature, and functions without a text
 */
export function elementKernel<const S extends ElementParams, U extends Uses = Record<never, never>>(
  name: string, signature: S, body: (elements: BodyElements<S>, gpu: ElementGpuWith<U>) => ElementResult<S>, options: ElementKernelOptions<U> = {},
): ElementKernel<S, U> {
  checkName('name', name, 'a kernel');
  const parameters = parametersOf(signature);
  for (const { name: each, entry } of parameters) {
    if (entry.kind !== 'tensor') continue;
    if ('struct' in entry.element) throw invalid(`signature.${each}`, 'a tensor of a dtype', signature[each], 'Tensors of structures take kernel(…).');
    if (entry.rank !== 1) throw invalid(`signature.${each}`, `${entry.access}(${entry.element.storage}), without axes`, signature[each], 'An element kernel takes tensors of any shape.');
  }
  if (!parameters.some(({ entry }) => entry.kind === 'tensor' && entry.access !== 'input')) {
    throw invalid('signature', 'at least one output(…) or inout(…)', signature, 'What the body gives is written there.');
  }
  checkOptions('options', options, ['uses']);
  const text = textOfFunction('body', body);
  return new DefinedElements(parameters, { name, text, signature: signatureOf(parameters), uses: usedOf('options.uses', options.uses) }, captureStack(elementKernel)).callable() as unknown as ElementKernel<S, U>;
}

/** Bytes that one instruction reads or writes at most. */
const WIDEST = 16;
/** Threads beyond the last element have indices, too. */
const MOST_INDEX = 2 ** 31 - 2 ** 16;

/** What a call queued last, to be queued again for the same arguments. */
interface Planned {
  readonly device: Device;
  readonly given: readonly unknown[];
  queue(run: Run): Submitted<unknown>;
}

/** An element kernel behind the function that users call. */
class DefinedElements {
  readonly parameters: readonly Parameter[];
  readonly definition: ElementDefinition;
  private readonly site: readonly StackFrame[];
  private readonly forms = new Map<string, Defined>();
  /** Elements of one thread: the widest dtype's fill one access, and none has fewer than four. */
  private readonly width: number;
  private readonly asksForCoordinates: boolean;

  constructor(parameters: readonly Parameter[], definition: ElementDefinition, site: readonly StackFrame[]) {
    this.parameters = parameters;
    this.definition = definition;
    this.site = site;
    const bytes = parameters.flatMap(({ entry }) => (entry.kind === 'tensor' && 'storage' in entry.element ? [DTYPES[entry.element.storage].bytes] : []));
    this.width = Math.max(4, WIDEST / Math.max(...bytes));
    this.asksForCoordinates = /\bcoordinates\b/.test(definition.text);
  }

  get name(): string {
    return this.definition.name;
  }

  /** The kernel of a form. */
  private formed(form: ElementForm, index: 'i32' | 'i64'): Defined {
    const key = `${index} ${keyOfElementForm(form)}`;
    let found = this.forms.get(key);
    if (found === undefined) {
      const { name, signature, text, uses, origin } = elementSource(this.definition, form, index);
      const parameters = Object.entries(signature).map(([each, entry]): Parameter => ({ name: each, entry, declared: this.parameters.find((own) => own.name === each)?.declared ?? DTYPES[index] }));
      found = new Defined(parameters, new Variant({ name, signature, text, origin, site: this.site }, uses as UsedByName), { index });
      this.forms.set(key, found);
    }
    return found;
  }

  /** For contiguous tensors of one shape. */
  private usual(): Defined {
    return this.formed({ width: this.width, axes: 1, single: [], coordinates: this.asksForCoordinates ? 1 : 0 }, 'i32');
  }

  call(args: unknown, options: ElementCallOptions = {}): DeviceOp<unknown> {
    checkOptions('options', options, ['device']);
    const { name, parameters } = this;
    const given = this.inOrder(args);
    const device = options.device === undefined ? deviceAmong(given) : coreOf(options.device);
    const known = given.map((value, at) => (value instanceof DeviceOp || value === undefined ? undefined : this.passed(parameters[at]!, value)));
    if (device !== undefined) checkTogether(name, parameters, known, device);
    const nothing = new Made(undefined, 'nothing', () => undefined);
    const inputs = new Collected(given.map((value) => (value === undefined ? nothing : nodeOf(value))), name);
    let last: Planned | undefined;
    return new DeviceOp(new Applied(inputs, device, `${name}(…)`, (run, values) => {
      if (last?.device === run.device && last.given.every((value, at) => value === values[at])) return last.queue(run);
      const { queued, again } = this.queue(run, values);
      last = again;
      return queued;
    }));
  }

  /** The arguments in the order of the parameters; undefined for an output that is left out. */
  private inOrder(args: unknown): unknown[] {
    const needed = typeof args !== 'object' || args === null ? this.parameters
      : this.parameters.filter(({ name, entry }) => !(entry.kind === 'tensor' && entry.access === 'output' && (args as Record<string, unknown>)[name] === undefined));
    const named = Object.fromEntries(Object.entries((args ?? {}) as object).filter(([name, value]) => value !== undefined || needed.some((each) => each.name === name)));
    for (const name of Object.keys(named)) {
      const names = this.parameters.map((each) => each.name);
      if (!names.includes(name)) throw unknownName(`args.${name}`, `kernel '${this.name}' has no parameter`, name, names);
    }
    const values = argumentsInOrder(this.name, needed, needed === this.parameters ? args : named);
    return this.parameters.map((parameter) => values[needed.indexOf(parameter)]);
  }

  /** A value, checked. */
  private passed(parameter: Parameter, value: unknown): PassedValue {
    const { name, entry } = parameter;
    if (entry.kind !== 'tensor' || !('storage' in entry.element)) return passed(this.name, parameter, value);
    const argument = `args.${name} of kernel '${this.name}'`;
    const dtype = entry.element.storage;
    if (!(value instanceof Tensor)) throw invalid(argument, `a Tensor of ${dtype}`, value, ArrayBuffer.isView(value) || Array.isArray(value) ? `Copy it to the device first: device.tensor(${dtype}, array).` : '');
    const tensor = value as AnyTensor;
    tensor.checkAlive();
    if (tensor.dtype.name !== dtype) throw invalid(argument, `a Tensor of ${dtype}`, tensor, `Convert it with convert(${dtype}), or declare the parameter as ${tensor.dtype.name}.`);
    if (entry.access !== 'input') tensor.checkWritable(`${argument} is written`);
    return { tensor, buffer: null, length: tensor.size, shape: tensor.shape, strides: tensor.strides };
  }

  /** Queues a run with these arguments, and what queues it again where nothing was allocated for it. */
  private queue(run: Run, values: readonly unknown[]): { readonly queued: Submitted<unknown>; readonly again: Planned | undefined } {
    const { name, parameters } = this;
    const { device } = run;
    const known = parameters.map((parameter, at) => (values[at] === undefined ? undefined : this.passed(parameter, values[at])));
    checkTogether(name, parameters, known, device);
    const tensors = parameters.flatMap(({ name: each, entry }, at) => (
      entry.kind === 'tensor' ? [{ name: each, written: entry.access !== 'input', layout: (known[at] as PassedTensor | undefined)?.tensor.layout }] : []
    ));
    const shape = outputShape(name, tensors);
    const made: AnyTensor[] = [];
    const whole = parameters.map(({ entry }, at) => {
      if (values[at] !== undefined || entry.kind !== 'tensor' || !('storage' in entry.element)) return values[at];
      const tensor = new Tensor(run.alloc(DTYPES[entry.element.storage], numel(shape)), contiguous(shape), true) as unknown as AnyTensor;
      made.push(tensor);
      return tensor;
    });
    const result = Object.fromEntries(parameters.map((parameter, at) => [parameter.name, whole[at]]));
    try {
      if (numel(shape) === 0) return { queued: result, again: undefined };
      const walk = walkOf(name, shape, parameters.flatMap((parameter, at) => (parameter.entry.kind === 'tensor' ? [{ name: parameter.name, layout: (whole[at] as AnyTensor).layout as Layout }] : [])));
      const { defined, options, extents } = this.launchOf(shape, walk, (axis) => device.properties.maxGrid[axis]!);
      const views = [...whole.map((value, at) => (parameters[at]!.entry.kind === 'tensor' ? viewOf(value as AnyTensor, walk.layouts.get(parameters[at]!.name)!) : value)), ...extents];
      const plan = defined.plan(run, views, options);
      if (plan instanceof Later) return { queued: after(plan, result), again: undefined };
      const queue = (again: Run): Submitted<unknown> => {
        plan.queue(again);
        return { ...result };
      };
      return { queued: queue(run), again: made.length > 0 || values.some(isStructure) ? undefined : { device, given: values, queue } };
    } catch (error) {
      for (const tensor of made) tensor.close();
      throw error;
    }
  }

  /** The kernel for tensors that lie so, and its grid. */
  private launchOf(shape: Shape, walk: Walk, maxGrid: (axis: number) => number): {
    readonly defined: Defined; readonly options: { readonly grid: readonly [number, number, number]; readonly index: 'i32' | 'i64' }; readonly extents: readonly number[];
  } {
    const coordinates = this.asksForCoordinates ? Math.max(1, shape.length) : 0;
    const width = walk.axes === 1 ? this.width : 1;
    const index = needsWide(walk, shape) ? 'i64' : 'i32';
    const defined = this.formed({ width, axes: walk.axes, single: walk.single, coordinates }, index);
    const extents = coordinates === 0 ? [] : shape.length === 0 ? [1] : [...shape];
    return { defined, options: { grid: gridOver(walk, shape, width, maxGrid), index }, extents };
  }

  with(changes: { readonly uses?: Uses }): DefinedElements {
    checkOptions('changes', changes, ['uses']);
    const names = Object.keys(this.definition.uses);
    for (const name of Object.keys(changes.uses ?? {})) if (!names.includes(name)) throw unknownName(`changes.uses.${name}`, `kernel '${this.name}' does not use`, name, names);
    const given = Object.fromEntries(Object.entries(changes.uses ?? {}).filter(([, value]) => (value as unknown) !== undefined)) as Record<string, Usable>;
    return new DefinedElements(this.parameters, { ...this.definition, uses: { ...this.definition.uses, ...usedOf('changes.uses', given) } }, this.site);
  }

  async simulate(args: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { name, parameters } = this;
    const given = argumentsInOrder(name, parameters, args);
    const arrays = parameters.flatMap((parameter, at) => (parameter.entry.kind === 'tensor' ? [{ ...hostTensor(given[at]), name: parameter.name, written: parameter.entry.access !== 'input' }] : []));
    const shape = outputShape(name, arrays);
    if (numel(shape) === 0) return args;
    const walk = walkOf(name, shape, arrays);
    const { defined, options, extents } = this.launchOf(shape, walk, () => 2 ** 31 - 1);
    const views = Object.fromEntries(arrays.map(({ name: each, data }) => {
      const { shape: extent, strides, offset } = walk.layouts.get(each)!;
      return [each, { data, shape: extent, strides, offset }];
    }));
    const simulated = { ...args, ...views, ...Object.fromEntries(extents.map((extent, axis) => [extentName(axis), extent])) };
    // Simulating is for debugging: whoever does not do it does not load it.
    const { simulate } = await import('./simulation.js');
    simulate(defined.variant, defined.parameters, defined.defaults, simulated, { grid: options.grid });
    return args;
  }

  callable(): ElementKernel {
    const call = (args: unknown, options?: ElementCallOptions): DeviceOp<unknown> => this.call(args, options);
    const methods = {
      name: this.name,
      with: (changes: { readonly uses: Uses }) => this.with(changes).callable(),
      prepare: (device: AnyDevice) => this.usual().prepare(device),
      ptx: (target: KernelTarget, options?: CodeOptions) => this.usual().ptx(target, options),
      report: (device: AnyDevice) => this.usual().report(device),
      simulate: (args: Readonly<Record<string, unknown>>) => this.simulate(args),
      toString: () => this.toString(),
      [inspect.custom]: () => this.toString(),
    };
    for (const key of Reflect.ownKeys(methods)) Object.defineProperty(call, key, { value: methods[key as keyof typeof methods], configurable: true });
    return call as unknown as ElementKernel;
  }

  toString(): string {
    return `element kernel ${this.name}({ ${this.parameters.map(({ name, entry }) => `${name}: ${describeEntry(entry)}`).join(', ')} })`;
  }
}

/** The tensor's memory, walked in another way. */
function viewOf(tensor: AnyTensor, layout: Layout): AnyTensor {
  return new Tensor(tensor.buffer, layout, false);
}

/** Its fields may have been assigned since. */
function isStructure(value: unknown): boolean {
  return typeof value === 'object' && !(value instanceof Tensor);
}

/** Whether 32 bits do not count all that there is, with the threads behind the last element. */
function needsWide({ layouts }: Walk, shape: Shape): boolean {
  if (numel(shape) > MOST_INDEX) return true;
  for (const { shape: extents, strides } of layouts.values()) {
    const reach = extents.reduce((sum, extent, axis) => sum + Math.max(0, extent - 1) * Math.abs(strides[axis]!), 0);
    if (reach > MOST_INDEX) return true;
  }
  return false;
}

/** Blocks of 256 threads, each with `width` elements; of 32 × 8 where there are several axes, as many as the device takes. */
function gridOver(walk: Walk, shape: Shape, width: number, maxGrid: (axis: number) => number): readonly [number, number, number] {
  if (walk.axes === 1) return [Math.ceil(numel(shape) / (256 * width)), 1, 1];
  const [layout] = walk.layouts.values();
  const [columns = 1, rows = 1, ...outer] = [...layout!.shape].reverse();
  return [Math.ceil(columns / 32), Math.min(maxGrid(1), Math.ceil(rows / 8)), Math.min(maxGrid(2), outer.reduce((product, extent) => product * extent, 1))];
}

function hostTensor(value: unknown): { readonly data: ArrayBufferView; readonly layout: Layout } {
  if (ArrayBuffer.isView(value)) return { data: value, layout: contiguous([(value as Uint8Array).length]) };
  const { data, shape, strides, offset = 0 } = value as SimulatedTensor;
  const dense = contiguous(shape, offset);
  return { data, layout: strides === undefined ? dense : { ...dense, strides } };
}
