/**
 * What all parts of a tile kernel's lowering write with: values as arrays of the thread's elements,
 * loops over them, and places in the user's text for what is wrong.
 *
 * Every axis is shared by the block's threads in one way as rows, and in one way as columns,
 * whatever tile it belongs to: the row of a thread in one tile is that in any other with these
 * rows.
 */
import type { AnyNode } from 'acorn';

import type { KernelSource } from '../signature.js';
import { KernelSourceError } from '../source-error.js';
import { PrintedText } from './printed-text.js';
import { columnSlots, rowSlots } from './tile-form.js';
import type { AxisForm, TileForm } from './tile-form.js';

/** Axes along which a value differs within the tile. */
export interface Varies {
  readonly rows: number | undefined;
  readonly columns: number | undefined;
}

export const NOWHERE: Varies = { rows: undefined, columns: undefined };

/** A value of the body, by the name that it has in what is written. */
export interface TileValue {
  readonly name: string;
  readonly varies: Varies;
}

/** Slots of a thread, as texts. */
export interface Slot {
  readonly row: string;
  readonly column: string;
}

export const FIRST: Slot = { row: '0', column: '0' };
export const TURN: Slot = { row: 'r$', column: 'c$' };

/**
 * What one pass over the body finds out for the next: shapes of variables, shared memory of
 * products, which tensors are both read and written.
 */
export interface Found {
  /** Of variables, by where they are declared. */
  readonly variables: Map<number, Varies>;
  /** Elements of the buffers that operands of products are put into. */
  buffers: readonly number[];
  /**
   * Constants that products within a loop take from outside of it, by where they are declared, with
   * the axis that is summed over.
   */
  readonly ahead: Map<number, Set<number>>;
  /** Tensors of which a tile is loaded, and stored, anywhere in the body. */
  readonly loaded: Set<string>;
  readonly stored: Set<string>;
}

export abstract class TileWriter {
  readonly definition: KernelSource;
  readonly form: TileForm;
  readonly out = new PrintedText();
  /** Loops around what is being written. */
  depth = 0;
  /** Elements of the shared arrays that were declared. */
  sharedElements = 0;
  private count = 0;

  constructor(definition: KernelSource, form: TileForm) {
    this.definition = definition;
    this.form = form;
  }

  /** Along which axes an expression differs. */
  abstract varies(node: AnyNode): Varies;

  /** Writes the expression for one slot. */
  abstract print(node: AnyNode, slot: Slot): void;

  fail(node: AnyNode, what: string, fix: string): never {
    throw new KernelSourceError(
      what,
      fix,
      { text: 0, start: node.start, end: node.end },
      this.definition.text,
    );
  }

  code(node: AnyNode): string {
    return this.definition.text.slice(node.start, node.end).replace(/\s+/g, ' ').slice(0, 60);
  }

  line(...lines: readonly string[]): void {
    for (const line of lines) this.out.write(`${line}\n`);
  }

  newName(of: string): string {
    return `${of}$${this.count++}`;
  }

  axis(number: number): AxisForm {
    return this.form.axes[number]!;
  }

  /** Rows, or columns, that a thread has along an axis; one where there is none. */
  rowSlots(axis: number | undefined): number {
    return axis === undefined ? 1 : rowSlots(this.axis(axis), this.form);
  }

  columnSlots(axis: number | undefined): number {
    return axis === undefined ? 1 : columnSlots(this.axis(axis), this.form);
  }

  widthOf(axis: number | undefined): number {
    return axis === undefined ? 1 : this.axis(axis).width;
  }

  /** Slots of a value. */
  slots({ rows, columns }: Varies): number {
    return this.rowSlots(rows) * this.columnSlots(columns);
  }

  /** The element of a slot. */
  element({ name, varies: { rows, columns } }: TileValue, { row, column }: Slot): string {
    if (rows === undefined && columns === undefined) return name;
    if (columns === undefined) return `${name}[${row}]`;
    if (rows === undefined || this.rowSlots(rows) === 1) return `${name}[${column}]`;
    return row === '0'
      ? `${name}[${column}]`
      : `${name}[${row} * ${this.columnSlots(columns)} + ${column}]`;
  }

