/**
 * Reads the signatures of the kernels of CUDA C++ from its text at run time, on tokens;
 * `outline-types.ts` and `parameter-types.ts` do so in the type checker. The result for a parameter
 * is the same or more: dtypes, pointers with their access, structures. A type that is not
 * understood is `'unknown'`, and a list that is not understood has no parameters at all.
 */
import type { SourceWord } from '../core/signature.js';
import { IntegerWords } from './integer-words.js';
import { Packing } from './packing.js';
import { sourceTokens } from './source-tokens.js';
import type { SourceToken } from './source-tokens.js';
import { KEYWORD_TYPES, LIBRARY_TYPES, VECTOR_TYPES } from './type-names.js';

/** A structure by value. */
export interface SourceStructure {
  readonly fields: Readonly<Record<string, SourceType>>;
  /** Its alignment, bytes, where that is more than its fields' alignment, as for a vector. */
  readonly align?: number;
}

/**
 * `'f32'`; `'input f32'` and `'inout f32'` for pointers (`any` for those to other types, `void`
 * among them); a structure; in a structure also `[element, length]`; or `'unknown'`.
 */
export type SourceType = string | SourceStructure | readonly [SourceType, number];

export interface SourceParameter {
  /** The name; empty where it has none. */
  readonly name: string;
  readonly type: SourceType;
  /** Whether the pointer is `__restrict__`. */
  readonly isRestrict: boolean;
}

export interface SourceSignature {
  readonly name: string;
  /** Undefined where the list is not understood. */
  readonly parameters: readonly SourceParameter[] | undefined;
  /**
   * The word of each parameter that is certainly an integer, also of those whose types are not
   * understood.
   */
  readonly words: readonly (SourceWord | undefined)[] | undefined;
}

export interface SourceSignatures {
  readonly kernels: readonly SourceSignature[];
  /** Whether there may be kernels that were not read. */
  readonly open: boolean;
}

/** Headers that declare no kernels and no macros that hide one. */
const KNOWN_HEADERS: ReadonlySet<string> = new Set([
  'cuda_fp16.h',
  'cuda_bf16.h',
  'cuda_fp8.h',
  'cuda_runtime.h',
  'cuda.h',
  'cuda_runtime_api.h',
  'device_launch_parameters.h',
  'vector_types.h',
  'cooperative_groups.h',
  'cooperative_groups/reduce.h',
  'cooperative_groups/memcpy_async.h',
  'cuda_pipeline.h',
  'mma.h',
  'math_constants.h',
  'curand_kernel.h',
  'cuda/std/cstdint',
  'cuda/std/cstddef',
  'cuda/barrier',
  'cuda/pipeline',
  'cuda/atomic',
  'cstdint',
  'cstddef',
  'stdint.h',
  'stddef.h',
  'stdio.h',
  'cstdio',
  'math.h',
  'cmath',
  'assert.h',
  'cassert',
  'float.h',
  'cfloat',
  'limits.h',
  'climits',
  'type_traits',
]);

/** Words that the reader relies on: a macro of such a name leaves the text unread. */
const GRAMMAR: ReadonlySet<string> = new Set([
  'extern',
  'struct',
  'union',
  'class',
  'enum',
  'typedef',
  'using',
  'namespace',
  'template',
  'const',
  'volatile',
  'void',
  'long',
  'signed',
  '__global__',
  '__restrict__',
  '__restrict',
  '__launch_bounds__',
  '__grid_constant__',
  'inline',
  'static',
  'std',
  'public',
  'private',
  ...Object.keys(KEYWORD_TYPES),
  ...Object.keys(LIBRARY_TYPES),
]);

const TYPE_WORDS: ReadonlySet<string> = new Set(['struct', 'union', 'class', 'enum']);
const INTEGER_WORDS: ReadonlySet<string> = new Set([
  'char',
  'short',
  'int',
  'long',
  'signed',
  'unsigned',
  'float',
  'double',
  'bool',
  'void',
]);
const RESTRICT: ReadonlySet<string> = new Set(['__restrict__', '__restrict']);

