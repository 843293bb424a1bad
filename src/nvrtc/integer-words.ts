/**
 * Finds whether the integers among the parameters of `extern "C"` kernels are signed. Such kernels
 * have no mangled name that contains it, so the declarations of the types' names in the text
 * decide. The size of an integer is in the compiled kernel. This reader follows names where the
 * signature, which the type checker reads as well, has `'unknown'`: through namespaces, classes,
 * enumerations and macros.
 *
 * A word has to be right, since numbers are refused by it: a name that may have another meaning in
 * the text has none.
 */
import { DTYPES } from '../core/index.js';
import type { SourceWord } from '../core/signature.js';
import { sourceTokens } from './source-tokens.js';
import type { SourceToken } from './source-tokens.js';
import { LIBRARY_TYPES } from './type-names.js';

/** Words of a text; signs have one to three characters. */
type Words = readonly string[];

/** One of the namespaces and classes around a declaration. */
interface Scope {
  readonly name: string;
  /**
   * Whether its declarations are visible outside of it as well: those of an unnamed or inline
   * namespace, or of an unscoped enumeration.
   */
  readonly isOpen: boolean;
}

/**
 * A type's declaration: the words that its name stands for, or undefined where these are not known.
 */
interface Declaration {
  readonly scopes: readonly Scope[];
  readonly words: Words | undefined;
}

const CLASS_KEYS: ReadonlySet<string> = new Set(['struct', 'class', 'union', 'enum']);
const QUALIFIERS: ReadonlySet<string> = new Set([
  'const',
  'volatile',
  '__grid_constant__',
  'typename',
  'enum',
  '__restrict__',
  '__restrict',
]);
const KEYWORDS: ReadonlySet<string> = new Set([
  'bool',
  'char',
  'short',
  'int',
  'long',
  'signed',
  'unsigned',
  'wchar_t',
  'char8_t',
  'char16_t',
  'char32_t',
  'float',
  'double',
  'void',
]);
const UNSIGNED: ReadonlySet<string> = new Set(['unsigned', 'char8_t', 'char16_t', 'char32_t']);
const MOST_STEPS = 16;

const isWord = (text: string | undefined): text is string =>
  text !== undefined && /^[A-Za-z_$]/.test(text);

/**
 * The word of `wchar_t`: 32 bits with a sign on Linux for x86, 16 without on Windows. The ABI of
 * ARM has another.
 */
export function wideCharacterWord(
  platform: string = process.platform,
  arch: string = process.arch,
): SourceWord | undefined {
  return platform === 'win32' ? 'unsigned' : arch === 'x64' ? 'signed' : undefined;
}

export class IntegerWords {
  private readonly types = new Map<string, Declaration[]>();
  /** The words of a macro of one type or of nothing; undefined for every other macro. */
  private readonly macros = new Map<string, Words | undefined>();
  private readonly used = new Set<string>();
  private readonly tokens: readonly SourceToken[];
  private at = 0;
  /** The number of conditional directives around the place that is read. */
  private conditions = 0;
  private isBroken = false;

  /** @param tokens of the text, whose braces and conditions match */
  constructor(tokens: readonly SourceToken[]) {
    this.tokens = tokens;
    this.read([]);
  }

  /**
   * Returns the word of each parameter of a list, undefined for one that may be no integer. Returns
   * undefined where it is not certain which parameters there are.
   */
  of(list: readonly SourceToken[], isGlobal: boolean): (SourceWord | undefined)[] | undefined {
    const expanded = this.expanded(list.map(({ text }) => text));
    if (expanded === undefined || expanded.some((text) => /^[()<>{}=]|^\.\.\.$/.test(text)))
      return undefined;
    return splitAt(expanded, ',').map((parameter) => {
      const type = typeOf(parameter);
      return type === undefined ? undefined : this.wordOf(type, isGlobal ? [] : undefined, 0);
    });
  }

  // Declarations of the text

  /** Reads declarations up to the brace that closes the scope. */
  private read(scopes: readonly Scope[]): void {
    let head: string[] = [];
    for (; this.at < this.tokens.length; this.at++) {
      const { kind, text } = this.tokens[this.at]!;
      if (kind === 'directive') {
        if (this.directive(text) && head.length > 0) this.isBroken = true;
      } else if (text === ';') {
        this.declaration(withoutAttributes(head), scopes);
        head = [];
      } else if (text === '}') return;
      else if (text === '{') head = this.block(withoutAttributes(head), scopes);
      else if (text === ':' && head.length === 1 && /^(?:public|private|protected)$/.test(head[0]!))
        head = [];
      else head.push(text);
    }
  }

