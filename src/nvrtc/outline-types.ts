/**
 * The outline of CUDA C++, followed by the type checker: which kernels there are, with the texts of
 * their parameter lists, and which types the text declares. It goes in phases as a compiler does:
 * comments and literals, then directives, then from one declaration to the next, bodies being
 * passed over by their braces.
 *
 * Three facts of the type checker shape this file. Templates with `infer` search a text at native
 * speed, so that a step costs some ten instantiations however long the text is. A conditional type
 * may call itself 1000 times, so that each loop counts its steps and pauses for an outer loop. And
 * a statement may take 5 million instantiations, so that the outer loop ends, too, with
 * {@link Unread}.
 */
import type { KeywordTypes, LibraryTypes } from './type-names.js';

// What a text is read as
// -------------------------------------------------------------------------------------------

/** A source that is not understood: any name may be a kernel. */
export interface Unread {
  readonly unread: true;
}

/**
 * What is found is noted in one text, since a step that changes an object of types costs ten times
 * as much. Each entry begins with a character that no source has:
 *
 * | entry | |
 * |---|---|
 * | `(name(list` and {@link End} | a kernel; without the second bracket where its list is not understood |
 * | `name=type;` `name{body}` `name?` | a type: an alias, a structure, one that is not read |
 * | `#name ` | a macro |
 * | `!open` | there may be more kernels |
 * | `!doubt` | there may be other types of any name |
 *
 * In front of the first entry stands where the outline is, the innermost first: C in extern "C" {
 * }, N in a namespace, # in a conditional directive.
 */
export type Notes = string;
/** Begins an entry. */
export type Entry = '\u0004';
/** Ends a parameter list. */
export type End = '\u0005';

type Fifty = '..................................................';
/** Steps of a loop between two pauses. A step is up to five calls. */
type Full = `${Fifty}${Fifty}${Fifty}`;
/** Pauses of a phase, after which the source is left unread. */
type Longest = `${Fifty}${Fifty}${Fifty}${Fifty}${Fifty}`;

interface Paused<Kind extends string, Rest, Done, State = unknown> {
  readonly paused: Kind;
  readonly rest: Rest;
  readonly done: Done;
  readonly state: State;
}

// Marks of directives in the text: #if, #else or #elif, #endif. One character begins them all: a
// union of templates costs an instantiation for each of its members wherever it is looked at.
type Sign = '\u0001';
type If = `${Sign}i`;
type Else = `${Sign}e`;
type Endif = `${Sign}n`;
type WithMark = `${string}${Sign}${string}`;
type Reserved = WithMark | `${string}${Entry | End | Next}${string}`;

// Phase 0: lines that end with a backslash
// -------------------------------------------------------------------------

type Spliced<
  S extends string,
  Out extends string,
  Steps extends string,
> = Steps extends `${Full}${Full}${Full}`
  ? Unread
  : S extends `${infer A}\\\n${infer R}`
    ? Spliced<R, `${Out}${A}`, `${Steps}.`>
    : `${Out}${S}`;

// Phase 1: comments and literals
// -----------------------------------------------------------------------------------

type Quote = `${string}"${string}` | `${string}'${string}`;
type NotCode = `${string}"${string}` | `${string}'${string}` | `${string}/*${string}`;

/**
 * The text without comments, strings as `""` but for "C", characters as 0. Raw newlines in literals
 * are taken.
 */
type Bare<S extends string, Out extends string, Steps extends string> = Steps extends Full
  ? Paused<'bare', S, Out>
  : S extends `${infer A}//${string}\n${infer R}`
    ? A extends NotCode
      ? A extends `${string}/*${string}`
        ? BareBlock<S, Out, Steps>
        : BareLiteral<S, Out, Steps>
      : // Comments come in rows.
        R extends `${infer A2}//${string}\n${infer R2}`
        ? A2 extends NotCode
          ? Bare<R, `${Out}${A}\n`, `${Steps}.`>
          : Bare<R2, `${Out}${A}\n${A2}\n`, `${Steps}.`>
        : Bare<R, `${Out}${A}\n`, `${Steps}.`>
    : BareBlock<S, Out, Steps>;

/** As {@link Bare}, where what comes first is not a line comment, and may be the other kind. */
type BareBlock<
  S extends string,
  Out extends string,
  Steps extends string,
