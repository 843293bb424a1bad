/** Expressions of the marked kernel as operations on tiles. */
import { KernelSourceError } from '../source-error.js';
import type { Expression, Span, Statement } from '../tree.js';
import { APPROXIMATE, BINARY, UNARY, bitcast, compare, convert } from './arithmetic.js';
import { PRODUCTS, countName, insideName, isMark } from './marked-source.js';
import { SINGLE } from './tile-values.js';
import type { Tile } from './tile-values.js';
import { WholeTiles } from './whole-tiles.js';

const WITHOUT = "Leave the options' backend out, or write it with other operations.";

export abstract class TileIrExpressions extends WholeTiles {
  protected readonly locals = new Map<number, Tile>();
  protected placeOf: (span: Span) => number | undefined = () => undefined;
  protected scalars: (param: number, field: number | undefined) => Tile = () => this.never();

  protected abstract statements(list: readonly Statement[]): void;

  protected fail(span: Span, what: string, fix: string): never {
    throw new KernelSourceError(what, fix, span, this.tree.texts[span.text] ?? '');
  }

  private never(): never {
    throw new TypeError('a scalar before the entry');
  }

  // Expressions

  protected expression(node: Expression): Tile {
    const { to } = this;
    switch (node.op) {
      case 'constant':
        return to.constant(node.value, node.type);
      case 'local':
        return this.locals.get(node.local)!;
      case 'abi':
        return this.given(node);
      case 'unary': {
        const operand = this.expression(node.operand);
        return UNARY[node.operator](to, operand) ?? this.failOperator(node, node.operator);
      }
      case 'binary':
        return this.binary(node);
      case 'fma':
        return this.fused(node);
      case 'compare':
        return compare(to, node.operator, this.expression(node.left), this.expression(node.right));
      case 'logical':
        return to.each(
          node.operator === 'and' ? 'andi' : 'ori',
          'bool',
          [this.expression(node.left), this.expression(node.right)],
          {},
        );
      case 'conditional':
        return to.select(
          this.expression(node.test),
          this.expression(node.then),
          this.expression(node.otherwise),
        );
      case 'convert':
        if (node.odd === true) return this.failOperator(node, 'a rounding to odd');
        return convert(to, this.expression(node.operand), node.type);
      case 'narrow':
        return this.memory.rounded(this.expression(node.operand), node.storage);
      case 'bitcast':
        return bitcast(to, this.materialised(this.expression(node.operand)), node.type);
      case 'approximate':
        return APPROXIMATE[node.name](
          to,
          node.operands.map((operand) => this.expression(operand)),
        );
      case 'load':
        return this.load(node);
      case 'shuffle':
        return this.wholeTile(node);
      case 'block':
        this.statements(node.statements);
        return this.expression(node.value);
      default:
        return this.failOperator(node, node.op);
    }
  }

  /** A constant gets a value: the bits of it are not known to be those of another type. */
  private materialised(tile: Tile): Tile {
    return 'constant' in tile.of ? this.to.tile(this.to.value(tile), tile.type, SINGLE) : tile;
  }

  private failOperator(node: Expression, name: string): never {
    return this.fail(
      node.span,
      `Tile IR has no operation for this: ${name} of ${node.type}`,
      WITHOUT,
    );
  }

  private given(node: Expression & { readonly op: 'abi' }): Tile {
    const param = this.tree.abi[node.abi]!;
    const { name } = this.tree.params[param.param]!;
    for (const axis of this.form.axes.keys()) {
      if (name === insideName(axis)) return this.insideOf(axis);
      if (name === countName(axis))
        return convert(this.to, this.to.ofScalar(this.countOf(axis), 'i32'), node.type);
    }
    return this.scalars(param.param, param.kind === 'scalar' ? param.field : undefined);
  }

  private binary(node: Expression & { readonly op: 'binary' }): Tile {
    const { operator, left, right } = node;
    if (operator === 'add') {
      const number = this.productIn(left);
      if (number !== undefined && node.type === left.type)
        return this.product(number, this.expression(right));
    }
    const result = BINARY[operator](this.to, this.expression(left), this.expression(right));
    return result ?? this.failOperator(node, operator);
  }

  private fused(node: Expression & { readonly op: 'fma' }): Tile {
    const { to } = this;
    const [a, b] = [this.expression(node.a), this.expression(node.b)];
    const number = this.productIn(node.c);
    if (number !== undefined && node.type === 'f32')
      return this.product(number, BINARY.mul(to, a, b)!);
    return to.each('fma', node.type, [a, b, this.expression(node.c)], { rounding: 'nearestEven' });
  }

  /** The mark of a product. */
  private productIn(node: Expression): number | undefined {
    if (node.op !== 'load' || node.place.memory.kind !== 'param') return undefined;
    const { name } = this.tree.params[node.place.memory.param]!;
    const { index } = node.place;
    return isMark(PRODUCTS, name) && index.op === 'constant' ? Number(index.value) : undefined;
  }

  private load(node: Expression & { readonly op: 'load' }): Tile {
    const number = this.productIn(node);
    if (number !== undefined) return this.product(number, this.to.constant(0, node.type));
    const { memory } = node.place;
    const { name } = this.tree.params[memory.kind === 'param' ? memory.param : -1]!;
    return this.memory.load(name, this.place);
  }

  // Operations on whole tiles

  private wholeTile(node: Expression & { readonly op: 'shuffle' }): Tile {
    const { lane } = node;
    const operation = this.operations[lane.op === 'constant' ? Number(lane.value) : -1];
    const value = node.value;
    if (operation?.is === 'turn') return this.turned(this.expression(value));
    if (operation?.is !== 'reduce') return this.failOperator(node, node.op);
    const isSum = operation.reduction === 'sum' || operation.reduction === 'mean';
    // The zero only gives the type: a sum begins with it anyway.
    const summed =
      isSum &&
      value.op === 'binary' &&
      value.operator === 'add' &&
      value.left.op === 'constant' &&
      Number(value.left.value) === 0
        ? value.right
        : value;
    return this.reduced(this.expression(summed), operation);
  }
}
