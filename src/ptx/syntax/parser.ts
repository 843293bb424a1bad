// Reads a whole PTX module: directives, functions, variables, and bodies through the instruction
// parser. Debug sections are skipped, `.loc` is kept.

import { SourceText } from '../error.js';
import { isScalarType } from '../scalar-types.js';
import type {
  Initializer,
  Prototype,
  PtxFunction,
  PtxModule,
  Space,
  Statement,
  Variable,
} from './ast.js';
import { resolveElements } from './array-elements.js';
import { parseInstruction } from './instruction-parser.js';
import { TOKEN } from './lexer.js';
import { TokenReader } from './token-reader.js';

/**
 * It is more than any kernel requests, and small enough that blocks with such shared memory fit.
 */
const LARGEST_ALIGNMENT = 65536;
const LINKAGE = new Set(['extern', 'visible', 'weak', 'common']);
const TARGET_OPTIONS = new Set([
  'debug',
  'texmode_unified',
  'texmode_independent',
  'map_f64_to_f32',
]);
const VARIABLE_SPACES = new Set<string>(['global', 'const', 'shared', 'local', 'param', 'tex']);
const FUNCTION_DIRECTIVES = new Set([
  'maxntid',
  'reqntid',
  'minnctapersm',
  'maxnctapersm',
  'maxnreg',
  'noreturn',
  'explicitcluster',
  'reqnctapercluster',
  'maxclusterrank',
  'blocksareclusters',
  'abi_preserve',
  'abi_preserve_control',
  'unified',
]);

/**
 * Parses a PTX module. The tree refers to the text by offsets. Types, operands and the forms of
 * instructions are not checked: {@link compilePtx} does that.
 *
 * @throws {@link PtxError} with code 'syntax' if the text does not parse.
 *
 * @example
 * ```ts
 * const { version, target, functions } = parsePtx(`.version 8.0
 *   .target sm_80
 *   .address_size 64
 *   .visible .entry idle() { ret; }`);
 * console.log(version, target, functions.map(({ name }) => name)); // 8.0 sm_80 [ 'idle' ]
 * ```
 */
export function parsePtx(text: string, fileName?: string): PtxModule {
  if (typeof (text as unknown) !== 'string') {
    const isBytes = (ArrayBuffer.isView as (value: unknown) => boolean)(text);
    const type = text === null ? 'null' : typeof text;
    const got = isBytes ? 'bytes. Write new TextDecoder().decode(bytes)' : type;
    throw new TypeError(`source: expected the text of a PTX module, a string, got ${got}.`);
  }
  return new ModuleParser(new SourceText(text, fileName)).parse();
}

class ModuleParser {
  private readonly reader: TokenReader;
  private readonly module: PtxModule;
  private sized = false;

  constructor(source: SourceText) {
    this.reader = new TokenReader(source);
    this.module = {
      version: '',
      target: '',
      targetOptions: new Set(),
      addressSize: 64,
      functions: [],
      variables: [],
      perThread: [],
      aliases: new Map(),
      files: new Map(),
      source,
    };
  }

  parse(): PtxModule {
    const { reader, module } = this;
    while (reader.kindAt(0) !== TOKEN.end) this.item();
    if (!module.version) throw reader.error("the module has no '.version' directive", 0);
    if (!module.target) throw reader.error("the module has no '.target' directive", 0);
    if (reader.hasElements) resolveElements(module);
    return module;
  }