> = S extends `${infer A}/*${string}*/${infer R}`
  ? A extends Quote
    ? BareLiteral<S, Out, Steps>
    : Bare<R, `${Out}${A} `, `${Steps}.`>
  : BareLiteral<S, Out, Steps>;

type BareLiteral<
  S extends string,
  Out extends string,
  Steps extends string,
> = S extends `${infer A}"${infer C}"${infer R}`
  ? A extends `${string}/*${string}` | `${string}//${string}` | `${string}'${string}` | `${string}R`
    ? BareOther<S, Out, Steps>
    : C extends 'C'
      ? Bare<R, `${Out}${A}"C"`, `${Steps}.`>
      : C extends `${string}\\${string}`
        ? BareOther<S, Out, Steps>
        : Bare<R, `${Out}${A}""`, `${Steps}.`>
  : BareOther<S, Out, Steps>;

/** The same for strings that take more than a look, and for characters. */
type BareOther<
  S extends string,
  Out extends string,
  Steps extends string,
> = S extends `${infer A}"${infer R}`
  ? A extends `${string}/*${string}` | `${string}//${string}` | `${string}'${string}`
    ? BareCharacter<S, Out, Steps>
    : A extends `${string}R`
      ? BareRaw<R, `${Out}${A}""`, Steps>
      : BareString<R, `${Out}${A}""`, Steps>
  : BareCharacter<S, Out, Steps>;

type HexDigit =
  | '0'
  | '1'
  | '2'
  | '3'
  | '4'
  | '5'
  | '6'
  | '7'
  | '8'
  | '9'
  | 'a'
  | 'b'
  | 'c'
  | 'd'
  | 'e'
  | 'f'
  | 'A'
  | 'B'
  | 'C'
  | 'D'
  | 'E'
  | 'F';

type BareCharacter<
  S extends string,
  Out extends string,
  Steps extends string,
> = S extends `${infer A}'${infer R}`
  ? A extends `${string}//${string}` | `${string}/*${string}` | `${string}"${string}`
    ? Unread
    : A extends `${string}u8`
      ? AfterCharacter<R, `${Out}${A}`, Steps>
      : // A separator of digits: 1'000.
        [A, R] extends [`${string}${HexDigit}`, `${HexDigit}${string}`]
        ? Bare<R, `${Out}${A}`, `${Steps}.`>
        : AfterCharacter<R, `${Out}${A}`, Steps>
  : // A comment at the very end.
    S extends `${infer A}//${string}`
    ? A extends NotCode
      ? Unread
      : `${Out}${A}`
    : S extends NotCode
      ? Unread
      : `${Out}${S}`;

/** What follows a quote: a character, or what begins with a backslash and has no blank. */
type AfterCharacter<
  R extends string,
  Out extends string,
  Steps extends string,
> = R extends `\\${infer E}${infer R2}`
  ? R2 extends `${infer More}'${infer R3}`
    ? More extends `${string}${' ' | '\n' | ';' | ',' | '"'}${string}`
      ? Unread
      : Bare<R3, `${Out} 0 `, `${Steps}.`>
    : [E, Unread][1]
  : R extends `${infer E}${infer R2}`
    ? E extends "'"
      ? Unread
      : R2 extends `'${infer R3}`
        ? Bare<R3, `${Out} 0 `, `${Steps}.`>
        : Unread
    : Unread;

/** A string in which there are backslashes: to the first quote that none escapes. */
type BareString<R extends string, Out extends string, Steps extends string> = Steps extends Full
  ? Paused<'string', R, Out>
  : R extends `${infer C}"${infer R2}`
    ? C extends `${string}\\`
      ? C extends `${string}\\\\`
        ? C extends `${string}\\\\\\`
          ? Unread
          : Bare<R2, Out, `${Steps}.`>
        : BareString<R2, Out, `${Steps}.`>
      : Bare<R2, Out, `${Steps}.`>
    : Unread;

type BareRaw<
  R extends string,
  Out extends string,
  Steps extends string,
> = R extends `${infer Delimiter}(${infer Body}`
  ? Delimiter extends `${string}${' ' | '\n' | '"' | ')' | '\\'}${string}`
    ? Unread
    : Body extends `${infer _})${Delimiter}"${infer R2}`
      ? Bare<R2, Out, `${Steps}.`>
      : Unread
  : Unread;

