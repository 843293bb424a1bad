/**
 * Test only: typed trees written by hand, short enough to read. Spans are found by their text in
 * the kernel's source.
 */
import { readAs } from './storage-types.js';
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
  Span,
  SpecialName,
  Statement,
  StorageType,
  TreeParam,
  UnaryOperator,
  ValueType,
} from './tree.js';
import type { StructLayout } from '../ground/struct-layout.js';

const EMPTY_SPAN: Span = { text: 0, start: 0, end: 0 };

type Access = 'input' | 'output' | 'inout';

/** Memory of a kernel under construction, by the name it was declared with. */
export interface Elements {
  readonly memory: Place['memory'];
  readonly storage: StorageType;
  readonly length: Expression;
  readonly extents: readonly Expression[];
  readonly strides: readonly Expression[];
  readonly struct?: StructLayout;
}

export class TreeBuilder {
  readonly name: string;
  readonly text: string;
  indexType: 'i32' | 'i64' = 'i32';
  private readonly params: TreeParam[] = [];
  private readonly abi: AbiParam[] = [];
  private readonly locals: LocalVariable[] = [];
  private readonly arrays: DeclaredArray[] = [];
  private loops = 0;
  private here: Span = EMPTY_SPAN;

  constructor(name: string, text = '') {
    this.name = name;
    this.text = text;
  }

  /** Gives the nodes that `make` makes the span of `code`, at its nth occurrence. */
  at<T>(code: string, make: () => T, nth = 0): T {
    let start = -1;
    for (let count = 0; count <= nth; count++) start = this.text.indexOf(code, start + 1);
    if (start < 0) throw new RangeError(`the kernel's text has no '${code}'`);
    const { here } = this;
    this.here = { text: 0, start, end: start + code.length };
    const made = make();
    this.here = here;
    return made;
  }

  /** A node with the current span. */
  private node<T extends object>(fields: T): T & { span: Span } {
    return { ...fields, span: this.here };
  }

  private abiValue(type: ValueType, param: AbiParam): Expression {
    let index = this.abi.findIndex((each) => JSON.stringify(each) === JSON.stringify(param));
    if (index < 0) index = this.abi.push(param) - 1;
    return this.node({ op: 'abi', type, abi: index } as const);
  }

  tensor(
    name: string,
    storage: StorageType | StructLayout,
    access: Access = 'inout',
    rank = 1,
  ): Elements {
    const element = typeof storage === 'string' ? { storage } : { struct: storage };
    const param = this.params.push({ kind: 'tensor', name, element, access, rank }) - 1;
    this.abi.push({ kind: 'pointer', param });
    const per = (kind: 'extent' | 'stride'): Expression[] =>
      rank === 1
        ? []
        : Array.from({ length: rank }, (_, axis) =>
            this.abiValue(this.indexType, { kind, param, axis }),
          );
    const common = {
      memory: { kind: 'param', param } as const,
      length: this.abiValue(this.indexType, { kind: 'length', param }),
      extents: per('extent'),
      strides: per('stride'),
    };
    return typeof storage === 'string'
      ? { ...common, storage }
      : { ...common, storage: 'f32', struct: storage };
  }

  scalar(name: string, storage: StorageType): Expression {
    const param = this.params.push({ kind: 'scalar', name, storage }) - 1;
    return this.abiValue(readAs[storage], { kind: 'scalar', param, storage });
  }

  struct(name: string, struct: StructLayout): Expression[] {
    const param = this.params.push({ kind: 'struct', name, struct }) - 1;
    return struct.fields.map((field, index) =>
      this.abiValue(readAs[field.storage], {
        kind: 'scalar',
        param,
        field: index,
        storage: field.storage,
      }),
    );
  }

  array(name: string, space: DeclaredArray['space'], storage: StorageType, length = 0): Elements {
    const array = this.arrays.push({ name, space, storage, length }) - 1;
    return {
      memory: { kind: 'array', array },
      storage,
      length: this.i32(length),
      extents: [],
      strides: [],
    };
  }

