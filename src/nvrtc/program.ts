/** The result of a compilation. */
import { CudaArgumentError, CudaError } from '../core/index.js';
import type { Diagnostic } from './diagnostics.js';
import type { Compiled, Output } from './thread/messages.js';

/**
 * A compiled program: PTX, machine code, code for link-time optimisation. {@link compile} makes it.
 *
 * @example
 * ```ts no-run
 * const program: Program = await compile('template <typename T> __global__ void fill(T* y) {}', {
 *   nameExpressions: ['fill<float>'],
 * });
 * console.log(program.loweredName('fill<float>')); // _Z4fillIfEvPT_
 * console.log(program.has('ptx'), program.has('cubin')); // true false
 * ```
 */
export class Program {
  /** The source's name in the log. */
  readonly name: string;
  /** The architecture that it was compiled for, `'sm_90'`; undefined for NVRTC's default. */
  readonly architecture: string | undefined;
  /** NVRTC's version, major and minor. */
  readonly nvrtcVersion: readonly [number, number];
  /** NVRTC's log, mostly warnings. */
  readonly log: string;
  /** The log, message by message. */
  readonly diagnostics: readonly Diagnostic[];
  /** Whether it was read from disk. */
  readonly cached: boolean;
  private readonly compiled: Compiled;

  /** @internal */
  constructor(
    name: string,
    compiled: Compiled,
    diagnostics: readonly Diagnostic[],
    cached: boolean,
  ) {
    this.name = name;
    this.compiled = compiled;
    this.architecture = compiled.architecture;
    this.nvrtcVersion = compiled.version;
    this.log = compiled.log;
    this.diagnostics = diagnostics;
    this.cached = cached;
  }

  /**
   * PTX text. nvrtcGetPTX
   *
   * @throws CudaArgumentError where `outputs` does not contain it
   */
  get ptx(): string {
    return this.output('ptx');
  }

  /**
   * Machine code for one architecture. nvrtcGetCUBIN
   *
   * @throws CudaArgumentError where `outputs` does not contain it
   */
  get cubin(): Uint8Array {
    return this.output('cubin');
  }

  /**
   * Code for link-time optimisation. nvrtcGetLTOIR
   *
   * @throws CudaArgumentError where `outputs` does not contain it
   */
  get ltoir(): Uint8Array {
    return this.output('ltoir');
  }

  /** Whether an output exists: a cubin is optional for `device.compile`. */
  has(output: Output): boolean {
    return this.compiled[output] !== undefined;
  }

  /** The name expressions that the program was compiled with. */
  get nameExpressions(): readonly string[] {
    return Object.keys(this.compiled.loweredNames);
  }

  /**
   * The mangled name of one of `nameExpressions`. nvrtcGetLoweredName
   *
   * @throws CudaError with code ERR_CUDA_NOT_FOUND for another expression
   */
  loweredName(expression: string): string {
    const { loweredNames } = this.compiled;
    if (Object.hasOwn(loweredNames, expression)) return loweredNames[expression]!;
    const known = Object.keys(loweredNames);
    throw new CudaError(
      'ERR_CUDA_NOT_FOUND',
      `${this.name}: '${expression}' is not one of its name ` +
        `expressions${known.length === 0 ? '' : ` (${known.join(', ')})`}. Compile with ` +
        `nameExpressions: ['${expression}'].`,
    );
  }

  toString(): string {
    return (
      `Program ${this.name}${this.architecture === undefined ? '' : `, ${this.architecture}`}: ` +
      `${(['ptx', 'cubin', 'ltoir'] as const).filter((output) => this.has(output)).join(', ')}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  private output<O extends Output>(output: O): NonNullable<Compiled[O]> {
    const made = this.compiled[output];
    if (made === undefined)
      throw new CudaArgumentError(
        'outputs',
        `${this.name}: there is no ${output}, since options.outputs does not contain it. ` +
          `Compile with outputs: ['${output}'].`,
      );
    return made;
  }
}