type RunBare<P, Pauses extends string> =
  P extends Paused<'bare', infer S extends string, infer Out extends string>
    ? Pauses extends Longest
      ? Unread
      : RunBare<Bare<S, Out, ''>, `${Pauses}.`>
    : P extends Paused<'string', infer S extends string, infer Out extends string>
      ? Pauses extends Longest
        ? Unread
        : RunBare<BareString<S, Out, ''>, `${Pauses}.`>
      : P;

// Phase 2: directives
// ----------------------------------------------------------------------------------------------

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
type Packing = string;
/** Whether they are is not known from there on. */
type Lost = 'L';

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

type Directives<
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

type RunDirectives<P, Pauses extends string> =
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

// Phase 3: the outline
// ---------------------------------------------------------------------------------------------

type Conditional = `${string}#${string}`;
type InC = `${string}C${string}`;
type InNamespace = `${string}N${string}`;

interface Noteworthy {
  readonly 0:
    | WithMark
    | `${string}${';' | '}' | '__global__' | 'struct' | 'union' | 'enum' | 'class' | 'namespace' | '"C"'}${string}`;
}
/** What a function's body does not have; it may end earlier than where it seems to. */
type WordsNotInBody =
  '__global__' | 'struct' | 'union' | 'enum' | 'class' | 'namespace' | 'typedef' | 'using' | '"C"';
interface NotInBody {
  readonly 0: `${string}${WordsNotInBody}${string}`;
}
type MarkOrBracket = WithMark | `${string}(${string}`;

/**
 * From one declaration to the next. A function's body ends at a line that begins with a brace;
 * where it does not, a brace is left over or missing at the end, and the source is left unread.
 */
type Outline<S extends string, M extends Notes, Steps extends string> = Steps extends Full
  ? Paused<'outline', S, M>
  : // A kernel as most are written, in one look and one check.
    S extends `${infer B}extern "C" __global__ void ${infer Name}(${infer L}) {\n${infer X}\n}${infer R}`
    ? B extends UsualBlanks
      ? [`${Name}${Next}${L}${Next}${X}`] extends NotUsual
        ? OutlineByHead<S, M, Steps>
        : M extends Entered | ''
          ? Outline<R, `${M}${Entry}(${Name}(${L}${End}`, `${Steps}.`>
          : OutlineByHead<S, M, Steps>
      : OutlineByHead<S, M, Steps>
    : OutlineByHead<S, M, Steps>;

/** Between pieces of a text that are looked at together. */
type Next = '\u0006';
/** A name, a list and a body of which one has what needs a closer look. */
interface NotUsual {
  readonly 0:
    | `${string}${' ' | '\n' | '\t' | ')' | '"'}${string}${Next}${string}${Next}${string}`
    | `${string}${Next}${string}${'(' | ')' | '{' | '}' | ';' | Sign}${string}${Next}${string}`
    // An empty body, whose end would be taken for its beginning.
    | `${string}${Next}${string}${Next}}${string}`
    | `${string}${Next}${string}${Next}${string}${WordsNotInBody}${string}`;
}

/** As {@link Outline}, from what stands in front of the first brace. */
type OutlineByHead<
  S extends string,
  M extends Notes,
  Steps extends string,
> = S extends `${infer H}{${infer R}`
  ? [H] extends Noteworthy
    ? H extends `${infer B}extern "C" __global__ void ${infer Name}(${infer L})${infer T}`
      ? HasInk<B> extends true
        ? Declaration<S, H, R, M, Steps>
        : HasInk<T> extends true
          ? Attributed<S, H, R, M, Steps>
          : Name extends NotName
            ? Declaration<S, H, R, M, Steps>
            : L extends MarkOrBracket
              ? Declaration<S, H, R, M, Steps>
              : M extends Entered | ''
                ? Body<R, `${M}${Entry}(${Name}(${L}${End}`, Steps>
                : Declaration<S, H, R, M, Steps>
      : Declaration<S, H, R, M, Steps>
    : Body<R, M, Steps>
  : [S] extends Noteworthy
    ? Declaration<S, S, '', M, Steps>
    : Finished<M>;

