/** Statements of a tile kernel's body: variables, stores and loops over tiles. */
import type {
  AnyNode,
  AssignmentExpression,
  CallExpression,
  Expression,
  ForOfStatement,
  ForStatement,
  Identifier,
  VariableDeclaration,
  VariableDeclarator,
} from 'acorn';

import { propertyName } from '../read/property-name.js';
import { extentName, sumsOf } from './tile-form.js';
import type { ChainedProducts, WarpGroupProduct, WarpProduct } from './tile-form.js';
import { axisName } from './tile-indices.js';
import type { Bounds } from './tile-indices.js';
import { TileOperations } from './tile-operations.js';
import { writeStaged } from './tile-products.js';
import { WHAT_IS_WRITTEN } from './tile-scope.js';
import type { Binding, Variable } from './tile-scope.js';
import { FIRST } from './tile-writer.js';
import type { Varies } from './tile-writer.js';
import { writeProductLoop } from './warp-group-products.js';
import { writeWarpLoop } from './warp-products.js';

const CONSISTS_OF = 'A tile kernel consists of variables, stores and loops over tiles';

export abstract class TileStatements extends TileOperations {
  protected statement(node: AnyNode): void {
    switch (node.type) {
      case 'EmptyStatement':
        return;
      case 'ExpressionStatement':
        return this.perform(node.expression);
      case 'BlockStatement':
        return this.scope(node, () => {
          for (const each of node.body) this.statement(each);
        });
      case 'ForOfStatement':
        return this.out.as(node, () => {
          this.loop(node);
        });
      case 'VariableDeclaration':
        for (const declarator of node.declarations)
          this.out.as(declarator, () => {
            this.declarator(declarator, node.kind);
          });
        return;
      case 'ForStatement':
        return this.countedLoop(node) ? undefined : this.failLoop(node);
      case 'WhileStatement':
      case 'DoWhileStatement':
      case 'ForInStatement':
        return this.failLoop(node);
      default:
        return this.fail(
          node,
          `${CONSISTS_OF}: ${this.code(node)}`,
          `${WHAT_IS_WRITTEN} What needs more is written with kernel(…).`,
        );
    }
  }

  private failLoop(node: AnyNode): never {
    return this.fail(
      node,
      `${CONSISTS_OF}: ${this.code(node)}`,
      "Write for (const part of tile.over('columns')) { … x.load(part) … } for an axis that " +
        'is cut by { walk: 64 }.',
    );
  }

  private declarator(declarator: VariableDeclarator, kind: VariableDeclaration['kind']): void {
    const { id, init } = declarator;
    this.whole = declarator;
    const of = init ? this.bindingOf(init) : undefined;
    if (id.type === 'ObjectPattern' && (of?.is === 'args' || of?.is === 'tile'))
      return this.bind(id, of.is);
    if (id.type !== 'Identifier')
      return this.fail(
        declarator,
        `${this.code(declarator)} is not supported in a tile kernel`,
        'Write const v = …, one name for each value.',
      );
    const before = this.names.get(id.name);
    if (!init) {
      if (kind !== 'var') this.names.set(id.name, { is: 'unset' });
      return;
    }
    // Blocks have no `var` of their own: it is the existing variable.
    if (kind === 'var' && before?.is === 'variable')
      return this.assignment({
        type: 'AssignmentExpression',
        operator: '=',
        left: id,
        right: init,
        start: declarator.start,
        end: declarator.end,
      });
    this.variable(declarator, id, init, kind === 'const');
  }

  /**
   * Writes a variable with its first value. A variable that stands for the arguments, a parameter,
   * a member or a loop's step, and does not change, is an alias: ES5 destructures parameters into
   * variables.
   */
  protected variable(node: AnyNode, id: Identifier, init: Expression, constant: boolean): void {
    const assigned = !constant && this.isAssigned(id);
    const same = this.bindingOf(init);
    if (same !== undefined && this.isAlias(same, assigned)) {
      this.names.set(id.name, same);
      return;
    }
    this.hoist(init);
    // The variable of an assignment expression can change later.
    const known =
      assigned || init.type === 'AssignmentExpression' ? undefined : this.written.get(init);
    const name = known?.name ?? this.newName(id.name);
    const own = this.varies(init);
    const varies = assigned ? this.join(node, own, this.found.variables.get(id.start)) : own;
    const storage = assigned
      ? this.isFraction(init) || this.found.fractions.has(id.start)
        ? undefined
        : 'i32'
      : (known?.storage ?? (this.isInteger(init) ? 'i32' : undefined));
    const variable: Variable = {
      is: 'variable',
      name,
      varies,
      storage,
      at: id.start,
      depth: this.depth,
      walked: this.walked,
      assigned,
      staged: new Map(),
    };
    if (!assigned) {
      if (known === undefined) this.define(name, init, varies);
      for (const [key, form] of this.found.ahead.get(id.start) ?? [])
        variable.staged.set(key, writeStaged(this, this.buffers, variable, form));
    } else this.writeVariable(variable, init);
    this.names.set(id.name, variable);
  }

