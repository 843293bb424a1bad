/**
 * `.npy`, NumPy's file of one array: versions 1, 2 and 3 of NEP 1.
 *
 * NumPy has no bf16 and f8. With ml_dtypes it writes bf16 and f8e4m3 as untyped words, `<V2` and
 * `<V1`, and so does {@link writeNpy}; a reader has to name the dtype, as
 * `np.load(file).view(ml_dtypes.bfloat16)` does in Python. ml_dtypes writes f8e5m2 as `<f1`, which
 * is read here, but not written, since NumPy alone does not load it. Files that name a type of
 * ml_dtypes are read, too.
 */
import { checkDType, checkOptions, invalid } from '../ground/arguments.js';
import { DTYPES, DTYPE_FACTS, DTYPE_NAMES, partsOf } from '../ground/dtype.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { CudaFormatError } from '../core/index.js';
import { contiguous, layoutOf } from './layout.js';
import { LiteralError, parseLiteral } from './python-literal.js';
import type { Literal } from './python-literal.js';
import { contiguousStrides, numel, showShape } from './shape.js';
import { aligned, checkBytes, checkTensorData, packed } from './tensor-data.js';
import type { TensorData } from './tensor-data.js';

/** The contents of a `.npy` file. */
export interface NpyTensor extends TensorData {
  /**
   * Bytes of the file up to the end of the array. Others may follow: `np.save` can write several
   * arrays into one file.
   */
  readonly end: number;
}

export interface ReadNpyOptions {
  /**
   * The dtype of untyped words (`V1`, `V2`): bf16 or one of the f8. A file of another dtype is an
   * error.
   */
  readonly dtype?: DType;
}

const MAGIC = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** Bytes of the header's length, and the header's encoding, by the file's major version. */
const VERSIONS: ReadonlyMap<number, { bytes: 2 | 4; encoding: 'latin1' | 'utf-8' }> = new Map([
  [1, { bytes: 2, encoding: 'latin1' }],
  [2, { bytes: 4, encoding: 'latin1' }],
  [3, { bytes: 4, encoding: 'utf-8' }],
]);

/**
 * Headers of plain arrays have some hundred bytes; a longer one describes structures, which tensors
 * do not have.
 */
const LONGEST_HEADER = 65536;

/** NumPy's own limit. */
const LARGEST_RANK = 64;

/** dtypes by NumPy's kind and bytes. */
const TYPED: ReadonlyMap<string, DTypeName> = new Map(
  DTYPE_NAMES.flatMap((name) => {
    const { type } = DTYPE_FACTS[name].npy;
    return type.startsWith('V') ? [] : [[type, name]];
  }),
);

/** dtypes by their names in ml_dtypes. */
const ML_DTYPES: ReadonlyMap<string, DTypeName> = new Map(
  DTYPE_NAMES.flatMap((name) => DTYPE_FACTS[name].npy.others.map((other) => [other, name])),
);

/** Untyped words. */
const UNTYPED: ReadonlySet<string> = new Set(
  DTYPE_NAMES.map((name): string => DTYPE_FACTS[name].npy.type)
    .filter((type) => type.startsWith('V'))
    .sort(),
);

/**
 * Reads the array of a `.npy` file. Its bytes are a view of the file's where these are aligned and
 * little-endian, else a copy. An array in Fortran order has a layout with its strides.
 *
 * @throws CudaFormatError for a file that is cut short or damaged, and for dtypes that tensors do
 *   not have (dates, strings, objects, structures); the message names what was found
 *
 * @example
 * ```ts
 * const file = writeNpy({
 *   dtype: u8,
 *   layout: layouts.contiguous([2, 3]),
 *   bytes: Uint8Array.of(1, 2, 3, 4, 5, 6),
 * });
 * const { dtype, layout, bytes } = readNpy(file);
 * console.log(dtype.name, layout.shape, bytes.join(' ')); // u8 [ 2, 3 ] 1 2 3 4 5 6
 * ```
 */