  private item(): void {
    const { reader, module } = this;
    if (reader.accept(';')) return;
    const { at } = reader;
    const linkage: string[] = [];
    while (reader.kindAt(0) === TOKEN.dotted && LINKAGE.has(reader.text.slice(1)))
      linkage.push(reader.dotted('a directive'));
    if (reader.accept('.attribute')) this.attributes();
    const directive = reader.dotted('a directive');
    switch (directive) {
      case 'version': {
        const version = reader.text;
        if (!/^\d+\.\d+$/.test(version)) throw reader.unexpected('a version number');
        if (module.version) throw reader.error("'.version' occurs twice", at);
        reader.advance();
        module.version = version;
        return;
      }
      case 'target':
        if (!module.version || module.target)
          throw reader.error("'.target' occurs once, after '.version'", at);
        module.target = reader.word('a target');
        while (reader.accept(',')) {
          const option = reader.word('a target option');
          if (!TARGET_OPTIONS.has(option))
            throw reader.error(`'${option}' is no option of a target`, at);
          module.targetOptions.add(option);
        }
        return;
      case 'address_size':
        if (!module.target || this.sized)
          throw reader.error("'.address_size' occurs once, after '.target'", at);
        this.sized = true;
        module.addressSize = reader.count('32 or 64');
        if (module.addressSize !== 64)
          throw reader.error('only .address_size 64 is covered', at, 'unsupported');
        return;
      case 'entry':
      case 'func':
        module.functions.push(this.func(directive === 'entry', linkage, at));
        return;
      case 'alias': {
        const name = reader.word('a name');
        reader.expect(',');
        module.aliases.set(name, reader.word('a function'));
        reader.expect(';');
        return;
      }
    }
    if (this.ignored(directive)) return;
    if (directive === 'reg') {
      this.beforeAbi('registers', at);
      module.perThread.push(this.registers(at));
      return;
    }
    if (directive === 'local') {
      this.beforeAbi('.local variables', at);
      module.perThread.push(...this.variables('local', linkage, at));
      return;
    }
    if (VARIABLE_SPACES.has(directive)) {
      module.variables.push(...this.variables(directive as Space, linkage, at));
      return;
    }
    throw reader.error(`unknown directive '.${directive}'`, at);
  }

  /** ptxas does not use the ABI with these, and rejects them in functions that need it. */
  private beforeAbi(what: string, at: number): void {
    const { version } = this.module;
    if (Number(version.split('.')[0]) >= 3)
      throw this.reader.error(
        `${what} outside functions are of PTX before 3.0, this is ${version}: declare them ` +
          'in each function',
        at,
        'semantic',
      );
  }

  /** Reads a directive that has no effect in this compiler. */
  private ignored(directive: string): boolean {
    const { reader } = this;
    switch (directive) {
      case 'file':
        this.file();
        while (reader.accept(',')) reader.count('a number');
        return true;
      case 'pragma':
        do {
          if (reader.kindAt(0) !== TOKEN.string) throw reader.unexpected('a string');
          reader.advance();
        } while (reader.accept(','));
        reader.expect(';');
        return true;
      case 'section': {
        reader.advance();
        reader.expect('{');
        while (!reader.is('}')) {
          if (reader.kindAt(0) === TOKEN.end) throw reader.unexpected("'}'");
          reader.advance();
        }
        reader.advance();
        return true;
      }
    }
    return false;
  }

  private file(): void {
    const { reader } = this;
    const number = reader.count('a file number');
    if (reader.kindAt(0) !== TOKEN.string) throw reader.unexpected('a file name');
    this.module.files.set(number, reader.text.replace(/^"|"$/g, ''));
    reader.advance();
  }

  private func(entry: boolean, linkage: string[], at: number): PtxFunction {
    const { reader } = this;
    // Function attributes may come before the name: .attribute(.unified(…)).
    const returns = !entry && reader.is('(') ? this.parameterList() : [];
    const name = reader.word('a function name');
    const params = reader.is('(') ? this.parameterList() : [];
    const directives = new Map<string, number[]>();
    for (;;) {
      if (reader.kindAt(0) !== TOKEN.dotted) break;
      const directive = reader.dotted('a directive');
      if (directive === 'pragma') {
        this.ignored('pragma');
        continue;
      }
      if (!FUNCTION_DIRECTIVES.has(directive))
        throw reader.error(`unknown directive '.${directive}'`, reader.at);
      const numbers: number[] = [];
      if (reader.kindAt(0) === TOKEN.number) {
        do numbers.push(reader.count('a number'));
        while (reader.accept(','));
      }
      directives.set(directive, numbers);
    }
    let body: Statement[] | undefined;
    if (reader.accept('{')) body = this.block();
    else reader.expect(';');
    return {
      name,
      entry,
      linkage,
      returns,
      params,
      directives,
      body,
      at,
      line: reader.source.lineOf(at),
    };
  }

  private parameterList(): Variable[] {
    const { reader } = this;
    const list: Variable[] = [];
    reader.expect('(');
    if (reader.accept(')')) return list;
    do {
      const { at } = reader;
      const space = reader.dotted("'.param' or '.reg'");
      if (space !== 'param' && space !== 'reg')
        throw reader.error("expected '.param' or '.reg'", at);
      list.push(this.variable(space, [], at));
    } while (reader.accept(','));
    reader.expect(')');
    return list;
  }

