// The second phase of an outline: directives.
import type { Blank } from './blank-types.js';
import type {
  Else,
  Endif,
  Entry,
  Full,
  If,
  Longest,
  Notes,
  Paused,
  Sign,
  Unread,
} from './outline-notes.js';
import type { Level } from './outline-types.js';
import type { KeywordTypes, LibraryTypes } from './type-names.js';

/** Headers that declare no kernels and no macros that hide one. */
type KnownHeader =
  | 'cuda_fp16.h'
  | 'cuda_bf16.h'
  | 'cuda_fp8.h'
  | 'cuda_runtime.h'
  | 'cuda.h'
  | 'cuda_runtime_api.h'
  | 'device_launch_parameters.h'
  | 'vector_types.h'
  | 'cooperative_groups.h'
  | 'cooperative_groups/reduce.h'
  | 'cooperative_groups/memcpy_async.h'
  | 'cuda_pipeline.h'
  | 'mma.h'
  | 'math_constants.h'
  | 'curand_kernel.h'
  | 'cuda/std/cstdint'
  | 'cuda/std/cstddef'
  | 'cuda/barrier'
  | 'cuda/pipeline'
  | 'cuda/atomic'
  | 'cstdint'
  | 'cstddef'
  | 'stdint.h'
  | 'stddef.h'
  | 'stdio.h'
  | 'cstdio'
  | 'math.h'
  | 'cmath'
  | 'assert.h'
  | 'cassert'
  | 'float.h'
  | 'cfloat'
  | 'limits.h'
  | 'climits'
  | 'type_traits';

/** What a directive is: a mark, a macro's name, a flag, or nothing. */
type DirectiveOf<L extends string> = L extends `${' ' | '\t'}${infer R}`
  ? DirectiveOf<R>
  : L extends `if${string}`
    ? If
    : L extends `el${string}`
      ? Else
      : L extends `endif${string}`
        ? Endif
        : L extends `define${' ' | '\t'}${infer D}`
          ? MacroOf<D>
          : L extends `include${infer H}`
            ? H extends `${string}<${infer Name}>${string}`
              ? Name extends KnownHeader
                ? ''
                : { note: `${Entry}!open` }
              : { note: `${Entry}!open` }
            : L extends `pragma${infer P}`
              ? P extends `${string}pack${string}`
                ? PackingOf<NoBlanks<P, '', ''>>
                : ''
              : // What follows #error need not be C.
                '';

/** What `#pragma pack` does to the packing; nothing where it is another pragma. */
type PackingOf<P extends string> = P extends `pack${infer Arguments}`
  ? {
      packing: Arguments extends `()${string}`
        ? 'default'
        : Arguments extends `(push)${string}`
          ? 'push'
          : Arguments extends `(pop)${string}`
            ? 'pop'
            : Arguments extends `(push,${string}`
              ? 'push packed'
              : Arguments extends `(pop,${string}`
                ? 'lose'
                : Arguments extends `(show)${string}`
                  ? 'show'
                  : Arguments extends `(${string}`
                    ? 'packed'
                    : 'lose';
    }
  : '';

/**
 * A text without blanks; of one that is longer than pragmas are, nothing but what is not
 * understood.
 */
type NoBlanks<S extends string, Out extends string, Steps extends string> = Steps extends Full
  ? 'pack'
  : S extends `${infer C}${infer R}`
    ? NoBlanks<R, C extends Blank ? Out : `${Out}${C}`, `${Steps}.`>
    : Out;

/**
 * Whether structures are packed where the text is read, `p` or `u`, in front of what it was when it
 * was pushed; {@link Lost}.
 */
export type Packing = string;
/** Whether they are is not known from there on. */
export type Lost = 'L';

type Repacked<K extends Packing, What> = K extends `${infer Top}${infer Below}`
  ? Top extends Lost
    ? Lost
    : What extends 'default'
      ? `u${Below}`
      : What extends 'packed'
        ? `p${Below}`
        : What extends 'push'
          ? `${Top}${K}`
          : What extends 'push packed'
            ? `p${K}`
            : What extends 'pop'
              ? Below extends ''
                ? K
                : Below
              : What extends 'show'
                ? K
                : Lost
  : Lost;