export function readNpy(file: Uint8Array, options: ReadNpyOptions = {}): NpyTensor {
  checkBytes('file', file);
  checkOptions('options', options, ['dtype']);
  if (options.dtype !== undefined) checkDType(options.dtype, 'options.dtype');
  const { header, begin } = readHeader(file);
  const { dtype, bigEndian } = readType(header.get('descr'), options.dtype);
  const shape = readShape(header.get('shape'));
  const fortran = header.get('fortran_order');
  if (typeof fortran !== 'boolean')
    throw new CudaFormatError('npy', `fortran_order is ${show(fortran)}, not True or False`);

  const end = begin + numel(shape) * dtype.bytes;
  if (end > file.length) {
    throw new CudaFormatError(
      'npy',
      `${showShape(shape)} of ${dtype.name} takes ${end - begin} bytes, and the file has ` +
        `${file.length - begin} after its header`,
      file.length,
    );
  }
  const data = file.subarray(begin, end);
  const bytes = bigEndian
    ? swapped(data, dtype.bytes / partsOf(dtype))
    : aligned(data, dtype.bytes);
  const layout = fortran
    ? layoutOf(shape, contiguousStrides([...shape].reverse()).reverse(), 0)
    : contiguous(shape);
  return { dtype, layout, bytes, end };
}

function readHeader(file: Uint8Array): { header: ReadonlyMap<string, Literal>; begin: number } {
  if (file.length < 8 || MAGIC.some((byte, i) => file[i] !== byte)) {
    throw new CudaFormatError(
      'npy',
      `the file begins with ${hex(file.subarray(0, 8))}, not with 93 4e 55 4d 50 59 ` +
        `("\\x93NUMPY") and a version`,
      0,
    );
  }
  const version = VERSIONS.get(file[6]!);
  if (version === undefined)
    throw new CudaFormatError(
      'npy',
      `version ${file[6]!}.${file[7]!}; versions 1, 2 and 3 are known`,
      6,
    );
  const at = 8 + version.bytes;
  if (file.length < at)
    throw new CudaFormatError(
      'npy',
      `the file ends after ${file.length} bytes, within the length of its header`,
      file.length,
    );
  const view = new DataView(file.buffer, file.byteOffset, file.length);
  const length = version.bytes === 2 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > LONGEST_HEADER)
    throw new CudaFormatError(
      'npy',
      `a header of ${length} bytes; those of plain arrays have fewer than ${LONGEST_HEADER}`,
      8,
    );
  const begin = at + length;
  if (begin > file.length)
    throw new CudaFormatError(
      'npy',
      `a header of ${length} bytes, and the file has ${file.length - at}`,
      file.length,
    );
  let header: Literal;
  try {
    // TextDecoder does not take shared memory.
    header = parseLiteral(
      new TextDecoder(version.encoding, { fatal: true }).decode(file.slice(at, begin)),
    );
  } catch (error) {
    if (error instanceof LiteralError)
      throw new CudaFormatError(
        'npy',
        `the header is no Python literal: ${error.message}`,
        at + error.position,
      );
    throw new CudaFormatError('npy', 'the header is not UTF-8', at, { cause: error });
  }
  if (!(header instanceof Map))
    throw new CudaFormatError('npy', `the header is ${show(header)}, not a dictionary`, at);
  const keys = [...(header as ReadonlyMap<string, Literal>).keys()].sort();
  if (keys.join() !== 'descr,fortran_order,shape') {
    throw new CudaFormatError(
      'npy',
      `the header has ${
        keys.length === 0
          ? 'nothing'
          : keys
              .slice(0, 8)
              .map((key) => show(key))
              .join(', ')
      }, not descr, fortran_order and shape`,
      at,
    );
  }
  return { header: header as ReadonlyMap<string, Literal>, begin };
}

function readType(
  descr: Literal | undefined,
  given: DType | undefined,
): { dtype: DType; bigEndian: boolean } {
  if (typeof descr !== 'string') {
    throw new CudaFormatError(
      'npy',
      Array.isArray(descr)
        ? 'the array has structures for elements (descr is a list)'
        : `descr is ${show(descr)}, not a string`,
    );
  }
  const [, order = '', type = descr] = /^([<>=|])(.*)$/.exec(descr) ?? [];
  const name = TYPED.get(type) ?? ML_DTYPES.get(type);
  if (name !== undefined && given !== undefined && given.name !== name) {
    throw new CudaFormatError(
      'npy',
      `the file holds ${name} (descr ${show(descr)}), and options.dtype is ${given.name}`,
    );
  }
  if (name !== undefined) return { dtype: DTYPES[name], bigEndian: order === '>' };
  if (UNTYPED.has(type)) {
    const bytes = Number(type.slice(1));
    const candidates = Object.values(DTYPES).filter(
      ({ name: each }) => DTYPE_FACTS[each].npy.type === type,
    );
    if (given === undefined) {
      throw new CudaFormatError(
        'npy',
        `the file holds words of ${bytes * 8} bits without a type (descr ${show(descr)}); ` +
          `name their dtype: readNpy(file, { dtype: ${candidates[0]!.name} })`,
      );
    }
    if (given.bytes !== bytes)
      throw new CudaFormatError(
        'npy',
        `the file holds words of ${bytes} bytes (descr ${show(descr)}), and options.dtype, ` +
          `${given.name}, has ${given.bytes}`,
      );
    return { dtype: given, bigEndian: order === '>' };
  }
  throw new CudaFormatError(
    'npy',
    `descr ${show(descr)} is no dtype of tensors; they are ` +
      `${[...TYPED.keys(), ...UNTYPED].join(', ')}`,
  );
}

