/**
 * The outline of CUDA C++, followed by the type checker: which kernels there are, with the texts of their parameter
 * lists, and which types the text declares. It goes in phases as a compiler does: comments and literals, then directives,
 * then from one declaration to the next, bodies being passed over by their braces.
 *
 * Three facts of the type checker shape this file. Templates with `infer` search a text at native speed, so that a step
 * costs some ten instantiations however long the text is. A conditional type may call itself 1000 times, so that each loop
 * counts its steps and pauses for an outer loop. And a statement may take 5 million instantiations, so that the outer loop
 * ends, too, with {@link Unread}.
 */
import type { KeywordTypes, LibraryTypes } from './type-names.js';

// What a text is read as -------------------------------------------------------------------------------------------

/** A source that is not understood: any name may be a kernel. */
export interface Unread { readonly unread: true }

/** The phases' memory: kernels found, declarations of types, names that are not to be trusted, what else is known. */
export interface Memory<Kernels = never, Types extends string = '', Doubtful extends string = '', Flags = never> {
  readonly kernels: Kernels;
  readonly types: Types;
  readonly doubtful: Doubtful;
  readonly flags: Flags;
}

type Fifty = '..................................................';
/** Steps of a loop between two pauses. A step is up to five calls. */
type Full = `${Fifty}${Fifty}${Fifty}`;
/** Pauses of a phase, after which the source is left unread. */
type Longest = `${Fifty}${Fifty}${Fifty}${Fifty}${Fifty}`;

interface Paused<Kind extends string, Rest, Done, State = unknown> { readonly paused: Kind; readonly rest: Rest; readonly done: Done; readonly state: State }

// Marks of directives in the text, which no source has: #if, #else or #elif, #endif.
type If = '\u0001';
type Else = '\u0002';
type Endif = '\u0003';
type WithMark = `${string}${If}${string}` | `${string}${Else}${string}` | `${string}${Endif}${string}`;
/** Opens an entry of the list of types. */
export type Entry = '\u0004';
type Reserved = WithMark | `${string}${Entry}${string}`;

// Phase 0: lines that end with a backslash -------------------------------------------------------------------------

type Spliced<S extends string, Out extends string, Steps extends string> =
  Steps extends `${Full}${Full}${Full}` ? Unread
    : S extends `${infer A}\\\n${infer R}` ? Spliced<R, `${Out}${A}`, `${Steps}.`>
      : `${Out}${S}`;

// Phase 1: comments and literals -----------------------------------------------------------------------------------

type Quote = `${string}"${string}` | `${string}'${string}`;
type NotCode = Quote | `${string}/*${string}`;

/** The text without comments, strings as `""` but for "C", characters as 0. Raw newlines in literals are taken. */
type Bare<S extends string, Out extends string, Steps extends string> =
  Steps extends Full ? Paused<'bare', S, Out>
    : S extends `${infer A}//${infer _}\n${infer R}`
      ? A extends NotCode ? BareLiteral<S, Out, Steps> : Bare<R, `${Out}${A}\n`, `${Steps}.`>
      : BareLiteral<S, Out, Steps>;

/** As {@link Bare}, where what comes first is not a line comment. */
type BareLiteral<S extends string, Out extends string, Steps extends string> =
  S extends `${infer A}"${infer R}`
    ? A extends `${string}/*${string}` | `${string}//${string}` | `${string}'${string}` ? BareComment<S, Out, Steps>
      : R extends `${infer C}"${infer R2}`
        ? C extends `${string}\\${string}` ? BareString<R, `${Out}${A}""`, Steps>
          : A extends `${string}R` ? BareRaw<R, `${Out}${A}""`, Steps>
            : Bare<R2, C extends 'C' ? `${Out}${A}"C"` : `${Out}${A}""`, `${Steps}.`>
        : Unread
    : BareComment<S, Out, Steps>;

type BareComment<S extends string, Out extends string, Steps extends string> =
  S extends `${infer A}/*${infer _}*/${infer R}`
    ? A extends `${string}//${string}` | Quote ? BareCharacter<S, Out, Steps> : Bare<R, `${Out}${A} `, `${Steps}.`>
    : BareCharacter<S, Out, Steps>;

type HexDigit = '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9' | 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'A' | 'B' | 'C' | 'D' | 'E' | 'F';

