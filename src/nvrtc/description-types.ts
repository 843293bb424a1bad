/**
 * What the type checker reads of a text of CUDA C++, before it is said in terms of arguments: each kernel's name with the
 * descriptions of its parameters, as parameter-types.ts has them.
 */
import type { End, Entry, Notes, OutlineOf } from './outline-types.js';
import type { Macro, ParametersOf } from './parameter-types.js';

/** Kernels of a source that is not understood, or may have more than are seen. */
export interface AnyKernels { readonly [name: string]: undefined }

/** Whether a type is one text, rather than any or a pattern: of a pattern's properties none has to be there. */
type IsText<S extends string> = [S] extends [never] ? false : Record<never, never> extends Record<S, 1> ? false : true;

/** Each kernel with the descriptions of its parameters; undefined where nothing is known of them. */
export type DescriptionsOf<Source extends string> = IsText<Source> extends true ? Described<OutlineOf<Source>> : AnyKernels;

type Described<M> =
  M extends Notes
    ? KernelsIn<M, never, ''> extends infer K
      ? M extends `${string}${Entry}!open${string}` ? Listed<K, M> & AnyKernels : true extends IsRenamed<K, M> ? Listed<K, M> & AnyKernels : Listed<K, M>
      : never
    : AnyKernels;

/** The kernels that are noted, as `[name, list]`. A type can call itself 1000 times: of more, those behind are any. */
type KernelsIn<M extends Notes, K, Steps extends string> =
  M extends `${string}${Entry}(${infer E}${End}${infer R}`
    ? Steps extends MostKernels ? K | string : KernelsIn<R, K | KernelIn<E>, `${Steps}.`>
    : K;

type MostKernels = `${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}${Ninety}`;
type Ninety = '..........................................................................................';

/** Whether a kernel's name is a macro, so that it has another. */
type IsRenamed<K, M extends Notes> = K extends readonly [infer N extends string, unknown] ? (M extends Macro<N> ? true : never) : true;

type KernelIn<E extends string> = E extends `${infer Name}(${infer List}` ? [Name, List] : [E, undefined];

type Listed<K, M extends Notes> = {
  readonly [E in K as E extends readonly [infer N extends string, unknown] ? (M extends Macro<N> ? never : N) : never]: E extends readonly [string, infer L] ? (L extends string ? ParametersOf<L, M> : undefined) : never;
};