  private variables(space: Space, linkage: string[], at: number): Variable[] {
    const { reader } = this;
    const list = [this.variable(space, linkage, at)];
    while (reader.accept(',')) list.push({ ...list[0]!, ...this.declarator() });
    reader.expect(';');
    return list;
  }

  private variable(space: Space, linkage: string[], at: number): Variable {
    const { reader } = this;
    let align: number | undefined;
    let type: string | undefined;
    let vector = 1;
    let pointer = false;
    while (reader.kindAt(0) === TOKEN.dotted) {
      const part = reader.dotted('a type');
      if (part === 'align') {
        const number = reader.count('an alignment');
        if (number < 1 || number & (number - 1) || number > LARGEST_ALIGNMENT) {
          throw reader.error(
            `an alignment is a power of two, ${LARGEST_ALIGNMENT} at most`,
            at,
            'semantic',
          );
        }
        // The alignment after .ptr is that of the memory to which the parameter points.
        if (!pointer) align = number;
      } else if (part === 'ptr') {
        pointer = true;
      } else if (part === 'attribute') {
        this.attributes();
      } else if (/^v[24]$/.test(part)) {
        vector = Number(part.slice(1));
      } else if (isScalarType(part)) {
        type = part;
      } else if (!VARIABLE_SPACES.has(part) || !pointer) {
        throw reader.error(`'.${part}' is not a type`, reader.at);
      }
    }
    if (type === undefined) throw reader.unexpected('a type');
    return { kind: 'variable', space, type, vector, align, linkage, pointer, ...this.declarator() };
  }

  /** Reads what follows `.attribute`. */
  private attributes(): void {
    const { reader } = this;
    reader.expect('(');
    while (!reader.accept(')')) {
      if (reader.kindAt(0) === TOKEN.end) throw reader.unexpected("')'");
      if (reader.accept('(')) {
        while (!reader.accept(')')) {
          if (reader.kindAt(0) === TOKEN.end) throw reader.unexpected("')'");
          reader.advance();
        }
      } else {
        reader.advance();
      }
    }
  }

  private declarator(): {
    name: string;
    dimensions: number[];
    initializer: Initializer | undefined;
    at: number;
  } {
    const { reader } = this;
    const { at } = reader;
    const name = reader.word('a name');
    const dimensions: number[] = [];
    while (reader.accept('[')) {
      dimensions.push(reader.is(']') ? 0 : reader.count('an array size'));
      reader.expect(']');
    }
    const initializer = reader.accept('=') ? this.initializer() : undefined;
    return { name, dimensions, initializer, at };
  }

  private initializer(): Initializer {
    const { reader } = this;
    const { at } = reader;
    return reader.nested((): Initializer => {
      if (reader.accept('{')) {
        const elements: Initializer[] = [];
        while (!reader.accept('}')) {
          elements.push(this.initializer());
          if (!reader.accept(',') && !reader.is('}')) throw reader.unexpected("',' or '}'");
        }
        return { kind: 'list', elements, at };
      }
      if (reader.kindAt(0) === TOKEN.word && !reader.is('WARP_SZ')) return this.symbolInitializer();
      if (
        reader.kindAt(0) === TOKEN.number &&
        reader.kindAt(1) === TOKEN.punctuation &&
        reader.textAt(1) === '('
      ) {
        // mask(symbol) is one byte of an address.
        const mask = reader.constant(10);
        reader.expect('(');
        const symbol = this.symbolInitializer();
        reader.expect(')');
        if (mask.kind !== 'integer' || symbol.kind !== 'symbol')
          throw reader.error('expected mask(symbol)', at);
        return { ...symbol, mask: mask.value };
      }
      return reader.constant();
    });
  }

  private symbolInitializer(): Initializer {
    const { reader } = this;
    const { at } = reader;
    const generic = reader.is('generic') && reader.textAt(1) === '(';
    if (generic) {
      reader.advance();
      reader.advance();
    }
    const name = reader.word('a symbol');
    if (generic) reader.expect(')');
    let addend = 0;
    while (reader.is('+') || reader.is('-')) {
      const sign = reader.accept('-') ? -1 : (reader.advance(), 1);
      addend += sign * reader.count('an offset');
    }
    return { kind: 'symbol', name, addend, generic, at };
  }

