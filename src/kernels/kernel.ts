/**
 * Kernels written in TypeScript. A function's text is compiled to PTX when the kernel is first
 * launched; calling the kernel launches it.
 */
import { inspect } from 'node:util';

import { CudaArgumentError, CudaError } from '../core/index.js';
import type { CoreDevice, Dimensions, LaunchOptions } from '../core/index.js';
import { checkBoolean, checkOptions, invalid } from '../ground/arguments.js';
import { Applied, Collected, Ready } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import type { AnyDevice } from '../ops/index.js';
import { Later } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { coreOf } from '../ops/scheduling.js';
import { Partitioned } from '../tensor/index.js';
import type { AnyTensor } from '../tensor/index.js';
import { whenLoaded } from '../tensor/loaded-kernels.js';
import { captureStack } from '../core/call-stack.js';
import {
  alignedTensors,
  argumentsInOrder,
  checkTogether,
  deviceAmong,
  indexTypeFor,
  isStillValid,
  passed,
} from './call-arguments.js';
import type { BodyArguments, CallArguments, CallResult, GpuWith, NoOthers } from './body-types.js';
import { assemblyOf, compiledKernel } from './compiled-kernels.js';
import type { CompileTarget, CompiledKernel } from './compiler.js';
import { disassemble } from './disassembler.js';
import {
  checkDynamicShared,
  checkShapeOptions,
  launchShape,
  three,
  threadsOf,
  usualBlock,
} from './grid.js';
import type { LaunchShape } from './grid.js';
import { loadKernel, loadKernelNow, targetOf } from './loaded-kernel.js';
import type { LoadedKernel, PassedValue } from './loaded-kernel.js';
import { checkName, unknownName } from '../ground/names.js';
import { PlannedLaunch } from './planned-launch.js';
import { describeEntry, parametersOf, signatureOf } from './parameters.js';
import type { KernelParams, Parameter } from './parameters.js';
import { reportOf } from './report.js';
import type { KernelReport } from './report.js';
import type { SimulatedArguments, SimulationOptions } from './simulation.js';
import { exportAssembled } from './tile-assembler.js';
import { tune } from './tuning.js';
import type { Tunable, TuneOptions, Tuning } from './tuning.js';
import { describeUses, usedOf } from './uses.js';
import type { Usable, Uses } from './uses.js';
import { Variant } from './variant.js';
import type { CodeForm, IndexType } from './variant.js';
import { textOfFunction } from './function-text.js';

/** From so many threads on, an i32 does not count them. */
const MOST_THREADS = 2 ** 31;

/** How a kernel is launched where the call gives no other options. */
export interface LaunchDefaults {
  /**
   * Blocks. Default: one thread for each element of the largest output, with x along its last axis;
   * one block for each tile of a partition.
   */
  readonly grid?: Dimensions;
  /**
   * Threads of one block. Default: 256, and 32 × 8 where the largest output is indexed by several
   * axes.
   */
  readonly block?: Dimensions;
  /** Bytes of `gpu.dynamicShared`. */
  readonly sharedBytes?: number;
  /**
   * Type of lengths, strides and global indices. Default: i64 where a tensor has 2^31 elements or
   * more, else i32.
   */
  readonly index?: IndexType;
  /**
   * Whether each index into a tensor is checked: an index outside of it fails the launch as an
   * assertion does. Default: false.
   */
  readonly checks?: boolean;
  /**
   * Whether the PTX names the line of your file that each instruction comes from, for profilers,
   * assertions and the checks of the CPU device. Default: true with `checks`, where there is a
   * `console.assert`, and on a device that checks. CU_JIT_GENERATE_LINE_INFO
   */
  readonly lineInfo?: boolean;
}

/** Options of {@link kernel}. */
export interface KernelOptions<U extends Uses = Uses> extends LaunchDefaults {
  /**
   * Constants, lists of them and device functions, which the body finds in its second parameter.
   */
  readonly uses?: U;
}

/** Other values for what a kernel uses. */
export type OtherUses<U extends Uses> = {
  readonly [K in keyof U]?: U[K] extends number | bigint
    ? number | bigint
    : U[K] extends boolean
      ? boolean
      : U[K];
};

/** Changes of {@link KernelFunction.with}. */
export interface KernelChanges<U extends Uses = Uses> extends LaunchDefaults {
  readonly uses?: OtherUses<U>;
}

