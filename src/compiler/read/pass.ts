/**
 * One pass over a kernel's syntax, from top to bottom, with the types of variables as far as they
 * are known. Reading is repeated until no variable's type changes; the last pass gives the tree.
 */
import type { AnyNode } from 'acorn';
import type {
  DeviceFunctionText,
  KernelSource,
  NarrowGpu,
  SignatureEntry,
  Used,
} from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import type {
  AbiParam,
  DeclaredArray,
  Expression,
  LocalVariable,
  Place,
  Span,
  Statement,
  StorageType,
  ValueType,
} from '../tree.js';
import type { StructLayout } from '../../ground/struct-layout.js';
import { abiOrder } from './abi.js';
import { parseFunction, type ParsedFunction } from './parse.js';
import { effectsOf, mapValue, stabilise } from './stable.js';
import { insteadOfNegative, isUnsigned, join, settled, soFar, type Level } from './types.js';
import {
  inType,
  isNegative,
  memoryKey,
  typed,
  type NumberValue,
  type Slot,
  type Value,
  type Variable,
} from './values.js';

/**
 * A function whose statements are being read: the kernel's body, or a device function at one of its
 * calls.
 */
export interface Frame {
  readonly parsed: ParsedFunction;
  /** The number of its text in the tree. */
  readonly text: number;
  readonly key: string;
  readonly name: string;
  readonly uses: Readonly<Record<string, Used>>;
  /** The bindings of its names. */
  readonly bindings: Map<object, Value | Slot>;
  readonly caller: Frame | undefined;
  readonly fn: DeviceFunctionText | undefined;
  /** The destination of `return`: undefined for the kernel itself. */
  readonly result: Result | undefined;
  /** Enclosing loops, switches and labelled statements, innermost last. */
  readonly targets: Target[];
  /**
   * The span that its nodes are shown as: the call, for functions of the language, whose text is
   * not the user's.
   */
  readonly shownAs: Span | undefined;
  /** The part of gpu that exists, where it is not all. */
  readonly narrow?: NarrowGpu | undefined;
  /** The factor of `gpu.unroll`, for the loop that follows. */
  unroll: { readonly turns: number; readonly node: AnyNode } | undefined;
}

/** The result of a function's `return`s. */
export interface Result {
  readonly group: number;
  slot: Slot | undefined;
  returnsNothing: boolean;
  readonly origins: Set<string>;
  /** Slots of structures that can be assigned, and undefined for any other value. */
  readonly slots: Set<Slot | undefined>;
}

/** A target of `break` and `continue`. */
export interface Target {
  readonly labels: readonly string[];
  readonly id: number;
  readonly kind: 'loop' | 'switch' | 'block';
}

type NodeOf<Type extends AnyNode['type']> = Extract<AnyNode, { type: Type }>;

/** The reader of each type of expression. `wanted`: its value is used. */
type ExpressionRules = {
  readonly [Type in AnyNode['type']]?: (pass: Pass, node: NodeOf<Type>, wanted: boolean) => Value;
};

/** The reader of each type of statement. */
type StatementRules = {
  readonly [Type in AnyNode['type']]?: (
    pass: Pass,
    node: NodeOf<Type>,
    labels: readonly string[],
  ) => void;
};

/**
 * Rules of syntax. A rule reads the nodes below its own, of any type, through the pass:
 * `reading.ts` looks their rules up, and `rules.ts` lists all of them.
 */
export interface Rules {
  readonly expressions: ExpressionRules &
    Required<Pick<ExpressionRules, 'AssignmentExpression' | 'UpdateExpression'>>;
  readonly statements: StatementRules;
  /**
   * Reads a function's statements in place of the call, with the types of these arguments.
   * `shownAs`: the span in errors, where the text is the language's own.
   */
  readonly call: (
    pass: Pass,
    node: AnyNode,
    name: string,
    fn: DeviceFunctionText,
    given: readonly Value[],
    argNodes: readonly AnyNode[],
    shownAs?: Span,
  ) => Value;
}

/** The language's own functions, parsed. Their number is that of its names times types. */
const ownTexts = new Map<string, ParsedFunction>();

/** Facts that passes pass on to the next. */
export class PassFacts {
  readonly levels = new Map<string, Level>();
  /** The last writes of fields of a named structure, in the order of {@link Pass.now}. */
  readonly fieldWrites = new Map<string, number>();
  /** All places at which it is replaced, with the beginnings of the enclosing loops. */
  readonly replacements = new Map<string, Map<number, readonly number[]>>();
  readonly parsed = new Map<string, ParsedFunction>();
  readonly texts: string[] = [];
  readonly #textNumbers = new Map<string, number>();

  textNumber(text: string): number {
    let number = this.#textNumbers.get(text);
    if (number === undefined) {
      number = this.texts.push(text) - 1;
      this.#textNumbers.set(text, number);
    }
    return number;
  }

