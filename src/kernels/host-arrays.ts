/**
 * Host arrays, which simulations take where calls take tensors: their layout, and whether two share
 * elements.
 */
import { CudaArgumentError } from '../core/index.js';
import { invalid, show, valueNamed } from '../ground/arguments.js';
import { isArrayBuffer, isSharedArrayBuffer } from '../ground/other-realms.js';
import { coalesce, contiguous, overlaps } from '../tensor/layouts.js';
import type { Layout } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import type { Parameter } from './parameters.js';
import type { SimulatedTensor } from './simulation.js';

type HostMemory = ArrayBufferView | ArrayBuffer | SharedArrayBuffer;

const isMemory = (value: unknown): value is HostMemory =>
  ArrayBuffer.isView(value) || isArrayBuffer(value) || isSharedArrayBuffer(value);

const hasShape = (value: unknown): value is SimulatedTensor =>
  typeof value === 'object' && value !== null && 'data' in value && 'shape' in value;

const dataOf = (value: unknown): unknown => (hasShape(value) ? value.data : value);

/** Bytes of one element of an array: what the kernel reads as f16 may be a Float32Array. */
function elementBytes(data: HostMemory, { entry }: Parameter): number {
  if (entry.kind === 'tensor' && 'struct' in entry.element) return entry.element.struct.bytes;
  return (data as Partial<Uint8Array>).BYTES_PER_ELEMENT ?? 1;
}

/**
 * Gives the layout of an array, in elements. An array without a shape has one axis.
 *
 * @throws CudaArgumentError for a value that is no array, or whose layout is incomplete
 */
export function hostLayout(kernel: string, parameter: Parameter, value: unknown): Layout {
  const argument = `args.${parameter.name} of kernel '${kernel}'`;
  if (isMemory(value))
    return contiguous([Math.floor(value.byteLength / elementBytes(value, parameter))]);
  if (!hasShape(value)) throw invalid(argument, 'a typed array, or { data, shape }', value);
  const {
    shape,
    strides,
    offset = 0,
  }: { readonly shape: unknown; readonly strides?: unknown; readonly offset?: unknown } = value;
  const isWhole = (each: unknown): boolean => Number.isInteger(each);
  if (
    !Array.isArray(shape) ||
    ![...(shape as number[])].every((extent) => isWhole(extent) && extent >= 0)
  )
    throw invalid(
      `${argument}: shape`,
      'a list of whole numbers from 0, the length of each axis',
      shape,
    );
  if (!isWhole(offset) || (offset as number) < 0)
    throw invalid(
      `${argument}: offset`,
      'a whole number from 0, of the element that the tensor begins at',
      offset,
    );
  const dense = contiguous(shape as number[], offset as number);
  if (strides === undefined) return dense;
  if (
    !Array.isArray(strides) ||
    strides.length !== shape.length ||
    ![...(strides as unknown[])].every(isWhole)
  )
    throw invalid(`${argument}: strides`, 'a whole number for each axis, in elements', strides);
  return { ...dense, strides: strides as number[] };
}

/** The bytes of an argument. A value that is no memory is rejected where the kernel is given it. */
function bytesOf(
  kernel: string,
  parameter: Parameter,
  value: unknown,
): { readonly memory: ArrayBufferLike; readonly layout: Layout } | undefined {
  const data = dataOf(value);
  if (!isMemory(data)) return undefined;
  const { shape, strides, offset } = hostLayout(kernel, parameter, value);
  const bytes = elementBytes(data, parameter);
  const [memory, first] = ArrayBuffer.isView(data)
    ? ([data.buffer, data.byteOffset] as const)
    : ([data, 0] as const);
  return {
    memory,
    layout: coalesce(
      layoutOf(
        [...shape, bytes],
        [...strides.map((stride) => stride * bytes), 1],
        first + offset * bytes,
      ),
    ),
  };
}

/**
 * Checks that no array that is written shares elements with another, as a call does for tensors.
 *
 * @throws CudaArgumentError
 */
export function checkArraysTogether(
  kernel: string,
  parameters: readonly Parameter[],
  args: Readonly<Record<string, unknown>>,
): void {
  const places = parameters.map((parameter) =>
    parameter.entry.kind === 'tensor'
      ? bytesOf(kernel, parameter, valueNamed(args, parameter.name))
      : undefined,
  );
  for (const [at, { name, entry }] of parameters.entries()) {
    const own = places[at];
    if (own === undefined || entry.kind !== 'tensor' || entry.access === 'input') continue;
    const other = parameters.find(
      (_, index) =>
        index !== at &&
        places[index]?.memory === own.memory &&
        overlaps(own.layout, places[index].layout),
    );
    if (other === undefined) continue;
    throw new CudaArgumentError(
      `args.${name}`,
      `args.${name} of kernel '${kernel}' is written and overlaps args.${other.name}: ` +
        `${show(dataOf(args[name]))} and ${show(dataOf(args[other.name]))}. Pass arrays that ` +
        'share no elements; copy one with slice() where they have to.',
    );
  }
}