/** Options of one launch. */
export interface CallOptions
  extends LaunchDefaults, Pick<LaunchOptions, 'cluster' | 'programmatic' | 'priority'> {
  /**
   * The device that the kernel runs on, where no argument lies on one: a kernel of numbers only.
   */
  readonly device?: AnyDevice;
}

/** A device, or the properties of one that code depends on. */
export type KernelTarget = AnyDevice | CompileTarget;

/** Options that select among the codes of a kernel whose block follows from its tensors. */
export type CodeOptions = Pick<LaunchDefaults, 'index' | 'checks' | 'lineInfo'>;

/** Options that select among a kernel's codes. */
export type KernelCodeOptions = CodeOptions & Pick<LaunchDefaults, 'block'>;

/** A kernel written in TypeScript. {@link kernel} makes it. */
export interface KernelFunction<S extends KernelParams = KernelParams, U extends Uses = Uses> {
  /**
   * Gives its launch as an operation. It takes arguments by name, each a value or an operation that
   * gives it; its result holds the arguments by the same names. cuLaunchKernel
   *
   * @throws CudaArgumentError, CudaDisposedError for values that the kernel does not take. When it
   *   runs, it rejects with the same for values that operations gave, and with CudaCompileError
   *   where the body is no kernel
   */
  <A extends CallArguments<S>>(
    args: A & NoOthers<S, A>,
    options?: CallOptions,
  ): DeviceOp<CallResult<A>>;

  readonly name: string;
  /**
   * Gives the same kernel with other constants or other options. Each set of constants is compiled
   * separately.
   */
  with(changes: KernelChanges<U>): KernelFunction<S, U>;
  /**
   * Compiles and loads the kernel, so that the first launch need not. It rejects with
   * CudaCompileError where the body is no kernel.
   */
  prepare(device: AnyDevice, options?: KernelCodeOptions): Promise<void>;
  /**
   * Gives the PTX that the kernel is compiled to, for a device or a compute capability. It rejects
   * with CudaCompileError where the body is no kernel.
   */
  ptx(target: KernelTarget, options?: KernelCodeOptions): Promise<string>;
  /**
   * Gives the machine code that the GPU's driver makes of the kernel, as text from nvdisasm or
   * cuobjdump. The code comes from the driver's linker, because no other compiler of the driver
   * returns its code; a launch compiles the kernel as a whole program, whose code differs in
   * details. It rejects with ERR_CUDA_UNSUPPORTED where there is no disassembler, and on the CPU
   * device.
   */
  sass(device: AnyDevice, options?: KernelCodeOptions): Promise<string>;
  /**
   * Gives registers, memory and occupancy on a device. cuFuncGetAttribute,
   * cuOccupancyMaxActiveBlocksPerMultiprocessor
   */
  report(device: AnyDevice, options?: LaunchDefaults): Promise<KernelReport>;
  /**
   * Finds the fastest of several sets of constants and blocks. They are measured on the arguments'
   * device with these arguments; what the kernel writes is copied first, so that the arguments do
   * not change. The choice is kept on disk, by device, driver, the kernel's source and the
   * arguments' shapes; before it is used again, its results are compared with the first
   * candidate's. It rejects where the first candidate cannot run.
   */
  tune<A extends CallArguments<S>>(
    args: A & NoOthers<S, A>,
    options: TuneOptions<U>,
  ): Promise<Tuning<S, U>>;
  /**
   * Runs the kernel as JavaScript on typed arrays, in place, with the device's results to the bit.
   * Breakpoints and errors are in your own file. What a device does not report is an error: an
   * index outside of an array, a barrier that a thread does not reach. It is meant for small grids:
   * a thread takes microseconds. It gives the arguments that were passed.
   *
   * It rejects with CudaCompileError, CudaArgumentError or SimulationError.
   */
  simulate<A extends SimulatedArguments<S>>(
    args: A & NoOthers<S, A>,
    options?: SimulationOptions,
  ): Promise<A>;
}

