/**
 * Kernels whose grid and code follow from the shapes of their tensors: arguments of a call, outputs
 * that it makes, the launch, and its simulation. What differs is how the tensors are walked.
 */
import { CudaArgumentError, DTYPES } from '../core/index.js';
import type { DTypeName, CoreDevice } from '../core/index.js';
import { checkOptions, invalid, valueNamed } from '../ground/arguments.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import type { AnyDevice } from '../ops/index.js';
import { Later, after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { coreOf } from '../ops/scheduling.js';
import { Tensor } from '../tensor/index.js';
import { contiguous, numel } from '../tensor/layouts.js';
import type { AnyTensor, Layout, Shape } from '../tensor/index.js';
import { argumentsInOrder, checkTogether, deviceAmong, passed } from './call-arguments.js';
import { hostLayout } from './host-arrays.js';
import type { CallOptions, Defined } from './kernel.js';
import type { PassedTensor, PassedValue } from './loaded-kernel.js';
import { closing } from './planned-launch.js';
import { unknownName } from '../ground/names.js';
import type { Parameter } from './parameters.js';
import type { SimulatedTensor } from './simulation.js';

/** How one call differs. */
export interface ShapedCallOptions {
  /** Where it runs, if no argument says it. */
  readonly device?: AnyDevice;
}

/** A tensor of a call, in the signature's order. */
export interface ShapedTensor {
  readonly name: string;
  readonly dtype: DTypeName;
  readonly written: boolean;
  /** Undefined where the call leaves it out. */
  readonly layout: Layout | undefined;
}

/** What the shapes of a call's tensors come to, together. */
export interface ShapesTogether {
  /** Nothing is written. */
  readonly isEmpty: boolean;
  /** Of an output that is left out. @throws CudaArgumentError where nothing tells it */
  shapeOf(name: string): Shape;
}

/** A tensor of a call that is there. */
export type GivenTensor = ShapedTensor & { readonly layout: Layout };

/** The kernel for tensors that lie in a certain way, and what it is launched with. */
export interface ShapedLaunch {
  readonly defined: Defined;
  readonly options: Required<Pick<CallOptions, 'grid' | 'index'>>;
  /** How the kernel is passed each tensor. */
  readonly layouts: ReadonlyMap<string, Layout>;
  /** What it takes behind the user's parameters, by name. */
  readonly extra: Readonly<Record<string, number>>;
}

/** What a call queued last, to be queued again for the same arguments. */
interface Planned {
  readonly device: CoreDevice;
  readonly given: readonly unknown[];
  queue(run: Run): Submitted<unknown>;
}

/**
 * Forms that one kernel keeps: each is looked for by how a call's tensors lie. One that was let go
 * is made again, and finds what it had loaded.
 */
export const FORMS = { entries: 256, bytes: Infinity };

export abstract class ShapedKernel<T extends ShapesTogether = ShapesTogether> {
  readonly parameters: readonly Parameter[];

  constructor(parameters: readonly Parameter[]) {
    this.parameters = parameters;
  }

  abstract get name(): string;

  /** @throws CudaArgumentError where shapes do not go together */
  protected abstract together(tensors: readonly ShapedTensor[]): T;

  /**
   * `shapes`: what {@link together} said. @throws CudaArgumentError where it takes no such tensors
   */
  protected abstract launchOf(
    shapes: T,
    tensors: readonly GivenTensor[],
    maxGrid: readonly number[],
  ): ShapedLaunch;

  call(args: unknown, options: ShapedCallOptions = {}): DeviceOp<unknown> {
    checkOptions('options', options, ['device']);
    const { name, parameters } = this;
    const given = this.inOrder(args);
    const device = options.device === undefined ? deviceAmong(given) : coreOf(options.device);
    const known = given.map((value, at) =>
      value instanceof DeviceOp || value === undefined
        ? undefined
        : this.passed(parameters[at]!, value),
    );
    if (device !== undefined) checkTogether(name, parameters, known, device);
    const nothing = new Made(undefined, 'nothing', () => undefined);
    const inputs = new Collected(
      given.map((value) => (value === undefined ? nothing : nodeOf(value))),
      name,
    );
    // What the call makes: its operations, and outputs that are left out.
    const temporary = parameters
      .filter((_, at) => given[at] === undefined || given[at] instanceof DeviceOp)
      .map((parameter) => parameter.name);
    let last: Planned | undefined;
    return new DeviceOp(
      new Applied(inputs, device, `${name}(…)`, (run, values) => {
        if (last?.device === run.device && last.given.every((value, at) => value === values[at]))
          return last.queue(run);
        const { queued, again } = this.queue(run, values, temporary);
        last = again;
        return queued;
      }),
    );
  }

  /** Where it runs with these arguments. */
  deviceOf(args: Readonly<Record<string, unknown>>, options: ShapedCallOptions): CoreDevice {
    const device =
      options.device === undefined ? deviceAmong(Object.values(args)) : coreOf(options.device);
    if (device !== undefined) return device;
    throw new CudaArgumentError(
      'options.device',
      `options.device: no argument of kernel '${this.name}' says where it runs. Write { device }.`,
    );
  }

  /** The arguments in the order of the parameters; undefined for an output that is left out. */
  private inOrder(args: unknown): unknown[] {
    const { name, parameters } = this;
    if (typeof args !== 'object' || args === null) return argumentsInOrder(name, parameters, args);
    const given = Object.fromEntries(
      Object.entries(args).filter(([, value]) => value !== undefined),
    );
    const names = parameters.map((each) => each.name);
    for (const each of Object.keys(given))
      if (!names.includes(each))
        throw unknownName(`args.${each}`, `kernel '${name}' has no parameter`, each, names);
    const needed = parameters.filter(
      ({ name: each, entry }) =>
        Object.hasOwn(given, each) || entry.kind !== 'tensor' || entry.access !== 'output',
    );
    const values = argumentsInOrder(
      name,
      needed,
      args instanceof Tensor || args instanceof DeviceOp || Array.isArray(args) ? args : given,
    );
    return parameters.map((parameter) => values[needed.indexOf(parameter)]);
  }

  /** A value, checked. */
  private passed(parameter: Parameter, value: unknown): PassedValue {
    const { name, entry } = parameter;
    if (entry.kind !== 'tensor' || !('storage' in entry.element))
      return passed(this.name, parameter, value);
    const argument = `args.${name} of kernel '${this.name}'`;
    const dtype = entry.element.storage;
    if (!(value instanceof Tensor))
      throw invalid(
        argument,
        `a Tensor of ${dtype}`,
        value,
        ArrayBuffer.isView(value) || Array.isArray(value)
          ? `Copy it to the device first: device.tensor(${dtype}, array).`
          : '',
      );
    const tensor = value as AnyTensor;
    tensor.checkAlive();
    if (tensor.dtype.name !== dtype)
      throw invalid(
        argument,
        `a Tensor of ${dtype}`,
        tensor,
        `Convert it with convert(${dtype}), or declare the parameter as ${tensor.dtype.name}.`,
      );
    if (entry.access !== 'input') tensor.checkWritable(`${argument} is written`);
    return {
      tensor,
      buffer: null,
      length: tensor.size,
      shape: tensor.shape,
      strides: tensor.strides,
    };
  }

  /**
   * Queues a run with these arguments, and what queues it again where nothing was allocated for it.
   */
  private queue(
    run: Run,
    values: readonly unknown[],
    temporary: readonly string[],
  ): { readonly queued: Submitted<unknown>; readonly again: Planned | undefined } {
    const { name, parameters } = this;
    const { device } = run;
    const known = parameters.map((parameter, at) =>
      values[at] === undefined ? undefined : this.passed(parameter, values[at]),
    );
    checkTogether(name, parameters, known, device);
    const shapes = this.together(
      this.tensorsOf((at) => (known[at] as PassedTensor | undefined)?.tensor.layout),
    );
    let allocates = false;
    const whole = parameters.map(({ name: own, entry }, at) => {
      if (values[at] !== undefined || entry.kind !== 'tensor' || !('storage' in entry.element))
        return values[at];
      const shape = shapes.shapeOf(own);
      const tensor = new Tensor(
        run.alloc(DTYPES[entry.element.storage], numel(shape)),
        contiguous(shape),
        true,
      ) as unknown as AnyTensor;
      allocates = true;
      return tensor;
    });
    const result = (): object =>
      closing({
        names: parameters.map((parameter) => parameter.name),
        values: whole,
        made: temporary,
      });
    if (shapes.isEmpty) return { queued: result(), again: undefined };
    const tensors = this.tensorsOf((at) => (whole[at] as AnyTensor).layout) as GivenTensor[];
    const { defined, options, layouts, extra } = this.launchOf(
      shapes,
      tensors,
      device.properties.maxGrid,
    );
    const views = [
      ...whole.map((value, at) =>
        parameters[at]!.entry.kind === 'tensor'
          ? viewOf(value as AnyTensor, layouts.get(parameters[at]!.name)!)
          : value,
      ),
      ...Object.values(extra),
    ];
    const plan = defined.plan(run, views, options, [], 'looked at');
    if (plan instanceof Later) return { queued: after(run, plan, result()), again: undefined };
    const written = whole.flatMap((value, at) => {
      const { name: each, entry } = parameters[at]!;
      return entry.kind === 'tensor' && entry.access !== 'input'
        ? [{ what: `args.${each} of kernel '${name}' is written`, tensor: value as AnyTensor }]
        : [];
    });
    const queue = (again: Run): Submitted<unknown> => {
      // The views that the plan has are not partitioned when the tensor is.
      for (const { what, tensor } of written) tensor.checkWritable(what);
      plan.queue(again);
      return result();
    };
    return {
      queued: queue(run),
      again: allocates || values.some(isStructure) ? undefined : { device, given: values, queue },
    };
  }

  private tensorsOf(layoutAt: (at: number) => Layout | undefined): ShapedTensor[] {
    return this.parameters.flatMap(({ name, entry }, at) =>
      entry.kind === 'tensor' && 'storage' in entry.element
        ? [
            {
              name,
              dtype: entry.element.storage,
              written: entry.access !== 'input',
              layout: layoutAt(at),
            },
          ]
        : [],
    );
  }

  /** The kernel for contiguous tensors of these shapes. @throws CudaArgumentError */
  protected ofShapes(shapes: Readonly<Record<string, Shape>>): Defined {
    const tensors = this.tensorsOf((at) => {
      const { name } = this.parameters[at]!;
      const shape =
        (shapes as unknown) === null || (shapes as unknown) === undefined
          ? undefined
          : valueNamed(shapes, name);
      if (!Array.isArray(shape))
        throw invalid(
          `shapes.${name}`,
          'the shape of a tensor',
          shape,
          `Write { ${name}: [1024, 1024] } for every tensor of kernel '${this.name}'.`,
        );
      return contiguous(shape as number[]);
    }) as GivenTensor[];
    return this.launchOf(this.together(tensors), tensors, [Infinity, Infinity, Infinity]).defined;
  }

  async simulate(args: Readonly<Record<string, unknown>>): Promise<unknown> {
    const given = argumentsInOrder(this.name, this.parameters, args);
    const tensors = this.tensorsOf((at) =>
      hostLayout(this.name, this.parameters[at]!, given[at]),
    ) as GivenTensor[];
    const shapes = this.together(tensors);
    if (shapes.isEmpty) return args;
    const most = 2 ** 31 - 1;
    const { defined, options, layouts, extra } = this.launchOf(shapes, tensors, [most, most, most]);
    const views = Object.fromEntries(
      tensors.map(({ name }) => {
        const value = args[name] as ArrayBufferView | SimulatedTensor;
        const { shape: extents, strides, offset } = layouts.get(name)!;
        return [
          name,
          { data: ArrayBuffer.isView(value) ? value : value.data, shape: extents, strides, offset },
        ];
      }),
    );
    // Simulating is for debugging: whoever does not do it does not load it.
    const { simulate } = await import('./simulation.js');
    simulate(
      defined.variant,
      defined.parameters,
      defined.defaults,
      { ...args, ...views, ...extra },
      { grid: options.grid },
    );
    return args;
  }
}

/**
 * @throws CudaArgumentError for tensors of structures, tensors with axes, and where there is no
 *   output
 */
export function checkShaped(signature: unknown, parameters: readonly Parameter[]): void {
  for (const { name, entry, declared } of parameters) {
    if (entry.kind !== 'tensor') continue;
    if ('struct' in entry.element)
      throw invalid(
        `signature.${name}`,
        'a tensor of a dtype',
        declared,
        'Tensors of structures take kernel(…).',
      );
    if (entry.rank !== 1)
      throw invalid(
        `signature.${name}`,
        `${entry.access}(${entry.element.storage}), without axes`,
        declared,
        'Tensors of any shape can be passed.',
      );
  }
  if (!parameters.some(({ entry }) => entry.kind === 'tensor' && entry.access !== 'input'))
    throw invalid(
      'signature',
      'at least one output(…) or inout(…)',
      signature,
      'What the body gives is written there.',
    );
}

/**
 * @throws CudaArgumentError where what a body uses has a name that its second parameter has anyway
 */
export function checkUses(uses: object, own: readonly string[]): void {
  const taken = Object.keys(uses).find((name) => own.includes(name));
  if (taken !== undefined)
    throw invalid(
      `options.uses.${taken}`,
      'another name: the body finds something else by this one',
      taken,
    );
}

/** The tensor's memory, walked in another way. */
function viewOf(tensor: AnyTensor, layout: Layout): AnyTensor {
  return new Tensor(tensor.buffer, layout, false);
}

/** Its fields may have been assigned since. */
function isStructure(value: unknown): boolean {
  return typeof value === 'object' && !(value instanceof Tensor);
}

/** Threads behind the last element have indices, too. */
const MOST_INDEX = 2 ** 31 - 2 ** 16;

/** What counts all that there is, with the threads behind the last element. */
export function indexTypeOf(layouts: ReadonlyMap<string, Layout>, shape: Shape): 'i32' | 'i64' {
  if (numel(shape) > MOST_INDEX) return 'i64';
  for (const { shape: extents, strides } of layouts.values()) {
    const reach = extents.reduce(
      (sum, extent, axis) => sum + Math.max(0, extent - 1) * Math.abs(strides[axis]!),
      0,
    );
    if (reach > MOST_INDEX) return 'i64';
  }
  return 'i32';
}