type BareCharacter<S extends string, Out extends string, Steps extends string> =
  S extends `${infer A}'${infer R}`
    ? A extends `${string}//${string}` | `${string}/*${string}` | `${string}"${string}` ? Unread
      : A extends `${string}u8` ? AfterCharacter<R, `${Out}${A}`, Steps>
        // A separator of digits: 1'000.
        : [A, R] extends [`${string}${HexDigit}`, `${HexDigit}${string}`] ? Bare<R, `${Out}${A}`, `${Steps}.`>
          : AfterCharacter<R, `${Out}${A}`, Steps>
    // A comment at the very end.
    : S extends `${infer A}//${string}`
      ? A extends NotCode ? Unread : `${Out}${A}`
      : S extends NotCode ? Unread : `${Out}${S}`;

/** What follows a quote: a character, or what begins with a backslash and has no blank. */
type AfterCharacter<R extends string, Out extends string, Steps extends string> =
  R extends `\\${infer E}${infer R2}`
    ? R2 extends `${infer More}'${infer R3}`
      ? More extends `${string}${' ' | '\n' | ';' | ',' | '"'}${string}` ? Unread : Bare<R3, `${Out} 0 `, `${Steps}.`>
      : [E, Unread][1]
    : R extends `${infer E}${infer R2}`
      ? E extends "'" ? Unread : R2 extends `'${infer R3}` ? Bare<R3, `${Out} 0 `, `${Steps}.`> : Unread
      : Unread;

/** A string in which there are backslashes: to the first quote that none escapes. */
type BareString<R extends string, Out extends string, Steps extends string> =
  Steps extends Full ? Paused<'string', R, Out>
    : Out extends `${string}R""` ? BareRaw<R, Out, Steps>
      : R extends `${infer C}"${infer R2}`
        ? C extends `${string}\\`
          ? C extends `${string}\\\\` ? C extends `${string}\\\\\\` ? Unread : Bare<R2, Out, `${Steps}.`>
            : BareString<R2, Out, `${Steps}.`>
          : Bare<R2, Out, `${Steps}.`>
        : Unread;

type BareRaw<R extends string, Out extends string, Steps extends string> =
  R extends `${infer Delimiter}(${infer Body}`
    ? Delimiter extends `${string}${' ' | '\n' | '"' | ')' | '\\'}${string}` ? Unread : Body extends `${infer _})${Delimiter}"${infer R2}` ? Bare<R2, Out, `${Steps}.`> : Unread
    : Unread;

type RunBare<P, Pauses extends string> =
  P extends Paused<'bare', infer S extends string, infer Out extends string>
    ? Pauses extends Longest ? Unread : RunBare<Bare<S, Out, ''>, `${Pauses}.`>
    : P extends Paused<'string', infer S extends string, infer Out extends string>
      ? Pauses extends Longest ? Unread : RunBare<BareString<S, Out, ''>, `${Pauses}.`>
      : P;

// Phase 2: directives ----------------------------------------------------------------------------------------------

/** Headers that declare no kernels and no macros that hide one. */
type KnownHeader =
  | 'cuda_fp16.h' | 'cuda_bf16.h' | 'cuda_fp8.h' | 'cuda_runtime.h' | 'cuda.h' | 'cuda_runtime_api.h' | 'device_launch_parameters.h' | 'vector_types.h'
  | 'cooperative_groups.h' | 'cooperative_groups/reduce.h' | 'cooperative_groups/memcpy_async.h' | 'cuda_pipeline.h' | 'mma.h' | 'math_constants.h'
  | 'curand_kernel.h' | 'cuda/std/cstdint' | 'cuda/std/cstddef' | 'cuda/barrier' | 'cuda/pipeline' | 'cuda/atomic' | 'cstdint' | 'cstddef' | 'stdint.h' | 'stddef.h'
  | 'stdio.h' | 'cstdio' | 'math.h' | 'cmath' | 'assert.h' | 'cassert' | 'float.h' | 'cfloat' | 'limits.h' | 'climits' | 'type_traits';

/** What a directive is: a mark, a macro's name, a flag, or nothing. */
type DirectiveOf<L extends string> =
  L extends `${' ' | '\t'}${infer R}` ? DirectiveOf<R>
    : L extends `if${string}` ? If
      : L extends `el${string}` ? Else
        : L extends `endif${string}` ? Endif
          : L extends `define${' ' | '\t'}${infer D}` ? MacroOf<D>
            : L extends `include${infer H}` ? H extends `${string}<${infer Name}>${string}` ? Name extends KnownHeader ? '' : { flags: 'open' } : { flags: 'open' }
              // What follows #error need not be C.
              : '';

