/**
 * Checks that a tree satisfies tree.ts: types of operands, indices of locals, jumps that leave a
 * group around them.
 */
import type { Expression, Fragment, KernelTree, Place, Statement, ValueType } from '../tree.js';
import { isFloat, isInteger, readAs } from './types.js';

/** A replacer for JSON that leaves spans out and writes bigints. */
const shown = (key: string, value: unknown): unknown =>
  key === 'span' ? undefined : typeof value === 'bigint' ? `${value}n` : value;

export function checkTree(tree: KernelTree): void {
  new Checker(tree).statements(tree.body, new Map());
}

class Checker {
  readonly #tree: KernelTree;
  readonly #assigned = new Map<number, number>();

  constructor(tree: KernelTree) {
    this.#tree = tree;
  }

  #must(holds: boolean, what: string, node: unknown): void {
    if (!holds)
      throw new Error(
        `The tree is not well typed: ${what}: ` + JSON.stringify(node, shown).slice(0, 400),
      );
  }

  #is(expression: Expression, type: ValueType, what: string): void {
    this.#must(expression.type === type, `${what} is ${expression.type}, not ${type}`, expression);
    this.expression(expression);
  }

  statements(
    statements: readonly Statement[],
    targets: ReadonlyMap<number, 'loop' | 'group'>,
  ): void {
    for (const statement of statements) this.#statement(statement, targets);
  }

  #statement(statement: Statement, targets: ReadonlyMap<number, 'loop' | 'group'>): void {
    const { span } = statement;
    this.#must(
      span.start <= span.end && span.end <= this.#tree.texts[span.text]!.length,
      'span',
      span,
    );
    switch (statement.kind) {
      case 'assign': {
        const local = this.#tree.locals[statement.local]!;
        this.#is(statement.value, local.type, `what is assigned to ${local.name}`);
        const times = (this.#assigned.get(statement.local) ?? 0) + 1;
        this.#assigned.set(statement.local, times);
        this.#must(!local.constant || times === 1, 'a constant is assigned twice', local);
        return;
      }
      case 'store':
        this.#place(statement.place);
        return this.#is(statement.value, readAs[statement.place.storage], 'what is stored');
      case 'clear':
        return this.#must(
          this.#tree.arrays[statement.array]?.space === 'local',
          'clear of no local array',
          statement,
        );
      case 'if':
        this.#is(statement.test, 'bool', 'a test');
        this.statements(statement.then, targets);
        return this.statements(statement.otherwise, targets);
      case 'loop': {
        if (statement.test !== undefined) this.#is(statement.test, 'bool', 'a test');
        this.#must(!targets.has(statement.id), 'an id twice', statement.id);
        const inside = new Map(targets).set(statement.id, 'loop');
        this.statements(statement.body, inside);
        return this.statements(statement.update, targets);
      }
      case 'group':
        return this.statements(statement.body, new Map(targets).set(statement.id, 'group'));
      case 'break':
        return this.#must(targets.has(statement.id), 'break out of nothing', statement);
      case 'continue':
        return this.#must(targets.get(statement.id) === 'loop', 'continue of no loop', statement);
      case 'evaluate':
        return this.expression(statement.value);
      case 'barrier':
        if (statement.of === 'warp') this.#is(statement.mask, 'u32', 'a mask');
        return;
      case 'print':
        this.#must(
          (statement.format.replaceAll('%%', '').match(/%/g) ?? []).length ===
            statement.values.length,
          'formats and values',
          statement,
        );
        for (const value of statement.values) {
          this.expression(value);
          this.#must(value.type !== 'bool' && value.type !== 'f32', 'printed type', value);
        }
        return;
      case 'assert':
        return this.#is(statement.test, 'bool', 'an assertion');
      case 'matrixProduct': {
        const halves = statement.type !== 'tf32';
        this.#fragment(statement.sum, 4, 'f32');
        const wide = statement.shape === 'm16n8k16';
        this.#fragment(statement.a, wide ? 8 : 4, halves ? statement.type : 'f32');
        return this.#fragment(statement.b, wide ? 4 : 2, halves ? statement.type : 'f32');
      }
      case 'loadMatrices':
        this.#place(statement.from);
        return this.#fragment(statement.to, statement.to.length, statement.from.storage);
      case 'copyAsync':
        this.#place(statement.to);
        this.#place(statement.from);
        this.#must(
          statement.to.storage === statement.from.storage,
          'storages of a copy',
          statement,
        );
        if (statement.given !== undefined) this.#is(statement.given, 'i32', 'how many are given');
        return;
      case 'return':
      case 'fence':
      case 'trap':
      case 'copyCommit':
      case 'copyWait':
    }
  }

  #fragment({ array, index, length }: Fragment, expected: number, storage: string): void {
    this.#is(index, 'i32', 'where a fragment begins');
    const declared = this.#tree.arrays[array];
    this.#must(
      declared?.space === 'local' && declared.storage === storage && length === expected,
      'a fragment',
      array,
    );
  }

  #place(place: Place): void {
    this.expression(place.index);
    this.#must(['i32', 'u32', 'i64'].includes(place.index.type), 'an index', place.index);
    if (place.memory.kind === 'array')
      return this.#must(
        this.#tree.arrays[place.memory.array]?.storage === place.storage,
        'storage of an array',
        place,
      );
    const { param } = place.memory;
    this.#must(
      this.#tree.abi.some((each) => each.kind === 'pointer' && each.param === param),
      'a pointer that is not passed',
      place,
    );
  }

  expression(expression: Expression): void {
    const { type } = expression;
    const both = (left: Expression, right: Expression, of: ValueType) => {
      this.#is(left, of, 'the left side');
      this.#is(right, of, 'the right side');
    };
    switch (expression.op) {
      case 'constant': {
        const { value } = expression;
        const kind =
          type === 'bool' ? 'boolean' : type === 'i64' || type === 'u64' ? 'bigint' : 'number';
        this.#must(typeof value === kind, 'a constant', expression);
        if (type === 'f32')
          this.#must(Object.is(Math.fround(Number(value)), value), 'an f32', expression);
        if (type === 'i32') this.#must(Object.is(Number(value) | 0, value), 'an i32', expression);
        if (type === 'u32') this.#must(Object.is(Number(value) >>> 0, value), 'a u32', expression);
        return;
      }
      case 'local':
        return this.#must(
          this.#tree.locals[expression.local]?.type === type,
          'the type of a local',
          expression,
        );
      case 'abi': {
        const param = this.#tree.abi[expression.abi];
        this.#must(param !== undefined && param.kind !== 'pointer', 'an argument', expression);
        return this.#must(
          type === (param!.kind === 'scalar' ? readAs[param!.storage] : this.#tree.indexType),
          'the type of an argument',
          expression,
        );
      }
      case 'special':
        return this.#must(isInteger(type), 'an index of threads', expression);
      case 'unary':
        this.expression(expression.operand);
        if (expression.operator === 'popc' || expression.operator === 'clz')
          return this.#must(
            type === 'i32' && isInteger(expression.operand.type),
            'a count',
            expression,
          );
        if (['floor', 'ceil', 'trunc', 'rint', 'sqrt'].includes(expression.operator))
          this.#must(isFloat(type), 'a float operator', expression);
        if (expression.operator === 'not') this.#must(!isFloat(type), 'not', expression);
        if (expression.operator === 'neg' || expression.operator === 'abs')
          this.#must(type !== 'bool', 'neg or abs', expression);
        return this.#must(expression.operand.type === type, 'an operand', expression);
      case 'binary':
        this.#must(type !== 'bool', 'arithmetic of booleans', expression);
        if (expression.operator === 'shl' || expression.operator === 'shr') {
          this.#must(isInteger(type), 'a shift', expression);
          this.#is(expression.left, type, 'what is shifted');
          return this.#is(expression.right, 'u32', 'a count');
        }
        if (['and', 'or', 'xor', 'mulhi'].includes(expression.operator))
          this.#must(isInteger(type), 'an integer operator', expression);
        if (expression.operator === 'copysign') this.#must(isFloat(type), 'copysign', expression);
        return both(expression.left, expression.right, type);
      case 'fma':
        this.#must(isFloat(type), 'fma', expression);
        both(expression.a, expression.b, type);
        return this.#is(expression.c, type, 'what is added');
      case 'compare':
        this.#must(expression.left.type !== 'bool', 'a comparison of booleans', expression);
        return both(expression.left, expression.right, expression.left.type);
      case 'logical':
        return both(expression.left, expression.right, 'bool');
      case 'conditional':
        this.#is(expression.test, 'bool', 'a test');
        return both(expression.then, expression.otherwise, type);
      case 'convert':
        this.#must(expression.operand.type !== type, 'a conversion to the same type', expression);
        return this.expression(expression.operand);
      case 'narrow':
        return this.#is(expression.operand, readAs[expression.storage], 'what is narrowed');
      case 'bitcast':
        this.#must(
          type.slice(1) === expression.operand.type.slice(1),
          'bits of another size',
          expression,
        );
        return this.expression(expression.operand);
      case 'approximate':
        for (const operand of expression.operands) this.#is(operand, 'f32', 'an operand');
        return;
      case 'load':
        this.#must(type === readAs[expression.place.storage], 'what is loaded', expression);
        return this.#place(expression.place);
      case 'atomic':
        this.#place(expression.place);
        if (expression.compare !== undefined)
          this.#is(expression.compare, type, 'what is compared');
        return this.#is(expression.operand, type, 'an operand');
      case 'shuffle':
        this.#is(expression.value, type, 'what is shuffled');
        this.#is(expression.lane, 'i32', 'a lane');
        return this.#is(expression.mask, 'u32', 'a mask');
      case 'vote':
        this.#is(expression.predicate, 'bool', 'a predicate');
        return this.#is(expression.mask, 'u32', 'a mask');
      case 'match':
        this.expression(expression.value);
        return this.#is(expression.mask, 'u32', 'a mask');
      case 'activemask':
        return;
      case 'barrierReduce':
        return this.#is(expression.predicate, 'bool', 'a predicate');
      case 'block':
        this.statements(expression.statements, new Map());
        return this.#is(expression.value, type, 'a value');
    }
  }
}