/** A kernel with launch bounds. */
type Attributed<
  S extends string,
  H extends string,
  R extends string,
  M extends Notes,
  Steps extends string,
> = H extends `${infer B}extern "C" __global__ void __${infer _}__(${infer Args})${infer G}(${infer L})${infer T}`
  ? HasInk<B> extends true
    ? Declaration<S, H, R, M, Steps>
    : HasInk<T> extends true
      ? Declaration<S, H, R, M, Steps>
      : `${Args}${L}` extends MarkOrBracket
        ? Declaration<S, H, R, M, Steps>
        : M extends Entered | ''
          ? (G extends `${' ' | '\n'}${infer N}` ? N : G) extends infer Name extends string
            ? Name extends NotName
              ? Declaration<S, H, R, M, Steps>
              : Body<R, `${M}${Entry}(${Name}(${L}${End}`, Steps>
            : never
          : Declaration<S, H, R, M, Steps>
  : Declaration<S, H, R, M, Steps>;

/** Past the body of a function. */
type Body<
  R extends string,
  M extends Notes,
  Steps extends string,
> = R extends `${infer L}\n${string}`
  ? // In one line with its head: brace by brace.
    L extends `${string}}${string}`
    ? Skip<R, '', M, Steps>
    : R extends `${infer B}\n}${infer R2}`
      ? [B] extends NotInBody
        ? Skip<R, '', M, Steps>
        : Outline<R2, M, `${Steps}.`>
      : Skip<R, '', M, Steps>
  : Skip<R, '', M, Steps>;

/** All blocks and directives have ended. */
type Finished<M extends Notes> = M extends '' | `${Entry}${string}` ? M : Unread;

/** What stands in front of the first brace. */
type Declaration<
  S extends string,
  H extends string,
  R extends string,
  M extends Notes,
  Steps extends string,
> = H extends WithMark | `${string}}${string}`
  ? Mark<S, H, M, Steps>
  : H extends `${string};${string}`
    ? S extends `${infer X};${infer R2}`
      ? Outline<
          R2,
          X extends `${string}${'typedef' | 'using'}${string}` ? Aliased<X, M> : M,
          `${Steps}.`
        >
      : never
    : S extends H
      ? Finished<M>
      : H extends `${infer Before}__global__${infer Sig}`
        ? Body<R, Kernel<Before, Sig, M>, Steps>
        : Block<H, R, M, Steps>;

/** The end of a block, the end of a declaration, or a directive's mark, whichever is first. */
type Mark<
  S extends string,
  H extends string,
  M extends Notes,
  Steps extends string,
> = H extends `${infer A};${string}`
  ? A extends WithMark | `${string}}${string}`
    ? MarkOf<S, M, Steps>
    : S extends `${infer X};${infer R}`
      ? Outline<
          R,
          X extends `${string}${'typedef' | 'using'}${string}` ? Aliased<X, M> : M,
          `${Steps}.`
        >
      : never
  : MarkOf<S, M, Steps>;

type MarkOf<
  S extends string,
  M extends Notes,
  Steps extends string,
> = S extends `${infer H}}${infer R}`
  ? H extends WithMark
    ? Directive<S, M, Steps>
    : M extends `${'C' | 'N'}${infer N}`
      ? Outline<R, N, `${Steps}.`>
      : Unread
  : Directive<S, M, Steps>;

type Directive<S extends string, M extends Notes, Steps extends string> =
  FirstMark<S> extends [infer H extends string, infer What, infer R extends string]
    ? What extends If
      ? Outline<R, `#${Cut<H, M>}`, `${Steps}.`>
      : M extends `#${infer N}`
        ? Outline<R, What extends Else ? Cut<H, M> : Cut<H, N>, `${Steps}.`>
        : Unread
    : Unread;

/** A declaration that a directive cuts in two may be anything. */
type Cut<H extends string, M extends Notes> =
  HasInk<H> extends true ? `${M}${Entry}!open${Entry}!doubt` : M;

/** Where the outline is. */
type WhereIn<M extends Notes> = M extends `${infer W}${Entry}${string}` ? W : M;

type FirstMark<S extends string> = S extends `${infer A}${Sign}${infer Kind}${infer R}`
  ? [A, `${Sign}${Kind}`, R]
  : never;

