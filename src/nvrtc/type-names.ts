/**
 * Names of CUDA C++'s types of elements, from the rows of the dtypes: as types for the type
 * checker, and as tables.
 */
import { DTYPE_FACTS, DTYPE_NAMES } from '../ground/dtype.js';
import type { DTypeName, FactsOf } from '../ground/dtype.js';

type CudaNames<
  D extends DTypeName,
  K extends 'keywords' | 'headers' | 'vectors',
> = FactsOf<D>['cuda'][K][number];

/** The dtype of each name of a kind. */
type NamesOf<K extends 'keywords' | 'headers' | 'vectors'> = {
  [D in DTypeName as CudaNames<D, K>]: D;
};

/** Types made of keywords, in every spelling: no declaration can change their meaning. */
export interface KeywordTypes extends NamesOf<'keywords'> {
  // It is signed on every platform of CUDA; in general the compiler's build decides.
  char: 'char';
}

/**
 * Types that headers or the compiler declare. A text may declare one of these names itself; it then
 * has the text's meaning.
 */
export interface LibraryTypes extends NamesOf<'headers'> {}

type LengthOf<Name> = Name extends `${string}2` ? 2 : Name extends `${string}3` ? 3 : 4;

/** Vectors: the elements' dtype, and their number. */
export type VectorTypes = {
  [Name in keyof NamesOf<'vectors'>]: [NamesOf<'vectors'>[Name], LengthOf<Name>];
};

function byName<K extends 'keywords' | 'headers' | 'vectors', T>(
  kind: K,
  value: (name: string, dtype: DTypeName) => T,
): Record<string, T> {
  return Object.fromEntries(
    DTYPE_NAMES.flatMap((dtype) =>
      (DTYPE_FACTS[dtype].cuda[kind] as readonly string[]).map((name) => [
        name,
        value(name, dtype),
      ]),
    ),
  );
}

/** {@link KeywordTypes} as a table. */
export const KEYWORD_TYPES = {
  ...byName('keywords', (_, dtype) => dtype),
  char: 'char',
} as unknown as { readonly [K in keyof KeywordTypes]: KeywordTypes[K] };

/** {@link LibraryTypes} as a table. */
export const LIBRARY_TYPES = byName('headers', (_, dtype) => dtype) as unknown as {
  readonly [K in keyof LibraryTypes]: LibraryTypes[K];
};

/** {@link VectorTypes} as a table. */
export const VECTOR_TYPES = byName('vectors', (name, dtype) => [
  dtype,
  Number(name.at(-1)),
]) as unknown as { readonly [K in keyof VectorTypes]: VectorTypes[K] };
