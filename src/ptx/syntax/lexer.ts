// Cuts PTX text into tokens. Dotted words (`.u32`, `.shared::cta`, `.2d`) are one token each,
// because the grammar never needs the dot alone.

import type { SourceText } from '../error.js';

export const TOKEN = { end: 0, word: 1, dotted: 2, number: 3, string: 4, punctuation: 5 } as const;
export type TokenKind = (typeof TOKEN)[keyof typeof TOKEN];

export interface Tokens {
  readonly kinds: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly count: number;
}

const either = (...parts: readonly RegExp[]): string => parts.map(({ source }) => source).join('|');

// Tokens other than plain runs of characters. A number keeps its suffix, so that `0f3F800000` is
// one token, and `12abc` is an error rather than two tokens.
const NUMBER = new RegExp(
  either(
    /0[fF][0-9a-fA-F]{8}\b/,
    /0[dD][0-9a-fA-F]{16}\b/,
    /0[xX][0-9a-fA-F]+U?\b/,
    /0[bB][01]+U?\b/,
    /\d+\.\d*(?:[eE][+-]?\d+)?/,
    /\d+[eE][+-]?\d+\b/,
    /\d+U?\b/,
  ),
  'y',
);
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
// Lines of a preprocessor, such as `# 12 "a.cu"`, are skipped.
const SPACE = new RegExp(
  `(?:${either(
    /\s+/,
    /\/\/[^\n]*/,
    /\/\*[^]*?\*\//,
    /@@DWARF[^\n]*/,
    /#(?:line)?[ \t]*\d+[ \t]+"[^"\n]*"[ \t\d]*\r?$/,
  )})+`,
  'my',
);

// Character classes; characters beyond ASCII are in none of them.
const START = 1;
const DIGIT = 2;
/** A character within a word. */
const WORD = 32;
const BLANK = 4;
const PUNCTUATION = 8;
/** Punctuation that may have a second character. */
const DOUBLE = 16;
const classes = new Uint8Array(128);
for (let code = 0; code < 128; code++) {
  const char = String.fromCharCode(code);
  if (/[A-Za-z_$%]/.test(char)) classes[code]! |= START;
  if (/\d/.test(char)) classes[code]! |= DIGIT;
  if (/[\w$]/.test(char)) classes[code]! |= WORD;
  if (/\s/.test(char)) classes[code]! |= BLANK;
  if (/[\]\[(){},;:<>+\-*/%=!&|^~?@]/.test(char)) classes[code]! |= PUNCTUATION;
  if (/[<>=!&|]/.test(char)) classes[code]! |= DOUBLE;
}
const PERCENT = 37;
const DOT = 46;
const HASH = 35;
const SLASH = 47;
const COLON = 58;
const AT = 64;
const QUOTE = 34;
const classAt = (text: string, at: number): number => classes[text.charCodeAt(at)] ?? 0;

/** The end of the run of letters, digits, `_` and `$` that begins at `at`. */
function wordEnd(text: string, at: number): number {
  while (classes[text.charCodeAt(at)]! & WORD) at++;
  return at;
}

function match(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

/** A fast path: most numbers are a few digits. */
function numberEnd(text: string, at: number): number {
  let end = at + 1;
  while (classes[text.charCodeAt(end)]! & DIGIT) end++;
  const next = text.charCodeAt(end);
  return classes[next]! & WORD || next === DOT ? match(NUMBER, text, at) : end;
}

function dottedEnd(text: string, at: number): number {
  let end = wordEnd(text, at + 1);
  if (end === at + 1) return at;
  while (text.charCodeAt(end) === COLON && text.charCodeAt(end + 1) === COLON) {
    const more = wordEnd(text, end + 2);
    if (more === end + 2) break;
    end = more;
  }
  return end;
}

function punctuationEnd(text: string, at: number): number {
  if (classAt(text, at) & DOUBLE) {
    const two = text.slice(at, at + 2);
    if (
      two === '<<' ||
      two === '>>' ||
      two === '&&' ||
      two === '||' ||
      two === '<=' ||
      two === '>=' ||
      two === '==' ||
      two === '!='
    )
      return at + 2;
  }
  return at + 1;
}

export function tokenize(source: SourceText): Tokens {
  const { text } = source;
  let capacity = Math.max(64, text.length >> 2);
  let kinds = new Uint8Array(capacity);
  let starts = new Int32Array(capacity);
  let ends = new Int32Array(capacity);
  let count = 0;
  let at = 0;
  for (;;) {
    let first = text.charCodeAt(at);
    while (classes[first]! & BLANK) first = text.charCodeAt(++at);
    if (first === SLASH || first === AT || first === HASH || first > 127) {
      at = match(SPACE, text, at);
      first = text.charCodeAt(at);
    }
    if (count === capacity) {
      capacity *= 2;
      const moreKinds = new Uint8Array(capacity);
      moreKinds.set(kinds);
      kinds = moreKinds;
      const moreStarts = new Int32Array(capacity);
      moreStarts.set(starts);
      starts = moreStarts;
      const moreEnds = new Int32Array(capacity);
      moreEnds.set(ends);
      ends = moreEnds;
    }
    if (at >= text.length) break;
    if (first === SLASH && text.startsWith('/*', at))
      throw source.error('syntax', 'comment is not closed', at);
    const kind = classes[first] ?? 0;
    let end = at;
    if (kind & START) {
      kinds[count] = TOKEN.word;
      end = wordEnd(text, at + 1);
      // A lone % is the remainder's operator.
      if (end === at + 1 && first === PERCENT) kinds[count] = TOKEN.punctuation;
    } else if (first === DOT) {
      kinds[count] = TOKEN.dotted;
      end = dottedEnd(text, at);
    } else if (kind & PUNCTUATION) {
      kinds[count] = TOKEN.punctuation;
      end = punctuationEnd(text, at);
    } else if (kind & DIGIT) {
      kinds[count] = TOKEN.number;
      end = numberEnd(text, at);
    } else if (first === QUOTE) {
      kinds[count] = TOKEN.string;
      end = match(STRING, text, at);
    }
    if (end === at) {
      if (text[at] === '"') throw source.error('syntax', 'string is not closed', at);
      if (/\d/.test(text[at]!))
        throw source.error(
          'syntax',
          `malformed number '${/[\w$.]+/.exec(text.slice(at, at + 40))![0]}'`,
          at,
        );
      // A PTX image is often a C string: its terminating NUL is the end of the text.
      if (text.charCodeAt(at) === 0) break;
      throw source.error('syntax', `unexpected character ${JSON.stringify(text[at])}`, at);
    }
    starts[count] = at;
    at = end;
    ends[count++] = at;
  }
  kinds[count] = TOKEN.end;
  starts[count] = ends[count] = at;
  return { kinds, starts, ends, count };
}
