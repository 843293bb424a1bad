/**
 * The shapes of a model's outputs. ONNX Runtime takes a model's declarations as a hint: exporters
 * write the extents of the example that they traced, or one name for extents that differ. But
 * memory that is given for an output has to have its shape. So the library makes an output in the
 * first run on inputs of certain shapes; where its shape is the declared one, later runs on such
 * inputs are given memory. An output that once came with another shape, or whose shape may depend
 * on the values of inputs (`value-shapes.ts`), is always made by the library.
 */
import { CudaArgumentError, CudaError } from '../core/index.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { sameShape } from '../tensor/layouts.js';

/** The most shapes of inputs whose outputs' shapes are remembered. */
const MOST_KNOWN = 1024;

/**
 * The library's messages about memory that does not fit an output: the shape of the memory, and the
 * shape that came.
 */
const MISMATCHES: readonly RegExp[] = [
  new RegExp(
    /provided for output '(?<name>[^']*)' .* has shape \{(?<given>[\d,]*)\} /.source +
      /but the computed output shape for this run is \{(?<came>[\d,]*)\}/.source,
  ),
  // Older versions do not name the output.
  new RegExp(
    /shape verification failed\. Current shape:\{(?<given>[\d,]*)\} /.source +
      /Requested shape:\{(?<came>[\d,]*)\}/.source,
  ),
];

export class OutputShapes {
  /**
   * Grows with each output whose declared shape turns out to be wrong: earlier plans are then made
   * anew.
   */
  doubts = 0;
  private readonly strict: boolean;
  private readonly doubted: boolean[];
  /** The outputs that had their declared shapes, by the inputs' shapes. */
  private readonly known = new Map<string, (readonly number[] | undefined)[]>();

  /**
   * `byValue`: for each output, whether its shape may depend on the values of inputs. `strict`: the
   * declarations hold.
   */
  constructor(byValue: readonly boolean[], strict: boolean) {
    this.strict = strict;
    this.doubted = [...byValue];
  }

  /**
   * Returns the shape of an output, by its number, on inputs of these shapes; undefined where it is
   * not known yet.
   */
  of(inputs: string, output: number): readonly number[] | undefined {
    return this.known.get(inputs)?.[output];
  }

  /** Returns the outputs, with shapes only where memory can be given for them. */
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

  /** Records the shape of an output that the library has made. */
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

  /**
   * Returns the error for a run that failed: where an output has another shape, one that names the
   * output.
   */
  refusal(error: unknown, outputs: readonly PlannedOutput[]): unknown {
    if (!(error instanceof CudaError)) return error;
    const mismatch = MISMATCHES.map((pattern) => pattern.exec(error.message)?.groups).find(
      (groups) => groups !== undefined,
    );
    if (mismatch === undefined) return error;
    const suspects = outputs.flatMap((output, index) =>
      mismatch.name === output.info.name ||
      (mismatch.name === undefined &&
        (output.given?.shape ?? output.shape)?.join() === mismatch.given)
        ? [{ ...output, index }]
        : [],
    );
    if (suspects.length === 0) return error;
    const came = extents(mismatch.came);
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
      : 'Its shape depends on the values of inputs. From now on the engine takes it from the ' +
        'run: run it again.';
    return new CudaError(
      'ERR_CUDA_FORMAT',
      `engine: the output ${names} is ${came}, and the model declares ` +
        `${extents(mismatch.given)}. ${fix}`,
      { cause: error },
    );
  }

  private doubt(output: number): void {
    this.doubted[output] = true;
    this.doubts++;
    for (const shapes of this.known.values()) shapes[output] = undefined;
  }
}

function extents(list = ''): string {
  return `[${list.split(',').join(', ')}]`;
}
