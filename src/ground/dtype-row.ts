/**
 * The fields of one row of the table of dtypes (`dtypes.ts`), and the function that makes a row.
 *
 * Every field has to be written, with `null` where a format has no name for the dtype. A new row
 * does not compile until each field is decided.
 */

/** The constructor of a typed array that holds elements. */
export interface ArrayConstructor<A = unknown> {
  new (length: number): A;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): A;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
  readonly prototype: A;
}

/** A binary floating-point format: a sign, an exponent with the usual bias, a fraction. */
export interface FloatFormat {
  readonly exponentBits: number;
  readonly fractionBits: number;
  /** Whether the highest exponent holds infinity and NaN; otherwise only all ones is NaN. */
  readonly infinity: boolean;
}

/** How a float that JavaScript has no array for is written. */
export interface NarrowFormat {
  /**
   * The NaN that the host writes, which keeps its sign: IEEE's quiet NaN without a payload, as
   * ml_dtypes and PyTorch write it.
   */
  readonly hostNaN: number;
  /** The NaN that kernels write, without a sign: PTX's canonical NaN. */
  readonly kernelNaN: number;
  /**
   * Whether kernels write a value beyond the largest number, infinity too, as the largest number:
   * PTX has conversions to this format with `.satfinite` only. The host never saturates.
   */
  readonly saturates: boolean;
}

/** The types that kernels compute in. */
export type ComputeType = 'bool' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64';

/** The facts of a dtype: one row of the table. */
export interface DTypeFacts {
  /** Bytes of one element. */
  readonly bytes: 1 | 2 | 4 | 8 | 16;
  /** How the bits of an element are interpreted. */
  readonly kind: 'unsigned' | 'signed' | 'float' | 'bool' | 'complex';
  /**
   * The array that holds elements on the host. For a complex dtype it holds real and imaginary
   * parts in turn, two values for each element.
   */
  readonly hostArray: ArrayConstructor;
  /** The array of the raw words. A complex dtype takes two words for each element. */
  readonly bitArray: ArrayConstructor;
  /** The format of a float; null for other kinds. */
  readonly float: FloatFormat | null;
  /**
   * The written NaNs and overflow of a float that JavaScript has no array for; null for the others.
   */
  readonly narrow: NarrowFormat | null;
  /** The dtype of the real and the imaginary part of a complex dtype. */
  readonly part: 'f32' | 'f64' | null;
  /**
   * The other dtypes of its kind all of whose values the dtype has: an operation on both gives this
   * one. Integers are of one kind, and so are floats with complex numbers.
   */
  readonly holds: readonly string[];
  /**
   * The type that kernels read an element as and compute in; null where kernels do not support the
   * dtype yet.
   */
  readonly compute: ComputeType | null;
  /** Names in PTX. */
  readonly ptx: {
    /** The fundamental type of the dtype. */
    readonly type: string | null;
    /** The type of a scalar parameter that the compiler declares; `ld.param` uses `load`. */
    readonly parameter: string;
    readonly load: string;
  } | null;
  /** Names of the type in CUDA C++. */
  readonly cuda: {
    /** Spellings made of keywords. */
    readonly keywords: readonly string[];
    /** Names that headers or the compiler declare. */
    readonly headers: readonly string[];
    /** Vectors of 2, 3 or 4 elements; the last digit is the number of elements. */
    readonly vectors: readonly string[];
  };
  /** NumPy's kind and bytes. A dtype that NumPy lacks is written as untyped words, such as `V1`. */
  readonly npy: {
    readonly type: string;
    /** Other type names of the dtype in files, such as those of ml_dtypes. */
    readonly others: readonly string[];
  };
  /** `DLDataTypeCode`, and bits. */
  readonly dlpack: readonly [code: number, bits: number];
  /** The name in the header of a safetensors file. */
  readonly safetensors: string | null;
  /** `ONNXTensorElementDataType`. */
  readonly onnx: number | null;
  /** TensorRT's `DataType`. */
  readonly tensorrt: number | null;
  /** `CUarray_format`: the driver's number for texels of the dtype. */
  readonly texel: number | null;
}

/**
 * The key of a dtype's row. The property is not enumerable, so the row is not shown, cloned or
 * compared with the dtype.
 */
export const FACTS = Symbol('facts');

/** A dtype as the table holds it. */
export interface DTypeRow<D extends string, F extends DTypeFacts> {
  /** The dtype's name, as it is exported. */
  readonly name: D;
  /** Bytes of one element. */
  readonly bytes: F['bytes'];
  /** How the bits of an element are interpreted. */
  readonly kind: F['kind'];
  /** Whether the host array holds the words as they are in memory, without conversion. */
  readonly direct: boolean;
  /** The other fields of the row. */
  readonly [FACTS]: F;
  readonly [PLACE]: number;
}

/** The key of a dtype's place in the table. */
export const PLACE = Symbol('place');

let rowsMade = 0;

/** Makes a row of the table. */
export function row<D extends string, const F extends DTypeFacts>(
  name: D,
  facts: F,
): DTypeRow<D, F> {
  const { bytes, kind } = facts;
  const dtype = { name, bytes, kind, direct: facts.narrow === null };
  return Object.freeze(
    Object.defineProperties(dtype, { [FACTS]: { value: facts }, [PLACE]: { value: rowsMade++ } }),
  ) as unknown as DTypeRow<D, F>;
}