  /** Writes the declaration of a variable that gets more than one value, with its first. */
  protected writeVariable(variable: Variable, init: Expression): void {
    const { name, varies } = variable;
    if (varies.rows === undefined && varies.columns === undefined) {
      this.out.write(`let ${name} = `);
      this.print(init, FIRST);
      this.line(';');
      return;
    }
    // The type of all values that are assigned to it, and an array of that type.
    this.out.write(`let ${name}type = `);
    this.print(init, FIRST);
    this.line(';', `const ${name} = gpu$.localLike$(${this.slots(varies)}, ${name}type);`);
    this.assign(variable, init);
  }

  protected perform(node: AnyNode): void {
    // Minifiers join statements by commas.
    if (node.type === 'SequenceExpression') {
      for (const each of node.expressions) this.perform(each);
      return;
    }
    if (node.type === 'UnaryExpression' && (node.operator === 'void' || node.operator === '!'))
      return this.perform(node.argument);
    this.whole = node;
    const store = node.type === 'CallExpression' ? this.methodOf(node) : undefined;
    if (node.type === 'CallExpression' && store?.method === 'store')
      return this.store(node, store.param);
    if (node.type === 'AssignmentExpression')
      return this.out.as(node, () => {
        this.assignment(node);
      });
    if (node.type === 'UpdateExpression')
      return this.fail(
        node,
        `++ and -- are not supported in a tile kernel: ${this.code(node)}`,
        'Write v += 1 for each element of v, and for (const part of tile.over(…)) for a loop.',
      );
    return this.fail(node, `${CONSISTS_OF}: ${this.code(node)}`, WHAT_IS_WRITTEN);
  }

  /** Writes `v = …` or `v += …`, element by element. */
  protected assignment(node: AssignmentExpression): void {
    const { left, right, operator } = node;
    const to = left.type === 'Identifier' ? this.names.get(left.name) : undefined;
    if (left.type === 'Identifier' && operator === '=') {
      if (to?.is === 'unset') return this.variable(node, left, right, false);
      // One `var` counts the tiles of several loops.
      const step = to?.is === 'step' ? this.bindingOf(right) : undefined;
      if (step?.is === 'step') {
        this.names.set(left.name, step);
        return;
      }
    }
    if (left.type !== 'Identifier' || to?.is !== 'variable') {
      return this.fail(
        node,
        `Only variables are assigned in a tile kernel: ${this.code(node)}`,
        'Write y.store(…): it writes the whole tile, and nothing else can be written.',
      );
    }
    if (!to.assigned)
      return this.fail(
        node,
        `\`${left.name}\` is a constant, and this assigns to it: ${this.code(node)}`,
        'Declare it with let.',
      );
    if (operator === '&&=' || operator === '||=' || operator === '??=')
      return this.fail(
        node,
        `${operator} is not supported in a tile kernel: ${this.code(node)}`,
        'Write a condition: v = a ? b : v.',
      );
    this.hoist(right);
    const value: AnyNode =
      operator === '='
        ? right
        : {
            type: 'BinaryExpression',
            operator: operator.slice(0, -1) as '+',
            left,
            right,
            start: node.start,
            end: node.end,
          };
    if (to.storage !== undefined && this.isFraction(value)) {
      this.found.fractions.add(to.at);
      this.foundMore = true;
    }
    const varies = this.join(node, this.varies(value), to.varies);
    const beyond = [varies.rows, varies.columns].find(
      (axis) => axis !== undefined && this.axis(axis).cut === 'walk' && !to.walked.has(axis),
    );
    if (beyond !== undefined) {
      const { name } = this.axis(beyond);
      return this.fail(
        node,
        `\`${left.name}\` is there after the loop over ${name}, and this value differs along ` +
          `${name}: ${this.code(node)}`,
        `Reduce it along ${name}, or declare a constant within the loop.`,
      );
    }
    if (varies.rows !== to.varies.rows || varies.columns !== to.varies.columns) {
      this.found.variables.set(to.at, varies);
      this.foundMore = true;
      this.names.set(left.name, { ...to, varies });
      return;
    }
    this.writeAssignment(to, value);
  }