  /**
   * Reads or skips the contents of a brace. Returns the words that replace it before the words that
   * follow.
   */
  private block(head: Words, scopes: readonly Scope[]): string[] {
    this.at++;
    const isType =
      head.some((word) => CLASS_KEYS.has(word)) && !head.includes('(') && !head.includes('=');
    if (head.includes('namespace') && !head.includes('(')) {
      const names = head
        .slice(head.indexOf('namespace') + 1)
        .filter((word) => isWord(word) && word !== 'inline');
      const isOpen = names.length === 0 || head[0] === 'inline' || head.includes('inline');
      this.read([
        ...scopes,
        ...(names.length === 0 ? [''] : names).map((name) => ({ name, isOpen })),
      ]);
    } else if (head[0] === 'extern' && head.length === 2) this.read(scopes);
    else if (head[0] === 'template' || !isType) {
      if (head[0] === 'template' && isType) this.declaration(head, scopes);
      this.skip();
    } else return this.type(head, scopes);
    return [];
  }

  private type(head: Words, scopes: readonly Scope[]): string[] {
    const key = head.findIndex((word) => CLASS_KEYS.has(word));
    const colon = head.indexOf(':');
    const named = head
      .slice(key + 1, colon < 0 ? undefined : colon)
      .filter((word) => word !== 'class' && word !== 'struct' && word !== 'final');
    const name = named.length === 1 ? named[0] : undefined;
    // A name of several parts refers to an earlier declaration.
    if (named.length > 1) for (const word of named) this.declare(word, undefined, scopes);
    const isEnum = head[key] === 'enum';
    const isScoped = isEnum && /^(?:class|struct)$/.test(head[key + 1] ?? '');
    const fixed = isEnum && colon >= 0 ? head.slice(colon + 1) : undefined;
    const underlying = fixed ?? (isScoped ? ['int'] : undefined);
    if (name !== undefined) this.declare(name, underlying, scopes);
    if (isEnum) this.skip();
    else this.read([...scopes, { name: name ?? '', isOpen: false }]);
    return [...(head.includes('typedef') ? ['typedef'] : []), ...(underlying ?? ['struct'])];
  }

  /** Moves past the brace that closes the open one. */
  private skip(): void {
    for (let depth = 1; this.at < this.tokens.length; this.at++) {
      const { kind, text } = this.tokens[this.at]!;
      if (kind === 'directive') this.directive(text);
      else if (kind !== 'sign') continue;
      else if (text === '{') depth++;
      else if (text === '}' && --depth === 0) return;
    }
  }

  /** Reads a directive; returns whether it is a conditional one. */
  private directive(text: string): boolean {
    const [, name = '', rest = ''] = /^#\s*(\w*)\s*([\s\S]*)$/.exec(text) ?? [];
    if (name.startsWith('if')) this.conditions++;
    else if (name === 'endif') this.conditions--;
    else if (!name.startsWith('el')) {
      const macro = /^\w+/.exec(rest)?.[0];
      if (macro === undefined || (name !== 'define' && name !== 'undef')) return false;
      const body = rest.slice(macro.length);
      const isOne =
        name === 'define' &&
        this.conditions === 0 &&
        !body.startsWith('(') &&
        !this.macros.has(macro);
      const words = isOne ? sourceTokens(body).map((token) => token.text) : [''];
      this.macros.set(
        macro,
        words.every((word) => isWord(word) || word === '::' || word === '*') ? words : undefined,
      );
      return false;
    }
    return true;
  }

