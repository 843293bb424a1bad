/**
 * What one row of the table of dtypes says (`dtypes.ts`), and the function that makes a row.
 *
 * Every field has to be written, with `null` where a format has no name for the dtype: a new row
 * does not compile before each of them is decided.
 */

/** A typed array that elements are held in. */
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

/** How a float that JavaScript has no array for is made of a number. */
export interface NarrowFormat {
  /**
   * NaN as the host writes it, which keeps its sign: IEEE's quiet NaN without a payload, as
   * ml_dtypes and PyTorch write it.
   */
  readonly hostNaN: number;
  /** NaN as kernels write it, without a sign: PTX's canonical one. */
  readonly kernelNaN: number;
  /**
   * Whether kernels write what is beyond the largest number, infinity too, as that number: the
   * conversions of PTX to this format exist with `.satfinite` only. The host never saturates.
   */
  readonly saturates: boolean;
}

/** The types that kernels compute in. */
export type ComputeType = 'bool' | 'i32' | 'u32' | 'i64' | 'u64' | 'f32' | 'f64';

/** What the table says of a dtype. */
export interface DTypeFacts {
  /** Bytes of one element. */
  readonly bytes: 1 | 2 | 4 | 8 | 16;
  /** What the bits of an element are read as. */
  readonly kind: 'unsigned' | 'signed' | 'float' | 'bool' | 'complex';
  /**
   * The array that holds elements on the host; of a complex dtype real and imaginary parts in turn,
   * two values for each element.
   */
  readonly hostArray: ArrayConstructor;
  /** The array of the raw words; of a complex dtype two for each element. */
  readonly bitArray: ArrayConstructor;
  /** The format of a float. */
  readonly float: FloatFormat | null;
  /** Of a float that JavaScript has no array for. */
  readonly narrow: NarrowFormat | null;
  /** The dtype of the real and of the imaginary part. */
  readonly part: 'f32' | 'f64' | null;
  /** The type that kernels read an element as and compute in; null where they cannot yet. */
  readonly compute: ComputeType | null;
  /** Names in PTX. */
  readonly ptx: {
    /** The fundamental type that means the dtype. */
    readonly type: string | null;
    /** The type that the compiler declares a scalar parameter with; `ld.param` takes `load`. */
    readonly parameter: string;
    readonly load: string;
  } | null;
  /** Names of the type in CUDA C++. */
  readonly cuda: {
    /** Spellings that are made of keywords. */
    readonly keywords: readonly string[];
    /** Names that headers or the compiler declare. */
    readonly headers: readonly string[];
    /** Vectors of 2, 3 or 4 elements; the last digit says of how many. */
    readonly vectors: readonly string[];
  };
  /** NumPy's kind and bytes; a dtype that NumPy lacks is written as words without a type, `V1`. */
  readonly npy: {
    readonly type: string;
    /** Other types that mean the dtype in files, such as those of ml_dtypes. */
    readonly others: readonly string[];
  };
  /** `DLDataTypeCode`, and bits. */
  readonly dlpack: readonly [code: number, bits: number];
  /** The name in the header of a safetensors file. */
  readonly safetensors: string | null;
  /** `ONNXTensorElementDataType`. */
  readonly onnx: number;
  /** TensorRT's `DataType`. */
  readonly tensorrt: number | null;
  /** `CUarray_format`: what the driver calls texels of the dtype. */
  readonly texel: number | null;
}

/** Where a dtype keeps its row: neither shown, nor cloned, nor compared with it. */
export const FACTS = Symbol('facts');

/** A dtype as the table has it. */
export interface DTypeRow<D extends string, F extends DTypeFacts> {
  /** The dtype's name, as it is exported. */
  readonly name: D;
  /** Bytes of one element. */
  readonly bytes: F['bytes'];
  /** What the bits of an element are read as. */
  readonly kind: F['kind'];
  /** Whether the host array holds the words as they are in memory. */
  readonly direct: boolean;
  /** The rest of the row. */
  readonly [FACTS]: F;
  readonly [PLACE]: number;
}

/** Where a dtype keeps its place in the table. */
export const PLACE = Symbol('place');

let rowsMade = 0;

/** Makes a row. */
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
