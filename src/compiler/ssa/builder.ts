/**
 * The state of building: the block that is being filled, the value of each variable at its end, the
 * targets of `break` and `continue`. Variables become values by the algorithm of Braun et al.
 * ("Simple and Efficient Construction of Static Single Assignment Form", 2013). Control flow is
 * structured, so the variables that a loop assigns are known at its head.
 */
import { readAs } from '../storage-types.js';
import { KernelSourceError } from '../source-error.js';
import type { Expression, KernelTree, Span, Statement, ValueType } from '../tree.js';
import { SsaFunction, resolve } from './function.js';
import type { Constant, NumberType, RegisterType, Value, Block } from './function.js';
import type { Shape } from './simplify.js';
import { simplify } from './simplify.js';

/** Options of building. */
export interface BuildOptions {
  /** Compute capability, as major · 10 + minor. */
  readonly capability: number;
  /** Threads of a block, where every launch has the same. */
  readonly block?: readonly [number, number, number] | undefined;
  /** Every access of a parameter is checked against its bounds. */
  readonly checks: boolean;
  /** Whether loops are unrolled and arrays become registers. False is for tests that compare. */
  readonly optimise: boolean;
  /** Gives file and line for messages of assertions. */
  readonly where: (span: Span) => { readonly file: string; readonly line: number };
}

export interface Exits {
  readonly leave: Block;
  readonly again: Block | undefined;
}

export const registerOf: Readonly<Record<ValueType, RegisterType>> = {
  bool: 'pred',
  i32: 'b32',
  u32: 'b32',
  i64: 'b64',
  u64: 'b64',
  f32: 'f32',
  f64: 'f64',
};
export const numberOf: Readonly<Record<ValueType, NumberType>> = {
  bool: 'pred',
  i32: 's32',
  u32: 'u32',
  i64: 's64',
  u64: 'u64',
  f32: 'f32',
  f64: 'f64',
};

export const isFloat = (type: ValueType): boolean => type === 'f32' || type === 'f64';
export const isWide = (type: ValueType): boolean =>
  type === 'i64' || type === 'u64' || type === 'f64';

/**
 * The builders of the tree's nodes. Expressions hold places and statements, places and statements
 * hold expressions: each builds its children through the builder, which gets these rules from
 * `build.ts`.
 */
export interface BuildRules {
  readonly value: (b: Builder, node: Expression) => Value;
  readonly statements: (b: Builder, statements: readonly Statement[]) => void;
}

export class Builder {
  readonly tree: KernelTree;
  readonly options: BuildOptions;
  readonly f: SsaFunction;
  /** Targets of `break` and `continue`, by loop or group. */
  readonly exits = new Map<number, Exits>();
  /** Local arrays whose elements are variables: the number of the first one. */
  readonly registers = new Map<number, number>();
  /**
   * Of these arrays, those whose variables hold two elements each: fragments of matrices with
   * elements of 16 bits.
   */
  readonly paired = new Set<number>();
  /** Local arrays that have a computed index. */
  readonly indexed = new Set<number>();
  /** The number of loops around the statement that is being built. */
  depth = 0;
  span: Span | undefined = undefined;
  /** Operations that unrolling has added. */
  unrolled = 0;
  private readonly held = new Map<Block, Map<number, Value>>();
  private readonly onceValues = new Map<string, Value>();
  private readonly rules: BuildRules;
  private filling: Block | undefined;

  constructor(tree: KernelTree, options: BuildOptions, rules: BuildRules) {
    this.tree = tree;
    this.options = options;
    this.rules = rules;
    this.f = new SsaFunction(tree.abi);
    this.held.set(this.f.entry, new Map());
    this.filling = this.f.entry;
  }

  /** Builds an expression. */
  value(node: Expression): Value {
    return this.rules.value(this, node);
  }

  /** Builds statements, in their order. */
  statements(statements: readonly Statement[]): void {
    this.rules.statements(this, statements);
  }

  /** Whether control reaches the current place. */
  get reachable(): boolean {
    return this.filling !== undefined;
  }

  get block(): Block {
    // Code after a `break` is built into a block without predecessors.
    if (this.filling === undefined) this.enter(this.newBlock());
    return this.filling!;
  }

  newBlock(): Block {
    const block = this.f.block(this.depth);
    this.held.set(block, new Map());
    return block;
  }

  /** Continues in this block. All its predecessors are known, except those at a loop's end. */
  enter(block: Block): void {
    const [from] = block.before;
    // A block whose only predecessor has no other successor begins with the values that hold at the
    // end of the predecessor, so the two share one map. Without it each read of a variable would go
    // back through all blocks of an unrolled loop.
    if (block.before.length === 1 && from!.end?.kind === 'jump' && !this.heads.has(block))
      this.held.set(block, this.held.get(from!)!);
    this.f.blocks.push(block);
    this.filling = block;
  }

  /** Continues in the block if it has a predecessor. */
  enterIfReached(block: Block): void {
    if (block.before.length > 0) this.enter(block);
    else this.filling = undefined;
  }

  jump(to: Block): void {
    if (this.filling === undefined) return;
    this.filling.end = { kind: 'jump', to };
    to.before.push(this.filling);
    this.filling = undefined;
  }