  private declaration(head: Words, scopes: readonly Scope[]): void {
    const [first, second, third] = head;
    if (first === 'template') {
      // A use of it has arguments, but its name hides that of a library's type.
      const rest = head.slice(endOfTemplate(head));
      if (CLASS_KEYS.has(rest[0] ?? '') || rest[0] === 'using')
        this.declare(rest[1] ?? '', undefined, scopes);
    } else if (first === 'using' && second === 'namespace') {
      if (this.conditions === 0 && scopes.length === 0) this.used.add(head.slice(2).join(''));
    } else if (first === 'using' && third === '=') this.declare(second!, head.slice(3), scopes);
    else if (first === 'using') {
      const words = head.slice(1).filter((word) => word !== 'typename');
      this.declare(head.at(-1)!, words.length > 1 ? words : undefined, scopes);
    } else if (first === 'namespace') this.declare(second ?? '', undefined, scopes);
    else if (head.includes('typedef'))
      this.typedef(
        head.filter((word) => word !== 'typedef'),
        scopes,
      );
    else if (CLASS_KEYS.has(first ?? '')) {
      const name = head.slice(1).find((word) => word !== 'class' && word !== 'struct');
      const colon = head.indexOf(':');
      const isOpaque = first === 'enum' && colon > 0 && head[colon - 1] === name;
      // `struct A a;` declares no new type.
      if (name !== undefined && (isOpaque || head.length === 2))
        this.declare(name, isOpaque ? head.slice(colon + 1) : undefined, scopes);
    }
  }

  private typedef(head: Words, scopes: readonly Scope[]): void {
    if (head.includes('(')) {
      const name = head[head.indexOf('(') + 2];
      if (head[head.indexOf('(') + 1] === '*' && isWord(name))
        this.declare(name, undefined, scopes);
      else for (const word of head) if (isWord(word)) this.declare(word, undefined, scopes);
    } else if (head.includes('[') || head.includes('<')) {
      const end = head.includes('[') ? head.indexOf('[') : head.length;
      this.declare(head[end - 1] ?? '', undefined, scopes);
      if (head.includes(','))
        for (const word of head)
          if (isWord(word) && !KEYWORDS.has(word)) this.declare(word, undefined, scopes);
    } else {
      const [start = [], ...others] = splitAt(head, ',');
      const type = start.slice(0, -1);
      this.declare(start.at(-1) ?? '', type, scopes);
      const base = type.filter((word) => word !== '*');
      for (const other of others) {
        this.declare(other.at(-1) ?? '', other.length === 1 ? base : undefined, scopes);
      }
    }
  }

  private declare(name: string, words: Words | undefined, scopes: readonly Scope[]): void {
    // `typedef struct A A;` is the existing structure.
    if (
      words?.length === 2 &&
      CLASS_KEYS.has(words[0]!) &&
      words[1] === name &&
      words[0] !== 'enum'
    )
      return;
    const declaration: Declaration = { scopes, words: this.conditions === 0 ? words : undefined };
    const known = this.types.get(name);
    if (known === undefined) this.types.set(name, [declaration]);
    else known.push(declaration);
  }

  // The meaning of a name

  /**
   * Returns the words with macros replaced by their types; undefined where one is anything else.
   */
  private expanded(words: Words, depth = 0): Words | undefined {
    if (!words.some((word) => this.macros.has(word))) return words;
    const out: string[] = [];
    for (const word of words) {
      const body = this.macros.has(word) ? this.macros.get(word) : [word];
      const all =
        body === undefined || depth > MOST_STEPS
          ? undefined
          : this.macros.has(word)
            ? this.expanded(body, depth + 1)
            : body;
      if (all === undefined) return undefined;
      out.push(...all);
    }
    return out;
  }

  /**
   * Returns the word of a type.
   *
   * @param from the scopes from which the name is looked up; undefined where they are not known
   */
  private wordOf(
    given: Words,
    from: readonly Scope[] | undefined,
    step: number,
  ): SourceWord | undefined {
    const words = this.expanded(given)?.filter((word) => !QUALIFIERS.has(word));
    if (words === undefined || words.length === 0 || step > MOST_STEPS) return undefined;
    if (words.every((word) => KEYWORDS.has(word))) return keywordWord(words);
    if (this.isBroken || !isPath(words)) return undefined;
    const name = words.at(-1)!;
    const path = words.slice(0, -1).filter((word) => word !== '::');
    const declared = this.types.get(name) ?? [];
    const found = declared.filter(
      ({ scopes }) => from !== undefined && this.isMeant(path, scopes, from),
    );
    if (found.length === 0) {
      // `std::uint32_t` is the library's where the text has an alias of that name, and no namespace
      // `std`.
      const isOther = declared.some(
        ({ scopes }) => path.length === 0 || scopes.some((scope) => path.includes(scope.name)),
      );
      return isLibrary(path) && !isOther ? libraryWord(name) : undefined;
    }
    const [first, ...others] = found.map((each) =>
      each.words === undefined ? undefined : this.wordOf(each.words, each.scopes, step + 1),
    );
    return others.every((word) => word === first) ? first : undefined;
  }