type MacroOf<D extends string> =
  D extends `${' ' | '\t'}${infer R}` ? MacroOf<R>
    : MacroName<D> extends infer Name
      ? Name extends keyof KeywordTypes | keyof LibraryTypes | Grammar ? Unread
        : D extends `${string}{${string}` | `${string}}${string}` ? Level<D, '', ''> extends '' ? Macro<Name, D> : Unread
          : Macro<Name, D>
      : never;

type MacroName<D extends string> =
  D extends `${infer N}(${string}` ? N extends `${infer M} ${string}` ? MacroName<M> : N
    : D extends `${infer N} ${string}` ? MacroName<N>
      : D extends `${infer N}\t${string}` ? MacroName<N> : D;

type Macro<Name, D extends string> = { flags: [Name] | (D extends `${string}__global__${string}` | `${string}extern${string}` ? 'open' : never) };

/** Words whose meaning this file relies on. */
type Grammar =
  | 'extern' | 'struct' | 'union' | 'class' | 'enum' | 'typedef' | 'using' | 'namespace' | 'template' | 'const' | 'volatile' | 'void' | 'long' | 'signed'
  | '__global__' | '__restrict__' | '__restrict' | '__launch_bounds__' | '__grid_constant__' | 'inline' | 'static' | 'std' | 'public' | 'private';

type Directives<S extends string, Out extends string, Flags, Steps extends string> =
  Steps extends Full ? Paused<'directives', S, Out, Flags>
    : S extends `${infer A}#${infer L}\n${infer R}`
      ? DirectiveOf<L> extends infer What
        ? What extends string ? Directives<R, `${Out}${A}${What}`, Flags, `${Steps}.`>
          : What extends { flags: infer F } ? Directives<R, `${Out}${A}`, Flags | F, `${Steps}.`>
            : Unread
        : never
      : { readonly text: `${Out}${S}`; readonly flags: Flags };

type RunDirectives<P, Pauses extends string> =
  P extends Paused<'directives', infer S extends string, infer Out extends string, infer Flags>
    ? Pauses extends Longest ? Unread : RunDirectives<Directives<S, Out, Flags, ''>, `${Pauses}.`>
    : P;

// Phase 3: the outline ---------------------------------------------------------------------------------------------

/** Where a declaration stands, the innermost first: C in extern "C" { }, N in a namespace, # in #if, { in a body. */
type Conditional = `${string}#${string}`;
type InC = `${string}C${string}`;
type InNamespace = `${string}N${string}`;
type AnyMemory = Memory<unknown, string, string, unknown>;

/** From one declaration to the next. */
type Outline<S extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  Steps extends Full ? Paused<'outline', S, Where, M>
    : S extends `${infer X};${infer R}`
      ? X extends WithMark | `${string}{${string}` | `${string}}${string}` ? OutlineBrace<S, Where, M, Steps>
        : X extends `${string}${'typedef' | 'using'}${string}` ? Outline<R, Where, Aliased<X, Where, M>, `${Steps}.`>
          : Outline<R, Where, M, `${Steps}.`>
      : OutlineBrace<S, Where, M, Steps>;

type OutlineBrace<S extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  S extends `${infer H}{${infer R}`
    ? H extends WithMark | `${string}}${string}` ? OutlineMark<S, Where, M, Steps>
      : H extends Noteworthy ? Header<H, R, Where, M, Steps>
        : Skip<R, '', Where, M, Steps>
    : S extends WithMark | `${string}}${string}` ? OutlineMark<S, Where, M, Steps>
      : Where extends Conditional | InC | InNamespace ? Unread : M;

type Noteworthy = `${string}${'__global__' | 'struct' | 'union' | 'enum' | 'class' | 'namespace' | 'extern'}${string}`;

/** The end of a block, or a directive's mark. */
type OutlineMark<S extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  S extends `${infer H}}${infer R}`
    ? H extends WithMark ? OutlineIf<S, Where, M, Steps>
      : Where extends `${'C' | 'N'}${infer W}` ? Outline<R, W, M, `${Steps}.`> : Unread
    : OutlineIf<S, Where, M, Steps>;

type OutlineIf<S extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  FirstMark<S> extends [infer H extends string, infer Mark, infer R extends string]
    ? Mark extends If ? Outline<R, `#${Where}`, Cut<H, M>, `${Steps}.`>
      : Where extends `#${infer W}` ? Outline<R, Mark extends Else ? Where : W, Cut<H, M>, `${Steps}.`> : Unread
    : Unread;

