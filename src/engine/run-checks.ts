/**
 * Checks of a run's tensors against the model: names, dtypes, ranks and extents; extents of one
 * name have to be equal. The checks and the errors are the same for every library.
 */
import { CudaArgumentError } from '../core/index.js';
import { invalid, valueNamed } from '../ground/arguments.js';
import { checkTensor as checkTensorValue } from '../library/operation.js';
import type { AnyTensor } from '../tensor/index.js';
import type { Engine, TensorInfo } from './engine.js';

/** The bounds of an input's open extents, and what sets them: 'profile 0', for example. */
export interface ExtentRange {
  readonly min: readonly number[];
  readonly max: readonly number[];
  readonly of: string;
}

/** An output: where it is written, and its shape where that follows from the inputs'. */
export interface PlannedOutput {
  readonly info: TensorInfo;
  /** The tensor that was given to write to; undefined where the run makes it. */
  readonly given: AnyTensor | undefined;
  readonly shape: readonly number[] | undefined;
  /**
   * The shape that the model declares, where that is only a hint, and memory for it cannot be
   * allocated yet.
   */
  readonly declared?: readonly number[];
}

type Signature = Pick<Engine, 'device' | 'inputs' | 'outputs' | 'strictShapes'>;
/**
 * The extents that the names stand for in a run, and the tensor that determined each. An extent is
 * -1 where tensors differ and may.
 */
type Extents = Map<string, { readonly extent: number; readonly of: string }>;
/** What is checked besides dtypes, ranks and fixed extents. */
interface Rules {
  readonly extents: Extents;
  readonly range?: ExtentRange | undefined;
  /**
   * Whether extents of one name are equal, and a shape without extents is a scalar. For ONNX
   * Runtime such a shape may also be an unknown rank.
   */
  readonly strict: boolean;
  /** The fix to recommend, where the argument is not a tensor. */
  readonly advice?: string;
}

/**
 * @throws CudaArgumentError unless exactly the model's inputs are given, and only outputs that it
 *   has
 */
export function checkNames(
  { inputs, outputs }: Pick<Engine, 'inputs' | 'outputs'>,
  given: unknown,
  givenOutputs: unknown,
): void {
  checkInputNames(inputs, given);
  if (typeof givenOutputs !== 'object' || givenOutputs === null)
    throw invalid('options.outputs', 'an object of tensors', givenOutputs);
  const names = outputs.map(({ name }) => name);
  for (const name of Object.keys(givenOutputs)) {
    if (!names.includes(name))
      throw new CudaArgumentError(
        'options.outputs',
        `options.outputs: the model has no output '${name}'; it has ${list(names)}.`,
      );
  }
}

/** @throws CudaArgumentError unless exactly the model's inputs are given */
export function checkInputNames(
  inputs: readonly TensorInfo[],
  given: unknown,
): asserts given is Readonly<Record<string, unknown>> {
  const names = inputs.map(({ name }) => name);
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw invalid('inputs', `an object of tensors: { ${names.join(', ')} }`, given);
  for (const name of Object.keys(given)) {
    if (!names.includes(name))
      throw new CudaArgumentError(
        'inputs',
        `inputs: the model has no input '${name}'; it has ${list(names)}.`,
      );
  }
  for (const { name, dtype, ...shape } of inputs) {
    if (valueNamed(given, name) === undefined && !Object.hasOwn(given, name))
      throw new CudaArgumentError(
        'inputs',
        `inputs: expected ${list(names)}, got ${list(Object.keys(given))}. Add ${name}: a ` +
          `tensor of ${dtype}${showShape(shape)}.`,
      );
  }
}

/**
 * Returns the outputs of a run on these inputs, in the model's order. Those of `given` are checked.
 *
 * @param range returns the bounds of an input by its index, where the library sets bounds
 * @param seen returns the shape that an output (by its index) is known to have on inputs of these
 *   shapes. Where the engine's shapes are not strict, only this is required of a given output
 * @throws CudaArgumentError, CudaDisposedError for tensors that the model does not take
 */
export function planOutputs(
  engine: Signature,
  tensors: readonly unknown[],
  given: Readonly<Record<string, AnyTensor>>,
  range?: (input: number) => ExtentRange | undefined,
  seen?: (output: number) => readonly number[] | undefined,
): PlannedOutput[] {
  const extents: Extents = new Map();
  const strict = engine.strictShapes !== false;
  engine.inputs.forEach((info, i) => {
    const argument = `inputs.${info.name}`;
    checkTensor(argument, info, checkOwn(engine, argument, tensors[i]), {
      extents,
      range: range?.(i),
      strict,
    });
  });
  return engine.outputs.map((info, i) => {
    const tensor = valueNamed(given, info.name) as AnyTensor | undefined;
    const shape = knownShape(info, extents);
    if (tensor === undefined) return { info, given: undefined, shape };
    const argument = `options.outputs.${info.name}`;
    checkOwn(engine, argument, tensor);
    const held = strict ? shape : seen?.(i);
    if (strict || held !== undefined)
      checkTensor(argument, held === undefined ? info : { ...info, shape: held }, tensor, {
        extents: new Map(extents),
        strict: true,
      });
    else if (tensor.dtype.name !== info.dtype)
      checkTensor(argument, shape === undefined ? info : { ...info, shape }, tensor, {
        extents: new Map(),
        strict: false,
      });
    if (!tensor.isContiguous)
      throw invalid(
        argument,
        'a contiguous tensor',
        tensor,
        'Leave it out, and copy what the run gives.',
      );
    const shared = tensors.findIndex(
      (input) => (input as AnyTensor).buffer.memory === tensor.buffer.memory,
    );
    if (shared !== -1)
      throw invalid(
        argument,
        'memory of its own',
        tensor,
        `It shares it with inputs.${engine.inputs[shared]!.name}.`,
      );
    return { info, given: tensor, shape };
  });
}

