/** One line of code with carets under a part of it. */

/** Characters of the line that are shown: a minifier's output is one line. */
const WIDTH = 120;

/**
 * Gives the frame. `line` and `column` count from 1; `length` is that of the marked part, which may
 * extend beyond the line.
 */
export function codeFrame(code: string, line: number, column: number, length: number): string {
  const at = Math.min(column - 1, code.length);
  const indent = code.length - code.trimStart().length;
  let from = Math.min(indent, at);
  if (code.length - from > WIDTH) from = Math.max(from, at - WIDTH / 4);
  const shown = code.slice(from, from + WIDTH);
  const before = from > indent ? '… ' : '';
  const after = from + WIDTH < code.trimEnd().length ? ' …' : '';
  const number = `${line}`;
  // Tabs stay, so that the carets align with the code.
  const gap = before.replace(/./g, ' ') + code.slice(from, at).replace(/[^\t]/g, ' ');
  const carets = '^'.repeat(Math.max(1, Math.min(length, from + shown.trimEnd().length - at)));
  return (
    `  ${number} | ${before}${shown.trimEnd()}${after}\n  ${' '.repeat(number.length)} | ` +
    `${gap}${carets}`
  );
}
