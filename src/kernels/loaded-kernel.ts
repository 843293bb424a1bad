/**
 * Kernels on devices: compiled for the device, loaded once, and the PTX's parameters from an
 * argument's values.
 */
import { DTYPES, u8 } from '../core/index.js';
import { TensorMap } from '../core/tensor-map.js';
import type {
  CoreDevice,
  DeviceBuffer,
  Kernel,
  KernelArgument,
  Module,
  ModuleOptions,
  ParamDeclaration,
} from '../core/index.js';
import type { AbiParam } from '../compiler/tree.js';
import type { AnyTensor } from '../tensor/index.js';
import { compiledKernel, compiledKernelNow } from './compiled-kernels.js';
import type { CompileTarget, CompiledKernel } from './compiler.js';
import type { Parameter } from './parameters.js';
import { Pixels } from './pixels.js';
import { keyOfForm } from './variant.js';
import type { CodeForm, IndexType, Variant } from './variant.js';

/** A tensor as it is passed to a kernel. */
export interface PassedTensor {
  readonly tensor: AnyTensor;
  /** The memory from the first element on. */
  readonly buffer: DeviceBuffer | null;
  /** Elements. */
  readonly length: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

/**
 * The value of one parameter: for a tensor the parts that are passed, else a number or a structure.
 */
export type PassedValue =
  PassedTensor | number | bigint | boolean | Readonly<Record<string, number | bigint | boolean>>;

/** A kernel that is ready to be launched. */
export interface LoadedKernel {
  readonly kernel: Kernel;
  readonly compiled: CompiledKernel;
  /** The PTX's arguments. */
  argumentsOf(values: readonly PassedValue[]): KernelArgument[];
}

export interface Loading {
  loaded: LoadedKernel | undefined;
  readonly done: Promise<LoadedKernel>;
}

const devices = new WeakMap<CoreDevice, Map<string, Loading>>();

/** The target of PTX for the device. */
export function targetOf(device: CoreDevice): CompileTarget {
  return { capability: device.properties.computeCapability, emulated: device.kind === 'cpu' };
}

/**
 * The codes of a variant that are loaded on a device, by {@link keyOfForm}; and those of all
 * variants, by their sources as well.
 */
function loadedOn(
  device: CoreDevice,
  variant: Variant,
): { own: Map<string, Loading>; known: Map<string, Loading> } {
  const own = variant.loaded.get(device) ?? new Map<string, Loading>();
  variant.loaded.set(device, own);
  const known = devices.get(device) ?? new Map<string, Loading>();
  devices.set(device, known);
  return { own, known };
}

/** The key of a code. With lines, it also depends on the place at which the kernel was made. */
function keyOf(formKey: string, variant: Variant, form: CodeForm): string {
  const key = `${formKey} ${variant.sourceKey}`;
  return form.lines ? `${key} ${JSON.stringify(variant.definition.site)}` : key;
}

/** Begins to compile and load the kernel where that was not done before. */
export function loadKernel(
  device: CoreDevice,
  parameters: readonly Parameter[],
  variant: Variant,
  form: CodeForm,
): Loading {
  const formKey = keyOfForm(form);
  const { own, known } = loadedOn(device, variant);
  const found = own.get(formKey);
  if (found !== undefined) return found;
  const key = keyOf(formKey, variant, form);
  let loading = known.get(key);
  if (loading === undefined) {
    const done = load(device, parameters, variant, form);
    const begun: Loading = { loaded: undefined, done };
    done.then(
      (loaded) => {
        begun.loaded = loaded;
      },
      () => {
        known.delete(key);
      },
    );
    known.set(key, begun);
    loading = begun;
  }
  own.set(formKey, loading);
  loading.done.catch(() => {
    own.delete(formKey);
  });
  return loading;
}

/**
 * Loads the kernel on a thread that blocks. Undefined where it has to be compiled and the compiler
 * cannot be loaded.
 *
 * @throws CudaCompileError where the source is wrong
 */
export function loadKernelNow(
  device: CoreDevice,
  parameters: readonly Parameter[],
  variant: Variant,
  form: CodeForm,
): LoadedKernel | undefined {
  const formKey = keyOfForm(form);
  const { own, known } = loadedOn(device, variant);
  const found = own.get(formKey)?.loaded ?? known.get(keyOf(formKey, variant, form))?.loaded;
  if (found !== undefined) return found;
  const compiled = compiledKernelNow(variant, form, targetOf(device));
  if (compiled === undefined) return undefined;
  const loaded = ready(
    device.loadKnownNow(imageOf(compiled), [compiled.entry], moduleOptions(form)),
    compiled,
    parameters,
    form,
  );
  const loading: Loading = { loaded, done: Promise.resolve(loaded) };
  own.set(formKey, loading);
  known.set(keyOf(formKey, variant, form), loading);
  return loaded;
}

async function load(
  device: CoreDevice,
  parameters: readonly Parameter[],
  variant: Variant,
  form: CodeForm,
): Promise<LoadedKernel> {
  device.expectModule();
  const compiled = await compiledKernel(variant, form, targetOf(device));
  return ready(
    await device.loadKnown(imageOf(compiled), [compiled.entry], moduleOptions(form)),
    compiled,
    parameters,
    form,
  );
}

const imageOf = ({ ptx, cubin }: CompiledKernel): string | Uint8Array => cubin ?? ptx;

function moduleOptions(form: CodeForm): ModuleOptions {
  return form.lines ? { lineInfo: true } : {};
}

function ready(
  module: Module,
  compiled: CompiledKernel,
  parameters: readonly Parameter[],
  form: CodeForm,
): LoadedKernel {
  const kernel = module.kernel(
    compiled.entry,
    compiled.abi.map((param) => declarationOf(param, parameters, form.index)),
  );
  // The elements of two views of one memory may interleave: `checkTogether` compares them with
  // their strides.
  kernel.checksOverlap = false;
  const takes = compiled.abi.map((param) => taking(param, parameters));
  return { kernel, compiled, argumentsOf: (values) => takes.map((take) => take(values)) };
}

function declarationOf(
  param: AbiParam,
  parameters: readonly Parameter[],
  indexType: IndexType,
): ParamDeclaration {
  switch (param.kind) {
    case 'pointer': {
      const { entry } = parameters[param.param]!;
      if (entry.kind !== 'tensor') throw new TypeError('a pointer to what is no tensor');
      const dtype = 'struct' in entry.element ? u8 : DTYPES[entry.element.storage];
      return { pointer: true, dtype, access: entry.access };
    }
    case 'map': {
      const { entry } = parameters[param.param]!;
      if (entry.kind !== 'tensor') throw new TypeError('a map of what is no tensor');
      return { map: true, access: entry.access };
    }
    case 'scalar':
      return DTYPES[param.storage];
    default:
      return DTYPES[indexType];
  }
}

/** Gives the function that takes one of the PTX's parameters from the kernel's values. */
function taking(
  param: AbiParam,
  parameters: readonly Parameter[],
): (values: readonly PassedValue[]) => KernelArgument {
  const index = param.param;
  switch (param.kind) {
    case 'pointer':
      return (values) => (values[index] as PassedTensor).buffer;
    case 'map': {
      const { name, entry } = parameters[index]!;
      const isWritten = entry.kind === 'tensor' && entry.access !== 'input';
      return (values) => {
        const value = values[index] as PassedTensor;
        const { tensor } = value;
        const mapped = tensor instanceof Pixels ? { ...value, window: tensor.window } : value;
        return new TensorMap(name, mapped, param, isWritten);
      };
    }
    case 'length':
      return (values) => (values[index] as PassedTensor).length;
    case 'extent':
      return (values) => (values[index] as PassedTensor).shape[param.axis]!;
    case 'stride':
      return (values) => (values[index] as PassedTensor).strides[param.axis]!;
    case 'scalar': {
      const { field } = param;
      if (field === undefined) return (values) => values[index] as number;
      const { entry } = parameters[index]!;
      const name = entry.kind === 'struct' ? entry.struct.fields[field]!.name : '';
      return (values) => (values[index] as Readonly<Record<string, number>>)[name]!;
    }
  }
}