/** Formats a shape as `[batch, 3, 224, 224]`; `?` is an extent that is neither fixed nor named. */
function showShape({ shape, dimensions }: Pick<TensorInfo, 'shape' | 'dimensions'>): string {
  const shown = shape.map((extent, axis) =>
    extent >= 0 ? String(extent) : (dimensions?.[axis] ?? '?'),
  );
  return `[${shown.join(', ')}]`;
}

/**
 * Checks that the model takes tensors of these shapes, given by its inputs' names.
 *
 * @throws CudaArgumentError that names the argument
 */
export function checkShapes(
  argument: string,
  { inputs, strictShapes = true }: Pick<Engine, 'inputs' | 'strictShapes'>,
  given: unknown,
): asserts given is Readonly<Record<string, readonly number[]>> {
  const shapes = inputs.map(
    ({ name, shape }) => `${name}: [${shape.map((extent) => Math.max(1, extent)).join(', ')}]`,
  );
  const example = `{ ${shapes.join(', ')} }`;
  const names = inputs.map(({ name }) => name);
  if (
    typeof given !== 'object' ||
    given === null ||
    Object.keys(given).length !== names.length ||
    names.some((name) => valueNamed(given, name) === undefined)
  ) {
    throw invalid(argument, `a shape for each of ${list(names)}: ${example}`, given);
  }
  const extents: Extents = new Map();
  for (const info of inputs) {
    const shape = valueNamed(given, info.name);
    const own = `${argument}.${info.name}`;
    if (
      !Array.isArray(shape) ||
      ![...(shape as number[])].every((extent) => Number.isSafeInteger(extent) && extent >= 0)
    )
      throw invalid(own, 'a list of extents', shape, `For example ${example}.`);
    checkShape(
      own,
      info,
      { dtype: info.dtype, shape: shape as number[] },
      { extents, strict: strictShapes, advice: `For example ${example}.` },
    );
  }
}

/** Checks dtype, rank and extents. @throws CudaArgumentError where one differs */
export function checkTensor(
  argument: string,
  info: TensorInfo,
  { dtype, shape }: AnyTensor,
  rules: Rules = { extents: new Map(), strict: true },
): void {
  checkShape(argument, info, { dtype: dtype.name, shape }, rules);
}

function checkShape(
  argument: string,
  info: TensorInfo,
  given: Pick<TensorInfo, 'dtype' | 'shape'>,
  { extents, range, strict, advice }: Rules,
): void {
  const expected = `${info.dtype}${showShape(info)}`;
  const got = `${given.dtype}[${given.shape.join(', ')}]`;
  const wrong = (why: string, fix: string): CudaArgumentError =>
    new CudaArgumentError(
      argument,
      `${argument}: expected ${expected}, got ${got}: ${why}. ${advice ?? fix}`,
    );
  if (given.dtype !== info.dtype)
    throw wrong('another dtype', `Write tensor.convert(${info.dtype}).`);
  const rank = given.shape.length;
  if (!strict && info.shape.length === 0) return;
  if (rank !== info.shape.length)
    throw wrong(
      `rank ${rank} for ${info.shape.length}`,
      'Write tensor.reshape([…]), unsqueeze(axis) or squeeze(axis).',
    );
  info.shape.forEach((extent, axis) => {
    const found = given.shape[axis]!;
    if (extent >= 0) {
      if (found !== extent)
        throw wrong(
          `axis ${axis} has ${found} elements for ${extent}`,
          `Give a tensor of ${expected}.`,
        );
      return;
    }
    if (range !== undefined && (found < range.min[axis]! || found > range.max[axis]!)) {
      throw wrong(
        `axis ${axis} has ${found} elements for ${range.min[axis]} to ${range.max[axis]}, as ` +
          `${range.of} says`,
        'Keep to that, or build the engine with a wider profile.',
      );
    }
    const name = info.dimensions?.[axis];
    if (name === undefined) return;
    const before = extents.get(name);
    if (before === undefined) extents.set(name, { extent: found, of: argument });
    else if (before.extent === found) return;
    else if (!strict) extents.set(name, { ...before, extent: -1 });
    else
      throw wrong(
        `'${name}' is ${before.extent} by ${before.of}, and axis ${axis} has ${found}`,
        'Make them equal.',
      );
  });
}

/** Returns the output's shape, where it follows from the inputs'. */
function knownShape({ shape, dimensions }: TensorInfo, extents: Extents): number[] | undefined {
  const known = shape.map((extent, axis) => {
    const name = dimensions?.[axis];
    return extent >= 0 ? extent : name === undefined ? undefined : extents.get(name)?.extent;
  });
  return known.every((extent) => extent !== undefined && extent >= 0)
    ? (known as number[])
    : undefined;
}

function checkOwn({ device }: Signature, argument: string, tensor: unknown): AnyTensor {
  checkTensorValue('engine.infer', argument, tensor);
  if (tensor.device.runtime !== device.runtime)
    throw invalid(
      argument,
      `a tensor of ${device.name}`,
      tensor,
      'Copy it first: tensor.to(device).',
    );
  return tensor;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.map((name) => `'${name}'`).join(', ');
}