  local(name: string, type: ValueType, constant = false): Expression & { op: 'local' } {
    return this.node({
      op: 'local',
      type,
      local: this.locals.push({ name, type, constant }) - 1,
    } as const);
  }

  // Expressions.

  constant(type: ValueType, value: number | bigint | boolean): Expression {
    return this.node({ op: 'constant', type, value } as const);
  }
  i32(value: number): Expression {
    return this.constant('i32', value);
  }
  u32(value: number): Expression {
    return this.constant('u32', value >>> 0);
  }
  i64(value: bigint): Expression {
    return this.constant('i64', value);
  }
  f32(value: number): Expression {
    return this.constant('f32', Math.fround(value));
  }
  special(name: SpecialName, type: ValueType = 'i32'): Expression {
    return this.node({ op: 'special', type, name } as const);
  }
  get globalX(): Expression {
    return this.special('globalId.x', this.indexType);
  }
  get threadX(): Expression {
    return this.special('threadIdx.x');
  }
  get blockX(): Expression {
    return this.special('blockIdx.x');
  }
  unary(operator: UnaryOperator, operand: Expression, type = operand.type): Expression {
    return this.node({ op: 'unary', type, operator, operand } as const);
  }
  binary(operator: BinaryOperator, left: Expression, right: Expression): Expression {
    return this.node({ op: 'binary', type: left.type, operator, left, right } as const);
  }
  add(left: Expression, right: Expression): Expression {
    return this.binary('add', left, right);
  }
  mul(left: Expression, right: Expression): Expression {
    return this.binary('mul', left, right);
  }
  fma(a: Expression, b: Expression, c: Expression): Expression {
    return this.node({ op: 'fma', type: a.type, a, b, c } as const);
  }
  compare(operator: CompareOperator, left: Expression, right: Expression): Expression {
    return this.node({ op: 'compare', type: 'bool', operator, left, right } as const);
  }
  logical(operator: 'and' | 'or', left: Expression, right: Expression): Expression {
    return this.node({ op: 'logical', type: 'bool', operator, left, right } as const);
  }
  choose(test: Expression, then: Expression, otherwise: Expression): Expression {
    return this.node({ op: 'conditional', type: then.type, test, then, otherwise } as const);
  }
  convert(type: ValueType, operand: Expression): Expression {
    return this.node({ op: 'convert', type, operand } as const);
  }
  narrow(storage: StorageType, operand: Expression): Expression {
    return this.node({ op: 'narrow', type: operand.type, storage, operand } as const);
  }
  bitcast(type: ValueType, operand: Expression): Expression {
    return this.node({ op: 'bitcast', type, operand } as const);
  }
  approximate(name: ApproximateName, ...operands: Expression[]): Expression {
    return this.node({ op: 'approximate', type: 'f32', name, operands } as const);
  }
  block(statements: Statement[], value: Expression): Expression {
    return this.node({ op: 'block', type: value.type, statements, value } as const);
  }

  place(elements: Elements, index: Expression, field?: string): Place {
    const found = elements.struct?.fields.find((each) => each.name === field);
    return this.node({
      memory: elements.memory,
      index,
      storage: found?.storage ?? elements.storage,
      ...(found && { field: found }),
    });
  }

  load(
    elements: Elements,
    index: Expression,
    field?: string,
    cache?: 'streaming' | 'volatile',
  ): Expression {
    const place = this.place(elements, index, field);
    return this.node({
      op: 'load',
      type: readAs[place.storage],
      place,
      ...(cache && { cache }),
    } as const);
  }

  atomic(
    operator: 'add' | 'min' | 'max' | 'and' | 'or' | 'xor' | 'exch' | 'cas',
    elements: Elements,
    index: Expression,
    operand: Expression,
    compare?: Expression,
  ): Expression {
    return this.node({
      op: 'atomic',
      type: operand.type,
      operator,
      place: this.place(elements, index),
      operand,
      ...(compare && { compare }),
      scope: 'device',
    } as const);
  }

