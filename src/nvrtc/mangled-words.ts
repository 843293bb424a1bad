/**
 * Finds the integers among the parameters of a kernel in its mangled name (Itanium C++ ABI, 5.1).
 * Kernels that are not `extern "C"` have one: instances of templates, kernels in namespaces,
 * overloads.
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

/** The meaning of a component of a name. */
type Meaning = SourceWord | 'other';

class NotRead extends Error {}

/**
 * Returns the words of integers by the places of their parameters. The map is empty where the name
 * is not mangled, or has a part that this reader does not support.
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
  /** The meanings of S_, S0_ and so on. */
  private readonly known: Meaning[] = [];
  /** The meanings of T_, T0_ and so on: the arguments of the function's own template. */
  private templateArguments: Meaning[] = [];

  constructor(text: string) {
    this.text = text;
  }

  parameters(): Meaning[] {
    const isInstance = this.functionName();
    // An instance's type begins with its return type.
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

  /** Reads `4fill`. */
  private sourceName(): void {
    const length = /^\d+/.exec(this.text.slice(this.at, this.at + 8))?.[0];
    if (length === undefined) throw new NotRead();
    this.at += length.length + Number(length);
    if (this.at > this.text.length) throw new NotRead();
  }

  /** Reads the function's own name; returns whether it is an instance of a template. */
  private functionName(): boolean {
    if (this.take('N')) return this.nested(true);
    // The name may be in namespace std, or local to the file.
    if (!this.take('St')) this.take('L');
    this.sourceName();
    if (this.text[this.at] !== 'I') return false;
    this.remember();
    this.templateArguments = this.arguments();
    return true;
  }

  /**
   * Reads `N5inner6hiddenE`; returns whether its last part has arguments. Each part can be named
   * again, except the last part of a function's name.
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

  /** Reads `IfLi4EE`. */
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

  /** Reads a value among arguments: its type, then everything up to the E. */
  private literal(): void {
    if (this.text[this.at] === '_') throw new NotRead();
    this.type();
    const end = this.text.indexOf('E', this.at);
    if (end < 0 || !/^n?[\da-f]*$/.test(this.text.slice(this.at, end))) throw new NotRead();
    this.at = end + 1;
  }

  /** Reads a number: `_` is the first, `0_` the second. */
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

  /** Reads a template's arguments after its name; with them the name is one component more. */
  private instance(meaning: Meaning): Meaning {
    if (this.text[this.at] !== 'I') return meaning;
    this.arguments();
    return this.remember();
  }
}
