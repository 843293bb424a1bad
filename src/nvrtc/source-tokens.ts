/** CUDA C++ as tokens, without comments and blanks. */

export interface SourceToken {
  readonly kind: 'word' | 'number' | 'string' | 'character' | 'sign' | 'directive' | 'other';
  /** The text in the source; for a directive without comments and line continuations. */
  readonly text: string;
  /** The indices of its beginning and its end. */
  readonly at: number;
  readonly end: number;
}

const BLANK = /\s+|\/\/(?:\\\r?\n|[^\n])*|\/\*[\s\S]*?\*\//y;
const WORD = /[A-Za-z_$][\w$]*/y;
const NUMBER = /\.?\d(?:[eEpP][+-]|'[\w]|[\w.])*/y;
/** Quotes with the prefix of their kind; R before a string makes it raw. */
const PREFIX = /(?:u8|u|U|L)?(R?)(["'])/y;
const RAW = /"([^ ()\\\t\v\f\n"]{0,16})\(/y;
const SIGN = /->\*?|\+\+|--|<<=?|>>=?|<=>|[<>=!+\-*/%&|^]=|&&|\|\||::|\.\.\.|##?|[^\s\w]/y;

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/**
 * Returns the end of the literal that begins at a quote. A newline in it was written as \n in a
 * template literal.
 */
function endOfLiteral(text: string, at: number, quote: string): number | undefined {
  // A character literal is short; an apostrophe without a second one soon after it, as in text that
  // is skipped, is no literal.
  const last = quote === "'" ? Math.min(text.length, at + 12) : text.length;
  for (let i = at + 1; i < last; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === quote) return i + 1;
  }
  return undefined;
}

/** Returns a directive's end: that of its line, past comments and continued lines. */
function endOfDirective(text: string, at: number): number {
  let i = at;
  // The text after #error is not C++.
  const isText = /^#\s*(?:error|warning)\b/.test(text.slice(at, at + 40));
  while (i < text.length && text[i] !== '\n') {
    if (text[i] === '\\' && (text[i + 1] === '\n' || text.startsWith('\r\n', i + 1)))
      i += text[i + 1] === '\n' ? 2 : 3;
    else if (text.startsWith('/*', i)) {
      const end = text.indexOf('*/', i + 2);
      i = end < 0 ? text.length : end + 2;
    } else if (text.startsWith('//', i)) i += match(BLANK, text, i)!.length;
    else if (!isText && (text[i] === '"' || text[i] === "'"))
      i = endOfLiteral(text, i, text[i]!) ?? i + 1;
    else i++;
  }
  return i;
}

/**
 * Returns the tokens of a text. A character that begins no token, as an unmatched quote, has the
 * kind `other`.
 */
export function sourceTokens(text: string): SourceToken[] {
  const tokens: SourceToken[] = [];
  let lineHasToken = false;
  for (let at = 0; at < text.length;) {
    const blank = match(BLANK, text, at);
    if (blank !== undefined) {
      if (blank.includes('\n') && !blank.startsWith('/*')) lineHasToken = false;
      at += blank.length;
      continue;
    }
    if (text[at] === '\\' && /^\\\r?\n/.test(text.slice(at, at + 3))) {
      at += text[at + 1] === '\n' ? 2 : 3;
      continue;
    }
    const token: SourceToken =
      text[at] === '#' && !lineHasToken ? directiveAt(text, at) : tokenAt(text, at);
    lineHasToken = token.kind !== 'directive';
    tokens.push(token);
    at = token.end;
  }
  return tokens;
}

function directiveAt(text: string, at: number): SourceToken {
  const end = endOfDirective(text, at);
  const plain = text
    .slice(at, end)
    .replace(/\\\r?\n/g, '')
    .replace(/\/\*[\s\S]*?\*\//g, ' ');
  return { kind: 'directive', text: plain, at, end };
}

function tokenAt(text: string, at: number): SourceToken {
  const number = match(NUMBER, text, at);
  if (number !== undefined) return { kind: 'number', text: number, at, end: at + number.length };
  const prefix = match(PREFIX, text, at);
  if (prefix !== undefined) {
    const open = at + prefix.length - 1;
    const isRaw = prefix.endsWith('R"');
    const end = isRaw ? endOfRaw(text, open) : endOfLiteral(text, open, text[open]!);
    if (end === undefined) return { kind: 'other', text: text[at]!, at, end: at + 1 };
    return {
      kind: text[open] === '"' ? 'string' : 'character',
      text: text.slice(at, end),
      at,
      end,
    };
  }
  const word = match(WORD, text, at);
  if (word !== undefined) return { kind: 'word', text: word, at, end: at + word.length };
  const sign = match(SIGN, text, at) ?? text[at]!;
  return { kind: 'sign', text: sign, at, end: at + sign.length };
}

function endOfRaw(text: string, open: number): number | undefined {
  const start = match(RAW, text, open);
  if (start === undefined) return undefined;
  const close = `)${start.slice(1, -1)}"`;
  const end = text.indexOf(close, open + start.length);
  return end < 0 ? undefined : end + close.length;
}
