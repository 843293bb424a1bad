/**
 * Integers among the parameters of a kernel, read from its mangled name (Itanium C++ ABI, 5.1),
 * which is what there is of kernels that are not `extern "C"`: of instances of templates, in
 * namespaces, overloaded.
 */
import type { SourceWord } from '../core/signature.js';
import { wideCharacterWord } from './integer-words.js';

const BUILTINS: Readonly<Record<string, SourceWord | 'other'>> = {
  b: 'bool',
  a: 'signed',
  c: 'signed',
  s: 'signed',
  i: 'signed',
  l: 'signed',
  x: 'signed',
  h: 'unsigned',
  t: 'unsigned',
  j: 'unsigned',
  m: 'unsigned',
  y: 'unsigned',
  v: 'other',
  n: 'other',
  o: 'other',
  f: 'other',
  d: 'other',
  e: 'other',
  g: 'other',
  z: 'other',
};

/** What a component of a name stands for. */
type Meaning = SourceWord | 'other';

class NotRead extends Error {}

/**
 * Integers by the places of their parameters. Empty where the name is not mangled, or has something
 * in it that is not read here.
 */
export function mangledWords(symbol: string): Map<number, SourceWord> {
  const words = new Map<number, SourceWord>();
  if (!symbol.startsWith('_Z')) return words;
  try {
    new Mangled(symbol).parameters().forEach((meaning, index) => {
      if (meaning !== 'other') words.set(index, meaning);
    });
  } catch (error) {
    if (!(error instanceof NotRead)) throw error;
    words.clear();
  }
  return words;
}

class Mangled {
  private readonly text: string;
  private at = 2;
  /** What S_, S0_ and so on stand for. */
  private readonly known: Meaning[] = [];
  /** What T_, T0_ and so on stand for: the arguments of the function's own template. */
  private templateArguments: Meaning[] = [];

  constructor(text: string) {
    this.text = text;
  }

  parameters(): Meaning[] {
    const isInstance = this.functionName();
    // An instance's type begins with what it returns.
    if (isInstance) this.type();
    const found: Meaning[] = [];
    while (this.at < this.text.length && this.text[this.at] !== '.') found.push(this.type());
    return found;
  }

  private take(text: string): boolean {
    if (!this.text.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  private remember(meaning: Meaning = 'other'): Meaning {
    this.known.push(meaning);
    return meaning;
  }

  /** `4fill`. */
  private sourceName(): void {
    const length = /^\d+/.exec(this.text.slice(this.at, this.at + 8))?.[0];
    if (length === undefined) throw new NotRead();
    this.at += length.length + Number(length);
    if (this.at > this.text.length) throw new NotRead();
  }

  /** The function's own name; whether it is a template's instance. */
  private functionName(): boolean {
    if (this.take('N')) return this.nested(true);
    // In namespace std, or of the file alone.
    if (!this.take('St')) this.take('L');
    this.sourceName();
    if (this.text[this.at] !== 'I') return false;
    this.remember();
    this.templateArguments = this.arguments();
    return true;
  }

  /**
   * `N5inner6hiddenE`; whether its last part has arguments. Each part but the last, of which a
   * function's is none, can be named again.
   */
  private nested(isFunction: boolean): boolean {
    let hasArguments = false;
    let isFirst = true;
    while (/[rVK]/.test(this.text[this.at] ?? '')) this.at++;
    while (!this.take('E')) {
      if (this.text[this.at] === 'I') {
        const given = this.arguments();
        hasArguments = true;
        if (isFunction) this.templateArguments = given;
        if (this.text[this.at] !== 'E' || !isFunction) this.remember();
      } else if (isFirst && this.text[this.at] === 'S') {
        this.substitution();
        hasArguments = false;
      } else {
        this.take('L');
        this.sourceName();
        hasArguments = false;
        if (this.text[this.at] !== 'E' || !isFunction) this.remember();
      }
      isFirst = false;
    }
    return hasArguments;
  }

  /** `IfLi4EE`. */
  private arguments(): Meaning[] {
    if (!this.take('I')) throw new NotRead();
    const given: Meaning[] = [];
    while (!this.take('E')) {
      if (this.take('L')) {
        this.literal();
        given.push('other');
      } else if (this.take('J')) {
        // A pack counts as one argument, and stands for no single type.
        while (!this.take('E')) this.type();
        given.push('other');
      } else given.push(this.type());
    }
    return given;
  }

  /** A value among arguments: its type, then all up to the E. */
  private literal(): void {
    if (this.text[this.at] === '_') throw new NotRead();
    this.type();
    const end = this.text.indexOf('E', this.at);
    if (end < 0 || !/^n?[\da-f]*$/.test(this.text.slice(this.at, end))) throw new NotRead();
    this.at = end + 1;
  }

  /** `_` is the first, `0_` the second. */
  private sequence(base: number): number {
    const end = this.text.indexOf('_', this.at);
    const digits = this.text.slice(this.at, end);
    if (end < 0 || !(base === 10 ? /^\d*$/ : /^[\dA-Z]*$/).test(digits)) throw new NotRead();
    this.at = end + 1;
    return digits === '' ? 0 : parseInt(digits, base) + 1;
  }

  private substitution(): Meaning {
    this.at++;
    const letter = this.text[this.at] ?? '';
    if (/[absiod]/.test(letter)) {
      this.at++;
      return 'other';
    }
    if (letter === 't') {
      this.at++;
      this.sourceName();
      return this.remember();
    }
    const meaning = this.known[this.sequence(36)];
    if (meaning === undefined) throw new NotRead();
    return meaning;
  }

  private type(): Meaning {
    const letter = this.text[this.at] ?? '';
    if (this.take('w')) return wideCharacterWord() ?? 'other';
    // char8_t, char16_t, char32_t
    if (this.take('Du') || this.take('Ds') || this.take('Di')) return 'unsigned';
    const builtin = Object.hasOwn(BUILTINS, letter) ? BUILTINS[letter] : undefined;
    if (builtin !== undefined) {
      this.at++;
      return builtin;
    }
    if (/[rVK]/.test(letter)) {
      while (/[rVK]/.test(this.text[this.at] ?? '')) this.at++;
      return this.remember(this.type());
    }
    if (/[PROCG]/.test(letter)) {
      this.at++;
      this.type();
      return this.remember();
    }
    if (letter === 'T') {
      this.at++;
      const meaning = this.templateArguments[this.sequence(10)];
      if (meaning === undefined) throw new NotRead();
      return this.instance(this.remember(meaning));
    }
    if (letter === 'S') return this.instance(this.substitution());
    if (letter === 'N') {
      this.at++;
      this.nested(false);
      return 'other';
    }
    if (letter === 'A') {
      this.at++;
      if (!/^\d*$/.test(this.text.slice(this.at, this.text.indexOf('_', this.at))))
        throw new NotRead();
      this.at = this.text.indexOf('_', this.at) + 1;
      this.type();
      return this.remember();
    }
    if (letter === 'D' && /[fdehan]/.test(this.text[this.at + 1] ?? '')) {
      this.at += 2;
      return 'other';
    }
    if (!/\d/.test(letter)) throw new NotRead();
    this.sourceName();
    return this.instance(this.remember());
  }

  /** A template's name with its arguments is one component more. */
  private instance(meaning: Meaning): Meaning {
    if (this.text[this.at] !== 'I') return meaning;
    this.arguments();
    return this.remember();
  }
}