  /** Statements up to the closing brace. */
  private block(): Statement[] {
    const { reader } = this;
    return reader.nested(() => {
      const statements: Statement[] = [];
      while (!reader.accept('}')) {
        if (reader.kindAt(0) === TOKEN.end) throw reader.unexpected("'}'");
        this.statement(statements);
      }
      return statements;
    });
  }

  private statement(out: Statement[]): void {
    const { reader } = this;
    if (reader.accept(';')) return;
    if (reader.accept('{')) {
      out.push({ kind: 'block', statements: this.block() });
      return;
    }
    if (reader.kindAt(0) === TOKEN.dotted) {
      this.directive(out);
      return;
    }
    if (reader.kindAt(0) === TOKEN.word && reader.is(':', 1)) {
      const { at } = reader;
      const name = reader.word('a label');
      reader.expect(':');
      const next = reader.kindAt(0) === TOKEN.dotted ? reader.text : '';
      if (next === '.callprototype') {
        reader.advance();
        out.push({ kind: 'prototype', name, prototype: this.prototype(), at });
      } else if (next === '.branchtargets' || next === '.calltargets') {
        reader.advance();
        const labels: string[] = [];
        do {
          const label = reader.word('a label');
          // `N<4>` declares N0 to N3.
          if (reader.accept('<')) {
            const count = reader.countOfNames(1 << 16, 'labels');
            for (let number = 0; number < count; number++) labels.push(`${label}${number}`);
          } else {
            labels.push(label);
          }
        } while (reader.accept(','));
        reader.expect(';');
        out.push({ kind: 'targets', name, labels, at });
      } else {
        out.push({ kind: 'label', name, at });
      }
      return;
    }
    out.push(parseInstruction(reader));
  }

  private prototype(): Prototype {
    const { reader } = this;
    const returns = reader.is('(') ? this.parameterList() : [];
    reader.expect('_');
    const params = reader.is('(') ? this.parameterList() : [];
    let noreturn = false;
    while (reader.kindAt(0) === TOKEN.dotted) {
      const directive = reader.dotted('a directive');
      if (directive === 'noreturn') noreturn = true;
      else if (directive !== 'abi_preserve' && directive !== 'abi_preserve_control')
        throw reader.error(`unknown directive '.${directive}'`);
      else reader.count('a number');
    }
    reader.expect(';');
    return { returns, params, noreturn };
  }

  private directive(out: Statement[]): void {
    const { reader } = this;
    const { at } = reader;
    const linkage: string[] = [];
    while (reader.kindAt(0) === TOKEN.dotted && LINKAGE.has(reader.text.slice(1)))
      linkage.push(reader.dotted('a directive'));
    const name = reader.dotted('a directive');
    if (name === 'reg') {
      out.push(this.registers(at));
      return;
    }
    if (name === 'loc') {
      out.push({
        kind: 'location',
        file: reader.count('a number'),
        line: reader.count('a number'),
        column: reader.count('a number'),
      });
      // This is `, function_name label+offset, inlined_at file line column`.
      while (reader.accept(',')) {
        if (reader.word('an attribute') === 'inlined_at') {
          for (const what of ['a file', 'a line', 'a column']) reader.count(what);
        } else {
          reader.word('a label');
          if (reader.accept('+')) reader.count('an offset');
        }
      }
      return;
    }
    if (name === 'pragma' && this.ignored(name)) return;
    if (VARIABLE_SPACES.has(name)) {
      out.push(...this.variables(name as Space, linkage, at));
      return;
    }
    throw reader.error(`unknown directive '.${name}'`, at);
  }

  private registers(at: number): Statement {
    const { reader } = this;
    let type: string | undefined;
    let vector = 1;
    while (reader.kindAt(0) === TOKEN.dotted) {
      const part = reader.dotted('a type');
      if (/^v[24]$/.test(part)) vector = Number(part.slice(1));
      else if (isScalarType(part)) type = part;
      else if (part === 'align') reader.count('an alignment');
      else throw reader.error(`'.${part}' is not a type`, at);
    }
    if (type === undefined) throw reader.unexpected('a type');
    const names: { name: string; count: number | undefined; at: number }[] = [];
    do {
      const start = reader.at;
      const name = reader.word('a register name');
      let count: number | undefined;
      if (reader.accept('<')) {
        count = reader.countOfNames(1 << 24, 'registers');
      }
      names.push({ name, count, at: start });
    } while (reader.accept(','));
    reader.expect(';');
    return { kind: 'registers', type, vector, names };
  }
}
