/**
 * A tree as lines that a test can state: one for each statement, expressions as calls, types after
 * the names of operations.
 */
import type { Expression, Fragment, KernelTree, Place, Statement } from '../tree.js';

/** The suffix for a field of a structure. */
const fieldOf = (declared: KernelTree['params'][number], field: number | undefined): string =>
  field !== undefined && declared.kind === 'struct'
    ? `.${declared.struct.fields[field]!.name}`
    : '';

/** The prefix for the cache operator of a load or store. */
const cached = (cache: string | undefined): string => (cache === undefined ? '' : `${cache} `);

/** The text of all of a tree but spans. */
export function printTree(tree: KernelTree): string {
  const printer = new Printer(tree);
  const abi = tree.abi.map((param) => {
    const name = tree.params[param.param]!.name;
    if (param.kind === 'extent' || param.kind === 'stride')
      return `${name}.${param.kind}${param.axis}`;
    if (param.kind !== 'scalar') return `${name}.${param.kind}`;
    const declared = tree.params[param.param]!;
    return `${name}${fieldOf(declared, param.field)}: ${param.storage}`;
  });
  const arrays = tree.arrays.map(
    (array) => `${array.space} ${array.storage}[${array.length}] ${array.name}`,
  );
  return [
    `(${abi.join(', ')})`,
    ...arrays,
    ...(tree.cooperative ? ['cooperative'] : []),
    ...(tree.dependent ? ['dependent'] : []),
    ...printer.list(tree.body, ''),
  ].join('\n');
}

/** Only the statements. */
export function printBody(tree: KernelTree): string {
  return new Printer(tree).list(tree.body, '').join('\n');
}

class Printer {
  readonly #tree: KernelTree;
  readonly #names = new Map<number, string>();
  readonly #ids = new Map<number, number>();

  constructor(tree: KernelTree) {
    this.#tree = tree;
  }

  /** Names as the source has them, numbered where several locals share one. */
  #local(local: number): string {
    let name = this.#names.get(local);
    if (name === undefined) {
      const base = this.#tree.locals[local]!.name;
      const taken = new Set(this.#names.values());
      name = base;
      for (let at = 2; taken.has(name); at++) name = `${base}${at}`;
      this.#names.set(local, name);
    }
    return name;
  }

  #id(id: number): number {
    if (!this.#ids.has(id)) this.#ids.set(id, this.#ids.size);
    return this.#ids.get(id)!;
  }

