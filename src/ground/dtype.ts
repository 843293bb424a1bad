/**
 * The element types of buffers and kernel parameters: the types and tables that follow from the
 * rows in `dtypes.ts`.
 */
import { FACTS, PLACE } from './dtype-row.js';
import type { ArrayConstructor, ComputeType, DTypeFacts, DTypeRow } from './dtype-row.js';
import * as rows from './dtypes.js';

export * from './dtypes.js';

type Rows = typeof rows;

/** Names of the dtypes. */
export type DTypeName = keyof Rows;

/** The row of a dtype as a type. */
export type FactsOf<D extends DTypeName> = Rows[D][typeof FACTS];

/** Names of the dtypes whose field `K` has a value of type `V`. */
type NamesWhere<K extends keyof DTypeFacts, V> = {
  [D in DTypeName]: FactsOf<D>[K] extends V ? D : never;
}[DTypeName];

/** Names of the complex dtypes: an element is a pair of floats. */
export type ComplexName = NamesWhere<'kind', 'complex'>;
/** Names of the dtypes that kernels in TypeScript and the library's operations compute with. */
export type KernelDTypeName = NamesWhere<'compute', ComputeType>;
/** Names of the floats that kernels compute with. */
export type FloatName = Extract<KernelDTypeName, NamesWhere<'kind', 'float'>>;
/** Names of the integers that kernels compute with. */
export type IntegerName = Extract<KernelDTypeName, NamesWhere<'kind', 'signed' | 'unsigned'>>;
/** Names of the dtypes that are a fundamental type of PTX. */
export type PtxName = NamesWhere<'ptx', { readonly type: string }>;
/** Names of the floats that JavaScript has no array for. */
export type NarrowName = Exclude<DTypeName, NamesWhere<'narrow', null>>;

// Types are looked up by name, which costs the type checker one step instead of four for each use.
type HostArrays = { [D in DTypeName]: FactsOf<D>['hostArray']['prototype'] };
type BitArrays = { [D in DTypeName]: FactsOf<D>['bitArray']['prototype'] };

/** The JavaScript array that holds elements of a dtype on the host. */
export type HostArray<D extends DTypeName> = HostArrays[D];
/** The JavaScript array that holds the raw words of a dtype. */
export type BitArray<D extends DTypeName> = BitArrays[D];
/** Bytes of one element, as a literal type. */
export type BytesOf<D extends DTypeName> = FactsOf<D>['bytes'];
/** Names of the integers whose elements are bigints on the host. */
export type WideName = NamesWhere<'hostArray', { readonly prototype: BigIntArray }>;
type BigIntArray = BigInt64Array | BigUint64Array;
/** One element of a complex dtype. */
export type Complex = readonly [real: number, imaginary: number];
/** One element on the host. An element of a complex dtype is the pair of its parts. */
export type Scalar<D extends DTypeName> = D extends WideName
  ? bigint
  : D extends ComplexName
    ? Complex
    : number;
/** The dtype of the parts of a complex dtype. */
export type PartOf<D extends DTypeName> = NonNullable<FactsOf<D>['part']>;

/** An element type. */
export interface DType<D extends DTypeName = DTypeName> {
  /** The dtype's name, as it is exported. */
  readonly name: D;
  /** Bytes of one element. */
  readonly bytes: number;
  /** How the bits of an element are interpreted. */
  readonly kind: DTypeFacts['kind'];
  /** Whether the host array holds the words as they are in memory, without conversion. */
  readonly direct: boolean;
}

/** A dtype that kernels compute with. */
export type KernelDType = DType<KernelDTypeName>;

/**
 * The rows in the order in which they are written. The exports of a module are in alphabetical
 * order.
 */
const ROWS = Object.values(rows as Readonly<Record<string, DTypeRow<string, DTypeFacts>>>).sort(
  (a, b) => a[PLACE] - b[PLACE],
);

/** A table with an entry for each dtype. */
type OfEach<T> = Readonly<Record<DTypeName, T>>;

/** Every dtype by its name. */
export const DTYPES: { readonly [D in DTypeName]: DType<D> } = ofEach((row) => row) as never;

/** The names of the dtypes in the table's order. */
export const DTYPE_NAMES = Object.keys(DTYPES) as readonly DTypeName[];

