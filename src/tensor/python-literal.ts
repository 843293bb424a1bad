/**
 * A parser of Python literals, which the headers of `.npy` files are: dictionaries, tuples, lists,
 * strings, whole numbers, `True`, `False` and `None`. Nothing is evaluated.
 */

/** A literal in JavaScript: tuples and lists are arrays, dictionaries are maps from strings. */
export type Literal =
  string | number | boolean | null | readonly Literal[] | ReadonlyMap<string, Literal>;

/** An error with the position at which a text is no literal. */
export class LiteralError extends Error {
  readonly position: number;
  constructor(message: string, position: number) {
    super(message);
    this.position = position;
  }
}

/** Brackets in brackets. Headers have fewer, and the recursion stays far from the stack's limit. */
const DEEPEST = 32;

const NAMES: ReadonlyMap<string, Literal> = new Map([
  ['True', true],
  ['False', false],
  ['None', null],
]);
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['n', '\n'],
  ['t', '\t'],
  ['r', '\r'],
]);

/**
 * Parses a text that is one literal, with white space around it.
 *
 * @throws LiteralError
 */
export function parseLiteral(text: string): Literal {
  let at = 0;

  const skip = (): void => {
    while (/\s/.test(text[at] ?? '')) at++;
  };
  const found = (): string => (at < text.length ? `'${text[at]}'` : 'the end');
  const take = (expected: string): void => {
    skip();
    if (text[at] !== expected)
      throw new LiteralError(`expected '${expected}', found ${found()}`, at);
    at++;
  };
  /**
   * Parses items up to the closing bracket. Commas separate them, and one may follow the last item:
   * whether it does is the result.
   */
  const list = (close: string, item: () => void): boolean => {
    let comma = false;
    for (;;) {
      skip();
      if (text[at] === close) {
        at++;
        return comma;
      }
      item();
      skip();
      comma = text[at] === ',';
      if (comma) at++;
      else if (text[at] !== close)
        throw new LiteralError(`expected ',' or '${close}', found ${found()}`, at);
    }
  };
  const quoted = (): string => {
    const quote = text[at++];
    let value = '';
    for (; text[at] !== quote; at++) {
      if (at >= text.length) throw new LiteralError('a string that does not end', at);
      if (text[at] !== '\\') value += text[at];
      else {
        const escape = ESCAPES.get(text[++at] ?? '');
        if (escape === undefined)
          throw new LiteralError(
            `an escape that strings here do not have: '\\${text[at] ?? ''}'`,
            at,
          );
        value += escape;
      }
    }
    at++;
    return value;
  };
  const value = (depth: number): Literal => {
    skip();
    if (depth > DEEPEST) throw new LiteralError(`brackets ${DEEPEST} deep`, at);
    const begin = at;
    const first = text[at];
    if (first === "'" || first === '"') return quoted();
    // Python 2 wrote u'…' and 3L.
    if ((first === 'u' || first === 'b') && (text[at + 1] === "'" || text[at + 1] === '"')) {
      at++;
      return quoted();
    }
    if (first === '(' || first === '[') {
      at++;
      const items: Literal[] = [];
      const comma = list(first === '(' ? ')' : ']', () => items.push(value(depth + 1)));
      return first === '(' && items.length === 1 && !comma ? items[0]! : items;
    }
    if (first === '{') {
      at++;
      const entries = new Map<string, Literal>();
      list('}', () => {
        const keyAt = at;
        const key = value(depth + 1);
        if (typeof key !== 'string') throw new LiteralError('a key that is no string', keyAt);
        if (entries.has(key)) throw new LiteralError(`the key '${key}' twice`, keyAt);
        take(':');
        entries.set(key, value(depth + 1));
      });
      return entries;
    }
    const [word = ''] = /^[+-]?\w*/.exec(text.slice(at, at + 40)) ?? [];
    const name = NAMES.get(word);
    if (name !== undefined) {
      at += word.length;
      return name;
    }
    const number = /^[+-]?\d+L?$/.test(word) ? Number.parseInt(word, 10) : NaN;
    if (!Number.isSafeInteger(number))
      throw new LiteralError(
        `expected a value, found ${word === '' ? found() : `'${word}'`}`,
        begin,
      );
    at += word.length;
    return number;
  };

  const result = value(0);
  skip();
  if (at < text.length) throw new LiteralError(`expected the end, found ${found()}`, at);
  return result;
}
