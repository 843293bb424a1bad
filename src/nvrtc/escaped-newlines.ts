/**
 * In a template literal of TypeScript `\n` is a newline, so that `printf("%d\n", i)` reaches the
 * compiler as a string on two lines, which is not valid C++. `String.raw` would keep the backslash,
 * but erases the literal's type, and with it the types of the kernels. So newlines in strings and
 * characters are escaped again before the text is compiled.
 */
import { sourceTokens } from './source-tokens.js';

/**
 * Returns the text with `\n` for newlines in strings and characters, except in raw strings, where
 * newlines are allowed. Comments and lines that end with a backslash stay unchanged.
 */
export function withEscapedNewlines(source: string): string {
  let out = '';
  let done = 0;
  for (const { kind, text, at, end } of sourceTokens(source)) {
    const isLiteral = (kind === 'string' && !/^(?:u8|u|U|L)?R"/.test(text)) || kind === 'character';
    const escaped = isLiteral
      ? escape(text)
      : kind === 'directive'
        ? inDirective(source.slice(at, end))
        : undefined;
    if (escaped === undefined) continue;
    out += source.slice(done, at) + escaped;
    done = end;
  }
  return out + source.slice(done);
}

/** Escapes newlines. A backslash before a newline continues the line and stays. */
function escape(literal: string): string {
  return literal.replace(/\\\r?\n|\\[\s\S]|\r?\n/g, (found) =>
    found.startsWith('\\') ? found : found === '\n' ? '\\n' : '\\r\\n',
  );
}

/** Escapes newlines in the strings of a macro's body. */
function inDirective(text: string): string | undefined {
  if (!/^#\s*define\b/.test(text) || !text.includes('\n')) return undefined;
  return `#${withEscapedNewlines(text.slice(1))}`;
}
