/**
 * Shapes of a run: inputs are held against what the model says of them, and outputs are what follows from that. Extents that
 * are named alike are equal.
 */
import { CudaArgumentError } from '../core/index.js';
import { invalid } from '../core/arguments.js';
import type { TensorInfo } from '../engine/engine.js';
import type { AnyTensor } from '../tensor/index.js';

/** As in `[batch, 3, 224, 224]`; `?` where an extent is neither fixed nor named. */
export function showShape({ shape, dimensions }: Pick<TensorInfo, 'shape' | 'dimensions'>): string {
  return `[${shape.map((extent, axis) => (extent >= 0 ? String(extent) : (dimensions?.[axis] ?? '?'))).join(', ')}]`;
}

/** What the names of extents stand for in a run, and which tensor has said so. */
export type Extents = Map<string, { readonly extent: number; readonly of: string }>;

/** @throws CudaArgumentError for names that are missing or unknown, and all that {@link checkTensor} finds */
export function checkInputs(inputs: readonly TensorInfo[], given: Readonly<Record<string, AnyTensor>>): Extents {
  const extents: Extents = new Map();
  for (const info of inputs) checkTensor(`inputs.${info.name}`, info, given[info.name]!, extents);
  return extents;
}

/** @throws CudaArgumentError unless exactly the model's inputs are given */
export function checkNames(inputs: readonly TensorInfo[], given: unknown): asserts given is Readonly<Record<string, unknown>> {
  const names = inputs.map(({ name }) => name);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('inputs', `an object of tensors: { ${names.join(', ')} }`, given);
  for (const name of Object.keys(given)) {
    if (!names.includes(name)) throw new CudaArgumentError('inputs', `inputs: the model has no input '${name}'; it has ${list(names)}.`);
  }
  for (const { name, dtype, ...shape } of inputs) {
    if (!(name in given)) throw new CudaArgumentError('inputs', `inputs: expected ${list(names)}, got ${list(Object.keys(given))}. Add ${name}: a tensor of ${dtype}${showShape(shape)}.`);
  }
}

/** @throws CudaArgumentError for names that the model's outputs have not */
export function checkOutputNames(outputs: readonly TensorInfo[], given: Readonly<Record<string, unknown>>): void {
  const names = outputs.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (!names.includes(name)) throw new CudaArgumentError('options.outputs', `options.outputs: the model has no output '${name}'; it has ${list(names)}.`);
  }
}

/** Dtype, rank and extents. */
export function checkTensor(argument: string, info: TensorInfo, tensor: AnyTensor, extents: Extents): void {
  const expected = `${info.dtype}${showShape(info)}`;
  const got = `${tensor.dtype.name}[${tensor.shape.join(', ')}]`;
  const wrong = (why: string, fix: string): CudaArgumentError => new CudaArgumentError(argument, `${argument}: expected ${expected}, got ${got}: ${why}. ${fix}`);
  if (tensor.dtype.name !== info.dtype) throw wrong('another dtype', `Write tensor.convert(${info.dtype}).`);
  if (tensor.rank !== info.shape.length) throw wrong(`rank ${tensor.rank} for ${info.shape.length}`, 'Write tensor.reshape([…]), unsqueeze(axis) or squeeze(axis).');
  info.shape.forEach((extent, axis) => {
    const given = tensor.shape[axis]!;
    if (extent >= 0) {
      if (given !== extent) throw wrong(`axis ${axis} has ${given} elements for ${extent}`, `Give a tensor of ${expected}.`);
      return;
    }
    const name = info.dimensions?.[axis];
    if (name === undefined) return;
    const before = extents.get(name);
    if (before === undefined) extents.set(name, { extent: given, of: argument });
    else if (before.extent !== given) throw wrong(`'${name}' is ${before.extent} by ${before.of}, and axis ${axis} has ${given}`, 'Make them equal.');
  });
}

/** The output's shape, where it follows from the inputs'. */
export function knownShape({ shape, dimensions }: TensorInfo, extents: Extents): number[] | undefined {
  const known = shape.map((extent, axis) => {
    const name = dimensions?.[axis];
    return extent >= 0 ? extent : name === undefined ? undefined : extents.get(name)?.extent;
  });
  return known.every((extent) => extent !== undefined) ? known : undefined;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.map((name) => `'${name}'`).join(', ');
}
