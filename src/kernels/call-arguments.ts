/**
 * The arguments of a call, by name. Values are checked at the call; what operations give is checked
 * when the operation runs.
 */
import { CudaArgumentError, CudaDisposedError, DTYPES, DeviceBuffer, u8 } from '../core/index.js';
import type { CoreDevice, DTypeName } from '../core/index.js';
import { invalid, valueNamed } from '../ground/arguments.js';
import type { SignatureEntry } from '../compiler/signature.js';
import type { StructLayout } from '../ground/struct-layout.js';
import { DeviceOp } from '../ops/index.js';
import { Partitioned, Tensor } from '../tensor/index.js';
import { span } from '../tensor/layouts.js';
import type { AnyTensor } from '../tensor/index.js';
import { shareElements } from '../tensor/shared-elements.js';
import type { PassedTensor, PassedValue } from './loaded-kernel.js';
import { unknownName } from '../ground/names.js';
import { describeEntry } from './parameters.js';
import type { Parameter } from './parameters.js';
import { checkScalar, checkStruct, isScalar, isStruct } from '../core/struct-declaration.js';
import { ALIGNMENT } from './variant.js';
import type { IndexType } from './variant.js';

/** From so many elements on, an i32 does not count them. */
const MOST_ELEMENTS = 2 ** 31;

/**
 * Gives the arguments in the order of the parameters.
 *
 * @throws CudaArgumentError for a name that is missing or unknown
 */
export function argumentsInOrder(
  kernel: string,
  parameters: readonly Parameter[],
  args: unknown,
): unknown[] {
  return (
    (typeof args === 'object' && args !== null
      ? asWritten(parameters, args as Record<string, unknown>)
      : undefined) ?? byName(kernel, parameters, args)
  );
}

/**
 * The values of arguments that were written in the order of the parameters, as most are; else
 * undefined.
 */
function asWritten(
  parameters: readonly Parameter[],
  args: Readonly<Record<string, unknown>>,
): unknown[] | undefined {
  const values: unknown[] = [];
  for (const name in args) {
    const value = args[name];
    if (
      value === undefined ||
      values.length === parameters.length ||
      parameters[values.length]!.name !== name
    )
      return undefined;
    values.push(value);
  }
  return values.length === parameters.length &&
    !(args instanceof Tensor || args instanceof DeviceOp || Array.isArray(args))
    ? values
    : undefined;
}

function byName(kernel: string, parameters: readonly Parameter[], args: unknown): unknown[] {
  const names = parameters.map(({ name }) => name);
  if (
    typeof args !== 'object' ||
    args === null ||
    args instanceof Tensor ||
    args instanceof DeviceOp ||
    Array.isArray(args)
  ) {
    throw invalid(
      'args',
      `the arguments of kernel '${kernel}' by name`,
      args,
      `Write ${kernel}({ ${names.join(', ')} }).`,
    );
  }
  for (const name of Object.keys(args))
    if (!names.includes(name))
      throw unknownName(`args.${name}`, `kernel '${kernel}' has no parameter`, name, names);
  return parameters.map(({ name, entry }) => {
    const value = valueNamed(args, name);
    if (value === undefined) {
      throw new CudaArgumentError(
        `args.${name}`,
        `args.${name} of kernel '${kernel}': expected ${expected(entry)}, got ` +
          `${Object.hasOwn(args, name) ? 'undefined' : 'nothing'}. It is ${kernel}({ ` +
          `${names.join(', ')} }).`,
      );
    }
    return value;
  });
}

function expected(entry: SignatureEntry): string {
  if (entry.kind === 'scalar')
    return entry.storage === 'bool' ? 'true or false' : `a number (${entry.storage})`;
  if (entry.kind === 'struct') return `an object for ${describeEntry(entry)}`;
  if ('struct' in entry.element)
    return `a Tensor of ${entry.element.struct.bytes}-byte structures for ${describeEntry(entry)}`;
  return `a Tensor of ${entry.element.storage} for ${describeEntry(entry)}`;
}