/** The row of each dtype. */
export const DTYPE_FACTS: { readonly [D in DTypeName]: FactsOf<D> } = ofEach(
  (row) => row[FACTS],
) as never;

/** Constructor of the host array of each dtype. */
export const HOST_ARRAYS: {
  readonly [D in DTypeName]: ArrayConstructor<HostArray<D>>;
} = ofEach((row) => row[FACTS].hostArray) as never;

/** Constructor of the array of raw words of each dtype. */
export const BIT_ARRAYS: {
  readonly [D in DTypeName]: ArrayConstructor<BitArray<D>>;
} = ofEach((row) => row[FACTS].bitArray) as never;

/** The least and the greatest integer of a dtype, 0 and 1 for bool, undefined for other kinds. */
export const INTEGER_LIMITS: OfEach<readonly [bigint, bigint] | undefined> = ofEach(
  ({ bytes, kind }) => {
    const bits = BigInt(bytes * 8);
    if (kind === 'unsigned') return [0n, (1n << bits) - 1n] as const;
    if (kind === 'signed') return [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] as const;
    return kind === 'bool' ? ([0n, 1n] as const) : undefined;
  },
);

/** {@link INTEGER_LIMITS} as numbers, for dtypes whose elements are numbers on the host. */
export const NUMBER_LIMITS: OfEach<readonly [number, number] | undefined> = ofEach(
  ({ name, bytes }) => {
    const limits = bytes < 8 ? INTEGER_LIMITS[name as DTypeName] : undefined;
    return limits === undefined ? undefined : ([Number(limits[0]), Number(limits[1])] as const);
  },
);

/** The range and the precision of a float. */
export interface FloatLimits {
  /** The greatest finite number. */
  readonly max: number;
  /** The least number above 0 that is not subnormal. */
  readonly smallestNormal: number;
  /** The least number above 0. */
  readonly smallest: number;
  /** The difference of 1 and the next number. */
  readonly epsilon: number;
  /** The bits of infinity, or of the greatest number where the format has no infinity. */
  readonly topBits: bigint;
}

/** The limits of each float; undefined for other kinds. */
export const FLOAT_LIMITS: OfEach<FloatLimits | undefined> = ofEach((row) => {
  const { float } = row[FACTS];
  if (float === null) return undefined;
  const { exponentBits, fractionBits, infinity } = float;
  const bias = 2 ** (exponentBits - 1) - 1;
  const ones = (1n << BigInt(exponentBits)) - 1n;
  // Without infinity the highest exponent holds numbers, too. The last of them is NaN.
  const lost = infinity ? 1 : 2;
  return {
    max: (2 - lost * 2 ** -fractionBits) * 2 ** (infinity ? bias : bias + 1),
    smallestNormal: 2 ** (1 - bias),
    smallest: 2 ** (1 - bias - fractionBits),
    epsilon: 2 ** -fractionBits,
    topBits: infinity
      ? ones << BigInt(fractionBits)
      : (1n << BigInt(exponentBits + fractionBits)) - 2n,
  };
});

function ofEach<T>(value: (row: DTypeRow<string, DTypeFacts>) => T): OfEach<T> {
  return Object.freeze(Object.fromEntries(ROWS.map((row) => [row.name, value(row)]))) as OfEach<T>;
}

/** Whether kernels compute with the dtype. */
export function isKernelDType(name: DTypeName): name is KernelDTypeName {
  return DTYPE_FACTS[name].compute !== null;
}

/** How many values of the host array, or words of the array of bits, one element takes. */
export function partsOf({ kind }: DType): 1 | 2 {
  return kind === 'complex' ? 2 : 1;
}

/** Whether an element is a bigint on the host. */
export function isWide(name: DTypeName): name is WideName {
  return HOST_ARRAYS[name]?.name.startsWith('Big') === true;
}

/** The advice of an operation that does not take complex numbers yet. */
export function insteadOfComplex({ name }: DType): string {
  const { part } = DTYPE_FACTS[name];
  return part === null ? '' : `View its parts: x.real() and x.imag() are tensors of ${part}.`;
}

/** The names of the dtypes that satisfy the condition. */
export function namesWhere(holds: (facts: DTypeFacts) => boolean): DTypeName[] {
  return DTYPE_NAMES.filter((name) => holds(DTYPE_FACTS[name]));
}

/** Any typed array or DataView. */
export type HostView = ArrayBufferView<ArrayBufferLike>;
