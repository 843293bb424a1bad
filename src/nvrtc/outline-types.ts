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
import type { Bare, RunBare, Spliced } from './bare-code-types.js';
import type { Blank, HasInk, Letter, OneLine, Trim, UsualBlanks, WithInk } from './blank-types.js';
import type { Directives, Lost, Packing, RunDirectives } from './directive-types.js';
import type {
  Else,
  End,
  Entry,
  Full,
  If,
  Longest,
  Next,
  Notes,
  Paused,
  Reserved,
  Sign,
  Unread,
  WithMark,
} from './outline-notes.js';

type Conditional = `${string}#${string}`;
type InC = `${string}C${string}`;
type InNamespace = `${string}N${string}`;

type EndOrWord =
  ';' | '}' | '__global__' | 'struct' | 'union' | 'enum' | 'class' | 'namespace' | '"C"';
interface Noteworthy {
  readonly 0: WithMark | `${string}${EndOrWord}${string}`;
}
/** What a function's body does not have; it may end earlier than where it seems to. */
type WordsNotInBody =
  '__global__' | 'struct' | 'union' | 'enum' | 'class' | 'namespace' | 'typedef' | 'using' | '"C"';
interface NotInBody {
  readonly 0: `${string}${WordsNotInBody}${string}`;
}
/** The words before a kernel's name, as most kernels have them. */
type Head = 'extern "C" __global__ void';
type MarkOrBracket = WithMark | `${string}(${string}`;

/**
 * From one declaration to the next. A function's body ends at a line that begins with a brace;
 * where it does not, a brace is left over or missing at the end, and the source is left unread.
 */
type Outline<S extends string, M extends Notes, Steps extends string> = Steps extends Full
  ? Paused<'outline', S, M>
  : // A kernel as most are written, in one look and one check.
    S extends `${infer B}${Head} ${infer Name}(${infer L}) {\n${infer X}\n}${infer R}`
    ? B extends UsualBlanks
      ? [`${Name}${Next}${L}${Next}${X}`] extends NotUsual
        ? OutlineByHead<S, M, Steps>
        : M extends Entered | ''
          ? Outline<R, `${M}${Entry}(${Name}(${L}${End}`, `${Steps}.`>
          : OutlineByHead<S, M, Steps>
      : OutlineByHead<S, M, Steps>
    : OutlineByHead<S, M, Steps>;

/** A name, a list and a body of which one has what needs a closer look. */
interface NotUsual {
  readonly 0:
    | `${string}${' ' | '\n' | '\t' | ')' | '"'}${string}${Next}${string}${Next}${string}`
    | `${string}${Next}${string}${'(' | ')' | '{' | '}' | ';' | Sign}${string}${Next}${string}`
    // An empty body, whose end would be taken for its beginning.
    | `${string}${Next}${string}${Next}}${string}`
    | `${string}${Next}${string}${Next}${string}${WordsNotInBody}${string}`;
}

/** As {@link Outline}, from the text before the first brace. */
type OutlineByHead<
  S extends string,
  M extends Notes,
  Steps extends string,
> = S extends `${infer H}{${infer R}`
  ? [H] extends Noteworthy
    ? H extends `${infer B}${Head} ${infer Name}(${infer L})${infer T}`
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
> = H extends `${infer B}${Head} __${infer _}__(${infer Args})${infer G}(${infer L})${infer T}`
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
export type Body<
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

/** The text before the first brace. */
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
              ? Outline<R2, `${M}${AliasedNotes<Trim<Alias>, Trim<Tag>, Body>}`, `${Steps}.`>
              : Unread
          : DoubtfulType<H, R, M, Steps>
        : Outline<After, `${M}${StructureNote<Trim<Tag>, Body>}`, `${Steps}.`>
  : Unread;

type AliasedNotes<
  Alias extends string,
  Tag extends string,
  Body extends string,
> = `${StructureNote<Alias, Body>}${Tag extends Alias ? '' : StructureNote<Tag, Body>}`;

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
export type Level<A extends string, Open extends string, Steps extends string> = Steps extends Full
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
// -------------------------------------------------------------------------------------------------

/**
 * The declaration around `__global__`, which is noted where it is a kernel with a name of its own.
 */
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

/** The text after `__global__`, without the parentheses of attributes. */
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