/** A brace that opens no kernel. */
type Block<
  H extends string,
  R extends string,
  M extends Notes,
  Steps extends string,
> = H extends `${string}"C"${infer T}`
  ? HasInk<T> extends true
    ? Body<R, M, Steps>
    : Outline<R, `C${M}`, `${Steps}.`>
  : H extends `${string})${infer T}`
    ? // The end of a function's head, but for alignas(16) in a structure's.
      T extends `${string}${Letter | Uppercase<Letter>}${string}`
      ? H extends TypeWords
        ? DoubtfulType<H, R, M, Steps>
        : Body<R, M, Steps>
      : Body<R, M, Steps>
    : H extends `${infer Before}namespace${infer T}`
      ? // What an unnamed or inline one declares is seen outside of it.
        Outline<
          R,
          HasInk<Before> extends true
            ? `N${M}${Entry}!doubt`
            : HasInk<T> extends true
              ? `N${M}`
              : `N${M}${Entry}!doubt`,
          `${Steps}.`
        >
      : H extends `${string}=${string}`
        ? Skip<R, '', M, Steps>
        : H extends TypeWords
          ? WhereIn<M> extends InNamespace
            ? Skip<R, '', M, Steps>
            : H extends `${infer Before}struct${infer Tag}`
              ? Structure<H, Before, Tag, R, M, Steps>
              : DoubtfulType<H, R, M, Steps>
          : Body<R, M, Steps>;

type TypeWords = `${string}${'struct' | 'union' | 'enum' | 'class'}${string}`;

type Structure<
  H extends string,
  Before extends string,
  Tag extends string,
  R extends string,
  M extends Notes,
  Steps extends string,
> = R extends `${infer Body}}${infer After}`
  ? Body extends WithMark | `${string}{${string}`
    ? DoubtfulType<H, R, M, Steps>
    : WhereIn<M> extends Conditional
      ? DoubtfulType<H, R, M, Steps>
      : [Before] extends WithInk
        ? Before extends `${infer B}typedef${infer C}`
          ? HasInk<`${B}${C}`> extends true
            ? DoubtfulType<H, R, M, Steps>
            : After extends `${infer Alias};${infer R2}`
              ? Outline<
                  R2,
                  `${M}${StructureNote<Trim<Alias>, Body>}${Trim<Tag> extends Trim<Alias> ? '' : StructureNote<Trim<Tag>, Body>}`,
                  `${Steps}.`
                >
              : Unread
          : DoubtfulType<H, R, M, Steps>
        : Outline<After, `${M}${StructureNote<Trim<Tag>, Body>}`, `${Steps}.`>
  : Unread;

type StructureNote<Name extends string, Body extends string> = Name extends ''
  ? ''
  : [Name] extends NotWord
    ? `${Entry}!doubt`
    : `${Entry}${Name}{${Body}}`;

/** A type that is not read: its name is noted. */
type DoubtfulType<
  H extends string,
  R extends string,
  M extends Notes,
  Steps extends string,
> = H extends `${string}typedef${string}`
  ? Skip<R, '', `${M}${Entry}!doubt`, Steps>
  : H extends `${string}${'<' | '"'}${string}`
    ? Skip<R, '', `${M}${Entry}!doubt`, Steps>
    : Skip<
        R,
        '',
        `${M}${DoubtNote<LastWord<OneLine<H extends `${infer Name}:${string}` ? Name : H>>>}`,
        Steps
      >;

type DoubtNote<Name extends string> = [Name] extends NotWord
  ? `${Entry}!doubt`
  : `${Entry}${Name}?`;

type LastWord<S extends string> = S extends `${string} ${infer R}` ? LastWord<R> : S;

type NotName = `${string}${' ' | '\n' | '\t' | ')' | '"'}${string}`;
/** No single name. */
interface NotWord {
  readonly 0:
    '' | `${string}${Blank | '*' | ',' | '[' | '(' | ')' | '<' | ':' | '&' | '"'}${string}`;
}

