/** Modules of CUDA C++ that was compiled at run time: their kernels are properties. */
import { isNarrow } from '../ground/narrow-floats.js';
import { CudaError, DTYPES } from '../core/index.js';
import type {
  DTypeName,
  CoreDevice,
  Module as CoreModule,
  ParamDeclaration,
} from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import type { SourcePointer, SourceWord } from '../core/signature.js';
import { checkSignature } from './checked-signature.js';
import { compileFor } from '../nvrtc/index.js';
import { mangledWords } from '../nvrtc/mangled-words.js';
import { sourceSignatures } from '../nvrtc/source-signatures.js';
import type { SourceParameter, SourceSignature } from '../nvrtc/source-signatures.js';
import type { CompileOptions, KernelsOf, Program } from '../nvrtc/index.js';
import type { DeviceOp, GivenAll } from '../ops/index.js';
import { kernelSignatures } from '../ptx/index.js';
import type { KernelSignature } from '../ptx/index.js';
import type { OpLaunchOptions } from '../tensor/index.js';
import { OpKernel, OpModule } from './module.js';
import { SourceKernel } from './source-kernel.js';

/**
 * Options of `compile` of 'async-cuda/nvrtc', without the outputs: they are PTX, and machine code
 * on a GPU.
 */
export type DeviceCompileOptions = Omit<CompileOptions, 'outputs'>;

/** A kernel whose parameters are typed from the source. */
export interface CompiledKernel<A extends readonly unknown[]> extends Omit<OpKernel, 'call'> {
  /**
   * Does the same as {@link OpKernel.call}. Arguments may be operations whose values fit the
   * parameters.
   */
  call<const Args extends { readonly [I in keyof A]: A[I] | DeviceOp<A[I]> }>(
    options: OpLaunchOptions,
    ...args: Args
  ): DeviceOp<GivenAll<Args>>;
}

/**
 * A module with its kernels by name: `extern "C"` kernels, others that are not overloaded, and
 * those of `nameExpressions`.
 */
export type CompiledModule<Source extends string = string> = LoadedProgram &
  CompiledKernels<KernelsOf<Source>>;

// The names are kept by `as`: next to a signature for any name, `keyof` would drop them.
type CompiledKernels<Kernels> = {
  readonly [K in keyof Kernels as Exclude<K, Taken>]: CompiledKernel<
    Extract<Kernels[K], readonly unknown[]>
  >;
};

/** Names of the module's own members. A kernel of such a name is `module.kernel('close')`. */
type Taken = keyof LoadedProgram | 'then';

/** A loaded program with its kernels. */
export class LoadedProgram extends OpModule {
  /** The result of NVRTC: PTX, mangled names, the log. */
  readonly program: Program;
  /** Mangled names by the names in the source and in `nameExpressions`. */
  readonly #names: ReadonlyMap<string, string>;
  readonly #source: string;
  #signatures: ReadonlyMap<string, SourceSignature> | undefined = undefined;
  #compiled: ReadonlyMap<string, KernelSignature> | undefined = undefined;

  /** @internal */
  constructor(core: CoreModule, program: Program, source: string) {
    super(core);
    this.program = program;
    this.#source = source;
    this.#names = namesOf(core.kernelNames, program);
    for (const name of this.kernelNames) this.define(name);
  }

  /**
   * Names of its kernels, as in the source and in `nameExpressions`; other kernels have their
   * mangled name.
   */
  get kernelNames(): readonly string[] {
    const named = new Set(this.#names.values());
    return [...this.#names.keys(), ...this.core.kernelNames.filter((symbol) => !named.has(symbol))];
  }

  /**
   * A kernel by its name in the source, by one of `nameExpressions` or by its mangled name.
   *
   * @param signature as for {@link OpModule.kernel}
   * @throws CudaError with code ERR_CUDA_NOT_FOUND
   */
  override kernel(name: string, signature?: readonly ParamDeclaration[]): OpKernel {
    try {
      const kernel = super.kernel(this.#names.get(name) ?? name, signature);
      return signature === undefined ? this.#withSource(kernel) : kernel;
    } catch (error) {
      if (!(error instanceof CudaError) || error.code !== 'ERR_CUDA_NOT_FOUND') throw error;
      throw this.notFound(name, error);
    }
  }

  /** The kernel with its parameters in the source, checked against the compiled kernel. */
  #withSource(kernel: OpKernel): OpKernel {
    this.#signatures ??= new Map(
      sourceSignatures(this.#source).kernels.map((each) => [each.name, each]),
    );
    const signature = this.#signatures.get(kernel.name);
    const compiled = signature === undefined ? undefined : this.#compiledOf(kernel.name);
    if (signature?.parameters === undefined) {
      // A parameter list that depends on a macro of an option may have another length.
      const isWhole =
        signature?.words !== undefined && signature.words.length === compiled?.params.length;
      const words = isWhole ? wordsOf(signature) : mangledWords(kernel.name);
      return words.size === 0
        ? kernel
        : new OpKernel(
            this.core.kernelOfSource(kernel.name, undefined, { pointers: new Map(), words }),
          );
    }
    if (compiled !== undefined) checkSignature(signature, compiled);
    const core = this.core.kernelOfSource(kernel.name, undefined, {
      pointers: pointersOf(signature.parameters),
      words: wordsOf(signature),
    });
    return signature.parameters.some(({ type }) => typeof type !== 'string' || isNarrow(type))
      ? new SourceKernel(core, signature.parameters)
      : new OpKernel(core);
  }

  #compiledOf(name: string): KernelSignature | undefined {
    this.#compiled ??= new Map(
      (this.program.has('ptx') ? kernelSignatures(this.program.ptx) : []).map((each) => [
        each.name,
        each,
      ]),
    );
    return this.#compiled.get(name);
  }