/**
 * Makes a kernel of a TypeScript function. The body runs once for each thread, on the device: its
 * text is compiled to PTX when the kernel is first launched there, and kept in memory and on disk.
 * Everything that it uses comes from its two parameters: the arguments, and `gpu` with indices,
 * casts, shared memory, barriers and what `options.uses` lists. Beside them a body uses only `Math`
 * and `console`.
 *
 * @example
 * ```ts
 * const saxpy = kernel('saxpy', { y: inout(f32), a: f32, x: input(f32) }, ({ y, a, x }, gpu) => {
 *   const i = gpu.globalId.x;
 *   if (i < y.length) y[i] = a * x[i]! + y[i]!;
 * });
 * using y = await device.tensor(f32, [1, 1, 1]);
 * using x = await device.tensor(f32, [1, 2, 3]);
 * await saxpy({ y, a: 2, x });
 * console.log((await y.read()).join(' ')); // 3 5 7
 * ```
 *
 * @param name of the kernel in PTX, errors and traces
 * @param signature what each parameter is: a dtype, a struct, a tensor that is read, written or
 *   both
 * @throws CudaArgumentError for what is no signature, and functions without a text
 */
export function kernel<const S extends KernelParams, U extends Uses = Record<never, never>>(
  name: string,
  signature: S,
  body: (args: BodyArguments<S>, gpu: GpuWith<U>) => void,
  options: KernelOptions<U> = {},
): KernelFunction<S, U> {
  checkName('name', name, 'a kernel');
  const parameters = parametersOf(signature);
  const text = textOfFunction('body', body);
  checkOptions('options', options, ['uses', ...DEFAULTS]);
  const definition = { name, text, signature: signatureOf(parameters), site: captureStack(kernel) };
  const { uses, ...defaults } = options;
  return new Defined(
    parameters,
    new Variant(definition, usedOf('options.uses', uses)),
    checkedDefaults(defaults),
  ).callable() as unknown as KernelFunction<S, U>;
}

const NONE: readonly string[] = [];
const DEFAULTS = [
  'grid',
  'block',
  'sharedBytes',
  'index',
  'checks',
  'lineInfo',
] as const satisfies (keyof LaunchDefaults)[];
const CODE_OPTIONS = ['index', 'checks', 'lineInfo'] as const satisfies (keyof CodeOptions)[];
const KERNEL_CODE_OPTIONS = ['block', ...CODE_OPTIONS];
const CALL_OPTIONS = [...DEFAULTS, 'cluster', 'programmatic', 'priority', 'device'];

function checkedDefaults(given: LaunchDefaults): LaunchDefaults {
  const { index, checks, lineInfo } = given;
  checkShapeOptions(given);
  checkBoolean('options.checks', checks);
  checkBoolean('options.lineInfo', lineInfo);
  if (index !== undefined && index !== 'i32' && index !== 'i64')
    throw invalid('options.index', "'i32' or 'i64'", index);
  return given;
}

function checkKernelCode(options: KernelCodeOptions): void {
  checkOptions('options', options, KERNEL_CODE_OPTIONS);
  checkedDefaults(options);
}

/** @throws CudaArgumentError for options that the code of a shaped kernel does not have */
export function checkedCode(options: CodeOptions = {}): CodeOptions {
  checkOptions('options', options, CODE_OPTIONS);
  return options;
}

/** The definition that the callable function refers to. */
export class Defined implements Tunable<KernelChanges> {
  readonly parameters: readonly Parameter[];
  readonly variant: Variant;
  readonly defaults: LaunchDefaults;
  /** The block of launches that give none. */
  private readonly block: Dimensions;
  private readonly names: readonly string[];
  /** Parameters that the kernel writes. */
  private readonly writes: readonly { readonly index: number; readonly name: string }[];
  /** The code that the last launch on a device used, where it had no options of its code. */
  private readonly latest = new WeakMap<
    CoreDevice,
    { readonly index: IndexType; readonly aligned: boolean; readonly loaded: LoadedKernel }
  >();

  constructor(parameters: readonly Parameter[], variant: Variant, defaults: LaunchDefaults) {
    this.parameters = parameters;
    this.variant = variant;
    this.defaults = defaults;
    this.block = defaults.block ?? usualBlock(parameters);
    this.names = parameters.map(({ name }) => name);
    this.writes = parameters.flatMap(({ name, entry }, index) =>
      entry.kind === 'tensor' && entry.access !== 'input'
        ? [{ index, name: `args.${name} of kernel '${this.name}' is written` }]
        : [],
    );
  }

  get name(): string {
    return this.variant.definition.name;
  }

  get sourceKey(): string {
    return this.variant.sourceKey;
  }