/** A typedef or using, noted. */
type Aliased<X extends string, M extends Notes> =
  WhereIn<M> extends infer Where
    ? Where extends InNamespace
      ? M
      : X extends `${infer Before}using${infer D}`
        ? OneLine<D> extends infer L extends string
          ? L extends `namespace ${string}`
            ? `${M}${Entry}!doubt`
            : L extends `${infer Name}=${infer T}`
              ? `${M}${AliasNote<Trim<Name>, HasInk<Before> extends true ? '?' : Trim<T>, Where>}`
              : L extends `${string}::${infer Name}`
                ? `${M}${DoubtNote<LastName<Name>>}`
                : M
          : never
        : X extends `${infer Before}typedef${infer D}`
          ? `${M}${TypedefNote<OneLine<D>, '', HasInk<Before> extends true ? '#' : Where>}`
          : never
    : never;

type LastName<S extends string> = S extends `${string}::${infer R}` ? LastName<R> : S;

type AliasNote<Name extends string, T extends string, Where> = [Name] extends NotWord
  ? `${Entry}!doubt`
  : T extends Name | `struct ${Name}`
    ? ''
    : Where extends Conditional
      ? `${Entry}${Name}?`
      : T extends `${string}${'(' | '[' | ',' | '<' | '&' | '=' | '?'}${string}`
        ? `${Entry}${Name}?`
        : `${Entry}${Name}=${T};`;

type TypedefNote<
  D extends string,
  T extends string,
  Where,
> = D extends `${string}${',' | '(' | '[' | '<'}${string}`
  ? FunctionPointerNote<D>
  : D extends `${infer A}*${infer R}`
    ? TypedefNote<Trim<R>, `${T}${A}*`, Where>
    : D extends `${infer A} ${infer R}`
      ? TypedefNote<R, `${T}${A} `, Where>
      : AliasNote<D, Trim<T>, Where>;

/**
 * A typedef of a pointer to a function declares its name, and no other. What else is not read may
 * declare several.
 */
type FunctionPointerNote<D extends string> = D extends `${infer Result}(*${infer Name})${infer R}`
  ? R extends `(${infer List})` | ` (${infer List})`
    ? Result extends `${string}${',' | '(' | '[' | '<'}${string}`
      ? `${Entry}!doubt`
      : List extends `${string}${'(' | ')'}${string}`
        ? `${Entry}!doubt`
        : DoubtNote<Trim<Name>>
    : `${Entry}!doubt`
  : `${Entry}!doubt`;

/**
 * Past a body, brace by brace. `Open` are the braces and directives that were opened in it, the
 * innermost first.
 */
type Skip<
  S extends string,
  Open extends string,
  M extends Notes,
  Steps extends string,
> = Steps extends Full
  ? Paused<'skip', S, Open, M>
  : S extends `${infer X}}${infer R}`
    ? X extends WithMark
      ? SkipMark<S, Open, M, Steps>
      : X extends `${string}{${infer Y}`
        ? Y extends `${string}{${infer Z}`
          ? Skip<R, Opened<Z, `{${Open}`>, M, `${Steps}.`>
          : Skip<R, Open, M, `${Steps}.`>
        : Open extends `{${infer O}`
          ? Skip<R, O, M, `${Steps}.`>
          : Open extends ''
            ? Outline<R, M, `${Steps}.`>
            : Unread
    : Unread;

/** One more for each brace. */
type Opened<Z extends string, Open extends string> = Z extends `${string}{${infer R}`
  ? Opened<R, `{${Open}`>
  : Open;

/** The first of braces and marks. */
type SkipMark<S extends string, Open extends string, M extends Notes, Steps extends string> =
  FirstMark<S> extends [infer A extends string, infer What, infer R extends string]
    ? Level<A, Open, ''> extends infer O extends string
      ? What extends If
        ? Skip<R, `#${O}`, M, `${Steps}.`>
        : O extends `#${infer Q}`
          ? Skip<R, What extends Else ? O : Q, M, `${Steps}.`>
          : Unread
      : Unread
    : Unread;

/**
 * What is open after a piece without marks; Unread where it closes what was opened outside of its
 * directive, or the body.
 */
type Level<A extends string, Open extends string, Steps extends string> = Steps extends Full
  ? Unread
  : A extends `${infer X}}${infer R}`
    ? X extends `${string}{${infer Y}`
      ? Level<R, Opened<Y, Open>, `${Steps}.`>
      : Open extends `{${infer O}`
        ? Level<R, O, `${Steps}.`>
        : Unread
    : A extends `${string}{${infer Y}`
      ? Opened<Y, `{${Open}`>
      : Open;