  #place(place: Place): string {
    const { memory } = place;
    const name =
      memory.kind === 'param'
        ? this.#tree.params[memory.param]!.name
        : this.#tree.arrays[memory.array]!.name;
    const field = place.field === undefined ? '' : `.${place.field.name}`;
    return `${name}[${this.expression(place.index)}]${field}`;
  }

  expression(expression: Expression): string {
    const of = (operand: Expression) => this.expression(operand);
    const { type } = expression;
    switch (expression.op) {
      case 'constant': {
        const { value } = expression;
        return typeof value === 'boolean'
          ? String(value)
          : `${Object.is(value, -0) ? '-0' : String(value)}${type === 'i32' ? '' : `:${type}`}`;
      }
      case 'local':
        return this.#local(expression.local);
      case 'abi': {
        const param = this.#tree.abi[expression.abi]!;
        const declared = this.#tree.params[param.param]!;
        if (param.kind === 'scalar') return declared.name + fieldOf(declared, param.field);
        return `${declared.name}.${param.kind}${'axis' in param ? param.axis : ''}`;
      }
      case 'special':
        return expression.name;
      case 'unary':
        return `${expression.operator}(${of(expression.operand)})`;
      case 'binary':
        return `${expression.operator}.${type}(${of(expression.left)}, ${of(expression.right)})`;
      case 'fma':
        return `fma.${type}(${of(expression.a)}, ${of(expression.b)}, ${of(expression.c)})`;
      case 'compare':
        return (
          `${expression.operator}.${expression.left.type}(${of(expression.left)}, ` +
          `${of(expression.right)})`
        );
      case 'logical':
        return `${expression.operator}(${of(expression.left)}, ${of(expression.right)})`;
      case 'conditional':
        return `(${of(expression.test)} ? ${of(expression.then)} : ${of(expression.otherwise)})`;
      case 'convert':
        return `${type}(${of(expression.operand)})`;
      case 'narrow':
        return `narrow.${expression.storage}(${of(expression.operand)})`;
      case 'bitcast':
        return `bits.${type}(${of(expression.operand)})`;
      case 'approximate':
        return `approx.${expression.name}(${expression.operands.map(of).join(', ')})`;
      case 'load':
        return cached(expression.cache) + this.#place(expression.place);
      case 'atomic':
        return (
          `atomic.${expression.operator}.${type}(${this.#place(expression.place)}, ` +
          (expression.compare === undefined ? '' : `${of(expression.compare)}, `) +
          `${of(expression.operand)})`
        );
      case 'shuffle':
        return (
          `shuffle.${expression.mode}.${type}(${of(expression.value)}, ${of(expression.lane)}, ` +
          `${of(expression.mask)})`
        );
      case 'vote':
        return `vote.${expression.mode}(${of(expression.predicate)}, ${of(expression.mask)})`;
      case 'match':
        return `match(${of(expression.value)}, ${of(expression.mask)})`;
      case 'activemask':
        return 'activemask';
      case 'barrierReduce':
        return `barrier.${expression.mode}(${of(expression.predicate)})`;
      case 'block':
        return `{ ${this.list(expression.statements, '').join('; ')}; ${of(expression.value)} }`;
    }
  }

  #fragment({ array, index, length }: Fragment): string {
    return `${this.#tree.arrays[array]!.name}[${this.expression(index)} +${length}]`;
  }

  list(statements: readonly Statement[], indent: string): string[] {
    return statements.flatMap((statement) => this.#statement(statement, indent));
  }

  #statement(statement: Statement, indent: string): string[] {
    const line = (text: string) => [indent + text];
    const inner = (statements: readonly Statement[]) => this.list(statements, `${indent}  `);
    switch (statement.kind) {
      case 'assign': {
        const value = this.expression(statement.value);
        return line(
          `${this.#local(statement.local)}: ${this.#tree.locals[statement.local]!.type} = ${value}`,
        );
      }
      case 'store':
        return line(
          `${cached(statement.cache)}${this.#place(statement.place)} ` +
            `= ${this.expression(statement.value)}`,
        );
      case 'instruction':
        return line(
          `gpu.${statement.name}${statement.detail.map((each) => ` ${each}`).join('')}(` +
            statement.operands
              .map((each) =>
                each.kind === 'value'
                  ? this.expression(each.value)
                  : each.kind === 'address'
                    ? `&${this.#place(each.place)}`
                    : `${each.writes ? 'inout ' : ''}${this.#fragment(each.fragment)}`,
              )
              .join(', ') +
            ')',
        );
      case 'clear':
        return line(`clear ${this.#tree.arrays[statement.array]!.name}`);
      case 'if':
        return [
          ...line(`if ${this.expression(statement.test)}`),
          ...inner(statement.then),
          ...(statement.otherwise.length === 0
            ? []
            : [...line('else'), ...inner(statement.otherwise)]),
        ];
      case 'loop': {
        const test =
          statement.test === undefined
            ? ''
            : ` ${statement.testAfter ? 'until not' : 'while'} ${this.expression(statement.test)}`;
        return [
          ...line(
            `loop ${this.#id(statement.id)}${test}` +
              (statement.unroll === undefined ? '' : ` unroll ${statement.unroll}`),
          ),
          ...inner(statement.body),
          ...(statement.update.length === 0 ? [] : [...line('update'), ...inner(statement.update)]),
        ];
      }
      case 'group':
        return [...line(`group ${this.#id(statement.id)}`), ...inner(statement.body)];
      case 'break':
      case 'continue':
        return line(`${statement.kind} ${this.#id(statement.id)}`);
      case 'return':
      case 'trap':
        return line(statement.kind);
      case 'evaluate':
        return line(this.expression(statement.value));
      case 'barrier':
        return line(
          statement.of === 'warp'
            ? `barrier warp ${this.expression(statement.mask)}`
            : `barrier ${statement.of}`,
        );
      case 'matrixProduct':
        return line(
          `product ${statement.shape} ${statement.type} ` +
            [statement.sum, statement.a, statement.b]
              .map((each) => this.#fragment(each))
              .join(', '),
        );
      case 'loadMatrices':
        return line(
          `load${statement.transposed ? ' transposed' : ''} ${this.#fragment(statement.to)} ` +
            `from ${this.#place(statement.from)}`,
        );
      case 'copyAsync':
        return line(
          `copy ${statement.count} ${this.#place(statement.to)} from ` +
            this.#place(statement.from) +
            (statement.given === undefined ? '' : ` given ${this.expression(statement.given)}`),
        );
      case 'copyCommit':
        return line('commit');
      case 'copyWait':
        return line(`wait ${statement.pending}`);
      case 'fence':
        return line(`fence ${statement.scope}`);
      case 'print':
        return line(
          `print ${JSON.stringify(statement.format)}` +
            statement.values.map((value) => `, ${this.expression(value)}`).join(''),
        );
      case 'assert':
        return line(
          `assert ${this.expression(statement.test)}, ${JSON.stringify(statement.message)}`,
        );
    }
  }
}