  /** Whether a name with this path, in these scopes, may be the one that other scopes declare. */
  private isMeant(path: Words, scopes: readonly Scope[], from: readonly Scope[]): boolean {
    // Open scopes may be written or left out.
    const closed = scopes.filter(({ isOpen }) => !isOpen).map(({ name }) => name);
    const all = scopes.map(({ name }) => name);
    return [closed, all].some((names) => {
      const before = names.slice(0, Math.max(0, names.length - path.length));
      const isWithin = before.every((part, at) => from[at]?.name === part);
      return (
        [...before, ...path].join('::') === names.join('::') &&
        (isWithin || this.used.has(before.join('::')))
      );
    });
  }
}

/** Whether words and `::` alternate. */
function isPath(words: Words): boolean {
  return words.every((word, at) =>
    word === '::' ? words[at - 1] !== '::' : isWord(word) && (at === 0 || words[at - 1] === '::'),
  );
}

/** Returns a parameter's type without its name; undefined for a pointer and the like. */
function typeOf(parameter: Words): Words | undefined {
  if (parameter.some((word) => word !== '::' && !isWord(word))) return undefined;
  const words = parameter.filter((word) => !QUALIFIERS.has(word));
  const isNamed = words.length > 1 && words.at(-2) !== '::' && !KEYWORDS.has(words.at(-1)!);
  return isNamed ? words.slice(0, -1) : words;
}

function keywordWord(words: Words): SourceWord | undefined {
  if (words.some((word) => word === 'float' || word === 'double' || word === 'void'))
    return undefined;
  if (words.includes('bool')) return 'bool';
  if (words.includes('wchar_t')) return wideCharacterWord();
  return words.some((word) => UNSIGNED.has(word)) ? 'unsigned' : 'signed';
}

/** Whether a name of this path is one that headers declare. */
function isLibrary(path: Words): boolean {
  return path.length === 0 || /^(?:cuda )?std$/.test(path.join(' '));
}

function libraryWord(name: string): SourceWord | undefined {
  const [, unsigned] = /^(u?)int(?:max|(?:_least|_fast)?(?:8|16|32|64))_t$/.exec(name) ?? [];
  if (unsigned !== undefined) return unsigned === 'u' ? 'unsigned' : 'signed';
  if (!Object.hasOwn(LIBRARY_TYPES, name)) return undefined;
  const { kind } = DTYPES[LIBRARY_TYPES[name as keyof typeof LIBRARY_TYPES]];
  return kind === 'float' || kind === 'complex' ? undefined : kind;
}

/** Returns the index after `template <…>`. */
function endOfTemplate(head: Words): number {
  let depth = 0;
  for (let at = 1; at < head.length; at++) {
    if (head[at] === '<') depth++;
    else if (head[at] === '>') depth--;
    else if (head[at] === '>>') depth -= 2;
    if (depth <= 0) return at + 1;
  }
  return head.length;
}

/** Returns the words without `alignas(16)`, `__align__(16)` and `[[…]]`. */
function withoutAttributes(words: Words): Words {
  const left: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const isCall =
      /^(?:alignas|__align__|__attribute__|__declspec)$/.test(words[at]!) && words[at + 1] === '(';
    if (!isCall && !(words[at] === '[' && words[at + 1] === '[')) {
      left.push(words[at]!);
      continue;
    }
    const [open, close] = isCall ? ['(', ')'] : ['[', ']'];
    for (let depth = 0; at < words.length; at++) {
      if (words[at] === open) depth++;
      else if (words[at] === close && --depth === 0) break;
    }
  }
  return left;
}

function splitAt(words: Words, sign: string): string[][] {
  const parts: string[][] = [[]];
  for (const word of words) {
    if (word === sign) parts.push([]);
    else parts.at(-1)!.push(word);
  }
  return parts;
}
