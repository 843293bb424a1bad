/**
 * Kernels whose grid and code follow from the shapes of their tensors: arguments of a call, outputs
 * that it makes, the launch, and its simulation. Element kernels and tile kernels differ in how the
 * tensors are walked.
 */
import { CudaArgumentError, DTYPES } from '../core/index.js';
import type { KernelDTypeName, CoreDevice } from '../core/index.js';
import { checkOptions, invalid, valueNamed } from '../ground/arguments.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import type { AnyDevice } from '../ops/index.js';
import { Later, after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { coreOf } from '../ops/scheduling.js';
import { beginsAt } from '../tensor/alignment.js';
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

/** Options of one call. */
export interface ShapedCallOptions {
  /** The device that the kernel runs on, where no argument lies on one. */
  readonly device?: AnyDevice;
}

/** A tensor of a call, in the signature's order. */
export interface ShapedTensor {
  readonly name: string;
  readonly dtype: KernelDTypeName;
  readonly written: boolean;
  /** Undefined where the call leaves it out. */
  readonly layout: Layout | undefined;
  /** Whether its first element is at a multiple of 16 bytes; undefined where there is no memory. */
  readonly aligned: boolean | undefined;
}

/** What a launch depends on, beside its arguments. */
export interface ShapedTarget {
  readonly maxGrid: readonly number[];
  /** Undefined where the kernel is simulated. */
  readonly device: DeviceTarget | undefined;
}

/** The device that code is made for. */
export interface DeviceTarget {
  /** Compute capability, as major * 10 + minor. */
  readonly capability: number;
  /** Whether it is the CPU device. */
  readonly emulated: boolean;
  readonly multiprocessors: number;
  /** Shared memory of a block. */
  readonly sharedBytes: number;
}

export const targetOfDevice = ({ kind, properties }: CoreDevice): DeviceTarget => ({
  emulated: kind === 'cpu',
  capability: properties.computeCapability[0] * 10 + properties.computeCapability[1],
  multiprocessors: properties.multiprocessorCount,
  sharedBytes: properties.sharedMemoryPerBlockOptin,
});

/** The result of checking the shapes of a call's tensors against each other. */
export interface ShapesTogether {
  /** Whether nothing is written. */
  readonly isEmpty: boolean;
  /**
   * The shape of an output that is left out.
   *
   * @throws CudaArgumentError where nothing determines it
   */
  shapeOf(name: string): Shape;
}

/** A tensor that was passed. */
export type GivenTensor = ShapedTensor & { readonly layout: Layout };

/** The kernel for tensors of one layout, and what it is launched with. */
export interface ShapedLaunch {
  readonly defined: Defined;
  readonly options: Required<Pick<CallOptions, 'grid' | 'index'>> &
    Pick<CallOptions, 'sharedBytes'>;
  /** The layout in which the kernel is passed each tensor. */
  readonly layouts: ReadonlyMap<string, Layout>;
  /** What made the code, for the report. Default: the library's compiler to PTX. */
  readonly backend?: 'ptx' | 'tileir';
  /** How products are computed, for the report. */
  readonly products?: readonly string[];
  /** Values of the parameters that follow the user's, by name. */
  readonly extra: Readonly<Record<string, number>>;
}

/** The launch that a call queued last. It is queued again for the same arguments. */
interface Planned {
  readonly device: CoreDevice;
  readonly given: readonly unknown[];
  queue(run: Run): Submitted<unknown>;
}

/**
 * The number of forms that one kernel keeps, by the layouts of a call's tensors. A form that was
 * dropped is made again, and finds its loaded code.
 */
export const FORMS = { entries: 256, bytes: Infinity };

export abstract class ShapedKernel<T extends ShapesTogether = ShapesTogether> {
  readonly parameters: readonly Parameter[];

  constructor(parameters: readonly Parameter[]) {
    this.parameters = parameters;
  }

  abstract get name(): string;

  /**
   * Checks the shapes against each other.
   *
   * @throws CudaArgumentError where they do not fit
   */
  protected abstract together(tensors: readonly ShapedTensor[]): T;

  /**
   * Gives the launch. `shapes`: the result of {@link together}.
   *
   * @throws CudaArgumentError where the kernel takes no such tensors
   */
  protected abstract launchOf(
    shapes: T,
    tensors: readonly GivenTensor[],
    target: ShapedTarget,
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
    // Values that the call makes: results of its operations, and outputs that are left out.
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

  /** The device that the kernel runs on with these arguments. */
  deviceOf(args: Readonly<Record<string, unknown>>, options: ShapedCallOptions): CoreDevice {
    const device =
      options.device === undefined ? deviceAmong(Object.values(args)) : coreOf(options.device);
    if (device !== undefined) return device;
    throw new CudaArgumentError(
      'options.device',
      `options.device: no argument of kernel '${this.name}' lies on a device. Write { device }.`,
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

  /** Checks a value and gives it as it is passed. */
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
   * Queues a run with these arguments. It gives the launch to queue again, where nothing was
   * allocated for it.
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
      this.tensorsOf((at) => (known[at] as PassedTensor | undefined)?.tensor),
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
    const tensors = this.tensorsOf((at) => whole[at] as AnyTensor) as GivenTensor[];
    const { defined, options, layouts, extra } = this.launchOf(shapes, tensors, {
      maxGrid: device.properties.maxGrid,
      device: targetOfDevice(device),
    });
    const views = [
      ...whole.map((value, at) =>
        parameters[at]!.entry.kind === 'tensor'
          ? viewOf(value as AnyTensor, layouts.get(parameters[at]!.name)!)
          : value,
      ),
      ...Object.values(extra),
    ];
    const plan = defined.plan(run, views, options, [], 'checked');
    if (plan instanceof Later) return { queued: after(run, plan, result()), again: undefined };
    const written = whole.flatMap((value, at) => {
      const { name: each, entry } = parameters[at]!;
      return entry.kind === 'tensor' && entry.access !== 'input'
        ? [{ what: `args.${each} of kernel '${name}' is written`, tensor: value as AnyTensor }]
        : [];
    });
    const queue = (again: Run): Submitted<unknown> => {
      // The views that the plan has do not become partitioned when the tensor does.
      for (const { what, tensor } of written) tensor.checkWritable(what);
      plan.queue(again);
      return result();
    };
    return {
      queued: queue(run),
      again: allocates || values.some(isStructure) ? undefined : { device, given: values, queue },
    };
  }

  private tensorsOf(
    at: (index: number) => AnyTensor | { readonly layout: Layout } | undefined,
  ): ShapedTensor[] {
    return this.parameters.flatMap(({ name, entry }, index) => {
      if (entry.kind !== 'tensor' || !('storage' in entry.element)) return [];
      const given = at(index);
      return [
        {
          name,
          dtype: entry.element.storage,
          written: entry.access !== 'input',
          layout: given?.layout,
          aligned: given instanceof Tensor ? beginsAt(given, ALIGNMENT) : undefined,
        },
      ];
    });
  }

  /**
   * Gives the launch for contiguous tensors of these shapes.
   *
   * @throws CudaArgumentError
   */
  protected ofShapes(
    shapes: Readonly<Record<string, Shape>>,
    device: DeviceTarget | undefined,
  ): ShapedLaunch {
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
      return { layout: contiguous(shape as number[]) };
    }) as GivenTensor[];
    const maxGrid = [Infinity, Infinity, Infinity];
    return this.launchOf(this.together(tensors), tensors, { maxGrid, device });
  }

  async simulate(args: Readonly<Record<string, unknown>>): Promise<unknown> {
    const given = argumentsInOrder(this.name, this.parameters, args);
    const tensors = this.tensorsOf((at) => ({
      layout: hostLayout(this.name, this.parameters[at]!, given[at]),
    })) as GivenTensor[];
    const shapes = this.together(tensors);
    if (shapes.isEmpty) return args;
    const most = 2 ** 31 - 1;
    const { defined, options, layouts, extra } = this.launchOf(shapes, tensors, {
      maxGrid: [most, most, most],
      device: undefined,
    });
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
    // Simulation is for debugging: only programs that simulate load it.
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
      "The body's result is written there.",
    );
}

/**
 * @throws CudaArgumentError where a constant or function has a name that the second parameter has
 *   already
 */
export function checkUses(uses: object, own: readonly string[]): void {
  const taken = Object.keys(uses).find((name) => own.includes(name));
  if (taken !== undefined)
    throw invalid(`options.uses.${taken}`, 'another name: gpu has a member of this one', taken);
}

/** The multiple of bytes at which a tensor begins that a tensor map describes. */
const ALIGNMENT = 16;

/** Gives a view of the tensor's memory with another layout. */
function viewOf(tensor: AnyTensor, layout: Layout): AnyTensor {
  return new Tensor(tensor.buffer, layout, false);
}

/** Whether a value is a structure, whose fields may have been assigned since. */
function isStructure(value: unknown): boolean {
  return typeof value === 'object' && !(value instanceof Tensor);
}

/**
 * The highest index that an i32 holds, less the threads after the last element: they have indices,
 * too.
 */
const MOST_INDEX = 2 ** 31 - 2 ** 16;

/** The index type that counts all elements, and the threads after the last one. */
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