type RunOutline<P, Pauses extends string> =
  P extends Paused<'outline', infer S extends string, infer M extends string>
    ? Pauses extends Longest
      ? Unread
      : RunOutline<Outline<S, M, ''>, `${Pauses}.`>
    : P extends Paused<
          'skip',
          infer S extends string,
          infer Open extends string,
          infer M extends string
        >
      ? Pauses extends Longest
        ? Unread
        : RunOutline<Skip<S, Open, M, ''>, `${Pauses}.`>
      : P;

// A kernel's head
// --------------------------------------------------------------------------------------------------

/** What `__global__` stands in, noted where it is a kernel with a name of its own. */
type Kernel<
  Before extends string,
  Sig extends string,
  M extends Notes,
> = Before extends `${string}extern${string}"C"${string}`
  ? KernelNote<Sig, M>
  : `${Before}${Sig}` extends `${string}template${string}`
    ? M
    : WhereIn<M> extends InC
      ? KernelNote<Sig, M>
      : // It has a mangled name, or a macro is extern "C".
        `${M}${Entry}!open`;

type KernelNote<
  Sig extends string,
  M extends Notes,
> = Sig extends ` void ${infer Name}(${infer List})${infer T}`
  ? [T] extends WithInk
    ? Sig extends ` void __${infer _}__(${infer Args})${infer G}(${infer L})${infer U}`
      ? `${Args}${U}` extends `${string}${'(' | ')' | '"'}${string}`
        ? `${M}${KernelOf<Sig, WhereIn<M>>}`
        : NoteOf<Trim<G>, L, M>
      : `${M}${KernelOf<Sig, WhereIn<M>>}`
    : NoteOf<Name, List, M>
  : `${M}${KernelOf<Sig, WhereIn<M>>}`;

type NoteOf<Name extends string, List extends string, M extends Notes> = [Name] extends NotWord
  ? `${M}${Entry}!open`
  : List extends `${string}(${string}`
    ? `${M}${Entry}(${Name}${End}`
    : M extends Entered | ''
      ? `${M}${Entry}(${Name}(${List}${End}`
      : `${M}${EntryIn<Name, List, WhereIn<M>>}`;

/** Outside of all blocks. */
type Entered = `${Entry}${string}`;

type EntryIn<Name extends string, List extends string, Where> = Where extends
  Conditional | InNamespace
  ? `${Entry}(${Name}${End}`
  : `${Entry}(${Name}(${List}${End}`;

/** From behind `__global__`: what attributes take in parentheses is passed over. */
type KernelOf<Sig extends string, Where> = Sig extends `${infer A}(${infer B}`
  ? ` ${OneLine<A>}` extends `${infer W} __${infer _}__`
    ? B extends `${infer Args})${infer B2}`
      ? Args extends `${string}(${string}`
        ? `${Entry}!open`
        : KernelOf<`${W} ${B2}`, Where>
      : `${Entry}!open`
    : OneLine<A> extends `void ${infer Name}`
      ? [Name] extends NotWord
        ? `${Entry}!open`
        : B extends `${infer List})${infer T}`
          ? List extends `${string}(${string}`
            ? `${Entry}(${Name}${End}`
            : HasInk<T> extends true
              ? `${Entry}(${Name}${End}`
              : EntryIn<Name, List, Where>
          : `${Entry}!open`
      : `${Entry}!open`
  : `${Entry}!open`;

// Blanks
// -----------------------------------------------------------------------------------------------------------

type Blank = ' ' | '\n' | '\t' | '\r';
type Letter =
  | 'a'
  | 'b'
  | 'c'
  | 'd'
  | 'e'
  | 'f'
  | 'g'
  | 'h'
  | 'i'
  | 'j'
  | 'k'
  | 'l'
  | 'm'
  | 'n'
  | 'o'
  | 'p'
  | 'q'
  | 'r'
  | 's'
  | 't'
  | 'u'
  | 'v'
  | 'w'
  | 'x'
  | 'y'
  | 'z';
/**
 * More than blanks. A look for each character, since a text may have more blanks than a type can
 * call itself.
 */