  /** Writes the assignment of an expression with the variable's axes. */
  protected writeAssignment(to: Variable, value: AnyNode): void {
    if (to.varies.rows === undefined && to.varies.columns === undefined) {
      this.out.write(`${to.name} = `);
      this.print(value, FIRST);
      return this.line(';');
    }
    this.out.write(`${to.name}type = `);
    this.print(value, FIRST);
    this.line(';');
    this.assign(to, value);
  }

  /** `for (const part of tile.over('k'))`: the block goes through all tiles of an axis. */
  protected loop(node: ForOfStatement): void {
    const { left, right: given, body } = node;
    const declared = left.type === 'VariableDeclaration' ? left.declarations[0]?.id : left;
    const right = given.type === 'SequenceExpression' ? given.expressions.at(-1)! : given;
    if (given.type === 'SequenceExpression')
      for (const each of given.expressions.slice(0, -1)) this.perform(each);
    if (
      declared?.type !== 'Identifier' ||
      right.type !== 'CallExpression' ||
      this.ownCallee(right) !== 'over'
    ) {
      return this.fail(
        node,
        `A loop of a tile kernel goes over the tiles of an axis: ${this.code(node)}`,
        "Write for (const part of tile.over('columns')) { … }.",
      );
    }
    this.walk(right, body, declared.name, (axis) => ({ is: 'step', axis }));
  }

  /**
   * Writes `for (var i = 0, parts = tile.over('k'); i < parts.length; i++)`: the ES5 form of the
   * loop over all tiles, with `parts[i]` as the tile.
   */
  private countedLoop({ init, test, update, body }: ForStatement): boolean {
    if (
      init?.type !== 'VariableDeclaration' ||
      test?.type !== 'BinaryExpression' ||
      test.operator !== '<' ||
      update?.type !== 'UpdateExpression' ||
      update.operator !== '++'
    )
      return false;
    const { left, right } = test;
    const list =
      right.type === 'MemberExpression' && propertyName(right) === 'length'
        ? right.object
        : undefined;
    if (
      left.type !== 'Identifier' ||
      list?.type !== 'Identifier' ||
      update.argument.type !== 'Identifier' ||
      update.argument.name !== left.name
    )
      return false;
    const declared = (name: string): VariableDeclarator | undefined =>
      init.declarations.find(({ id }) => id.type === 'Identifier' && id.name === name);
    const [counter, tiles] = [declared(left.name), declared(list.name)];
    if (
      counter?.init?.type !== 'Literal' ||
      counter.init.value !== 0 ||
      tiles?.init?.type !== 'CallExpression' ||
      this.ownCallee(tiles.init) !== 'over'
    )
      return false;
    // Minifiers move the declarations before a loop into it.
    for (const each of init.declarations)
      if (each !== counter && each !== tiles)
        this.out.as(each, () => {
          this.declarator(each, init.kind);
        });
    const { init: call } = tiles;
    this.out.as(call, () => {
      this.walk(call, body, list.name, (axis) => ({ is: 'tiles', axis, counter: left.name }));
    });
    return true;
  }

  /**
   * Writes the statements of a loop for every tile of an axis. `step`: the binding of `declared` in
   * them.
   */
  protected walk(
    over: CallExpression,
    body: AnyNode,
    declared: string,
    step: (axis: number) => Binding,
  ): void {
    const axis = this.axisNamed(over);
    const { name } = this.axis(axis);
    if (this.walked.has(axis))
      return this.fail(
        over,
        `A loop over ${name} is already around this one: ${this.code(over)}`,
        'Give the inner one an axis with a name of its own.',
      );
    const { product } = this.form;
    const bounds = this.boundsOf(over.arguments[1]);
    if (product?.summed === axis)
      return product.by === 'chain'
        ? this.chainLoop(product, bounds, body, declared, step(axis))
        : this.productLoop(product, body);
    const { walked } = this;
    this.walked = new Set([...walked, axis]);
    if (this.axis(axis).cut === 'whole') {
      // The place of a single tile is known.
      const isBounded = bounds.from !== undefined || bounds.to !== undefined;
      if (isBounded) this.openBounded(axis, bounds);
      this.scope(body, () => {
        this.names.set(declared, step(axis));
        this.statement(body);
      });
      if (isBounded) this.line('} }');
      this.walked = walked;
      return;
    }
    this.openLoop(axis, bounds);
    this.depth++;
    this.scope(body, () => {
      this.names.set(declared, step(axis));
      this.statement(body);
    });
    this.depth--;
    this.walked = walked;
    this.line('}');
  }

