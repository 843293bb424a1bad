/** Attributes of operations: parts that are known when the bytecode is written. */
import type { Bytes } from './bytes.js';
import type { ConstantTable, StringTable } from './tables.js';
import type { TypeId } from './types.js';

/** Where attributes are written to. */
export interface AttributeTarget {
  readonly bytes: Bytes;
  readonly strings: StringTable;
  readonly constants: ConstantTable;
}

/** How one attribute of an operation is written. */
export interface Attribute<T> {
  write(value: T, to: AttributeTarget): void;
}

/** One of several words, by its place in the list. */
export const choice = <const W extends readonly string[]>(words: W): Attribute<W[number]> => ({
  write: (value, { bytes }) => {
    bytes.byte(words.indexOf(value));
  },
});

export const rounding = choice([
  'nearestEven',
  'zero',
  'negativeInfinity',
  'positiveInfinity',
  'approximate',
  'full',
  'nearestIntToZero',
  'nearestAway',
]);
export const overflow = choice(['none', 'noSignedWrap', 'noUnsignedWrap', 'noWrap']);
export const signedness = choice(['unsigned', 'signed']);
export const predicate = choice([
  'equal',
  'notEqual',
  'lessThan',
  'lessThanOrEqual',
  'greaterThan',
  'greaterThanOrEqual',
]);
/** Whether a comparison with a NaN is true. */
export const ordering = choice(['unordered', 'ordered']);
export const memoryOrdering = choice(['weak', 'relaxed', 'acquire', 'release', 'acquireRelease']);

export const whole: Attribute<number> = {
  write: (value, { bytes }) => {
    bytes.varint(value);
  },
};

/** Elements of a constant, as bytes: one for all of the tile, or one for each. */
export const elements: Attribute<Uint8Array> = {
  write: (value, { bytes, constants }) => {
    bytes.varint(constants.numberOfElements(value));
  },
};

export const axes: Attribute<readonly number[]> = {
  write: (value, { bytes }) => {
    bytes.integers(value, 4);
  },
};

/** A fact about a value, which the assembler relies on. */
export type Assumption =
  | { readonly is: 'divisible'; readonly by: number }
  | { readonly is: 'bounded'; readonly from: number };

const TAGS = { integer: 0x01, float: 0x02, divisible: 0x08, bounded: 0x0c } as const;
/** The flag of a lower bound. */
const LOWER = 1;

export const assumption: Attribute<Assumption> = {
  write: (value, { bytes }) => {
    if (value.is === 'divisible') {
      bytes.byte(TAGS.divisible);
      bytes.varint(value.by);
      bytes.byte(0);
    } else {
      bytes.byte(TAGS.bounded);
      bytes.byte(LOWER);
      bytes.signedVarint(value.from);
    }
  },
};

/** A number of some type, as its bits. */
export interface TypedNumber {
  readonly type: TypeId;
  readonly is: 'integer' | 'float';
  readonly bits: bigint;
  /** Bits of the type. */
  readonly width: number;
}

/** The neutral elements of a reduction. */
export const neutrals: Attribute<readonly TypedNumber[]> = {
  write: (values, { bytes }) => {
    bytes.varint(values.length);
    for (const { type, is, bits, width } of values) {
      bytes.byte(TAGS[is]);
      bytes.varint(type);
      // The bits of a float count as a number with a sign, up to one byte as they are.
      if (is === 'integer') bytes.varint(BigInt.asUintN(width, bits));
      else if (width <= 8) bytes.byte(Number(bits));
      else bytes.signedVarint(bits);
    }
  },
};
