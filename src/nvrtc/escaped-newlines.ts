/**
 * In a template literal of TypeScript `\n` is a newline, so that `printf("%d\n", i)` reaches the
 * compiler as a string that goes over two lines, which C++ does not have. `String.raw` would keep
 * the backslash, but erases the literal's type, and with it the types of the kernels. So newlines
 * in strings and characters are escaped again before the text is compiled.
 */
import { sourceTokens } from './source-tokens.js';

/**
 * The text with `\n` for newlines in strings and characters, but for raw strings, where they are
 * what they seem. Comments and lines that end with a backslash stay.
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

/** A backslash in front of a newline continues the line; it stays. */
function escape(literal: string): string {
  return literal.replace(/\\\r?\n|\\[\s\S]|\r?\n/g, (found) =>
    found.startsWith('\\') ? found : found === '\n' ? '\\n' : '\\r\\n',
  );
}

/** Strings in a macro's body. */
function inDirective(text: string): string | undefined {
  if (!/^#\s*define\b/.test(text) || !text.includes('\n')) return undefined;
  return `#${withEscapedNewlines(text.slice(1))}`;
}