  /** Gives the launch as an operation. */
  call(args: unknown, options: CallOptions = {}): DeviceOp<unknown> {
    checkOptions('options', options, CALL_OPTIONS);
    checkedDefaults(options);
    const { name, parameters } = this;
    const given = argumentsInOrder(name, parameters, args);
    const known = given.map((value, index) =>
      value instanceof DeviceOp ? undefined : passed(name, parameters[index]!, value),
    );
    const device = options.device === undefined ? deviceAmong(given) : coreOf(options.device);
    if (device !== undefined) {
      checkTogether(name, parameters, known, device);
      // The module is requested at the call: nearly every call is run, and the thread that loads
      // takes longer to start than the steps before the launch.
      if (!this.variant.loaded.has(device)) device.expectModule();
    }
    const made = known.includes(undefined)
      ? this.names.filter((_, index) => given[index] instanceof DeviceOp)
      : NONE;
    const inputs =
      made.length === 0
        ? new Ready(given)
        : new Collected(
            given.map((value) => nodeOf(value)),
            name,
          );
    // These arguments were checked with a known device. A partition can end before the run, so it
    // is checked again.
    const checked =
      made.length === 0 &&
      device !== undefined &&
      !given.some((value) => value instanceof Partitioned)
        ? (known as PassedValue[])
        : undefined;
    // An operation that is awaited again mostly has the same arguments.
    let last: PlannedLaunch | undefined;
    return new DeviceOp(
      new Applied(
        inputs,
        device,
        `${name}(…)`,
        (run, values) => {
          const plan =
            last?.isFor(run.device, values) === true
              ? last
              : this.plan(run, values, options, made, 'unchecked', checked);
          if (plan instanceof Later) return plan;
          last = plan;
          return plan.queue(run);
        },
        undefined,
        (run) => {
          if (made.length > 0 || last?.isFor(run.device, given) !== true) return false;
          last.launch(run);
          return true;
        },
      ),
    );
  }

  /**
   * Gives the launch that a run with these arguments queues. Where the kernel has to be loaded
   * first, it gives a Later, which queues the launch at once. `together`: whether overlaps were
   * checked before, on tensors that these are views of. `checked`: the arguments that the call has
   * checked.
   */
  plan(
    run: Run,
    args: readonly unknown[],
    options: CallOptions,
    made: readonly string[] = NONE,
    together: 'unchecked' | 'checked' = 'unchecked',
    checked?: readonly PassedValue[],
  ): PlannedLaunch | Later<unknown> {
    const { name, parameters, defaults } = this;
    const { device } = run;
    const valid = checked?.every(isStillValid) === true ? checked : undefined;
    const values =
      valid ?? parameters.map((parameter, index) => passed(name, parameter, args[index]));
    if (valid === undefined && together === 'unchecked')
      checkTogether(name, parameters, values, device);
    const result = { names: this.names, values: args, made };
    const given = { grid: options.grid ?? defaults.grid, block: options.block ?? this.block };
    const shape = launchShape(name, parameters, args, values, given, device.properties);
    if (shape === undefined)
      return new PlannedLaunch(device, args, result, this.written(args), undefined);
    const index = this.indexType(values, shape, options.index ?? defaults.index);
    const aligned = alignedTensors(values);
    const planned = (there: LoadedKernel): PlannedLaunch =>
      new PlannedLaunch(device, args, result, this.written(args), {
        kernel: there.kernel,
        options: this.launchOptions(there, shape, options),
        args: there.argumentsOf(values),
      });
    const latest = this.latest.get(device);
    const usual =
      options.block === undefined && options.checks === undefined && options.lineInfo === undefined;
    if (usual && latest?.index === index && latest.aligned === aligned)
      return planned(latest.loaded);
    const form = this.form(device, { ...options, index }, aligned);
    const now =
      run.mode === 'block' ? loadKernelNow(device, parameters, this.variant, form) : undefined;
    if (now !== undefined) return planned(now);
    const { loaded, done } = loadKernel(device, parameters, this.variant, form);
    if (loaded !== undefined) {
      if (usual) this.latest.set(device, { index, aligned, loaded });
      return planned(loaded);
    }
    const named = { what: `kernel '${name}'`, fix: `await ${name}.prepare(device) before` };
    return whenLoaded(run, undefined, done, named, (there) =>
      planned(there).queue(run),
    ) as Later<unknown>;
  }

  /** Tensors and partitions that the kernel writes: each run checks again whether it may. */
  private written(args: readonly unknown[]): { name: string; value: AnyTensor | Partitioned }[] {
    return this.writes.map(({ index, name }) => ({
      name,
      value: args[index] as AnyTensor | Partitioned,
    }));
  }

