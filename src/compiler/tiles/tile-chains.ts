/** The loop of two chained products, and the body's statements between them. */
import type { AnyNode, AssignmentExpression, CallExpression, Identifier } from 'acorn';

import {
  sumsFrom,
  sumsTo,
  writeChainEnd,
  writeChainProducer,
  writeChainStart,
  writeChainedTile,
  writeLaterStep,
  writeLaterWait,
  writeShares,
} from './chained-products.js';
import { alwaysHolds } from './index-ranges.js';
import type { ChainedProducts } from './tile-form.js';
import type { Bounds } from './tile-indices.js';
import type { Binding, Variable } from './tile-scope.js';
import { TileStatements } from './tile-statements.js';
import type { TileValue, Varies } from './tile-writer.js';

/** The statement `sums = tile.dot(shares, values, more)`. */
interface Second {
  readonly statement: AnyNode;
  readonly node: AssignmentExpression & { readonly left: Identifier };
  readonly product: CallExpression;
}

export abstract class TileChains extends TileStatements {
  /** Whether the step that is being written is the loop's first one. */
  private isFirstStep = true;

  protected override chainedTile(chain: ChainedProducts): TileValue {
    const value: TileValue = {
      name: this.newName('product'),
      varies: { rows: chain.rows, columns: chain.summed },
      storage: 'f32',
    };
    writeChainedTile(this, chain, value, this.isFirstStep);
    return value;
  }

  /**
   * Writes the loop. Its text has the statements twice: those of the first step, and those of the
   * others, which run beside the second product of the step before.
   */
  protected override chainLoop(
    chain: ChainedProducts,
    bounds: Bounds,
    body: AnyNode,
    declared: string,
    step: Binding,
  ): void {
    const statements = body.type === 'BlockStatement' ? body.body : [body];
    const second = statements
      .map((each) => this.secondIn(each))
      .filter(Boolean)
      .at(-1);
    const to = second === undefined ? undefined : this.names.get(second.node.left.name);
    if (second === undefined || to?.is !== 'variable')
      throw new TypeError('the form has products that the body has not');
    const varies: Varies = { rows: chain.rows, columns: chain.columns };
    if (to.varies.rows !== varies.rows || to.varies.columns !== varies.columns) {
      this.found.variables.set(to.at, varies);
      this.foundMore = true;
      this.names.set(second.node.left.name, { ...to, varies });
      return;
    }
    const writeStep = (isFirst: boolean): void => {
      this.isFirstStep = isFirst;
      this.line(`const tile${chain.summed}$ = begin$ + step$;`);
      this.writePlace(chain.summed);
      this.scope(body, () => {
        this.names.set(declared, step);
        this.chainStep(chain, statements, second, to);
      });
    };
    this.line(`${to.name}type = gpu$.f32(0);`, '{');
    this.writeSteps(chain, bounds);
    this.line('if (steps$ > 0) {');
    writeChainStart(this, chain);
    const { walked } = this;
    this.walked = new Set([...walked, chain.summed]);
    this.depth++;
    this.line('{');
    writeStep(true);
    this.line('}');
    writeLaterStep(this, chain);
    writeStep(false);
    this.line('}');
    this.depth--;
    this.walked = walked;
    writeChainEnd(this, chain);
    this.line(sumsTo(this, chain, to), '}', '}');
  }

  /** Writes `begin$` and `steps$`: the number of the first step, and that of all. */
  private writeSteps(chain: ChainedProducts, bounds: Bounds): void {
    this.writeBounds(chain.summed, bounds, 'begin$', 'end$');
    this.line('const steps$ = end$ - begin$;');
  }

  /** Writes the warp group that copies, whose steps are those of the body's loop. */
  protected writeCopying(chain: ChainedProducts, body: AnyNode): void {
    const statements = body.type === 'BlockStatement' ? body.body : [body];
    const loop = statements.find((each) => each.type === 'ForOfStatement');
    const over = loop?.right;
    if (over?.type !== 'CallExpression')
      throw new TypeError('the form has products that the body has not');
    writeChainProducer(this, chain, () => {
      this.writeSteps(chain, this.boundsOf(over.arguments[1]));
    });
  }

  /**
   * Writes a constant. One that is `test ? a : b` is `a` in tiles in which the test holds for all
   * elements: of attention's mask, that is in most of them.
   */
  override define(name: string, node: AnyNode, varies: Varies): void {
    const test =
      this.form.product?.by === 'chain' &&
      node.type === 'ConditionalExpression' &&
      varies.columns !== undefined
        ? alwaysHolds(this, node.test, (each) => this.indexOf(each))
        : undefined;
    if (test === undefined || node.type !== 'ConditionalExpression') {
      super.define(name, node, varies);
      return;
    }
    this.declare('local', name, this.slots(varies), node);
    this.assign({ name, varies }, node.consequent);
    this.out.write('if (!(');
    test();
    this.line(')) {');
    this.assign({ name, varies }, node);
    this.line('}');
  }

  /** The axes of the numbers of rows or columns that an expression is. */
  private indexOf(node: AnyNode): Varies | undefined {
    const value = this.written.get(node) ?? this.bindingOf(node);
    return value?.is === 'value' || value?.is === 'variable'
      ? this.indices.get(value.name)
      : undefined;
  }

  /** Writes the statements of one step. Those after the second product do not depend on it. */
  private chainStep(
    chain: ChainedProducts,
    statements: readonly AnyNode[],
    { statement, product }: Second,
    to: Variable,
  ): void {
    const [given, values, more] = product.arguments as [AnyNode, AnyNode, AnyNode];
    let shares: TileValue | undefined;
    for (const each of statements) {
      if (each !== statement) {
        this.statement(each);
        continue;
      }
      this.out.as(each, () => {
        const unrounded = this.unrounded(given);
        this.whole = each;
        this.hoist(unrounded);
        this.hoist(values);
        shares = this.operandValue(unrounded);
      });
    }
    this.out.as(statement, () => {
      if (!this.isFirstStep) {
        writeLaterWait(this, chain);
        this.line(sumsTo(this, chain, to));
      }
      this.whole = statement;
      this.hoist(more);
      const added: TileValue = { name: this.newName('sum'), varies: to.varies };
      this.line(`const ${added.name} = gpu$.local.f32(${this.slots(to.varies)});`);
      this.join(more, this.varies(more), to.varies);
      this.assign(added, more);
      this.line(sumsFrom(this, chain, added));
      writeShares(this, chain, shares!);
    });
  }

  /** The operand of a conversion to the values' dtype: the product's registers have that dtype. */
  private unrounded(node: AnyNode): AnyNode {
    if (node.type === 'ParenthesizedExpression') return this.unrounded(node.expression);
    if (node.type !== 'CallExpression' || node.arguments.length !== 1) return node;
    const callee = this.bindingOf(node.callee);
    return callee?.is === 'member' && (callee.name === 'f16' || callee.name === 'bf16')
      ? node.arguments[0]!
      : node;
  }

  private secondIn(statement: AnyNode): Second | undefined {
    const node = statement.type === 'ExpressionStatement' ? statement.expression : undefined;
    return node?.type === 'AssignmentExpression' &&
      node.left.type === 'Identifier' &&
      node.right.type === 'CallExpression' &&
      this.ownCallee(node.right) === 'dot'
      ? { statement, node: node as Second['node'], product: node.right }
      : undefined;
  }
}