/** Whether a conditional directive is open at the end of a text. */
type EndsInConditional<
  S extends string,
  Open extends string,
  Steps extends string,
> = Steps extends Full
  ? true
  : S extends `${string}${Sign}${infer Kind}${infer R}`
    ? EndsInConditional<
        R,
        Kind extends 'i'
          ? `${Open}.`
          : Kind extends 'n'
            ? Open extends `.${infer O}`
              ? O
              : ''
            : Open,
        `${Steps}.`
      >
    : Open extends ''
      ? false
      : true;

/** The text with a mark in each structure, which leaves it unread. */
type WithoutStructures<
  A extends string,
  Out extends string,
  Steps extends string,
> = Steps extends Full
  ? Unread
  : A extends `${infer B}struct${infer H}{${infer R}`
    ? WithoutStructures<R, `${Out}${B}struct${H}{@;`, `${Steps}.`>
    : `${Out}${A}`;

/** A piece of the text between directives, as it is read where structures are packed or are not. */
type Piece<A extends string, K extends Packing> = K extends `${'p' | Lost}${string}`
  ? WithoutStructures<A, '', ''>
  : A;

type MacroOf<D extends string> = D extends `${' ' | '\t'}${infer R}`
  ? MacroOf<R>
  : MacroName<D> extends infer Name
    ? Name extends keyof KeywordTypes | keyof LibraryTypes | Grammar
      ? Unread
      : D extends `${string}{${string}` | `${string}}${string}`
        ? Level<D, '', ''> extends ''
          ? Macro<Name, D>
          : Unread
        : Macro<Name, D>
    : never;

type MacroName<D extends string> = D extends `${infer N}(${string}`
  ? N extends `${infer M} ${string}`
    ? MacroName<M>
    : N
  : D extends `${infer N} ${string}`
    ? MacroName<N>
    : D extends `${infer N}\t${string}`
      ? MacroName<N>
      : D;

type Macro<Name, D extends string> = Name extends string
  ? {
      note: D extends `${string}__global__${string}` | `${string}extern${string}`
        ? `${Entry}#${Name} ${Entry}!open`
        : `${Entry}#${Name} `;
    }
  : never;

/** Words whose meaning this file relies on. */
type Grammar =
  | 'extern'
  | 'struct'
  | 'union'
  | 'class'
  | 'enum'
  | 'typedef'
  | 'using'
  | 'namespace'
  | 'template'
  | 'const'
  | 'volatile'
  | 'void'
  | 'long'
  | 'signed'
  | '__global__'
  | '__restrict__'
  | '__restrict'
  | '__launch_bounds__'
  | '__grid_constant__'
  | 'inline'
  | 'static'
  | 'std'
  | 'public'
  | 'private';

export type Directives<
  S extends string,
  Out extends string,
  M extends Notes,
  K extends Packing,
  Steps extends string,
> = Steps extends Full
  ? Paused<'directives', S, Out, [M, K]>
  : S extends `${infer A}#${infer L}\n${infer R}`
    ? Piece<A, K> extends infer P extends string
      ? DirectiveOf<L> extends infer What
        ? What extends string
          ? Directives<R, `${Out}${P}${What}`, M, K, `${Steps}.`>
          : What extends { note: infer N extends string }
            ? Directives<R, `${Out}${P}`, `${M}${N}`, K, `${Steps}.`>
            : // With a mark that leaves a structure around it unread.
              What extends { packing: infer N }
              ? Directives<
                  R,
                  `${Out}${P};@;`,
                  M,
                  EndsInConditional<`${Out}${P}`, '', ''> extends true ? Lost : Repacked<K, N>,
                  `${Steps}.`
                >
              : Unread
        : never
      : Unread
    : Piece<S, K> extends infer P extends string
      ? { readonly text: `${Out}${P}`; readonly notes: M }
      : Unread;

export type RunDirectives<P, Pauses extends string> =
  P extends Paused<
    'directives',
    infer S extends string,
    infer Out extends string,
    [infer M extends string, infer K extends string]
  >
    ? Pauses extends Longest
      ? Unread
      : RunDirectives<Directives<S, Out, M, K, ''>, `${Pauses}.`>
    : P;
