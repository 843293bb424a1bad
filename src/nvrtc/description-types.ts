/**
 * What the type checker reads of a text of CUDA C++, before it becomes types of arguments: each
 * kernel's name with the descriptions of its parameters, in the form of parameter-types.ts.
 */
import type { End, Entry, Notes } from './outline-notes.js';
import type { OutlineOf } from './outline-types.js';
import type { Macro, ParametersOf } from './parameter-types.js';

/** The kernels of a source that is not understood, or may have more than are read. */
export interface AnyKernels {
  readonly [name: string]: undefined;
}

/**
 * Whether a type is one text, rather than any or a pattern: none of a pattern's properties has to
 * exist.
 */
type IsText<S extends string> = [S] extends [never]
  ? false
  : Record<never, never> extends Record<S, 1>
    ? false
    : true;

/** Each kernel with the descriptions of its parameters; undefined where these are not known. */
export type DescriptionsOf<Source extends string> =
  IsText<Source> extends true ? Described<OutlineOf<Source>> : AnyKernels;

type Described<M> = M extends Notes
  ? KernelsIn<M, never, ''> extends infer K
    ? // The names are looked up among the macros only where there are macros.
      M extends `${string}${Entry}#${string}`
      ? Unhidden<K, M> extends infer U
        ? [K] extends [U]
          ? Whole<K, M>
          : Listed<U, M> & AnyKernels
        : never
      : Whole<K, M>
    : never
  : AnyKernels;

type Whole<K, M extends Notes> = M extends `${string}${Entry}!open${string}`
  ? Listed<K, M> & AnyKernels
  : More extends K
    ? Listed<K, M> & AnyKernels
    : Listed<K, M>;

/** The entry for kernels after the last one that is read. */
interface More {
  readonly more: true;
}

/**
 * The kernels in the notes, as `name(list`, or `name` alone. A type can call itself 1000 times:
 * later kernels are any.
 */
type KernelsIn<
  M extends Notes,
  K,
  Steps extends string,
> = M extends `${string}${Entry}(${infer E}${End}${infer R}`
  ? Steps extends MostKernels
    ? K | More
    : KernelsIn<R, K | E, `${Steps}.`>
  : K;

type MostKernels =
  `${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}`;
type Ninety =
  '..........................................................................................';

type NameOf<E> = E extends `${infer N}(${string}` ? N : E;

/** The kernels without those whose name is a macro, so that they have another name. */
type Unhidden<K, M extends Notes> = K extends string ? (M extends Macro<NameOf<K>> ? never : K) : K;

type Listed<K, M extends Notes> = {
  readonly [E in K as E extends string ? NameOf<E> : never]: E extends `${string}(${infer L}`
    ? ParametersOf<L, M>
    : undefined;
};