  private indexType(
    values: readonly PassedValue[],
    shape: LaunchShape,
    given: IndexType | undefined,
  ): IndexType {
    const needed = indexTypeFor(values);
    if (given === 'i32' && needed === 'i64')
      throw invalid(
        'options.index',
        "'i64', or nothing",
        given,
        `A tensor of kernel '${this.name}' has 2^31 elements or more.`,
      );
    return given ?? (threadsOf(shape) >= MOST_THREADS ? 'i64' : needed);
  }

  private launchOptions(
    { compiled }: LoadedKernel,
    { grid, block }: LaunchShape,
    options: CallOptions,
  ): LaunchOptions {
    const { cluster, programmatic, priority, sharedBytes = this.defaults.sharedBytes } = options;
    checkDynamicShared(this.name, compiled.dynamicShared, sharedBytes);
    return {
      grid,
      block,
      ...(sharedBytes === undefined ? {} : { sharedBytes }),
      ...(compiled.cooperative ? { cooperative: true } : {}),
      ...(cluster === undefined ? {} : { cluster }),
      ...(programmatic === undefined ? {} : { programmatic }),
      ...(priority === undefined ? {} : { priority }),
    };
  }

  with(changes: KernelChanges): Defined {
    if ((changes as unknown) === undefined)
      throw invalid('changes', 'an object of uses and options', changes);
    checkOptions('changes', changes, ['uses', ...DEFAULTS]);
    const { uses, ...defaults } = changes;
    const { variant } = this;
    let other = variant;
    if (uses !== undefined) {
      const names = Object.keys(variant.uses);
      for (const name of Object.keys(uses))
        if (!names.includes(name))
          throw unknownName(
            `changes.uses.${name}`,
            `kernel '${this.name}' does not use`,
            name,
            names,
          );
      const given = Object.fromEntries(
        Object.entries(uses).filter(([, value]) => value !== undefined),
      ) as Record<string, Usable>;
      other = new Variant(variant.definition, {
        ...variant.uses,
        ...usedOf('changes.uses', given),
      });
    }
    return new Defined(this.parameters, other, { ...this.defaults, ...checkedDefaults(defaults) });
  }

  /** The code of a launch; by default, that of a launch without options. */
  private form(
    device: CoreDevice | undefined,
    options: KernelCodeOptions,
    aligned = true,
  ): CodeForm {
    const {
      index = 'i32',
      checks = false,
      lineInfo = checks || this.variant.asserts || device?.isChecked === true,
    } = { ...this.defaults, ...options };
    const block = three(options.block ?? this.block);
    const known =
      options.block === undefined ||
      block.join() === three(this.block).join() ||
      this.variant.hasCodeFor(block);
    return { index, aligned, checks, lines: lineInfo, block: known ? block : undefined };
  }

  /** Compiles and loads the kernel. */
  async prepare(given: AnyDevice, options: KernelCodeOptions = {}): Promise<void> {
    checkKernelCode(options);
    const device = coreOf(given);
    await loadKernel(device, this.parameters, this.variant, this.form(device, options)).done;
  }

