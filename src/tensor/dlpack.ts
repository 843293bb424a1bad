/**
 * DLPack's description of a tensor in memory, by which libraries exchange tensors without a copy.
 * Node cannot pass the C structure itself, so that this is its contents: an addon or koffi on the
 * other side writes a `DLTensor` from it, or reads one into it, field by field.
 *
 * The numbers are those of `dlpack.h`, version 1.1. The memory stays its owner's: a descriptor
 * refers to `owner`, and so does a tensor that is made of it, so that the owner is not collected
 * while either is in use. Both sides have to agree on ordering: the producer's work is done, or
 * there is an event that the consumer waits for.
 */
import { checkDType, checkInteger, invalid } from '../ground/arguments.js';
import { DTYPES, DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { layoutOf, span } from './layout.js';
import type { Layout } from './layout.js';
import { checkShape, contiguousStrides, numel, showShape } from './shape.js';

/**
 * `DLDeviceType`, for the memory that this library can use. The CPU device's memory has addresses
 * that are valid for this library only: it is `kDLExtDev`, DLPack's number for devices that are not
 * in its list.
 */
export const DLDeviceType = {
  kDLCPU: 1,
  kDLCUDA: 2,
  kDLCUDAHost: 3,
  kDLExtDev: 12,
  kDLCUDAManaged: 13,
} as const;
export type DLDeviceType = (typeof DLDeviceType)[keyof typeof DLDeviceType];

/** `DLDataTypeCode`, for the dtypes that this library has. */
export const DLDataTypeCode = {
  kDLInt: 0,
  kDLUInt: 1,
  kDLFloat: 2,
  kDLBfloat: 4,
  kDLComplex: 5,
  kDLBool: 6,
  kDLFloat8_e4m3fn: 10,
  kDLFloat8_e5m2: 12,
} as const;
export type DLDataTypeCode = (typeof DLDataTypeCode)[keyof typeof DLDataTypeCode];

/** `DLTensor`, and what keeps its memory alive. */
export interface DLTensor {
  /** Where the memory is. */
  readonly device: { readonly type: number; readonly id: number };
  /**
   * Address of the memory. DLPack requires it to be aligned to 256 bytes, and the rest in
   * `byteOffset`; frameworks do not require that.
   */
  readonly data: bigint;
  readonly dtype: { readonly code: number; readonly bits: number; readonly lanes: number };
  readonly shape: readonly number[];
  /** Strides in elements; `null` where the tensor is contiguous. */
  readonly strides: readonly number[] | null;
  /** Bytes from `data` to the first element. */
  readonly byteOffset: number;
  /** Whether the memory must not be written. */
  readonly readOnly?: boolean;
  /**
   * An object that keeps the memory alive. It must not be collected while the descriptor is in use.
   */
  readonly owner?: unknown;
  /**
   * The deleter of a `DLManagedTensor`: the consumer calls it once, when it no longer needs the
   * memory. Without one the memory is borrowed for as long as `owner` is alive.
   */
  readonly deleter?: () => void;
}

/** A tensor in memory that may belong to another library. */
export interface ForeignTensor<D extends DTypeName = DTypeName> {
  readonly dtype: DType<D>;
  /** Where the elements lie, counted from `address`. */
  readonly layout: Layout;
  /** Address of the memory, aligned to the dtype. */
  readonly address: bigint;
  readonly device: { readonly type: DLDeviceType; readonly id: number };
  readonly readOnly?: boolean;
  readonly owner?: unknown;
  readonly deleter?: () => void;
}

const DTYPE_OF: ReadonlyMap<string, DTypeName> = new Map(
  DTYPE_NAMES.map((name) => [DTYPE_FACTS[name].dlpack.join(), name]),
);

const DEVICES: ReadonlySet<unknown> = new Set(Object.values(DLDeviceType));
const LAST_ADDRESS = 2n ** 64n - 1n;

/**
 * Describes a tensor for DLPack. `strides` are always given, as DLPack 1.2 requires.
 *
 * @throws CudaArgumentError, which names the field, for an object that is no tensor, or an address
 *   that is not aligned to the dtype
 *
 * @example
 * ```ts
 * const descriptor = toDLPack({
 *   dtype: f32,
 *   layout: layouts.contiguous([2, 3]),
 *   address: 0x7f0000000000n,
 *   device: { type: DLDeviceType.kDLCUDA, id: 0 },
 * });
 * console.log(descriptor.dtype, descriptor.strides); // { code: 2, bits: 32, lanes: 1 } [ 3, 1 ]
 * ```
 */
export function toDLPack(tensor: ForeignTensor): DLTensor {
  if (typeof tensor !== 'object' || (tensor as unknown) === null)
    throw invalid('tensor', 'an object with dtype, layout, address and device', tensor);
  const { dtype, layout, address, device, readOnly, owner, deleter } = tensor;
  checkDType(dtype, 'tensor.dtype');
  if (typeof layout !== 'object' || !(Array.isArray as (value: unknown) => boolean)(layout.shape))
    throw invalid('tensor.layout', 'a layout', layout);
  // An empty tensor may have any address, null too.
  if (numel(layout.shape) > 0 || typeof address !== 'bigint')
    checkPlace('tensor.address', address, dtype);
  checkDevice('tensor.device', device);
  checkExtent('tensor.layout', address, layout, dtype);
  const [code, bits] = DTYPE_FACTS[dtype.name].dlpack;
  return {
    device: { type: device.type, id: device.id },
    data: address,
    dtype: { code, bits, lanes: 1 },
    shape: [...layout.shape],
    strides: [...layout.strides],
    byteOffset: layout.offset * dtype.bytes,
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(owner === undefined ? {} : { owner }),
    ...(deleter === undefined ? {} : { deleter }),
  };
}

/**
 * Gives the tensor that a descriptor describes. Its owner is the descriptor's, or the descriptor
 * itself where that names none. The layout's offset is `byteOffset` in elements; bytes that are no
 * whole element are added to the address.
 *
 * @throws CudaArgumentError, which names the field, for memory that this library cannot use, a
 *   dtype that it does not have, vectors (`lanes` other than 1), strides that reach before the
 *   memory, and an address that is not aligned
 *
 * @example
 * ```ts
 * const { dtype, layout, address } = fromDLPack({
 *   device: { type: DLDeviceType.kDLCUDA, id: 0 },
 *   data: 0x7f0000000000n,
 *   dtype: { code: DLDataTypeCode.kDLFloat, bits: 32, lanes: 1 },
 *   shape: [2, 3],
 *   strides: null,
 *   byteOffset: 16,
 * });
 * console.log(dtype.name, layout.strides, address); // f32 [ 3, 1 ] 139637976727552n
 * ```
 */
export function fromDLPack(descriptor: DLTensor): ForeignTensor {
  if (typeof descriptor !== 'object' || (descriptor as unknown) === null)
    throw invalid('descriptor', 'an object with the fields of a DLTensor', descriptor);
  const {
    device,
    data,
    dtype: type,
    shape,
    strides,
    byteOffset,
    readOnly,
    owner,
    deleter,
  } = descriptor;
  checkDevice('descriptor.device', device);
  if (typeof type !== 'object' || (type as unknown) === null)
    throw invalid('descriptor.dtype', 'an object with code, bits and lanes', type);
  if (type.lanes !== 1)
    throw invalid('descriptor.dtype.lanes', '1', type.lanes, 'Describe vectors by one more axis.');
  const name = DTYPE_OF.get(`${type.code},${type.bits}`);
  if (name === undefined)
    throw invalid(
      'descriptor.dtype',
      `code and bits of one of ${Object.keys(DTYPES).join(', ')}`,
      type,
    );
  const dtype = DTYPES[name];
  checkShape('descriptor.shape', shape);
  if (strides !== null && (strides as unknown) !== undefined) {
    if (!(Array.isArray as (value: unknown) => boolean)(strides) || strides.length !== shape.length)
      throw invalid('descriptor.strides', `null, or ${shape.length} strides`, strides);
    strides.forEach((stride, axis) => {
      if (!Number.isSafeInteger(stride))
        throw invalid(`descriptor.strides[${axis}]`, 'a whole number (elements)', stride);
    });
  }
  checkInteger('descriptor.byteOffset', byteOffset, 0, Number.MAX_SAFE_INTEGER, 'bytes');
  if (typeof data !== 'bigint' || data < 0n || data > LAST_ADDRESS)
    throw invalid('descriptor.data', 'an address, as a bigint', data);
  if (readOnly !== undefined && typeof readOnly !== 'boolean')
    throw invalid('descriptor.readOnly', 'true or false', readOnly);

  if (deleter !== undefined && typeof deleter !== 'function')
    throw invalid('descriptor.deleter', 'a function', deleter);

  const rest = byteOffset % dtype.bytes;
  const address = data + BigInt(rest);
  // Frameworks give any address for an empty tensor, null too.
  if (numel(shape) > 0)
    checkPlace(
      'descriptor.data',
      address,
      dtype,
      rest === 0 ? '' : ` with byteOffset ${byteOffset}`,
    );
  const layout = layoutOf(
    [...shape],
    strides === null || (strides as unknown) === undefined
      ? contiguousStrides(shape)
      : [...strides],
    (byteOffset - rest) / dtype.bytes,
  );
  checkExtent('descriptor.strides', address, layout, dtype);
  return {
    dtype,
    layout,
    address,
    device: { type: device.type as DLDeviceType, id: device.id },
    ...(readOnly === undefined ? {} : { readOnly }),
    owner: owner ?? descriptor,
    ...(deleter === undefined ? {} : { deleter }),
  };
}

function checkPlace(argument: string, address: unknown, dtype: DType, more = ''): void {
  if (typeof address !== 'bigint' || address < 0n || address > LAST_ADDRESS)
    throw invalid(argument, 'an address, as a bigint', address);
  if (address === 0n) throw invalid(argument, 'an address other than null', address);
  if (address % BigInt(dtype.bytes) !== 0n)
    throw invalid(
      argument,
      `an address${more} that is a multiple of the ${dtype.bytes} bytes of ${dtype.name}`,
      address,
    );
}

function checkDevice(argument: string, device: unknown): void {
  if (typeof device !== 'object' || device === null)
    throw invalid(argument, 'an object with type and id', device);
  const { type, id } = device as Partial<DLTensor['device']>;
  const known = Object.entries(DLDeviceType)
    .map(([name, number]) => `${number} (${name})`)
    .join(', ');
  if (!DEVICES.has(type)) throw invalid(`${argument}.type`, `one of ${known}`, type);
  checkInteger(`${argument}.id`, id, 0, 2 ** 31 - 1);
}

/** Checks that every element lies at or above `address`, and below 2^64. */
function checkExtent(argument: string, address: bigint, layout: Layout, dtype: DType): void {
  if (layout.shape.includes(0)) return;
  const { start, end } = span(layout);
  if (start < 0)
    throw invalid(
      argument,
      `strides with which no element of ${showShape(layout.shape)} lies before the memory`,
      layout.strides,
    );
  if (
    !Number.isSafeInteger(end * dtype.bytes) ||
    address + BigInt(end * dtype.bytes) - 1n > LAST_ADDRESS
  ) {
    throw invalid(
      argument,
      `strides with which every element of ${showShape(layout.shape)} has an address`,
      layout.strides,
    );
  }
}
