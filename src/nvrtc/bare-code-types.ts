// The first phases of an outline: lines that are continued, comments and literals.
import type { Full, Longest, Paused, Unread } from './outline-notes.js';

export type Spliced<
  S extends string,
  Out extends string,
  Steps extends string,
> = Steps extends `${Full}${Full}${Full}`
  ? Unread
  : S extends `${infer A}\\\n${infer R}`
    ? Spliced<R, `${Out}${A}`, `${Steps}.`>
    : `${Out}${S}`;

type Quote = `${string}"${string}` | `${string}'${string}`;
type NotCode = `${string}"${string}` | `${string}'${string}` | `${string}/*${string}`;

/**
 * The text without comments, strings as `""` but for "C", characters as 0. Raw newlines in literals
 * are taken.
 */
export type Bare<S extends string, Out extends string, Steps extends string> = Steps extends Full
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

export type RunBare<P, Pauses extends string> =
  P extends Paused<'bare', infer S extends string, infer Out extends string>
    ? Pauses extends Longest
      ? Unread
      : RunBare<Bare<S, Out, ''>, `${Pauses}.`>
    : P extends Paused<'string', infer S extends string, infer Out extends string>
      ? Pauses extends Longest
        ? Unread
        : RunBare<BareString<S, Out, ''>, `${Pauses}.`>
      : P;