/**
 * Checks a value for a parameter, and gives it as it is passed.
 *
 * @throws CudaArgumentError, CudaDisposedError
 */
export function passed(kernel: string, { name, entry }: Parameter, value: unknown): PassedValue {
  // Right values come first, without names that only errors need: this runs at each launch.
  if (entry.kind === 'scalar' && isScalar(entry.storage, value)) return value as number;
  if (entry.kind === 'struct' && isStruct(entry.struct.fields, value))
    return value as Record<string, number>;
  const argument = `args.${name} of kernel '${kernel}'`;
  if (entry.kind === 'scalar') {
    checkScalar(argument, entry.storage, value);
    return value as number;
  }
  if (entry.kind === 'struct') {
    checkStruct(argument, entry.struct.fields, value);
    return value as Record<string, number>;
  }
  const tensor = value instanceof Partitioned ? partitioned(value as Partitioned) : value;
  if (!(tensor instanceof Tensor))
    throw invalid(argument, expected(entry), value, fixFor(value, entry.element));
  if (tensor.isClosed)
    throw new CudaDisposedError(
      `${argument}: ${tensor.toString()} was used after it was closed. Make another; where ` +
        `\`using\` closed it, await the kernel in that block.`,
    );
  tensor.checkAlive();
  if (entry.access !== 'input' && !(value instanceof Partitioned))
    tensor.checkWritable(`${argument} is written`);
  return 'struct' in entry.element
    ? passedStructs(argument, entry.element.struct, tensor as AnyTensor)
    : passedTensor(argument, entry.element.storage, entry.rank, tensor as AnyTensor);
}

function partitioned(value: Partitioned): AnyTensor {
  value.check();
  return value.tensor;
}

function fixFor(value: unknown, element: object): string {
  const dtype = 'storage' in element ? (element.storage as string) : 'u8';
  if (ArrayBuffer.isView(value) || Array.isArray(value))
    return `Copy it to the device first: device.tensor(${dtype}, array).`;
  if (value instanceof DeviceBuffer) return 'Write Tensor.of(buffer, [length]).';
  if (typeof (value as { then?: unknown } | null)?.then === 'function')
    return 'Await the promise first, or pass the operation itself.';
  return '';
}

function passedTensor(
  argument: string,
  dtype: DTypeName,
  rank: number,
  tensor: AnyTensor,
): PassedTensor {
  if (tensor.dtype.name !== dtype) {
    throw invalid(
      argument,
      `a Tensor of ${dtype}`,
      tensor,
      `Convert it with convert(${dtype}), or declare the parameter as ${tensor.dtype.name}.`,
    );
  }
  const { shape, strides, size } = tensor;
  if (rank === 1)
    return {
      tensor,
      buffer: contiguous(argument, tensor),
      length: size,
      shape: [size],
      strides: [1],
    };
  if (shape.length !== rank)
    throw invalid(
      argument,
      `a Tensor of ${rank} axes`,
      tensor,
      `Give it ${rank} axes with reshape([…])` +
        `${rank > shape.length ? ' or unsqueeze(axis)' : ''}.`,
    );
  // The buffer begins at the first element; negative strides may lead back to before it.
  const buffer =
    size === 0 ? null : tensor.buffer.slice(tensor.layout.offset, tensor.buffer.length);
  return { tensor, buffer, length: size, shape, strides };
}

function contiguous(argument: string, tensor: AnyTensor): DeviceBuffer | null {
  if (!tensor.isContiguous) {
    throw invalid(
      argument,
      'a contiguous Tensor',
      tensor,
      'Make it contiguous() first, or declare the parameter with its axes: ' +
        `input(${tensor.dtype.name}, ${Math.max(2, tensor.rank)}).`,
    );
  }
  return tensor.size === 0 ? null : tensor.dense();
}

