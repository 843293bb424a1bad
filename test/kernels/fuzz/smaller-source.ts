/** Reduces a kernel's text to what a failure needs. */

const without = (lines: readonly string[], from: number, to: number): string[] =>
  lines.filter((_, at) => at < from || at > to);

/**
 * Lines that can be removed together: a statement, or all from a brace to the one that ends it, or
 * only the two lines of braces.
 */
function* withoutLines(lines: readonly string[]): Generator<string[]> {
  for (let at = lines.length - 2; at > 0; at--) {
    const line = lines[at]!;
    if (line === '') continue;
    if (!line.includes('{') || line.includes('}')) {
      if (!line.startsWith('}')) yield without(lines, at, at);
      continue;
    }
    let end = at;
    for (let open = 1; open > 0 && end < lines.length - 1;) {
      end++;
      open += (lines[end]!.includes('{') ? 1 : 0) - (lines[end]!.startsWith('}') ? 1 : 0);
    }
    yield without(lines, at, end);
    yield [...lines.slice(0, at), ...lines.slice(at + 1, end), ...lines.slice(end + 1)];
  }
}

/**
 * One pair of parentheses at a time: in its place its contents before or after an operator, or a
 * number.
 */
function* withoutParentheses(text: string): Generator<string> {
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '(') open.push(at);
    if (text[at] !== ')') continue;
    const start = open.pop();
    if (start === undefined) return;
    const inner = text.slice(start + 1, at);
    const callee = /[\w.]*$/.exec(text.slice(0, start))![0];
    if (['for', 'while', 'if', 'switch'].includes(callee)) continue;
    // The counter of a loop stays as it is: an endless loop shows nothing.
    if (
      /^(\w+: )?for |while /.test(
        text.slice(text.lastIndexOf('\n', start) + 1, text.indexOf('\n', start)),
      )
    )
      continue;
    const before = text.slice(0, start - callee.length);
    const after = text.slice(at + 1);
    for (const by of ['1', `(${inner})`, ...parts(inner).map((part) => `(${part})`)]) {
      if (by.length < callee.length + inner.length + 2) yield before + by + after;
    }
  }
}

/** The parts between operators and commas outside of parentheses. */
function parts(text: string): string[] {
  const found = [''];
  let depth = 0;
  for (const character of text) {
    if ('([{'.includes(character)) depth++;
    if (')]}'.includes(character)) depth--;
    if (depth === 0 && ' ,'.includes(character)) found.push('');
    else found[found.length - 1] += character;
  }
  return found.length < 2 ? [] : found.filter((part) => /[\w)]/.test(part));
}

/** The smallest text found that still `fails`, after at most `attempts`. */
export async function smallerSource(
  text: string,
  fails: (text: string) => Promise<boolean>,
  attempts = 600,
): Promise<string> {
  let best = text;
  let left = attempts;
  for (let again = true; again && left > 0;) {
    again = false;
    for (const candidates of [
      () => [...withoutLines(best.split('\n'))].map((lines) => lines.join('\n')),
      () => [...withoutParentheses(best)],
    ]) {
      for (let next = candidates(), at = 0; at < next.length && left > 0; at++) {
        const candidate = next[at]!;
        if (candidate.length >= best.length) continue;
        left--;
        if (!(await fails(candidate))) continue;
        best = candidate;
        again = true;
        next = candidates();
        at = Math.max(-1, at - 2);
      }
    }
  }
  return best;
}
