/**
 * The shapes that a model's outputs have. What a model declares is a hint to ONNX Runtime:
 * exporters write the extents of the example that they traced, or one name for extents that differ.
 * But memory that is given for an output has to have its shape. So the library makes an output in
 * the first run on inputs of certain shapes; where what came is what was declared, later runs on
 * such inputs are given memory. An output that once came with another shape, or whose shape may
 * depend on what inputs hold (`value-shapes.ts`), is always made by the library.
 */
import { CudaArgumentError, CudaError } from '../core/index.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { sameShape } from '../tensor/layouts.js';

/** Shapes of inputs, of which outputs' are remembered. */
const MOST_KNOWN = 1024;

/**
 * What the library says of memory that it was given for an output: the shape that it was given for,
 * and the one that came.
 */
const UNLIKE: readonly RegExp[] = [
  /provided for output '(?<name>[^']*)' .* has shape \{(?<given>[\d,]*)\} but the computed output shape for this run is \{(?<came>[\d,]*)\}/,
  // Older versions do not name it.
  /shape verification failed\. Current shape:\{(?<given>[\d,]*)\} Requested shape:\{(?<came>[\d,]*)\}/,
];

export class OutputShapes {
  /**
   * Grows with each output of which the declared shape turns out wrong: what was planned before is
   * planned anew.
   */
  doubts = 0;
  private readonly strict: boolean;
  private readonly doubted: boolean[];
  /** By the inputs' shapes: those that came as they were declared. */
  private readonly known = new Map<string, (readonly number[] | undefined)[]>();

  /**
   * `byValue`: of each output whether its shape may depend on what inputs hold. `strict`: what is
   * declared holds.
   */
  constructor(byValue: readonly boolean[], strict: boolean) {
    this.strict = strict;
    this.doubted = [...byValue];
  }

  /** Of the output of a number, on inputs of these shapes; undefined where it is not known yet. */
  of(inputs: string, output: number): readonly number[] | undefined {
    return this.known.get(inputs)?.[output];
  }

  /** The outputs, with shapes only where memory can be given for them. */
  planned(inputs: string, outputs: readonly PlannedOutput[]): readonly PlannedOutput[] {
    if (this.strict) return outputs;
    return outputs.map((output, i) => {
      const { given, shape } = output;
      if (given !== undefined || shape === undefined) return output;
      const known = this.doubted[i] === true ? undefined : this.of(inputs, i);
      return known !== undefined && sameShape(known, shape)
        ? output
        : { ...output, shape: undefined, declared: shape };
    });
  }

  /** An output that the library has made. */
  came(
    inputs: string,
    output: number,
    declared: readonly number[] | undefined,
    shape: readonly number[],
  ): void {
    if (this.strict || declared === undefined || this.doubted[output] === true) return;
    if (!sameShape(declared, shape)) {
      this.doubt(output);
      return;
    }
    const all = this.known.get(inputs) ?? [];
    all[output] = [...shape];
    this.known.delete(inputs);
    this.known.set(inputs, all);
    if (this.known.size > MOST_KNOWN) this.known.delete(this.known.keys().next().value!);
  }

  /** The error for a run that failed: one that says which output's shape is another. */
  refusal(error: unknown, outputs: readonly PlannedOutput[]): unknown {
    if (!(error instanceof CudaError)) return error;
    const said = UNLIKE.map((pattern) => pattern.exec(error.message)?.groups).find(
      (groups) => groups !== undefined,
    );
    if (said === undefined) return error;
    const suspects = outputs.flatMap((output, index) =>
      said.name === output.info.name ||
      (said.name === undefined && (output.given?.shape ?? output.shape)?.join() === said.given)
        ? [{ ...output, index }]
        : [],
    );
    if (suspects.length === 0) return error;
    const came = extents(said.came);
    const given = suspects.find((output) => output.given !== undefined);
    if (given !== undefined) {
      const { name, dtype } = given.info;
      return new CudaArgumentError(
        `options.outputs.${name}`,
        `options.outputs.${name}: expected ${dtype}${came}, which the run gives, got ` +
          `${given.given!.toString()}. Give a tensor of that shape, or leave it out.`,
        { cause: error },
      );
    }
    for (const { index } of suspects) this.doubt(index);
    const names = suspects.map(({ info }) => `'${info.name}'`).join(', ');
    const fix = this.strict
      ? 'Load the model without strictShapes.'
      : 'Its shape depends on what inputs hold. The engine takes it as it comes from now on: ' +
        'run it again.';
    return new CudaError(
      'ERR_CUDA_FORMAT',
      `engine: the output ${names} is ${came}, and the model declares ` +
        `${extents(said.given)}. ${fix}`,
      { cause: error },
    );
  }

  private doubt(output: number): void {
    this.doubted[output] = true;
    this.doubts++;
    for (const shapes of this.known.values()) shapes[output] = undefined;
  }
}

function extents(said = ''): string {
  return `[${said.split(',').join(', ')}]`;
}