  /** Loops over the slots of a value. */
  each({ rows, columns }: Varies, turn: () => void): void {
    const over = [
      rows === undefined ? '' : `for (let r$ = 0; r$ < ${this.rowSlots(rows)}; r$++) `,
      columns === undefined ? '' : `for (let c$ = 0; c$ < ${this.columnSlots(columns)}; c$++) `,
    ];
    this.out.write(`${over.join('')}{ `);
    turn();
    this.line(' }');
  }

  /** Writes a constant: what it is in each of the thread's slots. */
  define(name: string, node: AnyNode, varies: Varies): void {
    const { out } = this;
    if (varies.rows === undefined && varies.columns === undefined) {
      out.write(`const ${name} = `);
      this.print(node, FIRST);
      this.line(';');
      return;
    }
    this.declare('local', name, this.slots(varies), node);
    this.assign({ name, varies }, node);
  }

  /** Gives every slot of a value that is there its element of the expression. */
  assign(value: TileValue, node: AnyNode): void {
    this.each(value.varies, () => {
      this.out.write(`${this.element(value, TURN)} = `);
      this.print(node, TURN);
      this.out.write(';');
    });
  }

  /** An array of the expression's type, or of the one that it has together with what is `added`. */
  declare(
    space: 'local' | 'shared',
    name: string,
    length: number,
    like: AnyNode,
    added?: string,
  ): void {
    if (space === 'shared') this.sharedElements += length;
    this.out.write(`const ${name} = gpu$.${space}Like$(${length}, `);
    this.print(like, FIRST);
    this.line(added === undefined ? ');' : ` + ${added});`);
  }

  /** All threads have come here. */
  meet(): void {
    this.line('gpu$.block.sync();');
  }

  /** In a loop, shared memory may still be read as it was written in the turn before. */
  meetInLoop(): void {
    if (this.depth > 0) this.meet();
  }

  // What a thread has of an axis, in the kernel's own names.

  /** Number within the tile of row `r$`, and of column `q$ * width + k$`. */
  rowInTile(turn: string): string {
    return this.form.down === 1 ? turn : `(below$ + ${turn} * ${this.form.down})`;
  }

  columnInTile(axis: number, group: string, inGroup: string): string {
    const width = this.widthOf(axis);
    const number = `(beside$ + ${group} * ${this.form.across})`;
    return width === 1 ? number : `(${number} * ${width} + ${inGroup})`;
  }

  /** Tests, empty where they always hold: whether a slot is of an element that exists. */
  rowExists(axis: number, turn: string): string {
    return this.axis(axis).exactRows
      ? ''
      : `firstRow${axis}$ + ${turn} * ${this.form.down} <= lastRow${axis}$`;
  }

  groupExists(axis: number, group: string): string {
    return this.axis(axis).exactColumns
      ? ''
      : `firstGroup${axis}$ + ${group} * ${this.form.across} <= lastGroup${axis}$`;
  }

  /**
   * Elements of this tile along an axis: a constant where no tile goes beyond the end, of the same
   * type, and a mean takes no division then by a power of two.
   */
  lengthOf(axis: number, as: 'rows' | 'columns'): string {
    const { tile, exactRows, exactColumns } = this.axis(axis);
    if (as === 'rows' ? exactRows : exactColumns)
      return `gpu$.${this.definition.indexType}(${tile})`;
    if (as === 'rows') return `(lastRow${axis}$ + 1 - top${axis}$)`;
    const width = this.widthOf(axis);
    return `(lastGroup${axis}$ + 1 - left${axis}$)${width === 1 ? '' : ` * ${width}`}`;
  }
}

/** Tests that all have to hold. */
export const all = (...tests: readonly string[]): string =>
  tests.filter((test) => test !== '').join(' && ');