  /** Writes the beginning of a loop over the tiles of an axis. */
  protected openLoop(axis: number, bounds: Bounds): void {
    const number = this.newName('step');
    const [first, last] = [this.newName('first'), this.newName('last')];
    const isBounded = bounds.from !== undefined || bounds.to !== undefined;
    if (isBounded) this.writeBounds(axis, bounds, first, last);
    const { tile, width } = this.axis(axis);
    const groups = Math.ceil(tile / width);
    this.line(
      'gpu$.unroll(1);',
      isBounded
        ? `for (let ${number} = ${first}; ${number} < ${last}; ${number}++) {`
        : `for (let ${number} = gpu$.${this.definition.indexType}(0); ${number} < ` +
            `(args$.${extentName(axis)} + ${groups - 1}) / ${groups}; ${number}++) {`,
      `const tile${axis}$ = ${number};`,
    );
    this.writePlace(axis);
  }

  /** Writes the condition of a loop over a single tile, which may be out of its bounds. */
  private openBounded(axis: number, bounds: Bounds): void {
    const [first, last] = [this.newName('first'), this.newName('last')];
    this.line('{');
    this.writeBounds(axis, bounds, first, last);
    this.line(`if (${first} < ${last}) {`);
  }

  /** Writes the loop of two chained products. `step`: the binding of `declared` in it. */
  protected abstract chainLoop(
    chain: ChainedProducts,
    bounds: Bounds,
    body: AnyNode,
    declared: string,
    step: Binding,
  ): void;

  /** Writes the loop whose only statement is `sum = tile.dot(…, …, sum)`. */
  private productLoop(product: WarpGroupProduct | WarpProduct, body: AnyNode): void {
    const inner = body.type === 'BlockStatement' && body.body.length === 1 ? body.body[0]! : body;
    const node = inner.type === 'ExpressionStatement' ? inner.expression : undefined;
    const to =
      node?.type === 'AssignmentExpression' && node.left.type === 'Identifier'
        ? this.names.get(node.left.name)
        : undefined;
    if (node?.type !== 'AssignmentExpression' || to?.is !== 'variable')
      throw new TypeError('the form has a product that the body has not');
    const varies: Varies = { rows: product.rows, columns: product.columns };
    if (to.varies.rows !== varies.rows || to.varies.columns !== varies.columns) {
      this.found.variables.set(to.at, varies);
      this.foundMore = true;
      this.names.set((node.left as Identifier).name, { ...to, varies });
      return;
    }
    for (const { name } of [product.left, product.right]) this.found.loaded.add(name);
    this.out.as(node, () => {
      this.line(`${to.name}type = gpu$.${sumsOf(product.left.storage)}(0);`);
      if (product.by === 'warps') writeWarpLoop(this, product, to);
      else writeProductLoop(this, product, to);
    });
  }

  /** The axis that `tile.over('k')` names. */
  private axisNamed(node: CallExpression): number {
    const [given] = node.arguments;
    const { axes } = this.form;
    const name = axisName(given);
    if (node.arguments.length > 2 || name === undefined) {
      return this.fail(
        node,
        `over takes the name of an axis, known when the kernel is compiled: ${this.code(node)}`,
        `There are ${axes.map((each) => each.name).join(', ')}.`,
      );
    }
    const axis = axes.findIndex((each) => each.name === name);
    if (axis < 0)
      return this.fail(
        given!,
        `There is no axis ${name}: ${this.code(node)}`,
        `There are ${axes.map((each) => each.name).join(', ')}.`,
      );
    if (this.axis(axis).cut === 'blocks')
      return this.fail(
        given!,
        `Each block has one tile along ${name}: ${this.code(node)}`,
        `Cut it by { walk: ${this.axis(axis).tile} } in the options' tile, and each block ` +
          'goes through all tiles along it.',
      );
    return axis;
  }

  /** Writes where the tile of a number begins and ends. */
  protected writePlace(axis: number): void {
    const { tile, width } = this.axis(axis);
    const groups = Math.ceil(tile / width);
    this.line(
      `const top${axis}$ = tile${axis}$ * ${tile};`,
      `const left${axis}$ = tile${axis}$ * ${groups};`,
      `const firstRow${axis}$ = top${axis}$ + threadRow$;`,
      `const firstGroup${axis}$ = left${axis}$ + threadColumn$;`,
      `const lastRow${axis}$ = ` +
        `Math.min(args$.${extentName(axis)}${width === 1 ? '' : ` * ${width}`}, top${axis}$ + ` +
        `${tile}) - 1;`,
      `const lastGroup${axis}$ = Math.min(args$.${extentName(axis)}, left${axis}$ + ` +
        `${groups}) - 1;`,
    );
  }
}
