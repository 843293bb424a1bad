// Blanks in texts.
import type { Full } from './outline-notes.js';

export type Blank = ' ' | '\n' | '\t' | '\r';
export type Letter =
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
export interface WithInk {
  readonly 0: `${string}${Ink}${string}`;
}
/** Those that come up all the time. */
export type UsualBlanks =
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
export type HasInk<S extends string> = S extends UsualBlanks
  ? false
  : [S] extends WithInk
    ? true
    : false;

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
