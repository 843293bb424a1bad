// A cursor over tokens with the look-ahead and the errors that both parts of the parser share, and
// the grammar of the constant expressions that PTX allows in place of a number.

import type { PtxErrorCode, SourceText } from '../error.js';
import { binaryConstant, float64, integer, integerLiteral, unaryConstant } from './constants.js';
import type { Constant } from './constants.js';
import { TOKEN, tokenize } from './lexer.js';
import type { TokenKind, Tokens } from './lexer.js';

const BINARY_PRECEDENCE: Record<string, number> = {
  '||': 1,
  '&&': 2,
  '|': 3,
  '^': 4,
  '&': 5,
  '==': 6,
  '!=': 6,
  '<': 7,
  '>': 7,
  '<=': 7,
  '>=': 7,
  '<<': 8,
  '>>': 8,
  '+': 9,
  '-': 9,
  '*': 10,
  '/': 10,
  '%': 10,
};
const PREFIXES = ['-', '+', '~', '!'];
const DEEPEST_NESTING = 200;
const RECENT = 4096;
const COMMA = 44;
const SEMICOLON = 59;
const BRACKET = 93;

/**
 * Returns the same text as an internalised string, which engines compare by address with literals:
 * the steps after this compare mnemonics and modifiers with many.
 */
function interned(text: string): string {
  return Object.keys({ [text]: 0 })[0]!;
}

export class TokenReader {
  /** True if an operand was an element of an array; see array-elements.ts. */
  hasElements = false;
  readonly source: SourceText;
  private readonly tokens: Tokens;
  private index = 0;
  private nesting = 0;
  /**
   * Words and forms that were read before: a large module repeats a few of them often, and
   * allocation takes most of the time.
   */
  private readonly words = new Map<string, string>();
  private readonly recent = new Array<string | undefined>(RECENT).fill(undefined);
  private readonly forms = new Map<string, { mnemonic: string; modifiers: string[] }>();

  constructor(source: SourceText) {
    this.source = source;
    this.tokens = tokenize(source);
  }

  get kind(): TokenKind {
    return this.tokens.kinds[this.index] as TokenKind;
  }

  get text(): string {
    return this.textAt(0);
  }

  get at(): number {
    return this.tokens.starts[this.index]!;
  }

  /** The end of the token before the cursor. */
  get previousEnd(): number {
    return this.index ? this.tokens.ends[this.index - 1]! : 0;
  }

  textAt(ahead: number): string {
    const index = Math.min(this.index + ahead, this.tokens.count);
    return this.source.text.slice(this.tokens.starts[index], this.tokens.ends[index]);
  }

  kindAt(ahead: number): TokenKind {
    return this.tokens.kinds[Math.min(this.index + ahead, this.tokens.count)] as TokenKind;
  }

  advance(): void {
    if (this.index < this.tokens.count) this.index++;
  }

  error(message: string, at = this.at, code: PtxErrorCode = 'syntax'): Error {
    return this.source.error(code, message, at);
  }

  unexpected(wanted: string): Error {
    const found = this.kind === TOKEN.end ? 'the end of the text' : `'${this.text}'`;
    return this.error(`expected ${wanted}, found ${found}`);
  }

  /** Whether the token at the cursor, or `ahead` tokens further on, is that text. */
  is(text: string, ahead = 0): boolean {
    const start = this.tokens.starts[this.index + ahead]!;
    if (this.tokens.ends[this.index + ahead]! - start !== text.length) return false;
    return text.length === 1
      ? this.source.text.charCodeAt(start) === text.charCodeAt(0)
      : this.source.text.startsWith(text, start);
  }

  /**
   * Whether the token at the cursor, or `ahead` tokens further on, ends an operand, as usually
   * after a name or a number.
   */
  isEndOfOperand(ahead: number): boolean {
    const index = this.index + ahead;
    if (this.tokens.kinds[index] !== TOKEN.punctuation) return false;
    const code = this.source.text.charCodeAt(this.tokens.starts[index]!);
    return code === COMMA || code === SEMICOLON || code === BRACKET;
  }

  accept(text: string): boolean {
    if (!this.is(text)) return false;
    this.index++;
    return true;
  }

  expect(text: string): void {
    if (!this.accept(text)) throw this.unexpected(`'${text}'`);
  }

  word(wanted: string): string {
    if (this.kind !== TOKEN.word) throw this.unexpected(wanted);
    const { text: all } = this.source;
    const { index } = this;
    const start = this.tokens.starts[index]!;
    const end = this.tokens.ends[index]!;
    this.index++;
    // The numbers of registers are at the end of a word. The last word read with the same sum is
    // usually the same one, and is compared in place.
    const sum =
      (all.charCodeAt(end - 1) +
        10 * all.charCodeAt(end - 2) +
        100 * all.charCodeAt(end - 3) +
        1000 * all.charCodeAt(start + 1) +
        (end - start)) &
      (RECENT - 1);
    const recent = this.recent[sum];
    if (recent?.length === end - start && all.startsWith(recent, start)) return recent;
    const text = all.slice(start, end);
    let known = this.words.get(text);
    if (known === undefined) this.words.set(text, (known = text));
    this.recent[sum] = known;
    return known;
  }