/** The declaration of a name. */
type Declared =
  | { readonly alias: readonly SourceToken[] }
  | { readonly fields: readonly SourceToken[] }
  | 'unread';

class Unread extends Error {}

/** Reads the kernels of a text. Never throws: a text that is not C++ has no known kernels. */
export function sourceSignatures(source: string): SourceSignatures {
  try {
    return new Reader(source).read();
  } catch (error) {
    if (error instanceof Unread) return { kernels: [], open: true };
    throw error;
  }
}

class Reader {
  private readonly tokens: SourceToken[];
  private readonly types = new Map<string, Declared>();
  private readonly macros = new Set<string>();
  private readonly heads: {
    name: string;
    list: readonly SourceToken[];
    isTyped: boolean;
    isGlobal: boolean;
  }[] = [];
  private readonly packing: Packing;
  private open = false;
  /** Whether there may be a declaration that was not read. */
  private doubt = false;
  /**
   * Blocks and directives around the place that is read, the innermost last: `C`, `N` and `#`, `{`
   * in bodies.
   */
  private readonly around: string[] = [];
  private at = 0;

  constructor(source: string) {
    this.tokens = sourceTokens(source);
    this.packing = new Packing(source);
    if (this.tokens.some(({ kind }) => kind === 'other')) throw new Unread();
  }

  read(): SourceSignatures {
    let head: SourceToken[] = [];
    for (; this.at < this.tokens.length; this.at++) {
      const token = this.tokens[this.at]!;
      if (token.kind === 'directive') {
        if (this.directive(token.text) && head.length > 0) {
          this.open = true;
          this.doubt = true;
          head = [];
        }
      } else if (isSign(token, ';')) {
        this.declaration(head);
        head = [];
      } else if (isSign(token, '}')) {
        if (!['C', 'N'].includes(this.around.pop() ?? '')) throw new Unread();
        head = [];
      } else if (isSign(token, '{')) {
        this.block(head);
        head = [];
      } else head.push(token);
    }
    if (this.around.length > 0) throw new Unread();
    const kernels = this.heads.filter(({ name }) => !this.macros.has(name));
    const words = kernels.length === 0 ? undefined : new IntegerWords(this.tokens);
    const isOne = (name: string): boolean =>
      kernels.filter((each) => each.name === name).length === 1;
    return {
      kernels: kernels.map(({ name, list, isTyped, isGlobal }) => ({
        name,
        parameters: isTyped ? this.parameters(list) : undefined,
        words: isOne(name) ? words?.of(list, isGlobal) : undefined,
      })),
      open: this.open || kernels.length < this.heads.length,
    };
  }

  /** Reads a directive; returns whether it is a conditional one. */
  private directive(text: string): boolean {
    const [, name = '', rest = ''] = /^#\s*(\w*)\s*([\s\S]*)$/.exec(text) ?? [];
    if (name.startsWith('if')) this.around.push('#');
    else if (name.startsWith('el') || name === 'endif') {
      if (this.around.at(-1) !== '#') throw new Unread();
      if (name === 'endif') this.around.pop();
    } else {
      if (name === 'define') this.macro(rest);
      else if (name === 'pragma') this.packing.pragma(rest, this.around.includes('#'));
      else if (name === 'include' && !KNOWN_HEADERS.has(/^<([^>]*)>/.exec(rest)?.[1] ?? ''))
        this.open = true;
      return false;
    }
    return true;
  }

  private macro(text: string): void {
    const name = /^\w+/.exec(text)?.[0] ?? '';
    const body = sourceTokens(text.slice(name.length));
    const depth = body.reduce(
      (sum, token) => sum + Number(isSign(token, '{')) - Number(isSign(token, '}')),
      0,
    );
    if (GRAMMAR.has(name) || depth !== 0) throw new Unread();
    this.macros.add(name);
    if (body.some(({ text: word }) => word === '__global__' || word === 'extern')) this.open = true;
  }