  branch(test: Value, then: Block, otherwise: Block): void {
    if (this.filling === undefined) return;
    if (test.constant !== undefined || then === otherwise) {
      this.jump(test.constant === false ? otherwise : then);
      return;
    }
    if (test.op === 'not') {
      this.branch(resolve(test.args[0]!), otherwise, then);
      return;
    }
    this.filling.end = { kind: 'branch', test, then, otherwise };
    then.before.push(this.filling);
    otherwise.before.push(this.filling);
    this.filling = undefined;
  }

  finish(): void {
    if (this.filling === undefined) return;
    this.filling.end = { kind: 'return' };
    this.filling = undefined;
  }

  /** Makes an operation, or a simpler value that is the same. */
  readonly make = (
    op: string,
    type: RegisterType,
    args: Value[],
    detail = '',
    as?: NumberType,
  ): Value => {
    const shape: Shape = { op, type, args: args.map(resolve), detail, as };
    const simpler = simplify(shape, this.make, this.f);
    return simpler ?? this.effect(op, type, shape.args, detail, as);
  };

  /** Makes an operation without simplifying it. */
  effect(op: string, type: RegisterType, args: Value[], detail = '', as?: NumberType): Value {
    const value = this.f.value(op, type, args.map(resolve), detail, as);
    const { block } = this;
    value.block = block;
    value.span = this.span;
    block.values.push(value);
    return value;
  }

  /** Makes an operation that is the same everywhere: once, where the kernel begins. */
  once(op: string, type: RegisterType, args: Value[], detail = '', as?: NumberType): Value {
    const key = `${op} ${detail} ${args.map((arg) => arg.id).join()}`;
    let value = this.onceValues.get(key);
    if (value === undefined) {
      value = this.f.value(op, type, args, detail, as);
      value.block = this.f.entry;
      this.onceValues.set(key, value);
    }
    return value;
  }

  /** The values at the kernel's beginning. */
  get firstValues(): readonly Value[] {
    return [...this.onceValues.values()];
  }

  constant(type: RegisterType, constant: Constant): Value {
    return this.f.constant(type, constant);
  }

  phi(block: Block, type: RegisterType): Value {
    const phi = this.f.value('phi', type, []);
    phi.block = block;
    block.phis.push(phi);
    return phi;
  }

  variableType(variable: number): RegisterType {
    const local = this.tree.locals[variable];
    if (local) return registerOf[local.type];
    for (const [array, first] of this.registers) {
      if (variable >= first && variable < first + this.variablesOf(array))
        return this.elementRegister(array);
    }
    throw new RangeError(`no variable ${variable}`);
  }

  /** The variables of a local array that lies in registers. */
  variablesOf(array: number): number {
    const { length } = this.tree.arrays[array]!;
    return this.paired.has(array) ? length / 2 : length;
  }

  elementRegister(array: number): RegisterType {
    return this.paired.has(array) ? 'b32' : registerOf[readAs[this.tree.arrays[array]!.storage]];
  }

  write(variable: number, value: Value): void {
    this.held.get(this.block)!.set(variable, value);
  }

  read(variable: number): Value {
    return resolve(this.readAt(variable, this.block));
  }

  /**
   * The value of a variable at the block's end. It does not recurse, because chains of blocks are
   * as long as the kernel.
   */
  readAt(variable: number, block: Block): Value {
    const known = this.held.get(block)!.get(variable);
    if (known !== undefined) return resolve(known);
    const open = [block];
    for (let at = open.at(-1); at !== undefined; at = open.at(-1)) {
      const held = this.held.get(at)!;
      if (!held.has(variable)) {
        const unread = this.firstUnread(variable, at);
        if (unread !== undefined) {
          open.push(unread);
          continue;
        }
        held.set(variable, this.join(variable, at));
      }
      open.pop();
    }
    return resolve(this.held.get(block)!.get(variable)!);
  }

  /**
   * The number of blocks from which a variable reaches the block's beginning: the first ones of
   * those before it. A loop that assigns the variable has a phi for it already; in other loops it
   * is the same as before.
   */
  private waysTo(block: Block): number {
    return this.heads.has(block) ? Math.min(block.before.length, 1) : block.before.length;
  }

  private firstUnread(variable: number, block: Block): Block | undefined {
    const ways = this.waysTo(block);
    for (let i = 0; i < ways; i++) {
      const from = block.before[i]!;
      if (!this.held.get(from)!.has(variable)) return from;
    }
    return undefined;
  }

  private join(variable: number, block: Block): Value {
    const ways = this.waysTo(block);
    // Most blocks have one before them, and a kernel with many sums reads each through all blocks.
    if (ways === 1) return resolve(this.held.get(block.before[0]!)!.get(variable)!);
    const args = block.before
      .slice(0, ways)
      .map((from) => resolve(this.held.get(from)!.get(variable)!));
    const meant = args.filter((arg) => arg.op !== 'undefined');
    const [first] = meant;
    if (first === undefined) return args[0] ?? this.f.undefinedOf(this.variableType(variable));
    if (
      meant.every((arg) => arg === first) &&
      (meant.length === args.length || first.constant !== undefined)
    )
      return first;
    const phi = this.phi(block, first.type);
    phi.args = args;
    return phi;
  }

  /** The first blocks of loops. */
  readonly heads = new Set<Block>();

  /** Removes the values of the current block from this count on. */
  truncate(count: number): void {
    this.block.values.length = count;
  }

  error(what: string, fix: string, span: Span | undefined = this.span): KernelSourceError {
    return new KernelSourceError(
      what,
      fix,
      span,
      span === undefined ? this.tree.name : (this.tree.texts[span.text] ?? ''),
    );
  }
}