  /**
   * Defines a property that makes the kernel when it is read: a kernel that this device cannot run
   * fails then, and no other one does.
   */
  private define(name: string): void {
    if (name in this || name === 'then') return;
    let kernel: OpKernel | undefined;
    Object.defineProperty(this, name, {
      get: () => (kernel ??= this.kernel(name)),
      enumerable: true,
      configurable: true,
    });
  }

  private notFound(name: string, cause: CudaError): CudaError {
    const identifier = /^\w+/.exec(name)?.[0] ?? '';
    const template =
      identifier !== '' &&
      new RegExp(`template\\s*<[^;{}]*__global__[^;{}(]*\\b${identifier}\\s*\\(`).test(
        this.#source,
      );
    const known = this.kernelNames;
    const fix = template
      ? 'It is a template, and no instance of it was compiled. Compile with nameExpressions: ' +
        `['${identifier === name ? `${name}<float>` : name}'].`
      : `It has ${known.length === 0 ? 'none' : known.join(', ')}.`;
    return new CudaError(
      'ERR_CUDA_NOT_FOUND',
      `${this.program.name}: there is no kernel '${name}'. ${fix}`,
      { cause },
    );
  }
}

/** The pointers among the parameters. */
function pointersOf(parameters: readonly SourceParameter[]): Map<number, SourcePointer> {
  const pointers = new Map<number, SourcePointer>();
  parameters.forEach(({ type }, index) => {
    const [access, name = ''] = typeof type === 'string' ? type.split(' ') : [];
    if (access !== 'input' && access !== 'inout') return;
    // A char is a byte, signed or unsigned.
    const pointee = name === 'char' ? 'i8' : name in DTYPES ? (name as DTypeName) : undefined;
    pointers.set(index, { isRead: access === 'input', pointee });
  });
  return pointers;
}

/** The integers among the parameters. */
function wordsOf({ parameters, words: found = [] }: SourceSignature): Map<number, SourceWord> {
  const words = new Map<number, SourceWord>();
  (parameters ?? found).forEach((_, index) => {
    const type = parameters?.[index]?.type;
    const kind =
      typeof type === 'string' && Object.hasOwn(DTYPES, type)
        ? DTYPES[type as DTypeName].kind
        : found[index];
    if (kind !== undefined && kind !== 'float' && kind !== 'complex') words.set(index, kind);
  });
  return words;
}

/**
 * `scale` of `_Z5scalePfi`: a function outside of all namespaces that is not an instance of a
 * template.
 */
const PLAIN = /^_Z(\d+)(\w+)$/;

function namesOf(mangled: readonly string[], program: Program): Map<string, string> {
  const names = new Map<string, string>();
  const overloaded = new Set<string>();
  for (const symbol of mangled) {
    const [, length, rest = ''] = PLAIN.exec(symbol) ?? [];
    if (length === undefined) continue;
    const name = rest.slice(0, Number(length));
    if (rest[Number(length)] === 'I' || overloaded.has(name)) continue;
    if (names.delete(name)) overloaded.add(name);
    else names.set(name, symbol);
  }
  for (const symbol of mangled) names.delete(symbol);
  for (const expression of program.nameExpressions) {
    const symbol = program.loweredName(expression);
    if (symbol !== expression) names.set(expression, symbol);
  }
  return names;
}

/** @internal */
export async function compileModule<const Source extends string>(
  device: CoreDevice,
  source: Source,
  options: DeviceCompileOptions = {},
): Promise<CompiledModule<Source>> {
  device.check();
  if (options !== null && typeof options === 'object' && 'outputs' in options)
    throw invalid(
      'options.outputs',
      'nothing: a device takes what it runs',
      options.outputs,
      "For other outputs use compile() of 'async-cuda/nvrtc'.",
    );
  // It is machine code where possible: the driver may be older than NVRTC and may not support its
  // PTX.
  const outputs =
    device.kind === 'cuda' && options.architecture?.startsWith('compute_') !== true
      ? (['ptx', 'cubin'] as const)
      : (['ptx'] as const);
  const program = await compileFor(device.properties.computeCapability, source, {
    ...options,
    outputs,
  });
  const module = program.has('cubin')
    ? await device.loadMachineCode(program.cubin, program.ptx)
    : await device.loadModule(program.ptx);
  return new LoadedProgram(module, program, source) as CompiledModule<Source>;
}