/** A declaration that a directive cuts in two may be anything. */
type Cut<H extends string, M extends AnyMemory> =
  H extends WithInk ? Memory<M['kernels'], M['types'], M['doubtful'], M['flags'] | 'open' | 'doubt'> : M;

type FirstMark<S extends string> =
  S extends `${infer A}${If}${infer R}`
    ? A extends WithMark ? LaterMark<S> : [A, If, R]
    : LaterMark<S>;
type LaterMark<S extends string> =
  S extends `${infer A}${Else}${infer R}`
    ? A extends WithMark ? LastMark<S> : [A, Else, R]
    : LastMark<S>;
type LastMark<S extends string> = S extends `${infer A}${Endif}${infer R}` ? [A, Endif, R] : never;

/** What stands in front of a brace. */
type Header<H extends string, R extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  H extends `${infer Before}__global__${infer Sig}`
    ? H extends `${string}template${string}` ? Skip<R, '', Where, M, Steps>
      : H extends `${string}extern${string}"C"${string}` ? Skip<R, '', Where, WithKernel<Before, Sig, Where, M>, Steps>
        : Where extends InC ? Skip<R, '', Where, WithKernel<Before, Sig, Where, M>, Steps>
          // A macro may be extern "C".
          : Before extends WithInk ? Skip<R, '', Where, WithFlag<M, 'open'>, Steps> : Skip<R, '', Where, M, Steps>
    : H extends `${string}"C"${infer T}`
      ? T extends WithInk ? Skip<R, '', Where, WithDoubt<H, M>, Steps> : Outline<R, `C${Where}`, M, `${Steps}.`>
      : H extends `${infer Before}namespace${infer T}`
        ? T extends `${string}${'(' | '='}${string}` ? Skip<R, '', Where, WithDoubt<H, M>, Steps>
          // What an unnamed or inline one declares is seen outside of it.
          : Outline<R, `N${Where}`, Before extends WithInk ? WithFlag<M, 'doubt'> : T extends WithInk ? M : WithFlag<M, 'doubt'>, `${Steps}.`>
        : H extends `${string}${'(' | '=' | ':' | '<' | '['}${string}` ? Skip<R, '', Where, WithDoubt<H, M>, Steps>
          : H extends `${string}${'struct' | 'union' | 'enum' | 'class'}${string}` ? Structure<H, R, Where, M, Steps>
            : Skip<R, '', Where, M, Steps>;

type WithFlag<M extends AnyMemory, F> = Memory<M['kernels'], M['types'], M['doubtful'], M['flags'] | F>;
type WithDoubt<H extends string, M extends AnyMemory> = Memory<M['kernels'], M['types'], `${M['doubtful']} ${H}`, M['flags']>;
type WithType<E extends string, M extends AnyMemory> = Memory<M['kernels'], `${M['types']}${Entry}${E}`, M['doubtful'], M['flags']>;

type Structure<H extends string, R extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  Where extends Conditional ? Skip<R, '', Where, DoubtStructure<H, M>, Steps>
    : Where extends InNamespace ? Skip<R, '', Where, M, Steps>
      : R extends `${infer Body}}${infer After}`
        ? Body extends WithMark | `${string}{${string}` ? Skip<R, '', Where, DoubtStructure<H, M>, Steps>
          : H extends `${infer Before}struct${infer Tag}`
            ? Before extends WithInk
              ? Before extends `${infer B}typedef${infer C}`
                ? `${B}${C}` extends WithInk ? Skip<R, '', Where, DoubtStructure<H, M>, Steps>
                  : After extends `${infer Alias};${infer R2}` ? Outline<R2, Where, TypedefStructure<Trim<Alias>, Trim<Tag>, Body, M>, `${Steps}.`> : Unread
                : Skip<R, '', Where, DoubtStructure<H, M>, Steps>
              : Outline<After, Where, NamedStructure<Trim<Tag>, Body, M>, `${Steps}.`>
            : Skip<R, '', Where, DoubtStructure<H, M>, Steps>
        : Unread;

type NamedStructure<Name extends string, Body extends string, M extends AnyMemory> =
  Name extends NotWord ? WithDoubt<Name, M> : WithType<`${Name}{${Body}}`, M>;

type TypedefStructure<Name extends string, Tag extends string, Body extends string, M extends AnyMemory> =
  `_${Name}${Tag}` extends NotWord ? WithDoubt<`${Name} ${Tag}`, M>
    : Name extends '' ? WithDoubt<Tag, M>
      : WithType<Tag extends '' | Name ? `${Name}{${Body}}` : `${Name}{${Body}}${Entry}${Tag}{${Body}}`, M>;

