/** What a compilation gives. */
import { CudaArgumentError, CudaError } from '../core/index.js';
import type { Diagnostic } from './diagnostics.js';
import type { Compiled, Output } from './thread/messages.js';

/**
 * A compiled program: PTX, machine code, code for link-time optimisation. Made by {@link compile}.
 */
export class Program {
  /** What the log calls the source. */
  readonly name: string;
  /** What it was compiled for, `'sm_90'`; undefined for NVRTC's default. */
  readonly architecture: string | undefined;
  /** NVRTC's version, major and minor. */
  readonly nvrtcVersion: readonly [number, number];
  /** Warnings, mostly. */
  readonly log: string;
  /** The log, message by message. */
  readonly diagnostics: readonly Diagnostic[];
  /** Whether it was taken from disk. */
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

  /** PTX text. nvrtcGetPTX @throws CudaArgumentError where it was not asked for */
  get ptx(): string {
    return this.output('ptx');
  }

  /**
   * Machine code for one architecture. nvrtcGetCUBIN @throws CudaArgumentError where it was not
   * asked for
   */
  get cubin(): Uint8Array {
    return this.output('cubin');
  }

  /**
   * Code for link-time optimisation. nvrtcGetLTOIR @throws CudaArgumentError where it was not asked
   * for
   */
  get ltoir(): Uint8Array {
    return this.output('ltoir');
  }

  /**
   * Whether there is an output: a cubin that `device.compile` would like to have may not be there.
   */
  has(output: Output): boolean {
    return this.compiled[output] !== undefined;
  }

  /** Name expressions that were asked for. */
  get nameExpressions(): readonly string[] {
    return Object.keys(this.compiled.loweredNames);
  }

  /**
   * The mangled name of one of `nameExpressions`. nvrtcGetLoweredName
   *
   * @throws CudaError with code ERR_CUDA_NOT_FOUND for another
   */
  loweredName(expression: string): string {
    const { loweredNames } = this.compiled;
    if (Object.hasOwn(loweredNames, expression)) return loweredNames[expression]!;
    const known = Object.keys(loweredNames);
    throw new CudaError(
      'ERR_CUDA_NOT_FOUND',
      `${this.name}: the name of '${expression}' was not asked ` +
        `for${known.length === 0 ? '' : `, only of ${known.join(', ')}`}. Compile with ` +
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
        `${this.name}: there is no ${output}, since it was not asked for. Compile with ` +
          `outputs: ['${output}'].`,
      );
    return made;
  }
}