  /**
   * Moves past the closing brace of a body whose opening brace is the current token. Returns the
   * tokens in it.
   */
  private skip(): SourceToken[] {
    const start = this.at + 1;
    const depth = this.around.length;
    this.around.push('{');
    while (this.around.length > depth) {
      const token = this.tokens[++this.at];
      if (token === undefined) throw new Unread();
      if (token.kind === 'directive') this.directive(token.text);
      else if (isSign(token, '{')) this.around.push('{');
      else if (isSign(token, '}') && this.around.pop() !== '{') throw new Unread();
    }
    return this.tokens.slice(start, this.at);
  }

  private block(head: readonly SourceToken[]): void {
    const words = head.map(({ text }) => text);
    const [first, second] = words;
    if (words.includes('__global__')) {
      this.kernel(head, words);
      this.skip();
    } else if (first === 'extern' && second === '"C"' && words.length === 2) this.around.push('C');
    else if (words.includes('namespace') && !words.includes('(')) {
      // The declarations of an unnamed or inline namespace are visible outside of it.
      if (first !== 'namespace' || words.length === 1) this.doubt = true;
      this.around.push('N');
    } else if (
      words.some((word) => TYPE_WORDS.has(word)) &&
      words.at(-1) !== ')' &&
      !words.includes('=')
    )
      this.structure(head, words);
    else this.skip();
  }

  private kernel(head: readonly SourceToken[], words: readonly string[]): void {
    if (words.includes('template')) return;
    const isC =
      this.around.includes('C') ||
      words.some((word, i) => word === 'extern' && words[i + 1] === '"C"');
    if (!isC) {
      this.open = true;
      return;
    }
    // The kernel's name is the word before the last parenthesis that is not an attribute's.
    const global = words.indexOf('__global__');
    const paren = words.findIndex(
      (word, i) => i > global && word === '(' && !/^__\w+__$/.test(words[i - 1] ?? ''),
    );
    const outside = words.slice(global + 1, paren);
    const attributes = withoutAttributes(outside);
    if (paren < 0 || attributes.length !== 2 || attributes[0] !== 'void' || words.at(-1) !== ')') {
      this.open = true;
      return;
    }
    const list = head.slice(paren + 1, -1);
    const isTyped =
      !this.around.some((where) => where !== 'C') && !list.some((token) => isSign(token, '('));
    this.heads.push({ name: attributes[1]!, list, isTyped, isGlobal: !this.around.includes('N') });
  }

  private structure(head: readonly SourceToken[], words: readonly string[]): void {
    const isTypedef = words[0] === 'typedef';
    const isRead =
      words[isTypedef ? 1 : 0] === 'struct' &&
      words.length <= (isTypedef ? 3 : 2) &&
      !this.around.includes('#');
    const tag = words[isTypedef ? 2 : 1];
    const inNamespace = this.around.includes('N');
    const { isPacked } = this.packing;
    const body = this.skip();
    if (inNamespace) return;
    const declared: Declared = isRead && !isPacked ? { fields: body } : 'unread';
    if (isTypedef) {
      const after = this.tokens.slice(this.at + 1, this.at + 3);
      if (!isRead || after[0]?.kind !== 'word' || !isSign(after[1], ';')) {
        this.doubt = true;
        return;
      }
      this.declare(after[0].text, declared);
      if (tag !== undefined && tag !== after[0].text) this.declare(tag, declared);
      this.at += 2;
    } else if (words.includes('<') || words.includes('template')) this.doubt = true;
    else {
      const colon = words.indexOf(':');
      const named = head.slice(0, colon < 0 ? undefined : colon).at(-1);
      if (named?.kind === 'word') this.declare(named.text, declared);
      else this.doubt = true;
    }
  }