/** A structure that is not read; of a typedef nobody knows the name. */
type DoubtStructure<H extends string, M extends AnyMemory> =
  H extends `${string}typedef${string}` ? WithFlag<M, 'doubt'> : WithDoubt<H, M>;

/** No single name. */
type NotWord = '' | `${string}${Blank | '*' | ',' | '[' | '(' | '<' | ':' | '&' | '"'}${string}`;

/** A typedef or using, as an entry. */
type Aliased<X extends string, Where extends string, M extends AnyMemory> =
  Where extends InNamespace ? M
    : X extends `${infer Before}using${infer D}`
      ? Before extends WithInk ? WithDoubt<X, M>
        : OneLine<D> extends infer L extends string
          ? L extends `namespace ${string}` ? WithFlag<M, 'doubt'>
            : Where extends Conditional ? WithDoubt<X, M>
              : L extends `${infer Name}=${infer T}` ? AliasEntry<Trim<Name>, Trim<T>, X, M> : WithDoubt<X, M>
          : never
      : X extends `${infer Before}typedef${infer D}`
        ? Before extends WithInk ? WithDoubt<X, M>
          : Where extends Conditional ? WithDoubt<X, M> : TypedefEntry<OneLine<D>, '', X, M>
        : never;

type AliasEntry<Name extends string, T extends string, L extends string, M extends AnyMemory> =
  Name extends NotWord ? WithDoubt<L, M>
    : T extends Name | `struct ${Name}` ? M
      : T extends `${string}${'(' | '[' | ',' | '<' | '&' | '='}${string}` ? WithDoubt<L, M> : WithType<`${Name}=${T};`, M>;

type TypedefEntry<D extends string, T extends string, L extends string, M extends AnyMemory> =
  D extends `${string}${',' | '(' | '[' | '<'}${string}` ? WithDoubt<L, M>
    : D extends `${infer A}*${infer R}` ? TypedefEntry<R, `${T}${A}*`, L, M>
      : D extends `${infer A} ${infer R}` ? TypedefEntry<R, `${T}${A} `, L, M>
        : AliasEntry<D, Trim<T>, L, M>;

/** Past a body. `Open` are the braces and directives that were opened in it, the innermost first. */
type Skip<S extends string, Open extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  Steps extends Full ? Paused<'skip', S, [Open, Where], M>
    : S extends `${infer X}}${infer R}`
      ? X extends WithMark ? SkipMark<S, Open, Where, M, Steps>
        : X extends `${string}{${infer Y}`
          ? Y extends `${string}{${infer Z}` ? Skip<R, Opened<Z, `{${Open}`>, Where, M, `${Steps}.`> : Skip<R, Open, Where, M, `${Steps}.`>
          : Open extends `{${infer O}` ? Skip<R, O, Where, M, `${Steps}.`>
            : Open extends '' ? Outline<R, Where, M, `${Steps}.`> : Unread
      : Unread;

/** One more for each brace. */
type Opened<Z extends string, Open extends string> = Z extends `${string}{${infer R}` ? Opened<R, `{${Open}`> : Open;

/** The first of braces and marks. */
type SkipMark<S extends string, Open extends string, Where extends string, M extends AnyMemory, Steps extends string> =
  FirstMark<S> extends [infer A extends string, infer Mark, infer R extends string]
    ? Level<A, Open, ''> extends infer O extends string
      ? Mark extends If ? Skip<R, `#${O}`, Where, M, `${Steps}.`>
        : O extends `#${infer Q}` ? Skip<R, Mark extends Else ? O : Q, Where, M, `${Steps}.`> : Unread
      : Unread
    : Unread;

/** What is open after a piece without marks; Unread where it closes what was opened outside of its directive, or the body. */
type Level<A extends string, Open extends string, Steps extends string> =
  Steps extends Full ? Unread
    : A extends `${infer X}}${infer R}`
      ? X extends `${string}{${infer Y}` ? Level<R, Opened<Y, Open>, `${Steps}.`> : Open extends `{${infer O}` ? Level<R, O, `${Steps}.`> : Unread
      : A extends `${string}{${infer Y}` ? Opened<Y, `{${Open}`> : Open;