function passedStructs(
  argument: string,
  { fields, bytes, align }: StructLayout,
  tensor: AnyTensor,
): PassedTensor {
  const dtypes = new Set<DTypeName>(fields.map(({ storage }) => storage));
  if (tensor.dtype !== u8 && !(dtypes.size === 1 && dtypes.has(tensor.dtype.name))) {
    throw invalid(
      argument,
      `a Tensor of u8${dtypes.size === 1 ? ` or ${[...dtypes].join('')}` : ''}, whose bytes ` +
        'are the structures',
      tensor,
      'See its bytes with reinterpret(u8).',
    );
  }
  const buffer = contiguous(argument, tensor);
  if (tensor.byteLength % bytes !== 0)
    throw invalid(
      argument,
      `a Tensor whose bytes are a multiple of ${bytes}, those of one structure`,
      tensor,
    );
  if (buffer !== null && buffer.byteOffset % align !== 0)
    throw invalid(
      argument,
      `a Tensor that begins at a multiple of ${align} bytes`,
      tensor,
      'Copy it with dup() first.',
    );
  const length = tensor.byteLength / bytes;
  return {
    tensor,
    buffer: buffer?.reinterpret(DTYPES.u8) ?? null,
    length,
    shape: [length],
    strides: [1],
  };
}

/**
 * Whether a value that was passed is still valid. Tensors and numbers do not change, but a tensor
 * can be closed and a structure's fields assigned.
 */
export function isStillValid(value: PassedValue | undefined): boolean {
  return typeof value === 'object'
    ? isTensor(value) && !value.tensor.isClosed
    : value !== undefined;
}

export function isTensor(value: PassedValue | undefined): value is PassedTensor {
  return typeof value === 'object' && 'tensor' in value && value.tensor instanceof Tensor;
}

/**
 * Checks that all tensors are on one device, and that none that is written overlaps another
 * argument. Values that are not known yet are left out.
 *
 * @throws CudaArgumentError
 */
export function checkTogether(
  kernel: string,
  parameters: readonly Parameter[],
  values: readonly (PassedValue | undefined)[],
  device: CoreDevice,
): void {
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!isTensor(value)) continue;
    const { name, entry } = parameters[i]!;
    const { tensor } = value;
    if (tensor.device.runtime !== device.runtime) {
      throw invalid(
        `args.${name} of kernel '${kernel}'`,
        `a Tensor on ${device.kind}:${device.ordinal}, where the kernel runs`,
        tensor,
        'Copy it with to(device) first.',
      );
    }
    if (entry.kind !== 'tensor' || entry.access === 'input') continue;
    for (let j = 0; j < values.length; j++) {
      const other = values[j];
      if (j === i || !isTensor(other) || !shareElements(tensor, other.tensor)) continue;
      throw new CudaArgumentError(
        `args.${name}`,
        `args.${name} of kernel '${kernel}' is written and overlaps ` +
          `args.${parameters[j]!.name}: ${tensor.toString()} and ${other.tensor.toString()}. ` +
          'Pass tensors that share no elements; copy one with dup() where they have to.',
      );
    }
  }
}

/** i32 where it counts the elements of every tensor and reaches each of them, else i64. */
export function indexTypeFor(values: readonly PassedValue[]): IndexType {
  for (const value of values) {
    if (!isTensor(value)) continue;
    const { layout, size } = value.tensor;
    if (size === 0) continue;
    const { start, end } = span(layout);
    if (Math.max(size, end - layout.offset, layout.offset - start) >= MOST_ELEMENTS) return 'i64';
  }
  return 'i32';
}

/**
 * Whether every tensor begins at a multiple of the widest access. Memory of other owners begins
 * anywhere.
 */
export function alignedTensors(values: readonly PassedValue[]): boolean {
  return values.every(
    (value) =>
      !isTensor(value) ||
      value.buffer === null ||
      (value.buffer.byteOffset % ALIGNMENT === 0 && value.tensor.buffer.memory.aligned),
  );
}

/** The first tensor's device. */
export function deviceAmong(args: readonly unknown[]): CoreDevice | undefined {
  for (const arg of args) {
    if (arg instanceof Tensor) return arg.device;
    if (arg instanceof Partitioned) return arg.tensor.device;
  }
  return undefined;
}
