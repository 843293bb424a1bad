// Cuts PTX text into tokens. Dotted words (`.u32`, `.shared::cta`, `.2d`) are one token each, because the
// grammar never needs the dot alone.

import type { SourceText } from '../error.js';

export const TOKEN = { end: 0, word: 1, dotted: 2, number: 3, string: 4, punctuation: 5 } as const;
export type TokenKind = (typeof TOKEN)[keyof typeof TOKEN];

export interface Tokens {
  readonly kinds: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly count: number;
}

// One alternative per token kind, in order of frequency. A number keeps its suffix, so that `0f3F800000`
// is one token and `12abc` is an error rather than two tokens.
const TOKEN_PATTERN = new RegExp([
  String.raw`([A-Za-z_$%][\w$]*)`,
  String.raw`(\.[\w$]+(?:::[\w$]+)*)`,
  String.raw`(0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?\b|0[bB][01]+U?\b|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+\b|\d+U?\b)`,
  String.raw`("(?:[^"\\\n]|\\.)*")`,
  String.raw`(<<|>>|[<>=!]=|&&|\|\||[][(){},;:<>+\-*/%=!&|^~?@])`,
].join('|').replace('[][', String.raw`[\]\[`), 'y');

const SPACE_PATTERN = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/|@@DWARF[^\n]*)+/y;

export function tokenize(source: SourceText): Tokens {
  const { text } = source;
  let capacity = Math.max(64, text.length >> 2);
  let kinds = new Uint8Array(capacity);
  let starts = new Int32Array(capacity);
  let ends = new Int32Array(capacity);
  let count = 0;
  let at = 0;
  for (;;) {
    SPACE_PATTERN.lastIndex = at;
    if (SPACE_PATTERN.test(text)) at = SPACE_PATTERN.lastIndex;
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
    TOKEN_PATTERN.lastIndex = at;
    const match = TOKEN_PATTERN.exec(text);
    if (!match) {
      if (text.startsWith('/*', at)) throw source.error('syntax', 'comment is not closed', at);
      if (text[at] === '"') throw source.error('syntax', 'string is not closed', at);
      if (/\d/.test(text[at]!)) throw source.error('syntax', `malformed number '${/[\w$.]+/.exec(text.slice(at, at + 40))![0]}'`, at);
      // A PTX image is often a C string: its terminating NUL is the end of the text.
      if (text.charCodeAt(at) === 0) break;
      throw source.error('syntax', `unexpected character ${JSON.stringify(text[at])}`, at);
    }
    kinds[count] = match[1] !== undefined ? TOKEN.word : match[2] !== undefined ? TOKEN.dotted
      : match[3] !== undefined ? TOKEN.number : match[4] !== undefined ? TOKEN.string : TOKEN.punctuation;
    starts[count] = at;
    at = TOKEN_PATTERN.lastIndex;
    ends[count++] = at;
  }
  kinds[count] = TOKEN.end;
  starts[count] = ends[count] = at;
  return { kinds, starts, ends, count };
}