  async ptx(target: KernelTarget, options: KernelCodeOptions = {}): Promise<string> {
    checkKernelCode(options);
    const { ptx, cubin } = await this.compiled(target, options);
    if (cubin === undefined) return ptx;
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `kernel.ptx(): the back end of kernel '${this.name}' is Tile IR, whose assembler makes ` +
        'machine code. Look at kernel.sass(device), or export it by kernel.exportCubin(…).',
    );
  }

  private compiled(target: KernelTarget, options: KernelCodeOptions): Promise<CompiledKernel> {
    if (typeof target !== 'object')
      throw invalid('target', 'a Device, or { capability: [9, 0] }', target);
    const device = capabilityOf(target) === undefined ? coreOf(target) : undefined;
    return compiledKernel(
      this.variant,
      this.form(device, options),
      device === undefined ? compileTarget(target as CompileTarget) : targetOf(device),
    );
  }

  /** Exports the machine code of Tile IR. */
  async exportCubin(folder: string, target: KernelTarget): Promise<string> {
    const compiled = await this.compiled(target, {});
    if (compiled.cubin === undefined)
      throw invalid(
        'target',
        "a GPU: the CPU device has no code of NVIDIA's",
        target,
        'Write { capability: [9, 0] }.',
      );
    const { capability } =
      capabilityOf(target) === undefined
        ? targetOf(coreOf(target))
        : compileTarget(target as CompileTarget);
    const assembly = assemblyOf(compiled, this.variant, this.form(undefined, {}), { capability });
    return exportAssembled(folder, assembly, compiled.cubin);
  }

  async sass(given: AnyDevice, options: KernelCodeOptions = {}): Promise<string> {
    const device = coreOf(given);
    checkKernelCode(options);
    const { ptx, cubin } = await this.compiled(device, options);
    if (cubin !== undefined) return disassemble(cubin);
    if (device.kind !== 'cuda')
      throw new CudaError(
        'ERR_CUDA_UNSUPPORTED',
        `kernel.sass(): ${device.name} runs PTX, and has no machine code of NVIDIA's. Pass a ` +
          'GPU, or look at kernel.ptx(device).',
      );
    return disassemble((await device.machineCode(ptx)).cubin);
  }

  async report(given: AnyDevice, options: LaunchDefaults = {}): Promise<KernelReport> {
    checkOptions('options', options, DEFAULTS);
    const device = coreOf(given);
    const { sharedBytes = this.defaults.sharedBytes ?? 0 } = checkedDefaults(options);
    const form = this.form(device, options);
    const loaded = await loadKernel(device, this.parameters, this.variant, form).done;
    return reportOf(
      device,
      loaded,
      options.block ?? this.block,
      sharedBytes,
      async () => (await compiledKernel(this.variant, form, targetOf(device))).ptx,
    );
  }

  /** The device that the kernel runs on with these arguments. */
  deviceOf(args: Readonly<Record<string, unknown>>, options: CallOptions): CoreDevice {
    const device =
      options.device === undefined ? deviceAmong(Object.values(args)) : coreOf(options.device);
    if (device !== undefined) return device;
    throw new CudaArgumentError(
      'options.device',
      `options.device: no argument of kernel '${this.name}' lies on a device. Write { device }.`,
    );
  }

  /** Makes the function that users call, with its methods. */
  callable(): KernelFunction {
    const call = (args: unknown, options?: CallOptions): DeviceOp<unknown> =>
      this.call(args, options);
    const methods = {
      name: this.name,
      with: (changes: KernelChanges) => this.with(changes).callable(),
      prepare: (device: AnyDevice, options?: CodeOptions) => this.prepare(device, options),
      ptx: (target: KernelTarget, options?: CodeOptions) => this.ptx(target, options),
      sass: (device: AnyDevice, options?: CodeOptions) => this.sass(device, options),
      report: (device: AnyDevice, options?: LaunchDefaults) => this.report(device, options),
      tune: (args: Readonly<Record<string, unknown>>, options: TuneOptions) =>
        tune(this, args, options),
      simulate: async (
        args: Readonly<Record<string, unknown>>,
        options: SimulationOptions = {},
      ): Promise<unknown> => {
        // Simulation is for debugging: only programs that simulate load it.
        const { simulate } = await import('./simulation.js');
        simulate(this.variant, this.parameters, this.defaults, args, options);
        return args;
      },
      toString: () => this.toString(),
      [inspect.custom]: () => this.toString(),
    };
    for (const key of Reflect.ownKeys(methods))
      Object.defineProperty(call, key, {
        value: methods[key as keyof typeof methods],
        configurable: true,
      });
    return call as unknown as KernelFunction;
  }

  toString(): string {
    const { uses } = this.variant;
    const parameters = this.parameters
      .map(({ name, entry }) => `${name}: ${describeEntry(entry)}`)
      .join(', ');
    return (
      `kernel ${this.name}({ ${parameters} ` +
      `})${Object.keys(uses).length === 0 ? '' : ` with { ${describeUses(uses)} }`}`
    );
  }
}

export function capabilityOf(target: unknown): unknown {
  return (target as Partial<CompileTarget> | null | undefined)?.capability;
}

export function compileTarget({ capability, emulated }: CompileTarget): CompileTarget {
  const given: unknown = capability;
  if (
    Array.isArray(given) &&
    given.length === 2 &&
    [...(given as number[])].every((part) => Number.isInteger(part) && part >= 0)
  )
    return { capability, emulated: emulated === true };
  throw invalid(
    'target.capability',
    'a compute capability',
    given,
    'Write { capability: [9, 0] }.',
  );
}