  /** Parses a text. `own`: one of the language's own texts, which all kernels share. */
  parse(text: string, own: boolean): { parsed: ParsedFunction; number: number } {
    const number = this.textNumber(text);
    const known = own ? ownTexts : this.parsed;
    let parsed = known.get(text);
    if (parsed === undefined) {
      parsed = parseFunction(text, number);
      known.set(text, parsed);
    }
    return { parsed, number };
  }

  /**
   * Makes variables i64 that hold only literals of level `int32u`, which 32 bits hold only without
   * a sign; gives whether there are any.
   */
  settle(): boolean {
    let changed = false;
    for (const [key, level] of this.levels) {
      if (level !== 'int32u') continue;
      this.levels.set(key, 'i64');
      changed = true;
    }
    return changed;
  }
}

export class Pass {
  readonly source: KernelSource;
  readonly facts: PassFacts;
  readonly rules: Rules;
  readonly params: readonly (SignatureEntry & { readonly name: string })[];
  readonly arrays: DeclaredArray[] = [];
  cooperative = false;
  dependent = false;
  /** Whether a variable's type changed after it was used. */
  changed = false;
  frame!: Frame;

  /** Local arrays that hold the sums of a warp group's products. */
  readonly sums = new Set<number>();
  /** Local arrays that are factors of such products. */
  readonly factors = new Set<number>();
  readonly #last: (() => void)[] = [];