type RunOutline<P, Pauses extends string> =
  P extends Paused<'outline', infer S extends string, infer Where extends string, infer M extends AnyMemory>
    ? Pauses extends Longest ? Unread : RunOutline<Outline<S, Where, M, ''>, `${Pauses}.`>
    : P extends Paused<'skip', infer S extends string, [infer Open extends string, infer Where extends string], infer M extends AnyMemory>
      ? Pauses extends Longest ? Unread : RunOutline<Skip<S, Open, Where, M, ''>, `${Pauses}.`>
      : P;

// A kernel's head --------------------------------------------------------------------------------------------------

/** A kernel: its name, and its parameter list where that can be taken at its word. */
export type KernelEntry = [name: string, list: string | undefined];

type WithKernel<Before extends string, Sig extends string, Where extends string, M extends AnyMemory> =
  `${Before}${Sig}` extends WithMark ? WithFlag<M, 'open'>
    : KernelOf<Sig, Where> extends infer K
      ? K extends KernelEntry ? Memory<M['kernels'] | K, M['types'], M['doubtful'], M['flags']> : WithFlag<M, 'open'>
      : never;

/** From behind `__global__`: what attributes take in parentheses is passed over. */
type KernelOf<Sig extends string, Where extends string> =
  Sig extends `${infer A}(${infer B}`
    ? ` ${OneLine<A>}` extends `${infer W} __${infer _}__`
      ? B extends `${infer Args})${infer B2}` ? Args extends `${string}(${string}` ? Unread : KernelOf<`${W} ${B2}`, Where> : Unread
      : OneLine<A> extends `void ${infer Name}`
        ? Name extends NotWord ? Unread
          : B extends `${infer List})${infer T}`
            ? [Name, List extends `${string}(${string}` ? undefined : T extends WithInk ? undefined : Where extends Conditional | InNamespace ? undefined : List]
            : Unread
        : Unread
    : Unread;

// Blanks -----------------------------------------------------------------------------------------------------------

type Blank = ' ' | '\n' | '\t' | '\r';
type Letter = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h' | 'i' | 'j' | 'k' | 'l' | 'm' | 'n' | 'o' | 'p' | 'q' | 'r' | 's' | 't' | 'u' | 'v' | 'w' | 'x' | 'y' | 'z';
/** More than blanks. A look for each character, since a text may have more blanks than a type can call itself. */
type WithInk =
  `${string}${Letter | Uppercase<Letter> | '_' | '0' | '1' | '2' | '3' | '4' | '5' | '6' | '7' | '8' | '9' | '"' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ':' | '=' | '*' | '&' | '~' | '@' | '+' | '-' | '.'}${string}`;

/** Without blanks at the ends, but for those of a text that has hundreds. */
export type Trim<S extends string, Steps extends string = ''> =
  Steps extends Full ? S
    : S extends `${Blank}${infer R}` ? Trim<R, `${Steps}.`> : S extends `${infer R}${Blank}` ? Trim<R, `${Steps}.`> : S;

/** One blank where there were any, none at the ends. A text of too many stays as it is. */
export type OneLine<S extends string> = S extends `${string}${'\n' | '\t' | '\r' | '  '}${string}` ? Trim<Single<S, ''>> : Trim<S>;

type Single<S extends string, Steps extends string> =
  Steps extends Full ? S
    : S extends `${infer A}\n${infer R}` ? Single<`${A} ${R}`, `${Steps}.`>
      : S extends `${infer A}        ${infer R}` ? Single<`${A} ${R}`, `${Steps}.`>
        : S extends `${infer A}  ${infer R}` ? Single<`${A} ${R}`, `${Steps}.`>
          : S extends `${infer A}\t${infer R}` ? Single<`${A} ${R}`, `${Steps}.`>
            : S extends `${infer A}\r${infer R}` ? Single<`${A} ${R}`, `${Steps}.`> : S;

// All of it --------------------------------------------------------------------------------------------------------

/** What a source's text says. */
export type OutlineOf<S extends string> =
  S extends Reserved ? Unread
    : (S extends `${string}\\\n${string}` ? Spliced<S, '', ''> : S) extends infer T
      ? T extends string ? AfterBare<RunBare<Bare<`${T}\n`, '', ''>, ''>> : Unread
      : never;

type AfterBare<T> = T extends string ? AfterDirectives<RunDirectives<Directives<`${T}\n`, '', never, ''>, ''>> : Unread;

type AfterDirectives<D> =
  D extends { readonly text: infer T extends string; readonly flags: infer F } ? RunOutline<Outline<T, '', Memory<never, '', '', F>, ''>, ''> : Unread;