  shuffle(
    mode: 'idx' | 'up' | 'down' | 'bfly',
    value: Expression,
    lane: Expression,
    mask = this.u32(0xffffffff),
    width = 32,
  ): Expression {
    return this.node({ op: 'shuffle', type: value.type, mode, value, lane, width, mask } as const);
  }

  vote(
    mode: 'any' | 'all' | 'uni' | 'ballot',
    predicate: Expression,
    mask = this.u32(0xffffffff),
  ): Expression {
    return this.node({
      op: 'vote',
      type: mode === 'ballot' ? 'u32' : 'bool',
      mode,
      predicate,
      mask,
    } as const);
  }

  match(value: Expression, mask = this.u32(0xffffffff)): Expression {
    return this.node({ op: 'match', type: 'u32', value, mask } as const);
  }
  activemask(): Expression {
    return this.node({ op: 'activemask', type: 'u32' } as const);
  }
  reduce(mode: 'and' | 'or' | 'count', predicate: Expression): Expression {
    return this.node({
      op: 'barrierReduce',
      type: mode === 'count' ? 'i32' : 'bool',
      mode,
      predicate,
    } as const);
  }

  // Statements.

  set(variable: Expression & { op: 'local' }, value: Expression): Statement {
    return this.node({ kind: 'assign', local: variable.local, value } as const);
  }
  store(elements: Elements, index: Expression, value: Expression, field?: string): Statement {
    return this.node({ kind: 'store', place: this.place(elements, index, field), value } as const);
  }
  evaluate(value: Expression): Statement {
    return this.node({ kind: 'evaluate', value } as const);
  }
  clear(elements: Elements): Statement {
    return this.node({
      kind: 'clear',
      array: (elements.memory as { array: number }).array,
    } as const);
  }
  if(test: Expression, then: Statement[], otherwise: Statement[] = []): Statement {
    return this.node({ kind: 'if', test, then, otherwise } as const);
  }
  return(): Statement {
    return this.node({ kind: 'return' } as const);
  }
  sync(of: 'block' | 'grid' = 'block'): Statement {
    return this.node({ kind: 'barrier', of } as const);
  }
  syncWarp(mask = this.u32(0xffffffff)): Statement {
    return this.node({ kind: 'barrier', of: 'warp', mask } as const);
  }
  print(format: string, ...values: Expression[]): Statement {
    return this.node({ kind: 'print', format, values } as const);
  }
  assert(test: Expression, message: string): Statement {
    return this.node({ kind: 'assert', test, message } as const);
  }
  trap(): Statement {
    return this.node({ kind: 'trap' } as const);
  }

  /** `body` gets the loop's number, for `leave` and `next`. */
  loop(
    test: Expression | undefined,
    update: Statement[],
    body: (id: number) => Statement[],
    testAfter = false,
  ): Statement {
    const id = this.loops++;
    return this.node({
      kind: 'loop',
      id,
      ...(test && { test }),
      testAfter,
      body: body(id),
      update,
    } as const);
  }

  group(body: (id: number) => Statement[]): Statement {
    const id = this.loops++;
    return this.node({ kind: 'group', id, body: body(id) } as const);
  }

  leave(id: number): Statement {
    return this.node({ kind: 'break', id } as const);
  }
  next(id: number): Statement {
    return this.node({ kind: 'continue', id } as const);
  }

  tree(...body: Statement[]): KernelTree {
    const text = JSON.stringify(body, (_key, value: unknown) =>
      typeof value === 'bigint' ? `${value}n` : value,
    );
    return {
      name: this.name,
      params: this.params,
      abi: this.abi,
      locals: this.locals,
      arrays: this.arrays,
      body,
      indexType: this.indexType,
      cooperative: text.includes('"of":"grid"'),
      dependent: text.includes('"grid.waitForDependencies"'),
      texts: [this.text],
    };
  }
}
