/** A tensor in the host's memory, as files have it: raw words, and a layout of the elements. */
import { checkDType, invalid } from '../ground/arguments.js';
import { BIT_ARRAYS, partsOf } from '../ground/dtype.js';
import type { BitArray, DType, DTypeName } from '../ground/dtype.js';
import { isArrayBuffer, isBytes } from '../ground/other-realms.js';
import { coalesce } from './coalescing.js';
import { elements, isContiguous, layoutOf, span } from './layout.js';
import type { Layout } from './layout.js';
import { numel, showShape } from './shape.js';

/** A tensor in the host's memory. */
export interface TensorData<D extends DTypeName = DTypeName> {
  /** Type of its elements. */
  readonly dtype: DType<D>;
  /** Where the elements lie in `bytes`, counted in elements. */
  readonly layout: Layout;
  /** The elements' words, little-endian, as in device memory. */
  readonly bytes: Uint8Array;
}

/**
 * Gives the raw words, as `writeBits` takes them: a view of `bytes`, or of a copy where these are
 * not aligned to the dtype. They are all words of `bytes`, of which the layout may have fewer; see
 * {@link packed}. A complex element is two words.
 *
 * @example
 * ```ts
 * const bytes = new Uint8Array(Uint16Array.of(0x3c00, 0x4000).buffer);
 * const words = wordsOf({ dtype: f16, layout: layouts.contiguous([2]), bytes });
 * console.log(words.join(' ')); // 15360 16384
 * ```
 */
export function wordsOf<D extends DTypeName>({ dtype, bytes }: TensorData<D>): BitArray<D> {
  const source = aligned(bytes, dtype.bytes);
  return new BIT_ARRAYS[dtype.name](
    source.buffer,
    source.byteOffset,
    Math.floor(source.length / dtype.bytes) * partsOf(dtype),
  );
}

/** Gives the bytes, or a copy where their offset in the buffer is no multiple of `unit`. */
export function aligned(bytes: Uint8Array, unit: number): Uint8Array {
  return bytes.byteOffset % unit === 0 ? bytes : new Uint8Array(bytes);
}

/**
 * Gives the elements in row-major order without gaps: a part of `bytes` where the layout is
 * contiguous, else a copy.
 *
 * @example
 * ```ts
 * const columns = {
 *   dtype: u8,
 *   layout: layouts.transpose(layouts.contiguous([2, 3])),
 *   bytes: Uint8Array.of(1, 2, 3, 4, 5, 6),
 * };
 * console.log(packed(columns).join(' ')); // 1 4 2 5 3 6
 * ```
 */
export function packed(tensor: TensorData): Uint8Array {
  const { dtype, layout, bytes } = tensor;
  if (isContiguous(layout)) {
    const start = layout.offset * dtype.bytes;
    return bytes.subarray(start, start + numel(layout.shape) * dtype.bytes);
  }
  const words = wordsOf(tensor) as Uint8Array;
  const parts = partsOf(dtype);
  const result = new BIT_ARRAYS[dtype.name](numel(layout.shape) * parts) as Uint8Array;
  const { shape, strides, offset } = coalesce(parts === 1 ? layout : inParts(layout, parts));
  const extent = shape.at(-1)!;
  const stride = strides.at(-1)!;
  let at = 0;
  for (const start of elements(layoutOf(shape.slice(0, -1), strides.slice(0, -1), offset))) {
    if (stride === 1) result.set(words.subarray(start, start + extent), at);
    else for (let i = 0; i < extent; i++) result[at + i] = words[start + i * stride]!;
    at += extent;
  }
  return new Uint8Array(result.buffer);
}

/** The layout in words, with one more axis for the words of an element. */
function inParts({ shape, strides, offset }: Layout, parts: number): Layout {
  return layoutOf(
    [...shape, parts],
    [...strides.map((stride) => stride * parts), 1],
    offset * parts,
  );
}

/** @throws CudaArgumentError for an object that is no tensor, or a layout beyond its bytes */
export function checkTensorData(argument: string, tensor: unknown): asserts tensor is TensorData {
  if (typeof tensor !== 'object' || tensor === null)
    throw invalid(argument, 'an object with dtype, layout and bytes', tensor);
  const { dtype, layout, bytes } = tensor as Partial<TensorData>;
  checkDType(dtype, `${argument}.dtype`);
  checkBytes(`${argument}.bytes`, bytes);
  if (typeof layout !== 'object' || !Array.isArray(layout.shape))
    throw invalid(`${argument}.layout`, 'a layout', layout, 'Write contiguous(shape).');
  const { start, end } = span(layout);
  if (start < 0 || end * dtype.bytes > bytes.length) {
    const what = `${showShape(layout.shape)} of ${dtype.name}`;
    const needed = `${end * dtype.bytes} bytes, which ${what} takes`;
    if (numel(layout.shape) > 0) throw invalid(`${argument}.bytes`, `at least ${needed}`, bytes);
  }
}

/** @throws CudaArgumentError for a value that is no Uint8Array */
export function checkBytes(argument: string, bytes: unknown): asserts bytes is Uint8Array {
  if (isBytes(bytes)) return;
  const fix = isArrayBuffer(bytes)
    ? 'Write new Uint8Array(buffer).'
    : ArrayBuffer.isView(bytes)
      ? 'Write new Uint8Array(array.buffer, array.byteOffset, array.byteLength).'
      : '';
  throw invalid(argument, 'a Uint8Array', bytes, fix);
}