function readShape(shape: Literal | undefined): number[] {
  if (!Array.isArray(shape))
    throw new CudaFormatError('npy', `shape is ${show(shape)}, not a tuple`);
  const extents = shape as readonly Literal[];
  if (extents.length > LARGEST_RANK)
    throw new CudaFormatError(
      'npy',
      `a shape of ${extents.length} axes; NumPy has no more than ${LARGEST_RANK}`,
    );
  let product = 1;
  const result = extents.map((extent) => {
    if (typeof extent !== 'number' || extent < 0)
      throw new CudaFormatError('npy', `the shape has an extent of ${show(extent)}`);
    product *= Math.max(extent, 1);
    // Plus 0, since a header may have -0.
    return extent + 0;
  });
  // The bytes are counted exactly for elements of up to sixteen bytes.
  if (product > Number.MAX_SAFE_INTEGER / 16)
    throw new CudaFormatError('npy', `a shape of too many elements: ${showShape(result)}`);
  return result;
}

function swapped(bytes: Uint8Array, unit: number): Uint8Array {
  const result = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i += unit)
    for (let j = 0; j < unit; j++) result[i + j] = bytes[i + unit - 1 - j]!;
  return result;
}

function show(value: Literal | undefined): string {
  if (typeof value === 'string')
    return value.length > 60 ? `'${value.slice(0, 57)}…'` : `'${value}'`;
  if (value === undefined) return 'missing';
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'number'
    ? String(value)
    : Array.isArray(value)
      ? 'a list'
      : 'a dictionary';
}

function hex(bytes: Uint8Array): string {
  return bytes.length === 0
    ? 'nothing'
    : Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}

/**
 * Writes a tensor as a `.npy` file: version 1, little-endian, with the data at a multiple of 64
 * bytes, as NumPy does. A tensor in Fortran order is written in that order; other elements are
 * written in row-major order.
 *
 * @throws CudaArgumentError for an object that is no tensor
 *
 * @example
 * ```ts
 * const file = writeNpy({
 *   dtype: f32,
 *   layout: layouts.contiguous([2]),
 *   bytes: new Uint8Array(Float32Array.of(1, 2).buffer),
 * });
 * console.log(file.length, Buffer.from(file.subarray(1, 6)).toString()); // 136 NUMPY
 * ```
 */
export function writeNpy(tensor: TensorData): Uint8Array {
  checkTensorData('tensor', tensor);
  const { dtype, layout } = tensor;
  const { shape, strides, offset } = layout;
  if (shape.length > LARGEST_RANK)
    throw invalid('tensor', `at most the ${LARGEST_RANK} axes that NumPy has`, shape);
  const reversed = layoutOf([...shape].reverse(), [...strides].reverse(), offset);
  const fortran = !sameOrder(shape, strides) && sameOrder(reversed.shape, reversed.strides);
  const data = packed(fortran ? { ...tensor, layout: reversed } : tensor);

  const order = dtype.bytes === 1 ? '|' : '<';
  const extents = shape.length === 1 ? `(${shape[0]!},)` : `(${shape.join(', ')})`;
  const text =
    `{'descr': '${order}${DTYPE_FACTS[dtype.name].npy.type}', 'fortran_order': ` +
    `${fortran ? 'True' : 'False'}, 'shape': ${extents}, }`;
  const begin = Math.ceil((10 + text.length + 1) / 64) * 64;
  const file = new Uint8Array(begin + data.length);
  file.set(MAGIC);
  file[6] = 1;
  new DataView(file.buffer).setUint16(8, begin - 10, true);
  file.set(new TextEncoder().encode(`${text.padEnd(begin - 11)}\n`), 10);
  file.set(data, begin);
  return file;
}

/** Whether the strides are those of a row-major array of the shape. */
function sameOrder(shape: readonly number[], strides: readonly number[]): boolean {
  const dense = contiguousStrides(shape);
  return (
    shape.includes(0) ||
    shape.every((extent, axis) => extent === 1 || strides[axis] === dense[axis])
  );
}