  /** Reads a declaration without a body, and records aliases. */
  private declaration(head: readonly SourceToken[]): void {
    const words = head.map(({ text }) => text);
    if (this.around.includes('N')) return;
    const isConditional = this.around.includes('#');
    if (words[0] === 'using' && words[1] === 'namespace') this.doubt = true;
    else if (words[0] === 'using' && words[2] === '=')
      this.alias(words[1]!, head.slice(3), isConditional);
    else if (words.includes('using')) this.declare(words.at(-1)!, 'unread');
    else if (words[0] === 'typedef') {
      const pointer = functionPointer(words);
      if (pointer !== undefined) this.declare(pointer, 'unread');
      else if (words.some((word) => ['(', '[', '<', ','].includes(word))) this.doubt = true;
      else this.alias(words.at(-1)!, head.slice(1, -1), isConditional);
    }
  }

  private alias(name: string, type: readonly SourceToken[], isConditional: boolean): void {
    const words = type.map(({ text }) => text).filter((word) => word !== 'struct');
    if (words.length === 1 && words[0] === name) return;
    this.declare(
      name,
      isConditional || type.some(({ text }) => /^[([,<&=]$/.test(text))
        ? 'unread'
        : { alias: type },
    );
  }

  private declare(name: string, declared: Declared): void {
    this.types.set(name, this.types.has(name) || this.around.includes('#') ? 'unread' : declared);
  }

  private parameters(list: readonly SourceToken[]): readonly SourceParameter[] | undefined {
    if (
      list.some(
        ({ kind, text }) => kind !== 'word' && kind !== 'number' && !/^(?:[*,&[\]]|::)$/.test(text),
      )
    )
      return undefined;
    if (list.length === 0 || (list.length === 1 && list[0]!.text === 'void')) return [];
    const parameters: SourceParameter[] = [];
    for (const each of split(list, ',')) {
      const parameter = this.parameter(each);
      if (parameter === undefined) return undefined;
      parameters.push(parameter);
    }
    return parameters;
  }

  /** Reads one parameter. Returns undefined for tokens that may be several parameters, or none. */
  private parameter(tokens: readonly SourceToken[]): SourceParameter | undefined {
    const words = tokens.map(({ text }) => text);
    if (words.length === 0 || words.some((word) => this.macros.has(word))) return undefined;
    const unknown = { name: '', type: 'unknown', isRestrict: false };
    if (words.some((word) => /^[&[\]]$/.test(word))) return unknown;
    const star = words.lastIndexOf('*');
    const [base, tail] =
      star < 0 ? nameApart(words) : [words.slice(0, star), words.slice(star + 1)];
    const names = tail.filter(
      (word) => word !== 'const' && word !== 'volatile' && !RESTRICT.has(word),
    );
    if (names.length > 1) return undefined;
    const [name = ''] = names;
    if (star < 0) {
      const type = base.includes('volatile')
        ? 'unknown'
        : this.named(
            base.filter((word) => word !== '__grid_constant__' && word !== 'const'),
            0,
            false,
          );
      if (type !== undefined && isLong(type)) return { name, type: 'unknown', isRestrict: false };
      return type === undefined
        ? undefined
        : { name, type: type === 'char' ? 'i8' : type, isRestrict: false };
    }
    const type = this.pointer(base);
    return type === undefined
      ? undefined
      : { name, type, isRestrict: tail.some((word) => RESTRICT.has(word)) };
  }

  /** Returns the description of a pointer to the named type. */
  private pointer(words: readonly string[], depth = 0): SourceType | undefined {
    if (words.includes('*')) return 'unknown';
    const access = words.includes('const') ? 'input' : 'inout';
    const plain = words.filter((word) => word !== 'const' && word !== 'volatile');
    if (plain.length === 1 && plain[0] === 'void') return `${access} any`;
    const type = this.named(plain, depth, true);
    if (type === undefined) return undefined;
    if (typeof type !== 'string' || type === 'unknown' || isLong(type)) return `${access} any`;
    return type.includes(' ') ? 'unknown' : `${access} ${type}`;
  }

  private value(words: readonly string[], depth = 0): SourceType | undefined {
    const type = this.named(
      words.filter((word) => word !== 'const'),
      depth,
      false,
    );
    return type === 'char' ? 'i8' : type !== undefined && isLong(type) ? 'unknown' : type;
  }

  /**
   * Returns the type that words without qualifiers name, also `long` and `unsigned long`; for a
   * vector as a pointee, its elements. Returns undefined where the words are no type.
   */
  private named(
    words: readonly string[],
    depth: number,
    isPointee: boolean,
  ): SourceType | undefined {
    const keyword = canonical(words);
    if (keyword !== undefined) return keyword;
    if (words.every((word) => INTEGER_WORDS.has(word))) return longOf(words) ?? 'unknown';
    const isTag = words[0] === 'struct' || words[0] === 'enum';
    const name = isTag ? words[1] : words.at(-1);
    if (name === undefined || words.length === (isTag ? 1 : 0)) return undefined;
    if (words.length > (isTag ? 2 : 1)) {
      const path = words.join('');
      if (words.some((word, i) => i > 0 && word !== '::' && words[i - 1] !== '::'))
        return undefined;
      return /^(?:::)?(?:cuda::)?std::\w+$/.test(path)
        ? (own(LIBRARY_TYPES, name) ?? 'unknown')
        : 'unknown';
    }
    if (words[0] === 'enum' || depth > 8 || this.doubt) return 'unknown';
    const declared = this.types.get(name);
    if (declared !== undefined) return this.declared(declared, depth + 1, isPointee);
    const library = own(LIBRARY_TYPES, name);
    if (library !== undefined) return library;
    const vector = own(VECTOR_TYPES, name);
    return vector === undefined
      ? 'unknown'
      : isPointee
        ? vector[0]
        : vectorStructure(vector[0], vector[1]);
  }

  private declared(declared: Declared, depth: number, isPointee: boolean): SourceType {
    if (declared === 'unread') return 'unknown';
    if ('fields' in declared) return this.structureOf(declared.fields, depth) ?? 'unknown';
    const words = declared.alias.map(({ text }) => text);
    if (words.at(-1) === '*') return this.pointer(words.slice(0, -1), depth) ?? 'unknown';
    if (words.includes('*') || words.includes('const') || words.includes('volatile'))
      return 'unknown';
    return this.named(words, depth, isPointee) ?? 'unknown';
  }

  private structureOf(body: readonly SourceToken[], depth: number): SourceStructure | undefined {
    if (
      body.some(
        ({ kind, text }) =>
          kind === 'directive' || (kind !== 'word' && kind !== 'number' && !/^[,;[\]]$/.test(text)),
      )
    )
      return undefined;
    const fields = new Map<string, SourceType>();
    for (const declaration of split(body, ';')) {
      if (declaration.length === 0) continue;
      const declarators = split(declaration, ',');
      const start = declarators[0]!;
      const bracket = start.findIndex((token) => isSign(token, '['));
      const nameAt = (bracket < 0 ? start.length : bracket) - 1;
      const words = start.slice(0, Math.max(nameAt, 0)).map(({ text }) => text);
      const type = words.length === 0 ? undefined : this.value(words, depth);
      if (
        type === undefined ||
        words.includes('const') ||
        type === 'unknown' ||
        (typeof type === 'string' && type.includes(' '))
      )
        return undefined;
      for (const declarator of [start.slice(nameAt), ...declarators.slice(1)]) {
        const name = declarator[0]?.text ?? '';
        const array = arrayOf(
          declarator.slice(1).map(({ text }) => text),
          type,
        );
        if (declarator[0]?.kind !== 'word' || array === undefined || this.macros.has(name))
          return undefined;
        fields.set(name, array);
      }
    }
    return fields.size === 0 ? undefined : { fields: Object.fromEntries(fields) };
  }
}

function isSign(token: SourceToken | undefined, sign: string): boolean {
  return token?.kind === 'sign' && token.text === sign;
}

function own<T extends object>(table: T, name: string): T[keyof T] | undefined {
  return Object.hasOwn(table, name) ? table[name as keyof T] : undefined;
}

function split(tokens: readonly SourceToken[], sign: string): SourceToken[][] {
  const parts: SourceToken[][] = [[]];
  for (const token of tokens) {
    if (isSign(token, sign)) parts.push([]);
    else parts.at(-1)!.push(token);
  }
  return parts;
}

/**
 * Returns the name that `typedef void (*Name)(int, float*)` declares; undefined for other typedefs.
 */
function functionPointer(words: readonly string[]): string | undefined {
  const open = words.indexOf('(');
  const [star, name, close, list, ...rest] = words.slice(open + 1);
  const isPlain =
    open > 0 &&
    star === '*' &&
    close === ')' &&
    list === '(' &&
    rest.findIndex((word) => word === '(' || word === ')') === rest.length - 1;
  return isPlain &&
    rest.at(-1) === ')' &&
    !words.slice(0, open).some((word) => ['[', '<', ','].includes(word)) &&
    /^[A-Za-z_]\w*$/.test(name ?? '')
    ? name
    : undefined;
}

/** Separates the words of a parameter by value from its name. */
function nameApart(words: readonly string[]): [string[], string[]] {
  const last = words.at(-1)!;
  const isUnnamed =
    words.length === 1 ||
    INTEGER_WORDS.has(last) ||
    last === 'const' ||
    last === 'volatile' ||
    words.at(-2) === '::' ||
    (words.length === 2 && ['struct', 'enum', 'const'].includes(words[0]!));
  return isUnnamed ? [[...words], []] : [words.slice(0, -1), [last]];
}

/** Returns the type that keywords in any order name together. */
function canonical(words: readonly string[]): string | undefined {
  const joined = words.join(' ');
  const known = own(KEYWORD_TYPES, joined);
  if (known !== undefined || words.length < 2) return known;
  const order = ['unsigned', 'signed', 'char', 'short', 'long', 'int'];
  return own(
    KEYWORD_TYPES,
    [...words].sort((a, b) => order.indexOf(a) - order.indexOf(b)).join(' '),
  );
}

const isLong = (type: SourceType): boolean => type === 'long' || type === 'unsigned long';

/** Returns `long` for its other spellings. */
function longOf(words: readonly string[]): 'long' | 'unsigned long' | undefined {
  const rest = words.filter((word) => word !== 'long' && word !== 'int');
  if (
    words.length - rest.length > 2 ||
    words.filter((word) => word === 'long').length !== 1 ||
    rest.length > 1
  )
    return undefined;
  return rest.length === 0 || rest[0] === 'signed'
    ? 'long'
    : rest[0] === 'unsigned'
      ? 'unsigned long'
      : undefined;
}

/**
 * Returns the words between `__global__` and the parameters, without attributes and their
 * arguments.
 */
function withoutAttributes(words: readonly string[]): string[] {
  const left: string[] = [];
  let depth = 0;
  for (const word of words) {
    if (word === '(') depth++;
    else if (word === ')') depth--;
    else if (depth === 0 && !/^__\w+__$/.test(word)) left.push(word);
  }
  return left;
}

function vectorStructure(dtype: string, lanes: number): SourceStructure {
  const bytes = BYTES[dtype]!;
  return {
    fields: Object.fromEntries(['x', 'y', 'z', 'w'].slice(0, lanes).map((name) => [name, dtype])),
    align: lanes === 3 ? bytes : Math.min(16, bytes * lanes),
  };
}

const BYTES: Readonly<Record<string, number>> = {
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  f16: 2,
  bf16: 2,
  i32: 4,
  u32: 4,
  f32: 4,
  i64: 8,
  u64: 8,
  f64: 8,
};

/** Returns the type of `[3][4]` after a name. */
function arrayOf(words: readonly string[], type: SourceType): SourceType | undefined {
  if (words.length === 0) return type;
  const [open, size = '', close, ...rest] = words;
  if (open !== '[' || close !== ']' || !/^[1-9]\d*$/.test(size)) return undefined;
  const inner = arrayOf(rest, type);
  return inner === undefined ? undefined : [inner, Number(size)];
}
