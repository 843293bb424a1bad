/** Places of elements along an axis: numbers of rows and columns, and the ends of a tile. */
import type { AnyNode, CallExpression } from 'acorn';

import { extentName } from './tile-form.js';
import { TileIntegers } from './tile-integers.js';
import { FIRST, IN_LOOP, NO_AXES } from './tile-writer.js';
import type { TileValue, Varies } from './tile-writer.js';

/** Where the loop over an axis begins and ends. */
export interface Bounds {
  readonly from: AnyNode | undefined;
  readonly to: AnyNode | undefined;
}

/** The literal that names an axis; undefined where a node is none. */
export const axisName = (node: AnyNode | undefined): string | undefined => {
  const name =
    node?.type === 'Literal'
      ? node.value
      : node?.type === 'TemplateLiteral' && node.expressions.length === 0
        ? node.quasis[0]!.value.cooked
        : undefined;
  return typeof name === 'string' ? name : undefined;
};

export abstract class TileIndices extends TileIntegers {
  /** Axes of the loops around the statement that is being written. */
  protected walked: ReadonlySet<number> = new Set();
  /** Numbers of rows and columns, by the names of their arrays. */
  protected readonly indices = new Map<string, Varies>();

  /** `index('queries', 0)`: the number of each row, or of each column. */
  protected index(node: CallExpression): void {
    const [given, along] = node.arguments;
    const axis = this.placedAxis(node, given, "tile.index('rows', 0)");
    const which = along?.type === 'Literal' ? along.value : undefined;
    if (node.arguments.length !== 2 || (which !== 0 && which !== 1))
      return this.fail(
        node,
        `index takes an axis, and 0 or 1: ${this.code(node)}`,
        'Write 0 for one number for each row, 1 for one for each column.',
      );
    const varies: Varies =
      which === 0 ? { rows: axis, columns: undefined } : { rows: undefined, columns: axis };
    this.written.set(node, { is: 'value', ...this.writeIndex(axis, varies, node) });
  }

  protected writeIndex(axis: number, varies: Varies, _node: AnyNode): TileValue {
    const value: TileValue = { name: this.newName('index'), varies, storage: 'i32' };
    this.indices.set(value.name, varies);
    const { indexType } = this.definition;
    this.line(`const ${value.name} = gpu$.local.${indexType}(${this.slots(varies)});`);
    this.each(varies, () => {
      const width = this.widthOf(axis);
      const column =
        width === 1
          ? `left${axis}$ + ${this.columnInTile(axis, 'c$', '0')}`
          : `left${axis}$ * ${width} + ` +
            this.columnInTile(axis, `(c$ / ${width})`, `(c$ % ${width})`);
      const [number, exact] =
        varies.rows === undefined
          ? [column, this.axis(axis).exactColumns]
          : [`top${axis}$ + ${this.rowInTile('r$')}`, this.axis(axis).exactRows];
      // A thread beyond the edge has the last element again, as in loads.
      this.out.write(
        `${this.element(value, IN_LOOP)} = ` +
          `${exact ? number : `Math.min(${number}, ${this.lengthText(axis)} - 1)`};`,
      );
    });
    return value;
  }

  /** `start('queries')` and `end('queries')`: the first element of the tile, and that after it. */
  protected place(node: CallExpression, which: 'start' | 'end'): void {
    const axis = this.placedAxis(node, node.arguments[0], `tile.${which}('rows')`);
    if (node.arguments.length !== 1)
      return this.fail(node, `${which} takes an axis: ${this.code(node)}`, `tile.${which}('rows')`);
    this.written.set(node, {
      is: 'value',
      name: this.writePlaceOf(axis, which, node),
      varies: NO_AXES,
      storage: 'i32',
    });
  }

  protected writePlaceOf(axis: number, which: 'start' | 'end', _node: AnyNode): string {
    const { tile, cut } = this.axis(axis);
    if (cut === 'whole') return which === 'start' ? '0' : `(${this.lengthText(axis)})`;
    return which === 'start'
      ? `(tile${axis}$ * ${tile})`
      : `Math.min(tile${axis}$ * ${tile} + ${tile}, ${this.lengthText(axis)})`;
  }

  /** The number of elements along an axis. */
  protected lengthText(axis: number): string {
    const width = this.widthOf(axis);
    return `args$.${extentName(axis)}${width === 1 ? '' : ` * ${width}`}`;
  }

  private placedAxis(node: AnyNode, given: AnyNode | undefined, example: string): number {
    const { axes } = this.form;
    const name = axisName(given);
    const axis = axes.findIndex((each) => each.name === name);
    if (axis < 0)
      return this.fail(
        node,
        `This takes the name of an axis, known when the kernel is compiled: ${this.code(node)}`,
        `Write ${example}. There are ${axes.map((each) => each.name).join(', ')}.`,
      );
    if (this.axis(axis).cut === 'walk' && !this.walked.has(axis))
      return this.fail(
        node,
        `Outside of a loop over ${name!} there are many of its tiles: ${this.code(node)}`,
        `Write it within for (const part of tile.over('${name!}')) { … }.`,
      );
    return axis;
  }

  /** The bounds of a loop, of its options. */
  protected boundsOf(options: AnyNode | undefined): Bounds {
    const bounds: { from?: AnyNode; to?: AnyNode } = {};
    const fail = (node: AnyNode): never =>
      this.fail(
        node,
        `The options of over are the numbers of elements from and to: ${this.code(node)}`,
        "Write tile.over('keys', { from: 0, to: tile.end('queries') }), with whole numbers that " +
          'are the same for the whole tile.',
      );
    if (options === undefined) return { from: undefined, to: undefined };
    if (options.type !== 'ObjectExpression') return fail(options);
    for (const property of options.properties) {
      if (property.type !== 'Property' || property.key.type !== 'Identifier') return fail(property);
      const { name } = property.key;
      if (name !== 'from' && name !== 'to') return fail(property);
      this.hoist(property.value);
      const { rows, columns } = this.varies(property.value);
      if (rows !== undefined || columns !== undefined || this.isFraction(property.value))
        return fail(property.value);
      bounds[name] = property.value;
    }
    return { from: bounds.from, to: bounds.to };
  }

  /** Writes constants for the number of a loop's first tile, and of the one after the last. */
  protected writeBounds(axis: number, { from, to }: Bounds, first: string, last: string): void {
    const { tile } = this.axis(axis);
    const { indexType } = this.definition;
    const text = (node: AnyNode, before: string, after: string): void => {
      this.out.write(`${before}gpu$.${indexType}(`);
      this.print(node, FIRST);
      this.out.write(`)${after}`);
    };
    this.out.write(`const ${first} = `);
    if (from === undefined) this.out.write(`gpu$.${indexType}(0)`);
    else text(from, 'Math.max(', `, 0) / ${tile}`);
    this.out.write(`;\nconst ${last} = (`);
    const length = this.lengthText(axis);
    if (to === undefined) this.out.write(length);
    else text(to, `Math.min(`, `, ${length})`);
    this.line(` + ${tile - 1}) / ${tile};`);
  }

  /** Writes the loads, reductions and products of an expression, innermost first. */
  protected abstract hoist(node: AnyNode): void;
}
