/**
 * What the type checker reads of a text of CUDA C++, before it is said in terms of arguments: each kernel's name with the
 * descriptions of its parameters, as parameter-types.ts has them.
 */
import type { KernelEntry, Memory, OutlineOf, Unread } from './outline-types.js';
import type { Context, ParametersOf } from './parameter-types.js';

/** Kernels of a source that is not understood, or may have more than are seen. */
export interface AnyKernels { readonly [name: string]: undefined }

/** Whether a type is one text, rather than any or a pattern: of a pattern's properties none has to be there. */
type IsText<S extends string> = [S] extends [never] ? false : {} extends Record<S, 1> ? false : true;

/** Each kernel with the descriptions of its parameters; undefined where nothing is known of them. */
export type DescriptionsOf<Source extends string> = IsText<Source> extends true ? Described<OutlineOf<Source>> : AnyKernels;

type Described<O> =
  O extends Unread ? AnyKernels
    : O extends Memory<infer K, infer T, infer D, infer F>
      ? 'open' extends F ? Listed<K, { types: T; doubtful: D; flags: F }> & AnyKernels
        : true extends HasRenamed<K, F> ? Listed<K, { types: T; doubtful: D; flags: F }> & AnyKernels : Listed<K, { types: T; doubtful: D; flags: F }>
      : never;

/** A kernel whose name is a macro has another one. */
type HasRenamed<K, F> = K extends KernelEntry ? ([K[0]] extends [F] ? true : never) : never;

type Listed<K, C extends Context> = {
  readonly [E in K as E extends KernelEntry ? ([E[0]] extends [C['flags']] ? never : E[0]) : never]: E extends [string, infer L] ? (L extends string ? ParametersOf<L, C> : undefined) : never;
};
