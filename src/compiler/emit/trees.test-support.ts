// Test only: trees of kernels written by hand, with names instead of numbers.

import { readAs } from '../storage-types.js';
import type {
  AbiParam,
  ApproximateName,
  BinaryOperator,
  CompareOperator,
  DeclaredArray,
  Expression,
  KernelTree,
  LocalVariable,
  Place,
  SpecialName,
  Span,
  Statement,
  StorageType,
  TreeParam,
  UnaryOperator,
  ValueType,
} from '../tree.js';

export const nowhere: Span = { text: 0, start: 0, end: 0 };
const span = nowhere;

export const readType = (storage: StorageType): ValueType => readAs[storage];

/** An expression, or a number (i32 alone, else of the other side's type). */
export type Operand = Expression | number | bigint | boolean;

export function constant(
  value: number | bigint | boolean,
  type: ValueType = typeof value === 'boolean' ? 'bool' : typeof value === 'bigint' ? 'i64' : 'i32',
): Expression {
  return {
    op: 'constant',
    type,
    span,
    value: type === 'i64' || type === 'u64' ? BigInt(value) : value,
  };
}

export function as(operand: Operand, type: ValueType): Expression {
  return typeof operand === 'object' ? operand : constant(operand, type);
}

const typeOf = (a: Operand, b: Operand): ValueType =>
  typeof a === 'object'
    ? a.type
    : typeof b === 'object'
      ? b.type
      : typeof a === 'bigint'
        ? 'i64'
        : 'i32';

export function binary(operator: BinaryOperator, left: Operand, right: Operand): Expression {
  const type = typeOf(left, right);
  const shift = operator === 'shl' || operator === 'shr';
  return {
    op: 'binary',
    type,
    span,
    operator,
    left: as(left, type),
    right: as(right, shift ? 'u32' : type),
  };
}

export const add = (left: Operand, right: Operand): Expression => binary('add', left, right);
export const sub = (left: Operand, right: Operand): Expression => binary('sub', left, right);
export const mul = (left: Operand, right: Operand): Expression => binary('mul', left, right);
export const div = (left: Operand, right: Operand): Expression => binary('div', left, right);
export const rem = (left: Operand, right: Operand): Expression => binary('rem', left, right);

export function unary(operator: UnaryOperator, operand: Expression): Expression {
  return { op: 'unary', type: operand.type, span, operator, operand };
}

export function compare(operator: CompareOperator, left: Operand, right: Operand): Expression {
  const type = typeOf(left, right);
  return {
    op: 'compare',
    type: 'bool',
    span,
    operator,
    left: as(left, type),
    right: as(right, type),
  };
}

export const lt = (left: Operand, right: Operand): Expression => compare('lt', left, right);

export function logical(operator: 'and' | 'or', left: Expression, right: Expression): Expression {
  return { op: 'logical', type: 'bool', span, operator, left, right };
}

export function conditional(test: Expression, then: Operand, otherwise: Operand): Expression {
  const type = typeOf(then, otherwise);
  return {
    op: 'conditional',
    type,
    span,
    test,
    then: as(then, type),
    otherwise: as(otherwise, type),
  };
}

export function fma(a: Expression, b: Operand, c: Operand): Expression {
  return { op: 'fma', type: a.type, span, a, b: as(b, a.type), c: as(c, a.type) };
}

export const convert = (operand: Expression, type: ValueType): Expression => ({
  op: 'convert',
  type,
  span,
  operand,
});
export const bitcast = (operand: Expression, type: ValueType): Expression => ({
  op: 'bitcast',
  type,
  span,
  operand,
});
export const narrow = (operand: Expression, storage: StorageType): Expression => ({
  op: 'narrow',
  type: operand.type,
  span,
  storage,
  operand,
});
export const approximate = (name: ApproximateName, ...operands: Expression[]): Expression => ({
  op: 'approximate',
  type: 'f32',
  span,
  name,
  operands,
});
export const shuffle = (
  mode: 'idx' | 'up' | 'down' | 'bfly',
  value: Expression,
  lane: Operand,
  width = 32,
  mask: Operand = 0xffffffff,
): Expression => ({
  op: 'shuffle',
  type: value.type,
  span,
  mode,
  value,
  lane: as(lane, 'i32'),
  width,
  mask: as(mask, 'u32'),
});
export const vote = (
  mode: 'any' | 'all' | 'uni' | 'ballot',
  predicate: Expression,
  mask: Operand = 0xffffffff,
): Expression => ({
  op: 'vote',
  type: mode === 'ballot' ? 'u32' : 'bool',
  span,
  mode,
  predicate,
  mask: as(mask, 'u32'),
});

/** A variable of the kernel. */
export interface Variable {
  readonly local: number;
  readonly type: ValueType;
  readonly value: Expression;
  set(value: Operand): void;
}

/** Elements of a parameter or an array. */
export interface Elements {
  place(index: Operand): Place;
  at(index: Operand): Expression;
  put(index: Operand, value: Operand): void;
  atomic(
    operator: Extract<Expression, { op: 'atomic' }>['operator'],
    index: Operand,
    operand: Operand,
    compare?: Operand,
    scope?: 'block' | 'device' | 'system',
  ): Expression;
  readonly length: Expression;
}