  /** A mnemonic with its modifiers; equal texts give the same object. */
  form(wanted: string): { mnemonic: string; modifiers: string[] } {
    if (this.kind !== TOKEN.word) throw this.unexpected(wanted);
    const { kinds, starts, ends } = this.tokens;
    const first = this.index++;
    while (kinds[this.index] === TOKEN.dotted) this.index++;
    const text = this.source.text.slice(starts[first], ends[this.index - 1]);
    let form = this.forms.get(text);
    if (!form) {
      const modifiers: string[] = [];
      for (let at = first + 1; at < this.index; at++)
        modifiers.push(interned(this.source.text.slice(starts[at]! + 1, ends[at])));
      form = { mnemonic: interned(this.source.text.slice(starts[first], ends[first])), modifiers };
      this.forms.set(text, form);
    }
    return form;
  }

  /** A dotted word without its dot. */
  dotted(wanted: string): string {
    if (this.kind !== TOKEN.dotted) throw this.unexpected(wanted);
    const text = this.text.slice(1);
    this.index++;
    return text;
  }

  nested<T>(read: () => T): T {
    if (++this.nesting > DEEPEST_NESTING) throw this.error('nested too deeply');
    const result = read();
    this.nesting--;
    return result;
  }

  /** A non-negative integer that fits a JavaScript number. */
  count(wanted: string): number {
    const at = this.at;
    const constant = this.constant();
    if (constant.kind !== 'integer' || constant.value < 0n || constant.value > 0xffffffffn) {
      throw this.error(`expected ${wanted}`, at);
    }
    return Number(constant.value);
  }

  /** The number in `%r<100>`, after `<` has been read, and the `>` after it. */
  countOfNames(most: number, what: string): number {
    const { at, text } = this;
    if (this.kind !== TOKEN.number) throw this.unexpected('a count');
    this.advance();
    const count = Number(text.replace(/U$/, ''));
    if (!Number.isInteger(count) || count > most)
      throw this.error(`too many ${what}`, at, 'semantic');
    this.expect('>');
    return count;
  }

  startsConstant(): boolean {
    return (
      this.kind === TOKEN.number ||
      this.is('-') ||
      this.is('(') ||
      this.is('~') ||
      this.is('+') ||
      this.is('WARP_SZ')
    );
  }

  constant(precedence = 0): Constant {
    if (this.kind === TOKEN.number && this.isEndOfOperand(1)) return this.number();
    return this.nested(() => {
      let left = this.unary();
      for (;;) {
        const operator = this.kind === TOKEN.punctuation ? this.text : '';
        const rank = BINARY_PRECEDENCE[operator];
        if (rank === undefined || rank <= precedence) break;
        this.advance();
        left = binaryConstant(operator, left, this.constant(rank), this.source);
      }
      if (precedence === 0 && this.accept('?')) {
        const yes = this.constant();
        this.expect(':');
        const no = this.constant();
        if (left.kind === 'float' || yes.kind === 'float' || no.kind === 'float')
          throw this.error("'?' needs integers", left.at);
        left = left.value === 0n ? no : yes;
      }
      return left;
    });
  }

  private unary(): Constant {
    const { at } = this;
    for (const operator of PREFIXES) if (this.accept(operator)) return this.operandOf(operator, at);
    if (this.accept('(')) {
      if (this.kind === TOKEN.dotted) {
        const cast = `(${this.text})`;
        this.advance();
        this.expect(')');
        return this.operandOf(cast, at);
      }
      const value = this.constant();
      this.expect(')');
      return value;
    }
    if (this.accept('WARP_SZ')) return integer(32n, false, at);
    return this.number();
  }

  private operandOf(operator: string, at: number): Constant {
    return unaryConstant(
      operator,
      this.nested(() => this.unary()),
      at,
      this.source,
    );
  }

  private number(): Constant {
    const { at, text } = this;
    // The lexer reads `.5` as a dotted word.
    if (this.kind !== TOKEN.number && !/^\.\d+(?:[eE]\d+)?$/.test(text))
      throw this.unexpected('a number');
    this.advance();
    if (text.length === 1) return { kind: 'integer', value: BigInt(text), isUnsigned: false, at };
    if (text.startsWith('0')) {
      switch (text[1]) {
        case 'f':
        case 'F':
          return { kind: 'float', width: 32, bits: BigInt(Number.parseInt(text.slice(2), 16)), at };
        case 'd':
        case 'D':
          return { kind: 'float', width: 64, bits: BigInt(`0x${text.slice(2)}`), at };
        case 'x':
        case 'X':
        case 'b':
        case 'B':
          return integerLiteral(text, at, this.source);
      }
    }
    if (/[.eE]/.test(text)) return float64(Number(text), at);
    if (/^0\d*[89]/.test(text)) throw this.error(`malformed number '${text}'`, at);
    return integerLiteral(text, at, this.source);
  }
}