type Ink =
  | Letter
  | Uppercase<Letter>
  | '_'
  | '0'
  | '1'
  | '2'
  | '3'
  | '4'
  | '5'
  | '6'
  | '7'
  | '8'
  | '9'
  | '"'
  | '('
  | ')'
  | '['
  | ']'
  | '<'
  | '>'
  | ','
  | ':'
  | '='
  | '*'
  | '&'
  | '~'
  | '@'
  | '+'
  | '-'
  | '.';
interface WithInk {
  readonly 0: `${string}${Ink}${string}`;
}
/** Those that come up all the time. */
type UsualBlanks =
  | ''
  | ' '
  | '  '
  | '\n'
  | ' \n'
  | '\n '
  | '\n\n'
  | '\n\n\n'
  | '\n\n\n\n'
  | '\n\n\n\n\n'
  | '\n  '
  | '\n\n  '
  | '\n    ';
/** Whether there is more than blanks. */
type HasInk<S extends string> = S extends UsualBlanks ? false : [S] extends WithInk ? true : false;

/** Without blanks at the ends, but for those of a text that has hundreds. */
export type Trim<S extends string, Steps extends string = ''> = Steps extends Full
  ? S
  : S extends `${Blank}${infer R}`
    ? Trim<R, `${Steps}.`>
    : S extends `${infer R}${Blank}`
      ? Trim<R, `${Steps}.`>
      : S;

/** One blank where there were any, none at the ends. A text of too many stays as it is. */
export type OneLine<S extends string> = S extends Blanks
  ? // A line of its own, behind what is left of a comment.
    S extends `${infer A}\n    ${infer R}`
    ? HasInk<A> extends true
      ? Trim<Single<S, ''>>
      : R extends ` ${string}`
        ? Trim<Single<S, ''>>
        : R extends Blanks
          ? R extends `${infer Q}\n`
            ? Q extends Blanks
              ? Trim<Single<S, ''>>
              : Q
            : Trim<Single<S, ''>>
          : R
    : Trim<Single<S, ''>>
  : S extends ` ${infer R}`
    ? R
    : S;

type Blanks = `${string}${'\n' | '\t' | '\r' | '  '}${string}` | `${string} `;

type Single<S extends string, Steps extends string> = Steps extends Full
  ? S
  : S extends `${infer A}\n${infer R}`
    ? Single<`${A} ${R}`, `${Steps}.`>
    : S extends `${infer A}        ${infer R}`
      ? Single<`${A} ${R}`, `${Steps}.`>
      : S extends `${infer A}  ${infer R}`
        ? Single<`${A} ${R}`, `${Steps}.`>
        : S extends `${infer A}\t${infer R}`
          ? Single<`${A} ${R}`, `${Steps}.`>
          : S extends `${infer A}\r${infer R}`
            ? Single<`${A} ${R}`, `${Steps}.`>
            : S;

// All of it
// --------------------------------------------------------------------------------------------------------

/** The notes on a text. */
export type OutlineOf<S extends string> = S extends Reserved
  ? Unread
  : (S extends `${string}\\\n${string}` ? Spliced<S, '', ''> : S) extends infer T
    ? T extends string
      ? AfterBare<
          RunBare<Bare<`${T}\n`, '', ''>, ''>,
          S extends `${string}_Pragma${string}` ? PackingFrom<T> : 'u'
        >
      : Unread
    : never;

type Gap = '' | ' ';
/** Packing by _Pragma, whose string is gone by then, may be that of a macro: it is not followed. */
type PackingFrom<S extends string> = S extends `${string}_Pragma${Gap}(${Gap}"${Gap}pack${string}`
  ? Lost
  : // _Pragma(#text) in a macro, given pack(1).
    S extends `${string}_Pragma${Gap}(${Gap}#${string}`
    ? S extends `${string}(${Gap}pack${Gap}(${string}`
      ? Lost
      : 'u'
    : 'u';

type AfterBare<T, K extends Packing> = T extends string
  ? AfterDirectives<RunDirectives<Directives<`${T}\n`, '', '', K, ''>, ''>>
  : Unread;

type AfterDirectives<D> = D extends {
  readonly text: infer T extends string;
  readonly notes: infer M extends string;
}
  ? RunOutline<Outline<T, M, ''>, ''>
  : Unread;