/** Builds a tree statement by statement. */
export class TreeBuilder {
  readonly name: string;
  readonly params: TreeParam[] = [];
  readonly abi: AbiParam[] = [];
  readonly locals: LocalVariable[] = [];
  readonly arrays: DeclaredArray[] = [];
  readonly indexType: 'i32' | 'i64';
  cooperative = false;
  private statements: Statement[] = [];
  private readonly body = this.statements;
  private groups = 0;

  constructor(name: string, indexType: 'i32' | 'i64' = 'i32') {
    this.name = name;
    this.indexType = indexType;
  }

  get tree(): KernelTree {
    return {
      name: this.name,
      params: this.params,
      abi: this.abi,
      locals: this.locals,
      arrays: this.arrays,
      body: this.body,
      indexType: this.indexType,
      cooperative: this.cooperative,
      dependent: false,
      texts: [''],
    };
  }

  private elements(
    memory: Place['memory'],
    storage: StorageType,
    length: () => Expression,
  ): Elements {
    const place = (index: Operand): Place => ({ memory, index: as(index, 'i32'), storage, span });
    const type = readType(storage);
    return {
      place,
      at: (index) => ({ op: 'load', type, span, place: place(index) }),
      put: (index, value) =>
        this.push({ kind: 'store', span, place: place(index), value: as(value, type) }),
      atomic: (operator, index, operand, expected, scope = 'device') => ({
        op: 'atomic',
        type,
        span,
        operator,
        place: place(index),
        operand: as(operand, type),
        ...(expected === undefined ? {} : { compare: as(expected, type) }),
        scope,
      }),
      get length() {
        return length();
      },
    };
  }

  /** The expression of an ABI parameter; a new parameter is added. */
  entry(param: AbiParam, type: ValueType): Expression {
    let at = this.abi.findIndex((known) => JSON.stringify(known) === JSON.stringify(param));
    if (at < 0) at = this.abi.push(param) - 1;
    return { op: 'abi', type, span, abi: at };
  }

  tensor(
    name: string,
    storage: StorageType,
    access: 'input' | 'output' | 'inout' = 'inout',
  ): Elements {
    const param =
      this.params.push({ kind: 'tensor', name, element: { storage }, access, rank: 1 }) - 1;
    this.abi.push({ kind: 'pointer', param });
    return this.elements({ kind: 'param', param }, storage, () =>
      this.entry({ kind: 'length', param }, this.indexType),
    );
  }

  scalar(name: string, storage: StorageType): Expression {
    const param = this.params.push({ kind: 'scalar', name, storage }) - 1;
    return this.entry({ kind: 'scalar', param, storage }, readType(storage));
  }

  array(space: DeclaredArray['space'], storage: StorageType, length: number): Elements {
    const array =
      this.arrays.push({ name: `array${this.arrays.length}`, space, storage, length }) - 1;
    if (space === 'local') this.push({ kind: 'clear', span, array });
    return this.elements({ kind: 'array', array }, storage, () => constant(length));
  }

  variable(initial: Operand, type: ValueType = typeOf(initial, 0)): Variable {
    const local = this.locals.push({ name: `v${this.locals.length}`, type, constant: false }) - 1;
    const set = (value: Operand): void =>
      this.push({ kind: 'assign', span, local, value: as(value, type) });
    set(initial);
    return { local, type, value: { op: 'local', type, span, local }, set };
  }

  special(name: SpecialName): Expression {
    const type: ValueType =
      name.startsWith('globalId') || name.startsWith('globalSize')
        ? this.indexType
        : name === 'clock'
          ? 'i64'
          : name === 'globaltimer'
            ? 'u64'
            : 'i32';
    return { op: 'special', type, span, name };
  }

  push(statement: Statement): void {
    this.statements.push(statement);
  }

  /** Gives the statements that `body` builds, as a list. */
  list(body: () => void): Statement[] {
    const outer = this.statements;
    const inner: Statement[] = [];
    this.statements = inner;
    body();
    this.statements = outer;
    return inner;
  }

  if(test: Expression, then: () => void, otherwise: () => void = () => undefined): void {
    this.push({ kind: 'if', span, test, then: this.list(then), otherwise: this.list(otherwise) });
  }

  loop(
    test: Expression | undefined,
    body: (id: number) => void,
    update: () => void = () => undefined,
    options: { testAfter?: boolean; unroll?: number } = {},
  ): void {
    const id = ++this.groups;
    this.push({
      kind: 'loop',
      span,
      id,
      ...(test === undefined ? {} : { test }),
      testAfter: options.testAfter === true,
      body: this.list(() => body(id)),
      update: this.list(update),
      ...(options.unroll === undefined ? {} : { unroll: options.unroll }),
    });
  }

  /** for (let i = from; i < to; i += by) */
  for(
    from: Operand,
    to: Operand,
    by: Operand,
    body: (i: Expression, id: number) => void,
    options: { unroll?: number } = {},
  ): void {
    const i = this.variable(from, typeOf(from, to));
    this.loop(
      lt(i.value, to),
      (id) => body(i.value, id),
      () => i.set(add(i.value, by)),
      options,
    );
  }

  group(body: (id: number) => void): void {
    const id = ++this.groups;
    this.push({ kind: 'group', span, id, body: this.list(() => body(id)) });
  }

  break(id: number): void {
    this.push({ kind: 'break', span, id });
  }

  continue(id: number): void {
    this.push({ kind: 'continue', span, id });
  }

  return(): void {
    this.push({ kind: 'return', span });
  }

  sync(of: 'block' | 'grid' = 'block'): void {
    this.push({ kind: 'barrier', span, of });
  }
}