  readonly #locals: {
    name: string;
    type: ValueType | undefined;
    key: string | undefined;
    constant: boolean;
    named: boolean;
  }[] = [];
  readonly #variables = new Map<string, Variable>();
  readonly #touched = new Set<string>();
  readonly #abi = new Map<string, { param: AbiParam; nodes: { abi: number }[] }>();
  readonly #arrayKeys = new Map<string, number>();
  /** Spans in texts of the language, and the span that is shown instead of each. */
  readonly #hidden = new Map<Span, Span>();
  #later: KernelSourceError | undefined = undefined;
  #out: Statement[] = [];
  #groups = 0;
  #names = 0;
  /** The number of nodes read so far: inlining can multiply them without bound. */
  #nodes = 0;
  /** The place where each named structure was made, and the beginnings of the enclosing loops. */
  readonly #named = new Map<string, number>();
  readonly #loops: number[] = [];
  readonly #reached = new Set<string>();

  constructor(source: KernelSource, facts: PassFacts, rules: Rules) {
    this.source = source;
    this.facts = facts;
    this.rules = rules;
    this.params = Object.entries(source.signature).map(([name, entry]) => ({ ...entry, name }));
  }

  // The current place.

  span(node: AnyNode): Span {
    const span = { text: this.frame.text, start: node.start, end: node.end };
    const shown = this.frame.shownAs ?? this.#inOrigin(span);
    if (shown !== undefined) this.#hidden.set(span, shown);
    return span;
  }

  /** The place in the text from which the kernel's was made. */
  #inOrigin({ text, start, end }: Span): Span | undefined {
    const { origin } = this.source;
    return origin === undefined || text !== 0
      ? undefined
      : { text: this.facts.textNumber(origin.text), ...origin.spanOf(start, end) };
  }

  /** Replaces the spans of the language's own texts by those that are shown. */
  showSpans(): void {
    for (const [span, shown] of this.#hidden) Object.assign(span, shown);
  }

  #error(node: AnyNode | Span, what: string, fix: string): KernelSourceError {
    const own = 'text' in node ? node : this.span(node);
    const span = this.#hidden.get(own) ?? own;
    return new KernelSourceError(what, fix, span, this.facts.texts[span.text] ?? this.source.text);
  }

  fail(node: AnyNode | Span, what: string, fix: string): never {
    throw this.#error(node, what, fix);
  }

  /** Records an error that holds only if it remains when all types are known. */
  failUnlessTypesChange(node: AnyNode | Span, what: string, fix: string): void {
    this.#later ??= this.#error(node, what, fix);
  }

  /** Throws the recorded error, once all types are known. */
  failNow(): void {
    if (this.#later !== undefined) throw this.#later;
  }

  /** The code of a node, for messages. */
  code(node: AnyNode): string {
    const own = { text: this.frame.text, start: node.start, end: node.end };
    const shown = this.#inOrigin(own) ?? own;
    const text = (this.facts.texts[shown.text] ?? '')
      .slice(shown.start, shown.end)
      .replace(/\s+/g, ' ');
    return text.length > 60 ? `${text.slice(0, 57)}...` : text;
  }

  /** Counts nodes. */
  count(node: AnyNode): void {
    if (++this.#nodes > 400_000)
      this.fail(
        node,
        'This kernel is too large: inlining its device functions gives more than 400,000 ' +
          'expressions',
        'Call them in a loop, or from fewer places.',
      );
  }

  // Structures

  /** The position of reading: it grows along the text, in the same way in every pass. */
  get now(): number {
    return this.#nodes;
  }

  /** Records that a structure gets its name here. */
  nameStructure(key: string): void {
    this.#named.set(key, this.now);
  }

  /** Reads code that repeats. */
  inLoop(readTurn: () => void): void {
    this.#loops.push(this.now);
    readTurn();
    this.#loops.pop();
  }

  /** Whether this place, one of those of the name, runs after another of them, or again. */
  mayRepeat(name: string): boolean {
    const again = this.#loops.length > 0 || this.#reached.has(name);
    this.#reached.add(name);
    return again;
  }

  /** Records that fields of the named structure are written here, or that it is replaced. */
  wrote(key: string, of: 'fieldWrites' | 'replacements'): void {
    const { fieldWrites, replacements } = this.facts;
    if (of === 'fieldWrites') {
      if ((fieldWrites.get(key) ?? -1) >= this.now) return;
      fieldWrites.set(key, this.now);
    } else {
      const times = replacements.get(key) ?? new Map<number, readonly number[]>();
      if (times.has(this.now)) return;
      replacements.set(key, times.set(this.now, [...this.#loops]));
    }
    this.changed = true;
  }

  #replacementsOf(key: string): [at: number, loops: readonly number[]][] {
    return [...(this.facts.replacements.get(key) ?? [])];
  }

  /**
   * Whether the structure is replaced after position `then` and before the current one, or anywhere
   * in a loop that encloses the current position and not `then`.
   */
  isReplacedSince(key: string, then: number): boolean {
    const around = this.#loops.find((begun) => begun > then);
    return this.#replacementsOf(key).some(
      ([at, loops]) =>
        (at > then && at < this.now) || (around !== undefined && loops.includes(around)),
    );
  }

  /** Rejects the use of a structure in memory that was named by its index and replaced since. */
  failIfReplaced(param: number, then: number, span: Span): void {
    if (this.#replacementsOf(memoryKey(param)).some(([at]) => at > then && at <= this.now))
      this.fail(
        span,
        'Another structure replaces this element before it is used',
        'Copy it before, as in const e = { ...s[i] }.',
      );
  }

  isWritten(key: string): boolean {
    return this.facts.fieldWrites.has(key);
  }

  isReplaced(key: string): boolean {
    return this.facts.replacements.has(key);
  }

  /**
   * Whether the structure is written or replaced after this place in the text; with `again` also
   * before it, in a later iteration of a loop that the structure was declared outside of.
   */
  comesLater(of: 'fieldWrites' | 'replacements', key: string, again = false): boolean {
    const named = this.#named.get(key) ?? -1;
    const since = again ? this.#loops.find((begun) => begun > named) : undefined;
    const last =
      of === 'fieldWrites'
        ? (this.facts.fieldWrites.get(key) ?? -1)
        : Math.max(-1, ...this.#replacementsOf(key).map(([at]) => at));
    return last > (since ?? this.now);
  }

  // Statements

  get out(): readonly Statement[] {
    return this.#out;
  }

  emit(statement: Statement): void {
    this.#out.push(statement);
  }

  /** Collects the statements that `read` emits. */
  collect(read: () => void): Statement[] {
    const before = this.#out;
    this.#out = [];
    try {
      read();
      return this.#out;
    } finally {
      this.#out = before;
    }
  }

  newGroup(): number {
    return this.#groups++;
  }

  /**
   * Reads operands in order; parts of earlier operands that statements of later ones could change
   * are saved before them.
   */
  inOrder<T extends readonly (() => Value)[]>(reads: T): { [K in keyof T]: Value } {
    const values: Value[] = [];
    const times: number[] = [];
    for (const read of reads) {
      const mark = this.#out.length;
      times.push(this.now);
      const value = read();
      for (const [at, earlier] of values.entries()) {
        if (earlier.kind === 'element')
          this.failIfReplaced(earlier.param, times[at]!, earlier.index.span);
      }
      if (this.#out.length > mark && values.length > 0) {
        const after = this.#out.splice(mark);
        const effects = effectsOf(after);
        for (const [at, earlier] of values.entries())
          values[at] = mapValue(earlier, (expression) =>
            stabilise(expression, effects, (part) => this.save(part, 'before')),
          );
        this.#out.push(...after);
      }
      values.push(value);
    }
    return values as { [K in keyof T]: Value };
  }

  // Locals

  /** Declares a local. Its name becomes an identifier: `p.x` is `p_x`. */
  #newLocal(
    name: string,
    type: ValueType | undefined,
    key: string | undefined,
    constant: boolean,
  ): number {
    return (
      this.#locals.push({
        name: name.replace(/[^\w$]+/g, '_'),
        type,
        key,
        constant,
        named: key !== undefined,
      }) - 1
    );
  }

  /**
   * Gives a temporary the name of the constant that it becomes; false where the value is no
   * temporary, or has a name.
   */
  rename(value: Expression, name: string): boolean {
    const local = value.op === 'local' ? this.#locals[value.local]! : undefined;
    if (local === undefined || local.named) return false;
    local.name = name;
    local.named = true;
    return true;
  }

  /** Puts the value into a local of its own, and gives that. */
  save(value: Expression, name: string): Expression {
    const local = this.#newLocal(name, value.type, undefined, true);
    this.emit({ kind: 'assign', local, value, span: value.span });
    return { op: 'local', type: value.type, local, span: value.span };
  }

  /** Gives the value in a form that may be used more than once, and later. */
  reusable(value: Expression, name = 'value'): Expression {
    if (
      value.op === 'constant' ||
      value.op === 'abi' ||
      (value.op === 'special' && value.name !== 'clock' && value.name !== 'globaltimer')
    )
      return value;
    if (value.op === 'local' && this.#locals[value.local]!.constant) return value;
    return this.save(value, name);
  }

  /** The variable of this key; a new one is made at first. */
  variable(key: string, name: string, constant = false): Variable {
    let variable = this.#variables.get(key);
    if (variable === undefined) {
      variable = { key, name, local: this.#newLocal(name, undefined, key, constant), constant };
      this.#variables.set(key, variable);
    }
    return variable;
  }

  freshKey(node: AnyNode, of: string): string {
    return `${this.frame.key}/${node.start}:${node.end}#${of}`;
  }

  readVariable(variable: Variable, span: Span): NumberValue {
    this.#touched.add(variable.key);
    const level = this.facts.levels.get(variable.key) ?? 'bool';
    return typed({ op: 'local', type: soFar(level), local: variable.local, span });
  }

  assignVariable(variable: Variable, value: NumberValue, span: Span): void {
    const before = this.facts.levels.get(variable.key);
    const level = before === undefined ? value.level : join(before, value.level);
    if (level !== before) {
      this.facts.levels.set(variable.key, level);
      if (
        this.#touched.has(variable.key) &&
        (before === undefined || soFar(before) !== soFar(level))
      )
        this.changed = true;
    }
    this.#touched.add(variable.key);
    const type = soFar(level);
    if (isUnsigned(type) && isNegative(value)) {
      this.failUnlessTypesChange(
        span,
        `\`${variable.name}\` holds numbers of ${type}, and is given a negative one, which ` +
          `${type} does not hold`,
        insteadOfNegative(type),
      );
    }
    this.emit({ kind: 'assign', local: variable.local, value: inType(value, type), span });
  }

  locals(): LocalVariable[] {
    return this.#locals.map(({ name, type, key, constant }) => ({
      name,
      constant,
      type: type ?? settled(this.facts.levels.get(key ?? '') ?? 'int'),
    }));
  }

  // Memory and arguments

  /** A node for an argument. Its index in the list of PTX parameters is set at the end. */
  abi(param: AbiParam, span: Span, type: ValueType): Expression {
    const node = { op: 'abi' as const, type, abi: -1, span };
    this.#useAbi(param).push(node);
    return node;
  }

  #useAbi(param: AbiParam): { abi: number }[] {
    const key = JSON.stringify(param);
    let used = this.#abi.get(key);
    if (used === undefined) {
      used = { param, nodes: [] };
      this.#abi.set(key, used);
    }
    return used.nodes;
  }

  /** What is done when the body has been read. */
  atEnd(last: () => void): void {
    this.#last.push(last);
  }

  finish(): void {
    for (const last of this.#last) last();
  }

  /** Numbers the arguments that were used. */
  finishAbi(): AbiParam[] {
    const used = [...this.#abi.values()].sort((a, b) => abiOrder(a.param, b.param));
    for (const [at, { nodes }] of used.entries()) for (const node of nodes) node.abi = at;
    return used.map(({ param }) => param);
  }

  paramPlace(
    param: number,
    index: Expression,
    storage: StorageType,
    span: Span,
    field?: StructLayout['fields'][number],
  ): Place {
    this.#useAbi({ kind: 'pointer', param });
    return {
      memory: { kind: 'param', param },
      index,
      storage,
      span,
      ...(field !== undefined && { field }),
    };
  }

  /** The array of this key; it is declared at first, and several calls may share one. */
  array(key: string, declared: DeclaredArray): number {
    const known = this.#arrayKeys.get(key);
    if (known !== undefined) return known;
    const array = this.arrays.push(declared) - 1;
    this.#arrayKeys.set(key, array);
    return array;
  }

  uniqueName(name: string): string {
    return `${name}${this.#names++}`;
  }
}
